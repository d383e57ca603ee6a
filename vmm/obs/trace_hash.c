/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash of a run's events; see trace_hash.h. The vCPUs' one thread. */
#include "obs/trace_hash.h"

#include "obs/mix.h"

static void add_event(void *opaque, const struct event *event)
{
    struct trace_hash *hash = opaque;
    uint64_t h = hash->hash;

    h = mix_word(h, (uint64_t)event->kind << 32 | event->vcpu);
    h = mix_word(h, event->pc);
    for (unsigned i = 0; i < EVENT_FIELDS; i++) {
        h = mix_word(h, event->a[i]);
    }
    hash->hash = h;
    hash->events++;
}

void trace_hash_attach(struct trace_hash *hash, struct events *ev)
{
    trace_hash_reset(hash);
    events_subscribe(ev, TRACE_HASH_EVENTS, add_event, hash);
}

void trace_hash_reset(struct trace_hash *hash)
{
    hash->hash = MIX_START;
    hash->events = 0;
}

uint64_t trace_hash_value(const struct trace_hash *hash)
{
    return mix_end(mix_word(hash->hash, hash->events));
}
