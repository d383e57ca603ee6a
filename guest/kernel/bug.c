/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of planted bugs and the command-line word that selects them. */
#include "kernel/bug.h"

#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/printk.h"

#define BUG_LIST_MAX 256

uint64_t bug_bits;

static const struct {
    const char *name, *what;
} bugs[BUGS] = {
#define BUG(id, name, exhibit, rules, what) {name, what},
#include "abi/bugs.inc"
#undef BUG
};

_Static_assert(BUGS <= 64, "one bit each in bug_bits");

const char *bug_name(enum bug bug)
{
    return bugs[bug].name;
}

static bool name_is(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && strncmp(name, text, len) == 0;
}

bool bug_parse(const char *list, uint64_t *out_bits, char *out_wrong,
               size_t size)
{
    uint64_t bits = 0;

    for (;;) {
        const char *comma = strchr(list, ',');
        size_t len = comma != NULL ? (size_t)(comma - list) : strlen(list);
        unsigned i = 0;

        while (i < BUGS && !name_is(bugs[i].name, list, len)) {
            i++;
        }
        if (i == BUGS) {
            strlcpy(out_wrong, list, min_u64(len + 1, size));
            return false;
        }
        bits |= BIT(i);
        if (comma == NULL) {
            *out_bits = bits;
            return true;
        }
        list = comma + 1;
    }
}

void bug_init(void)
{
    char list[BUG_LIST_MAX], wrong[64];

    if (bootargs_get("bug", list, sizeof(list)) == NULL ||
        bug_parse(list, &bug_bits, wrong, sizeof(wrong))) {
        return;
    }
    printk("The bugs that bug= can switch on, with commas between:\n");
    for (unsigned i = 0; i < BUGS; i++) {
        printk("  %s: %s\n", bugs[i].name, bugs[i].what);
    }
    panic("command line: bug=%s is none of the bugs listed above", wrong);
}
