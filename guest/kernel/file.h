/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files: the console, files and directories of the initramfs, and texts
 * that the kernel makes up (/proc/...). A table belongs to a process; threads
 * share it.
 */
#ifndef KERNEL_FILE_H
#define KERNEL_FILE_H

#include <stdatomic.h>

#include "kernel/lock.h"
#include "kernel/types.h"

#define FILES_MAX 64
#define PATH_MAX_LEN 256

enum file_kind {
    FILE_NONE,
    FILE_CONSOLE,
    FILE_NULL,
    FILE_DATA, /* bytes in memory: initramfs */
    FILE_DIR,
    FILE_TEXT, /* generated when opened; freed when closed */
    FILE_HOOK, /* /proc/shootdown opened for writing: kernel test hooks */
};

/* What a path names; data lives as long as the kernel, unless text. */
struct file_node {
    enum file_kind kind;
    const char *data;
    uint64_t size;
    uint32_t mode; /* st_mode */
    uint64_t ino;
    bool owned;             /* data is kmalloc()ed for this open */
    char dir[PATH_MAX_LEN]; /* FILE_DIR: which */
};

struct file {
    struct file_node node;
    _Atomic uint32_t count;
    _Atomic uint64_t offset;
};

struct file_table {
    struct spinlock lock;
    struct file *slots[FILES_MAX];
    uint64_t cloexec; /* bit per slot */
};

void file_table_init(struct file_table *table);
/* The three standard descriptors on the console. */
bool file_table_open_console(struct file_table *table);
void file_table_copy(struct file_table *dst, struct file_table *src);
void file_table_close_all(struct file_table *table, bool only_cloexec);
/* With a reference, or NULL. */
struct file *file_get(struct file_table *table, uint64_t fd);
void file_put(struct file *file);

/* --- initramfs.c --- */
void initramfs_init(const void *image, uint64_t size);
/* 0, -ENOENT. Fills kind, data, size, mode, ino. */
int initramfs_lookup(const char *path, struct file_node *out);
/* The n-th name directly inside dir; false after the last. */
bool initramfs_list(const char *dir, unsigned n, char *name, size_t size,
                    bool *out_is_dir);

/* --- procfs.c: /proc, /sys and /dev --- */
int procfs_lookup(const char *path, bool write, struct file_node *out);
/* A write to /proc/shootdown. */
int64_t procfs_hook_write(const char *text, size_t size);

#endif
