/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB look-up, walk, insertion, permission check; and the two-level rule: the
 * engine's micro-TLB holds nothing that the modelled TLB does not.
 */
#include "translate.h"

#include "det.h"
#include "execview.h"
#include "mmu/inject.h"
#include "mmu/prefetch.h"
#include "table_pages.h"
#include "vm_priv.h"
#include "written.h"

static bool read_descriptor(void *opaque, gpa_t pa, uint64_t *out)
{
    struct vcpu *vcpu = opaque;
    const uint64_t *host = vm_ram_at(vcpu->vm, pa, sizeof(uint64_t));

    if (!host) {
        return false;
    }
    /*
     * acquire: a walker that sees a descriptor sees what was stored before
     * it; the guest's side is its DSB ISHST or store-release.
     */
    *out = __atomic_load_n(host, __ATOMIC_ACQUIRE);
    if (vcpu->vm->det) {
        det_pte_read(vcpu, pa, out);
    }
    return true;
}

/* Hardware updates of the access flag and the dirty state. */
static bool swap_descriptor(void *opaque, gpa_t pa, uint64_t expected,
                            uint64_t desired)
{
    struct vcpu *vcpu = opaque;
    uint64_t *host = vm_ram_at(vcpu->vm, pa, sizeof(uint64_t));
    bool done;

    if (!host) {
        return false;
    }
    if (vcpu->vm->det) {
        det_pte_updates(vcpu, pa);
    }
    written_note(vcpu->vm, pa);
    ledger_watch_lock(vcpu->vm->ledger);
    done = __atomic_compare_exchange_n(host, &expected, desired, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (done) {
        event_emit(vcpu->events, vcpu->id, EVENT_pte_update, 0, pa, expected,
                   desired);
    }
    ledger_watch_unlock(vcpu->vm->ledger);
    return done;
}

/* For walks on behalf of an access. */
static struct walk_mem memory_of(struct vcpu *vcpu)
{
    return (struct walk_mem){
        .read64 = read_descriptor,
        .opaque = vcpu,
        .cas64 = vcpu->vm->hafdbs ? swap_descriptor : NULL,
    };
}

/* For walks that must leave no trace in memory. */
static struct walk_mem read_only_memory_of(struct vcpu *vcpu)
{
    return (struct walk_mem){.read64 = read_descriptor, .opaque = vcpu};
}

static struct view_cache_line *view_line(struct vcpu *vcpu, gva_t page)
{
    return &vcpu->view_cache[(page >> MMU_PAGE_SHIFT) % VCPU_VIEW_CACHE];
}

static void drop_page(struct vcpu *vcpu, gva_t page)
{
    struct view_cache_line *line = view_line(vcpu, page);

    if (line->page == page) {
        line->page = VIEW_NO_PAGE;
    }
    engine_drop_page(vcpu->engine, page);
    vcpu->counters->micro_drops++;
}

static void drop_own_entry(struct vcpu *vcpu, const struct tlb_entry *entry)
{
    if (vcpu->vm->det && (view_line(vcpu, entry->va)->page == entry->va ||
                          entry->t.page_shift != MMU_PAGE_SHIFT)) {
        /*
         * Translated code jumps to more of its page without asking, unless
         * the jump is new: both stop at the next block and ask then.
         */
        vcpu_request(vcpu, VCPU_REQ_LOOK);
    }
    if ((entry->owner_tag != vcpu->micro_epoch && !vcpu->sibling) ||
        vcpu->micro_stale) {
        return; /* never granted since the last flush, or all goes anyway */
    }
    if (entry->t.page_shift == MMU_PAGE_SHIFT && !vcpu->micro_tagged) {
        drop_page(vcpu, entry->va);
    } else {
        translate_flush_micro(vcpu);
    }
}

/* Drops what the micro-TLB may hold of an entry that left the TLB. */
static void drop_entry(struct vcpu *vcpu, const struct tlb_entry *entry)
{
    drop_own_entry(vcpu, entry);
    if (vcpu->sibling) {
        drop_own_entry(vcpu->sibling, entry);
    }
}

static struct tlb_entry *insert(struct vcpu *vcpu, gva_t va,
                                const struct translation *t, gva_t pc,
                                enum event_kind kind)
{
    struct tlb_entry evicted;
    struct tlb_entry *entry =
        tlb_insert(vcpu->tlb, va, vcpu->regime.asid, t, &evicted);

    event_emit(vcpu->events, vcpu->id, kind, pc, va, vcpu->regime.asid, t->base,
               t->page_shift, t->perms, t->level);
    if (evicted.valid) {
        event_emit(vcpu->events, vcpu->id, EVENT_evict, pc, evicted.va,
                   evicted.asid, evicted.t.base, evicted.t.page_shift);
        drop_entry(vcpu, &evicted);
    }
    if (vcpu->vm->det) {
        det_inserted(vcpu, entry);
        /* Look-ups may prefer another entry for the address. */
        entry = (struct tlb_entry *)tlb_peek(vcpu->tlb, va, vcpu->regime.asid);
    }
    return entry;
}

/*
 * The entry for va. In the deterministic engines a look-up leaves no trace:
 * how many there are depends on the micro-TLB, whose size the engine changes
 * by the clock.
 */
static struct tlb_entry *look_up(struct vcpu *vcpu, gva_t va,
                                 enum access_type type, gva_t pc)
{
    struct tlb_entry *entry;

    if (vcpu->vm->det) {
        return (struct tlb_entry *)tlb_peek(vcpu->tlb, va, vcpu->regime.asid);
    }
    vcpu->counters->tlb_lookups++;
    entry = tlb_lookup(vcpu->tlb, va, vcpu->regime.asid);
    if (entry) {
        event_emit(vcpu->events, vcpu->id, EVENT_hit, pc, va, vcpu->regime.asid,
                   entry->t.base, entry->t.page_shift, entry->t.perms, type);
    }
    return entry;
}

/*
 * --inject faulting-cached: a fault in the TLB is an entry without permissions
 * whose output address no memory has; the low bits name the fault.
 */
#define CACHED_FAULT (UINT64_C(1) << 63)

static void cache_fault(struct vcpu *vcpu, gva_t va,
                        const struct walk_result *w, gva_t pc)
{
    const struct translation t = {
        .base = CACHED_FAULT | (uint64_t)w->fault,
        .page_shift = MMU_PAGE_SHIFT,
        .level = w->level,
    };

    if (vcpu->vm->inject & INJECT_BIT(INJECT_FAULTING_CACHED) &&
        (w->fault == WALK_FAULT_TRANSLATION ||
         w->fault == WALK_FAULT_ACCESS_FLAG)) {
        (void)insert(vcpu, va, &t, pc, EVENT_fill);
    }
}

static bool is_cached_fault(const struct tlb_entry *entry,
                            struct translate_fault *out_fault)
{
    if (!(entry->t.base & CACHED_FAULT)) {
        return false;
    }
    out_fault->fault = (enum walk_fault)(entry->t.base & ~CACHED_FAULT);
    out_fault->level = entry->t.level;
    return true;
}

/*
 * The translation of va: from the TLB, or walked and inserted. With the MMU
 * off *flat is filled and returned NULL with WALK_OK.
 */
static struct tlb_entry *find(struct vcpu *vcpu, gva_t va,
                              enum access_type type, gva_t pc,
                              struct translate_fault *out_fault,
                              struct translation *flat)
{
    struct vcpu_counters *c = vcpu->counters;
    struct walk_mem mem = memory_of(vcpu);
    struct tlb_entry *entry;
    struct walk_result w;

    out_fault->fault = WALK_OK;
    out_fault->level = 0;
    if (vcpu->regime.mmu_on) {
        va = regime_canonical(&vcpu->regime, va);
        entry = look_up(vcpu, va, type, pc);
        if (entry) {
            return vcpu->vm->inject && is_cached_fault(entry, out_fault)
                       ? NULL
                       : entry;
        }
        w = walk_stage1_from(&vcpu->regime, &mem, tlb_walk_cache(vcpu->tlb),
                             va);
        c->walk_tables += w.tables;
        table_pages_note(vcpu, &w);
        event_emit(vcpu->events, vcpu->id, EVENT_walk, pc, va,
                   vcpu->regime.asid, w.fault, w.level, w.tables, w.desc);
        if (vcpu->vm->det) {
            det_walked(vcpu, va, &w);
        }
    } else {
        w = walk_stage1(&vcpu->regime, &mem, va);
    }
    if (w.fault != WALK_OK) {
        out_fault->fault = w.fault;
        out_fault->level = w.level;
        if (vcpu->vm->inject && vcpu->regime.mmu_on) {
            cache_fault(vcpu, va, &w, pc);
        }
        return NULL;
    }
    if (w.t.flat) {
        *flat = w.t;
        return NULL;
    }
    return insert(vcpu, va, &w.t, pc, EVENT_fill);
}

void translate_prefetch(struct vcpu *vcpu, gva_t va)
{
    struct walk_mem mem = read_only_memory_of(vcpu);
    struct walk_result w;

    va = regime_canonical(&vcpu->regime, va);
    if (!vcpu->regime.mmu_on || tlb_peek(vcpu->tlb, va, vcpu->regime.asid)) {
        return;
    }
    w = walk_stage1_from(&vcpu->regime, &mem, tlb_walk_cache(vcpu->tlb), va);
    table_pages_note(vcpu, &w);
    if (w.fault == WALK_OK) {
        (void)insert(vcpu, va, &w.t, 0, EVENT_prefetch);
    }
}

bool translate_pick_leaf(struct vcpu *vcpu, unsigned half,
                         unsigned (*pick)(void *opaque, unsigned n),
                         void *opaque, gva_t *out_va)
{
    struct walk_mem mem = read_only_memory_of(vcpu);

    return vcpu->regime.mmu_on &&
           walk_random_leaf(&vcpu->regime, &mem, half, pick, opaque, out_va);
}

void translate_drop(struct vcpu *vcpu, struct tlb_entry *entry)
{
    struct tlb_entry copy = *entry;

    event_emit(vcpu->events, vcpu->id, EVENT_evict, 0, copy.va, copy.asid,
               copy.t.base, copy.t.page_shift);
    tlb_drop(vcpu->tlb, entry);
    drop_entry(vcpu, &copy);
}

void translate_evict(struct vcpu *vcpu, gva_t va)
{
    struct tlb_entry *entry = (struct tlb_entry *)tlb_peek(
        vcpu->tlb, regime_canonical(&vcpu->regime, va), vcpu->regime.asid);

    if (entry) {
        translate_drop(vcpu, entry);
    }
}

/*
 * Checks the access against what find() gave, and makes a writable-clean page
 * dirty where the access asks for it; *entry is then another one.
 */
static void check(struct vcpu *vcpu, gva_t va, const struct access *access,
                  gva_t pc, struct tlb_entry **entry,
                  const struct translation **t, struct translate_fault *result)
{
    struct walk_mem mem = memory_of(vcpu);
    struct walk_result w;

    result->fault = translation_check(*t, access);
    result->level = (*t)->level;
    if (result->fault == WALK_OK || !*entry ||
        !translation_needs_dirty(*t, access)) {
        return;
    }
    va = regime_canonical(&vcpu->regime, va);
    result->fault = walk_mark_dirty(&vcpu->regime, &mem,
                                    tlb_walk_cache(vcpu->tlb), va, access, &w);
    result->level = w.level;
    if (result->fault == WALK_OK) {
        translate_drop(vcpu, *entry);
        *entry = insert(vcpu, va, &w.t, pc, EVENT_fill);
        *t = &(*entry)->t;
        /* Not what was inserted, if break-before-make was skipped. */
        result->fault = translation_check(*t, access);
        result->level = (*t)->level;
    }
}

struct translate_fault translate(struct vcpu *vcpu, gva_t va,
                                 const struct access *access, gpa_t *out_pa)
{
    struct translation flat;
    struct translate_fault result;
    struct tlb_entry *entry =
        find(vcpu, va, access->type, vcpu->watch->block_va, &result, &flat);
    const struct translation *t = entry ? &entry->t : &flat;

    if (result.fault == WALK_OK) {
        check(vcpu, va, access, vcpu->watch->block_va, &entry, &t, &result);
    }
    if (result.fault == WALK_OK) {
        *out_pa = translation_pa(
            t, vcpu->regime.mmu_on ? regime_canonical(&vcpu->regime, va) : va);
    }
    return result;
}

struct walk_result translate_walk(struct vcpu *vcpu, gva_t va, bool updates)
{
    struct walk_mem mem = updates ? memory_of(vcpu) : read_only_memory_of(vcpu);

    return walk_stage1(&vcpu->regime, &mem, va);
}

static bool refuse(struct vcpu *vcpu, struct refused_fill refused)
{
    refused.valid = true;
    vcpu->refused = refused;
    return false;
}

static const struct exec_view *view_of(struct vcpu *vcpu, gpa_t pa)
{
    struct vm *vm = vcpu->vm;
    void *host = vm_ram_at(vm, pa, MMU_PAGE_SIZE);
    const struct exec_view *view;
    bool made;

    if (!host) {
        return NULL;
    }
    view = exec_views_get(vm->views, (pa - vm->ram.base) >> MMU_PAGE_SHIFT,
                          host, vcpu->disas, &made);
    vcpu->counters->exec_views += made;
    return view;
}

/* CPACR_EL1.FPEN: 0b11 traps nothing, 0b01 EL0 only, the others both. */
bool translate_traps_fp(const struct vcpu *vcpu, bool el0)
{
    unsigned fpen = vcpu->cpacr >> 20 & 3;

    return fpen != 3 && (el0 || fpen != 1);
}

static bool fill_exec(struct vcpu *vcpu, gva_t page, gpa_t pa, bool el0,
                      gpa_t *out_pa, unsigned *out_perms)
{
    const struct exec_view *view = view_of(vcpu, pa);
    struct view_cache_line *line = view_line(vcpu, page);
    unsigned variant = (vcpu->trap_eret ? EXEC_TRAP_ERET : 0) |
                       (translate_traps_fp(vcpu, el0) ? EXEC_TRAP_FP : 0);
    gpa_t slot = view ? exec_views_variant(vcpu->vm->views, view, variant) : 0;

    if (!slot) {
        return refuse(vcpu, (struct refused_fill){
                                .views_full = true,
                                .type = ACCESS_EXEC,
                                .page = page,
                            });
    }
    /*
     * The cache names every page that the micro-TLB may execute from: a trap
     * finds its view there, and translate_set_eret_trap() all of them.
     */
    if (line->page != page && line->page != VIEW_NO_PAGE) {
        drop_page(vcpu, line->page);
    }
    line->page = page;
    line->view = view;
    *out_pa = slot;
    *out_perms = ENGINE_X;
    return true;
}

bool translate_fill(void *opaque, gva_t va, enum access_type type,
                    gpa_t *out_pa, unsigned *out_perms)
{
    struct vcpu *vcpu = opaque;
    uint64_t pstate = engine_pstate(vcpu->engine);
    struct access access = {
        .type = type,
        .el0 = pstate_el(pstate) == 0,
        .pan = (pstate & PSTATE_PAN) != 0,
    };
    gva_t page = va & ~MMU_PAGE_MASK;
    struct translate_fault result;
    struct translation flat;
    struct tlb_entry *entry;
    const struct translation *t;
    gpa_t pa;

    /*
     * The engine's PC is exact for a fetch and the block's start otherwise;
     * block_va is not yet the block's that a fetch is for.
     */
    entry = find(vcpu, page, type,
                 type == ACCESS_EXEC ? engine_pc(vcpu->engine)
                                     : vcpu->watch->block_va,
                 &result, &flat);
    t = entry ? &entry->t : &flat;
    if (result.fault == WALK_OK) {
        check(vcpu, page, &access, vcpu->watch->block_va, &entry, &t, &result);
    }
    if (result.fault != WALK_OK) {
        return refuse(vcpu, (struct refused_fill){
                                .type = type,
                                .fault = result.fault,
                                .level = result.level,
                                .page = page,
                            });
    }
    pa = translation_pa(t, page) & ~MMU_PAGE_MASK;
    if (!vm_ram_at(vcpu->vm, pa, MMU_PAGE_SIZE)) {
        return refuse(vcpu, (struct refused_fill){
                                .is_device = true,
                                .type = type,
                                .fault = WALK_FAULT_EXTERNAL,
                                .level = t->level,
                                .page = page,
                                .pa = pa,
                            });
    }
    if (entry) {
        entry->owner_tag = vcpu->micro_epoch;
        vcpu->micro_tagged |= regime_canonical(&vcpu->regime, page) != page;
    }
    if (type == ACCESS_EXEC) {
        return fill_exec(vcpu, page, pa, access.el0, out_pa, out_perms);
    }
    /*
     * W and X are never granted together: code runs from views, which are
     * other physical pages, so a data entry never needs X.
     */
    *out_pa = pa;
    *out_perms = ENGINE_R;
    if (table_pages_has(vcpu->vm, pa)) {
        return type == ACCESS_READ || refuse(vcpu, (struct refused_fill){
                                                       .is_table = true,
                                                       .type = type,
                                                       .page = page,
                                                       .pa = pa,
                                                   });
    }
    if (type == ACCESS_WRITE) {
        *out_perms |= ENGINE_W;
        written_note(vcpu->vm, pa);
        return true;
    }
    /*
     * A page that is only read stays out of the snapshot's way; without a
     * snapshot a second miss would be dearer than what it tells.
     */
    access.type = ACCESS_WRITE;
    if (!vcpu->vm->snapshot && translation_check(t, &access) == WALK_OK) {
        *out_perms |= ENGINE_W;
        written_note(vcpu->vm, pa);
    }
    return true;
}

const struct exec_view *translate_view(struct vcpu *vcpu, gva_t va)
{
    gva_t page = va & ~MMU_PAGE_MASK;
    struct view_cache_line *line = view_line(vcpu, page);
    struct access access = {.type = ACCESS_EXEC};
    gpa_t pa;

    if (line->page == page) {
        return line->view;
    }
    access.el0 = pstate_el(engine_pstate(vcpu->engine)) == 0;
    if (translate(vcpu, va, &access, &pa).fault != WALK_OK) {
        return NULL;
    }
    return view_of(vcpu, pa & ~MMU_PAGE_MASK);
}

bool translate_word(struct vcpu *vcpu, gva_t va, uint32_t *out_word)
{
    const struct exec_view *view = translate_view(vcpu, va);

    if (!view || va & 3) {
        return false;
    }
    *out_word = view->words[(va & MMU_PAGE_MASK) / 4];
    return true;
}

struct invalidate {
    struct vcpu *vcpu;
    uint32_t issuer;
    uint64_t ticket;
};

static void dropped(void *opaque, const struct tlb_entry *entry)
{
    struct invalidate *i = opaque;

    event_emit(i->vcpu->events, i->vcpu->id, EVENT_invalidate, 0, entry->va,
               entry->asid, entry->t.base, entry->t.page_shift, i->issuer,
               i->ticket);
    drop_entry(i->vcpu, entry);
}

size_t translate_invalidate(struct vcpu *vcpu, const struct tlbi_op *op,
                            uint32_t issuer, uint64_t ticket)
{
    struct invalidate i = {vcpu, issuer, ticket};
    struct tlbi_op widened = *op;

    /* Ticket 0 is no TLBI of the guest's. */
    if (vcpu->vm->inject && ticket) {
        if (!inject_tlbi(vcpu->vm->inject, &widened, issuer == vcpu->id)) {
            return 0;
        }
        op = &widened;
    }
    if (vcpu->vm->det) {
        det_widen(vcpu, &widened);
        op = &widened;
    }
    if (op->kind == TLBI_ALL || op->kind == TLBI_ASID) {
        /* One flush is cheaper than a drop for each entry, and allowed. */
        translate_flush_micro(vcpu);
        if (vcpu->sibling) {
            translate_flush_micro(vcpu->sibling);
        }
    }
    return tlb_invalidate(vcpu->tlb, op, dropped, &i);
}

void translate_flush_micro(struct vcpu *vcpu)
{
    if (vcpu->micro_stale) {
        return; /* a claimer's thread; the next run flushes */
    }
    vcpu->micro_epoch++;
    vcpu->micro_tagged = false;
    vcpu->counters->micro_flushes++;
    engine_flush(vcpu->engine);
    for (unsigned i = 0; i < VCPU_VIEW_CACHE; i++) {
        vcpu->view_cache[i].page = VIEW_NO_PAGE;
    }
}

void translate_set_eret_trap(struct vcpu *vcpu, bool on)
{
    if (vcpu->trap_eret == on) {
        return;
    }
    vcpu->trap_eret = on;
    /* Only pages that hold an ERET differ between the two variants. */
    for (unsigned i = 0; i < VCPU_VIEW_CACHE; i++) {
        struct view_cache_line *line = &vcpu->view_cache[i];

        if (line->page != VIEW_NO_PAGE && line->view->has_eret) {
            drop_page(vcpu, line->page);
        }
    }
}

void translate_regime_changed(struct vcpu *vcpu, bool controls)
{
    struct regime now;

    regime_decode(&now, vcpu->sctlr, vcpu->tcr, vcpu->ttbr[0], vcpu->ttbr[1]);
    now.ha = now.ha && vcpu->vm->hafdbs;
    now.hd = now.hd && vcpu->vm->hafdbs;
    /*
     * A new root under the same ASID changes nothing that is cached: that is
     * the guest's to invalidate.
     */
    if (controls || now.asid != vcpu->regime.asid) {
        if (vcpu->vm->det && now.asid != vcpu->regime.asid) {
            det_asid_changes(vcpu);
        }
        vcpu->regime = now;
        translate_flush_micro(vcpu);
    } else {
        vcpu->regime = now;
    }
}
