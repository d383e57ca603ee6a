/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc: what the kernel tells of itself and of processes.
 *
 * /proc/shootdown: "name value" lines, the totals of abi/counters.inc. Written
 * to, it runs a hook: "ipi CPU COUNT" makes COUNT round trips to that CPU.
 * /proc/shootdown_cpu: the same lines for the CPU that reads it.
 * /proc/shootdown_cpus: "name value value ...", one value for each CPU.
 * /proc/shootdown_frames: "name frames": what the frames of RAM are used for;
 * and how many slots of swap are in use.
 */
#include "kernel/bootargs.h"
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/lock_order.h"
#include "kernel/panic.h"
#include "kernel/process.h"
#include "kernel/procfs.h"
#include "kernel/smp.h"
#include "mm/counters.h"
#include "mm/frames.h"
#include "mm/page.h"
#include "mm/swap.h"

static int shootdown_text(struct inode *inode, struct text *text)
{
    (void)inode;
    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        enum annot_counter_index which = (enum annot_counter_index)i;

        text_printf(text, "%s %lu\n", counter_name(which),
                    counter_total(which));
    }
    return 0;
}

/* Of the CPU that reads the file: what a pinned program's calls cost there. */
static int shootdown_cpu_text(struct inode *inode, struct text *text)
{
    const uint64_t *values = (const uint64_t *)&counters[cpu_id()];

    (void)inode;
    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        enum annot_counter_index which = (enum annot_counter_index)i;

        text_printf(text, "%s %lu\n", counter_name(which), values[i]);
    }
    return 0;
}

static int cmdline_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "%s\n", bootargs.line);
    return 0;
}

static int lock_order_file_text(struct inode *inode, struct text *text)
{
    size_t n = 4 * PAGE_SIZE;
    char *buf = kmalloc(n);

    (void)inode;
    if (buf == NULL) {
        return -ENOMEM;
    }
    text_append(text, buf, lock_order_text(buf, n));
    kfree(buf);
    return 0;
}

static void hook_ipi_nothing(void *arg)
{
    (void)arg;
}

static bool hook_ipi(char *args)
{
    char *count_text = strchr(args, ' ');
    struct cpumask mask;
    uint64_t cpu, count;

    if (count_text == NULL) {
        return false;
    }
    *count_text++ = '\0';
    if (!str_to_u64(args, &cpu) || !str_to_u64(count_text, &count) ||
        cpu >= cpu_count || count > 1000000) {
        return false;
    }
    cpumask_zero(&mask);
    cpumask_set(&mask, (unsigned)cpu);
    for (; count > 0; count--) {
        smp_call_mask(&mask, hook_ipi_nothing, NULL, true);
    }
    return true;
}

static int64_t procfs_hook_write(struct inode *inode, const char *text,
                                 size_t size)
{
    char line[64];

    (void)inode;
    if (size >= sizeof(line)) {
        return -EINVAL;
    }
    memcpy(line, text, size);
    line[size] = '\0';
    if (size > 0 && line[size - 1] == '\n') {
        line[size - 1] = '\0';
    }
    if (strncmp(line, "ipi ", 4) == 0 && hook_ipi(line + 4)) {
        return (int64_t)size;
    }
    return -EINVAL;
}

static int shootdown_cpus_text(struct inode *inode, struct text *text)
{
    (void)inode;
    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        text_printf(text, "%s", counter_name((enum annot_counter_index)i));
        for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
            text_printf(text, " %lu", ((const uint64_t *)&counters[cpu])[i]);
        }
        text_append(text, "\n", 1);
    }
    return 0;
}

static int shootdown_frames_text(struct inode *inode, struct text *text)
{
    struct frame_counts counts;

    (void)inode;
    frames_count(&counts);
    for (unsigned i = 0; i < FRAME_KINDS; i++) {
        text_printf(text, "%s %lu\n", frame_kind_name((enum frame_kind)i),
                    counts.n[i]);
    }
    text_printf(text, "swap_slots %lu\n", swap_used());
    return 0;
}

void procfs_add(const char *path, int (*text)(struct inode *, struct text *))
{
    struct inode_ops *ops = kmalloc(sizeof(*ops)); /* lives on */

    if (ops != NULL) {
        ops->text = text;
    }
    if (ops == NULL || tree_add(path, S_IFREG | 0444, ops, NULL) == NULL) {
        panic("no memory for %s", path);
    }
}

void procfs_init(void)
{
    static const struct inode_ops shootdown_ops = {.text = shootdown_text,
                                                   .write = procfs_hook_write};

    proc_pid_init();
    if (tree_add("/proc/shootdown", S_IFREG | 0644, &shootdown_ops, NULL) ==
        NULL) {
        panic("no memory for /proc/shootdown");
    }
    procfs_add("/proc/cmdline", cmdline_text);
    procfs_add("/proc/lock_order", lock_order_file_text);
    procfs_add("/proc/shootdown_cpu", shootdown_cpu_text);
    procfs_add("/proc/shootdown_cpus", shootdown_cpus_text);
    procfs_add("/proc/shootdown_frames", shootdown_frames_text);
    proc_interrupts_init();
    proc_system_init();
}
