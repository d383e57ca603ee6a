/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loader: ELF and Image kernels, placement, and files that lie, made by
 * hand. test_loader_random.c has those that chance made.
 */
#include "loader_fixture.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dev/dev_error.h"

static void check_refused(const void *kernel, size_t size, int code,
                          const char *says, const char *which)
{
    struct loaded_image out = {.entry = 42};
    GError *error = NULL;

    ck_assert_msg(!load(kernel, size, NULL, 0, &out, &error), "%s", which);
    ck_assert_msg(error != NULL && error->domain == DEV_ERROR, "%s", which);
    ck_assert_msg(error->code == code, "%s: %s", which, error->message);
    ck_assert_msg(strstr(error->message, says) != NULL, "%s: %s", which,
                  error->message);
    ck_assert_msg(strstr(error->message, "the-kernel") != NULL, "%s", which);
    ck_assert_uint_eq(out.entry, 42);
    g_error_free(error);
    for (unsigned i = 0; i < RAM_SIZE; i += 61) {
        ck_assert_msg(ram.host[i] == 0xa5, "%s wrote to RAM", which);
    }
}

/* --- good files --- */

START_TEST(elf_goes_to_physical_addresses_and_bss_is_zeroed)
{
    struct elf_file f = elf_make();
    struct loaded_image out;
    GError *error = NULL;

    ck_assert_msg(load(&f, sizeof(f), NULL, 0, &out, &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_int_eq(out.kind, LOADER_ELF);
    ck_assert_uint_eq(out.entry, BOARD_RAM_BASE + 0x80010);
    ck_assert_uint_eq(out.kernel_start, BOARD_RAM_BASE + 0x80000);
    ck_assert_uint_eq(out.kernel_end, BOARD_RAM_BASE + 0x92000);
    ck_assert_int_eq(memcmp(ram.host + 0x80000, f.code, CODE_SIZE), 0);
    ck_assert_uint_eq(ram.host[0x80000 + CODE_SIZE], 0xa5);
    ck_assert_uint_eq(ram.host[0x9007f], 0x22);
    for (unsigned i = 0x90080; i < 0x92000; i++) {
        ck_assert_uint_eq(ram.host[i], 0);
    }
    ck_assert_uint_eq(ram.host[0x92000], 0xa5);
    ck_assert_uint_eq(out.initrd_end, 0);
    ck_assert_uint_ge(out.dtb, out.kernel_end);
    ck_assert_uint_eq(out.dtb % 8, 0);
    ck_assert_str_eq(out.initrd_sha256, "");
}
END_TEST

START_TEST(elf_linked_at_its_physical_address_enters_there)
{
    struct elf_file f = elf_make();
    struct loaded_image out;

    f.header.e_entry = BOARD_RAM_BASE + 0x80004;
    ck_assert(load(&f, sizeof(f), NULL, 0, &out, NULL));
    ck_assert_uint_eq(out.entry, BOARD_RAM_BASE + 0x80004);
}
END_TEST

START_TEST(elf_of_an_unaligned_buffer_is_read_well)
{
    struct elf_file f = elf_make();
    uint8_t *odd = g_malloc(sizeof(f) + 1);
    g_autoptr(GBytes) whole = NULL;
    g_autoptr(GBytes) part = NULL;
    struct loaded_image out;

    memcpy(odd + 1, &f, sizeof(f));
    whole = g_bytes_new_take(odd, sizeof(f) + 1);
    part = g_bytes_new_from_bytes(whole, 1, sizeof(f));
    ck_assert(loader_load_bytes(&ram, part, "k", NULL, NULL, &out, NULL));
    ck_assert_uint_eq(out.entry, BOARD_RAM_BASE + 0x80010);
}
END_TEST

START_TEST(image_goes_to_text_offset_and_its_size_is_reserved)
{
    uint8_t image[IMAGE_FILE_SIZE];
    struct loaded_image out;

    image_make(image, 0x200000, 0x5000, 0xa);
    ck_assert(load(image, sizeof(image), NULL, 0, &out, NULL));
    ck_assert_int_eq(out.kind, LOADER_IMAGE);
    ck_assert_uint_eq(out.entry, BOARD_RAM_BASE + 0x200000);
    ck_assert_uint_eq(out.kernel_end, BOARD_RAM_BASE + 0x205000);
    ck_assert_int_eq(memcmp(ram.host + 0x200000, image, sizeof(image)), 0);
    ck_assert_uint_eq(ram.host[0x204fff], 0);
    ck_assert_uint_eq(ram.host[0x205000], 0xa5);
}
END_TEST

START_TEST(image_without_a_size_is_the_old_format)
{
    uint8_t image[IMAGE_FILE_SIZE];
    struct loaded_image out;

    image_make(image, 0x12345678, 0, 0);
    ck_assert(load(image, sizeof(image), NULL, 0, &out, NULL));
    ck_assert_uint_eq(out.entry, BOARD_RAM_BASE + 0x80000);
    ck_assert_uint_eq(out.kernel_end, BOARD_RAM_BASE + 0x81000);
}
END_TEST

START_TEST(kernel_initrd_and_device_tree_do_not_overlap)
{
    static const size_t sizes[] = {1, 4096, 4097, 1 << 20, 3 << 20, 6 << 20};
    uint8_t image[IMAGE_FILE_SIZE];
    g_autofree uint8_t *initrd = g_malloc(sizes[_i]);
    struct loaded_image out;

    memset(initrd, 0x44, sizes[_i]);
    image_make(image, 0, 0x8000, 0);
    ck_assert(load(image, sizeof(image), initrd, sizes[_i], &out, NULL));
    ck_assert_uint_eq(out.initrd_end - out.initrd_start, sizes[_i]);
    ck_assert_uint_eq(out.initrd_start % 4096, 0);
    ck_assert_uint_ge(out.initrd_start, out.kernel_end);
    ck_assert_uint_ge(out.dtb, out.initrd_end);
    ck_assert_uint_le(out.dtb + LOADER_DTB_MAX, ram.base + ram.size);
    ck_assert_int_eq(
        memcmp(ram.host + (out.initrd_start - ram.base), initrd, sizes[_i]), 0);
}
END_TEST

START_TEST(hashes_are_sha256_of_the_files)
{
    uint8_t image[IMAGE_FILE_SIZE];
    struct loaded_image out;

    image_make(image, 0, 0x8000, 0);
    ck_assert(load(image, sizeof(image), "abc", 3, &out, NULL));
    ck_assert_str_eq(
        out.initrd_sha256,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_uint_eq(strlen(out.kernel_sha256), 64);
}
END_TEST

START_TEST(device_tree_is_copied_to_its_place_and_bounded)
{
    uint8_t image[IMAGE_FILE_SIZE];
    g_autoptr(GBytes) small = g_bytes_new_static("tree", 4);
    g_autoptr(GBytes) big =
        g_bytes_new_take(g_malloc0(LOADER_DTB_MAX + 1), LOADER_DTB_MAX + 1);
    struct loaded_image out;
    GError *error = NULL;

    image_make(image, 0, 0x8000, 0);
    ck_assert(load(image, sizeof(image), NULL, 0, &out, NULL));
    ck_assert(loader_place_dtb(&ram, &out, small, NULL));
    ck_assert_int_eq(memcmp(ram.host + (out.dtb - ram.base), "tree", 4), 0);
    ck_assert(!loader_place_dtb(&ram, &out, big, &error));
    ck_assert(g_error_matches(error, DEV_ERROR, DEV_ERROR_TOO_BIG));
    g_error_free(error);
}
END_TEST

/* --- bad files --- */

static void elf_break(struct elf_file *f, int which)
{
    switch (which) {
    case 0:
        f->header.e_ident[EI_CLASS] = ELFCLASS32;
        break;
    case 1:
        f->header.e_ident[EI_DATA] = ELFDATA2MSB;
        break;
    case 2:
        f->header.e_machine = EM_X86_64;
        break;
    case 3:
        f->header.e_type = ET_DYN;
        break;
    case 4:
        f->header.e_phnum = 0;
        break;
    case 5:
        f->header.e_phoff = sizeof(*f) - 10;
        break;
    case 6:
        f->header.e_phoff = ~0ull - 8;
        break;
    case 7:
        f->phdr[0].p_filesz = CODE_SIZE + 1;
        break;
    case 8:
        f->phdr[1].p_offset = sizeof(*f) - 0x7f;
        break;
    case 9:
        f->phdr[1].p_offset = ~0ull - 0x10;
        break;
    case 10:
        f->phdr[1].p_paddr = BOARD_RAM_BASE + RAM_SIZE - 0x1fff;
        break;
    case 11:
        f->phdr[0].p_paddr = BOARD_RAM_BASE - 4;
        break;
    case 12:
        f->phdr[1].p_memsz = ~0ull - BOARD_RAM_BASE;
        break;
    case 13:
        f->phdr[1].p_paddr = BOARD_RAM_BASE + 0x80000 + CODE_SIZE - 1;
        break;
    case 14:
        f->header.e_entry = 0xffff000040080000ull + CODE_SIZE;
        break;
    case 15:
        f->header.e_entry += 2;
        break;
    case 16:
        f->phdr[0].p_type = PT_NOTE;
        f->phdr[1].p_type = PT_NOTE;
        break;
    default: /* more headers than a kernel has; the extended count */
        f->header.e_phnum = PN_XNUM;
        break;
    }
}

static const struct {
    const char *name;
    int code;
    const char *says;
} elf_lies[] = {
    {"32-bit", DEV_ERROR_BAD_IMAGE, "class is 1"},
    {"big-endian", DEV_ERROR_BAD_IMAGE, "encoding is 2"},
    {"x86-64", DEV_ERROR_BAD_IMAGE, "machine is 62, must be 183"},
    {"shared object", DEV_ERROR_BAD_IMAGE, "type is 3"},
    {"no segments", DEV_ERROR_BAD_IMAGE, "0 program headers"},
    {"headers past the end", DEV_ERROR_BAD_IMAGE, "program headers"},
    {"headers at the end of the world", DEV_ERROR_BAD_IMAGE, "program"},
    {"filesz above memsz", DEV_ERROR_BAD_IMAGE, "0x301"},
    {"segment past the end", DEV_ERROR_BAD_IMAGE, "cut short"},
    {"segment offset wraps", DEV_ERROR_BAD_IMAGE, "0xffffffffffffffef"},
    {"ends past RAM", DEV_ERROR_TOO_BIG, "0x407fe001"},
    {"begins before RAM", DEV_ERROR_TOO_BIG, "0x3ffffffc"},
    {"memory size wraps", DEV_ERROR_TOO_BIG, "RAM is 0x800000 bytes"},
    {"segments overlap", DEV_ERROR_OVERLAP, "overlaps"},
    {"entry outside", DEV_ERROR_BAD_IMAGE, "entry point"},
    {"entry misaligned", DEV_ERROR_BAD_IMAGE, "entry point"},
    {"nothing to load", DEV_ERROR_BAD_IMAGE, "0 loaded segments"},
    {"extended header count", DEV_ERROR_BAD_IMAGE, "65535 program headers"},
};

START_TEST(lying_elf_is_refused_and_nothing_is_written)
{
    struct elf_file f = elf_make();

    elf_break(&f, _i);
    check_refused(&f, sizeof(f), elf_lies[_i].code, elf_lies[_i].says,
                  elf_lies[_i].name);
}
END_TEST

static const struct {
    const char *name;
    uint64_t text_offset, image_size, flags;
    int code;
    const char *says;
} image_lies[] = {
    {"larger than RAM", 0, RAM_SIZE + 1ull, 0, DEV_ERROR_TOO_BIG, "0x800001"},
    {"offset past RAM", RAM_SIZE, 0x1000, 0, DEV_ERROR_TOO_BIG, "0x800000"},
    {"offset wraps", ~3ull, 0x1000, 0, DEV_ERROR_TOO_BIG, "more memory"},
    {"size wraps", 0x80000, ~0ull, 0, DEV_ERROR_TOO_BIG, "more memory"},
    {"file past RAM", RAM_SIZE - 0x800, 1, 0, DEV_ERROR_TOO_BIG, "0x1000"},
    {"odd offset", 0x80001, 0x1000, 0, DEV_ERROR_BAD_IMAGE, "0x80001"},
    {"big-endian", 0, 0x1000, 1, DEV_ERROR_BAD_IMAGE, "little-endian"},
    {"16K pages", 0, 0x1000, 4, DEV_ERROR_BAD_IMAGE, "16 KiB"},
    {"64K pages", 0, 0x1000, 6, DEV_ERROR_BAD_IMAGE, "64 KiB"},
    {"no room for a tree", 0, RAM_SIZE, 0, DEV_ERROR_TOO_BIG, ""},
};

START_TEST(lying_image_is_refused)
{
    uint8_t image[IMAGE_FILE_SIZE];
    struct loaded_image out;
    GError *error = NULL;

    image_make(image, image_lies[_i].text_offset, image_lies[_i].image_size,
               image_lies[_i].flags);
    ck_assert_msg(!load(image, sizeof(image), NULL, 0, &out, &error), "%s",
                  image_lies[_i].name);
    ck_assert_msg(error->code == image_lies[_i].code, "%s: %s",
                  image_lies[_i].name, error->message);
    ck_assert_msg(strstr(error->message, image_lies[_i].says) != NULL, "%s: %s",
                  image_lies[_i].name, error->message);
    g_error_free(error);
}
END_TEST

START_TEST(other_kinds_are_refused_with_advice)
{
    uint8_t bytes[128] = {0x1f, 0x8b, 8};

    check_refused(bytes, sizeof(bytes), DEV_ERROR_BAD_IMAGE, "gunzip", "gzip");
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, "MZ\0\0zimg", 8);
    check_refused(bytes, sizeof(bytes), DEV_ERROR_BAD_IMAGE, "EFI", "zboot");
    memset(bytes, 0xd5, sizeof(bytes));
    check_refused(bytes, sizeof(bytes), DEV_ERROR_BAD_IMAGE, "d5 d5 d5 d5",
                  "raw");
    check_refused(bytes, 3, DEV_ERROR_BAD_IMAGE, "too short", "short");
    check_refused(bytes, 0, DEV_ERROR_BAD_IMAGE, "too short", "empty");
    check_refused("\177ELF", 4, DEV_ERROR_BAD_IMAGE, "cut short", "magic");
}
END_TEST

START_TEST(initrd_that_does_not_fit_is_refused)
{
    static const size_t sizes[] = {RAM_SIZE + 1, RAM_SIZE - 4096,
                                   RAM_SIZE - (1 << 20), 0};
    g_autofree uint8_t *initrd = g_malloc0(RAM_SIZE + 1);
    uint8_t image[IMAGE_FILE_SIZE];

    image_make(image, 0, 0x8000, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        struct loaded_image out;
        GError *error = NULL;

        ck_assert(!load(image, sizeof(image), initrd, sizes[i], &out, &error));
        ck_assert(g_error_matches(error, DEV_ERROR, DEV_ERROR_TOO_BIG));
        g_error_free(error);
    }
}
END_TEST

START_TEST(impossible_ram_is_refused)
{
    struct elf_file f = elf_make();
    struct loaded_image out;
    struct ram saved = ram;
    GError *error = NULL;

    ram.size = 0;
    ck_assert(!load(&f, sizeof(f), NULL, 0, &out, &error));
    g_clear_error(&error);
    ram.size = ~0ull;
    ck_assert(!load(&f, sizeof(f), NULL, 0, &out, &error));
    g_clear_error(&error);
    ram = saved;
}
END_TEST

/* --- files by name --- */

START_TEST(files_are_loaded_by_name)
{
    g_autofree char *dir = g_dir_make_tmp("loader-XXXXXX", NULL);
    g_autofree char *kernel = g_build_filename(dir, "kernel.img", NULL);
    g_autofree char *initrd = g_build_filename(dir, "initrd", NULL);
    uint8_t image[IMAGE_FILE_SIZE];
    struct loaded_image out;
    GError *error = NULL;

    image_make(image, 0, 0x8000, 0);
    ck_assert(g_file_set_contents(kernel, (char *)image, sizeof(image), NULL));
    ck_assert(g_file_set_contents(initrd, "cpio", 4, NULL));
    ck_assert_msg(loader_load(&ram, kernel, initrd, &out, &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_uint_eq(out.initrd_end - out.initrd_start, 4);
    (void)g_unlink(kernel);
    (void)g_unlink(initrd);
    (void)g_rmdir(dir);
}
END_TEST

START_TEST(files_that_cannot_be_read_are_named)
{
    g_autofree char *dir = g_dir_make_tmp("loader-XXXXXX", NULL);
    g_autofree char *empty = g_build_filename(dir, "empty", NULL);
    g_autofree char *fifo = g_build_filename(dir, "fifo", NULL);
    g_autofree char *missing = g_build_filename(dir, "missing", NULL);
    g_autofree char *huge = g_build_filename(dir, "huge", NULL);
    const struct {
        const char *path;
        int code;
        const char *says;
    } bad[] = {
        {missing, DEV_ERROR_IO, "missing"},
        {dir, DEV_ERROR_IO, "not a regular file"},
        {fifo, DEV_ERROR_IO, "not a regular file"},
        {empty, DEV_ERROR_BAD_IMAGE, "0 bytes"},
        {huge, DEV_ERROR_TOO_BIG, "1099511627776"},
    };

    ck_assert(g_file_set_contents(empty, "", 0, NULL));
    ck_assert(g_file_set_contents(huge, "", 0, NULL));
    ck_assert_int_eq(truncate(huge, 1ll << 40), 0); /* sparse */
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct loaded_image out;
        GError *error = NULL;

        ck_assert(!loader_load(&ram, bad[i].path, NULL, &out, &error));
        ck_assert_msg(error->code == bad[i].code, "%s", error->message);
        ck_assert_msg(strstr(error->message, bad[i].says) != NULL, "%s",
                      error->message);
        ck_assert(g_str_has_prefix(error->message, "kernel: "));
        g_error_free(error);
    }
    (void)g_unlink(empty);
    (void)g_unlink(fifo);
    (void)g_unlink(huge);
    (void)g_rmdir(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loader");
    TCase *tc = tcase_create("loader");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, elf_goes_to_physical_addresses_and_bss_is_zeroed);
    tcase_add_test(tc, elf_linked_at_its_physical_address_enters_there);
    tcase_add_test(tc, elf_of_an_unaligned_buffer_is_read_well);
    tcase_add_test(tc, image_goes_to_text_offset_and_its_size_is_reserved);
    tcase_add_test(tc, image_without_a_size_is_the_old_format);
    tcase_add_loop_test(tc, kernel_initrd_and_device_tree_do_not_overlap, 0, 6);
    tcase_add_test(tc, hashes_are_sha256_of_the_files);
    tcase_add_test(tc, device_tree_is_copied_to_its_place_and_bounded);
    tcase_add_loop_test(tc, lying_elf_is_refused_and_nothing_is_written, 0,
                        G_N_ELEMENTS(elf_lies));
    tcase_add_loop_test(tc, lying_image_is_refused, 0,
                        G_N_ELEMENTS(image_lies));
    tcase_add_test(tc, other_kinds_are_refused_with_advice);
    tcase_add_test(tc, initrd_that_does_not_fit_is_refused);
    tcase_add_test(tc, impossible_ram_is_refused);
    tcase_add_test(tc, files_are_loaded_by_name);
    tcase_add_test(tc, files_that_cannot_be_read_are_named);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
