/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /sys/devices/system: CPUs and memory nodes, as Linux programs look for them;
 * /sys/kernel/mm, and /proc/sys.
 */
#include "kernel/errno.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/smp.h"
#include "mm/node.h"
#include "mm/numa.h"
#include "mm/page.h"
#include "mm/reclaim.h"

static int cpus_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, cpu_count == 1 ? "0\n" : "0-%u\n", cpu_count - 1);
    return 0;
}

static int nodes_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, nodes_count() == 1 ? "0\n" : "0-%u\n", nodes_count() - 1);
    return 0;
}

static int one_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "1\n");
    return 0;
}

static int demotion_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "%s\n",
                atomic_load(&reclaim_demotion_enabled) ? "true" : "false");
    return 0;
}

static int64_t demotion_write(struct inode *inode, const char *bytes, size_t n)
{
    char c = n > 0 ? bytes[0] | 0x20 : 0;
    bool on = c == 'y' || c == 't' || bytes[0] == '1' ||
              (c == 'o' && n > 1 && (bytes[1] | 0x20) == 'n');
    bool off = c == 'n' || c == 'f' || bytes[0] == '0' ||
               (c == 'o' && n > 1 && (bytes[1] | 0x20) == 'f');

    (void)inode;
    if (n == 0 || (!on && !off)) {
        return -EINVAL;
    }
    atomic_store(&reclaim_demotion_enabled, on);
    return (int64_t)n;
}

static const struct inode_ops demotion_ops = {
    .text = demotion_text,
    .write = demotion_write,
};

/* --- /proc/sys/kernel/numa_balancing --- */

static int balancing_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "%u\n", numa_balancing);
    return 0;
}

static int64_t balancing_write(struct inode *inode, const char *bytes, size_t n)
{
    (void)inode;
    if (n == 0 || n > 2 || (bytes[0] != '0' && bytes[0] != '1') ||
        (n == 2 && bytes[1] != '\n')) {
        return -EINVAL;
    }
    numa_set_balancing(bytes[0] == '1');
    return (int64_t)n;
}

static const struct inode_ops balancing_ops = {
    .text = balancing_text,
    .write = balancing_write,
};

/* --- /sys/devices/system/node/nodeN; inode->private: N --- */

static unsigned node_of(const struct inode *inode)
{
    return (unsigned)(uintptr_t)inode->private;
}

static int node_cpulist_text(struct inode *inode, struct text *text)
{
    bool first = true;

    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        unsigned end = cpu;

        if (node_of_cpu(cpu) != node_of(inode)) {
            continue;
        }
        while (end + 1 < cpu_count && node_of_cpu(end + 1) == node_of(inode)) {
            end++;
        }
        text_printf(text, end == cpu ? "%s%u" : "%s%u-%u", first ? "" : ",",
                    cpu, end);
        first = false;
        cpu = end;
    }
    text_append(text, "\n", 1);
    return 0;
}

static int node_meminfo_text(struct inode *inode, struct text *text)
{
    unsigned node = node_of(inode);
    uint64_t total = page_total_count_node(node) * (PAGE_SIZE / 1024);
    uint64_t free = page_free_count_node(node) * (PAGE_SIZE / 1024);

    text_printf(text, "Node %u MemTotal:       %8lu kB\n", node, total);
    text_printf(text, "Node %u MemFree:        %8lu kB\n", node, free);
    text_printf(text, "Node %u MemUsed:        %8lu kB\n", node, total - free);
    return 0;
}

static int node_distance_text(struct inode *inode, struct text *text)
{
    for (unsigned i = 0; i < nodes_count(); i++) {
        text_printf(text, i == 0 ? "%u" : " %u", i == node_of(inode) ? 10 : 20);
    }
    text_append(text, "\n", 1);
    return 0;
}

static const struct inode_ops cpus_ops = {.text = cpus_text};
static const struct inode_ops nodes_ops = {.text = nodes_text};
static const struct inode_ops one_ops = {.text = one_text};
static const struct inode_ops cpulist_ops = {.text = node_cpulist_text};
static const struct inode_ops node_meminfo_ops = {.text = node_meminfo_text};
static const struct inode_ops distance_ops = {.text = node_distance_text};

static void add(const char *path, const struct inode_ops *ops, uint64_t number)
{
    if (tree_add(path, S_IFREG | 0444, ops, (void *)number) == NULL) {
        panic("no memory for %s", path);
    }
}

static void add_numbered(const char *folder, unsigned number, const char *file,
                         const struct inode_ops *ops)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s%u/%s", folder, number, file);
    add(path, ops, number);
}

void sysfs_init(void)
{
    static const char cpu[] = "/sys/devices/system/cpu/cpu",
                      node[] = "/sys/devices/system/node/node";

    add("/sys/devices/system/cpu/online", &cpus_ops, 0);
    add("/sys/devices/system/cpu/possible", &cpus_ops, 0);
    add("/sys/devices/system/cpu/present", &cpus_ops, 0);
    add("/sys/devices/system/node/online", &nodes_ops, 0);
    add("/sys/devices/system/node/possible", &nodes_ops, 0);
    if (tree_add("/sys/kernel/mm/numa/demotion_enabled", S_IFREG | 0644,
                 &demotion_ops, NULL) == NULL ||
        tree_add("/proc/sys/kernel/numa_balancing", S_IFREG | 0644,
                 &balancing_ops, NULL) == NULL) {
        panic("no memory for /sys/kernel/mm");
    }
    for (unsigned i = 0; i < cpu_count; i++) {
        add_numbered(cpu, i, "online", &one_ops);
    }
    for (unsigned i = 0; i < nodes_count(); i++) {
        add_numbered(node, i, "cpulist", &cpulist_ops);
        add_numbered(node, i, "meminfo", &node_meminfo_ops);
        add_numbered(node, i, "distance", &distance_ops);
    }
}
