/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NUMA hints, with numa_balancing on: once in a while the PTEs of a window of
 * the address space become PROT_NONE, through the code of mprotect and with one
 * flush a range; the next access of each page faults, and brings the page to
 * the node of the CPU it came from.
 *
 *   numa_scan_ms=N   run time of a task between its scans    1000
 *   numa_scan_mb=N   memory of one scan                      256
 *
 * A page moves at the first hint from the other node. Linux asks for two from
 * the same node once a task is older than a few scans; here pages that both
 * nodes use go back and forth.
 */
#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/percpu.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "kernel/time.h"
#include "mm/counters.h"
#include "mm/lru.h"
#include "mm/migrate.h"
#include "mm/mm_priv.h"
#include "mm/node.h"
#include "mm/numa.h"

#define NSEC_PER_MS 1000000UL

bool numa_balancing;

static uint64_t scan_period_ns = 1000 * NSEC_PER_MS; /* [init] */
static uint64_t scan_bytes = 256UL << 20;            /* [init] */

static uint64_t number_word(const char *name, uint64_t otherwise)
{
    char buf[24];
    const char *value = bootargs_get(name, buf, sizeof(buf));
    uint64_t n;

    return value != NULL && str_to_u64(value, &n) && n != 0 ? n : otherwise;
}

void numa_init(void)
{
    char buf[8];
    const char *value = bootargs_get("numa_balancing", buf, sizeof(buf));

    numa_balancing = value != NULL && strcmp(value, "on") == 0;
    scan_period_ns = number_word("numa_scan_ms", 1000) * NSEC_PER_MS;
    scan_bytes = number_word("numa_scan_mb", 256) << 20;
}

void numa_set_balancing(bool on)
{
    uint64_t flags;

    __atomic_store_n(&numa_balancing, on, __ATOMIC_RELAXED);
    flags = local_irq_save();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        if (cpu != cpu_id()) {
            smp_send_reschedule(cpu);
        }
    }
    sched_reschedule_irq(); /* our own */
    local_irq_restore(flags);
}

void numa_tick(struct task *task)
{
    struct mm *mm = task->mm;

    if (mm == NULL || ++task->numa_ticks * NSEC_PER_TICK < scan_period_ns) {
        return;
    }
    task->numa_scan_due =
        time_now_ns() >=
        atomic_load_explicit(&mm->numa_next_scan, memory_order_relaxed);
}

/* Where an address space has one task, pages that it has at hand need none. */
static int node_to_skip(const struct vma *vma)
{
    return !(vma->flags & VMA_SHARED) &&
                   atomic_load_explicit(&vma->mm->users,
                                        memory_order_relaxed) == 1
               ? (int)node_of_cpu(cpu_id())
               : -1;
}

/* mmap_lock held. Goes on where the last scan stopped. */
static void scan_window(struct mm *mm)
{
    uint64_t at = mm->numa_scan_at, left = scan_bytes;
    unsigned i = vma_index(mm, at);

    if (i == mm->n_areas) {
        i = 0; /* once round */
        at = 0;
    }
    for (; i < mm->n_areas && left > 0; i++) {
        struct vma *vma = mm->areas[i];
        uint64_t start = vma->start > at ? vma->start : at;

        if (!vma_accessible(vma)) {
            continue;
        }
        while (start < vma->end && left > 0) {
            uint64_t stop = start + left < vma->end ? start + left : vma->end;
            uint64_t updates;

            stop = stop < vma->end ? ALIGN_UP(stop, BLOCK_SIZE) : stop;
            stop = stop < vma->end ? stop : vma->end;
            updates = protect_hints(vma, start, stop, node_to_skip(vma));
            counter_add(numa_pte_updates, updates);
            left = stop - start < left ? left - (stop - start) : 0;
            at = start = stop;
        }
    }
    mm->numa_scan_at = i < mm->n_areas || left == 0 ? at : 0;
}

void numa_scan(void)
{
    struct task *task = current();
    struct mm *mm = task->mm;
    uint64_t now = time_now_ns();
    uint64_t next;

    task->numa_scan_due = false;
    task->numa_ticks = 0;
    if (mm == NULL) {
        return;
    }
    /* One of the threads scans for all. */
    next = atomic_load_explicit(&mm->numa_next_scan, memory_order_relaxed);
    if (now < next || !atomic_compare_exchange_strong_explicit(
                          &mm->numa_next_scan, &next, now + scan_period_ns,
                          memory_order_acq_rel, memory_order_relaxed)) {
        return;
    }
    mm_read_lock(&mm->mmap_lock);
    scan_window(mm);
    mm_read_unlock(&mm->mmap_lock);
}

int numa_misplaced(const struct page *page, const struct vma *vma)
{
    unsigned here = node_of_cpu(cpu_id());

    return page->node != here && numa_allows(numa_policy(vma), here) ? (int)here
                                                                     : -1;
}

bool numa_bring_page(struct page *page, unsigned node)
{
    struct list one;
    bool moved;

    list_init(&one);
    list_append(&one, &page->lru);
    moved = migrate_pages(&one, node, MIGRATE_ASYNC) == 0;
    migrate_putback(&one);
    if (moved) {
        counter_inc(numa_pages_migrated);
    }
    return moved;
}
