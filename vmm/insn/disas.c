// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The only user of Capstone. Capstone 4 and 5 number and name their AArch64
 * enums differently, so nothing here or outside uses an instruction id: the
 * mnemonic as text is the same in both.
 */
#include "insn/disas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

struct disas {
    csh handle;
    cs_insn *insn; /* room for one, reused by every call */
    uint64_t disagreements;
};

struct disas *disas_new(void)
{
    struct disas *d = calloc(1, sizeof(*d));

    if (!d) {
        return NULL;
    }
    if (cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &d->handle) !=
        CS_ERR_OK) {
        free(d);
        return NULL;
    }
    d->insn = cs_malloc(d->handle);
    if (!d->insn) {
        disas_free(d);
        return NULL;
    }
    return d;
}

void disas_free(struct disas *d)
{
    if (!d) {
        return;
    }
    if (d->insn) {
        cs_free(d->insn, 1);
    }
    cs_close(&d->handle);
    free(d);
}

static bool disas_one(struct disas *d, uint32_t word, uint64_t pc)
{
    /* A64 words are little-endian whatever the host is. */
    const uint8_t bytes[4] = {(uint8_t)word, (uint8_t)(word >> 8),
                              (uint8_t)(word >> 16), (uint8_t)(word >> 24)};
    const uint8_t *code = bytes;
    size_t size = sizeof(bytes);

    return cs_disasm_iter(d->handle, &code, &size, &pc, d->insn);
}

bool disas_mnemonic(struct disas *d, uint32_t word, char *out_mnemonic)
{
    if (!disas_one(d, word, 0)) {
        return false;
    }
    snprintf(out_mnemonic, DISAS_MNEMONIC_MAX, "%s", d->insn->mnemonic);
    return true;
}

/* "x3", "w3", "xzr"; 31 is no stack pointer here. */
static const char *reg_text(unsigned reg, bool is_x, char buf[8])
{
    if (reg == 31) {
        return is_x ? "xzr" : "wzr";
    }
    snprintf(buf, 8, "%c%u", is_x ? 'x' : 'w', reg);
    return buf;
}

/*
 * Atomic memory operations (LDADD ... SWP) and CAS of FEAT_LSE, which Capstone
 * 4 does not read and a kernel's page-table code is full of.
 */
static bool lse_text(uint32_t word, char *out_text, size_t size)
{
    static const char *const names[] = {"ldadd",  "ldclr",  "ldeor",
                                        "ldset",  "ldsmax", "ldsmin",
                                        "ldumax", "ldumin", "swp"};
    static const char *const orders[] = {"", "l", "a", "al"};
    static const char *const sizes[] = {"b", "h", "", ""};
    unsigned width = word >> 30, rn = word >> 5 & 31;
    bool is_cas = (word & UINT32_C(0x3fa07c00)) == UINT32_C(0x08a07c00);
    unsigned operation = word >> 12 & 15;
    unsigned order =
        is_cas ? (word >> 22 & 1) << 1 | (word >> 15 & 1) : word >> 22 & 3;
    char rs[8], rt[8], base[8];

    if (!is_cas && ((word & UINT32_C(0x3f200c00)) != UINT32_C(0x38200000) ||
                    operation > 8)) {
        return false;
    }
    snprintf(base, sizeof(base), rn == 31 ? "sp" : "x%u", rn);
    snprintf(out_text, size, "%s%s%s %s, %s, [%s]",
             is_cas ? "cas" : names[operation], orders[order], sizes[width],
             reg_text(word >> 16 & 31, width == 3, rs),
             reg_text(word & 31, width == 3, rt), base);
    return true;
}

void disas_text(struct disas *d, uint32_t word, uint64_t pc, char *out_text,
                size_t size)
{
    if (!disas_one(d, word, pc)) {
        if (lse_text(word, out_text, size)) {
            return;
        }
        snprintf(out_text, size, ".inst 0x%08x", (unsigned)word);
        return;
    }
    snprintf(out_text, size, "%s%s%s", d->insn->mnemonic,
             d->insn->op_str[0] ? " " : "", d->insn->op_str);
}

uint64_t disas_disagreements(const struct disas *d)
{
    return d->disagreements;
}

void disas_note_disagreement(struct disas *d)
{
    d->disagreements++;
}

void disas_version(char *out_text, size_t size)
{
    int major, minor;

    (void)cs_version(&major, &minor); /* the same two numbers, packed */
    snprintf(out_text, size, "%d.%d", major, minor);
}
