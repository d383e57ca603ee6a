/* SPDX-License-Identifier: MIT */
/* selftest: alarms, setitimer(ITIMER_REAL). */
#define _GNU_SOURCE
#include "selftest.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t calls;

static void count(int signo)
{
    calls += signo == SIGALRM;
}

static bool handle_alarms(int flags)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = flags};

    return sigaction(SIGALRM, &action, NULL) == 0;
}

static int set_ms(long value, long interval)
{
    struct itimerval it = {
        .it_value = {value / 1000, value % 1000 * 1000},
        .it_interval = {interval / 1000, interval % 1000 * 1000}};

    return setitimer(ITIMER_REAL, &it, NULL);
}

static bool is_zero(const struct itimerval *it)
{
    return it->it_value.tv_sec == 0 && it->it_value.tv_usec == 0 &&
           it->it_interval.tv_sec == 0 && it->it_interval.tv_usec == 0;
}

static void sleep_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

static bool once(void)
{
    struct itimerval it;

    CHECK(handle_alarms(0));
    CHECK(getitimer(ITIMER_REAL, &it) == 0 && is_zero(&it));
    CHECK_EQ(set_ms(20, 0), 0);
    errno = 0;
    CHECK(pause() == -1 && errno == EINTR);
    CHECK_EQ(calls, 1);
    sleep_ms(50);
    CHECK_EQ(calls, 1);
    CHECK(getitimer(ITIMER_REAL, &it) == 0 && is_zero(&it));
    return true;
}

static bool again_and_again(void)
{
    struct itimerval none = {0}, old;

    CHECK(handle_alarms(SA_RESTART));
    CHECK_EQ(set_ms(5, 10), 0);
    /* Also for a program that only computes; if they come at all. */
    for (time_t end = time(NULL) + 60; calls < 4 && time(NULL) < end;) {
    }
    CHECK(calls >= 4);
    CHECK_EQ(setitimer(ITIMER_REAL, &none, &old), 0);
    CHECK(old.it_interval.tv_sec == 0 && old.it_interval.tv_usec == 10000);
    calls = 0;
    sleep_ms(50);
    CHECK_EQ(calls, 0);
    return true;
}

static bool what_is_left(void)
{
    struct itimerval it;
    unsigned left;

    CHECK_EQ(set_ms(100 * 1000, 7), 0);
    sleep_ms(10);
    CHECK_EQ(getitimer(ITIMER_REAL, &it), 0);
    CHECK(it.it_value.tv_sec >= 60 && it.it_value.tv_sec < 100);
    CHECK_EQ(it.it_interval.tv_usec, 7000);
    left = alarm(50); /* replaces it, with no interval */
    CHECK(left >= 60 && left <= 100);
    CHECK_EQ(getitimer(ITIMER_REAL, &it), 0);
    CHECK(it.it_interval.tv_usec == 0 && it.it_value.tv_sec < 50);
    CHECK(alarm(0) >= 10 && alarm(0) == 0);
    return true;
}

static bool blocked_alarms(void)
{
    struct timespec second = {1, 0}, none = {0, 0};
    sigset_t set, pending;
    siginfo_t info;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    CHECK_EQ(set_ms(1, 2), 0);
    sleep_ms(30);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGALRM) == 1);
    CHECK_EQ(sigtimedwait(&set, &info, &none), SIGALRM);
    CHECK_EQ(sigtimedwait(&set, &info, &second), SIGALRM); /* goes on */
    CHECK_EQ(set_ms(0, 0), 0);
    return true;
}

static bool kills(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        set_ms(10, 0);
        for (;;) {
            pause();
        }
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    return true;
}

static bool not_inherited(void)
{
    struct itimerval it;
    int status;
    pid_t pid;

    CHECK_EQ(set_ms(100 * 1000, 0), 0);
    pid = fork();
    if (pid == 0) {
        _exit(getitimer(ITIMER_REAL, &it) == 0 && is_zero(&it) ? 0 : 1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    /* An armed one ends with its process, here too. */
    return true;
}

static bool many_processes(void)
{
    pid_t pids[8];
    int status;

    for (unsigned i = 0; i < 8; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            set_ms(40 - 5 * (long)i, 0); /* the last one first */
            sleep_ms(20 * 1000);
            _exit(1);
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    }
    return true;
}

static bool fails(long which, const void *value, void *old, int want)
{
    long r;

    errno = 0;
    r = syscall(SYS_setitimer, which, value, old);
    return r == -1 && errno == want;
}

static bool bad_arguments(void)
{
    struct itimerval it = {0}, good = {.it_value = {100, 0}};
    void *nowhere = (void *)8;

    CHECK(fails(3, &it, NULL, EINVAL) && fails(-1, &it, NULL, EINVAL));
    CHECK(fails(ITIMER_REAL, nowhere, NULL, EFAULT));
    CHECK(fails(99, nowhere, NULL, EFAULT));
    it.it_value.tv_usec = 1000000;
    CHECK(fails(ITIMER_REAL, &it, NULL, EINVAL));
    it.it_value.tv_usec = -1;
    CHECK(fails(ITIMER_REAL, &it, NULL, EINVAL));
    it.it_value.tv_usec = 0;
    it.it_interval.tv_sec = -1;
    CHECK(fails(ITIMER_REAL, &it, NULL, EINVAL));
    errno = 0;
    CHECK(syscall(SYS_getitimer, 3, &it) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(syscall(SYS_getitimer, 0, nowhere) == -1 && errno == EFAULT);
    /* Set all the same. */
    CHECK(fails(ITIMER_REAL, &good, nowhere, EFAULT));
    CHECK(getitimer(ITIMER_REAL, &it) == 0 && it.it_value.tv_sec >= 50);
    CHECK_EQ(syscall(SYS_setitimer, 0, NULL, NULL), 0);
    CHECK(getitimer(ITIMER_REAL, &it) == 0 && is_zero(&it));
    return true;
}

static const struct test tests[] = {
    {"an alarm comes once, and ends pause", once},
    {"with an interval again and again", again_and_again},
    {"an alarm tells what is left of it", what_is_left},
    {"a blocked alarm waits, and goes on when taken", blocked_alarms},
    {"an alarm without a handler kills", kills},
    {"a child has no alarm", not_inherited},
    {"alarms of many processes, each in time", many_processes},
    {"bad arguments of setitimer are refused", bad_arguments},
};

TEST_TABLE(tests_timer, "timer", tests);
