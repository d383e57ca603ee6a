/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of the TLB, by name; see inject.h. Pure functions, any thread. */
#include "mmu/inject.h"

#include <string.h>

static const struct {
    const char *name, *text;
} injects[INJECTS] = {
#define INJECT_ROW(name, option, what) {option, what},
    INJECT_LIST(INJECT_ROW)
#undef INJECT_ROW
};

const char *inject_name(enum inject inject)
{
    return injects[inject].name;
}

const char *inject_text(enum inject inject)
{
    return injects[inject].text;
}

bool inject_parse(const char *text, unsigned *out_bits)
{
    unsigned bits = 0;

    for (;;) {
        size_t length = strcspn(text, ",");
        unsigned i = 0;

        while (i < INJECTS && (strncmp(injects[i].name, text, length) != 0 ||
                               injects[i].name[length] != '\0')) {
            i++;
        }
        if (i == INJECTS) {
            return false;
        }
        bits |= INJECT_BIT(i);
        if (text[length] == '\0') {
            *out_bits = bits;
            return true;
        }
        text += length + 1;
    }
}

bool inject_tlbi(unsigned bits, struct tlbi_op *op, bool is_own)
{
    if (bits & INJECT_BIT(INJECT_TLBI_NOTHING) ||
        (is_own && bits & INJECT_BIT(INJECT_OWN_NOT_FLUSHED))) {
        return false;
    }
    if (bits & INJECT_BIT(INJECT_TTL_OTHER) && op->ttl_level) {
        op->ttl_level = op->ttl_level == 1 ? 3 : op->ttl_level - 1;
    }
    if (bits & INJECT_BIT(INJECT_ASID_OTHER)) {
        op->asid ^= 1;
    }
    if (bits & INJECT_BIT(INJECT_TABLES_KEPT)) {
        op->last_level = true; /* also where the architecture has no such */
    }
    return true;
}
