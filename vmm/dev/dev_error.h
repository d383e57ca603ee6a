/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GError domain of the devices and the loader. */
#ifndef DEV_DEV_ERROR_H
#define DEV_DEV_ERROR_H

#include <glib.h>

#define DEV_ERROR (dev_error_quark())

enum dev_error {
    DEV_ERROR_CONFIG,    /* a value of the configuration is impossible */
    DEV_ERROR_OVERLAP,   /* two ranges of guest addresses overlap */
    DEV_ERROR_IO,        /* a file could not be read */
    DEV_ERROR_BAD_IMAGE, /* a file is not what it must be */
    DEV_ERROR_TOO_BIG,   /* it does not fit */
    DEV_ERROR_INTERNAL,  /* a library refused */
};

GQuark dev_error_quark(void);

#endif
