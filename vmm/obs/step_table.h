/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A short run as a table to read: one line for each step that matters to
 * translations, in order, with a column for each vCPU that did something.
 * Deterministic engines; the thread that runs the vCPUs.
 */
#ifndef OBS_STEP_TABLE_H
#define OBS_STEP_TABLE_H

#include "obs/events.h"

struct step_table;
struct symbols;

/* Subscribes; before vm_new(). symbols may be NULL; both stay the caller's. */
struct step_table *step_table_new(struct events *ev,
                                  const struct symbols *symbols);
void step_table_free(struct step_table *table);

/* Forgets everything and writes down what comes from now on. */
void step_table_record(struct step_table *table);
/* At most 80 columns wide. g_free() it. */
char *step_table_text(const struct step_table *table);

#endif
