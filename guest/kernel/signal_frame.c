/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Linux's arm64 signal frame, from low to high addresses:
 *
 *   siginfo_t 128
 *   ucontext  flags 8, link 8, stack_t 24, sigset 8 (room for 128),
 *             sigcontext (16-aligned): fault address, x0..x30, sp, pc, pstate,
 *             4096 bytes of records: FPSIMD, ESR (after a fault), end
 *   fp, lr    a frame record, so that backtraces go through
 *
 * The handler returns to a page that only holds the rt_sigreturn call.
 */
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/signal.h"
#include "mm/mm.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define FPSIMD_MAGIC 0x46508001U
#define ESR_MAGIC 0x45535201U
#define RESERVED_SIZE 4096
/* What user code may have in PSTATE: NZCV, SSBS, BTYPE, TCO, DIT. */
#define PSTATE_USER 0xf3601c00UL

void fp_save(struct fp_state *fp); /* boot/switch.S */
void fp_load(const struct fp_state *fp);

struct fpsimd_record {
    uint32_t magic, size, fpsr, fpcr;
    uint64_t v[64];
};

struct esr_record {
    uint32_t magic, size;
    uint64_t esr;
};

struct sigcontext {
    uint64_t fault_address;
    uint64_t x[31];
    uint64_t sp, pc, pstate;
    uint8_t reserved[RESERVED_SIZE] __attribute__((aligned(16)));
};

struct ucontext {
    uint64_t flags, link;
    struct signal_stack stack;
    uint64_t mask;
    uint8_t room_for_mask[120];
    struct sigcontext context __attribute__((aligned(16)));
};

struct signal_frame {
    struct signal_info info;
    struct ucontext uc;
    uint64_t fp, lr;
};
_Static_assert(offsetof(struct ucontext, context) == 176, "ucontext");
_Static_assert(offsetof(struct sigcontext, reserved) == 288, "sigcontext");
_Static_assert(sizeof(struct fpsimd_record) == 528, "FPSIMD record");

bool signal_on_stack(const struct task *task, uint64_t sp)
{
    return sp > task->altstack.sp &&
           sp - task->altstack.sp <= task->altstack.size;
}

static uint64_t frame_place(const struct task *task, uint64_t sp,
                            const struct signal_action *action)
{
    if ((action->flags & SA_ONSTACK) != 0 && task->altstack.size != 0 &&
        !signal_on_stack(task, sp)) {
        sp = task->altstack.sp + task->altstack.size;
    }
    return ALIGN_DOWN(sp - sizeof(struct signal_frame), 16UL);
}

static void frame_fill(struct signal_frame *frame, const struct pt_regs *regs,
                       const struct signal_info *info, uint64_t mask)
{
    struct task *task = current();
    struct sigcontext *sc = &frame->uc.context;
    struct fpsimd_record *fp = (struct fpsimd_record *)sc->reserved;
    struct esr_record *esr = (struct esr_record *)(fp + 1);

    frame->info = *info;
    frame->uc.stack = task->altstack;
    frame->uc.stack.flags = task->altstack.size == 0          ? SS_DISABLE
                            : signal_on_stack(task, regs->sp) ? SS_ONSTACK
                                                              : 0;
    frame->uc.mask = mask;
    memcpy(sc->x, regs->x, sizeof(sc->x));
    sc->sp = regs->sp;
    sc->pc = regs->pc;
    sc->pstate = regs->pstate;
    fp_save(&task->fp); /* the registers are live */
    fp->magic = FPSIMD_MAGIC;
    fp->size = sizeof(*fp);
    fp->fpsr = (uint32_t)task->fp.fpsr;
    fp->fpcr = (uint32_t)task->fp.fpcr;
    memcpy(fp->v, task->fp.v, sizeof(fp->v));
    if (task->fault_esr != 0) {
        sc->fault_address = task->fault_address;
        esr->magic = ESR_MAGIC;
        esr->size = sizeof(*esr);
        esr->esr = task->fault_esr;
        task->fault_esr = 0;
    }
    /* An all-zero record ends them. */
    frame->fp = regs->x[29];
    frame->lr = regs->x[30];
}

bool signal_frame_push(struct pt_regs *regs, const struct signal_info *info,
                       const struct signal_action *action, uint64_t mask)
{
    struct task *task = current();
    struct signal_frame *frame = kmalloc(sizeof(*frame));
    uint64_t at = frame_place(task, regs->sp, action);
    bool fine;

    if (frame == NULL) {
        return false;
    }
    frame_fill(frame, regs, info, mask);
    fine = copy_to_user(at, frame, sizeof(*frame)) == 0;
    kfree(frame);
    if (!fine) {
        return false;
    }
    regs->x[0] = (uint64_t)info->signo;
    regs->x[1] = at + offsetof(struct signal_frame, info);
    regs->x[2] = at + offsetof(struct signal_frame, uc);
    regs->x[29] = at + offsetof(struct signal_frame, fp);
    regs->x[30] =
        (action->flags & SA_RESTORER) != 0 ? action->restorer : MM_SIGPAGE;
    regs->sp = at;
    regs->pc = action->handler;
    regs->pstate &= ~(3UL << 10); /* BTYPE */
    return true;
}

/* The records that follow the registers; false: not what a kernel wrote. */
static bool records_restore(const struct sigcontext *sc)
{
    struct task *task = current();
    uint64_t at = 0;

    while (at + 16 <= RESERVED_SIZE) {
        const struct fpsimd_record *fp =
            (const struct fpsimd_record *)(sc->reserved + at);

        if (fp->magic == 0) {
            return true;
        }
        if (fp->size < 16 || (fp->size & 15) != 0 ||
            fp->size > RESERVED_SIZE - at) {
            return false;
        }
        if (fp->magic == FPSIMD_MAGIC) {
            if (fp->size != sizeof(*fp)) {
                return false;
            }
            memcpy(task->fp.v, fp->v, sizeof(task->fp.v));
            task->fp.fpsr = fp->fpsr;
            task->fp.fpcr = fp->fpcr;
            fp_load(&task->fp);
        }
        at += fp->size;
    }
    return true;
}

int64_t sys_rt_sigreturn(struct pt_regs *regs)
{
    struct task *task = current();
    struct signal_frame *frame = kmalloc(sizeof(*frame));
    const struct sigcontext *sc;
    uint64_t at = regs->sp;

    if (frame == NULL || (at & 15) != 0 ||
        copy_from_user(frame, at, sizeof(*frame)) != 0 ||
        !records_restore(&frame->uc.context)) {
        kfree(frame);
        signal_fault(regs, SIGSEGV, SEGV_MAPERR, "bad signal frame", 0, at);
        return (int64_t)regs->x[0];
    }
    sc = &frame->uc.context;
    memcpy(regs->x, sc->x, sizeof(regs->x));
    regs->sp = sc->sp;
    regs->pc = sc->pc;
    regs->pstate = sc->pstate & PSTATE_USER;
    signal_set_mask(frame->uc.mask);
    if ((frame->uc.stack.flags & SS_DISABLE) == 0) {
        task->altstack.sp = frame->uc.stack.sp;
        task->altstack.size = frame->uc.stack.size;
    }
    kfree(frame);
    task->in_call = false; /* x0 is the interrupted code's */
    return (int64_t)regs->x[0];
}
