// SPDX-License-Identifier: GPL-2.0-or-later
/* Decoding of loads and stores: addresses, sizes, registers, emulation. */
#include "insn/access.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NO_WRITEBACK UINT64_MAX
#define PC UINT64_C(0x400000)

enum flags {
    LOAD = 1,
    STORE = 2,
    SIMD = 4,
    UNPRIV = 8,
    EXCL = 16,
    ATOMIC = 32,
    ORDERED = 64,
    PREFETCH = 128,
    REPL = 256,
    ZERO = 512,
    CACHE = 1024,
    LANE = 2048,
};

struct row {
    const char *text;
    uint32_t word;
    unsigned flags, bytes;
    uint64_t address, writeback;
    unsigned sign_bits, count, reg, reg_bytes, lane;
};

/* clang-format off */
static const struct row rows[] = {
#define ACCESS(...) {__VA_ARGS__},
#include "access_words.inc"
#undef ACCESS
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define GROUP 32 /* rows of one test: a process for each would be slow */

/* --- a register file --- */

struct file {
    uint64_t x[32]; /* 31 = SP */
    uint64_t v[32][2];
    unsigned writes;
};

static void file_init(struct file *file)
{
    memset(file, 0, sizeof(*file));
    for (unsigned i = 0; i < 31; i++) {
        file->x[i] = i * UINT64_C(0x100000) + 0x1000;
    }
    file->x[29] = 0xfffffff8;
    file->x[31] = 0x7fff0000;
    for (unsigned i = 0; i < 32; i++) {
        memset(file->v[i], 0xa0 + (int)i, 16);
    }
}

static uint64_t read_x(void *opaque, unsigned reg)
{
    return ((struct file *)opaque)->x[reg];
}

static void write_x(void *opaque, unsigned reg, uint64_t value)
{
    struct file *file = opaque;

    file->x[reg] = value;
    file->writes++;
}

static void read_v(void *opaque, unsigned reg, uint64_t out_value[2])
{
    memcpy(out_value, ((struct file *)opaque)->v[reg], 16);
}

static void write_v(void *opaque, unsigned reg, const uint64_t value[2])
{
    struct file *file = opaque;

    memcpy(file->v[reg], value, 16);
    file->writes++;
}

static struct access_regs regs_of(struct file *file)
{
    return (struct access_regs){read_x, write_x, read_v, write_v, file};
}

static unsigned flags_of(const struct access_insn *a)
{
    return (a->is_load ? LOAD : 0) | (a->is_store ? STORE : 0) |
           (a->is_simd ? SIMD : 0) | (a->is_unprivileged ? UNPRIV : 0) |
           (a->is_exclusive ? EXCL : 0) | (a->is_atomic ? ATOMIC : 0) |
           (a->is_ordered ? ORDERED : 0) | (a->is_prefetch ? PREFETCH : 0) |
           (a->is_replicated ? REPL : 0) | (a->is_zero_block ? ZERO : 0) |
           (a->is_cache_op ? CACHE : 0) | (a->is_single_lane ? LANE : 0);
}

static void check_row(const struct row *row)
{
    struct access_insn a;
    struct file file;
    uint64_t address, writeback = NO_WRITEBACK;

    file_init(&file);
    ck_assert_msg(access_decode(row->word, &a), "%s", row->text);
    address = access_address(&a, read_x, &file, PC);
    ck_assert_msg(address == row->address, "%s: address 0x%" PRIx64, row->text,
                  address);
    ck_assert_msg(a.bytes == row->bytes, "%s: %u bytes", row->text, a.bytes);
    ck_assert_msg(flags_of(&a) == row->flags, "%s: flags %#x", row->text,
                  flags_of(&a));
    (void)access_writeback(&a, read_x, &file, &writeback);
    ck_assert_msg(writeback == row->writeback, "%s: write-back 0x%" PRIx64,
                  row->text, writeback);
    ck_assert_msg(a.sign_bits == row->sign_bits, "%s", row->text);
    ck_assert_msg(a.count == row->count, "%s: %u elements", row->text, a.count);
    if (a.count) {
        ck_assert_msg(a.element[0].reg == row->reg, "%s", row->text);
        ck_assert_msg(a.element[0].bytes == row->reg_bytes, "%s", row->text);
        ck_assert_msg(a.element[0].lane == row->lane, "%s", row->text);
    }
    ck_assert_msg(!access_fault_address(&a, address, address & ~0xfffull) ==
                      !address,
                  "%s", row->text);
}
START_TEST(each_access_has_its_address_size_and_registers)
{
    for (unsigned i = (unsigned)_i * GROUP; i < ROWS && i < (_i + 1u) * GROUP;
         i++) {
        check_row(&rows[i]);
    }
}
END_TEST

START_TEST(other_instructions_are_no_accesses)
{
    static const uint32_t words[] = {
        0xd503201f, /* nop */
        0x8b020020, /* add x0, x1, x2 */
        0xd5033b9f, /* dsb ish */
        0xd4000001, /* svc #0 */
        0xd69f03e0, /* eret */
        0x14000000, /* b . */
        0x4ea11c20, /* mov v0.16b, v1.16b */
        0xd50b7460, /* DC GVA: tags */
        0xd5087652, /* DC ISW: no address */
        0xd508751f, /* ic iallu */
        0xd5382003, /* mrs x3, ttbr0_el1 */
        0xd9200c00, /* stg x0, [x0], #0: tags */
        0x69000440, /* stgp: tags */
        0x3c400841, /* LDTR group with V set */
        0x3c80041f, /* fine: str q31, [x0], #0 */
        0x0c402000, /* fine: ld1 x4 */
        0x0c405000, /* LD1 group, reserved opcode */
        0x0c400c00, /* LD4 {1d}: reserved */
        0x0d40c400, /* ld1r without post-index: fine */
        0x0d00c400, /* st1r: does not exist */
        0xb8206020, /* fine: ldumax */
        0xb8209020, /* LSE group, unallocated */
        0xc8e10441, /* LSE CAS with Rt2 != 31 */
    };
    static const bool is_access[sizeof(words) / sizeof(words[0])] = {
        [14] = true, [15] = true, [18] = true, [20] = true};

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct access_insn a;

        ck_assert_msg(access_decode(words[i], &a) == is_access[i], "0x%08x",
                      words[i]);
    }
}
END_TEST

static bool is_sane(const struct access_insn *a)
{
    for (unsigned e = 0; e < a->count && e < ACCESS_ELEMENTS_MAX; e++) {
        const struct access_element *element = &a->element[e];

        if (element->offset + element->bytes > a->bytes ||
            element->lane + element->bytes > 16 || element->reg > 31) {
            return false;
        }
    }
    return a->count <= ACCESS_ELEMENTS_MAX && a->bytes <= 64 &&
           (a->is_load || a->is_store || a->is_prefetch || a->is_cache_op) &&
           (a->is_prefetch || (a->align && !(a->align & (a->align - 1))));
}

START_TEST(decoding_is_total_and_stays_in_bounds)
{
    unsigned seed = (unsigned)time(NULL), accesses = 0;
    uint64_t state = seed | 1;

    printf("random words: seed %u\n", seed);
    for (unsigned i = 0; i < 1000000; i++) {
        struct access_insn a;

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        if (!access_decode((uint32_t)(state >> 32), &a)) {
            continue;
        }
        accesses++;
        if (!is_sane(&a)) {
            ck_abort_msg("0x%08x", a.word);
        }
    }
    ck_assert_uint_gt(accesses, 50000);
}
END_TEST

START_TEST(a_fault_in_the_second_page_reports_its_first_byte)
{
    struct access_insn a;

    ck_assert(access_decode(0xf9400027, &a)); /* ldr x7, [x1] */
    ck_assert_uint_eq(access_fault_address(&a, 0x1ffc, 0x1000), 0x1ffc);
    ck_assert_uint_eq(access_fault_address(&a, 0x1ffc, 0x2000), 0x2000);
    ck_assert(access_decode(0xd50b7425, &a)); /* dc zva, x5 */
    ck_assert_uint_eq(access_fault_address(&a, 0x1fe7, 0x1000), 0x1fe7);
    ck_assert_uint_eq(access_start(&a, 0x1fe7), 0x1fc0);
}
END_TEST

START_TEST(alignment_is_that_of_the_element_or_of_the_exclusive_pair)
{
    static const struct {
        uint32_t word;
        unsigned align;
    } cases[] = {
        {0xa9400c22, 8},  /* ldp x2, x3, [x1] */
        {0xad400c22, 16}, /* ldp q2, q3, [x1] */
        {0xc87f0c22, 16}, /* ldxp x2, x3, [x1] */
        {0x48227c24, 16}, /* casp x2, x3, x4, x5, [x1] */
        {0x08227c24, 8},  /* casp w2, w3, w4, w5, [x1] */
        {0x4c407022, 1},  /* ld1 {v2.16b}, [x1] */
        {0x4c407c22, 8},  /* ld1 {v2.2d}, [x1] */
        {0x3dc00022, 16}, /* ldr q2, [x1] */
        {0x79400022, 2},  /* ldrh w2, [x1] */
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct access_insn a;

        ck_assert(access_decode(cases[i].word, &a));
        ck_assert_msg(a.align == cases[i].align, "0x%08x: %u", cases[i].word,
                      a.align);
    }
}
END_TEST

/* --- emulation --- */

START_TEST(loads_extend_into_general_registers)
{
    static const uint8_t mem[8] = {0x80, 0xff, 0x34, 0x92, 1, 2, 3, 0x84};
    static const struct {
        uint32_t word;
        uint64_t x2;
    } cases[] = {
        {0x39400022, 0x80},                         /* ldrb w2 */
        {0x39800022, UINT64_C(0xffffffffffffff80)}, /* ldrsb x2 */
        {0x39c00022, 0xffffff80},                   /* ldrsb w2 */
        {0x79400022, 0xff80},                       /* ldrh w2 */
        {0x79800022, UINT64_C(0xffffffffffffff80)}, /* ldrsh x2 */
        {0x79c00022, 0xffffff80},                   /* ldrsh w2 */
        {0xb9400022, 0x9234ff80},                   /* ldr w2 */
        {0xb9800022, UINT64_C(0xffffffff9234ff80)}, /* ldrsw x2 */
        {0xf9400022, UINT64_C(0x840302019234ff80)}, /* ldr x2 */
        {0xf8408822, UINT64_C(0x840302019234ff80)}, /* ldtr x2, #8 */
        {0x88dffc22, 0x9234ff80},                   /* ldar w2 */
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct access_insn a;
        struct access_regs regs;
        struct file file;

        file_init(&file);
        regs = regs_of(&file);
        ck_assert(access_decode(cases[i].word, &a));
        ck_assert(access_emulate_load(&a, mem, &regs));
        ck_assert_msg(file.x[2] == cases[i].x2, "0x%08x: 0x%" PRIx64,
                      cases[i].word, file.x[2]);
        ck_assert_uint_eq(file.writes, 1);
    }
}
END_TEST

START_TEST(a_load_into_the_zero_register_writes_nothing)
{
    static const uint8_t mem[8] = {1};
    struct access_insn a;
    struct file file;
    struct access_regs regs = regs_of(&file);

    file_init(&file);
    ck_assert(access_decode(0xf940003f, &a)); /* ldr xzr, [x1] */
    ck_assert(access_emulate_load(&a, mem, &regs));
    ck_assert_uint_eq(file.writes, 0);
}
END_TEST

START_TEST(stores_take_the_low_bytes_and_pairs_follow_each_other)
{
    uint8_t mem[16], zero[16] = {0};
    struct access_insn a;
    struct file file;
    struct access_regs regs = regs_of(&file);

    file_init(&file);
    file.x[2] = UINT64_C(0x1122334455667788);
    file.x[3] = UINT64_C(0x99aabbccddeeff00);
    memset(mem, 0, sizeof(mem));
    ck_assert(access_decode(0x79000022, &a)); /* strh w2, [x1] */
    ck_assert(access_emulate_store(&a, mem, &regs));
    ck_assert_mem_eq(mem, "\x88\x77\0\0", 4);
    ck_assert(access_decode(0xa9000c22, &a)); /* stp x2, x3, [x1] */
    ck_assert(access_emulate_store(&a, mem, &regs));
    ck_assert_mem_eq(mem, &file.x[2], 8);
    ck_assert_mem_eq(mem + 8, &file.x[3], 8);
    ck_assert(access_decode(0x29007c3f, &a)); /* stp wzr, wzr, [x1] */
    ck_assert(access_emulate_store(&a, mem, &regs));
    ck_assert_mem_eq(mem, zero, 8);
    ck_assert_mem_eq(mem + 8, &file.x[3], 8);
}
END_TEST

START_TEST(simd_loads_zero_the_rest_keep_lanes_and_replicate)
{
    uint8_t mem[64], want[16];
    struct access_insn a;
    struct file file;
    struct access_regs regs = regs_of(&file);

    for (unsigned i = 0; i < sizeof(mem); i++) {
        mem[i] = (uint8_t)i;
    }
    file_init(&file);
    ck_assert(access_decode(0xbd400022, &a)); /* ldr s2, [x1] */
    ck_assert(access_emulate_load(&a, mem, &regs));
    ck_assert_uint_eq(file.v[2][0], 0x03020100);
    ck_assert_uint_eq(file.v[2][1], 0);

    file_init(&file);
    ck_assert(access_decode(0x0d409022, &a)); /* ld1 {v2.s}[1], [x1] */
    memcpy(want, file.v[2], 16);
    memcpy(want + 4, mem, 4);
    ck_assert(access_emulate_load(&a, mem, &regs));
    ck_assert_mem_eq(file.v[2], want, 16);

    ck_assert(access_decode(0x0d40c422, &a)); /* ld1r {v2.4h}, [x1] */
    ck_assert(access_emulate_load(&a, mem, &regs));
    ck_assert_uint_eq(file.v[2][0], UINT64_C(0x0100010001000100));
    ck_assert_uint_eq(file.v[2][1], 0);

    ck_assert(access_decode(0x4c400022, &a)); /* ld4 {v2.16b-v5.16b}, [x1] */
    ck_assert(access_emulate_load(&a, mem, &regs));
    for (unsigned r = 0; r < 4; r++) {
        for (unsigned lane = 0; lane < 16; lane++) {
            ck_assert_uint_eq(((uint8_t *)file.v[2 + r])[lane], lane * 4 + r);
        }
    }
    memset(mem, 0, sizeof(mem));
    ck_assert(access_decode(0x4c000022, &a)); /* st4 {v2.16b-v5.16b}, [x1] */
    ck_assert(access_emulate_store(&a, mem, &regs));
    for (unsigned i = 0; i < sizeof(mem); i++) {
        ck_assert_uint_eq(mem[i], i);
    }
}
END_TEST

START_TEST(what_is_no_plain_access_is_refused_by_emulation)
{
    static const uint32_t words[] = {
        0xc85ffc22, /* ldaxr x2, [x1] */
        0xc8047c22, /* stxr w4, x2, [x1] */
        0xb8220023, /* ldadd w2, w3, [x1] */
        0xf9800020, /* prfm pldl1keep, [x1] */
        0xd50b7425, /* dc zva, x5 */
        0xd50b7a25, /* dc cvac, x5 */
    };
    uint8_t mem[64] = {0};
    struct file file;
    struct access_regs regs = regs_of(&file), general = regs;
    struct access_insn a;

    file_init(&file);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        ck_assert(access_decode(words[i], &a));
        ck_assert(!access_emulate_load(&a, mem, &regs));
        ck_assert(!access_emulate_store(&a, mem, &regs));
    }
    general.read_v = NULL;
    ck_assert(access_decode(0x3dc00022, &a)); /* ldr q2, [x1] */
    ck_assert(!access_emulate_load(&a, mem, &general));
    ck_assert(!access_emulate_store(&a, mem, &regs));
    ck_assert_uint_eq(file.writes, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("access");
    TCase *tcase = tcase_create("access");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, each_access_has_its_address_size_and_registers,
                        0, (int)((ROWS + GROUP - 1) / GROUP));
    tcase_add_test(tcase, other_instructions_are_no_accesses);
    tcase_add_test(tcase, decoding_is_total_and_stays_in_bounds);
    tcase_add_test(tcase, a_fault_in_the_second_page_reports_its_first_byte);
    tcase_add_test(tcase,
                   alignment_is_that_of_the_element_or_of_the_exclusive_pair);
    tcase_add_test(tcase, loads_extend_into_general_registers);
    tcase_add_test(tcase, a_load_into_the_zero_register_writes_nothing);
    tcase_add_test(tcase,
                   stores_take_the_low_bytes_and_pairs_follow_each_other);
    tcase_add_test(tcase, simd_loads_zero_the_rest_keep_lanes_and_replicate);
    tcase_add_test(tcase, what_is_no_plain_access_is_refused_by_emulation);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
