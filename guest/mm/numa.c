/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory policies. The node of a new page is looked up when it is faulted in:
 * the area's policy, else the task's, else the node of the CPU.
 */
#include "mm/memcg.h"
#include "mm/numa.h"

#include "kernel/percpu.h"
#include "kernel/task.h"
#include "mm/migrate.h"
#include "mm/mm_priv.h"
#include "mm/node.h"
#include "mm/uaccess.h"

#define MODE_FLAGS                                                             \
    0xe000U /* how nodes follow a cpuset: there are none here                  \
             */
#define MODE_STATIC_NODES (1U << 15)
#define MODE_RELATIVE_NODES (1U << 14)
#define MAXNODE_LIMIT (PAGE_SIZE * 8)

static uint32_t area_policy(const struct vma *vma)
{
    return vma->flags >> VMA_POLICY_SHIFT;
}

uint64_t numa_all_nodes(void)
{
    return (1UL << nodes_count()) - 1;
}

uint32_t numa_policy(const struct vma *vma)
{
    uint32_t policy = area_policy(vma);

    return policy != MPOL_DEFAULT ? policy : current()->mempolicy;
}

bool numa_allows(uint32_t policy, unsigned node)
{
    return POLICY_MODE(policy) == MPOL_DEFAULT ||
           POLICY_MODE(policy) == MPOL_LOCAL ||
           (POLICY_NODES(policy) >> node & 1);
}

/* Of the policy's nodes and no other: this CPU's first. */
static struct page *alloc_bound(uint32_t policy, unsigned flags)
{
    unsigned here = node_of_cpu(cpu_id()), last = MAX_NODES;
    struct page *page = NULL;

    for (unsigned i = 0; i < nodes_count() && page == NULL; i++) {
        unsigned node = (here + i) % nodes_count();

        if (numa_allows(policy, node)) {
            last = node;
            page = page_alloc_node(node, 0,
                                   (flags & ~(unsigned)PAGE_ALLOC_RECLAIM) |
                                       PAGE_ALLOC_THISNODE);
        }
    }
    if (page == NULL && last != MAX_NODES && (flags & PAGE_ALLOC_RECLAIM)) {
        page = page_alloc_node(last, 0, flags | PAGE_ALLOC_THISNODE);
    }
    return page;
}

static struct page *alloc_policy(uint32_t policy, unsigned flags)
{
    switch (POLICY_MODE(policy)) {
    case MPOL_BIND:
        return alloc_bound(policy, flags);
    case MPOL_PREFERRED:
        return page_alloc_node((unsigned)__builtin_ctz(POLICY_NODES(policy)), 0,
                               flags);
    default:
        return page_alloc(0, flags);
    }
}

struct page *numa_alloc_policy(uint32_t policy, unsigned flags)
{
    struct page *page = alloc_policy(policy, flags);

    if (page != NULL && !memcg_charge(page, flags)) {
        page_free(page, 0);
        return NULL;
    }
    return page;
}

struct page *numa_alloc(const struct vma *vma, unsigned flags)
{
    return numa_alloc_policy(numa_policy(vma), flags);
}

/* --- arguments --- */

int numa_get_nodes(uint64_t va, uint64_t maxnode, uint64_t *out_nodes)
{
    uint64_t word;

    *out_nodes = 0;
    maxnode--;
    if (maxnode == 0 || va == 0) {
        return 0;
    }
    if (maxnode > MAXNODE_LIMIT) {
        return -EINVAL;
    }
    for (uint64_t bit = 0; bit < maxnode; bit += 64) {
        if (get_user_u64(&word, va + bit / 8) != 0) {
            return -EFAULT;
        }
        if (maxnode - bit < 64) {
            word &= (1UL << (maxnode - bit)) - 1;
        }
        if (bit == 0) {
            *out_nodes = word;
        } else if (word != 0) {
            return -EINVAL; /* no kernel has so many nodes */
        }
    }
    return 0;
}

/* The words of a system call as a policy. */
static int make_policy(uint64_t mode, uint64_t nodes_va, uint64_t maxnode,
                       uint32_t *out_policy)
{
    uint32_t mode_flags = (uint32_t)mode & MODE_FLAGS;
    uint64_t nodes;
    int r;

    mode = (uint32_t)mode & ~MODE_FLAGS;
    if (mode > MPOL_LOCAL || mode == 3 ||
        (mode_flags & ~(MODE_STATIC_NODES | MODE_RELATIVE_NODES)) != 0 ||
        mode_flags == (MODE_STATIC_NODES | MODE_RELATIVE_NODES)) {
        return -EINVAL;
    }
    r = numa_get_nodes(nodes_va, maxnode, &nodes);
    if (r != 0) {
        return r;
    }
    if (mode == MPOL_PREFERRED && nodes == 0 && mode_flags == 0) {
        mode = MPOL_LOCAL;
    }
    if (mode == MPOL_DEFAULT || mode == MPOL_LOCAL) {
        *out_policy = POLICY_OF(mode, 0);
        return nodes != 0 || (mode == MPOL_LOCAL && mode_flags != 0) ? -EINVAL
                                                                     : 0;
    }
    nodes &= numa_all_nodes();
    *out_policy = POLICY_OF(mode, nodes);
    return nodes == 0 ? -EINVAL : 0;
}

/* --- system calls --- */

int64_t sys_set_mempolicy(uint64_t mode, uint64_t nodes_va, uint64_t maxnode)
{
    uint32_t policy;
    int r = make_policy(mode, nodes_va, maxnode, &policy);

    if (r == 0) {
        current()->mempolicy = policy;
    }
    return r;
}

/* The node of the page at addr, which is faulted in; or an error. */
static int node_of_address(struct mm *mm, uint64_t addr)
{
    for (;;) {
        struct spinlock *ptl;
        pte_t *p = pt_walk(mm, addr, &ptl);
        int r;

        if (p != NULL) {
            spin_lock(ptl);
            if (pte_present(pte_read(p))) {
                r = pte_page(pte_read(p))->node;
                spin_unlock(ptl);
                return r;
            }
            spin_unlock(ptl);
        }
        r = fault_locked(mm, addr, 0);
        if (r != 0) {
            return -EFAULT;
        }
    }
}

static int64_t policy_at(uint64_t addr, uint64_t flags, uint32_t *out_mode,
                         uint64_t *out_nodes)
{
    struct mm *mm = current()->mm;
    uint32_t policy = current()->mempolicy;
    int node = 0;

    if (flags & MPOL_F_ADDR) {
        struct vma *vma;

        mm_read_lock(&mm->mmap_lock);
        vma = addr < USER_END ? vma_find(mm, addr) : NULL;
        if (vma != NULL) {
            policy = numa_policy(vma);
            if (flags & MPOL_F_NODE) {
                node = node_of_address(mm, addr & PAGE_MASK);
            }
        } else {
            node = -EFAULT;
        }
        mm_read_unlock(&mm->mmap_lock);
    } else if (addr != 0 || (flags & MPOL_F_NODE)) {
        return -EINVAL; /* the next node of an interleaving: there is none */
    }
    if (node < 0) {
        return node;
    }
    *out_mode = flags & MPOL_F_NODE ? (uint32_t)node : POLICY_MODE(policy);
    *out_nodes = POLICY_NODES(policy);
    return 0;
}

/* As many words as maxnode asks for, the first of which says something. */
static int put_nodes(uint64_t va, uint64_t maxnode, uint64_t nodes)
{
    uint64_t bytes = ALIGN_UP(maxnode - 1, 64UL) / 8;

    if (bytes > sizeof(nodes)) {
        if (bytes > PAGE_SIZE) {
            return -EINVAL;
        }
        if (clear_user(va + sizeof(nodes), bytes - sizeof(nodes)) != 0) {
            return -EFAULT;
        }
        bytes = sizeof(nodes);
    }
    return copy_to_user(va, &nodes, bytes) != 0 ? -EFAULT : 0;
}

int64_t sys_get_mempolicy(uint64_t mode_va, uint64_t nodes_va, uint64_t maxnode,
                          uint64_t addr, uint64_t flags)
{
    uint64_t nodes = numa_all_nodes();
    uint32_t mode = 0;

    if ((nodes_va != 0 && maxnode < nodes_count()) ||
        (flags &
         ~(uint64_t)(MPOL_F_NODE | MPOL_F_ADDR | MPOL_F_MEMS_ALLOWED)) != 0) {
        return -EINVAL;
    }
    if (flags & MPOL_F_MEMS_ALLOWED) {
        if (flags & (MPOL_F_NODE | MPOL_F_ADDR)) {
            return -EINVAL;
        }
    } else {
        int64_t r = policy_at(addr, flags, &mode, &nodes);

        if (r != 0) {
            return r;
        }
    }
    if (mode_va != 0 && put_user_u32(mode_va, mode) != 0) {
        return -EFAULT;
    }
    return nodes_va != 0 ? put_nodes(nodes_va, maxnode, nodes) : 0;
}

/* --- mbind --- */

/* One area's part. */
static int bind_area(struct mm *mm, struct vma *vma, uint64_t start,
                     uint64_t end, uint32_t policy)
{
    uint32_t flags = (vma->flags & ((1U << VMA_POLICY_SHIFT) - 1)) |
                     policy << VMA_POLICY_SHIFT;

    if (flags == vma->flags) {
        return 0;
    }
    if (vma->start < start) {
        vma = vma_split(mm, vma, start);
        if (vma == NULL) {
            return -ENOMEM;
        }
    }
    if (vma->end > end && vma_split(mm, vma, end) == NULL) {
        return -ENOMEM;
    }
    vma->flags = flags;
    return 0;
}

/* Holes are an error unless a default is set. mmap_lock held for writing. */
static int bind_check(struct mm *mm, uint64_t start, uint64_t end,
                      uint32_t policy)
{
    uint64_t va = start;
    unsigned i = vma_index(mm, start);

    if (i == mm->n_areas || mm->areas[i]->start >= end) {
        return -EFAULT;
    }
    for (; policy != MPOL_DEFAULT && va < end; i++) {
        if (i == mm->n_areas || mm->areas[i]->start > va) {
            return -EFAULT;
        }
        va = mm->areas[i]->end;
    }
    return 0;
}

static int bind_range(struct mm *mm, uint64_t start, uint64_t end,
                      uint32_t policy)
{
    int r = 0;

    for (uint64_t va = start; va < end && r == 0;) {
        unsigned i = vma_index(mm, va);
        struct vma *vma;
        uint64_t stop;

        if (i == mm->n_areas || mm->areas[i]->start >= end) {
            break;
        }
        vma = mm->areas[i];
        va = vma->start > va ? vma->start : va;
        stop = vma->end < end ? vma->end : end;
        r = bind_area(mm, vma, va, stop, policy);
        vma_merge(mm, vma_index(mm, va));
        va = stop;
    }
    return r;
}

/* Pages of the range that the policy does not allow: how many of them. */
static unsigned count_strays(struct mm *mm, uint64_t start, uint64_t end,
                             uint32_t policy)
{
    unsigned strays = 0;

    for (uint64_t va = start; va < end; va += PAGE_SIZE) {
        struct spinlock *ptl;
        pte_t *p = pt_walk(mm, va, &ptl);

        if (p == NULL) {
            va = pt_block_end(va, end) - PAGE_SIZE;
            continue;
        }
        spin_lock(ptl);
        strays += pte_present(pte_read(p)) && !(pte_read(p) & PTE_SPECIAL) &&
                  !numa_allows(policy, pte_page(pte_read(p))->node);
        spin_unlock(ptl);
    }
    return strays;
}

/* Where strays go: the policy's first node. */
static unsigned policy_target(uint32_t policy)
{
    return POLICY_NODES(policy) == 0
               ? node_of_cpu(cpu_id())
               : (unsigned)__builtin_ctz(POLICY_NODES(policy));
}

static int bind_locked(struct mm *mm, uint64_t start, uint64_t end,
                       uint32_t policy, uint64_t flags, struct list *queue,
                       int64_t *out_failed)
{
    bool moves = flags & (MPOL_MF_MOVE | MPOL_MF_MOVE_ALL);
    uint64_t others = numa_all_nodes() & ~(uint64_t)POLICY_NODES(policy);
    int r = bind_check(mm, start, end, policy);

    if (r != 0) {
        return r;
    }
    if (POLICY_NODES(policy) != 0) {
        if (moves) {
            *out_failed = numa_queue_range(mm, start, end, others,
                                           flags & MPOL_MF_MOVE_ALL, queue);
        } else if ((flags & MPOL_MF_STRICT) &&
                   count_strays(mm, start, end, policy) != 0) {
            return -EIO;
        }
    }
    return bind_range(mm, start, end, policy);
}

int64_t sys_mbind(uint64_t start, uint64_t len, uint64_t mode,
                  uint64_t nodes_va, uint64_t maxnode, uint64_t flags)
{
    struct mm *mm = current()->mm;
    uint64_t end = start + PAGE_ALIGN_UP(len);
    int64_t failed = 0;
    struct list queue;
    uint32_t policy;
    int r;

    flags = (uint32_t)flags;
    if ((flags &
         ~(uint64_t)(MPOL_MF_STRICT | MPOL_MF_MOVE | MPOL_MF_MOVE_ALL)) != 0) {
        return -EINVAL;
    }
    r = make_policy(mode, nodes_va, maxnode, &policy);
    if (r != 0) {
        return r;
    }
    if ((start & (PAGE_SIZE - 1)) != 0 || end < start) {
        return -EINVAL;
    }
    if (end == start) {
        return 0;
    }
    list_init(&queue);
    mm_write_lock(&mm->mmap_lock);
    r = bind_locked(mm, start, end, policy, flags, &queue, &failed);
    mm_write_unlock(&mm->mmap_lock);
    if (r == 0 && !list_empty(&queue)) {
        int left = migrate_pages(&queue, policy_target(policy), MIGRATE_SYNC);

        failed += left < 0 ? 1 : left;
    }
    migrate_putback(&queue);
    return r == 0 && failed != 0 && (flags & MPOL_MF_STRICT) ? -EIO : r;
}
