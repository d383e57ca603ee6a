/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loader and files that nobody made: random cuts and mutations of good
 * ones, from a seed that is printed (SHOOTDOWN_TEST_SEED repeats it).
 */
#include "loader_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dev/dev_error.h"

static guint32 seed_get(void)
{
    const char *given = g_getenv("SHOOTDOWN_TEST_SEED");
    guint32 seed =
        given != NULL ? (guint32)strtoul(given, NULL, 0) : (guint32)time(NULL);

    printf("SHOOTDOWN_TEST_SEED=%u\n", seed);
    fflush(stdout);
    return seed;
}

/* What must hold of anything that was accepted. */
static void check_sane(const struct loaded_image *out)
{
    uint64_t ram_end = ram.base + ram.size;

    ck_assert_uint_ge(out->kernel_start, ram.base);
    ck_assert_uint_lt(out->kernel_start, out->kernel_end);
    ck_assert_uint_ge(out->entry, out->kernel_start);
    ck_assert_uint_lt(out->entry, out->kernel_end);
    ck_assert_uint_eq(out->entry % 4, 0);
    ck_assert_uint_ge(out->dtb, out->kernel_end);
    ck_assert_uint_le(out->dtb + LOADER_DTB_MAX, ram_end);
    if (out->initrd_end != 0) {
        ck_assert_uint_ge(out->initrd_start, out->kernel_end);
        ck_assert_uint_le(out->initrd_end, out->dtb);
    }
}

/* Values that tend to sit on the edges of checks. */
static uint64_t nasty_value(GRand *rand)
{
    static const uint64_t values[] = {
        0,
        1,
        4,
        0x7f,
        0xff,
        0x1000,
        RAM_SIZE,
        RAM_SIZE - 1,
        BOARD_RAM_BASE,
        BOARD_RAM_BASE + RAM_SIZE,
        BOARD_RAM_BASE - 1,
        0x7fffffff,
        0xffffffff,
        0x7fffffffffffffffull,
        0x8000000000000000ull,
        ~0ull,
        ~0ull - 0x1000,
    };
    uint64_t value = values[g_rand_int_range(rand, 0, G_N_ELEMENTS(values))];

    return g_rand_boolean(rand)
               ? value
               : value + (uint64_t)g_rand_int_range(rand, -9, 9);
}

static void mutate(GRand *rand, uint8_t *bytes, size_t size, size_t front)
{
    int count = g_rand_int_range(rand, 1, 5);

    for (int i = 0; i < count; i++) {
        size_t at = (size_t)g_rand_int_range(
            rand, 0,
            (gint32)(g_rand_int_range(rand, 0, 8) != 0 ? front : size));

        if (g_rand_boolean(rand)) {
            uint64_t value = nasty_value(rand);
            size_t width = (size_t)1 << g_rand_int_range(rand, 0, 4);

            at &= ~(width - 1);
            if (at + width <= size) {
                memcpy(bytes + at, &value, width);
            }
        } else {
            bytes[at] ^= (uint8_t)(1u << g_rand_int_range(rand, 0, 8));
        }
    }
}

static void fuzz(const void *good, size_t size, size_t front, unsigned rounds,
                 guint32 seed)
{
    GRand *rand = g_rand_new_with_seed(seed);
    unsigned accepted = 0;

    for (unsigned i = 0; i < rounds; i++) {
        size_t length = g_rand_int_range(rand, 0, 4) != 0
                            ? size
                            : (size_t)g_rand_int_range(rand, 1, (gint32)size);
        /* Exactly as long as the file: a read past it is an error of the
         * allocator or the sanitizer. */
        uint8_t *bytes = g_malloc(length);
        g_autoptr(GBytes) kernel = NULL;
        struct loaded_image out;
        GError *error = NULL;

        memcpy(bytes, good, length);
        if (i % 8 != 0) {
            mutate(rand, bytes, length, MIN(front, length));
        }
        kernel = g_bytes_new_take(bytes, length);
        if (loader_load_bytes(&ram, kernel, "fuzz", kernel, "initrd", &out,
                              &error)) {
            ck_assert_ptr_null(error);
            check_sane(&out);
            accepted++;
        } else {
            ck_assert_ptr_nonnull(error);
            ck_assert(error->domain == DEV_ERROR);
            ck_assert_uint_gt(strlen(error->message), 20);
            g_error_free(error);
        }
    }
    printf("%u of %u accepted\n", accepted, rounds);
    fflush(stdout);
    ck_assert_uint_gt(accepted, 0);
    ck_assert_uint_lt(accepted, rounds);
    g_rand_free(rand);
}

START_TEST(random_elf_files_are_refused_or_sane)
{
    struct elf_file f = elf_make();

    fuzz(&f, sizeof(f), sizeof(f.header) + sizeof(f.phdr), 20000, seed_get());
}
END_TEST

START_TEST(random_image_files_are_refused_or_sane)
{
    uint8_t image[IMAGE_FILE_SIZE];

    image_make(image, 0x80000, 0x20000, 0xa);
    fuzz(image, sizeof(image), 64, 10000, seed_get());
}
END_TEST

START_TEST(every_truncation_of_an_elf_file_is_refused)
{
    struct elf_file f = elf_make();

    for (size_t length = 1; length < sizeof(f); length++) {
        struct loaded_image out;
        GError *error = NULL;

        ck_assert_msg(!load(&f, length, NULL, 0, &out, &error), "%zu", length);
        ck_assert_ptr_nonnull(error);
        g_error_free(error);
    }
}
END_TEST
int main(void)
{
    Suite *suite = suite_create("loader_random");
    TCase *tc = tcase_create("files");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, random_elf_files_are_refused_or_sane);
    tcase_add_test(tc, random_image_files_are_refused_or_sane);
    tcase_add_test(tc, every_truncation_of_an_elf_file_is_refused);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
