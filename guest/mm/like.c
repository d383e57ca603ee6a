/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The behaviours that differ between Linux releases; see like.h. */
#include "mm/like.h"

#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/printk.h"

static const char *const names[LIKE_RELEASES] = {"6.1", "6.6", "6.12", "7.2"};

static const struct mm_like releases[LIKE_RELEASES] = {
    [LIKE_6_1] = {.release = LIKE_6_1,
                  .pageout_young_flush = true,
                  .referenced_young_tlbi = true},
    [LIKE_6_6] = {.release = LIKE_6_6,
                  .bc_batched = true,
                  .migrate_batched = true,
                  .pageout_young_flush = true,
                  .referenced_young_tlbi = true},
    [LIKE_6_12] = {.release = LIKE_6_12,
                   .bc_batched = true,
                   .migrate_batched = true,
                   .free_batch = LIKE_FREE_BATCH_MAX,
                   .mglru_lists = true,
                   .request_quarters = true},
    [LIKE_7_2] = {.release = LIKE_7_2,
                  .bc_batched = true,
                  .migrate_batched = true,
                  .free_batch = LIKE_FREE_BATCH_MAX,
                  .read_fault_dirty = true,
                  .lazy_cpumask = true,
                  .ipi_lazy_keeps_bit = true,
                  .mglru_lists = true,
                  .mglru_scaled = true,
                  .request_quarters = true},
};

/* What the ktests of a kernel without a command line see, too. */
struct mm_like mm_like = {.release = LIKE_6_12,
                          .bc_batched = true,
                          .migrate_batched = true,
                          .free_batch = LIKE_FREE_BATCH_MAX,
                          .mglru_lists = true,
                          .request_quarters = true};

/* A switch with two values: the words for false and for true. */
struct like_word {
    const char *name;
    bool *value;
    const char *no, *yes;
};

static void unknown(const char *name, const char *value)
{
    printk("like: %s=%s is not known, that of like=%s stays\n", name, value,
           like_name());
}

static void read_switch(const struct like_word *word)
{
    char buf[16];
    const char *value = bootargs_get(word->name, buf, sizeof(buf));

    if (value == NULL) {
        return;
    }
    if (strcmp(value, word->yes) == 0) {
        *word->value = true;
    } else if (strcmp(value, word->no) == 0) {
        *word->value = false;
    } else {
        unknown(word->name, value);
    }
}

static void read_free_batch(void)
{
    char buf[16];
    const char *value = bootargs_get("free_batch", buf, sizeof(buf));
    uint64_t n;

    if (value == NULL) {
        return;
    }
    if (strcmp(value, "list") == 0) {
        mm_like.free_batch = 0;
    } else if (str_to_u64(value, &n) && n >= 1 && n <= LIKE_FREE_BATCH_MAX) {
        mm_like.free_batch = (unsigned)n;
    } else {
        unknown("free_batch", value);
    }
}

static void read_lists(void)
{
    char buf[16];
    const char *value = bootargs_get("lists", buf, sizeof(buf));

    if (value == NULL) {
        return;
    }
    if (strcmp(value, "classic") == 0 || strcmp(value, "mglru") == 0 ||
        strcmp(value, "scaled") == 0) {
        mm_like.mglru_lists = value[0] != 'c';
        mm_like.mglru_scaled = value[0] == 's';
        /* Only the classic walk asks each page by its own PTE. */
        mm_like.referenced_young_tlbi = !mm_like.mglru_lists;
    } else {
        unknown("lists", value);
    }
}

static void read_release(void)
{
    char buf[16];
    const char *value = bootargs_get("like", buf, sizeof(buf));

    if (value == NULL) {
        return;
    }
    for (unsigned i = 0; i < LIKE_RELEASES; i++) {
        if (strcmp(value, names[i]) == 0) {
            mm_like = releases[i];
            return;
        }
    }
    unknown("like", value);
}

void like_init(void)
{
    static const struct like_word words[] = {
        {"bc", &mm_like.bc_batched, "sync", "batched"},
        {"migrate", &mm_like.migrate_batched, "sync", "batched"},
        {"pageout_young", &mm_like.pageout_young_flush, "keep", "flush"},
        {"referenced_young", &mm_like.referenced_young_tlbi, "keep", "tlbi"},
        {"read_fault", &mm_like.read_fault_dirty, "clean", "dirty"},
        {"mask", &mm_like.lazy_cpumask, "switch", "lazy"},
        {"request", &mm_like.request_quarters, "whole", "quarters"},
        {"fault_drain", &mm_like.fault_drain, "no", "yes"},
        {"munmap", &mm_like.munmap_read, "write", "read"},
        {"lazy_hit", &mm_like.ipi_lazy_keeps_bit, "clear", "keep"},
    };

    read_release();
    read_lists();
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
        read_switch(&words[i]);
    }
    read_free_batch();
}

const char *like_name(void)
{
    return names[mm_like.release];
}
