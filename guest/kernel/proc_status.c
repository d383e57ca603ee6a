/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/PID/status and stat: a snapshot under process_lock, then the text. */
#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/procfs.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/mm.h"
#include "mm/node.h"
#include "mm/report.h"

struct facts {
    char name[16];
    char state;
    int32_t pid, ppid, pgid, sid;
    unsigned threads, umask, files;
    uint64_t pending, shared_pending, blocked, ignored, caught;
    struct cpumask allowed;
    struct usage usage, waited;
    uint64_t start_ns;
    uint64_t sp;
    unsigned cpu;
    int exit_signal, exit_status;
    va_t arg_start, arg_end, env_end;
    struct mm_totals mm;
    bool has_mm;
};

static struct task *first_task(const struct process *process)
{
    return list_empty(&process->threads)
               ? NULL
               : list_first(&process->threads, struct task, process_node);
}

struct mm *proc_mm_get(int32_t pid)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = process_find(pid);
    struct mm *mm = NULL;
    struct list *at;

    if (process != NULL) {
        list_for_each(at, &process->threads)
        {
            struct task *task = list_entry(at, struct task, process_node);

            if (task->mm != NULL) {
                mm = task->mm;
                mm_get(mm); /* the task's own reference is still there */
                break;
            }
        }
    }
    spin_unlock_irqrestore(&process_lock, flags);
    return mm;
}

/* process_lock held. */
static void facts_of_task(struct task *task, struct facts *out)
{
    strlcpy(out->name, task->name, sizeof(out->name));
    out->state = task->state == TASK_BLOCKED ? 'S' : 'R';
    out->pending = task->pending.bits;
    out->blocked = task->sigmask;
    out->cpu = task->cpu;
    out->sp = task_regs(task)->sp;
    cpumask_copy(&out->allowed, &task->affinity);
}

static int facts_get(int32_t pid, struct facts *out)
{
    uint64_t flags = spin_lock_irqsave(&process_lock);
    struct process *process = process_find(pid);
    struct task *task;
    struct mm *mm;

    memset(out, 0, sizeof(*out));
    if (process == NULL) {
        spin_unlock_irqrestore(&process_lock, flags);
        return -ESRCH;
    }
    task = first_task(process);
    out->state = 'Z';
    if (task != NULL) {
        facts_of_task(task, out);
    }
    out->state = process->zombie             ? 'Z'
                 : process->stop_signal != 0 ? 'T'
                                             : out->state;
    out->pid = process->pid;
    out->ppid = process->parent != NULL ? process->parent->pid : 0;
    out->pgid = process->pgid;
    out->sid = process->sid;
    out->threads = process->thread_count;
    out->umask = process->umask;
    out->files = process->files.size;
    out->shared_pending = process->pending.bits;
    for (unsigned i = 1; i <= SIGNALS; i++) {
        uint64_t handler = process->actions[i].handler;

        out->ignored |= handler == SIG_IGN ? SIGNAL_BIT(i) : 0;
        out->caught |= handler > SIG_IGN ? SIGNAL_BIT(i) : 0;
    }
    usage_of(process, &out->usage);
    out->waited = process->waited;
    out->start_ns = process->start_ns;
    out->exit_signal = process->exit_signal;
    out->exit_status = process->zombie ? process->exit_status : 0;
    out->arg_start = process->arg_start;
    out->arg_end = process->arg_end;
    out->env_end = process->env_end;
    spin_unlock_irqrestore(&process_lock, flags);
    mm = proc_mm_get(pid);
    if (mm != NULL) {
        out->has_mm = true;
        mm_report_totals(mm, &out->mm);
        mm_put(mm);
    }
    return 0;
}

static const char *state_name(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'T':
        return "stopped";
    default:
        return "zombie";
    }
}

static void status_memory(const struct facts *f, struct text *text)
{
    text_printf(text, "VmSize:\t%8lu kB\n", f->mm.size / 1024);
    text_printf(text, "VmRSS:\t%8lu kB\n", f->mm.rss / 1024);
    text_printf(text, "VmData:\t%8lu kB\n", f->mm.data / 1024);
    text_printf(text, "VmStk:\t%8lu kB\n", f->mm.stack / 1024);
    text_printf(text, "VmPTE:\t%8lu kB\n", f->mm.tables / 1024);
    text_printf(text, "VmSwap:\t%8lu kB\n", f->mm.swapped / 1024);
}

/* Masks are words of 32 bits, the highest first. */
static void status_cpus(const struct facts *f, struct text *text)
{
    bool first = true;

    text_printf(text, "Cpus_allowed:\t");
    for (unsigned w = (cpu_count + 31) / 32; w-- > 0;) {
        text_printf(
            text, "%s%0*x", first ? "" : ",",
            w == (cpu_count + 31) / 32 - 1 ? 1 : 8,
            (uint32_t)(cpumask_word(&f->allowed, w / 2) >> (w % 2 * 32)));
        first = false;
    }
    text_printf(text, "\nCpus_allowed_list:\t");
    first = true;
    for (unsigned cpu = 0; cpu < cpu_count;) {
        unsigned end = cpu;

        if (!cpumask_test(&f->allowed, cpu)) {
            cpu++;
            continue;
        }
        while (end + 1 < cpu_count && cpumask_test(&f->allowed, end + 1)) {
            end++;
        }
        text_printf(text, end == cpu ? "%s%u" : "%s%u-%u", first ? "" : ",",
                    cpu, end);
        first = false;
        cpu = end + 1;
    }
    text_append(text, "\n", 1);
}

int proc_status_text(int32_t pid, struct text *text)
{
    struct facts f;
    int error = facts_get(pid, &f);

    if (error != 0) {
        return error;
    }
    text_printf(text, "Name:\t%s\nUmask:\t%04o\nState:\t%c (%s)\n", f.name,
                f.umask, f.state, state_name(f.state));
    text_printf(text, "Tgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t%d\n", f.pid,
                f.pid, f.ppid);
    text_printf(text, "TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
    text_printf(text, "FDSize:\t%u\nGroups:\t \n", f.files);
    text_printf(text, "NStgid:\t%d\nNSpid:\t%d\nNSpgid:\t%d\nNSsid:\t%d\n",
                f.pid, f.pid, f.pgid, f.sid);
    if (f.has_mm) {
        status_memory(&f, text);
    }
    text_printf(text, "Threads:\t%u\nSigQ:\t0/0\n", f.threads);
    text_printf(text, "SigPnd:\t%016lx\nShdPnd:\t%016lx\n", f.pending,
                f.shared_pending);
    text_printf(text, "SigBlk:\t%016lx\nSigIgn:\t%016lx\nSigCgt:\t%016lx\n",
                f.blocked, f.ignored, f.caught);
    status_cpus(&f, text);
    text_printf(text, "Mems_allowed:\t%lx\n", (1UL << nodes_count()) - 1);
    text_printf(text,
                nodes_count() == 1 ? "Mems_allowed_list:\t0\n"
                                   : "Mems_allowed_list:\t0-%u\n",
                nodes_count() - 1);
    text_printf(text, "voluntary_ctxt_switches:\t%lu\n", f.usage.switches_own);
    text_printf(text, "nonvoluntary_ctxt_switches:\t%lu\n",
                f.usage.switches_forced);
    return 0;
}

int proc_stat_text(int32_t pid, struct text *text)
{
    struct facts f;
    int error = facts_get(pid, &f);

    if (error != 0) {
        return error;
    }
    /* pid comm state ppid pgrp session tty tpgid flags */
    text_printf(text, "%d (%s) %c %d %d %d 0 -1 0", f.pid, f.name, f.state,
                f.ppid, f.pgid, f.sid);
    /* minflt cminflt majflt cmajflt utime stime cutime cstime */
    text_printf(text, " %lu %lu 0 0 %lu 0 %lu 0", f.usage.faults,
                f.waited.faults, f.usage.cpu_ns / NSEC_PER_TICK,
                f.waited.cpu_ns / NSEC_PER_TICK);
    /* priority nice threads itrealvalue starttime vsize rss rsslim */
    text_printf(text, " 20 0 %u 0 %lu %lu %lu %lu", f.threads,
                f.start_ns / NSEC_PER_TICK, f.mm.size, f.mm.rss >> PAGE_SHIFT,
                UINT64_MAX);
    /* startcode endcode startstack esp eip signal blocked ignored caught */
    text_printf(text, " 1 1 %lu %lu 0 %lu %lu %lu %lu", f.arg_start, f.sp,
                f.pending & 0x7fffffff, f.blocked & 0x7fffffff,
                f.ignored & 0x7fffffff, f.caught & 0x7fffffff);
    /* wchan nswap cnswap exit_signal processor rt_priority policy delays
     * guest cguest start_data end_data start_brk */
    text_printf(text, " 0 0 0 %d %u 0 0 0 0 0 0 0 0", f.exit_signal, f.cpu);
    /* arg_start arg_end env_start env_end exit_code */
    text_printf(text, " %lu %lu %lu %lu %d\n", f.arg_start, f.arg_end,
                f.arg_end, f.env_end, f.exit_status);
    return 0;
}
