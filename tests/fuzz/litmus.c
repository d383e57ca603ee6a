/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Litmus tests: the parser, and the table of published verdicts. */
#include "fuzz.h"

#include "litmus/test.h"
#include "litmus/verdicts.h"

static void check_thread(const struct litmus_test *test, unsigned i)
{
    const struct litmus_thread *thread = &test->thread[i];

    FUZZ_CHECK(thread->code, "thread %u has no code", i);
    FUZZ_CHECK(thread->code->len <= LITMUS_INSNS_MAX, "thread %u is long", i);
    for (guint k = 0; k < thread->code->len; k++) {
        const struct litmus_insn *insn = g_ptr_array_index(thread->code, k);

        FUZZ_CHECK(insn->text && insn->labels, "instruction %u:%u", i, k);
        FUZZ_CHECK(insn->base >= -1 && insn->base < 32 && insn->index >= -1 &&
                       insn->index < 32,
                   "registers of %s", insn->text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    GError *error = NULL;
    struct litmus_test *test = litmus_parse(text, "input", &error);
    struct litmus_verdicts *verdicts;

    FUZZ_CHECK_ERROR(test != NULL, error);
    if (test) {
        FUZZ_CHECK(test->name && test->formula && test->places &&
                       test->threads <= LITMUS_THREADS_MAX &&
                       test->vars <= LITMUS_VARS_MAX,
                   "a part is missing");
        for (unsigned i = 0; i < test->threads; i++) {
            check_thread(test, i);
        }
        litmus_test_free(test);
    }
    g_clear_error(&error);
    verdicts = litmus_verdicts_load(fuzz_file(data, size), &error);
    FUZZ_CHECK_ERROR(verdicts != NULL, error);
    if (verdicts) {
        (void)litmus_verdicts_find(verdicts, "a/b.litmus", "b");
        litmus_verdicts_free(verdicts);
    }
    g_clear_error(&error);
    g_free(text);
    return 0;
}
