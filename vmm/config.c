/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the command line to a struct vm_config: texts out of GOption, each
 * checked here so that a refusal names the option, the value seen and what is
 * accepted. The options' own texts are in options.c, values in
 * config_values.c, the deterministic engines' options in config_engine.c.
 * Main thread.
 */
#include "config_priv.h"

#include <stdio.h>
#include <string.h>

#include "mmu/ledger.h"
#include "obs/events.h"
#include "options.h"
#include "paths.h"

#define CPUS_DEFAULT 4
#define MEM_DEFAULT (UINT64_C(512) << 20)
#define TIMEOUT_MAX 604800 /* a week */

/* What the bundled kernel keeps of its command line. */
#define CMDLINE_MAX 1023

/* --- groups of options --- */

unsigned config_default_workers(unsigned cpus)
{
    return MIN(g_get_num_processors(), cpus);
}

static bool take_machine(struct vm_config *c, const struct options *o,
                         GError **error)
{
    if (!config_number("--cpus", o->cpus, 1, VM_CPUS_MAX, &c->cpus, error) ||
        !config_mem(o->mem, &c->mem, error) ||
        !config_number("--tlb-sets", o->tlb_sets, 1, 65536, &c->tlb_sets,
                       error) ||
        !config_number("--tlb-ways", o->tlb_ways, 1, 64, &c->tlb_ways, error) ||
        !config_number("--walk-cache", o->walk_cache, 0, 1024, &c->walk_cache,
                       error)) {
        return false;
    }
    if (c->tlb_sets & (c->tlb_sets - 1)) {
        return config_usage(
            error,
            "--tlb-sets is '%s': accepted are powers of two from 1 to "
            "65536",
            o->tlb_sets);
    }
    if (c->check_bbm && c->tlb != VM_TLB_BROADCAST) {
        return config_usage(error,
                            "--check bbm needs --tlb broadcast: with IPIs an "
                            "idle vCPU keeps old translations until it wakes, "
                            "by agreement, and that cannot be seen");
    }
    if (c->ledger_is_usual && c->cpus > LEDGER_VCPUS_MAX) {
        c->ledger = false;
    }
    if ((c->check_bbm || c->ledger) && c->cpus > LEDGER_VCPUS_MAX) {
        return config_usage(error, "--cpus is %u: %s knows at most %u vCPUs",
                            c->cpus, c->ledger ? "--ledger on" : "--check bbm",
                            LEDGER_VCPUS_MAX);
    }
    c->workers =
        c->engine == VM_ENGINE_PARALLEL ? config_default_workers(c->cpus) : 1;
    return config_number("--workers", o->workers, 1, c->cpus, &c->workers,
                         error);
}

static bool take_modes(struct vm_config *c, const struct options *o,
                       GError **error)
{
    static const char *const tlbs[] = {"broadcast", "ipi", NULL};
    static const char *const flushes[] = {"sync", "batched", NULL};
    static const char *const drains[] = {"mm", "dsb", "none", NULL};
    static const char *const filters[] = {"off", "stale", NULL};
    static const char *const replacements[] = {"lru", "fifo", "random", NULL};
    unsigned tlb = c->tlb, flush = c->flush, drain = c->drain;
    unsigned filter = c->filter, replacement = c->replacement;

    if (!config_choice("--tlb", o->tlb, tlbs, &tlb, error) ||
        !config_choice("--flush", o->flush, flushes, &flush, error) ||
        !config_choice("--drain", o->drain, drains, &drain, error) ||
        !config_choice("--filter", o->filter, filters, &filter, error) ||
        !config_choice("--tlb-replacement", o->replacement, replacements,
                       &replacement, error)) {
        return false;
    }
    c->tlb = (enum vm_tlb_mode)tlb;
    c->flush = (enum vm_flush_mode)flush;
    c->drain = (enum vm_drain_mode)drain;
    c->filter = (enum vm_filter_mode)filter;
    c->replacement = (enum vm_replacement)replacement;
    if (c->filter == VM_FILTER_STALE && c->tlb != VM_TLB_IPI) {
        return config_usage(error,
                            "--filter 'stale' needs --tlb ipi: it leaves vCPUs "
                            "out that need no IPI, and with broadcast there "
                            "are none");
    }
    return true;
}

static bool one_stdout(const struct config_output *o, GError **error)
{
    const struct {
        const char *name, *value;
    } texts[] = {
        {"--stats", o->stats}, {"--trace", o->trace}, {"--report", o->report}};
    const char *first = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (g_strcmp0(texts[i].value, "-") != 0) {
            continue;
        }
        if (first) {
            return config_usage(error,
                                "%s - and %s - would both write to standard "
                                "output: give one of them a file",
                                first, texts[i].name);
        }
        first = texts[i].name;
    }
    return true;
}

bool config_take_output(struct vm_config *c, const struct config_output *o,
                        GError **error)
{
    /* A block event costs a call per basic block: only on demand. */
    c->trace_events = EVENT_ALL & ~EVENT_BIT(EVENT_block);
    if (o->trace_events && !o->trace) {
        return config_usage(error, "--trace-events needs --trace FILE");
    }
    if (!one_stdout(o, error)) {
        return false;
    }
    if (o->quiet && o->verbose) {
        return config_usage(error, "--quiet and --verbose exclude each other");
    }
    g_free(c->stats_path);
    g_free(c->trace_path);
    g_free(c->report_path);
    g_strfreev(c->plugins);
    c->stats_path = g_strdup(o->stats);
    c->report_path = g_strdup(o->report);
    c->trace_path = g_strdup(o->trace);
    c->plugins =
        o->plugins ? g_strdupv((char **)o->plugins) : g_new0(char *, 1);
    c->quiet = o->quiet;
    c->verbose = o->verbose;
    c->attribute = o->stats != NULL;
    return config_events(o->trace_events, &c->trace_events, error);
}

static bool take_output(struct vm_config *c, const struct options *o,
                        GError **error)
{
    const struct config_output output = {
        .stats = o->stats,
        .trace = o->trace,
        .trace_events = o->trace_events,
        .report = o->report,
        .plugins = o->plugins,
        .quiet = o->quiet,
        .verbose = o->verbose,
    };

    if (o->report && !c->ledger && !c->check_bbm) {
        return config_usage(error,
                            "--report '%s' needs --ledger on or --check bbm: "
                            "it is for what they find",
                            o->report);
    }
    return config_take_output(c, &output, error) &&
           config_number("--timeout", o->timeout, 0, TIMEOUT_MAX, &c->timeout_s,
                         error);
}

/* --- what is booted --- */

static bool check_workload(const char *name, GError **error)
{
    GArray *all = paths_workloads(error);
    g_autoptr(GString) names = g_string_new(NULL);
    bool found = false;

    if (!all) {
        return false;
    }
    for (guint i = 0; i < all->len; i++) {
        const struct workload *w = &g_array_index(all, struct workload, i);

        found = found || strcmp(w->name, name) == 0;
        g_string_append_printf(names, "%s%s", i ? ", " : "", w->name);
    }
    g_array_unref(all);
    if (!found) {
        return config_usage(
            error,
            "there is no workload '%s': the bundled ones are %s; a "
            "kernel of your own runs with --kernel FILE",
            name, names->str);
    }
    return true;
}

static bool check_bugs(const char *text, GError **error)
{
    static const char *const names[] = {
#define BUG(ident, bug_name, exhibit, rule, what) bug_name,
#include "abi/bugs.inc"
#undef BUG
        NULL,
    };
    g_auto(GStrv) bugs = NULL;

    if (!text) {
        return true;
    }
    if (!text[0]) {
        return config_usage(error, "--bug is '': accepted are names that "
                                   "'shootdown list bugs' shows, with commas "
                                   "between");
    }
    bugs = g_strsplit(text, ",", -1);
    for (char **bug = bugs; *bug; bug++) {
        if (!g_strv_contains(names, *bug)) {
            return config_usage(error,
                                "there is no bug '%s': 'shootdown list bugs' "
                                "shows those that the bundled kernel can have",
                                *bug);
        }
    }
    return true;
}

static bool take_bundled(struct vm_config *c, const struct options *o,
                         GError **error)
{
    c->workload = g_strdup(o->positional[0]);
    if (!check_workload(c->workload, error) || !check_bugs(o->bug, error)) {
        return false;
    }
    c->bug = g_strdup(o->bug);
    c->kernel = paths_guest_file("kernel.img", error);
    if (!c->kernel) {
        return false;
    }
    c->initrd = o->initrd ? g_strdup(o->initrd)
                          : paths_guest_file("initramfs.cpio", error);
    if (!c->initrd) {
        return false;
    }
    /* Without it addresses stay numbers; no reason not to run. */
    c->symbols = o->symbols ? g_strdup(o->symbols)
                            : paths_guest_file("kernel.elf", NULL);
    return true;
}

char *config_default_symbols(const char *kernel)
{
    g_autofree char *beside = NULL;
    char magic[4] = {0};
    FILE *f = fopen(kernel, "re");
    bool is_elf =
        f && fread(magic, 1, 4, f) == 4 && memcmp(magic, "\177ELF", 4) == 0;

    if (f) {
        (void)fclose(f); /* opened for reading */
    }
    if (is_elf) {
        return g_strdup(kernel);
    }
    if (g_str_has_suffix(kernel, ".img")) {
        beside = g_strdup_printf("%.*s.elf", (int)strlen(kernel) - 4, kernel);
        if (g_file_test(beside, G_FILE_TEST_IS_REGULAR)) {
            return g_steal_pointer(&beside);
        }
    }
    return NULL;
}

static bool take_own_kernel(struct vm_config *c, const struct options *o,
                            GError **error)
{
    if (o->positional && o->positional[0]) {
        return config_usage(
            error,
            "both the workload '%s' and --kernel '%s' were given: "
            "choose one",
            o->positional[0], o->kernel);
    }
    if (o->flush || o->drain || o->filter || o->bug) {
        return config_usage(
            error, "--flush, --drain, --filter and --bug are for the bundled "
                   "kernel: with "
                   "--kernel write its words in --append, as in --append "
                   "'flush=sync'");
    }
    c->kernel = g_strdup(o->kernel);
    c->initrd = g_strdup(o->initrd);
    c->symbols =
        o->symbols ? g_strdup(o->symbols) : config_default_symbols(o->kernel);
    return true;
}

static bool take_image(struct vm_config *c, struct options *o,
                       enum vm_command command, GError **error)
{
    unsigned positional = o->positional ? g_strv_length(o->positional) : 0;

    if (command == VM_COMMAND_FUZZ) {
        /* With a kernel of one's own there is no workload to name. */
        unsigned first = o->kernel || positional == 0 ? 0 : 1;

        g_strfreev(c->inputs);
        c->inputs =
            g_strdupv(o->positional ? o->positional + first : (char *[]){NULL});
        if (o->positional) {
            for (unsigned i = first; i < positional; i++) {
                g_clear_pointer(&o->positional[i], g_free);
            }
            positional = first;
        }
    }
    if (positional > 1) {
        return config_usage(
            error,
            "'%s' is one word too many: arguments of the workload '%s' "
            "come after --",
            o->positional[1], o->positional[0]);
    }
    c->append = g_strdup(o->append);
    if (o->kernel) {
        return take_own_kernel(c, o, error);
    }
    if (positional == 0) {
        return config_usage(
            error,
            "what shall run? Name a workload ('shootdown list "
            "workloads' shows them)%s",
            command == VM_COMMAND_COMPARE ? "" : " or --kernel FILE");
    }
    return take_bundled(c, o, error);
}

/* --- the kernel's command line --- */

static void append_words(GString *line, const char *words)
{
    if (words && words[0]) {
        g_string_append_printf(line, "%s%s", line->len ? " " : "", words);
    }
}

void vm_config_compose(struct vm_config *c)
{
    GString *line = g_string_new(NULL);

    if (c->workload) {
        bool selftest = strcmp(c->workload, "selftest") == 0;

        g_string_printf(line, "tlb=%s flush=%s drain=%s%s init=%s%s",
                        vm_tlb_mode_name(c->tlb), vm_flush_mode_name(c->flush),
                        vm_drain_mode_name(c->drain),
                        c->filter == VM_FILTER_STALE ? " filter=stale" : "",
                        selftest ? "" : "/bin/", c->workload);
        if (c->bug) {
            g_string_append_printf(line, " bug=%s", c->bug);
        }
    }
    append_words(line, c->append);
    if (c->args[0]) {
        append_words(line, "--");
    }
    for (char **arg = c->args; *arg; arg++) {
        append_words(line, *arg);
    }
    g_free(c->cmdline);
    c->cmdline = g_string_free(line, FALSE);
}

/* A run must fit into one line: schedules hold it so. */
static bool check_lines(const struct vm_config *c, GError **error)
{
    const struct {
        const char *option, *value;
    } texts[] = {
        {"--append", c->append},
        {"--kernel", c->kernel},
        {"--initrd", c->initrd},
        {"--symbols", c->symbols},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (texts[i].value && strpbrk(texts[i].value, "\r\n")) {
            return config_usage(error,
                                "%s is '%s': a line break in it is not "
                                "accepted",
                                texts[i].option, texts[i].value);
        }
    }
    return true;
}

static bool check_cmdline(const struct vm_config *c, GError **error)
{
    for (char **arg = c->args; *arg; arg++) {
        if ((*arg)[0] == '\0' || strpbrk(*arg, " \t\r\n\"'")) {
            return config_usage(
                error,
                "the argument '%s' is empty or has a blank or a quote "
                "in it: the kernel's command line cannot carry that",
                *arg);
        }
    }
    if (strlen(c->cmdline) > CMDLINE_MAX) {
        return config_usage(
            error,
            "the kernel's command line would be %zu bytes long, more "
            "than %d: shorten --append or the arguments after --",
            strlen(c->cmdline), CMDLINE_MAX);
    }
    return true;
}

/* --- life --- */

void config_set_defaults(struct vm_config *c)
{
    c->cpus = CPUS_DEFAULT;
    c->mem = MEM_DEFAULT;
    c->flush = VM_FLUSH_BATCHED;
    c->tlb_sets = 512;
    c->tlb_ways = 8;
    c->walk_cache = 64;
    c->seed = 1;
    c->strategy = g_strdup("random");
    c->inputs = g_new0(char *, 1);
    c->runs = 1;
    hw_set_profile(&c->hw, config_default_hw(c->engine));
}

struct vm_config *vm_config_parse(enum vm_command command, int argc,
                                  char *const *argv, GError **error)
{
    struct options o = {0};
    struct vm_config *c = g_new0(struct vm_config, 1);
    bool ok;

    config_set_defaults(c);
    ok = options_parse(&o, command, argc, argv, error);
    if (ok) {
        c->args = g_strdupv(o.args);
        ok = config_take_engine(c, &o, command, error) &&
             take_modes(c, &o, error) && take_machine(c, &o, error) &&
             take_output(c, &o, error) && take_image(c, &o, command, error);
    }
    if (ok) {
        vm_config_compose(c);
        ok = check_lines(c, error) && check_cmdline(c, error);
    }
    options_fini(&o);
    if (!ok) {
        g_clear_pointer(&c, vm_config_free);
    }
    return c;
}

struct vm_config *vm_config_copy(const struct vm_config *config)
{
    struct vm_config *c = g_memdup2(config, sizeof(*config));

    c->workload = g_strdup(config->workload);
    c->kernel = g_strdup(config->kernel);
    c->initrd = g_strdup(config->initrd);
    c->symbols = g_strdup(config->symbols);
    c->append = g_strdup(config->append);
    c->bug = g_strdup(config->bug);
    c->cmdline = g_strdup(config->cmdline);
    c->args = g_strdupv(config->args);
    c->inputs = g_strdupv(config->inputs);
    c->strategy = g_strdup(config->strategy);
    c->record_path = g_strdup(config->record_path);
    c->stats_path = g_strdup(config->stats_path);
    c->trace_path = g_strdup(config->trace_path);
    c->report_path = g_strdup(config->report_path);
    c->probes_path = g_strdup(config->probes_path);
    c->plugins = g_strdupv(config->plugins);
    return c;
}

void vm_config_free(struct vm_config *c)
{
    if (!c) {
        return;
    }
    g_free(c->workload);
    g_free(c->kernel);
    g_free(c->initrd);
    g_free(c->symbols);
    g_free(c->append);
    g_free(c->bug);
    g_free(c->cmdline);
    g_strfreev(c->args);
    g_strfreev(c->inputs);
    g_free(c->strategy);
    g_free(c->record_path);
    g_free(c->stats_path);
    g_free(c->trace_path);
    g_free(c->report_path);
    g_free(c->probes_path);
    g_strfreev(c->plugins);
    g_free(c);
}
