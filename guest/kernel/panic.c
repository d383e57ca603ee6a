/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Panic and power off. */
#include "kernel/panic.h"

#include "arch/sysreg.h"
#include "kernel/annot.h"
#include "kernel/lib.h"
#include "kernel/percpu.h"
#include "kernel/power.h"
#include "kernel/printk.h"
#include "kernel/smp.h"
#include "kernel/task.h"

#define PANIC_FRAMES 16

static _Atomic uint32_t panicking;

/* Only the first CPU to panic reports; the others wait for the end. */
static void panic_enter(void)
{
    local_irq_disable();
    if (atomic_exchange(&panicking, 1) != 0) {
        for (;;) {
            wfi();
        }
    }
    smp_stop_others();
    printk_force_unlock();
}

/* Frame records stay inside the stack of the task. */
static void panic_backtrace(uint64_t fp)
{
    uint64_t base = (uint64_t)current();

    printk("backtrace:");
    for (unsigned i = 0; i < PANIC_FRAMES; i++) {
        if (fp < base || fp > base + KSTACK_SIZE - 16 || (fp & 15) != 0) {
            break;
        }
        printk(" 0x%lx", ((const uint64_t *)fp)[1]);
        fp = ((const uint64_t *)fp)[0];
    }
    printk("\n");
}

static void panic_end(enum panic_code code) NORETURN;
static void panic_end(enum panic_code code)
{
    annot_write(ANNOT_REG_PANIC, code);
    power_off();
}

void panic_at(const char *file, int line, const char *fmt, ...)
{
    char text[256];
    va_list args;

    panic_enter();
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    printk("\npanic: CPU %u, %s:%d: %s\n", cpu_id(), file, line, text);
    printk("ESR 0x%lx FAR 0x%lx ELR 0x%lx (of the last exception)\n",
           read_esr_el1(), read_far_el1(), read_elr_el1());
    panic_backtrace((uint64_t)__builtin_frame_address(0));
    panic_end(PANIC_BUG);
}

void panic_fault(const struct pt_regs *regs, const char *what, uint64_t esr,
                 uint64_t far)
{
    panic_enter();
    printk("\npanic: CPU %u: %s\n", cpu_id(), what);
    printk("ESR 0x%lx FAR 0x%lx ELR 0x%lx SPSR 0x%lx SP 0x%lx LR 0x%lx\n", esr,
           far, regs->pc, regs->pstate, regs->sp, regs->x[30]);
    for (unsigned i = 0; i < 30; i += 3) {
        printk("x%-2u 0x%016lx  x%-2u 0x%016lx  x%-2u 0x%016lx\n", i,
               regs->x[i], i + 1, regs->x[i + 1], i + 2, regs->x[i + 2]);
    }
    panic_backtrace(regs->x[29]);
    panic_end(PANIC_FAULT);
}

void panic_no_init(const char *path, int error)
{
    panic_enter();
    printk("\npanic: init '%s' cannot be run: error %d. Choose another with "
           "init=/bin/NAME, and check the initrd.\n",
           path, -error);
    panic_end(PANIC_NO_INIT);
}
