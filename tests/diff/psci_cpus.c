/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differential PSCI test: the lives of CPUs, waiting for them, and what is
 * seen of them.
 */
#include "psci_diff.h"

#define PATIENCE_S 20
#define GICR_ICENABLER0 0x10180
#define GICR_ICPENDR0 0x10280
#define SCTLR_MMU_OFF 0x30d00800ull
#define TIGHT_SPINS 1000
#define SCTLR_SEEN (1u << 0 | 1u << 2 | 1u << 12 | 1u << 25) /* M C I EE */

_Static_assert(sizeof(struct record) == RECORD_SIZE, "RECORD_SIZE");
_Static_assert(offsetof(struct record, cpu) == RECORD_CPU, "RECORD_CPU");
_Static_assert(offsetof(struct record, x0) == RECORD_X0, "RECORD_X0");
_Static_assert(offsetof(struct record, el) == RECORD_EL, "RECORD_EL");
_Static_assert(offsetof(struct record, spsel) == RECORD_SPSEL, "RECORD_SPSEL");
_Static_assert(offsetof(struct record, mpidr) == RECORD_MPIDR, "RECORD_MPIDR");

extern uint8_t stacks[MAX_CPUS][STACK_SIZE];
void psci_leave(uint64_t how, uint64_t function, uint64_t sctlr,
                uint64_t *out_returned);

struct record records[CPUS_MAX];
struct order orders[CPUS_MAX];
bool is_on[CPUS_MAX];
uint32_t turn;
struct diff_case now_at = {.leaver = NOBODY};

void note(const char *format, uint64_t a, uint64_t b, uint64_t c)
{
    if (now_at.talks) {
        print(format, a, b, c);
    }
}

void wrong(const char *what, unsigned cpu)
{
    print("\nwrong: table %u op %u: CPU %u %s\n", now_at.table,
          (uint64_t)now_at.number, (uint64_t)cpu, what);
    system_off();
}

static void give_way(void)
{
    __asm__ volatile("yield" ::: "memory");
}

static uint64_t deadline(void)
{
    return now() + PATIENCE_S * counter_hz();
}

void await(const uint32_t *p, uint32_t v, const char *what, unsigned cpu)
{
    uint64_t end = deadline();

    while (load_acquire(p) != v) {
        give_way();
        if (now() > end) {
            wrong(what, cpu);
        }
    }
}

int32_t state_of(unsigned cpu)
{
    return (int32_t)hvc(PSCI_AFFINITY_INFO64, cpu_mpidr(cpu), 0, 0);
}

void await_off(unsigned cpu)
{
    const volatile uint64_t *returned = &orders[cpu].off_returned;
    uint64_t end = deadline();

    while (state_of(cpu) != 1) {
        give_way();
        if (*returned != NOBODY || now() > end) {
            wrong("does not go off", cpu);
        }
    }
    is_on[cpu] = false;
}

void before_on(unsigned target)
{
    records[target] = (struct record){.cpu = &cpus[target], .entry = ~0ull};
    orders[target] = (struct order){.off_returned = NOBODY};
    cpus[target].stack_top = (uint64_t)stacks[target] + STACK_SIZE;
    cpus[target].id = target;
    cpus[target].run = live;
    dsb_ish();
}

void give_order(unsigned cpu, enum order_kind kind)
{
    orders[cpu].begun = 0;
    orders[cpu].done = 0;
    orders[cpu].go = 0;
    store_release(&orders[cpu].kind, kind);
}

uint64_t acknowledge(void)
{
    uint64_t intid = read_sysreg(icc_iar1_el1);

    isb();
    if (intid < SPURIOUS) {
        write_sysreg(icc_eoir1_el1, intid);
        isb();
    }
    return intid;
}

uint64_t suspend(const uint64_t arg[3], bool wide, uint64_t salt,
                 struct answer *out)
{
    uint64_t intid;

    do {
        *out = call(FN(CPU_SUSPEND, wide), arg, salt, true);
        intid = acknowledge();
    } while (intid >= SPURIOUS && out->x0 == 0 && out->changed == 0);
    return intid;
}

static void obey(unsigned cpu, struct order *o)
{
    uint64_t how;

    switch (load_acquire(&o->kind)) {
    case ORDER_OFF:
        o->kind = ORDER_NONE;
        how = o->arg[0];
        /* From here on the order may be that of its next life. */
        store_release(&o->begun, 1);
        psci_leave(how, PSCI_CPU_OFF, SCTLR_MMU_OFF, &o->off_returned);
        break;
    case ORDER_SUSPEND:
        o->kind = ORDER_NONE;
        store_release(&o->begun, 1);
        o->intid = suspend(o->arg, o->wide, o->arg[2], &o->answer);
        store_release(&o->done, 1);
        break;
    case ORDER_RACE:
        o->kind = ORDER_NONE;
        store_release(&o->begun, 1);
        for (unsigned i = 0; load_acquire(&o->go) == 0; i++) {
            if (i > TIGHT_SPINS) {
                give_way();
            }
        }
        o->answer.x0 =
            hvc(PSCI_CPU_ON64, o->arg[0], entry_at(cpu), o->arg[1] + cpu);
        store_release(&o->done, 1);
        break;
    default:
        give_way();
    }
}

void live(unsigned cpu)
{
    uint64_t gicr = gicr_base(cpu);

    /* Of what it had before it was off anything may be left. */
    mmio_write32(gicr + GICR_ICPENDR0, ~0u);
    mmio_write32(gicr + GICR_ICENABLER0, ~0u);
    gic_init_cpu();
    store_release(&records[cpu].arrived, 1);
    for (;;) {
        if (load_acquire(&turn) == cpu) {
            step(cpu);
        } else {
            obey(cpu, &orders[cpu]);
        }
    }
}

/* --- for who has the turn --- */

unsigned how_many_on(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < now_at.cpus; i++) {
        n += is_on[i];
    }
    return n;
}

unsigned random_on(unsigned but)
{
    for (;;) {
        unsigned cpu = rng_below(&now_at.rng, now_at.cpus);

        if (is_on[cpu] && cpu != but) {
            return cpu;
        }
    }
}

unsigned random_off(void)
{
    for (;;) {
        unsigned cpu = rng_below(&now_at.rng, now_at.cpus);

        if (!is_on[cpu]) {
            return cpu;
        }
    }
}

void arrived(unsigned target, bool wide, unsigned entry, uint64_t ctx)
{
    struct record *r = &records[target];
    uint64_t seen[5];

    await(&r->arrived, 1, "does not come", target);
    is_on[target] = true;
    seen[0] = (wide ? r->x0 == ctx : (uint32_t)r->x0 == (uint32_t)ctx) &&
              r->entry == entry;
    seen[1] = r->el | r->daif << 8 | r->spsel << 32;
    seen[2] = r->sctlr & SCTLR_SEEN;
    seen[3] = r->mpidr & BOARD_MPIDR_AFFINITY_MASK;
    seen[4] = r->cntfrq;
    for (unsigned i = 0; i < 5; i++) {
        mix(&now_at.hash, seen[i]);
    }
    note(" [CPU %u x0 and entry as asked %u el %x", target, seen[0], r->el);
    note(" daif %x spsel %u sctlr %x", r->daif, r->spsel, seen[2]);
    note(" mpidr %x cntfrq %u]", seen[3], seen[4], 0);
}

void note_changed(const struct answer *a)
{
    mix(&now_at.hash, a->changed);
    if (a->changed) {
        note(" CHANGED %x", a->changed, 0, 0);
    }
}

int64_t ask(uint32_t fn, uint64_t a1, uint64_t a2, uint64_t a3)
{
    const uint64_t arg[3] = {a1, a2, a3};
    struct answer a = call(fn, arg, rng_next(&now_at.rng), false);

    note(" %x(%x, %x, ", fn, a1, a2);
    note("%x)", a3, 0, 0);
    note_changed(&a);
    /* A 32-bit call leaves the upper half of x0 open. */
    return fn & PSCI_64 ? (int64_t)a.x0 : (int64_t)(int32_t)a.x0;
}
