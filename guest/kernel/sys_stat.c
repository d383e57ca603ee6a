/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that tell what a file is. All of it belongs to user 0. */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/sys_path.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define STATX_BASIC_STATS 0x7ffU
#define AT_STATX_SYNC_TYPE 0x6000UL
#define R_OK 4UL
#define W_OK 2UL
#define X_OK 1UL
#define TMPFS_MAGIC 0x01021994UL
#define UTIME_NOW 0x3fffffff
#define UTIME_OMIT 0x3ffffffe

/* struct stat of arm64 */
struct user_stat {
    uint64_t dev, ino;
    uint32_t mode, nlink, uid, gid;
    uint64_t rdev, pad1;
    int64_t size;
    int32_t blksize, pad2;
    int64_t blocks;
    uint64_t times[6]; /* access, modification, change: seconds, ns */
    uint32_t unused[2];
};
_Static_assert(sizeof(struct user_stat) == 128, "struct stat");

struct user_statx_time {
    int64_t sec;
    uint32_t nsec, pad;
};

struct user_statx {
    uint32_t mask, blksize;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, pad1;
    uint64_t ino, size, blocks, attributes_mask;
    struct user_statx_time atime, btime, ctime, mtime;
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t spare[14];
};
_Static_assert(sizeof(struct user_statx) == 256, "struct statx");

struct facts {
    uint64_t ino, size, time;
    uint32_t mode, rdev, links;
};

static void facts_of(const struct inode *inode, struct facts *out)
{
    *out = (struct facts){.mode = S_IFIFO | 0600, .links = 1};
    if (inode != NULL) { /* else a pipe without a name */
        *out = (struct facts){
            .ino = inode->ino,
            .size = inode->size,
            .time = atomic_load_explicit(&inode->time, memory_order_relaxed),
            .mode = inode->mode,
            .rdev = inode->rdev,
            .links = inode_is_dir(inode) ? 2 : inode_names(inode),
        };
    }
}

/* As user space takes it apart: minor 19..8, major, minor 7..0. */
static uint64_t user_rdev(uint32_t rdev)
{
    if ((rdev & DEVICE_FD) != DEVICE_FD) {
        return rdev;
    }
    return (rdev & 0xff) | (DEVICE_FD >> 8 & 0xfff00) |
           (uint64_t)(rdev & 0xff00) << 12;
}

static int64_t stat_to_user(const struct inode *inode, uint64_t stat_va)
{
    struct facts f;
    struct user_stat st;

    facts_of(inode, &f);
    st = (struct user_stat){.dev = 1,
                            .ino = f.ino,
                            .mode = f.mode,
                            .nlink = f.links,
                            .rdev = user_rdev(f.rdev),
                            .size = (int64_t)f.size,
                            .blksize = PAGE_SIZE,
                            .blocks = (int64_t)((f.size + 511) / 512)};
    for (unsigned i = 0; i < 6; i += 2) {
        st.times[i] = f.time / NSEC_PER_SEC;
        st.times[i + 1] = f.time % NSEC_PER_SEC;
    }
    return copy_to_user(stat_va, &st, sizeof(st)) != 0 ? -EFAULT : 0;
}

int64_t sys_fstat(uint64_t fd, uint64_t stat_va)
{
    struct file *file = file_get(my_files(), fd);
    int64_t error;

    if (file == NULL) {
        return -EBADF;
    }
    error = stat_to_user(file->inode, stat_va);
    file_put(file);
    return error;
}

int64_t sys_newfstatat(int64_t dirfd, uint64_t path_va, uint64_t stat_va,
                       uint64_t flags)
{
    struct inode *inode;
    struct file *file;
    int64_t error;

    if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x800)) != 0) {
        return -EINVAL;
    }
    error = user_path_lookup_at(dirfd, path_va, flags, &inode, &file);
    if (error == 0) {
        error = stat_to_user(file != NULL ? file->inode : inode, stat_va);
        inode_put(inode);
        file_put(file);
    }
    return error;
}

static int64_t statx_to_user(const struct inode *inode, uint64_t statx_va)
{
    struct facts f;
    struct user_statx st;
    struct user_statx_time time;

    facts_of(inode, &f);
    time = (struct user_statx_time){.sec = (int64_t)(f.time / NSEC_PER_SEC),
                                    .nsec = (uint32_t)(f.time % NSEC_PER_SEC)};
    st = (struct user_statx){.mask = STATX_BASIC_STATS,
                             .blksize = PAGE_SIZE,
                             .nlink = f.links,
                             .mode = (uint16_t)f.mode,
                             .ino = f.ino,
                             .size = f.size,
                             .blocks = (f.size + 511) / 512,
                             .atime = time,
                             .ctime = time,
                             .mtime = time,
                             .rdev_major = f.rdev >> 8,
                             .rdev_minor = f.rdev & 0xff,
                             .dev_minor = 1};
    return copy_to_user(statx_va, &st, sizeof(st)) != 0 ? -EFAULT : 0;
}

int64_t sys_statx(int64_t dirfd, uint64_t path_va, uint64_t flags,
                  uint64_t mask, uint64_t statx_va)
{
    struct inode *inode;
    struct file *file;
    int64_t error;

    if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE |
                   0x800)) != 0 ||
        (mask & 0x80000000) != 0) {
        return -EINVAL;
    }
    error = user_path_lookup_at(dirfd, path_va, flags, &inode, &file);
    if (error == 0) {
        error = statx_to_user(file != NULL ? file->inode : inode, statx_va);
        inode_put(inode);
        file_put(file);
    }
    return error;
}

int64_t sys_faccessat(int64_t dirfd, uint64_t path_va, uint64_t mode,
                      uint64_t flags)
{
    struct inode *inode;
    struct file *file;
    int64_t error;

    if ((mode & ~(R_OK | W_OK | X_OK)) != 0 ||
        (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_EACCESS)) != 0) {
        return -EINVAL;
    }
    error = user_path_lookup_at(dirfd, path_va, flags, &inode, &file);
    if (error == 0) {
        struct inode *of = file != NULL ? file->inode : inode;

        /* User 0 may do all, but execute what nobody may. */
        if ((mode & X_OK) != 0 && of != NULL && !inode_is_dir(of) &&
            (of->mode & 0111) == 0) {
            error = -EACCES;
        }
        inode_put(inode);
        file_put(file);
    }
    return error;
}

int64_t sys_readlinkat(int64_t dirfd, uint64_t path_va, uint64_t buf_va,
                       uint64_t size)
{
    struct text target = {0};
    struct inode *inode;
    int64_t result;
    uint64_t n;

    if ((int64_t)size <= 0) {
        return -EINVAL;
    }
    result = user_path_lookup(dirfd, path_va, PATH_NOFOLLOW, &inode);
    if (result != 0) {
        return result;
    }
    if (inode_type(inode) != S_IFLNK) {
        result = -EINVAL;
    } else if (inode->ops != NULL && inode->ops->link != NULL) {
        rwsem_read_lock(&tree_lock);
        result = inode->ops->link(inode, &target);
        rwsem_read_unlock(&tree_lock);
    } else {
        text_append(&target, inode->data, inode->size);
    }
    inode_put(inode);
    if (result == 0 && target.failed) {
        result = -ENOMEM;
    }
    if (result == 0) {
        n = min_u64(target.len, size);
        result =
            copy_to_user(buf_va, target.buf, n) != 0 ? -EFAULT : (int64_t)n;
    }
    text_free(&target);
    return result;
}

static int64_t set_mode(struct inode *inode, uint64_t mode)
{
    inode->mode = (inode->mode & S_IFMT) | ((uint32_t)mode & 07777);
    inode_touch(inode);
    return 0;
}

int64_t sys_fchmod(uint64_t fd, uint64_t mode)
{
    struct file *file = file_get(my_files(), fd);

    if (file == NULL) {
        return -EBADF;
    }
    if (file->inode != NULL) {
        (void)set_mode(file->inode, mode);
    }
    file_put(file);
    return 0;
}

int64_t sys_fchmodat(int64_t dirfd, uint64_t path_va, uint64_t mode)
{
    struct inode *inode;
    int64_t error = user_path_lookup(dirfd, path_va, 0, &inode);

    if (error == 0) {
        error = set_mode(inode, mode);
        inode_put(inode);
    }
    return error;
}

/* Owners are not kept: only user 0 exists. */
int64_t sys_fchownat(int64_t dirfd, uint64_t path_va, uint64_t uid,
                     uint64_t gid, uint64_t flags)
{
    struct inode *inode;
    struct file *file;
    int64_t error = user_path_lookup_at(dirfd, path_va, flags, &inode, &file);

    if (error == 0) {
        error = ((uint32_t)uid + 1 > 1 || (uint32_t)gid + 1 > 1) ? -EPERM : 0;
        inode_put(inode);
        file_put(file);
    }
    return error;
}

int64_t sys_utimensat(int64_t dirfd, uint64_t path_va, uint64_t times_va,
                      uint64_t flags)
{
    int64_t times[4] = {0, UTIME_NOW, 0, UTIME_NOW};
    struct inode *inode, *of;
    struct file *file;
    int64_t error;

    if (times_va != 0 && copy_from_user(times, times_va, sizeof(times)) != 0) {
        return -EFAULT;
    }
    if (path_va == 0) {
        flags |= AT_EMPTY_PATH;
    }
    error = user_path_lookup_at(dirfd, path_va, flags, &inode, &file);
    if (error != 0) {
        return error;
    }
    of = file != NULL ? file->inode : inode;
    if (of != NULL && times[3] == UTIME_NOW) {
        inode_touch(of);
    } else if (of != NULL && times[3] != UTIME_OMIT) {
        if (times[3] < 0 || times[3] >= (int64_t)NSEC_PER_SEC) {
            error = -EINVAL;
        } else {
            atomic_store_explicit(&of->time,
                                  (uint64_t)times[2] * NSEC_PER_SEC +
                                      (uint64_t)times[3],
                                  memory_order_relaxed);
        }
    }
    inode_put(inode);
    file_put(file);
    return error;
}

static int64_t statfs_to_user(uint64_t buf_va)
{
    uint64_t blocks = page_total_count() / 2;
    uint64_t free = min_u64(page_free_count(), blocks);
    uint64_t st[15] = {TMPFS_MAGIC, PAGE_SIZE, blocks, free, free};

    st[8] = NAME_MAX_LEN;
    st[9] = PAGE_SIZE;
    return copy_to_user(buf_va, st, sizeof(st)) != 0 ? -EFAULT : 0;
}

int64_t sys_statfs(uint64_t path_va, uint64_t buf_va)
{
    struct inode *inode;
    int64_t error = user_path_lookup(AT_FDCWD, path_va, 0, &inode);

    if (error == 0) {
        inode_put(inode);
        error = statfs_to_user(buf_va);
    }
    return error;
}

int64_t sys_fstatfs(uint64_t fd, uint64_t buf_va)
{
    struct file *file = file_get(my_files(), fd);

    file_put(file);
    return file == NULL ? -EBADF : statfs_to_user(buf_va);
}
