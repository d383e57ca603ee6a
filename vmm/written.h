/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which pages of RAM may differ from zero, and from the snapshot: noted when
 * a page is granted W and when the machine itself stores to it.
 */
#ifndef VMM_WRITTEN_H
#define VMM_WRITTEN_H

#include "vm_priv.h"

enum written_bits {
    WRITTEN_EVER = 1,
    WRITTEN_SINCE = 2, /* since the snapshot */
};

/* The slow half of written_note(). */
void snapshot_note_written(struct vm *vm, uint64_t page);

/* Before bytes of the page at pa change. Deterministic engines; else nothing.
 */
static inline void written_note(struct vm *vm, gpa_t pa)
{
    uint64_t page;

    if (!vm->written) {
        return;
    }
    page = (pa - vm->ram.base) >> MMU_PAGE_SHIFT;
    if (__builtin_expect(
            (vm->written[page] & vm->written_want) != vm->written_want, 0)) {
        snapshot_note_written(vm, page);
    }
}

#endif
