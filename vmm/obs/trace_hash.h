/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One number for a whole run: a hash over every event, in order, but `hit` and
 * `block`, which depend on the engine and on who listens. Sequence numbers are
 * left out, since they depend on who listens too. Deterministic engines only.
 */
#ifndef OBS_TRACE_HASH_H
#define OBS_TRACE_HASH_H

#include <stdint.h>

#include "obs/events.h"

struct trace_hash {
    uint64_t hash;   /* so far */
    uint64_t events; /* how many went in */
};

#define TRACE_HASH_EVENTS                                                      \
    (EVENT_ALL & ~EVENT_BIT(EVENT_hit) & ~EVENT_BIT(EVENT_block))

/* Subscribes; `hash` must outlive ev. Before vm_new(). */
void trace_hash_attach(struct trace_hash *hash, struct events *ev);
/* Begins again, for another run of the same machine. */
void trace_hash_reset(struct trace_hash *hash);
uint64_t trace_hash_value(const struct trace_hash *hash);

#endif
