/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the allocators and the compressor. */
#include "kernel/smp.h"
#include "mm/compress.h"
#include "mm/ktest_mm.h"
#include "mm/node.h"
#include "mm/swap_store.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return *state >> 33;
}

const char *test_compress(void)
{
    struct compress_work *work = kmalloc(sizeof(*work));
    uint32_t *src = kmalloc(PAGE_SIZE), *dst = kmalloc(PAGE_SIZE);
    uint64_t seed = 1;
    size_t size;

    KTEST_CHECK(work != NULL && src != NULL && dst != NULL);
    for (unsigned kind = 0; kind < 8; kind++) {
        for (unsigned i = 0; i < COMPRESS_WORDS; i++) {
            src[i] = kind < 4 ? (uint32_t)(next_random(&seed) % (2 + kind))
                              : i / (kind * 3);
        }
        size = compress_page(work, src, PAGE_SIZE);
        KTEST_CHECK(size != 0 && size < PAGE_SIZE);
        memset(dst, 0xee, PAGE_SIZE);
        KTEST_CHECK(compress_expand(work->out, size, dst));
        KTEST_CHECK(memcmp(src, dst, PAGE_SIZE) == 0);
        KTEST_CHECK(!compress_expand(work->out, size - 8, dst));
    }
    for (unsigned i = 0; i < COMPRESS_WORDS; i++) {
        src[i] = (uint32_t)(next_random(&seed) * 2654435761U);
    }
    KTEST_CHECK(compress_page(work, src, PAGE_SIZE) == 0);
    kfree(work);
    kfree(src);
    kfree(dst);
    return NULL;
}

const char *test_fill(void)
{
    uint64_t *src = kmalloc(PAGE_SIZE), *dst = kmalloc(PAGE_SIZE);
    struct compress_fill fill;

    KTEST_CHECK(src != NULL && dst != NULL);
    memset(src, 0x5a, PAGE_SIZE);
    for (unsigned i = 0; i < PAGE_SIZE / 8; i++) {
        src[i] ^= BIT(i % 64);
        KTEST_CHECK(compress_is_fill(src, &fill) == (i == 0));
        src[i] ^= BIT(i % 64);
    }
    src[0] = 7;
    memset(dst, 0xee, PAGE_SIZE);
    KTEST_CHECK(compress_is_fill(src, &fill));
    compress_fill_page(&fill, dst);
    KTEST_CHECK(memcmp(src, dst, PAGE_SIZE) == 0);
    kfree(src);
    kfree(dst);
    return NULL;
}

const char *test_blocks(void)
{
    struct page *pages[PAGE_MAX_ORDER + 1];
    struct page *many[200];
    uint64_t before = page_free_count();

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned o = 0; o <= PAGE_MAX_ORDER; o++) {
            pages[o] = page_alloc(o, PAGE_ALLOC_ZERO);
            KTEST_CHECK(pages[o] != NULL);
            KTEST_CHECK((page_to_pfn(pages[o]) & ((1UL << o) - 1)) == 0);
            KTEST_CHECK(*(char *)page_address(pages[o]) == 0);
            memset(page_address(pages[o]), 0xff, PAGE_SIZE << o);
        }
        KTEST_CHECK(page_free_count() ==
                    before - ((2UL << PAGE_MAX_ORDER) - 1));
        for (unsigned o = 0; o <= PAGE_MAX_ORDER; o++) {
            page_free(pages[o], o);
        }
    }
    KTEST_CHECK(page_free_count() == before);
    for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
        many[i] = page_alloc(0, 0);
        KTEST_CHECK(many[i] != NULL);
        for (unsigned j = 0; j < i; j++) {
            KTEST_CHECK(many[i] != many[j]);
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
        page_free(many[i], 0);
    }
    KTEST_CHECK(page_free_count() == before);
    return NULL;
}

const char *test_kmalloc(void)
{
    uint8_t *objects[300];
    size_t sizes[300];
    uint64_t seed = 7;

    for (unsigned i = 0; i < ARRAY_SIZE(objects); i++) {
        sizes[i] = 1 + next_random(&seed) % (i % 10 == 0 ? 9000 : 600);
        objects[i] = kmalloc(sizes[i]);
        KTEST_CHECK(objects[i] != NULL);
        KTEST_CHECK(objects[i][0] == 0 && objects[i][sizes[i] - 1] == 0);
        memset(objects[i], (int)(i & 0xff), sizes[i]);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(objects); i++) {
        for (size_t j = 0; j < sizes[i]; j++) {
            KTEST_CHECK(objects[i][j] == (i & 0xff));
        }
        kfree(objects[i]);
    }
    return NULL;
}

/* On another CPU: what the next allocation gives. */
static void take_elsewhere(unsigned index, void *arg)
{
    struct page **out = arg;

    (void)index;
    *out = page_alloc(0, 0);
}

const char *test_shared_frames(void)
{
    /* Of the node of the CPU that will ask, wherever this thread runs. */
    unsigned node = node_of_cpu(cpu_count < 2 ? 0 : 1);
    struct page *first = page_alloc_node(node, 0, 0);
    struct page *second = page_alloc_node(node, 0, 0);
    struct page *other = NULL;
    struct ktest_threads t = {.fn = take_elsewhere, .arg = &other, .n = 1};
    struct page *many[100];
    uint64_t before = page_free_count();

    if (cpu_count < 2) {
        page_free(first, 0);
        page_free(second, 0);
        KTEST_SKIP("one CPU");
    }
    KTEST_CHECK(first != NULL && second != NULL);
    page_free_shared(first);
    page_free_shared(second);
    KTEST_CHECK(page_free_count() == before + 2);
    KTEST_CHECK(page_alloc_node(node, 0, 0) == second);
    page_free_shared(second);
    /* A thread's stack is a block of its own size, no single frame. */
    KTEST_CHECK(ktest_threads_start(&t, 1));
    ktest_threads_join(&t);
    KTEST_CHECK(other == second);
    KTEST_CHECK(page_alloc_node(node, 0, 0) == first);
    /* More than there is room for. */
    for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
        many[i] = page_alloc(0, 0);
        KTEST_CHECK(many[i] != NULL);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
        page_free_shared(many[i]);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
        many[i] = page_alloc(0, 0);
        KTEST_CHECK(many[i] != NULL && many[i] != first && many[i] != other);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(many); i++) {
        page_free(many[i], 0);
    }
    page_free(first, 0);
    page_free(second, 0);
    return NULL;
}

const char *test_store(void)
{
    uint8_t *chunks[200];
    size_t sizes[200];
    uint64_t seed = 3;

    for (unsigned i = 0; i < ARRAY_SIZE(chunks); i++) {
        sizes[i] = 1 + next_random(&seed) % PAGE_SIZE;
        chunks[i] = swap_store_alloc(sizes[i]);
        KTEST_CHECK(chunks[i] != NULL);
        KTEST_CHECK(((uint64_t)chunks[i] & 15) == 0);
        memset(chunks[i], (int)(i & 0xff), sizes[i]);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(chunks); i++) {
        for (size_t j = 0; j < sizes[i]; j++) {
            KTEST_CHECK(chunks[i][j] == (i & 0xff));
        }
        swap_store_free(chunks[i]);
    }
    return NULL;
}
