/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GICv3 driver: distributor, this CPU's redistributor, system-register CPU
 * interface. All DSBs here are counted as dsb_irq; they run with interrupts
 * masked, since the handler counts too.
 */
#include "drivers/gic.h"

#include "abi/board.h"
#include "arch/barrier.h"
#include "arch/sysreg.h"
#include "drivers/pl011.h"
#include "drivers/timer.h"
#include "kernel/irqstat.h"
#include "kernel/panic.h"
#include "kernel/printk.h"
#include "kernel/smp.h"
#include "mm/counters.h"

/* IHI 0069, distributor and redistributor register maps */
enum gicd_reg {
    GICD_CTLR = 0x0000,
    GICD_TYPER = 0x0004,
    GICD_IGROUPR = 0x0080,
    GICD_ISENABLER = 0x0100,
    GICD_ICENABLER = 0x0180,
    GICD_IPRIORITYR = 0x0400,
    GICD_IROUTER = 0x6000,
};

enum gicr_reg {
    GICR_TYPER = 0x0008,
    GICR_WAKER = 0x0014,
    GICR_IGROUPR0 = 0x10080, /* SGI_base frame */
    GICR_ISENABLER0 = 0x10100,
    GICR_ICENABLER0 = 0x10180,
    GICR_IPRIORITYR = 0x10400,
};

#define GICD_CTLR_ENABLE_G1 (1U << 1)
#define GICD_CTLR_ARE (1U << 4)
#define GICD_CTLR_RWP (1U << 31)
#define GICR_WAKER_SLEEP (1U << 1)
#define GICR_WAKER_ASLEEP (1U << 2)
#define GICR_TYPER_LAST (1U << 4)
#define GIC_PRIORITY 0xa0
#define GIC_PRIORITY_WORD 0xa0a0a0a0U
#define GIC_SGIS 0xffffU

static volatile uint8_t *gicd;
static const struct board *gic_board;

static uint32_t gic_read(const volatile uint8_t *base, unsigned reg)
{
    return *(const volatile uint32_t *)(base + reg);
}

static void gic_write(volatile uint8_t *base, unsigned reg, uint32_t value)
{
    *(volatile uint32_t *)(base + reg) = value;
}

static uint64_t gic_read64(const volatile uint8_t *base, unsigned reg)
{
    return *(const volatile uint64_t *)(base + reg);
}

static void gic_write64(volatile uint8_t *base, unsigned reg, uint64_t value)
{
    *(volatile uint64_t *)(base + reg) = value;
}

/* Affinity as in IROUTER and the top half of GICR_TYPER. */
static uint32_t mpidr_typer_affinity(uint64_t mpidr)
{
    return (uint32_t)(mpidr & 0xffffff) | (uint32_t)(mpidr >> 8 & 0xff000000);
}

void gic_init(const struct board *b)
{
    unsigned intids;

    ASSERT_MSG(b->gicd != 0 && b->gicr_count > 0,
               "no arm,gic-v3 node in the device tree");
    gic_board = b;
    gicd = (volatile uint8_t *)(LINEAR_BASE + b->gicd);
    gic_write(gicd, GICD_CTLR, 0);
    while ((gic_read(gicd, GICD_CTLR) & GICD_CTLR_RWP) != 0) {
    }
    gic_write(gicd, GICD_CTLR, GICD_CTLR_ARE);
    intids = 32 * ((gic_read(gicd, GICD_TYPER) & 0x1f) + 1);
    for (unsigned i = 32; i < intids; i += 32) {
        gic_write(gicd, GICD_ICENABLER + i / 8, 0xffffffff);
        gic_write(gicd, GICD_IGROUPR + i / 8, 0xffffffff);
    }
    for (unsigned i = 32; i < intids; i += 4) {
        gic_write(gicd, GICD_IPRIORITYR + i, GIC_PRIORITY_WORD);
    }
    gic_write(gicd, GICD_CTLR, GICD_CTLR_ARE | GICD_CTLR_ENABLE_G1);
    while ((gic_read(gicd, GICD_CTLR) & GICD_CTLR_RWP) != 0) {
    }
}

static volatile uint8_t *gicr_frame(unsigned index)
{
    for (unsigned i = 0; i < gic_board->gicr_count; i++) {
        const struct board_range *region = &gic_board->gicr[i];
        unsigned frames =
            (unsigned)((region->end - region->start) / BOARD_GICR_STRIDE);

        if (index < frames) {
            return (volatile uint8_t *)(LINEAR_BASE + region->start +
                                        index * BOARD_GICR_STRIDE);
        }
        index -= frames;
    }
    return NULL;
}

/* Frames are usually in the order of the CPUs: look there first. */
static volatile uint8_t *gicr_find(const struct cpu *cpu)
{
    uint32_t want = mpidr_typer_affinity(cpu->mpidr);

    for (unsigned i = 0; i < MAX_CPUS; i++) {
        unsigned index = i == 0 ? cpu->id : i <= cpu->id ? i - 1 : i;
        volatile uint8_t *frame = gicr_frame(index);

        if (frame != NULL && gic_read64(frame, GICR_TYPER) >> 32 == want) {
            return frame;
        }
    }
    panic("no redistributor for CPU %u, MPIDR 0x%lx", cpu->id, cpu->mpidr);
}

void gic_init_cpu(void)
{
    struct cpu *cpu = this_cpu();
    volatile uint8_t *gicr = gicr_find(cpu);

    cpu->gicr = gicr;
    gic_write(gicr, GICR_WAKER, gic_read(gicr, GICR_WAKER) & ~GICR_WAKER_SLEEP);
    while ((gic_read(gicr, GICR_WAKER) & GICR_WAKER_ASLEEP) != 0) {
    }
    gic_write(gicr, GICR_ICENABLER0, 0xffffffff);
    gic_write(gicr, GICR_IGROUPR0, 0xffffffff);
    for (unsigned i = 0; i < 32; i += 4) {
        gic_write(gicr, GICR_IPRIORITYR + i, GIC_PRIORITY_WORD);
    }
    gic_write(gicr, GICR_ISENABLER0, GIC_SGIS);

    write_icc_sre_el1(read_icc_sre_el1() | 1);
    isb();
    write_icc_pmr_el1(0xf0);
    write_icc_bpr1_el1(0);
    write_icc_ctlr_el1(0); /* EOI drops priority and deactivates */
    write_icc_igrpen1_el1(1);
    isb();
}

void gic_enable_spi(unsigned intid)
{
    gic_write64(gicd, GICD_IROUTER + 8 * intid, cpus[0].mpidr);
    gic_write(gicd, GICD_ISENABLER + intid / 32 * 4, 1U << (intid % 32));
}

void gic_enable_ppi(unsigned intid)
{
    gic_write((volatile uint8_t *)this_cpu()->gicr, GICR_ISENABLER0,
              1U << intid);
}

/* One ICC_SGI1R_EL1 names up to 16 CPUs that share affinities 1 to 3. */
void gic_send_sgi(const struct cpumask *mask, unsigned intid)
{
    uint64_t flags = local_irq_save();
    uint64_t cluster = 0, list = 0;
    unsigned cpu, sent = 0;

    dsb_ishst(); /* what the handler will read is visible first */
    counter_inc(dsb_irq);
    for_each_cpu(cpu, mask)
    {
        uint64_t mpidr = cpus[cpu].mpidr;
        uint64_t sgi = (mpidr >> 32 & 0xff) << 48 | (mpidr >> 16 & 0xff) << 32 |
                       (uint64_t)intid << 24 | (mpidr >> 8 & 0xff) << 16 |
                       (mpidr >> 4 & 0xf) << 44;

        if (list != 0 && sgi != cluster) {
            write_icc_sgi1r_el1(cluster | list);
            list = 0;
        }
        cluster = sgi;
        list |= 1UL << (mpidr & 0xf);
        sent++;
    }
    if (list != 0) {
        write_icc_sgi1r_el1(cluster | list);
    }
    isb();
    counter_add(ipi_sent, sent);
    local_irq_restore(flags);
}

static void gic_dispatch(unsigned intid)
{
    if (intid < 16) {
        counter_inc(ipi_received);
        smp_handle_sgi(intid);
    } else if (intid == BOARD_TIMER_VIRT_INTID) {
        irq_count(IRQ_TIMER);
        timer_handle_irq();
    } else if (intid == BOARD_UART_INTID) {
        irq_count(IRQ_UART);
        pl011_handle_irq();
    } else {
        printk("gic: nobody handles interrupt %u\n", intid);
    }
}

void gic_handle_irq(void)
{
    for (;;) {
        unsigned intid = (unsigned)read_icc_iar1_el1() & 0xffffff;

        if (intid >= GIC_SPURIOUS) {
            return;
        }
        /* The acknowledge has taken effect before the device is touched. */
        dsb_sy();
        counter_inc(dsb_irq);
        gic_dispatch(intid);
        write_icc_eoir1_el1(intid);
        isb();
    }
}
