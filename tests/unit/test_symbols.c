/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol look-up, and symbol files that mean no good. */
#include "obs_fixture.h"

#include <stdio.h>
#include <time.h>

#include "error.h"
#include "obs/symbols.h"

#define KERNEL UINT64_C(0xffff000008000000)

static const struct fixture_symbol symbols[] = {
    {"flush_tlb_page", KERNEL + 0x100, 0x40, STT_FUNC},
    {"vectors", KERNEL, 0, STT_NOTYPE},
    {"$x", KERNEL + 0x110, 0, STT_NOTYPE},
    {".Llocal", KERNEL + 0x114, 0, STT_NOTYPE},
    {"counters", KERNEL + 0x120, 8, STT_OBJECT},
    {"alias", KERNEL + 0x100, 0, STT_NOTYPE},
    {"huge", KERNEL + 0x200, UINT64_MAX, STT_FUNC},
    {"next", KERNEL + 0x300, 4, STT_FUNC},
    {"last", KERNEL + 0x1000, 0, STT_NOTYPE},
    {"top", UINT64_MAX - 3, 0x1000, STT_FUNC},
};

static struct symbols *load(void)
{
    char *path = fixture_symbols_file(symbols, G_N_ELEMENTS(symbols));
    GError *error = NULL;
    struct symbols *s = symbols_load(path, &error);

    ck_assert_msg(s != NULL, "%s", error ? error->message : "no error");
    fixture_unlink(path);
    return s;
}

static const struct {
    uint64_t pc;
    const char *text;
} lookups[] = {
    {KERNEL, "vectors"},
    {KERNEL + 0xfc, "vectors+0xfc"},
    {KERNEL + 0x100, "flush_tlb_page"},
    {KERNEL + 0x13c, "flush_tlb_page+0x3c"},
    {KERNEL + 0x140, "0xffff000008000140"},
    {KERNEL + 0x2ff, "huge+0xff"},
    {KERNEL + 0x300, "next"},
    {KERNEL + 0x304, "0xffff000008000304"},
    {KERNEL + 0x1ffc, "last+0xffc"},
    {KERNEL + 0x2000, "0xffff000008002000"},
    {KERNEL - 4, "0xffff000007fffffc"},
    {UINT64_MAX - 3, "top"},
    {0, "0x0"},
};

START_TEST(address_gives_its_function_and_offset)
{
    struct symbols *s = load();
    char text[64];

    ck_assert_str_eq(symbols_format(s, lookups[_i].pc, text, sizeof(text)),
                     lookups[_i].text);
    symbols_free(s);
}
END_TEST

START_TEST(name_gives_its_range)
{
    struct symbols *s = load();
    struct symbol one;

    ck_assert(symbols_by_name(s, "flush_tlb_page", &one));
    ck_assert_uint_eq(one.start, KERNEL + 0x100);
    ck_assert_uint_eq(one.size, 0x40);
    ck_assert(!symbols_by_name(s, "counters", &one));
    ck_assert(!symbols_by_name(s, "$x", &one));
    ck_assert_uint_eq(symbols_count(s), 6);
    symbols_free(s);
}
END_TEST

START_TEST(no_symbols_at_all_find_nothing)
{
    struct symbol one;

    ck_assert(!symbols_find(NULL, KERNEL, &one));
    ck_assert(!symbols_by_name(NULL, "x", &one));
    ck_assert_uint_eq(symbols_count(NULL), 0);
    symbols_free(NULL);
}
END_TEST

START_TEST(missing_or_wrong_file_is_a_sentence_with_its_name)
{
    static const char text[] = "this is a text file, no kernel at all";
    GError *error = NULL;
    GByteArray *elf = fixture_elf(symbols, 1);
    char *path;

    ck_assert_ptr_null(symbols_load("/nonexistent/kernel.elf", &error));
    ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_ENVIRONMENT));
    ck_assert_ptr_nonnull(strstr(error->message, "/nonexistent/kernel.elf"));
    g_clear_error(&error);

    path = fixture_file(text, sizeof(text));
    ck_assert_ptr_null(symbols_load(path, &error));
    ck_assert(g_error_matches(error, VM_ERROR, VM_ERROR_BAD_IMAGE));
    ck_assert_ptr_nonnull(strstr(error->message, path));
    g_clear_error(&error);
    fixture_unlink(path);

    ((Elf64_Ehdr *)(void *)elf->data)->e_machine = EM_X86_64;
    path = fixture_file(elf->data, elf->len);
    ck_assert_ptr_null(symbols_load(path, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "machine 62"));
    g_clear_error(&error);
    fixture_unlink(path);
    g_byte_array_unref(elf);
}
END_TEST

/* Loads what is in bytes and asks a few addresses; any answer is fine. */
static void survive(const guint8 *bytes, size_t n)
{
    char *path = fixture_file(bytes, n);
    GError *error = NULL;
    struct symbols *s = symbols_load(path, &error);
    char text[64];

    ck_assert((s == NULL) == (error != NULL));
    for (size_t i = 0; s && i < G_N_ELEMENTS(lookups); i++) {
        (void)symbols_format(s, lookups[i].pc, text, sizeof(text));
    }
    symbols_free(s);
    g_clear_error(&error);
    fixture_unlink(path);
}

START_TEST(file_cut_short_anywhere_is_survived)
{
    GByteArray *elf = fixture_elf(symbols, G_N_ELEMENTS(symbols));

    for (guint n = 0; n < elf->len; n++) {
        survive(elf->data, n);
    }
    g_byte_array_unref(elf);
}
END_TEST

START_TEST(file_with_damaged_bytes_is_survived)
{
    guint32 seed = (guint32)time(NULL);
    GRand *rand = g_rand_new_with_seed(seed);

    printf("symbols: seed %u\n", seed);
    for (unsigned round = 0; round < 3000; round++) {
        GByteArray *elf = fixture_elf(symbols, G_N_ELEMENTS(symbols));
        unsigned n = 1 + g_rand_int(rand) % 8;

        for (unsigned i = 0; i < n; i++) {
            static const guint8 nasty[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
            guint at = g_rand_int(rand) % elf->len;

            elf->data[at] = g_rand_boolean(rand)
                                ? nasty[g_rand_int(rand) % sizeof(nasty)]
                                : (guint8)g_rand_int(rand);
        }
        survive(elf->data, elf->len);
        g_byte_array_unref(elf);
    }
    g_rand_free(rand);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("symbols");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, address_gives_its_function_and_offset, 0,
                        G_N_ELEMENTS(lookups));
    tcase_add_test(tc, name_gives_its_range);
    tcase_add_test(tc, no_symbols_at_all_find_nothing);
    tcase_add_test(tc, missing_or_wrong_file_is_a_sentence_with_its_name);
    tcase_add_test(tc, file_cut_short_anywhere_is_survived);
    tcase_add_test(tc, file_with_damaged_bytes_is_survived);
    return fixture_main("symbols", tc);
}
