/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files and tables of them. A table belongs to a process; its threads
 * share it. An open file is shared by the descriptors that dup() and fork()
 * made of it, and so are its offset and flags.
 */
#ifndef KERNEL_FILE_H
#define KERNEL_FILE_H

#include <stdatomic.h>

#include "kernel/inode.h"
#include "kernel/lock.h"
#include "kernel/sched.h"
#include "kernel/types.h"

#define FILES_MAX 1024
#define FILES_FIRST 32

/* arm64 values of the flags that differ between architectures */
#define O_ACCMODE 3U
#define O_RDONLY 0U
#define O_WRONLY 1U
#define O_RDWR 2U
#define O_CREAT 0100U
#define O_EXCL 0200U
#define O_NOCTTY 0400U
#define O_TRUNC 01000U
#define O_APPEND 02000U
#define O_NONBLOCK 04000U
#define O_DIRECTORY 040000U
#define O_NOFOLLOW 0100000U
#define O_CLOEXEC 02000000U
#define O_PATH 010000000U

#define POLLIN 0x001U
#define POLLPRI 0x002U
#define POLLOUT 0x004U
#define POLLERR 0x008U
#define POLLHUP 0x010U
#define POLLNVAL 0x020U
#define POLLRDNORM 0x040U
#define POLLWRNORM 0x100U

struct file;

struct file_ops {
    /* *offset is advanced where the file has one. n or -errno. */
    int64_t (*read)(struct file *file, uint64_t buf_va, uint64_t size,
                    uint64_t *offset);
    int64_t (*write)(struct file *file, uint64_t buf_va, uint64_t size,
                     uint64_t *offset);
    /* What is ready now. NULL: always readable and writable. */
    unsigned (*poll)(struct file *file);
    /* The queue that is woken when that may have changed; NULL: none. */
    struct wait_queue *(*poll_queue)(struct file *file);
    int64_t (*ioctl)(struct file *file, uint64_t request, uint64_t arg);
    void (*release)(struct file *file); /* last reference */
    bool stream; /* no offset: lseek and pread are ESPIPE */
};

struct file {
    _Atomic uint32_t count;
    _Atomic uint32_t flags; /* O_ACCMODE, O_APPEND, O_NONBLOCK, O_PATH */
    const struct file_ops *ops;
    struct inode *inode; /* NULL: a pipe without a name */
    void *private;       /* of ops */
    struct mutex lock;   /* offset */
    uint64_t offset;
};

struct file_table {
    struct spinlock lock;
    struct file **slots; /* [lock] */
    unsigned size;       /* [lock] of slots */
    unsigned limit;      /* RLIMIT_NOFILE */
    uint64_t cloexec[FILES_MAX / 64];
    struct file *first[FILES_FIRST];
};

void file_table_init(struct file_table *table);
/* The three standard descriptors on the console. */
bool file_table_open_console(struct file_table *table);
bool file_table_copy(struct file_table *dst, struct file_table *src);
void file_table_close_all(struct file_table *table, bool only_cloexec);
/* The lowest free descriptor from `from` on; takes over the reference, also
 * when it fails. */
int64_t file_install(struct file_table *table, struct file *file, uint64_t from,
                     bool cloexec);
/* What was at fd becomes *old (to be put); takes over the reference. */
int64_t file_replace(struct file_table *table, struct file *file, uint64_t fd,
                     bool cloexec, struct file **old);
/* Takes it out of the table. */
struct file *file_remove(struct file_table *table, uint64_t fd);
/* With a reference, or NULL. */
struct file *file_get(struct file_table *table, uint64_t fd);
void file_put(struct file *file);
bool file_cloexec(struct file_table *table, uint64_t fd);
void file_set_cloexec(struct file_table *table, uint64_t fd, bool on);
/* Takes over the inode's reference, also when there is no memory (NULL). */
struct file *file_new(const struct file_ops *ops, struct inode *inode,
                      uint32_t flags);
struct file_table *my_files(void);

static inline bool file_readable(const struct file *file)
{
    return (file->flags & (O_ACCMODE | O_PATH)) == O_RDONLY ||
           (file->flags & (O_ACCMODE | O_PATH)) == O_RDWR;
}
static inline bool file_writable(const struct file *file)
{
    return (file->flags & (O_ACCMODE | O_PATH)) == O_WRONLY ||
           (file->flags & (O_ACCMODE | O_PATH)) == O_RDWR;
}

/* --- inode_file.c --- */
/* What to do with an open file of that inode; NULL: ENXIO. */
const struct file_ops *inode_file_ops(const struct inode *inode);

/* --- devices.c --- */
/* Major number of what stands for descriptor N of whoever opens it. */
#define DEVICE_FD 0xfd0000U
extern const struct inode_ops fd_dir_ops;
const struct file_ops *device_file_ops(uint32_t rdev);

/* --- pipe.c --- */
/* Both ends, each with a reference; 0 or -ENOMEM. */
int pipe_new(struct file *out[2], uint32_t flags);
/* Opens a named pipe: waits for the other end. */
int64_t fifo_open(struct file *file);
extern const struct file_ops fifo_file_ops;
/* The release of its inode. */
void fifo_release(struct inode *inode);

#endif
