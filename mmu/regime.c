/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decodes the registers of the EL1&0 regime. Pure. */
#include "mmu/regime.h"

static uint8_t output_bits(uint64_t tcr)
{
    /*
     * 6 is 52 bits, which needs a physical address size we do not have, and 7
     * is reserved: the size is capped by what is implemented.
     */
    static const uint8_t bits[8] = {32, 36, 40, 42, 44, 48, 48, 48};

    return bits[(tcr >> TCR_IPS_SHIFT) & TCR_IPS_MASK];
}

static void decode_half(struct regime_half *out, unsigned tsz, uint64_t ttbr,
                        uint8_t pa_bits)
{
    unsigned va_bits = 64 - tsz;
    unsigned levels, table_bits;
    gpa_t base = ttbr & TTBR_BADDR_MASK;

    out->tsz = (uint8_t)tsz;
    out->tsz_valid = tsz >= REGIME_TSZ_MIN && tsz <= REGIME_TSZ_MAX;
    out->base_fits = (base >> pa_bits) == 0;
    out->start_level = 0;
    if (!out->tsz_valid) {
        out->base = base & ~MMU_PAGE_MASK;
        return;
    }
    levels = (va_bits - MMU_PAGE_SHIFT + MMU_LEVEL_BITS - 1) / MMU_LEVEL_BITS;
    out->start_level = (uint8_t)(MMU_LEVELS - levels);
    /*
     * The first table has one entry for each value of the remaining bits, and
     * is aligned to its size: lower bits of the base (CnP too) do not count.
     */
    table_bits = va_bits - mmu_level_shift(out->start_level) + 3;
    out->base = base & ~((UINT64_C(1) << table_bits) - 1);
}

void regime_decode(struct regime *out, uint64_t sctlr, uint64_t tcr,
                   uint64_t ttbr0, uint64_t ttbr1)
{
    uint64_t asid = ((tcr & TCR_A1) ? ttbr1 : ttbr0) >> TTBR_ASID_SHIFT;

    out->mmu_on = sctlr & SCTLR_M;
    out->wxn = sctlr & SCTLR_WXN;
    out->ha = tcr & TCR_HA;
    out->hd = out->ha && (tcr & TCR_HD);
    out->asid16 = tcr & TCR_AS;
    out->asid = (uint16_t)(out->asid16 ? asid : asid & 0xff);
    out->pa_bits = output_bits(tcr);

    decode_half(&out->half[0], (tcr >> TCR_T0SZ_SHIFT) & TCR_TSZ_MASK, ttbr0,
                out->pa_bits);
    decode_half(&out->half[1], (tcr >> TCR_T1SZ_SHIFT) & TCR_TSZ_MASK, ttbr1,
                out->pa_bits);
    out->half[0].epd = tcr & TCR_EPD0;
    out->half[1].epd = tcr & TCR_EPD1;
    out->half[0].tbi = tcr & TCR_TBI0;
    out->half[1].tbi = tcr & TCR_TBI1;
    out->half[0].hpd = tcr & TCR_HPD0;
    out->half[1].hpd = tcr & TCR_HPD1;
}

gva_t regime_canonical(const struct regime *regime, gva_t va)
{
    unsigned half = regime_half_of(va);
    gva_t tag = UINT64_C(0xff) << 56;

    if (!regime->half[half].tbi) {
        return va;
    }
    return half ? va | tag : va & ~tag;
}

bool regime_select(const struct regime *regime, gva_t va,
                   const struct regime_half **out_half)
{
    unsigned index = regime_half_of(va);
    const struct regime_half *half = &regime->half[index];
    gva_t top;

    if (!half->tsz_valid) {
        return false;
    }
    /* All bits above the 64 - TxSZ translated ones must equal VA[55]. */
    top = regime_canonical(regime, va) >> (64 - half->tsz);
    if (top != (index ? (UINT64_C(1) << half->tsz) - 1 : 0)) {
        return false;
    }
    *out_half = half;
    return true;
}
