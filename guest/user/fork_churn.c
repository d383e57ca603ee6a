/* SPDX-License-Identifier: MIT */
/*
 * fork_churn: copies of a script run at once, each again and again: processes
 * are forked, executed, connected by pipes and waited for all the time. With a
 * shell (-s, or /bin/sh where there is one) the script is
 *
 *   for i in 1 2 3 4 5 6 7 8 9; do echo $i line; done | grep -v 5 | wc -l
 *
 * and without one the same pipeline is made of this program: it executes itself
 * as the three of them. What comes out is checked. With -m the copies live in a
 * group with a memory limit, so that reclaim is at work all the time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "counts.h"
#include "memory.h"
#include "shared.h"

#define GROUP "/fork_churn"
#define MAX_COPIES 1000
#define LINES 9
#define STAGES 3
#define RIGHT 8     /* lines that have no 5 */
#define REFUSED 112 /* exit status: the kernel had no memory */

static struct {
    unsigned long copies, rounds, limit;
    const char *shell;
} opt = {.copies = 4, .rounds = 10};

static char self[256];
static struct {
    _Atomic uint32_t go, done, wrong;
    _Atomic uint32_t refused; /* runs that ended for want of memory */
    _Atomic uint64_t processes;
} * board;

static const char script[] = "for i in 1 2 3 4 5 6 7 8 9; do echo $i line; "
                             "done | grep -v 5 | wc -l";

/* --- the stages of the pipeline, when there is no shell --- */

static int stage_echo(void)
{
    for (unsigned i = 1; i <= LINES; i++) {
        printf("%u line\n", i);
    }
    return 0;
}

static int stage_grep(void)
{
    char line[64];

    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strchr(line, '5') == NULL) {
            fputs(line, stdout);
        }
    }
    return 0;
}

static int stage_wc(void)
{
    char line[64];
    unsigned n = 0;

    while (fgets(line, sizeof(line), stdin) != NULL) {
        n++;
    }
    printf("%u\n", n);
    return 0;
}

static int stage_main(const char *name)
{
    /* Some memory of its own, written and read. */
    volatile uint64_t *buf = memory_map(16, 0, MAP_PRIVATE);
    int status = 2;

    memory_write(buf, 16, 1);
    if (strcmp(name, "echo") == 0) {
        status = stage_echo();
    } else if (strcmp(name, "grep") == 0) {
        status = stage_grep();
    } else if (strcmp(name, "wc") == 0) {
        status = stage_wc();
    }
    return memory_check(buf, 16, 1) == 0 && fflush(stdout) == 0 ? status : 3;
}

/* --- a copy --- */

/* Input and output of a child; -1: as they are. Does not return. */
static void execute(int in, int out, const char *a, const char *b,
                    const char *c)
{
    char *argv[] = {(char *)a, (char *)b, (char *)c, NULL};
    char *envp[] = {(char *)"PATH=/bin", NULL};

    if ((in >= 0 && dup2(in, 0) < 0) || (out >= 0 && dup2(out, 1) < 0)) {
        _exit(126);
    }
    for (int fd = 3; fd < 16; fd++) {
        close(fd);
    }
    execve(opt.shell == NULL ? self : opt.shell, argv, envp);
    if (errno == ENOEXEC && opt.shell == NULL) {
        exit(stage_main(c)); /* an emulator that only knows this process */
    }
    if (errno == ENOMEM) {
        _exit(REFUSED);
    }
    _exit(errno < 100 ? errno : 127);
}

static pid_t start(int in, int out, const char *a, const char *b, const char *c)
{
    pid_t pid = fork();

    if (pid == 0) {
        execute(in, out, a, b, c);
    }
    if (pid > 0) {
        atomic_fetch_add(&board->processes, 1);
    }
    return pid;
}

static void make_pipe(int fds[2])
{
    if (pipe(fds) != 0) {
        memory_die("fork_churn: pipe");
    }
}

/* Starts what writes to `out`; the number of processes to wait for. */
static unsigned start_script(int out, pid_t *pids)
{
    static const char *const stages[STAGES] = {"echo", "grep", "wc"};
    int in = -1;

    if (opt.shell != NULL) {
        pids[0] = start(-1, out, "sh", "-c", script);
        return 1;
    }
    for (unsigned i = 0; i < STAGES; i++) {
        int fds[2] = {-1, out};

        if (i + 1 < STAGES) {
            make_pipe(fds);
        }
        pids[i] = start(in, fds[1], self, "--stage", stages[i]);
        if (in >= 0) {
            close(in);
        }
        if (i + 1 < STAGES) {
            close(fds[1]);
            in = fds[0];
        }
    }
    return STAGES;
}

/* One run of the script, checked. */
static void run_script(void)
{
    pid_t pids[STAGES];
    char text[64];
    size_t got = 0;
    ssize_t n;
    int fds[2];
    unsigned processes;
    bool good = true, refused = false;
    int bad_status = 0;

    make_pipe(fds);
    processes = start_script(fds[1], pids);
    close(fds[1]);
    while (got < sizeof(text) - 1 &&
           (n = read(fds[0], text + got, sizeof(text) - 1 - got)) > 0) {
        got += (size_t)n;
    }
    close(fds[0]);
    text[got] = '\0';
    for (unsigned i = 0; i < processes; i++) {
        int status = 0;

        if (pids[i] <= 0 || waitpid(pids[i], &status, 0) != pids[i]) {
            refused = true;
        } else if (WIFSIGNALED(status)) { /* by the group's limit */
            refused |= WTERMSIG(status) == SIGKILL && opt.limit > 0;
            good &= refused;
        } else {
            refused |= WEXITSTATUS(status) == REFUSED;
            good &= WEXITSTATUS(status) == 0 || refused;
        }
        bad_status = status != 0 ? status : bad_status;
    }
    if (refused) {
        atomic_fetch_add(&board->refused, 1);
    } else if (!good || strtoul(text, NULL, 10) != RIGHT) {
        if (atomic_fetch_add(&board->wrong, 1) == 0) {
            printf("fork_churn: WRONG: wait status 0x%x, output \"%s\"\n",
                   (unsigned)bad_status, text);
            fflush(stdout);
        }
    }
}

static void copy_main(void)
{
    if (opt.limit > 0) {
        (void)memory_join(GROUP);
    }
    shared_wait(&board->go, 1);
    for (unsigned long i = 0; i < opt.rounds; i++) {
        run_script();
    }
    shared_add(&board->done, 1);
    _exit(0);
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: fork_churn [-n COPIES] [-r ROUNDS] [-s SHELL] [-m PAGES]\n"
            "  -n  copies at once, default 4\n"
            "  -r  how often each runs the script, default 10\n"
            "  -s  the shell, default /bin/sh; \"none\": this program itself\n"
            "  -m  memory limit of all copies together, in pages\n");
}

static void parse_options(int argc, char **argv)
{
    int c;

    opt.shell = access("/bin/sh", X_OK) == 0 ? "/bin/sh" : NULL;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        exit(0);
    }
    while ((c = getopt(argc, argv, "n:r:s:m:h")) != -1) {
        switch (c) {
        case 'n':
            opt.copies = option_number("fork_churn", 'n', optarg, 1);
            break;
        case 'r':
            opt.rounds = option_number("fork_churn", 'r', optarg, 1);
            break;
        case 's':
            opt.shell = strcmp(optarg, "none") == 0 ? NULL : optarg;
            break;
        case 'm':
            opt.limit = option_number("fork_churn", 'm', optarg, 1);
            break;
        default:
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (opt.copies > MAX_COPIES) {
        usage(stderr);
        exit(2);
    }
}

static void make_limit(void)
{
    char text[32];

    (void)memory_make_group(GROUP);
    snprintf(text, sizeof(text), "%lu", opt.limit * PAGE);
    if (memory_tell(CGROUP GROUP "/memory.max", text) != 0) {
        printf("fork_churn: " CGROUP GROUP "/memory.max: %s\n",
               strerror(errno));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static pid_t pids[MAX_COPIES];
    struct counts_window w;
    ssize_t n;

    if (argc == 3 && strcmp(argv[1], "--stage") == 0) {
        return stage_main(argv[2]);
    }
    parse_options(argc, argv);
    n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0) {
        snprintf(self, sizeof(self), "%s", argv[0]);
    }
    board = shared_map(sizeof(*board));
    if (opt.limit > 0) {
        make_limit();
    }
    for (unsigned i = 0; i < opt.copies; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            copy_main();
        }
        if (pids[i] < 0) {
            memory_die("fork_churn: fork");
        }
    }
    counts_begin(&w);
    shared_set(&board->go, 1);
    shared_wait(&board->done, (uint32_t)opt.copies);
    counts_end(&w);
    for (unsigned i = 0; i < opt.copies; i++) {
        waitpid(pids[i], NULL, 0);
    }
    if (opt.limit > 0) {
        (void)memory_remove_group(GROUP);
    }
    counts_print("fork_churn", &w);
    printf("fork_churn: %lu copies, %lu rounds, %s: %llu processes,\n"
           "  %u runs refused, %u wrong\n",
           opt.copies, opt.rounds, opt.shell != NULL ? opt.shell : "no shell",
           (unsigned long long)atomic_load(&board->processes),
           atomic_load(&board->refused), atomic_load(&board->wrong));
    return atomic_load(&board->wrong) == 0 ? 0 : 1;
}
