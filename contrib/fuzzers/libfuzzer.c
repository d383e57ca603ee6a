/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The libFuzzer target: libFuzzer's own command line, then "--" and the
 * scenario's words. Schedule coverage is what libFuzzer sees, as extra
 * counters; the VMM itself is not instrumented.
 *
 * libFuzzer starts itself again for -jobs, -fork, -merge and -minimize_crash,
 * without what follows "--": the words travel in an environment variable.
 */
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

#define WORDS "SHOOTDOWN_FUZZ_TARGET" /* as a shell would read them */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * libFuzzer asks for these, which a sanitizer would bring, and says at each
 * start that they are missing.
 */
int __sanitizer_acquire_crash_state(void);
void __sanitizer_print_stack_trace(void);
void __sanitizer_set_death_callback(void (*callback)(void));

int __sanitizer_acquire_crash_state(void)
{
    return 1; /* nobody else is reporting */
}

void __sanitizer_print_stack_trace(void)
{
}

void __sanitizer_set_death_callback(void (*callback)(void))
{
    (void)callback; /* death comes by abort(), which libFuzzer catches */
}

/* libFuzzer finds the section by its name, and clears it before each run. */
__attribute__((section("__libfuzzer_extra_counters"),
               used)) static uint8_t counters[FUZZ_MAP_SIZE];

static struct fuzz_target *target;

/* "--" and what follows, taken off. NULL: there is none. */
static char **words_of(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            char **words = g_strdupv(argv + i + 1);

            *argc = i;
            argv[i] = NULL;
            return words;
        }
    }
    return NULL;
}

static char *quoted(char *const *words)
{
    GString *line = g_string_new(NULL);

    for (; *words; words++) {
        char *word = g_shell_quote(*words);

        g_string_append_printf(line, "%s%s", line->len ? " " : "", word);
        g_free(word);
    }
    return g_string_free(line, FALSE);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char **words = words_of(argc, *argv);
    const char *inherited = g_getenv(WORDS);

    if (words) {
        char *line = quoted(words);

        g_setenv(WORDS, line, TRUE);
        g_free(line);
    } else if (!inherited ||
               !g_shell_parse_argv(inherited, NULL, &words, NULL)) {
        fprintf(stderr,
                "usage: %s [libFuzzer's flags and directories] -- [OPTIONS] "
                "WORKLOAD [-- ARGUMENTS]\n",
                (*argv)[0]);
        exit(1);
    }
    target = scenario_open((*argv)[0], (int)g_strv_length(words), words);
    fuzz_target_set_map(target, counters);
    g_strfreev(words);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scenario_run(target, data, size);
    return 0;
}
