/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GICv3 memory-mapped registers: GICD and GICR. Any thread, any CPU's frame.
 *
 * Registers are 32-bit, apart from the 64-bit ones, which also take 32-bit
 * accesses to their halves, and the priorities, which also take bytes.
 * Anything else reads as zero, ignores writes and is counted. Both frames are
 * in one file, over 500 lines, because they share the banks.
 */
#include <string.h>

#include "dev/gic_priv.h"

/* Offsets: Arm IHI 0069, distributor and redistributor register maps. */
enum gicd_offset {
    GICD_CTLR = 0x0000,
    GICD_TYPER = 0x0004,
    GICD_IIDR = 0x0008,
    GICD_IROUTER = 0x6000, /* + 8 * INTID */
    GIC_PIDR = 0xffd0,     /* 12 words of identification, both frames */
};

/* Banks that distributor and SGI frame have at the same offsets. */
enum gic_bank {
    GIC_IGROUPR = 0x0080,
    GIC_ISENABLER = 0x0100,
    GIC_ICENABLER = 0x0180,
    GIC_ISPENDR = 0x0200,
    GIC_ICPENDR = 0x0280,
    GIC_ISACTIVER = 0x0300,
    GIC_ICACTIVER = 0x0380,
    GIC_IPRIORITYR = 0x0400,
    GIC_ICFGR = 0x0c00,
};

#define GIC_IPRIORITYR_END 0x0800
#define GIC_ICFGR_END 0x0d00
/* IGRPMODR follows ICFGR and is RAZ/WI with one security state. */
#define GIC_IGRPMODR_END 0x0d80

enum gicr_offset {
    GICR_CTLR = 0x0000,
    GICR_IIDR = 0x0004,
    GICR_TYPER = 0x0008, /* 64-bit */
    GICR_WAKER = 0x0014,
    GICR_PROPBASER = 0x0070, /* 64-bit, RAZ/WI: no LPIs */
    GICR_PENDBASER = 0x0078, /* 64-bit, RAZ/WI */
    GICR_SGI_FRAME = 0x10000,
};

#define GIC_IIDR_VALUE 0x43bu /* Implementer: Arm */

/* ITLinesNumber; IDbits = 15; A3V; No1N = 0 (1 of N works); RSS */
#define GICD_TYPER_VALUE                                                       \
    ((BOARD_INTIDS / 32 - 1u) | (0xfu << 19) | (1u << 24) | (1u << 26))

#define GICR_TYPER_LAST (1ull << 4)
#define GICR_WAKER_PROCESSOR_SLEEP (1u << 1)
#define GICR_WAKER_CHILDREN_ASLEEP (1u << 2)

/* PIDR4..7, PIDR0..3, CIDR0..3; PIDR2 says architecture revision 3. */
static const uint8_t gic_ids[12] = {0x44, 0x00, 0x00, 0x00, 0x92, 0xb4,
                                    0x3b, 0x00, 0x0d, 0xf0, 0x05, 0xb1};

static bool ids_read(uint64_t offset, unsigned size, uint64_t *out_value)
{
    if (offset < GIC_PIDR || offset >= GIC_PIDR + 48 || size != 4) {
        return false;
    }
    *out_value = gic_ids[(offset - GIC_PIDR) / 4];
    return true;
}

/* A 32-bit access to a half of a 64-bit register, or all of it. */
static uint64_t half_read(uint64_t value, uint64_t offset, unsigned size)
{
    if (size == 8) {
        return value;
    }
    return (offset & 4) != 0 ? value >> 32 : value & 0xffffffff;
}

static uint64_t half_write(uint64_t old, uint64_t offset, uint64_t value,
                           unsigned size)
{
    if (size == 8) {
        return value;
    }
    if ((offset & 4) != 0) {
        return (old & 0xffffffff) | (value << 32);
    }
    return (old & ~0xffffffffull) | (value & 0xffffffff);
}

/* --- the banks, for one word of 32 interrupts --- */

/* Where a word's state is: in a CPU (word 0) or in the distributor. */
struct gic_word {
    uint32_t *group, *enabled, *edge, *latch, *line, *active;
    uint8_t *priority;   /* of its first interrupt */
    uint32_t fixed_edge; /* bits whose configuration cannot change */
};

static struct gic_word word_of_cpu(struct gic_cpu *c)
{
    return (struct gic_word){
        .group = &c->state.group,
        .enabled = &c->state.enabled,
        .edge = &c->state.edge,
        .latch = &c->state.latch,
        .line = &c->state.line,
        .active = &c->state.active,
        .priority = c->state.priority,
        .fixed_edge = (1u << GIC_SGIS) - 1,
    };
}

static struct gic_word word_of_dist(struct gic *gic, unsigned word)
{
    return (struct gic_word){
        .group = &gic->dist.group[word],
        .enabled = &gic->dist.enabled[word],
        .edge = &gic->dist.edge[word],
        .latch = &gic->dist.latch[word],
        .line = &gic->dist.line[word],
        .active = &gic->dist.active[word],
        .priority = &gic->dist.priority[word * 32],
    };
}

/* ICFGR has two bits for each interrupt; the upper one says edge. */
static uint32_t icfgr_read(uint32_t edge, unsigned half)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < 16; i++) {
        if ((edge >> (half * 16 + i) & 1) != 0) {
            value |= 2u << (2 * i);
        }
    }
    return value;
}

static uint32_t icfgr_write(uint32_t edge, unsigned half, uint32_t value,
                            uint32_t fixed)
{
    for (unsigned i = 0; i < 16; i++) {
        uint32_t bit = 1u << (half * 16 + i);

        if ((bit & fixed) != 0) {
            continue;
        }
        if ((value >> (2 * i) & 2) != 0) {
            edge |= bit;
        } else {
            edge &= ~bit;
        }
    }
    return edge;
}

/* An access within the banks, taken apart. */
struct bank_access {
    enum gic_bank bank;
    unsigned word;  /* 32 interrupts each */
    unsigned first; /* IPRIORITYR: first interrupt within the word;
                     * ICFGR: which half */
};

/* False: not an access that the banks have. */
static bool bank_decode(uint64_t offset, unsigned size, struct bank_access *out)
{
    if (offset >= GIC_IPRIORITYR && offset < GIC_IPRIORITYR_END) {
        unsigned intid = (unsigned)(offset - GIC_IPRIORITYR);

        if (size != 1 && size != 4) {
            return false;
        }
        out->bank = GIC_IPRIORITYR;
        out->word = intid / 32;
        out->first = intid % 32;
        return true;
    }
    if (size != 4) {
        return false;
    }
    if (offset >= GIC_ICFGR && offset < GIC_ICFGR_END) {
        unsigned index = (unsigned)(offset - GIC_ICFGR) / 4;

        out->bank = GIC_ICFGR;
        out->word = index / 2;
        out->first = index % 2;
        return true;
    }
    if (offset >= GIC_IGROUPR && offset < GIC_IPRIORITYR) {
        out->bank = (enum gic_bank)(offset & ~0x7full);
        out->word = (unsigned)(offset & 0x7f) / 4;
        out->first = 0;
        return true;
    }
    return false;
}

static uint32_t bank_read(const struct gic_word *w,
                          const struct bank_access *access, unsigned size)
{
    uint32_t value = 0;

    switch (access->bank) {
    case GIC_IGROUPR:
        return *w->group;
    case GIC_ISENABLER:
    case GIC_ICENABLER:
        return *w->enabled;
    case GIC_ISPENDR:
    case GIC_ICPENDR:
        return *w->latch | (*w->line & ~*w->edge);
    case GIC_ISACTIVER:
    case GIC_ICACTIVER:
        return *w->active;
    case GIC_IPRIORITYR:
        for (unsigned i = 0; i < size; i++) {
            value |= (uint32_t)w->priority[access->first + i] << (8 * i);
        }
        return value;
    case GIC_ICFGR:
        return icfgr_read(*w->edge, access->first);
    default:
        return 0;
    }
}

/* Returns the interrupts that may have changed. */
static uint32_t bank_write(const struct gic_word *w,
                           const struct bank_access *access, uint32_t value,
                           unsigned size)
{
    switch (access->bank) {
    case GIC_IGROUPR:
        *w->group = value;
        return 0xffffffff;
    case GIC_ISENABLER:
        *w->enabled |= value;
        return value;
    case GIC_ICENABLER:
        *w->enabled &= ~value;
        return value;
    case GIC_ISPENDR:
        *w->latch |= value;
        return value;
    case GIC_ICPENDR:
        *w->latch &= ~value;
        return value;
    case GIC_ISACTIVER:
        *w->active |= value;
        return value;
    case GIC_ICACTIVER:
        *w->active &= ~value;
        return value;
    case GIC_IPRIORITYR:
        for (unsigned i = 0; i < size; i++) {
            w->priority[access->first + i] =
                (uint8_t)(value >> (8 * i)) & GIC_PRIORITY_MASK;
        }
        return (size == 4 ? 0xfu : 1u) << access->first;
    case GIC_ICFGR:
        *w->edge = icfgr_write(*w->edge, access->first, value, w->fixed_edge);
        return 0xffffffff;
    default:
        return 0;
    }
}

/* --- distributor --- */

static bool irouter_decode(uint64_t offset, unsigned size, unsigned *out_intid)
{
    uint64_t intid = (offset - GICD_IROUTER) / 8;

    if (offset < GICD_IROUTER + 8 * GIC_PRIVATE || intid >= BOARD_INTIDS ||
        size < 4) {
        return false;
    }
    *out_intid = (unsigned)intid;
    return true;
}

static uint64_t dist_read(void *opaque, unsigned cpu, uint64_t offset,
                          unsigned size)
{
    struct gic *gic = opaque;
    struct bank_access access;
    uint64_t value = 0;
    unsigned intid;

    (void)cpu;
    if (size == 4 && offset == GICD_CTLR) {
        return atomic_load_explicit(&gic->ctlr, memory_order_relaxed) |
               GICD_CTLR_ARE | GICD_CTLR_DS;
    }
    if (size == 4 && offset == GICD_TYPER) {
        return GICD_TYPER_VALUE;
    }
    if (size == 4 && offset == GICD_IIDR) {
        return GIC_IIDR_VALUE;
    }
    if (ids_read(offset, size, &value)) {
        return value;
    }
    if (bank_decode(offset, size, &access)) {
        /* With affinity routing word 0 is RES0 here, and so are words past
         * the last SPI. */
        if (access.word > 0 && access.word < GIC_WORDS) {
            struct gic_word w = word_of_dist(gic, access.word);

            uv_mutex_lock(&gic->lock);
            value = bank_read(&w, &access, size);
            uv_mutex_unlock(&gic->lock);
        }
        return value;
    }
    if (irouter_decode(offset, size, &intid)) {
        uv_mutex_lock(&gic->lock);
        value = half_read(gic->dist.irouter[intid], offset, size);
        uv_mutex_unlock(&gic->lock);
        return value;
    }
    if (size != 4 || offset < GIC_ICFGR_END || offset >= GIC_IGRPMODR_END) {
        gic_count_unknown(gic);
    }
    return 0;
}

static void dist_write_ctlr(struct gic *gic, uint32_t value)
{
    atomic_store_explicit(
        &gic->ctlr, value & (GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1),
        memory_order_relaxed);
    /* Each CPU that computed its signal with the old value did so before we
     * take its lock. */
    for (unsigned i = 0; i < gic->cpus; i++) {
        uv_mutex_lock(&gic->cpu[i].lock);
        gic_cpu_unlock_and_tell(&gic->cpu[i]);
    }
}

static void dist_write_irouter(struct gic *gic, unsigned intid, uint64_t offset,
                               uint64_t value, unsigned size)
{
    struct gic_cpu_set set = {{0}};
    uint64_t old;

    uv_mutex_lock(&gic->lock);
    old = gic->dist.irouter[intid];
    value = half_write(old, offset, value, size) & GIC_IROUTER_MASK;
    gic->dist.irouter[intid] = value;
    if ((old & ~value & GIC_IROUTER_IRM) != 0) {
        atomic_fetch_sub(&gic->irm_spis, 1);
    } else if ((value & ~old & GIC_IROUTER_IRM) != 0) {
        atomic_fetch_add(&gic->irm_spis, 1);
    }
    gic_spi_route_locked(gic, intid, &set);
    gic_unlock_and_tell(gic, &set);
}

static void dist_write(void *opaque, unsigned cpu, uint64_t offset,
                       uint64_t value, unsigned size)
{
    struct gic *gic = opaque;
    struct bank_access access;
    unsigned intid;

    (void)cpu;
    if (size == 4 && offset == GICD_CTLR) {
        dist_write_ctlr(gic, (uint32_t)value);
        return;
    }
    if (bank_decode(offset, size, &access)) {
        struct gic_cpu_set set = {{0}};
        struct gic_word w;
        uint32_t changed;

        if (access.word == 0 || access.word >= GIC_WORDS) {
            return;
        }
        w = word_of_dist(gic, access.word);
        uv_mutex_lock(&gic->lock);
        changed = bank_write(&w, &access, (uint32_t)value, size);
        gic_spi_word_changed_locked(gic, access.word, changed, &set);
        gic_unlock_and_tell(gic, &set);
        return;
    }
    if (irouter_decode(offset, size, &intid)) {
        dist_write_irouter(gic, intid, offset, value, size);
        return;
    }
    if (size != 4 || offset < GIC_ICFGR_END || offset >= GIC_IGRPMODR_END) {
        gic_count_unknown(gic);
    }
}

const struct device_ops gic_dist_ops = {
    .read = dist_read,
    .write = dist_write,
};

/* --- redistributors --- */

/* The CPU of a frame; the bus made sure that there is one. */
static struct gic_cpu *redist_cpu(const struct gic_redist_region *region,
                                  uint64_t *offset)
{
    uint64_t index = *offset / BOARD_GICR_STRIDE;

    *offset %= BOARD_GICR_STRIDE;
    return &region->gic->cpu[region->first_cpu + index];
}

static uint64_t redist_typer(const struct gic_cpu *c)
{
    uint64_t typer =
        ((uint64_t)BOARD_CPU_AFFINITY(c->id) << 32) | ((uint64_t)c->id << 8);

    /* The last frame of each region: software walks a region to there. */
    if (c->id == c->gic->cpus - 1 || c->id == BOARD_GICR_CPUS - 1) {
        typer |= GICR_TYPER_LAST;
    }
    return typer;
}

/* RAZ/WI registers that exist: LPI tables, and IGRPMODR in the SGI frame. */
static bool redist_is_raz(uint64_t offset, unsigned size)
{
    if (offset >= GICR_PROPBASER && offset < GICR_PENDBASER + 8) {
        return size >= 4;
    }
    return size == 4 && offset >= GICR_SGI_FRAME + GIC_ICFGR_END &&
           offset < GICR_SGI_FRAME + GIC_IGRPMODR_END;
}

static uint64_t redist_read(void *opaque, unsigned cpu, uint64_t offset,
                            unsigned size)
{
    struct gic_redist_region *region = opaque;
    struct gic_cpu *c = redist_cpu(region, &offset);
    struct bank_access access;
    uint64_t value = 0;

    (void)cpu;
    if (size >= 4 && (offset & ~4ull) == GICR_TYPER) {
        return half_read(redist_typer(c), offset, size);
    }
    if (size == 4 && offset == GICR_CTLR) {
        return 0;
    }
    if (size == 4 && offset == GICR_IIDR) {
        return GIC_IIDR_VALUE;
    }
    if (size == 4 && offset == GICR_WAKER) {
        uv_mutex_lock(&c->lock);
        value = c->state.asleep
                    ? GICR_WAKER_PROCESSOR_SLEEP | GICR_WAKER_CHILDREN_ASLEEP
                    : 0;
        uv_mutex_unlock(&c->lock);
        return value;
    }
    if (ids_read(offset, size, &value) || redist_is_raz(offset, size)) {
        return value;
    }
    if (offset >= GICR_SGI_FRAME &&
        bank_decode(offset - GICR_SGI_FRAME, size, &access) &&
        access.word == 0) {
        struct gic_word w = word_of_cpu(c);

        uv_mutex_lock(&c->lock);
        value = bank_read(&w, &access, size);
        uv_mutex_unlock(&c->lock);
        return value;
    }
    gic_count_unknown(region->gic);
    return 0;
}

static void redist_write(void *opaque, unsigned cpu, uint64_t offset,
                         uint64_t value, unsigned size)
{
    struct gic_redist_region *region = opaque;
    struct gic_cpu *c = redist_cpu(region, &offset);
    struct bank_access access;

    (void)cpu;
    if (size == 4 && offset == GICR_WAKER) {
        /* Kept and mirrored only: like QEMU and KVM, an interrupt reaches a
         * CPU interface that software never woke. */
        uv_mutex_lock(&c->lock);
        c->state.asleep = (value & GICR_WAKER_PROCESSOR_SLEEP) != 0;
        uv_mutex_unlock(&c->lock);
        return;
    }
    if (offset >= GICR_SGI_FRAME &&
        bank_decode(offset - GICR_SGI_FRAME, size, &access) &&
        access.word == 0) {
        struct gic_word w = word_of_cpu(c);

        uv_mutex_lock(&c->lock);
        (void)bank_write(&w, &access, (uint32_t)value, size);
        gic_cpu_unlock_and_tell(c);
        return;
    }
    /* CTLR has no bit that could change here. */
    if (!(size == 4 && offset == GICR_CTLR) && !redist_is_raz(offset, size)) {
        gic_count_unknown(region->gic);
    }
}

const struct device_ops gic_redist_ops = {
    .read = redist_read,
    .write = redist_write,
};
