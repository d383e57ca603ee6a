/* SPDX-License-Identifier: MIT */
/* selftest: system calls that say what they should, and refuse what they must.
 */
#define _GNU_SOURCE
#include "selftest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#define NOWHERE ((void *)0x123456000UL)

static bool identity(void)
{
    struct utsname uts;

    CHECK(getpid() > 0 && getppid() > 0);
    CHECK_EQ(syscall(SYS_gettid), getpid());
    CHECK(uname(&uts) == 0);
    CHECK(strcmp(uts.sysname, "Linux") == 0);
    CHECK(strcmp(uts.machine, "aarch64") == 0);
    return true;
}

static bool unknown_call(void)
{
    errno = 0;
    CHECK_EQ(syscall(4000), -1);
    CHECK_EQ(errno, ENOSYS);
    return true;
}

static bool bad_descriptor(void)
{
    char c = 0;

    errno = 0;
    CHECK(write(63, &c, 1) == -1 && errno == EBADF);
    CHECK(read(-1, &c, 1) == -1 && errno == EBADF);
    CHECK(close(1000000) == -1 && errno == EBADF);
    return true;
}

static bool bad_pointers(void)
{
    errno = 0;
    CHECK(syscall(SYS_write, 1, NOWHERE, 1) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_uname, NOWHERE) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_openat, AT_FDCWD, NOWHERE, 0) == -1 && errno == EFAULT);
    /* Kernel addresses are as bad as unmapped ones. */
    CHECK(syscall(SYS_uname, (void *)0xffff000040200000UL) == -1 &&
          errno == EFAULT);
    CHECK(syscall(SYS_getrandom, (void *)0xfffffffffffff000UL, 4096, 0) == -1 &&
          errno == EFAULT);
    return true;
}

static bool clocks(void)
{
    struct timespec real;
    uint64_t before = now_ns();

    for (unsigned i = 0; i < 100; i++) {
        uint64_t now = now_ns();

        CHECK(now >= before);
        before = now;
    }
    CHECK(clock_gettime(CLOCK_REALTIME, &real) == 0 && real.tv_sec > 1000000);
    errno = 0;
    CHECK(clock_gettime(1000, &real) == -1 && errno == EINVAL);
    return true;
}

static bool sleeping(void)
{
    struct timespec ts = {0, 5000000}, bad = {0, -1}, until;
    uint64_t before = now_ns();

    CHECK(nanosleep(&ts, NULL) == 0);
    CHECK(now_ns() - before >= 5000000);
    before = now_ns() + 5000000;
    until = (struct timespec){(time_t)(before / 1000000000),
                              (long)(before % 1000000000)};
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), 0);
    CHECK(now_ns() >= before);
    errno = 0;
    CHECK(nanosleep(&bad, NULL) == -1 && errno == EINVAL);
    return true;
}

static bool files(void)
{
    struct stat st;
    char magic[4];
    int fd = open("/bin/selftest", O_RDONLY);

    if (fd < 0) {
        return test_skip("no /bin/selftest");
    }
    CHECK(fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 1000);
    CHECK(read(fd, magic, 4) == 4 && memcmp(magic, "\177ELF", 4) == 0);
    CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
    CHECK(read(fd, magic, 3) == 3 && memcmp(magic, "ELF", 3) == 0);
    CHECK_EQ(lseek(fd, 0, SEEK_END), st.st_size);
    CHECK_EQ(read(fd, magic, 4), 0);
    CHECK_EQ(pread(fd, magic, 3, 1), 3);
    CHECK_EQ(close(fd), 0);
    errno = 0;
    CHECK(open("/bin/no-such-program", O_RDONLY) == -1 && errno == ENOENT);
    return true;
}

static bool directory(void)
{
    DIR *dir = opendir("/bin");
    unsigned found = 0;

    if (access("/proc/shootdown", R_OK) != 0) {
        return test_skip("not our kernel");
    }
    CHECK(dir != NULL);
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
        found += strcmp(d->d_name, "hello") == 0;
        found += strcmp(d->d_name, "selftest") == 0;
    }
    closedir(dir);
    CHECK_EQ(found, 2);
    return true;
}

static bool counters_file(void)
{
    char text[8192], *line;
    int fd = open("/proc/shootdown", O_RDONLY);
    ssize_t n;

    if (fd < 0) {
        return test_skip("not our kernel");
    }
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    CHECK(n > 0);
    text[n] = '\0';
    line = strstr(text, "syscalls ");
    CHECK(line != NULL && strtoul(line + 9, NULL, 10) > 0);
    CHECK(strstr(text, "dsb_ish ") != NULL && text[n - 1] == '\n');
    return true;
}

static bool vectors(void)
{
    char a[3], b[5];
    struct iovec iov[2] = {{a, sizeof(a)}, {b, sizeof(b)}};
    int fd = open("/bin/selftest", O_RDONLY);

    if (fd < 0) {
        return test_skip("no /bin/selftest");
    }
    CHECK_EQ(readv(fd, iov, 2), 8);
    CHECK(a[0] == 0x7f && a[1] == 'E' && a[2] == 'L' && b[0] == 'F');
    close(fd);
    return true;
}

static bool descriptors(void)
{
    int fd = open("/dev/null", O_RDWR), copy;
    char c;

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(read(fd, &c, 1), 0);
    copy = dup(fd);
    CHECK(copy >= 0 && copy != fd);
    CHECK_EQ(dup2(fd, 40), 40);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(write(copy, "x", 1), 1);
    CHECK_EQ(write(40, "x", 1), 1);
    CHECK_EQ(fcntl(40, F_GETFD), 0);
    CHECK_EQ(fcntl(40, F_SETFD, FD_CLOEXEC), 0);
    CHECK_EQ(fcntl(40, F_GETFD), FD_CLOEXEC);
    return true;
}

static bool randomness(void)
{
    uint64_t a[4] = {0}, b[4] = {0};

    CHECK_EQ(getrandom(a, sizeof(a), 0), sizeof(a));
    CHECK_EQ(getrandom(b, sizeof(b), 0), sizeof(b));
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    return true;
}

static bool limits(void)
{
    struct rlimit limit;
    struct sysinfo info;

    CHECK_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
    CHECK(limit.rlim_cur >= 1 << 20);
    CHECK_EQ(sysinfo(&info), 0);
    CHECK(info.totalram > 0 && info.freeram <= info.totalram);
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    CHECK_EQ(sysconf(_SC_PAGESIZE), 4096);
    return true;
}

static bool standard_io(void)
{
    char text[40];
    FILE *f = fopen("/proc/cmdline", "r");

    CHECK(f != NULL);
    CHECK(fgets(text, sizeof(text), f) != NULL);
    fclose(f);
    snprintf(text, sizeof(text), "%.3f %d %s", 3.14159, 42, "x");
    CHECK(strcmp(text, "3.142 42 x") == 0);
    return true;
}

static const struct test tests[] = {
    {"a process knows who it is", identity},
    {"an unknown system call is ENOSYS", unknown_call},
    {"a bad descriptor is EBADF", bad_descriptor},
    {"a bad pointer is EFAULT", bad_pointers},
    {"clocks move forward", clocks},
    {"sleeping takes at least its time", sleeping},
    {"files of the initramfs can be read", files},
    {"directories can be listed", directory},
    {"the counters can be read", counters_file},
    {"readv fills its vectors in order", vectors},
    {"descriptors can be duplicated", descriptors},
    {"random bytes differ", randomness},
    {"limits and sizes make sense", limits},
    {"the C library reads and formats", standard_io},
};

TEST_TABLE(tests_syscall, "syscall", tests);
