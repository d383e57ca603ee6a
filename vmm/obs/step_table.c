/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs as tables; see step_table.h. */
#include "obs/step_table.h"

#include <inttypes.h>
#include <string.h>
#include <glib.h>

#include "obs/stats.h"
#include "obs/symbols.h"

#define TABLE_WIDTH 80u
#define STEP_WIDTH 5u
/* A cell may run over into the next ones: they are empty in its line. */
#define CELL_MIN 14u
#define CELL_MAX 20u
#define SITE_MIN 18u
/* A longer run is not one to read. */
#define ROWS_MAX 2000u

#define DESC_VALID_BIT UINT64_C(1)
#define PAGE_NUMBER(address) ((address) >> 12)
/* Enough of a virtual page to tell it from the others of one program. */
#define SHORT_PAGE(va) (PAGE_NUMBER(va) & 0xfffff)

struct row {
    unsigned vcpu;
    char *what;
    uint64_t pc;    /* 0: no instruction of the guest */
    unsigned drops; /* translations lost in a row, all of them in this one */
};

struct step_table {
    const struct symbols *symbols;
    unsigned vcpus;
    bool recording;
    uint64_t left_out;
    GArray *rows; /* struct row */
};

#define TABLE_EVENTS                                                           \
    (EVENT_BIT(EVENT_pte_store) | EVENT_BIT(EVENT_pte_visible) |               \
     EVENT_BIT(EVENT_fill) | EVENT_BIT(EVENT_prefetch) |                       \
     EVENT_BIT(EVENT_evict) | EVENT_BIT(EVENT_invalidate) |                    \
     EVENT_BIT(EVENT_tlbi) | EVENT_BIT(EVENT_apply) | EVENT_BIT(EVENT_dsb) |   \
     EVENT_BIT(EVENT_fault) | EVENT_BIT(EVENT_irq_take) |                      \
     EVENT_BIT(EVENT_ipi_send) | EVENT_BIT(EVENT_ipi_take) |                   \
     EVENT_BIT(EVENT_frame_alloc) | EVENT_BIT(EVENT_frame_free) |              \
     EVENT_BIT(EVENT_op_begin) | EVENT_BIT(EVENT_op_end) |                     \
     EVENT_BIT(EVENT_mark) | EVENT_BIT(EVENT_finding))

/* Kernel addresses translate alike for everybody and never go stale here. */
static bool is_user(uint64_t va)
{
    return va >> 55 == 0;
}

static char *pte_text(uint64_t old, uint64_t now)
{
    if (!(old & DESC_VALID_BIT) && !(now & DESC_VALID_BIT)) {
        return g_strdup("pte: swap entry");
    }
    if (!(now & DESC_VALID_BIT)) {
        return g_strdup_printf("pte: unmap %" PRIx64,
                               PAGE_NUMBER(old & UINT64_C(0xfffffffff000)));
    }
    return g_strdup_printf(old & DESC_VALID_BIT ? "pte: change %" PRIx64
                                                : "pte: map %" PRIx64,
                           PAGE_NUMBER(now & UINT64_C(0xfffffffff000)));
}

/* NULL: not worth a row. */
static char *event_text(const struct event *e)
{
    const uint64_t *a = e->a;

    switch ((int)e->kind) {
    case EVENT_pte_store:
        return pte_text(a[1], a[2]);
    case EVENT_pte_visible:
        return g_strdup("stores shown");
    case EVENT_fill:
    case EVENT_prefetch:
        return is_user(a[0])
                   ? g_strdup_printf("%s %" PRIx64 ">%" PRIx64,
                                     e->kind == EVENT_fill ? "fill" : "pref",
                                     SHORT_PAGE(a[0]), PAGE_NUMBER(a[2]))
                   : NULL;
    case EVENT_evict:
    case EVENT_invalidate:
        return is_user(a[0])
                   ? g_strdup_printf("drop %" PRIx64, SHORT_PAGE(a[0]))
                   : NULL;
    case EVENT_tlbi:
        return g_strdup_printf("TLBI %s", tlbi_encoding_name((unsigned)a[0]));
    case EVENT_apply:
        return g_strdup_printf("apply of vCPU %" PRIu64, a[0]);
    case EVENT_dsb:
        return g_strdup_printf("DSB %s", barrier_name((unsigned)a[0]));
    case EVENT_fault:
        return a[0] == FAULT_SVC
                   ? g_strdup("svc")
                   : g_strdup_printf("fault %" PRIx64, SHORT_PAGE(a[2]));
    case EVENT_irq_take:
        return g_strdup("interrupt");
    case EVENT_ipi_send:
        return g_strdup_printf("IPI %" PRIu64 " sent", a[1]);
    case EVENT_ipi_take:
        return g_strdup_printf("IPI %" PRIu64 " taken", a[0]);
    case EVENT_frame_alloc:
        return g_strdup_printf("alloc %" PRIx64, PAGE_NUMBER(a[0]));
    case EVENT_frame_free:
        return g_strdup_printf("free %" PRIx64, PAGE_NUMBER(a[0]));
    case EVENT_op_begin:
        return g_strdup_printf("%s {", op_kind_name((unsigned)a[0]));
    case EVENT_op_end:
        return g_strdup_printf("} %s", op_kind_name((unsigned)a[0]));
    case EVENT_mark:
        return g_strdup_printf("mark %" PRIu64, a[0]);
    case EVENT_finding:
        return g_strdup_printf("FINDING %" PRIu64, a[0]);
    default:
        return NULL;
    }
}

static bool is_drop(enum event_kind kind)
{
    return kind == EVENT_evict || kind == EVENT_invalidate;
}

static bool has_site(enum event_kind kind)
{
    return kind == EVENT_pte_store || kind == EVENT_tlbi || kind == EVENT_dsb ||
           kind == EVENT_ipi_send || kind == EVENT_fault;
}

static void add_event(void *opaque, const struct event *event)
{
    struct step_table *table = opaque;
    struct row row = {.vcpu = event->vcpu};

    if (!table->recording) {
        return;
    }
    if (table->rows->len == ROWS_MAX) {
        table->left_out++;
        return;
    }
    row.what = event_text(event);
    row.drops = row.what && is_drop(event->kind);
    if (row.drops && table->rows->len) {
        struct row *last =
            &g_array_index(table->rows, struct row, table->rows->len - 1);

        if (last->drops && last->vcpu == row.vcpu) {
            last->drops++;
            g_free(last->what);
            g_free(row.what);
            last->what = g_strdup_printf("drop %u pages", last->drops);
            return;
        }
    }
    if (row.what) {
        row.pc = has_site(event->kind) ? event->pc : 0;
        g_array_append_val(table->rows, row);
    }
}

static void clear_row(void *row)
{
    g_free(((struct row *)row)->what);
}

struct step_table *step_table_new(struct events *ev,
                                  const struct symbols *symbols)
{
    struct step_table *table = g_new0(struct step_table, 1);

    table->symbols = symbols;
    table->vcpus = ev->vcpus;
    table->rows = g_array_new(FALSE, FALSE, sizeof(struct row));
    g_array_set_clear_func(table->rows, clear_row);
    events_subscribe(ev, TABLE_EVENTS, add_event, table);
    return table;
}

void step_table_free(struct step_table *table)
{
    if (table) {
        g_array_unref(table->rows);
        g_free(table);
    }
}

void step_table_record(struct step_table *table)
{
    g_array_set_size(table->rows, 0);
    table->left_out = 0;
    table->recording = true;
}

/* Columns of the vCPUs that did something; returns how many. */
static unsigned columns_of(const struct step_table *table, unsigned *out_column)
{
    unsigned columns = 0;

    for (unsigned v = 0; v < table->vcpus; v++) {
        out_column[v] = UINT_MAX;
        for (guint i = 0; i < table->rows->len; i++) {
            if (g_array_index(table->rows, struct row, i).vcpu == v) {
                out_column[v] = columns++;
                break;
            }
        }
    }
    return columns;
}

static void pad_to(GString *line, gsize width)
{
    while (line->len < width) {
        g_string_append_c(line, ' ');
    }
}

static void end_line(GString *text, GString *line)
{
    while (line->len && line->str[line->len - 1] == ' ') {
        g_string_truncate(line, line->len - 1);
    }
    g_string_append_printf(text, "%.*s\n", (int)TABLE_WIDTH, line->str);
    g_string_truncate(line, 0);
}

static void header(const struct step_table *table, GString *text,
                   const unsigned *column, unsigned width, bool narrow)
{
    GString *line = g_string_new(" step");

    for (unsigned v = 0; !narrow && v < table->vcpus; v++) {
        if (column[v] != UINT_MAX) {
            pad_to(line, STEP_WIDTH + 1 + column[v] * width);
            g_string_append_printf(line, "vCPU %u", v);
        }
    }
    if (narrow) {
        g_string_append(line, " vCPU  what");
    }
    end_line(text, line);
    g_string_free(line, TRUE);
}

char *step_table_text(const struct step_table *table)
{
    unsigned *column = g_new(unsigned, table->vcpus);
    unsigned columns = columns_of(table, column);
    unsigned room = TABLE_WIDTH - STEP_WIDTH - 1;
    bool narrow = columns * CELL_MIN > room;
    unsigned width =
        narrow ? 0 : MIN(CELL_MAX, (room - SITE_MIN) / MAX(columns, 1u));
    unsigned site_at =
        STEP_WIDTH + 1 + (narrow ? 6 + CELL_MAX : columns * width);
    GString *text = g_string_new(NULL);
    GString *line = g_string_new(NULL);

    header(table, text, column, width, narrow);
    for (guint i = 0; i < table->rows->len; i++) {
        const struct row *row = &g_array_index(table->rows, struct row, i);
        char site[64] = "";

        g_string_append_printf(line, "%*u ", (int)STEP_WIDTH, i + 1);
        if (narrow) {
            g_string_append_printf(line, "%4u  ", row->vcpu);
        } else {
            pad_to(line, STEP_WIDTH + 1 + column[row->vcpu] * width);
        }
        g_string_append(line, row->what);
        if (row->pc) {
            g_string_append_c(line, ' ');
            pad_to(line, site_at);
            symbols_format(table->symbols, row->pc, site, sizeof(site));
            g_string_append(line, site);
        }
        end_line(text, line);
    }
    g_string_append(text, "\nfill: virtual page (its last five digits) > "
                          "frame; pte: frame\n");
    if (table->left_out) {
        g_string_append_printf(text, "      ... and %" PRIu64 " more\n",
                               table->left_out);
    }
    g_string_free(line, TRUE);
    g_free(column);
    return g_string_free(text, FALSE);
}
