/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory-mapped I/O bus: which device answers at a guest physical address.
 * Size, alignment and overlap are checked here, once for all devices.
 */
#ifndef DEV_BUS_H
#define DEV_BUS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct bus;

enum bus_result {
    BUS_OK = 0,
    BUS_NO_DEVICE,  /* nothing there: a synchronous external abort */
    BUS_BAD_ACCESS, /* size or alignment the device does not take */
};

/* offset is from the device's base; size is 1, 2, 4 or 8 and naturally aligned
 * within [min_access, max_access]. Called with no lock held, on any thread. */
struct device_ops {
    uint64_t (*read)(void *opaque, unsigned cpu, uint64_t offset,
                     unsigned size);
    void (*write)(void *opaque, unsigned cpu, uint64_t offset, uint64_t value,
                  unsigned size);
};

struct device_desc {
    const char *name; /* copied */
    uint64_t base, size;
    unsigned min_access, max_access; /* 1, 2, 4 or 8 */
    const struct device_ops *ops;    /* must outlive the bus */
    void *opaque;
};

/* --- before the machine starts only --- */

struct bus *bus_new(void);
void bus_free(struct bus *bus);

/* Fails on an impossible descriptor or an overlap with an attached device. */
bool bus_attach(struct bus *bus, const struct device_desc *desc,
                GError **error);

/* --- any thread --- */

enum bus_result bus_read(const struct bus *bus, unsigned cpu, uint64_t addr,
                         unsigned size, uint64_t *out_value);
enum bus_result bus_write(const struct bus *bus, unsigned cpu, uint64_t addr,
                          uint64_t value, unsigned size);

/* Name of the device at addr, or NULL. */
const char *bus_device_name(const struct bus *bus, uint64_t addr);

#endif
