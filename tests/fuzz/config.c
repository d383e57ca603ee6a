/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run's configuration as a schedule carries it: one line of options from
 * anybody's file. What is accepted must be the same run after a trip through
 * its own text.
 */
#include "fuzz.h"

#include <string.h>

#include "config.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const files[] = {"kernel.img", "kernel.elf",
                                        "initramfs.cpio"};
    char *dir = g_dir_make_tmp("fuzz-config-XXXXXX", NULL);
    char *names;

    (void)argc;
    (void)argv;
    FUZZ_CHECK(dir, "no temporary directory");
    g_setenv("SHOOTDOWN_GUEST_DIR", dir, TRUE);
    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        char *path = g_build_filename(dir, files[i], NULL);

        FUZZ_CHECK(g_file_set_contents(path, "x", 1, NULL), "%s", path);
        g_free(path);
    }
    names = g_build_filename(dir, "workloads.txt", NULL);
    FUZZ_CHECK(
        g_file_set_contents(names, "selftest\tA\nrace_mix\tB\n", -1, NULL),
        "%s", names);
    g_free(names);
    g_free(dir);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    GError *error = NULL;
    struct vm_config *config, *copy;
    char *line, *again;

    /* A special file that blocks is the caller's business, not the parser's. */
    if (strstr(text, "/dev") || strstr(text, "/proc")) {
        g_free(text);
        return 0;
    }
    config = vm_config_from_text(text, &error);
    FUZZ_CHECK_ERROR(config != NULL, error);
    if (!config) {
        g_error_free(error);
        g_free(text);
        return 0;
    }
    FUZZ_CHECK(config->cmdline && config->args && config->strategy &&
                   config->kernel && config->cpus >= 1 &&
                   config->cpus <= VM_CPUS_MAX && config->mem >= VM_MEM_MIN &&
                   config->mem <= VM_MEM_MAX && config->runs >= 1,
               "a value out of range: %s", text);
    line = vm_config_to_text(config);
    copy = vm_config_from_text(line, &error);
    FUZZ_CHECK(copy, "'%s' became '%s': %s", text, line, error->message);
    again = vm_config_to_text(copy);
    FUZZ_CHECK(strcmp(line, again) == 0, "'%s' became '%s'", line, again);
    FUZZ_CHECK(strcmp(config->cmdline, copy->cmdline) == 0, "'%s' became '%s'",
               config->cmdline, copy->cmdline);
    g_free(again);
    vm_config_free(copy);
    g_free(line);
    vm_config_free(config);
    g_free(text);
    return 0;
}
