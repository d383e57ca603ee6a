/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/interrupts, /proc/stat and /proc/vmstat.
 *
 * interrupts has arm64's rows, and x86's "TLB" row: flush requests that a CPU
 * handled for another one, as Linux counts them there.
 */
#include "abi/board.h"
#include "kernel/errno.h"
#include "kernel/irqstat.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/procfs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/counters.h"
#include "mm/page.h"

struct irq_stats irq_stats[MAX_CPUS];

static const struct {
    const char *label, *name;
} rows[IRQ_KINDS] = {
    [IRQ_TIMER] = {"11", "GICv3  27 Level     arch_timer"},
    [IRQ_UART] = {"13", "GICv3  33 Level     uart-pl011"},
    [IRQ_RESCHEDULE] = {"IPI0", "Rescheduling interrupts"},
    [IRQ_CALL] = {"IPI1", "Function call interrupts"},
    [IRQ_STOP] = {"IPI2", "CPU stop interrupts"},
};

static void interrupts_row(struct text *text, const char *label,
                           const uint64_t *first, size_t stride,
                           const char *name)
{
    size_t start = text->len;

    text_pad_to(text, start, 4 - min_u64(strlen(label), 4));
    text_printf(text, "%s:", label);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        text_printf(text, " %10lu",
                    *(const uint64_t *)((const char *)first + cpu * stride));
    }
    text_printf(text, "       %s\n", name);
}

static int interrupts_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "     ");
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        size_t start = text->len;

        text_printf(text, "      CPU%u", cpu);
        text_pad_to(text, start, 11);
    }
    text_append(text, "\n", 1);
    for (unsigned kind = 0; kind < IRQ_KINDS; kind++) {
        interrupts_row(text, rows[kind].label, &irq_stats[0].count[kind],
                       sizeof(irq_stats[0]), rows[kind].name);
    }
    interrupts_row(text, "TLB", &counters[0].remote_flush_received,
                   sizeof(counters[0]), "TLB shootdowns");
    text_printf(text, "Err:          0\n");
    return 0;
}

/* --- stat: times in 1/100 s; what is not idle counts as user time --- */

static void stat_cpu(struct text *text, uint64_t busy_ns, uint64_t idle_ns)
{
    text_printf(text, " %lu 0 0 %lu 0 0 0 0 0 0\n", busy_ns / NSEC_PER_TICK,
                idle_ns / NSEC_PER_TICK);
}

static int stat_text(struct inode *inode, struct text *text)
{
    uint64_t busy = 0, idle = 0, interrupts = 0;

    (void)inode;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t busy_ns, idle_ns;

        sched_cpu_times(cpu, &busy_ns, &idle_ns);
        busy += busy_ns;
        idle += idle_ns;
        for (unsigned kind = 0; kind < IRQ_KINDS; kind++) {
            interrupts += irq_stats[cpu].count[kind];
        }
    }
    text_printf(text, "cpu ");
    stat_cpu(text, busy, idle);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        sched_cpu_times(cpu, &busy, &idle);
        text_printf(text, "cpu%u", cpu);
        stat_cpu(text, busy, idle);
    }
    text_printf(text, "intr %lu\nctxt %lu\nbtime %lu\n", interrupts,
                counter_total(ANNOT_COUNTER_context_switches),
                REALTIME_OFFSET_NS / NSEC_PER_SEC);
    text_printf(text, "processes %u\nprocs_running %u\nprocs_blocked 0\n",
                process_forks(), sched_runnable());
    return 0;
}

/* --- vmstat: Linux's names for the guest's counters --- */

#define ROW(linux_name, counter)                                               \
    {                                                                          \
        linux_name, offsetof(struct annot_counters, counter) / 8               \
    }

static const struct {
    const char *name;
    unsigned counter;
} vmstat_rows[] = {
    ROW("numa_pte_updates", numa_pte_updates),
    ROW("numa_hint_faults", numa_hint_faults),
    ROW("numa_pages_migrated", numa_pages_migrated),
    ROW("pgmigrate_success", migrate_success),
    ROW("pgmigrate_fail", migrate_fail),
    ROW("pgdemote_total", pages_demoted),
    ROW("pswpin", swap_in),
    ROW("pswpout", swap_out),
    ROW("pgfault", page_faults),
    ROW("pgmajfault", swap_in),
    ROW("pglazyfreed", lazyfree_freed),
    ROW("oom_kill", oom_kills),
    ROW("allocstall_normal", allocstall),
    ROW("thp_fault_alloc", block_faults),
    ROW("thp_split_pmd", block_splits),
    ROW("nr_tlb_remote_flush", remote_flush),
    ROW("nr_tlb_remote_flush_received", remote_flush_received),
};

/* Counters that have Linux's name already speak for themselves. */
static bool has_linux_name(const char *name)
{
    static const char *const prefixes[] = {"pg",  "pswp",  "numa_",      "thp_",
                                           "nr_", "drop_", "workingset_"};

    for (unsigned i = 0; i < ARRAY_SIZE(vmstat_rows); i++) {
        if (strcmp(name, vmstat_rows[i].name) == 0) {
            return false; /* listed above */
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int vmstat_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "nr_free_pages %lu\n", page_free_count());
    for (unsigned i = 0; i < ARRAY_SIZE(vmstat_rows); i++) {
        text_printf(
            text, "%s %lu\n", vmstat_rows[i].name,
            counter_total((enum annot_counter_index)vmstat_rows[i].counter));
    }
    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        enum annot_counter_index which = (enum annot_counter_index)i;

        if (has_linux_name(counter_name(which))) {
            text_printf(text, "%s %lu\n", counter_name(which),
                        counter_total(which));
        }
    }
    return 0;
}

void proc_interrupts_init(void)
{
    procfs_add("/proc/interrupts", interrupts_text);
    procfs_add("/proc/stat", stat_text);
    procfs_add("/proc/vmstat", vmstat_text);
}
