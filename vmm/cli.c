/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the subcommand; help, version and error texts. Main thread. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "error.h"
#include "options.h"

static const char main_help[] =
    "Usage:\n"
    "  shootdown COMMAND [OPTIONS] ...\n"
    "\n"
    "A virtual machine for one question: what happens between the moment a\n"
    "kernel changes a page-table entry and the moment no CPU can use the old\n"
    "translation any more. Each vCPU has a software TLB of its own; a small\n"
    "guest kernel shoots entries down the way Linux does.\n"
    "\n"
    "Commands:\n"
    "  run       boot the guest and run one workload, or a kernel of your own\n"
    "  compare   one workload under {broadcast, ipi} x {sync, batched}: a "
    "table\n"
    "  replay    repeat a run that was recorded, and check that it is the "
    "same\n"
    "  minimize  shrink a recorded run that failed to one that can be read\n"
    "  fuzz      search schedules of a scenario for one that breaks a rule\n"
    "  litmus    run tests of virtual memory in the format of herd\n"
    "  list      workloads, plugins, events, strategies, bugs ... by name\n"
    "\n"
    "  shootdown COMMAND --help   the options of a command, with examples\n"
    "  shootdown --version        the version\n"
    "\n"
    "Begin with:\n"
    "  shootdown list\n"
    "  shootdown compare swap_bench\n"
    "  shootdown run swap_bench --verbose\n";

int cli_fail(const GError *error)
{
    fprintf(stderr, "shootdown: %s\n", error->message);
    return exit_status_from_error(error);
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static char *run_help(void)
{
    return vm_config_help(VM_COMMAND_RUN);
}

static char *compare_help(void)
{
    return vm_config_help(VM_COMMAND_COMPARE);
}

static const struct {
    const char *name;
    int (*fn)(int argc, char **argv);
    char *(*help)(void); /* NULL: fn answers --help itself */
} commands[] = {
    {"run", cmd_run, run_help},
    {"compare", cmd_compare, compare_help},
    {"replay", cmd_replay, replay_options_help},
    {"minimize", cmd_minimize, minimize_options_help},
    {"fuzz", cmd_fuzz, cmd_fuzz_help},
    {"litmus", cmd_litmus, cmd_litmus_help},
    {"list", cmd_list, NULL},
};

static int run_command(size_t i, int argc, char **argv)
{
    if (commands[i].help && wants_help(argc, argv)) {
        g_autofree char *text = commands[i].help();

        printf("%s", text);
        return EXIT_FINE;
    }
    return commands[i].fn(argc, argv);
}

static int unknown_command(const char *name)
{
    static const char *const later[] = {"bench", "trace", "lesson"};
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(later); i++) {
        if (strcmp(name, later[i]) == 0) {
            g_set_error(&error, VM_ERROR, VM_ERROR_USAGE,
                        "the command '%s' is not there yet in this version",
                        name);
            return cli_fail(error);
        }
    }
    g_set_error(
        &error, VM_ERROR, VM_ERROR_USAGE,
        "'%s' is no command: accepted are run, compare, replay, minimize, "
        "fuzz, litmus and list; 'shootdown --help' explains them",
        name);
    return cli_fail(error);
}

int cli_main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : NULL;

    if (!command) {
        fprintf(stderr, "%s", main_help);
        return EXIT_USAGE;
    }
    argc -= 2;
    argv += 2;
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 ||
        strcmp(command, "help") == 0) {
        printf("%s", main_help);
        return EXIT_FINE;
    }
    if (strcmp(command, "--version") == 0) {
        printf("shootdown %s\n", SHOOTDOWN_VERSION);
        return EXIT_FINE;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(command, commands[i].name) == 0) {
            return run_command(i, argc, argv);
        }
    }
    return unknown_command(command);
}
