/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words and values of litmus tests; see cursor.h. */
#include "litmus/cursor.h"

#include <string.h>

#include "error.h"
#include "litmus/test.h"

void litmus_position(const struct litmus_cursor *c, const char *where,
                     unsigned *out_line, unsigned *out_column)
{
    unsigned line = 1;
    const char *start = c->text;

    for (const char *p = c->text; p < where; p++) {
        if (*p == '\n') {
            line++;
            start = p + 1;
        }
    }
    *out_line = line;
    *out_column = (unsigned)(where - start) + 1;
}

bool litmus_wrong(const struct litmus_cursor *c, const char *where,
                  GError **error, const char *format, ...)
{
    unsigned line, column;
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    litmus_position(c, where ? where : c->at, &line, &column);
    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s:%u:%u: %s", c->name,
                line, column, what);
    return false;
}

/* Up to so many characters of what was found are shown. */
#define FOUND_MAX 20u

bool litmus_expected(const struct litmus_cursor *c, const char *where,
                     const char *what, GError **error)
{
    const char *p = where ? where : c->at;
    size_t n = 0;
    g_autofree char *found = NULL;
    g_autofree char *shown = NULL;

    while (p[n] && p[n] != '\n' && n < FOUND_MAX) {
        n++;
    }
    found = g_strndup(p, n);
    shown = g_str_is_ascii(found) ? g_strdup(found) : g_strescape(found, NULL);
    if (n == 0) {
        return litmus_wrong(c, p, error, "found the end of the %s, expected %s",
                            *p ? "line" : "file", what);
    }
    return litmus_wrong(c, p, error, "found '%s', expected %s", shown, what);
}

char *litmus_blank_comments(const char *name, const char *text, GError **error)
{
    g_autofree char *out = g_strdup(text);
    struct litmus_cursor c = {.name = name, .text = text, .at = text};
    const char *open = NULL;
    unsigned depth = 0;

    for (char *p = out; *p; p++) {
        bool opens = p[0] == '(' && p[1] == '*';
        bool closes = depth && p[0] == '*' && p[1] == ')';

        if (opens && depth++ == 0) {
            open = text + (p - out);
        }
        if (opens || closes) {
            p[0] = p[1] = ' ';
            p++;
            depth -= closes;
        } else if (depth && *p != '\n') {
            *p = ' ';
        }
    }
    if (depth) {
        litmus_wrong(&c, open, error, "this comment is not closed");
        return NULL;
    }
    return g_steal_pointer(&out);
}

void litmus_skip(struct litmus_cursor *c)
{
    while (g_ascii_isspace(*c->at)) {
        c->at++;
    }
}

bool litmus_take(struct litmus_cursor *c, const char *what)
{
    size_t n = strlen(what);

    litmus_skip(c);
    if (strncmp(c->at, what, n) != 0) {
        return false;
    }
    c->at += n;
    return true;
}

static bool in_word(char ch)
{
    return g_ascii_isalnum(ch) || ch == '_' || ch == '.';
}

bool litmus_take_word(struct litmus_cursor *c, const char *word)
{
    size_t n = strlen(word);

    litmus_skip(c);
    if (g_ascii_strncasecmp(c->at, word, n) != 0 || in_word(c->at[n])) {
        return false;
    }
    c->at += n;
    return true;
}

char *litmus_identifier(struct litmus_cursor *c)
{
    const char *start;

    litmus_skip(c);
    start = c->at;
    if (!g_ascii_isalpha(*start) && *start != '_') {
        return NULL;
    }
    while (in_word(*c->at)) {
        c->at++;
    }
    return g_strndup(start, (gsize)(c->at - start));
}

bool litmus_number(struct litmus_cursor *c, uint64_t *out)
{
    char *end;
    const char *p;

    litmus_skip(c);
    p = c->at + (*c->at == '-');
    if (!g_ascii_isdigit(*p)) {
        return false;
    }
    *out = g_ascii_strtoull(p, &end, strncmp(p, "0x", 2) == 0 ? 16 : 10);
    if (p != c->at) {
        *out = -*out;
    }
    if (in_word(*end)) {
        return false;
    }
    c->at = end;
    return true;
}

bool litmus_register(struct litmus_cursor *c, unsigned *out_thread,
                     unsigned *out_reg)
{
    const char *p;
    char *end;
    guint64 thread, reg;

    litmus_skip(c);
    p = c->at + (*c->at == 'P' && g_ascii_isdigit(c->at[1]));
    if (!g_ascii_isdigit(*p)) {
        return false;
    }
    thread = g_ascii_strtoull(p, &end, 10);
    while (*end == ' ') {
        end++;
    }
    if (*end != ':') {
        return false;
    }
    p = end + 1;
    while (*p == ' ') {
        p++;
    }
    if (!*p || !strchr("XxWw", *p) || !g_ascii_isdigit(p[1])) {
        return false;
    }
    reg = g_ascii_strtoull(p + 1, &end, 10);
    if (in_word(*end) || thread >= LITMUS_THREADS_MAX || reg >= LITMUS_REGS) {
        return false;
    }
    c->at = end;
    *out_thread = (unsigned)thread;
    *out_reg = (unsigned)reg;
    return true;
}

bool litmus_variable(struct litmus_cursor *c, struct litmus_test *test,
                     const char *name, unsigned *out, GError **error)
{
    for (unsigned i = 0; i < test->vars; i++) {
        if (strcmp(test->var[i].name, name) == 0) {
            *out = i;
            return true;
        }
    }
    if (test->vars == LITMUS_VARS_MAX) {
        return litmus_wrong(c, NULL, error,
                            "'%s' is one variable too many: %u are accepted",
                            name, LITMUS_VARS_MAX);
    }
    *out = test->vars++;
    test->var[*out] = (struct litmus_var){
        .name = g_strdup(name),
        .size = 4,
        .count = 1,
        .pte = {.oa = -1,
                .valid = true,
                .af = true,
                .db = true,
                .el0 = true,
                .x = true},
    };
    return true;
}

/* "(x)" after PA or PTE. */
static bool in_parentheses(struct litmus_cursor *c, struct litmus_test *test,
                           unsigned *out, GError **error)
{
    g_autofree char *name = NULL;

    if (!litmus_take(c, "(")) {
        return litmus_expected(c, NULL, "'(' and a variable", error);
    }
    name = litmus_identifier(c);
    if (!name) {
        return litmus_expected(c, NULL, "the name of a variable", error);
    }
    if (!litmus_take(c, ")")) {
        return litmus_expected(c, NULL, "')'", error);
    }
    return litmus_variable(c, test, name, out, error);
}

static bool named(struct litmus_cursor *c, struct litmus_test *test,
                  const char *const *functions, const char *prefix,
                  unsigned *out, GError **error)
{
    struct litmus_cursor start = *c;
    g_autofree char *word = litmus_identifier(c);

    for (unsigned i = 0; word && functions[i]; i++) {
        if (strcmp(word, functions[i]) == 0) {
            return in_parentheses(c, test, out, error);
        }
    }
    if (word && g_str_has_prefix(word, prefix) && word[strlen(prefix)]) {
        return litmus_variable(c, test, word + strlen(prefix), out, error);
    }
    *c = start;
    return false;
}

bool litmus_pte_name(struct litmus_cursor *c, struct litmus_test *test,
                     unsigned *out_var, GError **error)
{
    static const char *const functions[] = {"PTE", "TTD", NULL};

    return named(c, test, functions, "pte_", out_var, error);
}

static bool physical_name(struct litmus_cursor *c, struct litmus_test *test,
                          unsigned *out_var, GError **error)
{
    static const char *const functions[] = {"PA", NULL};

    if (named(c, test, functions, "phy_", out_var, error)) {
        return true;
    }
    return *error ? false : litmus_expected(c, NULL, "PA(variable)", error);
}

static bool bit(struct litmus_cursor *c, bool *out, GError **error)
{
    const char *start = c->at;
    uint64_t value;

    if (!litmus_number(c, &value) || value > 1) {
        return litmus_expected(c, start, "0 or 1", error);
    }
    *out = value != 0;
    return true;
}

/* attrs:(Normal, ...): every page is normal memory here. */
static bool attributes(struct litmus_cursor *c, GError **error)
{
    const char *start;

    if (!litmus_take(c, "(")) {
        return litmus_expected(c, NULL, "'(' and attributes", error);
    }
    do {
        g_autofree char *word = NULL;

        litmus_skip(c);
        start = c->at;
        word = litmus_identifier(c);
        if (!word ||
            (strcmp(word, "Normal") != 0 && !g_str_has_prefix(word, "iWB") &&
             !g_str_has_prefix(word, "oWB") && !g_str_has_suffix(word, "sh"))) {
            return litmus_expected(
                c, start, "attributes of normal, write-back memory", error);
        }
        while (*c->at == '-' || in_word(*c->at)) {
            c->at++;
        }
    } while (litmus_take(c, ","));
    return litmus_take(c, ")") || litmus_expected(c, NULL, "')'", error);
}

static bool field(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_pte *pte, GError **error)
{
    const struct {
        const char *name;
        bool *bit;
    } bits[] = {{"valid", &pte->valid}, {"af", &pte->af},   {"db", &pte->db},
                {"dbm", &pte->dbm},     {"el0", &pte->el0}, {"x", &pte->x}};
    const char *start;
    g_autofree char *name = NULL;
    unsigned var;

    litmus_skip(c);
    start = c->at;
    name = litmus_identifier(c);
    if (!name || !litmus_take(c, ":")) {
        return litmus_expected(c, start, "a field such as 'valid:0'", error);
    }
    if (strcmp(name, "oa") == 0) {
        litmus_skip(c);
        if (!physical_name(c, test, &var, error)) {
            return false;
        }
        pte->oa = (int)var;
        return true;
    }
    if (strcmp(name, "attrs") == 0) {
        return attributes(c, error);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bits); i++) {
        if (strcmp(name, bits[i].name) == 0) {
            litmus_skip(c);
            return bit(c, bits[i].bit, error);
        }
    }
    return litmus_expected(
        c, start, "one of oa, valid, af, db, dbm, el0, x and attrs", error);
}

bool litmus_tuple(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_pte *out, GError **error)
{
    *out = (struct litmus_pte){.oa = -1,
                               .valid = true,
                               .af = true,
                               .db = true,
                               .el0 = true,
                               .x = true};
    if (!litmus_take(c, "(")) {
        return litmus_expected(c, NULL, "a descriptor in parentheses", error);
    }
    do {
        if (!field(c, test, out, error)) {
            return false;
        }
    } while (litmus_take(c, ","));
    return litmus_take(c, ")") || litmus_expected(c, NULL, "')'", error);
}

/* label:"P1:L0" */
static bool label_value(struct litmus_cursor *c, struct litmus_value *out,
                        GError **error)
{
    char *end;
    const char *start = c->at;

    if (!litmus_take(c, ":") || !litmus_take(c, "\"")) {
        return litmus_expected(c, start, ":\"P0:LABEL\"", error);
    }
    start = c->at;
    if (*c->at != 'P' || !g_ascii_isdigit(c->at[1])) {
        return litmus_expected(c, start, "P0:LABEL", error);
    }
    out->kind = LITMUS_LABEL;
    out->thread = (unsigned)g_ascii_strtoull(c->at + 1, &end, 10);
    if (*end != ':' || out->thread >= LITMUS_THREADS_MAX) {
        return litmus_expected(c, start, "P0:LABEL", error);
    }
    c->at = end + 1;
    out->label = litmus_identifier(c);
    return (out->label && litmus_take(c, "\"")) ||
           litmus_expected(c, NULL, "a label and '\"'", error);
}

bool litmus_value(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_value *out, GError **error)
{
    const char *start;
    g_autofree char *name = NULL;
    GError *problem = NULL;

    litmus_skip(c);
    *out = (struct litmus_value){.kind = LITMUS_NUMBER};
    start = c->at;
    if (litmus_number(c, &out->number)) {
        return true;
    }
    if (*c->at == '(') {
        out->kind = LITMUS_PTE;
        return litmus_tuple(c, test, &out->pte, error);
    }
    (void)litmus_take(c, "&");
    if (litmus_pte_name(c, test, &out->var, &problem)) {
        out->kind = LITMUS_PTE_ADDRESS;
        return true;
    }
    if (problem) {
        g_propagate_error(error, problem);
        return false;
    }
    name = litmus_identifier(c);
    if (!name) {
        return litmus_expected(
            c, start, "a number, a variable, PTE(variable) or a descriptor",
            error);
    }
    if (strcmp(name, "label") == 0 && *c->at == ':') {
        return label_value(c, out, error);
    }
    out->kind = LITMUS_ADDRESS;
    return litmus_variable(c, test, name, &out->var, error);
}
