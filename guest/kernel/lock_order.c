/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graph of lock classes. after[a] has bit b when b was waited for while a
 * was held. Edges are added under graph_lock, a plain word that nothing else
 * protects, with interrupts masked; looking one up needs no lock, since bits
 * are only ever set.
 *
 * Spinlocks belong to the CPU, because schedule() takes its lock in one task
 * and lets go of it in the next; sleeping locks belong to the task. An
 * interrupt handler adds to its CPU's spinlocks: what it waits for, the
 * interrupted holder of those waits for too.
 *
 * Waiting for other CPUs (smp_call_mask()) is a class, cpu_call. A CPU that
 * waits for a spinlock with interrupts masked does not answer, so cpu_call then
 * waits for that lock: the edge from cpu_call to it.
 */
#include "kernel/lock_order.h"

#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "kernel/annot.h"
#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/lock.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/task.h"

#define REPORTS_MAX 16

_Static_assert(LOCK_CLASSES <= 64, "one bit each");

bool lock_order_on;

static _Atomic uint64_t after[LOCK_CLASSES];
static uint64_t edge_from[LOCK_CLASSES][LOCK_CLASSES]; /* [graph_lock] */
static struct lock_held cpu_held[MAX_CPUS];
static _Atomic uint64_t irq_classes;    /* taken by interrupt handlers */
static _Atomic uint64_t irqs_on_classes; /* held with interrupts on */
static _Atomic uint32_t graph_lock;
static _Atomic uint32_t reports;

static const char *const names[LOCK_CLASSES] = {
    [LOCK_none] = "none",
#define LOCK(id, what) [LOCK_##id] = #id,
#include "kernel/lock_classes.inc"
#undef LOCK
};

static bool is_sleeping(unsigned class)
{
    return class < LOCK_shmem;
}

static struct lock_held *holder(unsigned class)
{
    return is_sleeping(class) ? &current()->locks_held : &cpu_held[cpu_id()];
}

static uint64_t graph_enter(void)
{
    uint64_t flags = local_irq_save();

    while (atomic_exchange_explicit(&graph_lock, 1, memory_order_acquire)) {
        cpu_relax();
    }
    return flags;
}

static void graph_leave(uint64_t flags)
{
    atomic_store_explicit(&graph_lock, 0, memory_order_release);
    local_irq_restore(flags);
}

static uint64_t after_of(unsigned class)
{
    return atomic_load_explicit(&after[class], memory_order_relaxed);
}

/* True for the first REPORTS_MAX: more would say no more. */
static bool report_begin(void)
{
    uint32_t n = atomic_fetch_add_explicit(&reports, 1, memory_order_relaxed);

    return n < REPORTS_MAX;
}

/*
 * A path from..to in the graph, breadth first: out_path[0] = to, and so on back
 * to from. 0: there is none.
 */
static unsigned find_path(unsigned from, unsigned to, uint8_t *out_path)
{
    uint8_t queue[LOCK_CLASSES], parent[LOCK_CLASSES];
    unsigned head = 0, tail = 0, n = 0;
    uint64_t seen = BIT(from);

    queue[tail++] = (uint8_t)from;
    while (head < tail && !(seen & BIT(to))) {
        unsigned at = queue[head++];

        for (uint64_t next = after_of(at) & ~seen; next != 0;
             next &= next - 1) {
            unsigned class = (unsigned)__builtin_ctzl(next);

            parent[class] = (uint8_t)at;
            seen |= BIT(class);
            queue[tail++] = (uint8_t)class;
        }
    }
    if (!(seen & BIT(to))) {
        return 0;
    }
    for (unsigned at = to; at != from; at = parent[at]) {
        out_path[n++] = (uint8_t)at;
    }
    out_path[n++] = (uint8_t)from;
    return n;
}

static void report_cycle(unsigned held, unsigned class, uint64_t from,
                         const uint8_t *path, unsigned n)
{
    if (!report_begin()) {
        return;
    }
    printk("lock order: CPU %u waits for '%s' at 0x%lx while it holds '%s', "
           "but the other order was seen:\n",
           cpu_id(), names[class], from, names[held]);
    for (unsigned i = n - 1; i > 0; i--) {
        printk("lock order:   '%s' held, '%s' taken at 0x%lx\n",
               names[path[i]], names[path[i - 1]],
               edge_from[path[i]][path[i - 1]]);
    }
    annot_finding(LOCK_ORDER_FINDING);
}

static void report_irq(unsigned class, uint64_t from)
{
    if (report_begin()) {
        printk("lock order: '%s' is taken in interrupt handlers and held with "
               "interrupts on; seen on CPU %u at 0x%lx\n",
               names[class], cpu_id(), from);
        annot_finding(LOCK_ORDER_FINDING);
    }
}

static void report_plain(const char *what, unsigned class, uint64_t from)
{
    if (report_begin()) {
        printk("lock order: CPU %u, '%s' at 0x%lx: %s\n", cpu_id(),
               names[class], from, what);
        annot_finding(LOCK_ORDER_FINDING);
    }
}

/* class is waited for while held is: true the first time. */
static void edge(unsigned held, unsigned class, uint64_t from)
{
    uint8_t path[LOCK_CLASSES];
    unsigned n = 0;
    uint64_t flags;
    bool new;

    if (after_of(held) & BIT(class)) {
        return;
    }
    flags = graph_enter();
    new = !(after_of(held) & BIT(class));
    if (new) {
        n = find_path(class, held, path);
        edge_from[held][class] = from;
        atomic_fetch_or_explicit(&after[held], BIT(class),
                                 memory_order_relaxed);
    }
    graph_leave(flags);
    if (n != 0) {
        report_cycle(held, class, from, path, n);
    }
}

static void edges(uint64_t held, unsigned class, unsigned how, uint64_t from)
{
    for (; held != 0; held &= held - 1) {
        unsigned h = (unsigned)__builtin_ctzl(held);

        if (h != class) {
            edge(h, class, from);
        } else if (!(how & LOCK_ORDER_NESTED)) {
            report_plain("another of its class is held", class, from);
        }
    }
}

static void watch_irqs(unsigned class, uint64_t from)
{
    uint64_t bit = BIT(class), old_irq, old_on;

    if (in_irq()) {
        old_irq = atomic_load_explicit(&irq_classes, memory_order_relaxed);
        if (old_irq & bit) {
            return;
        }
        atomic_fetch_or_explicit(&irq_classes, bit, memory_order_relaxed);
        if (atomic_load_explicit(&irqs_on_classes, memory_order_relaxed) &
            bit) {
            report_irq(class, from);
        }
    } else if (!local_irqs_masked()) {
        old_on = atomic_load_explicit(&irqs_on_classes, memory_order_relaxed);
        if (old_on & bit) {
            return;
        }
        atomic_fetch_or_explicit(&irqs_on_classes, bit, memory_order_relaxed);
        if (atomic_load_explicit(&irq_classes, memory_order_relaxed) & bit) {
            report_irq(class, from);
        }
    }
}

void lock_order_take_slow(unsigned class, unsigned how, uint64_t from)
{
    uint64_t flags = local_irq_save();
    bool were_masked = (flags & DAIF_I) != 0, irq = in_irq();
    struct lock_held *held = holder(class);
    uint64_t spinning = cpu_held[cpu_id()].classes;

    local_irq_restore(flags);
    if (how & LOCK_ORDER_WAIT) {
        if (is_sleeping(class) && (spinning != 0 || irq)) {
            report_plain("may sleep with a spinlock held", class, from);
        }
        edges(spinning | (irq ? 0 : current()->locks_held.classes), class, how,
              from);
        if (were_masked && class != LOCK_cpu_call) {
            edge(LOCK_cpu_call, class, from);
        }
    }
    if (class == LOCK_cpu_call) {
        return; /* waited for, never held */
    }
    if (!is_sleeping(class)) {
        watch_irqs(class, from);
    }
    flags = local_irq_save();
    if (held->count[class]++ == 0) {
        held->classes |= BIT(class);
    }
    local_irq_restore(flags);
}

void lock_order_drop_slow(unsigned class)
{
    uint64_t flags = local_irq_save();
    struct lock_held *held = holder(class);

    /* 0: taken before the watch began. */
    if (held->count[class] != 0 && --held->count[class] == 0) {
        held->classes &= ~BIT(class);
    }
    local_irq_restore(flags);
}

size_t lock_order_text(char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    for (unsigned held = 1; held < LOCK_CLASSES; held++) {
        for (uint64_t next = after_of(held); next != 0; next &= next - 1) {
            int n = snprintf(buf + at, size - at, "%s %s\n", names[held],
                             names[__builtin_ctzl(next)]);

            at = min_u64(at + (uint64_t)n, size - 1);
        }
    }
    return at;
}

unsigned lock_order_reports(void)
{
    return atomic_load_explicit(&reports, memory_order_relaxed);
}

/* What the watch is for, so that a test sees it work. */
static void invert(void)
{
    static struct spinlock a = SPINLOCK_INIT(LOCK_test_a);
    static struct spinlock b = SPINLOCK_INIT(LOCK_test_b);

    spin_lock(&a);
    spin_lock(&b);
    spin_unlock(&b);
    spin_unlock(&a);
    spin_lock(&b);
    spin_lock(&a);
    spin_unlock(&a);
    spin_unlock(&b);
}

void lock_order_init(void)
{
    lock_order_on = bootargs_debug("locks");
    if (bootargs_debug("inversion")) {
        invert();
    }
}
