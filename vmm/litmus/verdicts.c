/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Published kinds; see verdicts.h. */
#include "litmus/verdicts.h"

#include <string.h>

#include "error.h"

struct litmus_verdicts {
    GHashTable *by_file, *by_name; /* text -> struct litmus_verdict */
};

const char *litmus_kind_name(enum litmus_kind kind)
{
    static const char *const names[] = {"", "Forbidden", "Allowed", "Required"};

    return names[kind];
}

static bool kind_of(const char *word, enum litmus_kind *out)
{
    if (g_str_has_prefix(word, "Forbid")) {
        *out = LITMUS_FORBIDDEN;
    } else if (g_str_has_prefix(word, "Allow")) {
        *out = LITMUS_ALLOWED;
    } else if (strcmp(word, "Required") == 0 || strcmp(word, "Require") == 0) {
        *out = LITMUS_REQUIRED;
    } else if (strcmp(word, "") == 0 || strcmp(word, "-") == 0 ||
               strcmp(word, "None") == 0 || strcmp(word, "none") == 0) {
        *out = LITMUS_KIND_NONE;
    } else {
        return false;
    }
    return true;
}

static void verdict_free(gpointer data)
{
    struct litmus_verdict *v = data;

    g_free(v->class);
    g_free(v);
}

static void add(GHashTable *table, const char *key, enum litmus_kind kind,
                const char *class)
{
    struct litmus_verdict *v = g_new0(struct litmus_verdict, 1);

    v->kind = kind;
    v->class = g_strdup(class ? class : "");
    g_hash_table_insert(table, g_strdup(key), v);
}

static int column(char *const *head, const char *name)
{
    for (int i = 0; head[i]; i++) {
        if (strcmp(head[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool wrong(const char *path, size_t line, const char *what,
                  GError **error)
{
    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                "%s:%zu: %s; expected a kind: Forbidden, Allowed, Required or "
                "none",
                path, line, what);
    return false;
}

static bool read_table(struct litmus_verdicts *v, const char *path,
                       char *const *lines, GError **error)
{
    g_auto(GStrv) head = g_strsplit(lines[0], "\t", -1);
    int file = column(head, "file"), name = column(head, "name");
    int kind = column(head, "kind_published"), class = column(head, "class");

    if (name < 0 || kind < 0) {
        return wrong(path, 1, "the head lacks 'name' or 'kind_published'",
                     error);
    }
    for (size_t i = 1; lines[i]; i++) {
        g_auto(GStrv) cell = g_strsplit(lines[i], "\t", -1);
        int cells = (int)g_strv_length(cell);
        enum litmus_kind is;

        if (lines[i][0] == '\0') {
            continue;
        }
        if (cells <= name || cells <= kind || cells <= file || cells <= class ||
            !kind_of(cell[kind], &is)) {
            return wrong(path, i + 1,
                         cells > kind ? cell[kind] : "too few columns", error);
        }
        add(v->by_name, cell[name], is, class < 0 ? "" : cell[class]);
        if (file >= 0) {
            add(v->by_file, cell[file], is, class < 0 ? "" : cell[class]);
        }
    }
    return true;
}

static bool read_lines(struct litmus_verdicts *v, const char *path,
                       char *const *lines, GError **error)
{
    for (size_t i = 0; lines[i]; i++) {
        char *line = lines[i];
        char *word[2] = {NULL, NULL};

        line[strcspn(line, "#\r")] = '\0';
        for (unsigned k = 0; k < 2; k++) {
            line += strspn(line, " \t");
            word[k] = line;
            line += strcspn(line, " \t");
            if (*line) {
                *line++ = '\0';
            }
        }
        if (word[0][0] != '\0') {
            enum litmus_kind kind;

            if (!kind_of(word[1], &kind)) {
                return wrong(path, i + 1, word[1], error);
            }
            add(v->by_name, word[0], kind, "");
        }
    }
    return true;
}

struct litmus_verdicts *litmus_verdicts_load(const char *path, GError **error)
{
    struct litmus_verdicts *v;
    g_autofree char *text = NULL;
    g_autoptr(GError) problem = NULL;
    g_auto(GStrv) lines = NULL;
    bool ok;

    if (!g_file_get_contents(path, &text, NULL, &problem)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s",
                    problem->message);
        return NULL;
    }
    v = g_new0(struct litmus_verdicts, 1);
    v->by_file =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, verdict_free);
    v->by_name =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, verdict_free);
    lines = g_strsplit(text, "\n", -1);
    ok = lines[0] && strchr(lines[0], '\t') ? read_table(v, path, lines, error)
                                            : read_lines(v, path, lines, error);
    if (!ok) {
        litmus_verdicts_free(v);
        return NULL;
    }
    return v;
}

void litmus_verdicts_free(struct litmus_verdicts *v)
{
    if (v) {
        g_hash_table_unref(v->by_file);
        g_hash_table_unref(v->by_name);
        g_free(v);
    }
}

const struct litmus_verdict *
litmus_verdicts_find(const struct litmus_verdicts *v, const char *path,
                     const char *name)
{
    /* "dir/sub/test.litmus", "sub/test.litmus", "test.litmus" */
    for (const char *p = path; p; p = strchr(p, '/')) {
        const struct litmus_verdict *found;

        p += *p == '/';
        found = g_hash_table_lookup(v->by_file, p);
        if (found) {
            return found;
        }
    }
    return g_hash_table_lookup(v->by_name, name);
}
