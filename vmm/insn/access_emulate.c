// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Moving the bytes of a decoded access between memory and registers, for MMIO
 * and for unprivileged accesses. The order of the guest's bytes is
 * little-endian, and so are the hosts (x86-64, AArch64).
 */
#include "insn/access.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "register bytes are copied as they lie in memory");

uint64_t access_extend(const struct access_insn *a, unsigned element,
                       uint64_t raw)
{
    unsigned bits = a->element[element].bytes * 8u;
    uint64_t value;

    if (bits >= 64) {
        return raw;
    }
    value = raw & ((UINT64_C(1) << bits) - 1);
    if (a->sign_bits && value >> (bits - 1)) {
        value |= ~UINT64_C(0) << bits;
        if (a->sign_bits == 32) {
            value = (uint32_t)value; /* a write to W clears the upper half */
        }
    }
    return value;
}

static bool access_is_plain(const struct access_insn *a)
{
    return !a->is_exclusive && !a->is_atomic && !a->is_prefetch &&
           !a->is_cache_op && !a->is_zero_block && a->count;
}

static void access_load_simd(const struct access_insn *a, const uint8_t *mem,
                             const struct access_regs *regs)
{
    const struct access_element *e;
    uint64_t v[4][2] = {{0}};
    unsigned used = 0;

    /* At most four registers, consecutive modulo 32 except in LDP. */
    for (unsigned i = 0; i < a->count; i++) {
        unsigned slot;

        e = &a->element[i];
        for (slot = 0; slot < used; slot++) {
            if (a->element[slot].reg == e->reg) {
                break;
            }
        }
        if (slot == used) {
            used++;
            if (a->is_single_lane) {
                regs->read_v(regs->opaque, e->reg, v[slot]);
            }
        }
        for (unsigned lane = e->lane; lane < 16; lane += e->bytes) {
            memcpy((uint8_t *)v[slot] + lane, mem + e->offset, e->bytes);
            if (!a->is_replicated || lane + e->bytes >= a->simd_bytes) {
                break;
            }
        }
    }
    for (unsigned slot = 0; slot < used; slot++) {
        regs->write_v(regs->opaque, a->element[slot].reg, v[slot]);
    }
}

bool access_emulate_load(const struct access_insn *a, const void *mem,
                         const struct access_regs *regs)
{
    const uint8_t *bytes = mem;

    if (!a->is_load || !access_is_plain(a)) {
        return false;
    }
    if (a->is_simd) {
        if (!regs->read_v || !regs->write_v) {
            return false;
        }
        access_load_simd(a, bytes, regs);
        return true;
    }
    for (unsigned i = 0; i < a->count; i++) {
        const struct access_element *e = &a->element[i];
        uint64_t raw = 0;

        memcpy(&raw, bytes + e->offset, e->bytes);
        if (e->reg != 31) {
            regs->write_x(regs->opaque, e->reg, access_extend(a, i, raw));
        }
    }
    return true;
}

bool access_emulate_store(const struct access_insn *a, void *mem,
                          const struct access_regs *regs)
{
    uint8_t *bytes = mem;

    if (!a->is_store || !access_is_plain(a) || (a->is_simd && !regs->read_v)) {
        return false;
    }
    for (unsigned i = 0; i < a->count; i++) {
        const struct access_element *e = &a->element[i];
        uint64_t value[2] = {0, 0};

        if (a->is_simd) {
            regs->read_v(regs->opaque, e->reg, value);
        } else if (e->reg != 31) {
            value[0] = regs->read_x(regs->opaque, e->reg);
        }
        memcpy(bytes + e->offset, (const uint8_t *)value + e->lane, e->bytes);
    }
    return true;
}
