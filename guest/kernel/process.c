/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of processes, numbers, and the first process. */
#include "kernel/process.h"

#include "kernel/errno.h"
#include "kernel/exec.h"
#include "kernel/panic.h"
#include "kernel/sched.h"
#include "kernel/time.h"
#include "mm/memcg.h"
#include "mm/mm.h"
#include "mm/page.h"

#define TID_MAX 32768

struct spinlock process_lock = SPINLOCK_INIT(LOCK_process);
struct process *init_process;

struct list process_list = LIST_INIT(process_list);
static _Atomic uint32_t forks;
static int32_t last_tid; /* [lock: process_lock] */

struct process *process_find(int32_t pid)
{
    struct list *at;

    list_for_each(at, &process_list)
    {
        struct process *process = list_entry(at, struct process, all);

        if (process->pid == pid) {
            return process;
        }
    }
    return NULL;
}

struct task *process_find_task(int32_t tid)
{
    struct list *p, *t;

    list_for_each(p, &process_list)
    {
        struct process *process = list_entry(p, struct process, all);

        list_for_each(t, &process->threads)
        {
            struct task *task = list_entry(t, struct task, process_node);

            if (task->tid == tid) {
                return task;
            }
        }
    }
    return NULL;
}

/* process_lock held. A number that neither a thread nor a zombie has. */
static int32_t tid_new(void)
{
    do {
        last_tid = last_tid >= TID_MAX ? 2 : last_tid + 1;
    } while (process_find_task(last_tid) != NULL ||
             process_find(last_tid) != NULL);
    return last_tid;
}

struct process *process_new(struct process *parent)
{
    struct process *process = kmalloc(sizeof(*process));
    uint64_t flags;

    if (process == NULL) {
        return NULL;
    }
    list_init(&process->children);
    list_init(&process->sibling);
    list_init(&process->threads);
    wait_queue_init(&process->child_wait);
    wait_queue_init(&process->vfork_wait);
    wait_queue_init(&process->thread_wait);
    wait_queue_init(&process->signal_wait);
    wait_queue_init(&process->stop_wait);
    spin_init(&process->signal_lock, LOCK_signal);
    signal_pending_init(&process->pending);
    file_table_init(&process->files);
    process->stop_reported = true;
    process->start_ns = time_now_ns();
    memcg_enter(process, parent == NULL || parent->memcg == NULL
                             ? memcg_root()
                             : parent->memcg);
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
    flags = spin_lock_irqsave(&process_lock);
    process->pid = tid_new();
    process->parent = parent;
    process->pgid = parent != NULL ? parent->pgid : process->pid;
    process->sid = parent != NULL ? parent->sid : process->pid;
    list_append(&process_list, &process->all);
    if (parent != NULL) {
        list_append(&parent->children, &process->sibling);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return process;
}

unsigned process_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

unsigned process_threads(int32_t *out_last)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    unsigned n = 0;
    struct list *at;

    list_for_each(at, &process_list)
    {
        n += list_entry(at, struct process, all)->thread_count;
    }
    *out_last = last_tid;
    spin_unlock_irqrestore(&process_lock, flags);
    return n;
}

void process_add_thread(struct process *process, struct task *task)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);

    task->tid = process->thread_count == 0 && list_empty(&process->threads)
                    ? process->pid
                    : tid_new();
    task->process = process;
    process->thread_count++;
    if (process->exec_task != NULL) {
        atomic_store_explicit(&task->killed, TASK_LEAVES, memory_order_relaxed);
    }
    if (process->exiting) {
        /* exit_group has passed: the newcomer dies before its first step. */
        atomic_store_explicit(&task->killed,
                              (uint32_t)process->exit_status % 128 + 1,
                              memory_order_relaxed);
    }
    list_append(&process->threads, &task->process_node);
    spin_unlock_irqrestore(&process_lock, flags);
}

void process_unlink(struct process *process)
{
    list_remove(&process->sibling);
    list_remove(&process->all);
}

void process_free(struct process *process)
{
    inode_put(process->cwd);
    kfree(process->exe);
    signal_pending_drop(&process->pending);
    memcg_leave(process); /* if it never ran */
    kfree(process);
}

int process_start_init(const char *path, int argc, const char *const *argv)
{
    static const char *const envp[] = {"PATH=/bin:/sbin:/usr/bin:/usr/sbin",
                                       "HOME=/", "TERM=dumb"};
    struct exec_strings strings = {0};
    struct exec_image image;
    struct process *process;
    struct task *task;
    int error =
        exec_strings_set(&strings, path, argc, argv, ARRAY_SIZE(envp), envp);

    if (error == 0) {
        error = exec_build(tree_root, &strings, &image);
    }
    if (error != 0) {
        return error;
    }
    process = process_new(NULL);
    task = task_new(image.name);
    if (process == NULL || task == NULL ||
        !file_table_open_console(&process->files)) {
        return -ENOMEM; /* the caller panics: nothing to undo */
    }
    init_process = process;
    process->cwd = inode_get(tree_root);
    process->umask = 022;
    process->exit_signal = SIGCHLD;
    task->mm = image.mm;
    exec_set_regs(task, &image);
    exec_set_process(process, &image);
    exec_strings_free(&strings);
    process_add_thread(process, task);
    task_start(task);
    return 0;
}
