/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options, their help texts, and the help pages of `run` and `compare`.
 * Main thread.
 */
#include "options.h"

#include <string.h>

#include "error.h"
#include "options_priv.h"

#define LATER(long_name)                                                       \
    {                                                                          \
        long_name, 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, NULL, NULL,   \
            NULL                                                               \
    }

static const char run_usage[] =
    "Usage:\n"
    "  shootdown run [OPTIONS] WORKLOAD [-- ARGUMENTS]\n"
    "  shootdown run [OPTIONS] --kernel FILE [-- ARGUMENTS]\n"
    "\n"
    "Boots a guest on several vCPUs, each with a software TLB of its own, and\n"
    "runs one program to its end. The guest's console is standard output.\n";

static const char run_examples[] =
    "Examples:\n"
    "  shootdown run swap_bench\n"
    "      4 vCPUs, broadcast TLBI, batched unmapping: what Linux 6.12 does\n"
    "  shootdown run swap_bench --flush sync --stats -\n"
    "      one DSB ISH per page; the counts as the last line, in JSON\n"
    "  shootdown run swap_bench --tlb ipi --cpus 8 -- -t 7\n"
    "      8 threads keep the address space live: each flush asks 7 vCPUs\n"
    "  shootdown run swap_bench --plugin count\n"
    "      which functions of the kernel issued the TLBIs and DSBs\n"
    "  shootdown run --kernel my.elf --append 'console=ttyAMA0'\n"
    "      a bare-metal program or kernel of your own\n"
    "  shootdown run swap_bench --engine seeded --seed 7 --record run.sd\n"
    "      a run that seed 7 decides; 'shootdown replay run.sd' repeats it\n"
    "\n"
    "'shootdown list' with strategies, liberties, bugs or events explains "
    "names.\n"
    "\n"
    "Exit status:\n"
    "  0 fine, 1 usage, 2 engine or environment, 3 guest panic, 4 the "
    "workload\n"
    "  failed, 70 time-out, 77 a bug was found, 130 interrupted\n";

static const char compare_usage[] =
    "Usage:\n"
    "  shootdown compare [OPTIONS] WORKLOAD [-- ARGUMENTS]\n"
    "\n"
    "Runs the workload four times, {broadcast, ipi} x {sync, batched}, and\n"
    "prints one table: what one madvise(MADV_PAGEOUT) call costs in steady\n"
    "state (TLBI, DSB, IPIs on the calling vCPU), the flushes and the time.\n";

static const char compare_examples[] =
    "Examples:\n"
    "  shootdown compare swap_bench\n"
    "      as 'swap_bench -t 3' on 4 vCPUs: one thread per vCPU\n"
    "  shootdown compare swap_bench --cpus 2 -- -t 0\n"
    "      no other thread: nobody has to be asked, so no IPIs\n"
    "  shootdown compare swap_bench --engine vtime\n"
    "      the same interleaving each time: the counts never differ\n";

/* --- the groups --- */

GOptionGroup *options_add_group(GOptionContext *context, const char *name,
                                const char *title, const GOptionEntry *entries)
{
    GOptionGroup *group = g_option_group_new(name, title, title, NULL, NULL);

    g_option_group_add_entries(group, entries);
    g_option_context_add_group(context, group);
    return group;
}

static void add_image_group(GOptionContext *context, struct options *o,
                            enum vm_command command)
{
    const GOptionEntry run[] = {
        OPTION_FILE("kernel", 'k', kernel,
                    "ELF or arm64 Image instead of a workload", "FILE"),
        OPTION_FILE("initrd", 0, initrd, "initial RAM disk", "FILE"),
        OPTION_FILE("symbols", 0, symbols, "ELF with the kernel's names",
                    "FILE"),
        OPTION_TEXT("append", 'a', append, "add to the kernel's command line",
                    "WORDS"),
        OPTION_END};
    const GOptionEntry compare[] = {
        OPTION_TEXT("append", 'a', append, "add to the kernel's command line",
                    "WORDS"),
        OPTION_END};

    (void)options_add_group(context, "guest", "What boots:",
                            command == VM_COMMAND_COMPARE ? compare : run);
}

static void add_machine_group(GOptionContext *context, struct options *o,
                              enum vm_command command)
{
    const GOptionEntry entries[] = {
        OPTION_TEXT("cpus", 'c', cpus, "vCPUs, 1 to 512 (default 4)", "N"),
        OPTION_TEXT("mem", 'm', mem, "RAM, with K, M or G (default 512M)",
                    "SIZE"),
        OPTION_TEXT("tlb-sets", 0, tlb_sets, "TLB sets per vCPU (default 512)",
                    "N"),
        OPTION_TEXT("tlb-ways", 0, tlb_ways, "TLB ways per set (default 8)",
                    "N"),
        OPTION_TEXT("tlb-replacement", 0, replacement,
                    "victim of a full set: lru*, fifo, random", "HOW"),
        OPTION_TEXT("walk-cache", 0, walk_cache,
                    "walk cache entries (default 64)", "N"),
        OPTION_END};

    const GOptionEntry threads[] = {
        OPTION_TEXT("workers", 0, workers,
                    "host threads (default: cores, <= vCPUs)", "N"),
        OPTION_END};
    GOptionGroup *group =
        options_add_group(context, "machine", "The machine:", entries);

    if (command != VM_COMMAND_FUZZ) { /* there it is a flag of its own */
        g_option_group_add_entries(group, threads);
    }
}

static void add_flush_group(GOptionContext *context, struct options *o,
                            enum vm_command command)
{
    const GOptionEntry run[] = {
        OPTION_TEXT("tlb", 0, tlb, "what reaches other TLBs: broadcast or ipi",
                    "HOW"),
        OPTION_TEXT("flush", 0, flush,
                    "wait per page or batch: sync or batched", "HOW"),
        OPTION_TEXT("drain", 0, drain, "pending batches: mm, dsb* or none*",
                    "HOW"),
        OPTION_TEXT("filter", 0, filter,
                    "IPIs of a batch: off (all) or stale (users only)", "HOW"),
        OPTION_TEXT("bug", 0, bug, "break a rule* ('shootdown list bugs')",
                    "NAME[,..]"),
        OPTION_END};
    const GOptionEntry compare[] = {
        OPTION_TEXT("drain", 0, drain, "pending batches: mm, dsb* or none*",
                    "HOW"),
        OPTION_END};

    (void)options_add_group(
        context, "flush",
        "How translations are shot down (* is wrong on purpose):",
        command == VM_COMMAND_COMPARE ? compare : run);
}

static void add_choice_group(GOptionContext *context, struct options *o,
                             enum vm_command command)
{
    const GOptionEntry entries[] = {
        OPTION_TEXT("engine", 0, engine,
                    "parallel, seeded or vtime (default parallel)", "NAME"),
        OPTION_TEXT("seed", 0, seed,
                    "of all choices, 64 bits, also 0x.. (default 1)", "N"),
        OPTION_TEXT("strategy", 0, strategy, "who runs next (default random)",
                    "NAME"),
        OPTION_TEXT("hw", 0, hw, "eager, typical, random or adversarial",
                    "NAME"),
        OPTION_END};
    const GOptionEntry more[] = {
        OPTION_TEXT("snapshot-at", 0, snapshot_at,
                    "run plainly to this mark, then choose", "MARK"),
        OPTION_TEXT("runs", 0, runs,
                    "from the snapshot, seed + 1 each (default 1)", "N"),
        OPTION_TEXT("max-steps", 0, max_steps,
                    "end a run after N scheduling points", "N"),
        OPTION_TEXT(
            "ledger", 0, ledger,
            "tell what is relied on early (off if parallel)",
            "on|stop|off"),
        OPTION_FILE("probes", 0, probes,
                    "functions that say what annotations would", "FILE"),
        OPTION_END};
    GOptionGroup *group =
        options_add_group(context, "choice",
                          "Who decides (all but engine and ledger need "
                          "--engine seeded or vtime):",
                          entries);

    if (command != VM_COMMAND_COMPARE) {
        g_option_group_add_entries(group, more);
    }
}

static void add_liberty_group(GOptionContext *context, struct options *o)
{
    const GOptionEntry entries[] = {
#define HW(name, option, knob, typical, adversarial, what)                     \
    OPTION_TEXT("hw-" option, 0, hw_modes[HW_##name], what, "MODE"),
#include "hw.inc"
#undef HW
        OPTION_END};

    (void)options_add_group(context, "liberties",
                            "Hardware liberties (MODE is off, random or on; "
                            "deterministic engines):",
                            entries);
}

static void add_output_group(GOptionContext *context, struct options *o,
                             enum vm_command command)
{
    const GOptionEntry run[] = {
        OPTION_FILE("stats", 's', stats,
                    "counts as one JSON line (- is stdout)", "FILE"),
        OPTION_FILE("trace", 0, trace, "events as JSON Lines (- is stdout)",
                    "FILE"),
        OPTION_TEXT("trace-events", 0, trace_events,
                    "which: all, or names (no block)", "LIST"),
        OPTION_FILE("record", 0, record, "write the run's schedule, for replay",
                    "FILE"),
        OPTION_FILES("plugin", 'p', plugins, "load a plugin; may be repeated",
                     "FILE[,k=v]"),
        OPTION_FILE("report", 0, report,
                    "the ledger's findings as JSON Lines (- is stdout)",
                    "FILE"),
        OPTION_TEXT("check", 0, check, "bbm: break-before-make of page tables",
                    "WHAT"),
        OPTION_TEXT("timeout", 0, timeout, "give up after so many (0: never)",
                    "SECONDS"),
        OPTION_FLAG("quiet", 'q', quiet, "no guest console, no summary"),
        OPTION_FLAG("verbose", 'v', verbose,
                    "a summary of the counts at the end"),
        OPTION_END};
    const GOptionEntry compare[] = {
        OPTION_TEXT("timeout", 0, timeout,
                    "give up a run after so many (0: never)", "SECONDS"),
        OPTION_FLAG("verbose", 'v', verbose, "show the guest's console too"),
        OPTION_END};

    (void)options_add_group(context, "output", "What one sees:",
                            command == VM_COMMAND_COMPARE ? compare : run);
}

/* Names that a later version will know; not in the help. */
static void add_later_group(GOptionContext *context, struct options *o)
{
    GOptionEntry entries[] = {LATER("machine"), LATER("gdb"), LATER("monitor"),
                              OPTION_END};
    char **const targets[] = {&o->machine, &o->gdb, &o->monitor};

    for (size_t i = 0; i < G_N_ELEMENTS(targets); i++) {
        entries[i].arg_data = targets[i];
    }
    (void)options_add_group(context, "later", "Later:", entries);
}

/* For those who test tests (docs/TESTING.md); not in the help. */
static void add_inject_group(GOptionContext *context, struct options *o)
{
    const GOptionEntry entries[] = {{"inject", 0, G_OPTION_FLAG_HIDDEN,
                                     G_OPTION_ARG_STRING, &o->inject, NULL,
                                     NULL},
                                    OPTION_END};

    (void)options_add_group(context, "inject", "Faults:", entries);
}

/* `fuzz` has flags of its own for the rest (fuzz_flags.h). */
static void add_fuzz_group(GOptionContext *context, struct options *o)
{
    const GOptionEntry entries[] = {
        OPTION_TEXT("hw", 0, hw, "eager, typical, random or adversarial",
                    "NAME"),
        OPTION_TEXT("snapshot-at", 0, snapshot_at,
                    "where a scenario begins (default 1)", "MARK"),
        OPTION_END};

    (void)options_add_group(context, "choice",
                            "Where and what is chosen:", entries);
}

static GOptionContext *options_context(struct options *o,
                                       enum vm_command command, gboolean later)
{
    GOptionContext *context = g_option_context_new(NULL);
    const GOptionEntry rest[] = {OPTION_REST(positional), OPTION_END};

    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_add_main_entries(context, rest, NULL);
    add_image_group(context, o, command);
    add_machine_group(context, o, command);
    add_flush_group(context, o, command);
    if (command == VM_COMMAND_FUZZ) {
        add_fuzz_group(context, o);
    } else {
        add_choice_group(context, o, command);
    }
    add_liberty_group(context, o);
    if (command != VM_COMMAND_SCHEDULE && command != VM_COMMAND_FUZZ) {
        add_output_group(context, o, command);
    }
    if (later) {
        add_later_group(context, o);
        add_inject_group(context, o);
    }
    return context;
}

char *options_help(GOptionContext *context, const char *usage,
                   const char *examples)
{
    g_autofree char *all = g_option_context_get_help(context, FALSE, NULL);
    const char *groups = strstr(all, "\n\n"); /* after GLib's usage line */

    g_option_context_free(context);
    return g_strconcat(usage, groups ? groups + 1 : all, examples, NULL);
}

char *vm_config_help(enum vm_command command)
{
    struct options o = {0};
    bool run = command == VM_COMMAND_RUN;

    if (command == VM_COMMAND_FUZZ) { /* cmd_fuzz.c has the rest */
        return options_help(options_context(&o, command, FALSE), "", "");
    }
    return options_help(options_context(&o, command, FALSE),
                        run ? run_usage : compare_usage,
                        run ? run_examples : compare_examples);
}

/* --- parsing --- */

static gboolean refuse_later(const struct options *o, GError **error)
{
    const struct {
        const char *name, *value;
    } later[] = {
        {"machine", o->machine},
        {"gdb", o->gdb},
        {"monitor", o->monitor},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(later); i++) {
        if (later[i].value) {
            g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                        "--%s '%s' is not there yet in this version",
                        later[i].name, later[i].value);
            return TRUE;
        }
    }
    return FALSE;
}

gboolean options_parse(struct options *o, enum vm_command command, int argc,
                       char *const *argv, GError **error)
{
    g_autoptr(GError) parse_error = NULL;
    g_auto(GStrv) words = NULL;
    GOptionContext *context;
    GPtrArray *own = g_ptr_array_new();
    gboolean ok;
    int i;

    /*
     * GOption keeps or drops "--" depending on what follows it, so the
     * workload's arguments are cut off before it sees them.
     */
    g_ptr_array_add(own, g_strdup("shootdown"));
    for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        g_ptr_array_add(own, g_strdup(argv[i]));
    }
    g_ptr_array_add(own, NULL);
    words = (char **)g_ptr_array_free(own, FALSE);
    own = g_ptr_array_new();
    for (i++; i < argc; i++) {
        g_ptr_array_add(own, g_strdup(argv[i]));
    }
    g_ptr_array_add(own, NULL);
    o->args = (char **)g_ptr_array_free(own, FALSE);

    context = options_context(o, command, TRUE);
    ok = g_option_context_parse_strv(context, &words, &parse_error);
    g_option_context_free(context);
    if (ok) {
        return !refuse_later(o, error);
    }
    if (command == VM_COMMAND_SCHEDULE) {
        g_set_error_literal(error, VM_ERROR, VM_ERROR_USAGE,
                            parse_error->message);
    } else {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "%s; 'shootdown %s --help' shows the options, and "
                    "arguments of the workload come after --",
                    parse_error->message,
                    command == VM_COMMAND_RUN    ? "run"
                    : command == VM_COMMAND_FUZZ ? "fuzz"
                                                 : "compare");
    }
    return FALSE;
}

void options_fini(struct options *o)
{
    char *const texts[] = {
        o->kernel,  o->initrd,    o->symbols,  o->append,      o->cpus,
        o->mem,     o->tlb_sets,  o->tlb_ways, o->replacement, o->walk_cache,
        o->workers, o->tlb,       o->flush,    o->drain,       o->bug,
        o->engine,  o->seed,      o->strategy, o->hw,          o->snapshot_at,
        o->runs,    o->max_steps, o->stats,    o->trace,       o->trace_events,
        o->record,  o->timeout,   o->machine,  o->filter,      o->ledger,
        o->gdb,     o->monitor,   o->check,    o->inject,      o->report,
        o->probes,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_free(texts[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(o->hw_modes); i++) {
        g_free(o->hw_modes[i]);
    }
    g_strfreev(o->plugins);
    g_strfreev(o->positional);
    g_strfreev(o->args);
    memset(o, 0, sizeof(*o));
}
