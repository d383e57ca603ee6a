/* SPDX-License-Identifier: MIT */
/*
 * tlbstat: which pages the modelled TLBs lost and had to fetch again.
 * Options: top=N (rows, default 20; 0: all).
 *
 * A miss is a fill. A refill is a fill of a page that the same vCPU's TLB had
 * held before: after an eviction it is the price of a small TLB, after an
 * invalidation the price of a flush. Each vCPU has a table of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <shootdown/plugin.h>

SHOOTDOWN_PLUGIN("misses, evictions and refills of the TLB by page [top=ROWS]")

enum page_state { PAGE_NEVER, PAGE_HELD, PAGE_EVICTED, PAGE_INVALIDATED };

struct page {
    uint64_t va;
    uint16_t asid;
    uint8_t state; /* enum page_state, of the vCPU whose table it is */
    bool is_used;
    uint64_t misses, hits, evictions, invalidations;
    uint64_t refills_evicted, refills_invalidated;
};

struct table {
    struct page *pages;
    size_t size, used;
    uint64_t lost;
};

struct tlbstat {
    const struct shootdown_host *host;
    struct table *tables;
    size_t top;
};

/* --- counting, on each vCPU's own thread --- */

static struct page *page_slot(struct page *pages, size_t size, uint64_t va,
                              uint16_t asid)
{
    uint64_t hash = (va ^ asid) * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(hash >> 24) & (size - 1);

    while (pages[i].is_used && (pages[i].va != va || pages[i].asid != asid)) {
        i = (i + 1) & (size - 1);
    }
    return &pages[i];
}

static bool table_grow(struct table *t)
{
    size_t size = t->size ? t->size * 2 : 1024;
    struct page *pages = calloc(size, sizeof(*pages));

    if (!pages) {
        return false;
    }
    for (size_t i = 0; i < t->size; i++) {
        if (t->pages[i].is_used) {
            *page_slot(pages, size, t->pages[i].va, t->pages[i].asid) =
                t->pages[i];
        }
    }
    free(t->pages);
    t->pages = pages;
    t->size = size;
    return true;
}

/* NULL where memory is short; then the event is only counted as lost. */
static struct page *table_page(struct table *t,
                               const struct shootdown_tlb *entry)
{
    struct page *page;

    if (t->used * 2 >= t->size && !table_grow(t)) {
        t->lost++;
        return NULL;
    }
    page = page_slot(t->pages, t->size, entry->va, entry->asid);
    if (!page->is_used) {
        page->is_used = true;
        page->va = entry->va;
        page->asid = entry->asid;
        t->used++;
    }
    return page;
}

static struct page *page_of(void *opaque, const struct shootdown_where *where,
                            const struct shootdown_tlb *entry)
{
    struct tlbstat *s = opaque;

    return table_page(&s->tables[where->vcpu], entry);
}

static void stat_fill(void *opaque, const struct shootdown_where *where,
                      const struct shootdown_tlb *entry)
{
    struct page *page = page_of(opaque, where, entry);

    if (page) {
        page->misses++;
        page->refills_evicted += page->state == PAGE_EVICTED;
        page->refills_invalidated += page->state == PAGE_INVALIDATED;
        page->state = PAGE_HELD;
    }
}

static void stat_hit(void *opaque, const struct shootdown_where *where,
                     const struct shootdown_tlb *entry)
{
    struct page *page = page_of(opaque, where, entry);

    if (page) {
        page->hits++;
    }
}

static void stat_evict(void *opaque, const struct shootdown_where *where,
                       const struct shootdown_tlb *entry)
{
    struct page *page = page_of(opaque, where, entry);

    if (page) {
        page->evictions++;
        page->state = PAGE_EVICTED;
    }
}

static void stat_invalidate(void *opaque, const struct shootdown_where *where,
                            const struct shootdown_tlb *entry)
{
    struct page *page = page_of(opaque, where, entry);

    if (page) {
        page->invalidations++;
        page->state = PAGE_INVALIDATED;
    }
}

/* --- the table at the end --- */

static int page_by_key(const void *a, const void *b)
{
    const struct page *x = a, *y = b;

    if (x->va != y->va) {
        return x->va < y->va ? -1 : 1;
    }
    return (int)x->asid - (int)y->asid;
}

static int page_by_misses(const void *a, const void *b)
{
    const struct page *x = a, *y = b;

    if (x->misses != y->misses) {
        return x->misses > y->misses ? -1 : 1;
    }
    return page_by_key(a, b);
}

static void page_add(struct page *into, const struct page *p)
{
    into->misses += p->misses;
    into->hits += p->hits;
    into->evictions += p->evictions;
    into->invalidations += p->invalidations;
    into->refills_evicted += p->refills_evicted;
    into->refills_invalidated += p->refills_invalidated;
}

/* All vCPUs' pages, merged; the caller frees. */
static struct page *stat_pages(const struct tlbstat *s, size_t *out_n)
{
    size_t n = 0, kept = 0, room = 1;
    struct page *pages;

    for (uint32_t v = 0; v < s->host->vcpus; v++) {
        room += s->tables[v].used;
    }
    pages = calloc(room, sizeof(*pages));
    if (!pages) {
        return NULL;
    }
    for (uint32_t v = 0; v < s->host->vcpus; v++) {
        for (size_t i = 0; i < s->tables[v].size; i++) {
            if (s->tables[v].pages[i].is_used) {
                pages[n++] = s->tables[v].pages[i];
            }
        }
    }
    qsort(pages, n, sizeof(*pages), page_by_key);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && page_by_key(&pages[kept - 1], &pages[i]) == 0) {
            page_add(&pages[kept - 1], &pages[i]);
        } else {
            pages[kept++] = pages[i];
        }
    }
    qsort(pages, kept, sizeof(*pages), page_by_misses);
    *out_n = kept;
    return pages;
}

static void print_counts(const struct tlbstat *s, const struct page *p)
{
    s->host->output(s->host->self, " %9llu %9llu %8llu %8llu %7llu %7llu\n",
                    (unsigned long long)p->misses, (unsigned long long)p->hits,
                    (unsigned long long)p->evictions,
                    (unsigned long long)p->invalidations,
                    (unsigned long long)p->refills_evicted,
                    (unsigned long long)p->refills_invalidated);
}

static void stat_exit(void *opaque)
{
    struct tlbstat *s = opaque;
    struct page total = {0};
    uint64_t lost = 0;
    size_t n = 0;
    struct page *pages = stat_pages(s, &n);

    s->host->output(s->host->self, "%-24s %9s %9s %8s %8s %15s\n",
                    "tlbstat: page", "misses", "hits", "evicted", "flushed",
                    "refills ev/fl");
    for (size_t i = 0; i < n; i++) {
        page_add(&total, &pages[i]);
        if (s->top == 0 || i < s->top) {
            s->host->output(s->host->self, "%#018llx %5u",
                            (unsigned long long)pages[i].va, pages[i].asid);
            print_counts(s, &pages[i]);
        }
    }
    if (s->top != 0 && n > s->top) {
        s->host->output(s->host->self, "(%llu more; top=0 shows all)\n",
                        (unsigned long long)(n - s->top));
    }
    s->host->output(s->host->self, "%-24s", "total");
    print_counts(s, &total);
    for (uint32_t v = 0; v < s->host->vcpus; v++) {
        lost += s->tables[v].lost;
        free(s->tables[v].pages);
    }
    if (lost > 0 || !pages) {
        s->host->output(s->host->self,
                        "tlbstat: memory was short, %llu events are missing\n",
                        (unsigned long long)lost);
    }
    free(pages);
    free(s->tables);
    free(s);
}

static bool parse_options(struct tlbstat *s, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        char *end = NULL;
        unsigned long value;

        errno = 0;
        value = strncmp(argv[i], "top=", 4) == 0
                    ? strtoul(argv[i] + 4, &end, 10)
                    : 0;
        if (!end || end == argv[i] + 4 || *end || errno || argv[i][4] == '-') {
            s->host->error(s->host->self,
                           "'%s' is no option of tlbstat: it knows top=ROWS",
                           argv[i]);
            return false;
        }
        s->top = value;
    }
    return true;
}

int shootdown_plugin_install(const struct shootdown_host *host, int argc,
                             char **argv)
{
    struct tlbstat *s = calloc(1, sizeof(*s));

    if (!s || !(s->tables = calloc(host->vcpus, sizeof(*s->tables)))) {
        host->error(host->self, "no memory");
        free(s);
        return 1;
    }
    s->host = host;
    s->top = 20;
    if (!parse_options(s, argc, argv)) {
        free(s->tables);
        free(s);
        return 1;
    }
    host->on_tlb_fill(host->self, stat_fill, s);
    host->on_tlb_hit(host->self, stat_hit, s);
    host->on_tlb_evict(host->self, stat_evict, s);
    host->on_tlb_invalidate(host->self, stat_invalidate, s);
    host->on_exit(host->self, stat_exit, s);
    return 0;
}
