/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one test came to, as herd prints it or as JSON, and its score. */
#ifndef LITMUS_REPORT_H
#define LITMUS_REPORT_H

#include <stdbool.h>
#include <glib.h>

#include "litmus/explore.h"
#include "litmus/verdicts.h"

enum litmus_observation { LITMUS_NEVER, LITMUS_SOMETIMES, LITMUS_ALWAYS };

enum litmus_score {
    LITMUS_UNSCORED, /* nobody published a kind */
    LITMUS_AGREES,
    LITMUS_UNSEEN,   /* allowed, but not seen: no disagreement */
    LITMUS_VIOLATES, /* forbidden and seen, or required and not always */
};

enum litmus_observation litmus_observe(const struct litmus_outcomes *outcomes);
enum litmus_score litmus_score(const struct litmus_verdict *verdict,
                               const struct litmus_outcomes *outcomes);
const char *litmus_score_name(enum litmus_score score);

/* verdict: NULL where none was published. Both: g_free() it. */
char *litmus_report_text(const struct litmus_test *test,
                         const struct litmus_outcomes *outcomes,
                         const struct litmus_verdict *verdict);
char *litmus_report_json(const struct litmus_test *test, const char *path,
                         const struct litmus_outcomes *outcomes,
                         const struct litmus_verdict *verdict);
/* A JSON string with its quotes. g_free() it. */
char *litmus_json_string(const char *text);

#endif
