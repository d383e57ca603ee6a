/* SPDX-License-Identifier: MIT */
/* The processes that a thread of race_mix makes, and what they do. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "race_ops.h"

void race_reap(struct race_thread *t, unsigned i)
{
    int status;

    if (t->children[i] <= 0) {
        return;
    }
    while (waitpid(t->children[i], &status, 0) < 0 && errno == EINTR) {
    }
    t->children[i] = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
        race_opt.limit_pages > 0) {
        atomic_fetch_add(&race_board->refused, 1); /* the limit's victim */
    } else if (!WIFEXITED(status)) {
        race_found(RACE_FOUND_DEATH, t->id, i, (uint64_t)status, 0);
    } else if (WEXITSTATUS(status) != 0) {
        race_found(RACE_FOUND_EXEC, t->id, i, (uint64_t)status, 0);
    }
}

/* The copy: looks at all of it, writes some of it, looks again. */
static void child_main(struct race_thread *t, struct race_slot *s)
{
    t->is_child = true;
    race_op_verify(t, s);
    race_op_write(t, s);
    race_op_verify(t, s);
    for (unsigned i = 0; i < RACE_SLOTS && !race_opt.small; i++) {
        race_op_verify(t, &t->slots[i]);
    }
    _exit(0);
}

static void exec_self(struct race_thread *t)
{
    char seed[32];
    char executed[] = "--executed";
    char *argv[] = {race_self, executed, seed, NULL};
    char *envp[] = {NULL};

    snprintf(seed, sizeof(seed), "%llu",
             (unsigned long long)race_random(&t->random));
    execve(race_self, argv, envp);
    if (errno == ENOEXEC) { /* an emulator that only knows this process */
        _exit(race_exec_child(strtoul(seed, NULL, 10)));
    }
    _exit(errno == ENOMEM ? 0 : 1);
}

static void child_start(struct race_thread *t, struct race_slot *s, bool exec)
{
    unsigned i = race_pick(t, RACE_CHILDREN);
    pid_t pid;

    race_reap(t, i);
    pid = fork();
    if (pid == 0 && exec) {
        exec_self(t);
    }
    if (pid == 0) {
        child_main(t, s);
    }
    if (race_granted(t, "fork", pid)) {
        t->children[i] = pid;
        atomic_fetch_add(exec ? &race_board->execs : &race_board->forks, 1);
    }
}

void race_op_fork(struct race_thread *t, struct race_slot *s)
{
    child_start(t, s, false);
}

void race_op_exec(struct race_thread *t, struct race_slot *s)
{
    child_start(t, s, true);
}

int race_exec_child(unsigned long seed)
{
    unsigned pages = 8 + (unsigned)(seed % 25);
    volatile uint64_t *buf = memory_map(pages, seed % 512, MAP_PRIVATE);

    for (unsigned long round = 1; round <= 2; round++) {
        memory_write(buf, pages, seed + round);
        (void)memory_advise(buf, pages, MADV_PAGEOUT);
        if (memory_check(buf, pages, seed + round) != 0) {
            scenario_finding(RACE_FOUND_EXEC);
            return 1;
        }
    }
    return 0;
}
