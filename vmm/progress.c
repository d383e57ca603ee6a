/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line that says how far a command is; see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_US (2 * G_USEC_PER_SEC)
#define EVERY_US (G_USEC_PER_SEC / 5)
/* The bar is never shorter; then the rest is cut. */
#define BAR_MIN 10u

void progress_init(struct progress *p, bool is_wanted)
{
    *p = (struct progress){.is_on = is_wanted && isatty(STDERR_FILENO) != 0};
    p->start_us = g_get_monotonic_time();
    p->due_us = p->start_us + FIRST_US;
}

char *progress_bar_text(uint64_t done, uint64_t total, const char *what,
                        unsigned seconds)
{
    g_autofree char *rest =
        g_strdup_printf(" %" PRIu64 " of %" PRIu64 " %s, %u s",
                        MIN(done, total), total, what, seconds);
    size_t used = MIN(strlen(rest) + 2, PROGRESS_COLUMNS - BAR_MIN);
    unsigned width = PROGRESS_COLUMNS - (unsigned)used;
    unsigned full =
        total ? (unsigned)((double)MIN(done, total) / (double)total * width)
              : width;
    g_autofree char *bar = g_strnfill(width, '.');

    memset(bar, '#', full);
    return g_strdup_printf("[%s]%.*s", bar, (int)used - 2, rest);
}

static bool is_due(struct progress *p)
{
    int64_t now;

    if (!p->is_on) {
        return false;
    }
    now = g_get_monotonic_time();
    if (now < p->due_us) {
        return false;
    }
    p->due_us = now + EVERY_US;
    return true;
}

static void show(struct progress *p, const char *text)
{
    fprintf(stderr, "\r%.*s\033[K", (int)PROGRESS_COLUMNS, text);
    (void)fflush(stderr); /* a lost progress line is no failure */
    p->is_shown = true;
}

void progress_bar(struct progress *p, uint64_t done, uint64_t total,
                  const char *what)
{
    if (is_due(p)) {
        g_autofree char *text = progress_bar_text(
            done, total, what,
            (unsigned)((g_get_monotonic_time() - p->start_us) /
                       G_USEC_PER_SEC));

        show(p, text);
    }
}

void progress_text(struct progress *p, const char *format, ...)
{
    if (is_due(p)) {
        g_autofree char *text = NULL;
        va_list args;

        va_start(args, format);
        text = g_strdup_vprintf(format, args);
        va_end(args);
        show(p, text);
    }
}

void progress_clear(struct progress *p)
{
    if (p->is_shown) {
        fprintf(stderr, "\r\033[K");
        (void)fflush(stderr);
        p->is_shown = false;
    }
}
