/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU start-up and cross-CPU calls.
 *
 * A call: the source fills its descriptor, then sets its bit in each target's
 * queue. A target takes a whole word of bits with one exchange and runs the
 * descriptors they name; each run decrements the source's count of outstanding
 * targets. Bit set (release) pairs with the exchange (acquire); the decrement
 * (release) pairs with the source's load (acquire). A word that was non-zero
 * has already caused an SGI whose handler has not exchanged it yet, so no
 * second SGI is needed.
 */
#include "kernel/smp.h"

#include "arch/barrier.h"
#include "drivers/gic.h"
#include "drivers/timer.h"
#include "kernel/board.h"
#include "kernel/irqstat.h"
#include "kernel/lib.h"
#include "kernel/lock_order.h"
#include "kernel/panic.h"
#include "kernel/power.h"
#include "kernel/printk.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "kernel/time.h"
#include "mm/mm.h"
#include "mm/page.h"

#define SMP_START_TIMEOUT_NS (60 * NSEC_PER_SEC)

struct smp_call {
    void (*fn)(void *); /* [source] written only while outstanding == 0 */
    void *arg;
    _Atomic uint32_t outstanding;
} CACHE_ALIGNED;

struct smp_queue {
    _Atomic uint64_t sources[CPUMASK_WORDS];
} CACHE_ALIGNED;

struct cpu cpus[MAX_CPUS];
struct cpumask cpu_online_mask;
unsigned cpu_count;
unsigned cpumask_words = CPUMASK_WORDS;

static struct smp_call calls[MAX_CPUS];
static struct smp_queue queues[MAX_CPUS];

void secondary_entry(void); /* boot/start.S, entered by physical address */
void secondary_main(struct cpu *cpu);

void smp_call_serve(void)
{
    struct smp_queue *queue = &queues[cpu_id()];

    for (unsigned w = 0; w * 64 < cpu_count; w++) {
        uint64_t bits;

        if (atomic_load_explicit(&queue->sources[w], memory_order_relaxed) ==
            0) {
            continue;
        }
        bits = atomic_exchange_explicit(&queue->sources[w], 0,
                                        memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) {
            struct smp_call *call =
                &calls[w * 64 + (unsigned)__builtin_ctzl(bits)];

            call->fn(call->arg);
            atomic_fetch_sub_explicit(&call->outstanding, 1,
                                      memory_order_release);
        }
    }
}

static void smp_call_wait(struct smp_call *call)
{
    bool masked = local_irqs_masked();

    while (atomic_load_explicit(&call->outstanding, memory_order_acquire) !=
           0) {
        if (masked) {
            smp_call_serve();
        }
        cpu_relax();
    }
}

void smp_call_mask(const struct cpumask *mask, void (*fn)(void *), void *arg,
                   bool wait)
{
    unsigned self = cpu_id();
    struct smp_call *call = &calls[self];
    struct cpumask targets, kick;
    unsigned cpu, count;

    ASSERT(!in_irq());
    cpumask_copy(&targets, mask);
    cpumask_and(&targets, &cpu_online_mask);
    cpumask_clear(&targets, self);
    count = cpumask_weight(&targets);
    if (count == 0) {
        return;
    }
    if (wait) {
        lock_order_take(LOCK_cpu_call, LOCK_ORDER_WAIT);
    }
    smp_call_wait(call); /* an earlier call without wait */
    call->fn = fn;
    call->arg = arg;
    atomic_store_explicit(&call->outstanding, count, memory_order_relaxed);
    cpumask_zero(&kick);
    for_each_cpu(cpu, &targets)
    {
        uint64_t before =
            atomic_fetch_or_explicit(&queues[cpu].sources[self / 64],
                                     BIT(self % 64), memory_order_release);

        if (before == 0) {
            cpumask_set(&kick, cpu);
        }
    }
    if (!cpumask_empty(&kick)) {
        gic_send_sgi(&kick, SGI_CALL);
    }
    if (wait) {
        smp_call_wait(call);
    }
}

void smp_send_reschedule(unsigned cpu)
{
    struct cpumask mask;

    cpumask_zero(&mask);
    cpumask_set(&mask, cpu);
    gic_send_sgi(&mask, SGI_RESCHEDULE);
}

void smp_stop_others(void)
{
    struct cpumask mask;

    cpumask_copy(&mask, &cpu_online_mask);
    cpumask_clear(&mask, cpu_id());
    gic_send_sgi(&mask, SGI_STOP);
}

void smp_handle_sgi(unsigned intid)
{
    switch ((enum smp_sgi)intid) {
    case SGI_CALL:
        irq_count(IRQ_CALL);
        smp_call_serve();
        return;
    case SGI_RESCHEDULE:
        irq_count(IRQ_RESCHEDULE);
        sched_reschedule_irq();
        return;
    case SGI_STOP:
        irq_count(IRQ_STOP);
        local_irq_disable();
        for (;;) {
            wfi();
        }
    }
    printk("smp: SGI %u has no meaning here\n", intid);
}

void smp_init_boot_cpu(void)
{
    uint64_t self = read_mpidr_el1() & BOARD_MPIDR_AFFINITY_MASK;

    cpu_count = board.cpus;
    cpumask_words = (cpu_count + 63) / 64;
    /* The boot CPU is number 0 wherever the device tree lists it. */
    for (unsigned i = 0; i < cpu_count; i++) {
        if (board.mpidr[i] == self && i != 0) {
            uint32_t node = board.cpu_node[i];

            board.mpidr[i] = board.mpidr[0];
            board.mpidr[0] = self;
            board.cpu_node[i] = board.cpu_node[0];
            board.cpu_node[0] = node;
        }
    }
    for (unsigned i = 0; i < cpu_count; i++) {
        cpus[i].id = i;
        cpus[i].mpidr = board.mpidr[i];
    }
    atomic_store_explicit(&cpus[0].online, 1, memory_order_relaxed);
    cpumask_set(&cpu_online_mask, 0);
}

/* A CPU's first C code: it becomes its own idle task. */
void secondary_main(struct cpu *cpu)
{
    mm_cpu_init();
    gic_init_cpu();
    timer_init_cpu();
    sched_init_cpu(cpu, current());
    atomic_store_explicit(&cpu->online, 1, memory_order_release);
    sched_idle();
}

static bool smp_start_cpu(struct cpu *cpu)
{
    struct task *idle = task_new_idle(cpu->id);
    int64_t error;

    if (idle == NULL) {
        printk("smp: no memory for CPU %u\n", cpu->id);
        return false;
    }
    cpu->idle = idle;
    cpu->boot_stack_top = (uint64_t)idle + KSTACK_SIZE;
    dsb_ishst();
    error = power_cpu_on(cpu->mpidr,
                         virt_to_phys((void *)(uintptr_t)secondary_entry),
                         (uint64_t)cpu);
    if (error != 0) {
        printk("smp: CPU %u (MPIDR 0x%lx) does not start: PSCI %ld\n", cpu->id,
               cpu->mpidr, error);
        return false;
    }
    return true;
}

void smp_init(void)
{
    uint64_t deadline = time_now_ns() + SMP_START_TIMEOUT_NS;
    unsigned started = 1;

    for (; started < cpu_count; started++) {
        if (!smp_start_cpu(&cpus[started])) {
            cpu_count = started; /* CPU numbers stay contiguous */
            break;
        }
    }
    for (unsigned i = 1; i < cpu_count; i++) {
        while (atomic_load_explicit(&cpus[i].online, memory_order_acquire) ==
               0) {
            ASSERT_MSG(time_now_ns() < deadline,
                       "CPU %u did not come up within %lu s", i,
                       SMP_START_TIMEOUT_NS / NSEC_PER_SEC);
            cpu_relax();
        }
        cpumask_set(&cpu_online_mask, i);
    }
}
