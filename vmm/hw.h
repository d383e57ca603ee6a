/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hardware liberties: what the architecture lets a machine do, kindly or
 * cruelly. `parallel` has the typical ones; the deterministic engines honour
 * all. Pure; filled from the command line, then read from any thread.
 */
#ifndef VMM_HW_H
#define VMM_HW_H

#include <stdbool.h>

enum hw_mode {
    HW_OFF,    /* never: kind */
    HW_RANDOM, /* asked of the choice stream each time */
    HW_ON,     /* always as far as allowed: cruel */
};

enum hw_knob {
#define HW(name, option, knob, typical, adversarial, what) HW_##name,
#include "hw.inc"
#undef HW
    HW_KNOBS
};

enum hw_profile {
    HW_PROFILE_EAGER,
    HW_PROFILE_TYPICAL,
    HW_PROFILE_RANDOM,
    HW_PROFILE_ADVERSARIAL,
};

struct hw {
    enum hw_mode mode[HW_KNOBS];
};

void hw_set_profile(struct hw *hw, enum hw_profile profile);
const char *hw_profile_name(enum hw_profile profile);
/* "eager", "typical", ...; false: no such profile. */
bool hw_profile_from_name(const char *name, enum hw_profile *out);

const char *hw_knob_option(enum hw_knob knob); /* "pte-delay" */
const char *hw_knob_number(enum hw_knob knob); /* "H3" */
const char *hw_knob_text(enum hw_knob knob);
const char *hw_mode_name(enum hw_mode mode); /* "off", "random", "on" */
bool hw_mode_from_name(const char *name, enum hw_mode *out);

#endif
