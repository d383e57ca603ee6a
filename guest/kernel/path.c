/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walking names through the file tree; tree_lock is held by the callers. */
#include "kernel/errno.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "mm/page.h"

/* Cuts the first name off; what is left starts with its slashes. */
static int next_name(const char **path, char *name)
{
    const char *at = *path;
    size_t len = 0;

    while (*at == '/') {
        at++;
    }
    while (at[len] != '\0' && at[len] != '/') {
        len++;
    }
    if (len > NAME_MAX_LEN) {
        return -ENAMETOOLONG;
    }
    memcpy(name, at, len);
    name[len] = '\0';
    *path = at + len;
    return 0;
}

static bool only_slashes(const char *at)
{
    while (*at == '/') {
        at++;
    }
    return *at == '\0';
}

/* With a reference; NULL: there is none. */
static struct inode *child_of(struct inode *dir, const char *name)
{
    struct inode *child;

    if (strcmp(name, ".") == 0) {
        return inode_get(dir);
    }
    if (strcmp(name, "..") == 0) {
        return inode_get(dir->parent != NULL ? dir->parent : dir);
    }
    child = inode_child(dir, name);
    if (child != NULL) {
        return inode_get(child);
    }
    return dir->ops != NULL && dir->ops->lookup != NULL
               ? dir->ops->lookup(dir, name)
               : NULL;
}

/* The link's target followed by the rest of the path; NULL and *error. */
static char *follow(struct inode *link, const char *rest, int *error)
{
    struct text target = {0};

    if (link->ops != NULL && link->ops->link != NULL) {
        *error = link->ops->link(link, &target);
    } else {
        text_append(&target, link->data, link->size);
        *error = 0;
    }
    text_append(&target, rest, strlen(rest) + 1);
    if (*error == 0 && target.failed) {
        *error = -ENOMEM;
    }
    if (*error == 0 && target.len > PATH_MAX_LEN) {
        *error = -ENAMETOOLONG;
    }
    if (*error != 0) {
        text_free(&target);
    }
    return target.buf;
}

/* One step's outcome: go on with *dir, or finished with out and an error. */
static int finish(struct inode *dir, struct inode *found, unsigned flags,
                  struct path *out)
{
    out->inode = found;
    if ((flags & PATH_PARENT) != 0) {
        out->parent = dir;
        return 0;
    }
    inode_put(dir);
    return found == NULL                        ? -ENOENT
           : out->slash && !inode_is_dir(found) ? -ENOTDIR
                                                : 0;
}

int path_find(struct inode *start, const char *name, unsigned flags,
              struct path *out)
{
    struct inode *dir = inode_get(name[0] == '/' ? tree_root : start);
    const char *rest = name;
    char *owned = NULL; /* what rest points into, if not name */
    unsigned links = 0;
    int error = name[0] == '\0' ? -ENOENT : 0;

    memset(out, 0, sizeof(*out));
    while (error == 0) {
        struct inode *child;
        bool last;

        if (!inode_is_dir(dir)) {
            error = -ENOTDIR;
            break;
        }
        error = next_name(&rest, out->name);
        if (error != 0) {
            break;
        }
        last = only_slashes(rest);
        out->slash = *rest == '/';
        if (out->name[0] == '\0') { /* "/": the directory itself */
            out->entry = dir;
            error = finish(dir, inode_get(dir), flags, out);
            dir = NULL;
            break;
        }
        child = child_of(dir, out->name);
        out->entry = child;
        if (child != NULL && child->alias_of != NULL) {
            child = inode_get(child->alias_of);
            inode_put(out->entry); /* the tree keeps it */
        }
        if (child != NULL && inode_type(child) == S_IFLNK &&
            (!last || out->slash || (flags & PATH_NOFOLLOW) == 0)) {
            char *longer;

            longer = ++links > LINKS_MAX ? NULL : follow(child, rest, &error);
            error = links > LINKS_MAX ? -ELOOP : error;
            inode_put(child);
            kfree(owned);
            owned = longer;
            rest = longer;
            if (error == 0 && *rest == '/') {
                inode_put(dir);
                dir = inode_get(tree_root);
            }
            continue;
        }
        if (last) {
            error = finish(dir, child, flags, out);
            dir = NULL;
            if (error != 0) {
                inode_put(out->inode);
                out->inode = NULL;
            }
            break;
        }
        error = child == NULL ? -ENOENT : 0;
        inode_put(dir);
        dir = child;
    }
    inode_put(dir);
    kfree(owned);
    return error;
}

void path_put(struct path *path)
{
    inode_put(path->parent);
    inode_put(path->inode);
    path->parent = NULL;
    path->inode = NULL;
}

int path_lookup(struct inode *start, const char *name, unsigned flags,
                struct inode **out)
{
    struct path path;
    int error;

    rwsem_read_lock(&tree_lock);
    error = path_find(start, name, flags & ~(unsigned)PATH_PARENT, &path);
    rwsem_read_unlock(&tree_lock);
    *out = error == 0 ? path.inode : NULL;
    return error;
}

/* Names are collected from the end: first how long, then backwards. */
int path_of_locked(struct inode *inode, struct text *out)
{
    size_t len = 0, at;

    for (struct inode *i = inode; i != tree_root; i = i->parent) {
        if (i->parent == NULL) {
            return -ENOENT;
        }
        len += strlen(i->name) + 1;
    }
    at = out->len + len;
    for (size_t i = 0; i < (len == 0 ? 1 : len); i++) {
        text_append(out, "/", 1);
    }
    for (struct inode *i = inode; i != tree_root && !out->failed;
         i = i->parent) {
        size_t n = strlen(i->name);

        at -= n;
        memcpy(out->buf + at, i->name, n);
        at--; /* its slash is there already */
    }
    return out->failed ? -ENOMEM : 0;
}

int path_of(struct inode *inode, struct text *out)
{
    int error;

    rwsem_read_lock(&tree_lock);
    error = path_of_locked(inode, out);
    rwsem_read_unlock(&tree_lock);
    return error;
}
