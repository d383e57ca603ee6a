/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invalidation domain. See the header for the rule and for locking.
 *
 * The life of an operation at one target:
 *
 *   posted ----> taken ----> acknowledged
 *   (issuer)     (target)    (target, after it has applied it)
 *
 * Per issuer three tickets tell how far each step got. One issuer's items leave
 * in order of arrival, so its tickets rise at each step, and "acknowledged" is
 * the whole answer to that issuer's DSB.
 */
#include "mmu/inval.h"

#include <stdlib.h>
#include <string.h>

#include "dirty_priv.h"

struct issuer_state {
    uint64_t posted;
    uint64_t acknowledged;
    uint64_t flushed; /* `posted` when the last collapsed item was taken */
};

/* What a checkpoint remembers. */
struct inval_saved {
    unsigned head, count;
    bool collapsed;
    uint64_t flushes;
    struct issuer_state *state;
    unsigned room;            /* items that `items` has room for */
    struct inval_item *items; /* those that waited, oldest first */
};

struct inval_queue {
    unsigned issuers;
    unsigned capacity;
    unsigned head, count; /* ring[head] is the oldest */
    bool collapsed;       /* one pending flush of everything; count is 0 */
    bool changed;         /* in any way since the checkpoint */
    uint64_t flushes;     /* collapsed items taken: their ticket */
    uint64_t overflows;
    struct issuer_state *state;
    struct inval_item *ring;
    struct inval_saved *saved; /* NULL: no checkpoint */
    struct dirty_set dirty;    /* issuers whose state differs from it */
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

static void saved_free(struct inval_queue *queue)
{
    if (queue->saved) {
        free(queue->saved->state);
        free(queue->saved->items);
        free(queue->saved);
        queue->saved = NULL;
    }
    dirty_fini(&queue->dirty);
}

void inval_queue_free(struct inval_queue *queue)
{
    if (queue) {
        saved_free(queue);
        free(queue->state);
        free(queue->ring);
        free(queue);
    }
}

/* The item that `index` others must leave before. */
static struct inval_item *item_at(const struct inval_queue *queue,
                                  unsigned index)
{
    return &queue->ring[(queue->head + index) % queue->capacity];
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
    for (unsigned i = 0; i < from->count; i++) {
        *item_at(to, i) = *item_at(from, i);
    }
    to->changed = true;
    dirty_mark_all(&to->dirty, to->issuers);
    return true;
}

bool inval_post(struct inval_queue *queue, uint32_t issuer, uint64_t ticket,
                const struct tlbi_op *op)
{
    bool was_empty = inval_pending(queue) == 0;

    queue->changed = true;
    dirty_mark(&queue->dirty, issuer);
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
    *item_at(queue, queue->count) =
        (struct inval_item){.issuer = issuer, .ticket = ticket, .op = *op};
    queue->count++;
    return was_empty;
}

bool inval_peek(const struct inval_queue *queue, unsigned index,
                struct inval_item *out)
{
    if (index >= inval_pending(queue)) {
        return false;
    }
    if (queue->collapsed) {
        *out = (struct inval_item){
            .issuer = INVAL_EVERYONE,
            .ticket = queue->flushes + 1,
            .op = {.kind = TLBI_ALL, .scope = TLBI_IS},
        };
    } else {
        *out = *item_at(queue, index);
    }
    return true;
}

bool inval_take(struct inval_queue *queue, struct inval_item *out)
{
    if (!inval_peek(queue, 0, out)) {
        return false;
    }
    queue->changed = true;
    if (queue->collapsed) {
        /*
         * What is posted while the target flushes is a new item and not
         * covered by this one: remember how far this one reaches.
         */
        for (unsigned i = 0; i < queue->issuers; i++) {
            queue->state[i].flushed = queue->state[i].posted;
        }
        dirty_mark_all(&queue->dirty, queue->issuers);
        queue->collapsed = false;
        queue->flushes++;
        return true;
    }
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    return true;
}

bool inval_take_of(struct inval_queue *queue, uint32_t issuer,
                   struct inval_item *out)
{
    unsigned index = 0;

    if (queue->collapsed) {
        return inval_take(queue, out);
    }
    while (index < queue->count && item_at(queue, index)->issuer != issuer) {
        index++;
    }
    if (index == queue->count) {
        return false;
    }
    *out = *item_at(queue, index);
    for (; index; index--) {
        *item_at(queue, index) = *item_at(queue, index - 1);
    }
    queue->changed = true;
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    return true;
}

static void acknowledge_to(struct inval_queue *queue, uint32_t issuer,
                           uint64_t ticket)
{
    struct issuer_state *state = &queue->state[issuer];

    if (state->acknowledged < ticket) {
        state->acknowledged = ticket;
        queue->changed = true;
        dirty_mark(&queue->dirty, issuer);
    }
}

void inval_acknowledge(struct inval_queue *queue, uint32_t issuer,
                       uint64_t ticket)
{
    if (issuer != INVAL_EVERYONE) {
        acknowledge_to(queue, issuer, ticket);
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
        acknowledge_to(queue, i, queue->state[i].flushed);
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

/* --- checkpoints --- */

static bool saved_new(struct inval_queue *queue)
{
    struct inval_saved *saved = calloc(1, sizeof(*saved));

    if (!saved) {
        return false;
    }
    queue->saved = saved;
    saved->state = calloc(queue->issuers, sizeof(*saved->state));
    if (!saved->state || !dirty_init(&queue->dirty, queue->issuers)) {
        saved_free(queue);
        return false;
    }
    dirty_mark_all(&queue->dirty, queue->issuers);
    queue->changed = true;
    return true;
}

static bool save_items(struct inval_queue *queue)
{
    struct inval_saved *saved = queue->saved;

    if (saved->room < queue->count) {
        struct inval_item *items =
            realloc(saved->items, queue->count * sizeof(*items));

        if (!items) {
            return false;
        }
        saved->items = items;
        saved->room = queue->count;
    }
    for (unsigned i = 0; i < queue->count; i++) {
        saved->items[i] = *item_at(queue, i);
    }
    return true;
}

bool inval_checkpoint(struct inval_queue *queue)
{
    struct inval_saved *saved;
    size_t issuer;

    if (!queue->saved && !saved_new(queue)) {
        return false;
    }
    if (!queue->changed) {
        return true;
    }
    if (!save_items(queue)) {
        saved_free(queue);
        return false;
    }
    saved = queue->saved;
    saved->head = queue->head;
    saved->count = queue->count;
    saved->collapsed = queue->collapsed;
    saved->flushes = queue->flushes;
    while (dirty_take(&queue->dirty, &issuer)) {
        saved->state[issuer] = queue->state[issuer];
    }
    queue->changed = false;
    return true;
}

void inval_rollback(struct inval_queue *queue)
{
    const struct inval_saved *saved = queue->saved;
    size_t issuer;

    if (!saved || !queue->changed) {
        return;
    }
    queue->head = saved->head;
    queue->count = saved->count;
    queue->collapsed = saved->collapsed;
    queue->flushes = saved->flushes;
    for (unsigned i = 0; i < saved->count; i++) {
        *item_at(queue, i) = saved->items[i];
    }
    while (dirty_take(&queue->dirty, &issuer)) {
        queue->state[issuer] = saved->state[issuer];
    }
    queue->changed = false;
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
