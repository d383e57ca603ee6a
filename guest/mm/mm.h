/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User address spaces: areas (struct vma), page tables, faults, the memory
 * system calls. All of it in thread context with IRQs on unless it says
 * otherwise. Addresses of user space are uint64_t named va.
 */
#ifndef MM_MM_H
#define MM_MM_H

#include "kernel/errno.h"
#include "kernel/types.h"

struct mm;

#define USER_MMAP_TOP 0x0000ffff80000000UL
/* The page that signal handlers return to: the rt_sigreturn call. */
#define MM_SIGPAGE (USER_END - PAGE_SIZE)

/* Linux values */
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_SHARED 0x01
#define MAP_PRIVATE 0x02
#define MAP_SHARED_VALIDATE 0x03
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_GROWSDOWN 0x0100
#define MAP_NORESERVE 0x4000
#define MAP_POPULATE 0x8000
#define MAP_STACK 0x20000
#define MAP_FIXED_NOREPLACE 0x100000
#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED 2
#define MREMAP_DONTUNMAP 4
#define MADV_NORMAL 0
#define MADV_RANDOM 1
#define MADV_SEQUENTIAL 2
#define MADV_WILLNEED 3
#define MADV_DONTNEED 4
#define MADV_FREE 8
#define MADV_DONTFORK 10
#define MADV_DOFORK 11
#define MADV_HUGEPAGE 14
#define MADV_NOHUGEPAGE 15
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23

/* --- boot --- */
void mm_init(void);     /* after page_init */
void mm_cpu_init(void); /* each CPU, IRQs off: no user space, ASID 0 */

/* --- lifetime --- */
struct mm *mm_new(void); /* one user reference; NULL: no memory */
void mm_get(struct mm *mm);
/* The last one unmaps everything. mm may still be loaded (lazily). */
void mm_put(struct mm *mm);
/*
 * All of its tasks are to die for want of memory, and this many are the killed
 * process's: gives its private memory back at once, unless others use it too.
 */
void mm_reap(struct mm *mm, unsigned tasks);
/* Child with copy-on-write of private memory; NULL: no memory. */
struct mm *mm_fork(struct mm *mm);

/*
 * The context switch's part, IRQs off, after or before the registers are
 * switched but on the same CPU. prev is what the outgoing task used (may be
 * NULL), next what the incoming one will (NULL: a kernel thread or idle, which
 * keeps whatever is loaded, lazily).
 */
void mm_switch(struct mm *prev, struct mm *next);
/*
 * The rest of it, after the run queue's lock is free: what the last user of an
 * address space lets go of needs the allocators' locks, whose holders may be
 * interrupted by handlers that wait for a run queue.
 */
void mm_switch_finish(void);

/* --- faults --- */
enum mm_fault_flag {
    MM_FAULT_WRITE = 1,
    MM_FAULT_EXEC = 2,
    MM_FAULT_USER = 4, /* counts as a page fault */
};
/*
 * 0: retry the access. -EFAULT: nothing there (SEGV_MAPERR);
 * -EACCES: not allowed (SEGV_ACCERR); -EIO: beyond the end of a mapped file
 * (SIGBUS); -ENOMEM.
 */
int mm_fault(struct mm *mm, uint64_t va, unsigned flags);

/* --- for the program loader --- */
/* Private anonymous memory exactly at [va, va + size), replacing. */
int mm_map(struct mm *mm, uint64_t va, uint64_t size, unsigned prot);
/* Writes whatever the protection, and makes code visible to fetches. */
int mm_poke(struct mm *mm, uint64_t va, const void *src, size_t size);
/* The page at MM_SIGPAGE; the kernel's own, neither counted nor reclaimed. */
int mm_map_sigpage(struct mm *mm);
/* Where brk starts; page aligned up. */
void mm_set_brk(struct mm *mm, uint64_t va);

/* --- system calls; Linux arguments, negative errno, on the current mm --- */
int64_t sys_mmap(uint64_t addr, uint64_t len, uint64_t prot, uint64_t flags,
                 uint64_t fd, uint64_t offset);
int64_t sys_munmap(uint64_t addr, uint64_t len);
int64_t sys_mprotect(uint64_t addr, uint64_t len, uint64_t prot);
int64_t sys_brk(uint64_t addr);
int64_t sys_madvise(uint64_t addr, uint64_t len, uint64_t advice);
int64_t sys_mincore(uint64_t addr, uint64_t len, uint64_t vec);
int64_t sys_mremap(uint64_t addr, uint64_t old_len, uint64_t new_len,
                   uint64_t flags, uint64_t new_addr);

#endif
