/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the events of a machine to what the ledger (mmu/ledger.h) is told.
 * Pure but for the ledger: one thread, or whoever holds the ledger's lock
 * (ledger_watch.h), and that the thread of the event's vCPU.
 */
#ifndef VMM_LEDGER_FEED_H
#define VMM_LEDGER_FEED_H

#include "mmu/ledger.h"
#include "obs/events.h"

struct vm;

/* The kinds that all rules need; those that S8 and S10 do. */
#define LEDGER_FEED_BBM                                                        \
    (EVENT_BIT(EVENT_root_load) | EVENT_BIT(EVENT_walk) |                      \
     EVENT_BIT(EVENT_prefetch) | EVENT_BIT(EVENT_pte_store) |                  \
     EVENT_BIT(EVENT_pte_update) | EVENT_BIT(EVENT_tlbi) |                     \
     EVENT_BIT(EVENT_dsb_done) | EVENT_BIT(EVENT_frame_free) |                 \
     EVENT_BIT(EVENT_vcpu_stop))
#define LEDGER_FEED_ALL                                                        \
    (LEDGER_FEED_BBM | EVENT_BIT(EVENT_frame_alloc) |                          \
     EVENT_BIT(EVENT_io_begin) | EVENT_BIT(EVENT_copy_begin) |                 \
     EVENT_BIT(EVENT_op_begin) | EVENT_BIT(EVENT_op_end) |                     \
     EVENT_BIT(EVENT_fault) | EVENT_BIT(EVENT_irq_take) |                      \
     EVENT_BIT(EVENT_hit_stale) | EVENT_BIT(EVENT_soft_walk_begin) |           \
     EVENT_BIT(EVENT_soft_walk_end) | EVENT_BIT(EVENT_flush_ask) |             \
     EVENT_BIT(EVENT_flush_waited) | EVENT_BIT(EVENT_flush_served) |           \
     EVENT_BIT(EVENT_flush_resume) | EVENT_BIT(EVENT_frame_clean) |            \
     EVENT_BIT(EVENT_frame_drop) | EVENT_BIT(EVENT_isb))

void ledger_feed(struct ledger *ledger, struct vm *vm, const struct event *e);

/* For struct ledger_config: what is in the machine's memory. */
bool ledger_feed_read64(const struct vm *vm, gpa_t pa, uint64_t *out);

#endif
