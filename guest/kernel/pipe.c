/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pipes, with and without a name: a ring of 64 KiB whose pages come when they
 * are written to and go when they are read empty. Up to PIPE_BUF bytes of one
 * write stay together.
 *
 * head, tail, readers and writers change under pipe->lock; sleepers look at
 * them without it and look again under it.
 */
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/signal.h"
#include "mm/page.h"
#include "mm/uaccess.h"

#define PIPE_PAGES 16UL
#define PIPE_SIZE (PIPE_PAGES << PAGE_SHIFT)
#define PIPE_BUF PAGE_SIZE
#define FIONREAD 0x541b

struct pipe {
    struct mutex lock;
    struct wait_queue wait; /* readers, writers, pollers, openers */
    _Atomic uint32_t users; /* open files, and the inode of a named one */
    _Atomic uint64_t head;  /* bytes ever written */
    _Atomic uint64_t tail;  /* bytes ever read */
    _Atomic uint32_t readers, writers;
    _Atomic uint32_t opens[2]; /* how often it was opened: to read, to write */
    char *pages[PIPE_PAGES];
};

static struct pipe *pipe_alloc(void)
{
    struct pipe *pipe = kmalloc(sizeof(*pipe));

    if (pipe != NULL) {
        mutex_init_class(&pipe->lock, LOCK_pipe);
        wait_queue_init(&pipe->wait);
        pipe->users = 1;
    }
    return pipe;
}

static void pipe_drop(struct pipe *pipe)
{
    if (atomic_fetch_sub_explicit(&pipe->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (unsigned i = 0; i < PIPE_PAGES; i++) {
        if (pipe->pages[i] != NULL) {
            page_free_virt(pipe->pages[i], 0);
        }
    }
    kfree(pipe);
}

static uint64_t pipe_used(const struct pipe *pipe)
{
    return pipe->head - pipe->tail;
}

static char **pipe_page(struct pipe *pipe, uint64_t at)
{
    return &pipe->pages[at >> PAGE_SHIFT & (PIPE_PAGES - 1)];
}

/* pipe->lock held. n or -errno. */
static int64_t pipe_take(struct pipe *pipe, uint64_t buf_va, uint64_t size)
{
    uint64_t done = 0;

    size = min_u64(size, pipe_used(pipe));
    while (done < size) {
        uint64_t tail = pipe->tail, in_page = tail & (PAGE_SIZE - 1);
        uint64_t n = min_u64(size - done, PAGE_SIZE - in_page);
        char **page = pipe_page(pipe, tail);

        if (copy_to_user(buf_va + done, *page + in_page, n) != 0) {
            return done > 0 ? (int64_t)done : -EFAULT;
        }
        done += n;
        pipe->tail = tail + n;
        if (pipe->tail == pipe->head) {
            /* Empty: the next byte starts a page, so that none is kept. */
            pipe->head = ALIGN_UP(pipe->head, PAGE_SIZE);
            pipe->tail = pipe->head;
        } else if (in_page + n < PAGE_SIZE ||
                   pipe->head > pipe->tail + PIPE_SIZE - PAGE_SIZE) {
            continue; /* more to read in it, or newer bytes before these */
        }
        page_free_virt(*page, 0);
        *page = NULL;
    }
    return (int64_t)done;
}

/* pipe->lock held. n, which is 0 when there is no room, or -errno. */
static int64_t pipe_put(struct pipe *pipe, uint64_t buf_va, uint64_t size)
{
    uint64_t done = 0;

    size = min_u64(size, PIPE_SIZE - pipe_used(pipe));
    while (done < size) {
        uint64_t head = pipe->head, in_page = head & (PAGE_SIZE - 1);
        uint64_t n = min_u64(size - done, PAGE_SIZE - in_page);
        char **page = pipe_page(pipe, head);
        int error = 0;

        if (*page == NULL) {
            *page = page_alloc_virt(0);
            error = *page == NULL ? -ENOMEM : 0;
        }
        if (error == 0) {
            error = copy_from_user(*page + in_page, buf_va + done, n);
        }
        if (error != 0) {
            if (pipe_used(pipe) == 0 && *page != NULL) {
                page_free_virt(*page, 0);
                *page = NULL;
            }
            return done > 0 ? (int64_t)done : error;
        }
        done += n;
        pipe->head = head + n;
    }
    return (int64_t)done;
}

static int64_t pipe_read(struct file *file, uint64_t buf_va, uint64_t size,
                         uint64_t *offset)
{
    struct pipe *pipe = file->private;
    int64_t n;

    (void)offset;
    if (size == 0) {
        return 0;
    }
    for (;;) {
        mutex_lock(&pipe->lock);
        n = pipe_take(pipe, buf_va, size);
        if (n == 0) {
            n = pipe->writers == 0                ? 0
                : (file->flags & O_NONBLOCK) != 0 ? -EAGAIN
                                                  : -ERESTARTSYS;
        }
        mutex_unlock(&pipe->lock);
        if (n != -ERESTARTSYS) {
            break;
        }
        if (wait_event_interruptible(
                &pipe->wait, pipe_used(pipe) != 0 || pipe->writers == 0) != 0) {
            return -ERESTARTSYS;
        }
    }
    if (n > 0) {
        wake_up_all(&pipe->wait);
    }
    return n;
}

/* Room for a write of size bytes to make progress. */
static bool pipe_has_room(const struct pipe *pipe, uint64_t size)
{
    return PIPE_SIZE - pipe_used(pipe) >= (size <= PIPE_BUF ? size : 1);
}

static int64_t pipe_write(struct file *file, uint64_t buf_va, uint64_t size,
                          uint64_t *offset)
{
    struct pipe *pipe = file->private;
    uint64_t done = 0;
    bool atomic = size <= PIPE_BUF;

    (void)offset;
    while (done < size) {
        int64_t n = 0;

        mutex_lock(&pipe->lock);
        if (pipe->readers == 0) {
            n = -EPIPE;
        } else if (!atomic || pipe_has_room(pipe, size)) {
            n = pipe_put(pipe, buf_va + done, size - done);
        }
        mutex_unlock(&pipe->lock);
        if (n > 0) {
            done += (uint64_t)n;
            wake_up_all(&pipe->wait);
            continue;
        }
        if (n == 0 && (file->flags & O_NONBLOCK) != 0) {
            n = -EAGAIN;
        } else if (n == 0) {
            n = wait_event_interruptible(
                &pipe->wait,
                pipe_has_room(pipe, atomic ? size : PIPE_BUF + 1) ||
                    pipe->readers == 0);
        }
        if (n == -EPIPE) {
            signal_send_self(SIGPIPE);
        }
        if (n < 0) {
            return done > 0 ? (int64_t)done : n;
        }
    }
    return (int64_t)done;
}

static unsigned pipe_poll(struct file *file)
{
    struct pipe *pipe = file->private;
    unsigned ready = 0;

    mutex_lock(&pipe->lock);
    if (file_readable(file)) {
        ready |= pipe_used(pipe) != 0 ? POLLIN | POLLRDNORM : 0;
        ready |= pipe->writers == 0 ? POLLHUP : 0;
    }
    if (file_writable(file)) {
        ready |= pipe_has_room(pipe, PIPE_BUF) ? POLLOUT | POLLWRNORM : 0;
        ready |= pipe->readers == 0 ? POLLERR : 0;
    }
    mutex_unlock(&pipe->lock);
    return ready;
}

static struct wait_queue *pipe_poll_queue(struct file *file)
{
    return &((struct pipe *)file->private)->wait;
}

static int64_t pipe_ioctl(struct file *file, uint64_t request, uint64_t arg)
{
    struct pipe *pipe = file->private;

    if (request != FIONREAD) {
        return -ENOTTY;
    }
    return put_user_u32(arg, (uint32_t)pipe_used(pipe));
}

static void pipe_open_end(struct pipe *pipe, const struct file *file)
{
    mutex_lock(&pipe->lock);
    pipe->readers += file_readable(file);
    pipe->writers += file_writable(file);
    pipe->opens[0] += file_readable(file);
    pipe->opens[1] += file_writable(file);
    mutex_unlock(&pipe->lock);
    wake_up_all(&pipe->wait);
}

static void pipe_release(struct file *file)
{
    struct pipe *pipe = file->private;

    if (pipe == NULL) {
        return; /* a named one that could not be opened */
    }
    mutex_lock(&pipe->lock);
    pipe->readers -= file_readable(file);
    pipe->writers -= file_writable(file);
    mutex_unlock(&pipe->lock);
    wake_up_all(&pipe->wait);
    pipe_drop(pipe);
}

#define PIPE_FILE_OPS                                                          \
    {                                                                          \
        .read = pipe_read, .write = pipe_write, .poll = pipe_poll,             \
        .poll_queue = pipe_poll_queue, .ioctl = pipe_ioctl,                    \
        .release = pipe_release, .stream = true,                               \
    }

static const struct file_ops pipe_file_ops = PIPE_FILE_OPS;
const struct file_ops fifo_file_ops = PIPE_FILE_OPS;

int pipe_new(struct file *out[2], uint32_t flags)
{
    struct pipe *pipe = pipe_alloc();

    out[0] = file_new(&pipe_file_ops, NULL, O_RDONLY | flags);
    out[1] = file_new(&pipe_file_ops, NULL, O_WRONLY | flags);
    if (pipe == NULL || out[0] == NULL || out[1] == NULL) {
        file_put(out[0]);
        file_put(out[1]);
        kfree(pipe);
        return -ENOMEM;
    }
    pipe->users = 2;
    pipe->readers = 1;
    pipe->writers = 1;
    out[0]->private = pipe;
    out[1]->private = pipe;
    return 0;
}

/* --- with a name: the inode holds the pipe from the first open on --- */

int64_t fifo_open(struct file *file)
{
    struct inode *inode = file->inode;
    uint32_t access = file->flags & O_ACCMODE, opens;
    unsigned other = access == O_RDONLY;
    struct pipe *pipe;

    mutex_lock(&inode->lock);
    if (inode->private == NULL) {
        inode->private = pipe_alloc();
    }
    pipe = inode->private;
    mutex_unlock(&inode->lock);
    if (pipe == NULL) {
        return -ENOMEM;
    }
    if (access == O_WRONLY && (file->flags & O_NONBLOCK) != 0 &&
        pipe->readers == 0) {
        return -ENXIO;
    }
    atomic_fetch_add_explicit(&pipe->users, 1, memory_order_relaxed);
    file->private = pipe;
    opens = pipe->opens[other];
    pipe_open_end(pipe, file);
    if (access == O_RDWR || (file->flags & O_NONBLOCK) != 0) {
        return 0;
    }
    /* Somebody of the other kind is there, or has been since. */
    return wait_event_interruptible(
        &pipe->wait,
        (access == O_RDONLY ? pipe->writers : pipe->readers) != 0 ||
            pipe->opens[other] != opens);
}

void fifo_release(struct inode *inode)
{
    if (inode->private != NULL) {
        pipe_drop(inode->private);
    }
}
