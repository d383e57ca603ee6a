/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exceptions that an instruction raises by itself, at EL1 and at EL0: exact
 * ESR, ELR and SPSR, the vector taken, and the state at the handler.
 */
#include "exc.h"

SNIPPET(do_svc, "svc #0x1234");
SNIPPET(do_brk, "brk #0xabcd");
SNIPPET(do_udf, "udf #0x77");
SNIPPET(do_smc, "smc #0");
SNIPPET(do_unknown_read, "mrs x0, S3_7_C15_C15_7");
SNIPPET(do_unknown_write, "msr S3_7_C15_C15_7, x0");
SNIPPET(do_el2_register, "mrs x0, hcr_el2");
SNIPPET(do_hlt, "hlt #1");
SNIPPET(do_fp, "fmov d0, x0");
SNIPPET(do_pc_align, "br x0");
SNIPPET(do_el1t_svc, "msr spsel, #0\n svc #5");
SNIPPET(do_flags, "mov x1, #0xf0000000\n msr nzcv, x1\n svc #1");
SNIPPET(do_pan, ".arch armv8.1-a\n msr pan, #1\n svc #2");

USER_SNIPPET(user_svc, "svc #0x42");
USER_SNIPPET(user_brk, "brk #7");
USER_SNIPPET(user_udf, "udf #0");
USER_SNIPPET(user_hvc, "hvc #0");
USER_SNIPPET(user_sysreg, "mrs x5, sctlr_el1");
USER_SNIPPET(user_tlbi, "tlbi vmalle1");
USER_SNIPPET(user_ctr, "mrs x7, ctr_el0");
USER_SNIPPET(user_wfi, "wfi");
USER_SNIPPET(user_dc, "dc cvac, x3");
USER_SNIPPET(user_ic, "ic ivau, x3");
USER_SNIPPET(user_zva, "dc zva, x3");
USER_SNIPPET(user_eret, "eret");
USER_SNIPPET(user_fp, "fmov d0, x0");
USER_SNIPPET(user_pc_align, "br x0");
USER_SNIPPET(user_flags, "mov x1, #0xa0000000\n msr nzcv, x1\n svc #3");
USER_SNIPPET(user_registers, "mov x0, sp\n svc #4");

#define CPACR_FPEN (3ull << 20)
#define SCTLR_NTWI (1ull << 16)

static void at_el1(void)
{
    struct trap t;
    struct want w;

    expect_el1("SVC: ELR is the next instruction", do_svc, 0, 4,
               ESR(EC_SVC, 0x1234));
    expect_el1("BRK: ELR is the instruction", do_brk, 0, 0,
               ESR(EC_BRK, 0xabcd));
    expect_el1("UDF is undefined", do_udf, 0, 0, ESR(EC_UNKNOWN, 0));
    expect_el1("HLT is undefined", do_hlt, 0, 0, ESR(EC_UNKNOWN, 0));
    expect_el1("SMC is undefined without EL3", do_smc, 0, 0,
               ESR(EC_UNKNOWN, 0));
    expect_el1("reading an unknown register is undefined", do_unknown_read, 0,
               0, ESR(EC_UNKNOWN, 0));
    expect_el1("writing an unknown register is undefined", do_unknown_write, 0,
               0, ESR(EC_UNKNOWN, 0));
    expect_el1("an EL2 register is undefined at EL1", do_el2_register, 0, 0,
               ESR(EC_UNKNOWN, 0));

    write_sysreg(cpacr_el1, 0);
    isb();
    expect_el1("FP with CPACR.FPEN clear traps", do_fp, 0, 0,
               ESR(EC_FP, 0x1e00000));
    write_sysreg(cpacr_el1, CPACR_FPEN);
    isb();
    check(!probe(do_fp, 0, &t), "FP with CPACR.FPEN set does not trap");

    probe(do_pc_align, (uint64_t)do_svc + 2, &t);
    w = (struct want){VECTOR_EL1H, ESR(EC_PC_ALIGN, 0), (uint64_t)do_svc + 2,
                      (uint64_t)do_svc + 2, SPSR_EL1H | SPSR_DAIF, true};
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap("a misaligned PC", &t, &w);

    probe(do_el1t_svc, 0, &t);
    w = (struct want){VECTOR_EL1T, ESR(EC_SVC, 5), 0,
                      (uint64_t)do_el1t_svc + 8, SPSR_EL1T | SPSR_DAIF, false};
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap("SVC on SP_EL0 takes the first vector group", &t, &w);

    probe(do_flags, 0, &t);
    w = (struct want){VECTOR_EL1H, ESR(EC_SVC, 1), 0, (uint64_t)do_flags + 12,
                      SPSR_EL1H | SPSR_DAIF | SPSR_NZCV, false};
    check_trap("SPSR holds the flags", &t, &w);

    probe(do_pan, 0, &t);
    w = (struct want){VECTOR_EL1H, ESR(EC_SVC, 2), 0, (uint64_t)do_pan + 8,
                      SPSR_EL1H | SPSR_DAIF | SPSR_PAN, false};
    t.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap("SPSR holds PAN", &t, &w);
    write_sysreg(S3_0_C4_C2_3, 0); /* PAN: with SPAN set it is left as it is */
}

static void at_el0(void)
{
    uint64_t sctlr = read_sysreg(sctlr_el1);
    struct want w;

    expect_el0("EL0: SVC", user_svc, 0, 4, ESR(EC_SVC, 0x42), 0, false);
    expect_el0("EL0: BRK", user_brk, 0, 0, ESR(EC_BRK, 7), 0, false);
    expect_el0("EL0: UDF", user_udf, 0, 0, ESR(EC_UNKNOWN, 0), 0, false);
    expect_el0("EL0: HVC is undefined", user_hvc, 0, 0, ESR(EC_UNKNOWN, 0), 0,
               false);
    expect_el0("EL0: ERET is undefined", user_eret, 0, 0, ESR(EC_UNKNOWN, 0),
               0, false);
    expect_el0("EL0: SCTLR_EL1 is undefined", user_sysreg, 0, 0,
               ESR(EC_UNKNOWN, 0), 0, false);
    expect_el0("EL0: TLBI is undefined", user_tlbi, 0, 0, ESR(EC_UNKNOWN, 0),
               0, false);
    expect_el0("EL0: MRS CTR_EL0 with UCT clear traps", user_ctr, 0, 0,
               ESR(EC_SYSREG, ISS_REG(3, 3, 0, 0, 1, 7, 1)), 0, false);
    expect_el0("EL0: DC CVAC with UCI clear traps", user_dc, 0, 0,
               ESR(EC_SYSREG, ISS_REG(1, 3, 7, 10, 1, 3, 0)), 0, false);
    expect_el0("EL0: IC IVAU with UCI clear traps", user_ic, 0, 0,
               ESR(EC_SYSREG, ISS_REG(1, 3, 7, 5, 1, 3, 0)), 0, false);
    expect_el0("EL0: DC ZVA with DZE clear traps", user_zva, 0, 0,
               ESR(EC_SYSREG, ISS_REG(1, 3, 7, 4, 1, 3, 0)), 0, false);
    write_sysreg(sctlr_el1, sctlr & ~SCTLR_NTWI);
    isb();
    expect_el0("EL0: WFI with nTWI clear traps", user_wfi, 0, 0,
               ESR(EC_WFX, 0x1e00000), 0, false);
    write_sysreg(sctlr_el1, sctlr);
    write_sysreg(cpacr_el1, 1ull << 20);
    isb();
    expect_el0("EL0: FP with FPEN for EL1 only traps", user_fp, 0, 0,
               ESR(EC_FP, 0x1e00000), 0, false);
    write_sysreg(cpacr_el1, CPACR_FPEN);
    isb();
    expect_el0("EL0: FP with FPEN set does not trap", user_fp, 0, 8,
               ESR(EC_SVC, 0xffff), 0, false);

    run_el0(user_pc_align, user_alias(user_svc) + 1, SPSR_EL0T);
    w = (struct want){VECTOR_EL0, ESR(EC_PC_ALIGN, 0), user_alias(user_svc) + 1,
                      user_alias(user_svc) + 1, SPSR_EL0T, true};
    el0_trap.spsr &= ~(uint64_t)SPSR_NZCV;
    check_trap("EL0: a misaligned PC", &el0_trap, &w);

    run_el0(user_flags, 0, SPSR_EL0T);
    w = (struct want){VECTOR_EL0, ESR(EC_SVC, 3), 0, user_alias(user_flags) + 12,
                      0xa0000000, false};
    check_trap("EL0: SPSR holds the flags", &el0_trap, &w);

    run_el0(user_registers, 0, SPSR_EL0T);
    check(el0_trap.x0 == window_va(WINDOW_USER_STACK + 1) &&
              el0_trap.sp_el0 == el0_trap.x0,
          "EL0 runs on SP_EL0, and EL1 finds it there");
}

int main(void)
{
    at_el1();
    at_el0();
    finish("exc_instr");
}
