/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls on directories and on the names in them. */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/sys_path.h"
#include "kernel/syscalls.h"
#include "mm/page.h"
#include "mm/uaccess.h"

/* struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name */
#define DIRENT_NAME 19
#define RENAME_NOREPLACE 1UL

static int64_t put_dirent(const struct dir_entry *entry, uint64_t buf_va,
                          uint64_t room)
{
    uint8_t record[ALIGN_UP(DIRENT_NAME + NAME_MAX_LEN + 1, 8UL)] = {0};
    size_t len = strlen(entry->name);
    uint16_t reclen = (uint16_t)ALIGN_UP(DIRENT_NAME + len + 1, 8UL);

    if (reclen > room) {
        return -EINVAL;
    }
    memcpy(record, &entry->ino, 8);
    memcpy(record + 8, &entry->pos, 8);
    memcpy(record + 16, &reclen, 2);
    record[18] = (uint8_t)(entry->mode >> 12); /* DT_* are the same bits */
    memcpy(record + DIRENT_NAME, entry->name, len);
    return copy_to_user(buf_va, record, reclen) != 0 ? -EFAULT : reclen;
}

/* file->lock held. */
static int64_t list_directory(struct file *file, uint64_t buf_va, uint64_t size)
{
    struct dir_entry *entry = kmalloc(sizeof(*entry));
    uint64_t done = 0;
    int64_t n = 0;

    if (entry == NULL) {
        return -ENOMEM;
    }
    for (;;) {
        bool any;

        entry->pos = file->offset;
        rwsem_read_lock(&tree_lock);
        any = inode_list(file->inode, entry);
        rwsem_read_unlock(&tree_lock);
        if (!any) {
            break;
        }
        n = put_dirent(entry, buf_va + done, size - done);
        if (n < 0) {
            break;
        }
        done += (uint64_t)n;
        file->offset = entry->pos;
    }
    kfree(entry);
    return done > 0 ? (int64_t)done : n < 0 ? n : 0;
}

int64_t sys_getdents64(uint64_t fd, uint64_t buf_va, uint64_t size)
{
    struct file *file = file_get(my_files(), fd);
    int64_t n = -ENOTDIR;

    if (file == NULL) {
        return -EBADF;
    }
    if ((file->flags & O_PATH) != 0) {
        n = -EBADF;
    } else if (file->inode != NULL && inode_is_dir(file->inode)) {
        mutex_lock(&file->lock);
        n = list_directory(file, buf_va, size);
        mutex_unlock(&file->lock);
    }
    file_put(file);
    return n;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* tree_lock held for writing. A new name for a new inode. */
static int make_node(struct inode *start, const char *name, uint32_t mode,
                     const char *target, uint32_t rdev)
{
    bool dir = (mode & S_IFMT) == S_IFDIR;
    struct path path;
    struct inode *inode;
    int error = path_find(start, name, PATH_PARENT | PATH_NOFOLLOW, &path);

    if (error != 0) {
        return error;
    }
    if (path.inode != NULL) {
        error = -EEXIST;
    } else if (path.slash && !dir) {
        error = -ENOENT;
    } else if (path.parent->ops != NULL) {
        error = dir && path.parent->ops->mkdir != NULL
                    ? path.parent->ops->mkdir(path.parent, path.name, mode)
                    : -EPERM;
    } else {
        inode = inode_add(path.parent, path.name, mode, NULL, NULL);
        error = inode == NULL ? -ENOMEM : 0;
        if (error == 0) {
            inode->rdev = rdev;
            inode->data = target;
            inode->data_owned = target != NULL;
            inode->size = target != NULL ? strlen(target) : 0;
        }
    }
    path_put(&path);
    return error;
}

static int64_t make_user_node(int64_t dirfd, uint64_t name_va, uint32_t mode,
                              const char *target, uint32_t rdev)
{
    struct user_path path;
    int64_t error = user_path_get(dirfd, name_va, &path);

    if (error == 0) {
        rwsem_write_lock(&tree_lock);
        error = make_node(path.start, path.name, mode, target, rdev);
        rwsem_write_unlock(&tree_lock);
        user_path_put(&path);
    }
    return error;
}

int64_t sys_mkdirat(int64_t dirfd, uint64_t name_va, uint64_t mode)
{
    mode = mode & 01777 & ~(uint64_t)current()->process->umask;
    return make_user_node(dirfd, name_va, S_IFDIR | (uint32_t)mode, NULL, 0);
}

int64_t sys_mknodat(int64_t dirfd, uint64_t name_va, uint64_t mode,
                    uint64_t rdev)
{
    uint32_t type = (uint32_t)mode & S_IFMT;

    type = type == 0 ? S_IFREG : type;
    mode = mode & 07777 & ~(uint64_t)current()->process->umask;
    if (type == S_IFDIR) {
        return -EPERM;
    }
    if (type != S_IFREG && type != S_IFIFO && type != S_IFCHR) {
        return -EINVAL;
    }
    return make_user_node(dirfd, name_va, type | (uint32_t)mode, NULL,
                          (uint32_t)rdev);
}

int64_t sys_symlinkat(uint64_t target_va, int64_t dirfd, uint64_t name_va)
{
    struct user_path target;
    int64_t error = user_path_get(AT_FDCWD, target_va, &target);

    if (error != 0) {
        return error;
    }
    error =
        target.name[0] == '\0'
            ? -ENOENT
            : make_user_node(dirfd, name_va, S_IFLNK | 0777, target.name, 0);
    if (error == 0) {
        target.name = NULL; /* the inode has it */
    }
    user_path_put(&target);
    return error;
}

/* tree_lock held for writing. */
static int remove_name(struct path *path, bool dir)
{
    struct inode *inode = path->inode;

    if (inode == NULL) {
        return -ENOENT;
    }
    if (dir && strcmp(path->name, ".") == 0) {
        return -EINVAL;
    }
    if (dir && strcmp(path->name, "..") == 0) {
        return -ENOTEMPTY;
    }
    if (inode == tree_root) {
        return dir ? -EBUSY : -EISDIR;
    }
    if (dir != inode_is_dir(inode) || (!dir && path->slash)) {
        return dir || !inode_is_dir(inode) ? -ENOTDIR : -EISDIR;
    }
    if (path->entry->parent == NULL ||
        (path->entry->parent->ops != NULL && inode->ops == NULL)) {
        return -EPERM; /* made up */
    }
    if (dir && inode->ops != NULL) {
        int error =
            inode->ops->rmdir != NULL ? inode->ops->rmdir(inode) : -EPERM;

        if (error != 0) {
            return error;
        }
    } else if (inode->ops != NULL && inode->ops->text != NULL) {
        return -EPERM;
    } else if (!list_empty(&inode->children)) {
        return -ENOTEMPTY;
    }
    inode_unlink(path->entry);
    return 0;
}

int64_t sys_unlinkat(int64_t dirfd, uint64_t name_va, uint64_t flags)
{
    struct user_path user;
    struct path path;
    int64_t error;

    if ((flags & ~AT_REMOVEDIR) != 0) {
        return -EINVAL;
    }
    error = user_path_get(dirfd, name_va, &user);
    if (error != 0) {
        return error;
    }
    rwsem_write_lock(&tree_lock);
    error =
        path_find(user.start, user.name, PATH_PARENT | PATH_NOFOLLOW, &path);
    if (error == 0) {
        error = remove_name(&path, flags != 0);
        path_put(&path);
    }
    rwsem_write_unlock(&tree_lock);
    user_path_put(&user);
    return error;
}

static bool is_below(const struct inode *inode, const struct inode *top)
{
    for (; inode != NULL; inode = inode->parent) {
        if (inode == top) {
            return true;
        }
    }
    return false;
}

/* tree_lock held for writing. May `to` be replaced by `from`? */
static int rename_check(const struct path *from, const struct path *to,
                        uint64_t flags)
{
    struct inode *a = from->inode, *b = to->inode;

    if (a == NULL) {
        return -ENOENT;
    }
    if (is_dots(from->name) || is_dots(to->name) || a == tree_root) {
        return -EBUSY;
    }
    if (from->entry->parent == NULL || from->parent->ops != NULL ||
        a->ops != NULL || to->parent->ops != NULL ||
        (b != NULL && b->ops != NULL)) {
        return -EXDEV; /* made up: another file system, so to speak */
    }
    if (b != NULL && (flags & RENAME_NOREPLACE) != 0) {
        return -EEXIST;
    }
    if ((from->slash || to->slash) && !inode_is_dir(a)) {
        return -ENOTDIR;
    }
    if (inode_is_dir(a) && is_below(to->parent, a)) {
        return -EINVAL;
    }
    if (b == NULL || a == b) {
        return 0;
    }
    if (inode_is_dir(b) != inode_is_dir(a)) {
        return inode_is_dir(b) ? -EISDIR : -ENOTDIR;
    }
    return list_empty(&b->children) ? 0 : -ENOTEMPTY;
}

static int rename_inode(const struct path *from, const struct path *to)
{
    struct inode *inode = from->entry, *old = from->parent;
    int error;

    if (to->inode == from->inode) {
        return 0; /* two names of one file both stay */
    }
    if (to->inode != NULL) {
        inode_unlink(to->entry);
    }
    /* Out and in again: the tree's reference keeps it alive. */
    list_remove(&inode->sibling);
    error = inode_link(to->parent, to->name, inode);
    if (error != 0) {
        list_append(&old->children, &inode->sibling);
        return error;
    }
    inode_touch(old);
    inode_put(inode); /* inode_link() took one more for the tree */
    return 0;
}

int64_t sys_renameat2(int64_t from_dirfd, uint64_t from_va, int64_t to_dirfd,
                      uint64_t to_va, uint64_t flags)
{
    struct user_path from_user, to_user;
    struct path from, to;
    int64_t error;

    if ((flags & ~RENAME_NOREPLACE) != 0) {
        return -EINVAL;
    }
    error = user_path_get(from_dirfd, from_va, &from_user);
    if (error != 0) {
        return error;
    }
    error = user_path_get(to_dirfd, to_va, &to_user);
    if (error != 0) {
        user_path_put(&from_user);
        return error;
    }
    rwsem_write_lock(&tree_lock);
    error = path_find(from_user.start, from_user.name,
                      PATH_PARENT | PATH_NOFOLLOW, &from);
    if (error == 0) {
        error = path_find(to_user.start, to_user.name,
                          PATH_PARENT | PATH_NOFOLLOW, &to);
        if (error == 0) {
            error = rename_check(&from, &to, flags);
            error = error != 0 ? error : rename_inode(&from, &to);
            path_put(&to);
        }
        path_put(&from);
    }
    rwsem_write_unlock(&tree_lock);
    user_path_put(&to_user);
    user_path_put(&from_user);
    return error;
}

/* tree_lock held for writing. One more name for `of`. */
static int add_name(struct inode *of, const struct path *to)
{
    if (to->inode != NULL) {
        return -EEXIST;
    }
    if (to->slash) {
        return -ENOENT;
    }
    if (to->parent->ops != NULL || of->ops != NULL) {
        return -EXDEV; /* made up: another file system, so to speak */
    }
    if (inode_is_dir(of)) {
        return -EPERM;
    }
    if (inode_names(of) == 0) {
        return -ENOENT; /* removed, but still open */
    }
    return inode_add_alias(to->parent, to->name, of);
}

static int64_t link_inode(struct inode *of, int64_t to_dirfd, uint64_t to_va)
{
    struct user_path user;
    struct path to;
    int64_t error = user_path_get(to_dirfd, to_va, &user);

    if (error != 0) {
        return error;
    }
    rwsem_write_lock(&tree_lock);
    error = path_find(user.start, user.name, PATH_PARENT | PATH_NOFOLLOW, &to);
    if (error == 0) {
        error = add_name(of, &to);
        path_put(&to);
    }
    rwsem_write_unlock(&tree_lock);
    user_path_put(&user);
    return error;
}

int64_t sys_linkat(int64_t from_dirfd, uint64_t from_va, int64_t to_dirfd,
                   uint64_t to_va, uint64_t flags)
{
    struct inode *inode, *of;
    struct file *file;
    int64_t error;

    if ((flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0) {
        return -EINVAL;
    }
    error = user_path_lookup_at(
        from_dirfd, from_va,
        (flags & AT_EMPTY_PATH) |
            ((flags & AT_SYMLINK_FOLLOW) != 0 ? 0 : AT_SYMLINK_NOFOLLOW),
        &inode, &file);
    if (error != 0) {
        return error;
    }
    of = file != NULL ? file->inode : inode;
    error = of == NULL ? -EXDEV : link_inode(of, to_dirfd, to_va);
    inode_put(inode);
    file_put(file);
    return error;
}
