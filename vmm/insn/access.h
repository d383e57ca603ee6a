/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a load or store instruction does to memory and registers.
 *
 * The engine reports a data abort with the page only; the exact address for
 * FAR, MMIO accesses and LDTR/STTR are worked out here from the instruction
 * word and the registers. Pure functions, no disassembler.
 *
 * All A64 loads and stores of Armv8.0 to 8.5: general and SIMD registers,
 * pairs, literal, all index modes, exclusives, LSE, ordered, unprivileged,
 * LDRAA/LDRAB (address before authentication), LD1..LD4/ST1..ST4, PRFM,
 * DC ZVA and the DC/IC operations by address. Not SVE and not MTE tags.
 */
#ifndef INSN_ACCESS_H
#define INSN_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

enum access_mode {
    ACCESS_OFFSET = 0, /* [Xn, #offset] */
    ACCESS_PRE,        /* [Xn, #offset]! */
    ACCESS_POST,       /* [Xn], #offset */
    ACCESS_POST_REG,   /* [Xn], Xm (SIMD structures) */
    ACCESS_REG,        /* [Xn, Rm, extend #shift] */
    ACCESS_LITERAL,    /* pc + offset */
    ACCESS_BLOCK,      /* DC, IC: the block that holds Xt */
};

#define ACCESS_ELEMENTS_MAX 64 /* LD4 {16b}: 4 registers x 16 lanes */
/* DC ZVA block; DCZID_EL0.BS must say 4. Cache maintenance: 64-byte lines. */
#define ACCESS_BLOCK_BYTES 64

/* One piece of memory that goes to or comes from one register. */
struct access_element {
    uint8_t reg;    /* 0..31; general: 31 = XZR; SIMD: V0..V31 */
    uint8_t lane;   /* SIMD structures: lane index in units of bytes */
    uint8_t bytes;  /* 1 2 4 8 16 */
    uint8_t offset; /* from the address of the access */
};

struct access_insn {
    uint32_t word;
    bool is_load, is_store; /* both: LSE, CAS, SWP */
    bool is_simd;           /* elements name V registers */
    bool is_prefetch;       /* PRFM: never faults */
    bool is_cache_op;       /* DC, IC by address (not DC ZVA) */
    bool is_zero_block;     /* DC ZVA */
    bool is_exclusive;      /* LD/STX*; status register is not an element */
    bool is_atomic;         /* LSE: the elements are the loaded registers */
    bool is_ordered;        /* acquire and/or release */
    bool is_unprivileged;   /* LDTR STTR */
    bool is_single_lane;    /* LD1 {v.b}[i]: the rest of V is kept */
    bool is_replicated;     /* LD1R..LD4R: the element fills V */
    bool is_authenticated;  /* LDRAA LDRAB */
    uint8_t align;          /* natural alignment in bytes, for SCTLR.A */
    uint8_t simd_bytes;     /* bytes of V written before zeroing: 8 or 16 */
    uint8_t sign_bits;      /* 32, 64, or 0 = zero-extend */
    enum access_mode mode;
    uint8_t rn;            /* base, 31 = SP; ACCESS_BLOCK: Rt, 31 = XZR */
    uint8_t rm;            /* index, 31 = XZR */
    uint8_t extend, shift; /* ACCESS_REG: option field, left shift */
    uint16_t bytes;        /* total, of one contiguous range; 0: PRFM */
    int32_t offset;
    uint8_t count; /* elements */
    struct access_element element[ACCESS_ELEMENTS_MAX];
};

/* False if @word is no load, store, prefetch or DC/IC by address. */
bool access_decode(uint32_t word, struct access_insn *out);

/*
 * The address of the first byte; for ACCESS_BLOCK the register as it is, which
 * is what FAR reports for DC and IC, while the access starts at
 * access_start(). @read_x gets 0..30, or 31 for the current stack pointer;
 * XZR is handled here. The address is not canonicalised (top-byte-ignore is
 * the regime's matter) and a pointer of LDRAA/LDRAB is not authenticated.
 */
uint64_t access_address(const struct access_insn *a,
                        uint64_t (*read_x)(void *opaque, unsigned reg),
                        void *opaque, uint64_t pc);

/* The first byte touched, from what access_address() returned. */
static inline uint64_t access_start(const struct access_insn *a,
                                    uint64_t address)
{
    return a->mode == ACCESS_BLOCK
               ? address & ~(uint64_t)(ACCESS_BLOCK_BYTES - 1)
               : address;
}

/*
 * True if the base register is written back; then *out_value is what goes to
 * register a->rn (31 = SP) after the access has succeeded.
 */
bool access_writeback(const struct access_insn *a,
                      uint64_t (*read_x)(void *opaque, unsigned reg),
                      void *opaque, uint64_t *out_value);

/*
 * The first byte that the access touches in the faulting page: what FAR
 * reports when the engine says that @page (its first byte) faulted.
 */
uint64_t access_fault_address(const struct access_insn *a, uint64_t address,
                              uint64_t page);

/* Extends a value loaded into a general register as the instruction says. */
uint64_t access_extend(const struct access_insn *a, unsigned element,
                       uint64_t raw);

/* Registers as access_emulate_load/store() see them. V as two halves. */
struct access_regs {
    uint64_t (*read_x)(void *opaque, unsigned reg);
    void (*write_x)(void *opaque, unsigned reg, uint64_t value);
    void (*read_v)(void *opaque, unsigned reg, uint64_t out_value[2]);
    void (*write_v)(void *opaque, unsigned reg, const uint64_t value[2]);
    void *opaque;
};

/*
 * Moves a->bytes between @mem (little-endian guest order) and the registers:
 * extension, lanes and zeroing included, XZR handled; write-back is not done
 * here. False, and nothing done, for anything else than a plain load or store
 * (exclusives, LSE, prefetch, cache operations) or if read_v/write_v is
 * missing for a SIMD access.
 */
bool access_emulate_load(const struct access_insn *a, const void *mem,
                         const struct access_regs *regs);
bool access_emulate_store(const struct access_insn *a, void *mem,
                          const struct access_regs *regs);

#endif
