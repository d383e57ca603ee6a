/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of open files and the life of struct file. */
#include "kernel/file.h"

#include "kernel/lib.h"
#include "mm/page.h"

#define S_IFCHR 0020000U

void file_table_init(struct file_table *table)
{
    memset(table, 0, sizeof(*table));
    spin_init(&table->lock, LOCK_file_table);
}

bool file_table_open_console(struct file_table *table)
{
    struct file *file = kmalloc(sizeof(*file));

    if (file == NULL) {
        return false;
    }
    file->node.kind = FILE_CONSOLE;
    file->node.mode = S_IFCHR | 0620;
    atomic_store_explicit(&file->count, 3, memory_order_relaxed);
    for (unsigned i = 0; i < 3; i++) {
        table->slots[i] = file;
    }
    return true;
}

void file_table_copy(struct file_table *dst, struct file_table *src)
{
    spin_lock(&src->lock);
    for (unsigned i = 0; i < FILES_MAX; i++) {
        dst->slots[i] = src->slots[i];
        if (dst->slots[i] != NULL) {
            atomic_fetch_add_explicit(&dst->slots[i]->count, 1,
                                      memory_order_relaxed);
        }
    }
    dst->cloexec = src->cloexec;
    spin_unlock(&src->lock);
}

void file_table_close_all(struct file_table *table, bool only_cloexec)
{
    for (unsigned i = 0; i < FILES_MAX; i++) {
        struct file *file = NULL;

        spin_lock(&table->lock);
        if (!only_cloexec || (table->cloexec & BIT(i)) != 0) {
            file = table->slots[i];
            table->slots[i] = NULL;
            table->cloexec &= ~BIT(i);
        }
        spin_unlock(&table->lock);
        file_put(file);
    }
}

struct file *file_get(struct file_table *table, uint64_t fd)
{
    struct file *file = NULL;

    if (fd >= FILES_MAX) {
        return NULL;
    }
    spin_lock(&table->lock);
    file = table->slots[fd];
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
    if (file->node.owned) {
        kfree((void *)(uintptr_t)file->node.data);
    }
    kfree(file);
}
