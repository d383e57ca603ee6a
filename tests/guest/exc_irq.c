/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The moment an interrupt is taken: at MSR DAIFClr, at MSR DAIF, at ERET, at
 * ISB after a priority change, at WFI, and not while it is masked. ELR says
 * which instruction would have been next.
 */
#include "exc.h"

#define SGI 3

/* x0: nothing. Each ends in ret with interrupts masked again. */
SNIPPET(clr_then_nops, "msr daifclr, #2\n nop\n nop\n nop\n msr daifset, #2");
SNIPPET(daif_then_nops, "mrs x1, daif\n bic x1, x1, #0x80\n msr daif, x1\n"
                        "nop\n nop\n msr daifset, #2");
SNIPPET(eret_then_nops, "adr x1, 1f\n msr elr_el1, x1\n mov x1, #0x345\n"
                        "msr spsr_el1, x1\n eret\n nop\n"
                        "1: nop\n nop\n msr daifset, #2");
SNIPPET(wfi_masked, "wfi\n nop");
SNIPPET(pmr_then_nops, "mov x2, #0xff\n msr S3_0_C4_C6_0, x2\n"
                       "isb\n nop\n nop\n nop\n msr daifset, #2");
USER_SNIPPET(user_spin, "1: add x0, x0, #1\n b 1b");

static struct trap user_state;

static unsigned taken(void)
{
    return cpus[0].irqs[SGI];
}

static void pend(void)
{
    gic_sgi(0, SGI);
    while (!(read_sysreg(isr_el1) & 0x80)) {
    }
}

static void at_instruction(const char *text, void (*fn)(uint64_t),
                           uint64_t offset)
{
    unsigned before = taken();

    pend();
    cpus[0].last_elr = 0;
    fn(0);
    if (!check(taken() == before + 1 &&
                   cpus[0].last_elr == (uint64_t)fn + offset,
               text)) {
        print("  taken %u, ELR at +%x\n", (uint64_t)(taken() - before),
              cpus[0].last_elr - (uint64_t)fn);
    }
}

/* EL0 was interrupted: end its loop by going back to probe(). */
static void stop_user(struct frame *f, unsigned intid)
{
    (void)intid;
    user_state.vector = f->vector;
    user_state.spsr = f->spsr;
    user_state.elr = f->elr;
    user_state.x0 = f->x[0];
    f->elr = user_alias(user_spin) + 8; /* its SVC */
}

int main(void)
{
    unsigned before;

    gic_init_dist();
    gic_init_cpu();

    before = taken();
    pend();
    for (unsigned i = 0; i < 1000; i++) {
        __asm__ volatile("isb" ::: "memory");
    }
    check(taken() == before, "a masked interrupt stays pending");
    check(read_sysreg(S3_0_C12_C12_2) == SGI, "ICC_HPPIR1_EL1 names it");
    irq_on();
    irq_off();
    check(taken() == before + 1, "it is taken once unmasked");
    check(!(read_sysreg(isr_el1) & 0x80), "and then no longer pending");

    at_instruction("MSR DAIFClr: taken before the next instruction",
                   clr_then_nops, 4);
    at_instruction("MSR DAIF: taken before the next instruction",
                   daif_then_nops, 12);
    at_instruction("ERET: taken before the instruction returned to",
                   eret_then_nops, 24);
    before = taken();
    pend();
    wfi_masked(0);
    check(taken() == before, "WFI returns for a masked pending interrupt");
    at_instruction("after WFI it is taken when unmasked, once for two SGIs",
                   clr_then_nops, 4);

    write_sysreg(S3_0_C4_C6_0, 0x80); /* below 0xa0: nothing passes */
    gic_sgi(0, SGI);
    irq_on();
    before = taken();
    check(!(read_sysreg(isr_el1) & 0x80), "PMR masks by priority");
    pmr_then_nops(0);
    irq_off();
    check(taken() == before + 1, "raising PMR lets it through");

    cpus[0].irq = stop_user;
    pend();
    run_el0(user_spin, 0, SPSR_EL0T);
    check(user_state.vector == 9 && (user_state.spsr & 0xf) == 0 &&
              user_state.elr == user_alias(user_spin) && user_state.x0 == 0,
          "ERET to EL0: taken before its first instruction");
    check(el0_trap.esr == ESR(EC_SVC, 0xffff), "EL0 goes on after it");
    finish("exc_irq");
}
