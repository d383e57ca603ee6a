/* SPDX-License-Identifier: MIT */
/*
 * selftest: what a program may expect of the kernel, as TAP. Each test runs in
 * a child process with a time limit of its own.
 *
 *     selftest [FIRST FAILED [TEXT]]
 *
 * FIRST is how many lines the kernel's own tests have printed and FAILED how
 * many of them failed: the numbers go on from there and one plan covers both.
 * With TEXT only tests whose sentence contains it run.
 * Runs on Linux too, where a few lines are skipped.
 */
#define _GNU_SOURCE
#include "selftest.h"

#include <signal.h>
#include <sys/wait.h>

#define TEST_SECONDS 240

struct shared *shared;

static const struct test_table *const tables[] = {
    &tests_syscall, &tests_memory, &tests_huge, &tests_numa,    &tests_process,
    &tests_file,    &tests_signal, &tests_proc, &tests_reclaim, &tests_smp,
    &tests_asid,    &tests_timer,  &tests_mmap,
};

/* The child's result: exit status 0 passed, 77 skipped, else failed. */
static int run_child(const struct test *test)
{
    pid_t pid;
    int status = 0;

    fflush(stdout);
    shared->why[0] = '\0';
    pid = fork();
    if (pid == 0) {
        _exit(test->run() ? 0 : shared->skipped ? 77 : 1);
    }
    if (pid < 0) {
        test_why("fork: %s", strerror(errno));
        return 1;
    }
    for (unsigned long waited_ms = 0;; waited_ms += 1) {
        pid_t done = waitpid(pid, &status, WNOHANG);

        if (done == pid) {
            break;
        }
        if (waited_ms > TEST_SECONDS * 1000UL) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            test_why("no result after %d s", TEST_SECONDS);
            return 1;
        }
        usleep(1000);
    }
    if (WIFSIGNALED(status)) {
        test_why("ended by signal %d", WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status);
}

static bool run_test(const struct test_table *table, const struct test *test,
                     unsigned number)
{
    int result;

    shared->skipped = false;
    result = run_child(test);
    if (result == 77) {
        printf("ok %u - %s: %s # SKIP %s\n", number, table->module, test->name,
               shared->why);
    } else {
        printf("%sok %u - %s: %s\n", result == 0 ? "" : "not ", number,
               table->module, test->name);
    }
    if (result != 0 && result != 77) {
        printf("# %s\n", shared->why);
    }
    return result == 0 || result == 77;
}

/* What the kernel watched with debug=locks: "# lock order: HELD TAKEN". */
static void print_lock_order(void)
{
    FILE *file = fopen("/proc/lock_order", "r");
    char line[128];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        printf("# lock order: %s", line);
    }
    if (file != NULL) {
        fclose(file);
    }
}

int main(int argc, char **argv)
{
    unsigned number = 0, failed = 0;

    if (argc > 1 && strcmp(argv[1], "--child") == 0) {
        return exec_child(argc, argv);
    }
    if (argc >= 3) {
        number = (unsigned)option_number("selftest", '1', argv[1], 0);
        failed = (unsigned)option_number("selftest", '2', argv[2], 0);
    } else {
        printf("TAP version 13\n");
    }
    shared = test_map_shared(sizeof(*shared));
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            if (argc > 3 && strstr(tables[t]->tests[i].name, argv[3]) == NULL) {
                continue;
            }
            number++;
            failed += !run_test(tables[t], &tables[t]->tests[i], number);
        }
    }
    print_lock_order();
    printf("1..%u\n", number);
    printf("# selftest: %u of %u failed\n", failed, number);
    return failed == 0 ? 0 : 1;
}
