/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The deterministic scheduler's part of a snapshot. */
#include <string.h>

#include "det_priv.h"

/* What follows it: struct det_vcpu of each, base_ps holding the clock. */
struct det_saved {
    uint64_t now_ps, first_timer_ps;
    unsigned last, asking;
    unsigned waiting, irqs_pending;
    struct det_hot hot;
    gpa_t walked_pa[DET_WALKED];
    gva_t walked_va[DET_WALKED];
};

size_t det_state_size(const struct det *det)
{
    return sizeof(struct det_saved) + det->cpus * sizeof(struct det_vcpu);
}

void det_state_save(struct det *det, void *to)
{
    struct det_saved *s = to;
    struct det_vcpu *v = (struct det_vcpu *)(s + 1);

    g_assert(!det->current);
    s->now_ps = det->now_ps;
    s->first_timer_ps = det->first_timer_ps;
    s->last = det->last;
    s->asking = det->asking;
    s->waiting = det->waiting;
    s->irqs_pending = det->irqs_pending;
    s->hot = det->hot;
    memcpy(s->walked_pa, det->walked_pa, sizeof(s->walked_pa));
    memcpy(s->walked_va, det->walked_va, sizeof(s->walked_va));
    for (unsigned i = 0; i < det->cpus; i++) {
        v[i] = det->v[i];
        v[i].passed_pc = VIEW_NO_PAGE;
        /* Counters go on over a restore, clocks do not. */
        v[i].base_ps = det_clock_ps(det, i);
    }
    det->next = NULL;
    for (unsigned i = 0; i < det->cpus; i++) {
        det->v[i].passed_pc = VIEW_NO_PAGE;
    }
    if (det->hidden) {
        pte_buffer_copy(det->hidden_saved, det->hidden);
    }
}

void det_state_restore(struct det *det, const void *from)
{
    const struct det_saved *s = from;
    const struct det_vcpu *v = (const struct det_vcpu *)(s + 1);

    det->now_ps = s->now_ps;
    det->first_timer_ps = s->first_timer_ps;
    det->last = s->last;
    det->asking = s->asking;
    det->waiting = s->waiting;
    det->irqs_pending = s->irqs_pending;
    det->hot = s->hot;
    memcpy(det->walked_pa, s->walked_pa, sizeof(s->walked_pa));
    memcpy(det->walked_va, s->walked_va, sizeof(s->walked_va));
    for (unsigned i = 0; i < det->cpus; i++) {
        det->v[i] = v[i];
        det->v[i].base_ps = 0;
        det->v[i].base_ps = v[i].base_ps - det_clock_ps(det, i);
    }
    det->current = NULL;
    det->next = NULL;
    det->paused = false;
    if (det->hidden) {
        pte_buffer_copy(det->hidden, det->hidden_saved);
    }
}
