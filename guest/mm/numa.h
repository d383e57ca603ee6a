/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where pages come from and how they follow their users: memory policies of
 * tasks and areas, and NUMA hints (numa_hint.c).
 *
 * A policy is one word: 0 is the default, "near this CPU". An area keeps its
 * policy in the upper byte of its flags, so that areas of different policies do
 * not merge, and copies of an area have the same. For shared memory it is the
 * area's too, not the object's: each mapping places the pages it faults in.
 */
#ifndef MM_NUMA_H
#define MM_NUMA_H

#include "kernel/types.h"

struct mm;
struct page;
struct vma;

/* Linux values */
#define MPOL_DEFAULT 0
#define MPOL_PREFERRED 1
#define MPOL_BIND 2
#define MPOL_LOCAL 4
#define MPOL_MF_STRICT 1
#define MPOL_MF_MOVE 2
#define MPOL_MF_MOVE_ALL 4
#define MPOL_F_NODE 1
#define MPOL_F_ADDR 2
#define MPOL_F_MEMS_ALLOWED 4

/* A policy: mode in bits 2..0, nodes from bit 4 on. */
#define POLICY_MODE(policy) ((policy)&7U)
#define POLICY_NODES(policy) ((policy) >> 4)
#define POLICY_OF(mode, nodes) ((uint32_t)(mode) | (uint32_t)(nodes) << 4)

/* One frame for this address by the area's policy, or by the task's. */
struct page *numa_alloc(const struct vma *vma, unsigned flags);
/* The policy of the next page of the area, for numa_alloc_policy(). */
uint32_t numa_policy(const struct vma *vma);
struct page *numa_alloc_policy(uint32_t policy, unsigned flags);
/* May a page of this policy be on the node? */
bool numa_allows(uint32_t policy, unsigned node);

/*
 * A set of nodes from user memory, as the system calls pass it: maxnode counts
 * one bit too many. 0 or a negative error.
 */
int numa_get_nodes(uint64_t va, uint64_t maxnode, uint64_t *out_nodes);
uint64_t numa_all_nodes(void);

/* --- hints (numa_hint.c) --- */
/* numa_balancing=on, or /proc/sys/kernel/numa_balancing; read relaxed. */
extern bool numa_balancing;
void numa_init(void); /* after bootargs_parse() */
/* Thread context. Every CPU starts or stops its tick. */
void numa_set_balancing(bool on);
struct task;
/* A tick of CPU time has gone by for the task. Interrupts masked. */
void numa_tick(struct task *task);
/* On the way back to user code, if numa_tick() said so. Thread context. */
void numa_scan(void);
/* The node the page should be on as this CPU uses it, or -1: it is fine. */
int numa_misplaced(const struct page *page, const struct vma *vma);
/* Moves an isolated page; puts it back in any case. */
bool numa_bring_page(struct page *page, unsigned node);

/* --- system calls --- */
int64_t sys_mbind(uint64_t start, uint64_t len, uint64_t mode,
                  uint64_t nodes_va, uint64_t maxnode, uint64_t flags);
int64_t sys_set_mempolicy(uint64_t mode, uint64_t nodes_va, uint64_t maxnode);
int64_t sys_get_mempolicy(uint64_t mode_va, uint64_t nodes_va, uint64_t maxnode,
                          uint64_t addr, uint64_t flags);

/* move_pages.c */
int64_t sys_move_pages(uint64_t pid, uint64_t count, uint64_t pages_va,
                       uint64_t nodes_va, uint64_t status_va, uint64_t flags);
int64_t sys_migrate_pages(uint64_t pid, uint64_t maxnode, uint64_t old_va,
                          uint64_t new_va);
struct list;
/*
 * mmap_lock held. Takes the pages of [start, end) that are on one of the nodes
 * off the LRU lists; all: also those that others map too. Returns how many
 * should have been queued and could not be.
 */
unsigned numa_queue_range(struct mm *mm, uint64_t start, uint64_t end,
                          uint64_t nodes, bool all, struct list *out);

#endif
