/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A schedule: a run written down. Text header of `key: value` lines, the
 * choices as run-length slices, checkpoints, the final hashes; and the same
 * packed into one line for pasting. docs/DETERMINISM.md has the format.
 */
#ifndef CHOICE_SCHEDULE_H
#define CHOICE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "choice/choice.h"

/* After `index` choices the trace hash was this. */
struct schedule_checkpoint {
    uint64_t index;
    uint64_t trace_hash;
};

struct schedule {
    GPtrArray *keys, *values; /* char *, in order; the header without format */
    GArray *entries;          /* struct choice_entry, rising index */
    GArray *checkpoints;      /* struct schedule_checkpoint, rising index */
    uint64_t total;           /* choices of the run */
    uint64_t trace_hash, state_hash; /* at the end */
};

#define SCHEDULE_FORMAT 1

struct schedule *schedule_new(void);
void schedule_free(struct schedule *schedule);
struct schedule *schedule_copy(const struct schedule *schedule);

/* Header keys are lower case with dashes; values are one line. */
void schedule_set(struct schedule *schedule, const char *key,
                  const char *value);
/* NULL: not there. */
const char *schedule_get(const struct schedule *schedule, const char *key);

/*
 * Text out and in. Reading refuses with VM_ERROR_ENVIRONMENT what is not
 * intact: the last line is a hash of everything before it, so a flipped bit is
 * told from a schedule of another version. Numbers are checked one by one as
 * well: a file may be hostile, hash included.
 */
char *schedule_to_text(const struct schedule *schedule);
struct schedule *schedule_from_text(const char *text, size_t length,
                                    GError **error);
bool schedule_save(const struct schedule *schedule, const char *path,
                   GError **error);
/* A file's name, or the one line that schedule_to_line() gave. */
struct schedule *schedule_load(const char *path_or_line, GError **error);

/* "sd1:..." in base32 (letters and digits only); g_free() it. */
char *schedule_to_line(const struct schedule *schedule);

#endif
