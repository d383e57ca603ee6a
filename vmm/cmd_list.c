/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `shootdown list`: what can be named on the command line. Main thread. */
#include <stdio.h>
#include <string.h>

#include "choice/source.h"
#include "cmd.h"
#include "error.h"
#include "hw.h"
#include "obs/events.h"
#include "obs/plugin.h"
#include "paths.h"

static const char list_help[] =
    "Usage:\n"
    "  shootdown list [TOPIC]\n"
    "\n"
    "Shows what other commands accept by name; without a word, the workloads\n"
    "and the plugins.\n"
    "\n"
    "  workloads   programs of the bundled guest, for 'run' and 'compare'\n"
    "  plugins     shared objects for 'run --plugin', with their options\n"
    "  events      names and fields of 'run --trace' lines\n"
    "  counters    names in the 'machine' and 'guest' parts of 'run --stats'\n"
    "  strategies  who runs next, for 'run --engine seeded --strategy'\n"
    "  liberties   what hardware is free to do, for 'run --hw' and --hw-NAME\n"
    "  bugs        what the bundled kernel can do wrong, for 'run --bug'\n"
    "\n"
    "Example:\n"
    "  shootdown list plugins\n";

static void print_line(const char *name, const char *text)
{
    printf("  %-14s %s\n", name, text);
}

static int list_workloads(void)
{
    g_autoptr(GError) error = NULL;
    GArray *all = paths_workloads(&error);

    if (!all) {
        return cli_fail(error);
    }
    printf("Workloads (shootdown run NAME):\n");
    for (guint i = 0; i < all->len; i++) {
        const struct workload *w = &g_array_index(all, struct workload, i);

        print_line(w->name, w->description);
    }
    g_array_unref(all);
    return EXIT_FINE;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_plugins(void)
{
    g_autofree char *path = paths_plugin_dir();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *entry;

    printf("Plugins (shootdown run --plugin NAME[,key=value]) in\n%s:\n", path);
    while (dir && (entry = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_suffix(entry, ".so")) {
            g_ptr_array_add(names, g_strdup(entry));
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        const char *file = names->pdata[i];
        g_autofree char *full = g_build_filename(path, file, NULL);
        g_autofree char *name = g_strndup(file, strlen(file) - 3);
        bool is_plugin;
        g_autofree char *text = plugin_describe(full, &is_plugin);

        print_line(name, text);
    }
    if (names->len == 0) {
        printf("  none\n");
    }
    return EXIT_FINE;
}

static int list_events(void)
{
    printf("Events (shootdown run --trace FILE --trace-events NAME,NAME):\n");
    for (unsigned k = 0; k < EVENT_KINDS; k++) {
        const char *field;

        printf("  %s%*s", event_name((enum event_kind)k),
               event_field((enum event_kind)k, 0)
                   ? 14 - (int)strlen(event_name((enum event_kind)k))
                   : 0,
               "");
        for (unsigned i = 0;
             (field = event_field((enum event_kind)k, i)) != NULL; i++) {
            printf(" %s", field);
        }
        printf("\n");
    }
    return EXIT_FINE;
}

static void print_counter(const char *name, const char *text)
{
    printf("  %-23s %s\n", name, text);
}

static int list_counters(void)
{
    printf("Counters of the machine (per vCPU and in total):\n");
#define COUNTER(name, what) print_counter(#name, what);
#include "obs/counters.inc"
#undef COUNTER
    printf("\nCounters of the bundled guest (per CPU and in total):\n");
#define COUNTER(name, what) print_counter(#name, what);
#include "abi/counters.inc"
#undef COUNTER
    return EXIT_FINE;
}

/* A name, and its text behind it or in lines of at most 80 columns below. */
static void print_item(const char *name, unsigned indent, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    size_t column = 2 + strlen(name);

    printf("  %s", name);
    if (column >= indent) {
        printf("\n");
        column = 0;
    }
    for (char **word = words; *word; word++) {
        size_t length = (size_t)g_utf8_strlen(*word, -1);
        size_t gap = column < indent ? indent - column : 1;

        if (column + gap + length > 80 && column > indent) {
            printf("\n");
            column = 0;
            gap = indent;
        }
        printf("%*s%s", (int)gap, "", *word);
        column += gap + length;
    }
    printf("\n");
}

static int list_strategies(void)
{
    const char *const *pair = choice_strategies();

    printf("Strategies (shootdown run --engine seeded --strategy NAME):\n");
    for (; pair[0]; pair += 2) {
        print_item(pair[0], 10, pair[1]);
    }
    return EXIT_FINE;
}

#define PROFILE_WIDTH 11 /* of "adversarial" */

static int list_liberties(void)
{
    struct hw profiles[HW_PROFILE_ADVERSARIAL + 1];

    printf("Hardware liberties (shootdown run --engine seeded --hw-NAME "
           "off|random|on):\n");
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        printf("  %-13s %-6s %s\n", hw_knob_option((enum hw_knob)k),
               hw_knob_number((enum hw_knob)k), hw_knob_text((enum hw_knob)k));
    }
    printf("\nIn the profiles (--hw PROFILE); random: drawn each time:\n"
           "  %-13s",
           "");
    for (unsigned p = 0; p < G_N_ELEMENTS(profiles); p++) {
        hw_set_profile(&profiles[p], (enum hw_profile)p);
        printf(" %*s", PROFILE_WIDTH, hw_profile_name((enum hw_profile)p));
    }
    for (unsigned k = 0; k < HW_KNOBS; k++) {
        printf("\n  %-13s", hw_knob_option((enum hw_knob)k));
        for (unsigned p = 0; p < G_N_ELEMENTS(profiles); p++) {
            printf(" %*s", PROFILE_WIDTH, hw_mode_name(profiles[p].mode[k]));
        }
    }
    printf("\n");
    return EXIT_FINE;
}

static void print_bug(const char *name, unsigned exhibit, const char *rules,
                      const char *what)
{
    g_autofree char *of =
        exhibit ? g_strdup_printf("%u", exhibit) : g_strdup("mutant");
    g_autofree char *title = g_strdup_printf("%s (%s; %s)", name, of, rules);

    print_item(title, 6, what);
}

static int list_bugs(void)
{
    printf(
        "Bugs of the bundled kernel (shootdown run --bug NAME), each with "
        "its number in\nthe museum and the rules that it breaks (mutants are "
        "no museum pieces):\n");
#define BUG(ident, name, exhibit, rules, what)                                 \
    print_bug(name, exhibit, rules, what);
#include "abi/bugs.inc"
#undef BUG
    return EXIT_FINE;
}

static int list_both(void)
{
    int status = list_workloads();

    printf("\n");
    (void)list_plugins(); /* an empty directory is no failure */
    return status;
}

int cmd_list(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*fn)(void);
    } topics[] = {
        {"workloads", list_workloads},
        {"plugins", list_plugins},
        {"events", list_events},
        {"counters", list_counters},
        {"strategies", list_strategies},
        {"liberties", list_liberties},
        {"bugs", list_bugs},
    };
    static const char *const later[] = {"machines", "lessons"};
    g_autoptr(GError) error = NULL;

    if (argc == 0) {
        return list_both();
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        printf("%s", list_help);
        return EXIT_FINE;
    }
    for (size_t i = 0; argc == 1 && i < G_N_ELEMENTS(topics); i++) {
        if (strcmp(argv[0], topics[i].name) == 0) {
            return topics[i].fn();
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(later); i++) {
        if (strcmp(argv[0], later[i]) == 0) {
            g_set_error(&error, VM_ERROR, VM_ERROR_USAGE,
                        "list '%s': there are none yet in this version",
                        argv[0]);
            return cli_fail(error);
        }
    }
    g_set_error(&error, VM_ERROR, VM_ERROR_USAGE,
                "list '%s': accepted is one of workloads, plugins, events, "
                "counters, strategies, liberties, bugs",
                argc > 1 ? argv[1] : argv[0]);
    return cli_fail(error);
}
