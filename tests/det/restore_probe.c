/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers of all kinds over a snapshot: each gets a value, the machine is
 * remembered (mark 1), each must have its value, and gets another one, which a
 * restore has to take away again. A finding's code is the line of the check.
 */
#include "guest.h"

#include "abi/annot.h"

#define GICD_CTLR (BOARD_GICD_BASE + 0x0000)
#define GICD_IPRIORITYR (BOARD_GICD_BASE + 0x0400)
#define GICR_SGI (BOARD_GICR_BASE + 0x10000)
#define GICR_ISENABLER0 (GICR_SGI + 0x0100)
#define GICR_ISPENDR0 (GICR_SGI + 0x0200)
#define GICR_ICPENDR0 (GICR_SGI + 0x0280)
#define GICR_IPRIORITYR (GICR_SGI + 0x0400)
#define UART_IBRD (BOARD_UART_BASE + 0x24)
#define UART_IMSC (BOARD_UART_BASE + 0x38)

static uint64_t word, stored;

static void tell(unsigned reg, uint64_t value)
{
    *(volatile uint64_t *)(BOARD_ANNOT_BASE + reg) = value;
}

#define EXPECT(got, want)                                                      \
    do {                                                                       \
        if ((uint64_t)(got) != (uint64_t)(want)) {                             \
            tell(ANNOT_REG_FINDING, __LINE__);                                 \
        }                                                                      \
    } while (0)

/* REGISTER(name, before, after) */
#define REGISTERS                                                              \
    REGISTER(tpidr_el0, 0x1111, 0x2222)                                        \
    REGISTER(tpidrro_el0, 0x3333, 0x4444)                                      \
    REGISTER(contextidr_el1, 0x5555, 0x6666)                                   \
    REGISTER(far_el1, 0x7000, 0x8000)                                          \
    REGISTER(esr_el1, 0x9000, 0xa000)                                          \
    REGISTER(elr_el1, 0xb000, 0xc000)                                          \
    REGISTER(spsr_el1, 0x3c5, 0x3c4)                                           \
    REGISTER(sp_el0, 0xd000, 0xe000)                                           \
    REGISTER(par_el1, 0x800, 0)                                                \
    REGISTER(mair_el1, 0x4400ff04, 0x44ff04)                                   \
    REGISTER(ttbr1_el1, 0x41000000, 0x42000000)                                \
    REGISTER(cpacr_el1, 0x300000, 0x100000)                                    \
    REGISTER(cntv_cval_el0, 0x555500000000, 0x666600000000)                    \
    REGISTER(cntv_ctl_el0, 3, 0)                                               \
    REGISTER(cntp_cval_el0, 0x777700000000, 0x888800000000)                    \
    REGISTER(cntp_ctl_el0, 2, 0)                                               \
    REGISTER(cntkctl_el1, 3, 0)                                                \
    REGISTER(fpcr, 0x400000, 0)                                                \
    REGISTER(S3_0_C4_C6_0, 0x80, 0xf0) /* ICC_PMR_EL1 */                       \
    REGISTER(S3_0_C12_C12_3, 3, 5)     /* ICC_BPR1_EL1 */

static void set_before(void)
{
#define REGISTER(name, before, after) write_sysreg(name, before);
    REGISTERS
#undef REGISTER
    mmio_write32(GICR_IPRIORITYR + 4, 0x40404040);
    mmio_write32(GICD_IPRIORITYR + 40, 0x60606060);
    mmio_write32(GICR_ISPENDR0, 1u << 3);
    mmio_write32(UART_IMSC, 0x10);
    mmio_write32(UART_IBRD, 13);
    tell(ANNOT_REG_CHOOSE, 1); /* of one: answered 0 */
    __asm__ volatile("fmov d9, %0\n dup v31.2d, %0" ::"r"(0x123456789abcull));
}

static void check_before(void)
{
    uint64_t d9, v31;

    __asm__ volatile("fmov %0, d9\n umov %1, v31.d[1]" : "=r"(d9), "=r"(v31));
    EXPECT(d9, 0x123456789abc);
    EXPECT(v31, 0x123456789abc);
#define REGISTER(name, before, after) EXPECT(read_sysreg(name), before);
    REGISTERS
#undef REGISTER
    EXPECT(mmio_read32(GICR_IPRIORITYR + 4), 0x40404040);
    EXPECT(mmio_read32(GICD_IPRIORITYR + 40), 0x60606060);
    EXPECT(mmio_read32(GICR_ISPENDR0) & 0xffff, 1u << 3);
    EXPECT(mmio_read32(UART_IMSC), 0x10);
    EXPECT(mmio_read32(UART_IBRD), 13);
    EXPECT(*(volatile uint64_t *)(BOARD_ANNOT_BASE + ANNOT_REG_CHOOSE), 0);
}

static void set_after(void)
{
    __asm__ volatile("fmov d9, xzr\n dup v31.2d, xzr");
#define REGISTER(name, before, after) write_sysreg(name, after);
    REGISTERS
#undef REGISTER
    mmio_write32(GICR_IPRIORITYR + 4, 0x80808080);
    mmio_write32(GICD_IPRIORITYR + 40, 0xa0a0a0a0);
    mmio_write32(GICR_ICPENDR0, 1u << 3);
    mmio_write32(GICR_ISPENDR0, 1u << 7);
    mmio_write32(UART_IMSC, 0x20);
    mmio_write32(UART_IBRD, 26);
    tell(ANNOT_REG_CHOOSE, 1000);
}

int main(void)
{
    uint32_t failed;

    gic_init_dist();
    gic_init_cpu();
    set_before();
    /*
     * A reservation is lost at the mark, and must be after a restore though
     * the run ends with one; so must the event of the SEV at the end.
     */
    __asm__ volatile("sev\n wfe\n ldxr xzr, [%0]" ::"r"(&word) : "memory");
    tell(ANNOT_REG_MARK, ANNOT_MARK_BEGIN);
    __asm__ volatile("stxr %w0, %1, [%2]\n wfe"
                     : "=&r"(failed)
                     : "r"(1ull), "r"(&word)
                     : "memory");
    check_before();
    EXPECT(failed, 1);
    EXPECT(word, 0);
    EXPECT(stored, 0);
    stored = 1;
    set_after();
    __asm__ volatile("ldxr xzr, [%0]\n sev" ::"r"(&word) : "memory");
    tell(ANNOT_REG_MARK, ANNOT_MARK_END);
    system_off();
}
