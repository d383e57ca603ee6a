/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invalidation domain: who still owes which TLB invalidation to whom.
 *
 * A TLBI of vCPU p creates one pending operation per target. A target may
 * apply it at any later time; p's DSB, and nobody else's, waits until all have
 * (DDI 0487 M.a.a, R_YNJCP and, for p itself, R_BLDZX). So everything here is
 * kept by *issuer*: each one numbers its operations with rising tickets, and a
 * target acknowledges tickets, not "its queue".
 *
 * No locks, no atomics. A queue is shared by its target and all issuers: the
 * caller holds one lock per queue around every call on it. The domain at the
 * end is for a single thread.
 */
#ifndef MMU_INVAL_H
#define MMU_INVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mmu/tlbi.h"

/* As an item's issuer: the queue overflowed, this stands for all of it. */
#define INVAL_EVERYONE UINT32_MAX

struct inval_item {
    uint32_t issuer; /* or INVAL_EVERYONE; then op is VMALLE1 */
    uint64_t ticket; /* hand both back to inval_acknowledge() */
    struct tlbi_op op;
};

/* Operations that one target has not applied yet. */
struct inval_queue;

/* NULL when memory is short, or a number is 0. */
struct inval_queue *inval_queue_new(unsigned issuers, unsigned capacity);
void inval_queue_free(struct inval_queue *queue);

/*
 * Adds an operation. Tickets of one issuer must rise. When the ring is full,
 * all that is in it, and this one, become one flush of everything, which is
 * always allowed and still acknowledges every ticket. True when the queue was
 * empty before: the target needs a kick.
 */
bool inval_post(struct inval_queue *queue, uint32_t issuer, uint64_t ticket,
                const struct tlbi_op *op);

/*
 * The target takes the oldest item. Take, release the lock, apply, take the
 * lock, acknowledge: an item is owed until it is acknowledged. Acknowledge in
 * the order of taking, as a ticket stands for all the issuer's before it.
 */
bool inval_take(struct inval_queue *queue, struct inval_item *out);
/*
 * The same for the oldest one of this issuer, past older ones of others:
 * nothing orders what two issuers ask for. When the queue has overflowed, the
 * item that stands for all of it.
 */
bool inval_take_of(struct inval_queue *queue, uint32_t issuer,
                   struct inval_item *out);
/* Item `index` of those waiting, 0 the oldest, without taking it. */
bool inval_peek(const struct inval_queue *queue, unsigned index,
                struct inval_item *out);
void inval_acknowledge(struct inval_queue *queue, uint32_t issuer,
                       uint64_t ticket);

/* Every ticket of this issuer up to this one has been applied here. */
uint64_t inval_acknowledged(const struct inval_queue *queue, uint32_t issuer);
/* Has the issuer posted anything here that is not acknowledged? */
bool inval_owed(const struct inval_queue *queue, uint32_t issuer);
/* Items waiting, not counting those taken and not acknowledged. */
size_t inval_pending(const struct inval_queue *queue);
/* Times that the queue collapsed. */
uint64_t inval_overflows(const struct inval_queue *queue);
/* Same sizes only; false, and nothing done, otherwise. */
bool inval_queue_copy(struct inval_queue *to, const struct inval_queue *from);

/*
 * A checkpoint remembers what waits, what was taken and what was acknowledged;
 * a rollback makes it so again, as often as wanted. Both cost what changed
 * since the last one, next to nothing if nothing did. inval_overflows() goes
 * on: it tells what happened. False, and no checkpoint any more, when memory
 * is short.
 */
bool inval_checkpoint(struct inval_queue *queue);
/* Nothing without a checkpoint. */
void inval_rollback(struct inval_queue *queue);

/* --- one thread: n queues and the tickets of n issuers --- */

struct inval_domain;

struct inval_domain *inval_domain_new(unsigned vcpus, unsigned capacity);
void inval_domain_free(struct inval_domain *domain);

/*
 * Posts to every vCPU including the issuer (IS, OS), or to the issuer only
 * (local). Returns the ticket.
 */
uint64_t inval_domain_issue(struct inval_domain *domain, uint32_t issuer,
                            const struct tlbi_op *op);

typedef void inval_apply_fn(void *opaque, uint32_t target,
                            const struct tlbi_op *op);

/* Applies and acknowledges the target's oldest operation; false if none. */
bool inval_domain_apply_one(struct inval_domain *domain, uint32_t target,
                            inval_apply_fn *apply, void *opaque);

/*
 * Asked by a DSB ISH or wider *of the issuer*: has everything it issued been
 * applied everywhere? While false the DSB waits and targets must apply.
 */
bool inval_domain_complete(const struct inval_domain *domain, uint32_t issuer);
/* Asked by a DSB NSH of the issuer: applied on the issuer itself? */
bool inval_domain_complete_local(const struct inval_domain *domain,
                                 uint32_t issuer);

/* The issuer's whole DSB: applies, everywhere, until complete. */
void inval_domain_drain(struct inval_domain *domain, uint32_t issuer,
                        inval_apply_fn *apply, void *opaque);

struct inval_queue *inval_domain_queue(struct inval_domain *domain,
                                       uint32_t target);

#endif
