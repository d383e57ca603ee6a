/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of signals that wait for a task or a process. */
#include "kernel/signal_priv.h"

#include "kernel/lib.h"
#include "mm/page.h"

struct signal_queued {
    struct list node;
    struct signal_info info;
};

void signal_pending_init(struct signal_pending *pending)
{
    pending->bits = 0;
    list_init(&pending->queue);
}

void signal_pending_remove(struct signal_pending *pending, uint64_t set)
{
    struct list *at, *next;

    pending->bits &= ~set;
    list_for_each_safe(at, next, &pending->queue)
    {
        struct signal_queued *queued =
            list_entry(at, struct signal_queued, node);

        if ((SIGNAL_BIT(queued->info.signo) & set) != 0) {
            list_remove(at);
            kfree(queued);
        }
    }
}

void signal_pending_drop(struct signal_pending *pending)
{
    signal_pending_remove(pending, ~0UL);
}

void signal_pending_add(struct signal_pending *pending,
                        const struct signal_info *info)
{
    uint64_t bit = SIGNAL_BIT(info->signo);
    struct signal_queued *queued;

    if (info->signo < SIGRTMIN && (pending->bits & bit) != 0) {
        return; /* one of a kind is enough */
    }
    pending->bits |= bit;
    queued = kmalloc(sizeof(*queued));
    if (queued != NULL) { /* else it arrives without its story */
        queued->info = *info;
        list_append(&pending->queue, &queued->node);
    }
}

/* The first of that number; its bit goes with the last. */
void signal_pending_take(struct signal_pending *pending, int signo,
                         struct signal_info *out)
{
    struct signal_queued *found = NULL;
    bool more = false;
    struct list *at;

    list_for_each(at, &pending->queue)
    {
        struct signal_queued *queued =
            list_entry(at, struct signal_queued, node);

        if (queued->info.signo == signo) {
            more = found != NULL;
            if (more) {
                break;
            }
            found = queued;
        }
    }
    if (!more) {
        pending->bits &= ~SIGNAL_BIT(signo);
    }
    memset(out, 0, sizeof(*out));
    out->signo = signo;
    if (found != NULL) {
        *out = found->info;
        list_remove(&found->node);
        kfree(found);
    }
}
