/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Execution views; see execview.h. One lock, taken on a miss only. */
#include "execview.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <errno.h>
#include <uv.h>

#include "engine.h"
#include "error.h"
#include "sysreg.h"

#define ERET_WORD UINT32_C(0xd69f03e0)
#define ERETAA_WORD UINT32_C(0xd69f0bff)
#define ERETAB_WORD UINT32_C(0xd69f0fff)
#define HASH_BUCKETS 4096u

/*
 * What a page showed when it was last looked at. view is read without the
 * lock; generation tells whether a later invalidate_all() is to be honoured.
 */
struct page_state {
    _Atomic(const struct exec_view *) view;
    _Atomic uint64_t generation;
};

struct exec_views {
    uv_mutex_t lock;
    uint8_t *host;            /* [init] */
    unsigned slots;           /* [init] */
    unsigned used;            /* [lock] */
    struct page_state *pages; /* [atomic] */
    uint64_t page_count;      /* [init] */
    _Atomic uint64_t generation;
    struct exec_view *bucket[HASH_BUCKETS]; /* [lock] */
};

struct exec_views *exec_views_new(uint64_t ram_pages, unsigned slots,
                                  GError **error)
{
    struct exec_views *views = g_new0(struct exec_views, 1);

    uv_mutex_init(&views->lock);
    views->slots = slots;
    views->page_count = ram_pages;
    views->pages = g_try_new0(struct page_state, ram_pages);
    views->host = mmap(NULL, exec_views_bytes(views), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!views->pages || views->host == MAP_FAILED) {
        g_set_error(error, VM_ERROR, VM_ERROR_ENVIRONMENT,
                    "no memory for %u execution views: %s", slots,
                    g_strerror(errno));
        views->host = NULL;
        exec_views_free(views);
        return NULL;
    }
    atomic_init(&views->generation, 1);
    return views;
}

static void free_all_views(struct exec_views *views)
{
    for (unsigned i = 0; i < HASH_BUCKETS; i++) {
        struct exec_view *view = views->bucket[i];

        while (view) {
            struct exec_view *next = view->next;

            g_free(view->insns);
            g_free(view);
            view = next;
        }
        views->bucket[i] = NULL;
    }
    views->used = 0;
}

void exec_views_free(struct exec_views *views)
{
    if (!views) {
        return;
    }
    free_all_views(views);
    if (views->host) {
        munmap(views->host, exec_views_bytes(views));
    }
    g_free(views->pages);
    uv_mutex_destroy(&views->lock);
    g_free(views);
}

void *exec_views_host(const struct exec_views *views)
{
    return views->host;
}

size_t exec_views_bytes(const struct exec_views *views)
{
    return (size_t)views->slots * MMU_PAGE_SIZE;
}

/* FNV-1a over 64-bit words, folded; only spreads, equality is by bytes. */
static unsigned hash_words(const uint32_t *words)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (unsigned i = 0; i < EXEC_VIEW_WORDS; i += 2) {
        hash ^= words[i] | (uint64_t)words[i + 1] << 32;
        hash *= UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return (unsigned)(hash ^ hash >> 32) % HASH_BUCKETS;
}

struct scan {
    struct exec_view *view;
    GArray *insns;
    uint32_t *out;
};

static void found(void *opaque, unsigned index, const struct insn *insn)
{
    struct scan *scan = opaque;

    g_array_append_val(scan->insns, *insn);
    scan->view->index[index] = (uint16_t)scan->insns->len;
    scan->out[index] = ENGINE_TRAP_WORD;
}

static bool is_eret(uint32_t word)
{
    return word == ERET_WORD || word == ERETAA_WORD || word == ERETAB_WORD;
}

static uint32_t *slot_words(struct exec_views *views, gpa_t slot)
{
    return (uint32_t *)(void *)(views->host + (slot - EXEC_VIEW_BASE));
}

static gpa_t new_slot_locked(struct exec_views *views)
{
    return views->used == views->slots
               ? 0
               : EXEC_VIEW_BASE + (gpa_t)views->used++ * MMU_PAGE_SIZE;
}

static gpa_t make_variant_locked(struct exec_views *views,
                                 const struct exec_view *view, unsigned variant)
{
    gpa_t slot;
    uint32_t *to;

    if (!(variant & EXEC_TRAP_ERET && view->has_eret) &&
        !(variant & EXEC_TRAP_FP && view->has_fp)) {
        return view->slot;
    }
    slot = new_slot_locked(views);
    if (!slot) {
        return 0;
    }
    to = slot_words(views, slot);
    memcpy(to, slot_words(views, view->slot), MMU_PAGE_SIZE);
    for (unsigned i = 0; i < EXEC_VIEW_WORDS; i++) {
        if (variant & EXEC_TRAP_ERET && is_eret(view->words[i])) {
            to[i] = ENGINE_TRAP_WORD;
        } else if (variant & EXEC_TRAP_FP && !view->index[i] &&
                   exec_view_is_fp(view->words[i])) {
            to[i] = ENGINE_UNDEFINED_WORD;
        }
    }
    return slot;
}

gpa_t exec_views_variant(struct exec_views *views, const struct exec_view *view,
                         unsigned variant)
{
    /* Views are const to their users; this part of one is under our lock. */
    struct exec_view *mutable_view = (struct exec_view *)view;
    gpa_t slot;

    if (variant == 0) {
        return view->slot;
    }
    uv_mutex_lock(&views->lock);
    slot = mutable_view->variant[variant];
    if (!slot) {
        slot = make_variant_locked(views, view, variant);
        mutable_view->variant[variant] = slot;
    }
    uv_mutex_unlock(&views->lock);
    return slot;
}

static struct exec_view *make_view_locked(struct exec_views *views,
                                          const uint32_t *words,
                                          unsigned bucket, struct disas *disas)
{
    struct exec_view *view;
    struct scan scan;
    gpa_t slot = new_slot_locked(views);

    if (!slot) {
        return NULL;
    }
    view = g_new0(struct exec_view, 1);
    memcpy(view->words, words, MMU_PAGE_SIZE);
    view->slot = slot;
    scan.view = view;
    scan.insns = g_array_new(FALSE, FALSE, sizeof(struct insn));
    scan.out = slot_words(views, slot);
    for (unsigned i = 0; i < EXEC_VIEW_WORDS; i++) {
        scan.out[i] =
            engine_aborts_on(words[i]) ? ENGINE_UNDEFINED_WORD : words[i];
        view->has_eret |= is_eret(words[i]);
        view->has_fp |= exec_view_is_fp(words[i]);
    }
    insn_scan_page(disas, view->words, EXEC_VIEW_WORDS, sysreg_insn_policy(),
                   found, &scan);
    view->insn_count = scan.insns->len;
    view->insns = (struct insn *)(void *)g_array_free(scan.insns, FALSE);
    view->next = views->bucket[bucket];
    views->bucket[bucket] = view;
    return view;
}

const struct exec_view *exec_views_get(struct exec_views *views, uint64_t page,
                                       const void *host, struct disas *disas,
                                       bool *out_made)
{
    struct page_state *state = &views->pages[page];
    /*
     * acquire: pairs with the release of the view below, so that its contents
     * are seen; and with the release in invalidate_*().
     */
    uint64_t generation =
        atomic_load_explicit(&views->generation, memory_order_acquire);
    struct exec_view *view = (struct exec_view *)atomic_load_explicit(
        &state->view, memory_order_acquire);
    uint32_t words[EXEC_VIEW_WORDS];
    unsigned bucket;

    *out_made = false;
    if (view && atomic_load_explicit(&state->generation,
                                     memory_order_relaxed) == generation) {
        return view;
    }
    uv_mutex_lock(&views->lock);
    /* Other vCPUs may be storing to the page: one atomic read per word. */
    for (unsigned i = 0; i < EXEC_VIEW_WORDS; i++) {
        words[i] =
            __atomic_load_n((const uint32_t *)host + i, __ATOMIC_RELAXED);
    }
    bucket = hash_words(words);
    for (view = views->bucket[bucket]; view; view = view->next) {
        if (memcmp(view->words, words, MMU_PAGE_SIZE) == 0) {
            break;
        }
    }
    if (!view) {
        view = make_view_locked(views, words, bucket, disas);
        *out_made = view != NULL;
    }
    if (view) {
        /*
         * The generation read before the bytes: an invalidation that came
         * in between makes the next fetch look again.
         */
        atomic_store_explicit(&state->generation, generation,
                              memory_order_relaxed);
        atomic_store_explicit(&state->view, view, memory_order_release);
    }
    uv_mutex_unlock(&views->lock);
    return view;
}

void exec_views_invalidate_page(struct exec_views *views, uint64_t page)
{
    /*
     * Under the lock, so that it does not slip between the copy and the store
     * of a get() that saw the old bytes: that get() ends first and its view is
     * then forgotten, or begins after and sees the new bytes.
     */
    uv_mutex_lock(&views->lock);
    atomic_store_explicit(&views->pages[page].view, NULL, memory_order_release);
    uv_mutex_unlock(&views->lock);
}

void exec_views_forget_page(struct exec_views *views, uint64_t page)
{
    atomic_store_explicit(&views->pages[page].view, NULL, memory_order_relaxed);
}

void exec_views_invalidate_all(struct exec_views *views)
{
    /* release: pairs with the acquire in get(). */
    atomic_fetch_add_explicit(&views->generation, 1, memory_order_release);
}

void exec_views_reset(struct exec_views *views)
{
    uv_mutex_lock(&views->lock);
    for (uint64_t i = 0; i < views->page_count; i++) {
        atomic_store_explicit(&views->pages[i].view, NULL,
                              memory_order_relaxed);
    }
    free_all_views(views);
    uv_mutex_unlock(&views->lock);
}
