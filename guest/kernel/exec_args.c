/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The strings of execve: collected in one growing buffer, changed by "#!". */
#include "kernel/errno.h"
#include "kernel/exec.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define STRINGS_FIRST 2048UL
#define STRINGS_MAX                                                            \
    (1UL << 20) /* all of them; Linux: a quarter of the stack                  \
                 */
#define STRING_MAX (128UL << 10)
#define SCRIPT_LINE 256

static int strings_grow(struct exec_strings *s, size_t needed)
{
    size_t size = s->size == 0 ? STRINGS_FIRST : s->size;
    char *buf;

    while (size < needed) {
        size *= 2;
    }
    if (size > STRINGS_MAX) {
        return -E2BIG;
    }
    if (size == s->size) {
        return 0;
    }
    buf = kmalloc(size);
    if (buf == NULL) {
        return -ENOMEM;
    }
    if (s->buf != NULL) {
        memcpy(buf, s->buf, s->len);
        kfree(s->buf);
    }
    s->buf = buf;
    s->size = size;
    return 0;
}

static int strings_add(struct exec_strings *s, const char *string)
{
    size_t n = strlen(string) + 1;
    int error = strings_grow(s, s->len + n);

    if (error == 0) {
        memcpy(s->buf + s->len, string, n);
        s->len += n;
    }
    return error;
}

static int strings_add_user(struct exec_strings *s, uint64_t va)
{
    for (;;) {
        size_t room = s->size - s->len;
        int64_t len =
            room == 0 ? 0 : strncpy_from_user(s->buf + s->len, va, room);
        int error;

        if (len < 0) {
            return (int)len;
        }
        if ((size_t)len < room) {
            s->len += (size_t)len + 1;
            return (size_t)len >= STRING_MAX ? -E2BIG : 0;
        }
        error = strings_grow(s, s->size + 1);
        if (error != 0) {
            return error;
        }
    }
}

/* Adds all of a NULL-terminated vector; how many, or -errno. */
static int strings_add_vector(struct exec_strings *s, uint64_t vector_va)
{
    for (int n = 0;; n++) {
        uint64_t va;
        int error;

        if (vector_va == 0) {
            return 0;
        }
        if (get_user_u64(&va, vector_va + (uint64_t)n * 8) != 0) {
            return -EFAULT;
        }
        if (va == 0) {
            return n;
        }
        error = strings_add_user(s, va);
        if (error != 0) {
            return error;
        }
    }
}

static int strings_path(struct exec_strings *out, const char *path)
{
    size_t n = strlen(path) + 1;

    out->path = kmalloc(n);
    if (out->path == NULL) {
        return -ENOMEM;
    }
    memcpy(out->path, path, n);
    return 0;
}

int exec_strings_from_user(struct exec_strings *out, const char *path,
                           uint64_t argv_va, uint64_t envp_va)
{
    int error = strings_path(out, path);

    if (error != 0) {
        return error;
    }
    out->argc = strings_add_vector(out, argv_va);
    if (out->argc < 0) {
        return out->argc;
    }
    if (out->argc == 0) { /* a program may count on argv[0] */
        error = strings_add(out, "");
        out->argc = 1;
    }
    if (error == 0) {
        out->envc = strings_add_vector(out, envp_va);
        error = out->envc < 0 ? out->envc : 0;
    }
    return error;
}

int exec_strings_set(struct exec_strings *out, const char *path, int argc,
                     const char *const *argv, int envc, const char *const *envp)
{
    int error = strings_path(out, path);

    for (int i = 0; i < argc && error == 0; i++) {
        error = strings_add(out, argv[i]);
    }
    for (int i = 0; i < envc && error == 0; i++) {
        error = strings_add(out, envp[i]);
    }
    out->argc = argc;
    out->envc = envc;
    return error;
}

size_t exec_strings_args_len(const struct exec_strings *strings)
{
    const char *at = strings->buf;

    for (int i = 0; i < strings->argc; i++) {
        at += strlen(at) + 1;
    }
    return (size_t)(at - strings->buf);
}

void exec_strings_free(struct exec_strings *strings)
{
    kfree(strings->path);
    kfree(strings->buf);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Cuts the line into the interpreter and one argument (NULL: none). */
static char *parse_line(char *line, char **argument)
{
    char *name = line + 2, *end = strchr(line, '\n'), *at;

    if (end == NULL) {
        end = line + strlen(line);
    }
    while (end > name && is_blank(end[-1])) {
        end--;
    }
    *end = '\0';
    while (is_blank(*name)) {
        name++;
    }
    for (at = name; *at != '\0' && !is_blank(*at); at++) {
    }
    *argument = NULL;
    if (*at != '\0') {
        *at++ = '\0';
        while (is_blank(*at)) {
            at++;
        }
        *argument = at;
    }
    return *name == '\0' ? NULL : name;
}

int exec_strings_script(struct exec_strings *strings, struct inode *file,
                        bool first_one, char **interpreter)
{
    char line[SCRIPT_LINE + 1] = {0};
    struct exec_strings changed = {0};
    char *name, *argument, *copy;
    size_t first;
    int error;

    if (tmpfile_peek(file, line, SCRIPT_LINE, 0) < 2 || line[0] != '#' ||
        line[1] != '!') {
        return 0;
    }
    name = parse_line(line, &argument);
    if (name == NULL) {
        return -ENOEXEC;
    }
    copy = kmalloc(strlen(name) + 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, name, strlen(name) + 1);
    /* argv[0] gives way to: interpreter [argument] path */
    first = strlen(strings->buf) + 1;
    error = strings_add(&changed, name);
    if (error == 0 && argument != NULL) {
        error = strings_add(&changed, argument);
    }
    if (error == 0) {
        error = strings_add(&changed, first_one ? strings->path : strings->buf);
    }
    if (error == 0) {
        error = strings_grow(&changed, changed.len + strings->len - first);
    }
    if (error != 0) {
        kfree(copy);
        kfree(changed.buf);
        return error;
    }
    memcpy(changed.buf + changed.len, strings->buf + first,
           strings->len - first);
    changed.len += strings->len - first;
    kfree(strings->buf);
    strings->buf = changed.buf;
    strings->len = changed.len;
    strings->size = changed.size;
    strings->argc += argument != NULL ? 2 : 1;
    *interpreter = copy;
    return 0;
}
