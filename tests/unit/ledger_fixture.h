/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small world for the ledger: memory, tables, vCPUs, what was found, and the
 * language of tests/traces (docs/BBM.md and docs/LEDGER.md have it).
 */
#ifndef LEDGER_FIXTURE_H
#define LEDGER_FIXTURE_H

#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mmu/ledger.h"
#include "mmu/desc.h"

#define MEMORY_WORDS 0x2000 /* 64 KiB */
#define MAX_FOUND 16u
#define WORDS 16u

struct world {
    struct ledger *ledger;
    struct ledger_config config;
    uint64_t memory[MEMORY_WORDS];
    struct ledger_violation found[MAX_FOUND];
    unsigned count;
    unsigned op[WORDS], ops; /* kinds that are open, of all vCPUs */
    gpa_t root[LEDGER_VCPUS_MAX][2];
    uint64_t frames;
    /* Of a trace: */
    const char *name;
    unsigned line;
    struct {
        char rule[32], step[32], cause[8];
    } expected[MAX_FOUND];
    unsigned expectations;
    bool is_judged; /* an "expect" was there */
};

__attribute__((unused)) static bool read64(void *opaque, gpa_t pa,
                                           uint64_t *out)
{
    struct world *w = opaque;

    if (pa / 8 >= MEMORY_WORDS) {
        return false;
    }
    *out = w->memory[pa / 8];
    return true;
}

__attribute__((unused)) static const void *page_at(void *opaque, gpa_t pa)
{
    struct world *w = opaque;

    return pa / 8 + MMU_PAGE_SIZE / 8 <= MEMORY_WORDS ? &w->memory[pa / 8]
                                                      : NULL;
}

__attribute__((unused)) static void violation(void *opaque,
                                              const struct ledger_violation *v)
{
    struct world *w = opaque;

    ck_assert_uint_lt(w->count, MAX_FOUND);
    w->found[w->count++] = *v;
}

__attribute__((unused)) static void world_init(struct world *w, unsigned vcpus)
{
    memset(w, 0, sizeof(*w));
    w->config = (struct ledger_config){
        .vcpus = vcpus,
        .rules = LEDGER_RULES_BBM,
        .arena = (size_t)1 << 20,
        .read64 = read64,
        .page = page_at,
        .violation = violation,
        .opaque = w,
    };
}

__attribute__((unused)) static void world_start(struct world *w)
{
    if (!w->ledger) {
        w->ledger = ledger_new(&w->config);
        ck_assert_ptr_nonnull(w->ledger);
    }
}

__attribute__((unused)) static void store(struct world *w, unsigned vcpu,
                                          uint64_t pc, gpa_t pa, uint64_t value)
{
    w->memory[pa / 8] = value;
    ledger_store(w->ledger, vcpu, pc, pa, value);
}

/* Four levels, as the root of that half has them. */
__attribute__((unused)) static void walk(struct world *w, unsigned vcpu,
                                         gva_t va)
{
    unsigned half = va >> 55 & 1;
    gpa_t table = w->root[vcpu][half], at[MMU_LEVELS];
    unsigned count = 0;

    for (unsigned level = 0; level < MMU_LEVELS; level++) {
        uint64_t desc;

        at[count] = table | (va >> mmu_level_shift(level) & 511) << 3;
        if (!read64(w, at[count], &desc)) {
            break;
        }
        count++;
        if (desc_kind(desc, level) != DESC_KIND_TABLE) {
            break;
        }
        table = desc_next_table(desc);
    }
    ledger_walk(w->ledger, half, va, 0, at, count);
    if (half) {
        ledger_walked(w->ledger, vcpu, 0x1000 + w->line, at, count);
    }
}

__attribute__((unused)) static void load_root(struct world *w, unsigned vcpu,
                                              unsigned half, gpa_t root,
                                              uint16_t asid)
{
    w->root[vcpu][half] = root;
    ledger_root_load(w->ledger, vcpu, 0x1000 + w->line, half, root, asid);
}

/* --- traces --- */

__attribute__((unused)) static void refuse(const struct world *w,
                                           const char *what)
{
    ck_abort_msg("%s:%u: %s", w->name, w->line, what);
}

__attribute__((unused)) static uint64_t number(const struct world *w,
                                               const char *word)
{
    char *end;
    uint64_t value = word ? strtoull(word, &end, 0) : 0;

    if (!word || *word == '\0' || *end != '\0') {
        refuse(w, "a number is expected");
    }
    return value;
}

/* A number; or "page PA", "block PA", "table PA", and what they are. */
__attribute__((unused)) static uint64_t descriptor(const struct world *w,
                                                   char **word)
{
    bool is_table, is_block;
    uint64_t value;

    if (!word[0]) {
        refuse(w, "a descriptor is expected");
    }
    if (isdigit((unsigned char)word[0][0])) {
        return number(w, word[0]);
    }
    is_table = strcmp(word[0], "table") == 0;
    is_block = strcmp(word[0], "block") == 0;
    if (!is_table && !is_block && strcmp(word[0], "page") != 0) {
        refuse(w, "a descriptor is a number, page, block or table");
    }
    value = number(w, word[1]) | DESC_VALID;
    value |= is_block ? 0 : DESC_TABLE_OR_PAGE;
    value |= is_table ? 0 : DESC_AF | DESC_NG | DESC_SH(3);
    for (word += 2; *word; word++) {
        if (strcmp(*word, "ro") == 0) {
            value |= DESC_AP_READ_ONLY;
        } else if (strcmp(*word, "noaf") == 0) {
            value &= ~DESC_AF;
        } else if (strcmp(*word, "global") == 0) {
            value &= ~DESC_NG;
        } else if (strcmp(*word, "user") == 0) {
            value |= DESC_AP_EL0;
        } else if (strcmp(*word, "noexec") == 0) {
            value |= DESC_UXN | DESC_PXN;
        } else if (strcmp(*word, "dbm") == 0) {
            value |= DESC_DBM;
        } else if (strcmp(*word, "cont") == 0) {
            value |= DESC_CONTIGUOUS;
        } else if (strcmp(*word, "attr") == 0) {
            value |= DESC_ATTR(number(w, *++word));
        } else {
            refuse(
                w,
                "of a page: ro, noaf, global, user, noexec, dbm, cont, attr N");
        }
    }
    return value;
}

__attribute__((unused)) static struct tlbi_op tlbi_named(const struct world *w,
                                                         char **word)
{
    uint64_t va = 0, asid = 0, ttl = 0, pages = 0;
    struct tlbi_op op;

    for (char **p = word + 1; *p; p++) {
        if (strcmp(*p, "asid") == 0) {
            asid = number(w, *++p);
        } else if (strcmp(*p, "ttl") == 0) {
            ttl = number(w, *++p);
        } else if (strcmp(*p, "pages") == 0) {
            pages = number(w, *++p);
        } else {
            va = number(w, *p);
        }
    }
    for (unsigned crm = 0; crm < 16; crm++) {
        for (unsigned op2 = 0; op2 < 8; op2++) {
            uint64_t xt = asid << 48;
            bool known = tlbi_decode(0, 8, crm, op2, xt, true, &op);

            if (!known || strcasecmp(tlbi_name(&op), word[0]) != 0) {
                continue;
            }
            if (op.is_range) {
                if (pages < 2 || pages > 64 || pages % 2) {
                    refuse(w, "a range has 2 to 64 pages, an even number");
                }
                xt |= UINT64_C(1) << 46 | (pages / 2 - 1) << 39 | ttl << 37 |
                      (va >> 12 & ((UINT64_C(1) << 37) - 1));
            } else {
                xt |= (ttl ? 4 | ttl : 0) << 44 |
                      (va >> 12 & ((UINT64_C(1) << 44) - 1));
            }
            ck_assert(tlbi_decode(0, 8, crm, op2, xt, true, &op));
            return op;
        }
    }
    refuse(w, "no such TLBI");
    return op;
}

__attribute__((unused)) static struct ledger_dsb
dsb_named(const struct world *w, const char *name)
{
    static const char *const names[16] = {
        [1] = "oshld", [2] = "oshst", [3] = "osh",   [5] = "nshld",
        [6] = "nshst", [7] = "nsh",   [9] = "ishld", [10] = "ishst",
        [11] = "ish",  [13] = "ld",   [14] = "st",   [15] = "sy",
    };

    for (unsigned crm = 0; name && crm < 16; crm++) {
        if (names[crm] && strcmp(names[crm], name) == 0) {
            return ledger_dsb_of_crm(crm);
        }
    }
    refuse(w, "no such DSB");
    return ledger_dsb_of_crm(0);
}

/* A root at `pa`, then a table of each lower level. */
__attribute__((unused)) static void standard_layout(struct world *w, gpa_t root)
{
    for (gpa_t pa = root; pa < root + 0x3000; pa += 0x1000) {
        w->memory[pa / 8] = (pa + 0x1000) | DESC_VALID | DESC_TABLE_OR_PAGE;
    }
}

/* And all vCPUs have it, as ASID 1. */
__attribute__((unused)) static void standard_tables(struct world *w)
{
    standard_layout(w, 0x1000);
    world_start(w);
    for (unsigned v = 0; v < w->config.vcpus; v++) {
        load_root(w, v, 0, 0x1000, 1);
        walk(w, v, 0);
    }
}

__attribute__((unused)) static void set_up(struct world *w, char **word)
{
    if (strcmp(word[0], "expect") == 0 && word[1]) {
        w->is_judged = true;
        if (strcmp(word[1], "bad") == 0) {
            if (!word[2] || !word[3] || w->expectations == MAX_FOUND) {
                refuse(w, "expect bad RULE STEP");
            }
            (void)snprintf(w->expected[w->expectations].rule, 32, "%s",
                           word[2]);
            (void)snprintf(w->expected[w->expectations].step, 32, "%s",
                           word[3]);
            (void)snprintf(w->expected[w->expectations++].cause, 8, "%s",
                           word[4] ? word[4] : "");
        } else if (strcmp(word[1], "good") != 0) {
            refuse(w, "expect good, or bad RULE STEP");
        }
    } else if (strcmp(word[0], "vcpus") == 0) {
        w->config.vcpus = (unsigned)number(w, word[1]);
    } else if (strcmp(word[0], "strict") == 0) {
        w->config.strict = true;
    } else if (strcmp(word[0], "windows") == 0) {
        w->config.windows = true;
    } else if (strcmp(word[0], "ledger") == 0) {
        w->config.rules = LEDGER_RULES_ALL;
    } else if (strcmp(word[0], "ipi") == 0) {
        w->config.ipi = true;
    } else if (strcmp(word[0], "early") == 0) {
        w->config.early_dsb = true;
    } else if (strcmp(word[0], "units") == 0) {
        w->config.own_dsb = true;
    } else if (strcmp(word[0], "bbm2") == 0) {
        w->config.bbm2 = true;
    } else if (strcmp(word[0], "hd") == 0) {
        w->config.hardware_dirty = true;
    } else if (strcmp(word[0], "mem") == 0) {
        gpa_t pa = number(w, word[1]);

        if (pa / 8 >= MEMORY_WORDS || !word[2] || strcmp(word[2], "=") != 0) {
            refuse(w, "mem PA = DESCRIPTOR, below 64 KiB");
        }
        w->memory[pa / 8] = descriptor(w, word + 3);
    } else if (strcmp(word[0], "layout") == 0) {
        standard_layout(w, word[1] ? number(w, word[1]) : 0x1000);
    } else if (strcmp(word[0], "tables") == 0) {
        standard_tables(w);
    } else {
        refuse(w, "not understood");
    }
}

__attribute__((unused)) static enum ledger_contract
contract_named(const struct world *w, const char *name)
{
    static const char *const names[] = {"none", "nowrite", "noaccess"};

    for (unsigned i = 0; name && i < LEDGER_CONTRACTS; i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum ledger_contract)i;
        }
    }
    refuse(w, "a contract is none, nowrite or noaccess");
    return LEDGER_CONTRACT_NONE;
}

__attribute__((unused)) static bool said_event(struct world *w, unsigned vcpu,
                                               char **word)
{
    uint64_t pc = 0x1000 + w->line;

    if (strcmp(word[0], "swalk") == 0) {
        ledger_soft_walk_begin(w->ledger, vcpu,
                               word[1] ? number(w, word[1]) : 0);
    } else if (strcmp(word[0], "swalked") == 0) {
        ledger_soft_walk_end(w->ledger, vcpu);
    } else if (strcmp(word[0], "ask") == 0) {
        ledger_flush_ask(w->ledger, vcpu, number(w, word[1]));
    } else if (strcmp(word[0], "waited") == 0) {
        ledger_flush_waited(w->ledger, vcpu, pc, number(w, word[1]));
    } else if (strcmp(word[0], "served") == 0) {
        ledger_flush_served(w->ledger, vcpu,
                            word[1] ? UINT64_C(1) << number(w, word[1])
                                    : UINT64_MAX);
    } else if (strcmp(word[0], "resume") == 0) {
        ledger_flush_resume(w->ledger, vcpu, pc, vcpu);
    } else if (strcmp(word[0], "clean") == 0) {
        ledger_frame_clean(w->ledger, vcpu, pc, number(w, word[1]));
    } else if (strcmp(word[0], "drop") == 0) {
        ledger_frame_drop(w->ledger, vcpu, pc, number(w, word[1]));
    } else {
        return false;
    }
    return true;
}

/* What the program says of itself. */
__attribute__((unused)) static bool contract_event(struct world *w,
                                                   unsigned vcpu, char **word)
{
    uint64_t pc = 0x1000 + w->line;

    if (strcmp(word[0], "free") == 0) {
        ledger_frame_free(w->ledger, vcpu, pc, number(w, word[1]));
    } else if (strcmp(word[0], "alloc") == 0) {
        ledger_frame_alloc(w->ledger, vcpu, pc, number(w, word[1]));
    } else if (strcmp(word[0], "io") == 0) {
        ledger_io_begin(w->ledger, vcpu, pc, number(w, word[1]));
    } else if (strcmp(word[0], "copy") == 0) {
        ledger_copy_begin(w->ledger, vcpu, pc, number(w, word[1]));
    } else if (strcmp(word[0], "dying") == 0) {
        ledger_root_dying(w->ledger, number(w, word[1]));
    } else if (strcmp(word[0], "op") == 0 && word[1] && word[2] && word[3]) {
        if (w->ops < WORDS) {
            w->op[w->ops++] = (unsigned)number(w, word[1]);
        }
        ledger_op_begin(w->ledger, vcpu,
                        word[4] && word[5] ? number(w, word[5]) : 0,
                        (unsigned)number(w, word[1]), number(w, word[2]),
                        number(w, word[3]), contract_named(w, word[4]));
    } else if (strcmp(word[0], "ret") == 0 && (word[1] || w->ops)) {
        ledger_op_end(w->ledger, vcpu, pc,
                      word[1] && word[2] ? number(w, word[2]) : 0,
                      word[1] ? (unsigned)number(w, word[1]) : w->op[--w->ops]);
    } else {
        return said_event(w, vcpu, word);
    }
    return true;
}

__attribute__((unused)) static void event(struct world *w, unsigned vcpu,
                                          char **word)
{
    uint64_t pc = 0x1000 + w->line;

    world_start(w);
    if (!word[0] || vcpu >= w->config.vcpus) {
        refuse(w, "V: EVENT");
    }
    if (contract_event(w, vcpu, word)) {
        return;
    }
    if (strcmp(word[0], "store") == 0 || strcmp(word[0], "hw") == 0) {
        gpa_t pa = number(w, word[1]);

        if (pa / 8 >= MEMORY_WORDS || !word[2] || strcmp(word[2], "=") != 0) {
            refuse(w, "store PA = DESCRIPTOR, below 64 KiB");
        }
        if (word[0][0] == 's') {
            store(w, vcpu, pc, pa, descriptor(w, word + 3));
        } else {
            w->memory[pa / 8] = descriptor(w, word + 3);
            ledger_update(w->ledger, pa, w->memory[pa / 8]);
        }
    } else if (strcmp(word[0], "tlbi") == 0 && word[1]) {
        struct tlbi_op op = tlbi_named(w, word + 1);

        ledger_tlbi(w->ledger, vcpu, pc, &op);
    } else if (strcmp(word[0], "dsb") == 0) {
        ledger_dsb(w->ledger, vcpu, pc, dsb_named(w, word[1]));
    } else if (strcmp(word[0], "root") == 0 && word[1] && word[2] && word[3] &&
               strcmp(word[3], "asid") == 0) {
        load_root(w, vcpu, (unsigned)number(w, word[1]), number(w, word[2]),
                  (uint16_t)number(w, word[4]));
    } else if (strcmp(word[0], "walk") == 0) {
        walk(w, vcpu, number(w, word[1]));
    } else if (strcmp(word[0], "el") == 0) {
        ledger_el(w->ledger, vcpu, (unsigned)number(w, word[1]));
    } else if (strcmp(word[0], "fault") == 0) {
        uint64_t times = word[2] ? number(w, word[2]) : 1;

        while (times-- > 0) {
            ledger_fault(w->ledger, vcpu, pc, number(w, word[1]));
        }
    } else if (strcmp(word[0], "svc") == 0) {
        ledger_progress(w->ledger, vcpu);
    } else if (strcmp(word[0], "hit") == 0) {
        ledger_hit(w->ledger, vcpu, number(w, word[1]));
    } else if (strcmp(word[0], "isb") == 0) {
        ledger_synced(w->ledger, vcpu, LEDGER_SYNC_ISB);
    } else if (strcmp(word[0], "take") == 0) {
        ledger_synced(w->ledger, vcpu,
                      number(w, word[1]) ? LEDGER_SYNC_TAKEN_EL1
                                         : LEDGER_SYNC_TAKEN_EL0);
    } else if (strcmp(word[0], "eret") == 0) {
        ledger_synced(w->ledger, vcpu, LEDGER_SYNC_RETURN);
    } else if (strcmp(word[0], "off") == 0) {
        ledger_vcpu_off(w->ledger, vcpu);
    } else {
        refuse(w, "not understood");
    }
}

__attribute__((unused)) static void run_line(struct world *w, char *line)
{
    char *word[WORDS + 1] = {NULL}, *save = NULL;
    unsigned count = 0;

    line[strcspn(line, "#\r\n")] = '\0';
    for (char *p = strtok_r(line, " \t", &save); p && count < WORDS;
         p = strtok_r(NULL, " \t", &save)) {
        word[count++] = p;
    }
    if (count == 0) {
        return;
    }
    if (isdigit((unsigned char)word[0][0]) &&
        word[0][strlen(word[0]) - 1] == ':') {
        word[0][strlen(word[0]) - 1] = '\0';
        event(w, (unsigned)number(w, word[0]), word + 1);
    } else {
        set_up(w, word);
    }
}

__attribute__((unused)) static void judge(const struct world *w)
{
    char cause[16];

    ck_assert_msg(w->is_judged, "%s: no expect", w->name);
    for (unsigned i = 0; i < w->count || i < w->expectations; i++) {
        const char *rule =
            i < w->count ? ledger_rule_name(w->found[i].rule) : "nothing";
        const char *step =
            i < w->count ? ledger_step_name(w->found[i].step) : "";

        ck_assert_msg(i < w->expectations,
                      "%s: '%s %s' at line %" PRIu64 ", but it is good",
                      w->name, rule, step, w->found[i].now_pc - 0x1000);
        (void)snprintf(cause, sizeof(cause), "S%u",
                       i < w->count ? ledger_cause(w->found[i].step) : 0);
        ck_assert_msg(strcmp(rule, w->expected[i].rule) == 0 &&
                          strcmp(step, w->expected[i].step) == 0 &&
                          (w->expected[i].cause[0] == '\0' ||
                           strcmp(cause, w->expected[i].cause) == 0),
                      "%s: found %s %s %s, expected %s %s %s", w->name, rule,
                      step, cause, w->expected[i].rule, w->expected[i].step,
                      w->expected[i].cause);
    }
}

__attribute__((unused)) static uint64_t page_desc(gpa_t pa)
{
    return pa | DESC_VALID | DESC_TABLE_OR_PAGE | DESC_AF | DESC_NG |
           DESC_SH(3);
}

__attribute__((unused)) static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

#endif
