/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the parser is in a litmus test, and the words it finds there. */
#ifndef LITMUS_CURSOR_H
#define LITMUS_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

struct litmus_test;
struct litmus_value;
struct litmus_pte;

struct litmus_cursor {
    const char *name; /* of the file, for messages */
    const char *text; /* comments are blanks; NUL-terminated */
    const char *at;
};

/* Sets error: what stands at `where` (or at the cursor, if NULL). False. */
bool litmus_expected(const struct litmus_cursor *c, const char *where,
                     const char *what, GError **error);
/* As litmus_expected(), with a whole sentence. */
bool litmus_wrong(const struct litmus_cursor *c, const char *where,
                  GError **error, const char *format, ...) G_GNUC_PRINTF(4, 5);
void litmus_position(const struct litmus_cursor *c, const char *where,
                     unsigned *out_line, unsigned *out_column);

/* The text with (* comments *), nested ones too, made blank. NULL: not closed.
 */
char *litmus_blank_comments(const char *name, const char *text, GError **error);

void litmus_skip(struct litmus_cursor *c); /* white space */
/* Skips white space, then takes this text if it is there. */
bool litmus_take(struct litmus_cursor *c, const char *what);
/* The same for a whole word, in any case. */
bool litmus_take_word(struct litmus_cursor *c, const char *word);
/* Letters, digits, '_' and '.'; NULL: there is none. g_free() it. */
char *litmus_identifier(struct litmus_cursor *c);
bool litmus_number(struct litmus_cursor *c, uint64_t *out);
/* "0:X1" or "P0:W1"; false, and nothing taken: it is something else. */
bool litmus_register(struct litmus_cursor *c, unsigned *out_thread,
                     unsigned *out_reg);

/* --- things that name variables; they make them when they are new --- */

/* False: too many. */
bool litmus_variable(struct litmus_cursor *c, struct litmus_test *test,
                     const char *name, unsigned *out, GError **error);
/* PTE(x), pte_x, TTD(x). False without error: it is something else. */
bool litmus_pte_name(struct litmus_cursor *c, struct litmus_test *test,
                     unsigned *out_var, GError **error);
/* A tuple, from its '('. */
bool litmus_tuple(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_pte *out, GError **error);
bool litmus_value(struct litmus_cursor *c, struct litmus_test *test,
                  struct litmus_value *out, GError **error);

#endif
