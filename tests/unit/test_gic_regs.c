/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GICv3's registers: what they read as, what sticks, what is refused. */
#include "gic_fixture.h"

START_TEST(identification_registers_say_gicv3)
{
    ck_assert_uint_eq(gicd_read(0xffe8) >> 4 & 0xf, 3);
    ck_assert_uint_eq(mmio_read(gicr(3) + 0xffe8, 4) >> 4 & 0xf, 3);
    ck_assert_uint_eq(gicd_read(0x0004) & 0x1f, BOARD_INTIDS / 32 - 1);
    ck_assert_uint_eq(gicd_read(0x0004) >> 10 & 1, 0); /* one security state */
    ck_assert_uint_eq(gicd_read(0x0004) >> 17 & 1, 0); /* no LPIs */
    ck_assert_uint_eq(gicd_read(0x0008), 0x43b);
    ck_assert_uint_eq(mmio_read(gicr(0) + 4, 4), 0x43b);
}
END_TEST

START_TEST(distributor_control_has_affinity_routing_fixed_on)
{
    ck_assert_uint_eq(gicd_read(0), 0x50);
    gicd_write(0, 0xffffffff);
    ck_assert_uint_eq(gicd_read(0), 0x53);
    gicd_write(0, 0);
    ck_assert_uint_eq(gicd_read(0), 0x50);
}
END_TEST

START_TEST(waker_acknowledges_being_woken)
{
    ck_assert_uint_eq(mmio_read(gicr(1) + 0x14, 4), 6);
    mmio_write(gicr(1) + 0x14, 0, 4);
    ck_assert_uint_eq(mmio_read(gicr(1) + 0x14, 4), 0);
    ck_assert_uint_eq(mmio_read(gicr(2) + 0x14, 4), 6);
}
END_TEST

START_TEST(enables_and_priorities_are_set_and_cleared_by_bit)
{
    sgi_frame_write(1, 0x100, 0x80000001);
    sgi_frame_write(1, 0x180, 1);
    ck_assert_uint_eq(sgi_frame_read(1, 0x100), 0x80000000);
    ck_assert_uint_eq(sgi_frame_read(1, 0x180), 0x80000000);
    ck_assert_uint_eq(sgi_frame_read(0, 0x100), 0);
    gicd_write(0x104, 0x100);
    ck_assert_uint_eq(gicd_read(0x184), 0x100);
    sgi_frame_write(0, 0x404, 0xff8f4007); /* three bits do not exist */
    ck_assert_uint_eq(sgi_frame_read(0, 0x404), 0xf8884000);
    ck_assert_uint_eq(mmio_read(gicr(0) + 0x10000 + 0x406, 1), 0x88);
    mmio_write(BOARD_GICD_BASE + 0x400 + 77, 0x38, 1);
    ck_assert_uint_eq(gicd_read(0x400 + 76), 0x3800);
}
END_TEST

START_TEST(sgis_stay_edges_and_others_can_be_configured)
{
    ck_assert_uint_eq(sgi_frame_read(0, 0xc00), 0xaaaaaaaa);
    sgi_frame_write(0, 0xc00, 0);
    ck_assert_uint_eq(sgi_frame_read(0, 0xc00), 0xaaaaaaaa);
    ck_assert_uint_eq(sgi_frame_read(0, 0xc04), 0);
    sgi_frame_write(0, 0xc04, 0xffffffff);
    ck_assert_uint_eq(sgi_frame_read(0, 0xc04), 0xaaaaaaaa);
    gicd_write(0xc08, 0x80000002);
    ck_assert_uint_eq(gicd_read(0xc08), 0x80000002);
    ck_assert_uint_eq(gicd_read(0xc0c), 0);
}
END_TEST

START_TEST(private_interrupts_are_not_in_the_distributor)
{
    gicd_write(0x100, 0xffffffff);
    gicd_write(0x400, 0x80808080);
    ck_assert_uint_eq(gicd_read(0x100), 0);
    ck_assert_uint_eq(gicd_read(0x400), 0);
    ck_assert_uint_eq(sgi_frame_read(0, 0x100), 0);
    /* nor are SPIs that there are none of */
    gicd_write(0x100 + BOARD_INTIDS / 8, 0xffffffff);
    ck_assert_uint_eq(gicd_read(0x100 + BOARD_INTIDS / 8), 0);
    ck_assert_uint_eq(gic_unknown_accesses(gic), 0);
}
END_TEST

START_TEST(sixty_four_bit_registers_take_halves)
{
    uint64_t router = BOARD_GICD_BASE + 0x6000 + 8 * SPI_A;

    mmio_write(router, 0x1200ffff03ull | 1ull << 31, 8);
    ck_assert_uint_eq(mmio_read(router, 8), 0x1280ffff03ull);
    ck_assert_uint_eq(mmio_read(router, 4), 0x80ffff03);
    ck_assert_uint_eq(mmio_read(router + 4, 4), 0x12);
    mmio_write(router + 4, 0, 4);
    mmio_write(router, 2, 4);
    ck_assert_uint_eq(mmio_read(router, 8), 2);
    ck_assert_uint_eq(mmio_read(gicr(2) + 8, 8),
                      mmio_read(gicr(2) + 8, 4) | mmio_read(gicr(2) + 12, 4)
                                                      << 32);
}
END_TEST

START_TEST(accesses_the_architecture_has_not_are_counted)
{
    ck_assert_uint_eq(mmio_read(BOARD_GICD_BASE + 0x104, 1), 0);
    ck_assert_uint_eq(mmio_read(BOARD_GICD_BASE + 0x100, 8), 0);
    mmio_write(BOARD_GICD_BASE + 0x420, 1, 2);
    ck_assert_uint_eq(gicd_read(0x6000), 0); /* IROUTER of an SGI */
    ck_assert_uint_eq(mmio_read(gicr(0) + 0x1000, 4), 0);
    mmio_write(gicr(0) + 0x10104, 1, 4); /* ISENABLER1 */
    ck_assert_uint_eq(gic_unknown_accesses(gic), 6);
}
END_TEST

START_TEST(typer_names_affinity_number_and_the_last_frame)
{
    for (unsigned i = 0; i < cpus; i++) {
        uint64_t typer = mmio_read(gicr(i) + 8, 8);

        ck_assert_uint_eq(typer >> 32, i % 16 + (i / 16) * 256);
        ck_assert_uint_eq(typer >> 8 & 0xffff, i);
        ck_assert_uint_eq(typer >> 4 & 1, i == 122 || i == 511);
    }
    ck_assert_ptr_null(bus_device_name(bus, gicr(511) + BOARD_GICR_STRIDE));
}
END_TEST

START_TEST(interface_registers_read_as_reset)
{
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_PMR_EL1), 0);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_RPR_EL1), 0xff);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_SRE_EL1), 7);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_BPR1_EL1), 3);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_BPR0_EL1), 2);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_IGRPEN1_EL1), 0);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_CTLR_EL1) >> 8 & 7, 4);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_IAR0_EL1), SPURIOUS);
    icc_write(0, SYSREG_ICC_PMR_EL1, 0xff);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_PMR_EL1), 0xf8);
    icc_write(0, SYSREG_ICC_BPR1_EL1, 0);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_BPR1_EL1), 3);
    icc_write(0, SYSREG_ICC_CTLR_EL1, 3);
    ck_assert_uint_eq(icc_read(0, SYSREG_ICC_CTLR_EL1) & 3, 3);
    ck_assert_uint_eq(icc_read(1, SYSREG_ICC_CTLR_EL1) & 3, 0);
}
END_TEST

START_TEST(registers_exist_in_their_direction_only)
{
    uint64_t value = 5;
    struct gic_sgi out = {.valid = true};

    ck_assert(!gic_sysreg_read(gic, 0, SYSREG_ICC_EOIR1_EL1, &value));
    ck_assert(!gic_sysreg_read(gic, 0, SYSREG_ICC_SGI1R_EL1, &value));
    ck_assert(!gic_sysreg_read(gic, 0, SYSREG_ICC_DIR_EL1, &value));
    /* AP1R1_EL1: five bits of priority need one register */
    ck_assert(!gic_sysreg_read(gic, 0, SYSREG(3, 0, 12, 9, 1), &value));
    ck_assert(!gic_sysreg_read(gic, 4, SYSREG_ICC_PMR_EL1, &value));
    ck_assert_uint_eq(value, 5);
    ck_assert(!gic_sysreg_write(gic, 0, SYSREG_ICC_IAR1_EL1, 0, &out));
    ck_assert(!out.valid);
    ck_assert(!gic_sysreg_write(gic, 0, SYSREG_ICC_RPR_EL1, 0, NULL));
    ck_assert(!gic_sysreg_write(gic, 0, SYSREG_ICC_HPPIR1_EL1, 0, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gic_regs");
    TCase *raw = case_new(suite, "registers", setup_raw);
    TCase *many = case_new(suite, "512 CPUs", setup_512);

    tcase_add_test(raw, identification_registers_say_gicv3);
    tcase_add_test(raw, distributor_control_has_affinity_routing_fixed_on);
    tcase_add_test(raw, waker_acknowledges_being_woken);
    tcase_add_test(raw, enables_and_priorities_are_set_and_cleared_by_bit);
    tcase_add_test(raw, sgis_stay_edges_and_others_can_be_configured);
    tcase_add_test(raw, private_interrupts_are_not_in_the_distributor);
    tcase_add_test(raw, sixty_four_bit_registers_take_halves);
    tcase_add_test(raw, accesses_the_architecture_has_not_are_counted);
    tcase_add_test(raw, interface_registers_read_as_reset);
    tcase_add_test(raw, registers_exist_in_their_direction_only);
    tcase_add_test(many, typer_names_affinity_number_and_the_last_frame);
    return suite_run(suite);
}
