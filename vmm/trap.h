/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the engine reports: trapped instructions and synchronous exceptions.
 * Called on the thread inside engine_run().
 */
#ifndef VMM_TRAP_H
#define VMM_TRAP_H

#include "engine.h"

void trap_instruction(void *vcpu, gva_t pc);
void trap_exception(void *vcpu, enum engine_exception kind, gva_t pc);

#endif
