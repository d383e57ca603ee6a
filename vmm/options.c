/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options, their help texts, and the help pages of `run` and `compare`.
 * Main thread.
 */
#include "options.h"

#include <string.h>

#include "error.h"

#define TEXT(long_name, letter, field, text, arg)                              \
    {                                                                          \
        long_name, letter, 0, G_OPTION_ARG_STRING, &o->field, text, arg        \
    }
#define FILENAME(long_name, letter, field, text, arg)                          \
    {                                                                          \
        long_name, letter, 0, G_OPTION_ARG_FILENAME, &o->field, text, arg      \
    }
#define LATER(long_name)                                                       \
    {                                                                          \
        long_name, 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, NULL, NULL,   \
            NULL                                                               \
    }
#define END                                                                    \
    {                                                                          \
        NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL                        \
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
    "\n"
    "Exit status:\n"
    "  0 fine, 1 usage, 2 engine or environment, 3 guest panic, 4 the "
    "workload\n"
    "  failed, 70 time-out, 130 interrupted\n";

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
    "      no other thread: nobody has to be asked, so no IPIs\n";

/* --- the groups; entries live until g_option_group_add_entries() copied --- */

static void add_group(GOptionContext *context, const char *name,
                      const char *title, const GOptionEntry *entries)
{
    GOptionGroup *group = g_option_group_new(name, title, title, NULL, NULL);

    g_option_group_add_entries(group, entries);
    g_option_context_add_group(context, group);
}

static void add_image_group(GOptionContext *context, struct options *o,
                            enum vm_command command)
{
    const GOptionEntry run[] = {
        FILENAME("kernel", 'k', kernel,
                 "ELF or arm64 Image instead of a workload", "FILE"),
        FILENAME("initrd", 0, initrd, "initial RAM disk", "FILE"),
        FILENAME("symbols", 0, symbols, "ELF with the kernel's names", "FILE"),
        TEXT("append", 'a', append, "add to the kernel's command line",
             "WORDS"),
        END};
    const GOptionEntry compare[] = {TEXT("append", 'a', append,
                                         "add to the kernel's command line",
                                         "WORDS"),
                                    END};

    add_group(context, "guest",
              "What boots:", command == VM_COMMAND_RUN ? run : compare);
}

static void add_machine_group(GOptionContext *context, struct options *o)
{
    const GOptionEntry entries[] = {
        TEXT("cpus", 'c', cpus, "vCPUs, 1 to 512 (default 4)", "N"),
        TEXT("mem", 'm', mem, "RAM, with K, M or G (default 512M)", "SIZE"),
        TEXT("workers", 0, workers, "host threads (default: cores, <= vCPUs)",
             "N"),
        TEXT("engine", 0, engine, "how vCPUs are scheduled: parallel", "NAME"),
        TEXT("tlb-sets", 0, tlb_sets, "TLB sets per vCPU (default 512)", "N"),
        TEXT("tlb-ways", 0, tlb_ways, "TLB ways per set (default 8)", "N"),
        TEXT("tlb-replacement", 0, replacement,
             "victim of a full set: lru*, fifo, random", "HOW"),
        TEXT("walk-cache", 0, walk_cache, "walk cache entries (default 64)",
             "N"),
        END};

    add_group(context, "machine", "The machine:", entries);
}

static void add_flush_group(GOptionContext *context, struct options *o,
                            enum vm_command command)
{
    const GOptionEntry run[] = {
        TEXT("tlb", 0, tlb, "what reaches other TLBs: broadcast or ipi", "HOW"),
        TEXT("flush", 0, flush, "wait per page or batch: sync or batched",
             "HOW"),
        TEXT("drain", 0, drain, "pending batches: mm, dsb* or none*", "HOW"),
        END};
    const GOptionEntry compare[] = {
        TEXT("drain", 0, drain, "pending batches: mm, dsb* or none*", "HOW"),
        END};

    add_group(context, "flush",
              "How translations are shot down (* is wrong on purpose):",
              command == VM_COMMAND_RUN ? run : compare);
}

static void add_output_group(GOptionContext *context, struct options *o,
                             enum vm_command command)
{
    const GOptionEntry run[] = {
        FILENAME("stats", 's', stats, "counts as one JSON line (- is stdout)",
                 "FILE"),
        FILENAME("trace", 0, trace, "events as JSON Lines (- is stdout)",
                 "FILE"),
        TEXT("trace-events", 0, trace_events, "which: all, or names (no block)",
             "LIST"),
        {"plugin", 'p', 0, G_OPTION_ARG_FILENAME_ARRAY, &o->plugins,
         "load a plugin; may be repeated", "FILE[,k=v]"},
        TEXT("timeout", 0, timeout, "give up after so many (0: never)",
             "SECONDS"),
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &o->quiet,
         "no guest console, no summary", NULL},
        {"verbose", 'v', 0, G_OPTION_ARG_NONE, &o->verbose,
         "a summary of the counts at the end", NULL},
        END};
    const GOptionEntry compare[] = {
        TEXT("timeout", 0, timeout, "give up a run after so many (0: never)",
             "SECONDS"),
        {"verbose", 'v', 0, G_OPTION_ARG_NONE, &o->verbose,
         "show the guest's console too", NULL},
        END};

    add_group(context, "output",
              "What one sees:", command == VM_COMMAND_RUN ? run : compare);
}

/* Names that a later version will know; not in the help. */
static void add_later_group(GOptionContext *context, struct options *o)
{
    GOptionEntry entries[] = {
        LATER("machine"), LATER("filter"),  LATER("bug"),
        LATER("seed"),    LATER("hw"),      LATER("ledger"),
        LATER("gdb"),     LATER("monitor"), END};
    char **const targets[] = {&o->machine, &o->filter, &o->bug, &o->seed,
                              &o->hw,      &o->ledger, &o->gdb, &o->monitor};

    for (size_t i = 0; i < G_N_ELEMENTS(targets); i++) {
        entries[i].arg_data = targets[i];
    }
    add_group(context, "later", "Later:", entries);
}

static GOptionContext *options_context(struct options *o,
                                       enum vm_command command, gboolean later)
{
    GOptionContext *context = g_option_context_new(NULL);
    const GOptionEntry rest[] = {{G_OPTION_REMAINING, 0, 0,
                                  G_OPTION_ARG_STRING_ARRAY, &o->positional,
                                  NULL, NULL},
                                 END};

    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_add_main_entries(context, rest, NULL);
    add_image_group(context, o, command);
    add_machine_group(context, o);
    add_flush_group(context, o, command);
    add_output_group(context, o, command);
    if (later) {
        add_later_group(context, o);
    }
    return context;
}

char *vm_config_help(enum vm_command command)
{
    struct options o = {0};
    GOptionContext *context = options_context(&o, command, FALSE);
    g_autofree char *all = g_option_context_get_help(context, FALSE, NULL);
    const char *groups = strstr(all, "\n\n"); /* after GLib's usage line */
    bool run = command == VM_COMMAND_RUN;
    char *text =
        g_strconcat(run ? run_usage : compare_usage, groups ? groups + 1 : all,
                    run ? run_examples : compare_examples, NULL);

    g_option_context_free(context);
    return text;
}

/* --- parsing --- */

static gboolean refuse_later(const struct options *o, GError **error)
{
    const struct {
        const char *name, *value;
    } later[] = {
        {"machine", o->machine}, {"filter", o->filter},   {"bug", o->bug},
        {"seed", o->seed},       {"hw", o->hw},           {"ledger", o->ledger},
        {"gdb", o->gdb},         {"monitor", o->monitor},
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
    if (!ok) {
        g_set_error(error, VM_ERROR, VM_ERROR_USAGE,
                    "%s; 'shootdown %s --help' shows the options, and "
                    "arguments of the workload come after --",
                    parse_error->message,
                    command == VM_COMMAND_RUN ? "run" : "compare");
        return FALSE;
    }
    return !refuse_later(o, error);
}

void options_fini(struct options *o)
{
    char *const texts[] = {
        o->kernel,  o->initrd,       o->symbols,  o->append,     o->cpus,
        o->mem,     o->tlb_sets,     o->tlb_ways, o->walk_cache, o->workers,
        o->tlb,     o->flush,        o->drain,    o->engine,     o->stats,
        o->trace,   o->trace_events, o->timeout,  o->machine,    o->filter,
        o->bug,     o->seed,         o->hw,       o->ledger,     o->gdb,
        o->monitor, o->replacement,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_free(texts[i]);
    }
    g_strfreev(o->plugins);
    g_strfreev(o->positional);
    g_strfreev(o->args);
    memset(o, 0, sizeof(*o));
}
