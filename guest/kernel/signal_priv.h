/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What signal.c, signal_send.c and signal_pending.c share; signal.h. */
#ifndef KERNEL_SIGNAL_PRIV_H
#define KERNEL_SIGNAL_PRIV_H

#include "kernel/signal.h"

#define STOP_SIGNALS                                                           \
    (SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) |         \
     SIGNAL_BIT(SIGTTOU))
#define IGNORED_SIGNALS                                                        \
    (SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) |          \
     SIGNAL_BIT(SIGWINCH))

/* --- signal_pending.c; signal_lock held --- */
void signal_pending_add(struct signal_pending *pending,
                        const struct signal_info *info);
/* Forgets those of the set. */
void signal_pending_remove(struct signal_pending *pending, uint64_t set);
/* The first of that number; its bit goes with the last. */
void signal_pending_take(struct signal_pending *pending, int signo,
                         struct signal_info *out);

/* --- signal_send.c --- */
/* Makes the task look: it may sleep, or run user code on another CPU. */
void signal_kick(struct task *task);

#endif
