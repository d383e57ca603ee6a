/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event stream and the machine counters that it feeds.
 *
 * Emitting costs one add to a line that only this vCPU writes; consumers are
 * called only for kinds that somebody subscribed to. Consumers run on the
 * thread of the emitting vCPU, several at once: they lock for themselves.
 */
#ifndef OBS_EVENTS_H
#define OBS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct symbols;

enum event_kind {
#define EVENT(name, ...) EVENT_##name,
#include "obs/events.inc"
#undef EVENT
    EVENT_KINDS
};

_Static_assert(EVENT_KINDS < 64, "the wanted mask has 64 bits");

#define EVENT_FIELDS 6
#define EVENT_BIT(kind) (UINT64_C(1) << (kind))
#define EVENT_ALL (EVENT_BIT(EVENT_KINDS) - 1)

struct event {
    enum event_kind kind;
    uint32_t vcpu;
    uint64_t seq; /* total order of dispatched events of this run, from 1 */
    uint64_t pc;
    uint64_t a[EVENT_FIELDS]; /* meaning: events.inc */
};

/* How the counters split the synchronous exceptions. */
enum fault_class {
    FAULT_NONE,
    FAULT_TRANSLATION,
    FAULT_ADDRESS_SIZE,
    FAULT_ACCESS_FLAG,
    FAULT_PERMISSION,
    FAULT_EXTERNAL,
    FAULT_ALIGNMENT,
    FAULT_UNDEFINED,
    FAULT_SVC,
    FAULT_BREAKPOINT,
    FAULT_OTHER,
    FAULT_CLASSES
};

/* Who issued a TLBI, a DSB or an IPI, told from the symbol of its PC. */
enum site_class {
    SITE_FLUSH,  /* a function that is none of those below */
    SITE_SWITCH, /* the context switch */
    SITE_IRQ,    /* interrupt entry and the interrupt controller's driver */
    SITE_OTHER,  /* no symbol of the kernel: user programs, unknown code */
    SITE_CLASSES
};

/*
 * One index for what a flush is made of: a TLBI encoding (0..127), a DSB's
 * CRm (128..143), or an IPI (144, one per target).
 */
#define FLUSH_TLBI(encoding) ((unsigned)(encoding)&127u)
#define FLUSH_DSB(crm) (128u + ((unsigned)(crm)&15u))
#define FLUSH_IPI 144u
#define FLUSH_KINDS 145u

struct site_table;
struct op_windows;

/* One vCPU's counters. Written by the thread that runs it, nobody else. */
struct vcpu_counters {
    uint64_t events[EVENT_KINDS];
#define COUNTER(name, what) uint64_t name;
#include "obs/counters.inc"
#undef COUNTER
    uint64_t flush[FLUSH_KINDS]; /* by FLUSH_TLBI, FLUSH_DSB, FLUSH_IPI */
    uint64_t dmb[16];            /* by CRm */
    uint64_t faults[FAULT_CLASSES];
    struct site_table *sites;   /* NULL unless attribution is on */
    struct op_windows *windows; /* likewise */
} __attribute__((aligned(128)));

typedef void (*event_fn)(void *opaque, const struct event *event);

struct events_private;

struct events {
    uint64_t wanted; /* [init] kinds with at least one consumer */
    unsigned vcpus;  /* [init] */
    struct vcpu_counters *counters; /* [vcpu] one per vCPU */
    /* [init] The vCPU's time in ns; NULL: the host's. See events_set_clock().
     */
    uint64_t (*now_ns)(void *opaque, unsigned vcpu);
    void *clock_opaque;
    struct events_private *priv;
};

/* --- before vm_run() only --- */

struct events *events_new(unsigned vcpus);
void events_free(struct events *ev);

/* kinds: EVENT_BIT()s. fn runs on the vCPUs' threads. */
void events_subscribe(struct events *ev, uint64_t kinds, event_fn fn,
                      void *opaque);

/* What the time of operation windows is: virtual time, where there is one. */
void events_set_clock(struct events *ev,
                      uint64_t (*now_ns)(void *opaque, unsigned vcpu),
                      void *opaque);

/*
 * Counts TLBI, DSB and IPIs by issuing PC and keeps operation windows. The
 * symbols (may be NULL: all is SITE_FLUSH) stay the caller's and must outlive
 * ev. Idempotent; the first symbols that are not NULL count.
 */
void events_attribute(struct events *ev, const struct symbols *symbols);

/* --- any thread --- */

const char *event_name(enum event_kind kind);
/* NULL after the last field. */
const char *event_field(enum event_kind kind, unsigned index);
/* EVENT_KINDS: no such name. '-' and '_' are the same. */
enum event_kind event_from_name(const char *name);
const char *fault_class_name(enum fault_class c);
enum fault_class fault_class_from_esr(uint64_t esr);
/* "VALE1IS"; NULL for an encoding that names no EL1 TLBI. */
const char *tlbi_encoding_name(unsigned encoding);
/* "ISH", "SY", "ISHST"...; "R8" and "R12" for the two unnamed ones. */
const char *barrier_name(unsigned crm);

/* --- the vCPU's own thread only --- */

void event_dispatch(struct events *ev, unsigned vcpu, enum event_kind kind,
                    uint64_t pc, const uint64_t a[EVENT_FIELDS]);
void event_site(struct events *ev, unsigned vcpu, uint64_t pc, unsigned flush,
                uint64_t n);
void event_window_begin(struct events *ev, unsigned vcpu, unsigned op);
void event_window_end(struct events *ev, unsigned vcpu, unsigned op);

static inline struct vcpu_counters *events_counters(struct events *ev,
                                                    unsigned vcpu)
{
    return &ev->counters[vcpu];
}

static inline bool event_wanted(const struct events *ev, enum event_kind kind)
{
    return __builtin_expect((ev->wanted & EVENT_BIT(kind)) != 0, 0);
}

/*
 * The general emitter: event_emit(ev, vcpu, EVENT_fill, pc, va, asid, ...).
 * Fields that are left out are 0. TLBI, DSB, DMB, IPI, fault and op events
 * have emitters of their own below, which keep the finer counters too.
 */
#define event_emit(ev, vcpu, kind, pc, ...)                                    \
    do {                                                                       \
        struct events *event_ev_ = (ev);                                       \
        unsigned event_vcpu_ = (vcpu);                                         \
        enum event_kind event_kind_ = (kind);                                  \
        event_ev_->counters[event_vcpu_].events[event_kind_]++;                \
        if (event_wanted(event_ev_, event_kind_)) {                            \
            const uint64_t event_a_[EVENT_FIELDS] = {__VA_ARGS__};             \
            event_dispatch(event_ev_, event_vcpu_, event_kind_, (pc),          \
                           event_a_);                                          \
        }                                                                      \
    } while (0)

static inline void event_count_flush(struct events *ev, unsigned vcpu,
                                     uint64_t pc, unsigned flush, uint64_t n)
{
    struct vcpu_counters *c = &ev->counters[vcpu];

    c->flush[flush] += n;
    if (__builtin_expect(c->sites != 0, 0)) {
        event_site(ev, vcpu, pc, flush, n);
    }
}

/* A TLBI was executed at pc. ticket: what the issuer's DSB waits for. */
static inline void event_tlbi(struct events *ev, unsigned vcpu, uint64_t pc,
                              unsigned crm, unsigned op2, uint64_t operand,
                              uint64_t va, uint64_t asid, uint64_t bytes,
                              uint64_t ticket)
{
    unsigned encoding = (crm << 3 | op2) & 127u;

    event_count_flush(ev, vcpu, pc, FLUSH_TLBI(encoding), 1);
    event_emit(ev, vcpu, EVENT_tlbi, pc, encoding, operand, va, asid, bytes,
               ticket);
}

/*
 * A DSB began at pc: once per executed instruction, however long it waits.
 * event_dsb_done() follows for each, also where the machine stops meanwhile,
 * so that both count the same.
 */
static inline void event_dsb(struct events *ev, unsigned vcpu, uint64_t pc,
                             unsigned crm, uint64_t owed, uint64_t ticket)
{
    event_count_flush(ev, vcpu, pc, FLUSH_DSB(crm), 1);
    event_emit(ev, vcpu, EVENT_dsb, pc, crm & 15u, owed, ticket);
}

static inline void event_dsb_done(struct events *ev, unsigned vcpu, uint64_t pc,
                                  unsigned crm, uint64_t wait_ns,
                                  uint64_t ticket)
{
    event_emit(ev, vcpu, EVENT_dsb_done, pc, crm & 15u, wait_ns, ticket);
}

static inline void event_dmb(struct events *ev, unsigned vcpu, unsigned crm)
{
    ev->counters[vcpu].dmb[crm & 15u]++;
}

/* ICC_SGI1R_EL1 was written at pc and reached `targets` vCPUs. */
static inline void event_ipi_send(struct events *ev, unsigned vcpu, uint64_t pc,
                                  uint64_t sgi1r, unsigned intid,
                                  unsigned targets)
{
    ev->counters[vcpu].ipis_sent += targets;
    event_count_flush(ev, vcpu, pc, FLUSH_IPI, targets);
    event_emit(ev, vcpu, EVENT_ipi_send, pc, sgi1r, intid, targets);
}

/* A synchronous exception is taken to EL1 from pc. */
static inline void event_fault(struct events *ev, unsigned vcpu, uint64_t pc,
                               uint64_t esr, uint64_t far, unsigned from_el)
{
    enum fault_class c = fault_class_from_esr(esr);

    ev->counters[vcpu].faults[c]++;
    event_emit(ev, vcpu, EVENT_fault, pc, c, esr, far, from_el);
}

/* op: the kind that the guest wrote to the annotation device. */
struct event_op {
    uint64_t kind, start, end, promise, task;
};

static inline void event_op_begin(struct events *ev, unsigned vcpu, uint64_t pc,
                                  struct event_op op)
{
    event_emit(ev, vcpu, EVENT_op_begin, pc, op.kind, op.start, op.end,
               op.promise, op.task);
    if (ev->counters[vcpu].windows) {
        event_window_begin(ev, vcpu, op.kind < 64 ? (unsigned)op.kind : 0);
    }
}

static inline void event_op_end(struct events *ev, unsigned vcpu, uint64_t pc,
                                struct event_op op)
{
    if (ev->counters[vcpu].windows) {
        event_window_end(ev, vcpu, op.kind < 64 ? (unsigned)op.kind : 0);
    }
    event_emit(ev, vcpu, EVENT_op_end, pc, op.kind, op.task);
}

#endif
