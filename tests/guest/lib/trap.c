/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exceptions: hands them to probe() or to the CPU's interrupt handler. */
#include "guest.h"

void trap_entry(struct frame *f);
extern char probe_resume[];

_Static_assert(offsetof(struct cpu, stack_top) == 0, "CPU_STACK");
_Static_assert(offsetof(struct cpu, probe_sp) == 8, "CPU_PROBE_SP");
_Static_assert(offsetof(struct cpu, probe_trap) == 16, "CPU_PROBE_TRAP");
_Static_assert(offsetof(struct frame, elr) == 248, "FRAME_ELR");
_Static_assert(offsetof(struct frame, spsr) == 256, "FRAME_SPSR");
_Static_assert(offsetof(struct frame, esr) == 264, "FRAME_ESR");
_Static_assert(offsetof(struct frame, far) == 272, "FRAME_FAR");
_Static_assert(offsetof(struct frame, sp_el0) == 280, "FRAME_SP_EL0");
_Static_assert(offsetof(struct frame, vector) == 288, "FRAME_VECTOR");
_Static_assert(sizeof(struct frame) == 304, "FRAME_SIZE");

#define VECTOR_KIND(v) ((v) % 4) /* 0 synchronous, 1 IRQ, 2 FIQ, 3 SError */
#define SPSR_EL1H_MASKED 0x3c5

static void interrupt(struct cpu *c, struct frame *f)
{
    unsigned intid = (unsigned)read_sysreg(S3_0_C12_C12_0); /* ICC_IAR1_EL1 */

    if (intid >= 1020) {
        return;
    }
    if (intid < 32) {
        c->irqs[intid]++;
    }
    c->last_elr = f->elr;
    if (c->irq) {
        c->irq(f, intid);
    }
    write_sysreg(S3_0_C12_C12_1, intid); /* ICC_EOIR1_EL1 */
}

void trap_entry(struct frame *f)
{
    struct cpu *c = this_cpu();
    struct trap *t = c->probe_trap;

    if (VECTOR_KIND(f->vector) == 1) {
        interrupt(c, f);
        return;
    }
    if (t) {
        t->vector = f->vector;
        t->elr = f->elr;
        t->spsr = f->spsr;
        t->esr = f->esr;
        t->far = f->far;
        t->sp_el0 = f->sp_el0;
        t->x0 = f->x[0];
        f->elr = (uint64_t)probe_resume;
        f->spsr = SPSR_EL1H_MASKED;
        return;
    }
    print("FAIL: unexpected exception on CPU %u, vector %u\n", (uint64_t)c->id,
          f->vector);
    print("  esr %x far %x elr %x spsr %x\n", f->esr, f->far, f->elr, f->spsr);
    finish("exception");
}
