/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files of the tree: regular ones, directories, and texts. A text is made
 * anew whenever it is read from its beginning, so that one pass over a file
 * sees one moment.
 */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "mm/page.h"
#include "mm/uaccess.h"

static int64_t regular_read(struct file *file, uint64_t buf_va, uint64_t size,
                            uint64_t *offset)
{
    int64_t n = tmpfile_read(file->inode, buf_va, size, *offset);

    *offset += n > 0 ? (uint64_t)n : 0;
    return n;
}

static int64_t regular_write(struct file *file, uint64_t buf_va, uint64_t size,
                             uint64_t *offset)
{
    return tmpfile_write(file->inode, buf_va, size, offset,
                         (file->flags & O_APPEND) != 0);
}

static int64_t directory_read(struct file *file, uint64_t buf_va, uint64_t size,
                              uint64_t *offset)
{
    (void)file;
    (void)buf_va;
    (void)size;
    (void)offset;
    return -EISDIR;
}

/* file->lock is held for both. */
static int64_t text_read(struct file *file, uint64_t buf_va, uint64_t size,
                         uint64_t *offset)
{
    struct text *text = file->private;
    uint64_t n;

    if (file->inode->ops->text == NULL) {
        return -EINVAL;
    }
    if (text == NULL) {
        text = kmalloc(sizeof(*text));
        file->private = text;
    } else if (*offset == 0) {
        text_free(text);
    }
    if (text == NULL) {
        return -ENOMEM;
    }
    if (text->buf == NULL) {
        int error = file->inode->ops->text(file->inode, text);

        if (error != 0 || text->failed) {
            text_free(text);
            return error != 0 ? error : -ENOMEM;
        }
    }
    if (*offset >= text->len) {
        return 0;
    }
    n = min_u64(size, text->len - *offset);
    if (copy_to_user(buf_va, text->buf + *offset, n) != 0) {
        return -EFAULT;
    }
    *offset += n;
    return (int64_t)n;
}

static int64_t text_write(struct file *file, uint64_t buf_va, uint64_t size,
                          uint64_t *offset)
{
    char *bytes;
    int64_t n;

    if (file->inode->ops->write == NULL) {
        return -EIO;
    }
    if (size >= PAGE_SIZE) {
        return -E2BIG;
    }
    bytes = kmalloc(size + 1); /* zeroed: the text is terminated */
    if (bytes == NULL) {
        return -ENOMEM;
    }
    n = copy_from_user(bytes, buf_va, size);
    if (n == 0) {
        n = file->inode->ops->write(file->inode, bytes, size);
    }
    kfree(bytes);
    *offset += n > 0 ? (uint64_t)n : 0;
    return n;
}

static void text_release(struct file *file)
{
    if (file->private != NULL) {
        text_free(file->private);
        kfree(file->private);
    }
}

static const struct file_ops regular_ops = {.read = regular_read,
                                            .write = regular_write};
static const struct file_ops directory_ops = {.read = directory_read};
static const struct file_ops text_ops = {
    .read = text_read, .write = text_write, .release = text_release};

const struct file_ops *inode_file_ops(const struct inode *inode)
{
    switch (inode_type(inode)) {
    case S_IFREG:
        return inode->ops != NULL ? &text_ops : &regular_ops;
    case S_IFDIR:
        return &directory_ops;
    case S_IFCHR:
        return device_file_ops(inode->rdev);
    case S_IFIFO:
        return &fifo_file_ops;
    default:
        return NULL;
    }
}
