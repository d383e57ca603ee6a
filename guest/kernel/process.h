/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes: thread groups with their files, parent, children and exit status.
 *
 * One lock, process_lock, guards the tree, the list of all processes, thread
 * lists and exit states. It is a spinlock taken with interrupts masked and is
 * outermost: wait queues and run queues are taken under it.
 */
#ifndef KERNEL_PROCESS_H
#define KERNEL_PROCESS_H

#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/lock.h"
#include "kernel/task.h"
#include "kernel/types.h"

#define SIGNALS 64
#define SIGKILL 9
#define SIGSEGV 11
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGCHLD 17
#define SIGSTOP 19

/* struct sigaction as rt_sigaction passes it on arm64 */
struct signal_action {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
};

struct process {
    int32_t pid;
    struct process *parent; /* [lock: process_lock] */
    struct list children;   /* by sibling; [lock: process_lock] */
    struct list sibling;
    struct list all;       /* of all processes; [lock: process_lock] */
    struct list threads;   /* by task->process_node; [lock: process_lock] */
    unsigned thread_count; /* [lock: process_lock] */
    bool exiting;          /* exit_group: no new threads */
    bool zombie;           /* waits to be waited for */
    int exit_status;       /* as wait4 reports it */
    struct wait_queue child_wait; /* a child became a zombie */
    struct wait_queue vfork_wait; /* of the parent that vforked us */
    bool vfork_done;
    struct file_table files;
    struct spinlock signal_lock;
    struct signal_action actions[SIGNALS + 1];
    char exe[64];
};

extern struct spinlock process_lock;
extern struct process *init_process;

/* The first process: loads path and starts it. 0 or -errno. */
int process_start_init(const char *path, int argc, const char *const *argv);
struct process *process_new(struct process *parent);
/* process_lock held. */
struct task *process_find_task(int32_t tid);
struct process *process_find(int32_t pid);
void process_add_thread(struct process *process, struct task *task);

/* exit.c */
void process_exit_thread(int status) NORETURN;
/* Ends all threads of the current process; status as for wait4. */
void process_exit_group(int status) NORETURN;
/* Asks one thread / all threads to end with the signal. process_lock held. */
void task_kill_locked(struct task *task, int signal);
void process_kill_locked(struct process *process, int signal);
int64_t sys_wait4(int64_t pid, uint64_t status_va, uint64_t options,
                  uint64_t rusage_va);
/* The mm of vfork's child is no longer the parent's. */
void process_vfork_release(struct process *process);

/* exec.c */
int64_t sys_execve(uint64_t path_va, uint64_t argv_va, uint64_t envp_va);
void process_free(struct process *process); /* a zombie waited for */

/* fork.c */
int64_t sys_clone(uint64_t flags, uint64_t stack, uint64_t parent_tid_va,
                  uint64_t tls, uint64_t child_tid_va);

/* signal.c: before returning to user code; may not return. */
void signal_deliver(struct pt_regs *regs);
/* A fault of user code: kills the process after a line on the console. */
void signal_fault(const struct pt_regs *regs, int signal, const char *what,
                  uint64_t esr, uint64_t far);

#endif
