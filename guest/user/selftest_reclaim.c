/* SPDX-License-Identifier: MIT */
/*
 * selftest: memory groups, their limits, reclaim on request, and what happens
 * when there is neither memory nor swap. Each test has a group of its own.
 */
#define _GNU_SOURCE
#include "selftest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "memory.h"

#define GROUP "/selftest"
#define DIR CGROUP GROUP

#ifndef MADV_FREE
#define MADV_FREE 8
#endif

static bool tell(const char *file, const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), DIR "/%s", file);
    return memory_tell(path, text) == 0;
}

/* errno of a write that must fail; 0 when it did not. */
static int tell_error(const char *file, const char *text)
{
    return tell(file, text) ? 0 : errno;
}

static bool ask(const char *file, char *text, size_t size)
{
    char path[128];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), DIR "/%s", file);
    fd = open(path, O_RDONLY);
    n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[n < 0 ? 0 : n] = '\0';
    return n >= 0;
}

static unsigned long ask_number(const char *file)
{
    char text[64];

    return ask(file, text, sizeof(text)) ? strtoul(text, NULL, 10) : ~0UL;
}

/* The number behind the name in a file of "name number" lines. */
static unsigned long ask_field(const char *file, const char *name)
{
    char text[512];
    char *line = text;
    size_t len = strlen(name);

    if (!ask(file, text, sizeof(text))) {
        return ~0UL;
    }
    while (line != NULL && *line != '\0') {
        if (strncmp(line, name, len) == 0 && line[len] == ' ') {
            return strtoul(line + len, NULL, 10);
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return ~0UL;
}

/*
 * Runs fn in a child that joins a fresh group; the wait status. check looks at
 * the group when the child is gone. -1: no groups here.
 */
static int in_group(const char *max, const char *swap_max, bool (*fn)(void),
                    bool (*check)(void), bool *out_checked)
{
    int status = -1;
    pid_t pid;

    *out_checked = false;
    if (memory_make_group(GROUP) != 0 && errno != EEXIST) {
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        bool ok = memory_join(GROUP) == 0 && tell("memory.max", max) &&
                  tell("memory.swap.max", swap_max) && fn();

        if (!ok) {
            test_why("in the group: errno %d", errno);
        }
        _exit(ok ? 0 : 1);
    }
    if (pid > 0) {
        waitpid(pid, &status, 0);
    }
    *out_checked = check == NULL || check();
    if (memory_remove_group(GROUP) != 0) {
        test_why("rmdir of the group: errno %d", errno);
        *out_checked = false;
    }
    return status;
}

#define SKIP_WITHOUT_GROUPS()                                                  \
    do {                                                                       \
        if (access(CGROUP "/memory.reclaim", F_OK) != 0 ||                     \
            memory_make_group(GROUP) != 0 ||                                   \
            memory_remove_group(GROUP) != 0) {                                 \
            return test_skip("no memory groups, or not ours to make");         \
        }                                                                      \
    } while (0)

static bool groups(void)
{
    char text[256], pid[32];
    struct stat st;
    int fd;

    SKIP_WITHOUT_GROUPS();
    CHECK(memory_make_group(GROUP) == 0);
    CHECK(memory_make_group(GROUP) == -1 && errno == EEXIST);
    CHECK(stat(DIR "/memory.max", &st) == 0 && S_ISREG(st.st_mode));
    CHECK(memory_make_group(GROUP "/below") == 0);
    CHECK(memory_remove_group(GROUP) == -1 && errno == EBUSY);
    CHECK(memory_remove_group(GROUP "/below") == 0);
    CHECK(ask("memory.max", text, sizeof(text)) && strcmp(text, "max\n") == 0);
    CHECK(tell("memory.max", "1M"));
    CHECK_EQ(ask_number("memory.max"), 1UL << 20);
    CHECK(tell("memory.max", "max"));
    CHECK_EQ(tell_error("memory.max", "lots"), EINVAL);
    CHECK_EQ(tell_error("memory.max", "-1"), EINVAL);
    CHECK_EQ(tell_error("memory.reclaim", ""), EINVAL);
    CHECK_EQ(tell_error("memory.reclaim", "1x"), EINVAL);
    CHECK_EQ(tell_error("memory.reclaim", "4K"), EAGAIN); /* it is empty */
    CHECK_EQ(tell_error("cgroup.procs", "x"), EINVAL);
    CHECK_EQ(tell_error("cgroup.procs", "32000"), ESRCH);
    CHECK_EQ(ask_field("cgroup.events", "populated"), 0);
    CHECK(memory_join(GROUP) == 0);
    snprintf(pid, sizeof(pid), "%d\n", getpid());
    CHECK(ask("cgroup.procs", text, sizeof(text)) && strcmp(text, pid) == 0);
    CHECK_EQ(ask_field("cgroup.events", "populated"), 1);
    CHECK(memory_remove_group(GROUP) == -1 && errno == EBUSY);
    CHECK(memory_join("") == 0);
    fd = open(DIR "/memory.max", O_WRONLY);
    CHECK(fd >= 0);
    CHECK(memory_remove_group(GROUP) == 0);
    CHECK(write(fd, "max", 3) == -1 && errno == ENODEV);
    close(fd);
    CHECK(stat(DIR, &st) == -1 && errno == ENOENT);
    return true;
}

/* So many pages more than before; Linux charges page tables and more too. */
static bool charged(unsigned long before, unsigned long pages)
{
    unsigned long slack = access("/proc/shootdown", F_OK) == 0 ? 0 : 64;
    unsigned long now = ask_number("memory.current");

    return now + slack * PAGE >= before + pages * PAGE &&
           now <= before + (pages + slack) * PAGE;
}

static bool charge_in_group(void)
{
    unsigned long before = ask_number("memory.current");
    volatile uint64_t *buf = memory_map(512, 0, MAP_PRIVATE);

    CHECK(charged(before, 0));
    memory_write(buf, 512, 1);
    CHECK(charged(before, 512));
    CHECK(ask_field("memory.stat", "anon") >= 512 * PAGE);
    /* Half of it to swap: no longer charged as memory. */
    CHECK(memory_advise(buf, 256, MADV_PAGEOUT) == 0);
    CHECK(charged(before, 256));
    CHECK_EQ(ask_number("memory.swap.current"), 256 * PAGE);
    CHECK_EQ(memory_check(buf, 512, 1), 0);
    memory_unmap(buf, 512);
    CHECK(charged(before, 0));
    CHECK_EQ(ask_number("memory.swap.current"), 0);
    return true;
}

static bool group_is_empty(void)
{
    return ask_number("memory.current") == 0 &&
           ask_number("memory.swap.current") == 0;
}

static bool charge(void)
{
    bool empty;

    SKIP_WITHOUT_GROUPS();
    CHECK_EQ(in_group("max", "max", charge_in_group, group_is_empty, &empty),
             0);
    CHECK(empty);
    return true;
}

#define LIMIT_PAGES 256UL
#define LIMIT "1M"

static bool limit_in_group(void)
{
    volatile uint64_t *buf = memory_map(1024, 0, MAP_PRIVATE);

    for (unsigned round = 1; round <= 3; round++) {
        memory_write(buf, 1024, round);
        CHECK(ask_number("memory.current") <= LIMIT_PAGES * PAGE);
        CHECK_EQ(memory_check(buf, 1024, round), 0);
        CHECK(ask_number("memory.current") <= LIMIT_PAGES * PAGE);
    }
    CHECK(ask_number("memory.swap.current") >= (1024 - LIMIT_PAGES) * PAGE);
    CHECK(ask_field("memory.events", "max") > 0);
    CHECK_EQ(ask_field("memory.events", "oom"), 0);
    /* A lower limit is reclaimed down to at once. */
    CHECK(tell("memory.max", "512K"));
    CHECK(ask_number("memory.current") <= 512 * 1024);
    CHECK_EQ(memory_check(buf, 1024, 3), 0);
    return true;
}

static bool limit(void)
{
    bool empty;

    SKIP_WITHOUT_GROUPS();
    CHECK_EQ(in_group(LIMIT, "max", limit_in_group, group_is_empty, &empty), 0);
    CHECK(empty);
    return true;
}

static bool request_in_group(void)
{
    volatile uint64_t *buf = memory_map(1024, 0, MAP_PRIVATE);
    unsigned long before;

    memory_write(buf, 1024, 1);
    before = ask_number("memory.current");
    CHECK(memory_reclaim(GROUP, 512) == 0);
    CHECK(ask_number("memory.current") <= before - 512 * PAGE);
    CHECK_EQ(memory_check(buf, 1024, 1), 0);
    CHECK(memory_reclaim(GROUP, 4096) == -1 && errno == EAGAIN);
    CHECK(ask_number("memory.swap.current") >= 1024 * PAGE);
    CHECK_EQ(memory_check(buf, 1024, 1), 0);
    return true;
}

static bool request(void)
{
    bool empty;

    SKIP_WITHOUT_GROUPS();
    CHECK_EQ(in_group("max", "max", request_in_group, group_is_empty, &empty),
             0);
    CHECK(empty);
    return true;
}

/* Too much for the limit, and nothing may go to swap. */
static bool oom_in_group(void)
{
    volatile uint64_t *buf = memory_map(1024, 0, MAP_PRIVATE);

    memory_write(buf, 1024, 1);
    return true; /* not reached */
}

static bool one_was_killed(void)
{
    return ask_field("memory.events", "oom_kill") == 1 &&
           ask_field("memory.events", "oom") >= 1 && group_is_empty();
}

static bool killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool oom(void)
{
    bool checked;

    SKIP_WITHOUT_GROUPS();
    CHECK(killed(in_group(LIMIT, "0", oom_in_group, one_was_killed, &checked)));
    CHECK(checked);
    return true;
}

/* With a little swap more fits, and what fits is not lost. */
static bool swap_full_in_group(void)
{
    volatile uint64_t *buf = memory_map(1024, 0, MAP_PRIVATE);

    memory_write(buf, 320, 1);
    CHECK_EQ(memory_check(buf, 320, 1), 0);
    CHECK(ask_number("memory.swap.current") <= 128 * PAGE);
    memory_write(buf, 1024, 2);
    return true; /* not reached */
}

static bool swap_full(void)
{
    bool checked;

    SKIP_WITHOUT_GROUPS();
    CHECK(killed(
        in_group(LIMIT, "512K", swap_full_in_group, one_was_killed, &checked)));
    CHECK(checked);
    return true;
}

/* Within the limit and without swap: everything stays where it is. */
static bool no_swap_in_group(void)
{
    volatile uint64_t *buf = memory_map(1024, 0, MAP_PRIVATE);

    memory_write(buf, 128, 1);
    CHECK_EQ(memory_check(buf, 128, 1), 0);
    CHECK(memory_reclaim(GROUP, 64) == -1 && errno == EAGAIN);
    CHECK_EQ(memory_check(buf, 128, 1), 0);
    return true;
}

static bool no_swap_request(void)
{
    bool checked;

    SKIP_WITHOUT_GROUPS();
    CHECK_EQ(in_group(LIMIT, "0", no_swap_in_group, group_is_empty, &checked),
             0);
    CHECK(checked);
    return true;
}

/* What MADV_FREE gave away goes first, and needs no swap. */
static bool lazyfree_in_group(void)
{
    volatile uint64_t *buf = memory_map(192, 0, MAP_PRIVATE);
    volatile uint64_t *more = memory_map(192, 0, MAP_PRIVATE);

    memory_write(buf, 192, 1);
    CHECK(memory_advise(buf, 192, MADV_FREE) == 0);
    memory_write(more, 192, 2);
    CHECK_EQ(memory_check(more, 192, 2), 0);
    CHECK_EQ(ask_number("memory.swap.current"), 0);
    for (unsigned long p = 0; p < 192; p++) {
        uint64_t word = buf[p * PAGE_WORDS];

        CHECK(word == 0 || word == memory_word(p, 1));
    }
    return true;
}

static bool lazyfree(void)
{
    bool empty;

    SKIP_WITHOUT_GROUPS();
    CHECK_EQ(in_group(LIMIT, "0", lazyfree_in_group, group_is_empty, &empty),
             0);
    CHECK(empty);
    return true;
}

/* Several processes over one limit: all get on, nothing is mixed up. */
static bool crowd_in_group(void)
{
    pid_t pids[4];
    bool ok = true;

    for (unsigned i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            volatile uint64_t *buf = memory_map(256, 0, MAP_PRIVATE);
            unsigned long wrong = 0;

            for (unsigned round = 0; round < 4; round++) {
                memory_write(buf, 256, 10 * i + round);
                wrong += memory_check(buf, 256, 10 * i + round);
            }
            _exit(wrong == 0 ? 0 : 1);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        int status = -1;

        waitpid(pids[i], &status, 0);
        if (status != 0) {
            test_why("a child ended with status 0x%x", (unsigned)status);
        }
        ok &= status == 0;
    }
    return ok;
}

static bool crowd(void)
{
    bool empty;

    SKIP_WITHOUT_GROUPS();
    CHECK_EQ(in_group("2M", "max", crowd_in_group, group_is_empty, &empty), 0);
    CHECK(empty);
    return true;
}

static const struct test tests[] = {
    {"memory groups are made, joined and removed", groups},
    {"pages are charged to the group that touches them", charge},
    {"a limit is obeyed, and swap has the rest", limit},
    {"memory.reclaim takes what it is asked to, or says EAGAIN", request},
    {"without swap a request takes nothing", no_swap_request},
    {"over the limit without swap: killed, and all of it comes back", oom},
    {"when swap is full, too", swap_full},
    {"MADV_FREE pages make room without swap", lazyfree},
    {"four processes share a limit", crowd},
};

TEST_TABLE(tests_reclaim, "reclaim", tests);
