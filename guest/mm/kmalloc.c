/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small objects: one page per slab, a free bitmap by chaining inside the free
 * objects, one lock per size class. An empty slab goes back to the page
 * allocator at once, so that free-page counts mean something. Above half a
 * page, whole blocks of the page allocator. Thread context.
 */
#include "kernel/panic.h"
#include "mm/page.h"

#define CLASS_MIN_SHIFT 4
#define CLASSES 8 /* 16, 32, ... 2048 */

struct slab_class {
    struct spinlock lock;
    struct list partial; /* slabs with a free object */
} CACHE_ALIGNED;

static struct slab_class classes[CLASSES] = {
#define CLASS(n) [n] = {SPINLOCK_INIT(LOCK_kmalloc), LIST_INIT(classes[n].partial)}
    CLASS(0), CLASS(1), CLASS(2), CLASS(3),
    CLASS(4), CLASS(5), CLASS(6), CLASS(7),
};

static unsigned class_of(size_t size)
{
    unsigned c = 0;

    while ((1UL << (c + CLASS_MIN_SHIFT)) < size) {
        c++;
    }
    return c;
}

/*
 * Slab page: index = class, private = objects in use, mapping = first free
 * object; a free object's first word is the next.
 */
static struct page *slab_new(unsigned c)
{
    struct page *page = page_alloc(0, 0);
    size_t size = 1UL << (c + CLASS_MIN_SHIFT);
    char *base;

    if (page == NULL) {
        return NULL;
    }
    base = page_address(page);
    page->index = c;
    page->mapping = NULL;
    page_set(page, PG_SLAB);
    for (size_t at = PAGE_SIZE; at >= size; at -= size) {
        void **object = (void **)(base + at - size);

        *object = page->mapping;
        page->mapping = object;
    }
    return page;
}

static void *slab_take(unsigned c)
{
    struct slab_class *class = &classes[c];
    struct page *page;
    void **object;

    spin_lock(&class->lock);
    if (list_empty(&class->partial)) {
        page = slab_new(c);
        if (page == NULL) {
            spin_unlock(&class->lock);
            return NULL;
        }
        list_push(&class->partial, &page->lru);
    } else {
        page = page_of_node(class->partial.next);
    }
    object = page->mapping;
    page->mapping = *object;
    page->private ++;
    if (page->mapping == NULL) {
        list_remove(&page->lru); /* full */
    }
    spin_unlock(&class->lock);
    return object;
}

void *kmalloc(size_t size)
{
    void *object;

    if (size > PAGE_SIZE / 2) {
        unsigned order = 0;

        while (order <= PAGE_MAX_ORDER && (PAGE_SIZE << order) < size) {
            order++;
        }
        return order > PAGE_MAX_ORDER ? NULL : page_alloc_virt(order);
    }
    object = slab_take(class_of(size));
    if (object != NULL) {
        memset(object, 0, 1UL << (class_of(size) + CLASS_MIN_SHIFT));
    }
    return object;
}

void kfree(void *object)
{
    struct page *page;
    struct slab_class *class;

    if (object == NULL) {
        return;
    }
    page = virt_to_page(object);
    if (!page_test(page, PG_SLAB)) {
        page_free(page, page->order);
        return;
    }
    class = &classes[page->index];
    spin_lock(&class->lock);
    ASSERT(page->private != 0);
    if (page->mapping == NULL) {
        list_push(&class->partial, &page->lru); /* was full */
    }
    *(void **)object = page->mapping;
    page->mapping = object;
    page->private --;
    if (page->private == 0) {
        list_remove(&page->lru);
        page_clear(page, PG_SLAB);
        page_free(page, 0);
    }
    spin_unlock(&class->lock);
}
