/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A whole machine remembered, inside the process, to be put back many times.
 *
 * Taking one clears the exclusive monitors, empties the micro-TLBs and lets
 * the instruction caches look again, all of which the architecture allows at
 * any time; a restore does the same. So a run after a restore and the run
 * after the taking are the same run. Statistics go on.
 *
 * Deterministic engines, on the thread that runs the vCPUs, while none of them
 * is in the guest.
 */
#ifndef VMM_SNAPSHOT_H
#define VMM_SNAPSHOT_H

#include <stdint.h>
#include <glib.h>

struct snapshot;
struct vm;

/* One at a time. NULL: no memory. */
struct snapshot *snapshot_take(struct vm *vm, GError **error);
void snapshot_restore(struct snapshot *snapshot);
void snapshot_free(struct snapshot *snapshot);

/* Pages that were written since the last restore. */
unsigned snapshot_dirty_pages(const struct snapshot *snapshot);

/* Called when a page of RAM turns out to be a translation table. */
void snapshot_note_table(struct snapshot *snapshot, uint64_t page);

/* A hash of all that the guest could see: registers, RAM, devices, TLBs. */
uint64_t vm_state_hash(struct vm *vm);

#endif
