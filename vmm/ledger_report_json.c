/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A finding as a JSON object; docs/LEDGER.md has the schema. */
#include "ledger_report_priv.h"

#include "insn/disas.h"
#include "obs/json.h"
#include "obs/stats.h"
#include "obs/symbols.h"

#define REPORT_FORMAT 1u

struct sheet {
    yajl_gen g;
    const struct ledger_finding *f;
    const struct ledger_telling *t;
};

static void put_place(const struct sheet *s, uint64_t pc)
{
    char buf[256];

    json_hex(s->g, "pc", pc);
    json_text(s->g, "symbol",
              symbols_format(s->t->symbols, pc, buf, sizeof(buf)));
}

static void put_mask(const struct sheet *s, const char *key, uint64_t mask)
{
    json_key(s->g, key);
    yajl_gen_array_open(s->g);
    for (; mask; mask &= mask - 1) {
        yajl_gen_integer(s->g, __builtin_ctzll(mask));
    }
    yajl_gen_array_close(s->g);
}

static void put_rule(const struct sheet *s)
{
    const struct ledger_violation *v = &s->f->first;
    unsigned cause = ledger_cause(v->step);
    g_autofree char *rule = g_strdup_printf("S%u", ledger_rule_number(v->rule));
    g_autofree char *why = cause ? g_strdup_printf("S%u", cause) : NULL;
    g_autofree char *promise = ledger_promise_text(s->f);
    g_autofree char *owed = ledger_owed_text(s->f);

    json_text(s->g, "rule", rule);
    json_text(s->g, "cause", why);
    json_text(s->g, "name", ledger_rule_name(v->rule));
    json_text(s->g, "text", ledger_rule_text(v->rule));
    json_text(s->g, "missing", ledger_step_name(v->step));
    json_text(s->g, "missing_text", ledger_step_text(v->step));
    json_u64(s->g, "count", s->f->count);
    json_bool(s->g, "late", v->is_late);
    json_text(s->g, "promised", promise);
    json_text(s->g, "owed", owed);
}

static void put_mapping(const struct sheet *s)
{
    const struct ledger_violation *v = &s->f->first;

    if (v->rule == LEDGER_LOST || v->rule == LEDGER_DIRTY) {
        if (s->f->frame) {
            json_hex(s->g, "frame", s->f->frame);
        }
        return; /* about no descriptor */
    }
    json_key(s->g, "mapping");
    yajl_gen_map_open(s->g);
    json_hex(s->g, "descriptor", v->pa);
    json_u64(s->g, "level", v->level);
    if (v->has_va) {
        json_hex(s->g, "va", v->va);
        json_u64(s->g, "bytes", v->size);
    }
    json_u64(s->g, "asid", v->asid);
    json_hex(s->g, "old", v->old);
    json_hex(s->g, "now", v->now);
    json_text(s->g, "change", ledger_why_text(v));
    yajl_gen_map_close(s->g);
    if (s->f->frame) {
        json_hex(s->g, "frame", s->f->frame);
    }
    if (v->rule == LEDGER_RETURN) {
        json_key(s->g, "operation");
        yajl_gen_map_open(s->g);
        json_text(s->g, "kind", op_kind_name(v->op));
        json_text(s->g, "promise", ledger_contract_name(v->contract));
        if (s->f->has_range) {
            json_hex(s->g, "start", s->f->op_start);
            json_hex(s->g, "end", s->f->op_end);
            json_u64(s->g, "step", s->f->op_step);
        }
        yajl_gen_map_close(s->g);
    }
}

static void put_code(const struct sheet *s, const struct ledger_place *site)
{
    struct disas *disas = disas_new();

    json_key(s->g, "code");
    yajl_gen_array_open(s->g);
    for (unsigned i = 0; disas && i < site->words; i++) {
        uint64_t pc = site->code_pc + 4 * (uint64_t)i;
        char text[64];

        disas_text(disas, site->word[i], pc, text, sizeof(text));
        yajl_gen_map_open(s->g);
        json_hex(s->g, "pc", pc);
        json_hex(s->g, "word", site->word[i]);
        json_text(s->g, "text", text);
        if (pc == site->pc) {
            json_bool(s->g, "here", true);
        }
        yajl_gen_map_close(s->g);
    }
    yajl_gen_array_close(s->g);
    disas_free(disas);
}

static void put_site(const struct sheet *s, enum ledger_place_kind kind)
{
    static const char *const names[LEDGER_PLACES] = {
        [LEDGER_PLACE_STORE] = "store",
        [LEDGER_PLACE_TLBI] = "tlbi",
        [LEDGER_PLACE_DSB] = "dsb",
        [LEDGER_PLACE_CONTRACT] = "contract",
    };
    const struct ledger_place *site = &s->f->site[kind];
    const struct ledger_violation *v = &s->f->first;
    uint64_t call[LEDGER_CHAIN_MAX];
    unsigned calls;

    if (!site->is_known) {
        return;
    }
    yajl_gen_map_open(s->g);
    json_text(s->g, "what", names[kind]);
    json_text(s->g, "text", ledger_place_deed(s->f, kind));
    if (kind == LEDGER_PLACE_TLBI) {
        json_text(s->g, "operation", tlbi_name(&v->tlbi.op));
        json_text(s->g, "why", ledger_step_name(v->tlbi.step));
    } else if (kind == LEDGER_PLACE_DSB) {
        json_text(s->g, "operation", ledger_dsb_text(&v->dsb));
    }
    json_u64(s->g, "vcpu", site->vcpu);
    if (site->has_step) {
        json_u64(s->g, "step", site->step);
        if (site->is_before) {
            json_bool(s->g, "before_snapshot", true);
        }
    }
    put_place(s, site->pc);
    json_key(s->g, "chain");
    yajl_gen_array_open(s->g);
    calls = ledger_place_calls(site, s->t->symbols, call);
    for (unsigned i = 0; i < calls; i++) {
        yajl_gen_map_open(s->g);
        put_place(s, call[i]);
        yajl_gen_map_close(s->g);
    }
    yajl_gen_array_close(s->g);
    put_code(s, site);
    yajl_gen_map_close(s->g);
}

static void put_history(const struct sheet *s)
{
    const struct ledger_finding *f = s->f;
    uint64_t begin =
        f->moments > LEDGER_HISTORY_MAX ? f->moments - LEDGER_HISTORY_MAX : 0;

    json_key(s->g, "history");
    yajl_gen_array_open(s->g);
    for (uint64_t i = begin; i < f->moments; i++) {
        const struct ledger_moment *m = &f->moment[i % LEDGER_HISTORY_MAX];

        yajl_gen_map_open(s->g);
        json_text(s->g, "what", ledger_moment_name(m->kind));
        json_u64(s->g, "vcpu", m->vcpu);
        json_u64(s->g, "step", m->step);
        if (m->is_before) {
            json_bool(s->g, "before_snapshot", true);
        }
        put_place(s, m->pc);
        if (m->descriptor) {
            json_hex(s->g, "descriptor", m->descriptor);
            json_hex(s->g, "old", m->old);
            json_hex(s->g, "now", m->now);
        }
        yajl_gen_map_close(s->g);
    }
    yajl_gen_array_close(s->g);
    json_u64(s->g, "history_earlier", begin);
}

char *ledger_finding_json(const struct ledger_finding *f, unsigned index,
                          const struct ledger_telling *t)
{
    struct sheet s = {yajl_gen_alloc(NULL), f, t};
    g_autofree char *again = ledger_again_text(f, t->config);
    g_autofree char *seed = g_strdup_printf("%" G_GUINT64_FORMAT, f->seed);
    const unsigned char *text;
    size_t length;
    char *line;

    yajl_gen_map_open(s.g);
    json_u64(s.g, "format", REPORT_FORMAT);
    json_u64(s.g, "finding", index);
    if (f->run) {
        json_u64(s.g, "run", f->run);
        json_text(s.g, "seed", seed);
    }
    put_rule(&s);
    put_mapping(&s);
    put_mask(&s, "live", f->first.dirty);
    put_mask(&s, "dormant", f->first.dormant);
    json_u64(s.g, "hits", f->first.hits);
    json_key(s.g, "sites");
    yajl_gen_array_open(s.g);
    for (unsigned i = 0; i < LEDGER_PLACES; i++) {
        put_site(&s, (enum ledger_place_kind)i);
    }
    yajl_gen_array_close(s.g);
    put_history(&s);
    json_text(s.g, "fix",
              ledger_fix_text(&f->first, t->config->tlb == VM_TLB_IPI));
    json_text(s.g, "again", again);
    yajl_gen_map_close(s.g);
    yajl_gen_get_buf(s.g, &text, &length);
    line = g_strndup((const char *)text, length);
    yajl_gen_free(s.g);
    return line;
}
