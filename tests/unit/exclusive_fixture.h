/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A vCPU reduced to registers and a monitor, for the tests of exclusive.c. */
#ifndef EXCLUSIVE_FIXTURE_H
#define EXCLUSIVE_FIXTURE_H

#include "insn/exclusive.h"

#include <string.h>

/* In all of these the base is x1; data x2 (x3), operand x3 or x4, status w4. */
enum words {
    LDXRB = 0x085f7c22,
    LDXRH = 0x485f7c22,
    LDXR_W = 0x885f7c22,
    LDXR_X = 0xc85f7c22,
    LDAXR_W = 0x885ffc22,
    LDAXR_X = 0xc85ffc22,
    STXRB = 0x08047c22,
    STXRH = 0x48047c22,
    STXR_W = 0x88047c22,
    STLXR_W = 0x8804fc22,
    STXR_X = 0xc8047c22,
    LDXP_W = 0x887f0c22,
    LDXP_X = 0xc87f0c22,
    STXP_W = 0x88240c22,
    STLXP_X = 0xc8248c22,
    CLREX = 0xd5033f5f,
    LDAR_W = 0x88dffc22,
    LDAR_X = 0xc8dffc22,
    STLR_W = 0x889ffc22,
    STLR_X = 0xc89ffc22,
    STLUR_X_1 = 0xd9001022,
    LDADDAL_X = 0xf8e30022,
    STADD_X = 0xf823003f,
    SWPAL_X = 0xf8e38022,
    CASB = 0x08a37c22,
    CAS_W = 0x88a37c22,
    CASAL_X = 0xc8e3fc22,
    CASP_W = 0x08247c22,      /* w4, w5, w2, w3 */
    CASPAL_X = 0x4864fc22,    /* x4, x5, x2, x3 */
    CASP_X_ZERO = 0x483e7c22, /* x30, xzr, x2, x3 */
    LDAPURSB_W = 0x19c00022,
    LDAPURSB_X = 0x19800022,
    LDAPURSH_W = 0x59c00022,
    LDAPURSW = 0x99800022,
    DMB_ISH = 0xd5033bbf,
};

struct cpu {
    struct exclusives *ex;
    struct exclusive_state state;
    uint64_t x[32];
};

static inline uint64_t cpu_read_x(void *opaque, unsigned reg)
{
    return ((struct cpu *)opaque)->x[reg];
}

static inline struct insn cpu_decode(uint32_t word)
{
    static const struct insn_policy trap_all = {0};
    struct insn insn = {0};

    (void)insn_classify(NULL, word, &trap_all, &insn);
    return insn;
}

/* What the machine does on such a trap, with guest addresses = host's. */
static inline enum atomic_result cpu_do(struct cpu *cpu,
                                        const struct insn *insn, void *host)
{
    struct atomic_io io;
    enum atomic_result result;

    atomic_gather(insn, cpu_read_x, cpu, &io);
    result = atomic_perform(cpu->ex, &cpu->state, insn, host,
                            (uint64_t)(uintptr_t)host, &io);
    for (unsigned i = 0; i < io.outputs; i++) {
        if (io.out[i].reg != 31) {
            cpu->x[io.out[i].reg] = io.out[i].value;
        }
    }
    return result;
}

static inline enum atomic_result cpu_run(struct cpu *cpu, uint32_t word,
                                         void *host)
{
    struct insn insn = cpu_decode(word);

    return cpu_do(cpu, &insn, host);
}

#endif
