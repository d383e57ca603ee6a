/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes as a file in memory, for readers that want a name. See fuzz.h. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char name[64];

    if (fd < 0) {
        fd = memfd_create("input", MFD_CLOEXEC);
        FUZZ_CHECK(fd >= 0, "memfd_create() fails");
        g_snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    }
    FUZZ_CHECK(ftruncate(fd, 0) == 0 &&
                   pwrite(fd, data, size, 0) == (ssize_t)size,
               "a file of %zu bytes in memory", size);
    return name;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = g_malloc(size + 1);

    if (size) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    return text;
}
