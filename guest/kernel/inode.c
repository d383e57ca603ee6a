/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file tree: making, linking, removing and listing inodes. */
#include "kernel/inode.h"

#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/syscalls.h"
#include "kernel/time.h"
#include "mm/page.h"

struct rwsem tree_lock;
struct inode *tree_root;

static _Atomic uint64_t last_ino;

struct inode *inode_new(uint32_t mode, const struct inode_ops *ops,
                        void *private)
{
    struct inode *inode = kmalloc(sizeof(*inode));

    if (inode == NULL) {
        return NULL;
    }
    atomic_store_explicit(&inode->count, 1, memory_order_relaxed);
    inode->mode = mode;
    inode->ops = ops;
    inode->private = private;
    inode->ino =
        1 + atomic_fetch_add_explicit(&last_ino, 1, memory_order_relaxed);
    list_init(&inode->sibling);
    list_init(&inode->children);
    inode->last_pos = 2; /* "." and ".." come first */
    mutex_init_class(&inode->lock, LOCK_inode);
    spin_init(&inode->pages_lock, LOCK_file_pages);
    inode_touch(inode);
    return inode;
}

struct inode *inode_get(struct inode *inode)
{
    atomic_fetch_add_explicit(&inode->count, 1, memory_order_relaxed);
    return inode;
}

void inode_put(struct inode *inode)
{
    /* Acquire and release: the last one sees what the others did. */
    if (inode == NULL || atomic_fetch_sub_explicit(&inode->count, 1,
                                                   memory_order_acq_rel) != 1) {
        return;
    }
    if (inode->ops != NULL && inode->ops->release != NULL) {
        inode->ops->release(inode);
    }
    if (inode->alias_of != NULL) {
        atomic_fetch_sub_explicit(&inode->alias_of->aliases, 1,
                                  memory_order_relaxed);
        inode_touch(inode->alias_of);
        inode_put(inode->alias_of); /* no deeper: that one is a file */
        kfree(inode->name);
        kfree(inode);
        return;
    }
    if (inode_type(inode) == S_IFIFO) {
        fifo_release(inode);
    }
    if (inode->data_owned) {
        kfree((void *)(uintptr_t)inode->data);
    }
    tmpfile_free(inode);
    kfree(inode->name);
    kfree(inode);
}

void inode_touch(struct inode *inode)
{
    atomic_store_explicit(&inode->time, time_now_ns() + REALTIME_OFFSET_NS,
                          memory_order_relaxed);
}

struct inode *inode_child(struct inode *dir, const char *name)
{
    struct list *at;

    list_for_each(at, &dir->children)
    {
        struct inode *child = list_entry(at, struct inode, sibling);

        if (strcmp(child->name, name) == 0) {
            return child;
        }
    }
    return NULL;
}

int inode_link(struct inode *dir, const char *name, struct inode *inode)
{
    size_t size = strlen(name) + 1;
    char *copy;

    if (inode_child(dir, name) != NULL) {
        return -EEXIST;
    }
    copy = kmalloc(size);
    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, name, size);
    kfree(inode->name);
    inode->name = copy;
    inode->parent = dir;
    inode->pos = ++dir->last_pos;
    list_append(&dir->children, &inode->sibling);
    inode_touch(dir);
    inode_get(inode);
    return 0;
}

void inode_unlink(struct inode *inode)
{
    while (!list_empty(&inode->children)) {
        inode_unlink(list_first(&inode->children, struct inode, sibling));
    }
    inode_touch(inode->parent);
    inode->parent = NULL;
    list_remove(&inode->sibling);
    inode_put(inode);
}

struct inode *inode_add(struct inode *dir, const char *name, uint32_t mode,
                        const struct inode_ops *ops, void *private)
{
    struct inode *inode = inode_new(mode, ops, private);
    bool linked;

    if (inode == NULL) {
        return NULL;
    }
    linked = inode_link(dir, name, inode) == 0;
    if (!linked) {
        inode->ops = NULL; /* nothing of the owner's to release */
    }
    inode_put(inode); /* the tree has its own */
    return linked ? inode : NULL;
}

int inode_add_alias(struct inode *dir, const char *name, struct inode *of)
{
    struct inode *alias = inode_new(of->mode, NULL, NULL);
    int error;

    if (alias == NULL) {
        return -ENOMEM;
    }
    alias->alias_of = inode_get(of);
    atomic_fetch_add_explicit(&of->aliases, 1, memory_order_relaxed);
    error = inode_link(dir, name, alias);
    if (error == 0) {
        inode_touch(of);
    }
    inode_put(alias); /* the tree has its own */
    return error;
}

uint32_t inode_names(const struct inode *inode)
{
    return (inode->parent != NULL) +
           atomic_load_explicit(&inode->aliases, memory_order_relaxed);
}

struct inode *tree_add(const char *path, uint32_t mode,
                       const struct inode_ops *ops, void *private)
{
    struct inode *dir = tree_root;
    char name[NAME_MAX_LEN + 1];

    for (;;) {
        const char *end;
        size_t len;
        struct inode *child;

        while (*path == '/') {
            path++;
        }
        end = strchr(path, '/');
        len = end != NULL ? (size_t)(end - path) : strlen(path);
        if (len == 0 || len > NAME_MAX_LEN) {
            return NULL;
        }
        memcpy(name, path, len);
        name[len] = '\0';
        if (end == NULL) {
            return inode_add(dir, name, mode, ops, private);
        }
        child = inode_child(dir, name);
        if (child == NULL) {
            child = inode_add(dir, name, S_IFDIR | 0755, NULL, NULL);
        }
        if (child == NULL || !inode_is_dir(child)) {
            return NULL;
        }
        dir = child;
        path = end;
    }
}

/* The static child with the smallest pos above `pos`. */
static struct inode *next_child(struct inode *dir, uint64_t pos)
{
    struct list *at;

    /* The list is in the order of pos: each comes in at the end. */
    list_for_each(at, &dir->children)
    {
        struct inode *child = list_entry(at, struct inode, sibling);

        if (child->pos > pos) {
            return child;
        }
    }
    return NULL;
}

bool inode_list(struct inode *dir, struct dir_entry *entry)
{
    struct inode *child = dir;

    switch (entry->pos) {
    case 0:
        strlcpy(entry->name, ".", sizeof(entry->name));
        break;
    case 1:
        child = dir->parent != NULL ? dir->parent : dir;
        strlcpy(entry->name, "..", sizeof(entry->name));
        break;
    default:
        child = next_child(dir, entry->pos);
        if (child == NULL) {
            return dir->ops != NULL && dir->ops->list != NULL &&
                   dir->ops->list(dir, entry);
        }
        strlcpy(entry->name, child->name, sizeof(entry->name));
        break;
    }
    entry->pos = entry->pos < 2 ? entry->pos + 1 : child->pos;
    child = child->alias_of != NULL ? child->alias_of : child;
    entry->ino = child->ino;
    entry->mode = child->mode;
    return true;
}

void tree_init(void)
{
    static const char *const folders[] = {"/dev", "/proc", "/sys", "/tmp"};

    rwsem_init(&tree_lock);
    tree_root = inode_new(S_IFDIR | 0755, NULL, NULL);
    ASSERT(tree_root != NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(folders); i++) {
        struct inode *dir =
            tree_add(folders[i], S_IFDIR | (i == 3 ? 01777 : 0755), NULL, NULL);

        ASSERT(dir != NULL);
    }
}
