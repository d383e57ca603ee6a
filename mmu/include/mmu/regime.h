/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The EL1&0 translation regime as a value: SCTLR, TCR and TTBRs, decoded once.
 *
 * Depends on addr.h. Pure functions, any thread.
 */
#ifndef MMU_REGIME_H
#define MMU_REGIME_H

#include <stdbool.h>
#include <stdint.h>

#include "mmu/addr.h"

/* SCTLR_EL1 */
#define SCTLR_M (UINT64_C(1) << 0)
#define SCTLR_WXN (UINT64_C(1) << 19)

/*
 * TCR_EL1
 *
 *   63 43  42   41  40 39  38   37   36 34 32 31 30 29  24  23  22 21  16
 *  +-----+----+----+-----+----+----+--+--+---+-----+------+----+--+------+
 *  |     |HPD1|HPD0|HD HA|TBI1|TBI0|AS|  |IPS| TG1 |SH/RGN|EPD1|A1| T1SZ |
 *  +-----+----+----+-----+----+----+--+--+---+-----+------+----+--+------+
 *   15 14 13   8  7   6 5    0
 *  +-----+------+----+-+------+
 *  | TG0 |SH/RGN|EPD0| | T0SZ |
 *  +-----+------+----+-+------+
 */
#define TCR_T0SZ_SHIFT 0
#define TCR_EPD0 (UINT64_C(1) << 7)
#define TCR_TG0_SHIFT 14 /* 0: 4K, 1: 64K, 2: 16K */
#define TCR_T1SZ_SHIFT 16
#define TCR_TSZ_MASK UINT64_C(0x3f)
#define TCR_A1 (UINT64_C(1) << 22)
#define TCR_EPD1 (UINT64_C(1) << 23)
#define TCR_TG1_SHIFT 30 /* 1: 16K, 2: 4K, 3: 64K */
#define TCR_IPS_SHIFT 32
#define TCR_IPS_MASK UINT64_C(7)
#define TCR_AS (UINT64_C(1) << 36)
#define TCR_TBI0 (UINT64_C(1) << 37)
#define TCR_TBI1 (UINT64_C(1) << 38)
#define TCR_HA (UINT64_C(1) << 39)
#define TCR_HD (UINT64_C(1) << 40)
#define TCR_HPD0 (UINT64_C(1) << 41)
#define TCR_HPD1 (UINT64_C(1) << 42)

/* TTBRn_EL1 */
#define TTBR_ASID_SHIFT 48
#define TTBR_BADDR_MASK UINT64_C(0x0000fffffffffffe)

/*
 * Limits of TxSZ: 16 without FEAT_LVA, 48 with FEAT_TTST. A value outside
 * makes every walk of that half a level 0 translation fault, one of the
 * permitted choices.
 */
#define REGIME_TSZ_MIN 16
#define REGIME_TSZ_MAX 48

/* One half of the address space: [0] is TTBR0's (low), [1] TTBR1's (high). */
struct regime_half {
    gpa_t base;          /* of the start-level table, aligned as the table */
    uint8_t tsz;         /* as programmed */
    uint8_t start_level; /* 0..3; valid when tsz_valid */
    bool tsz_valid;
    bool base_fits; /* base is within pa_bits; else address size, level 0 */
    bool epd;       /* misses do not walk: translation fault, level 0 */
    bool tbi;
    bool hpd; /* hierarchical permissions are ignored */
};

struct regime {
    bool mmu_on;
    bool wxn;
    bool ha;         /* FEAT_HAFDBS: hardware sets the access flag */
    bool hd;         /* and marks pages dirty; never without ha */
    bool asid16;     /* ASIDs have 16 bits, else 8 */
    uint16_t asid;   /* the current one, from TTBR0 or TTBR1 by TCR.A1 */
    uint8_t pa_bits; /* output size by TCR.IPS, 32..48 */
    struct regime_half half[2];
};

/*
 * Unimplemented or reserved granules are treated as 4 KiB (what the
 * architecture asks of an implementation that has only that one); reserved
 * IPS values as 48 bits.
 *
 * `ha` and `hd` are always decoded: on a machine without FEAT_HAFDBS, where
 * the bits are RES0, the caller clears both afterwards, and on one that has
 * the access flag only, `hd`.
 */
void regime_decode(struct regime *out, uint64_t sctlr, uint64_t tcr,
                   uint64_t ttbr0, uint64_t ttbr1);

/* VA[55] selects the half, whatever TBI says. */
static inline unsigned regime_half_of(gva_t va)
{
    return (va >> 55) & 1;
}

/*
 * Removes the tag: with TBI for its half, bits [63:56] become copies of bit
 * 55. This is the form that the TLB is given and asked for.
 */
gva_t regime_canonical(const struct regime *regime, gva_t va);

/*
 * The half that translates `va` (tagged or not). False when the address lies
 * in neither half or the half's TxSZ is out of range: a translation fault at
 * level 0. EPD is left to the walker, as TLB hits ignore it.
 */
bool regime_select(const struct regime *regime, gva_t va,
                   const struct regime_half **out_half);

#endif
