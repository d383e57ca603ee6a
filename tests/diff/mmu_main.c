/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential MMU test: random tables, and what translations through
 * them gave, in a form that two machines can be compared by.
 *
 * Words of the command line (the device tree's bootargs):
 *   seed=N      of everything (1)
 *   first=N     the first table's number (0)
 *   tables=N    how many (200)
 *   verbose=N   print table N, its descriptors and each operation
 *
 * One line a table: its number and a hash of all that was seen; at the end how
 * often each kind of operation had each outcome. Every table depends on the
 * seed and its number only, so that one alone can be run again.
 */
#include "mmu_diff.h"

extern char __image_start[], __user_start[], __user_end[], __image_data_end[];

#define SCTLR_M_C_I 0x1005ull
#define TCR_EPD1 (1ull << 23)
#define TCR_A_HIGH (16ull << 16 | 0x3500ull << 16 | 2ull << 30)
#define TCR_HALF0 (0xffffull | 1ull << 37 | 1ull << 41)
#define TCR_HALF1 (0xffbf0000ull | 1ull << 38 | 1ull << 42)

#define ESR_EC(esr) ((esr) >> 26 & 0x3f)
#define FSC_MASK 0x3f
#define PAR_PA 0x0000fffffffff000ull
/* PSTATE of features that one machine has: BTYPE, SSBS, DIT, TCO. */
#define SPSR_MASKED (3ull << 10 | 1ull << 12 | 1ull << 24 | 1ull << 25)

/* All that regime B's home holds besides the image. */
static struct {
    struct call call;
    struct batch batch;
    uint8_t stack[8192] __attribute__((aligned(16)));
} shared __attribute__((aligned(4096)));

static uint64_t high0[512] __attribute__((aligned(4096)));
static uint64_t high1[512] __attribute__((aligned(4096)));
static uint64_t high2[512] __attribute__((aligned(4096)));
static uint64_t low2[512] __attribute__((aligned(4096)));
static uint64_t home3[512] __attribute__((aligned(4096)));

static struct tables tables;
/* By kind of operation and outcome: a fault status, or one of these. */
enum { OUT_SKIPPED = 64, OUT_DONE, OUT_TRAP, OUTCOMES };
static uint64_t outcomes[KINDS][OUTCOMES];

/* --- regime A, and the home --- */

static void map_home(uint64_t from, uint64_t to, uint64_t flags)
{
    for (uint64_t a = from; a < to; a += 4096) {
        home3[(a - (uint64_t)__image_start) >> 12] = a | flags;
    }
}

static void build_regime_a(void)
{
    const uint64_t device = MAP_BLOCK | MAP_DEVICE | MAP_AF | MAP_PXN | MAP_UXN;

    map_home((uint64_t)__image_start, (uint64_t)__user_start,
             MAP_CODE | MAP_UXN);
    map_home((uint64_t)__user_start, (uint64_t)__user_end,
             MAP_CODE | MAP_PXN | MAP_EL0);
    map_home((uint64_t)__user_end, (uint64_t)__image_data_end, MAP_DATA);
    map_home((uint64_t)&shared, (uint64_t)(&shared + 1), MAP_DATA);
    for (unsigned i = 0; i < 512; i++) {
        low2[i] = ((uint64_t)i << 21) | device;
    }
    low2[HOME_LOW >> 21 & 511] = (uint64_t)home3 | MAP_VALID;
    high2[HOME_HIGH >> 21 & 511] = (uint64_t)home3 | MAP_VALID;
    high1[511] = (uint64_t)high2 | MAP_VALID;
    high0[511] = (uint64_t)high1 | MAP_VALID;
    pte_write(&level1[0], 0);
    __asm__ volatile("tlbi vmalle1; dsb nsh; isb" ::: "memory");
    pte_write(&level1[0], (uint64_t)low2 | MAP_VALID);
    write_sysreg(ttbr1_el1, (uint64_t)high0);
    write_sysreg(tcr_el1, (read_sysreg(tcr_el1) & ~TCR_HALF1) | TCR_A_HIGH);
    isb();
}

/* --- the pool: words that are data, and code that says where it is --- */

/*
 * BRK with 16 bits of the index of the 8 bytes that they are half of. (SVC
 * would do as well, but has bit 0 set: a valid descriptor, of nonsense, where
 * a table entry leads into the pool.)
 */
static uint64_t pool_pair(uint64_t index)
{
    uint64_t first = index & 0xffff, second = (index >> 2 ^ 0xa5a5) & 0xffff;

    return (0xd4200000 | first << 5) | (0xd4200000 | second << 5) << 32;
}

static volatile uint64_t *pool_at(uint64_t pa)
{
    return (volatile uint64_t *)(pa & ~7ull);
}

static void pool_restore(uint64_t pa)
{
    *pool_at(pa) = pool_pair(((pa & ~7ull) - POOL) / 8);
}

static void pool_build(void)
{
    for (uint64_t pa = POOL; pa < POOL + POOL_SIZE; pa += 8) {
        pool_restore(pa);
    }
    __asm__ volatile("dsb ish; ic ialluis; dsb ish; isb" ::: "memory");
}

/* --- one table --- */

static bool is_abort(uint64_t esr)
{
    unsigned ec = (unsigned)ESR_EC(esr);

    return ec == 0x20 || ec == 0x21 || ec == 0x24 || ec == 0x25;
}

/* Takes out what an operation leaves to chance. */
static void normalise(struct op *op)
{
    if (op->status <= STATUS_DONE) {
        op->esr = op->far = op->elr = op->spsr = 0;
        return;
    }
    op->spsr &= ~SPSR_MASKED;
    if (!is_abort(op->esr) && ESR_EC(op->esr) != 0x22) {
        op->far = 0; /* UNKNOWN */
    }
}

static unsigned outcome_of(const struct op *op)
{
    if (op->status == STATUS_SKIPPED) {
        return OUT_SKIPPED;
    }
    if (op->status == STATUS_DONE) {
        return op->kind < KIND_ACCESS && (op->read & 1)
                   ? (unsigned)(op->read >> 1 & FSC_MASK)
                   : OUT_DONE;
    }
    if (is_abort(op->esr)) {
        return op->esr & FSC_MASK;
    }
    /* The pool's code ends in BRK, the stubs at EL0 in SVC. */
    return ESR_EC(op->esr) == 0x3c || ESR_EC(op->esr) == 0x15 ? OUT_DONE
                                                              : OUT_TRAP;
}

/* The line of 64 bytes at pa becomes as it was. */
static void check_line(uint64_t *hash, uint64_t pa)
{
    if (pa < POOL || pa >= POOL + POOL_SIZE) {
        return;
    }
    pa &= ~63ull;
    for (uint64_t a = pa; a < pa + 64; a += 8) {
        mix(hash, *pool_at(a));
        pool_restore(a);
    }
}

/* What a store left where the AT said that it would go. */
static uint64_t check_pool(const struct op *op)
{
    uint64_t hash = 0;

    if (op->kind < KIND_STR || (op->par & 1)) {
        return 0;
    }
    check_line(&hash, (op->par & PAR_PA) | (op->va & 0xfff));
    if (op->kind == KIND_CROSS_STR && !(op->next_par & 1)) {
        check_line(&hash, op->next_par & PAR_PA);
    }
    return hash;
}

static const char *const kind_names[KINDS] = {
    "AT_S1E1R",  "AT_S1E1W",  "AT_S1E0R", "AT_S1E0W", "AT_S1E1RP", "AT_S1E1WP",
    "LDR",       "LDRB",      "LDP",      "STR",      "STP",       "LDTR",
    "STTR",      "LDADD",     "STLXR",    "ZVA",      "SWP",       "CAS",
    "CROSS_LDR", "CROSS_STR", "BR",       "EL0_LDR",  "EL0_STR",   "EL0_LDADD",
    "EL0_ZVA",   "EL0_EXEC",
};

static uint64_t record(struct batch *b, bool verbose)
{
    uint64_t hash = 0;

    for (unsigned i = 0; i < OPS; i++) {
        struct op *op = &b->op[i];
        uint64_t pool;

        normalise(op);
        pool = op->status == STATUS_SKIPPED ? 0 : check_pool(op);
        mix(&hash, op->status);
        mix(&hash, op->esr);
        mix(&hash, op->far);
        mix(&hash, op->elr);
        mix(&hash, op->spsr);
        mix(&hash, op->read);
        mix(&hash, pool);
        outcomes[op->kind][outcome_of(op)]++;
        if (verbose) {
            print("op %u %s va %x pstate %u value %x par %x", (uint64_t)i,
                  kind_names[op->kind], op->va, (uint64_t)op->pstate, op->value,
                  op->par);
            print(" status %x esr %x far %x elr %x spsr %x read %x pool %x\n",
                  op->status, op->esr, op->far, op->elr, op->spsr, op->read,
                  pool);
        }
    }
    return hash;
}

static void one_table(uint64_t seed, uint64_t number, bool verbose)
{
    struct call *call = &shared.call;
    struct batch *b = &shared.batch;
    uint64_t home, own;

    tables_build(&tables, seed, number);
    tables_pick(&tables, b);
    home = (tables.home ? HOME_HIGH : HOME_LOW) - (uint64_t)__image_start;
    own = tables.home ? TCR_HALF1 : TCR_HALF0;
    call->b = tables.regs;
    call->home_high = tables.home;
    call->home = home;
    call->transit =
        (tables.home ? HOME_LOW : HOME_HIGH) - (uint64_t)__image_start;
    call->tcr_in = (call->a.tcr & ~own) | (call->b.tcr & own);
    call->tcr_out = (call->b.tcr & own) | (call->a.tcr & ~own);
    if (verbose) {
        print("table %u\n", number);
        tables_print(&tables);
        for (unsigned i = 0; i < PHASES; i++) {
            const struct phase *p = &b->phase[i];

            print("  phase %u first %u ttbr0 %x ttbr1 %x asid %x forget %u\n",
                  (uint64_t)i, (uint64_t)p->first, p->ttbr0, p->ttbr1, p->asid,
                  (uint64_t)p->forget);
        }
    }
    dsb_ish();
    regime_call(call);
    print("table %u ops %u hash %x\n", number, (uint64_t)OPS,
          record(b, verbose));
}

static void print_outcomes(void)
{
    for (unsigned k = 0; k < KINDS; k++) {
        for (unsigned o = 0; o < OUTCOMES; o++) {
            if (!outcomes[k][o]) {
                continue;
            }
            print("count %s ", kind_names[k]);
            if (o == OUT_SKIPPED) {
                print("skipped");
            } else if (o == OUT_DONE) {
                print("done");
            } else if (o == OUT_TRAP) {
                print("trap");
            } else {
                print("fsc%x", (uint64_t)o);
            }
            print(" %u\n", outcomes[k][o]);
        }
    }
}

int main(void)
{
    const char *words = words_get();
    uint64_t seed = words_number(words, "seed", 1);
    uint64_t first = words_number(words, "first", 0);
    uint64_t count = words_number(words, "tables", 200);
    uint64_t verbose = words_number(words, "verbose", ~0ull);

    build_regime_a();
    pool_build();
    tables_set_home(home3, 512);
    shared.call.a = (struct regs){
        .ttbr0 = read_sysreg(ttbr0_el1),
        .ttbr1 = read_sysreg(ttbr1_el1),
        .tcr = read_sysreg(tcr_el1),
        .mair = read_sysreg(mair_el1),
        .sctlr = read_sysreg(sctlr_el1),
    };
    shared.call.stack = (uint64_t)shared.stack + sizeof(shared.stack);
    shared.call.batch = (uint64_t)&shared.batch;
    shared.batch.pool = POOL;
    shared.batch.pool_size = POOL_SIZE;
    print("mmu_diff seed %u first %u tables %u\n", seed, first, count);
    for (uint64_t i = first; i < first + count; i++) {
        one_table(seed, i, i == verbose);
    }
    print_outcomes();
    print("end: %u tables, %u operations\n", count, count * OPS);
    system_off();
}
