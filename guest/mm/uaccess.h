/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access to the current task's user memory. Each page is faulted in, found
 * again under its page-table lock and accessed through the linear map while
 * that lock is held, so that neither reclaim nor munmap can take the frame.
 * Thread context, no spinlock held. user addresses are uint64_t.
 *
 * All return 0 or -14 (EFAULT) unless said otherwise.
 */
#ifndef MM_UACCESS_H
#define MM_UACCESS_H

#include <stddef.h>
#include <stdint.h>

struct mm;

int copy_to_user(uint64_t dst, const void *src, size_t size);
int copy_from_user(void *dst, uint64_t src, size_t size);
int clear_user(uint64_t dst, size_t size);
/* Length without the NUL; size if there was none in size bytes; -14. */
int64_t strncpy_from_user(char *dst, uint64_t src, size_t size);

int get_user_u32(uint32_t *out, uint64_t src);
int get_user_u64(uint64_t *out, uint64_t src);
int put_user_u32(uint64_t dst, uint32_t value);
int put_user_u64(uint64_t dst, uint64_t value);

/* Atomic with respect to user accesses. out_old is what was found. */
int cmpxchg_user_u32(uint64_t addr, uint32_t expected, uint32_t desired,
                     uint32_t *out_old);
/* op(old, arg) is stored atomically: futex WAKE_OP. */
enum user_rmw {
    USER_RMW_SET,
    USER_RMW_ADD,
    USER_RMW_OR,
    USER_RMW_ANDN,
    USER_RMW_XOR
};
int rmw_user_u32(uint64_t addr, enum user_rmw op, uint32_t arg,
                 uint32_t *out_old);

/*
 * A key that is equal for two addresses iff they name the same word of the
 * same memory (futex): two words. Shared memory is keyed by its object.
 */
int user_futex_key(uint64_t addr, uint64_t out_key[2]);

/* The same on another address space (tests, loader). */
int copy_to_mm(struct mm *mm, uint64_t dst, const void *src, size_t size);
int copy_from_mm(struct mm *mm, void *dst, uint64_t src, size_t size);

#endif
