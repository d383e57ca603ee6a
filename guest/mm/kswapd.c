/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The background reclaimers, a thread per node: asleep until an allocation
 * finds no node above its low watermark, then at work until their node is
 * above its high one. A thread that reclaimed nothing for FAILURES_MAX rounds
 * gives up until somebody else has.
 */
#include "kernel/panic.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "mm/buddy.h"
#include "mm/counters.h"
#include "mm/memcg.h"
#include "mm/node.h"
#include "mm/reclaim.h"
#include "mm/swap.h"
#include "mm/vmscan.h"
#include "mm/vmscan_priv.h"

#define FAILURES_MAX 16U

static struct kswapd {
    struct wait_queue wq;
    _Atomic bool wanted;
    _Atomic bool running;      /* [init] there is a thread */
    _Atomic unsigned failures; /* rounds in vain, one after the other */
    unsigned node;             /* [init] */
} kswapds[MAX_NODES];

static bool balanced(unsigned node)
{
    return buddy_free(node) >= buddy_wmark(node, WMARK_HIGH);
}

/* From the first priority to the last, or until there is enough. */
static void balance(struct kswapd *k)
{
    struct scan_control sc = {.group = memcg_root(), .kswapd = true};

    for (unsigned i = 0; i < VMSCAN_PRIORITY && !balanced(k->node); i++) {
        uint64_t free = buddy_free(k->node);
        uint64_t high = buddy_wmark(k->node, WMARK_HIGH);

        sc.priority = VMSCAN_PRIORITY - i;
        sc.target = sc.reclaimed + (unsigned)(high > free ? high - free : 1);
        vmscan_node(k->node, &sc);
    }
    if (sc.reclaimed != 0) {
        atomic_store(&k->failures, 0);
    } else if (!balanced(k->node)) {
        atomic_fetch_add(&k->failures, swap_has_room(0) ? 1 : FAILURES_MAX);
    }
}

static void kswapd_main(void *arg)
{
    struct kswapd *k = arg;

    for (;;) {
        wait_event(&k->wq, atomic_load(&k->wanted));
        counter_inc(kswapd_wakes);
        while (!balanced(k->node) && atomic_load(&k->failures) < FAILURES_MAX) {
            balance(k);
            sched_yield();
        }
        atomic_store(&k->wanted, false);
    }
}

void kswapd_init(void)
{
    for (unsigned node = 0; node < nodes_count(); node++) {
        struct kswapd *k = &kswapds[node];
        struct task *task = kthread_new("kswapd", kswapd_main, k);

        ASSERT_MSG(task != NULL, "no memory for kswapd");
        k->node = node;
        wait_queue_init(&k->wq);
        atomic_store(&k->running, true);
        task_start(task);
    }
}

void kswapd_wake(unsigned node, bool only_this)
{
    for (unsigned n = 0; n < nodes_count(); n++) {
        struct kswapd *k = &kswapds[n];

        if ((only_this && n != node) || !atomic_load(&k->running) ||
            atomic_load_explicit(&k->wanted, memory_order_relaxed) ||
            atomic_load(&k->failures) >= FAILURES_MAX || balanced(n)) {
            continue;
        }
        atomic_store(&k->wanted, true);
        (void)wake_up_one(&k->wq);
    }
}

void kswapd_try_again(void)
{
    for (unsigned n = 0; n < nodes_count(); n++) {
        atomic_store_explicit(&kswapds[n].failures, 0, memory_order_relaxed);
    }
}
