/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the memory nodes and of the order in which they are asked. */
#include "kernel/smp.h"
#include "mm/buddy.h"
#include "mm/ktest_mm.h"
#include "mm/node.h"

const char *test_node_counts(void)
{
    uint64_t total = 0, free = 0;

    for (unsigned node = 0; node < nodes_count(); node++) {
        uint64_t min = buddy_wmark(node, WMARK_MIN);
        uint64_t low = buddy_wmark(node, WMARK_LOW);
        uint64_t high = buddy_wmark(node, WMARK_HIGH);

        KTEST_CHECK(page_total_count_node(node) != 0);
        KTEST_CHECK(0 < min && min < low && low < high);
        KTEST_CHECK(low - min == high - low);
        KTEST_CHECK(high < page_total_count_node(node) / 4);
        total += page_total_count_node(node);
        free += page_free_count_node(node);
    }
    KTEST_CHECK(total == page_total_count());
    KTEST_CHECK(free == page_free_count());
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        KTEST_CHECK(node_of_cpu(cpu) < nodes_count());
    }
    return NULL;
}

const char *test_node_of_frame(void)
{
    struct page *pages[70];

    for (unsigned node = 0; node < nodes_count(); node++) {
        uint64_t before = page_free_count_node(node);

        for (unsigned i = 0; i < ARRAY_SIZE(pages); i++) {
            pages[i] = page_alloc_node(node, i == 0 ? 3 : 0, 0);
            KTEST_CHECK(pages[i] != NULL && pages[i]->node == node);
        }
        KTEST_CHECK(page_free_count_node(node) ==
                    before - 8 - (ARRAY_SIZE(pages) - 1));
        for (unsigned i = 0; i < ARRAY_SIZE(pages); i++) {
            page_free(pages[i], i == 0 ? 3 : 0);
        }
        KTEST_CHECK(page_free_count_node(node) == before);
    }
    return NULL;
}

/* Takes blocks of the node into the list until it gives none of itself. */
static unsigned drain_node(unsigned node, struct list *out)
{
    unsigned n = 0;

    for (unsigned order = 8;; order = order > 2 ? order - 1 : 0) {
        struct page *page = page_alloc_node(node, order, PAGE_ALLOC_THISNODE);

        while (page != NULL) {
            page->private = order;
            list_append(out, &page->lru);
            n++;
            page = page_alloc_node(node, order, PAGE_ALLOC_THISNODE);
        }
        if (order == 0) {
            return n;
        }
    }
}

const char *test_node_fallback(void)
{
    struct list taken = LIST_INIT(taken);
    struct page *page;
    unsigned other;

    if (nodes_count() < 2) {
        KTEST_SKIP("one node");
    }
    other = nodes_count() - 1;
    KTEST_CHECK(drain_node(other, &taken) > 0);
    /* It keeps its reserve: min, not low, was the floor. */
    KTEST_CHECK(buddy_free(other) <= buddy_wmark(other, WMARK_MIN));
    KTEST_CHECK(page_alloc_node(other, 0, PAGE_ALLOC_THISNODE) == NULL);
    page = page_alloc_node(other, 0, 0);
    KTEST_CHECK(page != NULL && page->node == 0);
    page_free(page, 0);
    page = page_alloc_node(other, 0, PAGE_ALLOC_THISNODE | PAGE_ALLOC_RESERVE);
    KTEST_CHECK(page != NULL && page->node == other);
    page_free(page, 0);
    while (!list_empty(&taken)) {
        page = page_of_node(taken.next);
        list_remove(&page->lru);
        page_free(page, (unsigned)page->private);
    }
    return NULL;
}
