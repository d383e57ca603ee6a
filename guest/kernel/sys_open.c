/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that make and close descriptors. */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/sys_path.h"
#include "kernel/syscalls.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define OPEN_KEPT (O_ACCMODE | O_APPEND | O_NONBLOCK | O_PATH)

#define F_DUPFD 0
#define F_GETFD 1
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_GETLK 5
#define F_SETLK 6
#define F_SETLKW 7
#define F_DUPFD_CLOEXEC 1030
#define F_UNLCK 2

/* tree_lock held for writing. The inode, made if need be and wanted. */
static int open_or_create(struct inode *start, const char *name, uint32_t flags,
                          uint32_t mode, struct inode **out)
{
    unsigned how = PATH_PARENT;
    struct path path;
    int error;

    how |= (flags & (O_NOFOLLOW | O_EXCL)) != 0 ? PATH_NOFOLLOW : 0;
    error = path_find(start, name, how, &path);
    if (error != 0) {
        return error;
    }
    if (path.inode != NULL && (flags & O_EXCL) != 0) {
        error = -EEXIST;
    } else if (path.slash || (path.inode == NULL && path.name[0] == '\0')) {
        error = -EISDIR;
    } else if (path.inode == NULL && path.parent->ops != NULL) {
        error = -EACCES; /* made-up directories get no files from here */
    } else if (path.inode == NULL) {
        path.inode = inode_new(
            S_IFREG | (mode & 07777 & ~current()->process->umask), NULL, NULL);
        error = path.inode == NULL
                    ? -ENOMEM
                    : inode_link(path.parent, path.name, path.inode);
    }
    *out = error == 0 ? inode_get(path.inode) : NULL;
    path_put(&path);
    return error;
}

static int64_t check_open(const struct inode *inode, uint32_t flags)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY;

    if (inode_type(inode) == S_IFLNK && (flags & O_PATH) == 0) {
        return -ELOOP; /* with O_NOFOLLOW */
    }
    if ((flags & O_DIRECTORY) != 0 && !inode_is_dir(inode)) {
        return -ENOTDIR;
    }
    if (inode_is_dir(inode) && (writes || (flags & O_CREAT) != 0) &&
        (flags & O_PATH) == 0) {
        return -EISDIR;
    }
    return 0;
}

/* /dev/fd/N: one more descriptor of the same open file. */
static int64_t open_descriptor(struct inode *inode, bool cloexec)
{
    struct file *file = file_get(my_files(), inode->rdev & ~DEVICE_FD);

    inode_put(inode);
    return file == NULL ? -ENXIO : file_install(my_files(), file, 0, cloexec);
}

/* Takes over the inode's reference. */
static int64_t open_inode(struct inode *inode, uint32_t flags)
{
    const struct file_ops *ops;
    struct file *file;
    int64_t error = check_open(inode, flags);

    if (error == 0 && inode_type(inode) == S_IFCHR &&
        (inode->rdev & DEVICE_FD) == DEVICE_FD) {
        return open_descriptor(inode, (flags & O_CLOEXEC) != 0);
    }
    ops = inode_file_ops(inode);
    if (ops == NULL && (flags & O_PATH) != 0) {
        ops = inode_file_ops(tree_root); /* never read */
    }
    if (error == 0 && ops == NULL) {
        error = -ENXIO;
    }
    if (error == 0 && (flags & O_TRUNC) != 0 && (flags & O_PATH) == 0 &&
        inode_type(inode) == S_IFREG && inode->ops == NULL) {
        error = tmpfile_truncate(inode, 0);
    }
    if (error != 0) {
        inode_put(inode);
        return error;
    }
    file = file_new(ops, inode, flags & OPEN_KEPT);
    if (file == NULL) {
        return -ENOMEM;
    }
    if (inode_type(inode) == S_IFIFO && (flags & O_PATH) == 0) {
        error = fifo_open(file);
        if (error != 0) {
            file_put(file);
            return error;
        }
    }
    return file_install(my_files(), file, 0, (flags & O_CLOEXEC) != 0);
}

int64_t sys_openat(int64_t dirfd, uint64_t path_va, uint64_t flags64,
                   uint64_t mode)
{
    uint32_t flags = (uint32_t)flags64;
    struct user_path path;
    struct inode *inode;
    int64_t error;

    if ((flags & O_ACCMODE) == O_ACCMODE && (flags & O_PATH) == 0) {
        return -EINVAL;
    }
    if ((flags & O_PATH) != 0) {
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    }
    if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY)) {
        return -EINVAL;
    }
    error = user_path_get(dirfd, path_va, &path);
    if (error != 0) {
        return error;
    }
    error = path_lookup(path.start, path.name,
                        (flags & O_NOFOLLOW) != 0 ? PATH_NOFOLLOW : 0, &inode);
    if ((flags & O_CREAT) != 0 &&
        (error == -ENOENT || (error == 0 && (flags & O_EXCL) != 0))) {
        if (error == 0) {
            inode_put(inode);
        }
        rwsem_write_lock(&tree_lock);
        error = open_or_create(path.start, path.name, flags, (uint32_t)mode,
                               &inode);
        rwsem_write_unlock(&tree_lock);
    }
    user_path_put(&path);
    return error != 0 ? error : open_inode(inode, flags);
}

int64_t sys_close(uint64_t fd)
{
    struct file *file = file_remove(my_files(), fd);

    file_put(file);
    return file == NULL ? -EBADF : 0;
}

int64_t sys_close_range(uint64_t first, uint64_t last, uint64_t flags)
{
    if (first > last || (flags & ~4UL) != 0) { /* CLOSE_RANGE_CLOEXEC */
        return -EINVAL;
    }
    for (uint64_t fd = first; fd <= last && fd < FILES_MAX; fd++) {
        if (flags != 0) {
            file_set_cloexec(my_files(), fd, true);
        } else {
            file_put(file_remove(my_files(), fd));
        }
    }
    return 0;
}

static int64_t dup_from(uint64_t fd, uint64_t from, bool cloexec)
{
    struct file *file = file_get(my_files(), fd);

    if (file == NULL) {
        return -EBADF;
    }
    return file_install(my_files(), file, from, cloexec);
}

int64_t sys_dup(uint64_t fd)
{
    return dup_from(fd, 0, false);
}

int64_t sys_dup3(uint64_t old_fd, uint64_t new_fd, uint64_t flags)
{
    struct file *file, *old;
    int64_t result;

    if ((flags & ~(uint64_t)O_CLOEXEC) != 0 || old_fd == new_fd) {
        return -EINVAL;
    }
    file = file_get(my_files(), old_fd);
    if (file == NULL) {
        return -EBADF;
    }
    result = file_replace(my_files(), file, new_fd, flags != 0, &old);
    file_put(old);
    return result;
}

int64_t sys_pipe2(uint64_t fds_va, uint64_t flags)
{
    struct file *ends[2];
    int64_t fd[2];
    int32_t out[2];
    bool cloexec = (flags & O_CLOEXEC) != 0;
    int error;

    if ((flags & ~(uint64_t)(O_CLOEXEC | O_NONBLOCK)) != 0) {
        return -EINVAL;
    }
    error = pipe_new(ends, flags & O_NONBLOCK);
    if (error != 0) {
        return error;
    }
    fd[0] = file_install(my_files(), ends[0], 0, cloexec);
    fd[1] = fd[0] < 0 ? fd[0] : file_install(my_files(), ends[1], 0, cloexec);
    if (fd[0] < 0) {
        file_put(ends[1]);
        return fd[0];
    }
    out[0] = (int32_t)fd[0];
    out[1] = (int32_t)fd[1];
    if (fd[1] >= 0 && copy_to_user(fds_va, out, sizeof(out)) == 0) {
        return 0;
    }
    file_put(file_remove(my_files(), (uint64_t)fd[0]));
    if (fd[1] < 0) {
        return fd[1];
    }
    file_put(file_remove(my_files(), (uint64_t)fd[1]));
    return -EFAULT;
}

/* Record locks: one process at a time writes here, so all are granted. */
static int64_t fcntl_lock(uint64_t cmd, uint64_t arg)
{
    uint16_t type;

    if (copy_from_user(&type, arg, sizeof(type)) != 0) {
        return -EFAULT;
    }
    type = F_UNLCK;
    return cmd == F_GETLK ? copy_to_user(arg, &type, sizeof(type)) : 0;
}

int64_t sys_fcntl(uint64_t fd, uint64_t cmd, uint64_t arg)
{
    const uint32_t settable = O_APPEND | O_NONBLOCK;
    struct file *file;
    int64_t result = 0;

    if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
        file = file_get(my_files(), fd);
        if (file == NULL) {
            return -EBADF;
        }
        if (arg >= my_files()->limit) {
            file_put(file);
            return -EINVAL;
        }
        return file_install(my_files(), file, arg, cmd == F_DUPFD_CLOEXEC);
    }
    file = file_get(my_files(), fd);
    if (file == NULL) {
        return -EBADF;
    }
    switch (cmd) {
    case F_GETFD:
        result = file_cloexec(my_files(), fd);
        break;
    case F_SETFD:
        file_set_cloexec(my_files(), fd, (arg & 1) != 0);
        break;
    case F_GETFL:
        result = (int64_t)file->flags;
        break;
    case F_SETFL:
        atomic_store_explicit(&file->flags,
                              (file->flags & ~settable) |
                                  ((uint32_t)arg & settable),
                              memory_order_relaxed);
        break;
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
        result = fcntl_lock(cmd, arg);
        break;
    default:
        result = -EINVAL;
        break;
    }
    file_put(file);
    return result;
}

int64_t sys_ioctl(uint64_t fd, uint64_t request, uint64_t arg)
{
    struct file *file = file_get(my_files(), fd);
    int64_t result = -ENOTTY;

    if (file == NULL) {
        return -EBADF;
    }
    if ((file->flags & O_PATH) != 0) {
        result = -EBADF;
    } else if (file->ops->ioctl != NULL) {
        result = file->ops->ioctl(file, request, arg);
    }
    file_put(file);
    return result;
}

int64_t sys_umask(uint64_t mask)
{
    struct process *process = current()->process;
    uint32_t old = process->umask;

    process->umask = (uint32_t)mask & 0777;
    return (int64_t)old;
}
