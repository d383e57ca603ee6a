/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of signals. */
#ifndef KERNEL_SIGNAL_H
#define KERNEL_SIGNAL_H

#include "kernel/types.h"

int64_t sys_kill(int64_t pid, int64_t signal);
int64_t sys_tgkill(int64_t tgid, int64_t tid, int64_t signal);
int64_t sys_rt_sigaction(int64_t signal, uint64_t new_va, uint64_t old_va,
                         uint64_t set_size);
int64_t sys_rt_sigprocmask(uint64_t how, uint64_t set_va, uint64_t old_va,
                           uint64_t set_size);

#endif
