/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names in system calls: the user's string and the directory it starts at. */
#ifndef KERNEL_SYS_PATH_H
#define KERNEL_SYS_PATH_H

#include "kernel/inode.h"

#define AT_FDCWD (-100)
#define AT_SYMLINK_NOFOLLOW 0x100UL
#define AT_REMOVEDIR 0x200UL
#define AT_EACCESS 0x200UL
#define AT_SYMLINK_FOLLOW 0x400UL
#define AT_EMPTY_PATH 0x1000UL

struct user_path {
    char *name;          /* kmalloc()ed */
    struct inode *start; /* with a reference */
};

/* 0 or -errno, and then there is nothing to put. */
int64_t user_path_get(int64_t dirfd, uint64_t name_va, struct user_path *out);
void user_path_put(struct user_path *path);
/* Both of the above around path_lookup(). With a reference. */
int64_t user_path_lookup(int64_t dirfd, uint64_t name_va, unsigned flags,
                         struct inode **out);
/* The same for calls that know AT_EMPTY_PATH and AT_SYMLINK_NOFOLLOW; out_file
 * is the open file that the empty path meant, or NULL. */
struct file;
int64_t user_path_lookup_at(int64_t dirfd, uint64_t name_va, uint64_t at_flags,
                            struct inode **out, struct file **out_file);
/* The current working directory, with a reference. */
struct inode *cwd_get(void);
/* Takes over the reference. */
void cwd_set(struct inode *dir);

#endif
