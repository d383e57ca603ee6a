/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The initramfs: a cpio archive in the "newc" format, read where it lies. No
 * index: archives have a few dozen entries.
 *
 *   header   "070701" and 13 fields of 8 hex digits
 *   name     NUL-terminated, padded so that the data starts 4-aligned
 *   data     padded to 4
 */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/printk.h"

#define CPIO_HEADER 110
#define CPIO_TRAILER "TRAILER!!!"
#define S_IFMT 0170000U
#define S_IFREG 0100000U
#define S_IFDIR 0040000U

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
        return false;
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

void initramfs_init(const void *image, uint64_t size)
{
    struct cpio_entry entry;
    uint64_t at = 0;

    archive = image;
    archive_size = size;
    if (size > 0 && !cpio_next(&at, &entry)) {
        printk("initramfs: no cpio archive (newc) in the initrd of %lu bytes\n",
               size);
        archive_size = 0;
    }
}

/* Without the slashes at both ends and "./". */
static void path_normal(const char *path, char *out, size_t size)
{
    size_t len;

    while (*path == '/' || (path[0] == '.' && path[1] == '/')) {
        path++;
    }
    strlcpy(out, strcmp(path, ".") == 0 ? "" : path, size);
    len = strlen(out);
    while (len > 0 && out[len - 1] == '/') {
        out[--len] = '\0';
    }
}

int initramfs_lookup(const char *path, struct file_node *out)
{
    char want[PATH_MAX_LEN];
    struct cpio_entry entry;
    uint64_t at = 0;
    size_t want_len;
    bool dir = false;

    path_normal(path, want, sizeof(want));
    want_len = strlen(want);
    dir = want_len == 0;
    while (!dir && cpio_next(&at, &entry)) {
        if (strcmp(entry.name, want) == 0) {
            if ((entry.mode & S_IFMT) == S_IFDIR) {
                dir = true;
                break;
            }
            if ((entry.mode & S_IFMT) != S_IFREG) {
                continue;
            }
            *out = (struct file_node){.kind = FILE_DATA,
                                      .data = entry.data,
                                      .size = entry.size,
                                      .mode = entry.mode,
                                      .ino = entry.ino};
            return 0;
        }
        /* A directory that only its files imply. */
        dir = strncmp(entry.name, want, want_len) == 0 &&
              entry.name[want_len] == '/';
    }
    if (!dir) {
        return -ENOENT;
    }
    *out =
        (struct file_node){.kind = FILE_DIR, .mode = S_IFDIR | 0755, .ino = 1};
    strlcpy(out->dir, want, sizeof(out->dir));
    return 0;
}

/* The part of name directly below dir, or NULL. */
static const char *name_below(const char *name, const char *dir, size_t *len)
{
    size_t dir_len = strlen(dir);
    const char *slash;

    if (dir_len > 0) {
        if (strncmp(name, dir, dir_len) != 0 || name[dir_len] != '/') {
            return NULL;
        }
        name += dir_len + 1;
    }
    slash = strchr(name, '/');
    *len = slash != NULL ? (size_t)(slash - name) : strlen(name);
    return *len > 0 && strcmp(name, ".") != 0 ? name : NULL;
}

/* Has an entry before `before` the same part? Then it was listed already. */
static bool listed_before(uint64_t before, const char *dir, const char *part,
                          size_t part_len)
{
    struct cpio_entry entry;
    uint64_t at = 0;
    size_t len;

    while (at < before && cpio_next(&at, &entry)) {
        const char *name = name_below(entry.name, dir, &len);

        if (name != NULL && len == part_len && strncmp(name, part, len) == 0) {
            return true;
        }
    }
    return false;
}

bool initramfs_list(const char *dir, unsigned n, char *name, size_t size,
                    bool *out_is_dir)
{
    struct cpio_entry entry;
    uint64_t at = 0, start = 0;

    while (cpio_next(&at, &entry)) {
        size_t len;
        const char *part = name_below(entry.name, dir, &len);

        if (part != NULL && !listed_before(start, dir, part, len)) {
            if (n == 0) {
                len = min_u64(len, size - 1);
                *out_is_dir =
                    part[len] == '/' || (entry.mode & S_IFMT) == S_IFDIR;
                memcpy(name, part, len);
                name[len] = '\0';
                return true;
            }
            n--;
        }
        start = at;
    }
    return false;
}
