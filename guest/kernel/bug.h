/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Planted bugs: "bug=NAME[,NAME...]" on the command line switches on what
 * abi/bugs.inc describes. bug_is() is one load of a word that never changes
 * after boot, and a branch that is never taken without the switch.
 */
#ifndef KERNEL_BUG_H
#define KERNEL_BUG_H

#include "kernel/types.h"

enum bug {
#define BUG(id, name, exhibit, rules, what) BUG_##id,
#include "abi/bugs.inc"
#undef BUG
    BUGS /* how many there are */
};

extern uint64_t bug_bits; /* [init] BIT(enum bug) */

static inline bool bug_is(enum bug bug)
{
    return unlikely((bug_bits & BIT(bug)) != 0);
}

/* Reads the command line; a name that is not in the list is a panic. */
void bug_init(void);
/*
 * The bits of a list of names with commas between. False: out_wrong is the
 * first that is none.
 */
bool bug_parse(const char *list, uint64_t *out_bits, char *out_wrong,
               size_t size);
const char *bug_name(enum bug bug);

#endif
