/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which instructions of a guest must not run natively, and what they are.
 *
 * The engine translates one vCPU at a time and knows nothing of the others:
 * exclusives and LSE atomics are not atomic between its instances, barriers
 * order nothing, and TLBI reaches one vCPU. Such instructions are found when a
 * page becomes executable, made to trap, and performed by the VMM from the
 * description that is made here. Pure functions; operands come from the bits
 * of the encoding, Capstone is asked to confirm the mnemonic.
 */
#ifndef INSN_INSN_H
#define INSN_INSN_H

#include <stdbool.h>
#include <stdint.h>

#include "insn/disas.h"

enum insn_kind {
    INSN_NONE = 0,        /* not sensitive */
    INSN_LOAD_EXCLUSIVE,  /* LDXR LDAXR (b h w x), LDXP LDAXP */
    INSN_STORE_EXCLUSIVE, /* STXR STLXR (b h w x), STXP STLXP; rs = status */
    INSN_CLREX,
    INSN_LSE,           /* LD<op> ST<op> SWP, see insn.op; rs = operand */
    INSN_CAS,           /* CAS CASP; rs = compare and result, rt = new */
    INSN_LOAD_ACQUIRE,  /* LDAR LDLAR LDAPR LDAPUR(S) */
    INSN_STORE_RELEASE, /* STLR STLLR STLUR */
    INSN_LOAD_UNPRIV,   /* LDTR(S)(B H W X) */
    INSN_STORE_UNPRIV,  /* STTR(B H W X) */
    INSN_DMB,           /* barrier_crm */
    INSN_DSB,           /* barrier_crm, nxs */
    INSN_ISB,
    INSN_SB,
    INSN_WFI,
    INSN_WFE,
    INSN_WFIT, /* rt = deadline */
    INSN_WFET, /* rt = deadline */
    INSN_YIELD,
    INSN_SEV,
    INSN_SEVL,
    INSN_TLBI,    /* sysreg, rt (31 = none) */
    INSN_IC,      /* sysreg, rt */
    INSN_DC,      /* sysreg, rt */
    INSN_AT,      /* sysreg, rt */
    INSN_SYS,     /* any other SYS/SYSL that the policy wants */
    INSN_MRS,     /* sysreg, rt, is_read */
    INSN_MSR,     /* sysreg, rt */
    INSN_MSR_IMM, /* op1, op2 in sysreg, imm = CRm */
    INSN_KINDS
};

/* In the order of the encoding's o3:opc, so that a cast decodes it. */
enum lse_op {
    LSE_ADD = 0,
    LSE_CLR, /* and-not */
    LSE_EOR,
    LSE_SET, /* or */
    LSE_SMAX,
    LSE_SMIN,
    LSE_UMAX,
    LSE_UMIN,
    LSE_SWP,
};

/* Barrier domains and types: barrier_crm is domain << 2 | type. */
enum barrier_domain {
    BARRIER_OSH = 0,
    BARRIER_NSH = 1,
    BARRIER_ISH = 2,
    BARRIER_SY = 3,
};
enum barrier_type {
    BARRIER_RESERVED = 0, /* acts as the full system barrier */
    BARRIER_LOADS = 1,
    BARRIER_STORES = 2,
    BARRIER_ALL = 3,
};

struct insn {
    enum insn_kind kind;
    uint32_t word;
    uint16_t sysreg;   /* packed as SYSREG() does: op0 op1 CRn CRm op2 */
    int16_t offset;    /* signed byte offset: LDTR/STTR, LDAPUR/STLUR; else 0 */
    uint8_t rt, rt2;   /* 31 = XZR; CASP: rt2 = rt + 1 */
    uint8_t rs;        /* 31 = XZR; CASP: the pair is rs, rs + 1 */
    uint8_t rn;        /* 31 = SP */
    uint8_t size_log2; /* bytes of one register's data: 0..3 */
    uint8_t sign_bits; /* loads: sign-extend to 32 or 64; 0 = zero-extend */
    uint8_t barrier_crm; /* DMB DSB ISB */
    uint8_t imm;         /* MSR_IMM: CRm */
    enum lse_op op : 8;
    bool acquire, release;
    bool pair;     /* two registers: LDXP STXP CASP */
    bool limited;  /* LDLAR STLLR */
    bool rcpc;     /* LDAPR LDAPUR: acquire, but may pass an older STLR */
    bool nxs;      /* DSB nXS */
    bool is_read;  /* MRS, SYSL */
    bool disputed; /* Capstone reads the word differently; we still trap */
};

/* The packing of a register key; identical to SYSREG() of dev/sysreg_key.h. */
static inline uint16_t insn_sysreg_key(unsigned op0, unsigned op1, unsigned crn,
                                       unsigned crm, unsigned op2)
{
    return (uint16_t)(op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2);
}

static inline unsigned insn_op0(const struct insn *insn)
{
    return insn->sysreg >> 14;
}

static inline unsigned insn_op1(const struct insn *insn)
{
    return insn->sysreg >> 11 & 7;
}

static inline unsigned insn_crn(const struct insn *insn)
{
    return insn->sysreg >> 7 & 15;
}

static inline unsigned insn_crm(const struct insn *insn)
{
    return insn->sysreg >> 3 & 15;
}

static inline unsigned insn_op2(const struct insn *insn)
{
    return insn->sysreg & 7;
}

static inline enum barrier_domain insn_barrier_domain(const struct insn *insn)
{
    return insn->barrier_crm & 3 ? (enum barrier_domain)(insn->barrier_crm >> 2)
                                 : BARRIER_SY;
}

static inline enum barrier_type insn_barrier_type(const struct insn *insn)
{
    return insn->barrier_crm & 3 ? (enum barrier_type)(insn->barrier_crm & 3)
                                 : BARRIER_ALL;
}

/* Bytes that the access names: both registers of a pair. */
static inline unsigned insn_bytes(const struct insn *insn)
{
    return 1u << (insn->size_log2 + (insn->pair ? 1 : 0));
}

/* Bit of insn_policy.pstate_traps for MSR <field>, #imm. */
#define INSN_PSTATE_BIT(op1, op2) (UINT64_C(1) << ((op1)*8 + (op2)))
#define INSN_PSTATE_UAO INSN_PSTATE_BIT(0, 3)
#define INSN_PSTATE_PAN INSN_PSTATE_BIT(0, 4)
#define INSN_PSTATE_SPSEL INSN_PSTATE_BIT(0, 5)
#define INSN_PSTATE_SSBS INSN_PSTATE_BIT(3, 1)
#define INSN_PSTATE_DIT INSN_PSTATE_BIT(3, 2)
#define INSN_PSTATE_TCO INSN_PSTATE_BIT(3, 4)
#define INSN_PSTATE_DAIFSET INSN_PSTATE_BIT(3, 6)
#define INSN_PSTATE_DAIFCLR INSN_PSTATE_BIT(3, 7) /* traps in any case */

/*
 * What may stay native. A zeroed policy traps everything that depends on the
 * host, and none of what the fields below say "trap" for.
 */
struct insn_policy {
    /*
     * The host is TSO (x86-64): a native load is already a load-acquire and
     * stores stay in order, so LDAR/LDLAR/LDAPR/LDAPUR and the LD and ST kinds
     * of DMB stay native. Store-release still traps: an older STLR must not
     * pass a younger LDAR, which the host's store buffer allows.
     */
    bool host_tso;
    bool trap_isb;         /* ISB and SB */
    bool trap_dc;          /* DC, all but ZVA, GVA and GZVA */
    uint64_t pstate_traps; /* MSR immediate: INSN_PSTATE_* */
    /*
     * Says which register forms of MSR/MRS, and which SYS/SYSL that are none
     * of TLBI, IC, DC, AT, trap. NULL: none. Called from insn_classify() only.
     */
    bool (*sysreg_traps)(uint32_t key, bool is_read);
};

/* --- any thread, one at a time per disas object --- */

/*
 * True if @word must trap under @policy; then *out describes it. @d may be
 * NULL: the encoding alone then decides.
 */
bool insn_classify(struct disas *d, uint32_t word,
                   const struct insn_policy *policy, struct insn *out);

/*
 * Calls @found for each sensitive word of @words[0..n), in rising order, and
 * returns how many there were. The cost is one table look-up per word plus a
 * full decode per candidate. @found may be NULL to count only.
 */
unsigned insn_scan_page(struct disas *d, const uint32_t *words, unsigned n,
                        const struct insn_policy *policy,
                        void (*found)(void *opaque, unsigned index,
                                      const struct insn *insn),
                        void *opaque);

/* "load-exclusive", "dsb", ...: for traces and statistics. */
const char *insn_kind_name(enum insn_kind kind);

#endif
