/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Greedy shrinking: each pass makes candidates from the best run so far, and
 * one that still fails and is better takes its place. A candidate says only
 * which choices to try for; what counts is what its run then chose.
 *
 * Entries are told apart by kind and ordinal, so that leaving a hardware
 * liberty out does not move the vCPU choices behind it, and those name their
 * vCPU, so that leaving one out does not make the next one name another.
 */
#include "choice/minimize_priv.h"

#include <string.h>

/* Runs between two calls of progress() without an improvement. */
#define PROGRESS_EVERY 64u
#define OPERATIONS_BLOCK 16u
/* Of one pass, without an improvement. */
#define GUESSES 1500u

static struct minimize_cost cost_of(const struct minimize_run *run)
{
    struct minimize_cost cost = {.preemptions = run->preemptions,
                                 .steps = run->steps};

    for (guint i = 0; i < run->entries->len; i++) {
        const struct choice_entry *entry = minimize_entry(run->entries, i);

        cost.entries += entry->kind != CHOICE_operation;
        cost.values += entry->value;
    }
    return cost;
}

static bool is_better(const struct minimize_cost *a,
                      const struct minimize_cost *b)
{
    if (a->preemptions != b->preemptions) {
        return a->preemptions < b->preemptions;
    }
    if (a->entries != b->entries) {
        return a->entries < b->entries;
    }
    if (a->steps != b->steps) {
        return a->steps < b->steps;
    }
    return a->values < b->values;
}

static uint64_t mix(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return digest ^ digest >> 29;
}

static uint64_t digest_of(const GArray *entries, const uint64_t *without)
{
    uint64_t digest = entries->len;

    for (guint i = 0; i < entries->len; i++) {
        const struct choice_entry *entry = minimize_entry(entries, i);

        digest = mix(digest, entry->ordinal
                                 ? (uint64_t)entry->place << 32 | entry->ordinal
                                 : ~entry->index);
        digest = mix(digest, (uint64_t)entry->vcpu << 32 |
                                 (uint64_t)entry->kind << 16 | entry->value);
    }
    for (unsigned i = 0; i < 8; i++) {
        digest = mix(digest, without[i]);
    }
    return digest;
}

static void run(struct minimizer *m, const GArray *entries,
                const uint64_t *without, struct minimize_run *out)
{
    *out = (struct minimize_run){0};
    m->ops->run(m->opaque, (const struct choice_entry *)(void *)entries->data,
                entries->len, without, out);
    m->out->runs++;
}

static void report(struct minimizer *m)
{
    if (m->ops->progress) {
        m->ops->progress(m->opaque, m->out->runs, m->cost.preemptions,
                         m->cost.steps, m->pass);
    }
}

static void adopt(struct minimizer *m, struct minimize_run *best,
                  const uint64_t *without)
{
    if (m->entries) {
        g_array_unref(m->entries);
    }
    m->entries = best->entries;
    m->total = best->total;
    m->cost = cost_of(best);
    memcpy(m->without, without, sizeof(m->without));
    report(m);
}

static bool exhausted(const struct minimizer *m)
{
    return m->ops->max_runs && m->out->runs >= m->ops->max_runs;
}

bool minimize_try_all(struct minimizer *m, GArray *candidate,
                      const uint64_t *without, bool fewer_vcpus, uint64_t *last)
{
    uint64_t *digest = g_new(uint64_t, 1);
    struct minimize_run result;
    bool better = false;

    if (last) {
        *last = 0;
    }
    *digest = digest_of(candidate, without);
    if (exhausted(m) || g_hash_table_contains(m->tried, digest)) {
        g_free(digest);
        g_array_unref(candidate);
        return false;
    }
    g_hash_table_add(m->tried, digest);
    run(m, candidate, without, &result);
    g_array_unref(candidate);
    for (guint i = 0; last && result.entries && i < result.entries->len; i++) {
        const struct choice_entry *entry = minimize_entry(result.entries, i);

        if (entry->kind == CHOICE_operation) {
            *last = MAX(*last, entry->ordinal);
        }
    }
    if (result.fails && result.entries) {
        struct minimize_cost cost = cost_of(&result);

        better = fewer_vcpus ? cost.preemptions <= m->cost.preemptions
                             : is_better(&cost, &m->cost);
    }
    if (better) {
        adopt(m, &result, without);
    } else {
        if (result.entries) {
            g_array_unref(result.entries);
        }
        if (m->out->runs % PROGRESS_EVERY == 0) {
            report(m);
        }
    }
    return better;
}

bool minimize_try(struct minimizer *m, GArray *candidate)
{
    return minimize_try_all(m, candidate, m->without, false, NULL);
}

GArray *minimize_copy(const struct minimizer *m)
{
    GArray *candidate = g_array_sized_new(
        FALSE, FALSE, sizeof(struct choice_entry), m->entries->len + 1);

    if (m->entries->len) {
        g_array_append_vals(candidate, m->entries->data, m->entries->len);
    }
    return candidate;
}

/* --- passes: each says whether it made the run better --- */

static bool zero_kinds(struct minimizer *m)
{
    bool better = false;

    for (unsigned kind = 0; kind < CHOICE_KINDS; kind++) {
        GArray *candidate = minimize_copy(m);
        guint kept = 0;

        for (guint i = 0; i < candidate->len; i++) {
            if (minimize_entry(candidate, i)->kind != kind) {
                *minimize_entry(candidate, kept++) =
                    *minimize_entry(candidate, i);
            }
        }
        g_array_set_size(candidate, kept);
        better |= minimize_try(m, candidate);
    }
    return better;
}

/* ddmin, from the end: what comes later depends on more. */
static bool drop_blocks(struct minimizer *m)
{
    bool better = false;

    for (guint size = MAX(m->entries->len, 1); size; size /= 2) {
        guint end = m->entries->len;

        while (end) {
            guint begin = end > size ? end - size : 0;
            GArray *candidate = minimize_copy(m);

            g_array_remove_range(candidate, begin, end - begin);
            if (minimize_try(m, candidate)) {
                better = true;
                end = MIN(begin, m->entries->len);
            } else {
                end = begin;
            }
        }
    }
    return better;
}

static bool lower_at(struct minimizer *m, guint i, uint16_t value)
{
    GArray *candidate;

    if (i >= m->entries->len || minimize_entry(m->entries, i)->value <= value) {
        return false;
    }
    candidate = minimize_copy(m);
    minimize_entry(candidate, i)->value = value;
    minimize_entry(candidate, i)->vcpu = 0;
    return minimize_try(m, candidate);
}

static bool lower_values(struct minimizer *m)
{
    bool better = false;

    for (guint i = 0; i < m->entries->len; i++) {
        uint16_t value = minimize_entry(m->entries, i)->value;

        if (value > 1) {
            better |= lower_at(m, i, 1) || lower_at(m, i, value / 2) ||
                      lower_at(m, i, value - 1);
        }
    }
    return better;
}

static bool left_out(const struct minimizer *m, uint64_t ordinal)
{
    for (guint i = 0; i < m->entries->len; i++) {
        const struct choice_entry *entry = minimize_entry(m->entries, i);

        if (entry->kind == CHOICE_operation && entry->ordinal == ordinal) {
            return true;
        }
    }
    return false;
}

/*
 * How many operations the guest asks about is not known: the entries of a run
 * that was to leave out the ones from `first` on say which it asked about.
 */
static bool omit_operations(struct minimizer *m)
{
    uint64_t first = 1, block = OPERATIONS_BLOCK, last;
    bool better = false;

    while (!exhausted(m)) {
        GArray *candidate = minimize_copy(m);
        bool news = false, accepted;

        for (uint64_t ordinal = first; ordinal < first + block; ordinal++) {
            struct choice_entry entry = {
                .index = UINT64_MAX,
                .kind = CHOICE_operation,
                .n = 2,
                .value = 1,
                .ordinal = ordinal,
            };

            if (!left_out(m, ordinal)) {
                g_array_append_val(candidate, entry);
                news = true;
            }
        }
        if (!news) {
            g_array_unref(candidate);
            first += block;
            continue;
        }
        accepted = minimize_try_all(m, candidate, m->without, false, &last);
        better |= accepted;
        if (accepted) {
            first += block;
        } else if (block > 1 && last >= first) {
            block /= 2;
            continue;
        } else {
            first++;
        }
        if (last < first - 1) {
            break;
        }
        block = MIN(2 * block, OPERATIONS_BLOCK);
    }
    return better;
}

/*
 * Out of a local minimum, where no single block can go: some of the switches,
 * drawn, and as often as not one of them to another vCPU or a little earlier
 * or later.
 */
static bool guess(struct minimizer *m)
{
    for (unsigned i = 0; i < GUESSES && !exhausted(m); i++) {
        GArray *candidate = minimize_copy(m);
        uint64_t keep = 1 + prng_below(&m->prng, 7); /* of 8 */
        guint kept = 0;

        for (guint j = 0; j < candidate->len; j++) {
            if (prng_below(&m->prng, 8) < keep) {
                *minimize_entry(candidate, kept++) =
                    *minimize_entry(candidate, j);
            }
        }
        g_array_set_size(candidate, kept);
        if (kept && prng_below(&m->prng, 2)) {
            struct choice_entry *entry =
                minimize_entry(candidate, (guint)prng_below(&m->prng, kept));

            if (entry->kind == CHOICE_vcpu && prng_below(&m->prng, 2)) {
                entry->vcpu =
                    (uint16_t)(1 + prng_below(&m->prng, m->ops->vcpus));
            } else {
                entry->ordinal += (uint32_t)prng_below(&m->prng, 9);
                entry->ordinal -= MIN(entry->ordinal - 1, 4);
            }
        }
        if (minimize_try(m, candidate)) {
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    bool (*run)(struct minimizer *m);
} passes[] = {
    {"drop vCPUs", minimize_drop_vcpus},
    {"zero kinds", zero_kinds},
    {"drop choices", drop_blocks},
    {"merge slices", minimize_merge_slices},
    {"slide slices", minimize_slide},
    {"lower values", lower_values},
    {"shorten", minimize_shorten},
    {"omit operations", omit_operations},
    {"guess", guess},
};

void minimize(struct schedule *schedule, const struct minimize_ops *ops,
              void *opaque, struct minimize_result *out)
{
    struct minimizer m = {.ops = ops, .opaque = opaque, .out = out};
    struct minimize_run first;
    bool better = true;

    g_assert(ops->vcpus <= MINIMIZE_VCPUS_MAX);
    *out = (struct minimize_result){0};
    run(&m, schedule->entries, m.without, &first);
    if (!first.fails || !first.entries) {
        if (first.entries) {
            g_array_unref(first.entries);
        }
        return;
    }
    m.pass = "reproduce";
    prng_seed(&m.prng, 1);
    m.tried = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    adopt(&m, &first, m.without);
    out->reproduced = true;
    out->from_preemptions = m.cost.preemptions;
    out->from_steps = m.cost.steps;
    while (better && !exhausted(&m)) {
        better = false;
        for (size_t i = 0; i < G_N_ELEMENTS(passes); i++) {
            m.pass = passes[i].name;
            better |= passes[i].run(&m);
        }
    }
    out->preemptions = m.cost.preemptions;
    out->steps = m.cost.steps;
    memcpy(out->without, m.without, sizeof(out->without));
    g_hash_table_unref(m.tried);
    g_array_unref(schedule->entries);
    schedule->entries = m.entries;
    schedule->total = m.total;
    g_array_set_size(schedule->checkpoints, 0);
    schedule->trace_hash = 0;
    schedule->state_hash = 0;
}
