/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property test: what walkers see through the buffer of hidden stores equals
 * a naive model, is coherent, and never shows an effect before its cause.
 *
 * The model keeps every store of a run for good, with a mark whether all see
 * it, and finds what a store takes along by going over all pairs until nothing
 * changes. A reader sees the newest store of a word that is its own or marked.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmu/pte_buffer.h"
#include "mmu_random.h"

#define MAX_VCPUS 4
#define WORDS 5
#define STORES 120

struct past_store {
    unsigned writer, word;
    uint64_t value;
    bool visible;
    unsigned observed; /* stores that the writer had observed: [0, observed) */
};

struct model {
    struct rng rng;
    struct pte_buffer *buf;
    unsigned vcpus, capacity, round;
    struct past_store store[STORES];
    unsigned count;
    unsigned observed[MAX_VCPUS];
    /* How far in a word's history each reader has got; never back. */
    unsigned reached[MAX_VCPUS][WORDS];
    uint64_t hidden_reads, shown, overflows, copies;
};

static gpa_t address_of(unsigned word)
{
    return UINT64_C(0x40000000) + word * UINT64_C(0x1008);
}

/* What the word holds in memory: the newest store's value, or 0. */
static uint64_t memory_of(const struct model *m, unsigned word)
{
    for (unsigned i = m->count; i-- > 0;) {
        if (m->store[i].word == word) {
            return m->store[i].value;
        }
    }
    return 0;
}

static unsigned hidden_count(const struct model *m)
{
    unsigned count = 0;

    for (unsigned i = 0; i < m->count; i++) {
        count += !m->store[i].visible;
    }
    return count;
}

/* Everything that must be visible because something newer is. */
static void close_visible(struct model *m, const bool *fresh)
{
    bool marked[STORES], changed = true;

    memcpy(marked, fresh, sizeof(marked));
    while (changed) {
        changed = false;
        for (unsigned i = 0; i < m->count; i++) {
            for (unsigned j = 0; j < i; j++) {
                const struct past_store *cause = &m->store[j];
                const struct past_store *effect = &m->store[i];

                if (marked[i] && !marked[j] && !cause->visible &&
                    (cause->writer == effect->writer ||
                     cause->word == effect->word || j < effect->observed)) {
                    marked[j] = changed = true;
                }
            }
        }
    }
    for (unsigned i = 0; i < m->count; i++) {
        m->store[i].visible |= marked[i];
    }
}

static void show_one(struct model *m, unsigned index)
{
    bool fresh[STORES] = {false};

    fresh[index] = true;
    close_visible(m, fresh);
}

/* Index of the n-th hidden store, oldest first. */
static unsigned nth_hidden(const struct model *m, unsigned n)
{
    unsigned i = 0;

    while (m->store[i].visible || n-- > 0) {
        i++;
    }
    return i;
}

static unsigned do_store(struct model *m)
{
    struct past_store *s = &m->store[m->count];
    unsigned before;
    bool fresh[STORES] = {false};

    s->writer = below(&m->rng, m->vcpus);
    s->word = below(&m->rng, WORDS);
    s->value = m->count + 1;
    s->visible = false;
    s->observed = m->observed[s->writer];
    /* To own the word, the writer makes everybody else's stores to it land. */
    for (unsigned i = 0; i < m->count; i++) {
        fresh[i] = m->store[i].word == s->word && !m->store[i].visible &&
                   m->store[i].writer != s->writer;
    }
    before = hidden_count(m);
    close_visible(m, fresh);
    if (hidden_count(m) == m->capacity) {
        show_one(m, nth_hidden(m, 0));
        m->overflows++;
    }
    before -= hidden_count(m);
    REQUIRE(pte_buffer_store(m->buf, s->writer, address_of(s->word),
                             memory_of(m, s->word), s->value) == before,
            "seed %" PRIu64 " round %u: a store shows %u", base_seed, m->round,
            before);
    m->count++;
    return before;
}

static unsigned do_drain(struct model *m, unsigned vcpu)
{
    bool fresh[STORES] = {false};
    unsigned before = hidden_count(m);

    for (unsigned i = 0; i < m->count; i++) {
        fresh[i] = !m->store[i].visible &&
                   (m->store[i].writer == vcpu || i < m->observed[vcpu]);
    }
    close_visible(m, fresh);
    before -= hidden_count(m);
    REQUIRE(pte_buffer_drain(m->buf, vcpu) == before,
            "seed %" PRIu64 " round %u: a drain shows %u", base_seed, m->round,
            before);
    for (unsigned i = 0; i < m->count; i++) {
        REQUIRE(m->store[i].visible || m->store[i].writer != vcpu,
                "a DSB that leaves a store");
    }
    return before;
}

static unsigned do_show(struct model *m)
{
    unsigned before = hidden_count(m), word = below(&m->rng, WORDS);
    bool fresh[STORES] = {false};
    unsigned shown;

    switch (below(&m->rng, 4)) {
    case 0:
        if (before) {
            show_one(m, nth_hidden(m, 0));
        }
        shown = pte_buffer_show_oldest(m->buf);
        break;
    case 1:
        if (before) {
            unsigned n = below(&m->rng, before);

            show_one(m, nth_hidden(m, n));
            shown = pte_buffer_show(m->buf, n);
            break;
        }
        return 0;
    case 2:
        for (unsigned i = 0; i < m->count; i++) {
            fresh[i] = !m->store[i].visible && m->store[i].word == word;
        }
        close_visible(m, fresh);
        shown = pte_buffer_show_address(m->buf, address_of(word));
        break;
    default:
        if (!percent(&m->rng, 10)) {
            return 0;
        }
        for (unsigned i = 0; i < m->count; i++) {
            m->store[i].visible = true;
        }
        shown = pte_buffer_drain_all(m->buf);
        break;
    }
    REQUIRE(shown == before - hidden_count(m),
            "seed %" PRIu64 " round %u: showing shows %u, not %u", base_seed,
            m->round, shown, before - hidden_count(m));
    return shown;
}

static void check_reads(struct model *m)
{
    for (unsigned reader = 0; reader < m->vcpus; reader++) {
        for (unsigned word = 0; word < WORDS; word++) {
            uint64_t now = memory_of(m, word), got = now;
            bool hidden =
                pte_buffer_read(m->buf, reader, address_of(word), &got);
            unsigned newest = 0; /* 1 + index of the store that it sees */

            for (unsigned i = 0; i < m->count; i++) {
                if (m->store[i].word == word &&
                    (m->store[i].visible || m->store[i].writer == reader)) {
                    newest = i + 1;
                }
            }
            REQUIRE(got == (newest ? m->store[newest - 1].value : 0) &&
                        hidden == (got != now),
                    "seed %" PRIu64 " round %u: vCPU %u sees %" PRIu64
                    " of word %u, not store %u",
                    base_seed, m->round, reader, got, word, newest);
            /* Values are store numbers, so "never back" is this. */
            REQUIRE(got >= m->reached[reader][word],
                    "seed %" PRIu64 " round %u: word %u went back", base_seed,
                    m->round, word);
            m->reached[reader][word] = (unsigned)got;
            m->hidden_reads += hidden;
        }
    }
}

static void check_lists(const struct model *m)
{
    unsigned n = 0, of[MAX_VCPUS] = {0};

    for (unsigned i = 0; i < m->count; i++) {
        const struct past_store *s = &m->store[i];
        const struct pte_store *listed;

        if (s->visible) {
            continue;
        }
        listed = pte_buffer_at(m->buf, n++);
        of[s->writer]++;
        REQUIRE(listed && listed->writer == s->writer &&
                    listed->pa == address_of(s->word) &&
                    listed->now == s->value,
                "seed %" PRIu64 " round %u: hidden store %u", base_seed,
                m->round, n - 1);
    }
    REQUIRE(pte_buffer_pending(m->buf) == n && n <= m->capacity,
            "seed %" PRIu64 " round %u: %u hidden", base_seed, m->round, n);
    for (unsigned i = 0; i < m->vcpus; i++) {
        REQUIRE(pte_buffer_pending_of(m->buf, i) == of[i],
                "seed %" PRIu64 " round %u: %u of vCPU %u", base_seed, m->round,
                of[i], i);
    }
}

/* Goes on with a copy, after the original has been spoilt. */
static void do_copy(struct model *m)
{
    struct pte_buffer *copy = pte_buffer_new(m->vcpus, m->capacity);

    ck_assert(pte_buffer_copy(copy, m->buf));
    (void)pte_buffer_drain_all(m->buf);
    pte_buffer_free(m->buf);
    m->buf = copy;
    m->copies++;
}

START_TEST(walkers_see_what_the_naive_model_says)
{
    struct model *m = calloc(1, sizeof(*m));

    for (unsigned round = 0; round < 400; round++) {
        bool observes = round % 2;

        m->rng = rng_for(3000000 + round);
        m->round = round;
        m->vcpus = 1 + below(&m->rng, MAX_VCPUS);
        m->capacity = 1 + below(&m->rng, percent(&m->rng, 50) ? 4 : 40);
        m->buf = pte_buffer_new(m->vcpus, m->capacity);
        m->count = 0;
        memset(m->observed, 0, sizeof(m->observed));
        memset(m->reached, 0, sizeof(m->reached));
        while (m->count < STORES) {
            unsigned kind = below(&m->rng, 100);
            unsigned vcpu = below(&m->rng, m->vcpus);

            if (kind < 60) {
                m->shown += do_store(m);
            } else if (kind < 70) {
                m->shown += do_drain(m, vcpu);
            } else if (kind < 85) {
                m->shown += do_show(m);
            } else if (kind < 97) {
                if (observes) {
                    pte_buffer_observe(m->buf, vcpu);
                    m->observed[vcpu] = m->count;
                }
            } else {
                do_copy(m);
            }
            check_reads(m);
            check_lists(m);
        }
        pte_buffer_free(m->buf);
    }
    printf("hidden reads %" PRIu64 ", shown %" PRIu64 ", overflows %" PRIu64
           ", copies %" PRIu64 "\n",
           m->hidden_reads, m->shown, m->overflows, m->copies);
    fflush(stdout);
    ck_assert_uint_gt(m->hidden_reads, 10000);
    ck_assert_uint_gt(m->shown, 10000);
    ck_assert_uint_gt(m->overflows, 1000);
    ck_assert_uint_gt(m->copies, 100);
    free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_pte_buffer");
    TCase *tc = tcase_create("properties");
    SRunner *runner;
    int failed;

    seed_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, walkers_see_what_the_naive_model_says);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_VERBOSE);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
