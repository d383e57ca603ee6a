/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search; see explore.h.
 *
 * A run asks at each state what happens next: which thread executes its next
 * instruction, or what else happens (explore_events.c). Runs begin again from
 * the snapshot and repeat the choices of the one before up to the last that has
 * an alternative left. A state that was seen before ends a run: everything that
 * can follow has been or will be tried from there.
 */
#include "litmus/explore.h"

#include <string.h>

#include "choice/source.h"
#include "error.h"
#include "litmus/explore_priv.h"
#include "litmus/search.h"
#include "litmus/state.h"

/* Choices of one run. */
#define DEPTH_MAX 4000u
#define CLOCK_EVERY 256u /* runs */

/* --- the exploration --- */

static guint hash_of(gconstpointer key)
{
    return (guint)((const struct litmus_hash *)key)->word[0];
}

static gboolean hash_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(struct litmus_hash)) == 0;
}

/* True: it was seen before. */
static bool see(struct explorer *e)
{
    struct litmus_hash h = litmus_state_hash(e->m);
    struct litmus_hash *copy;

    if (g_hash_table_contains(e->seen, &h)) {
        return true;
    }
    copy = g_new(struct litmus_hash, 1);
    *copy = h;
    g_hash_table_add(e->seen, copy);
    return false;
}

/*
 * Who could use an address: whoever has it in a register at the beginning. If
 * it can be computed or loaded, the access itself tells; then the search
 * begins again.
 */
static void find_reach(struct explorer *e)
{
    const struct litmus_test *test = e->m->test;
    bool everywhere = false;

    for (unsigned i = 0; i < test->vars; i++) {
        for (unsigned k = 0; k < test->var[i].count; k++) {
            everywhere |= test->var[i].init[k].kind == LITMUS_ADDRESS;
        }
    }
    for (unsigned t = 0; t < test->threads; t++) {
        for (unsigned r = 0; r < LITMUS_REGS; r++) {
            const struct litmus_value *v = &test->thread[t].init[r];

            if (v->kind == LITMUS_ADDRESS) {
                e->reach[t] |= UINT64_C(1) << v->var;
            }
        }
        if (everywhere) {
            e->reach[t] = UINT64_MAX;
        }
    }
}

enum ending { ENDED, CUT, FAILED };

/* One run from the beginning. */
static enum ending run(struct explorer *e)
{
    struct litmus_machine *m = e->m;
    struct choice_candidate can[EXPLORE_CANDIDATES];

    for (;;) {
        unsigned n, chosen;

        if (!e->naive && !explore_run_local(e)) {
            return m->problem ? FAILED : CUT;
        }
        if (e->search && search_is_new(e->search) && see(e)) {
            return CUT;
        }
        n = explore_gather(e, can);
        if (n == 0) {
            explore_settle(e);
            return ENDED;
        }
        if (e->stream.count > DEPTH_MAX) {
            e->too_long = true;
            return CUT;
        }
        chosen = n == 1 ? 0 : choice_vcpu(&e->stream, can, n);
        e->stored_by = -1;
        if (!explore_happen(e, &can[chosen])) {
            return FAILED;
        }
    }
}

static void keep_final(struct explorer *e)
{
    g_autofree char *text = litmus_state_text(e->m);
    struct litmus_final *f = g_hash_table_lookup(e->finals, text);

    if (!f) {
        f = g_new0(struct litmus_final, 1);
        f->holds = litmus_state_holds(e->m, e->m->test->formula);
        f->text = g_steal_pointer(&text);
        g_hash_table_insert(e->finals, f->text, f);
    }
    f->runs++;
}

static bool one_run(struct explorer *e, struct choice_source *source,
                    GError **error)
{
    enum ending ending;

    litmus_machine_reset(e->m);
    choice_stream_begin(&e->stream, source);
    ending = run(e);
    e->runs++;
    if (ending == FAILED) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENGINE, "%s: %s",
                    e->m->test->name, e->m->problem);
        return false;
    }
    if (ending == ENDED) {
        keep_final(e);
    }
    e->cut += ending == CUT;
    return true;
}

/* Until there is nothing more, or a bound is reached. */
static bool search_all(struct explorer *e, const struct litmus_bounds *bounds,
                       struct litmus_outcomes *out, GError **error)
{
    gint64 end =
        g_get_monotonic_time() + (gint64)bounds->seconds * G_USEC_PER_SEC;
    bool ok, over;

    e->search = search_new();
    do {
        ok = one_run(e, &e->search->base, error);
        if (e->reach_grew && ok) {
            /* What was left out for this address was needed. */
            e->reach_grew = false;
            g_hash_table_remove_all(e->seen);
            search_restart(e->search);
            over = false;
            continue;
        }
        over = !ok || !choice_source_next_run(&e->search->base);
    } while (!over && g_hash_table_size(e->seen) < bounds->states &&
             (!bounds->seconds || e->runs % CLOCK_EVERY ||
              g_get_monotonic_time() < end));
    out->complete = ok && over && !e->too_long;
    out->bound = out->complete ? LITMUS_UNBOUND
                 : over        ? LITMUS_BOUND_DEPTH
                 : g_hash_table_size(e->seen) >= bounds->states
                     ? LITMUS_BOUND_STATES
                     : LITMUS_BOUND_SECONDS;
    choice_source_free(&e->search->base);
    e->search = NULL;
    return ok;
}

static bool search_randomly(struct explorer *e,
                            const struct litmus_bounds *bounds, GError **error)
{
    struct choice_source *source =
        choice_strategy_new("random", bounds->seed, error);
    bool ok = source != NULL;

    for (uint64_t i = 0; ok && i < bounds->random_runs; i++) {
        ok = one_run(e, source, error);
        choice_source_next_run(source);
    }
    choice_source_free(source);
    return ok;
}

static int by_text(gconstpointer a, gconstpointer b)
{
    const struct litmus_final *x = *(struct litmus_final *const *)a;
    const struct litmus_final *y = *(struct litmus_final *const *)b;

    return strcmp(x->text, y->text);
}

static void final_free(gpointer data)
{
    struct litmus_final *f = data;

    g_free(f->text);
    g_free(f);
}

bool litmus_explore(struct litmus_machine *m,
                    const struct litmus_bounds *bounds,
                    struct litmus_outcomes *out, GError **error)
{
    struct explorer e = {.m = m, .naive = bounds->naive, .stored_by = -1};
    gint64 start = g_get_monotonic_time();
    GHashTableIter iter;
    gpointer final;
    bool ok;

    e.seen = g_hash_table_new_full(hash_of, hash_equal, g_free, NULL);
    e.finals = g_hash_table_new(g_str_hash, g_str_equal);
    choice_stream_init(&e.stream, 1);
    memset(out, 0, sizeof(*out));
    out->finals = g_ptr_array_new_with_free_func(final_free);
    find_reach(&e);
    ok = search_all(&e, bounds, out, error);
    if (ok && !out->complete) {
        ok = search_randomly(&e, bounds, error);
    }
    g_hash_table_iter_init(&iter, e.finals);
    while (g_hash_table_iter_next(&iter, NULL, &final)) {
        g_ptr_array_add(out->finals, final);
    }
    g_ptr_array_sort(out->finals, by_text);
    out->runs = e.runs;
    out->cut = e.cut;
    out->states = g_hash_table_size(e.seen);
    out->steps = e.steps;
    out->seconds =
        (double)(g_get_monotonic_time() - start) / (double)G_USEC_PER_SEC;
    choice_stream_fini(&e.stream);
    g_hash_table_unref(e.finals);
    g_hash_table_unref(e.seen);
    return ok;
}

void litmus_outcomes_fini(struct litmus_outcomes *out)
{
    if (out->finals) {
        g_ptr_array_unref(out->finals);
    }
    memset(out, 0, sizeof(*out));
}
