/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The I/O bus: a table sorted by address, filled before the machine starts
 * and read without a lock afterwards.
 */
#include "dev/bus.h"

#include <string.h>

#include "dev/dev_error.h"

struct bus {
    GArray *devices; /* [init] struct device_desc, sorted by base */
};

static void device_clear(gpointer element)
{
    struct device_desc *desc = element;

    g_free((char *)desc->name);
}

struct bus *bus_new(void)
{
    struct bus *bus = g_new0(struct bus, 1);

    bus->devices = g_array_new(FALSE, FALSE, sizeof(struct device_desc));
    g_array_set_clear_func(bus->devices, device_clear);
    return bus;
}

void bus_free(struct bus *bus)
{
    if (bus == NULL) {
        return;
    }
    g_array_unref(bus->devices);
    g_free(bus);
}

static bool access_size_is_valid(unsigned size)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool desc_is_valid(const struct device_desc *desc)
{
    return desc->name != NULL && desc->ops != NULL && desc->size != 0 &&
           desc->base <= UINT64_MAX - (desc->size - 1) &&
           access_size_is_valid(desc->min_access) &&
           access_size_is_valid(desc->max_access) &&
           desc->min_access <= desc->max_access &&
           desc->base % desc->max_access == 0;
}

bool bus_attach(struct bus *bus, const struct device_desc *desc, GError **error)
{
    unsigned position = 0;

    if (!desc_is_valid(desc)) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_CONFIG,
                    "device '%s' at 0x%" G_GINT64_MODIFIER
                    "x, size 0x%" G_GINT64_MODIFIER "x, accesses of %u to %u "
                    "bytes: not a range and access sizes (1, 2, 4 or 8) that "
                    "the bus can serve",
                    desc->name != NULL ? desc->name : "(no name)", desc->base,
                    desc->size, desc->min_access, desc->max_access);
        return false;
    }
    for (unsigned i = 0; i < bus->devices->len; i++) {
        const struct device_desc *other =
            &g_array_index(bus->devices, struct device_desc, i);

        if (desc->base <= other->base + (other->size - 1) &&
            other->base <= desc->base + (desc->size - 1)) {
            g_set_error(error, DEV_ERROR, DEV_ERROR_OVERLAP,
                        "device '%s' at 0x%" G_GINT64_MODIFIER
                        "x overlaps device '%s' at 0x%" G_GINT64_MODIFIER
                        "x: move one of them",
                        desc->name, desc->base, other->name, other->base);
            return false;
        }
        if (other->base < desc->base) {
            position = i + 1;
        }
    }

    struct device_desc copy = *desc;

    copy.name = g_strdup(desc->name);
    g_array_insert_val(bus->devices, position, copy);
    return true;
}

static const struct device_desc *bus_find(const struct bus *bus, uint64_t addr)
{
    unsigned low = 0;
    unsigned high = bus->devices->len;

    while (low < high) {
        unsigned middle = (low + high) / 2;
        const struct device_desc *desc =
            &g_array_index(bus->devices, struct device_desc, middle);

        if (addr < desc->base) {
            high = middle;
        } else if (addr - desc->base >= desc->size) {
            low = middle + 1;
        } else {
            return desc;
        }
    }
    return NULL;
}

static enum bus_result bus_check(const struct device_desc *desc, uint64_t addr,
                                 unsigned size)
{
    if (desc == NULL) {
        return BUS_NO_DEVICE;
    }
    if (!access_size_is_valid(size) || size < desc->min_access ||
        size > desc->max_access || addr % size != 0 ||
        size > desc->size - (addr - desc->base)) {
        return BUS_BAD_ACCESS;
    }
    return BUS_OK;
}

enum bus_result bus_read(const struct bus *bus, unsigned cpu, uint64_t addr,
                         unsigned size, uint64_t *out_value)
{
    const struct device_desc *desc = bus_find(bus, addr);
    enum bus_result result = bus_check(desc, addr, size);

    if (result == BUS_OK) {
        uint64_t value =
            desc->ops->read(desc->opaque, cpu, addr - desc->base, size);

        *out_value = size == 8 ? value : value & ((1ull << (size * 8)) - 1);
    }
    return result;
}

enum bus_result bus_write(const struct bus *bus, unsigned cpu, uint64_t addr,
                          uint64_t value, unsigned size)
{
    const struct device_desc *desc = bus_find(bus, addr);
    enum bus_result result = bus_check(desc, addr, size);

    if (result == BUS_OK) {
        if (size < 8) {
            value &= (1ull << (size * 8)) - 1;
        }
        desc->ops->write(desc->opaque, cpu, addr - desc->base, value, size);
    }
    return result;
}

const char *bus_device_name(const struct bus *bus, uint64_t addr)
{
    const struct device_desc *desc = bus_find(bus, addr);

    return desc != NULL ? desc->name : NULL;
}
