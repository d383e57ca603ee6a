/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What vmm/ relies on the engine for. Each test is a fact about Unicorn that
 * was measured; one that fails after an upgrade names the code to look at.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "dev/sysreg_key.h"
#include "engine.h"

#define RAM UINT64_C(0x40000000)
#define VIEW UINT64_C(0x8000000000)
#define BYTES (1u << 20)
#define CODE (RAM + 0x1000)
#define DATA (RAM + 0x10000)

#define PSTATE_EL1H 0x3c5u
#define PSTATE_EL0 0x3c0u

#define ELR_EL1 SYSREG(3, 0, 4, 0, 1)
#define SPSR_EL1 SYSREG(3, 0, 4, 0, 0)

#define NOP 0xd503201fu
#define BRK 0xd4200000u
#define SVC 0xd4000001u
#define ERET 0xd69f03e0u

struct fixture {
    struct engine *engine;
    uint8_t *ram, *view;
    gva_t refuse;         /* this page faults */
    unsigned fills[3];    /* by access type */
    unsigned traps, exceptions, blocks;
    gva_t trap_pc, exception_pc, block_va;
    enum engine_exception kind;
    unsigned stop_at_trap, stop_at_block; /* the nth; 0: never */
};

static struct fixture fx;

static bool fill(void *opaque, gva_t va, enum access_type type, gpa_t *out_pa,
                 unsigned *out_perms)
{
    struct fixture *f = opaque;

    if (va == f->refuse) {
        return false;
    }
    f->fills[type]++;
    *out_pa = type == ACCESS_EXEC ? va - RAM + VIEW : va;
    *out_perms = type == ACCESS_EXEC ? ENGINE_X : ENGINE_R | ENGINE_W;
    return true;
}

static void trap(void *opaque, gva_t pc)
{
    struct fixture *f = opaque;

    f->trap_pc = pc;
    if (++f->traps == f->stop_at_trap) {
        engine_stop(f->engine);
    }
}

static void exception(void *opaque, enum engine_exception kind, gva_t pc)
{
    struct fixture *f = opaque;

    f->exceptions++;
    f->kind = kind;
    f->exception_pc = pc;
    engine_stop(f->engine);
}

static void block(void *opaque, gva_t va, uint32_t bytes)
{
    struct fixture *f = opaque;

    (void)bytes;
    f->block_va = va;
    if (++f->blocks == f->stop_at_block) {
        engine_stop(f->engine);
    }
}

static void setup(void)
{
    static const struct engine_callbacks callbacks = {fill, trap, exception,
                                                      block};
    GError *error = NULL;

    memset(&fx, 0, sizeof(fx));
    fx.ram = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fx.view = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fx.engine = engine_new(&callbacks, &fx, &error);
    ck_assert_msg(fx.engine != NULL, "%s", error ? error->message : "");
    ck_assert(engine_map(fx.engine, RAM, BYTES, fx.ram, ENGINE_R | ENGINE_W,
                         &error));
    ck_assert(engine_map(fx.engine, VIEW, BYTES, fx.view, ENGINE_R | ENGINE_X,
                         &error));
    engine_watch(fx.engine)->every = true;
    engine_switch_pstate(fx.engine, PSTATE_EL1H);
    engine_set_pc(fx.engine, CODE);
}

static void teardown(void)
{
    engine_free(fx.engine);
    munmap(fx.ram, BYTES);
    munmap(fx.view, BYTES);
}

static void put_code(unsigned offset, const uint32_t *words, size_t n)
{
    memcpy(fx.view + (CODE - RAM) + offset, words, n * 4);
}

START_TEST(a_dropped_page_misses_at_every_byte)
{
    /* ldrb w0, [x1, x2] ; add x2, x2, #0x200 ; cmp x2, #0x1000 ; b.lo ; brk */
    static const uint32_t code[] = {0x38626820, 0x91080042, 0xf140045f,
                                    0x54ffffa3, BRK};
    unsigned before;

    put_code(0, code, 5);
    engine_set_x(fx.engine, 1, DATA);
    engine_set_x(fx.engine, 2, 0);
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.fills[ACCESS_READ], 1);
    for (unsigned offset = 0; offset < 0x1000; offset += 0x200) {
        engine_drop_page(fx.engine, DATA);
        before = fx.fills[ACCESS_READ];
        engine_set_x(fx.engine, 2, offset);
        engine_set_pc(fx.engine, CODE);
        engine_run(fx.engine);
        ck_assert_msg(fx.fills[ACCESS_READ] == before + 1,
                      "offset 0x%x after a drop: %u fills", offset,
                      fx.fills[ACCESS_READ] - before);
    }
}
END_TEST

START_TEST(dropping_one_page_keeps_the_others)
{
    /* ldrb w0, [x1] ; ldrb w0, [x2] ; brk */
    static const uint32_t code[] = {0x39400020, 0x39400040, BRK};

    put_code(0, code, 3);
    engine_set_x(fx.engine, 1, DATA);
    engine_set_x(fx.engine, 2, DATA + 0x1000);
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.fills[ACCESS_READ], 2);
    engine_drop_page(fx.engine, DATA);
    engine_set_pc(fx.engine, CODE);
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.fills[ACCESS_READ], 3);
}
END_TEST

START_TEST(code_runs_from_the_view_while_data_sees_the_page)
{
    /* adr x1, . ; ldr w0, [x1] ; brk */
    static const uint32_t code[] = {0x10000001, 0xb9400020, BRK};
    uint32_t own = 0x12345678;

    put_code(0, code, 3);
    memcpy(fx.ram + (CODE - RAM), &own, 4);
    engine_run(fx.engine);
    ck_assert_uint_eq(engine_x(fx.engine, 0), own);
    ck_assert_uint_eq(fx.exception_pc, CODE + 8);
}
END_TEST

START_TEST(a_trap_goes_on_after_the_instruction_at_both_els)
{
    static const uint32_t code[] = {ENGINE_TRAP_WORD, 0x91000400, BRK};
    static const uint64_t pstate[] = {PSTATE_EL1H, PSTATE_EL0};

    put_code(0, code, 3);
    for (unsigned i = 0; i < 2; i++) {
        engine_switch_pstate(fx.engine, pstate[i]);
        engine_set_pc(fx.engine, CODE);
        engine_set_x(fx.engine, 0, 7);
        engine_run(fx.engine);
        ck_assert_uint_eq(fx.traps, i + 1);
        ck_assert_uint_eq(fx.trap_pc, CODE);
        ck_assert_uint_eq(engine_x(fx.engine, 0), 8);
    }
}
END_TEST

START_TEST(a_stop_in_a_trap_is_exact)
{
    static const uint32_t code[] = {ENGINE_TRAP_WORD, 0x91000400, BRK};

    put_code(0, code, 3);
    fx.stop_at_trap = 1;
    engine_set_x(fx.engine, 0, 7);
    ck_assert_int_eq(engine_run(fx.engine), ENGINE_EXIT_STOPPED);
    ck_assert_uint_eq(engine_pc(fx.engine), CODE + 4);
    ck_assert_uint_eq(engine_x(fx.engine, 0), 7);
}
END_TEST

/*
 * ldr x1, [x1] ; ldr x3, [x6], #8 ; add x2, x2, #1 ; b +4 ;
 * ldp x9, x10, [x10] ; str x2, [x7] ; b CODE
 * Nothing here may happen twice: x1 walks a ring of two, x6 counts, and x10
 * is its own base.
 */
static const uint32_t not_twice[] = {0xf9400021, 0xf84084c3, 0x91000442,
                                     0x14000001, 0xa9402949, 0xf90000e2,
                                     0x17fffffa};

START_TEST(a_stop_in_the_block_callback_repeats_no_access)
{
    uint64_t a = DATA, b = DATA + 0x40, c[2] = {7, DATA + 0x80};
    uint64_t rounds;

    put_code(0, not_twice, 7);
    memcpy(fx.ram + (DATA - RAM), &b, 8);
    memcpy(fx.ram + (DATA - RAM) + 0x40, &a, 8);
    memcpy(fx.ram + (DATA - RAM) + 0x80, c, 16);
    engine_set_x(fx.engine, 1, a);
    engine_set_x(fx.engine, 2, 0);
    engine_set_x(fx.engine, 6, DATA + 0x1000);
    engine_set_x(fx.engine, 7, DATA + 0x100);
    engine_set_x(fx.engine, 10, DATA + 0x80);
    for (unsigned i = 0; i < 1000; i++) {
        fx.blocks = 0;
        fx.stop_at_block = 1 + i % 7;
        ck_assert_int_eq(engine_run(fx.engine), ENGINE_EXIT_STOPPED);
        ck_assert_uint_eq(engine_pc(fx.engine), fx.block_va);
        rounds = engine_x(fx.engine, 2);
        ck_assert_uint_eq(engine_x(fx.engine, 1), rounds & 1 ? b : a);
        ck_assert_uint_eq(engine_x(fx.engine, 6), DATA + 0x1000 + rounds * 8);
        ck_assert_uint_eq(engine_x(fx.engine, 10), DATA + 0x80);
    }
    ck_assert_uint_gt(rounds, 1000);
}
END_TEST

START_TEST(a_refused_fill_leaves_pc_and_registers)
{
    /* nop ; ldp x1, x2, [x1], #16 */
    static const uint32_t code[] = {NOP, 0xa8c10821, BRK};

    put_code(0, code, 3);
    fx.refuse = DATA;
    engine_set_x(fx.engine, 1, DATA + 0x18);
    engine_set_x(fx.engine, 2, 5);
    ck_assert_int_eq(engine_run(fx.engine), ENGINE_EXIT_FAULT);
    ck_assert_uint_eq(engine_pc(fx.engine), CODE + 4);
    ck_assert_uint_eq(engine_x(fx.engine, 1), DATA + 0x18);
    ck_assert_uint_eq(engine_x(fx.engine, 2), 5);
}
END_TEST

START_TEST(a_native_eret_reaches_el1_and_el0_with_their_stack_pointers)
{
    static const uint32_t code[] = {ERET};
    static const uint32_t target[] = {SVC};

    put_code(0, code, 1);
    put_code(0x100, target, 1);
    engine_switch_pstate(fx.engine, PSTATE_EL0);
    engine_set_x(fx.engine, 31, 0x1000);
    engine_switch_pstate(fx.engine, PSTATE_EL1H);
    engine_set_x(fx.engine, 31, 0x2000);

    engine_set_sysreg(fx.engine, ELR_EL1, CODE + 0x100);
    engine_set_sysreg(fx.engine, SPSR_EL1, PSTATE_EL1H);
    engine_set_pc(fx.engine, CODE);
    engine_run(fx.engine);
    ck_assert_int_eq(fx.kind, ENGINE_SVC);
    ck_assert_uint_eq(fx.exception_pc, CODE + 0x104);
    ck_assert_uint_eq(engine_pstate(fx.engine), PSTATE_EL1H);
    ck_assert_uint_eq(engine_x(fx.engine, 31), 0x2000);

    engine_set_sysreg(fx.engine, SPSR_EL1, PSTATE_EL0);
    engine_set_pc(fx.engine, CODE);
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.exceptions, 2);
    ck_assert_uint_eq(engine_pstate(fx.engine), PSTATE_EL0);
    ck_assert_uint_eq(engine_x(fx.engine, 31), 0x1000);
}
END_TEST

START_TEST(a_block_that_was_stopped_at_its_start_was_not_executed)
{
    /* add x0, x0, #1 ; b CODE */
    static const uint32_t code[] = {0x91000400, 0x17ffffff};

    put_code(0, code, 2);
    fx.stop_at_block = 5;
    engine_set_x(fx.engine, 0, 0);
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.blocks, 5);
    ck_assert_uint_eq(engine_x(fx.engine, 0), 4);
}
END_TEST

/* --- save and restore --- */

#define CPACR_EL1 SYSREG(3, 0, 1, 0, 2)
#define VBAR_EL1 SYSREG(3, 0, 12, 0, 0)
#define FPEN (UINT64_C(3) << 20)
#define PSTATE_EL1T 0x3c4u
#define PSTATE_FLAG_N (UINT64_C(1) << 31)
#define PSTATE_FLAG_C (UINT64_C(1) << 29)

/*
 * madd x0, x0, x5, x6 ; adds x1, x1, x0 ; adcs x2, x2, x0 ; cinc x3, x3, mi ;
 * fmov d1, x0 ; add v2.2d, v2.2d, v1.2d ; add sp, sp, #16 ;
 * tbz x0, #40, CODE ; eor x4, x4, x2 ; b CODE
 * Each round depends on all registers and flags that the last one left.
 */
static const uint32_t mill[] = {0x9b051800, 0xab000021, 0xba000042, 0x9a835463,
                                0x9e670001, 0x4ee18442, 0x910043ff, 0xb647ff20,
                                0xca020084, 0x17fffff7};

/* mov x9, sp ; cset x10, cs ; cset x11, mi ; mrs x12, vbar_el1 ; brk */
static const uint32_t probe[] = {0x910003e9, 0x9a9f37ea, 0x9a9f57eb, 0xd538c00c,
                                 BRK};
#define PROBE (CODE + 0x100)
#define PROBE_MRS (PROBE + 12)

static struct engine_state *state_new(void)
{
    GError *error = NULL;
    struct engine_state *state = engine_state_new(fx.engine, &error);

    ck_assert_msg(state != NULL, "%s", error ? error->message : "");
    return state;
}

static void run_blocks(unsigned blocks)
{
    fx.blocks = 0;
    fx.stop_at_block = blocks;
    ck_assert_int_eq(engine_run(fx.engine), ENGINE_EXIT_STOPPED);
    fx.stop_at_block = 0;
}

static void restore(const struct engine_state *state)
{
    engine_state_restore(fx.engine, state);
    engine_flush(fx.engine);
}

static void setup_mill(void)
{
    setup();
    put_code(0, mill, 10);
    put_code(0x100, probe, 5);
    engine_set_sysreg(fx.engine, CPACR_EL1, FPEN);
    engine_set_sysreg(fx.engine, VBAR_EL1, 0x7800);
    engine_set_x(fx.engine, 5, UINT64_C(6364136223846793005));
    engine_set_x(fx.engine, 6, UINT64_C(1442695040888963407));
}

START_TEST(going_back_and_on_gives_the_same_registers_ten_thousand_times)
{
    static const uint64_t pstate[] = {PSTATE_EL1H, PSTATE_EL0, PSTATE_EL1T};
    struct engine_state *state = state_new();
    uint64_t before, after, last = 0;

    for (unsigned i = 0; i < 10000; i++) {
        unsigned blocks = 1 + i * 7 % 23;

        engine_switch_pstate(fx.engine, pstate[i % 3] | (uint64_t)(i & 15)
                                                            << 28);
        engine_state_save(fx.engine, state);
        before = engine_state_hash(fx.engine);
        run_blocks(blocks);
        after = engine_state_hash(fx.engine);
        if (blocks > 1) {
            ck_assert_uint_ne(before, after);
        }
        /* Something else, at another EL. */
        engine_switch_pstate(fx.engine, pstate[(i + 1) % 3]);
        run_blocks(1 + i % 5);
        restore(state);
        ck_assert_uint_eq(engine_state_hash(fx.engine), before);
        run_blocks(blocks);
        ck_assert_uint_eq(engine_state_hash(fx.engine), after);
        ck_assert_uint_ne(after, last);
        last = after;
    }
    engine_state_free(state);
}
END_TEST

static const uint64_t modes[] = {
    PSTATE_EL1H,
    PSTATE_EL1H | PSTATE_FLAG_N,
    PSTATE_EL1T | PSTATE_FLAG_C,
    PSTATE_EL1T,
    PSTATE_EL0 | PSTATE_FLAG_N | PSTATE_FLAG_C,
    PSTATE_EL0,
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* What the code at PROBE sees is what the mode says. */
static void check_mode(uint64_t pstate)
{
    bool el0 = (pstate & 0xc) == 0;
    uint64_t sp = el0 || !(pstate & 1) ? 0x1000 : 0x2000;

    engine_set_x(fx.engine, 12, 0);
    engine_set_pc(fx.engine, PROBE);
    engine_run(fx.engine);
    ck_assert_uint_eq(engine_pstate(fx.engine), pstate);
    ck_assert_uint_eq(engine_x(fx.engine, 31), sp);
    ck_assert_uint_eq(engine_x(fx.engine, 9), sp);
    ck_assert_uint_eq(engine_x(fx.engine, 10), (pstate & PSTATE_FLAG_C) != 0);
    ck_assert_uint_eq(engine_x(fx.engine, 11), (pstate & PSTATE_FLAG_N) != 0);
    /* MRS VBAR_EL1 is undefined at EL0: what the translator assumed shows. */
    ck_assert_int_eq(fx.kind, el0 ? ENGINE_UNDEFINED : ENGINE_BREAKPOINT);
    ck_assert_uint_eq(fx.exception_pc, el0 ? PROBE_MRS : PROBE_MRS + 4);
    ck_assert_uint_eq(engine_x(fx.engine, 12), el0 ? 0 : 0x7800);
}

START_TEST(a_restore_brings_back_el_spsel_and_flags_from_every_mode)
{
    struct engine_state *state = state_new();

    engine_switch_pstate(fx.engine, PSTATE_EL0);
    engine_set_x(fx.engine, 31, 0x1000);
    engine_switch_pstate(fx.engine, PSTATE_EL1H);
    engine_set_x(fx.engine, 31, 0x2000);
    for (unsigned from = 0; from < MODES; from++) {
        for (unsigned to = 0; to < MODES; to++) {
            engine_switch_pstate(fx.engine, modes[to]);
            engine_set_pc(fx.engine, CODE + 8);
            engine_state_save(fx.engine, state);
            engine_switch_pstate(fx.engine, modes[from]);
            check_mode(modes[from]);
            restore(state);
            ck_assert_uint_eq(engine_pc(fx.engine), CODE + 8);
            check_mode(modes[to]);
        }
    }
    engine_state_free(state);
}
END_TEST

/* A run begins where the restored PC says, not where the last one ended. */
START_TEST(a_run_after_a_restore_begins_at_the_restored_pc)
{
    struct engine_state *state;

    engine_set_pc(fx.engine, PROBE);
    state = state_new();
    engine_set_pc(fx.engine, CODE);
    run_blocks(3);
    restore(state);
    engine_run(fx.engine);
    ck_assert_int_eq(fx.kind, ENGINE_BREAKPOINT);
    ck_assert_uint_eq(fx.exception_pc, PROBE_MRS + 4);
    engine_state_free(state);
}
END_TEST

START_TEST(a_restore_leaves_the_micro_tlb_to_its_owner)
{
    /* ldr x1, [x7] ; brk */
    static const uint32_t code[] = {0xf94000e1, BRK};
    struct engine_state *state;

    put_code(0, code, 2);
    engine_set_x(fx.engine, 7, DATA);
    state = state_new();
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.fills[ACCESS_READ], 1);
    engine_state_restore(fx.engine, state);
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.fills[ACCESS_READ], 1);
    restore(state);
    engine_run(fx.engine);
    ck_assert_uint_eq(fx.fills[ACCESS_READ], 2);
    engine_state_free(state);
}
END_TEST

static const uint32_t hashed[] = {
    SYSREG(3, 0, 4, 0, 0),  SYSREG(3, 0, 4, 0, 1),  SYSREG(3, 0, 5, 2, 0),
    SYSREG(3, 0, 6, 0, 0),  SYSREG(3, 0, 7, 4, 0),  SYSREG(3, 0, 10, 2, 0),
    SYSREG(3, 0, 12, 0, 0), SYSREG(3, 0, 13, 0, 1), SYSREG(3, 0, 13, 0, 4),
    SYSREG(3, 3, 13, 0, 2), SYSREG(3, 3, 13, 0, 3), SYSREG(3, 0, 2, 1, 0),
    SYSREG(3, 0, 2, 3, 1),
    SYSREG(3, 3, 4, 4, 1), /* FPSR */
};

START_TEST(every_register_is_in_the_hash)
{
    uint64_t base = engine_state_hash(fx.engine), v[2], flipped[2], value = 0;

    for (unsigned i = 0; i < 32; i++) {
        value = engine_x(fx.engine, i);
        engine_set_x(fx.engine, i, value ^ UINT64_C(1) << 63);
        ck_assert_msg(engine_state_hash(fx.engine) != base, "X%u", i);
        engine_set_x(fx.engine, i, value);
        for (unsigned half = 0; half < 2; half++) {
            engine_v(fx.engine, i, v);
            memcpy(flipped, v, sizeof(v));
            flipped[half] ^= 1;
            engine_set_v(fx.engine, i, flipped);
            ck_assert_msg(engine_state_hash(fx.engine) != base, "V%u", i);
            engine_set_v(fx.engine, i, v);
        }
        ck_assert_uint_eq(engine_state_hash(fx.engine), base);
    }
    for (unsigned i = 0; i < sizeof(hashed) / sizeof(hashed[0]); i++) {
        ck_assert(engine_sysreg(fx.engine, hashed[i], &value));
        engine_set_sysreg(fx.engine, hashed[i], value ^ 0x80);
        ck_assert_msg(engine_state_hash(fx.engine) != base, "sysreg %x",
                      (unsigned)hashed[i]);
        engine_set_sysreg(fx.engine, hashed[i], value);
        ck_assert_uint_eq(engine_state_hash(fx.engine), base);
    }
    engine_set_pc(fx.engine, CODE + 4);
    ck_assert_uint_ne(engine_state_hash(fx.engine), base);
    engine_set_pc(fx.engine, CODE);
    engine_set_pstate(fx.engine, PSTATE_EL1H | PSTATE_FLAG_C);
    ck_assert_uint_ne(engine_state_hash(fx.engine), base);
    engine_set_pstate(fx.engine, PSTATE_EL1H);
    ck_assert_uint_eq(engine_state_hash(fx.engine), base);
}
END_TEST

START_TEST(the_hash_knows_both_stack_pointers_and_no_stale_copy)
{
    uint64_t first, second;

    engine_set_x(fx.engine, 31, 0x1000);
    engine_switch_pstate(fx.engine, PSTATE_EL0);
    engine_switch_pstate(fx.engine, PSTATE_EL1H);
    engine_set_x(fx.engine, 31, 0x2000); /* the bank still says 0x1000 */
    first = engine_state_hash(fx.engine);
    engine_switch_pstate(fx.engine, PSTATE_EL0);
    engine_switch_pstate(fx.engine, PSTATE_EL1H);
    ck_assert_uint_eq(engine_state_hash(fx.engine), first);
    engine_switch_pstate(fx.engine, PSTATE_EL0);
    engine_set_x(fx.engine, 31, 0x3000);
    engine_switch_pstate(fx.engine, PSTATE_EL1H);
    second = engine_state_hash(fx.engine);
    ck_assert_uint_ne(first, second);
}
END_TEST

/* Two engines with different pasts, in the same state. */
START_TEST(the_hash_does_not_depend_on_the_engine)
{
    struct engine *first = fx.engine;
    uint8_t *ram = fx.ram, *view = fx.view;
    uint64_t hash;

    run_blocks(40);
    hash = engine_state_hash(fx.engine);
    setup_mill();
    run_blocks(40);
    ck_assert_uint_eq(engine_state_hash(fx.engine), hash);
    engine_free(first);
    munmap(ram, BYTES);
    munmap(view, BYTES);
}
END_TEST

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define TIMES 20000u

START_TEST(the_cost_is_printed)
{
    struct engine_state *state = state_new();
    uint64_t start = now_ns(), saved, restored, hashed_at, sum = 0;

    for (unsigned i = 0; i < TIMES; i++) {
        engine_state_save(fx.engine, state);
    }
    saved = now_ns();
    for (unsigned i = 0; i < TIMES; i++) {
        engine_state_restore(fx.engine, state);
    }
    restored = now_ns();
    for (unsigned i = 0; i < TIMES; i++) {
        sum += engine_state_hash(fx.engine);
    }
    hashed_at = now_ns();
    printf("engine state: save %" PRIu64 " ns, restore %" PRIu64
           " ns, hash %" PRIu64 " ns\n",
           (saved - start) / TIMES, (restored - saved) / TIMES,
           (hashed_at - restored) / TIMES);
    fflush(stdout);
    ck_assert_uint_eq(sum, TIMES * engine_state_hash(fx.engine));
    engine_state_free(state);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *tcase = tcase_create("unicorn");
    TCase *state = tcase_create("state");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_dropped_page_misses_at_every_byte);
    tcase_add_test(tcase, dropping_one_page_keeps_the_others);
    tcase_add_test(tcase, code_runs_from_the_view_while_data_sees_the_page);
    tcase_add_test(tcase, a_trap_goes_on_after_the_instruction_at_both_els);
    tcase_add_test(tcase, a_stop_in_a_trap_is_exact);
    tcase_add_test(tcase, a_stop_in_the_block_callback_repeats_no_access);
    tcase_add_test(tcase, a_refused_fill_leaves_pc_and_registers);
    tcase_add_test(
        tcase, a_native_eret_reaches_el1_and_el0_with_their_stack_pointers);
    tcase_add_test(tcase,
                   a_block_that_was_stopped_at_its_start_was_not_executed);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(state, setup_mill, teardown);
    tcase_set_timeout(state, 60);
    tcase_add_test(
        state, going_back_and_on_gives_the_same_registers_ten_thousand_times);
    tcase_add_test(state,
                   a_restore_brings_back_el_spsel_and_flags_from_every_mode);
    tcase_add_test(state, a_run_after_a_restore_begins_at_the_restored_pc);
    tcase_add_test(state, a_restore_leaves_the_micro_tlb_to_its_owner);
    tcase_add_test(state, every_register_is_in_the_hash);
    tcase_add_test(state, the_hash_knows_both_stack_pointers_and_no_stale_copy);
    tcase_add_test(state, the_hash_does_not_depend_on_the_engine);
    tcase_add_test(state, the_cost_is_printed);
    suite_add_tcase(suite, state);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
