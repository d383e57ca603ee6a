/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of the loader share: RAM with a guard on both sides, and the
 * makers of good files, which is where every way of breaking one begins.
 */
#ifndef TESTS_UNIT_LOADER_FIXTURE_H
#define TESTS_UNIT_LOADER_FIXTURE_H

#include <check.h>
#include <elf.h>
#include <string.h>

#include "abi/board.h"
#include "dev/loader.h"

#define RAM_SIZE (8u << 20)
#define GUARD 4096

/* RAM with guard bytes on both sides, so that a write outside shows even
 * without a sanitizer. */
static uint8_t *backing;
static struct ram ram;

static void setup(void)
{
    backing = g_malloc(RAM_SIZE + 2 * GUARD);
    memset(backing, 0xa5, RAM_SIZE + 2 * GUARD);
    ram = (struct ram){
        .base = BOARD_RAM_BASE,
        .size = RAM_SIZE,
        .host = backing + GUARD,
    };
}

static void teardown(void)
{
    for (unsigned i = 0; i < GUARD; i++) {
        ck_assert_uint_eq(backing[i], 0xa5);
        ck_assert_uint_eq(backing[GUARD + RAM_SIZE + i], 0xa5);
    }
    g_free(backing);
}

/* --- makers --- */

#define CODE_SIZE 0x300
#define SEGMENT_OFFSET 0x200

/* Two segments: code at RAM base + 0x80000 (linked high), data with .bss at
 * + 0x90000. */
struct elf_file {
    Elf64_Ehdr header;
    Elf64_Phdr phdr[3];
    uint8_t
        padding[SEGMENT_OFFSET - sizeof(Elf64_Ehdr) - 3 * sizeof(Elf64_Phdr)];
    uint8_t code[CODE_SIZE];
    uint8_t data[0x80];
};

static struct elf_file elf_make(void)
{
    struct elf_file f = {0};

    memcpy(f.header.e_ident, ELFMAG, SELFMAG);
    f.header.e_ident[EI_CLASS] = ELFCLASS64;
    f.header.e_ident[EI_DATA] = ELFDATA2LSB;
    f.header.e_ident[EI_VERSION] = EV_CURRENT;
    f.header.e_type = ET_EXEC;
    f.header.e_machine = EM_AARCH64;
    f.header.e_version = EV_CURRENT;
    f.header.e_entry = 0xffff000040080010ull;
    f.header.e_phoff = offsetof(struct elf_file, phdr);
    f.header.e_ehsize = sizeof(f.header);
    f.header.e_phentsize = sizeof(f.phdr[0]);
    f.header.e_phnum = 3;
    f.phdr[0] = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_flags = PF_R | PF_X,
        .p_offset = offsetof(struct elf_file, code),
        .p_vaddr = 0xffff000040080000ull,
        .p_paddr = BOARD_RAM_BASE + 0x80000,
        .p_filesz = CODE_SIZE,
        .p_memsz = CODE_SIZE,
    };
    f.phdr[1] = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_flags = PF_R | PF_W,
        .p_offset = offsetof(struct elf_file, data),
        .p_vaddr = 0xffff000040090000ull,
        .p_paddr = BOARD_RAM_BASE + 0x90000,
        .p_filesz = 0x80,
        .p_memsz = 0x2000,
    };
    f.phdr[2] = (Elf64_Phdr){.p_type = PT_GNU_STACK};
    memset(f.code, 0x11, sizeof(f.code));
    memset(f.data, 0x22, sizeof(f.data));
    return f;
}

#define IMAGE_FILE_SIZE 0x1000

static void put64(uint8_t *at, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    memcpy(at, &value, 8);
}

static void image_make(uint8_t image[IMAGE_FILE_SIZE], uint64_t text_offset,
                       uint64_t image_size, uint64_t flags)
{
    memset(image, 0x33, IMAGE_FILE_SIZE);
    memset(image, 0, 64);
    put64(image + 8, text_offset);
    put64(image + 16, image_size);
    put64(image + 24, flags);
    memcpy(image + 56, "ARM\x64", 4);
}

static bool load(const void *kernel, size_t kernel_size, const void *initrd,
                 size_t initrd_size, struct loaded_image *out, GError **error)
{
    g_autoptr(GBytes) k = g_bytes_new(kernel, kernel_size);
    g_autoptr(GBytes) i =
        initrd != NULL ? g_bytes_new(initrd, initrd_size) : NULL;

    return loader_load_bytes(&ram, k, "the-kernel", i, "the-initrd", out,
                             error);
}

#endif
