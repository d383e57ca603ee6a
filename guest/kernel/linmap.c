/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The linear map beyond what boot/start.S made: 1 GiB blocks for whole GiB of
 * RAM, 2 MiB blocks for the rest, and the second redistributor region. Runs
 * once on the boot CPU, before the others start, so that one local
 * invalidation is enough where entries are taken away.
 */
#include "arch/barrier.h"
#include "arch/pgtable.h"
#include "arch/tlbi.h"
#include "kernel/board.h"
#include "kernel/panic.h"

extern pte_t kernel_l1[PT_ENTRIES];      /* boot/start.S */
extern pte_t kernel_ram_l2[PT_ENTRIES];  /* GiB of the kernel image */
extern pte_t kernel_tail_l2[PT_ENTRIES]; /* last, partial GiB of RAM */

static pa_t linmap_table_pa(const pte_t *table)
{
    return (pa_t)(uintptr_t)table - LINEAR_BASE;
}

/* Every 2 MiB block of the first GiB of RAM that is not wholly RAM goes. */
static void linmap_trim(const struct board_range *ram)
{
    pa_t base = ALIGN_DOWN(ram->start, GIB);

    for (unsigned i = 0; i < PT_ENTRIES; i++) {
        pa_t block = base + i * BLOCK_SIZE;

        if (block + BLOCK_SIZE > ram->end || block < ram->start) {
            pte_write(&kernel_ram_l2[i], 0);
        }
    }
}

static void linmap_extend(const struct board_range *ram)
{
    pa_t pa = ALIGN_DOWN(ram->start, GIB) + GIB;

    for (; pa + GIB <= ram->end; pa += GIB) {
        pte_write(&kernel_l1[pt_index(pa, 1)], pa | PTE_KERNEL_RW);
    }
    if (pa < ram->end) {
        for (unsigned i = 0; pa + (i + 1) * BLOCK_SIZE <= ram->end; i++) {
            pte_write(&kernel_tail_l2[i],
                      (pa + i * BLOCK_SIZE) | PTE_KERNEL_RW);
        }
        pte_write(&kernel_l1[pt_index(pa, 1)],
                  linmap_table_pa(kernel_tail_l2) | PTE_TABLE | PTE_VALID);
    }
}

void linmap_init(const struct board *b)
{
    const struct board_range ram = {b->memory[0].start,
                                    b->memory[b->memory_count - 1].end};

    for (unsigned i = 1; i < b->memory_count; i++) {
        ASSERT_MSG(b->memory[i - 1].end == b->memory[i].start,
                   "RAM must have no holes; the device tree has one at 0x%lx",
                   b->memory[i - 1].end);
    }
    ASSERT_MSG(ram.start == BOARD_RAM_BASE,
               "RAM must begin at 0x%lx; the device tree says 0x%lx",
               BOARD_RAM_BASE, ram.start);
    linmap_trim(&ram);
    linmap_extend(&ram);
    for (unsigned i = 0; i < b->gicr_count; i++) {
        if (b->gicr[i].start >= GIB) {
            pa_t pa = ALIGN_DOWN(b->gicr[i].start, GIB);

            ASSERT_MSG(pa >= ram.end, "redistributors at 0x%lx inside RAM",
                       b->gicr[i].start);
            pte_write(&kernel_l1[pt_index(pa, 1)], pa | PTE_KERNEL_DEVICE);
        }
    }
    dsb_ishst();
    tlbi_vmalle1();
    dsb_nsh();
    isb();
}
