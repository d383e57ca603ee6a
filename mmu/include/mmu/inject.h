/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults put into the TLB machinery on purpose, so that the power of a test
 * suite can be measured: whatever passes with one of them does not see it.
 * Each is wrong in the architecture's eyes, but for those that are marked.
 *
 * Pure; the set of a machine never changes while it runs.
 */
#ifndef MMU_INJECT_H
#define MMU_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mmu/tlbi.h"

/* INJECT(name, "option", "what is wrong") */
#define INJECT_LIST(INJECT)                                                    \
    INJECT(TLBI_NOTHING, "tlbi-nothing", "a TLBI removes nothing anywhere")    \
    INJECT(BROADCAST_LOST, "broadcast-lost",                                   \
           "IS and OS operations reach their issuer only")                     \
    INJECT(FAULTING_CACHED, "faulting-cached",                                 \
           "translation and access flag faults are cached until a TLBI")       \
    INJECT(OWN_NOT_FLUSHED, "own-not-flushed",                                 \
           "a TLBI leaves its issuer's own TLB alone")                         \
    INJECT(WRONG_COMPLETER, "wrong-completer",                                 \
           "after anybody's DSB nobody waits for TLBIs issued before")         \
    INJECT(ISH_AS_NSH, "ish-as-nsh", "no DSB waits for other vCPUs")           \
    INJECT(NSH_AS_ISH, "nsh-as-ish",                                           \
           "a DSB NSH waits for other vCPUs (allowed)")                        \
    INJECT(TTL_OTHER, "ttl-other-level", "a level hint is read as another's")  \
    INJECT(ASID_OTHER, "asid-other", "the ASID of a TLBI is read as another")  \
    INJECT(TABLES_KEPT, "tables-kept", "no TLBI empties the walk cache")

enum inject {
#define INJECT_ENUM(name, option, what) INJECT_##name,
    INJECT_LIST(INJECT_ENUM)
#undef INJECT_ENUM
        INJECTS
};

#define INJECT_BIT(inject) (1u << (inject))

const char *inject_name(enum inject inject);
const char *inject_text(enum inject inject);
/* "NAME[,NAME]" to bits; false: one of them is none. */
bool inject_parse(const char *text, unsigned *out_bits);

/*
 * What becomes of an operation where it is applied; is_own: on its issuer's
 * TLB. False: nothing is to be done. Only to be asked when `bits` is not 0.
 */
bool inject_tlbi(unsigned bits, struct tlbi_op *op, bool is_own);

#endif
