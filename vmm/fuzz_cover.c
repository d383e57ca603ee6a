/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Schedule coverage; see fuzz_cover.h. */
#include "fuzz_cover.h"

#include <string.h>
#include <glib.h>

#include "mmu/addr.h"
#include "mmu/desc.h"
#include "obs/mix.h"

#define KINDS                                                                  \
    (EVENT_BIT(EVENT_pte_store) | EVENT_BIT(EVENT_tlbi) |                      \
     EVENT_BIT(EVENT_dsb_done) | EVENT_BIT(EVENT_apply) |                      \
     EVENT_BIT(EVENT_fill) | EVENT_BIT(EVENT_hit_stale) |                      \
     EVENT_BIT(EVENT_fault) | EVENT_BIT(EVENT_ipi_send) |                      \
     EVENT_BIT(EVENT_ipi_take) | EVENT_BIT(EVENT_frame_alloc) |                \
     EVENT_BIT(EVENT_frame_free) | EVENT_BIT(EVENT_io_begin) |                 \
     EVENT_BIT(EVENT_copy_begin) | EVENT_BIT(EVENT_op_begin) |                 \
     EVENT_BIT(EVENT_op_end))

/* Last events by page, direct mapped; a newcomer takes the slot. */
#define SLOTS 256u

/* How two events belong together: part of the pair's index. */
enum relation { RELATION_NONE, RELATION_NEXT, RELATION_VA, RELATION_FRAME };

struct last {
    uint64_t page;
    uint32_t run;  /* 0: never used */
    uint32_t vcpu; /* that did it */
    uint64_t site;
};

struct fuzz_cover {
    uint8_t *map, *own;
    uint8_t is_place[FUZZ_MAP_SIZE];
    uint16_t touched[FUZZ_MAP_SIZE];
    unsigned touched_count;
    uint32_t run;
    struct last next, by_va[SLOTS], by_frame[SLOTS];
};

static unsigned index_of(uint64_t first, uint64_t second, enum relation how)
{
    uint64_t h = mix_word(mix_word(mix_word(MIX_START, first), second), how);

    return (unsigned)(mix_end(h) & (FUZZ_MAP_SIZE - 1));
}

static void count(struct fuzz_cover *c, unsigned index)
{
    if (c->map[index] == 0) {
        c->touched[c->touched_count++] = (uint16_t)index;
    }
    if (c->map[index] != UINT8_MAX) {
        c->map[index]++;
    }
}

static void pair(struct fuzz_cover *c, struct last *last, uint64_t page,
                 uint32_t vcpu, uint64_t site, enum relation how)
{
    if (last->run == c->run && last->page == page && last->vcpu != vcpu) {
        count(c, index_of(last->site, site, how));
    }
    *last = (struct last){page, c->run, vcpu, site};
}

static struct last *slot(struct last *slots, uint64_t page)
{
    return &slots[(page ^ page >> 8 ^ page >> 16) % SLOTS];
}

/* What tells events of one place apart: the kind of TLBI, barrier, fault... */
static uint64_t detail(const struct event *e)
{
    switch ((int)e->kind) {
    case EVENT_tlbi:
    case EVENT_dsb_done:
    case EVENT_fault:
    case EVENT_op_begin:
    case EVENT_op_end:
        return e->a[0];
    case EVENT_apply:
        return e->a[2];
    case EVENT_ipi_send:
        return e->a[1];
    case EVENT_ipi_take:
        return e->a[0];
    case EVENT_pte_store: /* made, taken away, or changed */
        return (e->a[1] & 1) << 1 | (e->a[2] & 1);
    default:
        return 0;
    }
}

static bool va_of(const struct event *e, uint64_t *out)
{
    switch ((int)e->kind) {
    case EVENT_fill:
    case EVENT_hit_stale:
        *out = e->a[0];
        return true;
    case EVENT_tlbi:
    case EVENT_fault:
        *out = e->a[2];
        return e->a[2] != 0;
    default:
        return false;
    }
}

static bool frame_of(const struct event *e, uint64_t *out)
{
    switch ((int)e->kind) {
    case EVENT_fill:
    case EVENT_hit_stale:
        *out = e->a[2];
        return true;
    case EVENT_frame_alloc:
    case EVENT_frame_free:
    case EVENT_io_begin:
    case EVENT_copy_begin:
        *out = e->a[0];
        return true;
    case EVENT_pte_store: /* the page that comes or goes */
        *out = (e->a[1] & 1 ? e->a[1] : e->a[2]) & DESC_ADDR_MASK;
        return ((e->a[1] | e->a[2]) & 1) != 0;
    default:
        return false;
    }
}

static void on_event(void *opaque, const struct event *e)
{
    struct fuzz_cover *c = opaque;
    uint64_t site = mix_word(
        mix_word(mix_word(MIX_START, (uint64_t)e->kind + 1), e->pc), detail(e));
    unsigned place = index_of(site, 0, RELATION_NONE);
    uint64_t at;

    if (c->run == 0) {
        return; /* the machine boots */
    }
    c->is_place[place] = 1;
    count(c, place);
    pair(c, &c->next, 0, e->vcpu, site, RELATION_NEXT);
    if (va_of(e, &at)) {
        at >>= MMU_PAGE_SHIFT;
        pair(c, slot(c->by_va, at), at, e->vcpu, site, RELATION_VA);
    }
    if (frame_of(e, &at)) {
        at >>= MMU_PAGE_SHIFT;
        pair(c, slot(c->by_frame, at), at, e->vcpu, site, RELATION_FRAME);
    }
}

struct fuzz_cover *fuzz_cover_new(struct events *ev)
{
    struct fuzz_cover *c = g_new0(struct fuzz_cover, 1);

    c->own = g_malloc0(FUZZ_MAP_SIZE);
    c->map = c->own;
    events_subscribe(ev, KINDS, on_event, c);
    return c;
}

void fuzz_cover_free(struct fuzz_cover *c)
{
    if (c) {
        g_free(c->own);
        g_free(c);
    }
}

void fuzz_cover_begin(struct fuzz_cover *c)
{
    for (unsigned i = 0; i < c->touched_count; i++) {
        c->map[c->touched[i]] = 0;
    }
    c->touched_count = 0;
    c->run++;
    if (c->run == 0) { /* after 2^32 runs old slots would look new */
        c->run = 1;
        memset(c->by_va, 0, sizeof(c->by_va));
        memset(c->by_frame, 0, sizeof(c->by_frame));
        c->next.run = 0;
    }
}

void fuzz_cover_set_map(struct fuzz_cover *c, uint8_t *map)
{
    fuzz_cover_begin(c);
    c->map = map ? map : c->own;
}

uint8_t *fuzz_cover_map(const struct fuzz_cover *c)
{
    return c->map;
}

const uint16_t *fuzz_cover_touched(const struct fuzz_cover *c,
                                   unsigned *out_count)
{
    *out_count = c->touched_count;
    return c->touched;
}

bool fuzz_cover_is_place(const struct fuzz_cover *c, unsigned index)
{
    return c->is_place[index] != 0;
}
