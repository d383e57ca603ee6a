/* SPDX-License-Identifier: MIT */
/* selftest: what /proc and /sys tell, and that it is true. */
#define _GNU_SOURCE
#include "selftest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>

/* All of it, terminated; "" when it cannot be read. */
static const char *text_of(const char *name)
{
    static char text[1 << 20];
    size_t len = 0;
    ssize_t n;
    int fd = open(name, O_RDONLY);

    while (fd >= 0 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    close(fd);
    return text;
}

/* The number behind the label at the beginning of a line, or -1. */
static long number_after(const char *text, const char *label)
{
    size_t len = strlen(label);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, label, len) == 0) {
            return strtol(line + len, NULL, 10);
        }
        if (*line == '\n') {
            line--;
        }
        if (*line == '\0') {
            break;
        }
    }
    return -1;
}

static bool maps(void)
{
    char *area = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char line[64];
    const char *text;

    CHECK(area != MAP_FAILED);
    CHECK_EQ(mprotect(area + 4096, 4096, PROT_NONE), 0);
    snprintf(line, sizeof(line), "%lx-%lx ---p ", (unsigned long)area + 4096,
             (unsigned long)area + 8192);
    text = text_of("/proc/self/maps");
    CHECK(strstr(text, line) != NULL);
    CHECK(strstr(text, "[stack]") != NULL);
    CHECK(strstr(text, "[heap]") != NULL ||
          access("/proc/shootdown", F_OK) != 0);
    CHECK(strstr(text, " r-xp ") != NULL);
    return true;
}

static bool smaps(void)
{
    char *area = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char line[64];
    const char *text;

    CHECK(area != MAP_FAILED);
    /* Areas of its own kind before and after: it must not be joined. */
    CHECK_EQ(mprotect(area, 4096, PROT_NONE), 0);
    CHECK_EQ(mprotect(area + (1 << 20) - 4096, 4096, PROT_NONE), 0);
    for (unsigned i = 1; i <= 10; i++) {
        area[i * 4096] = 1;
    }
    snprintf(line, sizeof(line), "%lx-", (unsigned long)area + 4096);
    text = strstr(text_of("/proc/self/smaps"), line);
    if (text == NULL || strstr(text, "Private_Dirty:") == NULL) {
        return test_skip("no smaps here");
    }
    CHECK_EQ(number_after(text, "Size:"), (1 << 10) - 8);
    if (number_after(text, "Rss:") == 0) {
        return test_skip("smaps does not count here");
    }
    CHECK_EQ(number_after(text, "Rss:"), 40);
    CHECK_EQ(number_after(text, "Private_Dirty:"), 40);
    CHECK_EQ(number_after(text, "Anonymous:"), 40);
    return true;
}

static bool status(void)
{
    char name[64];
    const char *text;
    int result;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGUSR1, SIG_IGN);
        for (;;) {
            sleep(100);
        }
    }
    CHECK_EQ(kill(pid, SIGSTOP), 0);
    CHECK_EQ(waitpid(pid, &result, WUNTRACED), pid);
    snprintf(name, sizeof(name), "/proc/%d/status", pid);
    text = text_of(name);
    CHECK(strstr(text, "State:\tT (stopped)") != NULL);
    CHECK_EQ(number_after(text, "Pid:"), pid);
    CHECK_EQ(number_after(text, "PPid:"), getpid());
    CHECK(number_after(text, "Threads:") == 1 || /* qemu-user has its own */
          access("/proc/shootdown", F_OK) != 0);
    CHECK(number_after(text, "VmRSS:") > 0);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &result, 0) == pid);
    errno = 0;
    CHECK(open(name, O_RDONLY) == -1 && errno == ENOENT);
    return true;
}

static bool own_names(void)
{
    char link[64] = "", buf[64];
    char *dir = getcwd(buf, sizeof(buf));

    CHECK(readlink("/proc/self/cwd", link, sizeof(link) - 1) > 0);
    CHECK(dir != NULL && strcmp(link, dir) == 0);
    CHECK(strstr(text_of("/proc/self/cmdline"), "selftest") != NULL);
    CHECK(strncmp(text_of("/proc/self/comm"), "selftest", 8) == 0 ||
          access("/proc/shootdown", F_OK) != 0);
    return true;
}

static bool interrupts(void)
{
    const char *text = text_of("/proc/interrupts");
    char last[32];

    if (access("/proc/shootdown", F_OK) != 0) {
        return test_skip("not our kernel");
    }
    snprintf(last, sizeof(last), "CPU%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
    CHECK(strstr(text, "CPU0") != NULL && strstr(text, last) != NULL);
    CHECK(strstr(text, "Rescheduling interrupts\n") != NULL);
    CHECK(strstr(text, "Function call interrupts\n") != NULL);
    CHECK(strstr(text, "\n TLB:") != NULL);
    CHECK(strstr(text, "TLB shootdowns\n") != NULL);
    return true;
}

static bool vmstat(void)
{
    volatile char *page = mmap(NULL, 50 * 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long before = number_after(text_of("/proc/vmstat"), "pgfault ");

    if (access("/proc/shootdown", F_OK) != 0) {
        return test_skip("not our kernel");
    }
    for (unsigned i = 0; i < 50; i++) {
        page[i * 4096] = 1;
    }
    CHECK(number_after(text_of("/proc/vmstat"), "pgfault ") >= before + 50);
    CHECK(number_after(text_of("/proc/vmstat"), "pswpout ") >= 0);
    CHECK(number_after(text_of("/proc/vmstat"), "pgmigrate_success ") >= 0);
    CHECK(number_after(text_of("/proc/vmstat"), "nr_tlb_remote_flush ") >= 0);
    return true;
}

static bool times_move(void)
{
    struct rusage before, after;
    struct tms tms;
    uint64_t until = now_ns() + 50000000;

    CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
    while (now_ns() < until) {
    }
    CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
    CHECK(after.ru_utime.tv_sec > before.ru_utime.tv_sec ||
          after.ru_utime.tv_usec > before.ru_utime.tv_usec);
    CHECK(times(&tms) != (clock_t)-1);
    errno = 0;
    CHECK(getrusage(77, &after) == -1 && errno == EINVAL);
    CHECK(number_after(text_of("/proc/stat"), "ctxt ") > 0);
    CHECK(number_after(text_of("/proc/meminfo"), "MemTotal:") > 0);
    CHECK(strtod(text_of("/proc/uptime"), NULL) > 0);
    return true;
}

static bool per_cpu_counters(void)
{
    const char *text = text_of("/proc/shootdown_cpus"), *line;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), fields = 0;

    if (access("/proc/shootdown", F_OK) != 0) {
        return test_skip("not our kernel");
    }
    line = strstr(text, "syscalls ");
    CHECK(line != NULL);
    for (; *line != '\n'; line++) {
        fields += *line == ' ';
    }
    CHECK_EQ(fields, cpus);
    return true;
}

struct frames {
    unsigned long all, anon, slots;
};

static struct frames read_frames(void)
{
    static const char *const names[] = {"free ",       "reserved ",   "table ",
                                        "slab ",       "anon ",       "shmem ",
                                        "swap_cache ", "swap_store ", "other "};
    const char *text = text_of("/proc/shootdown_frames");
    struct frames f = {
        .anon = (unsigned long)number_after(text, "anon "),
        .slots = (unsigned long)number_after(text, "swap_slots "),
    };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        f.all += (unsigned long)number_after(text, names[i]);
    }
    return f;
}

/* Nothing moves any more: the same twice. */
static struct frames frames_now(void)
{
    struct frames last, now = read_frames();
    unsigned tries = 20;

    do {
        last = now;
        now = read_frames();
    } while (memcmp(&last, &now, sizeof(now)) != 0 && --tries > 0);
    return now;
}

/* Where a page is changes, not how many there are. */
static bool frames_add_up(void)
{
    enum { PAGES = 300 };
    struct frames f[5];
    char *area;

    if (access("/proc/shootdown_frames", F_OK) != 0) {
        return test_skip("not our kernel");
    }
    area = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    /* After a first time, which copies what fork left shared. */
    for (unsigned i = 0; i < 5; i++) {
        f[i] = frames_now();
    }
    f[0] = frames_now();
    for (unsigned i = 0; i < PAGES; i++) {
        area[i * 4096] = 1;
    }
    f[1] = frames_now();
    CHECK(madvise(area, PAGES * 4096, MADV_PAGEOUT) == 0);
    f[2] = frames_now();
    for (unsigned i = 0; i < PAGES; i++) {
        CHECK(((volatile char *)area)[i * 4096] == 1);
    }
    f[3] = frames_now();
    CHECK(munmap(area, PAGES * 4096) == 0);
    f[4] = frames_now();
    CHECK_EQ(f[1].anon, f[0].anon + PAGES);
    CHECK_EQ(f[2].anon, f[0].anon);
    CHECK_EQ(f[2].slots, f[1].slots + PAGES);
    CHECK_EQ(f[3].anon, f[1].anon);
    CHECK_EQ(f[3].slots, f[0].slots); /* the last use took the copy with it */
    CHECK_EQ(f[4].slots, f[0].slots);
    CHECK_EQ(f[4].anon, f[0].anon);
    for (unsigned i = 1; i < 5; i++) {
        CHECK_EQ(f[i].all, f[0].all);
    }
    return true;
}

static bool numbers_are_listed(void)
{
    DIR *dir = opendir("/proc");
    bool self = false, own = false;

    CHECK(dir != NULL);
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
        self |= strcmp(d->d_name, "self") == 0;
        own |= atoi(d->d_name) == getpid();
    }
    closedir(dir);
    CHECK(self && own);
    return true;
}

static const struct test tests[] = {
    {"maps shows every area", maps},
    {"smaps counts an area's pages", smaps},
    {"status shows a stopped child", status},
    {"a process finds its own names", own_names},
    {"interrupts has a row for each kind", interrupts},
    {"vmstat counts faults", vmstat},
    {"CPU time and clocks move", times_move},
    {"the counters of each CPU can be read", per_cpu_counters},
    {"processes are listed", numbers_are_listed},
    {"pages are owned wherever they are", frames_add_up},
};

TEST_TABLE(tests_proc, "proc", tests);
