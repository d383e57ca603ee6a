/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Final states; see state.h. */
#include "litmus/state.h"

#include <inttypes.h>
#include <string.h>

static const char *const fault_names[] = {
    [LITMUS_FAULT_ANY] = "",
    [LITMUS_FAULT_TRANSLATION] = "D-MMU:Translation",
    [LITMUS_FAULT_ACCESS_FLAG] = "D-MMU:AccessFlag",
    [LITMUS_FAULT_PERMISSION] = "D-MMU:Permission",
    [LITMUS_FAULT_OTHER] = "D-other",
};

/* --- values --- */

static uint64_t value_at(struct litmus_machine *m,
                         const struct litmus_place *place)
{
    switch (place->kind) {
    case LITMUS_AT_REG:
        return litmus_register_value(m, place->thread, place->reg);
    case LITMUS_AT_VAR:
        return litmus_variable_value(m, place->var, place->element);
    case LITMUS_AT_PTE:
        return litmus_descriptor(m, place->var);
    case LITMUS_AT_FAULT:
        break;
    }
    return 0;
}

static void append_pte(GString *out, const struct litmus_test *test,
                       const struct litmus_pte *pte)
{
    const struct {
        const char *name;
        bool is, usual;
    } bits[] = {
        {"valid", pte->valid, true}, {"af", pte->af, true},
        {"db", pte->db, true},       {"dbm", pte->dbm, false},
        {"el0", pte->el0, true},     {"x", pte->x, true},
    };

    g_string_append_printf(out, "(oa:PA(%s)", test->var[pte->oa].name);
    for (unsigned i = 0; i < G_N_ELEMENTS(bits); i++) {
        if (bits[i].is != bits[i].usual) {
            g_string_append_printf(out, ", %s:%d", bits[i].name, bits[i].is);
        }
    }
    g_string_append_c(out, ')');
}

/* label:"P1:L0", if a slot with a label is there. */
static bool append_label(GString *out, struct litmus_machine *m, uint64_t va)
{
    for (unsigned t = 0; t < m->test->threads; t++) {
        const struct litmus_thread *thread = &m->test->thread[t];
        uint64_t slot = (va - LITMUS_CODE(t)) / LITMUS_SLOT;

        if (va >= LITMUS_CODE(t) && va % LITMUS_SLOT == 0 &&
            slot < thread->code->len) {
            const struct litmus_insn *insn = thread->code->pdata[slot];

            if (insn->labels->len) {
                g_string_append_printf(out, "label:\"P%u:%s\"", t,
                                       (char *)insn->labels->pdata[0]);
                return true;
            }
        }
    }
    return false;
}

/*
 * Addresses and descriptors of this machine do not overlap and are no numbers
 * that tests compute with, so a value tells what it is.
 */
static void append_value(GString *out, struct litmus_machine *m, uint64_t value)
{
    const struct litmus_test *test = m->test;
    struct litmus_pte pte;
    uint64_t page = (value - LITMUS_VARS_VA) / LITMUS_PAGE;
    uint64_t index = (value - LITMUS_PTES_VA) / sizeof(uint64_t);

    if (litmus_pte_read(test, value, &pte)) {
        append_pte(out, test, &pte);
    } else if (value >= LITMUS_VARS_VA && page < test->vars &&
               value % LITMUS_PAGE == 0) {
        g_string_append(out, test->var[page].name);
    } else if (value >= LITMUS_PTES_VA && index < test->vars &&
               value % sizeof(uint64_t) == 0) {
        g_string_append_printf(out, "PTE(%s)", test->var[index].name);
    } else if (!append_label(out, m, value)) {
        g_string_append_printf(out, "%" PRId64, (int64_t)value);
    }
}

/* --- faults --- */

static bool matches(const struct litmus_place *p, const struct litmus_taken *t)
{
    return t->thread == p->thread &&
           (p->fault_var < 0 || t->var == p->fault_var) &&
           (p->fault == LITMUS_FAULT_ANY || t->kind == p->fault) &&
           (!p->label || (t->insn && litmus_insn_has_label(t->insn, p->label)));
}

static bool was_taken(struct litmus_machine *m, const struct litmus_place *p)
{
    for (guint i = 0; i < m->taken->len; i++) {
        if (matches(p, &g_array_index(m->taken, struct litmus_taken, i))) {
            return true;
        }
    }
    return false;
}

static void append_fault(GString *out, const struct litmus_test *test,
                         const struct litmus_place *p, int var,
                         enum litmus_fault_kind kind)
{
    g_string_append_printf(out, "Fault(P%u", p->thread);
    if (p->label) {
        g_string_append_printf(out, ":%s", p->label);
    }
    if (var >= 0) {
        g_string_append_printf(out, ",%s", test->var[var].name);
    }
    if (kind != LITMUS_FAULT_ANY) {
        /* As herd does: where the test names the kind, without "D-". */
        g_string_append_printf(out, ",%s",
                               fault_names[kind] +
                                   (p->fault == kind ? strlen("D-") : 0));
    }
    g_string_append(out, ");");
}

static void add_item(GPtrArray *items, GString *item)
{
    for (guint i = 0; i < items->len; i++) {
        if (strcmp(items->pdata[i], item->str) == 0) {
            g_string_free(item, TRUE);
            return;
        }
    }
    g_ptr_array_add(items, g_string_free(item, FALSE));
}

static void add_faults(struct litmus_machine *m, const struct litmus_place *p,
                       GPtrArray *items)
{
    for (guint i = 0; i < m->taken->len; i++) {
        const struct litmus_taken *t =
            &g_array_index(m->taken, struct litmus_taken, i);

        if (matches(p, t)) {
            GString *item = g_string_new(NULL);

            append_fault(item, m->test, p, t->var, t->kind);
            add_item(items, item);
        }
    }
}

static void add_absence(struct litmus_machine *m, const struct litmus_place *p,
                        GPtrArray *items)
{
    GString *item = g_string_new("~");

    append_fault(item, m->test, p, p->fault_var, p->fault);
    add_item(items, item);
}

/* --- the whole state --- */

static int in_order(gconstpointer a, gconstpointer b, gpointer opaque)
{
    const struct litmus_test *test = opaque;
    const struct litmus_place *x = *(struct litmus_place *const *)a;
    const struct litmus_place *y = *(struct litmus_place *const *)b;

    return x->kind != y->kind       ? (int)x->kind - (int)y->kind
           : x->thread != y->thread ? (int)x->thread - (int)y->thread
           : x->reg != y->reg       ? (int)x->reg - (int)y->reg
           : x->var != y->var
               ? strcmp(test->var[x->var].name, test->var[y->var].name)
               : (int)x->element - (int)y->element;
}

static void add_storage(struct litmus_machine *m, const struct litmus_place *p,
                        GPtrArray *items)
{
    const struct litmus_var *var = &m->test->var[p->var];
    GString *item = g_string_new(NULL);

    if (p->kind == LITMUS_AT_REG) {
        g_string_printf(item, "%u:X%u=", p->thread, p->reg);
    } else if (p->kind == LITMUS_AT_PTE) {
        g_string_printf(item, "[PTE(%s)]=", var->name);
    } else if (var->count > 1) {
        g_string_printf(item, "%s[%u]=", var->name, p->element);
    } else {
        g_string_printf(item, "[%s]=", var->name);
    }
    append_value(item, m, value_at(m, p));
    g_string_append_c(item, ';');
    add_item(items, item);
}

char *litmus_state_text(struct litmus_machine *m)
{
    g_autoptr(GPtrArray) places = g_ptr_array_new();
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < m->test->places->len; i++) {
        g_ptr_array_add(places, m->test->places->pdata[i]);
    }
    g_ptr_array_sort_with_data(places, in_order, (gpointer)m->test);
    for (guint i = 0; i < places->len; i++) {
        const struct litmus_place *p = places->pdata[i];

        if (p->kind != LITMUS_AT_FAULT) {
            add_storage(m, p, items);
        } else if (was_taken(m, p)) {
            add_faults(m, p, items);
        }
    }
    for (guint i = 0; i < places->len; i++) {
        const struct litmus_place *p = places->pdata[i];

        if (p->kind == LITMUS_AT_FAULT && !was_taken(m, p)) {
            add_absence(m, p, items);
        }
    }
    for (guint i = 0; i < items->len; i++) {
        g_string_append_printf(out, "%s%s", i ? " " : "",
                               (char *)items->pdata[i]);
    }
    return g_string_free(out, FALSE);
}

static bool value_is(struct litmus_machine *m, const struct litmus_place *p,
                     const struct litmus_value *value)
{
    uint64_t is = value_at(m, p);
    uint64_t wanted;

    if (value->kind == LITMUS_PTE && value->pte.oa < 0 &&
        p->kind != LITMUS_AT_PTE) {
        struct litmus_pte pte;

        /* Of no variable in particular: all but the address counts. */
        return litmus_pte_read(m->test, is, &pte) &&
               is == litmus_pte_bits(&value->pte, (unsigned)pte.oa);
    }
    wanted = litmus_value_bits(m, value,
                               p->kind == LITMUS_AT_PTE ? (int)p->var : -1);
    if (p->kind == LITMUS_AT_VAR && m->test->var[p->var].size == 4) {
        return (uint32_t)is == (uint32_t)wanted;
    }
    /* A W register holds what a test writes as a negative number. */
    return is == wanted ||
           (value->kind == LITMUS_NUMBER && p->kind == LITMUS_AT_REG &&
            (int64_t)wanted < 0 && is == (uint32_t)wanted);
}

bool litmus_state_holds(struct litmus_machine *m,
                        const struct litmus_formula *f)
{
    switch (f->kind) {
    case LITMUS_TRUE:
        return true;
    case LITMUS_NOT:
        return !litmus_state_holds(m, f->left);
    case LITMUS_AND:
        return litmus_state_holds(m, f->left) &&
               litmus_state_holds(m, f->right);
    case LITMUS_OR:
        return litmus_state_holds(m, f->left) ||
               litmus_state_holds(m, f->right);
    case LITMUS_IS:
        return f->place.kind == LITMUS_AT_FAULT
                   ? was_taken(m, &f->place)
                   : value_is(m, &f->place, &f->value) != f->differs;
    }
    return false;
}

/* --- comparing --- */

static int by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "(oa:PA(x), db:0)": blanks out, fields sorted. */
static char *normal_item(const char *item)
{
    GString *out = g_string_new(NULL);
    const char *open = strstr(item, "(oa:");

    for (const char *p = item; *p && p != open; p++) {
        if (!g_ascii_isspace(*p)) {
            g_string_append_c(out, *p);
        }
    }
    if (open) {
        g_autofree char *copy = g_strdup(open + 1);
        char *close = strrchr(copy, ')');
        g_auto(GStrv) fields = NULL;

        if (close) {
            *close = '\0';
        }
        fields = g_strsplit(copy, ",", -1);
        for (char **f = fields; *f; f++) {
            g_strstrip(*f);
        }
        qsort(fields, g_strv_length(fields), sizeof(*fields), by_text);
        for (char **f = fields; *f; f++) {
            g_string_append_printf(out, "%s%s", f == fields ? "(" : ",", *f);
        }
        g_string_append_c(out, ')');
    }
    return g_string_free(out, FALSE);
}

char *litmus_state_normalized(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ";", -1);
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);
    GString *out = g_string_new(NULL);

    for (char **part = parts; *part; part++) {
        g_strstrip(*part);
        if (**part) {
            g_ptr_array_add(items, normal_item(*part));
        }
    }
    g_ptr_array_sort(items, by_text);
    for (guint i = 0; i < items->len; i++) {
        g_string_append_printf(out, "%s;", (char *)items->pdata[i]);
    }
    return g_string_free(out, FALSE);
}
