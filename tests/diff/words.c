/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line, out of the device tree. */
#include "words.h"

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static bool same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

const char *words_property(const char *name)
{
    const uint8_t *fdt = (const uint8_t *)boot_x0, *p, *names;

    if (!fdt || be32(fdt) != 0xd00dfeed) {
        return "";
    }
    p = fdt + be32(fdt + 8);
    names = fdt + be32(fdt + 12);
    for (;;) {
        uint32_t token = be32(p);

        p += 4;
        if (token == 1) { /* a node and its name */
            while (*p) {
                p++;
            }
            p += 1;
            p = (const uint8_t *)(((uint64_t)p + 3) & ~3ull);
        } else if (token == 3) { /* a property */
            uint32_t size = be32(p);

            if (same((const char *)names + be32(p + 4), name)) {
                return (const char *)p + 8;
            }
            p += 8 + ((size + 3) & ~3u);
        } else if (token != 2 && token != 4) {
            return "";
        }
    }
}

uint64_t words_number(const char *words, const char *name, uint64_t otherwise)
{
    for (const char *w = words; *w; w++) {
        const char *n = name, *p = w;

        while (*n && *n == *p) {
            n++;
            p++;
        }
        if (!*n && *p == '=' && (w == words || w[-1] == ' ')) {
            uint64_t value = 0;

            for (p++; *p >= '0' && *p <= '9'; p++) {
                value = value * 10 + (uint64_t)(*p - '0');
            }
            return value;
        }
    }
    return otherwise;
}

const char *words_get(void)
{
    return words_property("bootargs");
}
