/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Results of one test as text; see report.h. */
#include "litmus/report.h"

#include <inttypes.h>
#include <string.h>

static void count(const struct litmus_outcomes *o, uint64_t *out_positive,
                  uint64_t *out_negative)
{
    *out_positive = *out_negative = 0;
    for (guint i = 0; i < o->finals->len; i++) {
        const struct litmus_final *f = o->finals->pdata[i];

        *(f->holds ? out_positive : out_negative) += f->runs;
    }
}

enum litmus_observation litmus_observe(const struct litmus_outcomes *outcomes)
{
    uint64_t positive, negative;

    count(outcomes, &positive, &negative);
    return positive == 0   ? LITMUS_NEVER
           : negative == 0 ? LITMUS_ALWAYS
                           : LITMUS_SOMETIMES;
}

enum litmus_score litmus_score(const struct litmus_verdict *verdict,
                               const struct litmus_outcomes *outcomes)
{
    enum litmus_observation seen = litmus_observe(outcomes);

    switch (verdict ? verdict->kind : LITMUS_KIND_NONE) {
    case LITMUS_FORBIDDEN:
        return seen == LITMUS_NEVER ? LITMUS_AGREES : LITMUS_VIOLATES;
    case LITMUS_REQUIRED:
        return seen == LITMUS_ALWAYS ? LITMUS_AGREES : LITMUS_VIOLATES;
    case LITMUS_ALLOWED:
        return seen == LITMUS_NEVER ? LITMUS_UNSEEN : LITMUS_AGREES;
    case LITMUS_KIND_NONE:
        break;
    }
    return LITMUS_UNSCORED;
}

const char *litmus_score_name(enum litmus_score score)
{
    static const char *const names[] = {"unscored", "agrees", "unseen",
                                        "violates"};

    return names[score];
}

static const char *observation_name(enum litmus_observation seen)
{
    static const char *const names[] = {"Never", "Sometimes", "Always"};

    return names[seen];
}

static const char *kind_of(const struct litmus_test *test)
{
    static const char *const names[] = {"Allowed", "Forbidden", "Required"};

    return names[test->quantifier];
}

/* Is what the test claims so? */
static bool is_ok(const struct litmus_test *test, enum litmus_observation seen)
{
    switch (test->quantifier) {
    case LITMUS_EXISTS:
        return seen != LITMUS_NEVER;
    case LITMUS_NOT_EXISTS:
        return seen == LITMUS_NEVER;
    case LITMUS_FORALL:
        return seen == LITMUS_ALWAYS;
    }
    return false;
}

/* "all", or what ended the search. */
static const char *extent(const struct litmus_outcomes *o)
{
    static const char *const names[] = {
        [LITMUS_UNBOUND] = "all",
        [LITMUS_BOUND_STATES] = "up to the bound on states",
        [LITMUS_BOUND_SECONDS] = "up to the time limit",
        [LITMUS_BOUND_DEPTH] = "all but runs that are too long",
    };

    return names[o->bound];
}

char *litmus_report_text(const struct litmus_test *test,
                         const struct litmus_outcomes *o,
                         const struct litmus_verdict *verdict)
{
    GString *out = g_string_new(NULL);
    enum litmus_observation seen = litmus_observe(o);
    uint64_t positive, negative;

    count(o, &positive, &negative);
    g_string_append_printf(out, "Test %s %s\nStates %u\n", test->name,
                           kind_of(test), o->finals->len);
    for (guint i = 0; i < o->finals->len; i++) {
        const struct litmus_final *f = o->finals->pdata[i];

        g_string_append_printf(out, "%s\n", f->text);
    }
    g_string_append_printf(
        out,
        "%s\nWitnesses\nPositive: %" PRIu64 " Negative: %" PRIu64
        "\nCondition %s\nObservation %s %s %" PRIu64 " %" PRIu64 "\n",
        is_ok(test, seen) ? "Ok" : "No", positive, negative, test->condition,
        test->name, observation_name(seen), positive, negative);
    g_string_append_printf(
        out, "Explored %s, %" PRIu64 " states, %" PRIu64 " runs, %.2f s\n",
        extent(o), o->states, o->runs, o->seconds);
    if (verdict && verdict->kind != LITMUS_KIND_NONE) {
        g_string_append_printf(out, "Published %s%s%s: %s\n",
                               litmus_kind_name(verdict->kind),
                               verdict->class[0] ? ", " : "", verdict->class,
                               litmus_score_name(litmus_score(verdict, o)));
    }
    if (test->hash) {
        g_string_append_printf(out, "Hash=%s\n", test->hash);
    }
    g_string_append_c(out, '\n');
    return g_string_free(out, FALSE);
}

char *litmus_json_string(const char *text)
{
    GString *out = g_string_new("\"");
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    for (const char *p = valid; *p; p++) {
        if (*p == '"' || *p == '\\') {
            g_string_append_printf(out, "\\%c", *p);
        } else if ((unsigned char)*p < 0x20) {
            g_string_append_printf(out, "\\u%04x", (unsigned)*p);
        } else {
            g_string_append_c(out, *p);
        }
    }
    g_string_append_c(out, '"');
    return g_string_free(out, FALSE);
}

static void key(GString *out, const char *name, const char *value)
{
    g_autofree char *text = litmus_json_string(value);

    g_string_append_printf(out, ",\"%s\":%s", name, text);
}

char *litmus_report_json(const struct litmus_test *test, const char *path,
                         const struct litmus_outcomes *o,
                         const struct litmus_verdict *verdict)
{
    GString *out = g_string_new("{\"file\":");
    g_autofree char *file = litmus_json_string(path);
    uint64_t positive, negative;
    enum litmus_observation seen = litmus_observe(o);

    count(o, &positive, &negative);
    g_string_append(out, file);
    key(out, "name", test->name);
    key(out, "kind", kind_of(test));
    key(out, "condition", test->condition);
    key(out, "observation", observation_name(seen));
    g_string_append_printf(out,
                           ",\"ok\":%s,\"positive\":%" PRIu64
                           ",\"negative\":%" PRIu64 ",\"states\":[",
                           is_ok(test, seen) ? "true" : "false", positive,
                           negative);
    for (guint i = 0; i < o->finals->len; i++) {
        const struct litmus_final *f = o->finals->pdata[i];
        g_autofree char *text = litmus_json_string(f->text);

        g_string_append_printf(
            out, "%s{\"state\":%s,\"runs\":%" PRIu64 ",\"holds\":%s}",
            i ? "," : "", text, f->runs, f->holds ? "true" : "false");
    }
    g_string_append_printf(out,
                           "],\"complete\":%s,\"explored_states\":%" PRIu64
                           ",\"runs\":%" PRIu64 ",\"steps\":%" PRIu64
                           ",\"seconds\":%.3f",
                           o->complete ? "true" : "false", o->states, o->runs,
                           o->steps, o->seconds);
    key(out, "extent", extent(o));
    if (verdict) {
        key(out, "published", litmus_kind_name(verdict->kind));
        key(out, "class", verdict->class);
        key(out, "score", litmus_score_name(litmus_score(verdict, o)));
    }
    if (test->hash) {
        key(out, "hash", test->hash);
    }
    g_string_append(out, "}\n");
    return g_string_free(out, FALSE);
}
