/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of schedules and what the files that make them up share. */
#ifndef CHOICE_SCHEDULE_PRIV_H
#define CHOICE_SCHEDULE_PRIV_H

#include "choice/schedule.h"

#define SCHEDULE_BYTES_MAX ((size_t)64 << 20)
#define SCHEDULE_ENTRIES_MAX 50000000u
#define SCHEDULE_VALUE_MAX 65536u /* bytes, as written */
#define SCHEDULE_KEYS_MAX 1000u
#define SCHEDULE_TOTAL_MAX (UINT64_C(1) << 40) /* choices; below this */

#define SCHEDULE_FIRST_KEY "shootdown-schedule"
#define SCHEDULE_LINE_PREFIX "sd1:"

/* Lower case letters, digits, dashes; not a line that the format has. */
bool schedule_key_ok(const char *key);

/* "sd1:..." back to text; g_free() it. length: of line. */
char *schedule_line_to_text(const char *line, size_t length, size_t *out_length,
                            GError **error);

#endif
