/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The same run on every machine: what a small program does, as numbers that
 * were written down once. They change when events or what is asked of the
 * choice stream do, and never with host, compiler or optimisation; a failure
 * prints the new ones.
 *
 * The program is image.S. It wipes its device tree, the only thing in memory
 * that depends on a library's version, so that the state hash is comparable as
 * well.
 */
#include "det_fixture.h"

#include <unistd.h>

static const uint32_t image[] = {
#include "image_words.inc"
};

#define RESULTS UINT64_C(0x40303000)

static const struct known {
    const char *options;
    uint64_t trace_hash, state_hash, events, choices, virtual_ns;
} knowns[] = {
#include "machines.inc"
};

static struct det_machine *image_machine(const char *options)
{
    g_autofree char *path = NULL;
    g_autofree char *text = NULL;
    int fd = g_file_open_tmp("shootdown-test-XXXXXX", &path, NULL);
    struct det_machine *m;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, image, sizeof(image)), sizeof(image));
    ck_assert_int_eq(close(fd), 0);
    text = g_strdup_printf("%s --mem 16M --cpus 2 --kernel %s", options, path);
    m = det_machine_new(text);
    ck_assert_int_eq(unlink(path), 0);
    return m;
}

static uint64_t result(const struct det_machine *m, unsigned offset)
{
    uint64_t word;

    memcpy(&word, vm_ram_at(m->vm, RESULTS + offset, 8), 8);
    return word;
}

START_TEST(a_run_is_the_same_on_every_machine)
{
    const struct known *k = &knowns[_i];
    struct det_machine *m = image_machine(k->options);

    for (unsigned i = 0; i < 3; i++) {
        struct det_answer a =
            det_run_strategy(m, m->config->strategy, m->config->seed, true);

        ck_assert_int_eq(a.outcome, VM_OUTCOME_OFF);
        /* That it did what it is for. */
        ck_assert_uint_eq(result(m, 0), 128);   /* the counter */
        ck_assert_uint_eq(result(m, 16), 0x22); /* the new page */
        ck_assert_uint_eq(result(m, 24), 1);    /* both interrupts */
        ck_assert_uint_ge(result(m, 40), 2000); /* and the timer's in time */
        ck_assert_uint_ge(result(m, 32), result(m, 40));
        if (a.trace_hash != k->trace_hash || a.state_hash != k->state_hash ||
            a.events != k->events || a.choices != k->choices ||
            a.virtual_ns != k->virtual_ns) {
            ck_abort_msg("run %u is not the known one; it is\n{\"%s\", "
                         "UINT64_C(0x%016" PRIx64 "), UINT64_C(0x%016" PRIx64
                         "), %" PRIu64 ", %" PRIu64 ", %" PRIu64 "},",
                         i, k->options, a.trace_hash, a.state_hash, a.events,
                         a.choices, a.virtual_ns);
        }
    }
    printf("%s: %" PRIu64 " events, %" PRIu64 " faults of the other CPU\n",
           k->options, k->events, result(m, 48));
    det_machine_free(m);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("machines");

    tcase_set_timeout(tc, det_seconds(30));
    tcase_add_loop_test(tc, a_run_is_the_same_on_every_machine, 0,
                        G_N_ELEMENTS(knowns));
    return det_main_of("machines", tc);
}
