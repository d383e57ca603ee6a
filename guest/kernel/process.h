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
#include "kernel/signal.h"
#include "kernel/task.h"
#include "kernel/types.h"

struct usage {
    uint64_t cpu_ns, faults, switches_own, switches_forced;
};

struct memcg;

struct process {
    int32_t pid;
    struct process *parent; /* [lock: process_lock] */
    struct list children;   /* by sibling; [lock: process_lock] */
    struct list sibling;
    struct list all;        /* of all processes; [lock: process_lock] */
    struct list threads;    /* by task->process_node; [lock: process_lock] */
    unsigned thread_count;  /* [lock: process_lock] */
    bool exiting;           /* exit_group: no new threads */
    bool zombie;            /* waits to be waited for */
    int exit_status;        /* as wait4 reports it */
    int32_t pgid, sid;      /* [lock: process_lock] */
    int exit_signal;        /* [init] what the parent gets; 0: nothing */
    struct task *exec_task; /* only this thread goes on; [process_lock] */
    struct wait_queue child_wait;  /* a child became a zombie, or stopped */
    struct wait_queue thread_wait; /* a thread left */
    struct wait_queue vfork_wait;  /* of the parent that vforked us */
    bool vfork_done;
    struct file_table files;
    struct inode *cwd; /* [lock: files.lock] */
    uint32_t umask;

    /* --- signals (kernel/signal.h) --- */
    struct spinlock signal_lock;
    struct signal_pending pending;             /* [signal_lock] */
    struct signal_action actions[SIGNALS + 1]; /* [signal_lock] */
    struct wait_queue signal_wait;             /* sigtimedwait */
    struct wait_queue stop_wait;               /* stopped threads */
    int stop_signal;    /* 0: not stopped; [lock: process_lock] */
    bool stop_reported; /* to a waiting parent; [lock: process_lock] */
    bool continued;     /* and not yet reported; [lock: process_lock] */

    /* --- ITIMER_REAL (itimer.c); [lock: process_lock] --- */
    struct {
        struct list node;
        uint64_t at;       /* time_now_ns() of the next signal; 0: none */
        uint64_t last;     /* ... of the last one */
        uint64_t interval; /* ns; 0: only once */
    } alarm;

    /* --- accounting; [lock: process_lock] --- */
    struct usage dead;   /* threads that ended */
    struct usage waited; /* children that were waited for, and theirs */
    uint64_t start_ns;   /* [init] */
    uint64_t nofile_limit;

    /* --- for /proc; [own threads write] --- */
    va_t arg_start, arg_end, env_end;
    char *exe;           /* [lock: files.lock] absolute name, kmalloc()ed */
    struct memcg *memcg; /* mm/memcg.h; NULL: it has ended */
};

extern struct spinlock process_lock;
extern struct process *init_process;
extern struct list process_list; /* by process->all; [lock: process_lock] */

/* The first process: loads path and starts it. 0 or -errno. */
int process_start_init(const char *path, int argc, const char *const *argv);
struct process *process_new(struct process *parent);
/* Processes made so far; threads now, and the number given last. */
unsigned process_forks(void);
unsigned process_threads(int32_t *out_last);
/* process_lock held. */
struct task *process_find_task(int32_t tid);
struct process *process_find(int32_t pid);
void process_add_thread(struct process *process, struct task *task);

/* exit.c */
void process_exit_thread(int status) NORETURN;
/* Ends all threads of the current process; status as for wait4. */
void process_exit_group(int status) NORETURN;
/* The same for want of memory: its private memory is given back at once. */
void process_exit_starved(int status) NORETURN;
/* Asks one thread / all threads to end with the signal. process_lock held. */
void task_kill_locked(struct task *task, int signal);
void process_kill_locked(struct process *process, int signal);
/* The mm of vfork's child is no longer the parent's. */
void process_vfork_release(struct process *process);

/* The other threads end; 0, or -EINTR: this one shall too. */
int process_leave_alone(void);
/* process_lock held: off the tree; process_free() follows without it. */
void process_unlink(struct process *process);

/* sys_wait.c */
int64_t sys_wait4(int64_t pid, uint64_t status_va, uint64_t options,
                  uint64_t rusage_va);
int64_t sys_waitid(uint64_t type, int64_t id, uint64_t info_va,
                   uint64_t options, uint64_t rusage_va);

/* usage.c; process_lock held */
void usage_of(const struct process *process, struct usage *out);
void usage_add(struct usage *to, const struct usage *from);
uint64_t process_cpu_ns(const struct process *process);
int64_t usage_to_user(const struct usage *usage, uint64_t rusage_va);
int64_t sys_getrusage(uint64_t who, uint64_t buf_va);
int64_t sys_times(uint64_t buf_va);

/* itimer.c */
/* The process took a SIGALRM: its alarm goes on, if it has an interval. */
void itimer_taken(struct process *process);
/* process_lock held: no alarm any more. */
void itimer_stop(struct process *process);

/* exec.c */
int64_t sys_execve(int64_t dirfd, uint64_t path_va, uint64_t argv_va,
                   uint64_t envp_va, uint64_t flags);
void process_free(struct process *process); /* a zombie waited for */

/* fork.c */
int64_t sys_clone(uint64_t flags, uint64_t stack, uint64_t parent_tid_va,
                  uint64_t tls, uint64_t child_tid_va);

#endif
