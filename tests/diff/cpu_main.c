/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential exception test: one instruction at a time, in a random
 * state, and what came of it. Each case is a table of OPS operations for the
 * words seed, first, tables and verbose (see mmu_main.c).
 *
 * An operation: SCTLR, CPACR and CNTKCTL with random trap bits; PSTATE, EL0 or
 * EL1; one instruction of the list below, then BRK. So each ends in an
 * exception, whose SPSR tells the state that the instruction left.
 */
#include "words.h"

#define OPS 100
#define WORDS 5
#define CODE_PAGE 10 /* of the window; EL0's next to it */
#define DATA_PAGE 12
#define LAST 0xfffe /* the BRK at the end */

#define SCTLR_A (1ull << 1)
#define SCTLR_SA (3ull << 3)
#define SCTLR_UMA (1ull << 9)
#define SCTLR_DZE (1ull << 14)
#define SCTLR_UCT (1ull << 15)
#define SCTLR_NTWI (1ull << 16)
#define SCTLR_NTWE (1ull << 18)
#define SCTLR_SPAN (1ull << 23)
#define SCTLR_UCI (1ull << 26)
#define SCTLR_RANDOM                                                           \
    (SCTLR_A | SCTLR_UMA | SCTLR_DZE | SCTLR_UCT | SCTLR_SPAN | SCTLR_UCI)

#define SPSR_EL0T 0x0
#define SPSR_EL1T 0x4
#define SPSR_EL1H 0x5
#define SPSR_DAIF 0x3c0
#define SPSR_PAN (1u << 22)
#define SPSR_NZCV 0xf0000000u

#define NOP 0xd503201f
#define BRK(n) (0xd4200000u | (n) << 5)
/* MSR (0) or MRS (1 << 21) of a register, x0. */
#define SYS(op0, op1, crn, crm, op2)                                           \
    (0xd5000000u | (op0) << 19 | (op1) << 16 | (crn) << 12 | (crm) << 8 |      \
     (op2) << 5)
#define MRS (1u << 21)

struct state {
    uint64_t sctlr, cpacr, cntkctl, spsr, x0;
    uint32_t word[WORDS];
};

static uint32_t code[1024] __attribute__((aligned(4096)));
static uint8_t data[4096] __attribute__((aligned(4096)));
static uint64_t base_sctlr;

/* Readable and writable in full, or as both machines should agree. */
static const uint32_t storage[] = {
    SYS(3, 3, 13, 0, 2), /* TPIDR_EL0 */
    SYS(3, 3, 13, 0, 3), /* TPIDRRO_EL0 */
    SYS(3, 0, 4, 0, 1),  /* ELR_EL1 */
    SYS(3, 0, 4, 1, 0),  /* SP_EL0 */
    SYS(3, 0, 6, 0, 0),  /* FAR_EL1 */
    SYS(3, 0, 13, 0, 1), /* CONTEXTIDR_EL1 */
    SYS(3, 3, 14, 2, 2), /* CNTP_CVAL_EL0 */
    SYS(3, 3, 14, 3, 2), /* CNTV_CVAL_EL0 */
};

/* Accessed for the trap only: what is read is the implementation's. */
static const uint32_t registers[] = {
    SYS(3, 3, 0, 0, 1),   /* CTR_EL0 */
    SYS(3, 3, 0, 0, 7),   /* DCZID_EL0 */
    SYS(3, 3, 4, 2, 0),   /* NZCV */
    SYS(3, 3, 4, 2, 1),   /* DAIF */
    SYS(3, 0, 4, 2, 2),   /* CurrentEL */
    SYS(3, 0, 4, 2, 3),   /* PAN */
    SYS(3, 0, 4, 2, 0),   /* SPSel */
    SYS(3, 3, 4, 4, 0),   /* FPCR */
    SYS(3, 3, 4, 4, 1),   /* FPSR */
    SYS(3, 3, 14, 0, 0),  /* CNTFRQ_EL0 */
    SYS(3, 3, 14, 0, 1),  /* CNTPCT_EL0 */
    SYS(3, 3, 14, 0, 2),  /* CNTVCT_EL0 */
    SYS(3, 3, 14, 2, 1),  /* CNTP_CTL_EL0 */
    SYS(3, 3, 14, 2, 2),  /* CNTP_CVAL_EL0 */
    SYS(3, 3, 14, 3, 1),  /* CNTV_CTL_EL0 */
    SYS(3, 3, 14, 3, 0),  /* CNTV_TVAL_EL0 */
    SYS(3, 0, 14, 1, 0),  /* CNTKCTL_EL1 */
    SYS(3, 0, 1, 0, 2),   /* CPACR_EL1 */
    SYS(3, 0, 2, 0, 2),   /* TCR_EL1 */
    SYS(3, 0, 5, 2, 0),   /* ESR_EL1 */
    SYS(3, 0, 7, 4, 0),   /* PAR_EL1 */
    SYS(3, 0, 10, 2, 0),  /* MAIR_EL1 */
    SYS(3, 0, 12, 0, 0),  /* VBAR_EL1 */
    SYS(3, 0, 12, 12, 5), /* ICC_SRE_EL1 */
    SYS(3, 0, 4, 6, 0),   /* ICC_PMR_EL1 */
    SYS(3, 0, 12, 12, 0), /* ICC_IAR1_EL1 */
    SYS(3, 3, 13, 0, 2),  /* TPIDR_EL0 */
    SYS(3, 3, 13, 0, 3),  /* TPIDRRO_EL0 */
    SYS(3, 4, 1, 0, 0),   /* SCTLR_EL2 */
    SYS(3, 4, 1, 1, 0),   /* HCR_EL2 */
    SYS(3, 6, 1, 0, 0),   /* SCTLR_EL3 */
};

/* With x0 = an address in the data page that may be misaligned. */
static const uint32_t checked[] = {
    0xc85f7c00, /* ldxr x0, [x0] */
    0x885ffc00, /* ldaxr w0, [x0] */
    0xc89ffc00, /* stlr x0, [x0] */
    0xf8200001, /* ldadd x0, x1, [x0] */
    0xf8208001, /* swp x0, x1, [x0] */
    0xb8200001, /* ldadd w0, w1, [x0] */
    0xc8a07c01, /* cas x0, x1, [x0] */
};

/* The same, aligned: the machine does not check these (docs/CAVEATS.md). */
static const uint32_t memory[] = {
    0xf9400000, /* ldr x0, [x0] */
    0xf9000000, /* str x0, [x0] */
    0xb9400000, /* ldr w0, [x0] */
    0x79400000, /* ldrh w0, [x0] */
    0x39400000, /* ldrb w0, [x0] */
    0xa9400400, /* ldp x0, x1, [x0] */
    0xa9000400, /* stp x0, x1, [x0] */
    0xc85f7c00, /* ldxr x0, [x0] */
    0xc8dffc00, /* ldar x0, [x0] */
    0xc89ffc00, /* stlr x0, [x0] */
    0x88dffc00, /* ldar w0, [x0] */
    0xf8200001, /* ldadd x0, x1, [x0] */
    0xf8208001, /* swp x0, x1, [x0] */
    0xb8200001, /* ldadd w0, w1, [x0] */
    0xf8400800, /* ldtr x0, [x0] */
    0x3d400000, /* ldr b0, [x0] */
    0xfd400000, /* ldr d0, [x0] */
    0x3dc00000, /* ldr q0, [x0] */
    0x3d800000, /* str q0, [x0] */
    0xd50b7420, /* dc zva, x0 */
    0xd50b7e20, /* dc civac, x0 */
    0xd50b7520, /* ic ivau, x0 */
};

static const uint32_t others[] = {
    0xd4a00001,      /* dcps1 */
    0xd5033fdf,      /* isb */
    0xd503201f,      /* nop */
    0xd508751f,      /* ic iallu */
    0xd508871f,      /* tlbi vmalle1 */
    0xd5087800,      /* at s1e1r, x0 */
    0xd50c8700 | 31, /* tlbi alle2 */
    0x1e604000,      /* fmov d0, d0 */
    0x4ea11c20,      /* mov v0.16b, v1.16b */
    0x9e660000,      /* fmov x0, d0 */
    0xd5184600,      /* msr icc_pmr_el1, x0 */
    0x00000000,      /* udf */
};

/* PSTATE after an ERET: of the levels that there are. */
static uint64_t random_spsr(struct rng *r)
{
    static const uint8_t mode[] = {SPSR_EL0T, SPSR_EL1T, SPSR_EL1H};

    return (rng_next(r) & (SPSR_NZCV | SPSR_DAIF | SPSR_PAN)) |
           mode[rng_below(r, 3)];
}

static uint32_t random_word(struct rng *r, struct state *s)
{
    uint32_t imm = (uint32_t)rng_next(r) & 0xffff;

    switch (rng_below(r, 16)) {
    case 0:
        return 0xd4000001 | imm << 5; /* svc */
    case 1:
        return BRK(imm);
    case 2:
        return 0xd4000003 | imm << 5; /* smc */
    case 3:
        return 0xd4400000 | imm << 5; /* hlt */
    case 4:
        return imm; /* udf */
    case 5:         /* msr daifset, daifclr, spsel, pan, uao */
    {
        static const uint32_t immediate[] = {0xd50340df, 0xd50340ff, 0xd50040bf,
                                             0xd500409f, 0xd500407f};
        unsigned which = rng_below(r, 5);
        unsigned bits = which < 2 ? 16 : 2;

        if (which < 2) {
            s->sctlr |= SCTLR_UMA; /* QEMU's ISS of it is wrong */
        }
        return immediate[which] | rng_below(r, bits) << 8;
    }
    case 6:
    case 7: {
        uint32_t reg = registers[rng_below(r, sizeof(registers) / 4)];

        s->word[1] = 0xd2800000; /* mov x0, #0: whatever was read */
        return reg | MRS;
    }
    case 8: {
        uint32_t reg = storage[rng_below(r, sizeof(storage) / 4)];

        s->word[1] = reg | MRS;
        return reg;
    }
    case 9:                      /* to the BRK */
        s->word[1] = 0xd5184021; /* msr elr_el1, x1 */
        s->word[2] = 0xd5184000; /* msr spsr_el1, x0 */
        s->word[3] = 0xd69f03e0; /* eret */
        s->x0 = random_spsr(r);
        return 0x10000081; /* adr x1, #16 */
    case 10:
    case 11:
    case 12:
        s->x0 = window_va(DATA_PAGE) + rng_below(r, 2000);
        if (rng_one_in(r, 3)) {
            return checked[rng_below(r, sizeof(checked) / 4)];
        }
        s->x0 &= ~15ull;
        return memory[rng_below(r, sizeof(memory) / 4)];
    default:
        return others[rng_below(r, sizeof(others) / 4)];
    }
}

static void random_state(struct rng *r, struct state *s)
{
    *s = (struct state){
        .sctlr = (base_sctlr & ~(SCTLR_RANDOM | SCTLR_SA)) |
                 (rng_next(r) & SCTLR_RANDOM),
        .cpacr = (uint64_t)rng_below(r, 4) << 20,
        .cntkctl = rng_next(r) & 0x303,
        .spsr = random_spsr(r),
        .x0 = rng_next(r),
        .word = {0, NOP, NOP, NOP, BRK(LAST)},
    };
    s->word[0] = random_word(r, s);
}

static bool has_far(uint64_t esr)
{
    unsigned ec = (unsigned)(esr >> 26 & 0x3f);

    return ec == 0x20 || ec == 0x21 || ec == 0x22 || ec == 0x24 || ec == 0x25;
}

static uint64_t run(const struct state *s, bool verbose, unsigned number)
{
    bool el0 = (s->spsr & 0xf) == SPSR_EL0T;
    uint64_t pc = window_va(CODE_PAGE + el0) + number * 32;
    struct el0_start start = {pc, (uint64_t)data + 4096, s->x0, s->spsr};
    uint32_t *words = &code[number * 8];
    struct trap t = {0};
    uint64_t hash = 0;

    for (unsigned i = 0; i < WORDS; i++) {
        words[i] = s->word[i];
    }
    __asm__ volatile(
        "dc cvau, %0; dsb ish; ic ivau, %0; dsb ish; isb" ::"r"(words)
        : "memory");
    write_sysreg(S3_0_C4_C2_3, 0); /* PAN */
    write_sysreg(cntkctl_el1, s->cntkctl);
    write_sysreg(cpacr_el1, s->cpacr);
    write_sysreg(sctlr_el1, s->sctlr);
    isb();
    probe(el0_enter, (uint64_t)&start, &t);
    write_sysreg(sctlr_el1, base_sctlr);
    write_sysreg(cpacr_el1, 3ull << 20);
    isb();
    t.spsr &= ~(uint64_t)(3u << 10 | 1u << 12 | 1u << 24 | 1u << 25);
    t.far = has_far(t.esr) ? t.far : 0;
    mix(&hash, t.vector);
    mix(&hash, t.esr);
    mix(&hash, t.far);
    mix(&hash, t.elr);
    mix(&hash, t.spsr);
    mix(&hash, t.x0);
    if (verbose) {
        print("op %u word %x then %x sctlr %x cpacr %x cntkctl %x", number,
              (uint64_t)s->word[0], (uint64_t)s->word[1], s->sctlr, s->cpacr,
              s->cntkctl);
        print(" start %x x0 %x: vector %u esr %x far %x elr %x", s->spsr, s->x0,
              t.vector, t.esr, t.far, t.elr - pc);
        print(" spsr %x x0 %x\n", t.spsr, t.x0);
    }
    return hash;
}

int main(void)
{
    const char *words = words_get();
    uint64_t seed = words_number(words, "seed", 1);
    uint64_t first = words_number(words, "first", 0);
    uint64_t count = words_number(words, "tables", 200);
    uint64_t verbose = words_number(words, "verbose", ~0ull);

    base_sctlr = read_sysreg(sctlr_el1) & ~SCTLR_SA;
    window_map(CODE_PAGE, (uint64_t)code, MAP_CODE | MAP_UXN);
    window_map(CODE_PAGE + 1, (uint64_t)code, MAP_CODE | MAP_PXN | MAP_EL0);
    window_map(DATA_PAGE, (uint64_t)data, MAP_DATA | MAP_EL0);
    print("cpu_diff seed %u first %u tables %u\n", seed, first, count);
    for (uint64_t i = first; i < first + count; i++) {
        uint64_t hash = 0;
        struct rng rng;

        rng_start(&rng, seed, i);
        for (unsigned k = 0; k < sizeof(data) / 8; k++) {
            ((volatile uint64_t *)data)[k] = 0;
        }
        write_sysreg(tpidr_el0, 0);
        for (unsigned k = 0; k < OPS; k++) {
            struct state s;

            random_state(&rng, &s);
            mix(&hash, run(&s, i == verbose, k));
        }
        print("table %u ops %u hash %x\n", i, (uint64_t)OPS, hash);
    }
    print("end: %u tables, %u operations\n", count, count * OPS);
    system_off();
}
