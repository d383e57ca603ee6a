/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PL011 UART. One lock; callbacks run without it. Any thread.
 *
 * There is no baud clock: a written character has left when the write ends,
 * and the receive timeout (32 bit times of silence) has passed as soon as
 * characters that were pushed do not reach the trigger level.
 */
#include "dev/pl011.h"

#include <stdatomic.h>
#include <string.h>
#include <uv.h>

#include "abi/board.h"
#include "dev/notify_priv.h"

/* Arm DDI 0183, summary of registers. */
enum pl011_offset {
    UARTDR = 0x000,
    UARTRSR = 0x004, /* write: UARTECR */
    UARTFR = 0x018,
    UARTILPR = 0x020,
    UARTIBRD = 0x024,
    UARTFBRD = 0x028,
    UARTLCR_H = 0x02c,
    UARTCR = 0x030,
    UARTIFLS = 0x034,
    UARTIMSC = 0x038,
    UARTRIS = 0x03c,
    UARTMIS = 0x040,
    UARTICR = 0x044,
    UARTDMACR = 0x048,
    UART_ID = 0xfe0, /* PeriphID0..3, PCellID0..3 */
};

#define FR_RXFE (1u << 4)
#define FR_TXFF (1u << 5)
#define FR_RXFF (1u << 6)
#define FR_TXFE (1u << 7)

#define LCR_H_FEN (1u << 4)
#define LCR_H_MASK 0xffu

#define CR_LBE (1u << 7)
#define CR_RESET 0x300u /* RXE and TXE */
#define CR_MASK 0xff87u

#define IFLS_RESET 0x12u /* both at half */
#define IFLS_MASK 0x3fu

#define INT_RX (1u << 4)
#define INT_TX (1u << 5)
#define INT_RT (1u << 6)
#define INT_OE (1u << 10)
#define INT_MASK 0x7ffu

#define DR_OE (1u << 11)
#define RSR_OE (1u << 3)

#define FIFO_DEPTH 16

static const uint8_t pl011_ids[8] = {0x11, 0x10, 0x14, 0x00,
                                     0x0d, 0xf0, 0x05, 0xb1};

/*
 * Plain data, saved and restored as it is. No gaps, so that equal states are
 * equal bytes.
 */
struct pl011_state {
    uint32_t head, count;
    uint32_t rsr, ilpr, ibrd, fbrd, lcr_h, cr, ifls, imsc, ris, dmacr;
    uint16_t fifo[FIFO_DEPTH]; /* characters with their error bits */
    bool overrun;              /* marks the next character that gets in */
    bool wants_room;           /* a push was cut short */
    struct notify notify;
    uint8_t reserved[3]; /* 0 */
};

_Static_assert(sizeof(struct pl011_state) == 88, "no gaps");

struct pl011 {
    struct pl011_callbacks callbacks; /* [init] */
    void *opaque;                     /* [init] */
    uv_mutex_t lock;
    struct pl011_state state; /* [lock: lock] */
    _Atomic uint64_t unknown; /* [atomic] relaxed, a statistic */
};

static unsigned rx_depth(const struct pl011 *uart)
{
    return (uart->state.lcr_h & LCR_H_FEN) != 0 ? FIFO_DEPTH : 1;
}

static unsigned rx_trigger(const struct pl011 *uart)
{
    static const uint8_t level[8] = {2, 4, 8, 12, 14, 8, 8, 8};

    return (uart->state.lcr_h & LCR_H_FEN) != 0
               ? level[uart->state.ifls >> 3 & 7]
               : 1;
}

static void rx_interrupts_locked(struct pl011 *uart)
{
    if (uart->state.count >= rx_trigger(uart)) {
        uart->state.ris |= INT_RX;
    } else {
        uart->state.ris &= ~INT_RX;
        if (uart->state.count > 0) {
            uart->state.ris |= INT_RT;
        }
    }
    if (uart->state.count == 0) {
        uart->state.ris &= ~INT_RT;
    }
}

/* False: no room, the character is lost. */
static bool rx_put_locked(struct pl011 *uart, uint8_t byte)
{
    uint16_t entry = byte;

    if (uart->state.count >= rx_depth(uart)) {
        uart->state.overrun = true;
        uart->state.rsr |= RSR_OE;
        uart->state.ris |= INT_OE;
        return false;
    }
    if (uart->state.overrun) {
        entry |= DR_OE;
        uart->state.overrun = false;
    }
    uart->state.fifo[(uart->state.head + uart->state.count) % FIFO_DEPTH] =
        entry;
    uart->state.count++;
    rx_interrupts_locked(uart);
    return true;
}

static uint32_t rx_get_locked(struct pl011 *uart)
{
    uint32_t entry;

    if (uart->state.count == 0) {
        return 0;
    }
    entry = uart->state.fifo[uart->state.head];
    uart->state.head = (uart->state.head + 1) % FIFO_DEPTH;
    uart->state.count--;
    /* UARTRSR shows the errors of the character read last. */
    uart->state.rsr = entry >> 8 & 0xf;
    /* Reading below the trigger ends RX; RT ends with the last character and
     * does not begin by reading. */
    if (uart->state.count < rx_trigger(uart)) {
        uart->state.ris &= ~INT_RX;
    }
    if (uart->state.count == 0) {
        uart->state.ris &= ~INT_RT;
    } else if (uart->state.count < rx_trigger(uart)) {
        uart->state.ris |= INT_RT;
    }
    return entry;
}

static uint32_t fr_locked(const struct pl011 *uart)
{
    return FR_TXFE | (uart->state.count == 0 ? FR_RXFE : 0) |
           (uart->state.count >= rx_depth(uart) ? FR_RXFF : 0);
}

static void irq_tell(void *arg, bool level)
{
    struct pl011 *uart = arg;

    uart->callbacks.irq(uart->opaque, level);
}

/* Takes over the held lock and releases it. */
static void pl011_unlock_and_tell(struct pl011 *uart)
{
    notify_run_locked(&uart->state.notify, &uart->lock,
                      (uart->state.ris & uart->state.imsc) != 0, irq_tell,
                      uart);
    uv_mutex_unlock(&uart->lock);
}

static uint64_t read_locked(struct pl011 *uart, uint64_t offset)
{
    switch (offset) {
    case UARTDR:
        return rx_get_locked(uart);
    case UARTRSR:
        return uart->state.rsr;
    case UARTFR:
        return fr_locked(uart);
    case UARTILPR:
        return uart->state.ilpr;
    case UARTIBRD:
        return uart->state.ibrd;
    case UARTFBRD:
        return uart->state.fbrd;
    case UARTLCR_H:
        return uart->state.lcr_h;
    case UARTCR:
        return uart->state.cr;
    case UARTIFLS:
        return uart->state.ifls;
    case UARTIMSC:
        return uart->state.imsc;
    case UARTRIS:
        return uart->state.ris;
    case UARTMIS:
        return uart->state.ris & uart->state.imsc;
    case UARTDMACR:
        return uart->state.dmacr;
    default:
        break;
    }
    if (offset >= UART_ID && offset % 4 == 0) {
        return pl011_ids[(offset - UART_ID) / 4];
    }
    atomic_fetch_add_explicit(&uart->unknown, 1, memory_order_relaxed);
    return 0;
}

static uint64_t pl011_read(void *opaque, unsigned cpu, uint64_t offset,
                           unsigned size)
{
    struct pl011 *uart = opaque;
    bool room = false;
    uint64_t value;

    (void)cpu;
    (void)size;
    uv_mutex_lock(&uart->lock);
    value = read_locked(uart, offset);
    if (uart->state.wants_room && uart->state.count < rx_depth(uart)) {
        uart->state.wants_room = false;
        room = true;
    }
    pl011_unlock_and_tell(uart);
    if (room && uart->callbacks.rx_room != NULL) {
        uart->callbacks.rx_room(uart->opaque);
    }
    return value;
}

static void write_lcr_h_locked(struct pl011 *uart, uint32_t value)
{
    /* The FIFOs become one-character holding registers, or the other way
     * round; either way what was in them is gone. */
    if (((uart->state.lcr_h ^ value) & LCR_H_FEN) != 0) {
        uart->state.head = 0;
        uart->state.count = 0;
    }
    uart->state.lcr_h = value & LCR_H_MASK;
    rx_interrupts_locked(uart);
}

/* True: the character is to be sent. */
static bool write_dr_locked(struct pl011 *uart, uint8_t byte)
{
    bool loopback = (uart->state.cr & CR_LBE) != 0;

    if (loopback) {
        (void)rx_put_locked(uart, byte);
    }
    /* The FIFO fell through its trigger level: it is empty again. */
    uart->state.ris |= INT_TX;
    return !loopback;
}

static bool write_locked(struct pl011 *uart, uint64_t offset, uint32_t value)
{
    switch (offset) {
    case UARTDR:
        return write_dr_locked(uart, (uint8_t)value);
    case UARTRSR:
        uart->state.rsr = 0;
        break;
    case UARTFR:
    case UARTRIS:
    case UARTMIS: /* read-only */
        break;
    case UARTILPR:
        uart->state.ilpr = value & 0xff;
        break;
    case UARTIBRD:
        uart->state.ibrd = value & 0xffff;
        break;
    case UARTFBRD:
        uart->state.fbrd = value & 0x3f;
        break;
    case UARTLCR_H:
        write_lcr_h_locked(uart, value);
        break;
    case UARTCR:
        uart->state.cr = value & CR_MASK;
        break;
    case UARTIFLS:
        uart->state.ifls = value & IFLS_MASK;
        rx_interrupts_locked(uart);
        break;
    case UARTIMSC:
        uart->state.imsc = value & INT_MASK;
        break;
    case UARTICR:
        uart->state.ris &= ~(value & INT_MASK);
        break;
    case UARTDMACR: /* kept; there is no DMA */
        uart->state.dmacr = value & 7;
        break;
    default:
        atomic_fetch_add_explicit(&uart->unknown, 1, memory_order_relaxed);
        break;
    }
    return false;
}

static void pl011_write(void *opaque, unsigned cpu, uint64_t offset,
                        uint64_t value, unsigned size)
{
    struct pl011 *uart = opaque;
    bool send;

    (void)cpu;
    (void)size;
    uv_mutex_lock(&uart->lock);
    send = write_locked(uart, offset, (uint32_t)value);
    pl011_unlock_and_tell(uart);
    if (send) {
        uart->callbacks.tx(uart->opaque, (uint8_t)value);
    }
}

size_t pl011_rx_push(struct pl011 *uart, const uint8_t *bytes, size_t count)
{
    size_t taken = 0;

    uv_mutex_lock(&uart->lock);
    while (taken < count && uart->state.count < rx_depth(uart)) {
        (void)rx_put_locked(uart, bytes[taken]);
        taken++;
    }
    if (taken < count) {
        uart->state.wants_room = true;
    }
    pl011_unlock_and_tell(uart);
    return taken;
}

static const struct device_ops pl011_ops = {
    .read = pl011_read,
    .write = pl011_write,
};

struct pl011 *pl011_new(const struct pl011_callbacks *callbacks, void *opaque)
{
    struct pl011 *uart = g_new0(struct pl011, 1);

    if (uv_mutex_init(&uart->lock) != 0) {
        g_free(uart);
        return NULL;
    }
    uart->callbacks = *callbacks;
    uart->opaque = opaque;
    uart->state.cr = CR_RESET;
    uart->state.ifls = IFLS_RESET;
    return uart;
}

void pl011_free(struct pl011 *uart)
{
    if (uart == NULL) {
        return;
    }
    uv_mutex_destroy(&uart->lock);
    g_free(uart);
}

bool pl011_attach(struct pl011 *uart, struct bus *bus, GError **error)
{
    return bus_attach(bus,
                      &(struct device_desc){
                          .name = "pl011",
                          .base = BOARD_UART_BASE,
                          .size = BOARD_UART_SIZE,
                          .min_access = 1,
                          .max_access = 4,
                          .ops = &pl011_ops,
                          .opaque = uart,
                      },
                      error);
}

size_t pl011_state_size(const struct pl011 *uart)
{
    return sizeof(uart->state);
}

void pl011_save(const struct pl011 *uart, void *to)
{
    memcpy(to, &uart->state, sizeof(uart->state));
}

void pl011_restore(struct pl011 *uart, const void *from)
{
    memcpy(&uart->state, from, sizeof(uart->state));
}

uint64_t pl011_unknown_accesses(const struct pl011 *uart)
{
    return atomic_load_explicit(&uart->unknown, memory_order_relaxed);
}
