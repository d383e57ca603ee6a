/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See scenario.h. One thread. */
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>

#include "choice/schedule.h"
#include "error.h"

static _Noreturn void give_up(const char *program, GError *error)
{
    fprintf(stderr, "%s: %s\n", program, error->message);
    exit(exit_status_from_error(error));
}

struct fuzz_target *scenario_open(const char *program, int argc,
                                  char *const *argv)
{
    GError *error = NULL;
    struct vm_config *config = fuzz_target_config(argc, argv, &error);
    struct fuzz_target *target;

    if (config && config->inputs && config->inputs[0]) {
        g_set_error(&error, VM_ERROR, VM_ERROR_USAGE,
                    "'%s' is one word too many: files and directories are the "
                    "fuzzer's, arguments of the workload come after a second "
                    "--",
                    config->inputs[0]);
        give_up(program, error);
    }
    target = config ? fuzz_target_open(config, &error) : NULL;
    vm_config_free(config);
    if (!target) {
        give_up(program, error);
    }
    return target;
}

static void tell(struct fuzz_target *target, const struct fuzz_run *run)
{
    char *text = failure_text(&run->failure);

    fprintf(stderr, "shootdown: %s: %s\n", failure_kind(&run->failure), text);
    g_free(text);
    fuzz_target_report(target, NULL, stderr);
    if (run->failure.outcome != VM_OUTCOME_VIOLATION) {
        /* The ledger's report has this line already. */
        struct schedule *schedule = fuzz_target_schedule(target);
        char *line = schedule_to_line(schedule);

        fprintf(stderr, "to see it again:\n  shootdown replay %s\n", line);
        g_free(line);
        schedule_free(schedule);
    }
}

void scenario_run(struct fuzz_target *target, const uint8_t *bytes,
                  size_t length)
{
    struct fuzz_run run;

    fuzz_target_run(target, bytes, length, &run);
    if (run.failed) {
        tell(target, &run);
        abort();
    }
}
