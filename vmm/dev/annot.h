/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The annotation device of guest/abi/annot.h: turns the guest's register
 * writes into calls and remembers where its counters are.
 */
#ifndef DEV_ANNOT_H
#define DEV_ANNOT_H

#include <glib.h>
#include <stdbool.h>
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
    void (*op_begin)(void *opaque, unsigned cpu, uint64_t kind);
    void (*op_end)(void *opaque, unsigned cpu, uint64_t kind);
    /* Each write of either register; both values as they are now. */
    void (*counters)(void *opaque, unsigned cpu, uint64_t addr, uint64_t cpus);
};

struct annot *annot_new(const struct annot_callbacks *callbacks, void *opaque);
void annot_free(struct annot *annot);
bool annot_attach(struct annot *annot, struct bus *bus, GError **error);

/* --- any thread --- */

/* False while the guest has not set both. Unchecked guest values. */
bool annot_counters_location(const struct annot *annot, uint64_t *out_addr,
                             uint64_t *out_cpus);
bool annot_exit_status(const struct annot *annot, uint64_t *out_status);
bool annot_panic_code(const struct annot *annot, uint64_t *out_code);
uint64_t annot_unknown_accesses(const struct annot *annot);

/* Name of a counter (index of counters.inc) and what it counts. */
const char *annot_counter_name(unsigned index);
const char *annot_counter_text(unsigned index);

#endif
