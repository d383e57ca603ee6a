/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instruction words: the input is code, as a guest may have it. Every word is
 * classified and, where it is a load or store, worked out and emulated on
 * memory of exactly its size.
 */
#include "fuzz.h"

#include <string.h>

#include "insn/access.h"
#include "insn/exclusive.h"
#include "insn/insn.h"

static uint64_t xs[32], vs[32][2];

static uint64_t read_x(void *opaque, unsigned reg)
{
    (void)opaque;
    FUZZ_CHECK(reg < 32, "X%u is read", reg);
    return xs[reg];
}

static void write_x(void *opaque, unsigned reg, uint64_t value)
{
    (void)opaque;
    FUZZ_CHECK(reg < 31, "X%u is written", reg);
    xs[reg] = value;
}

static void read_v(void *opaque, unsigned reg, uint64_t out_value[2])
{
    (void)opaque;
    FUZZ_CHECK(reg < 32, "V%u is read", reg);
    memcpy(out_value, vs[reg], 16);
}

static void write_v(void *opaque, unsigned reg, const uint64_t value[2])
{
    (void)opaque;
    FUZZ_CHECK(reg < 32, "V%u is written", reg);
    memcpy(vs[reg], value, 16);
}

static void emulate(const struct access_insn *a, uint64_t pc)
{
    static const struct access_regs regs = {read_x, write_x, read_v, write_v,
                                            NULL};
    uint64_t address = access_address(a, read_x, NULL, pc), value;
    void *memory;

    FUZZ_CHECK(a->count <= ACCESS_ELEMENTS_MAX, "%u elements", a->count);
    for (unsigned i = 0; i < a->count; i++) {
        FUZZ_CHECK(a->element[i].reg < 32 &&
                       a->element[i].offset + a->element[i].bytes <= a->bytes,
                   "element %u of %08x", i, a->word);
    }
    (void)access_fault_address(a, address, address & ~UINT64_C(4095));
    memory = g_malloc0(MAX(a->bytes, 1));
    if (a->is_load) {
        (void)access_emulate_load(a, memory, &regs);
    }
    if (a->is_store) {
        (void)access_emulate_store(a, memory, &regs);
    }
    g_free(memory);
    if (access_writeback(a, read_x, NULL, &value)) {
        FUZZ_CHECK(a->rn < 32, "base %u", a->rn);
        xs[a->rn] = value;
    }
}

static bool every_register(uint32_t key, bool is_read)
{
    (void)key;
    (void)is_read;
    return true;
}

static const struct insn_policy policy = {
    .trap_isb = true,
    .trap_dc = true,
    .pstate_traps = UINT64_MAX,
    .sysreg_traps = every_register,
};

static struct exclusives *exclusives;
static struct exclusive_state monitor;

static void perform(const struct insn *insn)
{
    struct atomic_io io = {0};
    uint64_t *place;
    size_t bytes = insn_bytes(insn);

    FUZZ_CHECK(insn->kind > INSN_NONE && insn->kind < INSN_KINDS &&
                   insn->rt < 32 && insn->rt2 < 33 && insn->rs < 32 &&
                   insn->rn < 32 && insn->size_log2 <= 3,
               "%08x", insn->word);
    FUZZ_CHECK(insn_kind_name(insn->kind)[0], "no name");
    FUZZ_CHECK(bytes <= 16, "%zu bytes", bytes);
    atomic_gather(insn, read_x, NULL, &io);
    /* Of exactly the size, and aligned as an atomic of that size must be. */
    place = aligned_alloc(16, 16);
    FUZZ_CHECK(place, "no memory");
    memset(place, 0x5a, 16);
    if (atomic_perform(exclusives, &monitor, insn,
                       (char *)place + 16 - MAX(bytes, 1), 0x40000000,
                       &io) == ATOMIC_DONE) {
        FUZZ_CHECK(io.outputs <= 2, "%u outputs", io.outputs);
        for (unsigned i = 0; i < io.outputs; i++) {
            FUZZ_CHECK(io.out[i].reg < 32, "output %u", io.out[i].reg);
        }
    }
    free(place);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    exclusives = exclusives_new();
    FUZZ_CHECK(exclusives, "no monitors");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned i = 0; i < 32; i++) {
        xs[i] = UINT64_C(0x0123456789abcdef) * i;
        vs[i][0] = vs[i][1] = ~xs[i];
    }
    for (size_t at = 0; at + 4 <= size && at < 4096; at += 4) {
        struct access_insn access;
        struct insn insn;
        uint32_t word;

        memcpy(&word, data + at, sizeof(word));
        if (insn_classify(NULL, word, &policy, &insn)) {
            perform(&insn);
        }
        if (access_decode(word, &access)) {
            emulate(&access, at);
        }
    }
    return 0;
}
