/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strategies by name, and what they share: odds of liberties, fairness. */
#include <string.h>

#include "choice/source_priv.h"
#include "error.h"

/*
 * The odds of the plain answer, of 256. Part of what a seed means: changing
 * one changes every seeded run.
 */
static const uint8_t plain_odds[CHOICE_KINDS] = {
    [CHOICE_quantum] = 128,   [CHOICE_apply] = 192,  [CHOICE_wait] = 192,
    [CHOICE_prefetch] = 192,  [CHOICE_evict] = 192,  [CHOICE_visible] = 192,
    [CHOICE_irq] = 192,       [CHOICE_tables] = 192, [CHOICE_asid] = 192,
    [CHOICE_literal] = 192,   [CHOICE_size] = 192, 
    [CHOICE_operation] = 240,
};

unsigned source_draw(struct prng *prng, enum choice_kind kind, unsigned n)
{
    uint64_t r = prng_next(prng);

    if (kind == CHOICE_input) {
        return source_scale(r >> 8, n);
    }
    if ((r & 255) < plain_odds[kind]) {
        return 0;
    }
    return 1 + source_scale(r >> 8, n - 1);
}

unsigned fair_options(const struct fair *fair,
                      const struct choice_candidate *candidates, unsigned n,
                      uint16_t options[CHOICE_MAX])
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        if (fair_allows(fair, &candidates[i])) {
            options[count++] = i;
        }
    }
    if (!count) {
        for (; count < n; count++) {
            options[count] = count;
        }
    }
    return count;
}

unsigned fair_amend(const struct fair *fair, struct prng *prng,
                    const struct choice_candidate *candidates, unsigned n,
                    unsigned value)
{
    uint16_t options[CHOICE_MAX];

    if (fair_allows(fair, &candidates[value])) {
        return value;
    }
    n = fair_options(fair, candidates, n, options);
    return options[prng_below(prng, n)];
}

/* --- by name --- */

enum strategy {
    STRATEGY_PLAIN,
    STRATEGY_RANDOM,
    STRATEGY_PCT,
    STRATEGY_POS,
    STRATEGY_SURW,
    STRATEGY_ICB,
    STRATEGY_DFS,
    STRATEGY_CHAOS,
    STRATEGIES
};

static const struct {
    const char *name, *text;
    bool numbered;
    unsigned low, high, usual;
} strategies[STRATEGIES] = {
    [STRATEGY_PLAIN] = {"plain", "always the plain answer: round robin", false,
                        0, 0, 0},
    [STRATEGY_RANDOM] = {"random", "stay mostly, else any vCPU", false, 0, 0,
                         0},
    [STRATEGY_PCT] = {"pct",
                      "random priorities with d-1 changes (pct:d, d "
                      "from 1 to 100, usually 3)",
                      true, 1, 100, 3},
    [STRATEGY_POS] = {"pos",
                      "a random priority for each event, a new one "
                      "after a conflict",
                      false, 0, 0, 0},
    [STRATEGY_SURW] = {"surw", "evenly among the orders of TLB-relevant events",
                       false, 0, 0, 0},
    [STRATEGY_ICB] = {"icb",
                      "all runs with 0, 1, ... k preemptions (icb:k, k "
                      "from 0 to 100, usually 2)",
                      true, 0, 100, 2},
    [STRATEGY_DFS] = {"dfs", "all runs; for tiny programs", false, 0, 0, 0},
    [STRATEGY_CHAOS] = {"chaos", "now and then one vCPU starves for long",
                        false, 0, 0, 0},
};

const char *const *choice_strategies(void)
{
    static const char *pairs[2 * STRATEGIES + 1];

    for (unsigned i = 0; i < STRATEGIES; i++) {
        pairs[2 * i] = strategies[i].name;
        pairs[2 * i + 1] = strategies[i].text;
    }
    return pairs;
}

static bool parse_number(const char *text, unsigned low, unsigned high,
                         unsigned *out)
{
    unsigned value = 0;

    if (!*text || strlen(text) > 4) {
        return false;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        value = 10 * value + (unsigned)(*text - '0');
    }
    *out = value;
    return value >= low && value <= high;
}

static void unknown_strategy(const char *text, GError **error)
{
    GString *names = g_string_new(NULL);

    for (unsigned i = 0; i < STRATEGIES; i++) {
        g_string_append_printf(names, "%s%s%s", i ? ", " : "",
                               strategies[i].name,
                               i == STRATEGY_PCT   ? "[:d]"
                               : i == STRATEGY_ICB ? "[:k]"
                                                   : "");
    }
    g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                "no strategy '%s'; there are %s", text, names->str);
    g_string_free(names, TRUE);
}

struct choice_source *choice_strategy_new(const char *text, uint64_t seed,
                                          GError **error)
{
    size_t length = strcspn(text, ":");
    unsigned i, number;

    for (i = 0; i < STRATEGIES; i++) {
        if (strlen(strategies[i].name) == length &&
            !strncmp(strategies[i].name, text, length)) {
            break;
        }
    }
    if (i == STRATEGIES) {
        unknown_strategy(text, error);
        return NULL;
    }
    number = strategies[i].usual;
    if (text[length] && !strategies[i].numbered) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "strategy '%s': %s takes no number", text,
                    strategies[i].name);
        return NULL;
    }
    if (text[length] && !parse_number(text + length + 1, strategies[i].low,
                                      strategies[i].high, &number)) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "strategy '%s': the number after '%s:' must be from %u to "
                    "%u",
                    text, strategies[i].name, strategies[i].low,
                    strategies[i].high);
        return NULL;
    }
    switch ((enum strategy)i) {
    case STRATEGY_RANDOM:
        return source_random_new(seed);
    case STRATEGY_PCT:
        return source_pct_new(seed, number);
    case STRATEGY_POS:
        return source_pos_new(seed);
    case STRATEGY_SURW:
        return source_surw_new(seed);
    case STRATEGY_ICB:
        return source_icb_new(number);
    case STRATEGY_DFS:
        return source_dfs_new();
    case STRATEGY_CHAOS:
        return source_chaos_new(seed);
    case STRATEGY_PLAIN:
    case STRATEGIES:
        break;
    }
    return choice_source_plain();
}
