/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places in the program: step, call chain and code at a moment. The thread
 * that runs the vCPU.
 *
 * Frames are those of the AArch64 procedure call standard: x29 points to a
 * pair, the caller's x29 and the address to return to. The stack is the
 * guest's and may hold anything: a frame counts only if it is aligned, above
 * the last one, in the same half of the address space, and in RAM.
 */
#include "ledger_report_priv.h"

#include "det.h"
#include "mmu/walk.h"
#include "obs/symbols.h"
#include "vm_priv.h"

#define REG_FP 29u
#define REG_LR 30u
/* No frame is larger; a jump that far is another stack. */
#define FRAME_MAX UINT64_C(0x10000)
#define CODE_BEFORE 3u

static bool read_ram(void *opaque, gpa_t pa, uint64_t *out)
{
    const uint64_t *host = vm_ram_at(opaque, pa, sizeof(uint64_t));

    if (!host) {
        return false;
    }
    *out = __atomic_load_n(host, __ATOMIC_RELAXED);
    return true;
}

/* By the tables as they are in memory; no event, nothing is cached. */
static const void *host_of(struct vcpu *vcpu, gva_t va, uint64_t size)
{
    struct walk_mem mem = {.read64 = read_ram, .opaque = vcpu->vm};
    struct walk_result w = walk_stage1(&vcpu->regime, &mem, va);

    if (w.fault != WALK_OK ||
        (va & (MMU_PAGE_SIZE - 1)) + size > MMU_PAGE_SIZE) {
        return NULL;
    }
    return vm_ram_at(vcpu->vm, translation_pa(&w.t, va), size);
}

struct ledger_place ledger_place_at(unsigned vcpu, uint64_t pc)
{
    return (struct ledger_place){.is_known = true, .vcpu = vcpu, .pc = pc};
}

uint64_t ledger_step_now(const struct vm *vm)
{
    return vm->det ? det_steps(vm->det) : 0;
}

bool ledger_is_before(const struct vm *vm)
{
    return vm->config->has_snapshot_at && !vm->snapshot;
}

static void take_chain(struct ledger_place *site, struct vcpu *vcpu)
{
    uint64_t fp = engine_x(vcpu->engine, REG_FP);

    site->lr = engine_x(vcpu->engine, REG_LR);
    site->callers = 0;
    while (site->callers < LEDGER_CHAIN_MAX && fp && !(fp & 7) &&
           (fp >> 55 & 1) == (site->pc >> 55 & 1)) {
        const uint64_t *frame = host_of(vcpu, fp, 16);

        if (!frame || !frame[1]) {
            break;
        }
        site->caller[site->callers++] = frame[1];
        if (frame[0] <= fp || frame[0] - fp > FRAME_MAX) {
            break;
        }
        fp = frame[0];
    }
    site->has_chain = true;
}

void ledger_place_take(struct ledger_place *site, struct vm *vm)
{
    site->has_step = vm->det != NULL;
    site->step = ledger_step_now(vm);
    site->is_before = ledger_is_before(vm);
    if (site->vcpu < vm->cpus) {
        take_chain(site, vm->vcpu[site->vcpu]);
    }
}

void ledger_place_take_code(struct ledger_place *site, struct vm *vm,
                            unsigned by)
{
    gva_t pc = site->pc & ~(gva_t)3;
    gva_t page = pc & ~(gva_t)(MMU_PAGE_SIZE - 1);
    const uint32_t *code;

    if (!site->is_known || by >= vm->cpus) {
        return;
    }
    /* Around it as far as the page goes. */
    site->code_pc = MAX(page, pc - 4 * CODE_BEFORE);
    site->words = (unsigned)MIN((page + MMU_PAGE_SIZE - site->code_pc) / 4,
                                (uint64_t)LEDGER_CODE_MAX);
    code = host_of(vm->vcpu[by], site->code_pc, 4 * site->words);
    if (!code) {
        site->words = 0;
    }
    for (unsigned i = 0; i < site->words; i++) {
        site->word[i] = code[i];
    }
}

/*
 * x30 is the caller in a function without a frame of its own, or before it has
 * made one. Later it is what the last call left there: an address in the same
 * function, or the same as in the frame.
 */
static bool lr_counts(const struct ledger_place *site,
                      const struct symbols *symbols)
{
    struct symbol mine, of_lr;

    if (!site->lr || (site->callers && site->caller[0] == site->lr)) {
        return false;
    }
    return symbols_find(symbols, site->pc, &mine) &&
           symbols_find(symbols, site->lr - 4, &of_lr) &&
           mine.start != of_lr.start;
}

unsigned ledger_place_calls(const struct ledger_place *site,
                            const struct symbols *symbols,
                            uint64_t out_pc[LEDGER_CHAIN_MAX])
{
    unsigned n = 0;

    if (!site->has_chain) {
        return 0;
    }
    if (lr_counts(site, symbols)) {
        out_pc[n++] = site->lr - 4;
    }
    for (unsigned i = 0; i < site->callers && n < LEDGER_CHAIN_MAX; i++) {
        out_pc[n++] = site->caller[i] - 4;
    }
    return n;
}
