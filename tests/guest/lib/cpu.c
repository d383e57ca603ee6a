/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs: start of the program, PSCI by HVC, running a function on several. */
#include "guest.h"

int main(void);
void guest_start(uint64_t x0);
void secondary_start(struct cpu *cpu);
void secondary_entry(void);

struct cpu cpus[MAX_CPUS];
uint8_t stacks[MAX_CPUS][STACK_SIZE] __attribute__((aligned(16)));
uint64_t boot_x0;
static void (*all_fn)(unsigned);
static unsigned all_started; /* CPUs that run all_member() */
static uint32_t all_round, all_done;

/* Runs with the MMU off; a program may define its own. */
void early_main(void);
__attribute__((weak)) void early_main(void)
{
}

void guest_start(uint64_t x0)
{
    boot_x0 = x0;
    cpus[0].mpidr = read_sysreg(mpidr_el1);
    early_main();
    mmu_build();
    mmu_enable();
    main();
    system_off();
}

uint64_t hvc(uint64_t function, uint64_t a1, uint64_t a2, uint64_t a3)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = a1;
    register uint64_t x2 __asm__("x2") = a2;
    register uint64_t x3 __asm__("x3") = a3;

    __asm__ volatile("hvc #0"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                     :
                     : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                       "x13", "x14", "x15", "x16", "x17", "memory");
    return x0;
}

void system_off(void)
{
    hvc(PSCI_SYSTEM_OFF, 0, 0, 0);
    for (;;) {
        __asm__ volatile("wfi");
    }
}

uint64_t cpu_mpidr(unsigned cpu)
{
    return BOARD_CPU_AFFINITY((uint64_t)cpu);
}

unsigned cpu_count(void)
{
    unsigned n = 0;

    while (n < MAX_CPUS &&
           (int32_t)hvc(PSCI_AFFINITY_INFO64, cpu_mpidr(n), 0, 0) >= 0) {
        n++;
    }
    return n;
}

void secondary_start(struct cpu *cpu)
{
    cpu->run(cpu->id);
    store_release(&cpu->done, 1);
    for (;;) {
        __asm__ volatile("wfi");
    }
}

int64_t cpu_start(unsigned cpu, void (*fn)(unsigned))
{
    struct cpu *c = &cpus[cpu];

    c->stack_top = (uint64_t)stacks[cpu] + STACK_SIZE;
    c->id = cpu;
    c->mpidr = cpu_mpidr(cpu);
    c->run = fn;
    c->done = 0;
    dsb_ish();
    return (int32_t)hvc(PSCI_CPU_ON64, c->mpidr, (uint64_t)secondary_entry,
                        (uint64_t)c);
}

void wait_for(const uint32_t *p, uint32_t v)
{
    unsigned spins = 0;

    while (load_acquire(p) != v) {
        if (++spins % 256 == 0) {
            __asm__ volatile("yield");
        }
    }
}

void cpu_wait(unsigned cpu)
{
    wait_for(&cpus[cpu].done, 1);
}

/* A CPU starts once and then waits for work, so that all begin together. */
static void all_member(unsigned cpu)
{
    for (uint32_t round = 1;; round++) {
        wait_for(&all_round, round);
        all_fn(cpu);
        __atomic_fetch_add(&all_done, 1, __ATOMIC_ACQ_REL);
    }
}

void run_on_all(unsigned n, void (*fn)(unsigned))
{
    for (; !all_started || all_started < n; all_started++) {
        int64_t r = all_started ? cpu_start(all_started, all_member) : 0;

        if (r || (all_round && all_started)) {
            print("FAIL: CPU_ON of CPU %u returned %x, round %u\n",
                  (uint64_t)all_started, (uint64_t)r, (uint64_t)all_round);
            finish("run_on_all");
        }
    }
    all_fn = fn;
    all_done = 0;
    store_release(&all_round, all_round + 1);
    fn(0);
    wait_for(&all_done, all_started - 1);
}

uint64_t now(void)
{
    isb();
    return read_sysreg(cntvct_el0);
}

uint64_t counter_hz(void)
{
    return read_sysreg(cntfrq_el0);
}
