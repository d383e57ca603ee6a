/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential PSCI test: function numbers, and calls that notice what they
 * change. SMCCC lets a call change x0 only, and no state of EL1.
 */
#include "psci_diff.h"

#define STATES 8
#define NZCV_BITS 0xf0000000ull
#define SPSR_EL1H_MASKED 0x3c5ull
#define DAIF_BITS 0x3c0ull
#define DAIF_I 0x80ull

struct regs {
    uint64_t x[31];
    /* NZCV, SP_EL0, ELR, SPSR, ESR, FAR, DAIF, TPIDR_EL0 */
    uint64_t state[STATES];
};
_Static_assert(offsetof(struct regs, state) == REGS_STATE, "REGS_STATE");

void psci_registers(struct regs *regs);
extern const char psci_entries[];

uint64_t entry_at(unsigned n)
{
    return (uint64_t)psci_entries + n * ENTRY_SIZE;
}

struct answer call(uint32_t fn, const uint64_t arg[3], uint64_t salt,
                   bool masked)
{
    struct rng r = {salt};
    struct regs before, regs;
    struct answer answer = {0, 0};

    before.x[0] = fn;
    for (unsigned i = 1; i < 31; i++) {
        before.x[i] = i <= 3 ? arg[i - 1] : rng_next(&r);
    }
    for (unsigned i = 0; i < STATES; i++) {
        before.state[i] = rng_next(&r);
    }
    before.state[0] &= NZCV_BITS;
    before.state[3] = (before.state[3] & NZCV_BITS) | SPSR_EL1H_MASKED;
    before.state[4] &= 0xffffffff;
    before.state[6] = (before.state[6] & DAIF_BITS) | (masked ? DAIF_I : 0);
    regs = before;
    psci_registers(&regs);
    answer.x0 = regs.x[0];
    for (unsigned i = 1; i < 31; i++) {
        answer.changed |= (uint64_t)(regs.x[i] != before.x[i]) << i;
    }
    for (unsigned i = 0; i < STATES; i++) {
        answer.changed |= (uint64_t)(regs.state[i] != before.state[i])
                          << (31 + i);
    }
    return answer;
}

uint32_t known_function(struct rng *r)
{
    static const uint32_t known[] = {
        PSCI_VERSION,       PSCI_CPU_SUSPEND,     PSCI_CPU_SUSPEND64,
        PSCI_CPU_OFF,       PSCI_CPU_ON,          PSCI_CPU_ON64,
        PSCI_AFFINITY_INFO, PSCI_AFFINITY_INFO64, PSCI_MIGRATE_INFO_TYPE,
        PSCI_SYSTEM_OFF,    PSCI_SYSTEM_RESET,    PSCI_FEATURES,
    };

    return known[rng_below(r, sizeof(known) / sizeof(known[0]))];
}

/* Without a 64-bit form. */
static const uint8_t narrow[] = {0x0, 0x2, 0x6, 0x8, 0x9, 0xa};

uint32_t unknown_function(struct rng *r)
{
    uint32_t wide = rng_below(r, 2) ? PSCI_64 : 0;

    switch (rng_below(r, 5)) {
    case 0:
        return PSCI_VERSION | PSCI_64 |
               narrow[rng_below(r, sizeof(narrow) / sizeof(narrow[0]))];
    case 1: /* optional ones, and those of later versions */
        return PSCI_VERSION | wide |
               (rng_one_in(r, 4) ? 5 + 2 * rng_below(r, 2)
                                 : 0xb + rng_below(r, 0x15));
    case 2: /* of the architecture; the first two are op_smccc()'s */
        return SMCCC_VERSION | wide | (2 + rng_below(r, 0xfffe));
    case 3: /* of other owners */
        return SMCCC_VERSION | wide | (5 + rng_below(r, 59)) << 24 |
               rng_below(r, 0x10000);
    default: /* yielding calls */
        return (uint32_t)rng_next(r) & 0x7fffffff;
    }
}
