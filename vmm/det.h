/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The deterministic engines, `seeded` and `vtime`: all vCPUs on one thread,
 * every decision a choice (choice/choice.h), time virtual. This is what the
 * rest of the machine tells and asks them; sched_det.c schedules, liberty.c
 * takes the liberties of hardware.
 *
 * vm->det is NULL in `parallel`. Everything here runs on the one thread that
 * runs the vCPUs.
 */
#ifndef VMM_DET_H
#define VMM_DET_H

#include <stdbool.h>
#include <stdint.h>

#include "choice/choice.h"
#include "mmu/tlbi.h"
#include "mmu/walk.h"
#include "scheduler.h"
#include "vcpu.h"

struct det;
struct tlb_entry;

/* Sets vm->det. */
struct sched *sched_det_new(struct vm *vm);

/* --- the run: execution.c and the scheduler's own thread --- */

/* Until the machine stops, or det_pause_at()'s mark was written. */
void det_run(struct det *det);
/* NULL: plain answers, nothing recorded. without: vCPUs never scheduled. */
void det_set_stream(struct det *det, struct choice_stream *stream,
                    const uint64_t *without);
/* How many places (choice_stream.place) the stream must have. */
unsigned det_places(const struct det *det);
/* 0: no limit. Scheduling points from now on. */
void det_limit_steps(struct det *det, uint64_t steps);
/* det_run() returns when the guest has written this mark. */
void det_pause_at(struct det *det, uint64_t mark);
bool det_paused(const struct det *det);
/* This mark ends the run, with VM_OUTCOME_END. */
void det_end_at(struct det *det, uint64_t mark);
/* Scheduling points and preemptions since det_set_stream(). */
uint64_t det_steps(const struct det *det);
uint64_t det_preemptions(const struct det *det);
/* The virtual time of the machine: of the vCPU furthest ahead. */
uint64_t det_time_ns(const struct det *det);
/* The vCPU that runs or ran last. */
unsigned det_current(const struct det *det);

/*
 * The scheduler's own state for snapshots; bytes without pointers. Two equal
 * states need not have equal bytes.
 */
size_t det_state_size(const struct det *det);
void det_state_save(struct det *det, void *to);
void det_state_restore(struct det *det, const void *from);

/* --- scheduling points --- */

/*
 * The vCPU is about to perform this event with the instruction at pc; object
 * as in enum choice_event. True: another one goes first; the caller gives the
 * worker back with the PC still at pc, and comes here again later.
 */
bool det_before(struct vcpu *vcpu, enum choice_event event, uint64_t object,
                gva_t pc);
/* An event has happened; may leave VCPU_REQ_YIELD. */
void det_after(struct vcpu *vcpu, enum choice_event event, uint64_t object);
/* The vCPU takes an exception: what it was about to do is not done. */
void det_interrupted(struct vcpu *vcpu);
/* The guest wrote a mark. */
void det_mark(struct det *det, uint64_t value);
/* The guest asks for a number below n. */
unsigned det_guest_choice(struct det *det, unsigned n);

/* --- liberties of the hardware; liberty.c --- */

/* A TLBI was posted to the others: applied at once, or when they choose. */
void det_tlbi_posted(struct vcpu *issuer, const struct tlbi_op *op);
/*
 * From now on a TLBI is not performed on its issuer's own TLB either before its
 * DSB (R_BLDZX). Off: at once, which is the kind way.
 */
void det_defer_own(struct det *det);
bool det_defers_own(const struct det *det);
/*
 * A wide DSB for loads and stores, before det_dsb(): with remote-unit, what the
 * vCPU's units had begun by translations that others took away is over.
 */
void det_unit_dsb(struct vcpu *vcpu);
/* The vCPU's DSB with these effects. True: it waits, stop the engine. */
bool det_dsb(struct vcpu *vcpu, bool shows_stores, bool waits, gva_t pc,
             unsigned crm);
/* What this vCPU's hardware makes of the operation. */
void det_widen(struct vcpu *vcpu, struct tlbi_op *op);
/* The current ASID is about to change. */
void det_asid_changes(struct vcpu *vcpu);
/* A descriptor in memory was changed by a store of the guest. */
void det_pte_stored(struct vcpu *vcpu, gpa_t pa, uint64_t old, uint64_t now);
/* Hardware is about to update the descriptor itself. */
void det_pte_updates(struct vcpu *vcpu, gpa_t pa);
/* What this vCPU's walker sees where memory holds *inout. */
void det_pte_read(struct vcpu *vcpu, gpa_t pa, uint64_t *inout);
/* A walk ended at this descriptor; a translation of va may be hot. */
void det_walked(struct vcpu *vcpu, gva_t va, const struct walk_result *w);
/* This entry was inserted: others may translate some of its addresses. */
void det_inserted(struct vcpu *vcpu, const struct tlb_entry *entry);

#endif
