/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the tests of vmm/obs: an ELF file with a symbol table made in memory,
 * temporary files, and look-ups in parsed JSON.
 */
#ifndef OBS_FIXTURE_H
#define OBS_FIXTURE_H

#include <check.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <glib.h>
#include <yajl/yajl_tree.h>

struct fixture_symbol {
    const char *name;
    uint64_t start, size;
    unsigned char type; /* STT_* */
};

/* Null section, .symtab, .strtab: header, sections, symbols, strings. */
static inline GByteArray *fixture_elf(const struct fixture_symbol *symbols,
                                      size_t n)
{
    GByteArray *file = g_byte_array_new();
    GString *strings = g_string_new(NULL);
    Elf64_Ehdr ehdr = {.e_type = ET_EXEC,
                       .e_machine = EM_AARCH64,
                       .e_version = EV_CURRENT,
                       .e_shoff = sizeof(Elf64_Ehdr),
                       .e_ehsize = sizeof(Elf64_Ehdr),
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 4};
    Elf64_Shdr shdr[4] = {0};
    Elf64_Sym sym = {0};

    memcpy(ehdr.e_ident, ELFMAG, SELFMAG);
    ehdr.e_ident[EI_CLASS] = ELFCLASS64;
    ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
    ehdr.e_ident[EI_VERSION] = EV_CURRENT;
    /* Section 1 stands for the code that the symbols lie in. */
    shdr[1].sh_type = SHT_NOBITS;
    shdr[2].sh_type = SHT_SYMTAB;
    shdr[2].sh_offset = sizeof(ehdr) + sizeof(shdr);
    shdr[2].sh_size = (n + 1) * sizeof(sym);
    shdr[2].sh_link = 3;
    shdr[2].sh_entsize = sizeof(sym);
    shdr[2].sh_addralign = 8;
    shdr[3].sh_type = SHT_STRTAB;
    shdr[3].sh_offset = shdr[2].sh_offset + shdr[2].sh_size;
    shdr[3].sh_addralign = 1;
    g_string_append_c(strings, '\0');
    for (size_t i = 0; i < n; i++) {
        g_string_append(strings, symbols[i].name);
        g_string_append_c(strings, '\0');
    }
    shdr[3].sh_size = strings->len;
    g_byte_array_append(file, (const guint8 *)&ehdr, sizeof(ehdr));
    g_byte_array_append(file, (const guint8 *)shdr, sizeof(shdr));
    g_byte_array_append(file, (const guint8 *)&sym, sizeof(sym));
    for (size_t i = 0, at = 1; i < n; i++) {
        sym.st_name = (Elf64_Word)at;
        sym.st_info = ELF64_ST_INFO(STB_GLOBAL, symbols[i].type);
        sym.st_shndx = 1;
        sym.st_value = symbols[i].start;
        sym.st_size = symbols[i].size;
        at += strlen(symbols[i].name) + 1;
        g_byte_array_append(file, (const guint8 *)&sym, sizeof(sym));
    }
    g_byte_array_append(file, (const guint8 *)strings->str,
                        (guint)strings->len);
    g_string_free(strings, TRUE);
    return file;
}

/* A new temporary file with these bytes; unlink and g_free() the name. */
static inline char *fixture_file(const void *bytes, size_t n)
{
    char *path = NULL;
    int fd = g_file_open_tmp("shootdown-test-XXXXXX", &path, NULL);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    ck_assert_int_eq(close(fd), 0);
    return path;
}

static inline void fixture_unlink(char *path)
{
    (void)unlink(path); /* may be gone already */
    g_free(path);
}

static inline char *fixture_symbols_file(const struct fixture_symbol *symbols,
                                         size_t n)
{
    GByteArray *elf = fixture_elf(symbols, n);
    char *path = fixture_file(elf->data, elf->len);

    g_byte_array_unref(elf);
    return path;
}

static inline yajl_val fixture_json(const char *text)
{
    char message[256] = "";
    yajl_val tree = yajl_tree_parse(text, message, sizeof(message));

    ck_assert_msg(tree != NULL, "no JSON (%s): %.200s", message, text);
    return tree;
}

/* path: "machine/dsb/ISH"; NULL where there is no such member. */
static inline yajl_val fixture_at(yajl_val tree, const char *path)
{
    char **names = g_strsplit(path, "/", -1);
    yajl_val found = yajl_tree_get(tree, (const char **)names, yajl_t_any);

    g_strfreev(names);
    return found;
}

static inline long long fixture_number(yajl_val tree, const char *path)
{
    yajl_val v = fixture_at(tree, path);

    ck_assert_msg(v != NULL, "no member %s", path);
    ck_assert_msg(YAJL_IS_INTEGER(v), "%s is no integer", path);
    return YAJL_GET_INTEGER(v);
}

static inline const char *fixture_text(yajl_val tree, const char *path)
{
    yajl_val v = fixture_at(tree, path);

    ck_assert_msg(v != NULL && YAJL_IS_STRING(v), "no text %s", path);
    return YAJL_GET_STRING(v);
}

/* Runs one suite and gives the exit status for main(). */
static inline int fixture_main(const char *name, TCase *tc)
{
    Suite *suite = suite_create(name);
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
