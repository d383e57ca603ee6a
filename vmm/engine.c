/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CPU engine on Unicorn (>= 2.1.2): virtual TLB mode, 4 KiB soft-TLB
 * pages, no exits list. Facts that the code relies on, all measured with
 * 2.1.4, are told where they matter and guarded by test_engine.
 */
#include "engine.h"

#include <stdatomic.h>
#include <unicorn/unicorn.h>

#include "dev/sysreg_key.h"
#include "error.h"

/* Per instance; the default of 1 GiB of address space is too much for 512. */
#define CODE_BUFFER_BYTES (32u << 20)

#define PSTATE_SPSEL 1u
#define PSTATE_EL(p) (((p) >> 2) & 3u)

struct engine {
    struct engine_watch watch; /* first: what every block touches */
    uc_engine *uc;
    struct engine_callbacks callbacks; /* [init] */
    void *opaque;                      /* [init] */
    uc_err last_error;                 /* [vcpu] */
    gva_t pc;                          /* [vcpu] valid outside engine_run() */
};

/* Until the owner points `requests` at a word of its own. */
static const _Atomic uint32_t no_requests;

/* QEMU's exception numbers, as the interrupt hook reports them. */
enum {
    EXCP_UNDEFINED = 1,
    EXCP_SVC = 2,
    EXCP_DATA_ABORT = 4,
    EXCP_BREAKPOINT = 7,
    EXCP_SMC = 13,
};

/* AdvSIMD three same, half precision: opcode, a and U that nothing has. */
static bool aborts_three_same_half(uint32_t word)
{
    static const uint32_t unallocated = 1u << 0x05 | 1u << 0x0b | 1u << 0x0c |
                                        1u << 0x0d | 1u << 0x11 | 1u << 0x19 |
                                        1u << 0x1b | 1u << 0x1f;
    uint32_t field =
        (word >> 11 & 7) | (word >> 23 & 1) << 3 | (word >> 29 & 1) << 4;

    return (word & UINT32_C(0x9f60c400)) == UINT32_C(0x0e400400) &&
           (unallocated >> field & 1) != 0;
}

/* AdvSIMD two-register miscellaneous, half precision, scalar or vector. */
static bool aborts_two_misc_half(uint32_t word)
{
    /* By opcode, a << 5 and U << 6: bit n of word n / 32 is field n. */
    static const uint32_t allocated[4] = {
        0x3f000000, /* 18-1d */
        0x2f007000, /* 2c-2e 38-3b 3d */
        0x3f000000, /* 58-5d */
        0x2e00b000, /* 6c 6d 6f 79-7b 7d */
    };
    uint32_t field =
        (word >> 12 & 31) | (word >> 23 & 1) << 5 | (word >> 29 & 1) << 6;
    bool scalar = word >> 28 & 1;

    if ((word & UINT32_C(0x8f7e0c00)) != UINT32_C(0x0e780800) ||
        (allocated[field / 32] >> field % 32 & 1)) {
        return false;
    }
    return scalar ? field != 0x3f : field != 0x2f && field != 0x7f;
}

bool engine_aborts_on(uint32_t word)
{
    return aborts_three_same_half(word) || aborts_two_misc_half(word);
}

static bool on_fill(uc_engine *uc, uint64_t va, uc_mem_type type,
                    uc_tlb_entry *result, void *opaque)
{
    struct engine *engine = opaque;
    enum access_type access = ACCESS_READ;
    unsigned perms = 0;
    gpa_t pa = 0;

    (void)uc;
    if (type == UC_MEM_WRITE) {
        access = ACCESS_WRITE;
    } else if (type == UC_MEM_FETCH) {
        access = ACCESS_EXEC;
    }
    if (!engine->callbacks.fill(engine->opaque, va, access, &pa, &perms)) {
        return false;
    }
    result->paddr = pa;
    result->perms = (perms & ENGINE_R ? UC_PROT_READ : 0) |
                    (perms & ENGINE_W ? UC_PROT_WRITE : 0) |
                    (perms & ENGINE_X ? UC_PROT_EXEC : 0);
    return true;
}

static uint32_t on_msr(uc_engine *uc, uc_arm64_reg reg,
                       const uc_arm64_cp_reg *cp, void *opaque)
{
    struct engine *engine = opaque;
    uint64_t pc = 0;

    (void)reg;
    if (cp->crn != 13 || cp->op1 != 3 || cp->op2 != 2 || cp->crm != 0) {
        return 0; /* an MSR that runs natively */
    }
    uc_reg_read(uc, UC_ARM64_REG_PC, &pc);
    engine->callbacks.trap(engine->opaque, pc);
    return 1;
}

static void on_interrupt(uc_engine *uc, uint32_t number, void *opaque)
{
    struct engine *engine = opaque;
    enum engine_exception kind = ENGINE_OTHER;
    uint64_t pc = 0, after = 0;

    switch (number) {
    case EXCP_UNDEFINED:
        kind = ENGINE_UNDEFINED;
        break;
    case EXCP_SVC:
        kind = ENGINE_SVC;
        break;
    case EXCP_DATA_ABORT:
        kind = ENGINE_ALIGNMENT;
        break;
    case EXCP_BREAKPOINT:
        kind = ENGINE_BREAKPOINT;
        break;
    case EXCP_SMC: /* the engine has an EL3; the machine has none */
        kind = ENGINE_UNDEFINED;
        after = 4;
        break;
    default:
        break;
    }
    uc_reg_read(uc, UC_ARM64_REG_PC, &pc);
    pc -= after;
    engine->callbacks.exception(engine->opaque, kind, pc);
}

static void on_block(uc_engine *uc, uint64_t va, uint32_t bytes, void *opaque)
{
    struct engine *engine = opaque;
    struct engine_watch *watch = &engine->watch;

    (void)uc;
    watch->block_va = va;
    watch->block_bytes = bytes;
    watch->blocks++;
    watch->instructions += bytes / 4;
    /*
     * relaxed: the word alone says that there is something; the run loop's
     * exchange orders what it is.
     */
    if (__builtin_expect((--watch->budget == 0) | watch->every |
                             (atomic_load_explicit(watch->requests,
                                                   memory_order_relaxed) != 0),
                         0)) {
        engine->callbacks.block(engine->opaque, va, bytes);
    }
}

struct engine_watch *engine_watch(struct engine *engine)
{
    return &engine->watch;
}

static bool checked(uc_err err, const char *what, GError **error)
{
    if (err == UC_ERR_OK) {
        return true;
    }
    g_set_error(error, VM_ERROR, VM_ERROR_ENGINE, "Unicorn: %s failed: %s",
                what, uc_strerror(err));
    return false;
}

static bool add_hooks(struct engine *engine, GError **error)
{
    uc_engine *uc = engine->uc;
    uc_hook hook;

    if (!checked(uc_hook_add(uc, &hook, UC_HOOK_TLB_FILL, (void *)on_fill,
                             engine, 1, 0),
                 "the TLB fill hook", error) ||
        !checked(uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)on_msr, engine, 1,
                             0, UC_ARM64_INS_MSR),
                 "the MSR hook", error) ||
        !checked(uc_hook_add(uc, &hook, UC_HOOK_INTR, (void *)on_interrupt,
                             engine, 1, 0),
                 "the interrupt hook", error)) {
        return false;
    }
    return checked(
        uc_hook_add(uc, &hook, UC_HOOK_BLOCK, (void *)on_block, engine, 1, 0),
        "the block hook", error);
}

/*
 * The CPU model has EL2 and EL3, in AArch32 after reset; then EL1 would be an
 * illegal target of a native ERET. Both are told that what is below them is
 * AArch64: SCR_EL3.{NS,RW} and HCR_EL2.RW.
 */
static void make_el1_aarch64(struct engine *engine)
{
    (void)engine_set_sysreg(engine, SYSREG(3, 6, 1, 1, 0), 0x401);
    (void)engine_set_sysreg(engine, SYSREG(3, 4, 1, 1, 0), UINT64_C(1) << 31);
}

struct engine *engine_new(const struct engine_callbacks *callbacks,
                          void *opaque, GError **error)
{
    struct engine *engine = g_new0(struct engine, 1);

    engine->callbacks = *callbacks;
    engine->watch.requests = &no_requests;
    engine->opaque = opaque;
    /*
     * The page size comes before anything that creates the CPU: the default
     * of 1 KiB would leave three quarters of a dropped page in the micro-TLB.
     */
    if (!checked(uc_open(UC_ARCH_ARM64, UC_MODE_ARM, &engine->uc), "uc_open",
                 error) ||
        !checked(uc_ctl_set_page_size(engine->uc, MMU_PAGE_SIZE),
                 "4 KiB soft-TLB pages (Unicorn >= 2.1.2)", error) ||
        !checked(uc_ctl_set_cpu_model(engine->uc, UC_CPU_ARM64_MAX),
                 "the CPU model", error) ||
        !checked(uc_ctl_set_tcg_buffer_size(engine->uc, CODE_BUFFER_BYTES),
                 "the code buffer's size", error) ||
        !checked(uc_ctl_tlb_mode(engine->uc, UC_TLB_VIRTUAL), "the virtual TLB",
                 error) ||
        /*
         * With the exits list on and empty there is no `until` address: it
         * would be looked up after every run, through the fill callback.
         */
        !checked(uc_ctl_exits_enable(engine->uc), "the exits list", error) ||
        !checked(uc_ctl_set_exits(engine->uc, NULL, 0), "the exits list",
                 error) ||
        !add_hooks(engine, error)) {
        engine_free(engine);
        return NULL;
    }
    make_el1_aarch64(engine);
    return engine;
}

void engine_free(struct engine *engine)
{
    if (!engine) {
        return;
    }
    if (engine->uc) {
        uc_close(engine->uc);
    }
    g_free(engine);
}

bool engine_map(struct engine *engine, gpa_t base, uint64_t size, void *host,
                unsigned perms, GError **error)
{
    uint32_t prot = (perms & ENGINE_R ? UC_PROT_READ : 0) |
                    (perms & ENGINE_W ? UC_PROT_WRITE : 0) |
                    (perms & ENGINE_X ? UC_PROT_EXEC : 0);

    return checked(uc_mem_map_ptr(engine->uc, base, size, prot, host),
                   "mapping guest memory", error);
}

void engine_stop(struct engine *engine)
{
    uc_emu_stop(engine->uc);
}

enum engine_exit engine_run(struct engine *engine)
{
    engine->last_error = uc_emu_start(engine->uc, engine->pc, 0, 0, 0);
    uc_reg_read(engine->uc, UC_ARM64_REG_PC, &engine->pc);
    switch ((int)engine->last_error) {
    case UC_ERR_OK:
        return ENGINE_EXIT_STOPPED;
    case UC_ERR_EXCEPTION:
        return ENGINE_EXIT_FAULT;
    default:
        return ENGINE_EXIT_ERROR;
    }
}

const char *engine_error(const struct engine *engine)
{
    return uc_strerror(engine->last_error);
}

static bool cp_write(struct engine *engine, uint32_t key, uint64_t value)
{
    uc_arm64_cp_reg cp = {
        .op0 = key >> 14,
        .op1 = key >> 11 & 7,
        .crn = key >> 7 & 15,
        .crm = key >> 3 & 15,
        .op2 = key & 7,
        .val = value,
    };

    return uc_reg_write(engine->uc, UC_ARM64_REG_CP_REG, &cp) == UC_ERR_OK;
}

void engine_drop_page(struct engine *engine, gva_t va)
{
    /* TLBI VAE1: drops the page from the soft TLB of every EL. */
    (void)cp_write(engine, SYSREG(1, 0, 8, 7, 1),
                   va >> MMU_PAGE_SHIFT & UINT64_C(0xfffffffffff));
}

void engine_flush(struct engine *engine)
{
    (void)uc_ctl_flush_tlb(engine->uc);
}

void engine_flush_code(struct engine *engine)
{
    (void)uc_ctl_flush_tb(engine->uc);
}

static int x_id(unsigned reg)
{
    if (reg < 29) {
        return UC_ARM64_REG_X0 + (int)reg;
    }
    return reg == 29   ? UC_ARM64_REG_X29
           : reg == 30 ? UC_ARM64_REG_X30
                       : UC_ARM64_REG_SP;
}

uint64_t engine_x(struct engine *engine, unsigned reg)
{
    uint64_t value = 0;

    uc_reg_read(engine->uc, x_id(reg), &value);
    return value;
}

void engine_set_x(struct engine *engine, unsigned reg, uint64_t value)
{
    uc_reg_write(engine->uc, x_id(reg), &value);
}

void engine_v(struct engine *engine, unsigned reg, uint64_t out[2])
{
    uc_reg_read(engine->uc, UC_ARM64_REG_Q0 + (int)reg, out);
}

void engine_set_v(struct engine *engine, unsigned reg, const uint64_t value[2])
{
    uc_reg_write(engine->uc, UC_ARM64_REG_Q0 + (int)reg, (void *)value);
}

gva_t engine_pc(struct engine *engine)
{
    uint64_t pc = 0;

    uc_reg_read(engine->uc, UC_ARM64_REG_PC, &pc);
    return pc;
}

void engine_set_pc(struct engine *engine, gva_t pc)
{
    engine->pc = pc;
    uc_reg_write(engine->uc, UC_ARM64_REG_PC, &pc);
}

uint64_t engine_pstate(struct engine *engine)
{
    uint64_t pstate = 0;

    uc_reg_read(engine->uc, UC_ARM64_REG_PSTATE, &pstate);
    return pstate;
}

void engine_set_pstate(struct engine *engine, uint64_t pstate)
{
    uc_reg_write(engine->uc, UC_ARM64_REG_PSTATE, &pstate);
}

static int sp_bank(uint64_t pstate)
{
    return PSTATE_EL(pstate) == 0 || !(pstate & PSTATE_SPSEL)
               ? UC_ARM64_REG_SP_EL0
               : UC_ARM64_REG_SP_EL1;
}

void engine_switch_pstate(struct engine *engine, uint64_t pstate)
{
    uint64_t sp = engine_x(engine, 31);

    uc_reg_write(engine->uc, sp_bank(engine_pstate(engine)), &sp);
    engine_set_pstate(engine, pstate);
    uc_reg_read(engine->uc, sp_bank(pstate), &sp);
    engine_set_x(engine, 31, sp);
    /* Any system register write rebuilds the cached flags. */
    (void)cp_write(engine, SYSREG(3, 0, 5, 1, 0), 0); /* AFSR0_EL1 */
}

bool engine_sysreg(struct engine *engine, uint32_t key, uint64_t *out)
{
    uc_arm64_cp_reg cp = {
        .op0 = key >> 14,
        .op1 = key >> 11 & 7,
        .crn = key >> 7 & 15,
        .crm = key >> 3 & 15,
        .op2 = key & 7,
    };

    if (uc_reg_read(engine->uc, UC_ARM64_REG_CP_REG, &cp) != UC_ERR_OK) {
        return false;
    }
    *out = cp.val;
    return true;
}

bool engine_set_sysreg(struct engine *engine, uint32_t key, uint64_t value)
{
    return cp_write(engine, key, value);
}

/* --- save and restore --- */

struct engine_state {
    uc_context *context;
    gva_t pc;
};

struct engine_state *engine_state_new(struct engine *engine, GError **error)
{
    struct engine_state *state = g_new0(struct engine_state, 1);

    if (!checked(uc_context_alloc(engine->uc, &state->context),
                 "uc_context_alloc", error) ||
        !checked(uc_context_save(engine->uc, state->context), "uc_context_save",
                 error)) {
        engine_state_free(state);
        return NULL;
    }
    state->pc = engine->pc;
    return state;
}

void engine_state_free(struct engine_state *state)
{
    if (!state) {
        return;
    }
    if (state->context) {
        uc_context_free(state->context);
    }
    g_free(state);
}

/*
 * Both are plain copies of the CPU's register file, which includes what the
 * engine caches of PSTATE; once the context exists, neither can fail.
 */
void engine_state_save(struct engine *engine, struct engine_state *state)
{
    (void)uc_context_save(engine->uc, state->context);
    state->pc = engine->pc;
}

void engine_state_restore(struct engine *engine,
                          const struct engine_state *state)
{
    (void)uc_context_restore(engine->uc, state->context);
    engine->pc = state->pc;
}

/* System registers that the guest's instructions reach natively. */
static const uint32_t hashed_sysregs[] = {
    SYSREG(3, 0, 1, 0, 0),  /* SCTLR_EL1 */
    SYSREG(3, 0, 1, 0, 1),  /* ACTLR_EL1 */
    SYSREG(3, 0, 1, 0, 2),  /* CPACR_EL1 */
    SYSREG(3, 0, 2, 0, 0),  /* TTBR0_EL1 */
    SYSREG(3, 0, 2, 0, 1),  /* TTBR1_EL1 */
    SYSREG(3, 0, 2, 0, 2),  /* TCR_EL1 */
    SYSREG(3, 0, 2, 1, 0),  /* APIAKeyLo_EL1 */
    SYSREG(3, 0, 2, 1, 1),  /* APIAKeyHi_EL1 */
    SYSREG(3, 0, 2, 1, 2),  /* APIBKeyLo_EL1 */
    SYSREG(3, 0, 2, 1, 3),  /* APIBKeyHi_EL1 */
    SYSREG(3, 0, 2, 2, 0),  /* APDAKeyLo_EL1 */
    SYSREG(3, 0, 2, 2, 1),  /* APDAKeyHi_EL1 */
    SYSREG(3, 0, 2, 2, 2),  /* APDBKeyLo_EL1 */
    SYSREG(3, 0, 2, 2, 3),  /* APDBKeyHi_EL1 */
    SYSREG(3, 0, 2, 3, 0),  /* APGAKeyLo_EL1 */
    SYSREG(3, 0, 2, 3, 1),  /* APGAKeyHi_EL1 */
    SYSREG(3, 0, 4, 0, 0),  /* SPSR_EL1 */
    SYSREG(3, 0, 4, 0, 1),  /* ELR_EL1 */
    SYSREG(3, 0, 5, 1, 0),  /* AFSR0_EL1 */
    SYSREG(3, 0, 5, 1, 1),  /* AFSR1_EL1 */
    SYSREG(3, 0, 5, 2, 0),  /* ESR_EL1 */
    SYSREG(3, 0, 6, 0, 0),  /* FAR_EL1 */
    SYSREG(3, 0, 7, 4, 0),  /* PAR_EL1 */
    SYSREG(3, 0, 10, 2, 0), /* MAIR_EL1 */
    SYSREG(3, 0, 10, 3, 0), /* AMAIR_EL1 */
    SYSREG(3, 0, 12, 0, 0), /* VBAR_EL1 */
    SYSREG(3, 0, 13, 0, 1), /* CONTEXTIDR_EL1 */
    SYSREG(3, 0, 13, 0, 4), /* TPIDR_EL1 */
    SYSREG(3, 2, 0, 0, 0),  /* CSSELR_EL1 */
    SYSREG(3, 3, 13, 0, 2), /* TPIDR_EL0 */
    SYSREG(3, 3, 13, 0, 3), /* TPIDRRO_EL0 */
};

/* Each value changes all that follows; the multiplier is odd. */
static void hash_add(uint64_t *hash, uint64_t value)
{
    uint64_t h = (*hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);

    *hash = h ^ h >> 29;
}

uint64_t engine_state_hash(struct engine *engine)
{
    static const int others[] = {UC_ARM64_REG_FPCR, UC_ARM64_REG_FPSR};
    uint64_t pstate = engine_pstate(engine), hash = 0;
    int bank = sp_bank(pstate);

    for (unsigned i = 0; i < 32; i++) {
        uint64_t v[2];

        hash_add(&hash, engine_x(engine, i));
        engine_v(engine, i, v);
        hash_add(&hash, v[0]);
        hash_add(&hash, v[1]);
    }
    hash_add(&hash, engine_pc(engine));
    hash_add(&hash, pstate);
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        uint64_t value = 0;

        uc_reg_read(engine->uc, others[i], &value);
        hash_add(&hash, value);
    }
    /* The bank in use is SP; its copy in the file is whatever it last was. */
    for (unsigned el = 0; el < 2; el++) {
        int id = el == 0 ? UC_ARM64_REG_SP_EL0 : UC_ARM64_REG_SP_EL1;
        uint64_t sp = 0;

        if (id != bank) {
            uc_reg_read(engine->uc, id, &sp);
            hash_add(&hash, sp);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(hashed_sysregs); i++) {
        uint64_t value = 0;

        (void)engine_sysreg(engine, hashed_sysregs[i], &value);
        hash_add(&hash, value);
    }
    return hash;
}

void engine_version(unsigned *out_major, unsigned *out_minor,
                    unsigned *out_patch)
{
    unsigned version = uc_version(NULL, NULL);

    *out_major = version >> 24;
    *out_minor = version >> 16 & 0xff;
    *out_patch = version >> 8 & 0xff;
}
