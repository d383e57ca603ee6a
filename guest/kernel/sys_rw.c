/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that read, write and move through open files. */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/sys_path.h"
#include "kernel/syscalls.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define IOV_MAX 1024UL
#define RW_MAX 0x7ffff000UL
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2

struct user_iovec {
    uint64_t base, len;
};

enum direction { READ, WRITE };

/* One transfer; offset NULL: at the file's own. */
static int64_t transfer(struct file *file, enum direction direction,
                        uint64_t buf_va, uint64_t size, uint64_t *offset)
{
    int64_t (*fn)(struct file *, uint64_t, uint64_t, uint64_t *) =
        direction == READ ? file->ops->read : file->ops->write;
    uint64_t none = 0;
    int64_t n;

    if (!(direction == READ ? file_readable(file) : file_writable(file))) {
        return -EBADF;
    }
    if (fn == NULL) {
        return -EINVAL;
    }
    if (buf_va >= USER_END || size > USER_END - buf_va) {
        return size == 0 ? 0 : -EFAULT;
    }
    size = min_u64(size, RW_MAX);
    if (file->ops->stream) {
        return fn(file, buf_va, size, &none);
    }
    mutex_lock(&file->lock);
    n = fn(file, buf_va, size, offset != NULL ? offset : &file->offset);
    mutex_unlock(&file->lock);
    return n;
}

static int64_t transfer_vector(struct file *file, enum direction direction,
                               uint64_t iov_va, uint64_t count,
                               uint64_t *offset)
{
    int64_t total = 0;

    if (count > IOV_MAX) {
        return -EINVAL;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct user_iovec iov;
        int64_t n;

        if (copy_from_user(&iov, iov_va + i * sizeof(iov), sizeof(iov)) != 0) {
            return total > 0 ? total : -EFAULT;
        }
        if ((int64_t)iov.len < 0) {
            return total > 0 ? total : -EINVAL;
        }
        if (iov.len == 0) {
            continue;
        }
        n = transfer(file, direction, iov.base, iov.len, offset);
        if (n < 0) {
            return total > 0 ? total : n;
        }
        total += n;
        if ((uint64_t)n < iov.len) {
            break;
        }
    }
    return total;
}

/* At the file's offset, or at offset, which streams do not have. */
static int64_t rw(uint64_t fd, enum direction direction, uint64_t va,
                  uint64_t size, bool vector, int64_t *offset)
{
    struct file *file = file_get(my_files(), fd);
    uint64_t at = offset != NULL ? (uint64_t)*offset : 0;
    uint64_t *where = offset != NULL ? &at : NULL;
    int64_t n;

    if (file == NULL) {
        return -EBADF;
    }
    if (offset != NULL && *offset < 0) {
        n = -EINVAL;
    } else if (offset != NULL && file->ops->stream) {
        n = -ESPIPE;
    } else {
        n = vector ? transfer_vector(file, direction, va, size, where)
                   : transfer(file, direction, va, size, where);
    }
    file_put(file);
    return n;
}

int64_t sys_read(uint64_t fd, uint64_t buf_va, uint64_t size)
{
    return rw(fd, READ, buf_va, size, false, NULL);
}

int64_t sys_write(uint64_t fd, uint64_t buf_va, uint64_t size)
{
    return rw(fd, WRITE, buf_va, size, false, NULL);
}

int64_t sys_readv(uint64_t fd, uint64_t iov_va, uint64_t count)
{
    return rw(fd, READ, iov_va, count, true, NULL);
}

int64_t sys_writev(uint64_t fd, uint64_t iov_va, uint64_t count)
{
    return rw(fd, WRITE, iov_va, count, true, NULL);
}

int64_t sys_pread64(uint64_t fd, uint64_t buf_va, uint64_t size, int64_t offset)
{
    return rw(fd, READ, buf_va, size, false, &offset);
}

int64_t sys_pwrite64(uint64_t fd, uint64_t buf_va, uint64_t size,
                     int64_t offset)
{
    return rw(fd, WRITE, buf_va, size, false, &offset);
}

int64_t sys_preadv(uint64_t fd, uint64_t iov_va, uint64_t count, int64_t offset)
{
    return rw(fd, READ, iov_va, count, true, &offset);
}

int64_t sys_pwritev(uint64_t fd, uint64_t iov_va, uint64_t count,
                    int64_t offset)
{
    return rw(fd, WRITE, iov_va, count, true, &offset);
}

static int64_t seek_base(struct file *file, uint64_t whence, int64_t *out)
{
    switch (whence) {
    case SEEK_SET:
        *out = 0;
        return 0;
    case SEEK_CUR:
        *out = (int64_t)file->offset;
        return 0;
    case SEEK_END:
        *out = file->inode == NULL ? 0 : (int64_t)file->inode->size;
        return 0;
    default:
        return -EINVAL;
    }
}

int64_t sys_lseek(uint64_t fd, int64_t offset, uint64_t whence)
{
    struct file *file = file_get(my_files(), fd);
    int64_t base = 0, error;

    if (file == NULL) {
        return -EBADF;
    }
    if (file->ops->stream || (file->flags & O_PATH) != 0) {
        error = (file->flags & O_PATH) != 0 ? -EBADF : -ESPIPE;
        file_put(file);
        return error;
    }
    mutex_lock(&file->lock);
    error = seek_base(file, whence, &base);
    if (error == 0 &&
        (__builtin_add_overflow(base, offset, &base) || base < 0)) {
        error = -EINVAL;
    }
    if (error == 0) {
        file->offset = (uint64_t)base;
    }
    mutex_unlock(&file->lock);
    file_put(file);
    return error != 0 ? error : base;
}

static int64_t truncate_file(struct inode *inode, int64_t size)
{
    if (size < 0 || inode_type(inode) != S_IFREG || inode->ops != NULL) {
        return inode_is_dir(inode) && size >= 0 ? -EISDIR : -EINVAL;
    }
    return tmpfile_truncate(inode, (uint64_t)size);
}

int64_t sys_ftruncate(uint64_t fd, int64_t size)
{
    struct file *file = file_get(my_files(), fd);
    int64_t error;

    if (file == NULL) {
        return -EBADF;
    }
    error = file->inode == NULL || !file_writable(file)
                ? -EINVAL
                : truncate_file(file->inode, size);
    file_put(file);
    return error;
}

int64_t sys_truncate(uint64_t name_va, int64_t size)
{
    struct inode *inode;
    int64_t error = user_path_lookup(AT_FDCWD, name_va, 0, &inode);

    if (error == 0) {
        error = truncate_file(inode, size);
        inode_put(inode);
    }
    return error;
}

int64_t sys_fsync(uint64_t fd)
{
    struct file *file = file_get(my_files(), fd);
    bool stream = file != NULL && file->ops->stream;

    file_put(file);
    return file == NULL ? -EBADF : stream ? -EINVAL : 0;
}
