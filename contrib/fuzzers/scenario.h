/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scenario for somebody else's fuzzer: the part that libFuzzer and AFL++
 * have in common. docs/FUZZING.md has the command lines.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include <stddef.h>
#include <stdint.h>

#include "fuzz_target.h"

/*
 * Boots to the scenario's beginning; words as `shootdown fuzz` has them before
 * its own flags: options, then a workload or --kernel FILE, then "--" and the
 * workload's arguments. Ends the program, with a sentence and the exit status
 * of `shootdown`, if that does not work.
 */
struct fuzz_target *scenario_open(const char *program, int argc,
                                  char *const *argv);

/*
 * One execution with these choice bytes. A run that fails is told on standard
 * error, with a line for `shootdown replay`, and ends in abort(): that is how
 * these fuzzers know.
 */
void scenario_run(struct fuzz_target *target, const uint8_t *bytes,
                  size_t length);

#endif
