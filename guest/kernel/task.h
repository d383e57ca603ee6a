/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks and processes. A task is what is scheduled; a process is the thread
 * group: tasks that share files, children and an exit status.
 *
 * A task lives at the bottom of its 16 KiB kernel stack, so that current() is
 * the stack pointer rounded down: no register or memory is read for it, and it
 * stays right when the task moves to another CPU.
 */
#ifndef KERNEL_TASK_H
#define KERNEL_TASK_H

#include "kernel/cpumask.h"
#include "kernel/lib.h"
#include "kernel/lock.h"
#include "kernel/signal.h"
#include "kernel/types.h"
#include "mm/tlbbatch.h"

#define KSTACK_SHIFT 14
#define KSTACK_SIZE (1UL << KSTACK_SHIFT)
#define KSTACK_ORDER (KSTACK_SHIFT - PAGE_SHIFT)
#define KSTACK_CANARY 0x7a5c0ffee57ac4edUL
/* task->killed: only this thread ends (another one runs execve) */
#define TASK_LEAVES 0x10000U

enum task_state {
    TASK_NEW,      /* not started: nobody wakes it, whoever finds it */
    TASK_RUNNABLE, /* running, or in a run queue */
    TASK_BLOCKED,  /* until task_wake() */
    TASK_DEAD,     /* will never run again */
};

/* What cpu_switch_to() saves: the callee-saved registers. boot/switch.S */
struct cpu_context {
    uint64_t x19_x28[10];
    uint64_t fp;
    uint64_t lr;
    uint64_t sp;
};

/* boot/switch.S knows this layout. */
struct fp_state {
    uint64_t v[64]; /* V0..V31 */
    uint64_t fpsr, fpcr;
} __attribute__((aligned(16)));

/* User registers at an exception; boot/vectors.S knows this layout. */
struct pt_regs {
    uint64_t x[31];
    uint64_t sp;
    uint64_t pc;
    uint64_t pstate;
};

struct mm;
struct process;

struct task {
    struct cpu_context ctx; /* first: boot/switch.S */
    struct fp_state fp;     /* valid while the task is switched out */

    struct mm *mm; /* NULL: kernel thread. [own task, or the task is new] */
    struct tlb_ubc tlb_ubc;  /* [own task] mm/tlbbatch.h */
    uint32_t mempolicy;      /* [own task] mm/numa.h */
    uint32_t numa_ticks;     /* [own CPU] since its last NUMA scan */
    bool numa_scan_due;      /* [own CPU] */
    struct process *process; /* NULL: kernel thread */
    int32_t tid;
    char name[16];

    /* --- scheduler; [lock: run queue of task->cpu] --- */
    uint32_t state; /* enum task_state */
    uint32_t cpu;
    bool on_queue;
    struct list run_node;
    struct cpumask affinity;
    uint64_t slice_end; /* time_now_ns() at which others get their turn */

    /* --- sleeping with a time-out; [lock: timer list of timer_cpu] --- */
    struct list timer_node;
    uint64_t wake_at;
    uint32_t timer_cpu;
    bool timer_armed;

    uint64_t tls;    /* TPIDR_EL0; [own CPU, at switches] */
    uint32_t fp_cpu; /* where the FP registers were last loaded */
    va_t clear_child_tid;
    va_t robust_list;
    struct lock_held locks_held; /* [own task] sleeping locks */
    _Atomic uint32_t killed;     /* 0, the signal to die of + 1, TASK_LEAVES */

    /* --- signals (kernel/signal.h) --- */
    _Atomic uint32_t signalled;    /* any CPU sets, own task recalculates */
    uint64_t sigmask;              /* [own task writes; signal_lock] */
    struct signal_pending pending; /* [signal_lock] */
    uint64_t saved_mask;    /* [own task] to go back to, if restore_mask */
    bool restore_mask;      /* [own task] */
    bool in_call;           /* [own task] a system call may be restarted */
    uint64_t call_arg0;     /* [own task] its x0 */
    uint64_t call_deadline; /* [own task] of restart_syscall */
    uint64_t call_rest_va;  /* [own task] where the rest of the time goes */
    uint64_t forced; /* [signal_lock] faults that kill the first process too */
    uint64_t fault_address, fault_esr;
    struct signal_stack altstack;

    /* --- accounting --- */
    uint64_t run_start; /* [own CPU] when it was switched in */
    _Atomic uint64_t cpu_ns;
    bool page_failed; /* [own] the last allocation that failed was made to */
    _Atomic uint64_t switches_own, switches_forced, faults;

    struct list process_node;  /* [lock: process->lock] */
    void (*thread_fn)(void *); /* kernel threads */
    void *thread_arg;

    uint64_t canary; /* last: overwritten first when the stack overflows */
};

static inline struct task *current(void)
{
    uint64_t sp;

    __asm__("mov %0, sp" : "=r"(sp));
    return (struct task *)(sp & ~(KSTACK_SIZE - 1));
}

/* The user registers are at the top of the stack. */
static inline struct pt_regs *task_regs(struct task *task)
{
    return (struct pt_regs *)((uint64_t)task + KSTACK_SIZE) - 1;
}

/* New task, not started: RUNNABLE after task_start(). NULL: no memory. */
struct task *task_new(const char *name);
/* A kernel thread running fn(arg); it ends when fn returns. */
struct task *kthread_new(const char *name, void (*fn)(void *), void *arg);
void task_start(struct task *task);
struct task *task_new_idle(unsigned cpu);
void task_init_idle(struct task *task, unsigned cpu); /* the boot CPU's */
/* A task that will never run again (or never did). */
void task_free(struct task *task);
void task_exit_current(void) NORETURN;

#endif
