/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file tree: an inode for each name, all in memory. Directories, regular
 * files (from the initramfs or written later), symbolic links, devices, named
 * pipes, and texts that the kernel makes up when they are read.
 *
 * Names, parents and children are guarded by tree_lock. A link in the tree
 * holds one reference of its inode, each open file and each working directory
 * another one. A removed inode lives on, without a name, until its last user
 * is gone.
 *
 * A hard link is an inode too, that has but a name and the inode that it means
 * (alias_of, with a reference). Walks give what is meant; who takes names away
 * or moves them asks for the entry.
 *
 * Another part of the kernel hangs its files in with inode_add() and inode_ops:
 *
 *     dir = inode_add(tree_find("/sys/fs"), "cgroup", S_IFDIR | 0755, &ops, x);
 *     inode_add(dir, "memory.max", S_IFREG | 0644, &max_ops, group);
 */
#ifndef KERNEL_INODE_H
#define KERNEL_INODE_H

#include <stdatomic.h>

#include "kernel/lock.h"
#include "kernel/text.h"
#include "kernel/types.h"

#define PATH_MAX_LEN 4096
#define NAME_MAX_LEN 255
#define LINKS_MAX 40 /* symbolic links followed in one path */

#define S_IFMT 0170000U
#define S_IFIFO 0010000U
#define S_IFCHR 0020000U
#define S_IFDIR 0040000U
#define S_IFBLK 0060000U
#define S_IFREG 0100000U
#define S_IFLNK 0120000U
#define S_IFSOCK 0140000U

struct inode;
struct page;

struct dir_entry {
    uint64_t pos; /* where the next one is looked for */
    uint64_t ino;
    uint32_t mode;
    char name[NAME_MAX_LEN + 1];
};

/* All may be NULL. tree_lock is held for those of directories. */
struct inode_ops {
    /* A child that is not in the tree, with a reference; NULL: none. */
    struct inode *(*lookup)(struct inode *dir, const char *name);
    /* The first such child whose pos is above entry->pos; false: none. */
    bool (*list)(struct inode *dir, struct dir_entry *entry);
    /* 0 when it added the new directory; without it: not permitted. */
    int (*mkdir)(struct inode *dir, const char *name, uint32_t mode);
    /* 0: the directory and the files in it are taken out of the tree. */
    int (*rmdir)(struct inode *dir);
    /* The whole text of a regular file; 0 or -errno. No lock held. */
    int (*text)(struct inode *inode, struct text *text);
    /* What was written to it in one call; n or -errno. No lock held. */
    int64_t (*write)(struct inode *inode, const char *bytes, size_t n);
    /* Where a symbolic link leads; 0 or -errno. tree_lock is held. */
    int (*link)(struct inode *inode, struct text *text);
    /* The last reference is gone. */
    void (*release)(struct inode *inode);
};

struct inode {
    _Atomic uint32_t count;
    uint32_t mode; /* type and permissions */
    uint32_t rdev; /* devices: major << 8 | minor */
    uint64_t ino;  /* [init] never reused */
    const struct inode_ops *ops;
    void *private;         /* of ops' owner */
    _Atomic uint64_t time; /* last change, ns since 1970 */

    struct inode *alias_of;   /* [init] a hard link's file; NULL: a file */
    _Atomic uint32_t aliases; /* hard links that mean this one */

    /* [tree_lock]; parent is NULL for a removed inode and for made-up ones */
    struct inode *parent;
    struct list sibling;
    struct list children;
    uint64_t pos, last_pos; /* in the parent; the last one given here */
    char *name;

    /*
     * contents [lock; changes of the index also pages_lock]; see tmpfile.c. For
     * links the target is in data.
     */
    struct mutex lock;
    struct spinlock pages_lock;
    const char *data; /* in the initramfs; NULL: in pages */
    bool data_owned;  /* kmalloc()ed: the target of a link */
    uint64_t size;
    struct page **pages; /* NULL entries are holes */
    uint64_t n_pages;
};

extern struct rwsem tree_lock;
extern struct inode *tree_root; /* [init] */

static inline uint32_t inode_type(const struct inode *inode)
{
    return inode->mode & S_IFMT;
}
static inline bool inode_is_dir(const struct inode *inode)
{
    return inode_type(inode) == S_IFDIR;
}

/* --- inode.c --- */
void tree_init(void); /* /, /dev, /proc, /sys, /tmp */
/* One reference, not in the tree. NULL: no memory. */
struct inode *inode_new(uint32_t mode, const struct inode_ops *ops,
                        void *private);
struct inode *inode_get(struct inode *inode);
void inode_put(struct inode *inode); /* NULL is fine; no spinlock held */
void inode_touch(struct inode *inode);

/* tree_lock held for writing. */
int inode_link(struct inode *dir, const char *name, struct inode *inode);
void inode_unlink(struct inode *inode); /* with all below it */
/* One more name for what is no directory; 0 or -errno. */
int inode_add_alias(struct inode *dir, const char *name, struct inode *of);
/* Names in the tree. */
uint32_t inode_names(const struct inode *inode);
/* New and linked; its only reference is the tree's. NULL: no memory, or there
 * is one of that name. */
struct inode *inode_add(struct inode *dir, const char *name, uint32_t mode,
                        const struct inode_ops *ops, void *private);
/* tree_lock held: the static child, no reference taken; NULL. */
struct inode *inode_child(struct inode *dir, const char *name);
/* Boot: like inode_add() on a path whose folders are made if need be. */
struct inode *tree_add(const char *path, uint32_t mode,
                       const struct inode_ops *ops, void *private);
/* tree_lock held: the n-th entry after entry->pos; "." and ".." included. */
bool inode_list(struct inode *dir, struct dir_entry *entry);

/* --- path.c: names to inodes; tree_lock held unless it says otherwise --- */
enum path_flag {
    PATH_NOFOLLOW = 1, /* a link at the end is what is wanted */
    PATH_PARENT = 2,   /* the last name need not be there */
};

struct path {
    struct inode *parent;        /* PATH_PARENT: with a reference */
    struct inode *inode;         /* with a reference; NULL: not there */
    struct inode *entry;         /* that name's, as long as tree_lock is held */
    char name[NAME_MAX_LEN + 1]; /* PATH_PARENT: the last name */
    bool slash;                  /* it ended in one: a directory is meant */
};

int path_find(struct inode *start, const char *name, unsigned flags,
              struct path *out);
void path_put(struct path *path);
/* Takes tree_lock itself. With a reference. */
int path_lookup(struct inode *start, const char *name, unsigned flags,
                struct inode **out);
/* The absolute name of an inode, or -ENOENT. Takes tree_lock itself. */
int path_of(struct inode *inode, struct text *out);
int path_of_locked(struct inode *inode, struct text *out);

/* --- tmpfile.c: contents of regular files; inode->lock taken inside --- */
int64_t tmpfile_read(struct inode *inode, uint64_t buf_va, uint64_t size,
                     uint64_t offset);
/* At *offset, or at the end when append; advances *offset. */
int64_t tmpfile_write(struct inode *inode, uint64_t buf_va, uint64_t size,
                      uint64_t *offset, bool append);
int64_t tmpfile_truncate(struct inode *inode, uint64_t size);
void tmpfile_free(struct inode *inode);
/*
 * The page with that number to a zeroed frame; -EIO: it is beyond the end. Does
 * not take inode->lock, whose holder may wait for this very fault.
 */
int tmpfile_map_page(struct inode *inode, void *to, uint64_t index);
/* To kernel memory; how much was there. */
size_t tmpfile_peek(struct inode *inode, void *buf, size_t size,
                    uint64_t offset);

/* --- initramfs.c --- */
void initramfs_init(const void *image, uint64_t size);

/* --- devices.c, procfs.c, sysfs.c, cgroupfs.c: boot --- */
void devices_init(void);
void procfs_init(void);
void sysfs_init(void);
void cgroupfs_init(void);

#endif
