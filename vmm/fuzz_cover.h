/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Schedule coverage: which events that matter to TLBs followed each other on
 * two vCPUs, by the places in the program that they came from. A place alone
 * (what some vCPU did) is one thing to see; a pair, something of vCPU i and
 * then something of another vCPU j, is what a schedule decides. Two events are
 * a pair if nothing that matters lies between them, or if they are about the
 * same virtual page or the same frame and nobody else came in between.
 *
 * Which vCPUs it were does not count: a race is the same race on any two.
 * docs/FUZZING.md has the list of events. The vCPUs' one thread.
 */
#ifndef VMM_FUZZ_COVER_H
#define VMM_FUZZ_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include "obs/events.h"

/* Counters, one byte each, that stop at 255; a power of two. */
#define FUZZ_MAP_SIZE 65536u

struct fuzz_cover;

/* Subscribes; before vm_new(). Must outlive ev's last event. */
struct fuzz_cover *fuzz_cover_new(struct events *ev);
void fuzz_cover_free(struct fuzz_cover *cover);

/* Another run begins: its counters are 0. Costs what the last run touched. */
void fuzz_cover_begin(struct fuzz_cover *cover);
/* Where counters are kept; NULL: its own memory. Zeroed by the caller. */
void fuzz_cover_set_map(struct fuzz_cover *cover, uint8_t *map);
uint8_t *fuzz_cover_map(const struct fuzz_cover *cover);

/* The counters that are not 0, by index, in the order of first use. */
const uint16_t *fuzz_cover_touched(const struct fuzz_cover *cover,
                                   unsigned *out_count);
/* The counter is one of places, not of pairs. */
bool fuzz_cover_is_place(const struct fuzz_cover *cover, unsigned index);

#endif
