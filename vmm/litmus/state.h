/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Final states: as text, and whether the condition holds in one. */
#ifndef LITMUS_STATE_H
#define LITMUS_STATE_H

#include <stdbool.h>
#include <glib.h>

#include "litmus/machine.h"

/* "0:X1=1; [x]=2; Fault(P0:L0,x,D-MMU:Translation);", g_free() it. */
char *litmus_state_text(struct litmus_machine *m);
/* The formula, without its quantifier. */
bool litmus_state_holds(struct litmus_machine *m,
                        const struct litmus_formula *formula);
/* The same items in an order and spelling that do not depend on who wrote
 * them, for comparing with states from elsewhere. */
char *litmus_state_normalized(const char *text);

#endif
