/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GICv3 state: input lines, choice of the next interrupt, routing of SPIs and
 * the IRQ signals. Any thread; locks as described in gic_priv.h.
 */
#include "dev/gic.h"

#include <stdlib.h>
#include <string.h>

#include "dev/gic_priv.h"

/* --- choice for one CPU --- */

static unsigned lowest_bit(uint32_t bits)
{
    return (unsigned)__builtin_ctz(bits);
}

struct gic_best gic_cpu_best_locked(const struct gic_cpu *c)
{
    struct gic_best best = {.intid = c->state.spi,
                            .priority = c->state.spi_priority};
    uint32_t ready = gic_private_pending(c) & c->state.enabled &
                     c->state.group & ~c->state.active;
    uint32_t ctlr = atomic_load_explicit(&c->gic->ctlr, memory_order_relaxed);

    if ((ctlr & GICD_CTLR_ENABLE_GRP1) == 0) {
        return (struct gic_best){
            .intid = GIC_NO_INTID,
            .priority = GIC_PRIORITY_IDLE,
        };
    }

    /* From the top down, so that of equal priorities the lowest INTID wins;
     * private ones are lower than any SPI. */
    while (ready != 0) {
        unsigned intid = 31 - (unsigned)__builtin_clz(ready);

        if (best.intid == GIC_NO_INTID ||
            c->state.priority[intid] <= best.priority) {
            best.intid = (uint16_t)intid;
            best.priority = c->state.priority[intid];
        }
        ready &= ~(1u << intid);
    }
    return best;
}

/* The bits of a priority that decide preemption. */
uint32_t gic_cpu_group_mask(const struct gic_cpu *c)
{
    unsigned bpr = c->state.cbpr ? c->state.bpr0 : c->state.bpr1 - 1u;

    return (0xffu << (bpr + 1)) & 0xffu;
}

uint8_t gic_cpu_running_priority(const struct gic_cpu *c)
{
    uint32_t levels = c->state.ap0r | c->state.ap1r;

    return levels == 0 ? GIC_PRIORITY_IDLE
                       : (uint8_t)(lowest_bit(levels) << GIC_PRIORITY_SHIFT);
}

bool gic_cpu_signals_locked(const struct gic_cpu *c, struct gic_best best)
{
    return best.intid != GIC_NO_INTID && c->state.grpen1 &&
           best.priority < c->state.pmr &&
           (best.priority & gic_cpu_group_mask(c)) <
               gic_cpu_running_priority(c);
}

static void cpu_tell(void *arg, bool level)
{
    struct gic_cpu *c = arg;

    c->gic->callbacks.irq_changed(c->gic->opaque, c->id, level);
}

void gic_cpu_unlock_and_tell(struct gic_cpu *c)
{
    bool want = gic_cpu_signals_locked(c, gic_cpu_best_locked(c));

    /* Release: who sees the signal also sees what caused it. */
    atomic_store_explicit(&c->irq, want, memory_order_release);
    notify_run_locked(&c->state.notify, &c->lock, want, cpu_tell, c);
    uv_mutex_unlock(&c->lock);
}

bool gic_irq_pending(const struct gic *gic, unsigned cpu)
{
    return cpu < gic->cpus &&
           atomic_load_explicit(&gic->cpu[cpu].irq, memory_order_acquire);
}

/* --- SPIs --- */

int gic_affinity_cpu(const struct gic *gic, uint64_t affinity)
{
    unsigned aff0 = affinity & 0xff;
    unsigned aff1 = (affinity >> 8) & 0xff;
    unsigned cpu = aff1 * BOARD_CLUSTER_CPUS + aff0;

    if ((affinity & 0xff00ff0000ull) != 0 || aff0 >= BOARD_CLUSTER_CPUS ||
        cpu >= gic->cpus) {
        return GIC_NO_TARGET;
    }
    return (int)cpu;
}

void gic_cpu_choose_spi_locked(struct gic *gic, struct gic_cpu *c)
{
    c->state.spi = GIC_NO_INTID;
    c->state.spi_priority = GIC_PRIORITY_IDLE;
    for (unsigned word = 1; word < GIC_WORDS; word++) {
        uint32_t ready = gic_spi_pending(gic, word) & gic->dist.enabled[word] &
                         gic->dist.group[word] & ~gic->dist.active[word];

        while (ready != 0) {
            unsigned intid = word * 32 + lowest_bit(ready);

            ready &= ready - 1;
            if (gic->dist.target[intid] == (int)c->id &&
                (c->state.spi == GIC_NO_INTID ||
                 gic->dist.priority[intid] < c->state.spi_priority)) {
                c->state.spi = (uint16_t)intid;
                c->state.spi_priority = gic->dist.priority[intid];
            }
        }
    }
}

static void set_add(struct gic_cpu_set *set, int cpu)
{
    if (cpu != GIC_NO_TARGET) {
        set->word[cpu / 64] |= 1ull << (cpu % 64);
    }
}

void gic_spi_changed_locked(struct gic *gic, unsigned intid,
                            struct gic_cpu_set *set)
{
    set_add(set, gic->dist.target[intid]);
}

void gic_spi_word_changed_locked(struct gic *gic, unsigned word, uint32_t bits,
                                 struct gic_cpu_set *set)
{
    while (bits != 0) {
        gic_spi_changed_locked(gic, word * 32 + lowest_bit(bits), set);
        bits &= bits - 1;
    }
}

/* 1 of N: the first CPU that has group 1 enabled. */
static int irm_target(const struct gic *gic)
{
    for (unsigned i = 0; i < gic->cpus; i++) {
        if (atomic_load(&gic->cpu[i].takes_spis)) {
            return (int)i;
        }
    }
    return GIC_NO_TARGET;
}

void gic_spi_route_locked(struct gic *gic, unsigned intid,
                          struct gic_cpu_set *set)
{
    uint64_t route = gic->dist.irouter[intid];

    set_add(set, gic->dist.target[intid]);
    gic->dist.target[intid] = (int16_t)((route & GIC_IROUTER_IRM) != 0
                                            ? irm_target(gic)
                                            : gic_affinity_cpu(gic, route));
    set_add(set, gic->dist.target[intid]);
}

void gic_retarget_irm(struct gic *gic)
{
    struct gic_cpu_set set = {{0}};

    if (atomic_load(&gic->irm_spis) == 0) {
        return;
    }
    uv_mutex_lock(&gic->lock);
    for (unsigned intid = GIC_PRIVATE; intid < BOARD_INTIDS; intid++) {
        if ((gic->dist.irouter[intid] & GIC_IROUTER_IRM) != 0) {
            gic_spi_route_locked(gic, intid, &set);
        }
    }
    gic_unlock_and_tell(gic, &set);
}

void gic_unlock_and_tell(struct gic *gic, const struct gic_cpu_set *set)
{
    /*
     * Choose while the SPIs hold still, tell when the lock is gone. A change
     * in between chooses and tells for itself.
     */
    for (unsigned i = 0; i < GIC_MAX_CPUS / 64; i++) {
        for (uint64_t bits = set->word[i]; bits != 0; bits &= bits - 1) {
            struct gic_cpu *c =
                &gic->cpu[i * 64 + (unsigned)__builtin_ctzll(bits)];

            uv_mutex_lock(&c->lock);
            gic_cpu_choose_spi_locked(gic, c);
            uv_mutex_unlock(&c->lock);
        }
    }
    uv_mutex_unlock(&gic->lock);
    for (unsigned i = 0; i < GIC_MAX_CPUS / 64; i++) {
        for (uint64_t bits = set->word[i]; bits != 0; bits &= bits - 1) {
            struct gic_cpu *c =
                &gic->cpu[i * 64 + (unsigned)__builtin_ctzll(bits)];

            uv_mutex_lock(&c->lock);
            gic_cpu_unlock_and_tell(c);
        }
    }
}

/* --- input lines --- */

void gic_set_ppi(struct gic *gic, unsigned cpu, unsigned intid, bool level)
{
    struct gic_cpu *c;
    uint32_t bit;

    if (cpu >= gic->cpus || intid < GIC_SGIS || intid >= GIC_PRIVATE) {
        return;
    }
    c = &gic->cpu[cpu];
    bit = 1u << intid;
    uv_mutex_lock(&c->lock);
    if (level) {
        c->state.latch |= bit & c->state.edge & ~c->state.line;
        c->state.line |= bit;
    } else {
        c->state.line &= ~bit;
    }
    gic_cpu_unlock_and_tell(c);
}

void gic_set_spi(struct gic *gic, unsigned intid, bool level)
{
    struct gic_cpu_set set = {{0}};
    unsigned word = intid / 32;
    uint32_t bit = 1u << (intid % 32);

    if (intid < GIC_PRIVATE || intid >= BOARD_INTIDS) {
        return;
    }
    uv_mutex_lock(&gic->lock);
    if (level) {
        gic->dist.latch[word] |=
            bit & gic->dist.edge[word] & ~gic->dist.line[word];
        gic->dist.line[word] |= bit;
    } else {
        gic->dist.line[word] &= ~bit;
    }
    gic_spi_changed_locked(gic, intid, &set);
    gic_unlock_and_tell(gic, &set);
}

/* --- life --- */

static void cpu_interface_reset_locked(struct gic_cpu *c)
{
    c->state.pmr = 0;
    c->state.bpr0 = GIC_BPR0_MIN;
    c->state.bpr1 = GIC_BPR1_MIN;
    c->state.eoi_mode = false;
    c->state.cbpr = false;
    c->state.grpen0 = false;
    c->state.grpen1 = false;
    c->state.ap0r = 0;
    c->state.ap1r = 0;
    atomic_store(&c->takes_spis, false);
}

void gic_reset_cpu(struct gic *gic, unsigned cpu)
{
    struct gic_cpu *c;

    if (cpu >= gic->cpus) {
        return;
    }
    c = &gic->cpu[cpu];
    uv_mutex_lock(&c->lock);
    cpu_interface_reset_locked(c);
    gic_cpu_unlock_and_tell(c);
    gic_retarget_irm(gic);
}

static bool cpu_init(struct gic *gic, unsigned id)
{
    struct gic_cpu *c = &gic->cpu[id];

    if (uv_mutex_init(&c->lock) != 0) {
        return false;
    }
    c->gic = gic;
    c->id = id;
    c->state.edge =
        (1u << GIC_SGIS) - 1; /* SGIs are edges; PPIs start as levels */
    c->state.asleep = true;
    c->state.spi = GIC_NO_INTID;
    c->state.spi_priority = GIC_PRIORITY_IDLE;
    cpu_interface_reset_locked(c);
    return true;
}

struct gic *gic_new(unsigned cpus, const struct gic_callbacks *callbacks,
                    void *opaque)
{
    struct gic *gic;

    if (cpus == 0 || cpus > GIC_MAX_CPUS) {
        return NULL;
    }
    gic = g_new0(struct gic, 1);
    if (uv_mutex_init(&gic->lock) != 0) {
        g_free(gic);
        return NULL;
    }
    gic->callbacks = *callbacks;
    gic->opaque = opaque;
    gic->cpu =
        aligned_alloc(_Alignof(struct gic_cpu), cpus * sizeof(*gic->cpu));
    if (gic->cpu == NULL) {
        gic_free(gic);
        return NULL;
    }
    memset(gic->cpu, 0, cpus * sizeof(*gic->cpu));
    for (unsigned i = 0; i < cpus; i++) {
        if (!cpu_init(gic, i)) {
            gic_free(gic);
            return NULL;
        }
        gic->cpus = i + 1;
    }
    gic->region[0] = (struct gic_redist_region){.gic = gic, .first_cpu = 0};
    gic->region[1] = (struct gic_redist_region){
        .gic = gic,
        .first_cpu = BOARD_GICR_CPUS,
    };
    return gic;
}

void gic_free(struct gic *gic)
{
    if (gic == NULL) {
        return;
    }
    for (unsigned i = 0; i < gic->cpus; i++) {
        uv_mutex_destroy(&gic->cpu[i].lock);
    }
    free(gic->cpu);
    uv_mutex_destroy(&gic->lock);
    g_free(gic);
}

bool gic_attach(struct gic *gic, struct bus *bus, GError **error)
{
    unsigned low = MIN(gic->cpus, BOARD_GICR_CPUS);
    struct device_desc desc = {
        .name = "gicd",
        .base = BOARD_GICD_BASE,
        .size = BOARD_GICD_SIZE,
        .min_access = 1,
        .max_access = 8,
        .ops = &gic_dist_ops,
        .opaque = gic,
    };

    if (!bus_attach(bus, &desc, error)) {
        return false;
    }
    desc.name = "gicr";
    desc.base = BOARD_GICR_BASE;
    desc.size = low * BOARD_GICR_STRIDE;
    desc.ops = &gic_redist_ops;
    desc.opaque = &gic->region[0];
    if (!bus_attach(bus, &desc, error)) {
        return false;
    }
    if (gic->cpus == low) {
        return true;
    }
    desc.name = "gicr2";
    desc.base = BOARD_GICR2_BASE;
    desc.size = (gic->cpus - low) * BOARD_GICR_STRIDE;
    desc.opaque = &gic->region[1];
    return bus_attach(bus, &desc, error);
}

/* --- save and restore --- */

/* Then the distributor, then each CPU. */
struct gic_saved_head {
    uint32_t ctlr, irm_spis;
};

size_t gic_state_size(const struct gic *gic)
{
    return sizeof(struct gic_saved_head) + sizeof(gic->dist) +
           gic->cpus * sizeof(struct gic_cpu_state);
}

void gic_save(const struct gic *gic, void *to)
{
    struct gic_saved_head head = {
        .ctlr = atomic_load_explicit(&gic->ctlr, memory_order_relaxed),
        .irm_spis = atomic_load_explicit(&gic->irm_spis, memory_order_relaxed),
    };
    uint8_t *at = to;

    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    memcpy(at, &gic->dist, sizeof(gic->dist));
    at += sizeof(gic->dist);
    for (unsigned i = 0; i < gic->cpus; i++) {
        memcpy(at, &gic->cpu[i].state, sizeof(gic->cpu[i].state));
        at += sizeof(gic->cpu[i].state);
    }
}

void gic_restore(struct gic *gic, const void *from)
{
    struct gic_saved_head head;
    const uint8_t *at = from;

    memcpy(&head, at, sizeof(head));
    at += sizeof(head);
    atomic_store_explicit(&gic->ctlr, head.ctlr, memory_order_relaxed);
    atomic_store_explicit(&gic->irm_spis, head.irm_spis, memory_order_relaxed);
    memcpy(&gic->dist, at, sizeof(gic->dist));
    at += sizeof(gic->dist);
    for (unsigned i = 0; i < gic->cpus; i++) {
        struct gic_cpu *c = &gic->cpu[i];

        memcpy(&c->state, at, sizeof(c->state));
        at += sizeof(c->state);
        /*
         * Both say again what the state says. relaxed: who made sure that
         * nobody uses the GIC orders this too.
         */
        atomic_store_explicit(&c->irq, c->state.notify.want,
                              memory_order_relaxed);
        atomic_store_explicit(&c->takes_spis, c->state.grpen1,
                              memory_order_relaxed);
    }
}

uint64_t gic_sgis_sent(const struct gic *gic, unsigned cpu)
{
    return cpu < gic->cpus ? atomic_load_explicit(&gic->cpu[cpu].sgis_sent,
                                                  memory_order_relaxed)
                           : 0;
}

uint64_t gic_acks(const struct gic *gic, unsigned cpu)
{
    return cpu < gic->cpus
               ? atomic_load_explicit(&gic->cpu[cpu].acks, memory_order_relaxed)
               : 0;
}

uint64_t gic_unknown_accesses(const struct gic *gic)
{
    return atomic_load_explicit(&gic->unknown, memory_order_relaxed);
}
