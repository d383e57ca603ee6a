/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Litmus tests: the table of code, a column a thread. What an instruction is
 * to the explorer is read off its text; whether it is one at all, the
 * assembler says.
 */
#include <string.h>

#include "litmus/cursor.h"
#include "litmus/test.h"

#define COLUMNS_MAX (2u * LITMUS_THREADS_MAX)

struct column {
    unsigned thread;
    GPtrArray *insns;
    GPtrArray *pending; /* labels of the next instruction */
};

/* The next cell: up to '|' or ';'. False: the table is over. */
static bool next_cell(struct litmus_cursor *c, const char **out_start,
                      size_t *out_length, bool *out_last, GError **error)
{
    size_t n = strcspn(c->at, "|;");

    if (!c->at[n]) {
        return litmus_expected(c, c->at + n, "'|' or ';'", error);
    }
    *out_start = c->at;
    *out_length = n;
    *out_last = c->at[n] == ';';
    c->at += n + 1;
    while (*out_length && g_ascii_isspace(**out_start)) {
        (*out_start)++;
        (*out_length)--;
    }
    while (*out_length && g_ascii_isspace((*out_start)[*out_length - 1])) {
        (*out_length)--;
    }
    return true;
}

static struct litmus_insn *insn_new(struct column *column)
{
    struct litmus_insn *insn = g_new0(struct litmus_insn, 1);

    insn->labels = column->pending;
    insn->base = insn->index = -1;
    column->pending = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(column->insns, insn);
    return insn;
}

static bool starts(const char *mnemonic, const char *const *list)
{
    for (; *list; list++) {
        if (g_str_has_prefix(mnemonic, *list)) {
            return true;
        }
    }
    return false;
}

/* "X4" or "W6" at p, else -1. */
static int reg_at(const char *p, bool *out_word)
{
    uint64_t number;

    /* *p first: strchr() finds the end of its string, too. */
    if (!*p || !strchr("XxWw", *p) || !g_ascii_isdigit(p[1])) {
        return -1;
    }
    number = g_ascii_strtoull(p + 1, NULL, 10);
    if (number > 30) {
        return -1; /* the assembler says so */
    }
    *out_word = g_ascii_toupper(*p) == 'W';
    return (int)number;
}

/* [Xn], [Xn, Wm, SXTW], [Xn, Xm], [Xn, #imm] */
static void read_address(struct litmus_insn *insn)
{
    const char *p = strchr(insn->text, '[');
    bool word;

    if (!p) {
        return;
    }
    p += 1 + strspn(p + 1, " \t");
    insn->base = reg_at(p, &word);
    p += strcspn(p, ",]");
    if (*p != ',') {
        return;
    }
    p += 1 + strspn(p + 1, " \t#");
    insn->index = reg_at(p, &insn->index_is_word);
    if (insn->index < 0) {
        insn->offset = g_ascii_strtoll(p, NULL, 0);
    }
}

/* Which accesses, and in which domain; a number: all, everywhere. */
static void read_barrier(struct litmus_insn *insn, const char *operand)
{
    g_autofree char *text = g_ascii_strup(operand, -1);
    const char *name = g_strstrip(text);
    bool is_narrow = g_str_has_prefix(name, "NSH");
    bool loads = g_str_has_suffix(name, "LD");
    bool stores = g_str_has_suffix(name, "ST");

    insn->orders_stores = !is_narrow && !loads;
    insn->completes =
        insn->kind == LITMUS_DSB && !is_narrow && !loads && !stores;
}

/* Acquire and release, by the mnemonic. */
static void read_order(struct litmus_insn *insn, const char *mnemonic)
{
    static const char *const acquirers[] = {"LDAR", "LDAPR", "LDAPUR", "LDAX",
                                            NULL};
    static const char *const atomics[] = {
        "SWP",    "CASP",   "CAS",    "LDADD",  "LDCLR",  "LDEOR", "LDSET",
        "LDSMAX", "LDSMIN", "LDUMAX", "LDUMIN", "STADD",  "STCLR", "STEOR",
        "STSET",  "STSMAX", "STSMIN", "STUMAX", "STUMIN", NULL};

    for (unsigned i = 0; atomics[i]; i++) {
        if (g_str_has_prefix(mnemonic, atomics[i])) {
            const char *rest = mnemonic + strlen(atomics[i]);

            insn->acquires = *rest == 'A';
            insn->orders_stores = rest[*rest == 'A'] == 'L';
            return;
        }
    }
    insn->acquires = starts(mnemonic, acquirers);
    insn->orders_stores = g_str_has_prefix(mnemonic, "STL");
    insn->may_fail =
        g_str_has_prefix(mnemonic, "STX") || g_str_has_prefix(mnemonic, "STLX");
}

static void classify(struct litmus_insn *insn)
{
    static const char *const writers[] = {"ST",    "SWP",   "CAS",   "LDADD",
                                          "LDCLR", "LDSET", "LDEOR", "LDSM",
                                          "LDUM",  NULL};
    size_t n = strcspn(insn->text, " \t");
    g_autofree char *mnemonic = g_ascii_strup(insn->text, (gssize)n);

    if (strcmp(mnemonic, "TLBI") == 0) {
        insn->kind = LITMUS_TLBI;
    } else if (strcmp(mnemonic, "DSB") == 0) {
        insn->kind = LITMUS_DSB;
        read_barrier(insn, insn->text + n);
    } else if (strcmp(mnemonic, "DMB") == 0) {
        read_barrier(insn, insn->text + n);
    } else if (strcmp(mnemonic, "AT") == 0) {
        insn->kind = LITMUS_AT;
    } else if (strchr(insn->text, '[')) {
        insn->kind = LITMUS_ACCESS;
        insn->writes = starts(mnemonic, writers);
        read_order(insn, mnemonic);
        insn->must_write = insn->writes && !insn->may_fail &&
                           !g_str_has_prefix(mnemonic, "CAS");
        read_address(insn);
    }
}

static bool in_label(char ch)
{
    return g_ascii_isalnum(ch) || ch == '_';
}

static bool read_cell(struct litmus_cursor *c, struct column *column,
                      const char *p, size_t length, GError **error)
{
    const char *end = p + length;
    struct litmus_insn *insn;

    for (;;) {
        const char *word = p;

        while (p < end && in_label(*p)) {
            p++;
        }
        if (p == word || p == end || *p != ':') {
            p = word;
            break;
        }
        g_ptr_array_add(column->pending, g_strndup(word, (gsize)(p - word)));
        for (p++; p < end && g_ascii_isspace(*p); p++) {
        }
    }
    if (p == end) {
        return true;
    }
    if (column->insns->len == LITMUS_INSNS_MAX) {
        return litmus_wrong(c, p, error,
                            "more than %u instructions in one column",
                            LITMUS_INSNS_MAX);
    }
    if (!g_ascii_isalpha(*p)) {
        return litmus_expected(c, p, "an instruction", error);
    }
    for (const char *q = p; q < end; q++) {
        if (strchr("\"'\\/", *q)) { /* strings, escapes, comments */
            return litmus_expected(c, q, "a character of an instruction",
                                   error);
        }
    }
    insn = insn_new(column);
    insn->text = g_strndup(p, (gsize)(end - p));
    for (char *q = insn->text; *q; q++) {
        if (*q == '\n' || *q == '\r') {
            *q = ' ';
        }
    }
    litmus_position(c, p, &insn->line, &insn->column);
    classify(insn);
    return true;
}

/* "P1" or "P1.F" */
static bool read_head(struct litmus_cursor *c, struct litmus_test *test,
                      struct column *column, const char *p, size_t length,
                      GError **error)
{
    struct litmus_thread *t;
    GPtrArray **insns;
    char *end;
    bool is_handler;

    if (length < 2 || *p != 'P' || !g_ascii_isdigit(p[1])) {
        return litmus_expected(c, p, "the head of a column, P0 or P0.F", error);
    }
    column->thread = (unsigned)g_ascii_strtoull(p + 1, &end, 10);
    is_handler = end + 2 == p + length && memcmp(end, ".F", 2) == 0;
    if ((end != p + length && !is_handler) ||
        column->thread >= LITMUS_THREADS_MAX) {
        return litmus_expected(c, p, "P0 to P7, or P0.F", error);
    }
    t = &test->thread[column->thread];
    insns = is_handler ? &t->handler : &t->code;
    if (*insns) {
        return litmus_wrong(c, p, error, "this column is there twice");
    }
    *insns = g_ptr_array_new();
    column->insns = *insns;
    column->pending = g_ptr_array_new_with_free_func(g_free);
    if (!is_handler) {
        test->threads = MAX(test->threads, column->thread + 1);
    }
    return true;
}

/* Is this where the table ends? */
static bool at_end(struct litmus_cursor *c)
{
    static const char *const words[] = {"exists", "forall", "locations",
                                        "filter", NULL};

    litmus_skip(c);
    if (*c->at == '~' || *c->at == '\0') {
        return true;
    }
    for (unsigned i = 0; words[i]; i++) {
        struct litmus_cursor look = *c;

        if (litmus_take_word(&look, words[i])) {
            return true;
        }
    }
    return false;
}

static bool read_rows(struct litmus_cursor *c, struct litmus_test *test,
                      struct column *columns, unsigned *count, GError **error)
{
    const char *start;
    size_t length;
    bool last = false;

    while (!last) {
        if (!next_cell(c, &start, &length, &last, error)) {
            return false;
        }
        if (*count == COLUMNS_MAX) {
            return litmus_wrong(c, start, error, "too many columns");
        }
        if (!read_head(c, test, &columns[*count], start, length, error)) {
            return false;
        }
        (*count)++;
    }
    while (!at_end(c)) {
        unsigned i = 0;

        for (last = false; !last; i++) {
            if (!next_cell(c, &start, &length, &last, error)) {
                return false;
            }
            if (length && i >= *count) {
                return litmus_wrong(c, start, error,
                                    "a cell beyond the last column");
            }
            if (length && !read_cell(c, &columns[i], start, length, error)) {
                return false;
            }
        }
    }
    return true;
}

bool litmus_parse_code(struct litmus_cursor *c, struct litmus_test *test,
                       GError **error)
{
    struct column columns[COLUMNS_MAX] = {{0}};
    unsigned count = 0;
    bool ok = read_rows(c, test, columns, &count, error);

    for (unsigned i = 0; i < count; i++) {
        /* Labels after the last instruction are on a no-operation. */
        if (ok && columns[i].pending->len) {
            struct litmus_insn *insn = insn_new(&columns[i]);

            insn->text = g_strdup("NOP");
            litmus_position(c, c->at, &insn->line, &insn->column);
        }
        g_ptr_array_unref(columns[i].pending);
    }
    for (unsigned i = 0; ok && i < LITMUS_THREADS_MAX; i++) {
        if (!test->thread[i].code &&
            (i < test->threads || test->thread[i].handler)) {
            ok = litmus_wrong(c, NULL, error, "there is no column P%u", i);
        }
    }
    return ok;
}
