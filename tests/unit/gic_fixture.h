/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of the GIC share: a GIC on a bus, a listener that checks the
 * signals, register access. The test's own thread only, unless said otherwise.
 */
#ifndef TESTS_UNIT_GIC_FIXTURE_H
#define TESTS_UNIT_GIC_FIXTURE_H

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "abi/board.h"
#include "dev/gic.h"

#define SPURIOUS 1023
#define SPI_A 40
#define SPI_B 70

struct signals {
    _Atomic bool level[GIC_MAX_CPUS];
    _Atomic unsigned changes[GIC_MAX_CPUS];
    _Atomic unsigned repeats; /* told what was already known */
};

static struct signals signals;
static struct gic *gic;
static struct bus *bus;
static unsigned cpus;

static inline void on_change(void *opaque, unsigned cpu, bool pending)
{
    struct signals *s = opaque;

    if (atomic_exchange(&s->level[cpu], pending) == pending) {
        atomic_fetch_add(&s->repeats, 1);
    }
    atomic_fetch_add(&s->changes[cpu], 1);
}

static const struct gic_callbacks callbacks = {on_change};

/* --- access --- */

static inline uint64_t mmio_read(uint64_t addr, unsigned size)
{
    uint64_t value = 0;

    ck_assert_int_eq(bus_read(bus, 0, addr, size, &value), BUS_OK);
    return value;
}

static inline void mmio_write(uint64_t addr, uint64_t value, unsigned size)
{
    ck_assert_int_eq(bus_write(bus, 0, addr, value, size), BUS_OK);
}

static inline uint32_t gicd_read(uint64_t offset)
{
    return (uint32_t)mmio_read(BOARD_GICD_BASE + offset, 4);
}

static inline void gicd_write(uint64_t offset, uint32_t value)
{
    mmio_write(BOARD_GICD_BASE + offset, value, 4);
}

static inline uint64_t gicr(unsigned cpu)
{
    return cpu < BOARD_GICR_CPUS
               ? BOARD_GICR_BASE + cpu * BOARD_GICR_STRIDE
               : BOARD_GICR2_BASE + (cpu - BOARD_GICR_CPUS) * BOARD_GICR_STRIDE;
}

static inline uint32_t sgi_frame_read(unsigned cpu, uint64_t offset)
{
    return (uint32_t)mmio_read(gicr(cpu) + 0x10000 + offset, 4);
}

static inline void sgi_frame_write(unsigned cpu, uint64_t offset,
                                   uint32_t value)
{
    mmio_write(gicr(cpu) + 0x10000 + offset, value, 4);
}

static inline uint64_t icc_read(unsigned cpu, uint32_t key)
{
    uint64_t value = 0;

    ck_assert(gic_sysreg_read(gic, cpu, key, &value));
    return value;
}

static inline void icc_write(unsigned cpu, uint32_t key, uint64_t value)
{
    ck_assert(gic_sysreg_write(gic, cpu, key, value, NULL));
}

static inline unsigned ack(unsigned cpu)
{
    return (unsigned)icc_read(cpu, SYSREG_ICC_IAR1_EL1);
}

static inline void eoi(unsigned cpu, unsigned intid)
{
    icc_write(cpu, SYSREG_ICC_EOIR1_EL1, intid);
}

static inline void set_priority(unsigned cpu, unsigned intid, uint8_t priority)
{
    uint64_t base = intid < 32 ? gicr(cpu) + 0x10000 : BOARD_GICD_BASE;

    mmio_write(base + 0x400 + intid, priority, 1);
}

static inline uint64_t sgi1r(unsigned cpu, unsigned intid)
{
    return (uint64_t)intid << 24 | (uint64_t)(cpu / 16) << 16 |
           1ull << (cpu % 16);
}

static inline void sgi(unsigned from, unsigned to, unsigned intid)
{
    icc_write(from, SYSREG_ICC_SGI1R_EL1, sgi1r(to, intid));
}

/* What a kernel does at boot. */
static inline void enable_all(void)
{
    gicd_write(0x0000, 2);
    for (unsigned word = 1; word < BOARD_INTIDS / 32; word++) {
        gicd_write(0x0080 + 4 * word, 0xffffffff);
    }
    for (unsigned i = 0; i < cpus; i++) {
        mmio_write(gicr(i) + 0x14, 0, 4);
        sgi_frame_write(i, 0x0080, 0xffffffff);
        sgi_frame_write(i, 0x0100, 0xffffffff);
        for (unsigned k = 0; k < 32; k += 4) {
            sgi_frame_write(i, 0x400 + k, 0xa0a0a0a0);
        }
        icc_write(i, SYSREG_ICC_SRE_EL1, 7);
        icc_write(i, SYSREG_ICC_PMR_EL1, 0xf0);
        icc_write(i, SYSREG_ICC_IGRPEN1_EL1, 1);
    }
}

static inline void make(unsigned count)
{
    GError *error = NULL;

    memset(&signals, 0, sizeof(signals));
    cpus = count;
    bus = bus_new();
    gic = gic_new(count, &callbacks, &signals);
    ck_assert_ptr_nonnull(gic);
    ck_assert_msg(gic_attach(gic, bus, &error), "%s",
                  error != NULL ? error->message : "");
}

static inline void teardown(void)
{
    for (unsigned i = 0; i < cpus; i++) {
        ck_assert(gic_irq_pending(gic, i) == signals.level[i]);
    }
    ck_assert_uint_eq(signals.repeats, 0);
    gic_free(gic);
    bus_free(bus);
}

static inline void setup_enabled(void)
{
    make(4);
    enable_all();
}

static inline void setup_raw(void)
{
    make(4);
}

static inline void setup_512(void)
{
    make(512);
    enable_all();
}

static inline void check_signal(unsigned cpu, bool level)
{
    ck_assert(gic_irq_pending(gic, cpu) == level);
    ck_assert(signals.level[cpu] == level);
}

static inline TCase *case_new(Suite *suite, const char *name,
                              void (*setup)(void))
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    return tc;
}

static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline void spi_enable(unsigned intid, uint8_t priority, uint64_t route)
{
    set_priority(0, intid, priority);
    mmio_write(BOARD_GICD_BASE + 0x6000 + 8 * intid, route, 8);
    gicd_write(0x100 + intid / 32 * 4, 1u << (intid % 32));
}

#endif
