/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A probe file, with addresses in place of names: there is no kernel here. */
#include "fuzz.h"

#include <string.h>

#include "probes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    char *text = fuzz_text(data, size);
    struct probe_file *f = probe_file_parse(text, "f.probes", NULL, &error);

    FUZZ_CHECK_ERROR(f != NULL, error);
    FUZZ_CHECK(f || strncmp(error->message, "f.probes:", 9) == 0, "%s",
               error->message);
    for (guint i = 0; f && i < f->probes->len; i++) {
        const struct probe *p = &g_array_index(f->probes, struct probe, i);

        FUZZ_CHECK(p->pc % 4 == 0 && (unsigned)p->role < PROBE_ROLES, "pc");
        FUZZ_CHECK(i == 0 || p[-1].pc <= p->pc, "not sorted");
        for (unsigned k = 0; k < PROBE_KEYS; k++) {
            FUZZ_CHECK(p->value[k].reg < 8, "register");
        }
    }
    FUZZ_CHECK(!f || !f->has_pages || f->pages_size != 0, "divides by 0");
    probe_file_free(f);
    g_free(text);
    g_clear_error(&error);
    return 0;
}
