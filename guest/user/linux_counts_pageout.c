/* SPDX-License-Identifier: MIT */
/* linux_counts: one madvise(MADV_PAGEOUT) call, its shapes. */
#define _GNU_SOURCE
#include "linux_counts.h"

enum touch {
    TOUCH_READ,      /* read all, after a first call that finds all written */
    TOUCH_WRITE,     /* write all before each call */
    TOUCH_EVERY_4TH, /* write every 4th page and read the rest */
    TOUCH_NOTHING,   /* nothing is mapped at the second call, the last */
    TOUCH_READ_ONLY, /* like READ, through a mapping made read-only */
    TOUCH_FREE,      /* write all and give them to MADV_FREE */
};

struct pageout_case {
    const char *name;
    unsigned long pages, offset;
    int flags;
    enum touch touch;
};

static const struct pageout_case pageout_cases[] = {
    {"shared_read", 256, 0, MAP_SHARED, TOUCH_READ},
    {"shared_read_70_186", 256, 442, MAP_SHARED, TOUCH_READ},
    {"shared_read_88_168", 256, 424, MAP_SHARED, TOUCH_READ},
    {"shared_read_231_25", 256, 281, MAP_SHARED, TOUCH_READ},
    {"shared_read_15_241", 256, 497, MAP_SHARED, TOUCH_READ},
    {"shared_read_only", 256, 0, MAP_SHARED, TOUCH_READ_ONLY},
    {"private_read", 256, 0, MAP_PRIVATE, TOUCH_READ},
    {"private_write", 256, 0, MAP_PRIVATE, TOUCH_WRITE},
    {"shared_write", 256, 0, MAP_SHARED, TOUCH_WRITE},
    {"shared_every_4th", 256, 0, MAP_SHARED, TOUCH_EVERY_4TH},
    {"lazyfree", 256, 0, MAP_PRIVATE, TOUCH_FREE},
    {"nothing_mapped", 256, 0, MAP_SHARED, TOUCH_NOTHING},
    {"shared_read_4_pmds", 2048, 0, MAP_SHARED, TOUCH_READ},
};

static const unsigned long sweep[] = {1,  2,  8,   30,  31,  32,  61,  62, 63,
                                      93, 94, 124, 125, 256, 310, 511, 512};

/* The round whose words a page holds. */
static void touch(const struct pageout_case *c, volatile uint64_t *buf,
                  unsigned long round, unsigned long *written)
{
    switch (c->touch) {
    case TOUCH_READ:
    case TOUCH_READ_ONLY:
        case_check(buf, c->pages, 0);
        break;
    case TOUCH_WRITE:
        case_check(buf, c->pages, *written);
        memory_write(buf, c->pages, round);
        *written = round;
        break;
    case TOUCH_EVERY_4TH:
        case_check(buf, c->pages, 0);
        for (unsigned long i = 3; i < c->pages; i += 4) {
            buf[i * PAGE_WORDS] = memory_word(i, 0);
        }
        break;
    case TOUCH_FREE:
        memory_write(buf, c->pages, round);
        case_advise(buf, c->pages, MADV_FREE);
        break;
    case TOUCH_NOTHING:
        break;
    }
}

static void run_pageout(const char *name, const struct pageout_case *c)
{
    volatile uint64_t *buf = memory_map(c->pages, c->offset, c->flags);
    struct counts_series first = {0}, rest = {0};
    unsigned long written = 0;

    memory_write(buf, c->pages, 0);
    if (c->touch == TOUCH_READ_ONLY &&
        mprotect((void *)(uintptr_t)buf, c->pages * PAGE, PROT_READ) != 0) {
        memory_die("linux_counts: mprotect");
    }
    if (c->touch != TOUCH_FREE) {
        case_drain(); /* the case before left its last call pending */
    }
    for (unsigned long round = 0;
         round < (c->touch == TOUCH_NOTHING ? 2 : opt.rounds); round++) {
        if (round > 0 || c->touch == TOUCH_FREE) {
            touch(c, buf, round, &written);
        }
        case_begin();
        case_advise(buf, c->pages, MADV_PAGEOUT);
        case_end(round == 0 ? &first : &rest);
    }
    if (c->touch != TOUCH_FREE) {
        case_check(buf, c->pages, written);
    }
    case_report(name, ".1", &first);
    case_report(name, ".n", &rest);
    memory_unmap(buf, c->pages);
}

void all_pageout(void)
{
    for (unsigned i = 0; i < sizeof(pageout_cases) / sizeof(pageout_cases[0]);
         i++) {
        if (case_wanted(pageout_cases[i].name)) {
            run_pageout(pageout_cases[i].name, &pageout_cases[i]);
        }
    }
    for (unsigned i = 0; i < sizeof(sweep) / sizeof(sweep[0]); i++) {
        struct pageout_case c = {"", sweep[i], 0, MAP_SHARED, TOUCH_READ};
        char name[32];

        snprintf(name, sizeof(name), "sweep_%lu", sweep[i]);
        if (case_wanted(name)) {
            run_pageout(name, &c);
        }
    }
}
