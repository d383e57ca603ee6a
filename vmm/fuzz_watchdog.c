/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fuzzer's watchdog: a thread that ends the execution that is going on if
 * it takes longer than -timeout, or if the person has had enough.
 */
#include <signal.h>
#include <uv.h>

#include "fuzz.h"

#define LOOK_EVERY_MS 50u

static volatile sig_atomic_t interrupted;

struct fuzz_watchdog {
    struct fuzz *fuzz;
    uv_thread_t thread;
    _Atomic bool quit;
    _Atomic uint64_t began_ns; /* of the execution; 0: none */
};

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

bool fuzz_interrupted(const struct fuzz *fuzz)
{
    (void)fuzz;
    return interrupted != 0;
}

void fuzz_watchdog_begin(struct fuzz *fuzz)
{
    if (fuzz->flags->timeout) {
        atomic_store(&fuzz->watchdog->began_ns, uv_hrtime());
    }
}

static void watch(void *opaque)
{
    struct fuzz_watchdog *w = opaque;
    uint64_t limit_ns = w->fuzz->flags->timeout * 1000000000u;

    while (!atomic_load(&w->quit)) {
        uint64_t began = atomic_load(&w->began_ns);

        if (interrupted) {
            fuzz_target_abandon(w->fuzz->target, false);
        } else if (limit_ns && began && uv_hrtime() - began > limit_ns) {
            fuzz_target_abandon(w->fuzz->target, true);
        }
        uv_sleep(LOOK_EVERY_MS);
    }
}

struct fuzz_watchdog *fuzz_watchdog_new(struct fuzz *fuzz)
{
    struct fuzz_watchdog *w = g_new0(struct fuzz_watchdog, 1);
    struct sigaction action = {.sa_handler = on_signal};

    w->fuzz = fuzz;
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (uv_thread_create(&w->thread, watch, w) != 0) {
        g_free(w);
        return NULL;
    }
    return w;
}

void fuzz_watchdog_free(struct fuzz_watchdog *w)
{
    if (w) {
        atomic_store(&w->quit, true);
        uv_thread_join(&w->thread);
        g_free(w);
    }
}
