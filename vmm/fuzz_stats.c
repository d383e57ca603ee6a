/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a campaign tells: a line in libFuzzer's shape, and with -campaign=DIR
 * AFL's fuzzer_stats and plot_data (for afl-whatsup and afl-plot, which read
 * them by name and by column) and stats.json.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "error.h"
#include "fuzz.h"

#define SAVE_EVERY_US (INT64_C(5) * 1000000)

static uint64_t rss_mb(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0
               ? (uint64_t)usage.ru_maxrss / 1024
               : 0;
}

static double seconds(const struct fuzz *f)
{
    return (double)(g_get_monotonic_time() - f->start_us) / 1e6;
}

static double rate(const struct fuzz *f)
{
    double s = seconds(f);

    return s > 0 ? (double)f->runs / s : 0;
}

/* "12b", "3Kb", as libFuzzer has it. */
static char *size_text(uint64_t bytes)
{
    return bytes < 10000 ? g_strdup_printf("%" PRIu64 "b", bytes)
           : bytes < 10000 * 1024
               ? g_strdup_printf("%" PRIu64 "Kb", bytes >> 10)
               : g_strdup_printf("%" PRIu64 "Mb", bytes >> 20);
}

void fuzz_status(struct fuzz *f, const char *what, const char *more)
{
    const struct fuzz_corpus *c = f->corpus;
    g_autofree char *size = size_text(c->bytes);

    printf("#%" PRIu64 "\t%-6s tlb: %u sched: %u corp: %u/%s exec/s: %.0f "
           "depth: %u rss: %" PRIu64 "Mb%s%s\n",
           f->runs, what, c->places, c->pairs, c->inputs->len, size, rate(f),
           c->depth, rss_mb(), more ? " " : "", more ? more : "");
    (void)fflush(stdout);
}

static unsigned stability(const struct fuzz *f)
{
    return f->tried ? 100 * f->stable / f->tried : 100;
}

void fuzz_final_stats(const struct fuzz *f)
{
    printf("stat::number_of_executed_units: %" PRIu64 "\n"
           "stat::average_exec_per_sec:     %.0f\n"
           "stat::new_units_added:          %u\n"
           "stat::slowest_unit_time_sec:    0\n"
           "stat::peak_rss_mb:              %" PRIu64 "\n"
           "stat::steps_per_unit:           %.0f\n"
           "stat::findings:                 %u\n"
           "stat::stability_percent:        %u\n",
           f->runs, rate(f), f->kept, rss_mb(),
           f->runs ? (double)f->steps / (double)f->runs : 0, f->found->len,
           stability(f));
}

/* --- the campaign directory --- */

static bool make_directory(const char *campaign, const char *name,
                           GError **error)
{
    g_autofree char *path = g_build_filename(campaign, name, NULL);

    if (g_mkdir_with_parents(path, 0777) != 0) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s: %s", path,
                    g_strerror(errno));
        return false;
    }
    return true;
}

bool fuzz_campaign_begin(struct fuzz *f, GError **error)
{
    const char *dir = f->flags->campaign;
    g_autofree char *path = NULL;

    if (!dir) {
        return true;
    }
    if (!make_directory(dir, "crashes", error) ||
        !make_directory(dir, "hangs", error)) {
        return false;
    }
    path = g_build_filename(dir, "plot_data", NULL);
    f->plot = fopen(path, "we");
    if (!f->plot) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s: %s", path,
                    g_strerror(errno));
        return false;
    }
    fputs("# relative_time, cycles_done, cur_item, corpus_count, "
          "pending_total, pending_favs, map_size, saved_crashes, saved_hangs, "
          "max_depth, execs_per_sec, total_execs, edges_found\n",
          f->plot);
    return true;
}

static double map_percent(const struct fuzz *f)
{
    unsigned used = 0;

    for (unsigned i = 0; i < FUZZ_MAP_SIZE; i++) {
        used += f->corpus->seen[i] != 0;
    }
    return 100.0 * used / FUZZ_MAP_SIZE;
}

/* Inputs that were never mutated. */
static unsigned pending(const struct fuzz *f)
{
    unsigned count = 0;

    for (guint i = 0; i < f->corpus->inputs->len; i++) {
        count += ((struct fuzz_input *)f->corpus->inputs->pdata[i])->used == 0;
    }
    return count;
}

static void plot(struct fuzz *f)
{
    const struct fuzz_corpus *c = f->corpus;

    fprintf(f->plot,
            "%.0f, 0, 0, %u, %u, 0, %.2f%%, %u, %u, %u, %.2f, %" PRIu64
            ", %u\n",
            seconds(f), c->inputs->len, pending(f), map_percent(f),
            f->found->len - f->hangs, f->hangs, c->depth, rate(f), f->runs,
            c->pairs);
    (void)fflush(f->plot);
}

/* The wall clock's second in which that monotonic time was; 0: never. */
static int64_t epoch(int64_t us)
{
    return us ? (g_get_real_time() - (g_get_monotonic_time() - us)) / 1000000
              : 0;
}

static char *afl_text(const struct fuzz *f)
{
    const struct fuzz_corpus *c = f->corpus;

    return g_strdup_printf(
        "start_time        : %" PRId64 "\n"
        "last_update       : %" PRId64 "\n"
        "run_time          : %.0f\n"
        "fuzzer_pid        : %ld\n"
        "cycles_done       : 0\n"
        "cycles_wo_finds   : 0\n"
        "time_wo_finds     : %.0f\n"
        "execs_done        : %" PRIu64 "\n"
        "execs_per_sec     : %.2f\n"
        "execs_ps_last_min : %.2f\n"
        "corpus_count      : %u\n"
        "corpus_favored    : 0\n"
        "corpus_found      : %u\n"
        "corpus_imported   : %u\n"
        "corpus_variable   : 0\n"
        "max_depth         : %u\n"
        "cur_item          : 0\n"
        "pending_favs      : 0\n"
        "pending_total     : %u\n"
        "stability         : %u.00%%\n"
        "bitmap_cvg        : %.2f%%\n"
        "saved_crashes     : %u\n"
        "saved_hangs       : %u\n"
        "last_find         : %" PRId64 "\n"
        "last_crash        : %" PRId64 "\n"
        "last_hang         : %" PRId64 "\n"
        "execs_since_crash : 0\n"
        "exec_timeout      : %" PRIu64 "\n"
        "slowest_exec_ms   : 0\n"
        "peak_rss_mb       : %" PRIu64 "\n"
        "edges_found       : %u\n"
        "total_edges       : %u\n"
        "afl_banner        : shootdown\n"
        "afl_version       : shootdown " SHOOTDOWN_VERSION "\n"
        "target_mode       : schedules\n"
        "command_line      : %s\n",
        epoch(f->start_us), g_get_real_time() / 1000000, seconds(f),
        (long)getpid(), (double)(g_get_monotonic_time() - f->last_new_us) / 1e6,
        f->runs, rate(f), rate(f), c->inputs->len, f->kept, f->imported,
        c->depth, pending(f), stability(f), map_percent(f),
        f->found->len - f->hangs, f->hangs, f->kept ? epoch(f->last_new_us) : 0,
        epoch(f->last_bug_us), epoch(f->last_hang_us), f->flags->timeout * 1000,
        rss_mb(), c->pairs, FUZZ_MAP_SIZE, f->command);
}

static char *json_text(const struct fuzz *f)
{
    const struct fuzz_corpus *c = f->corpus;

    return g_strdup_printf(
        "{\"seed\":%" PRIu64 ",\"shard\":[%u,%u],\"executions\":%" PRIu64
        ",\"steps\":%" PRIu64 ",\"seconds\":%.3f,\"executions_per_second\":%.1f"
        ",\"corpus\":{\"inputs\":%u,\"bytes\":%" PRIu64
        ",\"found\":%u,\"imported\":%u,\"depth\":%u}"
        ",\"coverage\":{\"tlb\":%u,\"sched\":%u,\"map_percent\":%.2f}"
        ",\"findings\":{\"bugs\":%u,\"hangs\":%u},\"stability_percent\":%u"
        ",\"peak_rss_mb\":%" PRIu64 "}\n",
        f->flags->seed, f->flags->shard_index, f->flags->shard_count, f->runs,
        f->steps, seconds(f), rate(f), c->inputs->len, c->bytes, f->kept,
        f->imported, c->depth, c->places, c->pairs, map_percent(f),
        f->found->len - f->hangs, f->hangs, stability(f), rss_mb());
}

void fuzz_campaign_save(struct fuzz *f, bool is_end)
{
    int64_t now = g_get_monotonic_time();
    g_autofree char *afl = NULL, *json = NULL;
    g_autoptr(GError) error = NULL;

    if (!f->plot || (!is_end && now - f->saved_us < SAVE_EVERY_US)) {
        return;
    }
    f->saved_us = now;
    plot(f);
    afl = afl_text(f);
    json = json_text(f);
    if (!fuzz_save(f->flags->campaign, "fuzzer_stats", afl, strlen(afl),
                   &error) ||
        !fuzz_save(f->flags->campaign, "stats.json", json, strlen(json),
                   &error)) {
        fprintf(stderr, "shootdown: statistics: %s\n", error->message);
    }
    if (is_end) {
        (void)fclose(f->plot);
        f->plot = NULL;
    }
}
