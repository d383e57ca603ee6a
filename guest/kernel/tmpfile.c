/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contents of regular files. A file of the initramfs is read where it lies;
 * the first change copies it to pages. Pages come when they are written: what
 * was never written is a hole that reads as zeroes. The pages are the kernel's
 * own: they are not reclaimed, so all files together may take half of the
 * memory.
 *
 * Whoever maps a file privately copies its pages one by one, at faults, under
 * pages_lock only: inode->lock is held while user memory is copied, which may
 * fault on a mapping of the same file.
 */
#include "kernel/errno.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "mm/page.h"
#include "mm/uaccess.h"

/* What one index may hold: kmalloc()'s largest object. */
#define TMPFILE_MAX_PAGES ((2UL << 20) / sizeof(struct page *))

static _Atomic uint64_t pages_used;

/* inode->lock held: the index reaches page n - 1. */
static int reserve_index(struct inode *inode, uint64_t n)
{
    uint64_t max = inode->n_pages == 0 ? 8 : inode->n_pages;
    struct page **pages, **old = inode->pages;

    if (n <= inode->n_pages) {
        return 0;
    }
    if (n > TMPFILE_MAX_PAGES) {
        return -EFBIG;
    }
    while (max < n) {
        max *= 2;
    }
    pages = kmalloc(max * sizeof(struct page *));
    if (pages == NULL) {
        return -ENOSPC;
    }
    if (inode->n_pages != 0) {
        memcpy(pages, inode->pages, inode->n_pages * sizeof(struct page *));
    }
    spin_lock(&inode->pages_lock);
    inode->pages = pages;
    inode->n_pages = max;
    spin_unlock(&inode->pages_lock);
    kfree(old);
    return 0;
}

/* inode->lock held. The page that holds offset, made if need be. */
static int reserve_page(struct inode *inode, uint64_t offset, char **out)
{
    uint64_t index = offset >> PAGE_SHIFT;
    int error = reserve_index(inode, index + 1);
    struct page *page;

    if (error != 0) {
        return error;
    }
    if (inode->pages[index] == NULL) {
        if (atomic_load_explicit(&pages_used, memory_order_relaxed) >=
            page_total_count() / 2) {
            return -ENOSPC;
        }
        page = page_alloc(0, PAGE_ALLOC_ZERO | PAGE_ALLOC_RECLAIM);
        if (page == NULL) {
            return -ENOSPC;
        }
        spin_lock(&inode->pages_lock);
        inode->pages[index] = page;
        spin_unlock(&inode->pages_lock);
        atomic_fetch_add_explicit(&pages_used, 1, memory_order_relaxed);
    }
    *out = page_address(inode->pages[index]);
    return 0;
}

static uint64_t page_part(uint64_t offset, uint64_t size)
{
    return min_u64(size, PAGE_SIZE - (offset & (PAGE_SIZE - 1)));
}

/* inode->lock held: from here on the contents are in pages. */
static int own_contents(struct inode *inode, uint64_t keep)
{
    const char *data = inode->data;
    uint64_t size = min_u64(inode->size, keep);

    if (data == NULL) {
        return 0;
    }
    for (uint64_t at = 0; at < size; at += PAGE_SIZE) {
        char *page;
        int error = reserve_page(inode, at, &page);

        if (error != 0) {
            tmpfile_free(inode);
            return error;
        }
        memcpy(page, data + at, page_part(0, size - at));
    }
    spin_lock(&inode->pages_lock);
    inode->data = NULL;
    spin_unlock(&inode->pages_lock);
    return 0;
}

/* Either lock held. What is at offset: bytes, or NULL for a hole. */
static const char *peek(const struct inode *inode, uint64_t offset)
{
    uint64_t index = offset >> PAGE_SHIFT;

    if (inode->data != NULL) {
        return inode->data + offset;
    }
    return index < inode->n_pages && inode->pages[index] != NULL
               ? (const char *)page_address(inode->pages[index]) +
                     (offset & (PAGE_SIZE - 1))
               : NULL;
}

int64_t tmpfile_read(struct inode *inode, uint64_t buf_va, uint64_t size,
                     uint64_t offset)
{
    uint64_t done = 0;
    int error = 0;

    mutex_lock(&inode->lock);
    size = offset >= inode->size ? 0 : min_u64(size, inode->size - offset);
    while (done < size && error == 0) {
        uint64_t n = page_part(offset + done, size - done);
        const char *from = peek(inode, offset + done);

        error = from != NULL ? copy_to_user(buf_va + done, from, n)
                             : clear_user(buf_va + done, n);
        done += error == 0 ? n : 0;
    }
    mutex_unlock(&inode->lock);
    return done > 0 ? (int64_t)done : error;
}

size_t tmpfile_peek(struct inode *inode, void *buf, size_t size,
                    uint64_t offset)
{
    uint64_t done = 0;

    mutex_lock(&inode->lock);
    size = offset >= inode->size ? 0 : min_u64(size, inode->size - offset);
    while (done < size) {
        uint64_t n = page_part(offset + done, size - done);
        const char *from = peek(inode, offset + done);

        if (from != NULL) {
            memcpy((char *)buf + done, from, n);
        } else {
            memset((char *)buf + done, 0, n);
        }
        done += n;
    }
    mutex_unlock(&inode->lock);
    return done;
}

int tmpfile_map_page(struct inode *inode, void *to, uint64_t index)
{
    uint64_t offset = index << PAGE_SHIFT;
    const char *from;
    int error = 0;

    if (index >= TMPFILE_MAX_PAGES) {
        return -EIO;
    }
    spin_lock(&inode->pages_lock);
    if (offset >= inode->size) {
        error = -EIO;
    } else {
        from = peek(inode, offset);
        if (from != NULL) {
            memcpy(to, from, page_part(offset, inode->size - offset));
        }
    }
    spin_unlock(&inode->pages_lock);
    return error;
}

int64_t tmpfile_write(struct inode *inode, uint64_t buf_va, uint64_t size,
                      uint64_t *offset, bool append)
{
    uint64_t done = 0, at;
    int error;

    mutex_lock(&inode->lock);
    at = append ? inode->size : *offset;
    error = own_contents(inode, UINT64_MAX);
    while (done < size && error == 0) {
        uint64_t n = page_part(at, size - done);
        char *page;

        error = reserve_page(inode, at, &page);
        if (error == 0) {
            error =
                copy_from_user(page + (at & (PAGE_SIZE - 1)), buf_va + done, n);
        }
        if (error == 0) {
            done += n;
            at += n;
            spin_lock(&inode->pages_lock);
            inode->size = max_u64(inode->size, at);
            spin_unlock(&inode->pages_lock);
        }
    }
    mutex_unlock(&inode->lock);
    if (done > 0) {
        *offset = at;
        inode_touch(inode);
    }
    return done > 0 ? (int64_t)done : error;
}

/* inode->lock held. Gives the pages from index on back. */
static void drop_pages(struct inode *inode, uint64_t index)
{
    for (; index < inode->n_pages; index++) {
        struct page *page = inode->pages[index];

        if (page != NULL) {
            spin_lock(&inode->pages_lock);
            inode->pages[index] = NULL;
            spin_unlock(&inode->pages_lock);
            page_free(page, 0);
            atomic_fetch_sub_explicit(&pages_used, 1, memory_order_relaxed);
        }
    }
}

int64_t tmpfile_truncate(struct inode *inode, uint64_t size)
{
    int error;

    if (size > TMPFILE_MAX_PAGES << PAGE_SHIFT) {
        return -EFBIG;
    }
    mutex_lock(&inode->lock);
    error = own_contents(inode, size);
    if (error == 0) {
        drop_pages(inode, (size + PAGE_SIZE - 1) >> PAGE_SHIFT);
        if (size < inode->size && (size & (PAGE_SIZE - 1)) != 0 &&
            peek(inode, size) != NULL) {
            memset((char *)(uintptr_t)peek(inode, size), 0,
                   page_part(size, PAGE_SIZE));
        }
        spin_lock(&inode->pages_lock);
        inode->size = size;
        spin_unlock(&inode->pages_lock);
    }
    mutex_unlock(&inode->lock);
    inode_touch(inode);
    return error;
}

void tmpfile_free(struct inode *inode)
{
    struct page **pages = inode->pages;

    drop_pages(inode, 0);
    spin_lock(&inode->pages_lock);
    inode->pages = NULL;
    inode->n_pages = 0;
    spin_unlock(&inode->pages_lock);
    kfree(pages);
}
