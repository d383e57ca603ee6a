/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The AFL++ target, in persistent mode with inputs in shared memory. Its words
 * are the scenario's. Schedule coverage is counted in AFL's own map; the VMM
 * itself is not instrumented, so any compiler builds this and the run-time of
 * AFL++ is linked to it.
 *
 * The fork server begins after the boot: a run that fails, which ends the
 * process, costs a fork and not a boot.
 *
 * Without afl-fuzz it runs what standard input has, once: that is how a file of
 * crashes/ is looked at.
 */
#include <stdlib.h>
#include <unistd.h>

#include "scenario.h"

/* Of afl-compiler-rt.o. */
extern uint8_t *__afl_area_ptr;
extern uint8_t *__afl_fuzz_ptr;
extern uint32_t *__afl_fuzz_len;
void __afl_manual_init(void);
int __afl_persistent_loop(unsigned count);
extern int __afl_sharedmem_fuzzing;
int __afl_sharedmem_fuzzing = 1;

/* afl-fuzz looks for these in the file. */
__attribute__((used)) static const volatile char persistent[] =
    "##SIG_AFL_PERSISTENT##";
__attribute__((used)) static const volatile char deferred[] =
    "##SIG_AFL_DEFER_FORKSRV##";

/* Runs of one process; the next begins with what was booted. */
#define RUNS 100000u
#define INPUT_MAX ((size_t)1 << 20)

static size_t read_input(uint8_t *bytes)
{
    size_t length = 0;
    ssize_t got;

    while (length < INPUT_MAX &&
           (got = read(STDIN_FILENO, bytes + length, INPUT_MAX - length)) > 0) {
        length += (size_t)got;
    }
    return length;
}

int main(int argc, char **argv)
{
    struct fuzz_target *target;

    if (argc < 2) {
        fprintf(stderr,
                "usage: afl-fuzz [flags of AFL++] -- %s [OPTIONS] WORKLOAD "
                "[-- ARGUMENTS]\n",
                argv[0]);
        return 1;
    }
    target = scenario_open(argv[0], argc - 1, argv + 1);
    __afl_manual_init();
    if (__afl_fuzz_ptr) {
        fuzz_target_set_map(target, __afl_area_ptr);
        while (__afl_persistent_loop(RUNS)) {
            scenario_run(target, __afl_fuzz_ptr, *__afl_fuzz_len);
        }
    } else {
        uint8_t *bytes = g_malloc(INPUT_MAX);

        scenario_run(target, bytes, read_input(bytes));
        g_free(bytes);
    }
    fuzz_target_close(target);
    return 0;
}
