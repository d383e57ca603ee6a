/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of struct mm and struct vma, for guest/mm only.
 *
 * Lock order: mmap_lock, page lock, shmem->lock, rmap lock, PTL (source before
 * destination), then the leaf locks: table_lock, LRU shard, swap slot, swap
 * store class, buddy.
 */
#ifndef MM_MM_PRIV_H
#define MM_MM_PRIV_H

#include "kernel/cpumask.h"
#include "kernel/lock.h"
#include "mm/mm.h"
#include "mm/mm_lock.h"
#include "mm/page.h"
#include "mm/pte.h"

struct inode;
struct shmem;

/*
 * The areas whose private pages may be related by fork: page->mapping of
 * anonymous pages. Freed with its last area and pin. Its lock is
 * rmap_lock(family).
 */
struct anon_family {
    struct list vmas; /* [rmap lock] struct vma.rmap_node */
    uint32_t pins;    /* [rmap lock] migrations that will walk it again */
};

#define VMA_SHARED 0x100 /* in flags, next to PROT_* */
#define VMA_DONTFORK 0x200
#define VMA_POLICY_SHIFT 24 /* the upper byte is a memory policy, mm/numa.h */
#define VMA_SIGPAGE 0x400   /* reads map sigpage instead of zero_page */
#define VMA_HUGE 0x800      /* MADV_HUGEPAGE */

/* [mmap_lock]; start, end, pgoff also [rmap lock] for the reverse map. */
struct vma {
    struct mm *mm;
    uint64_t start, end;
    uint64_t pgoff;             /* page index of start in the object */
    uint32_t flags;             /* PROT_* | VMA_* */
    struct anon_family *family; /* private: never NULL */
    struct shmem *shmem;        /* shared: never NULL, one reference */
    /*
     * A private mapping of a file, one reference, or NULL: what is not there
     * is read from page pgoff + file_shift of it (modulo 2^64).
     */
    struct inode *file;
    uint64_t file_shift;
    struct list rmap_node;      /* [rmap lock] */
};

static inline bool vma_accessible(const struct vma *vma)
{
    return vma->flags & (PROT_READ | PROT_WRITE | PROT_EXEC);
}

struct mm_context {
    _Atomic uint64_t id;      /* ASID generation | ASID; 0 = none yet */
    _Atomic uint64_t tlb_gen; /* IPI: how often something had to be flushed */
    uint64_t ctx_id;          /* [init] never reused */
    struct cpumask cpumask;   /* [atomic] IPI: CPUs that may cache it */
    /* mask=lazy: tick from which a flush removes those that do not run it */
    _Atomic uint64_t next_trim;
    /* local_tlbi=on: the CPU that ran it, FLUSH_NO_CPU or FLUSH_MANY_CPUS */
    _Atomic uint32_t active_cpu;
};

struct mm {
    _Atomic uint32_t users; /* tasks; the last one unmaps */
    _Atomic uint32_t pins;  /* 1 for all users + 1 per CPU that has it loaded */

    struct mm_lock mmap_lock;
    struct vma **areas; /* [mmap_lock] sorted by address */
    unsigned n_areas, max_areas;
    uint64_t brk_start, brk; /* [mmap_lock] */

    pte_t *pgd;                 /* [init] level-0 table */
    struct spinlock table_lock; /* entries of levels 0 to 2 */
    _Atomic int64_t tables;     /* page-table pages, pgd included */
    _Atomic int64_t rss, swapped;

    /* bits 0..14 pending, 16..30 flushed generation: tlbbatch.h */
    _Atomic uint32_t tlb_flush_batched;
    _Atomic int32_t tlb_flush_pending; /* open gathers */

    _Atomic uint64_t numa_next_scan; /* numa_hint.c: not before this time */
    uint64_t numa_scan_at;           /* [whoever won the scan] next address */

    struct mm_context context;
    _Atomic uint16_t debug_slot; /* mm_debug.c; 0: none yet */
};

/* --- mm.c --- */
void mm_drop(struct mm *mm); /* a pin */
extern struct page *zero_page;
extern struct page *sigpage;     /* [init] MM_SIGPAGE */
extern uint64_t mm_reserved_pgd; /* PA of an empty level-0 table */

/* --- pgtable.c --- */
/*
 * The leaf PTE of va and its lock (not taken), or NULL: no table. A block is
 * split. With no spinlock held but that of the reverse map.
 */
pte_t *pt_walk(struct mm *mm, uint64_t va, struct spinlock **out_ptl);
/* The same, making tables. NULL: no memory. */
pte_t *pt_alloc(struct mm *mm, uint64_t va, struct spinlock **out_ptl);
/* The level-2 entry of va (a slot) and its lock (not taken), or NULL. */
pte_t *pt_slot(struct mm *mm, uint64_t va, struct spinlock **out_lock);
pte_t *pt_slot_alloc(struct mm *mm, uint64_t va, struct spinlock **out_lock);
/*
 * The PTE of va, or what it would be if the block there were split; 0: none.
 * Nothing is locked or split. out_level: 2 for a block, else 3.
 */
pte_t pt_lookup(struct mm *mm, uint64_t va, unsigned *out_level);
/* The same; unless it is 0, the lock that keeps it so is taken. */
pte_t pt_lookup_lock(struct mm *mm, uint64_t va, struct spinlock **out_lock);
struct page *pt_new_table(void); /* zeroed, hooked nowhere; NULL: no memory */
void pt_drop_table(struct page *page);
/* Entry's lock held, and what it named before is flushed. */
void pt_hook(pte_t *entry, struct page *table);
/* End of the 2 MiB region of va, or end if that is nearer. */
static inline uint64_t pt_block_end(uint64_t va, uint64_t end)
{
    uint64_t next = (va & ~(BLOCK_SIZE - 1)) + BLOCK_SIZE;

    return next < end ? next : end;
}
struct gather;
/*
 * Unhooks and queues the tables of [start, end) that lie in [floor, ceiling):
 * what no area needs any more.
 */
void pt_free_range(struct gather *g, uint64_t start, uint64_t end,
                   uint64_t floor, uint64_t ceiling);

/* --- vma.c --- */
/* Index of the first area that ends above va; n_areas if none. */
unsigned vma_index(const struct mm *mm, uint64_t va);
/* The area of va, or NULL. */
struct vma *vma_find(const struct mm *mm, uint64_t va);
struct vma *vma_new(struct mm *mm, uint64_t start, uint64_t end,
                    uint32_t flags);
/* For a part or a copy of an area: the same object, with a reference. */
void vma_copy_object(struct vma *to, const struct vma *from);
void vma_free(struct vma *vma); /* drops the object; not linked anywhere */
/* Inserts at its place; false: no memory. Links the reverse map too. */
bool vma_insert(struct mm *mm, struct vma *vma);
void vma_remove(struct mm *mm, struct vma *vma); /* from both */
/* Only from the areas: the reverse map still has it. */
void vma_forget(struct mm *mm, struct vma *vma);
/* Cuts the area in two at va; NULL: no memory. Returns the upper part. */
struct vma *vma_split(struct mm *mm, struct vma *vma, uint64_t va);
/* Joins with its neighbours if they are one thing. */
void vma_merge(struct mm *mm, unsigned index);
/* Highest gap of len below the limit, or 0. */
uint64_t vma_gap(const struct mm *mm, uint64_t len, uint64_t limit);
/* Bits of a clean PTE with this area's protection, without the address. */
pte_t vma_pte(const struct vma *vma);

/* --- rmap.c --- */
struct spinlock *rmap_lock(const void *object);
void rmap_link(struct vma *vma);
void rmap_unlink(struct vma *vma);

/* --- fault.c --- */
#define MM_FAULT_FORCE 0x100 /* write whatever the area says (mm_poke) */
/* mmap_lock held for reading or writing. Like mm_fault(). */
int fault_locked(struct mm *mm, uint64_t va, unsigned flags);
/* Code was written through the linear map: make fetches see it. */
void fault_sync_icache(struct page *page);
/* The two halves, for many pages: clean each, then drop once. */
void fault_clean_dcache(struct page *page);
void fault_drop_icache(void);

/* --- zap.c; mmap_lock held --- */
/* Clears what is mapped in [start, end) of the area. */
void zap_range(struct gather *g, struct vma *vma, uint64_t start, uint64_t end);
/* The same with a gather of its own. */
void zap_range_single(struct vma *vma, uint64_t start, uint64_t end);

/* --- mprotect.c; mmap_lock held for reading --- */
/*
 * Makes NUMA hints of the PTEs of the area in [start, end), and flushes once.
 * Pages on skip_node (-1: none) stay accessible. Returns how many.
 */
uint64_t protect_hints(struct vma *vma, uint64_t start, uint64_t end,
                       int skip_node);

/* --- mmap.c; mmap_lock held for writing --- */
int unmap_locked(struct mm *mm, uint64_t start, uint64_t end);
/* later: whoever calls it flushes instead; too late, for a planted bug. */
int unmap_later(struct mm *mm, uint64_t start, uint64_t end, bool later);
void unmap_all(struct mm *mm); /* exit */
/* Anonymous area at exactly [start, start + len), which is free. */
int map_locked(struct mm *mm, uint64_t start, uint64_t len, uint32_t flags);

/* --- filemap.c --- */
/* What an mmap is of. */
struct map_source {
    struct inode *file; /* with a reference; NULL: anonymous memory */
    uint64_t offset;    /* in the file, bytes */
};
/* Of the descriptor; 0 or -errno for that protection and those flags. */
int filemap_open(uint64_t fd, uint64_t prot, uint64_t flags,
                 struct map_source *out);
/* The page of the area's file for va, to a zeroed frame; -EIO: past the end. */
int filemap_read(const struct vma *vma, uint64_t va, struct page *to);
/* Has the area's file a page for va? */
bool filemap_has(const struct vma *vma, uint64_t va);

static inline bool range_ok(uint64_t start, uint64_t len)
{
    return (start & (PAGE_SIZE - 1)) == 0 && len <= USER_END &&
           start <= USER_END - len;
}

#endif
