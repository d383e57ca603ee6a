/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the option tables and help pages are written. Main thread. */
#ifndef VMM_OPTIONS_PRIV_H
#define VMM_OPTIONS_PRIV_H

#include <glib.h>

/* Entries of a GOptionEntry table; `o` is the struct that is filled. */
#define OPTION_TEXT(long_name, letter, field, text, arg)                       \
    {                                                                          \
        long_name, letter, 0, G_OPTION_ARG_STRING, &o->field, text, arg        \
    }
#define OPTION_FILE(long_name, letter, field, text, arg)                       \
    {                                                                          \
        long_name, letter, 0, G_OPTION_ARG_FILENAME, &o->field, text, arg      \
    }
#define OPTION_FILES(long_name, letter, field, text, arg)                      \
    {                                                                          \
        long_name, letter, 0, G_OPTION_ARG_FILENAME_ARRAY, &o->field, text,    \
            arg                                                                \
    }
#define OPTION_FLAG(long_name, letter, field, text)                            \
    {                                                                          \
        long_name, letter, 0, G_OPTION_ARG_NONE, &o->field, text, NULL         \
    }
/* What is left: words that are no options. */
#define OPTION_REST(field)                                                     \
    {                                                                          \
        G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &o->field, NULL,  \
            NULL                                                               \
    }
#define OPTION_END                                                             \
    {                                                                          \
        NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL                        \
    }

/*
 * Copies the entries, not their texts; the name is not seen by the user. The
 * group belongs to the context.
 */
GOptionGroup *options_add_group(GOptionContext *context, const char *name,
                                const char *title, const GOptionEntry *entries);
/* The groups between our own words; frees the context. g_free() it. */
char *options_help(GOptionContext *context, const char *usage,
                   const char *examples);

#endif
