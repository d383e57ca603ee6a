/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the TLB flush code may use, by ID registers and command line. */
#include "mm/flush_opts.h"

#include "arch/sysreg.h"
#include "kernel/annot.h"
#include "kernel/bootargs.h"
#include "kernel/lib.h"
#include "kernel/printk.h"
#include "kernel/smp.h"

#define TCR_AS (1UL << 36)
#define ASID_BITS_MIN 3

struct flush_opts flush_opts = {.asid_bits = 8};

/* "name=no" or "name=yes"; what is there stays where the word is absent. */
static void read_word(const char *name, bool *value, const char *no,
                      const char *yes)
{
    char buf[16];
    const char *text = bootargs_get(name, buf, sizeof(buf));

    if (text == NULL) {
        return;
    }
    if (strcmp(text, yes) == 0) {
        *value = true;
    } else if (strcmp(text, no) == 0) {
        *value = false;
    } else {
        printk("flush: %s=%s is not known, %s stays\n", name, text,
               *value ? yes : no);
    }
}

/* Each CPU may run an address space of its own, whose number nobody takes. */
static unsigned asid_bits_needed(void)
{
    unsigned bits = ASID_BITS_MIN;

    while ((1U << bits) >> flush_opts.kpti < cpu_count) {
        bits++;
    }
    return bits;
}

static void read_asid_bits(void)
{
    char buf[16];
    const char *text = bootargs_get("asid_bits", buf, sizeof(buf));
    unsigned most = read_tcr_el1() & TCR_AS ? 16 : 8;
    uint64_t bits;

    flush_opts.asid_bits = most;
    if (text == NULL) {
        return;
    }
    if (!str_to_u64(text, &bits) || bits < ASID_BITS_MIN || bits > most) {
        printk("flush: asid_bits=%s is not from %u to %u, %u stays\n", text,
               ASID_BITS_MIN, most, most);
        return;
    }
    if (bits < asid_bits_needed()) {
        printk("flush: asid_bits=%s is too few for %u CPUs, %u is used\n", text,
               cpu_count, asid_bits_needed());
        bits = asid_bits_needed();
    }
    flush_opts.asid_bits = (unsigned)bits;
}

void flush_opts_init(void)
{
    struct flush_opts *o = &flush_opts;
    bool has_range = ((read_id_aa64isar0_el1() >> 56) & 15) >= 2;

    o->ttl = ((read_id_aa64mmfr2_el1() >> 48) & 15) >= 1;
    o->range_ops = has_range;
    read_word("tlbirange", &o->range_ops, "off", "on");
    if (o->range_ops && !has_range) {
        printk("flush: tlbirange=on, but the CPU has no range operations\n");
        o->range_ops = false;
    }
    read_word("kpti", &o->kpti, "off", "on");
    read_word("repeat_tlbi", &o->repeat_tlbi, "off", "on");
    o->unit_dsb = annot_features() & ANNOT_FEATURE_REMOTE_UNIT;
    read_word("unit_dsb", &o->unit_dsb, "off", "on");
    read_word("filter", &o->filter_stale, "off", "stale");
    read_word("fast_walk", &o->fast_walk, "off", "on");
    if (bootargs.tlb == BOOTARG_TLB_BROADCAST) {
        read_word("asid_free", &o->asid_free, "off", "on");
        read_word("local_tlbi", &o->local_tlbi, "off", "on");
    }
    read_asid_bits();
}
