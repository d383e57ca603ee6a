/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fuzzer's loop: what is run next, and what is kept of it. See fuzz.h. */
#include <inttypes.h>
#include <string.h>

#include "choice/source.h"
#include "error.h"
#include "fuzz.h"
#include "fuzz_mutate.h"
#include "obs/mix.h"

/* Executions between two looks at the clock for statistics. */
#define SAVE_EVERY 64u

/*
 * The portfolio, of 32: half of the executions change what showed something
 * new, the rest is drawn afresh, since no strategy finds everything.
 */
static const struct {
    const char *strategy; /* NULL: a mutation */
    unsigned share;
} portfolio[] = {
    {NULL, 16}, {"random", 6}, {"pos", 5}, {"pct:3", 3}, {"chaos", 2},
};
#define PORTFOLIO_SHARES 32u

void fuzz_run(struct fuzz *f, struct choice_source *source,
              struct fuzz_run *out)
{
    fuzz_watchdog_begin(f);
    fuzz_target_run_source(f->target, source, f->flags->max_len, NULL, out);
    f->runs++;
    f->steps += out->result.steps;
}

/* --- files --- */

static bool is_schedule(const char *text, gsize length)
{
    return (length >= 4 && memcmp(text, "sd1:", 4) == 0) ||
           (length >= 19 && memcmp(text, "shootdown-schedule:", 19) == 0);
}

bool fuzz_run_file(struct fuzz *f, const char *path, struct fuzz_run *out,
                   GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) reason = NULL;
    struct choice_source *source;
    struct schedule *schedule = NULL;
    gsize length = 0;

    if (!g_file_get_contents(path, &text, &length, &reason)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s",
                    reason->message);
        return false;
    }
    if (is_schedule(text, length)) {
        schedule = schedule_load(path, error);
        if (!schedule) {
            return false;
        }
        source = choice_source_recorded(
            (const struct choice_entry *)(void *)schedule->entries->data,
            schedule->entries->len, UINT64_MAX, false);
    } else {
        source = choice_source_bytes(text, length);
    }
    fuzz_run(f, source, out);
    choice_source_free(source);
    schedule_free(schedule);
    return true;
}

/* Keeps the run if it showed something new. */
static unsigned keep(struct fuzz *f, const struct fuzz_run *run, unsigned depth)
{
    unsigned news = fuzz_corpus_learn(f->corpus, fuzz_target_cover(f->target));

    if (news) {
        (void)fuzz_corpus_add(f->corpus, run, fuzz_target_entries(f->target),
                              news, depth);
    }
    return news;
}

bool fuzz_load_directory(struct fuzz *f, const char *directory, GError **error)
{
    GPtrArray *names = fuzz_list_files(directory, error);

    if (!names) {
        return false;
    }
    for (guint i = 0; i < names->len && !fuzz_interrupted(f); i++) {
        const char *name = names->pdata[i];
        g_autofree char *path = NULL;
        struct fuzz_run run;

        if (g_hash_table_contains(f->corpus->names, name)) {
            continue;
        }
        path = g_build_filename(directory, name, NULL);
        if (!fuzz_run_file(f, path, &run, error)) {
            g_ptr_array_unref(names);
            return false;
        }
        g_hash_table_add(f->corpus->names, g_strdup(name));
        if (run.failed) {
            if (!fuzz_finding(f, &run, error) && error && *error) {
                g_ptr_array_unref(names);
                return false;
            }
        } else {
            (void)keep(f, &run, 0);
        }
    }
    g_ptr_array_unref(names);
    return true;
}

/* --- what is run next --- */

struct next {
    struct choice_source *source;
    struct choice_source *strategy; /* of its own, to be freed; or NULL */
    struct fuzz_mutation mutation;  /* entries NULL: it is none */
    struct fuzz_input *parent;      /* of the mutation */
    const char *name;
};

static void next_fini(struct next *next)
{
    choice_source_free(next->source);
    choice_source_free(next->strategy);
    if (next->mutation.entries) {
        g_array_unref(next->mutation.entries);
    }
}

static const char *draw_strategy(struct prng *prng)
{
    uint64_t at = prng_below(prng, PORTFOLIO_SHARES);
    size_t i = 0;

    while (at >= portfolio[i].share) {
        at -= portfolio[i++].share;
    }
    return portfolio[i].strategy;
}

static void mutate(struct fuzz *f, struct prng *prng, struct next *next)
{
    struct fuzz_input *other;
    const char *tail = NULL;

    next->parent = fuzz_corpus_pick(f->corpus, prng);
    other = fuzz_corpus_pick(f->corpus, prng);
    next->parent->used++;
    fuzz_mutate(next->parent->entries, other->entries,
                fuzz_target_of(f->target)->cpus, prng, &next->mutation);
    while (!tail) {
        tail = draw_strategy(prng);
    }
    next->strategy = choice_strategy_new(tail, prng_next(prng), NULL);
    next->source = fuzz_mutation_source(&next->mutation, next->strategy);
    next->name = next->mutation.names;
}

/*
 * All that execution number n is follows from the seed and n, and for mutations
 * from the corpus; so shards need not talk to each other.
 */
static void draw(struct fuzz *f, struct next *next)
{
    struct prng prng;

    *next = (struct next){0};
    prng_seed(&prng, mix_end(mix_word(mix_word(MIX_START, f->flags->seed),
                                      f->number)));
    next->name = draw_strategy(&prng);
    if (!next->name && f->corpus->inputs->len) {
        mutate(f, &prng, next);
        return;
    }
    if (!next->name) {
        next->name = "random";
    }
    next->source = choice_strategy_new(next->name, prng_next(&prng), NULL);
}

/* One strategy: run n draws what seed + n draws, as `run --runs` does. */
static bool draw_of(struct fuzz *f, struct choice_source **kept,
                    struct next *next, GError **error)
{
    const char *name = f->flags->strategy;
    /* These go on from run to run: they learn, or count what is left. */
    bool goes_on = g_str_has_prefix(name, "surw") ||
                   g_str_has_prefix(name, "icb") ||
                   g_str_has_prefix(name, "dfs");

    *next = (struct next){.name = name};
    if (!goes_on) {
        next->source =
            choice_strategy_new(name, f->flags->seed + f->number, error);
        return next->source != NULL;
    }
    if (!*kept) {
        *kept = choice_strategy_new(name, f->flags->seed, error);
        next->strategy = NULL;
    } else if (!choice_source_next_run(*kept)) {
        const char *problem = choice_source_problem(*kept);

        if (problem) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s", problem);
        }
        return false;
    }
    return *kept != NULL;
}

/* --- the loop --- */

static bool is_power_of_two(uint64_t n)
{
    return n && !(n & (n - 1));
}

static bool is_over(struct fuzz *f)
{
    const struct fuzz_flags *o = f->flags;
    int64_t now;

    if (f->number >= o->runs || fuzz_interrupted(f)) {
        return true;
    }
    if (!o->max_total_time && !o->exit_on_time) {
        return false;
    }
    now = g_get_monotonic_time();
    return (o->max_total_time &&
            now - f->start_us >= (int64_t)o->max_total_time * 1000000) ||
           (o->exit_on_time &&
            now - f->last_new_us >= (int64_t)o->exit_on_time * 1000000);
}

static bool save_input(struct fuzz *f, const struct fuzz_run *run,
                       GError **error)
{
    g_autofree char *name = NULL;

    if (!f->first_dir) {
        return true;
    }
    name = fuzz_name(run->bytes, run->length);
    return fuzz_save(f->first_dir, name, run->bytes, run->length, error);
}

static bool look_at(struct fuzz *f, const struct next *next,
                    const struct fuzz_run *run, GError **error)
{
    unsigned depth = next->parent ? next->parent->depth + 1 : 0;
    g_autofree char *more = NULL;

    if (run->failed) {
        (void)fuzz_finding(f, run, error);
        return !error || !*error;
    }
    if (!keep(f, run, depth)) {
        return true;
    }
    if (next->parent) {
        next->parent->used = 0; /* it is good for more */
    }
    f->kept++;
    f->last_new_us = g_get_monotonic_time();
    more =
        g_strdup_printf("L: %zu/%" PRIu64 " MS: %u %s", run->length,
                        run->result.choices, next->mutation.count, next->name);
    fuzz_status(f, "NEW", more);
    return save_input(f, run, error);
}

static bool reload(struct fuzz *f, int64_t *due_us, GError **error)
{
    int64_t now = g_get_monotonic_time();
    guint before = f->corpus->inputs->len;

    if (!f->flags->reload || !f->first_dir || now < *due_us) {
        return true;
    }
    *due_us = now + (int64_t)f->flags->reload * 1000000;
    if (!fuzz_load_directory(f, f->first_dir, error)) {
        return false;
    }
    if (f->corpus->inputs->len > before) {
        f->imported += f->corpus->inputs->len - before;
        fuzz_status(f, "RELOAD", NULL);
    }
    return true;
}

bool fuzz_loop(struct fuzz *f, GError **error)
{
    bool mixed = strcmp(f->flags->strategy, "portfolio") == 0;
    bool goes_on = f->flags->keep_going || f->flags->ignore_crashes;
    struct choice_source *kept = NULL;
    GError *reason = NULL;
    int64_t reload_us = 0;
    bool ok = true;

    f->last_new_us = g_get_monotonic_time();
    f->number = f->flags->shard_index;
    while (ok && (goes_on || !f->found->len) && !is_over(f)) {
        struct next next;
        struct fuzz_run run;

        if (mixed) {
            draw(f, &next);
        } else if (!draw_of(f, &kept, &next, &reason)) {
            break; /* everything was tried, or an error */
        }
        fuzz_run(f, next.source ? next.source : kept, &run);
        if (!run.abandoned) {
            ok = look_at(f, &next, &run, &reason);
        }
        next_fini(&next);
        if (is_power_of_two(f->runs)) {
            fuzz_status(f, "pulse", NULL);
        }
        ok = ok && reload(f, &reload_us, &reason);
        if (f->runs % SAVE_EVERY == 0) {
            fuzz_campaign_save(f, false);
        }
        f->number += f->flags->shard_count;
    }
    choice_source_free(kept);
    if (reason) {
        g_propagate_error(error, reason);
        return false;
    }
    return true;
}
