/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Character devices: the console, and those that are a rule instead of a
 * thing (null, zero, full, random). Numbers are Linux's. /dev/fd/N, and
 * /dev/stdin with its sisters, are what descriptor N is (sys_open.c).
 */
#include "kernel/console.h"
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/panic.h"
#include "kernel/process.h"
#include "kernel/random.h"
#include "mm/uaccess.h"

#define CONSOLE_CHUNK 256UL
#define TCGETS 0x5401
#define TCSETS 0x5402
#define TCSETSW 0x5403
#define TCSETSF 0x5404
#define TCFLSH 0x540b
#define TIOCSCTTY 0x540e
#define TIOCGPGRP 0x540f
#define TIOCSPGRP 0x5410
#define TIOCGWINSZ 0x5413
#define FIONREAD 0x541b

/* The foreground process group, for those who ask; 0: nobody said. */
static _Atomic int32_t console_pgrp;

static int64_t null_read(struct file *file, uint64_t buf_va, uint64_t size,
                         uint64_t *offset)
{
    (void)file;
    (void)buf_va;
    (void)size;
    (void)offset;
    return 0;
}

static int64_t null_write(struct file *file, uint64_t buf_va, uint64_t size,
                          uint64_t *offset)
{
    (void)file;
    (void)buf_va;
    (void)offset;
    return (int64_t)size;
}

static int64_t full_write(struct file *file, uint64_t buf_va, uint64_t size,
                          uint64_t *offset)
{
    (void)file;
    (void)buf_va;
    (void)size;
    (void)offset;
    return -ENOSPC;
}

static int64_t zero_read(struct file *file, uint64_t buf_va, uint64_t size,
                         uint64_t *offset)
{
    (void)file;
    (void)offset;
    return clear_user(buf_va, size) != 0 ? -EFAULT : (int64_t)size;
}

static int64_t random_read(struct file *file, uint64_t buf_va, uint64_t size,
                           uint64_t *offset)
{
    (void)file;
    (void)offset;
    for (uint64_t done = 0; done < size; done += 8) {
        uint64_t value = random_u64();

        if (copy_to_user(buf_va + done, &value, min_u64(8, size - done)) != 0) {
            return -EFAULT;
        }
    }
    return (int64_t)size;
}

static int64_t tty_read(struct file *file, uint64_t buf_va, uint64_t size,
                        uint64_t *offset)
{
    char chunk[CONSOLE_CHUNK];
    int64_t n;

    (void)offset;
    if (size == 0) {
        return 0;
    }
    if ((file->flags & O_NONBLOCK) != 0 && console_waiting() == 0) {
        return -EAGAIN;
    }
    n = console_read(chunk, min_u64(size, sizeof(chunk)));
    if (n > 0 && copy_to_user(buf_va, chunk, (size_t)n) != 0) {
        return -EFAULT;
    }
    return n;
}

static int64_t tty_write(struct file *file, uint64_t buf_va, uint64_t size,
                         uint64_t *offset)
{
    char chunk[CONSOLE_CHUNK];
    uint64_t done = 0;

    (void)file;
    (void)offset;
    while (done < size) {
        uint64_t n = min_u64(size - done, sizeof(chunk));

        if (copy_from_user(chunk, buf_va + done, n) != 0) {
            return done > 0 ? (int64_t)done : -EFAULT;
        }
        console_write(chunk, n);
        done += n;
    }
    return (int64_t)size;
}

static unsigned tty_poll(struct file *file)
{
    (void)file;
    return POLLOUT | POLLWRNORM |
           (console_waiting() != 0 ? POLLIN | POLLRDNORM : 0);
}

static struct wait_queue *tty_poll_queue(struct file *file)
{
    (void)file;
    return console_input_queue();
}

/* struct termios of the kernel: a line at a time, no echo, bytes as they are */
static int64_t tty_get_attributes(uint64_t arg)
{
    struct {
        uint32_t iflag, oflag, cflag, lflag;
        uint8_t line, cc[19];
    } termios = {.iflag = 0x100 /* ICRNL */,
                 .cflag = 0xcbd /* B38400, CS8, CREAD, HUPCL, CLOCAL */,
                 .lflag = 0x2 /* ICANON */,
                 .cc = {3, 28, 127, 21, 4, 0, 1}};

    _Static_assert(sizeof(termios) == 36, "struct termios");
    return copy_to_user(arg, &termios, sizeof(termios));
}

static int64_t tty_ioctl(struct file *file, uint64_t request, uint64_t arg)
{
    const uint16_t size[4] = {24, 80, 0, 0};
    uint32_t pgrp;
    int32_t now;

    (void)file;
    switch (request) {
    case TCGETS:
        return tty_get_attributes(arg);
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
    case TCFLSH:
    case TIOCSCTTY:
        return 0; /* there is one mode */
    case TIOCGPGRP:
        now = atomic_load_explicit(&console_pgrp, memory_order_relaxed);
        return put_user_u32(
            arg, (uint32_t)(now != 0 ? now : current()->process->pgid));
    case TIOCSPGRP:
        if (get_user_u32(&pgrp, arg) != 0) {
            return -EFAULT;
        }
        atomic_store_explicit(&console_pgrp, (int32_t)pgrp,
                              memory_order_relaxed);
        return 0;
    case TIOCGWINSZ:
        return copy_to_user(arg, size, sizeof(size));
    case FIONREAD:
        return put_user_u32(arg, console_waiting());
    default:
        return -ENOTTY;
    }
}

static const struct file_ops tty_ops = {.read = tty_read,
                                        .write = tty_write,
                                        .poll = tty_poll,
                                        .poll_queue = tty_poll_queue,
                                        .ioctl = tty_ioctl,
                                        .stream = true};
static const struct file_ops null_ops = {.read = null_read,
                                         .write = null_write};
static const struct file_ops zero_ops = {.read = zero_read,
                                         .write = null_write};
static const struct file_ops full_ops = {.read = zero_read,
                                         .write = full_write};
static const struct file_ops random_ops = {.read = random_read,
                                           .write = null_write};

static const struct {
    const char *path;
    uint32_t rdev, mode;
    const struct file_ops *ops;
} devices[] = {
    {"/dev/null", 0x103, 0666, &null_ops},
    {"/dev/zero", 0x105, 0666, &zero_ops},
    {"/dev/full", 0x107, 0666, &full_ops},
    {"/dev/random", 0x108, 0666, &random_ops},
    {"/dev/urandom", 0x109, 0666, &random_ops},
    {"/dev/tty", 0x500, 0666, &tty_ops},
    {"/dev/console", 0x501, 0600, &tty_ops},
};

const struct file_ops *device_file_ops(uint32_t rdev)
{
    for (unsigned i = 0; i < ARRAY_SIZE(devices); i++) {
        if (devices[i].rdev == rdev) {
            return devices[i].ops;
        }
    }
    return NULL;
}

/* /dev/fd: one device for each open descriptor of whoever looks */
static struct inode *fd_lookup(struct inode *dir, const char *name)
{
    struct inode *inode;
    struct file *file;
    uint64_t fd;

    (void)dir;
    if (!str_to_u64(name, &fd)) {
        return NULL;
    }
    file = file_get(my_files(), fd);
    if (file == NULL) {
        return NULL;
    }
    file_put(file);
    inode = inode_new(S_IFCHR | 0666, NULL, NULL);
    if (inode != NULL) {
        inode->rdev = DEVICE_FD | (uint32_t)fd;
    }
    return inode;
}

static bool fd_list(struct inode *dir, struct dir_entry *entry)
{
    uint64_t base = dir->last_pos + 1;
    uint64_t fd = entry->pos < base ? 0 : entry->pos - base + 1;

    for (; fd < FILES_MAX; fd++) {
        struct file *file = file_get(my_files(), fd);

        if (file != NULL) {
            file_put(file);
            entry->pos = base + fd;
            entry->ino = base + fd;
            entry->mode = S_IFCHR;
            (void)snprintf(entry->name, sizeof(entry->name), "%lu", fd);
            return true;
        }
    }
    return false;
}

const struct inode_ops fd_dir_ops = {.lookup = fd_lookup, .list = fd_list};

void devices_init(void)
{
    static const char *const names[] = {"/dev/stdin", "/dev/stdout",
                                        "/dev/stderr"};
    struct inode *inode;

    for (unsigned i = 0; i < ARRAY_SIZE(devices); i++) {
        inode =
            tree_add(devices[i].path, S_IFCHR | devices[i].mode, NULL, NULL);
        ASSERT(inode != NULL);
        inode->rdev = devices[i].rdev;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        inode = tree_add(names[i], S_IFCHR | 0666, NULL, NULL);
        ASSERT(inode != NULL);
        inode->rdev = DEVICE_FD | i;
    }
    inode = tree_add("/dev/fd", S_IFDIR | 0755, &fd_dir_ops, NULL);
    ASSERT(inode != NULL);
}
