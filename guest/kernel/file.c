/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of open files and the life of struct file. */
#include "kernel/file.h"

#include "kernel/errno.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "mm/page.h"

struct file_table *my_files(void)
{
    return &current()->process->files;
}

void file_table_init(struct file_table *table)
{
    memset(table, 0, sizeof(*table));
    spin_init(&table->lock, LOCK_file_table);
    table->slots = table->first;
    table->size = FILES_FIRST;
    table->limit = FILES_MAX;
}

struct file *file_new(const struct file_ops *ops, struct inode *inode,
                      uint32_t flags)
{
    struct file *file = kmalloc(sizeof(*file));

    if (file == NULL) {
        inode_put(inode);
        return NULL;
    }
    atomic_store_explicit(&file->count, 1, memory_order_relaxed);
    atomic_store_explicit(&file->flags, flags, memory_order_relaxed);
    file->ops = ops;
    file->inode = inode;
    mutex_init_class(&file->lock, LOCK_file);
    return file;
}

bool file_table_open_console(struct file_table *table)
{
    struct inode *inode;
    struct file *file;

    if (path_lookup(tree_root, "/dev/console", 0, &inode) != 0) {
        return false;
    }
    file = file_new(inode_file_ops(inode), inode, O_RDWR);
    if (file == NULL) {
        return false;
    }
    atomic_store_explicit(&file->count, 3, memory_order_relaxed);
    for (unsigned i = 0; i < 3; i++) {
        table->slots[i] = file;
    }
    return true;
}

/* Takes the lock; room for slot fd. On false (no memory) it is not held. */
static bool table_lock_for(struct file_table *table, uint64_t fd)
{
    struct file **slots = NULL;
    unsigned size = 0;

    for (;;) {
        spin_lock(&table->lock);
        if (fd < table->size) {
            spin_unlock(&table->lock);
            kfree(slots);
            spin_lock(&table->lock);
            return true; /* tables do not shrink */
        }
        if (size > fd && size > table->size) {
            struct file **old = table->slots;

            memcpy(slots, old, table->size * sizeof(struct file *));
            table->slots = slots;
            table->size = size;
            if (old == table->first) {
                return true;
            }
            spin_unlock(&table->lock);
            kfree(old);
            spin_lock(&table->lock);
            return true;
        }
        size = table->size;
        spin_unlock(&table->lock);
        while (size <= fd) {
            size *= 2;
        }
        kfree(slots);
        slots = kmalloc(size * sizeof(struct file *));
        if (slots == NULL) {
            return false;
        }
    }
}

bool file_table_copy(struct file_table *dst, struct file_table *src)
{
    unsigned size;

    dst->limit = src->limit;
    for (;;) {
        spin_lock(&src->lock);
        size = src->size;
        if (size <= dst->size) {
            break;
        }
        spin_unlock(&src->lock);
        if (!table_lock_for(dst, size - 1)) {
            return false;
        }
        spin_unlock(&dst->lock);
    }
    for (unsigned i = 0; i < size; i++) {
        dst->slots[i] = src->slots[i];
        if (dst->slots[i] != NULL) {
            atomic_fetch_add_explicit(&dst->slots[i]->count, 1,
                                      memory_order_relaxed);
        }
    }
    memcpy(dst->cloexec, src->cloexec, sizeof(dst->cloexec));
    spin_unlock(&src->lock);
    return true;
}

static void cloexec_set(struct file_table *table, uint64_t fd, bool on)
{
    table->cloexec[fd / 64] &= ~BIT(fd % 64);
    table->cloexec[fd / 64] |= on ? BIT(fd % 64) : 0;
}

static bool cloexec_test(const struct file_table *table, uint64_t fd)
{
    return (table->cloexec[fd / 64] & BIT(fd % 64)) != 0;
}

void file_table_close_all(struct file_table *table, bool only_cloexec)
{
    for (unsigned i = 0;; i++) {
        struct file *file = NULL;

        spin_lock(&table->lock);
        if (i >= table->size) {
            spin_unlock(&table->lock);
            break;
        }
        if (!only_cloexec || cloexec_test(table, i)) {
            file = table->slots[i];
            table->slots[i] = NULL;
            cloexec_set(table, i, false);
        }
        spin_unlock(&table->lock);
        file_put(file);
    }
    if (!only_cloexec && table->slots != table->first) {
        kfree(table->slots);
        table->slots = table->first;
        table->size = FILES_FIRST;
    }
}

int64_t file_install(struct file_table *table, struct file *file, uint64_t from,
                     bool cloexec)
{
    for (uint64_t fd = from; fd < table->limit; fd++) {
        if (!table_lock_for(table, fd)) {
            file_put(file);
            return -ENOMEM;
        }
        for (; fd < table->size && fd < table->limit; fd++) {
            if (table->slots[fd] == NULL) {
                table->slots[fd] = file;
                cloexec_set(table, fd, cloexec);
                spin_unlock(&table->lock);
                return (int64_t)fd;
            }
        }
        fd--; /* the table grows in the next round */
        spin_unlock(&table->lock);
    }
    file_put(file);
    return -EMFILE;
}

int64_t file_replace(struct file_table *table, struct file *file, uint64_t fd,
                     bool cloexec, struct file **old)
{
    *old = NULL;
    if (fd >= table->limit || !table_lock_for(table, fd)) {
        file_put(file);
        return fd >= table->limit ? -EBADF : -ENOMEM;
    }
    *old = table->slots[fd];
    table->slots[fd] = file;
    cloexec_set(table, fd, cloexec);
    spin_unlock(&table->lock);
    return (int64_t)fd;
}

struct file *file_remove(struct file_table *table, uint64_t fd)
{
    struct file *file = NULL;

    spin_lock(&table->lock);
    if (fd < table->size) {
        file = table->slots[fd];
        table->slots[fd] = NULL;
        cloexec_set(table, fd, false);
    }
    spin_unlock(&table->lock);
    return file;
}

struct file *file_get(struct file_table *table, uint64_t fd)
{
    struct file *file = NULL;

    spin_lock(&table->lock);
    if (fd < table->size) {
        file = table->slots[fd];
    }
    if (file != NULL) {
        atomic_fetch_add_explicit(&file->count, 1, memory_order_relaxed);
    }
    spin_unlock(&table->lock);
    return file;
}

void file_put(struct file *file)
{
    /* Acquire and release: the last one sees what the others did. */
    if (file == NULL ||
        atomic_fetch_sub_explicit(&file->count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (file->ops->release != NULL) {
        file->ops->release(file);
    }
    inode_put(file->inode);
    kfree(file);
}

bool file_cloexec(struct file_table *table, uint64_t fd)
{
    bool on;

    spin_lock(&table->lock);
    on = fd < table->size && cloexec_test(table, fd);
    spin_unlock(&table->lock);
    return on;
}

void file_set_cloexec(struct file_table *table, uint64_t fd, bool on)
{
    spin_lock(&table->lock);
    if (fd < table->size) {
        cloexec_set(table, fd, on);
    }
    spin_unlock(&table->lock);
}
