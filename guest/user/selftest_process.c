/* SPDX-License-Identifier: MIT */
/* selftest: fork, exec, wait, signals that end, threads and futexes. */
#define _GNU_SOURCE
#include "selftest.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SELF "/bin/selftest"

/* exec wants pointers to char that it may not write through. */
static char arg_name[] = "selftest", arg_child[] = "--child",
            arg_word[] = "word", env_selftest[] = "SELFTEST=yes";
static char *const exec_argv[] = {arg_name, arg_child, arg_word, NULL};
static char *const exec_envp[] = {env_selftest, NULL};

int exec_child(int argc, char **argv)
{
    /* --child WORD: exit with a status that proves argv and envp came over */
    const char *value = getenv("SELFTEST");

    return argc == 3 && strcmp(argv[2], "word") == 0 && value != NULL &&
                   strcmp(value, "yes") == 0
               ? 42
               : 1;
}

static bool wait_status(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(7);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    errno = 0;
    CHECK(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
    return true;
}

static bool many_children(void)
{
    unsigned sum = 0;
    int status;

    for (int i = 0; i < 10; i++) {
        if (fork() == 0) {
            _exit(i);
        }
    }
    for (int i = 0; i < 10; i++) {
        CHECK(wait(&status) > 0 && WIFEXITED(status));
        sum += (unsigned)WEXITSTATUS(status);
    }
    CHECK_EQ(sum, 45);
    return true;
}

static bool exec_arguments(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        execve(SELF, exec_argv, exec_envp);
        _exit(77);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        return test_skip("no " SELF);
    }
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 42);
    return true;
}

static bool exec_refusals(void)
{
    errno = 0;
    CHECK(execve("/bin/no-such-program", exec_argv, exec_envp) == -1 &&
          errno == ENOENT);
    CHECK(execve("/bin", exec_argv, exec_envp) == -1 && errno == EACCES);
    return true;
}

static bool spawn(void)
{
    int status;
    pid_t pid;

    if (access(SELF, R_OK) != 0) {
        return test_skip("no " SELF);
    }
    /* vfork and exec: the parent continues when the child has its own image */
    CHECK_EQ(posix_spawn(&pid, SELF, NULL, NULL, exec_argv, exec_envp), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return true;
}

static bool killing(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        for (;;) { /* never enters the kernel by itself */
        }
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pid = fork();
    if (pid == 0) {
        pause();
        sleep(1000);
        _exit(1);
    }
    CHECK_EQ(kill(pid, SIGTERM), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    errno = 0;
    CHECK(kill(30000, 0) == -1 && errno == ESRCH);
    return true;
}

static bool aborting(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        abort();
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return true;
}

static bool undefined_instruction(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        __asm__ volatile("udf #0");
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL);
    return true;
}

static bool privileged_instruction(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        __asm__ volatile("msr ttbr0_el1, xzr");
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL);
    return true;
}

/* --- threads --- */

static __thread uint64_t tls_value = 5;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t counter;

static void *tls_thread(void *arg)
{
    uint64_t id = (uint64_t)(uintptr_t)arg;

    if (tls_value != 5) {
        return (void *)1;
    }
    tls_value = id;
    for (unsigned i = 0; i < 50; i++) {
        sched_yield();
        if (tls_value != id) {
            return (void *)2;
        }
    }
    return NULL;
}

static bool thread_local_data(void)
{
    pthread_t threads[8];

    for (size_t i = 0; i < 8; i++) {
        CHECK_EQ(
            pthread_create(&threads[i], NULL, tls_thread, (void *)(i + 100)),
            0);
    }
    for (size_t i = 0; i < 8; i++) {
        void *result;

        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK(result == NULL);
    }
    CHECK_EQ(tls_value, 5);
    return true;
}

static void *mutex_thread(void *arg)
{
    for (unsigned i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static bool mutexes(void)
{
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, mutex_thread, NULL), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(counter, 8000);
    return true;
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned turn;

static void *cond_thread(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 3 != me) {
            pthread_cond_wait(&cond, &mutex);
        }
        turn++;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static bool condition_variables(void)
{
    pthread_t threads[3];

    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, cond_thread, (void *)i), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(turn, 150);
    return true;
}

static bool futex_refusals(void)
{
    uint32_t word = 3;
    struct timespec soon = {0, 3000000};

    errno = 0;
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 4, NULL) == -1 &&
          errno == EAGAIN);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 3, &soon) == -1 &&
          errno == ETIMEDOUT);
    CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAKE, 1), 0);
    CHECK(syscall(SYS_futex, (char *)&word + 1, FUTEX_WAKE, 1) == -1 &&
          errno == EINVAL);
    return true;
}

/* Between processes: the word is in shared memory. */
static bool futex_between_processes(void)
{
    uint32_t *word = test_map_shared(4096);
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
            syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL);
        }
        _exit(5);
    }
    usleep(2000);
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, 1);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    return true;
}

static void *exit_thread(void *arg)
{
    (void)arg;
    exit(9);
}

static bool exit_ends_all_threads(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        pthread_t thread;

        pthread_create(&thread, NULL, exit_thread, NULL);
        for (;;) {
        }
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    return true;
}

static bool thread_storm(void)
{
    for (unsigned round = 0; round < 10; round++) {
        pthread_t threads[8];

        for (unsigned i = 0; i < 8; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, tls_thread,
                                    (void *)(uintptr_t)(i + 1)),
                     0);
        }
        for (unsigned i = 0; i < 8; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
    }
    return true;
}

static const struct test tests[] = {
    {"wait returns the exit status", wait_status},
    {"ten children are all waited for", many_children},
    {"exec passes arguments and environment", exec_arguments},
    {"exec refuses what is not a program", exec_refusals},
    {"posix_spawn starts a program", spawn},
    {"kill ends a spinning and a sleeping process", killing},
    {"abort ends with SIGABRT", aborting},
    {"an undefined instruction is SIGILL", undefined_instruction},
    {"a privileged instruction is SIGILL", privileged_instruction},
    {"thread-local data is local to its thread", thread_local_data},
    {"a mutex protects a counter", mutexes},
    {"condition variables pass a turn around", condition_variables},
    {"futex refuses and times out", futex_refusals},
    {"a futex works between processes", futex_between_processes},
    {"exit in one thread ends all", exit_ends_all_threads},
    {"threads come and go quickly", thread_storm},
};

TEST_TABLE(tests_process, "process", tests);
