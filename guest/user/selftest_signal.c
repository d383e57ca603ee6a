/* SPDX-License-Identifier: MIT */
/* selftest: signal handlers, masks, stacks, restarts, faults, job control. */
#define _GNU_SOURCE
#include "selftest.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

static volatile sig_atomic_t calls, last_signo, last_code;
static volatile uintptr_t last_addr, last_pc, last_sp;
static volatile pid_t last_pid;

static void count(int signo)
{
    calls++;
    last_signo = signo;
}

static void record(int signo, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;

    calls++;
    last_signo = signo;
    last_code = info->si_code;
    last_pid = info->si_pid;
    last_addr = (uintptr_t)info->si_addr;
    last_pc = uc->uc_mcontext.pc;
    last_sp = (uintptr_t)__builtin_frame_address(0);
}

static bool install(int signo, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    return sigaction(signo, &action, NULL) == 0;
}

static bool install_info(int signo, void (*handler)(int, siginfo_t *, void *),
                         int flags)
{
    struct sigaction action = {.sa_sigaction = handler,
                               .sa_flags = flags | SA_SIGINFO};

    return sigaction(signo, &action, NULL) == 0;
}

static void sleep_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

/* A child that sends the signal to this process after a while. */
static pid_t send_later(int signo, long ms)
{
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        sleep_ms(ms);
        kill(parent, signo);
        _exit(0);
    }
    return pid;
}

static bool handler_runs(void)
{
    register double kept __asm__("d8") = 1.5;

    __asm__ volatile("" : "+w"(kept));
    CHECK(install_info(SIGUSR1, record, 0));
    CHECK_EQ(raise(SIGUSR1), 0);
    __asm__ volatile("" : "+w"(kept));
    CHECK_EQ(calls, 1);
    CHECK_EQ(last_signo, SIGUSR1);
    CHECK_EQ(last_pid, getpid());
    CHECK(last_code == SI_TKILL && kept == 1.5);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK(calls == 2 && last_code == SI_USER);
    return true;
}

static void clobber(int signo)
{
    (void)signo;
    calls++;
    __asm__ volatile("movi v0.2d, #0\n movi v31.2d, #0\n"
                     "mov x9, #0\n mov x19, #0\n cmp xzr, xzr"
                     :
                     :
                     : "v0", "v31", "x9", "x19", "cc");
}

static bool registers_survive(void)
{
    uint64_t x9 = 0, x19 = 0, v0 = 0, v31 = 0, flags = 0;
    uint64_t pid = (uint64_t)getpid();

    CHECK(install(SIGUSR1, clobber, 0));
    __asm__ volatile(
        "mov x9, #0x99\n mov x19, #0x77\n"
        "fmov d0, #3.0\n fmov d31, #5.0\n"
        "mov x0, %5\n mov x1, #10\n mov x8, #129\n"
        "cmp x9, x19\n"
        "svc #0\n"
        "mrs %4, nzcv\n mov %0, x9\n mov %1, x19\n"
        "fmov %2, d0\n fmov %3, d31\n"
        : "=&r"(x9), "=&r"(x19), "=&r"(v0), "=&r"(v31), "=&r"(flags)
        : "r"(pid)
        : "x0", "x1", "x8", "x9", "x19", "v0", "v31", "cc", "memory");
    CHECK_EQ(calls, 1);
    CHECK_EQ(x9, 0x99);
    CHECK_EQ(x19, 0x77);
    CHECK_EQ(v0, 0x4008000000000000);
    CHECK_EQ(v31, 0x4014000000000000);
    CHECK_EQ(flags >> 28, 2); /* 0x99 - 0x77: carry */
    return true;
}

static bool blocked_waits(void)
{
    sigset_t set, old, pending;

    CHECK(install(SIGUSR1, count, 0));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, &old), 0);
    CHECK(raise(SIGUSR1) == 0 && raise(SIGUSR1) == 0);
    CHECK_EQ(calls, 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
    CHECK_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    CHECK_EQ(calls, 1); /* two of a kind are one */
    return true;
}

static bool queued_signals(void)
{
    union sigval value = {.sival_int = 7};
    sigset_t set;
    siginfo_t info;
    struct timespec none = {0, 0};

    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    for (int i = 0; i < 3; i++) {
        value.sival_int = i;
        CHECK_EQ(sigqueue(getpid(), SIGRTMIN, value), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sigtimedwait(&set, &info, &none), SIGRTMIN);
        CHECK(info.si_value.sival_int == i && info.si_code == SI_QUEUE);
    }
    errno = 0;
    CHECK(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
    return true;
}

static bool masks_of_handlers(void)
{
    sigset_t now;
    struct sigaction action = {.sa_handler = count,
                               .sa_flags = (int)SA_RESETHAND},
                     old;

    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(calls, 1);
    CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
    CHECK(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
    CHECK_EQ(sigaction(SIGUSR1, NULL, &old), 0);
    CHECK(old.sa_handler == SIG_DFL);
    errno = 0;
    CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
    CHECK(sigaction(65, &action, NULL) == -1 && errno == EINVAL);
    return true;
}

static bool alternate_stack(void)
{
    static char stack[32768] __attribute__((aligned(16)));
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)}, now;

    CHECK_EQ(sigaltstack(&ss, NULL), 0);
    CHECK(install_info(SIGUSR1, record, SA_ONSTACK));
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK(last_sp > (uintptr_t)stack &&
          last_sp < (uintptr_t)stack + sizeof(stack));
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == stack &&
          now.ss_flags == 0);
    ss.ss_size = 16;
    errno = 0;
    CHECK(sigaltstack(&ss, NULL) == -1 && errno == ENOMEM);
    ss.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&ss, NULL) == 0 && sigaltstack(NULL, &now) == 0);
    CHECK_EQ(now.ss_flags, SS_DISABLE);
    return true;
}

static sigjmp_buf out_of_fault;

static void jump_out(int signo, siginfo_t *info, void *context)
{
    record(signo, info, context);
    siglongjmp(out_of_fault, 1);
}

static bool fault_addresses(void)
{
    char *page =
        mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
    CHECK(install_info(SIGSEGV, jump_out, 0));
    if (sigsetjmp(out_of_fault, 1) == 0) {
        *(volatile char *)(page + 5) = 1;
    }
    CHECK_EQ(last_addr, (uintptr_t)page + 5);
    CHECK_EQ(last_code, SEGV_ACCERR);
    if (sigsetjmp(out_of_fault, 1) == 0) {
        (void)*(volatile char *)(page + 4096 + 9);
    }
    CHECK_EQ(last_addr, (uintptr_t)page + 4096 + 9);
    CHECK_EQ(last_code, SEGV_MAPERR);
    CHECK_EQ(calls, 2);
    return true;
}

static bool faulting_instructions(void)
{
    CHECK(install_info(SIGILL, jump_out, 0));
    CHECK(install_info(SIGTRAP, jump_out, 0));
    CHECK(install_info(SIGBUS, jump_out, 0));
    if (sigsetjmp(out_of_fault, 1) == 0) {
        __asm__ volatile("udf #0");
    }
    CHECK(last_signo == SIGILL && last_addr == last_pc);
    if (sigsetjmp(out_of_fault, 1) == 0) {
        __asm__ volatile("brk #1");
    }
    CHECK(last_signo == SIGTRAP && last_code == TRAP_BRKPT);
    CHECK_EQ(calls, 2);
    return true;
}

static void repair(int signo, siginfo_t *info, void *context)
{
    (void)context;
    calls++;
    (void)signo;
    mprotect((void *)((uintptr_t)info->si_addr & ~4095UL), 4096,
             PROT_READ | PROT_WRITE);
}

static bool fault_is_repaired(void)
{
    volatile char *page =
        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(install_info(SIGSEGV, repair, 0));
    page[3] = 7; /* again, once the handler has returned */
    CHECK(page[3] == 7 && calls == 1);
    return true;
}

static bool blocked_fault_kills(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGSEGV);
        sigprocmask(SIG_BLOCK, &set, NULL);
        install(SIGSEGV, count, 0);
        *(volatile char *)(uintptr_t)getpid() = 1; /* in the first page */
        _exit(1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    return true;
}

static bool read_is_interrupted(int flags, ssize_t want, int want_errno)
{
    int fd[2], status;
    char c = 0;
    ssize_t n;
    pid_t pid;

    CHECK_EQ(pipe(fd), 0);
    CHECK(install(SIGUSR1, count, flags));
    pid = fork();
    if (pid == 0) {
        sleep_ms(50);
        kill(getppid(), SIGUSR1);
        sleep_ms(50);
        (void)!write(fd[1], "x", 1);
        _exit(0);
    }
    errno = 0;
    n = read(fd[0], &c, 1);
    CHECK_EQ(n, want);
    CHECK(want > 0 || errno == want_errno);
    CHECK_EQ(calls, 1);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return true;
}

static bool restarts(void)
{
    return read_is_interrupted(SA_RESTART, 1, 0);
}

static bool interrupts(void)
{
    return read_is_interrupted(0, -1, EINTR);
}

static bool sleep_says_the_rest(void)
{
    struct timespec ts = {5, 0}, rest = {0, 0};
    pid_t pid = send_later(SIGUSR1, 100);

    CHECK(install(SIGUSR1, count, SA_RESTART));
    errno = 0;
    CHECK(nanosleep(&ts, &rest) == -1 && errno == EINTR);
    CHECK(rest.tv_sec >= 1 && rest.tv_sec < 5);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    return true;
}

static bool child_tells(void)
{
    pid_t pid;
    sigset_t set, old;

    CHECK(install_info(SIGCHLD, record, SA_RESTART));
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, &old), 0);
    pid = fork();
    if (pid == 0) {
        _exit(3);
    }
    errno = 0;
    CHECK(sigsuspend(&old) == -1 && errno == EINTR);
    CHECK(calls == 1 && last_signo == SIGCHLD && last_code == CLD_EXITED);
    CHECK_EQ(last_pid, pid);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    return true;
}

static bool ignored_children_vanish(void)
{
    pid_t pid;

    CHECK(install(SIGCHLD, SIG_IGN, 0));
    pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    CHECK(pid > 0);
    errno = 0;
    CHECK(wait(NULL) == -1 && errno == ECHILD);
    return true;
}

static bool stop_and_continue(void)
{
    siginfo_t info = {0};
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        for (;;) {
            sleep_ms(1000);
        }
    }
    CHECK_EQ(kill(pid, SIGSTOP), 0);
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    CHECK_EQ(waitpid(pid, &status, WNOHANG | WUNTRACED), 0);
    CHECK_EQ(kill(pid, SIGCONT), 0);
    CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
    CHECK(WIFCONTINUED(status));
    CHECK_EQ(kill(pid, SIGTERM), 0);
    CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    CHECK(info.si_code == CLD_KILLED && info.si_status == SIGTERM);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    return true;
}

static bool groups(void)
{
    int status;
    pid_t pid = fork(), other;

    if (pid == 0) {
        setpgid(0, 0);
        if (fork() == 0) {
            for (;;) {
                sleep_ms(1000);
            }
        }
        for (;;) {
            sleep_ms(1000);
        }
    }
    setpgid(pid, pid);
    CHECK_EQ(getpgid(pid), pid);
    other = fork();
    if (other == 0) {
        _exit(0);
    }
    CHECK_EQ(waitpid(-pid, &status, WNOHANG), 0);
    CHECK_EQ(kill(-pid, SIGTERM), 0);
    CHECK_EQ(waitpid(-pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(waitpid(other, &status, 0), other);
    errno = 0;
    CHECK(waitpid(-pid, &status, 0) == -1 && errno == ECHILD);
    CHECK(setpgid(0, 30000) == -1 && errno == EPERM);
    return true;
}

static bool broken_pipe(void)
{
    int fd[2];

    CHECK_EQ(pipe(fd), 0);
    CHECK_EQ(close(fd[0]), 0);
    CHECK(install(SIGPIPE, count, 0));
    errno = 0;
    CHECK(write(fd[1], "x", 1) == -1 && errno == EPIPE);
    CHECK(calls == 1 && last_signo == SIGPIPE);
    return true;
}

static bool poll_with_mask(void)
{
    sigset_t set, old;
    struct timespec long_time = {20, 0};

    CHECK(install(SIGUSR1, count, SA_RESTART));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, &old), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    errno = 0;
    CHECK(ppoll(NULL, 0, &long_time, &old) == -1 && errno == EINTR);
    CHECK_EQ(calls, 1);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(calls, 1); /* blocked again */
    return true;
}

static void *spin_thread(void *arg)
{
    (void)arg;
    for (;;) {
        sleep_ms(100);
    }
    return NULL;
}

static bool thread_signals(void)
{
    pthread_t thread;
    void *result;

    CHECK(install(SIGUSR1, count, 0));
    CHECK_EQ(pthread_create(&thread, NULL, spin_thread, NULL), 0);
    CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
    for (unsigned i = 0; i < 1000 && calls == 0; i++) {
        sleep_ms(1);
    }
    CHECK_EQ(calls, 1);
    CHECK_EQ(pthread_cancel(thread), 0); /* a signal whose handler unwinds */
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    return true;
}

static void nest(int signo)
{
    calls++;
    if (signo == SIGUSR1) {
        raise(SIGUSR2);
        last_code = calls;
    }
}

static bool nested_handlers(void)
{
    CHECK(install(SIGUSR1, nest, 0) && install(SIGUSR2, nest, 0));
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK(calls == 2 && last_code == 2);
    return true;
}

static const struct test tests[] = {
    {"a handler gets its number and story", handler_runs},
    {"registers survive a handler", registers_survive},
    {"a blocked signal waits", blocked_waits},
    {"real-time signals queue", queued_signals},
    {"a handler's mask and reset", masks_of_handlers},
    {"handlers nest", nested_handlers},
    {"a handler on its own stack", alternate_stack},
    {"a fault tells its address and reason", fault_addresses},
    {"bad instructions tell where", faulting_instructions},
    {"a repaired access is made again", fault_is_repaired},
    {"a blocked fault kills", blocked_fault_kills},
    {"SA_RESTART reads on", restarts},
    {"without it a read is interrupted", interrupts},
    {"an interrupted sleep says the rest", sleep_says_the_rest},
    {"SIGCHLD ends sigsuspend", child_tells},
    {"nobody waits for ignored children", ignored_children_vanish},
    {"children stop and go on", stop_and_continue},
    {"groups are killed and waited for", groups},
    {"a pipe without readers breaks", broken_pipe},
    {"ppoll has a mask of its own", poll_with_mask},
    {"threads take signals of their own", thread_signals},
};

TEST_TABLE(tests_signal, "signal", tests);
