/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a machine, told to the ledger; see ledger_feed.h. */
#include "ledger_feed.h"

#include "table_pages.h"
#include "vm_priv.h"

/* More than a GiB at once is no frame. */
#define PAGES_MAX (UINT64_C(1) << 18)

bool ledger_feed_read64(const struct vm *vm, gpa_t pa, uint64_t *out)
{
    const uint64_t *host = vm_ram_at(vm, pa, sizeof(uint64_t));

    if (!host) {
        return false;
    }
    *out = __atomic_load_n(host, __ATOMIC_RELAXED);
    return true;
}

/* What is in memory, not what some walker would see of it. */
static bool read64(void *opaque, gpa_t pa, uint64_t *out)
{
    return ledger_feed_read64(opaque, pa, out);
}

static void root_load(struct ledger *ledger, struct vm *vm,
                      const struct event *e)
{
    const struct vcpu *vcpu = vm->vcpu[e->vcpu];
    unsigned asid_of = vcpu->tcr >> 22 & 1; /* TCR_EL1.A1 */
    uint64_t value = vcpu->ttbr[asid_of];
    uint16_t asid = (uint16_t)(value >> 48);

    if (!(vcpu->tcr >> 36 & 1)) { /* TCR_EL1.AS */
        asid &= 0xff;
    }
    ledger_root_load(ledger, e->vcpu, e->pc, (unsigned)e->a[0],
                     e->a[1] & DESC_ADDR_MASK, asid);
    if (e->a[0] == asid_of) { /* the other one's tables go by it as well */
        ledger_root_load(ledger, e->vcpu, e->pc, !asid_of,
                         vcpu->ttbr[!asid_of] & DESC_ADDR_MASK, asid);
    }
}

static void walk(struct ledger *ledger, struct vm *vm, const struct event *e)
{
    struct vcpu *vcpu = vm->vcpu[e->vcpu];
    struct walk_mem mem = {.read64 = read64, .opaque = vm};
    struct walk_result w = walk_stage1(&vcpu->regime, &mem, e->a[0]);
    unsigned half = e->a[0] >> 55 & 1, tables = 0;

    /* A table that some vCPU may still store to untrapped is not told of. */
    while (tables < w.tables && table_pages_is_settled(vm, w.table[tables])) {
        tables++;
    }
    if (tables) {
        ledger_walk(ledger, half, e->a[0], vcpu->regime.half[half].start_level,
                    w.table, tables);
    }
    if (half && e->kind == EVENT_walk) {
        ledger_walked(ledger, e->vcpu, e->pc, w.table, tables);
    }
}

static void tlbi(struct ledger *ledger, struct vm *vm, const struct event *e)
{
    struct tlbi_op op;

    if (tlbi_decode(0, 8, (unsigned)e->a[0] >> 3, e->a[0] & 7, e->a[1],
                    vm->vcpu[e->vcpu]->regime.asid16, &op)) {
        ledger_tlbi(ledger, e->vcpu, e->pc, &op);
    }
}

static void fault(struct ledger *ledger, const struct event *e)
{
    switch ((enum fault_class)e->a[0]) {
    case FAULT_TRANSLATION:
    case FAULT_ACCESS_FLAG:
    case FAULT_PERMISSION:
        ledger_fault(ledger, e->vcpu, e->pc, e->a[2]);
        break;
    default:
        ledger_progress(ledger, e->vcpu);
    }
}

static void frames(struct ledger *ledger, const struct event *e,
                   void (*tell)(struct ledger *, unsigned, uint64_t, gpa_t))
{
    uint64_t pages = MIN(e->a[1], PAGES_MAX);

    for (uint64_t i = 0; i < pages; i++) {
        tell(ledger, e->vcpu, e->pc, e->a[0] + i * MMU_PAGE_SIZE);
    }
}

static enum ledger_contract contract_of(uint64_t promise)
{
    return promise == ANNOT_PROMISE_NOWRITE    ? LEDGER_CONTRACT_NOWRITE
           : promise == ANNOT_PROMISE_NOACCESS ? LEDGER_CONTRACT_NOACCESS
                                               : LEDGER_CONTRACT_NONE;
}

static void on_promise(struct ledger *ledger, struct vm *vm,
                       const struct event *e)
{
    switch ((int)e->kind) {
    case EVENT_soft_walk_begin:
        ledger_soft_walk_begin(ledger, e->vcpu, e->a[0]);
        break;
    case EVENT_soft_walk_end:
        ledger_soft_walk_end(ledger, e->vcpu);
        break;
    case EVENT_flush_ask:
        ledger_flush_ask(ledger, e->vcpu, e->a[0]);
        break;
    case EVENT_flush_waited:
        ledger_flush_waited(ledger, e->vcpu, e->pc, e->a[0]);
        break;
    case EVENT_flush_served:
        if (e->a[1] < vm->cpus) {
            ledger_flush_served(ledger, (unsigned)e->a[1], e->a[0]);
        }
        break;
    case EVENT_flush_resume:
        if (e->a[0] < vm->cpus) {
            ledger_flush_resume(ledger, e->vcpu, e->pc, (unsigned)e->a[0]);
        }
        break;
    default:
        break;
    }
}

/* What the guest says of itself. */
static void on_annotation(struct ledger *ledger, struct vm *vm,
                          const struct event *e)
{
    switch ((int)e->kind) {
    case EVENT_frame_free:
        frames(ledger, e, ledger_frame_free);
        break;
    case EVENT_frame_alloc:
        frames(ledger, e, ledger_frame_alloc);
        break;
    case EVENT_io_begin:
        frames(ledger, e, ledger_io_begin);
        break;
    case EVENT_copy_begin:
        frames(ledger, e, ledger_copy_begin);
        break;
    case EVENT_op_begin:
        if (e->a[0] == ANNOT_OP_EXIT_MM && e->a[1]) {
            ledger_root_dying(ledger, e->a[1]);
        }
        ledger_op_begin(ledger, e->vcpu, e->a[4], (unsigned)e->a[0], e->a[1],
                        e->a[2], contract_of(e->a[3]));
        break;
    case EVENT_op_end:
        ledger_op_end(ledger, e->vcpu, e->pc, e->a[1], (unsigned)e->a[0]);
        break;
    case EVENT_frame_clean:
        frames(ledger, e, ledger_frame_clean);
        break;
    case EVENT_frame_drop:
        frames(ledger, e, ledger_frame_drop);
        break;
    default:
        on_promise(ledger, vm, e);
    }
}

void ledger_feed(struct ledger *ledger, struct vm *vm, const struct event *e)
{
    switch ((int)e->kind) {
    case EVENT_root_load:
        root_load(ledger, vm, e);
        break;
    case EVENT_walk:
    case EVENT_prefetch:
        walk(ledger, vm, e);
        break;
    case EVENT_pte_store:
        ledger_store(ledger, e->vcpu, e->pc, e->a[0], e->a[2]);
        break;
    case EVENT_pte_update:
        ledger_update(ledger, e->a[0], e->a[2]);
        break;
    case EVENT_tlbi:
        tlbi(ledger, vm, e);
        break;
    case EVENT_dsb_done:
        ledger_dsb(ledger, e->vcpu, e->pc,
                   ledger_dsb_of_crm((unsigned)e->a[0]));
        break;
    case EVENT_fault:
        fault(ledger, e);
        ledger_synced(ledger, e->vcpu,
                      e->a[3] ? LEDGER_SYNC_TAKEN_EL1 : LEDGER_SYNC_TAKEN_EL0);
        break;
    case EVENT_irq_take:
        ledger_synced(ledger, e->vcpu,
                      e->a[0] ? LEDGER_SYNC_TAKEN_EL1 : LEDGER_SYNC_TAKEN_EL0);
        break;
    case EVENT_isb:
        ledger_synced(ledger, e->vcpu, LEDGER_SYNC_ISB);
        break;
    case EVENT_hit_stale:
        ledger_hit(ledger, e->vcpu, e->a[0]);
        break;
    case EVENT_vcpu_stop:
        ledger_vcpu_off(ledger, e->vcpu);
        break;
    default:
        on_annotation(ledger, vm, e);
    }
}
