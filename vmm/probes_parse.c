/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probe files; see probes.h. The text is anybody's. Main thread. */
#include "probes.h"

#include <stdarg.h>
#include <string.h>

#include "abi/annot.h"
#include "error.h"
#include "obs/stats.h"
#include "obs/symbols.h"

#define PROBES_MAX 1000u

static const char *const roles[PROBE_ROLES] = {
    "frame_free", "frame_alloc", "io_begin", "io_end",     "copy_begin",
    "op",         "op_begin",    "op_end",   "walk_begin", "walk_end",
};
static const char *const keys[PROBE_KEYS] = {
    "pa",    "virt", "page",    "order", "bytes", "kind",
    "start", "end",  "promise", "root",  "task",
};
static const char *const promises[] = {"none", "nowrite", "noaccess"};

#define KEY(key) (1u << (key))
#define KEYS_FRAME                                                             \
    (KEY(PROBE_PA) | KEY(PROBE_VIRT) | KEY(PROBE_PAGE) | KEY(PROBE_ORDER) |    \
     KEY(PROBE_BYTES))
#define KEYS_OP                                                                \
    (KEY(PROBE_KIND) | KEY(PROBE_START) | KEY(PROBE_END) | KEY(PROBE_BYTES) |  \
     KEY(PROBE_PROMISE))

struct reading {
    struct probe_file *file;
    const struct symbols *symbols;
    const char *name;
    const char *line_start;
    unsigned line;
    GError **error;
};

static bool refuse(const struct reading *r, const char *at, const char *format,
                   ...) G_GNUC_PRINTF(3, 4);
static bool refuse(const struct reading *r, const char *at, const char *format,
                   ...)
{
    g_autofree char *what = NULL;
    va_list list;

    va_start(list, format);
    what = g_strdup_vprintf(format, list);
    va_end(list);
    g_set_error(r->error, VM_ERROR, VM_ERROR_USAGE, "%s:%u:%u: %s", r->name,
                r->line, (unsigned)(at - r->line_start) + 1, what);
    return false;
}

static bool to_number(const char *text, uint64_t *out)
{
    char *end = NULL;
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

    if (!g_ascii_isdigit(text[0])) {
        return false;
    }
    *out = g_ascii_strtoull(text, &end, is_hex ? 16 : 10);
    return end != text && *end == '\0' && (!is_hex || text[2] != '\0');
}

static int index_of(const char *const *names, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] && strcmp(names[i], word) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* "free_pages", "free_pages+0x10" or "0xffff..." */
static bool take_place(const struct reading *r, const char *at,
                       const char *word, gva_t *out)
{
    g_auto(GStrv) parts = g_strsplit(word, "+", 2);
    struct symbol symbol;
    uint64_t offset = 0;

    if (to_number(word, out)) {
        return *out % 4 == 0 || refuse(r, at, "no instruction is at %s", word);
    }
    if (parts[1] && (!to_number(parts[1], &offset) || offset % 4)) {
        return refuse(r, at + strlen(parts[0]) + 1,
                      "'%s' is no offset of an instruction", parts[1]);
    }
    if (!r->symbols || !symbols_by_name(r->symbols, parts[0], &symbol)) {
        return refuse(r, at, "the kernel has no function '%s'", parts[0]);
    }
    if (offset >= symbol.size) {
        return refuse(r, at, "'%s' is only %" G_GUINT64_FORMAT " bytes long",
                      parts[0], symbol.size);
    }
    *out = symbol.start + offset;
    return true;
}

static bool to_named(enum probe_key key, const char *text, uint64_t *out)
{
    int i;

    if (key == PROBE_PROMISE) {
        i = index_of(promises, G_N_ELEMENTS(promises), text);
        *out = (uint64_t)i;
        return i >= 0;
    }
    for (unsigned op = 1; key == PROBE_KIND && op < ANNOT_OPS; op++) {
        if (strcmp(op_kind_name(op), text) == 0) {
            *out = op;
            return true;
        }
    }
    return false;
}

static bool take_value(const struct reading *r, const char *at,
                       enum probe_key key, const char *text, bool at_exit,
                       struct probe_value *out)
{
    g_auto(GStrv) parts = g_strsplit(text, "@", 2);

    out->is_given = true;
    if (to_number(text, &out->number) || to_named(key, text, &out->number)) {
        return true;
    }
    if (parts[0] && parts[0][0] == 'x' && g_ascii_isdigit(parts[0][1]) &&
        parts[0][1] < '8' && !parts[0][2]) {
        out->is_register = true;
        out->reg = (unsigned)(parts[0][1] - '0');
        out->at_entry = parts[1] != NULL;
        if (parts[1] && (strcmp(parts[1], "entry") != 0 || !at_exit)) {
            return refuse(r, at, "'@%s': accepted is @entry, with 'exit'",
                          parts[1]);
        }
        return true;
    }
    return refuse(
        r, at, "'%s' is no value of %s: accepted are x0 to x7%s, and numbers",
        text, keys[key],
        key == PROBE_PROMISE ? ", none, nowrite, noaccess"
        : key == PROBE_KIND  ? ", names such as munmap or mprotect"
                             : "");
}

static unsigned keys_of(enum probe_role role)
{
    switch (role) {
    case PROBE_OP:
        return KEYS_OP;
    case PROBE_OP_BEGIN:
        return KEYS_OP | KEY(PROBE_TASK);
    case PROBE_OP_END:
        return KEY(PROBE_KIND) | KEY(PROBE_TASK);
    case PROBE_WALK_BEGIN:
        return KEY(PROBE_ROOT);
    case PROBE_WALK_END:
        return 0;
    default:
        return KEYS_FRAME;
    }
}

/* What a role needs is there, and no two that say the same. */
static bool check_probe(const struct reading *r, const char *at,
                        const struct probe *p)
{
    const struct probe_value *v = p->value;
    unsigned where =
        v[PROBE_PA].is_given + v[PROBE_VIRT].is_given + v[PROBE_PAGE].is_given;

    switch (p->role) {
    case PROBE_OP:
        if (p->at_exit) {
            return refuse(r, at, "an op is both entry and exit: no 'exit'");
        }
        /* fall through */
    case PROBE_OP_BEGIN:
        return (v[PROBE_KIND].is_given && v[PROBE_START].is_given &&
                v[PROBE_END].is_given != v[PROBE_BYTES].is_given) ||
               refuse(r, at, "%s needs kind=, start=, and end= or bytes=",
                      roles[p->role]);
    case PROBE_OP_END:
        return v[PROBE_KIND].is_given || refuse(r, at, "op_end needs kind=");
    case PROBE_WALK_BEGIN:
        return v[PROBE_ROOT].is_given ||
               refuse(r, at, "walk_begin needs root=");
    case PROBE_WALK_END:
        return true;
    default:
        if (where != 1) {
            return refuse(
                r, at, "%s needs one of pa=, virt= and page=", roles[p->role]);
        }
        return !(v[PROBE_ORDER].is_given && v[PROBE_BYTES].is_given) ||
               refuse(r, at, "order= and bytes= exclude each other");
    }
}

/* key=value into parts; false: it is none. */
static char **split_pair(const char *word)
{
    char **parts = g_strsplit(word, "=", 2);

    if (!parts[0] || !parts[1]) {
        g_strfreev(parts);
        return NULL;
    }
    return parts;
}

static bool take_probe(struct reading *r, char **words, const char *const *at)
{
    struct probe p = {.line = r->line};
    int role, i = 2;

    if (!take_place(r, at[0], words[0], &p.pc)) {
        return false;
    }
    if (!words[1]) {
        return refuse(r, at[0] + strlen(words[0]), "'%s' has no role",
                      words[0]);
    }
    role = index_of(roles, PROBE_ROLES, words[1]);
    if (role < 0) {
        return refuse(
            r, at[1],
            "'%s' is no role: accepted are frame_free, "
            "frame_alloc, io_begin, io_end, copy_begin, op, op_begin, "
            "op_end, walk_begin, walk_end",
            words[1]);
    }
    p.role = (enum probe_role)role;
    if (words[2] && strcmp(words[2], "exit") == 0) {
        p.at_exit = true;
        i = 3;
    }
    for (; words[i]; i++) {
        g_auto(GStrv) pair = split_pair(words[i]);
        int key = pair ? index_of(keys, PROBE_KEYS, pair[0]) : -1;

        if (key < 0 || !(keys_of(p.role) & KEY(key))) {
            return refuse(r, at[i], "'%s' says nothing about %s", words[i],
                          roles[role]);
        }
        if (p.value[key].is_given) {
            return refuse(r, at[i], "%s= is there already", keys[key]);
        }
        if (!take_value(r, at[i] + strlen(pair[0]) + 1, (enum probe_key)key,
                        pair[1], p.at_exit, &p.value[key])) {
            return false;
        }
    }
    if (r->file->probes->len >= PROBES_MAX) {
        return refuse(r, at[0], "more than %u probes", PROBES_MAX);
    }
    if (p.value[PROBE_PAGE].is_given && !r->file->has_pages) {
        return refuse(r, at[0],
                      "page= needs a line 'pages base=... size=... "
                      "pa=...' before it");
    }
    g_array_append_val(r->file->probes, p);
    return check_probe(r, at[0], &p);
}

/* "linear virt=N pa=N", "pages base=[*]N size=N pa=N". */
static bool take_map(struct reading *r, char **words, const char *const *at)
{
    struct probe_file *f = r->file;
    bool is_pages = strcmp(words[0], "pages") == 0;
    unsigned seen = 0;

    for (int i = 1; words[i]; i++) {
        g_auto(GStrv) pair = split_pair(words[i]);
        const char *key = pair ? pair[0] : "";
        const char *text = pair ? pair[1] : "";
        bool is_base = is_pages && strcmp(key, "base") == 0;
        uint64_t number;
        unsigned bit = strcmp(key, "pa") == 0                  ? 1
                       : strcmp(key, "virt") == 0 && !is_pages ? 2
                       : is_base                               ? 2
                       : strcmp(key, "size") == 0 && is_pages  ? 4
                                                               : 0;

        if (!bit || seen & bit ||
            !to_number(text + (is_base && text[0] == '*'), &number)) {
            return refuse(r, at[i], "'%s' is not understood here", words[i]);
        }
        seen |= bit;
        *(bit == 1   ? is_pages ? &f->pages_pa : &f->linear_pa
          : bit == 4 ? &f->pages_size
          : is_pages ? &f->pages_base
                     : &f->linear_virt) = number;
        if (is_base) {
            f->pages_indirect = text[0] == '*';
        }
    }
    if (seen != (is_pages ? 7u : 3u) || (is_pages && f->pages_size == 0)) {
        return refuse(r, at[0], "%s",
                      is_pages ? "pages needs base=, size= (not 0) and pa="
                               : "linear needs virt= and pa=");
    }
    *(is_pages ? &f->has_pages : &f->has_linear) = true;
    return true;
}

static bool take_line(struct reading *r, const char *line)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) at = g_ptr_array_new();

    while (*line && *line != '#') {
        size_t blank = strspn(line, " \t\r");
        size_t n = strcspn(line + blank, " \t\r#");

        if (n) {
            g_ptr_array_add(words, g_strndup(line + blank, n));
            g_ptr_array_add(at, (gpointer)(line + blank));
        }
        line += blank + n;
    }
    if (words->len == 0) {
        return true;
    }
    g_ptr_array_add(words, NULL);
    if (strcmp(words->pdata[0], "linear") == 0 ||
        strcmp(words->pdata[0], "pages") == 0) {
        return take_map(r, (char **)words->pdata,
                        (const char *const *)at->pdata);
    }
    return take_probe(r, (char **)words->pdata, (const char *const *)at->pdata);
}

static gint by_pc(gconstpointer a, gconstpointer b)
{
    const struct probe *x = a, *y = b;

    return x->pc != y->pc ? (x->pc < y->pc ? -1 : 1)
                          : (x->line < y->line ? -1 : x->line > y->line);
}

struct probe_file *probe_file_parse(const char *text, const char *name,
                                    const struct symbols *symbols,
                                    GError **error)
{
    struct probe_file *file = g_new0(struct probe_file, 1);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    struct reading r = {
        .file = file, .symbols = symbols, .name = name, .error = error};
    bool ok = true;

    file->probes = g_array_new(FALSE, FALSE, sizeof(struct probe));
    for (; ok && lines[r.line];) {
        r.line_start = lines[r.line];
        r.line++;
        ok = take_line(&r, r.line_start);
    }
    if (ok && file->probes->len == 0) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE, "%s: there is no probe",
                    name);
        ok = false;
    }
    if (!ok) {
        probe_file_free(file);
        return NULL;
    }
    g_array_sort(file->probes, by_pc);
    return file;
}

void probe_file_free(struct probe_file *file)
{
    if (file) {
        g_array_unref(file->probes);
        g_free(file);
    }
}
