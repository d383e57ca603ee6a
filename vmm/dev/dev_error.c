/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GError domain of the devices and the loader. */
#include "dev/dev_error.h"

G_DEFINE_QUARK(shootdown - dev - error - quark, dev_error)
