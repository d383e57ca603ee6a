/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of the deterministic engines: who decides, what the hardware is
 * free to do, where a run is snapshotted and how it ends. In `parallel` the
 * host decides, so that each of them is refused by name. Main thread.
 */
#include "config_priv.h"

#include <string.h>

#include "abi/annot.h"
#include "choice/source.h"
#include "mmu/ledger.h"
#include "mmu/inject.h"
#include "options.h"

static const char *const engines[] = {"parallel", "seeded", "vtime", NULL};

enum hw_profile config_default_hw(enum vm_engine engine)
{
    return engine == VM_ENGINE_SEEDED ? HW_PROFILE_RANDOM : HW_PROFILE_TYPICAL;
}

static bool take_name(struct vm_config *c, const struct options *o,
                      GError **error)
{
    unsigned engine = c->engine;

    if (!config_choice("--engine", o->engine, engines, &engine, error)) {
        return false;
    }
    c->engine = (enum vm_engine)engine;
    return true;
}

/* With parallel: what only a deterministic engine can do, by name. */
static bool refuse_in_parallel(const struct options *o, GError **error)
{
    const struct {
        const char *name, *value;
    } texts[] = {
        {"--seed", o->seed},     {"--strategy", o->strategy},
        {"--record", o->record}, {"--snapshot-at", o->snapshot_at},
        {"--runs", o->runs},     {"--max-steps", o->max_steps},
        {"--check", o->check},   {"--inject", o->inject},
        {"--probes", o->probes},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (texts[i].value) {
            return config_usage(error,
                                "%s '%s' needs --engine seeded%s: with "
                                "--engine parallel the host's threads decide, "
                                "and no run repeats another",
                                texts[i].name, texts[i].value,
                                o->strategy == texts[i].value ? ""
                                                              : " or vtime");
        }
    }
    if (o->hw && strcmp(o->hw, hw_profile_name(HW_PROFILE_TYPICAL)) != 0) {
        return config_usage(error,
                            "--hw '%s' needs --engine seeded or vtime: "
                            "--engine parallel has only 'typical'",
                            o->hw);
    }
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        if (o->hw_modes[k]) {
            return config_usage(
                error,
                "--hw-%s '%s' needs --engine seeded or vtime: "
                "--engine parallel has the liberties of 'typical' "
                "and no others",
                hw_knob_option((enum hw_knob)k), o->hw_modes[k]);
        }
    }
    return true;
}

static bool take_liberties(struct vm_config *c, const struct options *o,
                           GError **error)
{
    enum hw_profile profile = config_default_hw(c->engine);

    if (o->hw && !hw_profile_from_name(o->hw, &profile)) {
        return config_usage(error,
                            "--hw is '%s': accepted are eager, typical, "
                            "random, adversarial",
                            o->hw);
    }
    hw_set_profile(&c->hw, profile);
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        if (o->hw_modes[k] &&
            !hw_mode_from_name(o->hw_modes[k], &c->hw.mode[k])) {
            return config_usage(
                error, "--hw-%s is '%s': accepted are off, random, on",
                hw_knob_option((enum hw_knob)k), o->hw_modes[k]);
        }
    }
    return true;
}

static bool take_strategy(struct vm_config *c, const struct options *o,
                          GError **error)
{
    g_autoptr(GError) reason = NULL;
    struct choice_source *source;

    if (!o->strategy) {
        return true;
    }
    source = choice_strategy_new(o->strategy, c->seed, &reason);
    if (!source) {
        return config_usage(error,
                            "--strategy is '%s': %s; 'shootdown list "
                            "strategies' shows them",
                            o->strategy, reason->message);
    }
    choice_source_free(source);
    if (c->engine == VM_ENGINE_VTIME && strcmp(o->strategy, "random") != 0) {
        return config_usage(error,
                            "--strategy '%s' needs --engine seeded: with "
                            "--engine vtime the clocks choose the vCPU, and "
                            "'random' draws the rest",
                            o->strategy);
    }
    g_free(c->strategy);
    c->strategy = g_strdup(o->strategy);
    return true;
}

static bool take_runs(struct vm_config *c, const struct options *o,
                      GError **error)
{
    if (o->runs && !o->snapshot_at) {
        return config_usage(error,
                            "--runs '%s' needs --snapshot-at MARK: the runs "
                            "all begin at the snapshot that is taken there",
                            o->runs);
    }
    c->has_snapshot_at = o->snapshot_at != NULL;
    c->max_steps = c->has_snapshot_at ? VM_MAX_STEPS_DEFAULT : 0;
    return config_u64("--snapshot-at", o->snapshot_at, &c->snapshot_at,
                      error) &&
           config_number("--runs", o->runs, 1, VM_RUNS_MAX, &c->runs, error) &&
           config_u64("--max-steps", o->max_steps, &c->max_steps, error);
}

/* Checks and faults; all but the ledger need all vCPUs on one thread. */
static bool take_checks(struct vm_config *c, const struct options *o,
                        enum vm_command command, GError **error)
{
    static const char *const switches[] = {"off", "on", "stop", NULL};
    /* In a schedule's line it is named. */
    bool is_usual = command == VM_COMMAND_RUN && !o->ledger && !o->check &&
                    c->engine != VM_ENGINE_PARALLEL;
    unsigned ledger = is_usual ? 1 : 0;

    if (o->inject && !inject_parse(o->inject, &c->inject)) {
        GString *names = g_string_new(NULL);

        for (unsigned i = 0; i < INJECTS; i++) {
            g_string_append_printf(names, "%s%s", i ? ", " : "",
                                   inject_name((enum inject)i));
        }
        config_usage(error, "--inject is '%s': accepted are %s", o->inject,
                     names->str);
        g_string_free(names, TRUE);
        return false;
    }
    if (!config_choice("--ledger", o->ledger, switches, &ledger, error)) {
        return false;
    }
    c->ledger = ledger != 0;
    c->ledger_is_usual = is_usual;
    c->ledger_stop = ledger == 2;
    if (!o->check) {
        return true;
    }
    if (c->ledger) {
        return config_usage(error,
                            "--check '%s' does not go with --ledger on, which "
                            "checks that as well",
                            o->check);
    }
    if (strcmp(o->check, "bbm") != 0) {
        return config_usage(error, "--check is '%s': accepted is bbm",
                            o->check);
    }
    if (c->has_snapshot_at) {
        return config_usage(error,
                            "--check '%s' does not go with --snapshot-at: "
                            "what is checked begins where the machine does",
                            o->check);
    }
    c->check_bbm = true;
    return true;
}

/* What one execution of a fuzzer is: no matter of options. */
static bool take_fuzz(struct vm_config *c, const struct options *o,
                      GError **error)
{
    c->engine = VM_ENGINE_SEEDED;
    c->has_snapshot_at = true;
    c->snapshot_at = ANNOT_MARK_BEGIN;
    c->max_steps = VM_MAX_STEPS_DEFAULT;
    c->ledger = true;
    c->ledger_stop = true;
    return take_liberties(c, o, error) &&
           config_u64("--snapshot-at", o->snapshot_at, &c->snapshot_at, error);
}

bool config_take_engine(struct vm_config *c, const struct options *o,
                        enum vm_command command, GError **error)
{
    if (command == VM_COMMAND_FUZZ) {
        return take_fuzz(c, o, error);
    }
    if (!take_name(c, o, error)) {
        return false;
    }
    if (c->engine == VM_ENGINE_PARALLEL) {
        if (!refuse_in_parallel(o, error)) {
            return false;
        }
    } else if (o->workers) {
        return config_usage(error,
                            "--workers '%s' needs --engine parallel: --engine "
                            "%s runs all vCPUs on one thread",
                            o->workers, vm_engine_name(c->engine));
    }
    c->record_path = g_strdup(o->record);
    c->probes_path = g_strdup(o->probes);
    return take_liberties(c, o, error) &&
           config_u64("--seed", o->seed, &c->seed, error) &&
           take_strategy(c, o, error) && take_runs(c, o, error) &&
           take_checks(c, o, command, error);
}
