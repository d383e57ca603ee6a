/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtual and the physical timer: the counter goes forward at its
 * frequency, an interrupt comes at the compare value and not before, masks and
 * enables work, WFI sleeps until it.
 */
#include "guest.h"

#define CTL_ENABLE 1
#define CTL_IMASK 2
#define CTL_ISTATUS 4

static volatile uint64_t fired_at;
static volatile uint32_t fired;

/* The line is level: it must be taken away before the handler ends. */
static void on_virtual(struct frame *f, unsigned intid)
{
    (void)f;
    fired_at = now();
    fired = intid;
    write_sysreg(cntv_ctl_el0, 0);
    write_sysreg(cntp_ctl_el0, 0);
    isb();
}

static void wait_fired(void)
{
    while (!fired) {
        __asm__ volatile("wfi");
        irq_on();
        isb();
        irq_off();
    }
}

static void counter(void)
{
    uint64_t last = now();
    bool forward = true;

    for (unsigned i = 0; i < 10000; i++) {
        uint64_t t = now();

        forward = forward && t >= last;
        last = t;
    }
    check(forward, "CNTVCT_EL0 never goes back");
    print("INFO: CNTFRQ_EL0 is %u\n", counter_hz());
    check(counter_hz() >= 1000000, "CNTFRQ_EL0 is at least 1 MHz");
    isb();
    last = read_sysreg(cntpct_el0);
    check(now() + counter_hz() > last, "CNTPCT_EL0 and CNTVCT_EL0 agree");
}

static void virtual_timer(void)
{
    uint64_t at;

    cpus[0].irq = on_virtual;
    gic_enable(BOARD_TIMER_VIRT_INTID);
    at = now() + counter_hz() / 50;
    write_sysreg(cntv_cval_el0, at);
    write_sysreg(cntv_ctl_el0, CTL_ENABLE);
    isb();
    check(!(read_sysreg(cntv_ctl_el0) & CTL_ISTATUS),
          "ISTATUS is clear before the time");
    fired = 0;
    wait_fired();
    check_equal(fired, BOARD_TIMER_VIRT_INTID,
                "CNTV_CVAL: interrupt 27 after WFI");
    check(fired_at >= at, "not before its time");
    check(fired_at < at + counter_hz(), "not a second late");

    fired = 0;
    at = now() + counter_hz() / 100;
    write_sysreg(cntv_tval_el0, counter_hz() / 100);
    write_sysreg(cntv_ctl_el0, CTL_ENABLE);
    irq_on();
    while (!fired) { /* no WFI: a running CPU is interrupted too */
    }
    irq_off();
    check(fired_at >= at, "CNTV_TVAL: a spinning CPU is interrupted");

    fired = 0;
    write_sysreg(cntv_tval_el0, 0);
    write_sysreg(cntv_ctl_el0, CTL_ENABLE | CTL_IMASK);
    isb();
    while (!(read_sysreg(cntv_ctl_el0) & CTL_ISTATUS)) {
    }
    irq_on();
    isb();
    irq_off();
    check(!fired, "IMASK holds the interrupt back, ISTATUS still says so");
    write_sysreg(cntv_ctl_el0, CTL_ENABLE);
    wait_fired();
    check(fired != 0, "clearing IMASK lets it come");
    check(!(read_sysreg(cntv_ctl_el0) & CTL_ISTATUS),
          "a disabled timer shows no ISTATUS");
    write_sysreg(cntv_tval_el0, -5);
    isb();
    check((int32_t)read_sysreg(cntv_tval_el0) < 0, "TVAL reads as signed");
}

static void physical_timer(void)
{
    uint64_t at;

    gic_enable(BOARD_TIMER_PHYS_INTID);
    fired = 0;
    isb();
    at = read_sysreg(cntpct_el0) + counter_hz() / 100;
    write_sysreg(cntp_cval_el0, at);
    write_sysreg(cntp_ctl_el0, CTL_ENABLE);
    wait_fired();
    check_equal(fired, BOARD_TIMER_PHYS_INTID, "CNTP_CVAL: interrupt 30");
}

int main(void)
{
    gic_init_dist();
    gic_init_cpu();
    counter();
    virtual_timer();
    physical_timer();
    finish("timer");
}
