/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs in processes of their own, some at a time: a job that crashes is one
 * failed job. What they write comes back in the order of the jobs.
 *
 * The calling process must have one thread.
 */
#ifndef LITMUS_POOL_H
#define LITMUS_POOL_H

#include <stdbool.h>
#include <glib.h>

struct pool_ops {
    /* In the child: whatever goes to `out` reaches finished(). */
    void (*work)(void *opaque, guint job, GString *out);
    /* In the parent, in order. text NULL: the child did not come to its end;
     * status as of waitpid(). */
    void (*finished)(void *opaque, guint job, const char *text, int status);
    /* In the parent, a few times a second; may be NULL. */
    void (*progress)(void *opaque, guint done);
};

/* False: the first system call that failed, in error; jobs are lost. */
bool pool_run(const struct pool_ops *ops, void *opaque, guint jobs,
              unsigned workers, GError **error);

#endif
