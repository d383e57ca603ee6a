/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pool of processes; see pool.h. */
#include "litmus/pool.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"

#define WORKERS_MAX 256u
#define TICK_MS 200 /* of progress */

struct worker {
    pid_t pid;
    int fd; /* -1: idle */
    guint job;
    GString *text;
};

struct result {
    bool done;
    char *text; /* or NULL */
    int status;
};

static bool write_all(int fd, const char *p, gsize n)
{
    while (n) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        p += done;
        n -= (gsize)done;
    }
    return true;
}

static bool start(struct worker *w, const struct pool_ops *ops, void *opaque,
                  guint job, GError **error)
{
    int ends[2];

    if (pipe(ends) == 0) {
        fflush(NULL);
        w->pid = fork();
        if (w->pid == 0) {
            GString *out = g_string_new(NULL);

            close(ends[0]);
            ops->work(opaque, job, out);
            _exit(write_all(ends[1], out->str, out->len) ? 0 : 1);
        }
        close(ends[1]);
        if (w->pid > 0) {
            w->fd = ends[0];
            w->job = job;
            w->text = g_string_new(NULL);
            return true;
        }
        close(ends[0]);
    }
    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                "a process for a worker: %s; try a smaller -j",
                g_strerror(errno));
    return false;
}

/* Reads what is there. True: the worker is done. */
static bool read_some(struct worker *w, struct result *results)
{
    char buffer[65536];
    ssize_t n = read(w->fd, buffer, sizeof(buffer));
    struct result *r = &results[w->job];

    if (n > 0) {
        g_string_append_len(w->text, buffer, n);
        return false;
    }
    if (n < 0 && errno == EINTR) {
        return false;
    }
    close(w->fd);
    w->fd = -1;
    while (waitpid(w->pid, &r->status, 0) < 0 && errno == EINTR) {
    }
    r->done = true;
    r->text = g_string_free(w->text, r->status != 0);
    return true;
}

struct pool {
    const struct pool_ops *ops;
    void *opaque;
    guint jobs, next, told, done;
    struct worker *workers;
    unsigned count;
    struct result *results;
};

static bool fill(struct pool *p, GError **error)
{
    for (unsigned i = 0; i < p->count && p->next < p->jobs; i++) {
        if (p->workers[i].fd < 0) {
            if (!start(&p->workers[i], p->ops, p->opaque, p->next, error)) {
                return false;
            }
            p->next++;
        }
    }
    return true;
}

static void collect(struct pool *p)
{
    struct pollfd fds[WORKERS_MAX];
    int ready;

    for (unsigned i = 0; i < p->count; i++) {
        fds[i] = (struct pollfd){.fd = p->workers[i].fd, .events = POLLIN};
    }
    ready = poll(fds, p->count, p->ops->progress ? TICK_MS : -1);
    if (p->ops->progress) {
        p->ops->progress(p->opaque, p->done);
    }
    if (ready < 0) {
        return; /* interrupted: once more */
    }
    for (unsigned i = 0; i < p->count; i++) {
        if (fds[i].fd >= 0 && fds[i].revents &&
            read_some(&p->workers[i], p->results)) {
            p->done++;
        }
    }
    while (p->told < p->jobs && p->results[p->told].done) {
        struct result *r = &p->results[p->told];

        p->ops->finished(p->opaque, p->told, r->text, r->status);
        g_clear_pointer(&r->text, g_free);
        p->told++;
    }
}

bool pool_run(const struct pool_ops *ops, void *opaque, guint jobs,
              unsigned workers, GError **error)
{
    struct pool p = {
        .ops = ops,
        .opaque = opaque,
        .jobs = jobs,
        .count = CLAMP(workers, 1, WORKERS_MAX),
    };
    bool ok = true;

    p.workers = g_new0(struct worker, p.count);
    p.results = g_new0(struct result, jobs + 1);
    for (unsigned i = 0; i < p.count; i++) {
        p.workers[i].fd = -1;
    }
    while (ok && p.told < jobs) {
        ok = fill(&p, error);
        /* Also after a failure: nobody is left behind. */
        while (p.done < p.next) {
            collect(&p);
            if (ok) {
                break;
            }
        }
    }
    g_free(p.results);
    g_free(p.workers);
    return ok;
}
