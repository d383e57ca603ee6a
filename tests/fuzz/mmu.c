/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk over arbitrary tables in arbitrary regimes, a TLB that is filled by
 * it, and TLBI operands as a guest may write them. The input: four registers,
 * 16 KiB of tables at most (repeated through the first 16 MiB of physical
 * memory), and addresses and operations from its end backwards.
 */
#include "fuzz.h"

#include <string.h>

#include "mmu/tlb.h"
#include "mmu/tlbi.h"
#include "mmu/walk.h"

#define TABLES ((size_t)16 << 10)
#define MEMORY (UINT64_C(16) << 20) /* beyond it: an external abort */
#define STEPS 64u

static uint64_t words[TABLES / 8];

static bool read64(void *opaque, gpa_t pa, uint64_t *out)
{
    (void)opaque;
    FUZZ_CHECK(pa % 8 == 0, "the walker reads %llx", (unsigned long long)pa);
    if (pa >= MEMORY) {
        return false;
    }
    *out = words[pa / 8 % (TABLES / 8)];
    return true;
}

static bool cas64(void *opaque, gpa_t pa, uint64_t expected, uint64_t desired)
{
    (void)opaque;
    FUZZ_CHECK(pa % 8 == 0 && pa < MEMORY, "the walker updates %llx",
               (unsigned long long)pa);
    if (words[pa / 8 % (TABLES / 8)] != expected) {
        return false;
    }
    words[pa / 8 % (TABLES / 8)] = desired;
    return true;
}

static void check_result(const struct walk_result *r)
{
    FUZZ_CHECK(r->tables <= MMU_LEVELS && r->level <= 3, "level %u", r->level);
    if (r->fault == WALK_OK) {
        FUZZ_CHECK((r->t.flat || r->t.level >= 1) &&
                       r->t.base % (UINT64_C(1) << r->t.page_shift) == 0 &&
                       r->t.base < UINT64_C(1) << MMU_PA_BITS,
                   "base %llx", (unsigned long long)r->t.base);
        FUZZ_CHECK((r->t.perms & ~PERM_ALL) == 0, "perms %x", r->t.perms);
    }
}

static void walk_and_fill(const struct regime *regime,
                          const struct walk_mem *mem, struct tlb *tlb, gva_t va,
                          unsigned kind)
{
    const struct access access = {
        .type = (enum access_type)(kind % 3),
        .el0 = kind & 4,
        .pan = kind & 8,
    };
    struct walk_result r =
        walk_stage1_from(regime, mem, tlb_walk_cache(tlb), va);
    gva_t canonical = regime_canonical(regime, va);

    check_result(&r);
    if (r.fault == WALK_OK && translation_needs_dirty(&r.t, &access)) {
        (void)walk_mark_dirty(regime, mem, tlb_walk_cache(tlb), va, &access,
                              &r);
        check_result(&r);
    }
    if (r.fault == WALK_OK && !r.t.flat) {
        struct tlb_entry evicted;
        struct tlb_entry *entry =
            tlb_insert(tlb, canonical, regime->asid, &r.t, &evicted);

        FUZZ_CHECK(entry, "a walked translation does not go into the TLB");
        entry = tlb_lookup(tlb, canonical, regime->asid);
        FUZZ_CHECK(entry, "it is not found again");
    }
}

static void invalidate(struct tlb *tlb, struct fuzz_bytes *bytes, bool asid16)
{
    unsigned code = (unsigned)fuzz_take(bytes, 2);
    uint64_t xt = fuzz_take(bytes, 8);
    struct tlbi_op op;

    /* Half of the codes are TLBIs: CRn 8, op1 0. */
    if (tlbi_decode(code & 0x8000 ? code >> 12 & 7 : 0,
                    code & 0x8000 ? code >> 8 & 15 : 8, code >> 4 & 15,
                    code & 7, xt, asid16, &op)) {
        size_t before = tlb_occupancy(tlb), removed;

        FUZZ_CHECK(tlbi_name(&op)[0], "no name");
        (void)tlbi_covers(&op, op.va, 12);
        if (code & 0x4000) {
            tlbi_widen(&op, code & 0x2000, code & 0x1000);
        }
        removed = tlb_invalidate(tlb, &op, NULL, NULL);
        FUZZ_CHECK(before - removed == tlb_occupancy(tlb), "removed %zu",
                   removed);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tlb_config config = {
        .sets = 4, .ways = 2, .walk_cache_entries = 4, .seed = 1};
    struct fuzz_bytes bytes = {data, data + size};
    uint64_t sctlr = fuzz_take(&bytes, 4), tcr = fuzz_take(&bytes, 6);
    uint64_t low = fuzz_take(&bytes, 8), high = fuzz_take(&bytes, 8);
    struct walk_mem mem = {read64, NULL, cas64};
    struct regime regime;
    struct tlb *tlb = tlb_new(&config);
    size_t room;

    FUZZ_CHECK(tlb, "no TLB");
    regime_decode(&regime, sctlr, tcr, low, high);
    mem.cas64 = regime.ha ? cas64 : NULL;
    memset(words, 0, sizeof(words));
    room = MIN((size_t)(bytes.end - bytes.at) / 2, TABLES);
    if (room) {
        memcpy(words, bytes.at, room);
    }
    bytes.at += room;
    for (unsigned i = 0; i < STEPS && bytes.at < bytes.end; i++) {
        unsigned what = (unsigned)fuzz_take(&bytes, 1);

        if (what & 0x80) {
            invalidate(tlb, &bytes, regime.asid16);
        } else {
            walk_and_fill(&regime, &mem, tlb, fuzz_take(&bytes, 8), what);
        }
    }
    tlb_free(tlb);
    return 0;
}
