/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics of one run: the totals that the machine hands over at its end,
 * the JSON object made of them, and the counts of operation windows.
 * Everything here runs after the vCPU threads were joined.
 */
#ifndef OBS_STATS_H
#define OBS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>
#include "obs/events.h"

struct symbols;
struct vm_config;

/*
 * What vm_collect() fills in. Pointers marked "borrowed" stay valid as long
 * as the events and the configuration of the run do.
 */
struct vm_totals {
    const struct vm_config *config; /* borrowed */
    struct events *events;          /* borrowed: the machine's counters */
    const char *outcome;            /* a constant: "off", "panic", ... */
    bool has_exit_status;
    int exit_status;     /* of the guest's init */
    uint64_t panic_code; /* what the guest wrote to PANIC, or 0 */
    uint64_t wall_ns;    /* host time from the first to the last instruction */
    uint64_t guest_ns;   /* the guest's counter: virtual where it is */
    uint64_t instructions;  /* all vCPUs */
    unsigned workers;       /* threads that ran vCPUs */
    bool console_midline;   /* the console's last byte was no newline */
    char kernel_sha256[65]; /* "" if not known */
    unsigned guest_cpus; /* entries in guest; 0: the guest gave no counters */
    uint64_t *guest;     /* [cpu * guest_counter_count() + i], g_free'd */
};

void vm_totals_fini(struct vm_totals *totals);

/* --- the guest's own counters (guest/abi/counters.inc) --- */

unsigned guest_counter_count(void);
const char *guest_counter_name(unsigned index);
/* Index of a name, or -1. */
int guest_counter_index(const char *name);
/* Bytes of one CPU's entry (struct annot_counters) in guest RAM. */
size_t guest_counter_stride(void);
/*
 * Copies `cpus` entries of a guest array into totals->guest. The caller has
 * checked that array has cpus * guest_counter_stride() readable bytes.
 */
void vm_totals_set_guest(struct vm_totals *totals, const void *array,
                         unsigned cpus);
uint64_t vm_totals_guest_sum(const struct vm_totals *totals, unsigned index);

/* --- operation windows --- */

#define OP_KINDS 64

struct op_counts {
    uint64_t n[SITE_CLASSES][FLUSH_KINDS];
};

/* Calls of one kind over all vCPUs. min and max: calls 2..n. */
struct op_summary {
    uint64_t calls;
    uint64_t ns;     /* time inside, all calls: host, or virtual */
    uint64_t broken; /* ended on another vCPU than they began */
    struct op_counts first, last, min, max, total;
};

/* "madvise_pageout"; a number's text where the kind has no name. */
const char *op_kind_name(unsigned op);
/* NULL: no window of this kind was closed. g_free() it. */
struct op_summary *events_op_summary(const struct events *ev, unsigned op);

/* --- sites --- */

struct flush_site {
    uint64_t pc;
    enum site_class site_class;
    unsigned flush; /* FLUSH_TLBI, FLUSH_DSB or FLUSH_IPI index */
    uint64_t count; /* all vCPUs */
};

/* Array of struct flush_site sorted by pc then flush. */
GArray *events_flush_sites(const struct events *ev);
/* "TLBI VALE1IS", "DSB ISH", "IPI". */
char *flush_name(unsigned flush, char *buf, size_t size);
const char *site_class_name(enum site_class c);

/* --- output --- */

/* Sum over the vCPUs (sites and windows are NULL in out). */
void events_sum(const struct events *ev, struct vcpu_counters *out);
/* One line without the newline. symbols may be NULL. g_free() it. */
char *stats_json(const struct vm_totals *totals, const struct symbols *symbols);
/* Adds the line to path, or to stdout for "-". */
bool stats_write(const struct vm_totals *totals, const struct symbols *symbols,
                 const char *path, GError **error);
/* Short aligned text, 80 columns. g_free() it. */
char *stats_summary(const struct vm_totals *totals);

#endif
