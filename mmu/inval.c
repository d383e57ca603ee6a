/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invalidation domain. See the header for the rule and for locking.
 *
 * The life of an operation at one target:
 *
 *   posted ----> taken ----> acknowledged
 *   (issuer)     (target)    (target, after it has applied it)
 *
 * Per issuer three tickets tell how far each step got. Items leave in order
 * of arrival, so one issuer's tickets rise at each step, and "acknowledged" is
 * the whole answer to that issuer's DSB.
 */
#include "mmu/inval.h"

#include <stdlib.h>
#include <string.h>

struct issuer_state {
    uint64_t posted;
    uint64_t acknowledged;
    uint64_t flushed; /* `posted` when the last collapsed item was taken */
};

struct inval_queue {
    unsigned issuers;
    unsigned capacity;
    unsigned head, count; /* ring[head] is the oldest */
    bool collapsed;       /* one pending flush of everything; count is 0 */
    uint64_t flushes;     /* collapsed items taken: their ticket */
    uint64_t overflows;
    struct issuer_state *state;
    struct inval_item *ring;
};

struct inval_queue *inval_queue_new(unsigned issuers, unsigned capacity)
{
    struct inval_queue *queue;

    if (issuers == 0 || capacity == 0) {
        return NULL;
    }
    queue = calloc(1, sizeof(*queue));
    if (!queue) {
        return NULL;
    }
    queue->issuers = issuers;
    queue->capacity = capacity;
    queue->state = calloc(issuers, sizeof(*queue->state));
    queue->ring = calloc(capacity, sizeof(*queue->ring));
    if (!queue->state || !queue->ring) {
        inval_queue_free(queue);
        return NULL;
    }
    return queue;
}

void inval_queue_free(struct inval_queue *queue)
{
    if (queue) {
        free(queue->state);
        free(queue->ring);
        free(queue);
    }
}

bool inval_queue_copy(struct inval_queue *to, const struct inval_queue *from)
{
    if (to->issuers != from->issuers || to->capacity != from->capacity) {
        return false;
    }
    to->head = from->head;
    to->count = from->count;
    to->collapsed = from->collapsed;
    to->flushes = from->flushes;
    to->overflows = from->overflows;
    memcpy(to->state, from->state, from->issuers * sizeof(*to->state));
    memcpy(to->ring, from->ring, from->capacity * sizeof(*to->ring));
    return true;
}

bool inval_post(struct inval_queue *queue, uint32_t issuer, uint64_t ticket,
                const struct tlbi_op *op)
{
    bool was_empty = inval_pending(queue) == 0;

    queue->state[issuer].posted = ticket;
    if (queue->collapsed) {
        return was_empty;
    }
    if (queue->count == queue->capacity) {
        queue->collapsed = true;
        queue->count = 0;
        queue->overflows++;
        return was_empty;
    }
    queue->ring[(queue->head + queue->count) % queue->capacity] =
        (struct inval_item){.issuer = issuer, .ticket = ticket, .op = *op};
    queue->count++;
    return was_empty;
}

bool inval_take(struct inval_queue *queue, struct inval_item *out)
{
    if (queue->collapsed) {
        /*
         * What is posted while the target flushes is a new item and not
         * covered by this one: remember how far this one reaches.
         */
        for (unsigned i = 0; i < queue->issuers; i++) {
            queue->state[i].flushed = queue->state[i].posted;
        }
        queue->collapsed = false;
        *out = (struct inval_item){
            .issuer = INVAL_EVERYONE,
            .ticket = ++queue->flushes,
            .op = {.kind = TLBI_ALL, .scope = TLBI_IS},
        };
        return true;
    }
    if (queue->count == 0) {
        return false;
    }
    *out = queue->ring[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    return true;
}

static void raise_to(uint64_t *value, uint64_t ticket)
{
    if (*value < ticket) {
        *value = ticket;
    }
}

void inval_acknowledge(struct inval_queue *queue, uint32_t issuer,
                       uint64_t ticket)
{
    if (issuer != INVAL_EVERYONE) {
        raise_to(&queue->state[issuer].acknowledged, ticket);
        return;
    }
    /*
     * If a second collapsed item was taken meanwhile, `flushed` belongs to
     * that one; its acknowledgement will cover this one too.
     */
    if (ticket != queue->flushes) {
        return;
    }
    for (unsigned i = 0; i < queue->issuers; i++) {
        raise_to(&queue->state[i].acknowledged, queue->state[i].flushed);
    }
}

uint64_t inval_acknowledged(const struct inval_queue *queue, uint32_t issuer)
{
    return queue->state[issuer].acknowledged;
}

bool inval_owed(const struct inval_queue *queue, uint32_t issuer)
{
    const struct issuer_state *state = &queue->state[issuer];

    return state->acknowledged < state->posted;
}

size_t inval_pending(const struct inval_queue *queue)
{
    return queue->collapsed ? 1 : queue->count;
}

uint64_t inval_overflows(const struct inval_queue *queue)
{
    return queue->overflows;
}

struct inval_domain {
    unsigned vcpus;
    uint64_t *tickets; /* the last one of each issuer */
    struct inval_queue **queues;
};

struct inval_domain *inval_domain_new(unsigned vcpus, unsigned capacity)
{
    struct inval_domain *domain = calloc(1, sizeof(*domain));

    if (!domain) {
        return NULL;
    }
    domain->vcpus = vcpus;
    domain->tickets = calloc(vcpus, sizeof(*domain->tickets));
    domain->queues = calloc(vcpus, sizeof(*domain->queues));
    if (vcpus == 0 || !domain->tickets || !domain->queues) {
        inval_domain_free(domain);
        return NULL;
    }
    for (unsigned i = 0; i < vcpus; i++) {
        domain->queues[i] = inval_queue_new(vcpus, capacity);
        if (!domain->queues[i]) {
            inval_domain_free(domain);
            return NULL;
        }
    }
    return domain;
}

void inval_domain_free(struct inval_domain *domain)
{
    if (!domain) {
        return;
    }
    for (unsigned i = 0; domain->queues && i < domain->vcpus; i++) {
        inval_queue_free(domain->queues[i]);
    }
    free(domain->queues);
    free(domain->tickets);
    free(domain);
}

uint64_t inval_domain_issue(struct inval_domain *domain, uint32_t issuer,
                            const struct tlbi_op *op)
{
    uint64_t ticket = ++domain->tickets[issuer];

    if (op->scope == TLBI_LOCAL) {
        (void)inval_post(domain->queues[issuer], issuer, ticket, op);
        return ticket;
    }
    for (unsigned i = 0; i < domain->vcpus; i++) {
        (void)inval_post(domain->queues[i], issuer, ticket, op);
    }
    return ticket;
}

bool inval_domain_apply_one(struct inval_domain *domain, uint32_t target,
                            inval_apply_fn *apply, void *opaque)
{
    struct inval_queue *queue = domain->queues[target];
    struct inval_item item;

    if (!inval_take(queue, &item)) {
        return false;
    }
    apply(opaque, target, &item.op);
    inval_acknowledge(queue, item.issuer, item.ticket);
    return true;
}

bool inval_domain_complete(const struct inval_domain *domain, uint32_t issuer)
{
    for (unsigned i = 0; i < domain->vcpus; i++) {
        if (inval_owed(domain->queues[i], issuer)) {
            return false;
        }
    }
    return true;
}

bool inval_domain_complete_local(const struct inval_domain *domain,
                                 uint32_t issuer)
{
    return !inval_owed(domain->queues[issuer], issuer);
}

void inval_domain_drain(struct inval_domain *domain, uint32_t issuer,
                        inval_apply_fn *apply, void *opaque)
{
    for (unsigned i = 0; i < domain->vcpus; i++) {
        while (inval_owed(domain->queues[i], issuer) &&
               inval_domain_apply_one(domain, i, apply, opaque)) {
            continue;
        }
    }
}

struct inval_queue *inval_domain_queue(struct inval_domain *domain,
                                       uint32_t target)
{
    return domain->queues[target];
}
