/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest of a litmus test, assembled; see image.h. */
#include "litmus/image.h"

#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "error.h"

#ifndef LITMUS_AS
#define LITMUS_AS "aarch64-linux-gnu-as"
#endif

/* Goes into the hash: a new frame makes old images useless. */
#define FRAME_VERSION "frame 1"

_Static_assert(sizeof(struct litmus_area) == 48, "the vectors know offsets");

/* --- the source --- */

static const char head[] =
    "    .arch armv8.5-a+lse+rcpc\n"
    "    .text\n"
    "head:\n"
    "    b start\n"
    "    .long 0\n"
    "    .quad 0, 0x200000, 0xa, 0, 0, 0\n"
    "    .ascii \"ARM\\x64\"\n"
    "    .long 0\n"
    /* x0: the thread's table of values, see machine.c. */
    "start:\n"
    "    msr spsel, #1\n"
    "    ldp x1, x2, [x0]\n"
    "    msr mair_el1, x1\n"
    "    msr tcr_el1, x2\n"
    "    ldp x1, x2, [x0, #16]\n"
    "    msr ttbr0_el1, x1\n"
    "    msr ttbr1_el1, x1\n"
    "    msr vbar_el1, x2\n"
    "    ldp x1, x2, [x0, #32]\n"
    "    mov sp, x2\n"
    "    isb\n"
    "    msr sctlr_el1, x1\n"
    "    isb\n"
    "    ldr x1, [x0, #48]\n"
    "    br x1\n";

struct source {
    GString *text;
    GPtrArray *lines; /* struct litmus_insn * or NULL, a line each */
};

static void put(struct source *s, const struct litmus_insn *insn,
                const char *format, ...) G_GNUC_PRINTF(3, 4);

/* One or more whole lines, all of this instruction. */
static void put(struct source *s, const struct litmus_insn *insn,
                const char *format, ...)
{
    gsize before = s->text->len;
    va_list args;

    va_start(args, format);
    g_string_append_vprintf(s->text, format, args);
    va_end(args);
    for (gsize i = before; s->lines && i < s->text->len; i++) {
        if (s->text->str[i] == '\n') {
            g_ptr_array_add(s->lines, (gpointer)insn);
        }
    }
}

static bool is_label_of(const struct litmus_thread *t, const char *word)
{
    const GPtrArray *lists[] = {t->code, t->handler};

    for (unsigned k = 0; k < G_N_ELEMENTS(lists); k++) {
        for (guint i = 0; lists[k] && i < lists[k]->len; i++) {
            if (litmus_insn_has_label(lists[k]->pdata[i], word)) {
                return true;
            }
        }
    }
    return false;
}

/* Labels in operands get the thread's prefix: L0 is P1_L0. */
static char *rename_labels(const struct litmus_test *test, unsigned thread,
                           const char *text)
{
    GString *out = g_string_new(NULL);
    const char *p = text + strcspn(text, " \t");

    g_string_append_len(out, text, p - text);
    while (*p) {
        const char *word = p;
        g_autofree char *copy = NULL;

        while (g_ascii_isalnum(*p) || *p == '_' || *p == '.') {
            p++;
        }
        if (p == word) {
            g_string_append_c(out, *p++);
            continue;
        }
        copy = g_strndup(word, (gsize)(p - word));
        if (is_label_of(&test->thread[thread], copy)) {
            g_string_append_printf(out, "P%u_", thread);
        }
        g_string_append(out, copy);
    }
    return g_string_free(out, FALSE);
}

static void put_code(struct source *s, const struct litmus_test *test,
                     unsigned thread, const GPtrArray *insns)
{
    for (guint i = 0; insns && i < insns->len; i++) {
        const struct litmus_insn *insn = insns->pdata[i];
        g_autofree char *text = rename_labels(test, thread, insn->text);

        for (guint k = 0; k < insn->labels->len; k++) {
            put(s, insn, "P%u_%s:\n", thread, (char *)insn->labels->pdata[k]);
        }
        put(s, insn, "    %s\n    b .+4\n", text);
    }
}

static void put_vector(struct source *s, const struct litmus_test *test,
                       unsigned thread)
{
    put(s, NULL,
        "    stp x0, x1, [sp]\n"
        "    mrs x0, esr_el1\n"
        "    mrs x1, far_el1\n"
        "    stp x0, x1, [sp, #16]\n"
        "    mrs x0, elr_el1\n"
        "    ldr x1, [sp, #40]\n"
        "    add x1, x1, #1\n"
        "    stp x0, x1, [sp, #32]\n");
    if (test->thread[thread].handler) {
        put(s, NULL, "    ldp x0, x1, [sp]\n    b handler%u\n", thread);
    } else if (test->mode == LITMUS_FATAL) {
        put(s, NULL, "    ldp x0, x1, [sp]\n    b dead%u\n", thread);
    } else if (test->mode == LITMUS_SKIP) {
        put(s, NULL,
            "    add x0, x0, #%u\n    msr elr_el1, x0\n"
            "    ldp x0, x1, [sp]\n    eret\n",
            LITMUS_SLOT);
    } else {
        put(s, NULL, "    ldp x0, x1, [sp]\n    eret\n");
    }
}

static void put_thread(struct source *s, const struct litmus_test *test,
                       unsigned thread)
{
    const struct litmus_thread *t = &test->thread[thread];
    unsigned base = 0x2000 * (1 + thread);

    put(s, NULL, "    .org 0x%x\n", base + 0x200);
    put_vector(s, test, thread);
    put(s, NULL, "    .org 0x%x\n", base + 0x400);
    put_vector(s, test, thread);
    put(s, NULL, "    .org 0x%x\n", base + 0x1000);
    put_code(s, test, thread, t->code);
    put(s, NULL, "    b .\n    b .\nhandler%u:\n", thread);
    put_code(s, test, thread, t->handler);
    put(s, NULL, "    b .\n    b .\ndead%u:\n    b .\n    b .\n", thread);
}

char *litmus_assembly(const struct litmus_test *test, GPtrArray *out_lines)
{
    struct source s = {.text = g_string_new(NULL), .lines = out_lines};

    put(&s, NULL, "%s", head);
    for (unsigned i = 0; i < test->threads; i++) {
        put_thread(&s, test, i);
    }
    put(&s, NULL, "    .org 0x20000\n");
    return g_string_free(s.text, FALSE);
}

/* --- the assembler --- */

static const char *assembler(void)
{
    const char *as = g_getenv("SHOOTDOWN_AS");

    return as && *as ? as : LITMUS_AS;
}

/* Its first complaint, told of the test's own line and column. */
static void set_refused(const char *name, const char *said,
                        const GPtrArray *lines, GError **error)
{
    g_auto(GStrv) each = g_strsplit(said, "\n", -1);

    for (char **line = each; *line; line++) {
        const char *p = strstr(*line, ": Error: ");
        const char *number = p;
        guint64 at = 0;

        while (number && number > *line && g_ascii_isdigit(number[-1])) {
            number--;
        }
        if (number) {
            at = g_ascii_strtoull(number, NULL, 10);
        }
        if (p && at >= 1 && at <= lines->len && lines->pdata[at - 1]) {
            const struct litmus_insn *insn = lines->pdata[at - 1];

            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "%s:%u:%u: '%s': the assembler says: %s", name,
                        insn->line, insn->column, insn->text,
                        p + strlen(": Error: "));
            return;
        }
    }
    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                "%s: the assembler %s failed: %s", name, assembler(), said);
}

static bool run_assembler(const char *name, const char *source,
                          const char *object, const GPtrArray *lines,
                          GError **error)
{
    const char *argv[] = {assembler(), "-o", object, source, NULL};
    g_autofree char *said = NULL;
    g_autoptr(GError) problem = NULL;
    int status = 0;

    if (!g_spawn_sync(NULL, (char **)argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL,
                      NULL, NULL, &said, &status, &problem)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the assembler '%s' does not start: %s; install "
                    "binutils-aarch64-linux-gnu or name another one in "
                    "SHOOTDOWN_AS",
                    assembler(), problem->message);
        return false;
    }
    if (!g_spawn_check_wait_status(status, NULL)) {
        set_refused(name, said, lines, error);
        return false;
    }
    return true;
}

static uint64_t le(const uint8_t *p, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)p[i] << 8 * i;
    }
    return value;
}

/* The contents of .text in an ELF64 object: the first PROGBITS of code. */
static bool text_of(const uint8_t *o, gsize size, const uint8_t **out,
                    gsize *out_size)
{
    uint64_t table, entry, count;

    if (size < 64 || memcmp(o, "\177ELF\2\1", 6) != 0) {
        return false;
    }
    table = le(o + 40, 8);
    entry = le(o + 58, 2);
    count = le(o + 60, 2);
    if (entry < 64 || table > size || count * entry > size - table) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *s = o + table + i * entry;
        uint64_t at = le(s + 24, 8), length = le(s + 32, 8);

        if (le(s + 4, 4) == 1 && le(s + 8, 8) & 4) { /* PROGBITS, EXECINSTR */
            if (at > size || length > size - at) {
                return false;
            }
            *out = o + at;
            *out_size = length;
            return true;
        }
    }
    return false;
}

static bool assemble(const char *name, const char *text, const char *path,
                     const GPtrArray *lines, GError **error)
{
    g_autofree char *source = g_strdup_printf("%s.%d.s", path, (int)getpid());
    g_autofree char *object = g_strdup_printf("%s.%d.o", path, (int)getpid());
    g_autofree char *bytes = NULL;
    const uint8_t *code;
    gsize size, code_size;
    bool ok = g_file_set_contents(source, text, -1, error) &&
              run_assembler(name, source, object, lines, error) &&
              g_file_get_contents(object, &bytes, &size, error);

    if (ok && !text_of((const uint8_t *)bytes, size, &code, &code_size)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "what the assembler %s makes is no AArch64 object file",
                    assembler());
        ok = false;
    }
    /* Renamed into place: others may make the same at the same time. */
    ok = ok && g_file_set_contents(path, (const char *)code, (gssize)code_size,
                                   error);
    (void)g_unlink(source);
    (void)g_unlink(object);
    return ok;
}

struct litmus_image *litmus_image_new(const struct litmus_test *test,
                                      const char *name, GError **error)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new();
    g_autofree char *text = litmus_assembly(test, lines);
    g_autofree char *keyed =
        g_strconcat(FRAME_VERSION "\n", assembler(), "\n", text, NULL);
    g_autofree char *hash =
        g_compute_checksum_for_string(G_CHECKSUM_SHA256, keyed, -1);
    g_autofree char *dir =
        g_build_filename(g_get_user_cache_dir(), "shootdown", "litmus", NULL);
    g_autofree char *file = g_strconcat(hash, ".img", NULL);
    struct litmus_image *image = g_new0(struct litmus_image, 1);

    image->path = g_build_filename(dir, file, NULL);
    image->as = g_strdup(assembler());
    image->is_cached = g_file_test(image->path, G_FILE_TEST_IS_REGULAR);
    for (unsigned i = 0; i < test->threads; i++) {
        const struct litmus_thread *t = &test->thread[i];

        image->code[i] = t->code->len;
        image->handler[i] = t->handler ? t->handler->len : 0;
    }
    if (image->is_cached) {
        return image;
    }
    if (g_mkdir_with_parents(dir, 0700) != 0) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the cache directory %s cannot be made; set "
                    "XDG_CACHE_HOME to one that can",
                    dir);
    } else if (assemble(name, text, image->path, lines, error)) {
        return image;
    }
    litmus_image_free(image);
    return NULL;
}

void litmus_image_free(struct litmus_image *image)
{
    if (image) {
        g_free(image->path);
        g_free(image->as);
        g_free(image);
    }
}
