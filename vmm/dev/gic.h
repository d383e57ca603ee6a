/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GICv3: distributor, one redistributor per CPU, CPU interfaces by system
 * registers. One security state (GICD_CTLR.DS = 1), affinity routing always
 * on, no LPIs, five priority bits, up to 512 CPUs. Group 1 is IRQ; group 0
 * (FIQ) is stored and never signalled.
 */
#ifndef DEV_GIC_H
#define DEV_GIC_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/bus.h"
#include "dev/sysreg_key.h"

struct gic;

#define GIC_MAX_CPUS 512
#define GIC_INTID_SPURIOUS 1023

struct gic_callbacks {
    /*
     * The IRQ signal of a CPU changed. Called with no lock of the GIC held, on
     * the thread that caused the change or on one that is already delivering a
     * change for the same CPU. Calls for one CPU never overlap and come in
     * order, so the last one always tells the truth. Calling back into the GIC
     * is allowed.
     */
    void (*irq_changed)(void *opaque, unsigned cpu, bool pending);
};

/* Who an SGI register write addressed. */
struct gic_sgi {
    bool valid;                          /* the key was an SGI register */
    bool all_others;                     /* IRM = 1 */
    uint8_t intid;                       /* 0..15 */
    uint16_t count;                      /* CPUs in targets */
    uint64_t targets[GIC_MAX_CPUS / 64]; /* bit n of word n / 64: CPU n */
};

/* --- before the machine starts only --- */

/* callbacks are copied. cpus is 1..512; anything else gives NULL. */
struct gic *gic_new(unsigned cpus, const struct gic_callbacks *callbacks,
                    void *opaque);
void gic_free(struct gic *gic);

/* Distributor and redistributor regions at their board addresses. */
bool gic_attach(struct gic *gic, struct bus *bus, GError **error);

/* --- any thread --- */

/* IRQ is signalled to this CPU now: enables, PMR and running priority
 * honoured, PSTATE.I not. One atomic load. */
bool gic_irq_pending(const struct gic *gic, unsigned cpu);

/* Input lines. A PPI is 16..31, an SPI is 32 and up; others are ignored. */
void gic_set_ppi(struct gic *gic, unsigned cpu, unsigned intid, bool level);
void gic_set_spi(struct gic *gic, unsigned intid, bool level);

/*
 * ICC_*_EL1 by key. False: no such register, or not in that direction (the
 * caller raises an undefined instruction). cpu is the CPU that executes the
 * instruction. out_sgi may be NULL; it is written only by SGI registers,
 * apart from .valid, which is always set.
 */
bool gic_sysreg_read(struct gic *gic, unsigned cpu, uint32_t key,
                     uint64_t *out_value);
bool gic_sysreg_write(struct gic *gic, unsigned cpu, uint32_t key,
                      uint64_t value, struct gic_sgi *out_sgi);

/* The CPU interface of one CPU as after reset (PSCI CPU_ON). What is pending
 * or enabled in its redistributor stays. */
void gic_reset_cpu(struct gic *gic, unsigned cpu);

/* --- while nobody else uses the GIC, and outside its callbacks --- */

/*
 * All that the guest can see or change, as plain bytes without pointers and
 * gaps: equal states give equal bytes. What the listener was told is part of
 * it and nothing is told: the caller puts the listener back too. Statistics
 * are not part of it and go on. Only for a GIC with as many CPUs.
 */
size_t gic_state_size(const struct gic *gic);
void gic_save(const struct gic *gic, void *to);
void gic_restore(struct gic *gic, const void *from);

/* --- statistics; any thread --- */

uint64_t gic_sgis_sent(const struct gic *gic, unsigned cpu); /* per target */
uint64_t gic_acks(const struct gic *gic, unsigned cpu); /* IAR1, not 1023 */
uint64_t gic_unknown_accesses(const struct gic *gic);

#endif
