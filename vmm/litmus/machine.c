/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Building the machine of a litmus test: descriptors and addresses, tables,
 * boot; see machine.h.
 */
#include "litmus/machine.h"

#include <string.h>

#include "error.h"
#include "litmus/machine_priv.h"
#include "mmu/desc.h"
#include "snapshot.h"
#include "translate.h"
#include "written.h"

/* A page of the variables' table that no test has: to warm walks up. */
#define WARM_PAGE 511u
/* Where the values that the boot code loads are in a thread's page. */
#define BOOT_VALUES 0x100u

#define MAIR UINT64_C(0xff) /* attribute 0: normal, write-back */
#define TCR_BASE                                                               \
    (UINT64_C(25) | UINT64_C(1) << 8 | UINT64_C(1) << 10 | UINT64_C(3) << 12 | \
     TCR_EPD1 | UINT64_C(2) << TCR_IPS_SHIFT)
/* RES1 bits, SPAN; M, C, I; EL0: nTWE, nTWI. */
#define SCTLR                                                                  \
    (UINT64_C(0x30d00800) | UINT64_C(1) | UINT64_C(1) << 2 |                   \
     UINT64_C(1) << 12 | UINT64_C(1) << 16 | UINT64_C(1) << 18)
#define PSTATE_EL0T (PSTATE_DAIF)

/* --- descriptors --- */

uint64_t litmus_pte_bits(const struct litmus_pte *pte, unsigned self)
{
    unsigned page = pte->oa < 0 ? self : (unsigned)pte->oa;

    return (LITMUS_VARS_PA + (uint64_t)page * LITMUS_PAGE) |
           DESC_TABLE_OR_PAGE | (pte->valid ? DESC_VALID : 0) | DESC_SH(3) |
           (pte->el0 ? DESC_AP_EL0 : 0) | (pte->db ? 0 : DESC_AP_READ_ONLY) |
           (pte->af ? DESC_AF : 0) | (pte->dbm ? DESC_DBM : 0) |
           (pte->x ? 0 : DESC_PXN | DESC_UXN);
}

bool litmus_pte_read(const struct litmus_test *test, uint64_t desc,
                     struct litmus_pte *out)
{
    uint64_t pa = desc & UINT64_C(0x0000fffffffff000);

    if (pa < LITMUS_VARS_PA ||
        pa >= LITMUS_VARS_PA + (uint64_t)test->vars * LITMUS_PAGE ||
        !(desc & DESC_TABLE_OR_PAGE)) {
        return false;
    }
    *out = (struct litmus_pte){
        .oa = (int)((pa - LITMUS_VARS_PA) / LITMUS_PAGE),
        .valid = (desc & DESC_VALID) != 0,
        .af = (desc & DESC_AF) != 0,
        .db = (desc & DESC_AP_READ_ONLY) == 0,
        .dbm = (desc & DESC_DBM) != 0,
        .el0 = (desc & DESC_AP_EL0) != 0,
        .x = (desc & (DESC_PXN | DESC_UXN)) == 0,
    };
    return true;
}

static uint64_t label_address(const struct litmus_machine *m, unsigned thread,
                              const char *label)
{
    const struct litmus_thread *t = &m->test->thread[thread];
    const GPtrArray *lists[] = {t->code, t->handler};
    const unsigned first[] = {0, m->image->code[thread] + 1};

    for (unsigned k = 0; k < G_N_ELEMENTS(lists); k++) {
        for (guint i = 0; lists[k] && i < lists[k]->len; i++) {
            if (litmus_insn_has_label(lists[k]->pdata[i], label)) {
                return LITMUS_CODE(thread) + (first[k] + i) * LITMUS_SLOT;
            }
        }
    }
    return 0;
}

uint64_t litmus_value_bits(const struct litmus_machine *m,
                           const struct litmus_value *value, int self)
{
    switch (value->kind) {
    case LITMUS_NUMBER:
        return value->number;
    case LITMUS_ADDRESS:
        return LITMUS_VARS_VA + (uint64_t)value->var * LITMUS_PAGE;
    case LITMUS_PTE_ADDRESS:
        return LITMUS_PTES_VA + (uint64_t)value->var * sizeof(uint64_t);
    case LITMUS_PTE:
        return litmus_pte_bits(&value->pte, self < 0 ? 0 : (unsigned)self);
    case LITMUS_LABEL:
        return label_address(m, value->thread, value->label);
    }
    return 0;
}

/* --- memory before anything runs --- */

static uint64_t *ram_word(struct litmus_machine *m, gpa_t pa)
{
    written_note(m->vm, pa);
    return vm_ram_at(m->vm, pa, sizeof(uint64_t));
}

static void set_entry(struct litmus_machine *m, enum litmus_table table,
                      unsigned index, uint64_t desc)
{
    *ram_word(m, litmus_table_pa(table) + index * sizeof(uint64_t)) = desc;
}

static uint64_t to_table(enum litmus_table table)
{
    return litmus_table_pa(table) | DESC_TABLE_OR_PAGE | DESC_VALID;
}

static void make_tables(struct litmus_machine *m)
{
    const struct litmus_test *test = m->test;
    uint64_t page = DESC_TABLE_OR_PAGE | DESC_VALID | DESC_SH(3) | DESC_AF;

    set_entry(m, LITMUS_ROOT, 0, to_table(LITMUS_LOW));
    set_entry(m, LITMUS_ROOT, BOARD_RAM_BASE >> 30, to_table(LITMUS_HIGH));
    set_entry(m, LITMUS_LOW, LITMUS_VARS_VA >> 21, to_table(LITMUS_VARS));
    set_entry(m, LITMUS_LOW, LITMUS_PTES_VA >> 21, to_table(LITMUS_ALIAS));
    set_entry(m, LITMUS_HIGH, 0, to_table(LITMUS_FRAME));
    set_entry(m, LITMUS_ALIAS, 0,
              litmus_table_pa(LITMUS_VARS) | page | DESC_PXN | DESC_UXN);
    /* Frame and code: read-only, for EL0 too. Threads' pages: of EL1. */
    for (unsigned i = 0; i < 0x20; i++) {
        set_entry(m, LITMUS_FRAME, i,
                  (BOARD_RAM_BASE + i * LITMUS_PAGE) | page |
                      DESC_AP_READ_ONLY | DESC_AP_EL0);
        set_entry(m, LITMUS_FRAME, 0x20 + i,
                  (BOARD_RAM_BASE + (0x20 + i) * LITMUS_PAGE) | page |
                      DESC_PXN | DESC_UXN);
    }
    for (unsigned i = 0; i < test->vars; i++) {
        set_entry(m, LITMUS_VARS, i, litmus_pte_bits(&test->var[i].pte, i));
    }
    set_entry(m, LITMUS_VARS, WARM_PAGE,
              LITMUS_VARS_PA | page | DESC_PXN | DESC_UXN);
}

static void make_variables(struct litmus_machine *m)
{
    for (unsigned i = 0; i < m->test->vars; i++) {
        const struct litmus_var *var = &m->test->var[i];
        gpa_t pa = LITMUS_VARS_PA + (gpa_t)i * LITMUS_PAGE;

        for (unsigned e = 0; e < var->count; e++) {
            uint64_t value = litmus_value_bits(m, &var->init[e], (int)i);

            memcpy((uint8_t *)ram_word(m, pa) + (size_t)e * var->size, &value,
                   var->size);
        }
    }
}

static void make_boot_values(struct litmus_machine *m, unsigned thread)
{
    const struct litmus_thread *t = &m->test->thread[thread];
    const uint64_t values[] = {
        MAIR,
        TCR_BASE | (t->ha ? TCR_HA : 0) | (t->hd ? TCR_HD : 0),
        litmus_table_pa(LITMUS_ROOT),
        LITMUS_THREAD(thread), /* VBAR */
        SCTLR,
        LITMUS_AREA(thread), /* SP */
        LITMUS_CODE(thread),
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        *ram_word(m, LITMUS_AREA(thread) + BOOT_VALUES + i * sizeof(uint64_t)) =
            values[i];
    }
}

uint64_t *litmus_descriptor_place(struct litmus_machine *m, unsigned var)
{
    return ram_word(m, litmus_table_pa(LITMUS_VARS) + var * sizeof(uint64_t));
}

/* --- construction --- */

static void find_registers(struct litmus_machine *m, unsigned thread)
{
    const struct litmus_thread *t = &m->test->thread[thread];
    const GPtrArray *lists[] = {t->code, t->handler};

    for (unsigned r = 0; r < LITMUS_REGS; r++) {
        m->registers[thread] |= (uint32_t)t->has_init[r] << r;
    }
    for (unsigned k = 0; k < G_N_ELEMENTS(lists); k++) {
        for (guint i = 0; lists[k] && i < lists[k]->len; i++) {
            const struct litmus_insn *insn = lists[k]->pdata[i];

            for (const char *p = insn->text; *p; p++) {
                if (strchr("XxWw", *p) && g_ascii_isdigit(p[1])) {
                    m->registers[thread] |=
                        UINT32_C(1) << (g_ascii_strtoull(p + 1, NULL, 10) & 31);
                }
            }
        }
    }
}

static bool configure(struct litmus_machine *m, GError **error)
{
    g_autofree char *cpus = g_strdup_printf("%u", m->test->threads);
    const char *argv[] = {"--kernel", m->image->path, "--cpus",   cpus,
                          "--mem",    "16M",          "--engine", "seeded",
                          "--quiet",  "--ledger",     "off",
                          "--inject", m->inject};
    int argc = (int)G_N_ELEMENTS(argv) - (m->inject ? 0 : 2);

    m->config =
        vm_config_parse(VM_COMMAND_RUN, argc, (char *const *)argv, error);
    if (!m->config) {
        return false;
    }
    hw_set_profile(&m->config->hw, HW_PROFILE_EAGER);
    m->config->hw.mode[HW_defer] = HW_ON;
    m->config->hw.mode[HW_pte_delay] = HW_ON; /* until litmus_show() */
    m->config->hw.mode[HW_dbm] = HW_ON;       /* TCR says for whom */
    m->config->hw.mode[HW_walk_cache] = HW_ON;
    return true;
}

static bool boot(struct litmus_machine *m, unsigned thread)
{
    const struct litmus_thread *t = &m->test->thread[thread];
    struct vcpu *vcpu = m->vm->vcpu[thread];

    if (!vcpu_power_on(vcpu, m->vm->image.entry,
                       LITMUS_AREA(thread) + BOOT_VALUES) ||
        !litmus_run_to_slot(m, thread, true)) {
        return false;
    }
    for (unsigned r = 0; r < LITMUS_REGS; r++) {
        engine_set_x(vcpu->engine, r,
                     t->has_init[r] ? litmus_value_bits(m, &t->init[r], -1)
                                    : 0);
    }
    if (t->el0) {
        engine_switch_pstate(vcpu->engine, PSTATE_EL0T);
        engine_set_pc(vcpu->engine, LITMUS_CODE(thread));
    }
    /* So that no walk of a run is the first through these tables. */
    translate_prefetch(vcpu, litmus_page_va(WARM_PAGE));
    return true;
}

static bool build(struct litmus_machine *m, GError **error)
{
    if (!configure(m, error)) {
        return false;
    }
    m->events = events_new(m->config->cpus);
    m->vm = vm_new(m->config, m->events, error);
    if (!m->vm) {
        return false;
    }
    det_defer_own(m->vm->det);
    m->vm_ops = m->vm->sched->ops;
    m->ops = *m->vm_ops;
    m->ops.quantum_over = litmus_at_block;
    m->vm->sched->ops = &m->ops;
    make_tables(m);
    make_variables(m);
    for (unsigned i = 0; i < m->test->threads; i++) {
        make_boot_values(m, i);
        find_registers(m, i);
    }
    for (unsigned i = 0; i < m->test->threads; i++) {
        if (!boot(m, i)) {
            g_set_error(error, VM_ERROR, VM_ERROR_ENGINE, "%s: %s",
                        m->test->name,
                        m->problem ? m->problem : "a vCPU was on already");
            return false;
        }
    }
    m->snapshot = snapshot_take(m->vm, error);
    return m->snapshot != NULL;
}

struct litmus_machine *litmus_machine_new(const struct litmus_test *test,
                                          const struct litmus_image *image,
                                          const char *inject, GError **error)
{
    struct litmus_machine *m = g_new0(struct litmus_machine, 1);

    m->test = test;
    m->image = image;
    m->inject = inject;
    m->taken = g_array_new(FALSE, TRUE, sizeof(struct litmus_taken));
    for (unsigned i = 0; i < LITMUS_THREADS_MAX; i++) {
        m->applied[i] =
            g_array_new(FALSE, FALSE, sizeof(struct litmus_applied));
    }
    if (!build(m, error)) {
        litmus_machine_free(m);
        return NULL;
    }
    return m;
}

void litmus_machine_reset(struct litmus_machine *m)
{
    snapshot_restore(m->snapshot);
    g_array_set_size(m->taken, 0);
    memset(m->exceptions, 0, sizeof(m->exceptions));
    memset(m->update, 0, sizeof(m->update));
    memset(m->began, 0, sizeof(m->began));
    for (unsigned i = 0; i < LITMUS_THREADS_MAX; i++) {
        g_array_set_size(m->applied[i], 0);
    }
    g_clear_pointer(&m->problem, g_free);
}

void litmus_machine_free(struct litmus_machine *m)
{
    if (!m) {
        return;
    }
    snapshot_free(m->snapshot);
    if (m->vm && m->vm_ops) {
        m->vm->sched->ops = m->vm_ops;
    }
    vm_free(m->vm);
    events_free(m->events);
    vm_config_free(m->config);
    for (unsigned i = 0; i < LITMUS_THREADS_MAX; i++) {
        g_array_unref(m->applied[i]);
    }
    g_array_unref(m->taken);
    g_free(m->problem);
    g_free(m);
}
