/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GICv3 CPU interface: the ICC_*_EL1 system registers. Called by the thread
 * of the CPU that executes the instruction; SGIs reach into other CPUs under
 * their locks.
 */
#include "dev/gic_priv.h"

#include <string.h>

#define ICC_CTLR_CBPR (1u << 0)
#define ICC_CTLR_EOIMODE (1u << 1)
/* PRIbits = 5 bits; IDbits = 16 bits; A3V; RSS */
#define ICC_CTLR_FIXED ((4u << 8) | (1u << 15) | (1u << 18))
#define ICC_SRE_VALUE 7u /* SRE, DFB and DIB, all fixed */

/* --- acknowledge and end --- */

static void cpu_activate_locked(struct gic_cpu *c, struct gic_best best)
{
    uint32_t level =
        (best.priority & gic_cpu_group_mask(c)) >> GIC_PRIORITY_SHIFT;

    c->state.ap1r |= 1u << level;
    atomic_fetch_add_explicit(&c->acks, 1, memory_order_relaxed);
}

/* An SPI looked best. With both locks it may turn out otherwise. */
static unsigned cpu_acknowledge_spi(struct gic *gic, struct gic_cpu *c)
{
    struct gic_cpu_set set = {{0}};
    unsigned intid = GIC_INTID_SPURIOUS;
    struct gic_best best;

    uv_mutex_lock(&gic->lock);
    uv_mutex_lock(&c->lock);
    gic_cpu_choose_spi_locked(gic, c);
    best = gic_cpu_best_locked(c);
    if (gic_cpu_signals_locked(c, best)) {
        intid = best.intid;
        if (intid < GIC_PRIVATE) {
            c->state.latch &= ~(1u << intid);
            c->state.active |= 1u << intid;
        } else {
            gic->dist.latch[intid / 32] &= ~(1u << (intid % 32));
            gic->dist.active[intid / 32] |= 1u << (intid % 32);
            gic_spi_changed_locked(gic, intid, &set);
        }
        cpu_activate_locked(c, best);
    }
    set.word[c->id / 64] |= 1ull << (c->id % 64);
    uv_mutex_unlock(&c->lock);
    gic_unlock_and_tell(gic, &set);
    return intid;
}

static unsigned cpu_acknowledge(struct gic *gic, struct gic_cpu *c)
{
    struct gic_best best;

    uv_mutex_lock(&c->lock);
    best = gic_cpu_best_locked(c);
    if (!gic_cpu_signals_locked(c, best)) {
        uv_mutex_unlock(&c->lock);
        return GIC_INTID_SPURIOUS;
    }
    if (best.intid >= GIC_PRIVATE) {
        uv_mutex_unlock(&c->lock);
        return cpu_acknowledge_spi(gic, c);
    }
    c->state.latch &= ~(1u << best.intid);
    c->state.active |= 1u << best.intid;
    cpu_activate_locked(c, best);
    gic_cpu_unlock_and_tell(c);
    return best.intid;
}

static void spi_deactivate(struct gic *gic, unsigned intid)
{
    struct gic_cpu_set set = {{0}};

    uv_mutex_lock(&gic->lock);
    gic->dist.active[intid / 32] &= ~(1u << (intid % 32));
    gic_spi_changed_locked(gic, intid, &set);
    gic_unlock_and_tell(gic, &set);
}

static void cpu_end(struct gic *gic, struct gic_cpu *c, uint64_t value)
{
    unsigned intid = value & 0xffffff;
    bool deactivate;

    /* The special INTIDs, and numbers that no interrupt of ours has. */
    if (intid >= BOARD_INTIDS) {
        return;
    }
    uv_mutex_lock(&c->lock);
    c->state.ap1r &= c->state.ap1r - 1; /* priority drop: the highest level is
                                         * the lowest bit; 0 stays 0 */
    deactivate = !c->state.eoi_mode;
    if (deactivate && intid < GIC_PRIVATE) {
        c->state.active &= ~(1u << intid);
    }
    gic_cpu_unlock_and_tell(c);
    if (deactivate && intid >= GIC_PRIVATE) {
        spi_deactivate(gic, intid);
    }
}

static void cpu_deactivate(struct gic *gic, struct gic_cpu *c, uint64_t value)
{
    unsigned intid = value & 0xffffff;
    bool eoi_mode;

    if (intid >= BOARD_INTIDS) {
        return;
    }
    uv_mutex_lock(&c->lock);
    eoi_mode = c->state.eoi_mode; /* DIR does nothing in the other mode */
    if (eoi_mode && intid < GIC_PRIVATE) {
        c->state.active &= ~(1u << intid);
    }
    gic_cpu_unlock_and_tell(c);
    if (eoi_mode && intid >= GIC_PRIVATE) {
        spi_deactivate(gic, intid);
    }
}

/* --- SGIs --- */

/* Makes an SGI pending, if it is of a group that the register can send. */
static void cpu_take_sgi(struct gic_cpu *c, uint32_t bit, bool group1)
{
    uv_mutex_lock(&c->lock);
    if ((c->state.latch & bit) != 0 ||
        (!group1 && (c->state.group & bit) != 0)) {
        uv_mutex_unlock(&c->lock);
        return;
    }
    c->state.latch |= bit;
    gic_cpu_unlock_and_tell(c);
}

static void sgi_add_target(struct gic_sgi *sgi, unsigned cpu)
{
    sgi->targets[cpu / 64] |= 1ull << (cpu % 64);
    sgi->count++;
}

/*
 * ICC_SGI1R_EL1 and its relatives:
 * Aff3 [55:48] RS [47:44] IRM [40] Aff2 [39:32] INTID [27:24] Aff1 [23:16]
 * TargetList [15:0]; bit n of the list is Aff0 = RS * 16 + n.
 */
static void sgi_decode(const struct gic *gic, unsigned self, uint64_t value,
                       struct gic_sgi *out)
{
    uint64_t affinity = (((value >> 16) & 0xff) << 8) |
                        (((value >> 32) & 0xff) << 16) |
                        (((value >> 48) & 0xff) << 32);

    memset(out, 0, sizeof(*out));
    out->valid = true;
    out->intid = (value >> 24) & 0xf;
    out->all_others = (value >> 40 & 1) != 0;
    if (out->all_others) {
        for (unsigned i = 0; i < gic->cpus; i++) {
            if (i != self) {
                sgi_add_target(out, i);
            }
        }
        return;
    }
    for (unsigned list = value & 0xffff; list != 0; list &= list - 1) {
        uint64_t aff0 =
            ((value >> 44) & 0xf) * 16 + (unsigned)__builtin_ctz(list);
        int cpu = gic_affinity_cpu(gic, affinity | aff0);

        /* Affinities that no CPU has are ignored. */
        if (cpu != GIC_NO_TARGET) {
            sgi_add_target(out, (unsigned)cpu);
        }
    }
}

static void sgi_send(struct gic *gic, unsigned self, uint64_t value,
                     bool group1, struct gic_sgi *out)
{
    struct gic_sgi local;
    struct gic_sgi *sgi = out != NULL ? out : &local;
    uint32_t bit;

    sgi_decode(gic, self, value, sgi);
    bit = 1u << sgi->intid;
    /* Before delivery: who takes the SGI already sees it counted. */
    atomic_fetch_add_explicit(&gic->cpu[self].sgis_sent, sgi->count,
                              memory_order_relaxed);
    for (unsigned i = 0; i < GIC_MAX_CPUS / 64; i++) {
        for (uint64_t bits = sgi->targets[i]; bits != 0; bits &= bits - 1) {
            cpu_take_sgi(&gic->cpu[i * 64 + (unsigned)__builtin_ctzll(bits)],
                         bit, group1);
        }
    }
}

/* --- registers --- */

bool gic_sysreg_read(struct gic *gic, unsigned cpu, uint32_t key,
                     uint64_t *out_value)
{
    struct gic_cpu *c;
    uint64_t value = 0;

    if (cpu >= gic->cpus) {
        return false;
    }
    c = &gic->cpu[cpu];
    if (key == SYSREG_ICC_IAR1_EL1) {
        *out_value = cpu_acknowledge(gic, c);
        return true;
    }
    uv_mutex_lock(&c->lock);
    switch (key) {
    case SYSREG_ICC_HPPIR1_EL1:
        value = gic_cpu_best_locked(c).intid;
        break;
    case SYSREG_ICC_IAR0_EL1: /* group 0 is never signalled */
    case SYSREG_ICC_HPPIR0_EL1:
        value = GIC_INTID_SPURIOUS;
        break;
    case SYSREG_ICC_PMR_EL1:
        value = c->state.pmr;
        break;
    case SYSREG_ICC_BPR0_EL1:
        value = c->state.bpr0;
        break;
    case SYSREG_ICC_BPR1_EL1:
        value = c->state.cbpr ? MIN(c->state.bpr0 + 1u, GIC_BPR_MAX)
                              : c->state.bpr1;
        break;
    case SYSREG_ICC_AP0R0_EL1:
        value = c->state.ap0r;
        break;
    case SYSREG_ICC_AP1R0_EL1:
        value = c->state.ap1r;
        break;
    case SYSREG_ICC_RPR_EL1:
        value = gic_cpu_running_priority(c);
        break;
    case SYSREG_ICC_CTLR_EL1:
        value = ICC_CTLR_FIXED | (c->state.cbpr ? ICC_CTLR_CBPR : 0) |
                (c->state.eoi_mode ? ICC_CTLR_EOIMODE : 0);
        break;
    case SYSREG_ICC_SRE_EL1:
        value = ICC_SRE_VALUE;
        break;
    case SYSREG_ICC_IGRPEN0_EL1:
        value = c->state.grpen0;
        break;
    case SYSREG_ICC_IGRPEN1_EL1:
        value = c->state.grpen1;
        break;
    default:
        uv_mutex_unlock(&c->lock);
        return false;
    }
    uv_mutex_unlock(&c->lock);
    *out_value = value;
    return true;
}

static uint8_t bpr_clamp(uint64_t value, unsigned min)
{
    unsigned bpr = value & 7;

    return (uint8_t)MAX(bpr, min);
}

/* Registers that are only state of this CPU. */
static bool cpu_write_state(struct gic *gic, struct gic_cpu *c, uint32_t key,
                            uint64_t value)
{
    bool enables_changed = false;

    uv_mutex_lock(&c->lock);
    switch (key) {
    case SYSREG_ICC_PMR_EL1:
        c->state.pmr = value & GIC_PRIORITY_MASK;
        break;
    case SYSREG_ICC_BPR0_EL1:
        c->state.bpr0 = bpr_clamp(value, GIC_BPR0_MIN);
        break;
    case SYSREG_ICC_BPR1_EL1:
        if (!c->state.cbpr) {
            c->state.bpr1 = bpr_clamp(value, GIC_BPR1_MIN);
        }
        break;
    case SYSREG_ICC_AP0R0_EL1:
        c->state.ap0r = (uint32_t)value;
        break;
    case SYSREG_ICC_AP1R0_EL1:
        c->state.ap1r = (uint32_t)value;
        break;
    case SYSREG_ICC_CTLR_EL1:
        c->state.cbpr = (value & ICC_CTLR_CBPR) != 0;
        c->state.eoi_mode = (value & ICC_CTLR_EOIMODE) != 0;
        break;
    case SYSREG_ICC_SRE_EL1: /* nothing can change */
        break;
    case SYSREG_ICC_IGRPEN0_EL1:
        c->state.grpen0 = (value & 1) != 0;
        break;
    case SYSREG_ICC_IGRPEN1_EL1:
        enables_changed = c->state.grpen1 != ((value & 1) != 0);
        c->state.grpen1 = (value & 1) != 0;
        atomic_store(&c->takes_spis, c->state.grpen1);
        break;
    default:
        uv_mutex_unlock(&c->lock);
        return false;
    }
    gic_cpu_unlock_and_tell(c);
    if (enables_changed) {
        gic_retarget_irm(gic);
    }
    return true;
}

bool gic_sysreg_write(struct gic *gic, unsigned cpu, uint32_t key,
                      uint64_t value, struct gic_sgi *out_sgi)
{
    struct gic_cpu *c;

    if (out_sgi != NULL) {
        out_sgi->valid = false;
    }
    if (cpu >= gic->cpus) {
        return false;
    }
    c = &gic->cpu[cpu];
    switch (key) {
    case SYSREG_ICC_SGI1R_EL1:
        sgi_send(gic, cpu, value, true, out_sgi);
        return true;
    case SYSREG_ICC_SGI0R_EL1:
    case SYSREG_ICC_ASGI1R_EL1:
        /* With one security state both reach group 0 SGIs only. */
        sgi_send(gic, cpu, value, false, out_sgi);
        return true;
    case SYSREG_ICC_EOIR1_EL1:
        cpu_end(gic, c, value);
        return true;
    case SYSREG_ICC_DIR_EL1:
        cpu_deactivate(gic, c, value);
        return true;
    case SYSREG_ICC_EOIR0_EL1: /* no group 0 interrupt is ever active */
        return true;
    default:
        return cpu_write_state(gic, c, key, value);
    }
}
