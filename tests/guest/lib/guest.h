/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Support of the bare-metal test programs: console, CPUs, page tables, GIC,
 * exceptions. Freestanding; every program links all of it. A program defines
 * main(), which runs on CPU 0 at EL1 with the MMU on, and reports with
 * check(); returning from it switches the machine off.
 */
#ifndef TESTS_GUEST_H
#define TESTS_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/board.h"

#define MAX_CPUS 64
#define STACK_SIZE 0x4000

/* --- what start.S knows the layout of --- */

struct frame {
    uint64_t x[31];
    uint64_t elr, spsr, esr, far, sp_el0;
    uint64_t vector; /* 0..15: offset in the vector table / 0x80 */
    uint64_t pad;
};

/* What an exception left behind; out of probe(). */
struct trap {
    uint64_t vector, elr, spsr, esr, far, sp_el0, x0;
};

struct cpu {
    uint64_t stack_top;
    uint64_t probe_sp;
    struct trap *probe_trap; /* where to report; NULL outside probe() */
    unsigned id;
    uint64_t mpidr;
    void (*run)(unsigned cpu);
    uint32_t done;
    /* interrupts */
    void (*irq)(struct frame *f, unsigned intid); /* NULL: count only */
    uint32_t irqs[32];                            /* by INTID, below 32 */
    uint64_t last_elr;                            /* of the last interrupt */
};
extern struct cpu cpus[MAX_CPUS];

/* Calls fn(arg); 0 if it returned, 1 if it raised a synchronous exception,
 * which is then described by *out and fn is given up where it stood. */
uint64_t probe(void (*fn)(uint64_t), uint64_t arg, struct trap *out);

struct el0_start {
    uint64_t pc, sp, x0, spsr;
};
/* ERETs to that state; for probe(). */
void el0_enter(uint64_t start);

/* --- console and verdicts --- */

/* %u %x %s %c; numbers are uint64_t */
void print(const char *format, ...);
/* Prints "PASS: text" or "FAIL: text"; a FAIL is counted. */
bool check(bool ok, const char *text);
/* As check(got == want), and shows both when they differ. */
bool check_equal(uint64_t got, uint64_t want, const char *text);
/* "RESULT: name: N checks, M failed", then PSCI SYSTEM_OFF. */
void finish(const char *name) __attribute__((noreturn));
void system_off(void) __attribute__((noreturn));

/* --- CPUs --- */

static inline struct cpu *this_cpu(void)
{
    struct cpu *c;

    __asm__ volatile("mrs %0, tpidr_el1" : "=r"(c));
    return c;
}

uint64_t hvc(uint64_t function, uint64_t a1, uint64_t a2, uint64_t a3);
extern uint64_t boot_x0;
/* How many CPUs PSCI knows, at most MAX_CPUS. */
unsigned cpu_count(void);
uint64_t cpu_mpidr(unsigned cpu);
/* Starts CPU at fn(cpu); when fn returns the CPU sets done and sleeps. */
int64_t cpu_start(unsigned cpu, void (*fn)(unsigned));
void cpu_wait(unsigned cpu);
/* fn on CPUs 0..n-1 at once, this one included; returns when all are done.
 * n stays the same from the first call on. */
void run_on_all(unsigned n, void (*fn)(unsigned));

#define PSCI_VERSION 0x84000000u
#define PSCI_CPU_SUSPEND64 0xc4000001u
#define PSCI_CPU_OFF 0x84000002u
#define PSCI_CPU_ON32 0x84000003u
#define PSCI_CPU_ON64 0xc4000003u
#define PSCI_AFFINITY_INFO64 0xc4000004u
#define PSCI_MIGRATE_INFO_TYPE 0x84000006u
#define PSCI_SYSTEM_OFF 0x84000008u
#define PSCI_SYSTEM_RESET 0x84000009u
#define PSCI_FEATURES 0x8400000au

/* --- page tables: identity map, and a window of single pages --- */

#define MAP_VALID 3ull /* page or table */
#define MAP_BLOCK 1ull
#define MAP_DEVICE (0ull << 2)
#define MAP_NORMAL (1ull << 2)
#define MAP_NC (2ull << 2)
#define MAP_EL0 (1ull << 6)
#define MAP_RO (1ull << 7)
#define MAP_ISH (3ull << 8)
#define MAP_AF (1ull << 10)
#define MAP_NG (1ull << 11)
#define MAP_PXN (1ull << 53)
#define MAP_UXN (1ull << 54)
#define MAP_DATA (MAP_VALID | MAP_NORMAL | MAP_ISH | MAP_AF | MAP_PXN | MAP_UXN)
#define MAP_CODE (MAP_VALID | MAP_NORMAL | MAP_ISH | MAP_AF | MAP_RO)

/* 512 pages at WINDOW_VA, none mapped at first; WINDOW_USER_PAGE.. hold the
 * section .user for EL0 (four pages), then one EL0 stack page. */
#define WINDOW_VA 0x100000000ull
#define WINDOW_USER_PAGE 500
#define WINDOW_USER_STACK 505

extern uint64_t level0[512], level1[512], window2[512], window3[512];
void mmu_build(void);
void mmu_enable(void);
static inline uint64_t window_va(unsigned page)
{
    return WINDOW_VA + page * 4096ull;
}
/* Writes the entry and makes it visible; no TLBI. */
void pte_write(uint64_t *entry, uint64_t value);
/* pte_write of the window's page after break, TLBI VAAE1IS and DSB. */
void window_map(unsigned page, uint64_t pa, uint64_t flags);
void window_unmap(unsigned page);
uint64_t user_alias(const void *code); /* of a symbol in section .user */

/* --- GICv3: group 1, non-secure, priorities 0xa0 --- */

void gic_init_dist(void);
void gic_init_cpu(void); /* each CPU, its own */
void gic_enable(unsigned intid);
void gic_priority(unsigned intid, uint8_t priority);
void gic_sgi_raw(uint64_t sgi1r);
void gic_sgi(unsigned cpu, unsigned intid);
uint64_t gicr_base(unsigned cpu);

/* --- small inlines --- */

static inline uint32_t mmio_read32(uint64_t a)
{
    return *(volatile uint32_t *)a;
}
static inline void mmio_write32(uint64_t a, uint32_t v)
{
    *(volatile uint32_t *)a = v;
}
#define read_sysreg(name)                                       \
    ({                                                          \
        uint64_t v_;                                            \
        __asm__ volatile("mrs %0, " #name : "=r"(v_)::"memory"); \
        v_;                                                     \
    })
#define write_sysreg(name, value)                                       \
    __asm__ volatile("msr " #name ", %0" ::"r"((uint64_t)(value)) : "memory")
static inline void isb(void)
{
    __asm__ volatile("isb" ::: "memory");
}
static inline void dsb_ish(void)
{
    __asm__ volatile("dsb ish" ::: "memory");
}
static inline void irq_on(void)
{
    __asm__ volatile("msr daifclr, #2" ::: "memory");
}
static inline void irq_off(void)
{
    __asm__ volatile("msr daifset, #2" ::: "memory");
}
static inline void store_release(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
static inline uint32_t load_acquire(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
/* Spins until *p == v, giving way now and then. */
void wait_for(const uint32_t *p, uint32_t v);
uint64_t now(void);     /* CNTVCT_EL0 */
uint64_t counter_hz(void);

#endif
