// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Classification of sensitive A64 instructions.
 *
 * The encoding decides and gives the operands. Capstone confirms: a word that
 * it reads as something else is marked `disputed` and counted, but still
 * traps, because a needless trap is slow while a missed one is a lost update.
 * Capstone 4 stops at Armv8.2 or so; a word that it does not know at all
 * (LDAPUR, STLUR, range TLBI, DSB nXS, WFET) is accepted from the encoding.
 */
#include "insn/insn.h"

#include <stddef.h>
#include <string.h>

static uint32_t insn_bits(uint32_t word, unsigned low, unsigned count)
{
    return word >> low & ((1u << count) - 1);
}

/* Bits 20..12, the signed offset of LDTR, LDUR and LDAPUR. */
static int16_t insn_imm9(uint32_t word)
{
    return (int16_t)((int32_t)(word << 11) >> 23);
}

/* --- the five encoding groups that hold sensitive words --- */

/* Exclusive, ordered, CAS: size 001000 o2 L o1 Rs o0 Rt2 Rn Rt */
#define GROUP_EXCLUSIVE_MASK 0x3f000000u
#define GROUP_EXCLUSIVE 0x08000000u
/* LSE and LDAPR: size 111 0 00 A R 1 Rs o3 opc 00 Rn Rt */
#define GROUP_LSE_MASK 0x3f200c00u
#define GROUP_LSE 0x38200000u
/* Unprivileged: size 111 0 00 opc 0 imm9 10 Rn Rt */
#define GROUP_UNPRIV_MASK 0x3f200c00u
#define GROUP_UNPRIV 0x38000800u
/* LDAPUR, STLUR: size 011001 opc 0 imm9 00 Rn Rt */
#define GROUP_RCPC_MASK 0x3f200c00u
#define GROUP_RCPC 0x19000000u
/* System: 1101010100 L op0 op1 CRn CRm op2 Rt */
#define GROUP_SYSTEM_MASK 0xffc00000u
#define GROUP_SYSTEM 0xd5000000u

static bool insn_decode_exclusive(uint32_t word, struct insn *out)
{
    bool o2 = insn_bits(word, 23, 1), load = insn_bits(word, 22, 1);
    bool o1 = insn_bits(word, 21, 1), o0 = insn_bits(word, 15, 1);
    unsigned size = insn_bits(word, 30, 2);

    out->size_log2 = (uint8_t)size;
    out->rs = (uint8_t)insn_bits(word, 16, 5);
    out->rt2 = (uint8_t)insn_bits(word, 10, 5);
    if (o1 && (o2 || size < 2)) { /* CAS, CASP */
        if (out->rt2 != 31) {
            return false;
        }
        out->kind = INSN_CAS;
        out->acquire = load;
        out->release = o0;
        if (!o2) {
            if ((out->rs | out->rt) & 1) {
                return false; /* odd pairs are unallocated */
            }
            out->pair = true;
            out->size_log2 = (uint8_t)(size + 2);
            out->rt2 = out->rt + 1;
        }
        return true;
    }
    if (o2) {
        out->kind = load ? INSN_LOAD_ACQUIRE : INSN_STORE_RELEASE;
        out->limited = !o0;
        out->acquire = load;
        out->release = !load;
        return true;
    }
    out->kind = load ? INSN_LOAD_EXCLUSIVE : INSN_STORE_EXCLUSIVE;
    out->pair = o1;
    out->acquire = load && o0;
    out->release = !load && o0;
    return true;
}

static bool insn_decode_lse(uint32_t word, struct insn *out)
{
    unsigned opc = insn_bits(word, 12, 4); /* with o3 on top */

    out->size_log2 = (uint8_t)insn_bits(word, 30, 2);
    out->rs = (uint8_t)insn_bits(word, 16, 5);
    out->acquire = insn_bits(word, 23, 1);
    out->release = insn_bits(word, 22, 1);
    if (opc <= LSE_SWP) {
        out->kind = INSN_LSE;
        out->op = (enum lse_op)opc;
        return true;
    }
    if (opc == 0xc && out->acquire && !out->release && out->rs == 31) {
        out->kind = INSN_LOAD_ACQUIRE;
        out->rcpc = true;
        return true;
    }
    return false; /* 64-byte accesses: not a feature of the machine */
}

/* LDTR/STTR and LDAPUR/STLUR share the meaning of size and opc. */
static bool insn_decode_imm9(uint32_t word, struct insn *out)
{
    unsigned size = insn_bits(word, 30, 2), opc = insn_bits(word, 22, 2);

    if ((opc == 2 && size == 3) || (opc == 3 && size >= 2)) {
        return false;
    }
    out->size_log2 = (uint8_t)size;
    out->sign_bits = opc < 2 ? 0 : opc == 2 ? 64 : 32;
    out->offset = insn_imm9(word);
    if ((word & GROUP_UNPRIV_MASK) == GROUP_UNPRIV) {
        out->kind = opc ? INSN_LOAD_UNPRIV : INSN_STORE_UNPRIV;
    } else {
        out->kind = opc ? INSN_LOAD_ACQUIRE : INSN_STORE_RELEASE;
        out->rcpc = out->acquire = opc != 0;
        out->release = opc == 0;
    }
    return true;
}

/* op0 == 0, CRn == 3: barriers and CLREX. */
static bool insn_decode_barrier(struct insn *out)
{
    unsigned crm = insn_crm(out);

    if (insn_op1(out) != 3 || out->rt != 31) {
        return false;
    }
    out->barrier_crm = (uint8_t)crm;
    switch (insn_op2(out)) {
    case 1: /* DSB nXS: only CRm = xx10 is allocated, and means ALL */
        out->kind = INSN_DSB;
        out->nxs = true;
        out->barrier_crm = (uint8_t)(crm | BARRIER_ALL);
        return (crm & 3) == 2;
    case 2:
        out->kind = INSN_CLREX;
        return true;
    case 4: /* also SSBB and PSSBB, which a CPU without them takes as SY */
        out->kind = INSN_DSB;
        return true;
    case 5:
        out->kind = INSN_DMB;
        return true;
    case 6:
        out->kind = INSN_ISB;
        return true;
    case 7:
        out->kind = INSN_SB;
        return crm == 0;
    default:
        return false;
    }
}

/* op0 == 0, CRn == 1 or 2: waits and hints. */
static bool insn_decode_hint(struct insn *out)
{
    static const enum insn_kind hints[8] = {
        [1] = INSN_YIELD, [2] = INSN_WFE,  [3] = INSN_WFI,
        [4] = INSN_SEV,   [5] = INSN_SEVL,
    };

    if (insn_op1(out) != 3 || insn_crm(out) != 0) {
        return false;
    }
    if (insn_crn(out) == 1) {
        out->kind = insn_op2(out) == 0   ? INSN_WFET
                    : insn_op2(out) == 1 ? INSN_WFIT
                                         : INSN_NONE;
        return out->kind != INSN_NONE;
    }
    out->kind = hints[insn_op2(out)];
    return out->kind != INSN_NONE && out->rt == 31;
}

/* op0 == 1: SYS and SYSL. */
static enum insn_kind insn_sys_kind(const struct insn *out)
{
    unsigned op1 = insn_op1(out), crm = insn_crm(out), op2 = insn_op2(out);

    if (out->is_read) {
        return INSN_SYS;
    }
    if (insn_crn(out) == 8 || insn_crn(out) == 9) {
        return INSN_TLBI; /* CRn 9: the nXS variants */
    }
    if (insn_crn(out) != 7) {
        return INSN_SYS;
    }
    switch (crm) {
    case 1:
        return op1 == 0 && op2 == 0 ? INSN_IC : INSN_SYS;
    case 5:
        return op1 == 0 || op1 == 3 ? INSN_IC : INSN_SYS;
    case 8:
    case 9:
        return op1 == 3 ? INSN_SYS : INSN_AT;
    case 4:
    case 11:
    case 12:
    case 13:
        return op1 == 3 ? INSN_DC : INSN_SYS;
    case 6:
        return op1 == 0 ? INSN_DC : INSN_SYS;
    case 10:
    case 14:
        return op1 == 0 || op1 == 3 ? INSN_DC : INSN_SYS;
    default:
        return INSN_SYS;
    }
}

static bool insn_decode_system(uint32_t word, struct insn *out)
{
    out->sysreg = (uint16_t)(word >> 5);
    out->is_read = insn_bits(word, 21, 1);
    switch (insn_op0(out)) {
    case 0:
        if (out->is_read) {
            return false;
        }
        switch (insn_crn(out)) {
        case 1:
        case 2:
            return insn_decode_hint(out);
        case 3:
            return insn_decode_barrier(out);
        case 4: /* op1:op2 0:0..2 are CFINV, XAFLAG, AXFLAG: arithmetic */
            out->kind = INSN_MSR_IMM;
            out->imm = (uint8_t)insn_crm(out);
            return out->rt == 31 && !(insn_op1(out) == 0 && insn_op2(out) < 3);
        default:
            return false;
        }
    case 1:
        out->kind = insn_sys_kind(out);
        return true;
    default:
        out->kind = out->is_read ? INSN_MRS : INSN_MSR;
        return true;
    }
}

/* Everything that could be sensitive, before any policy. */
static bool insn_decode(uint32_t word, struct insn *out)
{
    memset(out, 0, sizeof(*out));
    out->word = word;
    out->rt = (uint8_t)insn_bits(word, 0, 5);
    out->rn = (uint8_t)insn_bits(word, 5, 5);
    out->rs = out->rt2 = 31;
    if ((word & GROUP_SYSTEM_MASK) == GROUP_SYSTEM) {
        return insn_decode_system(word, out);
    }
    if ((word & GROUP_EXCLUSIVE_MASK) == GROUP_EXCLUSIVE) {
        return insn_decode_exclusive(word, out);
    }
    if ((word & GROUP_LSE_MASK) == GROUP_LSE) {
        return insn_decode_lse(word, out);
    }
    if ((word & GROUP_UNPRIV_MASK) == GROUP_UNPRIV ||
        (word & GROUP_RCPC_MASK) == GROUP_RCPC) {
        return insn_decode_imm9(word, out);
    }
    return false;
}

static bool insn_wanted_msr_imm(const struct insn *insn,
                                const struct insn_policy *policy)
{
    uint64_t bit = INSN_PSTATE_BIT(insn_op1(insn), insn_op2(insn));

    return bit == INSN_PSTATE_DAIFCLR || (policy->pstate_traps & bit);
}

static bool insn_wanted_dc(const struct insn *insn,
                           const struct insn_policy *policy)
{
    bool zeroes = insn_op1(insn) == 3 && insn_crm(insn) == 4;

    return policy->trap_dc && !zeroes;
}

static bool insn_wanted(const struct insn *insn,
                        const struct insn_policy *policy)
{
    switch (insn->kind) {
    case INSN_NONE:
    case INSN_KINDS:
        return false;
    case INSN_LOAD_ACQUIRE:
        return !policy->host_tso;
    case INSN_DMB: {
        enum barrier_type type = insn_barrier_type(insn);

        return !(policy->host_tso &&
                 (type == BARRIER_LOADS || type == BARRIER_STORES));
    }
    case INSN_ISB:
    case INSN_SB:
        return policy->trap_isb;
    case INSN_DC:
        return insn_wanted_dc(insn, policy);
    case INSN_MSR_IMM:
        return insn_wanted_msr_imm(insn, policy);
    case INSN_SYS:
    case INSN_MRS:
    case INSN_MSR:
        return policy->sysreg_traps &&
               policy->sysreg_traps(insn->sysreg, insn->is_read);
    case INSN_LOAD_EXCLUSIVE:
    case INSN_STORE_EXCLUSIVE:
    case INSN_CLREX:
    case INSN_LSE:
    case INSN_CAS:
    case INSN_STORE_RELEASE:
    case INSN_LOAD_UNPRIV:
    case INSN_STORE_UNPRIV:
    case INSN_DSB:
    case INSN_WFI:
    case INSN_WFE:
    case INSN_WFIT:
    case INSN_WFET:
    case INSN_YIELD:
    case INSN_SEV:
    case INSN_SEVL:
    case INSN_TLBI:
    case INSN_IC:
    case INSN_AT:
        return true;
    }
    return false;
}

/*
 * The beginnings of the mnemonics a disassembler may use, by kind. SYS is the
 * raw form of an operation that has no name yet, HINT that of a hint.
 */
static const char *const insn_mnemonics[INSN_KINDS][5] = {
    [INSN_LOAD_EXCLUSIVE] = {"ldxr", "ldaxr", "ldxp", "ldaxp"},
    [INSN_STORE_EXCLUSIVE] = {"stxr", "stlxr", "stxp", "stlxp"},
    [INSN_CLREX] = {"clrex"},
    [INSN_CAS] = {"cas"},
    [INSN_LOAD_ACQUIRE] = {"ldar", "ldlar", "ldapr", "ldapur"},
    [INSN_STORE_RELEASE] = {"stlr", "stllr", "stlur"},
    [INSN_LOAD_UNPRIV] = {"ldtr"},
    [INSN_STORE_UNPRIV] = {"sttr"},
    [INSN_DMB] = {"dmb"},
    [INSN_DSB] = {"dsb", "ssbb", "pssbb", "dfb", "msr"},
    [INSN_ISB] = {"isb"},
    [INSN_SB] = {"sb", "msr"},
    [INSN_WFI] = {"wfi", "hint"},
    [INSN_WFE] = {"wfe", "hint"},
    [INSN_WFIT] = {"wfit", "msr"},
    [INSN_WFET] = {"wfet", "msr"},
    [INSN_YIELD] = {"yield", "hint"},
    [INSN_SEV] = {"sev", "hint"},
    [INSN_SEVL] = {"sevl", "hint"},
    [INSN_TLBI] = {"tlbi", "sys"},
    [INSN_IC] = {"ic", "sys"},
    [INSN_DC] = {"dc", "sys"},
    [INSN_AT] = {"at", "sys"},
    [INSN_SYS] = {"sys", "cfp", "dvp", "cpp", "brb"},
    [INSN_MRS] = {"mrs"},
    [INSN_MSR] = {"msr"},
    [INSN_MSR_IMM] = {"msr", "smst"},
};

static const char *const insn_lse_suffixes[] = {
    [LSE_ADD] = "add",   [LSE_CLR] = "clr",   [LSE_EOR] = "eor",
    [LSE_SET] = "set",   [LSE_SMAX] = "smax", [LSE_SMIN] = "smin",
    [LSE_UMAX] = "umax", [LSE_UMIN] = "umin",
};

static bool insn_mnemonic_fits(const struct insn *insn, const char *mnemonic)
{
    const char *const *names = insn_mnemonics[insn->kind];

    if (insn->kind == INSN_LSE) {
        if (insn->op == LSE_SWP) {
            return !strncmp(mnemonic, "swp", 3);
        }
        return (!strncmp(mnemonic, "ld", 2) || !strncmp(mnemonic, "st", 2)) &&
               !strncmp(mnemonic + 2, insn_lse_suffixes[insn->op],
                        strlen(insn_lse_suffixes[insn->op]));
    }
    for (unsigned i = 0; i < 5 && names[i]; i++) {
        if (!strncmp(mnemonic, names[i], strlen(names[i]))) {
            return true;
        }
    }
    return false;
}

bool insn_classify(struct disas *d, uint32_t word,
                   const struct insn_policy *policy, struct insn *out)
{
    char mnemonic[DISAS_MNEMONIC_MAX];
    struct insn insn;

    if (!insn_decode(word, &insn) || !insn_wanted(&insn, policy)) {
        return false;
    }
    if (d && disas_mnemonic(d, word, mnemonic) &&
        !insn_mnemonic_fits(&insn, mnemonic)) {
        insn.disputed = true;
        disas_note_disagreement(d);
    }
    *out = insn;
    return true;
}

/*
 * One bit per value of the top byte: set if the byte occurs in one of the
 * groups above. 08 48 88 c8, 19 59 99 d9, 38 78 b8 f8, d5.
 */
static const uint32_t insn_top_bytes[8] = {
    [0] = 1u << 0x08 | 1u << 0x19,
    [1] = 1u << (0x38 & 31),
    [2] = 1u << (0x48 & 31) | 1u << (0x59 & 31),
    [3] = 1u << (0x78 & 31),
    [4] = 1u << (0x88 & 31) | 1u << (0x99 & 31),
    [5] = 1u << (0xb8 & 31),
    [6] = 1u << (0xc8 & 31) | 1u << (0xd5 & 31) | 1u << (0xd9 & 31),
    [7] = 1u << (0xf8 & 31),
};

static bool insn_is_candidate(uint32_t word)
{
    return insn_top_bytes[word >> 29] >> (word >> 24 & 31) & 1;
}

unsigned insn_scan_page(struct disas *d, const uint32_t *words, unsigned n,
                        const struct insn_policy *policy,
                        void (*found)(void *opaque, unsigned index,
                                      const struct insn *insn),
                        void *opaque)
{
    struct insn insn;
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        if (!insn_is_candidate(words[i]) ||
            !insn_classify(d, words[i], policy, &insn)) {
            continue;
        }
        count++;
        if (found) {
            found(opaque, i, &insn);
        }
    }
    return count;
}

const char *insn_kind_name(enum insn_kind kind)
{
    static const char *const names[INSN_KINDS] = {
        [INSN_NONE] = "none",
        [INSN_LOAD_EXCLUSIVE] = "load-exclusive",
        [INSN_STORE_EXCLUSIVE] = "store-exclusive",
        [INSN_CLREX] = "clrex",
        [INSN_LSE] = "lse",
        [INSN_CAS] = "cas",
        [INSN_LOAD_ACQUIRE] = "load-acquire",
        [INSN_STORE_RELEASE] = "store-release",
        [INSN_LOAD_UNPRIV] = "load-unprivileged",
        [INSN_STORE_UNPRIV] = "store-unprivileged",
        [INSN_DMB] = "dmb",
        [INSN_DSB] = "dsb",
        [INSN_ISB] = "isb",
        [INSN_SB] = "sb",
        [INSN_WFI] = "wfi",
        [INSN_WFE] = "wfe",
        [INSN_WFIT] = "wfit",
        [INSN_WFET] = "wfet",
        [INSN_YIELD] = "yield",
        [INSN_SEV] = "sev",
        [INSN_SEVL] = "sevl",
        [INSN_TLBI] = "tlbi",
        [INSN_IC] = "ic",
        [INSN_DC] = "dc",
        [INSN_AT] = "at",
        [INSN_SYS] = "sys",
        [INSN_MRS] = "mrs",
        [INSN_MSR] = "msr",
        [INSN_MSR_IMM] = "msr-immediate",
    };

    return (unsigned)kind < INSN_KINDS ? names[kind] : "unknown";
}
