/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunk allocator of the compressed RAM device. A frame of class c is cut into
 * class_chunks[c] equal chunks; page->private is the bitmap of those in use,
 * page->index the class. An empty frame goes back at once.
 */
#include "mm/swap_store.h"

#include "kernel/panic.h"
#include "mm/page.h"
#include "mm/swap.h"

static const uint8_t class_chunks[] = {64, 48, 32, 24, 20, 16, 12, 10,
                                       8,  7,  6,  5,  4,  3,  2,  1};
#define CLASSES ARRAY_SIZE(class_chunks)

static struct store_class {
    struct spinlock lock;
    struct list partial; /* frames with a free chunk */
} CACHE_ALIGNED store[CLASSES];

static _Atomic uint64_t frames;

void swap_store_init(void)
{
    for (unsigned c = 0; c < CLASSES; c++) {
        spin_init(&store[c].lock, LOCK_swap_store);
        list_init(&store[c].partial);
    }
}

static size_t class_size(unsigned c)
{
    return (PAGE_SIZE / class_chunks[c]) & ~15UL;
}

static unsigned class_of(size_t size)
{
    unsigned c = 0;

    while (class_size(c) < size) {
        c++;
    }
    return c;
}

static bool frame_full(const struct page *page)
{
    unsigned n = class_chunks[page->index];

    return page->private == (n == 64 ? ~0UL : BIT(n) - 1);
}

void *swap_store_alloc(size_t size)
{
    unsigned c = class_of(size), bit;
    struct store_class *class = &store[c];
    struct page *page;

    spin_lock(&class->lock);
    if (list_empty(&class->partial)) {
        page = page_alloc(0, PAGE_ALLOC_RESERVE);
        if (page == NULL) {
            spin_unlock(&class->lock);
            return NULL;
        }
        page->index = c;
        list_push(&class->partial, &page->lru);
        atomic_fetch_add_explicit(&frames, 1, memory_order_relaxed);
    } else {
        page = page_of_node(class->partial.next);
    }
    bit = (unsigned)__builtin_ctzl(~page->private);
    page->private |= BIT(bit);
    if (frame_full(page)) {
        list_remove(&page->lru);
    }
    spin_unlock(&class->lock);
    return (char *)page_address(page) + bit * class_size(c);
}

void swap_store_free(void *chunk)
{
    struct page *page = virt_to_page(chunk);
    struct store_class *class = &store[page->index];
    unsigned bit = (unsigned)(((uint64_t)chunk & (PAGE_SIZE - 1)) /
                              class_size((unsigned)page->index));

    spin_lock(&class->lock);
    ASSERT(page->private & BIT(bit));
    if (frame_full(page)) {
        list_push(&class->partial, &page->lru);
    }
    page->private &= ~BIT(bit);
    if (page->private == 0) {
        list_remove(&page->lru);
        page_free(page, 0);
        atomic_fetch_sub_explicit(&frames, 1, memory_order_relaxed);
    }
    spin_unlock(&class->lock);
}

uint64_t swap_store_pages(void)
{
    return atomic_load_explicit(&frames, memory_order_relaxed);
}
