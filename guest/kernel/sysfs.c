/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /sys/devices/system: CPUs and memory nodes, as Linux programs look for them.
 */
#include "kernel/errno.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/smp.h"
#include "mm/page.h"

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

    add("/sys/devices/system/cpu/online", &cpus_ops);
    add("/sys/devices/system/cpu/possible", &cpus_ops);
    add("/sys/devices/system/cpu/present", &cpus_ops);
    for (unsigned i = 0; i < cpu_count; i++) {
        (void)snprintf(path, sizeof(path),
                       "/sys/devices/system/cpu/cpu%u/online", i);
        add(path, &one_ops);
    }
}
