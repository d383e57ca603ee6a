/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trace file: every line is JSON, fields have their names. */
#include "obs_fixture.h"

#include <pthread.h>

#include "config.h"
#include "obs/events.h"
#include "obs/trace.h"

static char *no_words[] = {NULL};

static struct vm_config config_of(char *path, uint64_t events)
{
    return (struct vm_config){
        .kernel = (char *)"k \"\xff\" \n.elf", /* neither UTF-8 nor tame */
        .cmdline = (char *)"",
        .args = no_words,
        .plugins = no_words,
        .cpus = 4,
        .trace_path = path,
        .trace_events = events,
    };
}

static char **lines_of(const char *path)
{
    char *text = NULL;
    char **lines;

    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    text[strlen(text) - 1] = '\0';
    lines = g_strsplit(text, "\n", -1);
    g_free(text);
    return lines;
}

START_TEST(header_and_events_are_one_object_a_line)
{
    char *path = fixture_file("", 0);
    struct vm_config config =
        config_of(path, EVENT_BIT(EVENT_tlbi) | EVENT_BIT(EVENT_isb));
    struct events *ev = events_new(4);
    struct trace *trace = trace_open(&config, ev, NULL);
    char **lines;
    yajl_val tree;

    ck_assert_ptr_nonnull(trace);
    event_tlbi(ev, 2, UINT64_C(0xffff000000001234), 3, 5,
               UINT64_C(0xff00000000000123), 0x123000, 7, 4096, 42);
    event_emit(ev, 0, EVENT_fill, 0, 1, 2, 3); /* not asked for */
    event_emit(ev, 0, EVENT_isb, 0x80);
    ck_assert(trace_close(trace, NULL));
    events_free(ev);

    lines = lines_of(path);
    ck_assert_uint_eq(g_strv_length(lines), 3);
    tree = fixture_json(lines[0]);
    ck_assert_int_eq(fixture_number(tree, "format"), 1);
    ck_assert_int_eq(fixture_number(tree, "config/cpus"), 4);
    ck_assert_ptr_nonnull(fixture_at(tree, "events/tlbi"));
    ck_assert_ptr_null(fixture_at(tree, "events/fill"));
    yajl_tree_free(tree);
    tree = fixture_json(lines[1]);
    ck_assert_str_eq(fixture_text(tree, "event"), "tlbi");
    ck_assert_int_eq(fixture_number(tree, "vcpu"), 2);
    ck_assert_str_eq(fixture_text(tree, "pc"), "0xffff000000001234");
    ck_assert_int_eq(fixture_number(tree, "encoding"), 3 << 3 | 5);
    ck_assert_str_eq(fixture_text(tree, "operand"), "0xff00000000000123");
    ck_assert_str_eq(fixture_text(tree, "va"), "0x123000");
    ck_assert_int_eq(fixture_number(tree, "asid"), 7);
    ck_assert_int_eq(fixture_number(tree, "ticket"), 42);
    yajl_tree_free(tree);
    tree = fixture_json(lines[2]);
    ck_assert_str_eq(fixture_text(tree, "event"), "isb");
    ck_assert_int_eq(fixture_number(tree, "seq"), 2);
    yajl_tree_free(tree);
    g_strfreev(lines);
    fixture_unlink(path);
}
END_TEST

#define THREADS 4
#define ROUNDS 2000

struct emitter {
    struct events *ev;
    unsigned vcpu;
};

static void *emit(void *opaque)
{
    struct emitter *e = opaque;

    for (unsigned i = 0; i < ROUNDS; i++) {
        event_emit(e->ev, e->vcpu, EVENT_walk, i, i, 1, 0, 3, 4, 5);
    }
    return NULL;
}

START_TEST(lines_of_many_threads_stay_whole)
{
    char *path = fixture_file("", 0);
    struct vm_config config = config_of(path, EVENT_ALL);
    struct events *ev = events_new(THREADS);
    struct trace *trace = trace_open(&config, ev, NULL);
    struct emitter emitters[THREADS];
    pthread_t ids[THREADS];
    char **lines;

    for (unsigned v = 0; v < THREADS; v++) {
        emitters[v] = (struct emitter){ev, v};
        ck_assert_int_eq(pthread_create(&ids[v], NULL, emit, &emitters[v]), 0);
    }
    for (unsigned v = 0; v < THREADS; v++) {
        ck_assert_int_eq(pthread_join(ids[v], NULL), 0);
    }
    ck_assert(trace_close(trace, NULL));
    events_free(ev);
    lines = lines_of(path);
    ck_assert_uint_eq(g_strv_length(lines), THREADS * ROUNDS + 1);
    for (char **line = lines; *line; line++) {
        yajl_tree_free(fixture_json(*line));
    }
    g_strfreev(lines);
    fixture_unlink(path);
}
END_TEST

START_TEST(file_that_cannot_be_written_is_a_sentence)
{
    struct vm_config config =
        config_of((char *)"/nonexistent/trace.jsonl", EVENT_ALL);
    struct events *ev = events_new(1);
    GError *error = NULL;
    struct trace *trace = trace_open(&config, ev, &error);

    ck_assert_ptr_null(trace);
    ck_assert_ptr_nonnull(strstr(error->message, "/nonexistent/trace.jsonl"));
    ck_assert_ptr_nonnull(strstr(error->message, "--trace"));
    ck_assert_uint_eq(ev->wanted, 0);
    g_clear_error(&error);
    ck_assert(trace_close(NULL, NULL));
    events_free(ev);
}
END_TEST

START_TEST(full_disk_is_reported_at_the_end)
{
    struct vm_config config = config_of((char *)"/dev/full", EVENT_ALL);
    struct events *ev = events_new(1);
    GError *error = NULL;
    struct trace *trace = trace_open(&config, ev, &error);

    ck_assert_ptr_nonnull(trace);
    for (unsigned i = 0; i < 50000; i++) {
        event_emit(ev, 0, EVENT_mark, 0, i);
    }
    ck_assert(!trace_close(trace, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "not complete"));
    g_clear_error(&error);
    events_free(ev);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("trace");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, header_and_events_are_one_object_a_line);
    tcase_add_test(tc, lines_of_many_threads_stay_whole);
    tcase_add_test(tc, file_that_cannot_be_written_is_a_sentence);
    tcase_add_test(tc, full_disk_is_reported_at_the_end);
    return fixture_main("trace", tc);
}
