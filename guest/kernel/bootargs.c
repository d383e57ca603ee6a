/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line: words "name=value" up to "--", then init's arguments.
 * Unknown words are kept for bootargs_get(); a wrong value is reported and the
 * default stays.
 */
#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/printk.h"

#define INIT_DEFAULT "/bin/hello"

struct bootargs bootargs = {.init = INIT_DEFAULT};

static char words[BOOTARGS_MAX]; /* the line, cut into words */

struct choice {
    const char *text;
    int value;
};

static int choose(const char *name, const char *value,
                  const struct choice *choices, unsigned count, int now)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(value, choices[i].text) == 0) {
            return choices[i].value;
        }
    }
    printk("bootargs: %s=%s is not known, %s stays\n", name, value,
           choices[now].text);
    return now;
}

static void bootargs_word(char *word)
{
    static const struct choice tlb[] = {{"broadcast", BOOTARG_TLB_BROADCAST},
                                        {"ipi", BOOTARG_TLB_IPI},
                                        {"invlpgb", BOOTARG_TLB_INVLPGB}};
    static const struct choice flush[] = {{"batched", BOOTARG_FLUSH_BATCHED},
                                          {"sync", BOOTARG_FLUSH_SYNC}};
    static const struct choice drain[] = {{"mm", BOOTARG_DRAIN_MM},
                                          {"dsb", BOOTARG_DRAIN_DSB},
                                          {"none", BOOTARG_DRAIN_NONE}};
    char *value = strchr(word, '=');

    if (strcmp(word, "quiet") == 0) {
        bootargs.quiet = true;
    }
    if (value == NULL) {
        return;
    }
    *value++ = '\0';
    if (strcmp(word, "tlb") == 0) {
        bootargs.tlb = (enum bootarg_tlb)choose(
            word, value, tlb, ARRAY_SIZE(tlb), (int)bootargs.tlb);
    } else if (strcmp(word, "flush") == 0) {
        bootargs.flush = (enum bootarg_flush)choose(
            word, value, flush, ARRAY_SIZE(flush), (int)bootargs.flush);
    } else if (strcmp(word, "drain") == 0) {
        bootargs.drain = (enum bootarg_drain)choose(
            word, value, drain, ARRAY_SIZE(drain), (int)bootargs.drain);
    } else if (strcmp(word, "init") == 0) {
        bootargs.selftest = strcmp(value, "selftest") == 0;
        bootargs.init = bootargs.selftest ? "/bin/selftest" : value;
    }
}

/* Cuts the next word off; NULL at the end. Quotes group: a="b c". */
static char *next_word(char **at)
{
    char *p = *at;
    char *word, *to;
    bool quoted = false;

    while (*p == ' ' || *p == '\t' || *p == '\n') {
        p++;
    }
    if (*p == '\0') {
        return NULL;
    }
    word = to = p;
    for (; *p != '\0' && (quoted || (*p != ' ' && *p != '\t')); p++) {
        if (*p == '"') {
            quoted = !quoted;
        } else {
            *to++ = *p;
        }
    }
    *at = *p == '\0' ? p : p + 1;
    *to = '\0';
    return word;
}

void bootargs_parse(const char *line)
{
    char *at = words;
    char *word;
    bool for_init = false;

    if (strlcpy(bootargs.line, line, sizeof(bootargs.line)) >=
        sizeof(bootargs.line)) {
        printk("bootargs: only %u bytes of the command line are used\n",
               (unsigned)sizeof(bootargs.line) - 1);
    }
    memcpy(words, bootargs.line, sizeof(words));
    while ((word = next_word(&at)) != NULL) {
        if (for_init) {
            if (bootargs.argc < BOOTARGS_MAX_ARGV) {
                bootargs.argv[bootargs.argc++] = word;
            }
        } else if (strcmp(word, "--") == 0) {
            for_init = true;
        } else {
            bootargs_word(word);
        }
    }
}

const char *bootargs_get(const char *name, char *buf, size_t size)
{
    size_t len = strlen(name);

    for (const char *p = bootargs.line; *p != '\0';) {
        const char *end = p;

        while (*end != '\0' && *end != ' ') {
            end++;
        }
        if (end - p == 2 && p[0] == '-' && p[1] == '-') {
            return NULL;
        }
        if ((size_t)(end - p) > len && strncmp(p, name, len) == 0 &&
            p[len] == '=') {
            size_t n = min_u64((uint64_t)(end - p) - len - 1, size - 1);

            memcpy(buf, p + len + 1, n);
            buf[n] = '\0';
            return buf;
        }
        p = *end == '\0' ? end : end + 1;
    }
    return NULL;
}

bool bootargs_debug(const char *word)
{
    char list[64];
    size_t len = strlen(word);

    if (bootargs_get("debug", list, sizeof(list)) == NULL) {
        return false;
    }
    for (const char *at = list; *at != '\0';) {
        const char *comma = strchr(at, ',');
        size_t n = comma != NULL ? (size_t)(comma - at) : strlen(at);

        if (n == len && strncmp(at, word, n) == 0) {
            return true;
        }
        at += n + (comma != NULL);
    }
    return false;
}
