/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hidden descriptor stores, in the order in which they were made. Few at a
 * time, so everything is a scan; nothing hidden is one compare.
 */
#include "mmu/pte_buffer.h"

#include <stdlib.h>
#include <string.h>

struct hidden {
    struct pte_store store;
    uint64_t number;   /* of all stores ever, from 1 */
    uint64_t observed; /* the writer's `observed` when it stored */
    bool leaving;      /* set and used within one call */
};

struct pte_buffer {
    unsigned vcpus, capacity;
    unsigned count;
    uint64_t stores;    /* ever made */
    uint64_t *observed; /* by vCPU: number of the last store it may have seen */
    bool *showing;      /* by vCPU: all false between calls */
    struct hidden *slot; /* oldest first */
};

struct pte_buffer *pte_buffer_new(unsigned vcpus, unsigned capacity)
{
    struct pte_buffer *buf;

    if (vcpus == 0 || capacity == 0 || capacity > PTE_BUFFER_MAX) {
        return NULL;
    }
    buf = calloc(1, sizeof(*buf));
    if (!buf) {
        return NULL;
    }
    buf->vcpus = vcpus;
    buf->capacity = capacity;
    buf->observed = calloc(vcpus, sizeof(*buf->observed));
    buf->slot = calloc(capacity, sizeof(*buf->slot));
    buf->showing = calloc(vcpus, sizeof(*buf->showing));
    if (!buf->observed || !buf->showing || !buf->slot) {
        pte_buffer_free(buf);
        return NULL;
    }
    return buf;
}

void pte_buffer_free(struct pte_buffer *buf)
{
    if (buf) {
        free(buf->observed);
        free(buf->showing);
        free(buf->slot);
        free(buf);
    }
}

/*
 * Removes what is marked as leaving, and what that takes along. One pass from
 * the newest down finds it all, as a store takes only older ones along. Older
 * stores to the same word are of the same writer.
 */
static unsigned show_marked(struct pte_buffer *buf)
{
    uint64_t observed = 0;
    unsigned kept = 0, shown;

    for (unsigned i = buf->count; i-- > 0;) {
        struct hidden *h = &buf->slot[i];

        if (h->leaving || buf->showing[h->store.writer] ||
            h->number <= observed) {
            h->leaving = true;
            buf->showing[h->store.writer] = true;
            observed = h->observed > observed ? h->observed : observed;
        }
    }
    for (unsigned i = 0; i < buf->count; i++) {
        struct hidden *h = &buf->slot[i];

        if (h->leaving) {
            buf->showing[h->store.writer] = false;
        } else {
            buf->slot[kept++] = *h;
        }
    }
    shown = buf->count - kept;
    buf->count = kept;
    return shown;
}

/* Marks the stores to `pa` that are not of this vCPU, and no others. */
static void mark_others_at(struct pte_buffer *buf, gpa_t pa, uint32_t writer)
{
    for (unsigned i = 0; i < buf->count; i++) {
        struct hidden *h = &buf->slot[i];

        h->leaving = h->store.pa == pa && h->store.writer != writer;
    }
}

unsigned pte_buffer_store(struct pte_buffer *buf, uint32_t writer, gpa_t pa,
                          uint64_t old, uint64_t now)
{
    unsigned shown = 0;

    if (buf->count) {
        mark_others_at(buf, pa, writer);
        shown = show_marked(buf);
    }
    if (writer >= buf->vcpus) {
        return shown;
    }
    if (buf->count == buf->capacity) {
        shown += pte_buffer_show_oldest(buf);
    }
    buf->slot[buf->count++] = (struct hidden){
        .store = {.pa = pa, .writer = writer, .old = old, .now = now},
        .number = ++buf->stores,
        .observed = buf->observed[writer],
    };
    return shown;
}

bool pte_buffer_read(const struct pte_buffer *buf, uint32_t reader, gpa_t pa,
                     uint64_t *inout)
{
    for (unsigned i = 0; i < buf->count; i++) {
        const struct pte_store *store = &buf->slot[i].store;

        if (store->pa == pa) {
            /* All hidden stores to the word are of this writer. */
            if (store->writer == reader) {
                return false;
            }
            *inout = store->old;
            return true;
        }
    }
    return false;
}

void pte_buffer_observe(struct pte_buffer *buf, uint32_t observer)
{
    if (observer < buf->vcpus) {
        buf->observed[observer] = buf->stores;
    }
}

unsigned pte_buffer_drain(struct pte_buffer *buf, uint32_t writer)
{
    uint64_t observed = writer < buf->vcpus ? buf->observed[writer] : 0;

    for (unsigned i = 0; i < buf->count; i++) {
        struct hidden *h = &buf->slot[i];

        h->leaving = h->store.writer == writer || h->number <= observed;
    }
    return show_marked(buf);
}

unsigned pte_buffer_drain_all(struct pte_buffer *buf)
{
    unsigned shown = buf->count;

    buf->count = 0;
    return shown;
}

unsigned pte_buffer_show(struct pte_buffer *buf, unsigned index)
{
    for (unsigned i = 0; i < buf->count; i++) {
        buf->slot[i].leaving = i == index;
    }
    return show_marked(buf);
}

unsigned pte_buffer_show_oldest(struct pte_buffer *buf)
{
    return pte_buffer_show(buf, 0);
}

unsigned pte_buffer_show_alone(struct pte_buffer *buf, gpa_t pa)
{
    for (unsigned i = 0; i < buf->count; i++) {
        if (buf->slot[i].store.pa == pa) {
            memmove(&buf->slot[i], &buf->slot[i + 1],
                    (buf->count - i - 1) * sizeof(buf->slot[i]));
            buf->count--;
            return 1;
        }
    }
    return 0;
}

unsigned pte_buffer_show_address(struct pte_buffer *buf, gpa_t pa)
{
    mark_others_at(buf, pa, UINT32_MAX);
    return show_marked(buf);
}

unsigned pte_buffer_pending(const struct pte_buffer *buf)
{
    return buf->count;
}

unsigned pte_buffer_pending_of(const struct pte_buffer *buf, uint32_t writer)
{
    unsigned count = 0;

    for (unsigned i = 0; i < buf->count; i++) {
        count += buf->slot[i].store.writer == writer;
    }
    return count;
}

const struct pte_store *pte_buffer_at(const struct pte_buffer *buf,
                                      unsigned index)
{
    return index < buf->count ? &buf->slot[index].store : NULL;
}

bool pte_buffer_copy(struct pte_buffer *to, const struct pte_buffer *from)
{
    if (to->vcpus != from->vcpus || to->capacity != from->capacity) {
        return false;
    }
    to->count = from->count;
    to->stores = from->stores;
    memcpy(to->observed, from->observed, from->vcpus * sizeof(*to->observed));
    memcpy(to->slot, from->slot, from->count * sizeof(*to->slot));
    return true;
}
