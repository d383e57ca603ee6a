/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run's configuration as one line, for schedules and for messages that say
 * how to repeat a run. It holds what differs from the defaults, so that a
 * person can read it; a default that changes therefore changes what older
 * lines mean, which the hashes of a schedule tell. Main thread.
 */
#include "config_priv.h"

#include <string.h>

#include "error.h"
#include "mmu/inject.h"
#include "paths.h"

/* What a shell takes as it is, anywhere in a word. */
#define PLAIN                                                                  \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"           \
    "-_./:=,+@%"

/* --- out --- */

char *vm_config_word(const char *word)
{
    bool is_plain = word[0] != '\0' && word[strspn(word, PLAIN)] == '\0';

    return is_plain ? g_strdup(word) : g_shell_quote(word);
}

static void put_word(GString *line, const char *word)
{
    g_autofree char *quoted = vm_config_word(word);

    g_string_append_printf(line, "%s%s", line->len ? " " : "", quoted);
}

/* One word, also where the value begins with a dash. NULL: nothing. */
static void put_text(GString *line, const char *option, const char *value)
{
    g_autofree char *word = NULL;

    if (value) {
        word = g_strdup_printf("%s=%s", option, value);
        put_word(line, word);
    }
}

static void put_number(GString *line, const char *option, uint64_t value,
                       uint64_t unless)
{
    if (value != unless) {
        g_string_append_printf(line, "%s%s=%" G_GUINT64_FORMAT,
                               line->len ? " " : "", option, value);
    }
}

/* The value unless it is the one that is found where none is given. */
static const char *unless(const char *value, const char *otherwise)
{
    return g_strcmp0(value, otherwise) == 0 ? NULL : value;
}

static void put_image(GString *line, const struct vm_config *c)
{
    g_autofree char *initrd = NULL, *symbols = NULL;

    if (c->workload) {
        initrd = paths_guest_file("initramfs.cpio", NULL);
        symbols = paths_guest_file("kernel.elf", NULL);
    } else {
        symbols = config_default_symbols(c->kernel);
        put_text(line, "--kernel", c->kernel);
    }
    put_text(line, "--initrd", unless(c->initrd, initrd));
    put_text(line, "--symbols", unless(c->symbols, symbols));
    put_text(line, "--append", c->append);
}

static void put_machine(GString *line, const struct vm_config *c,
                        const struct vm_config *usual)
{
    /* Always whole MiB: --mem accepts nothing finer. */
    g_autofree char *mem =
        g_strdup_printf("%" G_GUINT64_FORMAT "M", c->mem >> 20);

    put_number(line, "--cpus", c->cpus, usual->cpus);
    put_text(line, "--mem", c->mem != usual->mem ? mem : NULL);
    if (c->engine == VM_ENGINE_PARALLEL) {
        put_number(line, "--workers", c->workers,
                   config_default_workers(c->cpus));
    }
    put_number(line, "--tlb-sets", c->tlb_sets, usual->tlb_sets);
    put_number(line, "--tlb-ways", c->tlb_ways, usual->tlb_ways);
    put_text(line, "--tlb-replacement",
             unless(vm_replacement_name(c->replacement),
                    vm_replacement_name(usual->replacement)));
    put_number(line, "--walk-cache", c->walk_cache, usual->walk_cache);
}

static void put_modes(GString *line, const struct vm_config *c,
                      const struct vm_config *usual)
{
    put_text(line, "--tlb",
             unless(vm_tlb_mode_name(c->tlb), vm_tlb_mode_name(usual->tlb)));
    if (c->workload) {
        put_text(line, "--flush",
                 unless(vm_flush_mode_name(c->flush),
                        vm_flush_mode_name(usual->flush)));
        put_text(line, "--drain",
                 unless(vm_drain_mode_name(c->drain),
                        vm_drain_mode_name(usual->drain)));
        put_text(line, "--filter",
                 unless(vm_filter_mode_name(c->filter),
                        vm_filter_mode_name(usual->filter)));
        put_text(line, "--bug", c->bug);
    }
}

static unsigned hw_distance(const struct hw *a, enum hw_profile profile)
{
    struct hw b;
    unsigned n = 0;

    hw_set_profile(&b, profile);
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        n += a->mode[k] != b.mode[k];
    }
    return n;
}

/* The profile that is nearest, and the switches that differ from it. */
static void put_liberties(GString *line, const struct vm_config *c)
{
    enum hw_profile usual = config_default_hw(c->engine);
    enum hw_profile nearest = usual;
    struct hw hw;

    for (unsigned p = 0; p <= HW_PROFILE_ADVERSARIAL; p++) {
        if (hw_distance(&c->hw, (enum hw_profile)p) <
            hw_distance(&c->hw, nearest)) {
            nearest = (enum hw_profile)p;
        }
    }
    if (nearest != usual) {
        put_text(line, "--hw", hw_profile_name(nearest));
    }
    hw_set_profile(&hw, nearest);
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        g_autofree char *option =
            g_strconcat("--hw-", hw_knob_option((enum hw_knob)k), NULL);

        if (c->hw.mode[k] != hw.mode[k]) {
            put_text(line, option, hw_mode_name(c->hw.mode[k]));
        }
    }
}

static void put_injects(GString *line, const struct vm_config *c)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (unsigned i = 0; i < INJECTS; i++) {
        if (c->inject & INJECT_BIT(i)) {
            g_string_append_printf(names, "%s%s", names->len ? "," : "",
                                   inject_name((enum inject)i));
        }
    }
    put_text(line, "--inject", names->len ? names->str : NULL);
}

static void put_ledger(GString *line, const struct vm_config *c)
{
    put_text(line, "--ledger",
             c->ledger_stop ? "stop"
             : c->ledger    ? "on"
                            : NULL); /* off in a schedule's line */
}

static void put_choices(GString *line, const struct vm_config *c,
                        const struct vm_config *usual)
{
    put_text(line, "--engine", vm_engine_name(c->engine));
    /* Shown though it may be the default: what one changes first. */
    g_string_append_printf(line, " --seed=%" G_GUINT64_FORMAT, c->seed);
    put_text(line, "--strategy", unless(c->strategy, usual->strategy));
    put_liberties(line, c);
    if (c->has_snapshot_at) {
        g_string_append_printf(line, " --snapshot-at=%" G_GUINT64_FORMAT,
                               c->snapshot_at);
    }
    put_number(line, "--runs", c->runs, usual->runs);
    put_number(line, "--max-steps", c->max_steps,
               c->has_snapshot_at ? VM_MAX_STEPS_DEFAULT : 0);
    put_ledger(line, c);
    put_text(line, "--probes", c->probes_path);
    put_injects(line, c);
}

char *vm_config_to_text(const struct vm_config *c)
{
    GString *line = g_string_new(NULL);
    struct vm_config *usual = g_new0(struct vm_config, 1);

    config_set_defaults(usual);
    if (c->engine != VM_ENGINE_PARALLEL) {
        put_choices(line, c, usual);
    } else {
        put_ledger(line, c);
    }
    put_machine(line, c, usual);
    put_modes(line, c, usual);
    put_image(line, c);
    vm_config_free(usual);
    if (c->workload) {
        put_word(line, c->workload);
    }
    if (c->args[0]) {
        put_word(line, "--");
    }
    for (char **arg = c->args; *arg; arg++) {
        put_word(line, *arg);
    }
    return g_string_free(line, FALSE);
}

/* --- in --- */

struct vm_config *vm_config_from_text(const char *text, GError **error)
{
    g_auto(GStrv) argv = NULL;
    g_autoptr(GError) reason = NULL;
    struct vm_config *config = NULL;
    int argc = 0;

    if (strpbrk(text, "\r\n")) {
        g_set_error_literal(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                            "the configuration is more than one line");
        return NULL;
    }
    if (g_shell_parse_argv(text, &argc, &argv, &reason)) {
        config = vm_config_parse(VM_COMMAND_SCHEDULE, argc, argv, &reason);
    }
    if (!config) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "the configuration '%s' is not accepted: %s", text,
                    reason->message);
    }
    return config;
}
