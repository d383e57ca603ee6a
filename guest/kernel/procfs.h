/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of /proc. */
#ifndef KERNEL_PROCFS_H
#define KERNEL_PROCFS_H

#include "kernel/inode.h"

struct mm;
struct process;

/* Boot: a file that only has a text. */
void procfs_add(const char *path, int (*text)(struct inode *, struct text *));

void proc_interrupts_init(void); /* interrupts, stat, vmstat */
void proc_system_init(void);     /* cpuinfo, loadavg, meminfo, ... */
void proc_pid_init(void);        /* self, and the numbers */

/* proc_maps.c; mm may be NULL: an empty text */
void proc_maps_text(struct mm *mm, struct text *text);
void proc_smaps_text(struct mm *mm, struct text *text, bool rollup);

/* proc_status.c; process_lock is taken inside */
struct mm *proc_mm_get(int32_t pid); /* with a reference; NULL */
int proc_status_text(int32_t pid, struct text *text);
int proc_stat_text(int32_t pid, struct text *text);

#endif
