/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names in system calls, and the working directory. */
#include "kernel/sys_path.h"

#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define NAME_FIRST_SIZE 256UL /* most names need no page */

struct inode *cwd_get(void)
{
    struct process *process = current()->process;
    struct inode *dir;

    spin_lock(&process->files.lock);
    dir = inode_get(process->cwd);
    spin_unlock(&process->files.lock);
    return dir;
}

void cwd_set(struct inode *dir)
{
    struct process *process = current()->process;
    struct inode *old;

    spin_lock(&process->files.lock);
    old = process->cwd;
    process->cwd = dir;
    spin_unlock(&process->files.lock);
    inode_put(old);
}

static int64_t name_from_user(uint64_t va, char **out)
{
    for (size_t size = NAME_FIRST_SIZE;; size = PATH_MAX_LEN) {
        char *name = kmalloc(size);
        int64_t len;

        if (name == NULL) {
            return -ENOMEM;
        }
        len = strncpy_from_user(name, va, size);
        if (len >= 0 && (size_t)len < size) {
            *out = name;
            return 0;
        }
        kfree(name);
        if (len < 0 || size == PATH_MAX_LEN) {
            return len < 0 ? len : -ENAMETOOLONG;
        }
    }
}

static int64_t start_of(int64_t dirfd, const char *name, struct inode **out)
{
    struct file *file;

    if (name[0] == '/' || dirfd == AT_FDCWD) {
        *out = cwd_get();
        return 0;
    }
    file = file_get(my_files(), (uint64_t)dirfd);
    if (file == NULL) {
        return -EBADF;
    }
    if (file->inode == NULL ||
        (!inode_is_dir(file->inode) && name[0] != '\0')) {
        file_put(file);
        return -ENOTDIR;
    }
    *out = inode_get(file->inode);
    file_put(file);
    return 0;
}

int64_t user_path_get(int64_t dirfd, uint64_t name_va, struct user_path *out)
{
    int64_t error = name_from_user(name_va, &out->name);

    if (error != 0) {
        return error;
    }
    error = start_of(dirfd, out->name, &out->start);
    if (error != 0) {
        kfree(out->name);
    }
    return error;
}

void user_path_put(struct user_path *path)
{
    inode_put(path->start);
    kfree(path->name);
}

int64_t user_path_lookup(int64_t dirfd, uint64_t name_va, unsigned flags,
                         struct inode **out)
{
    struct user_path path;
    int64_t error = user_path_get(dirfd, name_va, &path);

    if (error == 0) {
        error = path_lookup(path.start, path.name, flags, out);
        user_path_put(&path);
    }
    return error;
}

int64_t user_path_lookup_at(int64_t dirfd, uint64_t name_va, uint64_t at_flags,
                            struct inode **out, struct file **out_file)
{
    char *name = NULL;
    int64_t error = 0;
    bool empty;

    *out = NULL;
    *out_file = NULL;
    if ((at_flags & AT_EMPTY_PATH) != 0) {
        /* NULL is as good as "" since 6.11. */
        error = name_va != 0 ? name_from_user(name_va, &name) : 0;
        if (error != 0) {
            return error;
        }
        empty = name == NULL || name[0] == '\0';
        kfree(name);
        if (empty && dirfd == AT_FDCWD) {
            *out = cwd_get();
            return 0;
        }
        if (empty) {
            *out_file = file_get(my_files(), (uint64_t)dirfd);
            return *out_file == NULL ? -EBADF : 0;
        }
    }
    return user_path_lookup(
        dirfd, name_va,
        (at_flags & AT_SYMLINK_NOFOLLOW) != 0 ? PATH_NOFOLLOW : 0, out);
}

int64_t sys_chdir(uint64_t name_va)
{
    struct inode *dir;
    int64_t error = user_path_lookup(AT_FDCWD, name_va, 0, &dir);

    if (error == 0 && !inode_is_dir(dir)) {
        inode_put(dir);
        error = -ENOTDIR;
    }
    if (error == 0) {
        cwd_set(dir);
    }
    return error;
}

int64_t sys_fchdir(uint64_t fd)
{
    struct file *file = file_get(my_files(), fd);
    int64_t error = 0;

    if (file == NULL) {
        return -EBADF;
    }
    if (file->inode == NULL || !inode_is_dir(file->inode)) {
        error = -ENOTDIR;
    } else {
        cwd_set(inode_get(file->inode));
    }
    file_put(file);
    return error;
}

int64_t sys_getcwd(uint64_t buf_va, uint64_t size)
{
    struct inode *dir = cwd_get();
    struct text text = {0};
    int64_t result = path_of(dir, &text);

    inode_put(dir);
    if (result == 0) {
        text_append(&text, "", 1);
        result = text.failed ? -ENOMEM : 0;
    }
    if (result == 0 && text.len > size) {
        result = -ERANGE;
    }
    if (result == 0) {
        result = copy_to_user(buf_va, text.buf, text.len) != 0
                     ? -EFAULT
                     : (int64_t)text.len;
    }
    text_free(&text);
    return result;
}
