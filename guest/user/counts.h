/* SPDX-License-Identifier: MIT */
/*
 * What a call cost in TLB maintenance, as the kernel counted it: a window is
 * two readings of /proc/shootdown_cpu (the calling CPU) or /proc/shootdown (all
 * CPUs), one before the call and one after. The kernel writes the text at the
 * latest when the file is first read, so all that lies between the two first
 * reads is counted; the reading itself costs no flush. On kernels without those
 * files nothing is counted and the calls are only made.
 */
#ifndef USER_COUNTS_H
#define USER_COUNTS_H

#include <fcntl.h>
#include <stdbool.h>

#include "common.h"

#define COUNTS_CPU "/proc/shootdown_cpu"
#define COUNTS_ALL "/proc/shootdown"

#define COUNTS_LIST(X)                                                         \
    X(tlbi_va)                                                                 \
    X(tlbi_va_walk)                                                            \
    X(tlbi_range)                                                              \
    X(tlbi_range_walk)                                                         \
    X(tlbi_asid)                                                               \
    X(tlbi_all)                                                                \
    X(dsb_ishst)                                                               \
    X(dsb_ish)                                                                 \
    X(unmap_ptes)                                                              \
    X(batch_flush)                                                             \
    X(pending_drain)                                                           \
    X(remote_flush)                                                            \
    X(remote_flush_received)                                                   \
    X(wrong_cpu)                                                               \
    X(trim_rounds)                                                             \
    X(gather_flush)                                                            \
    X(pageout_calls)                                                           \
    X(swap_out)                                                                \
    X(migrate_success)                                                         \
    X(pages_demoted)                                                           \
    X(numa_pte_updates)                                                        \
    X(numa_hint_faults)                                                        \
    X(numa_pages_migrated)

enum counts_index {
#define X(name) COUNT_##name,
    COUNTS_LIST(X)
#undef X
        COUNTS
};

static const char *const counts_names[COUNTS] = {
#define X(name) #name,
    COUNTS_LIST(X)
#undef X
};

struct counts {
    uint64_t value[COUNTS];
};

/* How far each counter moved, over calls of the same kind. */
struct counts_series {
    unsigned long calls;
    struct counts min, max;
};

static inline void counts_parse(char *text, struct counts *out)
{
    memset(out, 0, sizeof(*out));
    while (*text != '\0') {
        char *space = strchr(text, ' ');
        char *end = strchr(text, '\n');

        if (space == NULL || end == NULL || space > end) {
            return;
        }
        *space = '\0';
        for (unsigned i = 0; i < COUNTS; i++) {
            if (strcmp(text, counts_names[i]) == 0) {
                out->value[i] = strtoull(space + 1, NULL, 10);
                break;
            }
        }
        text = end + 1;
    }
}

static char counts_text[16384];

/*
 * From an open file, which it closes, and of which the first `got` bytes are in
 * counts_text already; false where fd is none.
 */
static inline bool counts_read_fd(int fd, size_t got, struct counts *out)
{
    ssize_t n;

    memset(out, 0, sizeof(*out));
    if (fd < 0) {
        return false;
    }
    while ((n = read(fd, counts_text + got, sizeof(counts_text) - 1 - got)) >
           0) {
        got += (size_t)n;
    }
    close(fd);
    counts_text[got] = '\0';
    counts_parse(counts_text, out);
    return got > 0;
}

static inline bool counts_read(const char *path, struct counts *out)
{
    return counts_read_fd(open(path, O_RDONLY), 0, out);
}

static inline void counts_series_add(struct counts_series *s,
                                     const struct counts *before,
                                     const struct counts *after)
{
    for (unsigned i = 0; i < COUNTS; i++) {
        uint64_t delta = after->value[i] - before->value[i];

        if (s->calls == 0 || delta < s->min.value[i]) {
            s->min.value[i] = delta;
        }
        if (s->calls == 0 || delta > s->max.value[i]) {
            s->max.value[i] = delta;
        }
    }
    s->calls++;
}

/*
 * " name value" or " name low..high" for each counter that moved, to the end of
 * a line of which `column` characters are there, and on lines that begin with
 * two spaces.
 */
static inline void counts_series_print(const struct counts_series *s,
                                       int column)
{
    for (unsigned i = 0; i < COUNTS; i++) {
        uint64_t min = s->min.value[i], max = s->max.value[i];
        char text[80];
        int n;

        if (max == 0) {
            continue;
        }
        n = snprintf(text, sizeof(text), " %s %llu", counts_names[i],
                     (unsigned long long)min);
        if (max != min) {
            n += snprintf(text + n, sizeof(text) - (size_t)n, "..%llu",
                          (unsigned long long)max);
        }
        if (column + n > 80) {
            printf("\n ");
            column = 1;
        }
        column += printf("%s", text);
    }
    printf("\n");
}

/* The whole machine's counts of one call, printed with a name in front. */
struct counts_window {
    struct counts before, after;
    bool counted;
};

static inline void counts_begin(struct counts_window *w)
{
    w->counted = counts_read(COUNTS_ALL, &w->before);
}

static inline void counts_end(struct counts_window *w)
{
    w->counted = counts_read(COUNTS_ALL, &w->after) && w->counted;
}

static inline void counts_print(const char *name, const struct counts_window *w)
{
    struct counts_series s = {0};

    if (w->counted) {
        counts_series_add(&s, &w->before, &w->after);
        counts_series_print(&s, printf("%s counts:", name));
    }
}

#endif
