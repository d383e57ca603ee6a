/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * move_pages and migrate_pages: choosing the pages, and telling the caller.
 *
 * move_pages hands pages over in runs: at a change of node, at the end, and
 * after each page that cannot be queued. Each run costs its own flushes.
 * The pages' states are known only as of the moment they were queued; mmap_lock
 * is not held while they move.
 */
#include "kernel/process.h"
#include "kernel/sched.h"
#include "mm/lru.h"
#include "mm/migrate.h"
#include "mm/mm_priv.h"
#include "mm/node.h"
#include "mm/numa.h"
#include "mm/uaccess.h"

/* The address space of a thread, with a reference. 0 or a negative error. */
static int mm_of_pid(int32_t pid, struct mm **out_mm)
{
    struct task *task = current();
    uint64_t flags;
    int r = 0;

    *out_mm = NULL;
    flags = spin_lock_irqsave(&process_lock);
    if (pid != 0) {
        task = process_find_task(pid);
    }
    if (task == NULL) {
        r = process_find(pid) == NULL ? -ESRCH : -EINVAL; /* a zombie */
    } else if (task->mm == NULL) {
        r = -EINVAL;
    } else {
        *out_mm = task->mm;
        mm_get(*out_mm);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return r;
}

/* --- finding pages --- */

/* The page at va, if it is one that could move. PTL held on success. */
static int page_at(struct mm *mm, uint64_t va, struct spinlock **out_ptl,
                   struct page **out)
{
    pte_t *p;

    if (va >= USER_END || vma_find(mm, va) == NULL) {
        return -EFAULT;
    }
    p = pt_walk(mm, va, out_ptl);
    if (p == NULL) {
        return -ENOENT;
    }
    spin_lock(*out_ptl);
    if (!pte_present(pte_read(p)) || (pte_read(p) & PTE_SPECIAL)) {
        int r = pte_present(pte_read(p)) ? -EFAULT : -ENOENT;

        spin_unlock(*out_ptl);
        return r;
    }
    *out = pte_page(pte_read(p));
    return 0;
}

/* 1: on the list now. 0: it is on the node. Else a negative error. */
static int queue_page(struct mm *mm, uint64_t va, unsigned node, bool all,
                      struct list *list)
{
    struct spinlock *ptl;
    struct page *page;
    int r;

    mm_read_lock(&mm->mmap_lock);
    r = page_at(mm, va & PAGE_MASK, &ptl, &page);
    if (r == 0) {
        if (page->node == node) {
            r = 0;
        } else if (page_mapcount(page) > 1 && !all) {
            r = -EACCES;
        } else if (!lru_isolate(page)) {
            r = -EBUSY;
        } else {
            list_append(list, &page->lru);
            r = 1;
        }
        spin_unlock(ptl);
    }
    mm_read_unlock(&mm->mmap_lock);
    return r;
}

/* One leaf table's part of numa_queue_range(). */
static unsigned queue_block(struct mm *mm, uint64_t va, uint64_t end,
                            uint64_t nodes, bool all, struct list *out)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(mm, va, &ptl);
    unsigned failed = 0;

    if (p == NULL) {
        return 0;
    }
    spin_lock(ptl);
    for (; va < end; va += PAGE_SIZE, p++) {
        pte_t pte = pte_read(p);
        struct page *page;

        if (!pte_present(pte) || (pte & PTE_SPECIAL)) {
            continue;
        }
        page = pte_page(pte);
        if (!(nodes >> page->node & 1) || (page_mapcount(page) > 1 && !all)) {
            continue;
        }
        if (lru_isolate(page)) {
            list_append(out, &page->lru);
        } else {
            failed++;
        }
    }
    spin_unlock(ptl);
    return failed;
}

unsigned numa_queue_range(struct mm *mm, uint64_t start, uint64_t end,
                          uint64_t nodes, bool all, struct list *out)
{
    unsigned failed = 0;

    while (start < end) {
        uint64_t stop = pt_block_end(start, end);

        failed += queue_block(mm, start, stop, nodes, all, out);
        start = stop;
        preempt_point();
    }
    return failed;
}

/* --- move_pages --- */

struct mover {
    struct mm *mm;
    uint64_t count;
    uint64_t pages_va, nodes_va, status_va;
    bool all;
    int node;          /* of the run, -1: none */
    uint64_t start;    /* index of its first page */
    struct list queue; /* page->lru */
};

/* The same status for pages [start, start + n). */
static int store_status(const struct mover *m, uint64_t start, int value,
                        uint64_t n)
{
    for (uint64_t i = start; i < start + n; i++) {
        if (put_user_u32(m->status_va + i * 4, (uint32_t)value) != 0) {
            return -EFAULT;
        }
    }
    return 0;
}

/*
 * Moves the run [m->start, i). 0; a negative error; or, if pages were left, how
 * many of the call's pages have not moved: those and all from i on.
 */
static int64_t move_run(struct mover *m, uint64_t i)
{
    int64_t r;

    if (list_empty(&m->queue)) {
        return 0;
    }
    r = migrate_pages(&m->queue, (unsigned)m->node, MIGRATE_SYNC);
    migrate_putback(&m->queue);
    if (r != 0) {
        return r > 0 ? r + (int64_t)(m->count - i) : r;
    }
    return store_status(m, m->start, m->node, i - m->start);
}

/*
 * Page i to its node. 0: go on; else the call ends with *out_error, after the
 * run queued so far has been moved if *out_flush.
 */
static bool move_one(struct mover *m, uint64_t i, int64_t *out_error,
                     bool *out_flush)
{
    uint64_t va;
    uint32_t word;
    int node, r;

    *out_flush = true;
    *out_error = -EFAULT;
    if (get_user_u64(&va, m->pages_va + i * 8) != 0 ||
        get_user_u32(&word, m->nodes_va + i * 4) != 0) {
        return false;
    }
    node = (int)word;
    *out_error = -ENODEV;
    if (node < 0 || (unsigned)node >= nodes_count()) {
        return false;
    }
    if (m->node >= 0 && node != m->node) {
        *out_flush = false;
        *out_error = move_run(m, i);
        if (*out_error != 0) {
            return false;
        }
        m->node = -1;
    }
    if (m->node < 0) {
        m->node = node;
        m->start = i;
    }
    r = queue_page(m->mm, va, (unsigned)node, m->all, &m->queue);
    if (r > 0) {
        return true;
    }
    *out_flush = true;
    *out_error = store_status(m, i, r == 0 ? node : r, 1);
    if (*out_error != 0) {
        return false;
    }
    *out_flush = false;
    *out_error = move_run(m, i);
    if (*out_error != 0) {
        /* Page i has its status: it is not among those left. */
        *out_error -= *out_error > 0;
        return false;
    }
    m->node = -1;
    return true;
}

static int64_t move_all(struct mover *m)
{
    int64_t error = 0, last;
    bool flush = true;
    uint64_t i = 0;

    m->node = -1;
    list_init(&m->queue);
    while (i < m->count && move_one(m, i, &error, &flush)) {
        error = 0;
        flush = true;
        i++;
        preempt_point();
    }
    if (!flush) {
        return error;
    }
    last = move_run(m, i);
    return error < 0 ? error : last;
}

/* Only tells where the pages are. */
static int64_t query_all(struct mover *m)
{
    for (uint64_t i = 0; i < m->count; i++) {
        struct spinlock *ptl;
        struct page *page;
        uint64_t va;
        int r;

        if (get_user_u64(&va, m->pages_va + i * 8) != 0) {
            return -EFAULT;
        }
        mm_read_lock(&m->mm->mmap_lock);
        r = page_at(m->mm, va & PAGE_MASK, &ptl, &page);
        if (r == 0) {
            r = page->node;
            spin_unlock(ptl);
        }
        mm_read_unlock(&m->mm->mmap_lock);
        if (store_status(m, i, r, 1) != 0) {
            return -EFAULT;
        }
        preempt_point();
    }
    return 0;
}

int64_t sys_move_pages(uint64_t pid, uint64_t count, uint64_t pages_va,
                       uint64_t nodes_va, uint64_t status_va, uint64_t flags)
{
    struct mover m = {
        .count = count,
        .pages_va = pages_va,
        .nodes_va = nodes_va,
        .status_va = status_va,
        .all = flags & MPOL_MF_MOVE_ALL,
    };
    int64_t r;

    flags = (uint32_t)flags;
    if ((flags & ~(uint64_t)(MPOL_MF_MOVE | MPOL_MF_MOVE_ALL)) != 0) {
        return -EINVAL;
    }
    r = mm_of_pid((int32_t)pid, &m.mm);
    if (r != 0) {
        return r;
    }
    r = nodes_va != 0 ? move_all(&m) : query_all(&m);
    mm_put(m.mm);
    return r;
}

/* --- migrate_pages --- */

/* All pages of the address space on node from. Left over, or an error. */
static int64_t move_node(struct mm *mm, unsigned from, unsigned to)
{
    struct list queue;
    unsigned failed = 0;
    int64_t r;

    list_init(&queue);
    mm_read_lock(&mm->mmap_lock);
    for (unsigned i = 0; i < mm->n_areas; i++) {
        failed += numa_queue_range(mm, mm->areas[i]->start, mm->areas[i]->end,
                                   1UL << from, true, &queue);
    }
    mm_read_unlock(&mm->mmap_lock);
    r = migrate_pages(&queue, to, MIGRATE_SYNC);
    migrate_putback(&queue);
    return r < 0 ? r : r + failed;
}

static unsigned weight(uint64_t nodes)
{
    unsigned n = 0;

    for (; nodes != 0; nodes &= nodes - 1) {
        n++;
    }
    return n;
}

/* The node of to that has the rank of node among from. */
static unsigned node_for(unsigned node, uint64_t from, uint64_t to)
{
    unsigned rank = weight(from & ((1UL << node) - 1)) % weight(to);

    for (; rank > 0; rank--) {
        to &= to - 1;
    }
    return (unsigned)__builtin_ctzl(to);
}

/*
 * From every node of from to its counterpart. One whose counterpart is itself
 * still full of pages that will move on comes after that one, so that no page
 * moves twice; in a circle somebody has to begin.
 */
static int64_t move_nodes(struct mm *mm, uint64_t from, uint64_t to)
{
    bool same = weight(from) == weight(to);
    uint64_t rest = from;
    int64_t left = 0;

    for (;;) {
        int source = -1;
        unsigned target = 0;
        int64_t r;

        for (unsigned n = 0; n < nodes_count(); n++) {
            unsigned t;

            if (!(rest >> n & 1) || (!same && (to >> n & 1))) {
                continue; /* may stay: it is among the targets */
            }
            t = node_for(n, from, to);
            if (t == n) {
                continue;
            }
            source = (int)n;
            target = t;
            if (!(rest >> t & 1)) {
                break;
            }
        }
        if (source < 0) {
            return left;
        }
        rest &= ~(1UL << source);
        r = move_node(mm, (unsigned)source, target);
        if (r < 0) {
            return r;
        }
        left += r;
    }
}

int64_t sys_migrate_pages(uint64_t pid, uint64_t maxnode, uint64_t old_va,
                          uint64_t new_va)
{
    uint64_t from, to;
    struct mm *mm;
    int64_t r = numa_get_nodes(old_va, maxnode, &from);

    if (r == 0) {
        r = numa_get_nodes(new_va, maxnode, &to);
    }
    if (r != 0) {
        return r;
    }
    r = mm_of_pid((int32_t)pid, &mm);
    if (r != 0) {
        return r;
    }
    from &= numa_all_nodes();
    to &= numa_all_nodes();
    r = to == 0 ? -EINVAL : from == 0 ? 0 : move_nodes(mm, from, to);
    mm_put(mm);
    return r;
}
