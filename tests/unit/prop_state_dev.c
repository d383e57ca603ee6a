/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property tests: a device that was saved and restored goes on as from the
 * moment of saving; and so does another one that is given the same bytes, so
 * nothing that matters is missing from them. One thread.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/board.h"
#include "dev/annot.h"
#include "dev/arch_timer.h"
#include "dev/gic.h"
#include "dev/pl011.h"
#include "mmu_random.h"

#define CPUS 3u
#define ROUNDS 400u

/* What a device sees of the world and the world of it. */
struct world {
    uint64_t log; /* a hash of all that was read and told */
    uint64_t now;
    bool level[CPUS][32];
    unsigned told, told_again;
};

static struct world world;
static struct bus *bus;

static void note(uint64_t value)
{
    world.log = (world.log ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    world.log ^= world.log >> 29;
}

static void note_line(unsigned cpu, unsigned line, bool level)
{
    world.told++;
    world.told_again += world.level[cpu][line] == level;
    world.level[cpu][line] = level;
    note(cpu << 8 | line << 1 | level);
}

static uint64_t device_read(unsigned cpu, uint64_t addr, unsigned size)
{
    uint64_t value = 0;

    note(bus_read(bus, cpu, addr, size, &value));
    note(value);
    return value;
}

static void device_write(unsigned cpu, uint64_t addr, uint64_t value,
                         unsigned size)
{
    note(bus_write(bus, cpu, addr, value, size));
}

/* --- GIC --- */

static void gic_irq(void *opaque, unsigned cpu, bool pending)
{
    (void)opaque;
    note_line(cpu, 0, pending);
}

static void *make_gic(void)
{
    static const struct gic_callbacks callbacks = {gic_irq};
    struct gic *gic = gic_new(CPUS, &callbacks, NULL);

    REQUIRE(gic && gic_attach(gic, bus, NULL), "no GIC");
    return gic;
}

/* As a kernel would, so that interrupts do come. */
static void gic_boot(void *device)
{
    device_write(0, BOARD_GICD_BASE, 2, 4);
    for (unsigned word = 1; word < 4; word++) {
        device_write(0, BOARD_GICD_BASE + 0x80 + 4 * word, UINT32_MAX, 4);
    }
    for (unsigned i = 0; i < CPUS; i++) {
        uint64_t frame = BOARD_GICR_BASE + i * BOARD_GICR_STRIDE + 0x10000;

        device_write(i, frame + 0x80, UINT32_MAX, 4);
        device_write(i, frame + 0x100, UINT32_MAX, 4);
        (void)gic_sysreg_write(device, i, SYSREG_ICC_PMR_EL1, 0xf0, NULL);
        (void)gic_sysreg_write(device, i, SYSREG_ICC_IGRPEN1_EL1, 1, NULL);
    }
}

static void gic_icc(struct gic *gic, struct rng *rng, unsigned cpu)
{
    static const uint32_t keys[] = {
        SYSREG_ICC_PMR_EL1,   SYSREG_ICC_BPR0_EL1,    SYSREG_ICC_BPR1_EL1,
        SYSREG_ICC_AP0R0_EL1, SYSREG_ICC_AP1R0_EL1,   SYSREG_ICC_CTLR_EL1,
        SYSREG_ICC_RPR_EL1,   SYSREG_ICC_IGRPEN0_EL1, SYSREG_ICC_IGRPEN1_EL1,
        SYSREG_ICC_HPPIR1_EL1};
    uint32_t key = keys[below(rng, sizeof(keys) / sizeof(keys[0]))];
    uint64_t value = rng_next(rng);

    if (key == SYSREG_ICC_PMR_EL1 || key == SYSREG_ICC_IGRPEN1_EL1) {
        value |= percent(rng, 80) ? 0xf1 : 0;
    } else if (key == SYSREG_ICC_AP0R0_EL1 || key == SYSREG_ICC_AP1R0_EL1) {
        value = percent(rng, 20) ? value : 0;
    }
    if (percent(rng, 50)) {
        note(gic_sysreg_write(gic, cpu, key, value, NULL));
    }
    if (gic_sysreg_read(gic, cpu, key, &value)) {
        note(value);
    }
}

static void gic_banks(struct rng *rng)
{
    static const uint64_t banks[] = {0x080, 0x100, 0x100, 0x180, 0x200,
                                     0x280, 0x300, 0x380, 0xc00};
    bool dist = percent(rng, 50);
    uint64_t addr =
        dist ? BOARD_GICD_BASE
             : BOARD_GICR_BASE + below(rng, CPUS) * BOARD_GICR_STRIDE + 0x10000;
    uint64_t offset = banks[below(rng, 9)];
    uint64_t value = rng_next(rng) | (offset <= 0x100 ? rng_next(rng) : 0);

    if (percent(rng, 20)) {
        offset = 0x400 + below(rng, dist ? BOARD_INTIDS / 4 : 8) * 4;
    } else if (dist) {
        offset += (1 + below(rng, 3)) * 4;
    }
    if (percent(rng, 70)) {
        device_write(0, addr + offset, value, 4);
    }
    (void)device_read(0, addr + offset, 4);
}

static void gic_route(struct rng *rng)
{
    uint64_t addr = BOARD_GICD_BASE + 0x6000 + 8 * (32 + below(rng, 96));

    device_write(0, addr, percent(rng, 30) ? 1u << 31 : below(rng, CPUS), 8);
    (void)device_read(0, addr, 8);
}

static void gic_step(void *device, struct rng *rng)
{
    struct gic *gic = device;
    unsigned cpu = below(rng, CPUS), kind = below(rng, 100);
    uint64_t intid = 0;

    if (kind < 25) {
        gic_banks(rng);
    } else if (kind < 40) {
        gic_icc(gic, rng, cpu);
    } else if (kind < 50) {
        gic_set_spi(gic, 32 + below(rng, 96), percent(rng, 50));
    } else if (kind < 60) {
        gic_set_ppi(gic, cpu, 16 + below(rng, 16), percent(rng, 50));
    } else if (kind < 70) {
        note(gic_sysreg_write(gic, cpu, SYSREG_ICC_SGI1R_EL1,
                              below(rng, 16) << 24 | below(rng, 8), NULL));
    } else if (kind < 80) {
        REQUIRE(gic_sysreg_read(gic, cpu, SYSREG_ICC_IAR1_EL1, &intid), "IAR");
        note(intid);
    } else if (kind < 88) {
        intid = percent(rng, 50) ? below(rng, 32) : 32 + below(rng, 96);
        (void)gic_sysreg_write(gic, cpu,
                               percent(rng, 70) ? SYSREG_ICC_EOIR1_EL1
                                                : SYSREG_ICC_DIR_EL1,
                               intid, NULL);
    } else if (kind < 94) {
        gic_route(rng);
    } else if (kind < 97) {
        device_write(0, BOARD_GICD_BASE, percent(rng, 80) ? 3 : below(rng, 4),
                     4);
    } else if (kind < 98) {
        gic_reset_cpu(gic, cpu);
    } else {
        uint64_t waker = BOARD_GICR_BASE + cpu * BOARD_GICR_STRIDE + 0x14;

        device_write(0, waker, below(rng, 4), 4);
        (void)device_read(0, waker, 4);
    }
    for (unsigned i = 0; i < CPUS; i++) {
        note(gic_irq_pending(gic, i));
    }
}

static size_t gic_size(const void *device)
{
    return gic_state_size(device);
}

static void gic_to(const void *device, void *to)
{
    gic_save(device, to);
}

static void gic_from(void *device, const void *from)
{
    gic_restore(device, from);
}

static void gic_end(void *device)
{
    gic_free(device);
}

/* --- timers --- */

static uint64_t timer_now(void *opaque)
{
    (void)opaque;
    return world.now;
}

static void timer_line(void *opaque, unsigned cpu, unsigned intid, bool level)
{
    (void)opaque;
    note_line(cpu, intid, level);
}

static void *make_timer(void)
{
    static const struct arch_timer_callbacks callbacks = {timer_now,
                                                          timer_line};
    struct arch_timer *timer =
        arch_timer_new(CPUS, BOARD_CNTFRQ, &callbacks, NULL);

    REQUIRE(timer, "no timer");
    return timer;
}

static void timer_step(void *device, struct rng *rng)
{
    static const uint32_t keys[] = {SYSREG_CNTP_TVAL_EL0, SYSREG_CNTP_CTL_EL0,
                                    SYSREG_CNTP_CVAL_EL0, SYSREG_CNTV_TVAL_EL0,
                                    SYSREG_CNTV_CTL_EL0,  SYSREG_CNTV_CVAL_EL0,
                                    SYSREG_CNTKCTL_EL1,   SYSREG_CNTFRQ_EL0};
    struct arch_timer *timer = device;
    unsigned cpu = below(rng, CPUS), kind = below(rng, 100);
    uint32_t key = keys[below(rng, sizeof(keys) / sizeof(keys[0]))];
    uint64_t value = below(rng, 40);

    world.now += below(rng, 10);
    if (kind < 40) {
        if (key == SYSREG_CNTP_CTL_EL0 || key == SYSREG_CNTV_CTL_EL0) {
            value = percent(rng, 60) ? 1 : value & 3;
        } else if (key == SYSREG_CNTP_CVAL_EL0 || key == SYSREG_CNTV_CVAL_EL0) {
            value += world.now - 10;
        }
        note(arch_timer_sysreg_write(timer, cpu, key, value));
    } else if (kind < 60) {
        REQUIRE(arch_timer_sysreg_read(timer, cpu, key, &value), "no register");
        note(value);
    } else if (kind < 98) {
        arch_timer_update(timer, cpu);
    } else {
        arch_timer_reset_cpu(timer, cpu);
    }
    note(arch_timer_deadline(timer, cpu));
    note(arch_timer_el0_allowed(timer, cpu, key));
}

static size_t timer_size(const void *device)
{
    return arch_timer_state_size(device);
}

static void timer_to(const void *device, void *to)
{
    arch_timer_save(device, to);
}

static void timer_from(void *device, const void *from)
{
    arch_timer_restore(device, from);
}

static void timer_end(void *device)
{
    arch_timer_free(device);
}

/* --- UART --- */

static void uart_tx(void *opaque, uint8_t byte)
{
    (void)opaque;
    note(byte);
}

static void uart_irq(void *opaque, bool level)
{
    (void)opaque;
    note_line(0, 0, level);
}

static void uart_room(void *opaque)
{
    (void)opaque;
    note(0x7001);
}

static void *make_uart(void)
{
    static const struct pl011_callbacks callbacks = {uart_tx, uart_irq,
                                                     uart_room};
    struct pl011 *uart = pl011_new(&callbacks, NULL);

    REQUIRE(uart && pl011_attach(uart, bus, NULL), "no UART");
    return uart;
}

static void uart_step(void *device, struct rng *rng)
{
    static const uint64_t regs[] = {0x00, 0x00, 0x00, 0x04, 0x18, 0x20,
                                    0x24, 0x28, 0x2c, 0x30, 0x34, 0x38,
                                    0x3c, 0x40, 0x44, 0x48};
    uint64_t addr = BOARD_UART_BASE + regs[below(rng, 16)];
    uint8_t bytes[6];

    if (percent(rng, 30)) {
        for (unsigned i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (uint8_t)rng_next(rng);
        }
        note(pl011_rx_push(device, bytes, 1 + below(rng, sizeof(bytes))));
    } else if (percent(rng, 50)) {
        device_write(0, addr, rng_next(rng) & 0xffffffff, 4);
    } else {
        (void)device_read(0, addr, 4);
    }
}

static size_t uart_size(const void *device)
{
    return pl011_state_size(device);
}

static void uart_to(const void *device, void *to)
{
    pl011_save(device, to);
}

static void uart_from(void *device, const void *from)
{
    pl011_restore(device, from);
}

static void uart_end(void *device)
{
    pl011_free(device);
}

/* --- annotations --- */

static void annot_call(void *opaque, unsigned cpu, uint64_t value)
{
    (void)opaque;
    note(cpu);
    note(value);
}

static void annot_where(void *opaque, unsigned cpu, uint64_t addr,
                        uint64_t count)
{
    annot_call(opaque, cpu, addr);
    note(count);
}

/* Part of the world, as the choice stream is: it goes back with it. */
static unsigned annot_choose(void *opaque, unsigned cpu, unsigned n)
{
    annot_call(opaque, cpu, n);
    return (unsigned)(world.now++ * 7 % n);
}

static void *make_annot(void)
{
    static const struct annot_callbacks callbacks = {
        .exit_status = annot_call,
        .panic = annot_call,
        .mark = annot_call,
        .counters = annot_where,
        .finding = annot_call,
        .choose = annot_choose,
    };
    struct annot *annot = annot_new(&callbacks, NULL);

    REQUIRE(annot && annot_attach(annot, bus, NULL), "no device");
    return annot;
}

static void annot_step(void *device, struct rng *rng)
{
    unsigned cpu = percent(rng, 80) ? below(rng, CPUS) : below(rng, 512);
    uint64_t reg = below(rng, 12) * 8, value = below(rng, 1100);

    if (percent(rng, 30)) {
        reg = ANNOT_REG_CHOOSE;
    }
    if (percent(rng, 60)) {
        device_write(cpu, BOARD_ANNOT_BASE + reg, value, 8);
    }
    (void)device_read(cpu, BOARD_ANNOT_BASE + reg, 8);
    value = 0;
    note(annot_exit_status(device, &value));
    note(annot_panic_code(device, &value));
    note(value);
}

static size_t annot_size(const void *device)
{
    return annot_state_size(device);
}

static void annot_to(const void *device, void *to)
{
    annot_save(device, to);
}

static void annot_from(void *device, const void *from)
{
    annot_restore(device, from);
}

static void annot_end(void *device)
{
    annot_free(device);
}

/* --- the property --- */

static const struct subject {
    const char *name;
    void *(*make)(void);
    void (*boot)(void *device); /* may be NULL; what the first one gets */
    void (*step)(void *device, struct rng *rng);
    size_t (*size)(const void *device);
    void (*save)(const void *device, void *to);
    void (*restore)(void *device, const void *from);
    void (*end)(void *device);
} subjects[] = {
    {"gic", make_gic, gic_boot, gic_step, gic_size, gic_to, gic_from, gic_end},
    {"timer", make_timer, NULL, timer_step, timer_size, timer_to, timer_from,
     timer_end},
    {"pl011", make_uart, NULL, uart_step, uart_size, uart_to, uart_from,
     uart_end},
    {"annot", make_annot, NULL, annot_step, annot_size, annot_to, annot_from,
     annot_end},
};
#define SUBJECTS (int)(sizeof(subjects) / sizeof(subjects[0]))

static void *make(const struct subject *s)
{
    bus = bus_new();
    return s->make();
}

static void end(const struct subject *s, void *device)
{
    s->end(device);
    bus_free(bus);
}

static void steps(const struct subject *s, void *device, uint64_t stream,
                  unsigned count)
{
    struct rng rng = rng_for(stream);

    for (unsigned i = 0; i < count; i++) {
        s->step(device, &rng);
    }
}

/* Saves over other junk each time: what is not written differs. */
static void save(const struct subject *s, const void *device, uint8_t *to)
{
    static uint8_t junk;

    memset(to, ++junk, s->size(device));
    s->save(device, to);
}

START_TEST(a_restored_device_goes_on_as_from_the_save)
{
    const struct subject *s = &subjects[_i];
    unsigned moved = 0, told = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t stream = (uint64_t)(_i + 1) << 32 | round << 2;
        struct rng rng = rng_for(stream);
        unsigned before = below(&rng, 200), after = 1 + below(&rng, 100);
        uint8_t *first, *second, *again;
        struct world at_save, at_end;
        void *device;
        size_t size;

        memset(&world, 0, sizeof(world));
        device = make(s);
        if (s->boot) {
            s->boot(device);
        }
        size = s->size(device);
        first = malloc(size);
        second = malloc(size);
        again = malloc(size);
        steps(s, device, stream + 1, before);
        save(s, device, first);
        at_save = world;
        steps(s, device, stream + 2, after);
        save(s, device, second);
        at_end = world;
        moved += memcmp(first, second, size) != 0;
        told += at_end.told != at_save.told;
        for (unsigned i = 0; i < 3; i++) {
            if (i == 2) { /* another device, with nothing but the bytes */
                end(s, device);
                device = make(s);
            }
            world = at_save;
            s->restore(device, first);
            REQUIRE(memcmp(&world, &at_save, sizeof(world)) == 0,
                    "%s seed %" PRIu64 " round %u: restoring told something",
                    s->name, base_seed, round);
            save(s, device, again);
            REQUIRE(memcmp(first, again, size) == 0,
                    "%s seed %" PRIu64 " round %u: not the bytes given",
                    s->name, base_seed, round);
            steps(s, device, stream + 2, after);
            save(s, device, again);
            REQUIRE(memcmp(second, again, size) == 0 &&
                        world.log == at_end.log && world.told == at_end.told,
                    "%s seed %" PRIu64 " round %u try %u: went elsewhere",
                    s->name, base_seed, round, i);
        }
        REQUIRE(world.told_again == 0, "%s seed %" PRIu64 ": told twice",
                s->name, base_seed);
        end(s, device);
        free(first);
        free(second);
        free(again);
    }
    /* It was put to the test. */
    ck_assert_uint_gt(moved, ROUNDS * 3 / 4);
    ck_assert(told > ROUNDS / 8 || s->make == make_annot);
}
END_TEST

/* --- what it costs --- */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define TIMES 20000u

START_TEST(the_cost_is_printed)
{
    const struct subject *s = &subjects[_i];
    void *device;
    uint8_t *bytes;
    uint64_t start, middle;

    memset(&world, 0, sizeof(world));
    device = make(s);
    bytes = malloc(s->size(device));
    steps(s, device, 1, 100);
    start = now_ns();
    for (unsigned i = 0; i < TIMES; i++) {
        s->save(device, bytes);
    }
    middle = now_ns();
    for (unsigned i = 0; i < TIMES; i++) {
        s->restore(device, bytes);
    }
    printf("%s (%u CPUs): %zu bytes, save %" PRIu64 " ns, restore %" PRIu64
           " ns\n",
           s->name, CPUS, s->size(device), (middle - start) / TIMES,
           (now_ns() - middle) / TIMES);
    fflush(stdout);
    free(bytes);
    end(s, device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prop_state_dev");
    TCase *tc = tcase_create("devices");
    SRunner *runner;
    int failed;

    seed_init();
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_restored_device_goes_on_as_from_the_save, 0,
                        SUBJECTS);
    tcase_add_loop_test(tc, the_cost_is_printed, 0, SUBJECTS);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
