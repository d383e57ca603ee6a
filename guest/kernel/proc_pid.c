/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/PID: inodes that are made when somebody looks and go when nobody does.
 * They know the number only; each use looks for the process again.
 */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/process.h"
#include "kernel/procfs.h"
#include "mm/mm.h"
#include "mm/page.h"
#include "mm/report.h"
#include "mm/uaccess.h"

/* inode->private: the number. */
static int32_t pid_of(const struct inode *inode)
{
    return (int32_t)(intptr_t)inode->private;
}

static bool pid_exists(int32_t pid)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    bool exists = process_find(pid) != NULL;

    spin_unlock_irqrestore(&process_lock, flags);
    return exists;
}

/* --- the files --- */

static int with_mm(struct inode *inode, struct text *text,
                   void (*fn)(struct mm *, struct text *))
{
    struct mm *mm = proc_mm_get(pid_of(inode));

    if (mm == NULL) {
        return pid_exists(pid_of(inode)) ? 0 : -ESRCH;
    }
    fn(mm, text);
    mm_put(mm);
    return 0;
}

static int maps_text(struct inode *inode, struct text *text)
{
    return with_mm(inode, text, proc_maps_text);
}

static void smaps_of(struct mm *mm, struct text *text)
{
    proc_smaps_text(mm, text, false);
}

static void rollup_of(struct mm *mm, struct text *text)
{
    proc_smaps_text(mm, text, true);
}

static void statm_of(struct mm *mm, struct text *text)
{
    struct mm_totals t;

    mm_report_totals(mm, &t);
    text_printf(text, "%lu %lu 0 0 0 %lu 0\n", t.size >> PAGE_SHIFT,
                t.rss >> PAGE_SHIFT, (t.data + t.stack) >> PAGE_SHIFT);
}

static int smaps_text(struct inode *inode, struct text *text)
{
    return with_mm(inode, text, smaps_of);
}

static int smaps_rollup_text(struct inode *inode, struct text *text)
{
    return with_mm(inode, text, rollup_of);
}

static int statm_text(struct inode *inode, struct text *text)
{
    return with_mm(inode, text, statm_of);
}

static int status_text(struct inode *inode, struct text *text)
{
    return proc_status_text(pid_of(inode), text);
}

static int stat_text(struct inode *inode, struct text *text)
{
    return proc_stat_text(pid_of(inode), text);
}

/* Bytes of the process's memory, as far as they are there. */
static int memory_text(int32_t pid, bool environment, struct text *text)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = process_find(pid);
    va_t at = 0, end = 0;
    struct mm *mm;
    char buf[64];

    if (process != NULL) {
        at = environment ? process->arg_end : process->arg_start;
        end = environment ? process->env_end : process->arg_end;
    }
    spin_unlock_irqrestore(&process_lock, flags);
    mm = proc_mm_get(pid);
    while (mm != NULL && at < end) {
        size_t n = min_u64(sizeof(buf), end - at);

        if (copy_from_mm(mm, buf, at, n) != 0) {
            break;
        }
        text_append(text, buf, n);
        at += n;
    }
    if (mm != NULL) {
        mm_put(mm);
    }
    return process != NULL ? 0 : -ESRCH;
}

static int cmdline_text(struct inode *inode, struct text *text)
{
    return memory_text(pid_of(inode), false, text);
}

static int environ_text(struct inode *inode, struct text *text)
{
    return memory_text(pid_of(inode), true, text);
}

static int comm_text(struct inode *inode, struct text *text)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = process_find(pid_of(inode));
    char name[16] = "";

    if (process != NULL && !list_empty(&process->threads)) {
        strlcpy(name,
                list_first(&process->threads, struct task, process_node)->name,
                sizeof(name));
    }
    spin_unlock_irqrestore(&process_lock, flags);
    text_printf(text, "%s\n", name);
    return process != NULL ? 0 : -ESRCH;
}

static int exe_link(struct inode *inode, struct text *text)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = process_find(pid_of(inode));
    bool any = false;

    if (process != NULL) {
        spin_lock(&process->files.lock);
        any = process->exe != NULL && !process->zombie;
        if (any) {
            text_append(text, process->exe, strlen(process->exe));
        }
        spin_unlock(&process->files.lock);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return any ? 0 : -ENOENT;
}

static int cwd_link(struct inode *inode, struct text *text)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = process_find(pid_of(inode));
    struct inode *dir = NULL;
    int error = -ENOENT;

    if (process != NULL && !process->zombie) {
        spin_lock(&process->files.lock);
        dir = inode_get(process->cwd);
        spin_unlock(&process->files.lock);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    if (dir != NULL) {
        error = path_of_locked(dir, text);
        inode_put(dir);
    }
    return error;
}

static const struct inode_ops maps_ops = {.text = maps_text};
static const struct inode_ops smaps_ops = {.text = smaps_text};
static const struct inode_ops rollup_ops = {.text = smaps_rollup_text};
static const struct inode_ops statm_ops = {.text = statm_text};
static const struct inode_ops status_ops = {.text = status_text};
static const struct inode_ops stat_ops = {.text = stat_text};
static const struct inode_ops cmdline_ops = {.text = cmdline_text};
static const struct inode_ops environ_ops = {.text = environ_text};
static const struct inode_ops comm_ops = {.text = comm_text};
static const struct inode_ops exe_ops = {.link = exe_link};
static const struct inode_ops cwd_ops = {.link = cwd_link};

static const struct {
    const char *name;
    uint32_t mode;
    const struct inode_ops *ops;
} files[] = {
    {"cmdline", S_IFREG | 0444, &cmdline_ops},
    {"comm", S_IFREG | 0444, &comm_ops},
    {"cwd", S_IFLNK | 0777, &cwd_ops},
    {"environ", S_IFREG | 0400, &environ_ops},
    {"exe", S_IFLNK | 0777, &exe_ops},
    {"maps", S_IFREG | 0444, &maps_ops},
    {"smaps", S_IFREG | 0444, &smaps_ops},
    {"smaps_rollup", S_IFREG | 0444, &rollup_ops},
    {"stat", S_IFREG | 0444, &stat_ops},
    {"statm", S_IFREG | 0444, &statm_ops},
    {"status", S_IFREG | 0444, &status_ops},
    {"fd", S_IFDIR | 0500, &fd_dir_ops}, /* of oneself only */
};

/* --- the directories; tree_lock is held --- */

static struct inode *file_lookup(struct inode *dir, const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        bool own = pid_of(dir) == current()->process->pid;

        if (strcmp(files[i].name, name) == 0 &&
            (files[i].ops != &fd_dir_ops || own)) {
            return inode_new(files[i].mode, files[i].ops, dir->private);
        }
    }
    return NULL;
}

static bool file_list(struct inode *dir, struct dir_entry *entry)
{
    uint64_t i = entry->pos - 2;

    if (i >= ARRAY_SIZE(files) || !pid_exists(pid_of(dir))) {
        return false;
    }
    if (files[i].ops == &fd_dir_ops && /* the last one */
        pid_of(dir) != current()->process->pid) {
        return false;
    }
    entry->pos++;
    entry->ino = ((uint64_t)pid_of(dir) << 8) + i + 1;
    entry->mode = files[i].mode;
    strlcpy(entry->name, files[i].name, sizeof(entry->name));
    return true;
}

static const struct inode_ops pid_ops = {.lookup = file_lookup,
                                         .list = file_list};

static struct inode *pid_lookup(struct inode *dir, const char *name)
{
    uint64_t pid;

    (void)dir;
    if (name[0] < '1' || name[0] > '9' || !str_to_u64(name, &pid) ||
        pid > INT32_MAX || !pid_exists((int32_t)pid)) {
        return NULL;
    }
    return inode_new(S_IFDIR | 0555, &pid_ops, (void *)(intptr_t)pid);
}

#define PID_POS BIT(32) /* above the positions of the tree's own entries */

static bool pid_list(struct inode *dir, struct dir_entry *entry)
{
    int32_t above = entry->pos < PID_POS ? 0 : (int32_t)(entry->pos - PID_POS);
    int32_t next = 0;
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct list *at;

    (void)dir;
    list_for_each(at, &process_list)
    {
        int32_t pid = list_entry(at, struct process, all)->pid;

        if (pid > above && (next == 0 || pid < next)) {
            next = pid;
        }
    }
    spin_unlock_irqrestore(&process_lock, flags);
    if (next == 0) {
        return false;
    }
    entry->pos = PID_POS + (uint64_t)next;
    entry->ino = (uint64_t)next << 8;
    entry->mode = S_IFDIR | 0555;
    (void)snprintf(entry->name, sizeof(entry->name), "%d", next);
    return true;
}

static int self_link(struct inode *inode, struct text *text)
{
    (void)inode;
    text_printf(text, "%d", current()->process->pid);
    return 0;
}

void proc_pid_init(void)
{
    static const struct inode_ops dir_ops = {.lookup = pid_lookup,
                                             .list = pid_list};
    static const struct inode_ops self_ops = {.link = self_link};
    struct inode *dir = inode_child(tree_root, "proc");

    if (dir == NULL ||
        tree_add("/proc/self", S_IFLNK | 0777, &self_ops, NULL) == NULL) {
        panic("no memory for /proc/self");
    }
    dir->ops = &dir_ops;
}
