/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GICv3 as far as the tests use it: group 1 interrupts, one security state. */
#include "guest.h"

#define GICD_CTLR (BOARD_GICD_BASE + 0x0000)
#define GICD_IGROUPR (BOARD_GICD_BASE + 0x0080)
#define GICD_ISENABLER (BOARD_GICD_BASE + 0x0100)
#define GICD_IPRIORITYR (BOARD_GICD_BASE + 0x0400)
#define GICR_WAKER 0x0014
#define GICR_SGI_BASE 0x10000
#define GICR_IGROUPR0 (GICR_SGI_BASE + 0x0080)
#define GICR_ISENABLER0 (GICR_SGI_BASE + 0x0100)
#define GICR_IPRIORITYR (GICR_SGI_BASE + 0x0400)

uint64_t gicr_base(unsigned cpu)
{
    return BOARD_GICR_BASE + cpu * BOARD_GICR_STRIDE;
}

void gic_init_dist(void)
{
    mmio_write32(GICD_CTLR, 0x10); /* ARE, before the groups are enabled */
    for (unsigned i = 1; i < 9; i++) {
        mmio_write32(GICD_IGROUPR + i * 4, ~0u);
    }
    mmio_write32(GICD_CTLR, 0x12); /* ARE | EnableGrp1 */
}

void gic_init_cpu(void)
{
    uint64_t r = gicr_base(this_cpu()->id);

    mmio_write32(r + GICR_WAKER, mmio_read32(r + GICR_WAKER) & ~2u);
    while (mmio_read32(r + GICR_WAKER) & 4) {
    }
    mmio_write32(r + GICR_IGROUPR0, ~0u);
    for (unsigned i = 0; i < 32; i += 4) {
        mmio_write32(r + GICR_IPRIORITYR + i, 0xa0a0a0a0);
    }
    mmio_write32(r + GICR_ISENABLER0, 0xffff); /* all SGIs */
    write_sysreg(S3_0_C12_C12_5, 1);           /* ICC_SRE_EL1 */
    isb();
    write_sysreg(S3_0_C4_C6_0, 0xff);  /* ICC_PMR_EL1 */
    write_sysreg(S3_0_C12_C12_3, 0);   /* ICC_BPR1_EL1 */
    write_sysreg(S3_0_C12_C12_7, 1);   /* ICC_IGRPEN1_EL1 */
    isb();
}

void gic_enable(unsigned intid)
{
    if (intid < 32) {
        mmio_write32(gicr_base(this_cpu()->id) + GICR_ISENABLER0, 1u << intid);
    } else {
        mmio_write32(GICD_ISENABLER + intid / 32 * 4, 1u << intid % 32);
    }
    __asm__ volatile("dsb sy" ::: "memory");
}

void gic_priority(unsigned intid, uint8_t priority)
{
    uint64_t a = intid < 32 ? gicr_base(this_cpu()->id) + GICR_IPRIORITYR
                            : GICD_IPRIORITYR;

    *(volatile uint8_t *)(a + intid) = priority;
    __asm__ volatile("dsb sy" ::: "memory");
}

void gic_sgi_raw(uint64_t sgi1r)
{
    __asm__ volatile("dsb ishst" ::: "memory");
    write_sysreg(S3_0_C12_C11_5, sgi1r); /* ICC_SGI1R_EL1 */
    isb();
}

void gic_sgi(unsigned cpu, unsigned intid)
{
    gic_sgi_raw((uint64_t)intid << 24 |
                (uint64_t)(cpu / BOARD_CLUSTER_CPUS) << 16 |
                1ull << cpu % BOARD_CLUSTER_CPUS);
}
