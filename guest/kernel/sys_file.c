/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls on files. All files are read-only but the console and the hook;
 * reads copy straight from the initramfs to user memory. Longer than most files
 * because there are many small calls.
 */
#include "kernel/console.h"
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define AT_FDCWD (-100)
#define AT_EMPTY_PATH 0x1000UL
#define O_ACCMODE 3UL
#define O_CREAT 0100UL
#define O_DIRECTORY 040000UL /* arm64 */
#define O_CLOEXEC 02000000UL
#define IOV_MAX 1024UL
#define RW_MAX 0x7ffff000UL
#define CONSOLE_CHUNK 256UL
#define TCGETS 0x5401
#define TIOCGWINSZ 0x5413
#define F_DUPFD 0
#define F_GETFD 1
#define F_SETFD 2
#define F_GETFL 3
#define F_DUPFD_CLOEXEC 1030
#define DT_DIR 4
#define DT_REG 8

/* struct stat of arm64 */
struct user_stat {
    uint64_t dev, ino;
    uint32_t mode, nlink, uid, gid;
    uint64_t rdev, pad1;
    int64_t size;
    int32_t blksize, pad2;
    int64_t blocks;
    uint64_t times[6];
    uint32_t unused[2];
};
_Static_assert(sizeof(struct user_stat) == 128, "struct stat");

struct user_iovec {
    uint64_t base, len;
};

static struct file_table *my_files(void)
{
    return &current()->process->files;
}

static int64_t path_from_user(uint64_t va, char *path)
{
    int64_t len = strncpy_from_user(path, va, PATH_MAX_LEN);

    if (len < 0) {
        return len;
    }
    return len == PATH_MAX_LEN ? -ENAMETOOLONG : 0;
}

/* The working directory is always "/". */
static int lookup_path(const char *path, bool write, struct file_node *out)
{
    char absolute[PATH_MAX_LEN + 1];
    int error;

    if (path[0] == '\0') {
        return -ENOENT;
    }
    absolute[0] = '/';
    strlcpy(absolute + (path[0] == '/' ? 0 : 1), path, PATH_MAX_LEN);
    error = procfs_lookup(absolute, write, out);
    if (error != -ENOENT) {
        return error;
    }
    error = initramfs_lookup(absolute, out);
    if (error == 0 && write) {
        return out->kind == FILE_DIR ? -EISDIR : -EROFS;
    }
    return error;
}

/* The lowest free slot from `from` on, or -EMFILE. */
static int64_t fd_install(struct file_table *table, struct file *file,
                          unsigned from, bool cloexec)
{
    spin_lock(&table->lock);
    for (unsigned fd = from; fd < FILES_MAX; fd++) {
        if (table->slots[fd] == NULL) {
            table->slots[fd] = file;
            table->cloexec &= ~BIT(fd);
            table->cloexec |= cloexec ? BIT(fd) : 0;
            spin_unlock(&table->lock);
            return fd;
        }
    }
    spin_unlock(&table->lock);
    return -EMFILE;
}

int64_t sys_openat(int64_t dirfd, uint64_t path_va, uint64_t flags)
{
    char path[PATH_MAX_LEN];
    struct file *file;
    int64_t result = path_from_user(path_va, path);

    (void)dirfd; /* no directory but "/" is ever current */
    if (result != 0) {
        return result;
    }
    file = kmalloc(sizeof(*file));
    if (file == NULL) {
        return -ENOMEM;
    }
    result = lookup_path(path, (flags & O_ACCMODE) != 0, &file->node);
    if (result == -ENOENT && (flags & O_CREAT) != 0) {
        result = -EROFS;
    }
    if (result != 0) {
        kfree(file);
        return result;
    }
    atomic_store_explicit(&file->count, 1, memory_order_relaxed);
    if ((flags & O_DIRECTORY) != 0 && file->node.kind != FILE_DIR) {
        result = -ENOTDIR;
    } else {
        result = fd_install(my_files(), file, 0, (flags & O_CLOEXEC) != 0);
    }
    if (result < 0) {
        file_put(file);
    }
    return result;
}

int64_t sys_close(uint64_t fd)
{
    struct file_table *table = my_files();
    struct file *file = NULL;

    if (fd < FILES_MAX) {
        spin_lock(&table->lock);
        file = table->slots[fd];
        table->slots[fd] = NULL;
        spin_unlock(&table->lock);
    }
    if (file == NULL) {
        return -EBADF;
    }
    file_put(file);
    return 0;
}

static int64_t read_console(uint64_t buf_va, uint64_t size)
{
    char chunk[CONSOLE_CHUNK];
    size_t n = console_read(chunk, min_u64(size, sizeof(chunk)));

    return copy_to_user(buf_va, chunk, n) != 0 ? -EFAULT : (int64_t)n;
}

static int64_t read_data(const struct file *file, uint64_t buf_va,
                         uint64_t size, uint64_t offset)
{
    uint64_t n;

    if (offset >= file->node.size) {
        return 0;
    }
    n = min_u64(size, file->node.size - offset);
    if (copy_to_user(buf_va, file->node.data + offset, n) != 0) {
        return -EFAULT;
    }
    return (int64_t)n;
}

static int64_t file_read(struct file *file, uint64_t buf_va, uint64_t size)
{
    uint64_t offset;
    int64_t n;

    switch (file->node.kind) {
    case FILE_CONSOLE:
        return size == 0 ? 0 : read_console(buf_va, size);
    case FILE_NULL:
        return 0;
    case FILE_DIR:
        return -EISDIR;
    case FILE_DATA:
    case FILE_TEXT:
        offset = atomic_load_explicit(&file->offset, memory_order_relaxed);
        n = read_data(file, buf_va, size, offset);
        if (n > 0) {
            atomic_store_explicit(&file->offset, offset + (uint64_t)n,
                                  memory_order_relaxed);
        }
        return n;
    case FILE_HOOK:
    case FILE_NONE:
        break;
    }
    return -EBADF;
}

static int64_t write_console(uint64_t buf_va, uint64_t size)
{
    char chunk[CONSOLE_CHUNK];
    uint64_t done = 0;

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

static int64_t file_write(struct file *file, uint64_t buf_va, uint64_t size)
{
    char text[64];

    switch (file->node.kind) {
    case FILE_CONSOLE:
        return write_console(buf_va, size);
    case FILE_NULL:
        return (int64_t)size;
    case FILE_HOOK:
        if (size > sizeof(text)) {
            return -EINVAL;
        }
        if (copy_from_user(text, buf_va, size) != 0) {
            return -EFAULT;
        }
        return procfs_hook_write(text, size);
    case FILE_DATA:
    case FILE_TEXT:
    case FILE_DIR:
    case FILE_NONE:
        break;
    }
    return -EBADF;
}

typedef int64_t (*transfer_fn)(struct file *, uint64_t, uint64_t);

static int64_t transfer(uint64_t fd, uint64_t buf_va, uint64_t size,
                        transfer_fn fn)
{
    struct file *file = file_get(my_files(), fd);
    int64_t n;

    if (file == NULL) {
        return -EBADF;
    }
    n = fn(file, buf_va, min_u64(size, RW_MAX));
    file_put(file);
    return n;
}

static int64_t transfer_vector(uint64_t fd, uint64_t iov_va, uint64_t count,
                               transfer_fn fn)
{
    int64_t total = 0;

    if (count > IOV_MAX) {
        return -EINVAL;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct user_iovec iov;
        int64_t n;

        if (copy_from_user(&iov, iov_va + i * sizeof(iov), sizeof(iov)) != 0) {
            return total > 0 ? total : -EFAULT;
        }
        if (iov.len == 0) {
            continue;
        }
        n = transfer(fd, iov.base, iov.len, fn);
        if (n < 0) {
            return total > 0 ? total : n;
        }
        total += n;
        if ((uint64_t)n < iov.len) {
            break;
        }
    }
    return total;
}

int64_t sys_read(uint64_t fd, uint64_t buf_va, uint64_t size)
{
    return transfer(fd, buf_va, size, file_read);
}

int64_t sys_write(uint64_t fd, uint64_t buf_va, uint64_t size)
{
    return transfer(fd, buf_va, size, file_write);
}

int64_t sys_readv(uint64_t fd, uint64_t iov_va, uint64_t count)
{
    return transfer_vector(fd, iov_va, count, file_read);
}

int64_t sys_writev(uint64_t fd, uint64_t iov_va, uint64_t count)
{
    return transfer_vector(fd, iov_va, count, file_write);
}

int64_t sys_pread64(uint64_t fd, uint64_t buf_va, uint64_t size,
                    uint64_t offset)
{
    struct file *file = file_get(my_files(), fd);
    int64_t n = -ESPIPE;

    if (file == NULL) {
        return -EBADF;
    }
    if (file->node.kind == FILE_DATA || file->node.kind == FILE_TEXT) {
        n = read_data(file, buf_va, min_u64(size, RW_MAX), offset);
    }
    file_put(file);
    return n;
}

int64_t sys_lseek(uint64_t fd, int64_t offset, uint64_t whence)
{
    struct file *file = file_get(my_files(), fd);
    int64_t base = 0;

    if (file == NULL) {
        return -EBADF;
    }
    if (file->node.kind == FILE_CONSOLE) {
        file_put(file);
        return -ESPIPE;
    }
    if (whence == 1) {
        base =
            (int64_t)atomic_load_explicit(&file->offset, memory_order_relaxed);
    } else if (whence == 2) {
        base = (int64_t)file->node.size;
    }
    if (whence > 2 || __builtin_add_overflow(base, offset, &base) || base < 0) {
        file_put(file);
        return -EINVAL;
    }
    atomic_store_explicit(&file->offset, (uint64_t)base, memory_order_relaxed);
    file_put(file);
    return base;
}

static int64_t stat_to_user(const struct file_node *node, uint64_t stat_va)
{
    struct user_stat st = {.ino = node->ino,
                           .mode = node->mode,
                           .nlink = 1,
                           .size = (int64_t)node->size,
                           .blksize = PAGE_SIZE,
                           .blocks = (int64_t)((node->size + 511) / 512)};

    return copy_to_user(stat_va, &st, sizeof(st)) != 0 ? -EFAULT : 0;
}

int64_t sys_fstat(uint64_t fd, uint64_t stat_va)
{
    struct file *file = file_get(my_files(), fd);
    int64_t error;

    if (file == NULL) {
        return -EBADF;
    }
    error = stat_to_user(&file->node, stat_va);
    file_put(file);
    return error;
}

int64_t sys_newfstatat(int64_t dirfd, uint64_t path_va, uint64_t stat_va,
                       uint64_t flags)
{
    char path[PATH_MAX_LEN];
    struct file_node node;
    int64_t error = path_from_user(path_va, path);

    if (error != 0) {
        return error;
    }
    if (path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0) {
        return sys_fstat((uint64_t)dirfd, stat_va);
    }
    error = lookup_path(path, false, &node);
    if (error != 0) {
        return error;
    }
    error = stat_to_user(&node, stat_va);
    if (node.owned) {
        kfree((void *)(uintptr_t)node.data);
    }
    return error;
}

int64_t sys_faccessat(int64_t dirfd, uint64_t path_va)
{
    char path[PATH_MAX_LEN];
    struct file_node node;
    int64_t error = path_from_user(path_va, path);

    (void)dirfd;
    if (error != 0) {
        return error;
    }
    error = lookup_path(path, false, &node);
    if (error == 0 && node.owned) {
        kfree((void *)(uintptr_t)node.data);
    }
    return error;
}

int64_t sys_readlinkat(int64_t dirfd, uint64_t path_va, uint64_t buf_va,
                       uint64_t size)
{
    char path[PATH_MAX_LEN];
    const char *exe = current()->process->exe;
    int64_t error = path_from_user(path_va, path);

    (void)dirfd;
    if (error != 0) {
        return error;
    }
    if (strcmp(path, "/proc/self/exe") == 0) {
        uint64_t n = min_u64(strlen(exe), size);

        return copy_to_user(buf_va, exe, n) != 0 ? -EFAULT : (int64_t)n;
    }
    /* There are no symbolic links. */
    return sys_faccessat(dirfd, path_va) == 0 ? -EINVAL : -ENOENT;
}

int64_t sys_getdents64(uint64_t fd, uint64_t buf_va, uint64_t size)
{
    struct file *file = file_get(my_files(), fd);
    uint64_t done = 0, index;

    if (file == NULL) {
        return -EBADF;
    }
    if (file->node.kind != FILE_DIR) {
        file_put(file);
        return -ENOTDIR;
    }
    index = atomic_load_explicit(&file->offset, memory_order_relaxed);
    for (;; index++) {
        /* struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name */
        uint8_t record[19 + 64 + 8] = {0};
        char name[64];
        bool is_dir;
        uint16_t reclen;

        if (!initramfs_list(file->node.dir, (unsigned)index, name, sizeof(name),
                            &is_dir)) {
            break;
        }
        reclen = (uint16_t)ALIGN_UP(19 + strlen(name) + 1, 8UL);
        if (reclen > size - done) {
            if (done == 0) {
                file_put(file);
                return -EINVAL;
            }
            break;
        }
        record[0] = 1; /* inode number: any but 0 */
        memcpy(record + 8, &(uint64_t){index + 1}, 8);
        memcpy(record + 16, &reclen, 2);
        record[18] = is_dir ? DT_DIR : DT_REG;
        memcpy(record + 19, name, strlen(name));
        if (copy_to_user(buf_va + done, record, reclen) != 0) {
            file_put(file);
            return -EFAULT;
        }
        done += reclen;
    }
    atomic_store_explicit(&file->offset, index, memory_order_relaxed);
    file_put(file);
    return (int64_t)done;
}

int64_t sys_ioctl(uint64_t fd, uint64_t request, uint64_t arg)
{
    struct file *file = file_get(my_files(), fd);
    bool console;

    if (file == NULL) {
        return -EBADF;
    }
    console = file->node.kind == FILE_CONSOLE;
    file_put(file);
    if (console && request == TCGETS) {
        /* struct termios of the kernel: 36 bytes; enough for isatty(). */
        return clear_user(arg, 36) != 0 ? -EFAULT : 0;
    }
    if (console && request == TIOCGWINSZ) {
        const uint16_t size[4] = {24, 80, 0, 0};

        return copy_to_user(arg, size, sizeof(size)) != 0 ? -EFAULT : 0;
    }
    return -ENOTTY;
}

static int64_t dup_from(uint64_t fd, unsigned from, bool cloexec)
{
    struct file *file = file_get(my_files(), fd);
    int64_t result;

    if (file == NULL) {
        return -EBADF;
    }
    result = fd_install(my_files(), file, from, cloexec);
    if (result < 0) {
        file_put(file);
    }
    return result;
}

int64_t sys_dup(uint64_t fd)
{
    return dup_from(fd, 0, false);
}

int64_t sys_dup3(uint64_t old_fd, uint64_t new_fd, uint64_t flags)
{
    struct file_table *table = my_files();
    struct file *file = file_get(table, old_fd), *old;

    if (file == NULL || new_fd >= FILES_MAX) {
        file_put(file);
        return -EBADF;
    }
    if (old_fd == new_fd) {
        file_put(file);
        return -EINVAL;
    }
    spin_lock(&table->lock);
    old = table->slots[new_fd];
    table->slots[new_fd] = file;
    table->cloexec &= ~BIT(new_fd);
    table->cloexec |= (flags & O_CLOEXEC) ? BIT(new_fd) : 0;
    spin_unlock(&table->lock);
    file_put(old);
    return (int64_t)new_fd;
}

int64_t sys_fcntl(uint64_t fd, uint64_t cmd, uint64_t arg)
{
    struct file_table *table = my_files();
    struct file *file;
    int64_t result = 0;

    if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
        return arg >= FILES_MAX
                   ? -EINVAL
                   : dup_from(fd, (unsigned)arg, cmd == F_DUPFD_CLOEXEC);
    }
    file = file_get(table, fd);
    if (file == NULL) {
        return -EBADF;
    }
    spin_lock(&table->lock);
    switch (cmd) {
    case F_GETFD:
        result = (table->cloexec & BIT(fd)) != 0;
        break;
    case F_SETFD:
        table->cloexec &= ~BIT(fd);
        table->cloexec |= (arg & 1) ? BIT(fd) : 0;
        break;
    case F_GETFL:
        result = file->node.kind == FILE_CONSOLE ? 2 : 0;
        break;
    default:
        result = -EINVAL;
        break;
    }
    spin_unlock(&table->lock);
    file_put(file);
    return result;
}

int64_t sys_getcwd(uint64_t buf_va, uint64_t size)
{
    if (size < 2) {
        return -ERANGE;
    }
    return copy_to_user(buf_va, "/", 2) != 0 ? -EFAULT : 2;
}
