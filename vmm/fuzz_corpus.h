/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inputs that showed something new, and what has been seen so far. An
 * input is the bytes of a run (fuzz_target.h); its file is named by the SHA-1
 * of them, so that corpora merge by copying.
 *
 * As in libFuzzer, a counter's value counts by its class (1, 2, 3, 4-7, 8-15,
 * 16-31, 32-127, more): a pair in a class that it never had is new. Places
 * (what some vCPU did) are new once. One thread.
 */
#ifndef VMM_FUZZ_CORPUS_H
#define VMM_FUZZ_CORPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

#include "choice/choice.h"
#include "choice/prng.h"
#include "fuzz_target.h"

struct fuzz_input {
    GBytes *bytes;
    GArray *entries; /* struct choice_entry of its run, with places */
    unsigned news;   /* features that it was the first to show */
    unsigned depth;  /* mutations since an input that was none */
    unsigned used;   /* how often it was mutated since the last success */
};

struct fuzz_corpus {
    GPtrArray *inputs; /* struct fuzz_input */
    GHashTable *names; /* SHA-1 of inputs here and those that were run */
    bool is_named;     /* names are kept: there are files */
    uint8_t *seen;     /* FUZZ_MAP_SIZE: classes, a bit each */
    unsigned places;   /* counters of places that were ever used */
    unsigned pairs;    /* pairs, each in each class */
    unsigned depth;    /* the largest */
    uint64_t bytes;    /* of all inputs */
};

struct fuzz_corpus *fuzz_corpus_new(void);
void fuzz_corpus_free(struct fuzz_corpus *corpus);

/* Features of the last run that were never seen; they are from now on. */
unsigned fuzz_corpus_learn(struct fuzz_corpus *corpus,
                           const struct fuzz_cover *cover);
/* Keeps the run that showed them. The input is the corpus's. */
struct fuzz_input *fuzz_corpus_add(struct fuzz_corpus *corpus,
                                   const struct fuzz_run *run,
                                   const GArray *entries, unsigned news,
                                   unsigned depth);
/* One to mutate: newer news and less worn ones sooner. NULL: there is none. */
struct fuzz_input *fuzz_corpus_pick(struct fuzz_corpus *corpus,
                                    struct prng *prng);

/* 40 hexadecimal digits; g_free() it. */
char *fuzz_name(const void *bytes, size_t length);
/*
 * The names of the regular files in a directory, sorted, without those that
 * begin with a dot. NULL and error: it cannot be read.
 */
GPtrArray *fuzz_list_files(const char *directory, GError **error);
/* Writes under a temporary name first: others may be looking. */
bool fuzz_save(const char *directory, const char *name, const void *bytes,
               size_t length, GError **error);

#endif
