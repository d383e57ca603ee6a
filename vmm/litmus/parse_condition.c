/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Litmus tests: locations and the condition. */
#include <string.h>

#include "litmus/cursor.h"
#include "litmus/test.h"

/* Parentheses and negations inside each other. */
#define DEPTH_MAX 200u

static bool same(const struct litmus_place *a, const struct litmus_place *b)
{
    return a->kind == b->kind && a->thread == b->thread && a->reg == b->reg &&
           a->var == b->var && a->element == b->element &&
           a->fault_var == b->fault_var && a->fault == b->fault &&
           g_strcmp0(a->label, b->label) == 0;
}

static void remember(struct litmus_test *test, const struct litmus_place *p)
{
    struct litmus_place *copy;

    for (guint i = 0; i < test->places->len; i++) {
        if (same(test->places->pdata[i], p)) {
            return;
        }
    }
    copy = g_new(struct litmus_place, 1);
    *copy = *p;
    copy->label = g_strdup(p->label);
    g_ptr_array_add(test->places, copy);
}

static bool fault_kind(struct litmus_cursor *c, struct litmus_place *out,
                       GError **error)
{
    (void)litmus_take(c, "D-");
    (void)litmus_take(c, "MMU:");
    if (litmus_take_word(c, "Translation")) {
        out->fault = LITMUS_FAULT_TRANSLATION;
    } else if (litmus_take_word(c, "AccessFlag")) {
        out->fault = LITMUS_FAULT_ACCESS_FLAG;
    } else if (litmus_take_word(c, "Permission")) {
        out->fault = LITMUS_FAULT_PERMISSION;
    } else {
        return litmus_expected(c, NULL, "Translation, AccessFlag or Permission",
                               error);
    }
    return true;
}

/* (P0:L0, x, MMU:Permission); all but the thread may be missing. */
static bool fault(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_place *out, GError **error)
{
    uint64_t thread;
    unsigned var;

    *out = (struct litmus_place){.kind = LITMUS_AT_FAULT, .fault_var = -1};
    if (!litmus_take(c, "(")) {
        return litmus_expected(c, NULL, "'('", error);
    }
    (void)litmus_take(c, "P");
    thread = (uint64_t)g_ascii_strtoull(c->at, (char **)&c->at, 10);
    if (thread >= test->threads) {
        return litmus_wrong(c, NULL, error, "there is no such thread");
    }
    out->thread = (unsigned)thread;
    if (litmus_take(c, ":")) {
        out->label = litmus_identifier(c);
        if (!out->label) {
            return litmus_expected(c, NULL, "a label", error);
        }
    }
    if (litmus_take(c, ",")) {
        struct litmus_cursor start = *c;
        g_autofree char *name = litmus_identifier(c);

        if (name && (*c->at == ':' || *c->at == '-')) {
            *c = start;
            if (!fault_kind(c, out, error)) {
                return false;
            }
        } else if (!name || !litmus_variable(c, test, name, &var, error)) {
            return name ? false : litmus_expected(c, NULL, "a variable", error);
        } else {
            out->fault_var = (int)var;
        }
    }
    if (litmus_take(c, ",") && !fault_kind(c, out, error)) {
        return false;
    }
    return litmus_take(c, ")") || litmus_expected(c, NULL, "')'", error);
}

/* Everything but faults. */
static bool storage(struct litmus_cursor *c, struct litmus_test *test,
                    struct litmus_place *out, GError **error)
{
    g_autofree char *name = NULL;
    GError *problem = NULL;
    bool bracket;
    uint64_t element;

    *out = (struct litmus_place){.kind = LITMUS_AT_REG, .fault_var = -1};
    if (litmus_register(c, &out->thread, &out->reg)) {
        return out->thread < test->threads ||
               litmus_wrong(c, NULL, error, "there is no P%u", out->thread);
    }
    bracket = litmus_take(c, "[");
    litmus_skip(c);
    if (litmus_pte_name(c, test, &out->var, &problem)) {
        out->kind = LITMUS_AT_PTE;
    } else if (problem) {
        g_propagate_error(error, problem);
        return false;
    } else {
        out->kind = LITMUS_AT_VAR;
        name = litmus_identifier(c);
        if (!name) {
            return litmus_expected(
                c, NULL, "a register, a variable, PTE(variable) or a fault",
                error);
        }
        if (!litmus_variable(c, test, name, &out->var, error)) {
            return false;
        }
    }
    if (out->kind == LITMUS_AT_VAR && litmus_take(c, "[")) {
        const char *start = c->at;

        if (!litmus_number(c, &element) ||
            element >= test->var[out->var].count || !litmus_take(c, "]")) {
            return litmus_expected(c, start, "an element's number and ']'",
                                   error);
        }
        out->element = (unsigned)element;
    }
    return !bracket || litmus_take(c, "]") ||
           litmus_expected(c, NULL, "']'", error);
}

static bool takes_fault(struct litmus_cursor *c)
{
    struct litmus_cursor look = *c;

    if (!litmus_take_word(&look, "fault")) {
        return false;
    }
    litmus_skip(&look);
    if (*look.at != '(') {
        return false;
    }
    *c = look;
    return true;
}

static bool place(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_place *out, GError **error)
{
    (void)litmus_take(c, "~"); /* as printed: ~Fault(...) */
    return takes_fault(c) ? fault(c, test, out, error)
                          : storage(c, test, out, error);
}

static bool disjunction(struct litmus_cursor *c, struct litmus_test *test,
                        unsigned depth, struct litmus_formula **out,
                        GError **error);

static bool atom(struct litmus_cursor *c, struct litmus_test *test,
                 struct litmus_formula *f, GError **error)
{
    f->kind = LITMUS_IS;
    if (takes_fault(c)) {
        if (!fault(c, test, &f->place, error)) {
            return false;
        }
    } else if (!storage(c, test, &f->place, error)) {
        return false;
    } else if (!litmus_take(c, "=") && !(f->differs = litmus_take(c, "<>"))) {
        return litmus_expected(c, NULL, "'=' or '<>'", error);
    } else if (!litmus_value(c, test, &f->value, error)) {
        return false;
    }
    remember(test, &f->place);
    return true;
}

static bool unary(struct litmus_cursor *c, struct litmus_test *test,
                  unsigned depth, struct litmus_formula **out, GError **error)
{
    struct litmus_formula *f;

    if (depth > DEPTH_MAX) {
        return litmus_wrong(c, NULL, error,
                            "more than %u parentheses inside each other",
                            DEPTH_MAX);
    }
    if (litmus_take(c, "(")) {
        return disjunction(c, test, depth + 1, out, error) &&
               (litmus_take(c, ")") || litmus_expected(c, NULL, "')'", error));
    }
    *out = f = g_new0(struct litmus_formula, 1);
    if (litmus_take(c, "~") || litmus_take_word(c, "not")) {
        f->kind = LITMUS_NOT;
        return unary(c, test, depth + 1, &f->left, error);
    }
    if (litmus_take_word(c, "true")) {
        return true;
    }
    return atom(c, test, f, error);
}

/* One level of operators of equal rank, to the left. */
static bool chain(struct litmus_cursor *c, struct litmus_test *test,
                  unsigned depth, const char *operator,
                  enum litmus_formula_kind kind,
                  bool (*below)(struct litmus_cursor *, struct litmus_test *,
                                unsigned, struct litmus_formula **, GError **),
                  struct litmus_formula **out, GError **error)
{
    if (!below(c, test, depth, out, error)) {
        return false;
    }
    while (litmus_take(c, operator)) {
        struct litmus_formula *f = g_new0(struct litmus_formula, 1);

        f->kind = kind;
        f->left = *out;
        *out = f;
        if (!below(c, test, depth, &f->right, error)) {
            return false;
        }
    }
    return true;
}

static bool conjunction(struct litmus_cursor *c, struct litmus_test *test,
                        unsigned depth, struct litmus_formula **out,
                        GError **error)
{
    return chain(c, test, depth, "/\\", LITMUS_AND, unary, out, error);
}

static bool disjunction(struct litmus_cursor *c, struct litmus_test *test,
                        unsigned depth, struct litmus_formula **out,
                        GError **error)
{
    return chain(c, test, depth, "\\/", LITMUS_OR, conjunction, out, error);
}

static bool locations(struct litmus_cursor *c, struct litmus_test *test,
                      GError **error)
{
    if (!litmus_take(c, "[")) {
        return litmus_expected(c, NULL, "'['", error);
    }
    while (!litmus_take(c, "]")) {
        struct litmus_place p = {0};
        bool ok = place(c, test, &p, error);

        if (ok) {
            remember(test, &p);
        }
        g_free(p.label);
        if (!ok) {
            return false;
        }
        litmus_skip(c);
        if (!litmus_take(c, ";") && *c->at != ']') {
            return litmus_expected(c, NULL, "';' or ']'", error);
        }
    }
    return true;
}

/* All white space becomes one blank. */
static char *squeeze(const char *from, const char *to)
{
    g_autofree char *text = g_strndup(from, (gsize)(to - from));
    g_auto(GStrv) words = g_strsplit_set(g_strstrip(text), " \t\r\n", -1);
    GString *out = g_string_new(NULL);

    for (char **word = words; *word; word++) {
        if (**word) {
            g_string_append_printf(out, "%s%s", out->len ? " " : "", *word);
        }
    }
    return g_string_free(out, FALSE);
}

static bool quantifier(struct litmus_cursor *c, struct litmus_test *test)
{
    struct litmus_cursor start = *c;

    if (litmus_take(c, "~")) {
        test->quantifier = LITMUS_NOT_EXISTS;
        if (litmus_take_word(c, "exists")) {
            return true;
        }
        *c = start;
        return false;
    }
    if (litmus_take_word(c, "forall")) {
        test->quantifier = LITMUS_FORALL;
        return true;
    }
    test->quantifier = LITMUS_EXISTS;
    return litmus_take_word(c, "exists");
}

bool litmus_parse_condition(struct litmus_cursor *c, struct litmus_test *test,
                            GError **error)
{
    static const char *const quantifiers[] = {"exists", "~exists", "forall"};
    const char *formula;
    g_autofree char *text = NULL;

    while (litmus_take_word(c, "locations")) {
        if (!locations(c, test, error)) {
            return false;
        }
        (void)litmus_take(c, ";");
    }
    litmus_skip(c);
    if (*c->at == '\0') {
        test->formula = g_new0(struct litmus_formula, 1);
        test->condition = g_strdup("exists (true)");
        return true;
    }
    if (!quantifier(c, test)) {
        return litmus_expected(c, NULL, "locations, exists, ~exists or forall",
                               error);
    }
    formula = c->at;
    if (!disjunction(c, test, 0, &test->formula, error)) {
        return false;
    }
    test->has_condition = true;
    text = squeeze(formula, c->at);
    test->condition =
        g_strdup_printf("%s %s", quantifiers[test->quantifier], text);
    litmus_skip(c);
    return *c->at == '\0' ||
           litmus_expected(c, NULL, "the end of the file", error);
}
