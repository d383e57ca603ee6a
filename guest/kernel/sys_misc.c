/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls about the system, CPUs and limits. */
#include "arch/barrier.h"
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/random.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/node.h"
#include "mm/page.h"
#include "mm/swap.h"
#include "mm/uaccess.h"

#define RLIMITS 16
#define RLIMIT_STACK 3
#define RLIMIT_CORE 4
#define RLIMIT_NOFILE 7
#define RLIM_INFINITY UINT64_MAX
#define PR_SET_NAME 15
#define PR_GET_NAME 16
#define MEMBARRIER_CMD_QUERY 0
#define MEMBARRIER_CMD_GLOBAL 1
#define MEMBARRIER_CMD_PRIVATE_EXPEDITED 8
#define MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED 16

int64_t sys_uname(uint64_t buf_va)
{
    static const char *const fields[6] = {
        "Linux", "shootdown", "6.12.0-shootdown", "#1 SMP", "aarch64", "(none)",
    };
    char buf[6][65];

    memset(buf, 0, sizeof(buf));
    for (unsigned i = 0; i < 6; i++) {
        strlcpy(buf[i], fields[i], sizeof(buf[i]));
    }
    return copy_to_user(buf_va, buf, sizeof(buf)) != 0 ? -EFAULT : 0;
}

int64_t sys_sysinfo(uint64_t buf_va)
{
    struct {
        int64_t uptime;
        uint64_t loads[3], totalram, freeram, sharedram, bufferram;
        uint64_t totalswap, freeswap;
        uint16_t procs, pad;
        uint64_t totalhigh, freehigh;
        uint32_t mem_unit;
    } info = {.uptime = (int64_t)(time_now_ns() / NSEC_PER_SEC),
              .totalram = page_total_count() * PAGE_SIZE,
              .freeram = page_free_count() * PAGE_SIZE,
              .totalswap = page_total_count() * PAGE_SIZE,
              .freeswap = (page_total_count() - swap_used()) * PAGE_SIZE,
              .procs = (uint16_t)sched_runnable(),
              .mem_unit = 1};

    return copy_to_user(buf_va, &info, sizeof(info)) != 0 ? -EFAULT : 0;
}

int64_t sys_getrandom(uint64_t buf_va, uint64_t size)
{
    for (uint64_t done = 0; done < size; done += 8) {
        uint64_t value = random_u64();

        if (copy_to_user(buf_va + done, &value, min_u64(8, size - done)) != 0) {
            return -EFAULT;
        }
    }
    return (int64_t)size;
}

/* Only RLIMIT_NOFILE can be changed, and is obeyed. */
int64_t sys_prlimit64(uint64_t pid, uint64_t resource, uint64_t new_va,
                      uint64_t old_va)
{
    uint64_t limit[2] = {RLIM_INFINITY, RLIM_INFINITY}, wanted[2];
    struct file_table *files = my_files();

    if (resource >= RLIMITS) {
        return -EINVAL;
    }
    if (pid != 0 && pid != (uint64_t)current()->process->pid) {
        return -ESRCH;
    }
    if (new_va != 0) {
        if (copy_from_user(wanted, new_va, sizeof(wanted)) != 0) {
            return -EFAULT;
        }
        if (wanted[0] > wanted[1]) {
            return -EINVAL;
        }
        if (resource == RLIMIT_NOFILE && wanted[1] > FILES_MAX) {
            return -EPERM;
        }
    }
    if (resource == RLIMIT_STACK) {
        limit[0] = 8UL << 20;
    } else if (resource == RLIMIT_CORE) {
        limit[0] = 0;
    } else if (resource == RLIMIT_NOFILE) {
        limit[0] = files->limit;
        limit[1] = FILES_MAX;
        if (new_va != 0) {
            files->limit = (unsigned)wanted[0];
        }
    }
    if (old_va == 0) {
        return 0;
    }
    return copy_to_user(old_va, limit, sizeof(limit)) != 0 ? -EFAULT : 0;
}

int64_t sys_getcpu(uint64_t cpu_va, uint64_t node_va)
{
    if ((cpu_va != 0 && put_user_u32(cpu_va, cpu_id()) != 0) ||
        (node_va != 0 && put_user_u32(node_va, node_of_cpu(cpu_id())) != 0)) {
        return -EFAULT;
    }
    return 0;
}

int64_t sys_getppid(void)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *parent = current()->process->parent;
    int64_t pid = parent != NULL ? parent->pid : 0;

    spin_unlock_irqrestore(&process_lock, flags);
    return pid;
}

int64_t sys_sched_setaffinity(uint64_t pid, uint64_t size, uint64_t mask_va)
{
    struct cpumask mask;
    struct task *task = current();
    uint64_t words[CPUMASK_WORDS] = {0};
    uint64_t flags;
    int error;

    if (copy_from_user(words, mask_va, min_u64(size, sizeof(words))) != 0) {
        return -EFAULT;
    }
    for (unsigned i = 0; i < CPUMASK_WORDS; i++) {
        cpumask_set_word(&mask, i, words[i]);
    }
    if (pid == 0 || (int64_t)pid == task->tid) {
        return task_set_affinity(task, &mask) != 0 ? -EINVAL : 0;
    }
    flags = spin_lock_irqsave(&process_lock);
    task = process_find_task((int32_t)pid);
    error = task == NULL                          ? -ESRCH
            : task_set_affinity(task, &mask) != 0 ? -EINVAL
                                                  : 0;
    spin_unlock_irqrestore(&process_lock, flags);
    return error;
}

int64_t sys_sched_getaffinity(uint64_t pid, uint64_t size, uint64_t mask_va)
{
    /* What a kernel of this many CPUs copies: whole words. */
    uint64_t len = ALIGN_UP((uint64_t)cpu_count, 64UL) / 8;
    uint64_t words[CPUMASK_WORDS];
    struct task *task;
    uint64_t flags;

    if (size < len || (size & 7) != 0) {
        return -EINVAL;
    }
    flags = spin_lock_irqsave(&process_lock);
    task = pid == 0 ? current() : process_find_task((int32_t)pid);
    for (unsigned i = 0; task != NULL && i < CPUMASK_WORDS; i++) {
        words[i] = cpumask_word(&task->affinity, i);
    }
    spin_unlock_irqrestore(&process_lock, flags);
    if (task == NULL) {
        return -ESRCH;
    }
    return copy_to_user(mask_va, words, len) != 0 ? -EFAULT : (int64_t)len;
}

static void membarrier_here(void *arg)
{
    (void)arg;
    dmb_ish();
}

int64_t sys_membarrier(uint64_t cmd, uint64_t flags)
{
    struct cpumask targets;

    if (flags != 0) {
        return -EINVAL;
    }
    switch (cmd) {
    case MEMBARRIER_CMD_QUERY:
        return MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_PRIVATE_EXPEDITED |
               MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    case MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED:
        return 0;
    case MEMBARRIER_CMD_GLOBAL:
        smp_call_mask(&cpu_online_mask, membarrier_here, NULL, true);
        return 0;
    case MEMBARRIER_CMD_PRIVATE_EXPEDITED:
        /* A CPU that starts to run the mm later goes through the switch. */
        dmb_ish();
        sched_cpus_of_mm(current()->mm, &targets);
        smp_call_mask(&targets, membarrier_here, NULL, true);
        dmb_ish();
        return 0;
    default:
        return -EINVAL;
    }
}

int64_t sys_set_tid_address(uint64_t va)
{
    current()->clear_child_tid = va;
    return current()->tid;
}

int64_t sys_prctl(uint64_t option, uint64_t arg)
{
    struct task *task = current();
    char name[16] = {0};
    int64_t len;

    switch (option) {
    case PR_SET_NAME:
        len = strncpy_from_user(name, arg, sizeof(name));
        if (len < 0) {
            return len;
        }
        name[sizeof(name) - 1] = '\0';
        strlcpy(task->name, name, sizeof(task->name));
        return 0;
    case PR_GET_NAME:
        strlcpy(name, task->name, sizeof(name));
        return copy_to_user(arg, name, sizeof(name));
    default:
        return -EINVAL;
    }
}
