/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the libFuzzer targets of the VMM's own inputs share. One target a file,
 * one input a call: the bytes are what the file, the line or the guest would
 * contain. A target returns 0; what is wrong ends in FUZZ_CHECK() or in a
 * sanitizer. One thread.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* What must be true of every input; libFuzzer keeps the one that breaks it. */
#define FUZZ_CHECK(condition, ...)                                             \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,       \
                    #condition);                                               \
            fprintf(stderr, __VA_ARGS__);                                      \
            fputc('\n', stderr);                                               \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* A result and an error exclude each other, and an error has a sentence. */
#define FUZZ_CHECK_ERROR(ok, error)                                            \
    FUZZ_CHECK((ok) ? (error) == NULL                                          \
                    : (error) != NULL && (error)->message[0] != '\0',          \
               "result or error: %s", (error) ? (error)->message : "neither")

/* --- file.c --- */

/* The name of a file with these bytes; good until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* The bytes with a NUL behind them; g_free() it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* Takes bytes off the front of an input; zeros when it is used up. */
struct fuzz_bytes {
    const uint8_t *at, *end;
};

static inline uint64_t fuzz_take(struct fuzz_bytes *bytes, unsigned count)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < count && bytes->at < bytes->end; i++) {
        value |= (uint64_t)*bytes->at++ << 8 * i;
    }
    return value;
}

#endif
