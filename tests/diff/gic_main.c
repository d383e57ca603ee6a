/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential GIC test: random accesses to the distributor, the
 * redistributor and the CPU interface, and the timers as a source, on one CPU
 * whose interrupts stay masked. Each case is a table of OPS operations for the
 * words seed, first, tables and verbose (see mmu_main.c).
 *
 * Interrupts: all of group 1; SGIs, PPIs, and the SPIs SPI_FIRST and up, which
 * have no device on either machine. Priorities have five bits.
 */
#include "words.h"

#define OPS 100
#define SPI_WORD 7
#define SPI_FIRST (SPI_WORD * 32)
#define PPIS_AND_SGIS 0x4800ffffu /* SGIs, 27 and 30: the timers */
#define SPIS 0x00ff00ffu
#define ACKED_MAX 32
#define SPURIOUS 1020
#define FAR_FUTURE (~0ull >> 1)

#define CTLR 0x0000
#define ISENABLER 0x0100
#define ICENABLER 0x0180
#define ISPENDR 0x0200
#define ICPENDR 0x0280
#define ISACTIVER 0x0300
#define ICACTIVER 0x0380
#define IPRIORITYR 0x0400
#define ICFGR 0x0c00
#define CTLR_ON 0x12 /* ARE, EnableGrp1 */

static unsigned acked[ACKED_MAX], acks;

static uint64_t frame(bool spi)
{
    return spi ? BOARD_GICD_BASE : gicr_base(0) + 0x10000;
}

/* Of the word that holds the interrupts in use. */
static uint64_t bits_at(bool spi, uint64_t reg)
{
    return frame(spi) + reg + (spi ? SPI_WORD * 4 : 0);
}

static uint32_t in_use(bool spi)
{
    return spi ? SPIS : PPIS_AND_SGIS;
}

static void end_last(void)
{
    write_sysreg(icc_eoir1_el1, acked[--acks]);
    isb();
}

static void begin_case(void)
{
    while (acks) {
        end_last();
    }
    write_sysreg(cntv_ctl_el0, 0);
    write_sysreg(cntp_ctl_el0, 0);
    write_sysreg(cntv_cval_el0, FAR_FUTURE);
    write_sysreg(cntp_cval_el0, FAR_FUTURE);
    isb();
    for (unsigned spi = 0; spi < 2; spi++) {
        mmio_write32(bits_at(spi, ICENABLER), ~0u);
        mmio_write32(bits_at(spi, ICACTIVER), ~0u);
        mmio_write32(bits_at(spi, ICPENDR), ~0u);
        for (unsigned i = 0; i < 32; i += 4) {
            mmio_write32(frame(spi) + IPRIORITYR + (spi ? SPI_FIRST : 0) + i,
                         0xa0a0a0a0);
        }
    }
    mmio_write32(BOARD_GICD_BASE + ICFGR + SPI_FIRST / 4, 0);
    mmio_write32(BOARD_GICD_BASE + ICFGR + SPI_FIRST / 4 + 4, 0);
    mmio_write32(BOARD_GICD_BASE + CTLR, CTLR_ON);
    write_sysreg(icc_ap1r0_el1, 0);
    write_sysreg(icc_pmr_el1, 0xf8);
    write_sysreg(icc_bpr1_el1, 0);
    write_sysreg(icc_igrpen1_el1, 1);
    isb();
}

static unsigned random_interrupt(struct rng *r)
{
    switch (rng_below(r, 4)) {
    case 0:
        return SPI_FIRST + rng_below(r, 8) + 16 * rng_below(r, 2);
    case 1:
        return rng_below(r, 2) ? BOARD_TIMER_VIRT_INTID
                               : BOARD_TIMER_PHYS_INTID;
    default:
        return rng_below(r, 16);
    }
}

static uint64_t acknowledge(void)
{
    uint64_t intid = read_sysreg(icc_iar1_el1);

    isb();
    if (intid < SPURIOUS) {
        acked[acks++] = (unsigned)intid;
        if (acks == ACKED_MAX) {
            end_last();
        }
    }
    return intid;
}

static uint64_t one_bit(struct rng *r, uint64_t reg)
{
    unsigned intid = random_interrupt(r);

    mmio_write32(bits_at(intid >= 32, reg), 1u << intid % 32);
    return reg | (uint64_t)intid << 32;
}

static void timer(struct rng *r)
{
    bool virtual = rng_below(r, 2);
    uint64_t at = rng_below(r, 2) ? 0 : FAR_FUTURE, ctl = rng_below(r, 4);

    if (virtual) {
        write_sysreg(cntv_cval_el0, at);
        write_sysreg(cntv_ctl_el0, ctl);
    } else {
        write_sysreg(cntp_cval_el0, at);
        write_sysreg(cntp_ctl_el0, ctl);
    }
    isb();
}

static const char *const names[] = {
    "enable",       "disable", "pend",  "unpend",      "activate", "deactivate",
    "priority",     "edge",    "sgi",   "acknowledge", "end",      "mask",
    "binary_point", "group",   "timer", "distributor", "read",
};
#define OPERATIONS (sizeof(names) / sizeof(names[0]))

/* What it did, for people, or what it read. */
static uint64_t operation(struct rng *r, unsigned which)
{
    uint64_t value;

    switch (which) {
    case 0:
        return one_bit(r, ISENABLER);
    case 1:
        return one_bit(r, ICENABLER);
    case 2:
        return one_bit(r, ISPENDR);
    case 3:
        return one_bit(r, ICPENDR);
    case 4:
        return one_bit(r, ISACTIVER);
    case 5:
        return one_bit(r, ICACTIVER);
    case 6: {
        unsigned intid = random_interrupt(r);
        uint8_t priority = (uint8_t)(rng_below(r, 32) * 8);

        *(volatile uint8_t *)(frame(intid >= 32) + IPRIORITYR + intid) =
            priority;
        return intid | (uint64_t)priority << 32;
    }
    case 7:
        value = rng_next(r) & 0xaaaaaaaa;
        mmio_write32(BOARD_GICD_BASE + ICFGR + SPI_FIRST / 4, (uint32_t)value);
        return value;
    case 8:
        value = (uint64_t)rng_below(r, 16) << 24 | 1;
        write_sysreg(icc_sgi1r_el1, value);
        isb();
        return value;
    case 9:
        return acknowledge();
    case 10:
        if (acks) {
            end_last();
        }
        return acks;
    case 11:
        value = rng_below(r, 32) * 8;
        write_sysreg(icc_pmr_el1, value);
        isb();
        return value;
    case 12:
        value = rng_below(r, 8);
        if (acks) {
            /* How it counts for what runs by then is left open. */
            return 0;
        }
        write_sysreg(icc_bpr1_el1, value);
        isb();
        return value;
    case 13:
        value = !rng_one_in(r, 3);
        write_sysreg(icc_igrpen1_el1, value);
        isb();
        return value;
    case 14:
        timer(r);
        return 0;
    case 15:
        value = rng_one_in(r, 3) ? 0x10 : CTLR_ON;
        mmio_write32(BOARD_GICD_BASE + CTLR, (uint32_t)value);
        return value;
    default:
        value = *(volatile uint8_t *)(frame(1) + IPRIORITYR + SPI_FIRST +
                                      rng_below(r, 8));
        return value << 32 |
               mmio_read32(BOARD_GICD_BASE + ICFGR + SPI_FIRST / 4);
    }
}

/* All that can be seen without changing it. */
static uint64_t look(uint64_t *words)
{
    uint64_t hash = 0;
    unsigned n = 0;

    __asm__ volatile("dsb sy; isb" ::: "memory");
    for (unsigned spi = 0; spi < 2; spi++) {
        static const uint64_t regs[] = {ISENABLER, ISPENDR, ISACTIVER};

        for (unsigned i = 0; i < 3; i++) {
            words[n++] = mmio_read32(bits_at(spi, regs[i])) & in_use(spi);
        }
    }
    /* Whether a group that is off has a highest one is left open. */
    words[n++] = read_sysreg(icc_igrpen1_el1) ? read_sysreg(icc_hppir1_el1) : 0;
    words[n++] = read_sysreg(icc_rpr_el1);
    words[n++] = read_sysreg(icc_pmr_el1);
    words[n++] = read_sysreg(icc_bpr1_el1);
    words[n++] = read_sysreg(icc_ap1r0_el1);
    words[n++] = read_sysreg(isr_el1);
    words[n++] = read_sysreg(cntv_ctl_el0) | read_sysreg(cntp_ctl_el0) << 8;
    for (unsigned i = 0; i < n; i++) {
        mix(&hash, words[i]);
    }
    return hash;
}

static uint64_t one(struct rng *r, bool verbose, unsigned number)
{
    static const char *const seen[] = {
        "enabled",    "pending", "active", "spi_enabled", "spi_pending",
        "spi_active", "hppir",   "rpr",    "pmr",         "bpr",
        "ap1r0",      "isr",     "timers"};
    unsigned which = rng_below(r, OPERATIONS);
    uint64_t value = operation(r, which), words[16];
    uint64_t hash = look(words);

    mix(&hash, value);
    if (verbose) {
        print("op %u %s value %x", (uint64_t)number, names[which], value);
        for (unsigned i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
            print(" %s %x", seen[i], words[i]);
        }
        print("\n");
    }
    return hash;
}

int main(void)
{
    const char *words = words_get();
    uint64_t seed = words_number(words, "seed", 1);
    uint64_t first = words_number(words, "first", 0);
    uint64_t count = words_number(words, "tables", 200);
    uint64_t verbose = words_number(words, "verbose", ~0ull);

    gic_init_dist();
    gic_init_cpu();
    print("gic_diff seed %u first %u tables %u\n", seed, first, count);
    for (uint64_t i = first; i < first + count; i++) {
        uint64_t hash = 0;
        struct rng rng;

        rng_start(&rng, seed, i);
        begin_case();
        for (unsigned k = 0; k < OPS; k++) {
            mix(&hash, one(&rng, i == verbose, k));
        }
        print("table %u ops %u hash %x\n", i, (uint64_t)OPS, hash);
    }
    print("end: %u tables, %u operations\n", count, count * OPS);
    system_off();
}
