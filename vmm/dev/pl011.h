/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PL011 UART (Arm DDI 0183): FIFOs, flags, interrupts. Characters leave at
 * once, so the transmit FIFO is always empty. As on QEMU a character goes out
 * and in whether or not CR enables the UART.
 */
#ifndef DEV_PL011_H
#define DEV_PL011_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/bus.h"

struct pl011;

/* Called with no lock held. */
struct pl011_callbacks {
    /* A character was sent; on the thread of the CPU that wrote it. */
    void (*tx)(void *opaque, uint8_t byte);
    /* The interrupt line changed; calls never overlap and come in order. */
    void (*irq)(void *opaque, bool level);
    /* May be NULL. There is room again after pl011_rx_push() took less than it
     * was given; on the thread of the CPU that read. */
    void (*rx_room)(void *opaque);
};

struct pl011 *pl011_new(const struct pl011_callbacks *callbacks, void *opaque);
void pl011_free(struct pl011 *uart);
bool pl011_attach(struct pl011 *uart, struct bus *bus, GError **error);

/* --- any thread --- */

/* Returns how many of the bytes were taken. */
size_t pl011_rx_push(struct pl011 *uart, const uint8_t *bytes, size_t count);
uint64_t pl011_unknown_accesses(const struct pl011 *uart);

/* --- while nobody else uses the UART, and outside its callbacks --- */

/*
 * All that the guest can see or change, as plain bytes without pointers and
 * gaps: equal states give equal bytes. What the listener was told is part of
 * it and nothing is told; statistics are not part of it.
 */
size_t pl011_state_size(const struct pl011 *uart);
void pl011_save(const struct pl011 *uart, void *to);
void pl011_restore(struct pl011 *uart, const void *from);

#endif
