/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The helpers of the mm tests, and the tests of the flush and pending word. */
#include "mm/ktest_mm.h"

#include "arch/sysreg.h"
#include "kernel/bootargs.h"
#include "kernel/panic.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/task.h"
#include "mm/flush.h"
#include "mm/flush_opts.h"
#include "mm/like.h"
#include "mm/lru.h"
#include "mm/uaccess.h"

void ktest_use(struct mm *mm)
{
    uint64_t flags = local_irq_save();

    mm_get(mm);
    current()->mm = mm;
    mm_switch(NULL, mm);
    mm_switch_finish();
    local_irq_restore(flags);
}

struct mm *ktest_enter(void)
{
    struct mm *mm = mm_new();

    if (mm != NULL) {
        ktest_use(mm);
        mm_put(mm); /* the task's is left */
    }
    return mm;
}

void ktest_leave(void)
{
    struct mm *mm = current()->mm;
    uint64_t flags = local_irq_save();

    current()->mm = NULL;
    mm_switch(mm, NULL);
    mm_switch_finish();
    local_irq_restore(flags);
    mm_put(mm);
    flush_unload_lazy_cpus();
}

bool ktest_map(uint64_t va, uint64_t pages, bool shared)
{
    return sys_mmap(va, pages * PAGE_SIZE, RW,
                    MAP_ANONYMOUS | MAP_FIXED |
                        (shared ? MAP_SHARED : MAP_PRIVATE),
                    (uint64_t)-1, 0) == (int64_t)va;
}

/* A page's words: some repeat, some do not, by page and seed. */
static uint64_t pattern(uint64_t seed, uint64_t page, unsigned word)
{
    uint64_t x = (seed + page * 512 + word) * 0x9e3779b97f4a7c15UL;

    return page % 3 == 0 ? seed + page : page % 3 == 1 ? x >> 58 : x;
}

bool ktest_fill(uint64_t va, uint64_t pages, uint64_t seed)
{
    uint64_t *buf = kmalloc(PAGE_SIZE);
    bool ok = buf != NULL;

    for (uint64_t p = 0; ok && p < pages; p++) {
        for (unsigned w = 0; w < 512; w++) {
            buf[w] = pattern(seed, p, w);
        }
        ok = copy_to_user(va + p * PAGE_SIZE, buf, PAGE_SIZE) == 0;
        preempt_point();
    }
    kfree(buf);
    return ok;
}

bool ktest_check(uint64_t va, uint64_t pages, uint64_t seed)
{
    uint64_t *buf = kmalloc(PAGE_SIZE);
    bool ok = buf != NULL;

    for (uint64_t p = 0; ok && p < pages; p++) {
        ok = copy_from_user(buf, va + p * PAGE_SIZE, PAGE_SIZE) == 0;
        for (unsigned w = 0; ok && w < 512; w++) {
            ok = buf[w] == pattern(seed, p, w);
        }
        preempt_point();
    }
    kfree(buf);
    return ok;
}

bool ktest_touch(uint64_t va, uint64_t pages)
{
    uint64_t word;

    for (uint64_t p = 0; p < pages; p++) {
        if (get_user_u64(&word, va + p * PAGE_SIZE) != 0) {
            return false;
        }
    }
    return true;
}

void ktest_counts_start(struct ktest_counts *c)
{
    uint64_t *at = (uint64_t *)&c->at;

    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        at[i] = counter_total((enum annot_counter_index)i);
    }
}

static void divide(uint64_t *count, uint64_t by)
{
    *count = *count % by == 0 ? *count / by : UINT64_MAX;
}

void ktest_counts_stop(struct ktest_counts *c)
{
    ktest_counts_stop_raw(c);
    if (flush_opts.repeat_tlbi && bootargs.tlb != BOOTARG_TLB_IPI) {
        divide(&c->at.dsb_ish, 2);
        c->at.tlbi_va -= c->at.dsb_ish;
    }
    divide(&c->at.tlbi_va, flush_views());
    divide(&c->at.tlbi_va_walk, flush_views());
    divide(&c->at.tlbi_range, flush_views());
    divide(&c->at.tlbi_range_walk, flush_views());
    divide(&c->at.tlbi_asid, flush_views());
}

void ktest_counts_stop_raw(struct ktest_counts *c)
{
    uint64_t *at = (uint64_t *)&c->at;

    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        at[i] = counter_total((enum annot_counter_index)i) - at[i];
    }
}

/* --- migration --- */

pte_t ktest_pte(struct mm *mm, uint64_t va)
{
    struct spinlock *ptl;
    pte_t *p = pt_walk(mm, va, &ptl);

    return p == NULL ? 0 : pte_read(p);
}

unsigned ktest_isolate(struct mm *mm, uint64_t va, uint64_t pages,
                       struct list *out)
{
    unsigned n = 0;

    list_init(out);
    mm_read_lock(&mm->mmap_lock);
    for (uint64_t i = 0; i < pages; i++) {
        struct spinlock *ptl;
        pte_t *p = pt_walk(mm, va + i * PAGE_SIZE, &ptl);

        if (p == NULL) {
            continue;
        }
        spin_lock(ptl);
        if (pte_present(pte_read(p)) && !(pte_read(p) & PTE_SPECIAL) &&
            lru_isolate(pte_page(pte_read(p)))) {
            list_append(out, &pte_page(pte_read(p))->lru);
            n++;
        }
        spin_unlock(ptl);
    }
    mm_read_unlock(&mm->mmap_lock);
    return n;
}

unsigned ktest_move(struct mm *mm, uint64_t va, uint64_t pages,
                    enum migrate_mode mode)
{
    struct list list;
    unsigned n = ktest_isolate(mm, va, pages, &list);
    int left = migrate_pages(&list, 0, mode);

    migrate_putback(&list);
    return left < 0 ? 0 : n - (unsigned)left;
}

void ktest_go_to(struct mm *mm)
{
    ktest_leave();
    ktest_use(mm);
}

bool ktest_defers(void)
{
    return bootargs.tlb == BOOTARG_TLB_BROADCAST &&
           bootargs.flush == BOOTARG_FLUSH_BATCHED && mm_like.bc_batched &&
           mm_like.migrate_batched &&
           (!flush_opts.repeat_tlbi || mm_like.release >= LIKE_7_2);
}

/* --- threads --- */

static void thread_main(void *arg)
{
    struct ktest_threads *t = arg;
    unsigned index = atomic_fetch_add(&t->next, 1);

    if (t->mm != NULL) {
        ktest_use(t->mm);
    }
    atomic_fetch_add(&t->ready, 1); /* the mm is loaded */
    t->fn(index, t->arg);
    if (t->mm != NULL) {
        uint64_t flags = local_irq_save();

        current()->mm = NULL;
        mm_switch(t->mm, NULL);
        mm_switch_finish();
        local_irq_restore(flags);
        mm_put(t->mm);
    }
    atomic_fetch_add(&t->done, 1);
}

bool ktest_threads_start(struct ktest_threads *t, unsigned first)
{
    for (unsigned i = 0; i < t->n; i++) {
        struct task *task = kthread_new("ktest", thread_main, t);
        struct cpumask mask;

        if (task == NULL) {
            t->n = i;
            ktest_threads_join(t);
            return false;
        }
        cpumask_zero(&mask);
        cpumask_set(&mask, (first + i) % cpu_count);
        task_set_affinity(task, &mask);
        task_start(task);
    }
    while (atomic_load(&t->ready) != t->n) {
        sched_sleep_ns(1000 * 1000);
    }
    return true;
}

void ktest_threads_join(struct ktest_threads *t)
{
    atomic_store(&t->stop, 1);
    while (atomic_load(&t->done) != t->n) {
        sched_sleep_ns(1000 * 1000);
    }
}

/* --- the table --- */

static const struct ktest all[] = {
#define MM_KTEST(fn, sentence, keeps) {sentence, fn, keeps},
#include "mm/ktests.inc"
#undef MM_KTEST
};

KTEST_TABLE(ktest_mm, "mm", all);
