/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Telling the outside about a line that changes under a lock, without holding
 * the lock while telling.
 *
 * Dropping the lock and then calling would let two threads overtake each
 * other: the line goes up and down, the callbacks arrive as down and up, and
 * the listener believes the wrong level for ever. So one thread at a time
 * tells, and it goes on until what it told is what is wanted. A thread that
 * finds another one telling only records what it wants. The same rule makes a
 * callback that changes the line again safe: it records, and the outer call
 * tells.
 */
#ifndef DEV_NOTIFY_PRIV_H
#define DEV_NOTIFY_PRIV_H

#include <stdbool.h>
#include <uv.h>

/* All fields are under the lock given to notify_run_locked(). */
struct notify {
    bool told; /* what the listener knows */
    bool want; /* what is true */
    bool busy; /* somebody is telling */
};

/* Called with the lock held and returns with it held; drops it around each
 * call of tell. Nothing read under the lock before is valid afterwards. */
static inline void notify_run_locked(struct notify *notify, uv_mutex_t *lock,
                                     bool want,
                                     void (*tell)(void *arg, bool level),
                                     void *arg)
{
    notify->want = want;
    if (notify->busy || notify->told == want) {
        return;
    }
    notify->busy = true;
    do {
        bool level = notify->want;

        notify->told = level;
        uv_mutex_unlock(lock);
        tell(arg, level);
        uv_mutex_lock(lock);
    } while (notify->told != notify->want);
    notify->busy = false;
}

#endif
