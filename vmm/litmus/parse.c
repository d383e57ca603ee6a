/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Litmus tests: the header and the initial state. See test.h. */
#include "litmus/test.h"

#include <string.h>

#include "error.h"
#include "litmus/cursor.h"

/* --- header --- */

/* "P1:HA", "HA", "HD": of one thread or of all. */
static bool management(struct litmus_cursor *c, struct litmus_test *test,
                       const char *word, const char *where, GError **error)
{
    unsigned first = 0, last = LITMUS_THREADS_MAX - 1;
    const char *what = word;
    const char *colon = strchr(word, ':');

    if (colon) {
        char *end;

        first = last = (unsigned)g_ascii_strtoull(word + 1, &end, 10);
        if (word[0] != 'P' || end != colon || first >= LITMUS_THREADS_MAX) {
            return litmus_expected(c, where, "P0:HA or P0:HD", error);
        }
        what = colon + 1;
    }
    if (strcmp(what, "HA") != 0 && strcmp(what, "HD") != 0) {
        return litmus_expected(c, where, "HA or HD", error);
    }
    for (unsigned i = first; i <= last; i++) {
        test->thread[i].ha = true;
        test->thread[i].hd |= what[1] == 'D';
    }
    return true;
}

static bool at_el0(struct litmus_cursor *c, struct litmus_test *test,
                   const char *word, const char *where, GError **error)
{
    guint64 thread;

    if (word[0] != 'P' ||
        !g_ascii_string_to_unsigned(word + 1, 10, 0, LITMUS_THREADS_MAX - 1,
                                    &thread, NULL)) {
        return litmus_expected(c, where, "threads such as P0,P2", error);
    }
    test->thread[thread].el0 = true;
    return true;
}

static bool variant(struct litmus_cursor *c, struct litmus_test *test,
                    const char *word, const char *where, GError **error)
{
    static const struct {
        const char *name;
        int mode; /* -1: says nothing about faults */
    } known[] = {
        {"vmsa", -1},
        {"kvm", -1},
        {"fatal", LITMUS_FATAL},
        {"precise", LITMUS_FATAL},
        {"handled", LITMUS_RETRY},
        {"imprecise", LITMUS_RETRY},
        {"skip", LITMUS_SKIP},
        {"faulttonext", LITMUS_SKIP},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_ascii_strcasecmp(word, known[i].name) == 0) {
            if (known[i].mode >= 0) {
                test->mode = (enum litmus_fault_mode)known[i].mode;
            }
            return true;
        }
    }
    return litmus_expected(c, where,
                           "vmsa, fatal, precise, handled, imprecise, skip or "
                           "faultToNext",
                           error);
}

/* One line of the header: KEY=WORD[,WORD ...]; unknown keys say nothing. */
static bool header_line(struct litmus_cursor *c, struct litmus_test *test,
                        const char *line, size_t length, GError **error)
{
    static const struct {
        const char *key, *separators;
        bool (*word)(struct litmus_cursor *c, struct litmus_test *test,
                     const char *word, const char *where, GError **error);
    } keys[] = {
        {"tthm", " ,", management},
        {"el0", " ,", at_el0},
        {"variant", " ,", variant},
    };
    g_autofree char *copy = g_strndup(line, length);
    char *equals = strchr(copy, '=');

    if (!equals) {
        return true;
    }
    *equals = '\0';
    if (strcmp(g_strstrip(copy), "Hash") == 0) {
        g_free(test->hash);
        test->hash = g_strstrip(g_strdup(equals + 1));
        return true;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        char *p = equals + 1;

        if (g_ascii_strcasecmp(copy, keys[i].key) != 0) {
            continue;
        }
        while (*(p += strspn(p, " \t\r,"))) {
            size_t n = strcspn(p, " \t\r,");
            g_autofree char *word = g_strndup(p, n);

            if (!keys[i].word(c, test, word, line + (p - copy), error)) {
                return false;
            }
            p += n;
        }
        return true;
    }
    return true;
}

static bool header(struct litmus_cursor *c, struct litmus_test *test,
                   GError **error)
{
    const char *start;
    size_t n;

    if (!litmus_take(c, "AArch64") || !g_ascii_isspace(*c->at)) {
        return litmus_expected(c, NULL, "'AArch64' and the test's name", error);
    }
    c->at += strspn(c->at, " \t");
    start = c->at;
    n = strcspn(start, " \t\r\n{");
    if (n == 0) {
        return litmus_expected(c, NULL, "the name of the test", error);
    }
    test->name = g_strndup(start, n);
    c->at += n;
    c->at += strspn(c->at, " \t\r");
    while (*c->at && *c->at != '{') {
        n = strcspn(c->at, "\n{");
        if (!header_line(c, test, c->at, n, error)) {
            return false;
        }
        c->at += n;
        litmus_skip(c);
    }
    return *c->at == '{' ||
           litmus_expected(c, NULL, "'{' and the initial state", error);
}

/* --- the initial state --- */

/* "int", "int64_t" ...: 4 or 8; 0: no type. */
static unsigned type_size(struct litmus_cursor *c)
{
    static const struct {
        const char *name;
        unsigned size;
    } types[] = {
        {"int", 4},     {"int32_t", 4},  {"uint32_t", 4},
        {"int64_t", 8}, {"uint64_t", 8}, {"pteval_t", 8},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        struct litmus_cursor start = *c;

        if (litmus_take_word(c, types[i].name)) {
            if (litmus_take(c, "=") || litmus_take(c, ";")) {
                *c = start; /* a variable of that name */
                return 0;
            }
            return litmus_take(c, "*") ? 8 : types[i].size;
        }
    }
    return 0;
}

/* "[N] = {a, b, ...}" after the name of a variable. */
static bool array(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_var *var, GError **error)
{
    const char *start = c->at;
    uint64_t count;

    if (!litmus_number(c, &count) || count == 0 ||
        count > LITMUS_ELEMENTS_MAX || !litmus_take(c, "]")) {
        return litmus_expected(c, start, "a number of 1 to 16, and ']'", error);
    }
    var->count = (unsigned)count;
    if (!litmus_take(c, "=")) {
        return true;
    }
    if (!litmus_take(c, "{")) {
        return litmus_expected(c, NULL, "'{' and the elements", error);
    }
    for (unsigned i = 0; i < var->count; i++) {
        if ((i && !litmus_take(c, ",")) ||
            !litmus_value(c, test, &var->init[i], error)) {
            return *error ? false : litmus_expected(c, NULL, "','", error);
        }
    }
    return litmus_take(c, "}") || litmus_expected(c, NULL, "'}'", error);
}

static bool init_register(struct litmus_cursor *c, struct litmus_test *test,
                          unsigned thread, unsigned reg, GError **error)
{
    struct litmus_thread *t = &test->thread[thread];

    if (!litmus_take(c, "=")) {
        return true; /* only its type */
    }
    t->has_init[reg] = true;
    return litmus_value(c, test, &t->init[reg], error);
}

static bool init_pte(struct litmus_cursor *c, struct litmus_test *test,
                     unsigned var, bool bracket, GError **error)
{
    if (bracket && !litmus_take(c, "]")) {
        return litmus_expected(c, NULL, "']'", error);
    }
    if (!litmus_take(c, "=")) {
        return litmus_expected(c, NULL, "'='", error);
    }
    return litmus_tuple(c, test, &test->var[var].pte, error);
}

static bool init_variable(struct litmus_cursor *c, struct litmus_test *test,
                          unsigned size, bool bracket, GError **error)
{
    g_autofree char *name = litmus_identifier(c);
    struct litmus_var *var;
    unsigned index;

    if (!name) {
        return litmus_expected(
            c, NULL, "a register, a variable or PTE(variable)", error);
    }
    if (!litmus_variable(c, test, name, &index, error)) {
        return false;
    }
    var = &test->var[index];
    var->size = size ? size : var->size;
    if (bracket && !litmus_take(c, "]")) {
        return litmus_expected(c, NULL, "']'", error);
    }
    if (!bracket && litmus_take(c, "[")) {
        return array(c, test, var, error);
    }
    if (!litmus_take(c, "=")) {
        return true;
    }
    if (!litmus_value(c, test, &var->init[0], error)) {
        return false;
    }
    if (var->init[0].kind != LITMUS_NUMBER) {
        var->size = 8; /* it holds an address or a descriptor */
    }
    return true;
}

static bool init_item(struct litmus_cursor *c, struct litmus_test *test,
                      GError **error)
{
    unsigned size = type_size(c);
    unsigned thread, reg, var;
    bool bracket;
    GError *problem = NULL;

    if (litmus_register(c, &thread, &reg)) {
        return init_register(c, test, thread, reg, error);
    }
    bracket = litmus_take(c, "[");
    litmus_skip(c);
    if (litmus_pte_name(c, test, &var, &problem)) {
        return init_pte(c, test, var, bracket, error);
    }
    if (problem) {
        g_propagate_error(error, problem);
        return false;
    }
    return init_variable(c, test, size, bracket, error);
}

static bool initial_state(struct litmus_cursor *c, struct litmus_test *test,
                          GError **error)
{
    (void)litmus_take(c, "{");
    for (;;) {
        if (litmus_take(c, "}")) {
            return true;
        }
        if (litmus_take(c, ";")) {
            continue;
        }
        if (!init_item(c, test, error)) {
            return false;
        }
        litmus_skip(c);
        if (*c->at != ';' && *c->at != '}') {
            return litmus_expected(c, NULL, "';' or '}'", error);
        }
    }
}

/* --- the whole --- */

static bool labels_exist(struct litmus_cursor *c, struct litmus_test *test,
                         GError **error)
{
    for (unsigned i = 0; i < LITMUS_THREADS_MAX; i++) {
        for (unsigned r = 0; r < LITMUS_REGS; r++) {
            if (i >= test->threads && test->thread[i].has_init[r]) {
                return litmus_wrong(c, c->text, error,
                                    "%u:X%u has an initial value, but there "
                                    "is no P%u",
                                    i, r, i);
            }
        }
    }
    return true;
}

struct litmus_test *litmus_parse(const char *text, const char *name,
                                 GError **error)
{
    GError *problem = NULL;
    g_autofree char *blank = litmus_blank_comments(name, text, &problem);
    struct litmus_cursor c = {.name = name, .text = blank, .at = blank};
    struct litmus_test *test = g_new0(struct litmus_test, 1);

    test->places = g_ptr_array_new();
    if (!blank || !header(&c, test, &problem) ||
        !initial_state(&c, test, &problem) ||
        !litmus_parse_code(&c, test, &problem) ||
        !litmus_parse_condition(&c, test, &problem) ||
        !labels_exist(&c, test, &problem)) {
        g_propagate_error(error, problem);
        litmus_test_free(test);
        return NULL;
    }
    return test;
}

static void insns_free(GPtrArray *insns)
{
    for (guint i = 0; insns && i < insns->len; i++) {
        struct litmus_insn *insn = insns->pdata[i];

        g_free(insn->text);
        g_ptr_array_unref(insn->labels);
        g_free(insn);
    }
    if (insns) {
        g_ptr_array_unref(insns);
    }
}

static void formula_free(struct litmus_formula *f)
{
    if (f) {
        formula_free(f->left);
        formula_free(f->right);
        g_free(f->place.label);
        g_free(f->value.label);
        g_free(f);
    }
}

void litmus_test_free(struct litmus_test *test)
{
    if (!test) {
        return;
    }
    for (unsigned i = 0; i < LITMUS_THREADS_MAX; i++) {
        insns_free(test->thread[i].code);
        insns_free(test->thread[i].handler);
        for (unsigned r = 0; r < LITMUS_REGS; r++) {
            g_free(test->thread[i].init[r].label);
        }
    }
    for (unsigned i = 0; i < test->vars; i++) {
        g_free(test->var[i].name);
        for (unsigned e = 0; e < LITMUS_ELEMENTS_MAX; e++) {
            g_free(test->var[i].init[e].label);
        }
    }
    for (guint i = 0; i < test->places->len; i++) {
        struct litmus_place *place = test->places->pdata[i];

        g_free(place->label);
        g_free(place);
    }
    g_ptr_array_unref(test->places);
    formula_free(test->formula);
    g_free(test->name);
    g_free(test->hash);
    g_free(test->condition);
    g_free(test);
}

bool litmus_insn_has_label(const struct litmus_insn *insn, const char *label)
{
    for (guint i = 0; i < insn->labels->len; i++) {
        if (strcmp(insn->labels->pdata[i], label) == 0) {
            return true;
        }
    }
    return false;
}
