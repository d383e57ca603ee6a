/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `shootdown run`: one machine from its configuration to its exit status.
 * Main thread; vm_run() turns it into the loop thread and comes back when
 * every worker was joined.
 */
#include "cmd.h"

#include <string.h>

#include "ledger_watch.h"
#include "error.h"
#include "obs/plugin.h"
#include "obs/symbols.h"
#include "obs/trace.h"
#include "paths.h"

/* What lives as long as the machine runs, beside struct run. */
struct run_tools {
    struct plugins *plugins;
    struct trace *trace;
    struct ledger_watch *ledger;
};

static bool load_symbols(const struct vm_config *config, struct run *run,
                         GError **error)
{
    bool is_needed = config->attribute || config->plugins[0] ||
                     config->check_bbm || config->ledger;

    if (!is_needed || !config->symbols) {
        return true;
    }
    run->symbols = symbols_load(config->symbols, error);
    return run->symbols != NULL;
}

static bool load_plugins(const struct vm_config *config, struct run *run,
                         struct run_tools *tools, GError **error)
{
    g_autofree char *dir = paths_plugin_dir();

    tools->plugins = plugins_new(run->events, run->symbols);
    for (char **spec = config->plugins; *spec; spec++) {
        if (!plugins_load(tools->plugins, *spec, dir, error)) {
            return false;
        }
    }
    return true;
}

/* Everything that must be there before the first instruction. */
static bool run_prepare(const struct vm_config *config, struct run *run,
                        struct run_tools *tools, GError **error)
{
    if (!load_symbols(config, run, error)) {
        return false;
    }
    run->events = events_new(config->cpus);
    if (config->attribute) {
        events_attribute(run->events, run->symbols);
    }
    if (config->check_bbm || config->ledger) {
        tools->ledger = ledger_watch_new(config, run->events);
    }
    if (!load_plugins(config, run, tools, error)) {
        return false;
    }
    if (config->trace_path) {
        tools->trace = trace_open(config, run->events, error);
        return tools->trace != NULL;
    }
    return true;
}

static bool run_vm(const struct vm_config *config,
                   const struct schedule *replay, struct run *run,
                   struct run_tools *tools, GError **error)
{
    struct plugin_services services = {0};
    struct vm *vm = vm_new(config, run->events, error);

    if (!vm) {
        return false;
    }
    if (replay && !vm_replay(vm, replay, error)) {
        vm_free(vm);
        return false;
    }
    ledger_watch_attach(tools->ledger, vm);
    if (replay && !execution_stop_like(vm, replay)) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the schedule's outcome is a violation, but it has no "
                    "'violation:' line that says which");
        ledger_watch_attach(tools->ledger, NULL);
        vm_free(vm);
        return false;
    }
    vm_services(vm, &services);
    plugins_set_services(tools->plugins, &services);
    run->outcome = vm_run(vm, error);
    vm_collect(vm, &run->totals);
    vm_take_session(vm, &run->session);
    vm_probes_report(vm, config->verbose, stderr);
    run->totals.outcome = vm_outcome_name(run->outcome);
    ledger_watch_attach(tools->ledger, NULL);
    vm_free(vm);
    services = (struct plugin_services){0}; /* there is no memory any more */
    plugins_set_services(tools->plugins, &services);
    plugins_at_exit(tools->plugins);
    return run->outcome != VM_OUTCOME_ENGINE_ERROR;
}

bool run_machine(const struct vm_config *config, const struct schedule *replay,
                 struct run *out_run, GError **error)
{
    struct run_tools tools = {0};
    g_autoptr(GError) trace_error = NULL;
    bool ok;

    memset(out_run, 0, sizeof(*out_run));
    ok = run_prepare(config, out_run, &tools, error) &&
         run_vm(config, replay, out_run, &tools, error);
    if (!trace_close(tools.trace, &trace_error) && ok) {
        g_propagate_error(error, g_steal_pointer(&trace_error));
        ok = false;
    }
    plugins_free(tools.plugins);
    out_run->violations =
        ledger_watch_report(tools.ledger, config->verbose, stderr);
    out_run->windows = ledger_watch_windows(tools.ledger);
    out_run->findings = ledger_watch_take_findings(tools.ledger);
    ledger_watch_free(tools.ledger);
    return ok;
}

void run_fini(struct run *run)
{
    vm_totals_fini(&run->totals);
    session_fini(&run->session);
    ledger_findings_free(run->findings);
    events_free(run->events);
    symbols_free(run->symbols);
    memset(run, 0, sizeof(*run));
}

int cmd_run(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct vm_config *config =
        vm_config_parse(VM_COMMAND_RUN, argc, argv, &error);
    struct run run;
    int status = EXIT_ENVIRONMENT;

    if (!config) {
        return cli_fail(error);
    }
    if (!run_machine(config, NULL, &run, &error)) {
        status = cli_fail(error);
        /* What was counted until an engine error is still worth having. */
        if (run.outcome != VM_OUTCOME_NONE) {
            (void)run_report(config, &run); /* the first failure decides */
        }
    } else {
        status = run_report(config, &run);
    }
    run_fini(&run);
    vm_config_free(config);
    return status;
}
