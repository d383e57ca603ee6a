/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event stream: names, consumers and dispatch. Depends on GLib for
 * memory. Dispatch runs on the thread of the emitting vCPU; everything that
 * it reads is fixed before the vCPUs start, except the sequence number.
 */
#include "obs/events.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>

#include "obs/sites.h"
#include "obs/stats.h"

struct consumer {
    event_fn fn;
    void *opaque;
};

struct events_private {
    _Atomic uint64_t seq;           /* [atomic] relaxed: only uniqueness */
    GArray *consumers[EVENT_KINDS]; /* [init] struct consumer */
    struct sites_shared *sites;     /* [init] NULL: no attribution */
};

static const char *const event_names[EVENT_KINDS] = {
#define EVENT(name, ...) [EVENT_##name] = #name,
#include "obs/events.inc"
#undef EVENT
};

static const char *const event_fields[EVENT_KINDS][EVENT_FIELDS + 1] = {
#define EVENT(name, ...) [EVENT_##name] = {__VA_ARGS__},
#include "obs/events.inc"
#undef EVENT
};

struct events *events_new(unsigned vcpus)
{
    struct events *ev;
    size_t bytes = (size_t)vcpus * sizeof(struct vcpu_counters);

    g_assert(vcpus > 0);
    ev = g_new0(struct events, 1);
    ev->priv = g_new0(struct events_private, 1);
    ev->vcpus = vcpus;
    ev->counters = aligned_alloc(_Alignof(struct vcpu_counters), bytes);
    if (!ev->counters) {
        g_error("out of memory for the counters of %u vCPUs", vcpus);
    }
    memset(ev->counters, 0, bytes);
    return ev;
}

void events_free(struct events *ev)
{
    if (!ev) {
        return;
    }
    for (unsigned k = 0; k < EVENT_KINDS; k++) {
        if (ev->priv->consumers[k]) {
            g_array_unref(ev->priv->consumers[k]);
        }
    }
    sites_shared_free(ev->priv->sites, ev);
    free(ev->counters);
    g_free(ev->priv);
    g_free(ev);
}

void events_subscribe(struct events *ev, uint64_t kinds, event_fn fn,
                      void *opaque)
{
    struct consumer consumer = {fn, opaque};

    for (unsigned k = 0; k < EVENT_KINDS; k++) {
        if (!(kinds & EVENT_BIT(k))) {
            continue;
        }
        if (!ev->priv->consumers[k]) {
            ev->priv->consumers[k] =
                g_array_new(FALSE, FALSE, sizeof(struct consumer));
        }
        g_array_append_val(ev->priv->consumers[k], consumer);
        ev->wanted |= EVENT_BIT(k);
    }
}

void events_set_clock(struct events *ev,
                      uint64_t (*now_ns)(void *opaque, unsigned vcpu),
                      void *opaque)
{
    ev->now_ns = now_ns;
    ev->clock_opaque = opaque;
}

void events_attribute(struct events *ev, const struct symbols *symbols)
{
    if (!ev->priv->sites) {
        ev->priv->sites = sites_shared_new(ev);
    }
    sites_shared_set_symbols(ev->priv->sites, symbols);
}

struct sites_shared *events_sites(const struct events *ev)
{
    return ev->priv->sites;
}

void event_dispatch(struct events *ev, unsigned vcpu, enum event_kind kind,
                    uint64_t pc, const uint64_t a[EVENT_FIELDS])
{
    const GArray *consumers = ev->priv->consumers[kind];
    struct event event = {
        .kind = kind,
        .vcpu = vcpu,
        .seq =
            atomic_fetch_add_explicit(&ev->priv->seq, 1, memory_order_relaxed) +
            1,
        .pc = pc,
    };

    memcpy(event.a, a, sizeof(event.a));
    for (guint i = 0; i < consumers->len; i++) {
        const struct consumer *c =
            &g_array_index(consumers, struct consumer, i);

        c->fn(c->opaque, &event);
    }
}

void events_sum(const struct events *ev, struct vcpu_counters *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned v = 0; v < ev->vcpus; v++) {
        const struct vcpu_counters *c = &ev->counters[v];

        for (unsigned k = 0; k < EVENT_KINDS; k++) {
            out->events[k] += c->events[k];
        }
#define COUNTER(name, what) out->name += c->name;
#include "obs/counters.inc"
#undef COUNTER
        for (unsigned k = 0; k < FLUSH_KINDS; k++) {
            out->flush[k] += c->flush[k];
        }
        for (unsigned k = 0; k < 16; k++) {
            out->dmb[k] += c->dmb[k];
        }
        for (unsigned k = 0; k < FAULT_CLASSES; k++) {
            out->faults[k] += c->faults[k];
        }
    }
}

/* --- names --- */

const char *event_name(enum event_kind kind)
{
    return (unsigned)kind < EVENT_KINDS ? event_names[kind] : "?";
}

const char *event_field(enum event_kind kind, unsigned index)
{
    if ((unsigned)kind >= EVENT_KINDS || index >= EVENT_FIELDS) {
        return NULL;
    }
    return event_fields[kind][index];
}

enum event_kind event_from_name(const char *name)
{
    g_autofree char *plain = g_strdelimit(g_strdup(name), "-", '_');
    unsigned k;

    for (k = 0; k < EVENT_KINDS; k++) {
        if (strcmp(event_names[k], plain) == 0) {
            break;
        }
    }
    return (enum event_kind)k;
}

const char *fault_class_name(enum fault_class c)
{
    static const char *const names[FAULT_CLASSES] = {
        [FAULT_NONE] = "none",
        [FAULT_TRANSLATION] = "translation",
        [FAULT_ADDRESS_SIZE] = "address_size",
        [FAULT_ACCESS_FLAG] = "access_flag",
        [FAULT_PERMISSION] = "permission",
        [FAULT_EXTERNAL] = "external",
        [FAULT_ALIGNMENT] = "alignment",
        [FAULT_UNDEFINED] = "undefined",
        [FAULT_SVC] = "svc",
        [FAULT_BREAKPOINT] = "breakpoint",
        [FAULT_OTHER] = "other",
    };

    return (unsigned)c < FAULT_CLASSES ? names[c] : "?";
}

/* ESR_EL1.{D,I}FSC, bits 5:0: the level is in bits 1:0 of the first four. */
static enum fault_class fault_class_from_fsc(unsigned fsc)
{
    switch (fsc >> 2) {
    case 0x0:
        return FAULT_ADDRESS_SIZE;
    case 0x1:
        return FAULT_TRANSLATION;
    case 0x2:
        return FAULT_ACCESS_FLAG;
    case 0x3:
        return FAULT_PERMISSION;
    case 0x4: /* 0x10: external abort, not on a walk */
    case 0x5: /* 0x14..0x17: external abort on a walk */
        return FAULT_EXTERNAL;
    case 0x8: /* 0x21 */
        return FAULT_ALIGNMENT;
    default:
        return FAULT_OTHER;
    }
}

enum fault_class fault_class_from_esr(uint64_t esr)
{
    switch (esr >> 26 & 0x3f) {
    case 0x00: /* unknown reason */
    case 0x0e: /* illegal execution state */
    case 0x18: /* trapped MSR, MRS or system instruction */
        return FAULT_UNDEFINED;
    case 0x15:
        return FAULT_SVC;
    case 0x20: /* instruction abort, lower and same level */
    case 0x21:
    case 0x24: /* data abort, lower and same level */
    case 0x25:
        return fault_class_from_fsc(esr & 0x3f);
    case 0x22: /* PC and SP alignment */
    case 0x26:
        return FAULT_ALIGNMENT;
    case 0x30: /* breakpoint, software step, watchpoint, BRK */
    case 0x31:
    case 0x32:
    case 0x33:
    case 0x34:
    case 0x35:
    case 0x3c:
        return FAULT_BREAKPOINT;
    default:
        return FAULT_OTHER;
    }
}

const char *tlbi_encoding_name(unsigned encoding)
{
    /* By CRm: 1 outer shareable, 3 inner shareable, 7 local. */
    static const char *const plain[3][8] = {
        {"VMALLE1OS", "VAE1OS", "ASIDE1OS", "VAAE1OS", NULL, "VALE1OS", NULL,
         "VAALE1OS"},
        {"VMALLE1IS", "VAE1IS", "ASIDE1IS", "VAAE1IS", NULL, "VALE1IS", NULL,
         "VAALE1IS"},
        {"VMALLE1", "VAE1", "ASIDE1", "VAAE1", NULL, "VALE1", NULL, "VAALE1"},
    };
    /* By CRm: 2 inner shareable, 5 outer shareable, 6 local. */
    static const char *const range[3][8] = {
        {NULL, "RVAE1IS", NULL, "RVAAE1IS", NULL, "RVALE1IS", NULL,
         "RVAALE1IS"},
        {NULL, "RVAE1OS", NULL, "RVAAE1OS", NULL, "RVALE1OS", NULL,
         "RVAALE1OS"},
        {NULL, "RVAE1", NULL, "RVAAE1", NULL, "RVALE1", NULL, "RVAALE1"},
    };
    unsigned op2 = encoding & 7;

    switch (encoding >> 3) {
    case 1:
        return plain[0][op2];
    case 2:
        return range[0][op2];
    case 3:
        return plain[1][op2];
    case 5:
        return range[1][op2];
    case 6:
        return range[2][op2];
    case 7:
        return plain[2][op2];
    default:
        return NULL;
    }
}

const char *barrier_name(unsigned crm)
{
    static const char *const names[16] = {
        "SSBB", "OSHLD", "OSHST", "OSH", "PSSBB", "NSHLD", "NSHST", "NSH",
        "R8",   "ISHLD", "ISHST", "ISH", "R12",   "LD",    "ST",    "SY",
    };

    return names[crm & 15];
}
