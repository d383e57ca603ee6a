/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /sys/devices/system: CPUs and memory nodes, as Linux programs look for them;
 * /sys/kernel/mm.
 */
#include "kernel/errno.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/smp.h"
#include "mm/page.h"
#include "mm/reclaim.h"

static int cpus_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, cpu_count == 1 ? "0\n" : "0-%u\n", cpu_count - 1);
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
static const struct inode_ops cpus_ops = {.text = cpus_text};
static const struct inode_ops one_ops = {.text = one_text};

static void add(const char *path, const struct inode_ops *ops)
{
    if (tree_add(path, S_IFREG | 0444, ops, NULL) == NULL) {
        panic("no memory for %s", path);
    }
}

void sysfs_init(void)
{
    char path[64];

    if (tree_add("/sys/kernel/mm/numa/demotion_enabled", S_IFREG | 0644,
                 &demotion_ops, NULL) == NULL) {
        panic("no memory for /sys/kernel/mm");
    }
    add("/sys/devices/system/cpu/online", &cpus_ops);
    add("/sys/devices/system/cpu/possible", &cpus_ops);
    add("/sys/devices/system/cpu/present", &cpus_ops);
    for (unsigned i = 0; i < cpu_count; i++) {
        (void)snprintf(path, sizeof(path),
                       "/sys/devices/system/cpu/cpu%u/online", i);
        add(path, &one_ops);
    }
}
