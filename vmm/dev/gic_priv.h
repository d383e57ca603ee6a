/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GICv3 internals, shared by gic.c (state and selection), gic_mmio.c
 * (GICD and GICR registers) and gic_cpuif.c (ICC registers).
 *
 * Locks: one per CPU for its SGIs, PPIs and CPU interface, so that an IPI
 * touches nothing shared; one for the distributor's SPIs. Order: distributor,
 * then a CPU; never two CPUs. The callback is called under neither.
 *
 * The winner among the SPIs routed to a CPU is computed under the
 * distributor's lock and left in the CPU (gic_cpu.spi), so that selecting the
 * CPU's best interrupt needs only the CPU's lock. Acknowledging an SPI takes
 * both and selects again.
 */
#ifndef DEV_GIC_PRIV_H
#define DEV_GIC_PRIV_H

#include <stdatomic.h>
#include <uv.h>

#include "abi/board.h"
#include "dev/gic.h"
#include "dev/notify_priv.h"

#define GIC_PRIVATE 32 /* SGIs 0..15, PPIs 16..31 */
#define GIC_SGIS 16
#define GIC_WORDS (BOARD_INTIDS / 32) /* word 0 is the private one: unused */

/*
 * Five priority bits: 7:3. The binary point of group 1 counts one more than
 * the one of group 0, so its smallest value, 3, splits below bit 3 as well:
 * 32 preemption levels, one bit each in AP1R0.
 */
#define GIC_PRIORITY_MASK 0xf8u
#define GIC_PRIORITY_SHIFT 3
#define GIC_PRIORITY_IDLE 0xffu
#define GIC_BPR0_MIN 2
#define GIC_BPR1_MIN 3
#define GIC_BPR_MAX 7

#define GIC_NO_INTID GIC_INTID_SPURIOUS
#define GIC_NO_TARGET (-1)

/*
 * What a CPU's part of the GIC consists of: plain data, saved and restored as
 * it is. No gaps, so that equal states are equal bytes.
 */
struct gic_cpu_state {
    /* SGIs and PPIs, a bit each */
    uint32_t group, enabled, edge;
    uint32_t latch; /* pending by edge, by SGI or by ISPENDR */
    uint32_t line;  /* input level */
    uint32_t active;
    uint32_t ap0r, ap1r; /* CPU interface, as from pmr on */
    uint8_t priority[GIC_PRIVATE];
    /* the best SPI routed here; also under the distributor's lock */
    uint16_t spi;
    uint8_t spi_priority;
    bool asleep; /* GICR_WAKER.ProcessorSleep */
    uint8_t pmr, bpr0, bpr1;
    bool eoi_mode, cbpr, grpen0, grpen1;
    struct notify notify;
    uint8_t reserved[2]; /* 0 */
};

_Static_assert(sizeof(struct gic_cpu_state) == 80, "no gaps");

struct gic_cpu {
    _Alignas(64) uv_mutex_t lock;
    struct gic *gic;  /* [init] */
    unsigned id;      /* [init] */
    _Atomic bool irq; /* [atomic] release by the holder of the lock, acquire
                       * in gic_irq_pending() */
    _Atomic bool takes_spis; /* [atomic] seq_cst; grpen1, for 1-of-N routing */
    struct gic_cpu_state state; /* [lock: lock] */
    /* [atomic] relaxed, statistics */
    _Atomic uint64_t sgis_sent, acks;
};

/* A region of redistributors on the bus. */
struct gic_redist_region {
    struct gic *gic;
    unsigned first_cpu;
};

/* CPUs whose signal must be looked at once the distributor's lock is free. */
struct gic_cpu_set {
    uint64_t word[GIC_MAX_CPUS / 64];
};

/* The same for the SPIs; word 0 and entries 0..31 are unused. */
struct gic_dist_state {
    uint64_t irouter[BOARD_INTIDS];
    uint32_t group[GIC_WORDS], enabled[GIC_WORDS], edge[GIC_WORDS];
    uint32_t latch[GIC_WORDS], line[GIC_WORDS], active[GIC_WORDS];
    int16_t target[BOARD_INTIDS]; /* CPU or GIC_NO_TARGET */
    uint8_t priority[BOARD_INTIDS];
};

_Static_assert(sizeof(struct gic_dist_state) ==
                   BOARD_INTIDS * 11 + GIC_WORDS * 24,
               "no gaps");

struct gic {
    unsigned cpus;                      /* [init] */
    struct gic_callbacks callbacks;     /* [init] */
    void *opaque;                       /* [init] */
    struct gic_cpu *cpu;                /* [init] array of cpus */
    struct gic_redist_region region[2]; /* [init] */
    _Atomic uint32_t ctlr; /* [atomic] relaxed; GICD_CTLR enables. A change
                            * is followed by taking every CPU's lock */
    /*
     * [atomic] seq_cst: SPIs routed 1-of-N. Routing one adds here, then reads
     * every takes_spis; enabling a CPU sets takes_spis, then reads this. One
     * of the two sees the other.
     */
    _Atomic unsigned irm_spis;
    _Atomic uint64_t unknown; /* [atomic] relaxed, a statistic */
    uv_mutex_t lock;
    struct gic_dist_state dist; /* [lock: lock] */
};

#define GICD_CTLR_ENABLE_GRP0 (1u << 0)
#define GICD_CTLR_ENABLE_GRP1 (1u << 1)
#define GICD_CTLR_ARE (1u << 4)
#define GICD_CTLR_DS (1u << 6)

#define GIC_IROUTER_IRM (1ull << 31)
#define GIC_IROUTER_MASK (0xff00ffffffull | GIC_IROUTER_IRM)

/* What a CPU would take next. */
struct gic_best {
    uint16_t intid; /* GIC_NO_INTID: nothing */
    uint8_t priority;
};

/* --- gic.c --- */

/* Highest-priority pending, enabled, inactive group 1 interrupt of a CPU,
 * masks aside. */
struct gic_best gic_cpu_best_locked(const struct gic_cpu *c);

/* That interrupt passes PMR, the running priority and the enables. */
bool gic_cpu_signals_locked(const struct gic_cpu *c, struct gic_best best);

uint32_t gic_cpu_group_mask(const struct gic_cpu *c);
uint8_t gic_cpu_running_priority(const struct gic_cpu *c);

/* Takes over the held lock and releases it; tells the callback. */
void gic_cpu_unlock_and_tell(struct gic_cpu *c);

static inline uint32_t gic_private_pending(const struct gic_cpu *c)
{
    return c->state.latch | (c->state.line & ~c->state.edge);
}

/* SPI words, under the distributor's lock. */
static inline uint32_t gic_spi_pending(const struct gic *gic, unsigned word)
{
    return gic->dist.latch[word] |
           (gic->dist.line[word] & ~gic->dist.edge[word]);
}

/* An SPI's state changed: choose again for its target. Collects the CPU. */
void gic_spi_changed_locked(struct gic *gic, unsigned intid,
                            struct gic_cpu_set *set);
/* The same for all SPIs of a word whose bits are set. */
void gic_spi_word_changed_locked(struct gic *gic, unsigned word, uint32_t bits,
                                 struct gic_cpu_set *set);
/* IROUTER was written, or who takes 1-of-N interrupts changed. */
void gic_spi_route_locked(struct gic *gic, unsigned intid,
                          struct gic_cpu_set *set);
void gic_retarget_irm(struct gic *gic);
/* Releases the distributor's lock, then looks at the collected CPUs. */
void gic_unlock_and_tell(struct gic *gic, const struct gic_cpu_set *set);
/* Chooses the SPI of a CPU again; both locks held. */
void gic_cpu_choose_spi_locked(struct gic *gic, struct gic_cpu *c);

/* CPU with this affinity (IROUTER layout), or GIC_NO_TARGET. */
int gic_affinity_cpu(const struct gic *gic, uint64_t affinity);

static inline void gic_count_unknown(struct gic *gic)
{
    atomic_fetch_add_explicit(&gic->unknown, 1, memory_order_relaxed);
}

/* --- gic_mmio.c --- */

extern const struct device_ops gic_dist_ops;   /* opaque: struct gic */
extern const struct device_ops gic_redist_ops; /* gic_redist_region */

#endif
