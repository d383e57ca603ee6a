/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A finding as a page of text, in the manner of the kernel sanitizers: what it
 * is and where, what was promised and what is owed, then each place with its
 * callers and its code, the frame's history, and what to do. 80 columns;
 * colour only where the caller says that there is a terminal.
 */
#include "ledger_report_priv.h"

#include <inttypes.h>
#include <string.h>

#include "insn/disas.h"
#include "mmu/desc.h"
#include "mmu/names.h"
#include "obs/stats.h"
#include "obs/symbols.h"

#define COLUMNS 79u
#define LABEL 10u /* columns of "promised  " */

struct page {
    const struct ledger_finding *f;
    const struct ledger_telling *t;
    struct disas *disas; /* or NULL */
    FILE *out;
};

static const char *colour(const struct page *p, const char *sequence)
{
    return p->t->has_colour ? sequence : "";
}

#define RED "\033[1;31m"
#define BOLD "\033[1m"
#define DIM "\033[2m"
#define OFF "\033[0m"

static void rule_off(const struct page *p)
{
    char line[COLUMNS + 1];

    memset(line, '=', COLUMNS);
    line[COLUMNS] = '\0';
    fprintf(p->out, "%s\n", line);
}

/* Up to the blank that ends a word; in a command none in quotes does. */
static unsigned word_length(const char *text, bool is_command)
{
    bool is_quoted = false;
    unsigned n = 0;

    for (; text[n] && (is_quoted || text[n] != ' '); n++) {
        if (is_command && text[n] == '\'') {
            is_quoted = !is_quoted;
        } else if (is_command && !is_quoted && text[n] == '\\' && text[n + 1]) {
            n++;
        }
    }
    return n;
}

/*
 * Words up to the last column, the rest indented below; the words of `text`
 * are never cut. tail: what a line that goes on ends with, if it is a command;
 * otherwise "".
 */
static void wrap(const struct page *p, unsigned column, unsigned indent,
                 const char *text, const char *tail)
{
    unsigned room = (unsigned)strlen(tail);

    while (*text) {
        unsigned n = word_length(text, tail[0] != '\0');

        if (column > indent && column + 1 + n + room > COLUMNS) {
            fprintf(p->out, "%s\n%*s", tail, (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', p->out);
            column++;
        }
        fwrite(text, 1, n, p->out);
        column += n;
        text += n + (text[n] == ' ');
    }
    fputc('\n', p->out);
}

static void row(const struct page *p, const char *label, const char *text)
{
    fprintf(p->out, "%s%-*s%s", colour(p, BOLD), (int)LABEL, label,
            colour(p, OFF));
    wrap(p, LABEL, LABEL, text, "");
}

static void row_format(const struct page *p, const char *label,
                       const char *format, ...) G_GNUC_PRINTF(3, 4);
static void row_format(const struct page *p, const char *label,
                       const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list list;

    va_start(list, format);
    text = g_strdup_vprintf(format, list);
    va_end(list);
    row(p, label, text);
}

static const char *name(const struct page *p, uint64_t pc, char buf[128])
{
    return symbols_format(p->t->symbols, pc, buf, 128);
}

/* --- parts --- */

/*
 * What was relied on too early. The end of an operation is often told by a
 * function that all operations share, so that its kind and the caller say more.
 */
static void print_deed(const struct page *p)
{
    const struct ledger_violation *v = &p->f->first;
    const char *deed = ledger_place_deed(p->f, LEDGER_PLACE_CONTRACT);
    uint64_t call[LEDGER_CHAIN_MAX];
    char buf[128];

    if (v->rule != LEDGER_RETURN) {
        fprintf(p->out, "  %s by vCPU %u in %s\n", deed, v->now_vcpu,
                name(p, v->now_pc, buf));
        return;
    }
    fprintf(p->out, "  %s %s by vCPU %u in %s", op_kind_name(v->op), deed,
            v->now_vcpu, name(p, v->now_pc, buf));
    if (ledger_place_calls(&p->f->site[LEDGER_PLACE_CONTRACT], p->t->symbols,
                           call)) {
        fprintf(p->out, ",\n    called from %s", name(p, call[0], buf));
    }
    fputc('\n', p->out);
}

/* The lines that say it all. */
static void print_title(const struct page *p)
{
    const struct ledger_finding *f = p->f;
    const struct ledger_violation *v = &f->first;
    const struct ledger_place *was = &f->site[LEDGER_PLACE_STORE];
    unsigned cause = ledger_cause(v->step);
    char buf[128];

    rule_off(p);
    fprintf(p->out, "%sshootdown: ", colour(p, RED));
    if (f->is_bbm) {
        fprintf(p->out, "break-before-make: %s:", ledger_rule_name(v->rule));
    } else if (cause) {
        fprintf(p->out, "ledger: S%u (S%u) %s:", ledger_rule_number(v->rule),
                cause, ledger_rule_name(v->rule));
    } else {
        fprintf(p->out, "ledger: S%u %s:", ledger_rule_number(v->rule),
                ledger_rule_name(v->rule));
    }
    fprintf(p->out, "%s\n", colour(p, OFF));
    fprintf(p->out, "  %s,\n  and %s.\n", ledger_rule_text(v->rule),
            ledger_step_text(v->step));
    print_deed(p);
    if (was->is_known) {
        fprintf(p->out, "  %s by vCPU %u in %s\n",
                ledger_place_deed(f, LEDGER_PLACE_STORE), v->break_vcpu,
                name(p, v->break_pc, buf));
    }
    if (f->count > 1) {
        fprintf(p->out,
                "  %" PRIu64 " times at these places; this is the "
                "first\n",
                f->count);
    }
    fputc('\n', p->out);
}

static void print_mapping(const struct page *p)
{
    const struct ledger_violation *v = &p->f->first;
    bool is_table = desc_kind(v->old, v->level) == DESC_KIND_TABLE;
    char old[PERM_TEXT_SIZE];
    g_autofree char *asid = NULL;

    if (v->rule == LEDGER_LOST || v->rule == LEDGER_DIRTY) {
        return; /* about no descriptor */
    }
    if (v->rule == LEDGER_TAG) {
        row_format(p, "roots", "0x%" PRIx64 " -> 0x%" PRIx64 ", ASID %u",
                   v->old, v->now, v->asid);
        return;
    }
    if (v->has_va) {
        asid = v->va >> 55 & 1 ? g_strdup("")
                               : g_strdup_printf(", ASID %u", v->asid);
        row_format(p, "mapping", "0x%" PRIx64 "..0x%" PRIx64 "%s", v->va,
                   v->va + (v->size - 1), asid);
    }
    row_format(p, v->has_va ? "" : "mapping",
               "level %u descriptor at pa 0x%" PRIx64 ", %s:", v->level, v->pa,
               ledger_why_text(v));
    perm_text(desc_perms(v->old, 0, false, true), old);
    row_format(p, "", "0x%016" PRIx64 " %s%s", v->old,
               is_table ? "a table" : "EL1/EL0 ", is_table ? "" : old);
    if (v->now != v->old) {
        row_format(p, "", "0x%016" PRIx64 " %s", v->now,
                   v->now & 1 ? "now" : "now, invalid");
    }
}

static void print_debt(const struct page *p)
{
    const struct ledger_finding *f = p->f;
    const struct ledger_violation *v = &f->first;
    g_autofree char *promise = ledger_promise_text(f);
    g_autofree char *owed = ledger_owed_text(f);
    g_autofree char *live = ledger_vcpus_text(v->dirty);
    g_autofree char *dormant = ledger_vcpus_text(v->dormant);

    row(p, "promised", promise);
    print_mapping(p);
    row(p, "owed", owed);
    if (v->dirty && v->rule != LEDGER_LIVELOCK && v->rule != LEDGER_LOST) {
        row_format(p, "exposed", "vCPU %s can use the old %s", live,
                   v->rule == LEDGER_TAG ? "root's entries" : "translation");
    }
    if (v->dormant) {
        row_format(p, v->dirty ? "" : "exposed",
                   "vCPU %s can once it has loaded that root again", dormant);
    }
    if (v->is_late) {
        row(p, "told late", "when a vCPU came back to EL0 without a flush");
    }
    if (v->hits) {
        row_format(p, "seen",
                   "%" PRIu64 " access%s through the old translation (S3)",
                   v->hits, v->hits == 1 ? "" : "es");
    }
}

static void print_code(const struct page *p, const struct ledger_place *site)
{
    for (unsigned i = 0; p->disas && i < site->words; i++) {
        uint64_t pc = site->code_pc + 4 * (uint64_t)i;
        bool here = pc == site->pc;
        char text[64];

        disas_text(p->disas, site->word[i], pc, text, sizeof(text));
        fprintf(p->out, "  %s%s %016" PRIx64 "  %s%s\n", here ? "->" : "  ",
                here ? colour(p, BOLD) : colour(p, DIM), pc, text,
                colour(p, OFF));
    }
}

static void print_site(const struct page *p, enum ledger_place_kind kind,
                       const char *what)
{
    const struct ledger_place *site = &p->f->site[kind];
    uint64_t call[LEDGER_CHAIN_MAX];
    unsigned calls;
    char buf[128];

    if (!site->is_known) {
        return;
    }
    fprintf(p->out, "\n%s%s by vCPU %u", colour(p, BOLD), what, site->vcpu);
    if (site->has_step) {
        fprintf(p->out, ", step %" PRIu64 "%s", site->step,
                site->is_before ? " before the snapshot" : "");
    }
    fprintf(p->out, ":%s\n    %s\n", colour(p, OFF), name(p, site->pc, buf));
    calls = ledger_place_calls(site, p->t->symbols, call);
    for (unsigned i = 0; i < calls; i++) {
        fprintf(p->out, "    %s\n", name(p, call[i], buf));
    }
    print_code(p, site);
}

static void print_sites(const struct page *p)
{
    const struct ledger_finding *f = p->f;
    const struct ledger_violation *v = &f->first;
    const char *excuse = ledger_tlbi_excuse(v);
    g_autofree char *tlbi = NULL, *dsb = NULL, *end = NULL;

    print_site(p, LEDGER_PLACE_STORE, "taken away");
    if (v->tlbi.known) {
        tlbi = g_strdup_printf("nearest TLBI, %s,", tlbi_name(&v->tlbi.op));
        print_site(p, LEDGER_PLACE_TLBI, tlbi);
        if (excuse[0]) {
            fprintf(p->out, "    (%s)\n", excuse);
        }
    }
    if (v->dsb.known) {
        dsb = g_strdup_printf("nearest DSB, %s,", ledger_dsb_text(&v->dsb));
        print_site(p, LEDGER_PLACE_DSB, dsb);
    }
    end = g_strdup(ledger_place_deed(f, LEDGER_PLACE_CONTRACT));
    print_site(p, LEDGER_PLACE_CONTRACT, end);
}

static void print_history(const struct page *p)
{
    const struct ledger_finding *f = p->f;
    uint64_t begin =
        f->moments > LEDGER_HISTORY_MAX ? f->moments - LEDGER_HISTORY_MAX : 0;
    char buf[128];

    if (!f->moments) {
        return;
    }
    fprintf(p->out, "\n%sframe 0x%" PRIx64 ":%s\n", colour(p, BOLD), f->frame,
            colour(p, OFF));
    if (begin) {
        fprintf(p->out, "    (%" PRIu64 " earlier)\n", begin);
    }
    for (uint64_t i = begin; i < f->moments; i++) {
        const struct ledger_moment *m = &f->moment[i % LEDGER_HISTORY_MAX];
        g_autofree char *what =
            m->descriptor
                ? g_strdup_printf("%s at 0x%" PRIx64,
                                  ledger_moment_text(m->kind), m->descriptor)
                : g_strdup(ledger_moment_text(m->kind));

        g_autofree char *step = m->is_before
                                    ? g_strdup("before")
                                    : g_strdup_printf("%" PRIu64, m->step);

        fprintf(p->out, "    step %8s  vCPU %-2u  %-27s %s\n", step, m->vcpu,
                what, name(p, m->pc, buf));
    }
}

void ledger_finding_print(const struct ledger_finding *f,
                          const struct ledger_telling *telling, FILE *out)
{
    struct page page = {f, telling, disas_new(), out};
    const struct page *p = &page;
    g_autofree char *again = ledger_again_text(f, telling->config);

    print_title(p);
    print_debt(p);
    print_sites(p);
    print_history(p);
    fputc('\n', out);
    row(p, "fix",
        ledger_fix_text(&f->first, telling->config->tlb == VM_TLB_IPI));
    fprintf(out, "%s%-*s%s", colour(p, BOLD), (int)LABEL, "again",
            colour(p, OFF));
    wrap(p, LABEL, LABEL, again, " \\");
    rule_off(p);
    disas_free(page.disas);
}
