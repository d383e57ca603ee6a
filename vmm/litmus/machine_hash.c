/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a litmus machine as a number; see machine.h. */
#include "litmus/machine.h"

#include "litmus/machine_priv.h"
#include "sysreg.h"

static void mix(struct litmus_hash *h, uint64_t value)
{
    h->word[0] = (h->word[0] ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    h->word[0] ^= h->word[0] >> 29;
    h->word[1] = (h->word[1] + value) * UINT64_C(0xc2b2ae3d27d4eb4f);
    h->word[1] ^= h->word[1] >> 32;
}

static void hash_registers(struct litmus_machine *m, unsigned thread,
                           struct litmus_hash *h)
{
    static const uint32_t of_handler[] = {SYSREG_ELR_EL1, SYSREG_SPSR_EL1,
                                          SYSREG_ESR_EL1, SYSREG_FAR_EL1};
    struct vcpu *vcpu = m->vm->vcpu[thread];

    mix(h, engine_pc(vcpu->engine));
    mix(h, engine_pstate(vcpu->engine));
    for (unsigned r = 0; r < LITMUS_REGS; r++) {
        if (m->registers[thread] >> r & 1) {
            mix(h, engine_x(vcpu->engine, r));
        }
    }
    for (unsigned i = 0;
         m->image->handler[thread] && i < G_N_ELEMENTS(of_handler); i++) {
        uint64_t value = 0;

        (void)engine_sysreg(vcpu->engine, of_handler[i], &value);
        mix(h, value);
    }
    if (vcpu->monitor.armed &&
        exclusive_state_holds(m->vm->exclusives, &vcpu->monitor)) {
        mix(h, vcpu->monitor.gpa | 1);
    }
}

static void hash_tlb(struct litmus_machine *m, unsigned thread,
                     struct litmus_hash *h)
{
    struct vcpu *vcpu = m->vm->vcpu[thread];
    struct inval_item item;

    for (unsigned i = 0; i < m->test->vars; i++) {
        const struct tlb_entry *entry =
            tlb_peek(vcpu->tlb, litmus_page_va(i), vcpu->regime.asid);

        mix(h, entry ? entry->t.base | entry->t.perms |
                           (uint64_t)entry->t.dbm << 62 | UINT64_C(1) << 63
                     : 0);
    }
    for (unsigned i = 0; inval_peek(vcpu->inval, i, &item); i++) {
        mix(h, item.issuer);
        mix(h, item.op.va | (uint64_t)item.op.kind | (uint64_t)item.op.asid);
        mix(h, litmus_is_applied(m, thread, &item));
    }
}

static void hash_memory(struct litmus_machine *m, struct litmus_hash *h)
{
    for (unsigned i = 0; i < m->test->vars; i++) {
        for (unsigned e = 0; e < m->test->var[i].count; e++) {
            mix(h, litmus_variable_value(m, i, e));
        }
        mix(h, litmus_descriptor(m, i));
    }
}

/* Of one word after the other: order between words does not count. */
static void hash_late(struct litmus_machine *m, struct litmus_hash *h)
{
    const struct pte_buffer *hidden = m->vm->det->hidden;
    const struct pte_store *store;

    for (unsigned i = 0; i < m->test->vars; i++) {
        gpa_t pa = litmus_table_pa(LITMUS_VARS) + i * sizeof(uint64_t);

        for (unsigned k = 0; (store = pte_buffer_at(hidden, k)) != NULL; k++) {
            if (store->pa == pa) {
                mix(h, store->writer + UINT64_C(1));
                mix(h, store->old);
            }
        }
        mix(h, m->update[i].pending ? m->update[i].thread + UINT64_C(1) : 0);
        mix(h, m->update[i].pending ? m->update[i].now : 0);
    }
}

/* The set of faults; its order does not count. */
static void hash_faults(struct litmus_machine *m, struct litmus_hash *h)
{
    struct litmus_hash sum = {{0, 0}};

    for (guint i = 0; i < m->taken->len; i++) {
        const struct litmus_taken *t =
            &g_array_index(m->taken, struct litmus_taken, i);
        struct litmus_hash one = {{1, 1}};

        mix(&one, t->thread);
        mix(&one, (uintptr_t)t->insn);
        mix(&one, (uint64_t)t->var);
        mix(&one, t->kind);
        sum.word[0] += one.word[0];
        sum.word[1] += one.word[1];
    }
    mix(h, sum.word[0]);
    mix(h, sum.word[1]);
}

struct litmus_hash litmus_state_hash(struct litmus_machine *m)
{
    struct litmus_hash h = {{1, 2}};

    for (unsigned i = 0; i < m->test->threads; i++) {
        hash_registers(m, i, &h);
        hash_tlb(m, i, &h);
        mix(&h, m->began[i]);
    }
    hash_memory(m, &h);
    hash_late(m, &h);
    hash_faults(m, &h);
    return h;
}
