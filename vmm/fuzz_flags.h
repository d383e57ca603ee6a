/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flags of `shootdown fuzz`: libFuzzer's, -name=value. A parser of our own,
 * since GOption would take -runs=5 for a row of one-letter options. Main
 * thread.
 */
#ifndef VMM_FUZZ_FLAGS_H
#define VMM_FUZZ_FLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

/* Texts are owned; NULL: not given. Numbers are as fuzz_flags.inc says. */
struct fuzz_flags {
#define FUZZ_NUMBER(name, low, high, usual, arg, text) uint64_t name;
#define FUZZ_TEXT(name, usual, arg, text) char *name;
#include "fuzz_flags.inc"
#undef FUZZ_NUMBER
#undef FUZZ_TEXT
    unsigned shard_index, shard_count; /* -shard=i/n; 0 of 1 */
    uint32_t ignored_rules;            /* bit n: rule Sn is no finding */
    bool has_runs, has_seed, has_reload;
};

/* -runs: no end. */
#define FUZZ_RUNS_ENDLESS UINT64_MAX

/*
 * Takes the flags out of argv. *out_words: what is left, NULL-terminated; its
 * strings are argv's, free it with g_free(). Words after "--" are none of ours.
 * false and error: VM_ERROR_USAGE, with a sentence for each of libFuzzer's
 * flags that make no sense here. fuzz_flags_fini() in any case.
 */
bool fuzz_flags_parse(struct fuzz_flags *flags, int argc, char *const *argv,
                      char ***out_words, GError **error);
void fuzz_flags_fini(struct fuzz_flags *flags);
/* The help page's part, at most 80 columns. g_free() it. */
char *fuzz_flags_help(void);
/*
 * The same command line for one of several processes: without what only the
 * first one does. More words are for the caller to append. g_strfreev().
 */
GPtrArray *fuzz_flags_for_job(int argc, char *const *argv);

#endif
