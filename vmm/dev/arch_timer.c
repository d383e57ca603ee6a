/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The generic timer. Each CPU has a lock of its own, taken by writes and
 * updates; reading the counter takes none. Any thread.
 */
#include "dev/arch_timer.h"

#include <glib.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "abi/board.h"
#include "dev/notify_priv.h"

/* CNTx_CTL_EL0 */
#define CTL_ENABLE 1u
#define CTL_IMASK 2u
#define CTL_ISTATUS 4u

/* CNTKCTL_EL1: what EL0 may use */
#define CNTKCTL_EL0PCTEN (1u << 0)
#define CNTKCTL_EL0VCTEN (1u << 1)
#define CNTKCTL_EL0VTEN (1u << 8)
#define CNTKCTL_EL0PTEN (1u << 9)
/* EVNTEN, EVNTDIR, EVNTI and the four above */
#define CNTKCTL_MASK 0x3ffu

enum timer_kind { TIMER_PHYS, TIMER_VIRT, TIMER_KINDS };

struct timer_line {
    struct arch_timer *timer; /* [init] */
    unsigned cpu, intid;      /* [init] */
    /* [lock: cpu's] */
    struct notify notify;
    uint64_t cval;
    uint32_t ctl; /* ENABLE and IMASK; ISTATUS is computed */
};

struct timer_cpu {
    _Alignas(64) uv_mutex_t lock;
    struct timer_line line[TIMER_KINDS];
    _Atomic uint64_t deadline; /* [atomic] relaxed; written under the lock */
    _Atomic uint32_t cntkctl;  /* [atomic] relaxed; own CPU writes */
    _Atomic uint32_t cntfrq;   /* [atomic] relaxed; own CPU writes */
};

struct arch_timer {
    unsigned cpus;                         /* [init] */
    uint32_t frequency;                    /* [init] */
    struct arch_timer_callbacks callbacks; /* [init] */
    void *opaque;                          /* [init] */
    struct timer_cpu *cpu;                 /* [init] array of cpus */
};

static uint64_t timer_now(const struct arch_timer *timer)
{
    return timer->callbacks.now_ticks(timer->opaque);
}

/* The comparison is of unsigned 64-bit numbers: a CVAL near the top may never
 * be reached, and a TVAL written negative right after reset makes such one. */
static bool line_condition(const struct timer_line *line, uint64_t now)
{
    return (line->ctl & CTL_ENABLE) != 0 && now >= line->cval;
}

static void line_tell(void *arg, bool level)
{
    struct timer_line *line = arg;
    struct arch_timer *timer = line->timer;

    timer->callbacks.line(timer->opaque, line->cpu, line->intid, level);
}

/* The earliest moment at which a line that is low will rise by itself. */
static uint64_t cpu_deadline_locked(const struct timer_cpu *c, uint64_t now)
{
    uint64_t deadline = ARCH_TIMER_NONE;

    for (unsigned i = 0; i < TIMER_KINDS; i++) {
        const struct timer_line *line = &c->line[i];

        if ((line->ctl & (CTL_ENABLE | CTL_IMASK)) == CTL_ENABLE &&
            now < line->cval && line->cval < deadline) {
            deadline = line->cval;
        }
    }
    return deadline;
}

/* Takes over the held lock and releases it. */
static void cpu_update_unlock(struct timer_cpu *c, uint64_t now)
{
    for (unsigned i = 0; i < TIMER_KINDS; i++) {
        c->line[i].notify.want = line_condition(&c->line[i], now) &&
                                 (c->line[i].ctl & CTL_IMASK) == 0;
    }
    atomic_store_explicit(&c->deadline, cpu_deadline_locked(c, now),
                          memory_order_relaxed);
    for (unsigned i = 0; i < TIMER_KINDS; i++) {
        /* Telling the first line drops the lock: .want may be newer. */
        notify_run_locked(&c->line[i].notify, &c->lock, c->line[i].notify.want,
                          line_tell, &c->line[i]);
    }
    uv_mutex_unlock(&c->lock);
}

static enum timer_kind key_kind(uint32_t key)
{
    switch (key) {
    case SYSREG_CNTV_TVAL_EL0:
    case SYSREG_CNTV_CTL_EL0:
    case SYSREG_CNTV_CVAL_EL0:
        return TIMER_VIRT;
    default:
        return TIMER_PHYS;
    }
}

static uint64_t line_read(struct arch_timer *timer, struct timer_cpu *c,
                          uint32_t key)
{
    struct timer_line *line = &c->line[key_kind(key)];
    uint64_t now, value;

    uv_mutex_lock(&c->lock);
    now = timer_now(timer);
    switch (key) {
    case SYSREG_CNTP_CTL_EL0:
    case SYSREG_CNTV_CTL_EL0:
        value = line->ctl | (line_condition(line, now) ? CTL_ISTATUS : 0);
        break;
    case SYSREG_CNTP_CVAL_EL0:
    case SYSREG_CNTV_CVAL_EL0:
        value = line->cval;
        break;
    default: /* TVAL: the low half of the distance */
        value = (uint32_t)(line->cval - now);
        break;
    }
    uv_mutex_unlock(&c->lock);
    return value;
}

static void line_write(struct arch_timer *timer, struct timer_cpu *c,
                       uint32_t key, uint64_t value)
{
    struct timer_line *line = &c->line[key_kind(key)];
    uint64_t now;

    uv_mutex_lock(&c->lock);
    /* Under the lock: of two writers the later one has the later time. */
    now = timer_now(timer);
    switch (key) {
    case SYSREG_CNTP_CTL_EL0:
    case SYSREG_CNTV_CTL_EL0:
        line->ctl = (uint32_t)value & (CTL_ENABLE | CTL_IMASK);
        break;
    case SYSREG_CNTP_CVAL_EL0:
    case SYSREG_CNTV_CVAL_EL0:
        line->cval = value;
        break;
    default: /* TVAL: signed 32 bits from now */
        line->cval = now + (uint64_t)(int64_t)(int32_t)(uint32_t)value;
        break;
    }
    cpu_update_unlock(c, now);
}

bool arch_timer_sysreg_read(struct arch_timer *timer, unsigned cpu,
                            uint32_t key, uint64_t *out_value)
{
    struct timer_cpu *c;

    if (cpu >= timer->cpus) {
        return false;
    }
    c = &timer->cpu[cpu];
    switch (key) {
    case SYSREG_CNTVCT_EL0:
    case SYSREG_CNTVCTSS_EL0:
    case SYSREG_CNTPCT_EL0:
    case SYSREG_CNTPCTSS_EL0:
        *out_value = timer_now(timer);
        return true;
    case SYSREG_CNTFRQ_EL0:
        *out_value = atomic_load_explicit(&c->cntfrq, memory_order_relaxed);
        return true;
    case SYSREG_CNTKCTL_EL1:
        *out_value = atomic_load_explicit(&c->cntkctl, memory_order_relaxed);
        return true;
    case SYSREG_CNTP_TVAL_EL0:
    case SYSREG_CNTP_CTL_EL0:
    case SYSREG_CNTP_CVAL_EL0:
    case SYSREG_CNTV_TVAL_EL0:
    case SYSREG_CNTV_CTL_EL0:
    case SYSREG_CNTV_CVAL_EL0:
        *out_value = line_read(timer, c, key);
        return true;
    default:
        return false;
    }
}

bool arch_timer_sysreg_write(struct arch_timer *timer, unsigned cpu,
                             uint32_t key, uint64_t value)
{
    struct timer_cpu *c;

    if (cpu >= timer->cpus) {
        return false;
    }
    c = &timer->cpu[cpu];
    switch (key) {
    case SYSREG_CNTFRQ_EL0:
        /* Writable at the highest exception level, which is EL1 here. A note
         * of software to itself: the counter does not change. */
        atomic_store_explicit(&c->cntfrq, (uint32_t)value,
                              memory_order_relaxed);
        return true;
    case SYSREG_CNTKCTL_EL1:
        atomic_store_explicit(&c->cntkctl, (uint32_t)value & CNTKCTL_MASK,
                              memory_order_relaxed);
        return true;
    case SYSREG_CNTP_TVAL_EL0:
    case SYSREG_CNTP_CTL_EL0:
    case SYSREG_CNTP_CVAL_EL0:
    case SYSREG_CNTV_TVAL_EL0:
    case SYSREG_CNTV_CTL_EL0:
    case SYSREG_CNTV_CVAL_EL0:
        line_write(timer, c, key, value);
        return true;
    default:
        return false;
    }
}

bool arch_timer_el0_allowed(const struct arch_timer *timer, unsigned cpu,
                            uint32_t key)
{
    uint32_t cntkctl;

    if (cpu >= timer->cpus) {
        return false;
    }
    cntkctl =
        atomic_load_explicit(&timer->cpu[cpu].cntkctl, memory_order_relaxed);
    switch (key) {
    case SYSREG_CNTVCT_EL0:
    case SYSREG_CNTVCTSS_EL0:
        return (cntkctl & CNTKCTL_EL0VCTEN) != 0;
    case SYSREG_CNTPCT_EL0:
    case SYSREG_CNTPCTSS_EL0:
        return (cntkctl & CNTKCTL_EL0PCTEN) != 0;
    case SYSREG_CNTFRQ_EL0:
        return (cntkctl & (CNTKCTL_EL0PCTEN | CNTKCTL_EL0VCTEN)) != 0;
    case SYSREG_CNTV_TVAL_EL0:
    case SYSREG_CNTV_CTL_EL0:
    case SYSREG_CNTV_CVAL_EL0:
        return (cntkctl & CNTKCTL_EL0VTEN) != 0;
    case SYSREG_CNTP_TVAL_EL0:
    case SYSREG_CNTP_CTL_EL0:
    case SYSREG_CNTP_CVAL_EL0:
        return (cntkctl & CNTKCTL_EL0PTEN) != 0;
    default:
        return false;
    }
}

uint64_t arch_timer_deadline(const struct arch_timer *timer, unsigned cpu)
{
    if (cpu >= timer->cpus) {
        return ARCH_TIMER_NONE;
    }
    return atomic_load_explicit(&timer->cpu[cpu].deadline,
                                memory_order_relaxed);
}

void arch_timer_update(struct arch_timer *timer, unsigned cpu)
{
    struct timer_cpu *c;

    if (cpu >= timer->cpus) {
        return;
    }
    c = &timer->cpu[cpu];
    uv_mutex_lock(&c->lock);
    cpu_update_unlock(c, timer_now(timer));
}

void arch_timer_reset_cpu(struct arch_timer *timer, unsigned cpu)
{
    struct timer_cpu *c;

    if (cpu >= timer->cpus) {
        return;
    }
    c = &timer->cpu[cpu];
    atomic_store_explicit(&c->cntkctl, 0, memory_order_relaxed);
    atomic_store_explicit(&c->cntfrq, timer->frequency, memory_order_relaxed);
    uv_mutex_lock(&c->lock);
    for (unsigned i = 0; i < TIMER_KINDS; i++) {
        c->line[i].ctl = 0;
        c->line[i].cval = 0;
    }
    cpu_update_unlock(c, 0);
}

/* --- save and restore --- */

struct saved_line {
    uint64_t cval;
    uint32_t ctl;
    struct notify notify;
    uint8_t reserved; /* 0 */
};

/* One CPU; no gaps. */
struct saved_cpu {
    struct saved_line line[TIMER_KINDS];
    uint64_t deadline;
    uint32_t cntkctl, cntfrq;
};

_Static_assert(sizeof(struct saved_cpu) == 48, "no gaps");

size_t arch_timer_state_size(const struct arch_timer *timer)
{
    return timer->cpus * sizeof(struct saved_cpu);
}

void arch_timer_save(const struct arch_timer *timer, void *to)
{
    for (unsigned i = 0; i < timer->cpus; i++) {
        const struct timer_cpu *c = &timer->cpu[i];
        struct saved_cpu saved = {
            .deadline =
                atomic_load_explicit(&c->deadline, memory_order_relaxed),
            .cntkctl = atomic_load_explicit(&c->cntkctl, memory_order_relaxed),
            .cntfrq = atomic_load_explicit(&c->cntfrq, memory_order_relaxed),
        };

        for (unsigned k = 0; k < TIMER_KINDS; k++) {
            saved.line[k].cval = c->line[k].cval;
            saved.line[k].ctl = c->line[k].ctl;
            saved.line[k].notify = c->line[k].notify;
        }
        memcpy((uint8_t *)to + i * sizeof(saved), &saved, sizeof(saved));
    }
}

void arch_timer_restore(struct arch_timer *timer, const void *from)
{
    for (unsigned i = 0; i < timer->cpus; i++) {
        struct timer_cpu *c = &timer->cpu[i];
        struct saved_cpu saved;

        memcpy(&saved, (const uint8_t *)from + i * sizeof(saved),
               sizeof(saved));
        for (unsigned k = 0; k < TIMER_KINDS; k++) {
            c->line[k].cval = saved.line[k].cval;
            c->line[k].ctl = saved.line[k].ctl;
            c->line[k].notify = saved.line[k].notify;
        }
        /* relaxed: who made sure that nobody uses them orders this too. */
        atomic_store_explicit(&c->deadline, saved.deadline,
                              memory_order_relaxed);
        atomic_store_explicit(&c->cntkctl, saved.cntkctl, memory_order_relaxed);
        atomic_store_explicit(&c->cntfrq, saved.cntfrq, memory_order_relaxed);
    }
}

struct arch_timer *arch_timer_new(unsigned cpus, uint64_t frequency,
                                  const struct arch_timer_callbacks *callbacks,
                                  void *opaque)
{
    struct arch_timer *timer;

    if (cpus == 0 || cpus > BOARD_MAX_CPUS || frequency == 0 ||
        frequency > UINT32_MAX) {
        return NULL;
    }
    timer = g_new0(struct arch_timer, 1);
    timer->callbacks = *callbacks;
    timer->opaque = opaque;
    timer->frequency = (uint32_t)frequency;
    timer->cpu =
        aligned_alloc(_Alignof(struct timer_cpu), cpus * sizeof(*timer->cpu));
    if (timer->cpu == NULL) {
        g_free(timer);
        return NULL;
    }
    memset(timer->cpu, 0, cpus * sizeof(*timer->cpu));
    for (unsigned i = 0; i < cpus; i++) {
        struct timer_cpu *c = &timer->cpu[i];

        if (uv_mutex_init(&c->lock) != 0) {
            arch_timer_free(timer);
            return NULL;
        }
        timer->cpus = i + 1;
        c->line[TIMER_PHYS].intid = BOARD_TIMER_PHYS_INTID;
        c->line[TIMER_VIRT].intid = BOARD_TIMER_VIRT_INTID;
        for (unsigned k = 0; k < TIMER_KINDS; k++) {
            c->line[k].timer = timer;
            c->line[k].cpu = i;
        }
        atomic_store_explicit(&c->deadline, ARCH_TIMER_NONE,
                              memory_order_relaxed);
        atomic_store_explicit(&c->cntfrq, timer->frequency,
                              memory_order_relaxed);
    }
    return timer;
}

void arch_timer_free(struct arch_timer *timer)
{
    if (timer == NULL) {
        return;
    }
    for (unsigned i = 0; i < timer->cpus; i++) {
        uv_mutex_destroy(&timer->cpu[i].lock);
    }
    free(timer->cpu);
    g_free(timer);
}
