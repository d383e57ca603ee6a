/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How reclaim lists are formed; vmscan.h. The length of a list decides how many
 * pages may share one flush:
 *
 *   classic       up to 32 pages from the cold end of the inactive list
 *   generations   up to 64 from the oldest generation; `scaled`: no more than
 *                 what is left of size >> priority
 */
#include "mm/vmscan.h"

#include "kernel/errno.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "mm/counters.h"
#include "mm/like.h"
#include "mm/memcg.h"
#include "mm/node.h"
#include "mm/reclaim.h"
#include "mm/swap.h"
#include "mm/vmscan_priv.h"

#define CLASSIC_LIST 32U
#define GENERATION_LIST 64U
#define REQUEST_RETRIES 16
#define VAIN_RETRIES 16U
#define BUSY_RETRIES 1000U
#define BUSY_SLEEP_NS (1000UL * 1000)

static _Atomic unsigned busy; /* tasks in vmscan_node(), kswapd's too */

static void note_scanned(struct scan_control *sc, unsigned n)
{
    sc->scanned += n;
    if (sc->kswapd) {
        counter_add(pgscan_kswapd, n);
    } else {
        counter_add(pgscan_direct, n);
    }
}

static void shrink_list(struct list *pages, unsigned n, unsigned node,
                        struct scan_control *sc)
{
    unsigned before = sc->reclaimed;

    note_scanned(sc, n);
    reclaim_list(pages, node, sc);
    if (sc->kswapd) {
        counter_add(pgsteal_kswapd, sc->reclaimed - before);
    } else {
        counter_add(pgsteal_direct, sc->reclaimed - before);
    }
}

/* --- generations --- */

static void shrink_generations(struct lruvec *v, unsigned node,
                               struct scan_control *sc)
{
    uint64_t n = lru_size(v) >> sc->priority, scanned = 0;

    /* The first round takes what is old already. */
    if (sc->priority < VMSCAN_PRIORITY && lru_needs_ageing(v)) {
        lru_age(v);
        return;
    }
    while (scanned < n && sc->reclaimed < sc->target) {
        struct list pages = LIST_INIT(pages);
        uint64_t want = GENERATION_LIST;
        unsigned got;

        if (mm_like.mglru_scaled) {
            want = min_u64(want, n - scanned);
        }
        got = lru_isolate_oldest(v, &pages, (unsigned)want);
        if (got == 0) {
            return;
        }
        shrink_list(&pages, got, node, sc);
        scanned += got;
        preempt_point();
    }
}

/* --- classic --- */

/* Moves pages of the active list that were not used to the inactive one. */
static void shrink_active(struct lruvec *v, unsigned n, struct scan_control *sc)
{
    struct list pages = LIST_INIT(pages);

    note_scanned(sc, lru_isolate_list(v, LRU_ACTIVE, &pages, n));
    while (!list_empty(&pages)) {
        struct page *page = page_of_node(pages.next);

        list_remove(&page->lru);
        lru_putback(page, false);
    }
}

/* Too few inactive pages to tell what is used: the square root of the GiB. */
static bool inactive_is_low(const struct lruvec *v)
{
    uint64_t inactive =
        atomic_load_explicit(&v->n[LRU_INACTIVE], memory_order_relaxed);
    uint64_t active =
        atomic_load_explicit(&v->n[LRU_ACTIVE], memory_order_relaxed);
    uint64_t gib = (inactive + active) >> (30 - PAGE_SHIFT), ratio = 1;

    while (gib != 0 && (ratio + 1) * (ratio + 1) <= 10 * gib) {
        ratio++;
    }
    return inactive * ratio < active;
}

static void shrink_classic(struct lruvec *v, unsigned node,
                           struct scan_control *sc)
{
    uint64_t inactive =
        atomic_load_explicit(&v->n[LRU_INACTIVE], memory_order_relaxed) >>
        sc->priority;
    uint64_t active =
        atomic_load_explicit(&v->n[LRU_ACTIVE], memory_order_relaxed) >>
        sc->priority;

    while ((inactive != 0 || active != 0) && sc->reclaimed < sc->target) {
        unsigned some = (unsigned)min_u64(inactive, CLASSIC_LIST);

        if (some != 0) {
            struct list pages = LIST_INIT(pages);
            unsigned got = lru_isolate_list(v, LRU_INACTIVE, &pages, some);

            inactive -= some;
            if (got != 0) {
                shrink_list(&pages, got, node, sc);
            }
        }
        some = (unsigned)min_u64(active, CLASSIC_LIST);
        active -= some;
        if (some != 0 && inactive_is_low(v)) {
            shrink_active(v, some, sc);
        }
        preempt_point();
    }
    if (inactive_is_low(v)) {
        shrink_active(v, CLASSIC_LIST, sc);
    }
}

/* --- all of them --- */

void vmscan_node(unsigned node, struct scan_control *sc)
{
    atomic_fetch_add_explicit(&busy, 1, memory_order_relaxed);
    for (struct memcg *g = memcg_next(sc->group, NULL); g != NULL;
         g = memcg_next(sc->group, g)) {
        struct lruvec *v = &g->lruvecs[node];

        if (lru_size(v) == 0) {
            continue;
        }
        if (mm_like.mglru_lists) {
            shrink_generations(v, node, sc);
        } else {
            shrink_classic(v, node, sc);
        }
    }
    atomic_fetch_sub_explicit(&busy, 1, memory_order_relaxed);
}

/* Round after round; the nearest node first in each. */
static unsigned try_to_free(struct scan_control *sc)
{
    unsigned first = node_of_cpu(cpu_id());

    for (unsigned i = 0; i <= VMSCAN_PRIORITY; i++) {
        sc->priority = VMSCAN_PRIORITY - i;
        for (unsigned node = 0; node < nodes_count(); node++) {
            vmscan_node((first + node) % nodes_count(), sc);
        }
        if (sc->reclaimed >= sc->target || task_killed(current())) {
            break;
        }
    }
    return sc->reclaimed;
}

bool vmscan_again(struct vmscan_retries *retries, unsigned freed)
{
    if (task_killed(current())) {
        return false;
    }
    if (freed != 0) {
        return true;
    }
    if (atomic_load_explicit(&busy, memory_order_relaxed) != 0 &&
        retries->busy < BUSY_RETRIES) {
        retries->busy++;
        sched_sleep_ns(BUSY_SLEEP_NS);
        return true;
    }
    sched_yield();
    /* A full swap will not be less full for looking at all pages again. */
    return ++retries->vain <= (swap_has_room(0) ? VAIN_RETRIES : 1);
}

unsigned vmscan_direct(unsigned n)
{
    return vmscan_group(memcg_root(), n, false);
}

unsigned vmscan_group(struct memcg *group, unsigned n, bool proactive)
{
    struct scan_control sc = {
        .group = group,
        .target = n < CLASSIC_LIST ? CLASSIC_LIST : n,
        .proactive = proactive,
    };

    if (current()->tlb_ubc.in_reclaim) {
        return 0;
    }
    if (!proactive) {
        counter_inc(allocstall);
    }
    if (try_to_free(&sc) != 0) {
        kswapd_try_again();
    }
    return sc.reclaimed;
}

int vmscan_request(struct memcg *group, uint64_t n)
{
    unsigned retries = REQUEST_RETRIES;
    uint64_t done = 0;

    while (done < n) {
        uint64_t part = n - done;
        unsigned freed;

        if (task_killed(current())) {
            return -EINTR;
        }
        if (mm_like.request_quarters) {
            part /= 4; /* so as not to take far too much from one lruvec */
        }
        freed = vmscan_group(group, (unsigned)min_u64(part, UINT32_MAX), true);
        if (freed == 0 && retries-- == 0) {
            return -EAGAIN;
        }
        done += freed;
        preempt_point();
    }
    return 0;
}
