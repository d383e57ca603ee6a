/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the exception tests: syndromes, code snippets, exact checks. */
#ifndef TESTS_GUEST_EXC_H
#define TESTS_GUEST_EXC_H

#include "guest.h"

#define ESR(ec, iss) ((uint64_t)(ec) << 26 | 1u << 25 | (iss))
#define EC_UNKNOWN 0x00
#define EC_WFX 0x01
#define EC_FP 0x07
#define EC_ILLEGAL 0x0e
#define EC_SVC 0x15
#define EC_SYSREG 0x18
#define EC_IABORT_EL0 0x20
#define EC_IABORT 0x21
#define EC_PC_ALIGN 0x22
#define EC_DABORT_EL0 0x24
#define EC_DABORT 0x25
#define EC_SP_ALIGN 0x26
#define EC_BRK 0x3c

/* Syndrome of a trapped MSR, MRS or SYS; dir is 1 for a read. */
#define ISS_REG(op0, op1, crn, crm, op2, rt, dir)                          \
    ((op0) << 20 | (op2) << 17 | (op1) << 14 | (crn) << 10 | (rt) << 5 |   \
     (crm) << 1 | (dir))
#define ISS_WNR (1u << 6)
#define ISS_CM (1u << 8)
#define FSC_ADDRESS_SIZE 0x00 /* + level */
#define FSC_TRANSLATION 0x04
#define FSC_ACCESS_FLAG 0x08
#define FSC_PERMISSION 0x0c
#define FSC_EXTERNAL_WALK 0x14
#define FSC_ALIGNMENT 0x21

#define SPSR_EL0T 0x0
#define SPSR_EL1T 0x4
#define SPSR_EL1H 0x5
#define SPSR_DAIF 0x3c0
#define SPSR_PAN (1u << 22)
#define SPSR_IL (1u << 20)
#define SPSR_NZCV 0xf0000000u
/* BTYPE says how the PC got there, SSBS is the implementation's choice. */
#define SPSR_COMPARED (~(uint64_t)(3u << 10 | 1u << 12))

#define VECTOR_EL1T 0
#define VECTOR_EL1H 4
#define VECTOR_EL0 8

/* A function whose first instruction is the one under test. */
#define SNIPPET(name, text)                                  \
    void name(uint64_t);                                     \
    __asm__(".pushsection .text\n.balign 16\n.global " #name \
            "\n" #name ":\n" text "\nret\n.popsection")
/* The same for EL0; it ends in SVC #0xffff, should it get there. */
#define USER_SNIPPET(name, text)                             \
    extern const char name[];                                \
    __asm__(".pushsection .user, \"ax\"\n.balign 16\n.global " #name \
            "\n" #name ":\n" text "\nsvc #0xffff\n.popsection")

struct want {
    uint64_t vector, esr, far, elr, spsr;
    bool has_far;
};

static void check_trap(const char *text, const struct trap *t,
                       const struct want *w)
{
    bool ok = t->vector == w->vector && t->esr == w->esr && t->elr == w->elr &&
              (t->spsr & SPSR_COMPARED) == w->spsr &&
              (!w->has_far || t->far == w->far);

    if (!check(ok, text)) {
        print("  got      vector %u esr %x far %x elr %x spsr %x\n", t->vector,
              t->esr, t->far, t->elr, t->spsr);
        print("  expected vector %u esr %x far %x elr %x spsr %x\n", w->vector,
              w->esr, w->far, w->elr, w->spsr);
    }
}

/* fn(arg) at EL1h must trap at its first instruction + offset. */
__attribute__((unused)) static void
expect_el1(const char *text, void (*fn)(uint64_t), uint64_t arg,
           uint64_t offset, uint64_t esr)
{
    struct trap t = {0};
    struct want w = {VECTOR_EL1H, esr, 0, (uint64_t)fn + offset,
                     SPSR_EL1H | SPSR_DAIF, false};

    if (!probe(fn, arg, &t)) {
        check(false, text);
        print("  no exception\n");
        return;
    }
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap(text, &t, &w);
}

/* As expect_el1 for a data abort of an access at address arg. */
__attribute__((unused)) static void
expect_abort(const char *text, void (*fn)(uint64_t), uint64_t arg,
             uint64_t far, unsigned iss)
{
    struct trap t = {0};
    struct want w = {VECTOR_EL1H, ESR(EC_DABORT, iss), far, (uint64_t)fn,
                     SPSR_EL1H | SPSR_DAIF, true};

    if (!probe(fn, arg, &t)) {
        check(false, text);
        print("  no exception\n");
        return;
    }
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap(text, &t, &w);
}

static struct trap el0_trap;
/* Runs code at EL0 with x0 = arg until it traps. */
__attribute__((unused)) static void
run_el0(const char *code, uint64_t arg, uint64_t spsr)
{
    struct el0_start s = {user_alias(code), window_va(WINDOW_USER_STACK + 1),
                          arg, spsr};

    if (!probe(el0_enter, (uint64_t)&s, &el0_trap)) {
        print("FAIL: EL0 code came back without an exception\n");
    }
}

__attribute__((unused)) static void
expect_el0(const char *text, const char *code, uint64_t arg, uint64_t offset,
           uint64_t esr, uint64_t far, bool has_far)
{
    struct want w = {VECTOR_EL0, esr, far, user_alias(code) + offset,
                     SPSR_EL0T, has_far};

    run_el0(code, arg, SPSR_EL0T);
    el0_trap.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap(text, &el0_trap, &w);
}

#endif
