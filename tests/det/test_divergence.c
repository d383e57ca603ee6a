/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is wrong with a schedule is told: a file that is damaged, one of
 * another kernel, and one whose choices do not fit, with the place.
 */
#include "det_fixture.h"

#include <unistd.h>

#include "error.h"
#include "vm.h"

/* Entries that are changed, spread over the run. */
#define SITES 60u

enum change {
    CHANGE_VALUE,
    CHANGE_N,
    CHANGE_KIND,
    CHANGE_DROP,
    CHANGE_ADD,
    CHANGE_LATER, /* the same one choice later */
    CHANGES
};

static const char *const change_names[] = {
    "another value", "another number of alternatives",
    "another kind",  "dropped",
    "added",         "one later",
};

/* False: this entry cannot be changed so. */
static bool change_entry(struct schedule *s, guint at, enum change change)
{
    struct choice_entry *e =
        &g_array_index(s->entries, struct choice_entry, at);
    uint64_t next =
        at + 1 < s->entries->len
            ? g_array_index(s->entries, struct choice_entry, at + 1).index
            : s->total;
    struct choice_entry added = *e;

    switch (change) {
    case CHANGE_VALUE:
        e->value = e->value > 1 ? e->value - 1 : 2;
        return e->value < e->n;
    case CHANGE_N:
        e->n++;
        return true;
    case CHANGE_KIND:
        e->kind = e->kind == CHOICE_vcpu ? CHOICE_quantum : CHOICE_vcpu;
        return true;
    case CHANGE_DROP:
        g_array_remove_index(s->entries, at);
        return true;
    case CHANGE_ADD:
        added.index++;
        g_array_insert_val(s->entries, at + 1, added);
        return added.index < next;
    case CHANGE_LATER:
        e->index++;
        return e->index < next;
    case CHANGES:
        break;
    }
    ck_abort();
}

struct verdicts {
    unsigned told, equal, other;
};

/* The message names the place, and where it must be that choice. */
static void check_message(const char *text, const char *change, uint64_t at,
                          bool exactly)
{
    g_autofree char *place = g_strdup_printf("choice %" PRIu64 " ", at);

    ck_assert_msg(g_regex_match_simple("step \\d+, choice \\d+, while vCPU "
                                       "\\d+ .*0x[0-9a-f]+",
                                       text, 0, 0),
                  "%s at %" PRIu64 ": the message names no place: %s", change,
                  at, text);
    ck_assert_msg(!exactly || g_str_has_prefix(text, place),
                  "%s at %" PRIu64 ": the message is of another choice: %s",
                  change, at, text);
}

static void replay_changed(struct det_machine *m, const struct schedule *good,
                           guint at, enum change change,
                           struct verdicts *verdicts)
{
    struct schedule *s = schedule_copy(good);
    uint64_t index =
        g_array_index(good->entries, struct choice_entry, at).index;
    bool must_be_told = change == CHANGE_N || change == CHANGE_KIND;
    struct choice_source *source;
    struct det_answer a;

    if (!change_entry(s, at, change)) {
        schedule_free(s);
        return;
    }
    source = det_recorded(s);
    m->execution->expected = s;
    a = det_run_source(m, source, true);
    m->execution->expected = NULL;
    if (m->execution->divergence) {
        ck_assert_int_eq(a.outcome, VM_OUTCOME_DIVERGED);
        check_message(m->execution->divergence, change_names[change], index,
                      must_be_told);
        if (verdicts[change].told++ == 0) {
            printf("%s, at choice %" PRIu64 ": %s\n", change_names[change],
                   index, m->execution->divergence);
        }
    } else if (a.trace_hash == good->trace_hash &&
               a.state_hash == good->state_hash) {
        ck_assert_msg(!must_be_told, "%s at %" PRIu64 " was not noticed",
                      change_names[change], index);
        verdicts[change].equal++;
    } else {
        /* All choices fitted: the session compares what is left at the end. */
        ck_assert(a.outcome != VM_OUTCOME_DIVERGED && !must_be_told);
        verdicts[change].other++;
    }
    choice_source_free(source);
    schedule_free(s);
}

START_TEST(a_changed_entry_is_told_or_void)
{
    struct det_machine *m =
        det_machine_new("--engine seeded " DET_RECLAIM_RACE);
    struct verdicts verdicts[CHANGES] = {0};
    struct schedule *good;
    struct choice_source *source;
    struct det_answer a;

    (void)det_run_strategy(m, "random", 1, false);
    good = execution_schedule(m->execution);
    ck_assert_uint_gt(good->entries->len, SITES);
    for (unsigned i = 0; i < SITES; i++) {
        guint at = (guint)((uint64_t)i * good->entries->len / SITES);

        for (unsigned change = 0; change < CHANGES; change++) {
            replay_changed(m, good, at, (enum change)change, verdicts);
        }
    }
    for (unsigned change = 0; change < CHANGES; change++) {
        const struct verdicts *v = &verdicts[change];

        printf("%s: %u told with the place, %u void, %u ended otherwise\n",
               change_names[change], v->told, v->equal, v->other);
        ck_assert_uint_gt(v->told, 0);
    }
    /* None of that has left anything behind. */
    source = det_recorded(good);
    a = det_run_source(m, source, true);
    ck_assert_uint_eq(a.trace_hash, good->trace_hash);
    ck_assert_uint_eq(a.state_hash, good->state_hash);
    choice_source_free(source);
    schedule_free(good);
    det_machine_free(m);
}
END_TEST

START_TEST(a_run_with_more_choices_than_recorded_is_told)
{
    struct det_machine *m =
        det_machine_new("--engine seeded " DET_RECLAIM_RACE);
    struct schedule *good;
    unsigned told = 0;

    (void)det_run_strategy(m, "random", 2, false);
    good = execution_schedule(m->execution);
    for (uint64_t less = 10; less < good->total; less *= 2) {
        struct schedule *s = schedule_copy(good);
        struct choice_source *source;

        s->total -= less;
        while (s->entries->len && g_array_index(s->entries, struct choice_entry,
                                                s->entries->len - 1)
                                          .index >= s->total) {
            g_array_set_size(s->entries, s->entries->len - 1);
        }
        source = det_recorded(s);
        (void)det_run_source(m, source, false);
        ck_assert_msg(m->execution->divergence != NULL,
                      "%" PRIu64 " choices fewer were not noticed", less);
        check_message(m->execution->divergence, "shortened", s->total, true);
        told++;
        choice_source_free(source);
        schedule_free(s);
    }
    ck_assert_uint_ge(told, 5);
    schedule_free(good);
    det_machine_free(m);
}
END_TEST

/* A checkpoint whose hash is another one, in a run that has several. */
START_TEST(a_trace_that_is_not_the_recorded_one_is_told_at_the_checkpoint)
{
    struct det_machine *m = det_machine_new(
        "--engine seeded --mem 32M swap_bench -- -k 1 -p 8 -t 3");
    struct schedule *good, *s;
    struct choice_source *source;
    struct schedule_checkpoint *c;

    (void)det_run_strategy(m, "random", 1, false);
    good = execution_schedule(m->execution);
    s = schedule_copy(good);
    ck_assert_uint_gt(s->checkpoints->len, 3);
    c = &g_array_index(s->checkpoints, struct schedule_checkpoint, 2);
    c->trace_hash ^= 1;
    source = det_recorded(s);
    m->execution->expected = s;
    (void)det_run_source(m, source, false);
    ck_assert_ptr_nonnull(m->execution->divergence);
    printf("%s\n", m->execution->divergence);
    check_message(m->execution->divergence, "checkpoint", c->index, false);
    ck_assert_ptr_nonnull(strstr(m->execution->divergence, "the trace was"));
    m->execution->expected = NULL;
    choice_source_free(source);
    schedule_free(s);
    schedule_free(good);
    det_machine_free(m);
}
END_TEST

/* --- files --- */

/* A schedule of a real run, as small as they come. */
static struct schedule *small_schedule(void)
{
    struct det_machine *m =
        det_machine_new("--engine seeded --max-steps 60 " DET_RECLAIM_RACE);
    struct schedule *s;

    (void)det_run_strategy(m, "random", 3, false);
    s = execution_schedule(m->execution);
    ck_assert_uint_gt(s->entries->len, 10);
    det_machine_free(m);
    return s;
}

static void check_refused(const char *text, size_t length, const char *what,
                          size_t at)
{
    GError *error = NULL;
    struct schedule *s = schedule_from_text(text, length, &error);

    ck_assert_msg(s == NULL, "%s at %zu was accepted", what, at);
    ck_assert_ptr_nonnull(error);
    ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_ENVIRONMENT));
    ck_assert_msg(strlen(error->message) > 10 &&
                      g_utf8_validate(error->message, -1, NULL),
                  "%s at %zu: the message is '%s'", what, at, error->message);
    g_error_free(error);
}

START_TEST(every_flipped_bit_is_refused)
{
    struct schedule *s = small_schedule();
    g_autofree char *text = schedule_to_text(s);
    size_t length = strlen(text);

    for (size_t bit = 0; bit < 8 * length; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        check_refused(text, length, "a flipped bit", bit);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t n = 0; n < length; n++) {
        check_refused(text, n, "a file cut", n);
    }
    for (size_t at = 0; at < length; at++) {
        g_autofree char *less = g_memdup2(text, length);

        memmove(less + at, less + at + 1, length - at - 1);
        check_refused(less, length - 1, "a byte lost", at);
    }
    printf("%zu bits, %zu lengths and %zu lost bytes were refused\n",
           8 * length, length, length);
    schedule_free(s);
}
END_TEST

START_TEST(every_flipped_byte_of_a_file_is_refused)
{
    struct schedule *s = small_schedule();
    g_autofree char *text = schedule_to_text(s);
    g_autofree char *path = NULL;
    size_t length = strlen(text);
    int fd = g_file_open_tmp("shootdown-test-XXXXXX", &path, NULL);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, length), (ssize_t)length);
    for (size_t at = 0; at < length; at++) {
        char byte = (char)(text[at] ^ 1 << at % 8);
        GError *error = NULL;
        struct schedule *bad;

        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
        bad = schedule_load(path, &error);
        ck_assert_msg(bad == NULL, "byte %zu", at);
        ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_ENVIRONMENT));
        g_error_free(error);
        ck_assert_int_eq(pwrite(fd, text + at, 1, (off_t)at), 1);
    }
    {
        struct schedule *again = schedule_load(path, NULL);

        ck_assert_ptr_nonnull(again);
        schedule_free(again);
    }
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
    schedule_free(s);
}
END_TEST

/* In the one-line form a bit may be one that says nothing. */
START_TEST(a_flipped_bit_of_the_line_is_refused_or_void)
{
    struct schedule *s = small_schedule();
    g_autofree char *line = schedule_to_line(s);
    g_autofree char *text = schedule_to_text(s);
    size_t length = strlen(line);
    unsigned refused = 0, same = 0;

    /* Behind "sd1:", without which it is a file's name. */
    for (size_t bit = 8 * 4; bit < 8 * length; bit++) {
        GError *error = NULL;
        struct schedule *bad;

        line[bit / 8] = (char)(line[bit / 8] ^ 1 << bit % 8);
        if (line[bit / 8] == '\0') {
            line[bit / 8] = (char)(line[bit / 8] ^ 1 << bit % 8);
            continue;
        }
        bad = schedule_load(line, &error);
        if (bad) {
            g_autofree char *again = schedule_to_text(bad);

            ck_assert_msg(!strcmp(text, again), "bit %zu", bit);
            schedule_free(bad);
            same++;
        } else {
            ck_assert_ptr_nonnull(error);
            g_error_free(error);
            refused++;
        }
        line[bit / 8] = (char)(line[bit / 8] ^ 1 << bit % 8);
    }
    printf("%u bits of the line were refused, %u are void\n", refused, same);
    ck_assert_uint_gt(refused, 8 * same);
    schedule_free(s);
}
END_TEST

START_TEST(a_schedule_of_another_image_is_refused)
{
    static const char *const keys[] = {"kernel-sha256", "initrd-sha256"};
    struct schedule *s = small_schedule();
    struct vm_config *config =
        vm_config_from_text(schedule_get(s, "run"), NULL);
    struct events *events;
    struct vm *vm;
    GError *error = NULL;

    ck_assert_ptr_nonnull(config);
    config->quiet = true;
    events = events_new(config->cpus);
    vm = vm_new(config, events, &error);
    ck_assert_ptr_nonnull(vm);
    for (unsigned i = 0; i < 2; i++) {
        struct schedule *other = schedule_copy(s);
        g_autofree char *hash = g_strdup(schedule_get(s, keys[i]));

        hash[63] = hash[63] == '0' ? '1' : '0';
        schedule_set(other, keys[i], hash);
        ck_assert(!vm_replay(vm, other, &error));
        ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_ENVIRONMENT));
        ck_assert_msg(strstr(error->message, "SHA-256") != NULL, "%s",
                      error->message);
        g_clear_error(&error);
        schedule_set(other, keys[i], "");
        ck_assert(!vm_replay(vm, other, &error));
        g_clear_error(&error);
        schedule_free(other);
    }
    ck_assert(vm_replay(vm, s, &error));
    vm_free(vm);
    events_free(events);
    vm_config_free(config);
    schedule_free(s);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("divergence");

    tcase_set_timeout(tc, det_seconds(60));
    tcase_add_test(tc, a_changed_entry_is_told_or_void);
    tcase_add_test(tc, a_run_with_more_choices_than_recorded_is_told);
    tcase_add_test(
        tc, a_trace_that_is_not_the_recorded_one_is_told_at_the_checkpoint);
    tcase_add_test(tc, every_flipped_bit_is_refused);
    tcase_add_test(tc, every_flipped_byte_of_a_file_is_refused);
    tcase_add_test(tc, a_flipped_bit_of_the_line_is_refused_or_void);
    tcase_add_test(tc, a_schedule_of_another_image_is_refused);
    return det_main_of("divergence", tc);
}
