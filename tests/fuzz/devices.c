/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The devices as a guest reaches them: loads and stores of any size anywhere
 * in their regions, system registers, PSCI calls, received characters. The
 * input is a list of operations. Saving and restoring in the middle changes
 * nothing that can be read.
 */
#include "fuzz.h"

#include <string.h>

#include "abi/board.h"
#include "dev/annot.h"
#include "dev/arch_timer.h"
#include "dev/gic.h"
#include "dev/pl011.h"
#include "dev/psci.h"

#define CPUS 3u
#define STEPS 256u

static struct bus *bus;
static struct gic *gic;
static struct arch_timer *timer;
static struct pl011 *uart;
static uint64_t now;
static void *saved;

static void cpu_value(void *opaque, unsigned cpu, uint64_t value)
{
    (void)opaque;
    (void)cpu;
    (void)value;
}

static void gic_irq(void *opaque, unsigned cpu, bool pending)
{
    (void)opaque;
    (void)pending;
    FUZZ_CHECK(cpu < CPUS, "interrupt of CPU %u", cpu);
}

static uint64_t now_ticks(void *opaque)
{
    (void)opaque;
    return now;
}

static void timer_line(void *opaque, unsigned cpu, unsigned intid, bool level)
{
    (void)opaque;
    gic_set_ppi(gic, cpu, intid, level);
}

static void uart_tx(void *opaque, uint8_t byte)
{
    (void)opaque;
    (void)byte;
}

static void uart_irq(void *opaque, bool level)
{
    (void)opaque;
    gic_set_spi(gic, BOARD_UART_INTID, level);
}

static unsigned annot_choose(void *opaque, unsigned cpu, unsigned n)
{
    (void)opaque;
    FUZZ_CHECK(cpu < BOARD_MAX_CPUS && n >= 1 && n <= ANNOT_CHOOSE_MAX,
               "%u alternatives", n);
    return n - 1;
}

static int cpu_on(void *opaque, uint64_t mpidr, uint64_t entry, uint64_t ctx)
{
    (void)opaque;
    (void)entry;
    (void)ctx;
    return mpidr < CPUS ? PSCI_ALREADY_ON : PSCI_INVALID_PARAMETERS;
}

static int affinity_info(void *opaque, uint64_t mpidr, unsigned level)
{
    (void)opaque;
    FUZZ_CHECK(level <= 3, "level %u", level);
    return mpidr < CPUS ? (int)PSCI_AFFINITY_ON : PSCI_INVALID_PARAMETERS;
}

static void cpu_only(void *opaque, unsigned cpu)
{
    (void)opaque;
    FUZZ_CHECK(cpu < CPUS, "CPU %u", cpu);
}

static void system_only(void *opaque)
{
    (void)opaque;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct gic_callbacks gic_calls = {gic_irq};
    static const struct arch_timer_callbacks timer_calls = {now_ticks,
                                                            timer_line};
    static const struct pl011_callbacks uart_calls = {uart_tx, uart_irq, NULL};
    static const struct annot_callbacks annot_calls = {
        .exit_status = cpu_value,
        .panic = cpu_value,
        .mark = cpu_value,
        .finding = cpu_value,
        .choose = annot_choose,
    };
    struct annot *annot;

    (void)argc;
    (void)argv;
    bus = bus_new();
    gic = gic_new(CPUS, &gic_calls, NULL);
    timer = arch_timer_new(CPUS, BOARD_CNTFRQ, &timer_calls, NULL);
    uart = pl011_new(&uart_calls, NULL);
    annot = annot_new(&annot_calls, NULL);
    FUZZ_CHECK(bus && gic && timer && uart && annot, "no device");
    FUZZ_CHECK(gic_attach(gic, bus, NULL) && pl011_attach(uart, bus, NULL) &&
                   annot_attach(annot, bus, NULL),
               "no region");
    /* What every input begins with. */
    saved = g_malloc(gic_state_size(gic) + arch_timer_state_size(timer) +
                     pl011_state_size(uart));
    gic_save(gic, saved);
    arch_timer_save(timer, (char *)saved + gic_state_size(gic));
    pl011_save(uart, (char *)saved + gic_state_size(gic) +
                         arch_timer_state_size(timer));
    return 0;
}

static void start_again(void)
{
    gic_restore(gic, saved);
    arch_timer_restore(timer, (char *)saved + gic_state_size(gic));
    pl011_restore(uart, (char *)saved + gic_state_size(gic) +
                            arch_timer_state_size(timer));
    now = 0;
}

static void save_and_restore(void)
{
    size_t size = gic_state_size(gic);
    void *before = g_malloc(size), *after = g_malloc(size);

    gic_save(gic, before);
    gic_restore(gic, before);
    gic_save(gic, after);
    FUZZ_CHECK(memcmp(before, after, size) == 0, "the GIC is another");
    g_free(before);
    g_free(after);
}

static uint64_t address(struct fuzz_bytes *bytes)
{
    static const uint64_t bases[] = {BOARD_GICD_BASE,  BOARD_GICR_BASE,
                                     BOARD_GICR2_BASE, BOARD_UART_BASE,
                                     BOARD_ANNOT_BASE, 0};
    uint64_t base = bases[fuzz_take(bytes, 1) % G_N_ELEMENTS(bases)];

    return base + (base ? fuzz_take(bytes, 3) : fuzz_take(bytes, 8));
}

static void one_step(struct fuzz_bytes *bytes)
{
    static const struct psci_ops psci = {cpu_on,      affinity_info, cpu_only,
                                         system_only, system_only,   cpu_only};
    unsigned what = (unsigned)fuzz_take(bytes, 1), cpu = what >> 4 & 3;
    unsigned size = 1u << (what >> 6);
    uint64_t value, x[4];
    struct gic_sgi sgi;
    uint8_t byte;

    cpu %= CPUS;
    switch (what & 15) {
    case 0 ... 3:
        value = address(bytes);
        (void)bus_write(bus, cpu, value, fuzz_take(bytes, 8), size);
        break;
    case 4 ... 6:
        (void)bus_read(bus, cpu, address(bytes), size, &value);
        break;
    case 7:
    case 8:
        value = fuzz_take(bytes, 2);
        (void)gic_sysreg_write(gic, cpu, (uint32_t)value, fuzz_take(bytes, 8),
                               &sgi);
        break;
    case 9:
        (void)gic_sysreg_read(gic, cpu, (uint32_t)fuzz_take(bytes, 2), &value);
        break;
    case 10:
        value = fuzz_take(bytes, 2);
        (void)arch_timer_sysreg_write(timer, cpu, (uint32_t)value,
                                      fuzz_take(bytes, 8));
        break;
    case 11:
        now += fuzz_take(bytes, 8);
        arch_timer_update(timer, cpu);
        (void)arch_timer_deadline(timer, cpu);
        break;
    case 12:
        byte = (uint8_t)fuzz_take(bytes, 1);
        (void)pl011_rx_push(uart, &byte, 1);
        break;
    case 13:
        for (unsigned i = 0; i < 4; i++) {
            x[i] = fuzz_take(bytes, i ? 8 : 4);
        }
        (void)psci_call(&psci, NULL, cpu, x);
        break;
    case 14:
        gic_reset_cpu(gic, cpu);
        arch_timer_reset_cpu(timer, cpu);
        break;
    default:
        save_and_restore();
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, data + size};

    start_again();
    for (unsigned i = 0; i < STEPS && bytes.at < bytes.end; i++) {
        one_step(&bytes);
    }
    return 0;
}
