/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the litmus machine share. */
#ifndef LITMUS_MACHINE_PRIV_H
#define LITMUS_MACHINE_PRIV_H

#include "det_priv.h"
#include "litmus/machine.h"
#include "vm_priv.h"

/* Tables, by their page after LITMUS_TABLES. */
enum litmus_table {
    LITMUS_ROOT,
    LITMUS_LOW,
    LITMUS_HIGH,
    LITMUS_VARS,
    LITMUS_ALIAS,
    LITMUS_FRAME,
};

static inline gpa_t litmus_table_pa(enum litmus_table table)
{
    return LITMUS_TABLES + (gpa_t)table * LITMUS_PAGE;
}

static inline gva_t litmus_page_va(unsigned var)
{
    return LITMUS_VARS_VA + (gva_t)var * LITMUS_PAGE;
}

/* The descriptor's place in memory; to be written. */
uint64_t *litmus_descriptor_place(struct litmus_machine *m, unsigned var);
/* As it is in memory where litmus_step() begins, before and after it. */
void litmus_note_update(struct litmus_machine *m, unsigned thread, unsigned var,
                        uint64_t before, uint64_t after);
/* The TLBI `item` in the thread's queue was applied before older ones. */
bool litmus_is_applied(struct litmus_machine *m, unsigned thread,
                       const struct inval_item *item);

/* The first problem of a run stays. Takes the text. */
void litmus_problem(struct litmus_machine *m, char *text);
/*
 * Runs the vCPU until it is about to enter a slot; not the first one that it
 * enters, unless `entered`. False: see m->problem.
 */
bool litmus_run_to_slot(struct litmus_machine *m, unsigned thread,
                        bool entered);
/* The scheduler's quantum_over(), asked at every block. */
void litmus_at_block(struct sched *base, struct vcpu *vcpu);

#endif
