/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inputs worth keeping; see fuzz_corpus.h. */
#include "fuzz_corpus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "error.h"

/* An input's weight halves each time that it was mutated so often in vain. */
#define WORN_AFTER 32u
#define NEWS_MAX 64u

static uint8_t class_of(uint8_t count)
{
    return count >= 128  ? 0x80
           : count >= 32 ? 0x40
           : count >= 16 ? 0x20
           : count >= 8  ? 0x10
           : count >= 4  ? 0x08
                         : (uint8_t)(1u << (count - 1));
}

static void input_free(void *opaque)
{
    struct fuzz_input *input = opaque;

    g_bytes_unref(input->bytes);
    g_array_unref(input->entries);
    g_free(input);
}

struct fuzz_corpus *fuzz_corpus_new(void)
{
    struct fuzz_corpus *c = g_new0(struct fuzz_corpus, 1);

    c->inputs = g_ptr_array_new_with_free_func(input_free);
    c->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->seen = g_malloc0(FUZZ_MAP_SIZE);
    return c;
}

void fuzz_corpus_free(struct fuzz_corpus *c)
{
    if (c) {
        g_ptr_array_unref(c->inputs);
        g_hash_table_unref(c->names);
        g_free(c->seen);
        g_free(c);
    }
}

unsigned fuzz_corpus_learn(struct fuzz_corpus *c,
                           const struct fuzz_cover *cover)
{
    const uint8_t *map = fuzz_cover_map(cover);
    unsigned count, news = 0;
    const uint16_t *touched = fuzz_cover_touched(cover, &count);

    for (unsigned i = 0; i < count; i++) {
        unsigned index = touched[i];
        bool is_place = fuzz_cover_is_place(cover, index);
        uint8_t bit = is_place ? 1 : class_of(map[index]);

        if (!(c->seen[index] & bit)) {
            c->seen[index] |= bit;
            c->places += is_place;
            c->pairs += !is_place;
            news++;
        }
    }
    return news;
}

struct fuzz_input *fuzz_corpus_add(struct fuzz_corpus *c,
                                   const struct fuzz_run *run,
                                   const GArray *entries, unsigned news,
                                   unsigned depth)
{
    struct fuzz_input *input = g_new0(struct fuzz_input, 1);

    input->bytes = g_bytes_new(run->bytes, run->length);
    input->entries = g_array_sized_new(
        FALSE, FALSE, sizeof(struct choice_entry), entries->len);
    if (entries->len) {
        g_array_append_vals(input->entries, entries->data, entries->len);
    }
    input->news = news;
    input->depth = depth;
    c->depth = MAX(c->depth, depth);
    c->bytes += run->length;
    if (c->is_named) {
        g_hash_table_add(c->names, fuzz_name(run->bytes, run->length));
    }
    g_ptr_array_add(c->inputs, input);
    return input;
}

static uint64_t weight(const struct fuzz_input *input)
{
    uint64_t news = 1 + MIN(input->news, NEWS_MAX);
    unsigned worn = MIN(input->used / WORN_AFTER, 16);

    return (news << 16) >> worn;
}

struct fuzz_input *fuzz_corpus_pick(struct fuzz_corpus *c, struct prng *prng)
{
    uint64_t sum = 0, at;

    for (guint i = 0; i < c->inputs->len; i++) {
        sum += weight(c->inputs->pdata[i]);
    }
    if (!sum) {
        return NULL;
    }
    at = prng_below(prng, sum);
    for (guint i = 0;; i++) {
        uint64_t own = weight(c->inputs->pdata[i]);

        if (at < own) {
            return c->inputs->pdata[i];
        }
        at -= own;
    }
}

/* --- files --- */

char *fuzz_name(const void *bytes, size_t length)
{
    return g_compute_checksum_for_data(G_CHECKSUM_SHA1, bytes, length);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *fuzz_list_files(const char *directory, GError **error)
{
    GDir *dir = g_dir_open(directory, 0, error);
    GPtrArray *names;
    const char *name;

    if (!dir) {
        g_prefix_error(error, "corpus directory: ");
        if (error && *error) { /* GLib's domain says nothing to our exit */
            (*error)->domain = VM_ERROR;
            (*error)->code = VM_ERROR_ENVIRONMENT;
        }
        return NULL;
    }
    names = g_ptr_array_new_with_free_func(g_free);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(directory, name, NULL);

        if (name[0] != '.' && g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
            g_ptr_array_add(names, g_strdup(name));
        }
    }
    g_dir_close(dir);
    g_ptr_array_sort(names, by_name);
    return names;
}

bool fuzz_save(const char *directory, const char *name, const void *bytes,
               size_t length, GError **error)
{
    g_autofree char *path = g_build_filename(directory, name, NULL);
    g_autofree char *hidden =
        g_strdup_printf("%s/.%s.%ld", directory, name, (long)getpid());
    FILE *f = fopen(hidden, "we");
    bool ok = f && fwrite(bytes, 1, length, f) == length;

    ok = (!f || fclose(f) == 0) && ok && rename(hidden, path) == 0;
    if (!ok) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s: %s", path,
                    g_strerror(errno));
        (void)unlink(hidden);
    }
    return ok;
}
