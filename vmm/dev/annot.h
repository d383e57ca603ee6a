/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The annotation device of guest/abi/annot.h: turns the guest's register
 * writes into calls and remembers where its counters are.
 */
#ifndef DEV_ANNOT_H
#define DEV_ANNOT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/annot.h"
#include "dev/bus.h"

struct annot;

/* Any may be NULL. Called with no lock held, on the writing CPU's thread; the
 * values are the guest's and unchecked. */
struct annot_callbacks {
    void (*exit_status)(void *opaque, unsigned cpu, uint64_t status);
    void (*panic)(void *opaque, unsigned cpu, uint64_t code);
    void (*mark)(void *opaque, unsigned cpu, uint64_t value);
    /* [start, end) and ANNOT_PROMISE_*: 0 where the guest did not say. */
    void (*op_begin)(void *opaque, unsigned cpu, uint64_t value, uint64_t start,
                     uint64_t end, unsigned promise);
    void (*op_end)(void *opaque, unsigned cpu, uint64_t value);
    /* Each write of either register; both values as they are now. */
    void (*counters)(void *opaque, unsigned cpu, uint64_t addr, uint64_t cpus);
    /* The guest saw the effect of a bug. */
    void (*finding)(void *opaque, unsigned cpu, uint64_t code);
    /* reg: ANNOT_REG_FRAME_*, IO_* or COPY_BEGIN. */
    void (*frame)(void *opaque, unsigned cpu, unsigned reg, uint64_t pa,
                  uint64_t pages);
    /* reg: ANNOT_REG_WALK_* or FLUSH_*. */
    void (*promise)(void *opaque, unsigned cpu, unsigned reg, uint64_t value);
    /* One of n alternatives, 0..n-1; n is 1..ANNOT_CHOOSE_MAX. NULL: 0. */
    unsigned (*choose)(void *opaque, unsigned cpu, unsigned n);
};

struct annot *annot_new(const struct annot_callbacks *callbacks, void *opaque);
void annot_free(struct annot *annot);
/* ANNOT_FEATURE_*; before the guest runs. */
void annot_set_features(struct annot *annot, uint64_t features);
bool annot_attach(struct annot *annot, struct bus *bus, GError **error);

/* --- any thread --- */

/* False while the guest has not set both. Unchecked guest values. */
bool annot_counters_location(const struct annot *annot, uint64_t *out_addr,
                             uint64_t *out_cpus);
bool annot_exit_status(const struct annot *annot, uint64_t *out_status);
bool annot_panic_code(const struct annot *annot, uint64_t *out_code);
uint64_t annot_unknown_accesses(const struct annot *annot);

/* --- while nobody else uses the device, and outside its callbacks --- */

/*
 * All that the guest can see or change, as plain bytes without pointers and
 * gaps: equal states give equal bytes. Statistics are not part of it.
 */
size_t annot_state_size(const struct annot *annot);
void annot_save(const struct annot *annot, void *to);
void annot_restore(struct annot *annot, const void *from);

/* --- any thread --- */

/* Name of a counter (index of counters.inc) and what it counts. */
const char *annot_counter_name(unsigned index);
const char *annot_counter_text(unsigned index);

#endif
