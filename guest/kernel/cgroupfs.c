/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /sys/fs/cgroup: memory groups as directories, the memory part of Linux's
 * control groups, version 2. mkdir makes a group with its files, rmdir removes
 * one that has neither processes nor groups below it.
 *
 * A file knows its group by place and use of the place (memcg.h), so that one
 * that was opened before its group was removed answers ENODEV afterwards.
 */
#include "kernel/errno.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/process.h"
#include "mm/memcg.h"
#include "mm/vmscan.h"

#define PROCS_MAX 2048U
#define WRITE_MAX 64U

static const struct inode_ops dir_ops;

static void *handle_of(const struct memcg *group)
{
    return (void *)((uint64_t)atomic_load(&group->use) << 16 | group->id);
}

/* NULL: it was removed. */
static struct memcg *group_of(const struct inode *inode)
{
    uint64_t handle = (uint64_t)inode->private;
    struct memcg *group = &memcgs[handle & 0xffff];

    return atomic_load(&group->online) && handle_of(group) == inode->private
               ? group
               : NULL;
}

/* --- numbers --- */

/* What was written, without blanks around it; false: too long. */
static bool take_line(char *line, const char *bytes, size_t n)
{
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == ' ')) {
        n--;
    }
    while (n > 0 && *bytes == ' ') {
        bytes++;
        n--;
    }
    if (n >= WRITE_MAX) {
        return false;
    }
    memcpy(line, bytes, n);
    line[n] = '\0';
    return true;
}

/* "max", or a size in whole pages. */
static bool parse_pages(const char *line, int64_t *out)
{
    uint64_t bytes;

    if (strcmp(line, "max") == 0) {
        *out = MEMCG_NO_LIMIT;
        return true;
    }
    if (!str_to_size(&line, &bytes) || *line != '\0') {
        return false;
    }
    *out = (int64_t)min_u64(bytes >> PAGE_SHIFT, (uint64_t)MEMCG_NO_LIMIT);
    return true;
}

/* --- cgroup.* --- */

static int controllers_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "memory\n");
    return 0;
}

static int64_t subtree_write(struct inode *inode, const char *bytes, size_t n)
{
    char line[WRITE_MAX];

    (void)inode;
    if (!take_line(line, bytes, n) ||
        (strcmp(line, "+memory") != 0 && strcmp(line, "-memory") != 0 &&
         line[0] != '\0')) {
        return -EINVAL;
    }
    return (int64_t)n; /* every group has it anyway */
}

static int type_text(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "domain\n");
    return 0;
}

static int cgroup_events_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);
    bool populated = false;

    if (group == NULL) {
        return -ENODEV;
    }
    for (struct memcg *g = memcg_next(group, NULL); g != NULL;
         g = memcg_next(group, g)) {
        populated |= atomic_load(&g->procs) != 0;
    }
    text_printf(text, "populated %d\nfrozen 0\n", populated);
    return 0;
}

static int procs_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);
    int32_t *pids;
    unsigned n = 0;
    struct list *at;
    uint64_t flags;

    if (group == NULL) {
        return -ENODEV;
    }
    pids = kmalloc(PROCS_MAX * sizeof(*pids));
    if (pids == NULL) {
        return -ENOMEM;
    }
    flags = spin_lock_irqsave(&process_lock);
    list_for_each(at, &process_list)
    {
        struct process *process = list_entry(at, struct process, all);

        if (process->memcg == group && n < PROCS_MAX) {
            pids[n++] = process->pid;
        }
    }
    spin_unlock_irqrestore(&process_lock, flags);
    for (unsigned i = 0; i < n; i++) {
        text_printf(text, "%d\n", pids[i]);
    }
    kfree(pids);
    return 0;
}

static int64_t procs_write(struct inode *inode, const char *bytes, size_t n)
{
    struct memcg *group;
    char line[WRITE_MAX];
    struct process *process;
    int64_t result = -ESRCH;
    uint64_t pid, flags;

    if (!take_line(line, bytes, n) || !str_to_u64(line, &pid) ||
        pid > INT32_MAX) {
        return -EINVAL;
    }
    /* Keeps the group from being removed under us. */
    rwsem_read_lock(&tree_lock);
    group = group_of(inode);
    if (group == NULL) {
        rwsem_read_unlock(&tree_lock);
        return -ENODEV;
    }
    flags = spin_lock_irqsave(&process_lock);
    process = pid == 0 ? current()->process : process_find((int32_t)pid);
    if (process != NULL && process->memcg != NULL) {
        memcg_enter(process, group);
        result = (int64_t)n;
    }
    spin_unlock_irqrestore(&process_lock, flags);
    rwsem_read_unlock(&tree_lock);
    return result;
}

/* --- memory.* --- */

static int usage_text(struct text *text, const struct memcg_limit *limit)
{
    text_printf(text, "%ld\n", (long)(atomic_load(&limit->usage) * PAGE_SIZE));
    return 0;
}

static int limit_text(struct text *text, const struct memcg_limit *limit)
{
    int64_t max = atomic_load(&limit->max);

    if (max == MEMCG_NO_LIMIT) {
        text_printf(text, "max\n");
    } else {
        text_printf(text, "%ld\n", (long)(max * PAGE_SIZE));
    }
    return 0;
}

static int current_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);

    return group == NULL ? -ENODEV : usage_text(text, &group->memory);
}

static int max_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);

    return group == NULL ? -ENODEV : limit_text(text, &group->memory);
}

static int64_t max_write(struct inode *inode, const char *bytes, size_t n)
{
    struct memcg *group = group_of(inode);
    char line[WRITE_MAX];
    int64_t pages;

    if (group == NULL) {
        return -ENODEV;
    }
    if (!take_line(line, bytes, n) || !parse_pages(line, &pages)) {
        return -EINVAL;
    }
    memcg_set_max(group, pages);
    return (int64_t)n;
}

static int swap_current_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);

    return group == NULL ? -ENODEV : usage_text(text, &group->swap);
}

static int swap_max_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);

    return group == NULL ? -ENODEV : limit_text(text, &group->swap);
}

static int64_t swap_max_write(struct inode *inode, const char *bytes, size_t n)
{
    struct memcg *group = group_of(inode);
    char line[WRITE_MAX];
    int64_t slots;

    if (group == NULL) {
        return -ENODEV;
    }
    if (!take_line(line, bytes, n) || !parse_pages(line, &slots)) {
        return -EINVAL;
    }
    atomic_store(&group->swap.max, slots); /* what is in swap stays there */
    return (int64_t)n;
}

static int64_t reclaim_write(struct inode *inode, const char *bytes, size_t n)
{
    struct memcg *group = group_of(inode);
    char line[WRITE_MAX];
    const char *at = line;
    uint64_t size;
    int error;

    if (group == NULL) {
        return -ENODEV;
    }
    if (!take_line(line, bytes, n) || !str_to_size(&at, &size)) {
        return -EINVAL;
    }
    if (strncmp(at, " swappiness=", 12) == 0) {
        uint64_t swappiness;

        /* All pages here go to swap: there is no other kind to prefer. */
        if (!str_to_u64(at + 12, &swappiness) || swappiness > 200) {
            return -EINVAL;
        }
    } else if (*at != '\0') {
        return -EINVAL;
    }
    error = vmscan_request(group, size >> PAGE_SHIFT);
    return error != 0 ? error : (int64_t)n;
}

static int stat_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);
    uint64_t anon = 0, shmem = 0, active = 0, inactive = 0;

    if (group == NULL) {
        return -ENODEV;
    }
    for (struct memcg *g = memcg_next(group, NULL); g != NULL;
         g = memcg_next(group, g)) {
        for (unsigned node = 0; node < MAX_NODES; node++) {
            struct lru_stat stat;

            lru_count(&g->lruvecs[node], &stat);
            anon += stat.anon;
            shmem += stat.shmem;
            active += stat.active;
            inactive += stat.inactive;
        }
    }
    text_printf(text,
                "anon %lu\nfile 0\nshmem %lu\ninactive_anon %lu\n"
                "active_anon %lu\ninactive_file 0\nactive_file 0\n",
                anon * PAGE_SIZE, shmem * PAGE_SIZE, inactive * PAGE_SIZE,
                active * PAGE_SIZE);
    return 0;
}

static int memory_events_text(struct inode *inode, struct text *text)
{
    struct memcg *group = group_of(inode);

    if (group == NULL) {
        return -ENODEV;
    }
    text_printf(text, "low 0\nhigh 0\nmax %lu\noom %lu\noom_kill %lu\n",
                atomic_load(&group->events_max),
                atomic_load(&group->events_oom),
                atomic_load(&group->events_oom_kill));
    return 0;
}

/* --- directories --- */

static const struct group_file {
    const char *name;
    bool in_root;
    struct inode_ops ops;
} files[] = {
    {"cgroup.controllers", true, {.text = controllers_text}},
    {"cgroup.events", false, {.text = cgroup_events_text}},
    {"cgroup.procs", true, {.text = procs_text, .write = procs_write}},
    {"cgroup.subtree_control",
     true,
     {.text = controllers_text, .write = subtree_write}},
    {"cgroup.type", false, {.text = type_text}},
    {"memory.current", false, {.text = current_text}},
    {"memory.events", false, {.text = memory_events_text}},
    {"memory.max", false, {.text = max_text, .write = max_write}},
    {"memory.reclaim", true, {.write = reclaim_write}},
    {"memory.stat", true, {.text = stat_text}},
    {"memory.swap.current", false, {.text = swap_current_text}},
    {"memory.swap.max",
     false,
     {.text = swap_max_text, .write = swap_max_write}},
};

static bool add_files(struct inode *dir, const struct memcg *group)
{
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        uint32_t mode = S_IFREG;

        if (group->parent == NULL && !files[i].in_root) {
            continue;
        }
        mode |= files[i].ops.text != NULL ? 0444U : 0;
        mode |= files[i].ops.write != NULL ? 0200U : 0;
        if (inode_add(dir, files[i].name, mode, &files[i].ops,
                      handle_of(group)) == NULL) {
            return false;
        }
    }
    return true;
}

static int group_mkdir(struct inode *dir, const char *name, uint32_t mode)
{
    struct memcg *parent = group_of(dir), *group;
    struct inode *inode;

    if (parent == NULL) {
        return -ENODEV;
    }
    group = memcg_make(parent);
    if (group == NULL) {
        return -EAGAIN;
    }
    inode = inode_add(dir, name, S_IFDIR | (mode & 0777), &dir_ops,
                      handle_of(group));
    if (inode == NULL || !add_files(inode, group)) {
        if (inode != NULL) {
            inode_unlink(inode);
        }
        (void)memcg_remove(group);
        return -ENOMEM;
    }
    return 0;
}

static int group_rmdir(struct inode *dir)
{
    struct memcg *group = group_of(dir);

    if (group == NULL) {
        return -ENODEV;
    }
    return group->parent == NULL ? -EBUSY : memcg_remove(group);
}

static const struct inode_ops dir_ops = {
    .mkdir = group_mkdir,
    .rmdir = group_rmdir,
};

void cgroupfs_init(void)
{
    struct inode *dir = tree_add("/sys/fs/cgroup", S_IFDIR | 0755, &dir_ops,
                                 handle_of(memcg_root()));

    if (dir == NULL || !add_files(dir, memcg_root())) {
        panic("no memory for /sys/fs/cgroup");
    }
}
