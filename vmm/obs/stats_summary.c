/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The short text at the end of a run, for a person at a terminal. */
#include <string.h>
#include <glib.h>

#include "config.h"
#include "obs/stats.h"

/* What is left of 80 columns behind a number. */
#define NOTE_MAX 31

static void summary_line(GString *text, const char *label, uint64_t value,
                         const char *note)
{
    g_autofree char *plain = g_strdup_printf("%" G_GUINT64_FORMAT, value);
    GString *grouped = g_string_new(plain);

    for (gssize i = (gssize)grouped->len - 3; i > 0; i -= 3) {
        g_string_insert_c(grouped, i, ',');
    }
    g_string_append_printf(text, "  %-24s %20s%s%s\n", label, grouped->str,
                           note ? "  " : "", note ? note : "");
    g_string_free(grouped, TRUE);
}

static uint64_t sum_range(const uint64_t *n, unsigned from, unsigned to)
{
    uint64_t sum = 0;

    for (unsigned i = from; i < to; i++) {
        sum += n[i];
    }
    return sum;
}

/* "ISH 12, ISHST 24": the largest of 16 barrier counts, as many as fit. */
static char *barrier_list(const uint64_t *n)
{
    GString *list = g_string_new(NULL);
    bool shown[16] = {false};

    for (;;) {
        unsigned best = 16;
        g_autofree char *one = NULL;

        for (unsigned crm = 0; crm < 16; crm++) {
            if (!shown[crm] && n[crm] && (best == 16 || n[crm] > n[best])) {
                best = crm;
            }
        }
        if (best == 16) {
            break;
        }
        shown[best] = true;
        one = g_strdup_printf("%s%s %" G_GUINT64_FORMAT, list->len ? ", " : "",
                              barrier_name(best), n[best]);
        if (list->len + strlen(one) > NOTE_MAX) {
            break;
        }
        g_string_append(list, one);
    }
    return g_string_free(list, FALSE);
}

static void summary_machine(GString *text, const struct vcpu_counters *sum)
{
    g_autofree char *dsb = barrier_list(sum->flush + FLUSH_DSB(0));

    /* Counting them costs a call per block, so it is not always done. */
    if (sum->instructions) {
        summary_line(text, "instructions", sum->instructions, NULL);
    }
    summary_line(text, "TLB look-ups", sum->tlb_lookups, NULL);
    summary_line(text, "TLB hits", sum->events[EVENT_hit], NULL);
    summary_line(text, "TLB fills", sum->events[EVENT_fill], NULL);
    summary_line(text, "TLB evictions", sum->events[EVENT_evict], NULL);
    summary_line(text, "TLBI", sum_range(sum->flush, 0, 128), NULL);
    summary_line(text, "DSB",
                 sum_range(sum->flush, FLUSH_DSB(0), FLUSH_DSB(15) + 1), dsb);
    summary_line(text, "IPIs sent", sum->ipis_sent, NULL);
    summary_line(
        text, "page faults",
        sum_range(sum->faults, FAULT_TRANSLATION, FAULT_PERMISSION + 1), NULL);
    summary_line(text, "system calls", sum->faults[FAULT_SVC], NULL);
    if (sum->unknown_sysregs) {
        summary_line(text, "unknown registers", sum->unknown_sysregs,
                     "read as zero");
    }
    if (sum->unknown_mmio) {
        summary_line(text, "unknown devices", sum->unknown_mmio,
                     "external aborts");
    }
}

/* How the run can be had again; in `parallel` it cannot. */
static void summary_choices(GString *text, const struct vm_config *config)
{
    if (config->bug) {
        g_string_append_printf(text, "bug=%.60s\n", config->bug);
    }
    if (config->engine != VM_ENGINE_PARALLEL) {
        g_string_append_printf(
            text, "engine=%s seed=%" G_GUINT64_FORMAT " strategy=%.20s\n",
            vm_engine_name(config->engine), config->seed, config->strategy);
    }
}

char *stats_summary(const struct vm_totals *totals)
{
    GString *text = g_string_new(NULL);
    struct vcpu_counters sum;
    double seconds = (double)totals->wall_ns / 1e9;

    events_sum(totals->events, &sum);
    g_string_append_printf(
        text, "%.32s: %u vCPUs on %u thread%s, tlb=%s flush=%s\n",
        totals->config->workload ? totals->config->workload : "own kernel",
        totals->config->cpus, totals->workers, totals->workers == 1 ? "" : "s",
        vm_tlb_mode_name(totals->config->tlb),
        vm_flush_mode_name(totals->config->flush));
    summary_choices(text, totals->config);
    g_string_append_printf(text, "%s after %.2f s", totals->outcome, seconds);
    if (seconds > 0 && totals->instructions) {
        g_string_append_printf(text, ", %.1f MIPS",
                               (double)totals->instructions / seconds / 1e6);
    }
    g_string_append_c(text, '\n');
    summary_machine(text, &sum);
    return g_string_free(text, FALSE);
}
