// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decoding of A64 loads and stores: which bytes, which registers.
 *
 * One function per encoding group; a group that finds an unallocated word
 * returns false. Addresses come from the registers by access_address().
 */
#include "insn/access.h"

#include <string.h>

static uint32_t access_bits(uint32_t word, unsigned low, unsigned count)
{
    return word >> low & ((1u << count) - 1);
}

static int32_t access_signed(uint32_t word, unsigned low, unsigned count)
{
    return (int32_t)(word << (32 - low - count)) >> (32 - count);
}

static void access_add(struct access_insn *a, unsigned reg, unsigned lane,
                       unsigned bytes)
{
    a->element[a->count++] = (struct access_element){
        .reg = (uint8_t)(reg & 31),
        .lane = (uint8_t)lane,
        .bytes = (uint8_t)bytes,
        .offset = (uint8_t)a->bytes,
    };
    a->bytes += bytes;
}

/* One or two whole registers of 1 << scale bytes. */
static void access_add_registers(struct access_insn *a, unsigned scale,
                                 unsigned rt, int rt2)
{
    access_add(a, rt, 0, 1u << scale);
    if (rt2 >= 0) {
        access_add(a, (unsigned)rt2, 0, 1u << scale);
    }
    a->align = (uint8_t)(1u << scale);
    a->simd_bytes = a->is_simd ? a->element[0].bytes : 0;
}

/* size 001000 o2 L o1 Rs o0 Rt2 Rn Rt */
static bool access_decode_exclusive(uint32_t word, struct access_insn *a)
{
    bool o2 = access_bits(word, 23, 1), load = access_bits(word, 22, 1);
    bool o1 = access_bits(word, 21, 1), o0 = access_bits(word, 15, 1);
    unsigned size = access_bits(word, 30, 2), rs = access_bits(word, 16, 5);
    unsigned rt = access_bits(word, 0, 5), rt2 = access_bits(word, 10, 5);

    if (o1 && (o2 || size < 2)) { /* CAS, CASP: they load into Rs */
        if (rt2 != 31 || (!o2 && ((rs | rt) & 1))) {
            return false;
        }
        a->is_load = a->is_store = a->is_atomic = true;
        a->is_ordered = load || o0;
        access_add_registers(a, o2 ? size : size + 2, rs,
                             o2 ? -1 : (int)rs + 1);
    } else {
        a->is_load = load;
        a->is_store = !load;
        a->is_exclusive = !o2;
        a->is_ordered = o2 || o0;
        access_add_registers(a, size, rt, o1 ? (int)rt2 : -1);
    }
    a->align = (uint8_t)a->bytes; /* a pair is aligned as a whole */
    return true;
}

/* What size and opc mean, for general registers. PRFM is size 3, opc 2. */
static bool access_general(struct access_insn *a, unsigned size, unsigned opc,
                           bool prefetch_allowed)
{
    unsigned rt = access_bits(a->word, 0, 5);

    if (size == 3 && opc == 2) {
        a->is_prefetch = true;
        return prefetch_allowed;
    }
    if (opc == 3 && size >= 2) {
        return false;
    }
    a->is_store = opc == 0;
    a->is_load = opc != 0;
    a->sign_bits = opc < 2 ? 0 : opc == 2 ? 64 : 32;
    access_add_registers(a, size, rt, -1);
    return true;
}

/* The same for either register file; *out_scale is log2 of the size. */
static bool access_sized(struct access_insn *a, bool prefetch_allowed,
                         unsigned *out_scale)
{
    unsigned size = access_bits(a->word, 30, 2);
    unsigned opc = access_bits(a->word, 22, 2);

    a->is_simd = access_bits(a->word, 26, 1);
    *out_scale = size;
    if (!a->is_simd) {
        return access_general(a, size, opc, prefetch_allowed);
    }
    if (opc & 2) {
        if (size != 0) {
            return false;
        }
        *out_scale = 4;
    }
    a->is_load = opc & 1;
    a->is_store = !a->is_load;
    access_add_registers(a, *out_scale, access_bits(a->word, 0, 5), -1);
    return true;
}

/* size 111 V 00 ...: everything with a 9-bit offset or a register */
static bool access_decode_single(uint32_t word, struct access_insn *a)
{
    unsigned scale, kind = access_bits(word, 10, 2);

    if (!access_bits(word, 21, 1)) {
        static const enum access_mode modes[4] = {ACCESS_OFFSET, ACCESS_POST,
                                                  ACCESS_OFFSET, ACCESS_PRE};

        a->mode = modes[kind];
        a->offset = access_signed(word, 12, 9);
        a->is_unprivileged = kind == 2;
        if (kind == 2 && access_bits(word, 26, 1)) {
            return false;
        }
        return access_sized(a, kind == 0, &scale);
    }
    if (kind == 2) {
        a->mode = ACCESS_REG;
        a->rm = (uint8_t)access_bits(word, 16, 5);
        a->extend = (uint8_t)access_bits(word, 13, 3);
        if (!(a->extend & 2) || !access_sized(a, true, &scale)) {
            return false;
        }
        a->shift = (uint8_t)(access_bits(word, 12, 1) ? scale : 0);
        return true;
    }
    if (access_bits(word, 26, 1)) {
        return false;
    }
    if (kind & 1) { /* LDRAA, LDRAB: S:imm9 counts doublewords */
        if (access_bits(word, 30, 2) != 3) {
            return false;
        }
        a->is_authenticated = a->is_load = true;
        a->mode = kind == 3 ? ACCESS_PRE : ACCESS_OFFSET;
        a->offset = ((access_bits(word, 22, 1) ? -512 : 0) +
                     (int32_t)access_bits(word, 12, 9)) *
                    8;
        access_add_registers(a, 3, access_bits(word, 0, 5), -1);
        return true;
    }
    /* LSE and LDAPR: A R 1 Rs o3 opc */
    if (access_bits(word, 12, 4) == 0xc) {
        if (access_bits(word, 16, 8) != 0xbf) { /* A=1 R=0 1 Rs=31 */
            return false;
        }
        a->is_load = a->is_ordered = true;
    } else if (access_bits(word, 12, 4) <= 8) {
        a->is_load = a->is_store = a->is_atomic = true;
        a->is_ordered = access_bits(word, 22, 2) != 0;
    } else {
        return false;
    }
    access_add_registers(a, access_bits(word, 30, 2), access_bits(word, 0, 5),
                         -1);
    return true;
}

/* size 111 V 01 opc imm12 Rn Rt */
static bool access_decode_unsigned(uint32_t word, struct access_insn *a)
{
    unsigned scale;

    if (!access_sized(a, true, &scale)) {
        return false;
    }
    a->offset = (int32_t)(access_bits(word, 10, 12) << scale);
    return true;
}

/* size 011001 opc 0 imm9 00 Rn Rt: LDAPUR, STLUR */
static bool access_decode_rcpc(uint32_t word, struct access_insn *a)
{
    unsigned size = access_bits(word, 30, 2), opc = access_bits(word, 22, 2);

    if (access_bits(word, 21, 1) || access_bits(word, 10, 2)) {
        return false; /* tags, RCPC3, memory copy */
    }
    a->is_ordered = true;
    a->offset = access_signed(word, 12, 9);
    return access_general(a, size, opc, false);
}

/* opc 011 V 00 imm19 Rt */
static bool access_decode_literal(uint32_t word, struct access_insn *a)
{
    unsigned opc = access_bits(word, 30, 2), rt = access_bits(word, 0, 5);

    a->mode = ACCESS_LITERAL;
    a->offset = access_signed(word, 5, 19) * 4;
    a->is_simd = access_bits(word, 26, 1);
    if (opc == 3) {
        a->is_prefetch = true;
        return !a->is_simd;
    }
    a->is_load = true;
    if (a->is_simd) {
        access_add_registers(a, 2 + opc, rt, -1);
    } else {
        a->sign_bits = opc == 2 ? 64 : 0;
        access_add_registers(a, opc == 1 ? 3 : 2, rt, -1);
    }
    return true;
}

/* opc 101 V 0 mode L imm7 Rt2 Rn Rt */
static bool access_decode_pair(uint32_t word, struct access_insn *a)
{
    static const enum access_mode modes[4] = {ACCESS_OFFSET, ACCESS_POST,
                                              ACCESS_OFFSET, ACCESS_PRE};
    unsigned opc = access_bits(word, 30, 2), scale;

    a->is_simd = access_bits(word, 26, 1);
    a->is_load = access_bits(word, 22, 1);
    a->is_store = !a->is_load;
    a->mode = modes[access_bits(word, 23, 2)];
    if (opc == 3) {
        return false;
    }
    if (a->is_simd) {
        scale = 2 + opc;
    } else if (opc == 1) { /* LDPSW; as a store it is STGP, a tag store */
        if (a->is_store || access_bits(word, 23, 2) == 0) {
            return false;
        }
        scale = 2;
        a->sign_bits = 64;
    } else {
        scale = opc ? 3 : 2;
    }
    a->offset = access_signed(word, 15, 7) * (1 << scale);
    access_add_registers(a, scale, access_bits(word, 0, 5),
                         (int)access_bits(word, 10, 5));
    return true;
}

/* Post-index of the SIMD structures: Rm == 31 means "by the total". */
static bool access_structure_index(struct access_insn *a)
{
    unsigned rm = access_bits(a->word, 16, 5);

    if (!access_bits(a->word, 23, 1)) {
        return rm == 0;
    }
    a->rm = (uint8_t)rm;
    a->mode = rm == 31 ? ACCESS_POST : ACCESS_POST_REG;
    a->offset = rm == 31 ? a->bytes : 0;
    return true;
}

/* 0 Q 0011000 L 0 00000 opcode size Rn Rt: LD1..LD4, ST1..ST4 */
static bool access_decode_structures(uint32_t word, struct access_insn *a)
{
    /* By opcode: registers, and registers of one structure; 0 = none. */
    static const uint8_t regs[16] = {
        [0] = 4, [2] = 4, [4] = 3, [6] = 3, [7] = 1, [8] = 2, [10] = 2};
    static const uint8_t selem[16] = {
        [0] = 4, [2] = 1, [4] = 3, [6] = 1, [7] = 1, [8] = 2, [10] = 1};
    unsigned opcode = access_bits(word, 12, 4);
    unsigned size = access_bits(word, 10, 2), rt = access_bits(word, 0, 5);
    unsigned width = access_bits(word, 30, 1) ? 16 : 8;

    if (access_bits(word, 21, 1) || !regs[opcode] ||
        (selem[opcode] > 1 && size == 3 && width == 8) ||
        (!access_bits(word, 23, 1) && access_bits(word, 16, 5))) {
        return false;
    }
    a->is_simd = true;
    a->is_load = access_bits(word, 22, 1);
    a->is_store = !a->is_load;
    if (selem[opcode] == 1) { /* registers one after the other */
        for (unsigned r = 0; r < regs[opcode]; r++) {
            access_add(a, rt + r, 0, width);
        }
    } else { /* interleaved: lane 0 of each register, lane 1 of each, ... */
        for (unsigned lane = 0; lane < width; lane += 1u << size) {
            for (unsigned r = 0; r < selem[opcode]; r++) {
                access_add(a, rt + r, lane, 1u << size);
            }
        }
    }
    a->align = (uint8_t)(1u << size);
    a->simd_bytes = (uint8_t)width;
    return access_structure_index(a);
}

/* 0 Q 0011010 L R 00000 opcode S size Rn Rt: one lane, or replicate */
static bool access_decode_lane(uint32_t word, struct access_insn *a)
{
    unsigned scale = access_bits(word, 14, 2), size = access_bits(word, 10, 2);
    unsigned q = access_bits(word, 30, 1), s = access_bits(word, 12, 1);
    unsigned selem = (access_bits(word, 13, 1) << 1) + 1;
    /* Q:S:size is the lane of bytes; wider lanes drop low bits of it. */
    unsigned lane = q << 3 | s << 2 | size;
    unsigned rt = access_bits(word, 0, 5);

    selem += access_bits(word, 21, 1);
    a->is_simd = true;
    a->is_load = access_bits(word, 22, 1);
    a->is_store = !a->is_load;
    a->is_single_lane = true;
    a->simd_bytes = 16;
    switch (scale) {
    case 0:
        break;
    case 1:
        if (size & 1) {
            return false;
        }
        break;
    case 2:
        if (size & 2) {
            return false;
        }
        if (size == 1) {
            if (s) {
                return false;
            }
            scale = 3;
            lane = q << 3;
        }
        break;
    default:
        if (a->is_store || s) {
            return false;
        }
        a->is_single_lane = false;
        a->is_replicated = true;
        a->simd_bytes = q ? 16 : 8;
        scale = size;
        lane = 0;
        break;
    }
    for (unsigned r = 0; r < selem; r++) {
        access_add(a, rt + r, lane & ~((1u << scale) - 1), 1u << scale);
    }
    a->align = (uint8_t)(1u << scale);
    return access_structure_index(a);
}

/* SYS #op1, C7, CRm, #op2, Xt with an address in Xt */
static bool access_decode_cache(uint32_t word, struct access_insn *a)
{
    unsigned op1 = access_bits(word, 16, 3), crm = access_bits(word, 8, 4);
    unsigned op2 = access_bits(word, 5, 3);

    a->mode = ACCESS_BLOCK;
    a->rn = (uint8_t)access_bits(word, 0, 5);
    a->bytes = ACCESS_BLOCK_BYTES;
    a->align = 1;
    if (op1 == 3 && crm == 4 && op2 == 1) { /* DC ZVA */
        a->is_zero_block = a->is_store = true;
        return true;
    }
    a->is_cache_op = true;
    if (op2 != 1) {
        return false;
    }
    if (op1 == 0) {
        return crm == 6; /* DC IVAC */
    }
    /* IC IVAU, DC CVAC, CVAU, CVAP, CVADP, CIVAC */
    return op1 == 3 && (crm == 5 || (crm >= 10 && crm <= 14));
}

bool access_decode(uint32_t word, struct access_insn *out)
{
    memset(out, 0, sizeof(*out));
    out->word = word;
    out->rn = (uint8_t)access_bits(word, 5, 5);
    out->rm = 31;
    if ((word & 0xfff8f000u) == 0xd5087000u) {
        return access_decode_cache(word, out);
    }
    if ((word & 0x0a000000u) != 0x08000000u) {
        return false; /* bit 27 set and bit 25 clear: loads and stores */
    }
    if ((word & 0x3f000000u) == 0x08000000u) {
        return access_decode_exclusive(word, out);
    }
    if ((word & 0x3f000000u) == 0x19000000u) {
        return access_decode_rcpc(word, out);
    }
    if ((word & 0x3b000000u) == 0x18000000u) {
        return access_decode_literal(word, out);
    }
    if ((word & 0x3a000000u) == 0x28000000u) {
        return access_decode_pair(word, out);
    }
    if ((word & 0x3b000000u) == 0x38000000u) {
        return access_decode_single(word, out);
    }
    if ((word & 0x3b000000u) == 0x39000000u) {
        return access_decode_unsigned(word, out);
    }
    if ((word & 0xbf000000u) == 0x0c000000u) {
        return access_decode_structures(word, out);
    }
    if ((word & 0xbf000000u) == 0x0d000000u) {
        return access_decode_lane(word, out);
    }
    return false;
}

/* UXTW, LSL, SXTW, SXTX; option<1> is set in all of them. */
static uint64_t access_index(const struct access_insn *a, uint64_t rm)
{
    switch (a->extend) {
    case 2:
        rm = (uint32_t)rm;
        break;
    case 6:
        rm = (uint64_t)(int64_t)(int32_t)(uint32_t)rm;
        break;
    default:
        break;
    }
    return rm << a->shift;
}

uint64_t access_address(const struct access_insn *a,
                        uint64_t (*read_x)(void *opaque, unsigned reg),
                        void *opaque, uint64_t pc)
{
    uint64_t base;

    switch (a->mode) {
    case ACCESS_LITERAL:
        return pc + (uint64_t)(int64_t)a->offset;
    case ACCESS_BLOCK:
        return a->rn == 31 ? 0 : read_x(opaque, a->rn);
    case ACCESS_OFFSET:
    case ACCESS_PRE:
        return read_x(opaque, a->rn) + (uint64_t)(int64_t)a->offset;
    case ACCESS_POST:
    case ACCESS_POST_REG:
        return read_x(opaque, a->rn);
    case ACCESS_REG:
        base = read_x(opaque, a->rn);
        return base + access_index(a, a->rm == 31 ? 0 : read_x(opaque, a->rm));
    }
    return 0;
}

bool access_writeback(const struct access_insn *a,
                      uint64_t (*read_x)(void *opaque, unsigned reg),
                      void *opaque, uint64_t *out_value)
{
    switch (a->mode) {
    case ACCESS_PRE:
    case ACCESS_POST:
        *out_value = read_x(opaque, a->rn) + (uint64_t)(int64_t)a->offset;
        return true;
    case ACCESS_POST_REG: /* never 31, which means the total */
        *out_value = read_x(opaque, a->rn) + read_x(opaque, a->rm);
        return true;
    case ACCESS_OFFSET:
    case ACCESS_REG:
    case ACCESS_LITERAL:
    case ACCESS_BLOCK:
        return false;
    }
    return false;
}

uint64_t access_fault_address(const struct access_insn *a, uint64_t address,
                              uint64_t page)
{
    /*
     * An access may begin in the page before. A block never crosses a page,
     * and for it the register value is reported, not the block's first byte.
     */
    if (a->mode == ACCESS_BLOCK || (address ^ page) >> 12 == 0) {
        return address;
    }
    return page;
}
