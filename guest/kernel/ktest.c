/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the test tables. TAP: "ok N - module: sentence". With ktest=TEXT on the
 * command line only those whose sentence contains the text, in which _ is any
 * character; they keep their numbers.
 */
#include "kernel/ktest.h"

#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/printk.h"
#include "kernel/sched.h"
#include "kernel/time.h"
#include "mm/page.h"

#define SETTLE_NS (200UL * 1000 * 1000)

/*
 * Tasks that ended on other CPUs give their stacks back a moment later: wait
 * for the number, but not for ever.
 */
static bool pages_are_back(uint64_t before)
{
    uint64_t deadline = time_now_ns() + SETTLE_NS;

    while (page_free_count() != before) {
        if (time_now_ns() > deadline) {
            return false;
        }
        sched_sleep_ns(1000 * 1000);
    }
    return true;
}

static bool begins(const char *text, const char *pattern)
{
    for (; *pattern != '\0'; text++, pattern++) {
        if (*text == '\0' || (*pattern != '_' && *pattern != *text)) {
            return false;
        }
    }
    return true;
}

static bool is_wanted(const struct ktest *test)
{
    char wanted[64];

    if (bootargs_get("ktest", wanted, sizeof(wanted)) == NULL) {
        return true;
    }
    for (const char *at = test->name; *at != '\0'; at++) {
        if (begins(at, wanted)) {
            return true;
        }
    }
    return false;
}

static bool ktest_run(const char *module, const struct ktest *test,
                      unsigned number)
{
    uint64_t before = page_free_count();
    const char *reason = test->run();

    if (reason != NULL && strncmp(reason, "# SKIP", 6) == 0) {
        printk("ok %u - %s: %s %s\n", number, module, test->name, reason);
        return true;
    }
    if (reason == NULL && !test->may_keep_pages && !pages_are_back(before)) {
        printk("not ok %u - %s: %s\n# free pages before %lu, after %lu\n",
               number, module, test->name, before, page_free_count());
        return false;
    }
    if (reason != NULL) {
        printk("not ok %u - %s: %s\n# %s\n", number, module, test->name,
               reason);
        return false;
    }
    printk("ok %u - %s: %s\n", number, module, test->name);
    return true;
}

unsigned ktest_run_all(unsigned *out_count)
{
    const struct ktest_table *const tables[] = {&ktest_core, &ktest_mm};
    unsigned number = 0, failed = 0;

    for (unsigned t = 0; t < ARRAY_SIZE(tables); t++) {
        /* Through a volatile: a weak table may be absent from the image. */
        const struct ktest_table *const volatile table = tables[t];

        if (table == NULL) {
            continue;
        }
        for (unsigned i = 0; i < table->count; i++) {
            number++;
            if (!is_wanted(&table->tests[i])) {
                continue;
            }
            failed += !ktest_run(table->module, &table->tests[i], number);
        }
    }
    *out_count = number;
    return failed;
}

void ktest_main(char *out_failed, char *out_first, size_t size)
{
    unsigned count, failed;

    printk("TAP version 13\n");
    failed = ktest_run_all(&count);
    (void)snprintf(out_failed, size, "%u", failed);
    (void)snprintf(out_first, size, "%u", count);
}
