/* SPDX-License-Identifier: MIT */
/* The smallest workload: says where it runs and with which arguments. */
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct utsname uts;

    if (uname(&uts) != 0) {
        perror("uname");
        return 1;
    }
    printf("hello from %s %s on %ld CPUs, pid %d\n", uts.sysname, uts.machine,
           sysconf(_SC_NPROCESSORS_ONLN), (int)getpid());
    for (int i = 1; i < argc; i++) {
        printf("argument %d: %s\n", i, argv[i]);
    }
    return 0;
}
