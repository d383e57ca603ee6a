/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of the deterministic engines, for sched_det.c and liberty.c. */
#ifndef VMM_DET_PRIV_H
#define VMM_DET_PRIV_H

#include <uv.h>

#include "cost.h"
#include "det.h"
#include "hw.h"
#include "mmu/pte_buffer.h"
#include "vm_priv.h"

#define DET_NEVER UINT64_MAX
#define DET_HOT 8u
#define DET_WALKED 256u

enum det_state {
    DET_OFF,     /* powered off */
    DET_READY,   /* could run */
    DET_PARKED,  /* in WFI */
    DET_WAITING, /* in a DSB */
};

/* Plain data: copied as it is by snapshots. */
struct det_vcpu {
    enum det_state state;
    enum choice_event event; /* what it is about to do */
    uint64_t object;
    gva_t passed_pc; /* the event at this pc may happen; VIEW_NO_PAGE: none */
    /* Its clock is what its counters cost, plus this. Wraps. */
    uint64_t base_ps;
    uint64_t tlbi_done_ps; /* vtime: its TLBIs are applied everywhere */
    uint64_t timer_ps;     /* its earliest timer, or DET_NEVER */
    bool irq_pending;      /* the signal is up but not delivered */
    uint64_t irq_due;      /* seeded: a step; vtime: a time in ps */
    /* DET_WAITING */
    uint64_t wait_ticket, wait_until_step;
    gva_t wait_pc;
    uint32_t wait_crm;
    uint64_t wait_from_ps;
    uint64_t
        errata_ticket; /* repeat-tlbi: what its last DSB began to wait for */
};

/* Where translations change: candidates for prefetch and eviction. */
struct det_hot {
    gva_t va[DET_HOT];
    unsigned next, count;
};

struct det {
    struct sched base;
    struct vm *vm;                 /* [init] */
    bool vtime;                    /* [init] the policy; else seeded */
    bool defers_own;               /* [init] see det_defer_own() */
    unsigned cpus;                 /* [init] */
    const struct hw *hw;           /* [init] */
    const struct cost_table *cost; /* [init] */
    unsigned costly[EVENT_KINDS];  /* [init] kinds that cost something */
    unsigned costly_count;         /* [init] */

    struct choice_stream *stream; /* NULL: plain */
    const uint64_t *without;      /* vCPUs that never run, or NULL */
    struct choice_candidate *candidates;

    struct det_vcpu *v;
    struct vcpu *current; /* in the guest now, or NULL */
    struct vcpu *next;    /* chosen already, or NULL */
    unsigned last;        /* ran last */
    unsigned asking;      /* vCPU whose time is asked for */

    uint64_t now_ps;   /* seeded: of all; vtime: the latest one read */
    uint64_t slice_ps; /* seeded: current's clock when its slice began */
    uint64_t steps, step_limit;
    uint64_t preemptions;
    uint64_t first_timer_ps; /* the least of v[].timer_ps */
    unsigned waiting;        /* vCPUs in DET_WAITING */
    unsigned irqs_pending;   /* vCPUs with irq_pending */

    struct pte_buffer *hidden;       /* NULL unless pte-delay is on */
    struct pte_buffer *hidden_saved; /* of the snapshot */
    uint64_t hidden_since; /* step at which the oldest one was stored */
    struct det_hot hot;
    /* Descriptors that walks ended at, and the address they were for. */
    gpa_t walked_pa[DET_WALKED];
    gva_t walked_va[DET_WALKED];

    uint64_t pause_mark, end_mark;
    bool pauses, ends, paused;

    uv_thread_t thread;
    bool started;
};

/* Virtual time of one vCPU. */
uint64_t det_clock_ps(const struct det *det, unsigned id);
/* What `now` is for whoever runs. */
uint64_t det_now_ps(const struct det *det, unsigned id);

/*
 * Where choices are asked, beside by whom. Events are the vCPU's own doing:
 * its 7th stays its 7th whatever others do. How often it spins, or how its
 * quanta fall, is not, so those are counted apart.
 */
enum det_place {
    DET_AT_EVENT,
    DET_AT_QUANTUM,
    DET_AT_SPIN,
    DET_AT_REST, /* it waits, stopped or begins a slice */
    DET_PLACES
};

static inline void det_at(struct det *det, unsigned id, enum det_place place)
{
    if (det->stream) {
        det->stream->place = id * DET_PLACES + place;
    }
}

static inline unsigned det_choice(struct det *det, enum choice_kind kind,
                                  unsigned n)
{
    return det->stream && n > 1 ? choice(det->stream, kind, n) : 0;
}

/* Answers for a liberty by its mode: never, drawn, or as cruel as can be. */
static inline unsigned det_liberty(struct det *det, enum hw_knob knob,
                                   enum choice_kind kind, unsigned n)
{
    switch (det->hw->mode[knob]) {
    case HW_OFF:
        return 0;
    case HW_RANDOM:
        return det_choice(det, kind, n);
    case HW_ON:
        return n - 1;
    }
    return 0;
}

/* --- liberty.c --- */

/* At each scheduling point, before the event of this vCPU. */
void liberty_at_point(struct det *det, struct vcpu *vcpu,
                      enum choice_event event);
/* Applies all that the vCPU owes. */
void liberty_apply(struct det *det, struct vcpu *target);
/* The vCPU may see from now on what others have stored by now. */
void liberty_observe(struct det *det, struct vcpu *vcpu);
/* Makes everybody apply what this waiting vCPU waits for. */
void liberty_force(struct det *det, struct vcpu *issuer);

/* --- det_time.c --- */

void det_clock_at_least(struct det *det, unsigned id, uint64_t ps);
/* A vCPU that waited can go on. */
void det_set_ready(struct det *det, struct vcpu *vcpu);
/* Raises the interrupt signal that was held back. */
void det_deliver(struct det *det, struct vcpu *vcpu);
/* What has become due by now, for the vCPU that runs and, seeded, for all. */
void det_deliver_due(struct det *det, unsigned id);
void det_fire_timer(struct det *det, unsigned id);
/* As struct sched_ops. */
void det_irq(struct sched *base, struct vcpu *vcpu, bool level);
void det_timer_changed(struct sched *base, unsigned cpu);
uint64_t det_now_ticks(struct sched *base);

/* --- det_points.c --- */

bool det_may_run(const struct det *det, unsigned id);
/*
 * Seeded: chooses among those that can run, `self` first or last in the list.
 * NULL: nobody can.
 */
struct vcpu *det_choose(struct det *det, unsigned self, bool self_first);
/* vtime: the READY vCPU furthest behind, the lowest number of equals. */
struct vcpu *det_furthest_behind(const struct det *det, uint64_t *out_ps);
/* vtime: when something wakes a parked vCPU, or DET_NEVER. */
uint64_t det_wakes_at(const struct det_vcpu *it);
/* vtime: wakes those whose interrupt or timer comes until then. */
void det_wake_until(struct det *det, uint64_t until_ps);
void det_count_step(struct det *det);
/* Blocks of the next quantum. */
uint32_t det_new_budget(struct det *det);
/* As struct sched_ops. */
void det_quantum_over(struct sched *base, struct vcpu *vcpu);
bool det_spin(struct sched *base, struct vcpu *vcpu);

/* --- sched_det.c --- */

/* A DSB no longer waits. */
void det_waited(struct det *det, struct vcpu *vcpu);

#endif
