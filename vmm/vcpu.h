/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One virtual CPU: registers in an engine, a modelled TLB, and what others
 * may ask of it.
 *
 * Fields are marked with who may touch them: [init] fixed before the threads
 * start; [vcpu] the thread that holds the vCPU (see vcpu_claim()); [atomic].
 */
#ifndef VMM_VCPU_H
#define VMM_VCPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "engine.h"
#include "insn/disas.h"
#include "insn/exclusive.h"
#include "mmu/inval.h"
#include "mmu/regime.h"
#include "mmu/tlb.h"
#include "obs/events.h"

struct vm;
struct exec_view;

/* Requests, posted by anybody with vcpu_request(). */
enum vcpu_request {
    VCPU_REQ_DRAIN = 1 << 0, /* apply the pending invalidations now */
    VCPU_REQ_IRQ = 1 << 1,   /* the interrupt signal rose: look at it */
    VCPU_REQ_YIELD = 1 << 2, /* the slice is over */
    VCPU_REQ_STOP = 1 << 3,  /* the machine stops or pauses */
    VCPU_REQ_LOOK = 1 << 4,  /* look code up again, see translate.c */
};

/* Why a vCPU gave its worker back. */
enum vcpu_outcome {
    VCPU_YIELDED, /* runnable */
    VCPU_PARKED,  /* WFI: runnable when the interrupt signal is up */
    VCPU_OFF,     /* PSCI CPU_OFF */
    VCPU_STOPPED, /* the machine stops */
};

/* What a trap leaves for the run loop to do once the engine has returned. */
enum vcpu_action {
    ACTION_NONE,
    ACTION_EXCEPTION, /* take `exception` */
    ACTION_PARK,
    ACTION_YIELD,
    ACTION_ERET, /* perform the exception return at `action_pc` */
    ACTION_OFF,
};

struct exception {
    uint32_t esr;
    gva_t far;
    gva_t elr;
    bool has_far;
};

/* What the fill callback could not do, for the run loop. */
struct refused_fill {
    bool valid;
    bool is_device; /* not RAM: emulate the access, or an external abort */
    bool views_full;
    bool is_table; /* a store to a translation table: record it */
    enum access_type type;
    enum walk_fault fault;
    uint8_t level;
    gva_t page; /* as the engine gave it */
    gpa_t pa;   /* is_device */
};

#define VCPU_VIEW_CACHE 256u
#define VIEW_NO_PAGE UINT64_MAX

struct view_cache_line {
    gva_t page; /* VIEW_NO_PAGE: empty */
    const struct exec_view *view;
};

struct vcpu {
    struct vm *vm;         /* [init] */
    unsigned id;           /* [init] */
    uint64_t mpidr;        /* [init] */
    struct engine *engine; /* [vcpu] */
    /*
     * [vcpu] The engine's. Its budget is what is left of the slice, set by the
     * worker that takes the vCPU; an interrupt gets a short one out of turn,
     * see sched_parallel.c.
     */
    struct engine_watch *watch;
    struct disas *disas;            /* [vcpu] */
    struct events *events;          /* [init] */
    struct vcpu_counters *counters; /* [vcpu] */

    /* Translation: system registers that the engine does not hold. [vcpu] */
    uint64_t sctlr, tcr, ttbr[2], cpacr;
    struct regime regime;
    struct tlb *tlb;
    /* [init] The vCPU that has the same `tlb`, or NULL: --hw-shared-tlb. */
    struct vcpu *sibling;
    bool borrows_tlb; /* [init] it is the sibling's */
    /*
     * Raised by every flush of the micro-TLB. An entry of the TLB whose
     * owner_tag is older cannot be in the micro-TLB any more.
     */
    uint64_t micro_epoch;
    /* Set by a claimer that changed `tlb`; the next run flushes. [vcpu] */
    bool micro_stale;
    /*
     * The engine keeps tags in its addresses (TBI), we do not: the micro-TLB
     * may hold a page under names that a drop of the page does not reach.
     */
    bool micro_tagged;
    struct refused_fill refused;
    struct view_cache_line view_cache[VCPU_VIEW_CACHE];

    /* Invalidation. */
    uv_mutex_t inval_lock;
    struct inval_queue *inval;   /* [lock: inval_lock] owed by this vCPU */
    uint64_t ticket;             /* [vcpu] of the last operation issued */
    uint64_t completed;          /* [vcpu] ticket that its last DSB completed */
    _Atomic uint64_t micro_seen; /* vm->micro generation acted upon */
    uint64_t icache_owed;        /* [vcpu] generation that its DSB waits for */

    struct exclusive_state monitor; /* [vcpu] */
    bool monitor_el0;               /* [vcpu] armed at EL0 */
    bool event_register;            /* [vcpu] for WFE */

    enum vcpu_action action;    /* [vcpu] */
    gva_t action_pc;            /* [vcpu] VIEW_NO_PAGE: where it is */
    gva_t access_pc;            /* [vcpu] of the last access that was trapped */
    struct exception exception; /* [vcpu] */
    bool trap_eret;             /* [vcpu] an interrupt waits to be unmasked */
    bool irq_unacknowledged;    /* [vcpu] taken, ICC_IAR1_EL1 not read yet */

    _Atomic uint32_t requests;
    _Atomic bool irq_line;
    /* The vCPU is held: by a worker that runs it, or by a claimer. */
    _Atomic bool held;

    uint32_t wfe_spins; /* [vcpu] WFEs since the last yield */

    /* Scheduling, see sched_parallel.c; sched_det.c keeps its own. */
    bool urged; /* [lock: sched->lock] its next slice is a short one */
    enum { SCHED_OFF, SCHED_QUEUED, SCHED_RUNNING, SCHED_PARKED } sched_state;
    struct vcpu *queue_next; /* [lock: sched->lock] */
    /*
     * A worker has taken it and will look at its requests before it lets go.
     * Not `held`: a claimer holds it too, and looks at nothing.
     */
    _Atomic bool on_worker; /* written under sched->lock */
    _Atomic bool powered;   /* ON for PSCI and for invalidations */

    /*
     * Written by CPU_ON while powered is false, under the lock, as is powered
     * then; read by the next run. The vCPU clears powered without the lock.
     */
    uv_mutex_t power_lock;
    gva_t boot_entry;
    uint64_t boot_context;
    _Atomic bool reset_pending;
};

/* --- before the machine runs --- */

struct vcpu *vcpu_new(struct vm *vm, unsigned id, GError **error);
void vcpu_free(struct vcpu *vcpu);
/* From now on both have the TLB of the first; deterministic engines. */
void vcpu_share_tlb(struct vcpu *first, struct vcpu *second);

/* --- any thread --- */

/* Posts requests (VCPU_REQ_*) and makes the vCPU notice them. Never lost. */
void vcpu_request(struct vcpu *vcpu, uint32_t requests);
/* Powers the vCPU on; it begins at entry, EL1, MMU off. False: it is on. */
bool vcpu_power_on(struct vcpu *vcpu, gva_t entry, uint64_t context);
/* Takes a vCPU that nobody runs; false: it is held. */
bool vcpu_claim(struct vcpu *vcpu);
void vcpu_release(struct vcpu *vcpu);

/* --- the holder's thread only --- */

/* Runs until something else is to be done with this vCPU. */
enum vcpu_outcome vcpu_run(struct vcpu *vcpu);
/* Leaves `action` for the run loop and stops the engine. */
void vcpu_stop_for(struct vcpu *vcpu, enum vcpu_action action);
/* An unmasked interrupt is waiting: stop so that it is taken here. */
void vcpu_check_irq(struct vcpu *vcpu);
/* The current block was left before pc `end`: count what was executed. */
void vcpu_block_ended_at(struct vcpu *vcpu, gva_t end);

static inline unsigned pstate_el(uint64_t pstate)
{
    return (unsigned)(pstate >> 2 & 3);
}

#define PSTATE_I (UINT64_C(1) << 7)
#define PSTATE_DAIF (UINT64_C(0xf) << 6)
#define PSTATE_PAN (UINT64_C(1) << 22)
#define PSTATE_UAO (UINT64_C(1) << 23)
#define PSTATE_EL1H UINT64_C(5)

#endif
