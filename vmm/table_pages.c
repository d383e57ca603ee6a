/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages that are translation tables; see table_pages.h. */
#include "table_pages.h"

#include "shootdown.h"
#include "snapshot.h"
#include "translate.h"
#include "vm_priv.h"

/* What a byte of vm->tables is. */
enum { PAGE_PLAIN, PAGE_TABLE, PAGE_SETTLED };

static size_t page_of(const struct vm *vm, gpa_t pa)
{
    return (pa - vm->ram.base) >> MMU_PAGE_SHIFT;
}

void table_pages_init(struct vm *vm, bool settles)
{
    size_t pages = vm->ram.size >> MMU_PAGE_SHIFT;

    vm->tables = g_new0(_Atomic uint8_t, pages);
    if (settles) {
        vm->table_since = g_new0(_Atomic uint64_t, pages);
    }
}

void table_pages_fini(struct vm *vm)
{
    g_free(vm->tables);
    g_free(vm->table_since);
}

bool table_pages_has(const struct vm *vm, gpa_t pa)
{
    return vm->tables &&
           atomic_load_explicit(&vm->tables[page_of(vm, pa)],
                                memory_order_relaxed) != PAGE_PLAIN;
}

bool table_pages_is_settled(const struct vm *vm, gpa_t pa)
{
    return !vm->table_since ||
           (vm_ram_at(vm, pa, sizeof(uint64_t)) &&
            atomic_load(&vm->tables[page_of(vm, pa)]) == PAGE_SETTLED);
}

/* Seen as a table for the first time: nobody may keep W on it. */
static void add(struct vcpu *vcpu, size_t page)
{
    struct vm *vm = vcpu->vm;
    uint64_t since;

    snapshot_note_table(vm->snapshot, page);
    since = atomic_fetch_add(&vm->micro, 1) + 1;
    for (unsigned i = 0; i < vm->cpus; i++) {
        vcpu_request(vm->vcpu[i], VCPU_REQ_DRAIN);
    }
    translate_flush_micro(vcpu);
    if (vm->table_since) {
        atomic_store(&vm->table_since[page], since);
    }
}

/*
 * Who has seen a generation of vm->micro has no W from before it. One that no
 * worker runs is served here. The others were asked and will, and a later walk
 * finds it so.
 */
static bool everybody_saw(struct vcpu *vcpu, uint64_t since)
{
    struct vm *vm = vcpu->vm;

    for (unsigned i = 0; i < vm->cpus; i++) {
        struct vcpu *other = vm->vcpu[i];

        if (atomic_load(&other->powered) &&
            atomic_load(&other->micro_seen) < since &&
            (other == vcpu || !shootdown_serve(other))) {
            return false;
        }
    }
    return true;
}

static void settle(struct vcpu *vcpu, size_t page)
{
    struct vm *vm = vcpu->vm;
    uint64_t since;

    if (atomic_load(&vm->tables[page]) == PAGE_SETTLED) {
        return;
    }
    since = atomic_load(&vm->table_since[page]); /* 0: it is being added */
    if (since && everybody_saw(vcpu, since)) {
        atomic_store(&vm->tables[page], PAGE_SETTLED);
    }
}

void table_pages_note(struct vcpu *vcpu, const struct walk_result *w)
{
    struct vm *vm = vcpu->vm;

    for (unsigned i = 0; vm->tables && i < w->tables; i++) {
        uint8_t plain = PAGE_PLAIN;
        size_t page;

        if (!vm_ram_at(vm, w->table[i], sizeof(uint64_t))) {
            continue;
        }
        page = page_of(vm, w->table[i]);
        if (table_pages_has(vm, w->table[i])) {
            if (vm->table_since) {
                settle(vcpu, page);
            }
        } else if (atomic_compare_exchange_strong(&vm->tables[page], &plain,
                                                  PAGE_TABLE)) {
            add(vcpu, page);
        }
    }
}
