/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GICv3 (IHI 0069): affinity routing, one security state, group 1 only. */
#ifndef DRIVERS_GIC_H
#define DRIVERS_GIC_H

#include "kernel/board.h"
#include "kernel/cpumask.h"
#include "kernel/types.h"

#define GIC_SPURIOUS 1020 /* this and above: nothing to handle */

void gic_init(const struct board *b);
/* Each CPU, interrupts masked. */
void gic_init_cpu(void);
void gic_enable_spi(unsigned intid); /* routed to the boot CPU */
void gic_enable_ppi(unsigned intid); /* this CPU's */
/* SGI intid to every CPU of mask; earlier stores are visible to them. */
void gic_send_sgi(const struct cpumask *mask, unsigned intid);
/* Takes and handles pending interrupts, from the IRQ vectors. */
void gic_handle_irq(void);

#endif
