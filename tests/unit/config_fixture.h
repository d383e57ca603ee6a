/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the tests of the command line: a folder that stands for the bundled
 * guest, and configurations out of words.
 */
#ifndef CONFIG_FIXTURE_H
#define CONFIG_FIXTURE_H

#include "obs_fixture.h"

#include <glib/gstdio.h>

#include "config.h"

static char *guest_dir;

static inline void guest_file(const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(guest_dir, name, NULL);

    ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static inline void config_setup(void)
{
    guest_dir = g_dir_make_tmp("shootdown-test-XXXXXX", NULL);
    ck_assert_ptr_nonnull(guest_dir);
    guest_file("kernel.img", "image");
    guest_file("kernel.elf", "\177ELF");
    guest_file("initramfs.cpio", "cpio");
    guest_file("workloads.txt", "hello\tsays hello\n# a comment\n\n"
                                "swap_bench\tpages out\nselftest\ttests\n"
                                "bare\n");
    g_setenv("SHOOTDOWN_GUEST_DIR", guest_dir, TRUE);
}

static inline void config_teardown(void)
{
    static const char *const names[] = {"kernel.img", "kernel.elf",
                                        "initramfs.cpio", "workloads.txt"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(guest_dir, names[i], NULL);

        (void)g_unlink(path); /* some tests removed one */
    }
    ck_assert_int_eq(g_rmdir(guest_dir), 0);
    g_free(guest_dir);
}

/* words: the command line after `run`, blanks between, no quoting. */
static inline struct vm_config *parse_as(enum vm_command command,
                                         const char *words, GError **error)
{
    char **argv = words[0] ? g_strsplit(words, " ", -1) : g_new0(char *, 1);
    struct vm_config *config =
        vm_config_parse(command, (int)g_strv_length(argv), argv, error);

    g_strfreev(argv);
    return config;
}

static inline struct vm_config *parse(const char *words)
{
    GError *error = NULL;
    struct vm_config *config = parse_as(VM_COMMAND_RUN, words, &error);

    ck_assert_msg(config != NULL, "%s: %s", words,
                  error ? error->message : "no error");
    ck_assert_ptr_null(error);
    return config;
}

#endif
