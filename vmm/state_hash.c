/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash of a machine's state; see snapshot.h. */
#include "obs/mix.h"
#include "snapshot.h"
#include "vm_priv.h"

static bool add_entry(void *opaque, struct tlb_entry *entry)
{
    uint64_t *hash = opaque;

    *hash = mix_word(*hash, entry->va);
    *hash = mix_word(*hash, (uint64_t)entry->asid << 32 | entry->t.perms);
    *hash = mix_word(*hash, entry->t.base | entry->t.page_shift);
    return true;
}

static uint64_t hash_vcpu(struct vcpu *vcpu)
{
    uint64_t hash = mix_word(MIX_START, vcpu->id);
    struct inval_item item;

    hash = mix_word(hash, engine_state_hash(vcpu->engine));
    hash = mix_word(hash, vcpu->sctlr);
    hash = mix_word(hash, vcpu->tcr);
    hash = mix_word(hash, vcpu->ttbr[0]);
    hash = mix_word(hash, vcpu->ttbr[1]);
    hash = mix_word(hash, vcpu->cpacr);
    hash = mix_word(hash, vcpu->ticket);
    hash = mix_word(hash, (uint64_t)atomic_load(&vcpu->irq_line) << 1 |
                              (uint64_t)atomic_load(&vcpu->powered));
    tlb_foreach(vcpu->tlb, add_entry, &hash);
    for (unsigned i = 0; inval_peek(vcpu->inval, i, &item); i++) {
        hash = mix_word(hash, (uint64_t)item.issuer << 48 ^ item.ticket);
        hash = mix_word(hash, item.op.va);
    }
    return mix_end(hash);
}

static bool is_zero(const uint64_t *words)
{
    for (unsigned i = 0; i < MMU_PAGE_SIZE / 8; i++) {
        if (words[i]) {
            return false;
        }
    }
    return true;
}

/* Pages that are not zero: which were written at all may differ by an engine's
 * choice to load before it stores. */
static uint64_t hash_ram(const struct vm *vm)
{
    uint64_t hash = MIX_START;

    for (uint64_t page = 0; page < vm->ram.size >> MMU_PAGE_SHIFT; page++) {
        const void *host = vm->ram.host + (page << MMU_PAGE_SHIFT);

        if (vm->written[page] && !is_zero(host)) {
            hash = mix_word(hash, page);
            hash = mix_bytes(hash, host, MMU_PAGE_SIZE);
        }
    }
    return mix_end(hash);
}

static uint64_t hash_device(uint64_t hash, size_t size,
                            void (*save)(const void *device, void *to),
                            const void *device)
{
    g_autofree void *bytes = g_malloc0(size);

    save(device, bytes);
    return mix_bytes(hash, bytes, size);
}

static void save_gic(const void *gic, void *to)
{
    gic_save(gic, to);
}

static void save_timer(const void *timer, void *to)
{
    arch_timer_save(timer, to);
}

static void save_uart(const void *uart, void *to)
{
    pl011_save(uart, to);
}

static void save_annot(const void *annot, void *to)
{
    annot_save(annot, to);
}

uint64_t vm_state_hash(struct vm *vm)
{
    uint64_t hash = mix_word(MIX_START, hash_ram(vm));

    for (unsigned i = 0; i < vm->cpus; i++) {
        hash = mix_word(hash, hash_vcpu(vm->vcpu[i]));
    }
    hash = hash_device(hash, gic_state_size(vm->gic), save_gic, vm->gic);
    hash = hash_device(hash, arch_timer_state_size(vm->timer), save_timer,
                       vm->timer);
    hash = hash_device(hash, pl011_state_size(vm->uart), save_uart, vm->uart);
    hash =
        hash_device(hash, annot_state_size(vm->annot), save_annot, vm->annot);
    return mix_end(hash);
}
