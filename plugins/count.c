/* SPDX-License-Identifier: MIT */
/*
 * count: instructions, TLBI and DSB by guest symbol, as one aligned table at
 * the end of the run. Options: top=N (rows, default 20; 0: all).
 *
 * Each vCPU counts by address in a table of its own; symbols are looked up
 * once, at the end. Instructions are counted by block and belong to the
 * symbol of the block's first one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <shootdown/plugin.h>

SHOOTDOWN_PLUGIN("instructions, TLBI and DSB by guest symbol [top=ROWS]")

struct counts {
    uint64_t instructions, tlbi, dsb;
};

/* Open addressing; the key 0 is kept apart, it marks a free slot. */
struct table {
    struct slot {
        uint64_t pc;
        struct counts n;
    } * slots;
    size_t size, used; /* size: a power of two, or 0 */
    struct counts at_zero;
    uint64_t lost; /* events that found no memory */
};

struct row {
    char name[48];
    struct counts n;
};

struct count {
    const struct shootdown_host *host;
    struct table *tables; /* one per vCPU */
    size_t top;
};

/* --- counting, on each vCPU's own thread --- */

static struct slot *table_slot(struct slot *slots, size_t size, uint64_t pc)
{
    size_t i = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (size - 1);

    while (slots[i].pc != 0 && slots[i].pc != pc) {
        i = (i + 1) & (size - 1);
    }
    return &slots[i];
}

static bool table_grow(struct table *t)
{
    size_t size = t->size ? t->size * 2 : 1024;
    struct slot *slots = calloc(size, sizeof(*slots));

    if (!slots) {
        return false;
    }
    for (size_t i = 0; i < t->size; i++) {
        if (t->slots[i].pc != 0) {
            *table_slot(slots, size, t->slots[i].pc) = t->slots[i];
        }
    }
    free(t->slots);
    t->slots = slots;
    t->size = size;
    return true;
}

static struct counts *table_counts(struct table *t, uint64_t pc)
{
    struct slot *slot;

    if (pc == 0) {
        return &t->at_zero;
    }
    if (t->used * 2 >= t->size && !table_grow(t)) {
        t->lost++;
        return &t->at_zero;
    }
    slot = table_slot(t->slots, t->size, pc);
    if (slot->pc == 0) {
        slot->pc = pc;
        t->used++;
    }
    return &slot->n;
}

static void count_block(void *opaque, const struct shootdown_where *where,
                        const struct shootdown_block *block)
{
    struct count *c = opaque;

    table_counts(&c->tables[where->vcpu], block->va)->instructions +=
        block->insns;
}

static void count_tlbi(void *opaque, const struct shootdown_where *where,
                       const struct shootdown_tlbi *tlbi)
{
    struct count *c = opaque;

    (void)tlbi;
    table_counts(&c->tables[where->vcpu], where->pc)->tlbi++;
}

static void count_barrier(void *opaque, const struct shootdown_where *where,
                          const struct shootdown_barrier *barrier)
{
    struct count *c = opaque;

    (void)barrier;
    table_counts(&c->tables[where->vcpu], where->pc)->dsb++;
}

/* --- the table at the end --- */

static int row_by_name(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static int row_by_weight(const void *a, const void *b)
{
    const struct counts *x = &((const struct row *)a)->n;
    const struct counts *y = &((const struct row *)b)->n;

    /* Flushes first: they are what one looks for here. */
    if (x->tlbi + x->dsb != y->tlbi + y->dsb) {
        return x->tlbi + x->dsb > y->tlbi + y->dsb ? -1 : 1;
    }
    if (x->instructions != y->instructions) {
        return x->instructions > y->instructions ? -1 : 1;
    }
    return row_by_name(a, b);
}

static void counts_add(struct counts *into, const struct counts *n)
{
    into->instructions += n->instructions;
    into->tlbi += n->tlbi;
    into->dsb += n->dsb;
}

static void row_set_name(const struct count *c, struct row *row, uint64_t pc)
{
    struct shootdown_symbol symbol = {.size = sizeof(symbol)};
    const char *name = "(no symbol)";
    size_t length;

    if (c->host->symbol_at(c->host->self, pc, &symbol)) {
        name = symbol.name;
    }
    length = strlen(name);
    if (length >= sizeof(row->name)) {
        length = sizeof(row->name) - 1;
    }
    memcpy(row->name, name, length);
    row->name[length] = '\0';
}

/* All vCPUs' counts by symbol; the caller frees. */
static struct row *count_rows(const struct count *c, size_t *out_n)
{
    size_t n = 0, kept = 0, room = c->host->vcpus;
    struct row *rows;

    for (uint32_t v = 0; v < c->host->vcpus; v++) {
        room += c->tables[v].used;
    }
    rows = calloc(room, sizeof(*rows));
    if (!rows) {
        return NULL;
    }
    for (uint32_t v = 0; v < c->host->vcpus; v++) {
        const struct table *t = &c->tables[v];

        rows[n].n = t->at_zero;
        row_set_name(c, &rows[n++], 0);
        for (size_t i = 0; i < t->size; i++) {
            if (t->slots[i].pc != 0) {
                rows[n].n = t->slots[i].n;
                row_set_name(c, &rows[n++], t->slots[i].pc);
            }
        }
    }
    qsort(rows, n, sizeof(*rows), row_by_name);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && strcmp(rows[kept - 1].name, rows[i].name) == 0) {
            counts_add(&rows[kept - 1].n, &rows[i].n);
        } else {
            rows[kept++] = rows[i];
        }
    }
    qsort(rows, kept, sizeof(*rows), row_by_weight);
    *out_n = kept;
    return rows;
}

static void print_row(const struct count *c, const char *name,
                      const struct counts *n)
{
    c->host->output(c->host->self, "%-32.32s %18llu %12llu %12llu\n", name,
                    (unsigned long long)n->instructions,
                    (unsigned long long)n->tlbi, (unsigned long long)n->dsb);
}

static void count_exit(void *opaque)
{
    struct count *c = opaque;
    struct counts total = {0}, rest = {0};
    uint64_t lost = 0;
    size_t n = 0, hidden = 0;
    struct row *rows = count_rows(c, &n);

    c->host->output(c->host->self, "%-32s %18s %12s %12s\n", "count: symbol",
                    "instructions", "TLBI", "DSB");
    for (size_t i = 0; i < n; i++) {
        const struct counts *one = &rows[i].n;

        counts_add(&total, one);
        if (one->instructions + one->tlbi + one->dsb == 0) {
            continue;
        }
        if (c->top == 0 || i < c->top) {
            print_row(c, rows[i].name, one);
        } else {
            counts_add(&rest, one);
            hidden++;
        }
    }
    if (hidden > 0) {
        print_row(c, "(others; top=0 shows all)", &rest);
    }
    print_row(c, "total", &total);
    for (uint32_t v = 0; v < c->host->vcpus; v++) {
        lost += c->tables[v].lost;
        free(c->tables[v].slots);
    }
    if (lost > 0 || !rows) {
        c->host->output(c->host->self,
                        "count: memory was short, %llu events have no symbol\n",
                        (unsigned long long)lost);
    }
    free(rows);
    free(c->tables);
    free(c);
}

static bool parse_options(struct count *c, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        char *end = NULL;
        unsigned long value;

        errno = 0;
        value = strncmp(argv[i], "top=", 4) == 0
                    ? strtoul(argv[i] + 4, &end, 10)
                    : 0;
        if (!end || end == argv[i] + 4 || *end || errno || argv[i][4] == '-') {
            c->host->error(c->host->self,
                           "'%s' is no option of count: it knows top=ROWS",
                           argv[i]);
            return false;
        }
        c->top = value;
    }
    return true;
}

int shootdown_plugin_install(const struct shootdown_host *host, int argc,
                             char **argv)
{
    struct count *c = calloc(1, sizeof(*c));

    if (!c || !(c->tables = calloc(host->vcpus, sizeof(*c->tables)))) {
        host->error(host->self, "no memory");
        free(c);
        return 1;
    }
    c->host = host;
    c->top = 20;
    if (!parse_options(c, argc, argv)) {
        free(c->tables);
        free(c);
        return 1;
    }
    host->on_block(host->self, count_block, c);
    host->on_tlbi(host->self, count_tlbi, c);
    host->on_barrier(host->self, count_barrier, c);
    host->on_exit(host->self, count_exit, c);
    return 0;
}
