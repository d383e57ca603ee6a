/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of /proc about the machine. */
#include "arch/sysreg.h"
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/procfs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/page.h"
#include "mm/swap.h"

static unsigned long kib(uint64_t pages)
{
    return pages * (PAGE_SIZE / 1024);
}

static int meminfo_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "MemTotal:       %8lu kB\n", kib(page_total_count()));
    text_printf(text, "MemFree:        %8lu kB\n", kib(page_free_count()));
    text_printf(text, "MemAvailable:   %8lu kB\n", kib(page_free_count()));
    text_printf(text, "Buffers:        %8u kB\n", 0);
    text_printf(text, "Cached:         %8u kB\n", 0);
    text_printf(text, "SwapCached:     %8u kB\n", 0);
    text_printf(text, "SwapTotal:      %8lu kB\n", kib(swap_total()));
    text_printf(text, "SwapFree:       %8lu kB\n",
                kib(swap_total() - min_u64(swap_used(), swap_total())));
    text_printf(text, "Zswapped:       %8lu kB\n", kib(swap_used()));
    text_printf(text, "Zswap:          %8lu kB\n", kib(swap_store_pages()));
    return 0;
}

static int uptime_text(struct inode *inode, struct text *text)
{
    uint64_t now = time_now_ns() / (NSEC_PER_SEC / 100), idle = 0;

    (void)inode;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t busy_ns, idle_ns;

        sched_cpu_times(cpu, &busy_ns, &idle_ns);
        idle += idle_ns / (NSEC_PER_SEC / 100);
    }
    text_printf(text, "%lu.%02lu %lu.%02lu\n", now / 100, now % 100, idle / 100,
                idle % 100);
    return 0;
}

/* Averages are not kept: all three are the present load. */
static int loadavg_text(struct inode *inode, struct text *text)
{
    unsigned n = sched_runnable();
    int32_t last;
    unsigned threads = process_threads(&last);

    (void)inode;
    text_printf(text, "%u.00 %u.00 %u.00 %u/%u %d\n", n, n, n, n, threads,
                last);
    return 0;
}

static int cpuinfo_text(struct inode *inode, struct text *text)
{
    uint64_t midr = read_midr_el1(), isar0 = read_id_aa64isar0_el1();

    (void)inode;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        text_printf(text, "processor\t: %u\nBogoMIPS\t: 125.00\n", cpu);
        text_printf(text, "Features\t: fp asimd%s\n",
                    (isar0 >> 20 & 0xf) >= 2 ? " atomics" : "");
        text_printf(text, "CPU implementer\t: 0x%02lx\n", midr >> 24 & 0xff);
        text_printf(text, "CPU architecture: 8\n");
        text_printf(text, "CPU variant\t: 0x%lx\n", midr >> 20 & 0xf);
        text_printf(text, "CPU part\t: 0x%03lx\n", midr >> 4 & 0xfff);
        text_printf(text, "CPU revision\t: %lu\n\n", midr & 0xf);
    }
    return 0;
}

static int mounts_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "rootfs / rootfs rw 0 0\n"
                      "devtmpfs /dev devtmpfs rw 0 0\n"
                      "proc /proc proc rw 0 0\n"
                      "sysfs /sys sysfs rw 0 0\n"
                      "tmpfs /tmp tmpfs rw 0 0\n");
    return 0;
}

static int version_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "Linux version 6.12.0-shootdown #1 SMP\n");
    return 0;
}

static int filesystems_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "nodev\tproc\nnodev\tsysfs\nnodev\ttmpfs\n");
    return 0;
}

void proc_system_init(void)
{
    procfs_add("/proc/cpuinfo", cpuinfo_text);
    procfs_add("/proc/filesystems", filesystems_text);
    procfs_add("/proc/loadavg", loadavg_text);
    procfs_add("/proc/meminfo", meminfo_text);
    procfs_add("/proc/mounts", mounts_text);
    procfs_add("/proc/uptime", uptime_text);
    procfs_add("/proc/version", version_text);
}
