/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The console over the UART. Lock order: nothing is taken under console_lock.
 */
#include "kernel/console.h"

#include "drivers/pl011.h"
#include "kernel/errno.h"
#include "kernel/lock.h"
#include "kernel/sched.h"

#define INPUT_RING 256
#define CTRL_D 4

static struct spinlock console_lock = SPINLOCK_INIT(LOCK_console);
static struct wait_queue input_wait = WAIT_QUEUE_INIT(input_wait);
static struct spinlock input_lock = SPINLOCK_INIT(LOCK_console_in);
static char input_ring[INPUT_RING]; /* [lock: input_lock] */
static unsigned input_head, input_tail;

void console_write(const char *buf, size_t n)
{
    uint64_t flags = spin_lock_irqsave(&console_lock);

    for (size_t i = 0; i < n; i++) {
        pl011_putc(buf[i]);
    }
    spin_unlock_irqrestore(&console_lock, flags);
}

void console_force_unlock(void)
{
    spin_init(&console_lock, LOCK_console);
}

void console_input(char c)
{
    uint64_t flags = spin_lock_irqsave(&input_lock);

    if (input_head - input_tail < INPUT_RING) {
        input_ring[input_head++ % INPUT_RING] = c == '\r' ? '\n' : c;
    }
    spin_unlock_irqrestore(&input_lock, flags);
    wake_up_all(&input_wait);
}

static bool input_take(char *out)
{
    uint64_t flags = spin_lock_irqsave(&input_lock);
    bool any = input_head != input_tail;

    if (any) {
        *out = input_ring[input_tail++ % INPUT_RING];
    }
    spin_unlock_irqrestore(&input_lock, flags);
    return any;
}

int64_t console_read(char *buf, size_t n)
{
    size_t got = 0;
    char c = 0;

    while (got < n) {
        bool any = input_take(&c);

        if (!any && got > 0) {
            break;
        }
        if (!any && wait_event_interruptible(&input_wait,
                                             (any = input_take(&c))) != 0) {
            return -ERESTARTSYS;
        }
        if (c == CTRL_D) {
            break;
        }
        buf[got++] = c;
        if (c == '\n') {
            break;
        }
    }
    return (int64_t)got;
}

unsigned console_waiting(void)
{
    uint64_t flags = spin_lock_irqsave(&input_lock);
    unsigned n = input_head - input_tail;

    spin_unlock_irqrestore(&input_lock, flags);
    return n;
}

struct wait_queue *console_input_queue(void)
{
    return &input_wait;
}

void console_init(void)
{
    pl011_enable_rx();
}
