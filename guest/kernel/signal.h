/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals. Pending ones are in the task (tgkill, faults) or in its process
 * (kill, SIGCHLD); whoever makes one pending tells a task that does not block
 * it: task->signalled, a wake-up, an interrupt. That task takes it before it
 * returns to user code, in signal_deliver().
 *
 * Pending sets, actions and masks are guarded by process->signal_lock, which is
 * taken inside process_lock. Sending needs process_lock too: it keeps the
 * target from going away.
 *
 *   signal_pending.c the sets
 *   signal_send.c    sending
 *   signal.c         taking, default actions
 *   signal_frame.c   Linux's arm64 frame, rt_sigreturn
 *   sys_signal.c     the system calls
 */
#ifndef KERNEL_SIGNAL_H
#define KERNEL_SIGNAL_H

#include "kernel/lib.h"
#include "kernel/types.h"

#define SIGNALS 64
#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGSEGV 11
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGWINCH 28
#define SIGSYS 31
#define SIGRTMIN 32

#define SIG_DFL 0
#define SIG_IGN 1

#define SA_NOCLDSTOP 0x00000001UL
#define SA_NOCLDWAIT 0x00000002UL
#define SA_SIGINFO 0x00000004UL
#define SA_RESTORER 0x04000000UL
#define SA_ONSTACK 0x08000000UL
#define SA_RESTART 0x10000000UL
#define SA_NODEFER 0x40000000UL
#define SA_RESETHAND 0x80000000UL

#define SI_USER 0
#define SI_KERNEL 0x80
#define SI_QUEUE (-1)
#define SI_TIMER (-2)
#define SI_TKILL (-6)
#define SEGV_MAPERR 1
#define SEGV_ACCERR 2
#define BUS_ADRALN 1
#define BUS_ADRERR 2
#define ILL_ILLOPC 1
#define FPE_FLTUNK 14
#define TRAP_BRKPT 1
#define CLD_EXITED 1
#define CLD_KILLED 2
#define CLD_DUMPED 3
#define CLD_STOPPED 5
#define CLD_CONTINUED 6

#define SIGNAL_BIT(n) BIT((n)-1)

/* siginfo_t: what is behind the three numbers depends on them. */
struct signal_info {
    int32_t signo, error, code, pad;
    union {
        struct {
            int32_t pid, uid;
            uint64_t value; /* SI_QUEUE */
        } from;
        struct {
            int32_t pid, uid, status;
            uint32_t pad;
            uint64_t utime, stime; /* in 1/100 s */
        } child;
        struct {
            uint64_t addr;
        } fault;
        uint8_t raw[112];
    };
};
_Static_assert(sizeof(struct signal_info) == 128, "siginfo_t");

struct signal_pending {
    uint64_t bits;
    struct list queue; /* of struct signal_queued; may lack some of bits */
};

/* struct sigaction as rt_sigaction passes it on arm64 */
struct signal_action {
    uint64_t handler, flags, restorer, mask;
};

/* stack_t */
struct signal_stack {
    uint64_t sp;
    int32_t flags;
    uint32_t pad;
    uint64_t size;
};
#define SS_ONSTACK 1
#define SS_DISABLE 2

struct pt_regs;
struct process;
struct task;

void signal_pending_init(struct signal_pending *pending);
void signal_pending_drop(struct signal_pending *pending); /* forgets all */

/* --- sending; process_lock held --- */
void signal_send_process(struct process *process,
                         const struct signal_info *info);
void signal_send_task(struct task *task, const struct signal_info *info);
/* The child ended, stopped or went on: SIGCHLD as its parent wants it. */
void signal_tell_parent(struct process *child, int code, int status);

/* --- own task, no lock held --- */
void signal_send_self(int signo);
/* A fault of user code: cannot be blocked or ignored. */
void signal_fault(const struct pt_regs *regs, int signo, int code,
                  const char *what, uint64_t esr, uint64_t far);
/* A page fault that no memory could be found for: the process is killed. */
void signal_out_of_memory(uint64_t far) NORETURN;
void signal_set_mask(uint64_t mask);
/* For ppoll and its like: until the call returns to user code. 0, -errno. */
int64_t signal_mask_for_call(uint64_t mask_va, uint64_t size);
void signal_recalculate(void); /* after mask or pending set changed */
/* A signal of the set: its number, -EAGAIN after the deadline, -EINTR. */
int64_t signal_wait_for(uint64_t set, uint64_t deadline,
                        struct signal_info *out);
/* Before returning to user code; may not return. */
void signal_deliver(struct pt_regs *regs);

/* --- signal_frame.c --- */
/* false: the stack cannot take it. */
bool signal_frame_push(struct pt_regs *regs, const struct signal_info *info,
                       const struct signal_action *action, uint64_t mask);
int64_t sys_rt_sigreturn(struct pt_regs *regs);
bool signal_on_stack(const struct task *task, uint64_t sp);

/* --- sys_signal.c --- */
int64_t sys_kill(int64_t pid, int64_t signo);
int64_t sys_tgkill(int64_t tgid, int64_t tid, int64_t signo);
int64_t sys_rt_sigqueueinfo(int64_t pid, int64_t signo, uint64_t info_va);
int64_t sys_rt_sigaction(int64_t signo, uint64_t new_va, uint64_t old_va,
                         uint64_t set_size);
int64_t sys_rt_sigprocmask(uint64_t how, uint64_t set_va, uint64_t old_va,
                           uint64_t set_size);
int64_t sys_rt_sigpending(uint64_t set_va, uint64_t set_size);
int64_t sys_rt_sigsuspend(uint64_t set_va, uint64_t set_size);
int64_t sys_rt_sigtimedwait(uint64_t set_va, uint64_t info_va,
                            uint64_t timeout_va, uint64_t set_size);
int64_t sys_sigaltstack(uint64_t new_va, uint64_t old_va);

#endif
