/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Published kinds of tests: what a model says that a condition is. A table
 * with tabs and a head (file, name, kind_published, optionally class), or
 * lines "NAME KIND", '#' beginning a comment.
 */
#ifndef LITMUS_VERDICTS_H
#define LITMUS_VERDICTS_H

#include <stdbool.h>
#include <glib.h>

enum litmus_kind {
    LITMUS_KIND_NONE, /* nobody says */
    LITMUS_FORBIDDEN, /* the formula never holds */
    LITMUS_ALLOWED,   /* it may */
    LITMUS_REQUIRED,  /* it always holds */
};

struct litmus_verdict {
    enum litmus_kind kind;
    char *class; /* "" where the table has none */
};

struct litmus_verdicts;

struct litmus_verdicts *litmus_verdicts_load(const char *path, GError **error);
void litmus_verdicts_free(struct litmus_verdicts *verdicts);
/*
 * By the file where the table has files (the end of the path), else by the
 * test's name. NULL: it is not there.
 */
const struct litmus_verdict *
litmus_verdicts_find(const struct litmus_verdicts *verdicts, const char *path,
                     const char *name);
const char *litmus_kind_name(enum litmus_kind kind);

#endif
