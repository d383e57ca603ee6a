/* SPDX-License-Identifier: MIT */
/*
 * selftest: where pages are, moving them, memory policies. With one memory
 * node what needs two is skipped.
 */
#define _GNU_SOURCE
#include "selftest.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGE 4096UL
#define N_PAGES 1200UL
#define FEW 16UL
#define MPOL_DEFAULT 0
#define MPOL_PREFERRED 1
#define MPOL_BIND 2
#define MPOL_MF_STRICT 1
#define MPOL_MF_MOVE 2
#define MPOL_MF_MOVE_ALL 4
#define MPOL_F_NODE 1
#define MPOL_F_ADDR 2
#define MPOL_F_MEMS_ALLOWED 4
#define NODE_BITS 65UL /* as Linux counts: one word */

static char *bad_pointer(void)
{
    return (char *)16;
}

static long call_move(pid_t pid, unsigned long n, const void *pages,
                      const void *nodes, void *status, int flags)
{
    errno = 0;
    return syscall(SYS_move_pages, pid, n, pages, nodes, status, flags);
}

static long call_mbind(void *p, unsigned long len, int mode,
                       const unsigned long *nodes, unsigned long maxnode,
                       unsigned flags)
{
    errno = 0;
    return syscall(SYS_mbind, p, len, mode, nodes, maxnode, flags);
}

static long call_get(void *mode, void *nodes, unsigned long maxnode, void *addr,
                     unsigned flags)
{
    errno = 0;
    return syscall(SYS_get_mempolicy, mode, nodes, maxnode, addr, flags);
}

static unsigned long allowed_nodes(void)
{
    unsigned long nodes = 0;

    /* A kernel with room for more nodes asks for more bits. */
    for (unsigned long bits = NODE_BITS; bits <= 1025; bits = bits * 2 - 1) {
        unsigned long words[16] = {0};

        if (call_get(NULL, words, bits, NULL, MPOL_F_MEMS_ALLOWED) == 0) {
            return words[0];
        }
    }
    return nodes;
}

/* Some kernels are built without any of this. */
static bool knows_nodes(void)
{
    return call_get(NULL, NULL, 0, NULL, 0) == 0 || errno != ENOSYS;
}

static bool two_nodes(void)
{
    return (allowed_nodes() & 3) == 3;
}

static int node_of(void *p)
{
    int status = -1;

    return call_move(0, 1, &p, NULL, &status, MPOL_MF_MOVE) == 0 ? status
                                                                 : -1000;
}

static uint64_t word_of(unsigned long page, unsigned round)
{
    return (uint64_t)(page + 1) << 32 | round;
}

static void fill(volatile uint64_t *buf, unsigned long pages, unsigned round)
{
    for (unsigned long i = 0; i < pages; i++) {
        buf[i * PAGE / 8] = word_of(i, round);
        buf[i * PAGE / 8 + 511] = ~word_of(i, round);
    }
}

static bool holds(volatile uint64_t *buf, unsigned long pages, unsigned round)
{
    for (unsigned long i = 0; i < pages; i++) {
        if (buf[i * PAGE / 8] != word_of(i, round) ||
            buf[i * PAGE / 8 + 511] != ~word_of(i, round)) {
            return false;
        }
    }
    return true;
}

static void *pages[N_PAGES];
static int nodes[N_PAGES], status[N_PAGES];

static void list_pages(void *buf, unsigned long n, int node)
{
    for (unsigned long i = 0; i < n; i++) {
        pages[i] = (char *)buf + i * PAGE;
        nodes[i] = node;
        status[i] = -1234;
    }
}

static bool query(void)
{
    char *buf = (char *)test_map_private(4 * PAGE);

    if (!knows_nodes()) {
        return test_skip("no memory nodes in this kernel");
    }
    CHECK(buf != NULL);
    buf[0] = 1;
    CHECK_EQ(*(volatile char *)(buf + PAGE), 0); /* the zero page */
    CHECK_EQ(munmap(buf + 3 * PAGE, PAGE), 0);
    list_pages(buf, 4, 0);
    CHECK_EQ(call_move(0, 4, pages, NULL, status, MPOL_MF_MOVE), 0);
    CHECK((allowed_nodes() >> status[0] & 1) == 1);
    CHECK_EQ(status[1], -EFAULT);
    CHECK_EQ(status[2], -ENOENT);
    CHECK_EQ(status[3], -EFAULT);
    CHECK_EQ(call_move(0, 0, NULL, NULL, NULL, 0), 0);
    return true;
}

static bool move_errors(void)
{
    volatile uint64_t *buf = test_map_private(FEW * PAGE);

    if (!knows_nodes()) {
        return test_skip("no memory nodes in this kernel");
    }
    CHECK(buf != NULL);
    fill(buf, FEW, 1);
    list_pages((void *)(uintptr_t)buf, FEW, 0);
    CHECK(call_move(0, 1, pages, nodes, status, 1) == -1 && errno == EINVAL);
    CHECK(call_move(0, 1, pages, nodes, status, 8) == -1 && errno == EINVAL);
    CHECK(call_move(99999, 1, pages, nodes, status, MPOL_MF_MOVE) == -1 &&
          errno == ESRCH);
    CHECK(call_move(0, 1, bad_pointer(), nodes, status, MPOL_MF_MOVE) == -1 &&
          errno == EFAULT);
    CHECK(call_move(0, 1, pages, bad_pointer(), status, MPOL_MF_MOVE) == -1 &&
          errno == EFAULT);
    CHECK(call_move(0, 1, pages, nodes, bad_pointer(), MPOL_MF_MOVE) == -1 &&
          errno == EFAULT);
    CHECK(call_move(0, 1, bad_pointer(), NULL, status, MPOL_MF_MOVE) == -1 &&
          errno == EFAULT);
    nodes[0] = -1;
    CHECK(call_move(0, 1, pages, nodes, status, MPOL_MF_MOVE) == -1 &&
          errno == ENODEV);
    nodes[0] = 63;
    CHECK(call_move(0, 1, pages, nodes, status, MPOL_MF_MOVE) == -1 &&
          errno == ENODEV);
    nodes[0] = 0;
    pages[0] = NULL;
    CHECK_EQ(call_move(0, 1, pages, nodes, status, MPOL_MF_MOVE), 0);
    CHECK_EQ(status[0], -EFAULT);
    CHECK(holds(buf, FEW, 1));
    return true;
}

static bool move_there_and_back(void)
{
    volatile uint64_t *buf = test_map_private(N_PAGES * PAGE);

    if (!two_nodes()) {
        return test_skip("one memory node");
    }
    CHECK(buf != NULL);
    fill(buf, N_PAGES, 1);
    for (int round = 0; round < 4; round++) {
        int node = round & 1;

        list_pages((void *)(uintptr_t)buf, N_PAGES, node);
        CHECK_EQ(call_move(0, N_PAGES, pages, nodes, status, MPOL_MF_MOVE), 0);
        for (unsigned long i = 0; i < N_PAGES; i++) {
            CHECK_EQ(status[i], node);
        }
        CHECK_EQ(node_of(pages[7]), node);
        CHECK(holds(buf, N_PAGES, 1));
    }
    /* By turns, with holes: each page by itself. */
    for (unsigned long i = 0; i < FEW; i++) {
        nodes[i] = (int)(i & 1);
    }
    CHECK_EQ(madvise(pages[5], PAGE, MADV_DONTNEED), 0);
    CHECK_EQ(call_move(0, FEW, pages, nodes, status, MPOL_MF_MOVE), 0);
    for (unsigned long i = 0; i < FEW; i++) {
        CHECK_EQ(status[i], i == 5 ? -ENOENT : nodes[i]);
    }
    CHECK(holds(buf, 5, 1));
    return true;
}

/* A child's page that the parent maps too, and a page of another process. */
static bool move_shared_pages(void)
{
    volatile uint64_t *buf = test_map_private(FEW * PAGE);
    int target, wait_status;
    pid_t pid;

    if (!two_nodes()) {
        return test_skip("one memory node");
    }
    CHECK(buf != NULL);
    fill(buf, FEW, 1);
    list_pages((void *)(uintptr_t)buf, FEW, 0);
    target = !node_of(pages[0]);
    list_pages((void *)(uintptr_t)buf, FEW, target);
    shared->words[0] = 0;
    pid = fork();
    if (pid == 0) {
        while (shared->words[0] == 0) {
            usleep(100);
        }
        _exit(holds(buf, FEW, 1) ? 0 : 1);
    }
    CHECK(pid > 0);
    CHECK_EQ(call_move(0, FEW, pages, nodes, status, MPOL_MF_MOVE), 0);
    CHECK_EQ(status[0], -EACCES);
    CHECK_EQ(node_of(pages[0]), !target);
    CHECK_EQ(call_move(pid, FEW, pages, nodes, status, MPOL_MF_MOVE_ALL), 0);
    for (unsigned long i = 0; i < FEW; i++) {
        CHECK_EQ(status[i], target);
        CHECK_EQ(node_of(pages[i]), target); /* the same pages */
    }
    fill(buf, FEW, 2);
    shared->words[0] = 1;
    CHECK_EQ(waitpid(pid, &wait_status, 0), pid);
    CHECK_EQ(wait_status, 0);
    CHECK(holds(buf, FEW, 2));
    return true;
}

static bool migrate_a_process(void)
{
    const unsigned long zero = 1, one = 2, none = 0, beyond = 1UL << 20;
    volatile uint64_t *buf = test_map_private(FEW * PAGE);

    if (!knows_nodes()) {
        return test_skip("no memory nodes in this kernel");
    }
    CHECK(buf != NULL);
    fill(buf, FEW, 1);
    errno = 0;
    CHECK(syscall(SYS_migrate_pages, 0, NODE_BITS, bad_pointer(), &zero) ==
              -1 &&
          errno == EFAULT);
    CHECK(syscall(SYS_migrate_pages, 0, NODE_BITS, &zero, bad_pointer()) ==
              -1 &&
          errno == EFAULT);
    CHECK(syscall(SYS_migrate_pages, 99999, NODE_BITS, &zero, &zero) == -1 &&
          errno == ESRCH);
    CHECK(syscall(SYS_migrate_pages, 0, NODE_BITS, &zero, &none) == -1 &&
          errno == EINVAL);
    CHECK(syscall(SYS_migrate_pages, 0, NODE_BITS, &zero, &beyond) == -1 &&
          (errno == EINVAL || errno == EPERM));
    CHECK(syscall(SYS_migrate_pages, 0, 8UL * 4096 + 2, &zero, &zero) == -1 &&
          errno == EINVAL);
    CHECK_EQ(syscall(SYS_migrate_pages, 0, NODE_BITS, &zero, &zero), 0);
    if (!two_nodes()) {
        return true;
    }
    list_pages((void *)(uintptr_t)buf, FEW, 0);
    for (int round = 0; round < 4; round++) {
        bool up = (round & 1) == 0;

        CHECK(syscall(SYS_migrate_pages, 0, NODE_BITS, up ? &zero : &one,
                      up ? &one : &zero) >= 0);
        CHECK_EQ(node_of(pages[0]), up);
        CHECK_EQ(node_of(pages[FEW - 1]), up);
        CHECK(holds(buf, FEW, 1));
    }
    return true;
}

static bool policies(void)
{
    unsigned long all = allowed_nodes(), zero = 1, one = 2, none = 0, got;
    char *buf = (char *)test_map_private(8 * PAGE);
    int mode = -1, node;

    if (!knows_nodes()) {
        return test_skip("no memory nodes in this kernel");
    }
    CHECK(buf != NULL && all != 0);
    CHECK(call_get(&mode, NULL, 0, NULL, 8) == -1 && errno == EINVAL);
    CHECK(call_get(&mode, NULL, 0, buf, 0) == -1 && errno == EINVAL);
    CHECK(call_get(NULL, NULL, 0, bad_pointer(), MPOL_F_ADDR) == -1 &&
          errno == EFAULT);
    CHECK(call_get(bad_pointer(), NULL, 0, NULL, 0) == -1 && errno == EFAULT);
    CHECK_EQ(call_get(&mode, NULL, 0, NULL, 0), 0);
    CHECK_EQ(mode, MPOL_DEFAULT);
    CHECK(syscall(SYS_set_mempolicy, 99, &zero, NODE_BITS) == -1 &&
          errno == EINVAL);
    CHECK(syscall(SYS_set_mempolicy, MPOL_BIND, &none, NODE_BITS) == -1 &&
          errno == EINVAL);
    CHECK(syscall(SYS_set_mempolicy, MPOL_DEFAULT, &zero, NODE_BITS) == -1 &&
          errno == EINVAL);
    CHECK(syscall(SYS_set_mempolicy, MPOL_BIND, bad_pointer(), NODE_BITS) ==
              -1 &&
          errno == EFAULT);
    CHECK(call_mbind(buf + 1, PAGE, MPOL_BIND, &zero, NODE_BITS, 0) == -1 &&
          errno == EINVAL);
    CHECK(call_mbind(buf, PAGE, MPOL_BIND, &zero, NODE_BITS, 64) == -1 &&
          errno == EINVAL);
    CHECK(call_mbind(buf, PAGE, MPOL_BIND, &none, NODE_BITS, 0) == -1 &&
          errno == EINVAL);
    CHECK_EQ(call_mbind(buf, 0, MPOL_BIND, &zero, NODE_BITS, 0), 0);
    CHECK_EQ(munmap(buf + 7 * PAGE, PAGE), 0);
    CHECK(call_mbind(buf + 6 * PAGE, 2 * PAGE, MPOL_BIND, &zero, NODE_BITS,
                     0) == -1 &&
          errno == EFAULT);
    if (!two_nodes()) {
        return true;
    }
    /* An area's policy. */
    CHECK_EQ(call_mbind(buf, 2 * PAGE, MPOL_BIND, &one, NODE_BITS, 0), 0);
    CHECK_EQ(
        call_mbind(buf + 2 * PAGE, PAGE, MPOL_PREFERRED, &zero, NODE_BITS, 0),
        0);
    buf[0] = buf[PAGE] = buf[2 * PAGE] = 1;
    CHECK_EQ(node_of(buf), 1);
    CHECK_EQ(node_of(buf + PAGE), 1);
    CHECK_EQ(node_of(buf + 2 * PAGE), 0);
    got = 0;
    CHECK_EQ(call_get(&mode, &got, NODE_BITS, buf + PAGE, MPOL_F_ADDR), 0);
    CHECK(mode == MPOL_BIND && got == one);
    CHECK_EQ(call_get(&node, NULL, 0, buf, MPOL_F_ADDR | MPOL_F_NODE), 0);
    CHECK_EQ(node, 1);
    /* Pages on the wrong node: an error, or moved. */
    CHECK(call_mbind(buf, PAGE, MPOL_BIND, &zero, NODE_BITS, MPOL_MF_STRICT) ==
              -1 &&
          errno == EIO);
    CHECK_EQ(call_mbind(buf, 2 * PAGE, MPOL_BIND, &zero, NODE_BITS,
                        MPOL_MF_STRICT | MPOL_MF_MOVE),
             0);
    CHECK_EQ(node_of(buf), 0);
    CHECK_EQ(call_mbind(buf, 7 * PAGE, MPOL_DEFAULT, NULL, 0, 0), 0);
    /* The task's. */
    CHECK_EQ(syscall(SYS_set_mempolicy, MPOL_BIND, &one, NODE_BITS), 0);
    buf[4 * PAGE] = 1;
    CHECK_EQ(node_of(buf + 4 * PAGE), 1);
    CHECK_EQ(syscall(SYS_set_mempolicy, MPOL_PREFERRED, &zero, NODE_BITS), 0);
    buf[5 * PAGE] = 1;
    CHECK_EQ(node_of(buf + 5 * PAGE), 0);
    CHECK_EQ(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0), 0);
    return true;
}

/* --- pages move while threads write them and the process forks --- */

#define WRITERS 3U
#define SLICE 24UL

static atomic_bool stop;
static _Atomic unsigned wrong;
static volatile uint64_t *arena;

static void *writer(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    volatile uint64_t *mine = arena + me * SLICE * PAGE / 8;

    (void)pin_to_cpu((1 + me) % cpus_allowed());
    for (unsigned round = 1; !atomic_load(&stop); round++) {
        fill(mine, SLICE, round);
        if (!holds(mine, SLICE, round)) {
            atomic_fetch_add(&wrong, 1);
        }
    }
    return arg;
}

static bool move_under_writers(void)
{
    const unsigned long n = WRITERS * SLICE;
    pthread_t threads[WRITERS];
    unsigned long moved = 0;

    if (!two_nodes()) {
        return test_skip("one memory node");
    }
    arena = test_map_private(n * PAGE);
    CHECK(arena != NULL);
    fill(arena, n, 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        CHECK_EQ(
            pthread_create(&threads[i], NULL, writer, (void *)(uintptr_t)i), 0);
    }
    for (int round = 0; round < 20; round++) {
        pid_t pid = -1;

        if (round % 4 == 3) {
            pid = fork();
            if (pid == 0) {
                _exit(0);
            }
        }
        list_pages((void *)(uintptr_t)arena, n, round & 1);
        CHECK(call_move(0, n, pages, nodes, status, MPOL_MF_MOVE_ALL) >= 0);
        for (unsigned long i = 0; i < n; i++) {
            moved += status[i] == (round & 1);
        }
        if (pid > 0) {
            CHECK_EQ(waitpid(pid, NULL, 0), pid);
        }
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(atomic_load(&wrong), 0);
    CHECK(moved != 0);
    return true;
}

static bool getcpu_node(void)
{
    unsigned cpu = 99, node = 99;

    CHECK_EQ(pin_to_cpu(0), 0);
    CHECK_EQ(syscall(SYS_getcpu, &cpu, &node, NULL), 0);
    CHECK_EQ(cpu, 0);
    CHECK(!knows_nodes() || (allowed_nodes() >> node & 1) == 1);
    errno = 0;
    CHECK(syscall(SYS_getcpu, bad_pointer(), NULL, NULL) == -1 &&
          errno == EFAULT);
    return true;
}

/* The switch of NUMA hints; it is left as it was. */
static bool balancing_switch(void)
{
    int fd = open("/proc/sys/kernel/numa_balancing", O_RDWR);
    char before[8] = "", now[8] = "";

    if (fd < 0) {
        return test_skip("no numa_balancing to write to");
    }
    CHECK(pread(fd, before, sizeof(before) - 1, 0) > 0);
    CHECK_EQ(pwrite(fd, "1\n", 2, 0), 2);
    close(fd);
    fd = open("/proc/sys/kernel/numa_balancing", O_RDWR);
    CHECK(fd >= 0 && read(fd, now, sizeof(now) - 1) > 0);
    CHECK_EQ(now[0], '1');
    errno = 0;
    CHECK(pwrite(fd, "x", 1, 0) == -1 && errno == EINVAL);
    CHECK(pwrite(fd, before, strlen(before), 0) > 0);
    close(fd);
    return true;
}

static const struct test tests[] = {
    {"move_pages without nodes tells where pages are", query},
    {"move_pages answers bad arguments", move_errors},
    {"move_pages moves 1200 pages there and back", move_there_and_back},
    {"move_pages moves shared pages only when told to", move_shared_pages},
    {"migrate_pages moves a process", migrate_a_process},
    {"policies of areas and tasks place new pages", policies},
    {"pages move while threads write them", move_under_writers},
    {"getcpu knows the node", getcpu_node},
    {"NUMA hints have a switch", balancing_switch},
};

TEST_TABLE(tests_numa, "numa", tests);
