/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The board's device tree, node by node as QEMU's virt has them, made with
 * libfdt's sequential writer. No state.
 */
#include "dev/board_fdt.h"

#include <libfdt.h>
#include <string.h>

#include "abi/annot.h"
#include "abi/board.h"
#include "dev/dev_error.h"
#include "dev/psci.h"

/* Interrupt specifiers of arm,gic-v3: type, number, flags. */
#define IRQ_SPI 0
#define IRQ_PPI 1
#define IRQ_LEVEL_HIGH 4

#define PHANDLE_GIC 1
#define PHANDLE_CLOCK 2

/* Room for what does not grow with the CPUs, and for one CPU. */
#define FDT_FIXED_ROOM 8192
#define FDT_CPU_ROOM 256

/* The writer with the first error it met; later calls do nothing. */
struct fdt_writer {
    void *fdt;
    int err;
};

static void begin(struct fdt_writer *w, const char *name)
{
    if (w->err == 0) {
        w->err = fdt_begin_node(w->fdt, name);
    }
}

static void begin_at(struct fdt_writer *w, const char *name, uint64_t at)
{
    g_autofree char *full =
        g_strdup_printf("%s@%" G_GINT64_MODIFIER "x", name, at);

    begin(w, full);
}

static void end(struct fdt_writer *w)
{
    if (w->err == 0) {
        w->err = fdt_end_node(w->fdt);
    }
}

static void put(struct fdt_writer *w, const char *name, const void *value,
                size_t size)
{
    if (w->err == 0) {
        w->err = fdt_property(w->fdt, name, value, (int)size);
    }
}

static void put_flag(struct fdt_writer *w, const char *name)
{
    put(w, name, "", 0);
}

static void put_string(struct fdt_writer *w, const char *name,
                       const char *value)
{
    put(w, name, value, strlen(value) + 1);
}

/* Of an array: sizeof counts the NULs between the strings and the last one. */
#define put_strings(w, name, value) put(w, name, value, sizeof(value))

static void put_cells(struct fdt_writer *w, const char *name,
                      const uint32_t *cells, unsigned count)
{
    fdt32_t be[16];

    g_assert(count <= G_N_ELEMENTS(be));
    for (unsigned i = 0; i < count; i++) {
        be[i] = cpu_to_fdt32(cells[i]);
    }
    put(w, name, be, count * sizeof(be[0]));
}

static void put_cell(struct fdt_writer *w, const char *name, uint32_t cell)
{
    put_cells(w, name, &cell, 1);
}

static void put_u64(struct fdt_writer *w, const char *name, uint64_t value)
{
    put_cells(w, name, (uint32_t[]){(uint32_t)(value >> 32), (uint32_t)value},
              2);
}

/* Address and size as two cells each. */
static void put_reg(struct fdt_writer *w, uint64_t base, uint64_t size)
{
    put_cells(w, "reg",
              (uint32_t[]){(uint32_t)(base >> 32), (uint32_t)base,
                           (uint32_t)(size >> 32), (uint32_t)size},
              4);
}

static void put_chosen(struct fdt_writer *w,
                       const struct board_fdt_config *config)
{
    g_autofree char *uart = g_strdup_printf("/pl011@%lx", BOARD_UART_BASE);

    begin(w, "chosen");
    put_string(w, "stdout-path", uart);
    if (config->cmdline != NULL) {
        put_string(w, "bootargs", config->cmdline);
    }
    if (config->initrd_end != 0) {
        put_u64(w, "linux,initrd-start", config->initrd_start);
        put_u64(w, "linux,initrd-end", config->initrd_end);
    }
    end(w);
}

static void put_psci(struct fdt_writer *w)
{
    begin(w, "psci");
    put_strings(w, "compatible", "arm,psci-1.0\0arm,psci-0.2\0arm,psci");
    put_string(w, "method", "hvc");
    put_cell(w, "cpu_suspend", PSCI_FN_CPU_SUSPEND | PSCI_FN_64);
    put_cell(w, "cpu_off", PSCI_FN_CPU_OFF);
    put_cell(w, "cpu_on", PSCI_FN_CPU_ON | PSCI_FN_64);
    end(w);
}

static void put_cpus(struct fdt_writer *w, unsigned cpus)
{
    begin(w, "cpus");
    /* One cell is enough for Aff2:Aff1:Aff0. */
    put_cell(w, "#address-cells", 1);
    put_cell(w, "#size-cells", 0);
    for (unsigned i = 0; i < cpus; i++) {
        begin_at(w, "cpu", BOARD_CPU_AFFINITY(i));
        put_string(w, "device_type", "cpu");
        put_string(w, "compatible", "arm,armv8");
        put_string(w, "enable-method", "psci");
        put_cell(w, "reg", BOARD_CPU_AFFINITY(i));
        end(w);
    }
    end(w);
}

static void put_intc(struct fdt_writer *w, unsigned cpus)
{
    bool two = cpus > BOARD_GICR_CPUS;
    const uint64_t range[] = {
        BOARD_GICD_BASE, BOARD_GICD_SIZE,  BOARD_GICR_BASE,
        BOARD_GICR_SIZE, BOARD_GICR2_BASE, BOARD_GICR2_SIZE,
    };
    unsigned used = two ? 6 : 4;
    uint32_t cells[12];

    for (unsigned i = 0; i < used; i++) {
        cells[2 * i] = (uint32_t)(range[i] >> 32);
        cells[2 * i + 1] = (uint32_t)range[i];
    }
    begin_at(w, "intc", BOARD_GICD_BASE);
    put_string(w, "compatible", "arm,gic-v3");
    put_cell(w, "#interrupt-cells", 3);
    put_flag(w, "interrupt-controller");
    put_cell(w, "#redistributor-regions", two ? 2 : 1);
    put_cells(w, "reg", cells, 2 * used);
    put_cell(w, "#address-cells", 2);
    put_cell(w, "#size-cells", 2);
    put_flag(w, "ranges");
    put_cell(w, "phandle", PHANDLE_GIC);
    end(w);
}

static void put_timer(struct fdt_writer *w)
{
    /* Order of the binding: secure, physical, virtual, hypervisor. */
    static const uint32_t intids[] = {
        BOARD_TIMER_SECURE_PHYS_INTID,
        BOARD_TIMER_PHYS_INTID,
        BOARD_TIMER_VIRT_INTID,
        BOARD_TIMER_HYP_INTID,
    };
    uint32_t cells[3 * G_N_ELEMENTS(intids)];

    for (unsigned i = 0; i < G_N_ELEMENTS(intids); i++) {
        cells[3 * i] = IRQ_PPI;
        cells[3 * i + 1] = intids[i] - BOARD_PPI_BASE;
        cells[3 * i + 2] = IRQ_LEVEL_HIGH;
    }
    begin(w, "timer");
    put_strings(w, "compatible", "arm,armv8-timer\0arm,armv7-timer");
    put_flag(w, "always-on");
    put_cells(w, "interrupts", cells, G_N_ELEMENTS(cells));
    end(w);
}

static void put_uart(struct fdt_writer *w)
{
    begin(w, "apb-pclk");
    put_string(w, "compatible", "fixed-clock");
    put_cell(w, "#clock-cells", 0);
    put_cell(w, "clock-frequency", BOARD_UART_CLOCK_HZ);
    put_string(w, "clock-output-names", "clk24mhz");
    put_cell(w, "phandle", PHANDLE_CLOCK);
    end(w);

    begin_at(w, "pl011", BOARD_UART_BASE);
    put_strings(w, "compatible", "arm,pl011\0arm,primecell");
    put_reg(w, BOARD_UART_BASE, BOARD_UART_SIZE);
    put_cells(w, "interrupts",
              (uint32_t[]){IRQ_SPI, BOARD_UART_SPI, IRQ_LEVEL_HIGH}, 3);
    put_cells(w, "clocks", (uint32_t[]){PHANDLE_CLOCK, PHANDLE_CLOCK}, 2);
    put_strings(w, "clock-names", "uartclk\0apb_pclk");
    end(w);
}

static void put_tree(struct fdt_writer *w,
                     const struct board_fdt_config *config)
{
    begin(w, "");
    put_string(w, "model", "shootdown,virt");
    put_string(w, "compatible", "linux,dummy-virt");
    put_cell(w, "#address-cells", 2);
    put_cell(w, "#size-cells", 2);
    put_cell(w, "interrupt-parent", PHANDLE_GIC);
    put_chosen(w, config);
    begin_at(w, "memory", BOARD_RAM_BASE);
    put_string(w, "device_type", "memory");
    put_reg(w, BOARD_RAM_BASE, config->mem_size);
    end(w);
    put_cpus(w, config->cpus);
    put_psci(w);
    put_intc(w, config->cpus);
    put_timer(w);
    put_uart(w);
    if (config->annot) {
        begin_at(w, "annot", BOARD_ANNOT_BASE);
        put_string(w, "compatible", ANNOT_COMPATIBLE);
        put_reg(w, BOARD_ANNOT_BASE, BOARD_ANNOT_SIZE);
        end(w);
    }
    end(w);
}

static bool config_check(const struct board_fdt_config *config, GError **error)
{
    size_t length = config->cmdline != NULL ? strlen(config->cmdline) : 0;

    if (config->cpus == 0 || config->cpus > BOARD_MAX_CPUS) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_CONFIG,
                    "%u CPUs: the board has 1 to %d", config->cpus,
                    BOARD_MAX_CPUS);
        return false;
    }
    if (config->mem_size == 0 ||
        config->mem_size > BOARD_GICR2_BASE - BOARD_RAM_BASE) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_CONFIG,
                    "%" G_GUINT64_FORMAT " bytes of memory: the board has "
                    "room for 1 to %lu bytes from 0x%lx",
                    config->mem_size, BOARD_GICR2_BASE - BOARD_RAM_BASE,
                    BOARD_RAM_BASE);
        return false;
    }
    if (length >= BOARD_FDT_CMDLINE_MAX) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_CONFIG,
                    "the kernel command line has %zu characters: shorten it "
                    "to at most %d",
                    length, BOARD_FDT_CMDLINE_MAX - 1);
        return false;
    }
    if (config->initrd_end != 0 && config->initrd_end <= config->initrd_start) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_CONFIG,
                    "the initrd ends at 0x%" G_GINT64_MODIFIER
                    "x, not after its start at 0x%" G_GINT64_MODIFIER "x",
                    config->initrd_end, config->initrd_start);
        return false;
    }
    return true;
}

GBytes *board_fdt_new(const struct board_fdt_config *config, GError **error)
{
    g_autofree void *buffer = NULL;
    struct fdt_writer w;
    size_t size;

    if (!config_check(config, error)) {
        return NULL;
    }
    size = FDT_FIXED_ROOM + (size_t)config->cpus * FDT_CPU_ROOM;
    buffer = g_malloc0(size);
    w.fdt = buffer;
    w.err = fdt_create(buffer, (int)size);
    if (w.err == 0) {
        w.err = fdt_finish_reservemap(buffer);
    }
    put_tree(&w, config);
    if (w.err == 0) {
        w.err = fdt_finish(buffer);
    }
    if (w.err != 0) {
        g_set_error(error, DEV_ERROR, DEV_ERROR_INTERNAL,
                    "libfdt could not make the device tree for %u CPUs: %s",
                    config->cpus, fdt_strerror(w.err));
        return NULL;
    }
    size = fdt_totalsize(buffer);
    return g_bytes_new(buffer, size);
}
