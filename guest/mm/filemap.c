/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private mappings of files. There is no cache of file pages: the files lie in
 * memory already (kernel/tmpfile.c), and each mapping has copies of the pages
 * that it used, which fault.c makes. So to the reverse map, fork, migration and
 * reclaim they are private pages like any other; what makes them different is
 * that an empty PTE is filled from the file, and that a page that was never
 * written is thrown away instead of going to swap.
 *
 * What was used before the file changed stays as it was, also when the file
 * became shorter. Shared mappings of files are refused.
 */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "mm/mm_priv.h"

#define RDEV_ZERO 0x105U

/* 0 or -errno, as Linux orders the questions. */
static int may_map(const struct file *file, uint64_t prot, uint64_t flags)
{
    bool shared = (flags & 3) != MAP_PRIVATE;
    const struct inode *inode = file->inode;

    if ((shared && (prot & PROT_WRITE) && !file_writable(file)) ||
        !file_readable(file)) {
        return -EACCES;
    }
    if (inode == NULL) {
        return -ENODEV;
    }
    if (inode_type(inode) == S_IFCHR && inode->rdev == RDEV_ZERO) {
        return 0;
    }
    if (inode_type(inode) != S_IFREG || inode->ops != NULL || shared) {
        return -ENODEV;
    }
    return flags & MAP_GROWSDOWN ? -EINVAL : 0;
}

int filemap_open(uint64_t fd, uint64_t prot, uint64_t flags,
                 struct map_source *out)
{
    struct file *file = file_get(my_files(), fd);
    int error;

    if (file == NULL || (file->flags & O_PATH) != 0) {
        file_put(file);
        return -EBADF;
    }
    error = may_map(file, prot, flags);
    /* Memory from /dev/zero is anonymous memory. */
    if (error == 0 && inode_type(file->inode) == S_IFREG) {
        out->file = inode_get(file->inode);
    }
    file_put(file);
    return error;
}

static uint64_t file_page(const struct vma *vma, uint64_t va)
{
    return vma->pgoff + ((va - vma->start) >> PAGE_SHIFT) + vma->file_shift;
}

int filemap_read(const struct vma *vma, uint64_t va, struct page *to)
{
    return tmpfile_map_page(vma->file, page_address(to), file_page(vma, va));
}

bool filemap_has(const struct vma *vma, uint64_t va)
{
    uint64_t size = __atomic_load_n(&vma->file->size, __ATOMIC_RELAXED);

    return file_page(vma, va) < PAGE_ALIGN_UP(size) >> PAGE_SHIFT;
}
