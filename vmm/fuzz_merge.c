/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -merge=1: from the second and further directories those inputs go into the
 * first that show what nothing in it shows, short ones first, as libFuzzer
 * does it. Names are those of the contents, so it can be done again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"
#include "fuzz.h"

struct candidate {
    char *path, *name;
    off_t size;
};

static void candidate_clear(void *opaque)
{
    struct candidate *c = opaque;

    g_free(c->path);
    g_free(c->name);
}

static int by_size(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->size != y->size ? (x->size > y->size) - (x->size < y->size)
                              : strcmp(x->name, y->name);
}

static bool collect(GArray *all, const char *directory, GError **error)
{
    GPtrArray *names = fuzz_list_files(directory, error);

    if (!names) {
        return false;
    }
    for (guint i = 0; i < names->len; i++) {
        struct candidate c = {
            .path = g_build_filename(directory, names->pdata[i], NULL),
            .name = g_strdup(names->pdata[i]),
        };
        struct stat st;

        c.size = stat(c.path, &st) == 0 ? st.st_size : 0;
        g_array_append_val(all, c);
    }
    g_ptr_array_unref(names);
    return true;
}

static bool consider(struct fuzz *f, const struct candidate *c,
                     unsigned *out_news, GError **error)
{
    struct fuzz_run run;
    g_autofree char *name = NULL;

    *out_news = 0;
    if (!fuzz_run_file(f, c->path, &run, error)) {
        return false;
    }
    if (run.failed || run.abandoned) {
        return true; /* a finding is no input; -runs=0 tells what it is */
    }
    *out_news = fuzz_corpus_learn(f->corpus, fuzz_target_cover(f->target));
    if (!*out_news) {
        return true;
    }
    name = fuzz_name(run.bytes, run.length);
    (void)fuzz_corpus_add(f->corpus, &run, fuzz_target_entries(f->target),
                          *out_news, 0);
    return fuzz_save(f->first_dir, name, run.bytes, run.length, error);
}

bool fuzz_merge(struct fuzz *f, GError **error)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct candidate));
    unsigned files = 0, features = 0, places, before;
    bool ok = true;

    g_array_set_clear_func(all, candidate_clear);
    for (char *const *dir = f->inputs + 1; ok && *dir; dir++) {
        ok = collect(all, *dir, error);
    }
    ok = ok && fuzz_load_directory(f, f->first_dir, error);
    if (ok) {
        before = g_hash_table_size(f->corpus->names);
        places = f->corpus->places;
        printf("MERGE-OUTER: %u files, %u in the initial corpus\n",
               all->len + before, before);
        g_array_sort(all, by_size);
        for (guint i = 0; ok && i < all->len && !fuzz_interrupted(f); i++) {
            unsigned news;

            ok = consider(f, &g_array_index(all, struct candidate, i), &news,
                          error);
            files += news != 0;
            features += news;
        }
        fuzz_status(f, "DONE", NULL);
        printf("MERGE-OUTER: %u new files with %u new features added; %u new "
               "places\n",
               files, features, f->corpus->places - places);
    }
    g_array_unref(all);
    return ok;
}
