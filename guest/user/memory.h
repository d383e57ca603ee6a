/* SPDX-License-Identifier: MIT */
/*
 * What the memory workloads share: buffers that begin at a 2 MiB boundary, with
 * a page table of their own, words that say which page they belong to, and the
 * requests to reclaim and to migrate.
 */
#ifndef USER_MEMORY_H
#define USER_MEMORY_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_FREE
#define MADV_FREE 8
#endif

#define PAGE 4096UL
#define PAGE_WORDS (PAGE / 8)
#define PMD_SIZE (2UL << 20)
#define PMD_PAGES (PMD_SIZE / PAGE)

#define CGROUP "/sys/fs/cgroup"

static inline void memory_die(const char *what)
{
    perror(what);
    exit(1);
}

/*
 * A mapping whose first page is `offset` pages behind a 2 MiB boundary. Nothing
 * else is in the 2 MiB regions it touches: its page tables are its own.
 */
static inline volatile uint64_t *memory_map(unsigned long pages,
                                            unsigned long offset, int flags)
{
    size_t span = ((offset + pages) * PAGE + PMD_SIZE - 1) & ~(PMD_SIZE - 1);
    size_t room = span + PMD_SIZE;
    char *area =
        mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *start;
    void *p;

    if (area == MAP_FAILED) {
        memory_die("mmap");
    }
    start = (char *)(((uintptr_t)area + PMD_SIZE - 1) & ~(PMD_SIZE - 1));
    munmap(area, room);
    p = mmap(start + offset * PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
             MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
    if (p == MAP_FAILED) {
        memory_die("mmap at a 2 MiB boundary");
    }
    return p;
}

static inline void memory_unmap(volatile uint64_t *buf, unsigned long pages)
{
    munmap((void *)(uintptr_t)buf, pages * PAGE);
}

/* Word 0 of a page: which page, in which round. The rest is the same word. */
static inline uint64_t memory_word(unsigned long page, unsigned long round)
{
    return (uint64_t)(page + 1) << 32 | (round & 0xffffffff);
}

static inline void memory_write(volatile uint64_t *buf, unsigned long pages,
                                unsigned long round)
{
    for (unsigned long i = 0; i < pages; i++) {
        buf[i * PAGE_WORDS] = memory_word(i, round);
    }
}

/* Pages whose first word is not what was written in that round. */
static inline unsigned long memory_check(const volatile uint64_t *buf,
                                         unsigned long pages,
                                         unsigned long round)
{
    unsigned long wrong = 0;

    for (unsigned long i = 0; i < pages; i++) {
        wrong += buf[i * PAGE_WORDS] != memory_word(i, round);
    }
    return wrong;
}

static inline int memory_advise(volatile uint64_t *buf, unsigned long pages,
                                int advice)
{
    return madvise((void *)(uintptr_t)buf, pages * PAGE, advice);
}

/* Writes text to a file; 0, or -1 and errno. */
static inline int memory_tell(const char *path, const char *text)
{
    size_t len = strlen(text);
    int fd = open(path, O_WRONLY);
    ssize_t n;

    if (fd < 0) {
        return -1;
    }
    n = write(fd, text, len);
    if (n != (ssize_t)len) {
        int error = n < 0 ? errno : EIO;

        close(fd);
        errno = error;
        return -1;
    }
    return close(fd);
}

/* The whole machine's free memory in pages; 0 where nobody tells. */
static inline unsigned long memory_free_pages(void)
{
    char text[1024];
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    char *line;

    if (fd >= 0) {
        close(fd);
    }
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    line = strstr(text, "MemFree:");
    return line == NULL ? 0 : strtoul(line + 8, NULL, 10) * 1024 / PAGE;
}

/* The number behind a name at the beginning of a line; 0 if it is not there. */
static inline unsigned long memory_named(const char *text, const char *name)
{
    size_t len = strlen(name);

    while (text != NULL) {
        if (strncmp(text, name, len) == 0 && text[len] == ' ') {
            return strtoul(text + len, NULL, 10);
        }
        text = strchr(text, '\n');
        text += text != NULL;
    }
    return 0;
}

/*
 * Pages that somebody owns, each counted once: page tables and the kernel's
 * memory, and what programs have, be it in memory, in swap or in both. Unlike
 * the free pages it does not depend on what was paged out. 0 where the kernel
 * does not tell.
 */
static inline unsigned long memory_owned_pages(void)
{
    static const char *const names[] = {"table", "slab",  "anon",
                                        "shmem", "other", "swap_slots"};
    char text[1024];
    int fd = open("/proc/shootdown_frames", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    unsigned long pages = 0;

    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        pages += memory_named(text, names[i]);
    }
    return pages;
}

/*
 * Asks the kernel to reclaim that much from a group; "" is the root. 0, or -1
 * and errno: EAGAIN where not all could be reclaimed.
 */
static inline int memory_reclaim(const char *group, unsigned long pages)
{
    char path[128], text[32];

    snprintf(path, sizeof(path), CGROUP "%s/memory.reclaim", group);
    snprintf(text, sizeof(text), "%lu", pages * PAGE);
    return memory_tell(path, text);
}

/* Moves the calling process into a group. */
static inline int memory_join(const char *group)
{
    char path[128], text[32];

    snprintf(path, sizeof(path), CGROUP "%s/cgroup.procs", group);
    snprintf(text, sizeof(text), "%d", getpid());
    return memory_tell(path, text);
}

static inline int memory_make_group(const char *group)
{
    char path[128];

    snprintf(path, sizeof(path), CGROUP "%s", group);
    return mkdir(path, 0755);
}

static inline int memory_remove_group(const char *group)
{
    char path[128];

    snprintf(path, sizeof(path), CGROUP "%s", group);
    return rmdir(path);
}

/* What is charged to a group, in pages; 0 where nobody tells. */
static inline unsigned long memory_group_pages(const char *group)
{
    char path[128], text[32];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof(path), CGROUP "%s/memory.current", group);
    fd = open(path, O_RDONLY);
    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    return strtoul(text, NULL, 10) / PAGE;
}

/* How many nodes this process may use; 1 where the kernel does not say. */
static inline unsigned memory_nodes(void)
{
    unsigned long mask = 0;

    if (syscall(SYS_get_mempolicy, NULL, &mask, 64, NULL,
                4 /* MPOL_F_MEMS_ALLOWED */) != 0 ||
        mask == 0) {
        return 1;
    }
    return (unsigned)__builtin_popcountl(mask);
}

/* The arguments of a move_pages call, made before the call is watched. */
struct memory_move {
    unsigned long pages;
    void **addrs;
    int *nodes, *status;
};

static inline void memory_move_init(struct memory_move *m,
                                    volatile uint64_t *buf, unsigned long pages)
{
    m->pages = pages;
    m->addrs = calloc(pages, sizeof(*m->addrs));
    m->nodes = calloc(pages, sizeof(*m->nodes));
    m->status = calloc(pages, sizeof(*m->status));
    if (m->addrs == NULL || m->nodes == NULL || m->status == NULL) {
        memory_die("calloc");
    }
    for (unsigned long i = 0; i < pages; i++) {
        m->addrs[i] = (void *)(uintptr_t)(buf + i * PAGE_WORDS);
    }
}

static inline void memory_move_free(struct memory_move *m)
{
    free(m->addrs);
    free(m->nodes);
    free(m->status);
}

static inline void memory_move_aim(struct memory_move *m, int node)
{
    for (unsigned long i = 0; i < m->pages; i++) {
        m->nodes[i] = node;
        m->status[i] = -1;
    }
}

/* Part `part` of `parts` equal ones; the system call's answer. */
static inline long memory_move_call(struct memory_move *m, unsigned long part,
                                    unsigned long parts)
{
    unsigned long first = m->pages * part / parts;
    unsigned long end = m->pages * (part + 1) / parts;

    return syscall(SYS_move_pages, 0, end - first, m->addrs + first,
                   m->nodes + first, m->status + first, 2 /* MPOL_MF_MOVE */);
}

/* How many pages are on that node, by the kernel's word. */
static inline unsigned long memory_on_node(struct memory_move *m, int node)
{
    unsigned long n = 0;

    if (syscall(SYS_move_pages, 0, m->pages, m->addrs, NULL, m->status, 0) !=
        0) {
        return 0;
    }
    for (unsigned long i = 0; i < m->pages; i++) {
        n += m->status[i] == node;
    }
    return n;
}

#endif
