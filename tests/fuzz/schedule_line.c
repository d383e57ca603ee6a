/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A schedule as one pasted line, or as a file that holds such a line: base32
 * and zlib around what schedule.c is about. The input is what comes behind
 * "sd1:".
 */
#include "fuzz.h"

#include <string.h>

#include "choice/schedule_priv.h"

static void check_one(struct schedule *schedule, GError *error)
{
    FUZZ_CHECK_ERROR(schedule != NULL, error);
    if (schedule) {
        char *line = schedule_to_line(schedule);
        struct schedule *copy = schedule_load(line, &error);

        FUZZ_CHECK(copy, "its own line is refused: %s", error->message);
        schedule_free(copy);
        g_free(line);
        schedule_free(schedule);
    } else {
        g_error_free(error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *line = g_strconcat(SCHEDULE_LINE_PREFIX, text, NULL);
    GError *error = NULL;
    struct schedule *schedule = schedule_load(line, &error);

    check_one(schedule, error);
    error = NULL;
    schedule =
        schedule_load(fuzz_file((const uint8_t *)line, strlen(line)), &error);
    check_one(schedule, error);
    g_free(line);
    g_free(text);
    return 0;
}
