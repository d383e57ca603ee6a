/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A schedule in memory, its header, and its file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "choice/schedule_priv.h"
#include "error.h"

struct schedule *schedule_new(void)
{
    struct schedule *schedule = g_new0(struct schedule, 1);

    schedule->keys = g_ptr_array_new_with_free_func(g_free);
    schedule->values = g_ptr_array_new_with_free_func(g_free);
    schedule->entries = g_array_new(FALSE, FALSE, sizeof(struct choice_entry));
    schedule->checkpoints =
        g_array_new(FALSE, FALSE, sizeof(struct schedule_checkpoint));
    return schedule;
}

void schedule_free(struct schedule *schedule)
{
    if (!schedule) {
        return;
    }
    g_ptr_array_unref(schedule->keys);
    g_ptr_array_unref(schedule->values);
    g_array_unref(schedule->entries);
    g_array_unref(schedule->checkpoints);
    g_free(schedule);
}

static void append_all(GArray *to, const GArray *from)
{
    if (from->len) {
        g_array_append_vals(to, from->data, from->len);
    }
}

struct schedule *schedule_copy(const struct schedule *schedule)
{
    struct schedule *copy = schedule_new();

    for (guint i = 0; i < schedule->keys->len; i++) {
        g_ptr_array_add(copy->keys,
                        g_strdup(g_ptr_array_index(schedule->keys, i)));
        g_ptr_array_add(copy->values,
                        g_strdup(g_ptr_array_index(schedule->values, i)));
    }
    append_all(copy->entries, schedule->entries);
    append_all(copy->checkpoints, schedule->checkpoints);
    copy->total = schedule->total;
    copy->trace_hash = schedule->trace_hash;
    copy->state_hash = schedule->state_hash;
    return copy;
}

bool schedule_key_ok(const char *key)
{
    static const char *const taken[] = {"shootdown-schedule", "choices",
                                        "trace-hash", "state-hash", "hash"};
    size_t length = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-");

    for (size_t i = 0; i < G_N_ELEMENTS(taken); i++) {
        if (!strcmp(key, taken[i])) {
            return false;
        }
    }
    return length && length <= 64 && !key[length];
}

void schedule_set(struct schedule *schedule, const char *key, const char *value)
{
    g_assert(schedule_key_ok(key));
    for (guint i = 0; i < schedule->keys->len; i++) {
        if (!strcmp(g_ptr_array_index(schedule->keys, i), key)) {
            g_free(g_ptr_array_index(schedule->values, i));
            g_ptr_array_index(schedule->values, i) = g_strdup(value);
            return;
        }
    }
    g_ptr_array_add(schedule->keys, g_strdup(key));
    g_ptr_array_add(schedule->values, g_strdup(value));
}

const char *schedule_get(const struct schedule *schedule, const char *key)
{
    for (guint i = 0; i < schedule->keys->len; i++) {
        if (!strcmp(g_ptr_array_index(schedule->keys, i), key)) {
            return g_ptr_array_index(schedule->values, i);
        }
    }
    return NULL;
}

/* --- files --- */

static bool io_failed(const char *what, const char *path, GError **error)
{
    int saved = errno;

    g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT, "%s schedule '%s': %s",
                what, path, g_strerror(saved));
    return false;
}

/* What is no file, such as /dev/stdout, cannot be replaced by renaming. */
static bool write_in_place(const char *path, const char *text, size_t length,
                           GError **error)
{
    FILE *file = fopen(path, "w");
    bool written;

    if (!file) {
        return io_failed("cannot open", path, error);
    }
    written = fwrite(text, 1, length, file) == length;
    if (fclose(file) || !written) {
        return io_failed("cannot write", path, error);
    }
    return true;
}

/* A file that schedule_load() would refuse is not written. */
static bool check_limits(const struct schedule *schedule, const char *path,
                         size_t length, GError **error)
{
    const char *what = NULL;

    if (schedule->entries->len > SCHEDULE_ENTRIES_MAX) {
        what = "more than 50,000,000 choices that are not plain";
    } else if (schedule->total >= SCHEDULE_TOTAL_MAX) {
        what = "2^40 choices or more";
    } else if (schedule->keys->len > SCHEDULE_KEYS_MAX) {
        what = "more than 1,000 header lines";
    } else if (length > SCHEDULE_BYTES_MAX) {
        what = "more than 64 MiB";
    }
    for (guint i = 0; !what && i < schedule->values->len; i++) {
        /* Escaping may make four characters of one. */
        if (strlen(g_ptr_array_index(schedule->values, i)) >
            SCHEDULE_VALUE_MAX / 4) {
            what = "a header value of more than 16 KiB";
        }
    }
    if (what) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "schedule '%s' would have %s; record a shorter run", path,
                    what);
    }
    return !what;
}

bool schedule_save(const struct schedule *schedule, const char *path,
                   GError **error)
{
    char *text = schedule_to_text(schedule);
    size_t length = strlen(text);
    GError *cause = NULL;
    bool saved = false;

    if (!check_limits(schedule, path, length, error)) {
        saved = false;
    } else if (g_file_test(path, G_FILE_TEST_EXISTS) &&
               !g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        saved = write_in_place(path, text, length, error);
    } else if (g_file_set_contents(path, text, (gssize)length, &cause)) {
        saved = true;
    } else {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "cannot write schedule '%s': %s", path, cause->message);
        g_error_free(cause);
    }
    g_free(text);
    return saved;
}

/* Reads no more than the limit, so that /dev/zero ends. */
static GByteArray *read_bounded(const char *path, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    GByteArray *bytes = g_byte_array_new();
    uint8_t buffer[16384];
    ssize_t got;

    if (fd < 0) {
        io_failed("cannot open", path, error);
        g_byte_array_unref(bytes);
        return NULL;
    }
    while ((got = read(fd, buffer, sizeof(buffer))) != 0) {
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            io_failed("cannot read", path, error);
            break;
        }
        g_byte_array_append(bytes, buffer, (guint)got);
        if (bytes->len > SCHEDULE_BYTES_MAX) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                        "schedule '%s' is larger than 64 MiB", path);
            break;
        }
    }
    close(fd);
    if (got != 0) {
        g_byte_array_unref(bytes);
        return NULL;
    }
    return bytes;
}

static struct schedule *load_line(const char *line, size_t length,
                                  GError **error)
{
    struct schedule *schedule = NULL;
    size_t text_length;
    char *text = schedule_line_to_text(line, length, &text_length, error);

    if (text) {
        schedule = schedule_from_text(text, text_length, error);
        g_free(text);
    }
    return schedule;
}

struct schedule *schedule_load(const char *path_or_line, GError **error)
{
    struct schedule *schedule;
    GByteArray *bytes;
    const char *text;

    if (g_str_has_prefix(path_or_line, SCHEDULE_LINE_PREFIX)) {
        return load_line(path_or_line, strlen(path_or_line), error);
    }
    bytes = read_bounded(path_or_line, error);
    if (!bytes) {
        return NULL;
    }
    text = (const char *)bytes->data;
    if (bytes->len > strlen(SCHEDULE_LINE_PREFIX) &&
        !memcmp(text, SCHEDULE_LINE_PREFIX, strlen(SCHEDULE_LINE_PREFIX))) {
        schedule = load_line(text, bytes->len, error);
    } else {
        schedule = schedule_from_text(text, bytes->len, error);
    }
    if (!schedule) {
        g_prefix_error(error, "'%s': ", path_or_line);
    }
    g_byte_array_unref(bytes);
    return schedule;
}
