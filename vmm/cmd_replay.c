/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `shootdown replay`: the run that a schedule tells, with whatever one wants
 * to see of it this time. Main thread.
 */
#include "cmd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "error.h"
#include "options.h"

static struct vm_config *config_of(const struct schedule *schedule,
                                   GError **error)
{
    const char *run = schedule_get(schedule, "run");

    if (!run) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the schedule has no 'run:' line, which says what to boot");
        return NULL;
    }
    return vm_config_from_text(run, error);
}

static int replay(const struct replay_options *o)
{
    g_autoptr(GError) error = NULL;
    struct schedule *schedule = schedule_load(o->schedule, &error);
    struct vm_config *config = schedule ? config_of(schedule, &error) : NULL;
    struct run run = {0};
    int status = EXIT_ENVIRONMENT;

    if (!config || !replay_options_apply(o, config, &error) ||
        !run_machine(config, schedule, &run, &error)) {
        status = cli_fail(error);
    } else {
        run.session.replay = schedule;
        run.replayed = o->schedule;
        status = run_report(config, &run);
        if (run.session.divergence) {
            status = EXIT_ENVIRONMENT;
        } else if (!o->quiet) {
            fprintf(stderr,
                    "shootdown: replayed %" G_GUINT64_FORMAT
                    " choices: the same trace and the same final state\n",
                    schedule->total);
        }
    }
    run_fini(&run);
    vm_config_free(config);
    schedule_free(schedule);
    return status;
}

int cmd_replay(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct replay_options o = {0};
    int status;

    if (!replay_options_parse(&o, argc, argv, &error)) {
        status = cli_fail(error);
    } else {
        status = replay(&o);
    }
    replay_options_fini(&o);
    return status;
}
