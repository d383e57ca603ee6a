/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of TLBI, DSB and IPIs by issuing PC, and operation windows.
 *
 * Each vCPU has a small hash table (pc, kind) -> count and running totals by
 * class; its own thread writes both without a lock. A window is the
 * difference of the running totals at op_end and at op_begin. Only the call
 * numbers of operations are shared, so that "the first call" has a meaning
 * where several vCPUs make the same call.
 */
#include "obs/sites.h"

#include <stdatomic.h>
#include <string.h>
#include <glib.h>

#include "abi/annot.h"
#include "obs/stats.h"
#include "obs/symbols.h"

/*
 * A guest can issue barriers from as many addresses as it likes. Beyond this
 * many (pc, kind) pairs on one vCPU new ones are counted under pc 0.
 */
#define SITES_MAX 8192
#define SITES_FIRST_BITS 6

struct site {
    uint64_t pc;
    uint64_t count; /* 0: the slot is free */
    uint32_t flush;
    uint32_t site_class;
};

struct site_table {
    struct site *slots;
    unsigned bits, used;
};

/* Calls of one operation kind that ended on one vCPU. */
struct op_slot {
    bool open;
    uint64_t begin_ns;
    uint64_t last_number; /* of the call in s.last */
    bool has_first, has_range;
    struct op_counts begin;
    struct op_summary s;
};

struct op_windows {
    struct op_counts running;
    struct op_slot *slots[OP_KINDS]; /* made when first used */
};

struct sites_shared {
    const struct symbols *symbols;       /* [init] may be NULL */
    _Atomic uint64_t op_calls[OP_KINDS]; /* [atomic] relaxed: only a number */
};

struct sites_shared *sites_shared_new(struct events *ev)
{
    for (unsigned v = 0; v < ev->vcpus; v++) {
        struct site_table *t = g_new0(struct site_table, 1);

        t->bits = SITES_FIRST_BITS;
        t->slots = g_new0(struct site, 1u << t->bits);
        ev->counters[v].sites = t;
        ev->counters[v].windows = g_new0(struct op_windows, 1);
    }
    return g_new0(struct sites_shared, 1);
}

void sites_shared_free(struct sites_shared *shared, struct events *ev)
{
    if (!shared) {
        return;
    }
    for (unsigned v = 0; v < ev->vcpus; v++) {
        struct vcpu_counters *c = &ev->counters[v];

        for (unsigned k = 0; k < OP_KINDS; k++) {
            g_free(c->windows->slots[k]);
        }
        g_free(c->windows);
        g_free(c->sites->slots);
        g_free(c->sites);
        c->windows = NULL;
        c->sites = NULL;
    }
    g_free(shared);
}

void sites_shared_set_symbols(struct sites_shared *shared,
                              const struct symbols *symbols)
{
    if (!shared->symbols) {
        shared->symbols = symbols;
    }
}

/* --- classes --- */

enum site_class site_class_of(const char *function)
{
    static const struct {
        const char *text;
        bool is_prefix;
        enum site_class site_class;
    } table[] = {
        /*
         * The DSB ISH of a context switch completes the TLBIs of a task that
         * leaves the CPU. Linux and our guest have it in *switch_to*; a TTBR
         * change (switch_mm) is part of the same path.
         */
        {"switch", false, SITE_SWITCH},
        /*
         * A GICv3 driver orders memory before an SGI (DSB ISHST) and its own
         * register accesses (DSB SY); both come with every interrupt, and
         * flush nothing.
         */
        {"gic_", true, SITE_IRQ},
        {"gicv3_", true, SITE_IRQ},
        {"irq_", true, SITE_IRQ},
        {"handle_irq", true, SITE_IRQ},
        {"el1_irq", true, SITE_IRQ},
        {"el0_irq", true, SITE_IRQ},
        {"timer_", true, SITE_IRQ},
    };

    if (!function) {
        return SITE_OTHER;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        bool matches = table[i].is_prefix
                           ? g_str_has_prefix(function, table[i].text)
                           : strstr(function, table[i].text) != NULL;

        if (matches) {
            return table[i].site_class;
        }
    }
    return SITE_FLUSH;
}

const char *site_class_name(enum site_class c)
{
    static const char *const names[SITE_CLASSES] = {
        [SITE_FLUSH] = "flush",
        [SITE_SWITCH] = "switch",
        [SITE_IRQ] = "irq",
        [SITE_OTHER] = "other",
    };

    return (unsigned)c < SITE_CLASSES ? names[c] : "?";
}

static enum site_class site_classify(const struct sites_shared *shared,
                                     uint64_t pc, unsigned flush)
{
    struct symbol symbol;

    /*
     * An IPI is sent by the interrupt controller's driver on behalf of its
     * caller, so the driver's name says nothing about it.
     */
    if (flush == FLUSH_IPI || symbols_count(shared->symbols) == 0) {
        return SITE_FLUSH;
    }
    return site_class_of(
        symbols_find(shared->symbols, pc, &symbol) ? symbol.name : NULL);
}

/* --- the table --- */

static struct site *site_slot(const struct site_table *t, uint64_t pc,
                              unsigned flush)
{
    unsigned mask = (1u << t->bits) - 1;
    uint64_t h = (pc ^ (uint64_t)flush << 56) * UINT64_C(0x9e3779b97f4a7c15);
    unsigned i = (unsigned)(h >> (64 - t->bits));

    while (t->slots[i].count != 0 &&
           (t->slots[i].pc != pc || t->slots[i].flush != flush)) {
        i = (i + 1) & mask;
    }
    return &t->slots[i];
}

static void site_table_grow(struct site_table *t)
{
    struct site_table bigger = {
        .slots = g_new0(struct site, 2u << t->bits),
        .bits = t->bits + 1,
        .used = t->used,
    };

    for (unsigned i = 0; i < 1u << t->bits; i++) {
        if (t->slots[i].count != 0) {
            *site_slot(&bigger, t->slots[i].pc, t->slots[i].flush) =
                t->slots[i];
        }
    }
    g_free(t->slots);
    *t = bigger;
}

void event_site(struct events *ev, unsigned vcpu, uint64_t pc, unsigned flush,
                uint64_t n)
{
    const struct sites_shared *shared = events_sites(ev);
    struct vcpu_counters *c = &ev->counters[vcpu];
    struct site *site;

    if (n == 0) {
        return;
    }
    site = site_slot(c->sites, pc, flush);
    if (site->count == 0) {
        if (c->sites->used >= SITES_MAX && pc != 0) {
            event_site(ev, vcpu, 0, flush, n);
            return;
        }
        if (c->sites->used * 2 >= 1u << c->sites->bits) {
            site_table_grow(c->sites);
            site = site_slot(c->sites, pc, flush);
        }
        c->sites->used++;
        site->pc = pc;
        site->flush = flush;
        site->site_class = site_classify(shared, pc, flush);
    }
    site->count += n;
    c->windows->running.n[site->site_class][flush] += n;
}

static gint site_compare(gconstpointer a, gconstpointer b)
{
    const struct flush_site *x = a, *y = b;

    if (x->pc != y->pc) {
        return x->pc < y->pc ? -1 : 1;
    }
    return (x->flush > y->flush) - (x->flush < y->flush);
}

GArray *events_flush_sites(const struct events *ev)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct flush_site));
    guint kept = 0;

    for (unsigned v = 0; v < ev->vcpus; v++) {
        const struct site_table *t = ev->counters[v].sites;

        for (unsigned i = 0; t && i < 1u << t->bits; i++) {
            struct flush_site one = {
                .pc = t->slots[i].pc,
                .site_class = (enum site_class)t->slots[i].site_class,
                .flush = t->slots[i].flush,
                .count = t->slots[i].count,
            };

            if (one.count != 0) {
                g_array_append_val(all, one);
            }
        }
    }
    g_array_sort(all, site_compare);
    for (guint i = 0; i < all->len; i++) {
        struct flush_site *one = &g_array_index(all, struct flush_site, i);
        struct flush_site *last =
            kept ? &g_array_index(all, struct flush_site, kept - 1) : NULL;

        if (last && site_compare(last, one) == 0) {
            last->count += one->count;
        } else {
            g_array_index(all, struct flush_site, kept++) = *one;
        }
    }
    g_array_set_size(all, kept);
    return all;
}

char *flush_name(unsigned flush, char *buf, size_t size)
{
    const char *tlbi;

    if (flush >= FLUSH_IPI) {
        g_strlcpy(buf, "IPI", size);
    } else if (flush >= FLUSH_DSB(0)) {
        g_snprintf(buf, size, "DSB %s", barrier_name(flush - FLUSH_DSB(0)));
    } else if ((tlbi = tlbi_encoding_name(flush)) != NULL) {
        g_snprintf(buf, size, "TLBI %s", tlbi);
    } else {
        g_snprintf(buf, size, "TLBI C8_C%u_%u", flush >> 3, flush & 7);
    }
    return buf;
}

/* --- operation windows --- */

const char *op_kind_name(unsigned op)
{
    static const char *const names[ANNOT_OPS] = {
        [ANNOT_OP_MADVISE_PAGEOUT] = "madvise_pageout",
        [ANNOT_OP_MUNMAP] = "munmap",
        [ANNOT_OP_MPROTECT] = "mprotect",
        [ANNOT_OP_MADVISE_OTHER] = "madvise_other",
        [ANNOT_OP_EXIT_MM] = "exit_mm",
        [ANNOT_OP_FORK] = "fork",
        [ANNOT_OP_MREMAP] = "mremap",
    };

    return op < ANNOT_OPS && names[op] ? names[op] : "unknown";
}

static uint64_t now_ns(const struct events *ev, unsigned vcpu)
{
    return ev->now_ns ? ev->now_ns(ev->clock_opaque, vcpu)
                      : (uint64_t)g_get_monotonic_time() * 1000;
}

void event_window_begin(struct events *ev, unsigned vcpu, unsigned op)
{
    struct op_windows *w = ev->counters[vcpu].windows;

    if (!w->slots[op]) {
        w->slots[op] = g_new0(struct op_slot, 1);
    }
    /*
     * One that is still open was left by a task that moved to another vCPU,
     * where its end counts as broken; it is forgotten here.
     */
    w->slots[op]->open = true;
    w->slots[op]->begin = w->running;
    w->slots[op]->begin_ns = now_ns(ev, vcpu);
}

/* Folds `from` into the range [min, max]; an empty range takes its value. */
static void op_range_add(struct op_summary *into, bool *has_range,
                         const struct op_counts *from_min,
                         const struct op_counts *from_max)
{
    if (!*has_range) {
        into->min = *from_min;
        into->max = *from_max;
        *has_range = true;
        return;
    }
    for (unsigned c = 0; c < SITE_CLASSES; c++) {
        for (unsigned k = 0; k < FLUSH_KINDS; k++) {
            into->min.n[c][k] = MIN(into->min.n[c][k], from_min->n[c][k]);
            into->max.n[c][k] = MAX(into->max.n[c][k], from_max->n[c][k]);
        }
    }
}

static void op_counts_add(struct op_counts *into, const struct op_counts *n)
{
    for (unsigned c = 0; c < SITE_CLASSES; c++) {
        for (unsigned k = 0; k < FLUSH_KINDS; k++) {
            into->n[c][k] += n->n[c][k];
        }
    }
}

void event_window_end(struct events *ev, unsigned vcpu, unsigned op)
{
    struct sites_shared *shared = events_sites(ev);
    struct op_windows *w = ev->counters[vcpu].windows;
    struct op_slot *slot;
    uint64_t number;

    if (!w->slots[op]) {
        w->slots[op] = g_new0(struct op_slot, 1);
    }
    slot = w->slots[op];
    if (!slot->open) {
        slot->s.broken++;
        return;
    }
    slot->open = false;
    slot->s.calls++;
    slot->s.ns += now_ns(ev, vcpu) - slot->begin_ns;
    number = atomic_fetch_add_explicit(&shared->op_calls[op], 1,
                                       memory_order_relaxed);
    for (unsigned c = 0; c < SITE_CLASSES; c++) {
        for (unsigned k = 0; k < FLUSH_KINDS; k++) {
            slot->s.last.n[c][k] = w->running.n[c][k] - slot->begin.n[c][k];
        }
    }
    slot->last_number = number;
    op_counts_add(&slot->s.total, &slot->s.last);
    if (number == 0) {
        slot->has_first = true;
        slot->s.first = slot->s.last;
    } else {
        op_range_add(&slot->s, &slot->has_range, &slot->s.last, &slot->s.last);
    }
}

struct op_summary *events_op_summary(const struct events *ev, unsigned op)
{
    struct op_summary *sum = g_new0(struct op_summary, 1);
    uint64_t last_number = 0;
    bool has_range = false;

    for (unsigned v = 0; v < ev->vcpus; v++) {
        const struct op_windows *w = ev->counters[v].windows;
        const struct op_slot *slot = w && op < OP_KINDS ? w->slots[op] : NULL;

        if (!slot) {
            continue;
        }
        sum->calls += slot->s.calls;
        sum->ns += slot->s.ns;
        sum->broken += slot->s.broken;
        op_counts_add(&sum->total, &slot->s.total);
        if (slot->has_first) {
            sum->first = slot->s.first;
        }
        if (slot->s.calls && slot->last_number >= last_number) {
            last_number = slot->last_number;
            sum->last = slot->s.last;
        }
        if (slot->has_range) {
            op_range_add(sum, &has_range, &slot->s.min, &slot->s.max);
        }
    }
    if (sum->calls == 0 && sum->broken == 0) {
        g_clear_pointer(&sum, g_free);
    }
    return sum;
}
