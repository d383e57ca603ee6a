/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disassembler for single AArch64 words.
 *
 * disas.c is the only file that sees Capstone; nobody else depends on its
 * version. One object belongs to one thread at a time: Capstone keeps the
 * last error in its handle, so vCPU threads each have their own.
 */
#ifndef INSN_DISAS_H
#define INSN_DISAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISAS_MNEMONIC_MAX 32 /* size of a mnemonic buffer, NUL included */

struct disas;

/* NULL if Capstone was built without AArch64 or memory is short. */
struct disas *disas_new(void);
void disas_free(struct disas *d);

/* --- the owner's thread only --- */

/*
 * Writes the mnemonic of @word ("ldaxr", "b.ne") to @out_mnemonic, which has
 * DISAS_MNEMONIC_MAX bytes. False if Capstone does not know the word.
 */
bool disas_mnemonic(struct disas *d, uint32_t word, char *out_mnemonic);

/*
 * Writes one line, "ldaxr w0, [x1]", for a reader of reports; a word that
 * Capstone does not know is written as ".inst 0x...". Never fails; cuts at
 * @size.
 */
void disas_text(struct disas *d, uint32_t word, uint64_t pc, char *out_text,
                size_t size);

/* How often Capstone read a word as something else than we did. */
uint64_t disas_disagreements(const struct disas *d);
void disas_note_disagreement(struct disas *d);

/* Version of the Capstone library in use, as "4.0". */
void disas_version(char *out_text, size_t size);

#endif
