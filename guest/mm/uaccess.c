/* SPDX-License-Identifier: GPL-2.0-or-later */
/* User memory from the kernel, through the linear map under the PTL. */
#include "mm/uaccess.h"

#include "arch/sysreg.h"
#include "kernel/annot.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "mm/flush_opts.h"
#include "mm/like.h"
#include "mm/mm_priv.h"
#include "mm/shmem.h"

struct user_page {
    struct mm *mm;
    struct spinlock *ptl;
    char *at; /* linear-map address of va */
};

/*
 * Finds va with the right to read or write and keeps its PTL and mmap_lock.
 * 0 or -EFAULT.
 */
static int user_page_get(struct user_page *up, struct mm *mm, uint64_t va,
                         unsigned flags)
{
    if (mm == NULL || va >= USER_END) {
        return -EFAULT;
    }
    for (;;) {
        pte_t pte;
        int r;

        mm_read_lock(&mm->mmap_lock);
        /* Tables of no area may be on their way out: munmap=read. */
        pte = mm_like.munmap_read && vma_find(mm, va) == NULL
                  ? 0
                  : pt_lookup_lock(mm, va, &up->ptl);
        if (pte != 0) {
            /* The access flag: a use by the kernel is a use. */
            if (flags & MM_FAULT_FORCE
                    ? pte_present(pte) && !(pte & PTE_SPECIAL) &&
                          page_mapcount(pte_page(pte)) == 1
                    : (pte & PTE_AF) &&
                          (flags & MM_FAULT_WRITE ? pte_writes_now(pte)
                                                  : pte_valid(pte))) {
                up->mm = mm;
                up->at = (char *)phys_to_virt(pte_address(pte)) +
                         (va & (PAGE_SIZE - 1));
                return 0;
            }
            spin_unlock(up->ptl);
        }
        r = fault_locked(mm, va, flags);
        mm_read_unlock(&mm->mmap_lock);
        if (r != 0 && (r != -ENOMEM || !page_fail_retry())) {
            return -EFAULT;
        }
        preempt_point();
    }
}

static void user_page_put(struct user_page *up)
{
    spin_unlock(up->ptl);
    mm_read_unlock(&up->mm->mmap_lock);
}

static size_t page_rest(uint64_t va, size_t size)
{
    size_t rest = PAGE_SIZE - (va & (PAGE_SIZE - 1));

    return size < rest ? size : rest;
}

int copy_to_mm(struct mm *mm, uint64_t dst, const void *src, size_t size)
{
    const char *from = src;

    while (size > 0) {
        size_t n = page_rest(dst, size);
        struct user_page up;

        if (user_page_get(&up, mm, dst, MM_FAULT_WRITE) != 0) {
            return -EFAULT;
        }
        memcpy(up.at, from, n);
        user_page_put(&up);
        dst += n;
        from += n;
        size -= n;
    }
    return 0;
}

int copy_from_mm(struct mm *mm, void *dst, uint64_t src, size_t size)
{
    char *to = dst;

    while (size > 0) {
        size_t n = page_rest(src, size);
        struct user_page up;

        if (user_page_get(&up, mm, src, 0) != 0) {
            return -EFAULT;
        }
        memcpy(to, up.at, n);
        user_page_put(&up);
        src += n;
        to += n;
        size -= n;
    }
    return 0;
}

int mm_poke(struct mm *mm, uint64_t va, const void *src, size_t size)
{
    const char *from = src;
    bool code = false;

    while (size > 0) {
        size_t n = page_rest(va, size);
        struct user_page up;
        struct vma *vma;

        if (user_page_get(&up, mm, va, MM_FAULT_WRITE | MM_FAULT_FORCE) != 0) {
            return -EFAULT;
        }
        memcpy(up.at, from, n);
        vma = vma_find(mm, va);
        if (vma != NULL && (vma->flags & PROT_EXEC)) {
            fault_clean_dcache(virt_to_page(up.at));
            code = true;
        }
        user_page_put(&up);
        va += n;
        from += n;
        size -= n;
    }
    if (code) {
        fault_drop_icache();
    }
    return 0;
}

int copy_to_user(uint64_t dst, const void *src, size_t size)
{
    return copy_to_mm(current()->mm, dst, src, size);
}

int copy_from_user(void *dst, uint64_t src, size_t size)
{
    return copy_from_mm(current()->mm, dst, src, size);
}

int clear_user(uint64_t dst, size_t size)
{
    while (size > 0) {
        size_t n = page_rest(dst, size);
        struct user_page up;

        if (user_page_get(&up, current()->mm, dst, MM_FAULT_WRITE) != 0) {
            return -EFAULT;
        }
        memset(up.at, 0, n);
        user_page_put(&up);
        dst += n;
        size -= n;
    }
    return 0;
}

int64_t strncpy_from_user(char *dst, uint64_t src, size_t size)
{
    size_t done = 0;

    while (done < size) {
        size_t n = page_rest(src + done, size - done);
        struct user_page up;

        if (user_page_get(&up, current()->mm, src + done, 0) != 0) {
            return -EFAULT;
        }
        for (size_t i = 0; i < n; i++, done++) {
            dst[done] = up.at[i];
            if (dst[done] == '\0') {
                user_page_put(&up);
                return (int64_t)done;
            }
        }
        user_page_put(&up);
    }
    return (int64_t)size;
}

/*
 * fast_walk=on: without a lock. Tables are not freed while interrupts are
 * masked; a frame may be, but then its PTE is another one. False: the slow way.
 */
static bool fast_read_u32(uint32_t *out, uint64_t src)
{
    struct mm *mm = current()->mm;
    uint64_t flags;
    unsigned level;
    pte_t pte;
    bool good;

    if (mm == NULL || src >= USER_END) {
        return false;
    }
    flags = local_irq_save();
    annot_promise(ANNOT_REG_WALK_BEGIN, virt_to_phys(mm->pgd));
    pte = pt_lookup(mm, src, &level);
    good = pte_valid(pte) && pte & PTE_AF && level == 3;
    if (good) {
        const char *page = phys_to_virt(pte_address(pte));

        *out = __atomic_load_n((const uint32_t *)(page + src % PAGE_SIZE),
                               __ATOMIC_ACQUIRE);
        good = pt_lookup(mm, src, &level) == pte;
    }
    annot_promise(ANNOT_REG_WALK_END, 0);
    local_irq_restore(flags);
    return good;
}

int get_user_u32(uint32_t *out, uint64_t src)
{
    struct user_page up;

    if ((src & 3) == 0 && flush_opts.fast_walk && fast_read_u32(out, src)) {
        return 0;
    }
    if ((src & 3) != 0 || user_page_get(&up, current()->mm, src, 0) != 0) {
        return -EFAULT;
    }
    *out = __atomic_load_n((uint32_t *)up.at, __ATOMIC_ACQUIRE);
    user_page_put(&up);
    return 0;
}

int get_user_u64(uint64_t *out, uint64_t src)
{
    return copy_from_user(out, src, sizeof(*out));
}

int put_user_u32(uint64_t dst, uint32_t value)
{
    struct user_page up;

    if ((dst & 3) != 0 ||
        user_page_get(&up, current()->mm, dst, MM_FAULT_WRITE) != 0) {
        return -EFAULT;
    }
    __atomic_store_n((uint32_t *)up.at, value, __ATOMIC_RELEASE);
    user_page_put(&up);
    return 0;
}

int put_user_u64(uint64_t dst, uint64_t value)
{
    return copy_to_user(dst, &value, sizeof(value));
}

int cmpxchg_user_u32(uint64_t addr, uint32_t expected, uint32_t desired,
                     uint32_t *out_old)
{
    struct user_page up;

    if ((addr & 3) != 0 ||
        user_page_get(&up, current()->mm, addr, MM_FAULT_WRITE) != 0) {
        return -EFAULT;
    }
    (void)__atomic_compare_exchange_n((uint32_t *)up.at, &expected, desired,
                                      false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
    *out_old = expected;
    user_page_put(&up);
    return 0;
}

int rmw_user_u32(uint64_t addr, enum user_rmw op, uint32_t arg,
                 uint32_t *out_old)
{
    struct user_page up;
    uint32_t *word, old = 0;

    if ((addr & 3) != 0 ||
        user_page_get(&up, current()->mm, addr, MM_FAULT_WRITE) != 0) {
        return -EFAULT;
    }
    word = (uint32_t *)up.at;
    switch (op) {
    case USER_RMW_SET:
        old = __atomic_exchange_n(word, arg, __ATOMIC_SEQ_CST);
        break;
    case USER_RMW_ADD:
        old = __atomic_fetch_add(word, arg, __ATOMIC_SEQ_CST);
        break;
    case USER_RMW_OR:
        old = __atomic_fetch_or(word, arg, __ATOMIC_SEQ_CST);
        break;
    case USER_RMW_ANDN:
        old = __atomic_fetch_and(word, ~arg, __ATOMIC_SEQ_CST);
        break;
    case USER_RMW_XOR:
        old = __atomic_fetch_xor(word, arg, __ATOMIC_SEQ_CST);
        break;
    }
    *out_old = old;
    user_page_put(&up);
    return 0;
}

int user_futex_key(uint64_t addr, uint64_t out_key[2])
{
    struct mm *mm = current()->mm;
    struct vma *vma;
    int r = -EFAULT;

    if (mm == NULL || addr >= USER_END) {
        return -EFAULT;
    }
    mm_read_lock(&mm->mmap_lock);
    vma = vma_find(mm, addr);
    if (vma != NULL) {
        r = 0;
        if (vma->flags & VMA_SHARED) {
            /* Objects have odd keys, address spaces even ones. */
            out_key[0] = vma->shmem->id << 1 | 1;
            out_key[1] = (vma->pgoff << PAGE_SHIFT) + (addr - vma->start);
        } else {
            out_key[0] = mm->context.ctx_id << 1;
            out_key[1] = addr;
        }
    }
    mm_read_unlock(&mm->mmap_lock);
    return r;
}
