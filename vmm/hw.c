/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hardware liberties by profile and by name. */
#include "hw.h"

#include <string.h>

static const struct {
    const char *option, *number, *text;
    enum hw_mode typical, adversarial;
} knobs[HW_KNOBS] = {
#define HW(name, option, knob, typical, adversarial, what)                     \
    {option, knob, what, typical, adversarial},
#include "hw.inc"
#undef HW
};

static const char *const profile_names[] = {
    [HW_PROFILE_EAGER] = "eager",
    [HW_PROFILE_TYPICAL] = "typical",
    [HW_PROFILE_RANDOM] = "random",
    [HW_PROFILE_ADVERSARIAL] = "adversarial",
};

static const char *const mode_names[] = {
    [HW_OFF] = "off",
    [HW_RANDOM] = "random",
    [HW_ON] = "on",
};

static bool find_name(const char *name, const char *const *names,
                      unsigned count, unsigned *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (!strcmp(name, names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

void hw_set_profile(struct hw *hw, enum hw_profile profile)
{
    for (unsigned i = 0; i < HW_KNOBS; i++) {
        switch (profile) {
        case HW_PROFILE_EAGER:
            hw->mode[i] = HW_OFF;
            break;
        case HW_PROFILE_TYPICAL:
            hw->mode[i] = knobs[i].typical;
            break;
        case HW_PROFILE_RANDOM:
            hw->mode[i] = knobs[i].adversarial == HW_OFF ? HW_OFF : HW_RANDOM;
            break;
        case HW_PROFILE_ADVERSARIAL:
            hw->mode[i] = knobs[i].adversarial;
            break;
        }
    }
}

const char *hw_profile_name(enum hw_profile profile)
{
    return profile_names[profile];
}

bool hw_profile_from_name(const char *name, enum hw_profile *out)
{
    unsigned i;

    if (!find_name(name, profile_names,
                   sizeof(profile_names) / sizeof(profile_names[0]), &i)) {
        return false;
    }
    *out = i;
    return true;
}

const char *hw_knob_option(enum hw_knob knob)
{
    return knobs[knob].option;
}

const char *hw_knob_number(enum hw_knob knob)
{
    return knobs[knob].number;
}

const char *hw_knob_text(enum hw_knob knob)
{
    return knobs[knob].text;
}

const char *hw_mode_name(enum hw_mode mode)
{
    return mode_names[mode];
}

bool hw_mode_from_name(const char *name, enum hw_mode *out)
{
    unsigned i;

    if (!find_name(name, mode_names, sizeof(mode_names) / sizeof(mode_names[0]),
                   &i)) {
        return false;
    }
    *out = i;
    return true;
}
