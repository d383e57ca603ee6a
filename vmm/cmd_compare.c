/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `shootdown compare`: the same workload under {broadcast, ipi} x {sync,
 * batched}, one machine after another in this process, then one table.
 *
 * Per call: the mean of calls 2..n of madvise(MADV_PAGEOUT), inside the call,
 * on the calling vCPU, without the barriers of context switches and of the
 * interrupt controller's driver. Main thread.
 */
#include "cmd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/annot.h"
#include "error.h"

#define CONFIGURATIONS 4u

/* One line of the table. */
struct row {
    enum vm_tlb_mode tlb;
    enum vm_flush_mode flush;
    uint64_t calls;
    double tlbi, dsb_ish, dsb_ishst, ipis; /* per call, calls 2..n */
    double us;                             /* per call, all calls */
    uint64_t flushes;                      /* in the whole run */
    double seconds, mips;
};

static uint64_t counts_sum(const struct op_counts *n, unsigned from,
                           unsigned to)
{
    uint64_t sum = 0;

    for (unsigned k = from; k < to; k++) {
        sum += n->n[SITE_FLUSH][k];
    }
    return sum;
}

/* Mean over calls 2..n; of the only one where there is just one. */
static double steady_mean(const struct op_summary *s, unsigned from,
                          unsigned to)
{
    uint64_t total = counts_sum(&s->total, from, to);

    if (s->calls < 2) {
        return (double)total;
    }
    return (double)(total - counts_sum(&s->first, from, to)) /
           (double)(s->calls - 1);
}

static double steady_one(const struct op_summary *s, unsigned flush)
{
    return steady_mean(s, flush, flush + 1);
}

/* How often the guest waited for other CPUs, by its own count. */
static uint64_t guest_flushes(const struct vm_totals *totals)
{
    const char *name =
        totals->config->tlb == VM_TLB_IPI ? "remote_flush" : "dsb_ish";
    int index = guest_counter_index(name);

    return index < 0 ? 0 : vm_totals_guest_sum(totals, (unsigned)index);
}

static void row_fill(struct row *row, const struct run *run)
{
    const struct vm_totals *totals = &run->totals;
    g_autofree struct op_summary *s =
        events_op_summary(run->events, ANNOT_OP_MADVISE_PAGEOUT);

    row->tlb = totals->config->tlb;
    row->flush = totals->config->flush;
    row->flushes = guest_flushes(totals);
    row->seconds = (double)totals->wall_ns / 1e9;
    row->mips = totals->wall_ns ? (double)totals->instructions * 1e3 /
                                      (double)totals->wall_ns
                                : 0;
    if (s && s->calls > 0) {
        row->calls = s->calls;
        row->tlbi = steady_mean(s, 0, FLUSH_DSB(0));
        row->dsb_ish = steady_one(s, FLUSH_DSB(11));
        row->dsb_ishst = steady_one(s, FLUSH_DSB(10));
        row->ipis = steady_one(s, FLUSH_IPI);
        row->us = (double)s->ns / 1e3 / (double)s->calls;
    }
}

/* --- the table --- */

/* 256 as "256", 9.5 as "9.5", nothing as "-". */
static char *number(char *buf, size_t size, double value, bool known)
{
    if (!known) {
        g_strlcpy(buf, "-", size);
    } else if (value == (double)(uint64_t)value) {
        g_snprintf(buf, size, "%" G_GUINT64_FORMAT, (uint64_t)value);
    } else {
        g_snprintf(buf, size, "%.1f", value);
    }
    return buf;
}

static void print_row(const struct row *row)
{
    char tlbi[24], ish[24], ishst[24], ipis[24], us[24];
    bool known = row->calls > 0;

    printf("%-9s %-7s %5s %7s %9s %5s %7" G_GUINT64_FORMAT " %7s %6.2f %6.1f\n",
           vm_tlb_mode_name(row->tlb), vm_flush_mode_name(row->flush),
           number(tlbi, sizeof(tlbi), row->tlbi, known),
           number(ish, sizeof(ish), row->dsb_ish, known),
           number(ishst, sizeof(ishst), row->dsb_ishst, known),
           number(ipis, sizeof(ipis), row->ipis, known), row->flushes,
           known ? (g_snprintf(us, sizeof(us), "%.0f", row->us), us) : "-",
           row->seconds, row->mips);
}

static const char *ratio(char *buf, size_t size, double sync, double batched)
{
    if (batched > 0) {
        g_snprintf(buf, size, "%.*fx", sync / batched < 10 ? 2 : 1,
                   sync / batched);
    } else {
        g_strlcpy(buf, "-", size);
    }
    return buf;
}

static void print_ratio(const struct row *sync, const struct row *batched)
{
    char tlbi[16], ish[16], ishst[16], ipis[16], flushes[16], us[16];
    char seconds[16], mips[16];

    printf("%-17s %5s %7s %9s %5s %7s %7s %6s %6s\n", "sync / batched",
           ratio(tlbi, sizeof(tlbi), sync->tlbi, batched->tlbi),
           ratio(ish, sizeof(ish), sync->dsb_ish, batched->dsb_ish),
           ratio(ishst, sizeof(ishst), sync->dsb_ishst, batched->dsb_ishst),
           ratio(ipis, sizeof(ipis), sync->ipis, batched->ipis),
           ratio(flushes, sizeof(flushes), (double)sync->flushes,
                 (double)batched->flushes),
           ratio(us, sizeof(us), sync->us, batched->us),
           ratio(seconds, sizeof(seconds), sync->seconds, batched->seconds),
           ratio(mips, sizeof(mips), sync->mips, batched->mips));
}

static void print_table(const struct vm_config *config, const struct row *rows)
{
    g_autofree char *args = g_strjoinv(" ", config->args);
    bool is_parallel = config->engine == VM_ENGINE_PARALLEL;

    printf("%s%s%s on %u vCPU%s%s%s; ", config->workload, args[0] ? " " : "",
           args, config->cpus, config->cpus > 1 ? "s" : "",
           is_parallel ? "" : ", ",
           is_parallel ? "" : vm_engine_name(config->engine));
    if (rows[0].calls < 2) {
        printf("it made %s madvise(MADV_PAGEOUT) call:\n",
               rows[0].calls ? "one" : "no");
    } else {
        printf("per madvise(MADV_PAGEOUT) call 2..%" G_GUINT64_FORMAT ":\n",
               rows[0].calls);
    }
    printf("%-9s %-7s %5s %7s %9s %5s %7s %7s %6s %6s\n", "hardware", "unmap",
           "TLBI", "DSB ISH", "DSB ISHST", "IPIs", "flushes", "us/call",
           "wall s", "MIPS");
    for (unsigned i = 0; i < CONFIGURATIONS; i++) {
        print_row(&rows[i]);
        if (i % 2 == 1) {
            print_ratio(&rows[i - 1], &rows[i]);
        }
    }
    printf("flushes: waits for other CPUs in the whole run, counted by the "
           "guest. us/call%s\nwall s (boot included) and MIPS: host time of "
           "this emulator.\n",
           is_parallel ? "," : "\nis virtual time, of round costs;");
}

/* --- the runs --- */

static void progress(unsigned i, const struct vm_config *config, bool done,
                     double seconds)
{
    bool is_terminal = isatty(STDERR_FILENO);

    if (!done) {
        fprintf(stderr, "%s[%u/%u] tlb=%s flush=%s ...%s",
                is_terminal ? "\r\033[K" : "", i + 1, CONFIGURATIONS,
                vm_tlb_mode_name(config->tlb),
                vm_flush_mode_name(config->flush), is_terminal ? "" : "\n");
    } else if (is_terminal) {
        /* Overwritten by the next one; the last line is wiped. */
        fprintf(stderr, "\r\033[K");
    } else {
        fprintf(stderr, "[%u/%u] done in %.1f s\n", i + 1, CONFIGURATIONS,
                seconds);
    }
    (void)fflush(stderr); /* a lost progress line is no failure */
}

/* What went wrong in one of the runs, and the command that shows it. */
static void report_failure(const struct vm_config *config, int status)
{
    g_autofree char *line = vm_config_to_text(config);
    const char *what = status == EXIT_GUEST_PANIC       ? "panicked"
                       : status == EXIT_HANG            ? "timed out"
                       : status == EXIT_INTERRUPTED     ? "was interrupted"
                       : status == EXIT_WORKLOAD_FAILED ? "failed"
                       : status == EXIT_BUG_FOUND       ? "found a bug"
                                                        : "did not end";

    fprintf(stderr,
            "shootdown: the run with tlb=%s flush=%s %s; its console is shown "
            "by\n  shootdown run %s\n",
            vm_tlb_mode_name(config->tlb), vm_flush_mode_name(config->flush),
            what, line);
}

static int compare_one(unsigned i, const struct vm_config *base,
                       struct row *out_row)
{
    g_autoptr(GError) error = NULL;
    struct vm_config *config = vm_config_copy(base);
    struct run run;
    int status;

    config->tlb = i / 2 == 0 ? VM_TLB_BROADCAST : VM_TLB_IPI;
    config->flush = i % 2 == 0 ? VM_FLUSH_SYNC : VM_FLUSH_BATCHED;
    vm_config_compose(config);
    progress(i, config, false, 0);
    if (!run_machine(config, NULL, &run, &error)) {
        progress(i, config, true, 0);
        status = cli_fail(error);
    } else {
        status = run_exit_status(&run);
        row_fill(out_row, &run);
        progress(i, config, true, out_row->seconds);
    }
    if (status != EXIT_FINE && run.outcome != VM_OUTCOME_NONE) {
        report_failure(config, status);
    }
    run_fini(&run);
    vm_config_free(config);
    return status;
}

/*
 * One thread on every other vCPU, so that a flush has somebody to ask. The
 * counts are the same from the second call on: 20 are enough.
 */
#define DEFAULT_ROUNDS "20"

static void default_arguments(struct vm_config *config)
{
    if (config->args[0] || strcmp(config->workload, "swap_bench") != 0 ||
        config->cpus < 2) {
        return;
    }
    g_strfreev(config->args);
    config->args = g_new0(char *, 5);
    config->args[0] = g_strdup("-t");
    config->args[1] = g_strdup_printf("%u", config->cpus - 1);
    config->args[2] = g_strdup("-k");
    config->args[3] = g_strdup(DEFAULT_ROUNDS);
}

int cmd_compare(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct vm_config *config =
        vm_config_parse(VM_COMMAND_COMPARE, argc, argv, &error);
    struct row rows[CONFIGURATIONS] = {0};
    int status = EXIT_FINE;

    if (!config) {
        return cli_fail(error);
    }
    default_arguments(config);
    config->attribute = true;
    config->quiet = !config->verbose;
    for (unsigned i = 0; i < CONFIGURATIONS && status == EXIT_FINE; i++) {
        status = compare_one(i, config, &rows[i]);
    }
    if (status == EXIT_FINE) {
        print_table(config, rows);
    }
    vm_config_free(config);
    return status;
}
