/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the ledger found in a run; see ledger_report.h. */
#include "ledger_report_priv.h"

#include <errno.h>
#include <string.h>

#include "error.h"
#include "mmu/desc.h"
#include "vm_priv.h"

/* More pairs of places than anybody reads are counted, not kept. */
#define FINDINGS_MAX 256u

struct ledger_findings {
    GPtrArray *all;       /* struct ledger_finding */
    GPtrArray *schedules; /* struct schedule, owned */
};

static void finding_free(gpointer finding)
{
    struct ledger_finding *f = finding;

    g_free(f->schedule_path);
    g_free(f);
}

struct ledger_findings *ledger_findings_new(void)
{
    struct ledger_findings *findings = g_new0(struct ledger_findings, 1);

    findings->all = g_ptr_array_new_with_free_func(finding_free);
    findings->schedules =
        g_ptr_array_new_with_free_func((GDestroyNotify)schedule_free);
    return findings;
}

void ledger_findings_free(struct ledger_findings *findings)
{
    if (!findings) {
        return;
    }
    g_ptr_array_unref(findings->all);
    g_ptr_array_unref(findings->schedules);
    g_free(findings);
}

void ledger_findings_clear(struct ledger_findings *findings)
{
    g_ptr_array_set_size(findings->all, 0);
    g_ptr_array_set_size(findings->schedules, 0);
}

unsigned ledger_findings_count(const struct ledger_findings *findings)
{
    return findings ? findings->all->len : 0;
}

struct ledger_finding *
ledger_findings_at(const struct ledger_findings *findings, unsigned index)
{
    return findings->all->pdata[index];
}

gpa_t ledger_frame_of(const struct ledger_violation *v)
{
    switch (v->rule) {
    case LEDGER_FREE:
    case LEDGER_READER:
    case LEDGER_DIRTY:
        return v->frame;
    case LEDGER_TAG:
    case LEDGER_LIVELOCK:
    case LEDGER_LOST:
        return 0;
    case LEDGER_TABLE_FREED:
    case LEDGER_TABLE_REUSED:
        return desc_next_table(v->old);
    default:
        return desc_kind(v->old, v->level) == DESC_KIND_TABLE
                   ? desc_next_table(v->old)
                   : desc_output(v->old, v->level);
    }
}

/* What can be had without a second run. */
static void take_sites(struct ledger_finding *f, struct vm *vm, unsigned teller)
{
    const struct ledger_violation *v = &f->first;

    f->site[LEDGER_PLACE_CONTRACT] = ledger_place_at(v->now_vcpu, v->now_pc);
    /* Else the vCPU is elsewhere by now, or another thread runs it. */
    if (!v->is_late && (vm->det || v->now_vcpu == teller)) {
        ledger_place_take(&f->site[LEDGER_PLACE_CONTRACT], vm);
    }
    if (v->rule != LEDGER_LIVELOCK && v->rule != LEDGER_TAG &&
        v->rule != LEDGER_LOST) {
        f->site[LEDGER_PLACE_STORE] =
            ledger_place_at(v->break_vcpu, v->break_pc);
    }
    if (v->tlbi.known) {
        f->site[LEDGER_PLACE_TLBI] = ledger_place_at(v->tlbi.vcpu, v->tlbi.pc);
    }
    if (v->dsb.known) {
        f->site[LEDGER_PLACE_DSB] = ledger_place_at(v->dsb.vcpu, v->dsb.pc);
    }
    for (unsigned i = 0; i < LEDGER_PLACES; i++) {
        ledger_place_take_code(&f->site[i], vm,
                               vm->det ? f->site[i].vcpu : teller);
    }
}

bool ledger_finding_is(const struct ledger_finding *f,
                       const struct ledger_violation *v)
{
    return f->first.rule == v->rule && f->first.break_pc == v->break_pc &&
           f->first.now_pc == v->now_pc && f->first.op == v->op &&
           ledger_cause(f->first.step) == ledger_cause(v->step);
}

bool ledger_findings_add(struct ledger_findings *findings, struct vm *vm,
                         const struct ledger_violation *v, unsigned teller,
                         bool is_bbm)
{
    struct ledger_finding *f;

    for (guint i = 0; i < findings->all->len; i++) {
        f = findings->all->pdata[i];
        if (ledger_finding_is(f, v)) {
            f->count++;
            return false;
        }
    }
    if (findings->all->len >= FINDINGS_MAX) {
        return false;
    }
    f = g_new0(struct ledger_finding, 1);
    f->first = *v;
    f->count = 1;
    f->is_bbm = is_bbm;
    f->frame = ledger_frame_of(v);
    take_sites(f, vm, teller);
    g_ptr_array_add(findings->all, f);
    return true;
}

bool ledger_findings_want_schedule(const struct ledger_findings *findings)
{
    const struct ledger_finding *last;

    if (!ledger_findings_count(findings)) {
        return false;
    }
    last = findings->all->pdata[findings->all->len - 1];
    return last->schedule == NULL;
}

void ledger_findings_take_schedule(struct ledger_findings *findings,
                                   struct schedule *schedule, uint64_t run,
                                   uint64_t seed)
{
    g_ptr_array_add(findings->schedules, schedule);
    for (guint i = findings->all->len; i-- > 0;) {
        struct ledger_finding *f = findings->all->pdata[i];

        if (f->schedule) {
            break; /* earlier runs' */
        }
        f->schedule = schedule;
        f->run = run;
        f->seed = seed;
    }
}

bool ledger_findings_write(const struct ledger_findings *findings,
                           const struct ledger_telling *telling,
                           const char *path, GError **error)
{
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *f = to_stdout ? stdout : fopen(path, "we");
    bool ok = f != NULL;

    for (unsigned i = 0; ok && i < ledger_findings_count(findings); i++) {
        g_autofree char *line = ledger_finding_json(
            ledger_findings_at(findings, i), i + 1, telling);

        ok = fprintf(f, "%s\n", line) >= 0;
    }
    if (f) {
        ok = fflush(f) == 0 && !ferror(f) && ok;
    }
    if (f && !to_stdout) {
        ok = fclose(f) == 0 && ok;
    }
    if (!ok) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "cannot write '%s': %s; choose another file with --report",
                    path, g_strerror(errno));
    }
    return ok;
}
