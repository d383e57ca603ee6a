/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exceptions: decode ESR_EL1, hand user faults to mm_fault(), system calls to
 * syscall_dispatch(), interrupts to the GIC driver. A synchronous exception of
 * the kernel itself is always a panic: user memory is reached through the
 * linear map (mm/uaccess.h), never by faulting.
 */
#include "kernel/trap.h"

#include "arch/sysreg.h"
#include "drivers/gic.h"
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/percpu.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "mm/memcg.h"
#include "mm/mm.h"
#include "mm/page.h"
#include "mm/numa.h"

/*
 * ESR_EL1:  63..32  31..26  25  24......0
 *            ISS2     EC    IL    ISS
 */
#define ESR_EC(esr) (((esr) >> 26) & 0x3f)
#define ESR_ISS(esr) ((esr)&0x1ffffff)

enum esr_ec {
    EC_UNKNOWN = 0x00,
    EC_WFX = 0x01,
    EC_FP_ACCESS = 0x07,
    EC_BTI = 0x0d,
    EC_ILLEGAL_STATE = 0x0e,
    EC_SVC64 = 0x15,
    EC_SYSREG = 0x18,
    EC_SVE = 0x19,
    EC_PAC = 0x1c,
    EC_IABT_LOWER = 0x20,
    EC_IABT_SAME = 0x21,
    EC_PC_ALIGN = 0x22,
    EC_DABT_LOWER = 0x24,
    EC_DABT_SAME = 0x25,
    EC_SP_ALIGN = 0x26,
    EC_FP_EXC64 = 0x2c,
    EC_SERROR = 0x2f,
    EC_BREAKPOINT_LOWER = 0x30,
    EC_STEP_LOWER = 0x32,
    EC_WATCHPOINT_LOWER = 0x34,
    EC_BRK64 = 0x3c,
};

/* ISS of aborts */
#define ISS_FSC(iss) ((iss)&0x3f)
#define ISS_WNR (1U << 6)
#define ISS_CM (1U << 8)
#define FSC_CLASS(fsc) ((fsc) >> 2)
#define FSC_TRANSLATION 1 /* 0b0001LL */
#define FSC_ACCESS_FLAG 2
#define FSC_PERMISSION 3
#define FSC_EXTERNAL 0x10
#define FSC_ALIGNMENT 0x21

static const char *ec_name(unsigned ec)
{
    switch (ec) {
    case EC_UNKNOWN:
        return "undefined instruction";
    case EC_WFX:
        return "trapped WFI or WFE";
    case EC_FP_ACCESS:
        return "trapped FP access";
    case EC_BTI:
        return "branch target exception";
    case EC_ILLEGAL_STATE:
        return "illegal execution state";
    case EC_SVC64:
        return "SVC";
    case EC_SYSREG:
        return "trapped system register";
    case EC_SVE:
        return "trapped SVE access";
    case EC_PAC:
        return "pointer authentication failure";
    case EC_IABT_LOWER:
    case EC_IABT_SAME:
        return "instruction abort";
    case EC_PC_ALIGN:
        return "misaligned PC";
    case EC_DABT_LOWER:
    case EC_DABT_SAME:
        return "data abort";
    case EC_SP_ALIGN:
        return "misaligned SP";
    case EC_FP_EXC64:
        return "floating-point exception";
    case EC_SERROR:
        return "SError";
    case EC_BREAKPOINT_LOWER:
    case EC_STEP_LOWER:
    case EC_WATCHPOINT_LOWER:
        return "debug exception";
    case EC_BRK64:
        return "BRK";
    default:
        return "unexpected exception";
    }
}

static const char *fsc_name(unsigned fsc)
{
    switch (FSC_CLASS(fsc)) {
    case 0:
        return "address size fault";
    case FSC_TRANSLATION:
        return "translation fault";
    case FSC_ACCESS_FLAG:
        return "access flag fault";
    case FSC_PERMISSION:
        return "permission fault";
    default:
        return fsc == FSC_EXTERNAL    ? "external abort"
               : fsc == FSC_ALIGNMENT ? "alignment fault"
                                      : "other fault";
    }
}

/* Data or instruction abort from EL0. Interrupts are on. */
static void trap_user_abort(struct pt_regs *regs, uint64_t esr, uint64_t far)
{
    unsigned ec = (unsigned)ESR_EC(esr);
    unsigned iss = (unsigned)ESR_ISS(esr);
    unsigned fsc = ISS_FSC(iss);
    unsigned flags = MM_FAULT_USER;
    int error;

    if (FSC_CLASS(fsc) < FSC_TRANSLATION || FSC_CLASS(fsc) > FSC_PERMISSION) {
        signal_fault(regs, SIGBUS,
                     fsc == FSC_ALIGNMENT ? BUS_ADRALN : BUS_ADRERR,
                     fsc_name(fsc), esr, far);
        return;
    }
    if (ec == EC_IABT_LOWER) {
        flags |= MM_FAULT_EXEC;
    } else if ((iss & ISS_WNR) != 0 && (iss & ISS_CM) == 0) {
        flags |= MM_FAULT_WRITE; /* cache maintenance only reads */
    }
    current()->faults++;
    error = mm_fault(current()->mm, far, flags);
    if (error == -ENOMEM && page_fail_retry()) {
        return; /* it faults again */
    }
    if (error == -ENOMEM) {
        memcg_note_oom_kill();
        signal_out_of_memory(far);
    } else if (error == -EIO) {
        signal_fault(regs, SIGBUS, BUS_ADRERR, fsc_name(fsc), esr, far);
    } else if (error != 0) {
        signal_fault(regs, SIGSEGV,
                     error == -EACCES ? SEGV_ACCERR : SEGV_MAPERR,
                     fsc_name(fsc), esr, far);
    }
}

void trap_user_sync(struct pt_regs *regs)
{
    uint64_t esr = read_esr_el1();
    unsigned ec = (unsigned)ESR_EC(esr);

    current()->in_call = ec == EC_SVC64;
    if (likely(ec == EC_SVC64)) {
        current()->call_arg0 = regs->x[0];
        local_irq_enable();
        syscall_dispatch(regs);
    } else {
        uint64_t far = read_far_el1(); /* before another exception can */

        local_irq_enable();
        switch (ec) {
        case EC_DABT_LOWER:
        case EC_IABT_LOWER:
            trap_user_abort(regs, esr, far);
            break;
        case EC_PC_ALIGN:
        case EC_SP_ALIGN:
            signal_fault(regs, SIGBUS, BUS_ADRALN, ec_name(ec), esr,
                         ec == EC_SP_ALIGN ? regs->sp : far);
            break;
        case EC_FP_EXC64:
            signal_fault(regs, SIGFPE, FPE_FLTUNK, ec_name(ec), esr, regs->pc);
            break;
        case EC_BRK64:
        case EC_BREAKPOINT_LOWER:
        case EC_STEP_LOWER:
        case EC_WATCHPOINT_LOWER:
            signal_fault(regs, SIGTRAP, TRAP_BRKPT, ec_name(ec), esr, regs->pc);
            break;
        default:
            signal_fault(regs, SIGILL, ILL_ILLOPC, ec_name(ec), esr, regs->pc);
            break;
        }
    }
    local_irq_disable();
    trap_before_user();
}

static void trap_irq(void)
{
    struct cpu *cpu = this_cpu();

    cpu->irq_depth++;
    gic_handle_irq();
    cpu->irq_depth--;
}

void trap_user_irq(struct pt_regs *regs)
{
    (void)regs;
    current()->in_call = false;
    trap_irq();
    trap_before_user();
}

void trap_kernel_irq(struct pt_regs *regs)
{
    (void)regs;
    trap_irq(); /* and no preemption: see kernel/sched.h */
}

void trap_before_user(void)
{
    struct task *task = current();

    for (;;) {
        if (unlikely(atomic_load_explicit(&this_cpu()->need_resched,
                                          memory_order_relaxed))) {
            schedule();
        } else if (unlikely(task_signalled(task) || task->restore_mask)) {
            local_irq_enable();
            signal_deliver(task_regs(task));
            local_irq_disable();
        } else if (unlikely(task->numa_scan_due)) {
            local_irq_enable();
            numa_scan();
            local_irq_disable();
        } else {
            return;
        }
    }
}

void trap_kernel_sync(struct pt_regs *regs)
{
    uint64_t esr = read_esr_el1();
    uint64_t far = read_far_el1();
    unsigned ec = (unsigned)ESR_EC(esr);
    char what[96];

    if (ec == EC_DABT_SAME || ec == EC_IABT_SAME) {
        (void)snprintf(what, sizeof(what), "%s of the kernel (%s, level %lu)",
                       ec_name(ec), fsc_name((unsigned)ISS_FSC(esr)), esr & 3);
    } else {
        (void)snprintf(what, sizeof(what), "%s in the kernel (EC 0x%x)",
                       ec_name(ec), ec);
    }
    panic_fault(regs, what, esr, far);
}

void trap_bad_vector(struct pt_regs *regs, uint64_t vector)
{
    char what[64];

    (void)snprintf(what, sizeof(what), "exception through vector %lu", vector);
    panic_fault(regs, what, read_esr_el1(), read_far_el1());
}
