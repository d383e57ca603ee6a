/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files the kernel makes up: /proc, /sys and /dev. The text is generated when
 * the file is opened, so one open sees one consistent snapshot.
 *
 * /proc/shootdown: "name value" lines, the totals of abi/counters.inc. Written
 * to, it runs a hook: "ipi CPU COUNT" makes COUNT round trips to that CPU.
 * /proc/shootdown_cpu: the same lines for the CPU that opens it.
 */
#include "kernel/bootargs.h"
#include "kernel/errno.h"
#include "kernel/file.h"
#include "kernel/lib.h"
#include "kernel/lock_order.h"
#include "kernel/process.h"
#include "kernel/smp.h"
#include "mm/counters.h"
#include "mm/page.h"

#define S_IFREG 0100000U
#define S_IFCHR 0020000U
#define TEXT_SIZE 4096

struct generated {
    const char *path;
    size_t (*generate)(char *buf, size_t size);
    bool hook; /* may be opened for writing */
};

static size_t text_add(char *buf, size_t size, size_t at, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
static size_t text_add(char *buf, size_t size, size_t at, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(buf + at, size - at, fmt, args);
    va_end(args);
    return min_u64(at + (uint64_t)len, size - 1);
}

static size_t make_shootdown(char *buf, size_t size)
{
    size_t at = 0;

    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        enum annot_counter_index which = (enum annot_counter_index)i;

        at = text_add(buf, size, at, "%s %lu\n", counter_name(which),
                      counter_total(which));
    }
    return at;
}

/* Of the CPU that opens the file: what a pinned program's calls cost there. */
static size_t make_shootdown_cpu(char *buf, size_t size)
{
    const uint64_t *values = (const uint64_t *)&counters[cpu_id()];
    size_t at = 0;

    for (unsigned i = 0; i < ANNOT_COUNTERS; i++) {
        enum annot_counter_index which = (enum annot_counter_index)i;

        at = text_add(buf, size, at, "%s %lu\n", counter_name(which),
                      values[i]);
    }
    return at;
}

static size_t make_cmdline(char *buf, size_t size)
{
    return text_add(buf, size, 0, "%s\n", bootargs.line);
}

static size_t make_cpu_range(char *buf, size_t size)
{
    return cpu_count == 1 ? text_add(buf, size, 0, "0\n")
                          : text_add(buf, size, 0, "0-%u\n", cpu_count - 1);
}

static size_t make_meminfo(char *buf, size_t size)
{
    size_t at = text_add(buf, size, 0, "MemTotal: %lu kB\n",
                         page_total_count() * (PAGE_SIZE / 1024));

    return text_add(buf, size, at, "MemFree: %lu kB\n",
                    page_free_count() * (PAGE_SIZE / 1024));
}

static size_t make_stat(char *buf, size_t size)
{
    size_t at = text_add(buf, size, 0, "cpu 0 0 0 0 0 0 0 0 0 0\n");

    for (unsigned i = 0; i < cpu_count; i++) {
        at = text_add(buf, size, at, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", i);
    }
    return at;
}

static const struct generated generated[] = {
    {"/proc/cmdline", make_cmdline, false},
    {"/proc/lock_order", lock_order_text, false},
    {"/proc/meminfo", make_meminfo, false},
    {"/proc/shootdown", make_shootdown, true},
    {"/proc/shootdown_cpu", make_shootdown_cpu, false},
    {"/proc/stat", make_stat, false},
    {"/sys/devices/system/cpu/online", make_cpu_range, false},
    {"/sys/devices/system/cpu/possible", make_cpu_range, false},
    {"/sys/devices/system/cpu/present", make_cpu_range, false},
};

static int lookup_generated(const struct generated *g, bool write,
                            struct file_node *out)
{
    char *text;

    *out = (struct file_node){
        .kind = FILE_TEXT, .mode = S_IFREG | 0444, .ino = 0x1000};
    if (write) {
        out->kind = FILE_HOOK;
        return g->hook ? 0 : -EACCES;
    }
    text = kmalloc(TEXT_SIZE);
    if (text == NULL) {
        return -ENOMEM;
    }
    out->size = g->generate(text, TEXT_SIZE);
    out->data = text;
    out->owned = true;
    return 0;
}

int procfs_lookup(const char *path, bool write, struct file_node *out)
{
    for (unsigned i = 0; i < ARRAY_SIZE(generated); i++) {
        if (strcmp(path, generated[i].path) == 0) {
            return lookup_generated(&generated[i], write, out);
        }
    }
    if (strcmp(path, "/proc/self/exe") == 0) {
        return initramfs_lookup(current()->process->exe, out);
    }
    if (strcmp(path, "/dev/null") == 0) {
        *out = (struct file_node){.kind = FILE_NULL, .mode = S_IFCHR | 0666};
        return 0;
    }
    if (strcmp(path, "/dev/console") == 0 || strcmp(path, "/dev/tty") == 0) {
        *out = (struct file_node){.kind = FILE_CONSOLE, .mode = S_IFCHR | 0620};
        return 0;
    }
    return -ENOENT;
}

static void hook_ipi_nothing(void *arg)
{
    (void)arg;
}

static bool hook_ipi(char *args)
{
    char *count_text = strchr(args, ' ');
    struct cpumask mask;
    uint64_t cpu, count;

    if (count_text == NULL) {
        return false;
    }
    *count_text++ = '\0';
    if (!str_to_u64(args, &cpu) || !str_to_u64(count_text, &count) ||
        cpu >= cpu_count || count > 1000000) {
        return false;
    }
    cpumask_zero(&mask);
    cpumask_set(&mask, (unsigned)cpu);
    for (; count > 0; count--) {
        smp_call_mask(&mask, hook_ipi_nothing, NULL, true);
    }
    return true;
}

int64_t procfs_hook_write(const char *text, size_t size)
{
    char line[64];

    if (size >= sizeof(line)) {
        return -EINVAL;
    }
    memcpy(line, text, size);
    line[size] = '\0';
    if (size > 0 && line[size - 1] == '\n') {
        line[size - 1] = '\0';
    }
    if (strncmp(line, "ipi ", 4) == 0 && hook_ipi(line + 4)) {
        return (int64_t)size;
    }
    return -EINVAL;
}
