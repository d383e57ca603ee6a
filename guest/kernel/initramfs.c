/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The initramfs: one or more cpio archives in the "newc" format, one after the
 * other with zeroes between. The files stay where they lie: the tree gets an
 * inode for each, a later one of the same name replaces an earlier one.
 *
 *   header   "070701" and 13 fields of 8 hex digits
 *   name     NUL-terminated, padded so that the data starts 4-aligned
 *   data     padded to 4
 */
#include "kernel/errno.h"
#include "kernel/inode.h"
#include "kernel/lib.h"
#include "kernel/printk.h"

#define CPIO_HEADER 110
#define CPIO_TRAILER "TRAILER!!!"

enum cpio_field {
    CPIO_INO = 0,
    CPIO_MODE = 1,
    CPIO_FILESIZE = 6,
    CPIO_NAMESIZE = 11,
};

struct cpio_entry {
    const char *name; /* without leading slashes */
    const char *data;
    uint64_t size;
    uint32_t mode, ino;
};

static const char *archive;
static uint64_t archive_size;

static bool cpio_hex(const char *header, enum cpio_field field, uint64_t *out)
{
    char digits[11] = "0x";

    memcpy(digits + 2, header + 6 + 8 * (unsigned)field, 8);
    digits[10] = '\0';
    return str_to_u64(digits, out);
}

/* The next archive begins behind the zeroes that end this one. */
static void cpio_skip_zeroes(uint64_t *at)
{
    while (*at < archive_size && archive[*at] == '\0') {
        ++*at;
    }
}

/* The entry at *at, advancing it; false at the end or where it is damaged. */
static bool cpio_next(uint64_t *at, struct cpio_entry *out)
{
    const char *header = archive + *at;
    uint64_t ino, mode, size, name_size, data_at;

    if (archive_size < CPIO_HEADER || *at > archive_size - CPIO_HEADER ||
        memcmp(header, "070701", 6) != 0 || !cpio_hex(header, CPIO_INO, &ino) ||
        !cpio_hex(header, CPIO_MODE, &mode) ||
        !cpio_hex(header, CPIO_FILESIZE, &size) ||
        !cpio_hex(header, CPIO_NAMESIZE, &name_size)) {
        return false;
    }
    data_at = ALIGN_UP(*at + CPIO_HEADER + name_size, 4UL);
    if (name_size == 0 || data_at > archive_size ||
        size > archive_size - data_at ||
        header[CPIO_HEADER + name_size - 1] != '\0') {
        return false;
    }
    out->name = header + CPIO_HEADER;
    if (strcmp(out->name, CPIO_TRAILER) == 0) {
        *at = data_at;
        cpio_skip_zeroes(at);
        return cpio_next(at, out);
    }
    while (*out->name == '/' || strncmp(out->name, "./", 2) == 0) {
        out->name++;
    }
    out->data = archive + data_at;
    out->size = size;
    out->mode = (uint32_t)mode;
    out->ino = (uint32_t)ino;
    *at = ALIGN_UP(data_at + size, 4UL);
    return true;
}

/* Links the entry into the tree. */
static void initramfs_add(const struct cpio_entry *entry)
{
    struct path path;
    struct inode *inode;
    uint32_t type = entry->mode & S_IFMT;

    if (path_find(tree_root, entry->name, PATH_NOFOLLOW, &path) == 0) {
        bool same_dir = type == S_IFDIR && inode_is_dir(path.inode);

        if (!same_dir && path.entry->parent != NULL) {
            inode_unlink(path.entry);
        }
        path_put(&path);
        if (same_dir) {
            return;
        }
    }
    if (type != S_IFDIR && type != S_IFREG && type != S_IFLNK) {
        return; /* devices are made by devices.c */
    }
    inode = tree_add(entry->name, entry->mode, NULL, NULL);
    if (inode == NULL) {
        printk("initramfs: no room for %s\n", entry->name);
    } else if (type != S_IFDIR) {
        inode->data = entry->data;
        inode->size = entry->size;
    }
}

void initramfs_init(const void *image, uint64_t size)
{
    struct cpio_entry entry;
    uint64_t at = 0;
    unsigned n = 0;

    archive = image;
    archive_size = size;
    while (cpio_next(&at, &entry)) {
        n++;
        if (entry.name[0] != '\0' && strcmp(entry.name, ".") != 0) {
            initramfs_add(&entry);
        }
    }
    if (size > 0 && n == 0) {
        printk("initramfs: no cpio archive (newc) in the initrd of %lu bytes\n",
               size);
    }
}
