/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How far a long command is: one line on standard error, for a person. Only on
 * a terminal, only if it takes more than two seconds, and never more than 80
 * columns, so that it can be wiped. Main thread.
 */
#ifndef VMM_PROGRESS_H
#define VMM_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <glib.h>

/* Without the last column: some terminals wrap there. */
#define PROGRESS_COLUMNS 79u

struct progress {
    bool is_on;
    bool is_shown;  /* there is a line to be wiped */
    int64_t due_us; /* nothing before this time */
    int64_t start_us;
};

/* is_wanted: not --quiet. Whether it is a terminal is looked at here. */
void progress_init(struct progress *p, bool is_wanted);
/* "[####......] 12 of 344 tests, 3 s"; what: "tests". */
void progress_bar(struct progress *p, uint64_t done, uint64_t total,
                  const char *what);
/* Where nobody knows how much there is to do. */
void progress_text(struct progress *p, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
/* Wipes the line, before anything else is printed. */
void progress_clear(struct progress *p);

/* The bar as text of exactly PROGRESS_COLUMNS; to be freed. */
char *progress_bar_text(uint64_t done, uint64_t total, const char *what,
                        unsigned seconds);

#endif
