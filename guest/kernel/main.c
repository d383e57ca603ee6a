/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order in which the kernel comes up; then CPU 0 is its own idle task. */
#include "drivers/gic.h"
#include "drivers/pl011.h"
#include "drivers/timer.h"
#include "kernel/annot.h"
#include "kernel/board.h"
#include "kernel/bootargs.h"
#include "kernel/bug.h"
#include "kernel/console.h"
#include "kernel/file.h"
#include "kernel/futex.h"
#include "kernel/ktest.h"
#include "kernel/lock_order.h"
#include "kernel/panic.h"
#include "kernel/printk.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/time.h"
#include "mm/counters.h"
#include "mm/like.h"
#include "mm/mm.h"
#include "mm/numa.h"
#include "mm/node.h"
#include "mm/page.h"
#include "mm/vmscan.h"

extern uint8_t _image_start[], _image_end[]; /* guest.ld */

void kernel_main(pa_t dtb);

static void read_device_tree(pa_t dtb)
{
    board.dtb = dtb;
    /* Boot tables map the first GiB of RAM, and QEMU and our VMM put it there.
     */
    if (dtb < BOARD_RAM_BASE || dtb >= BOARD_RAM_BASE + GIB - BLOCK_SIZE ||
        !dtb_parse(phys_to_virt(dtb), &board)) {
        panic("no usable device tree at 0x%lx", dtb);
    }
    bootargs_parse(board.bootargs != NULL ? board.bootargs : "");
    pl011_init(board.uart != 0 ? board.uart : BOARD_UART_BASE);
}

static void start_memory(void)
{
    struct page_range ranges[NODE_MAX_RANGES];
    struct page_range reserved[BOARD_MAX_RANGES + 3];
    unsigned n = 0, n_ranges = node_init(&board, ranges);

    reserved[n++] = (struct page_range){.start = virt_to_phys(_image_start),
                                        .end = virt_to_phys(_image_end)};
    reserved[n++] = (struct page_range){.start = board.dtb & PAGE_MASK,
                                        .end = PAGE_ALIGN_UP(board.dtb_end)};
    if (board.initrd_end > board.initrd) {
        reserved[n++] =
            (struct page_range){.start = board.initrd & PAGE_MASK,
                                .end = PAGE_ALIGN_UP(board.initrd_end)};
    }
    for (unsigned i = 0; i < board.reserved_count; i++) {
        reserved[n++] =
            (struct page_range){.start = board.reserved[i].start & PAGE_MASK,
                                .end = PAGE_ALIGN_UP(board.reserved[i].end)};
    }
    page_init(ranges, n_ranges, reserved, n);
}

static void start_files(void)
{
    tree_init();
    if (board.initrd_end > board.initrd &&
        board.initrd >= board.memory[0].start &&
        board.initrd_end <= board.memory[board.memory_count - 1].end) {
        initramfs_init(phys_to_virt(board.initrd),
                       board.initrd_end - board.initrd);
    } else {
        initramfs_init(NULL, 0);
    }
    devices_init();
    procfs_init();
    sysfs_init();
    cgroupfs_init();
}

/* The last step of boot, in a thread of its own since it may sleep. */
static void start_init(void *arg)
{
    const char *argv[1 + BOOTARGS_MAX_ARGV + 2];
    char failed[12], first[12];
    int argc = 0, error;

    (void)arg;
    argv[argc++] = bootargs.init;
    if (bootargs.selftest) {
        ktest_main(failed, first, sizeof(failed));
        /* /bin/selftest goes on with the numbers and prints the plan. */
        argv[argc++] = first;
        argv[argc++] = failed;
    }
    for (int i = 0; i < bootargs.argc; i++) {
        argv[argc++] = bootargs.argv[i];
    }
    page_fail_init(); /* spares threads of the kernel, as this one is */
    error = process_start_init(bootargs.init, argc, argv);
    if (error != 0) {
        panic_no_init(bootargs.init, error);
    }
}

void kernel_main(pa_t dtb)
{
    struct task *thread;

    task_init_idle(current(), 0); /* this stack is CPU 0's idle task */
    time_init();                  /* counter frequency */
    read_device_tree(dtb);        /* memory, CPUs, devices, command line */
    linmap_init(&board);          /* all RAM reachable */
    smp_init_boot_cpu();          /* logical CPU numbers */
    annot_init();                 /* the VMM's device, where there is one */
    bug_init();                   /* planted bugs; may panic */
    like_init();                  /* which Linux to behave like */
    numa_init();                  /* whether pages follow their users */
    lock_order_init();            /* debug=locks */
    start_memory();               /* page frames */
    mm_init();                    /* address spaces, flush back end */
    mm_cpu_init();
    annot_counters(virt_to_phys(counters), cpu_count);
    gic_init(&board); /* interrupts */
    gic_init_cpu();
    timer_init_cpu();
    sched_init_cpu(this_cpu(), current());
    futex_init();
    start_files();
    smp_init(); /* the other CPUs */
    console_init();
    gic_enable_spi(BOARD_UART_INTID);
    if (!bootargs.quiet) {
        printk("shootdown guest: %u CPUs, %lu MiB, tlb=%s flush=%s drain=%s "
               "like=%s\n",
               cpu_count, page_total_count() * PAGE_SIZE >> 20,
               bootargs.tlb == BOOTARG_TLB_IPI       ? "ipi"
               : bootargs.tlb == BOOTARG_TLB_INVLPGB ? "invlpgb"
                                                     : "broadcast",
               bootargs.flush == BOOTARG_FLUSH_SYNC ? "sync" : "batched",
               bootargs.drain == BOOTARG_DRAIN_MM    ? "mm"
               : bootargs.drain == BOOTARG_DRAIN_DSB ? "dsb"
                                                     : "none",
               like_name());
    }
    kswapd_init();
    thread = kthread_new("init", start_init, NULL);
    ASSERT(thread != NULL);
    task_start(thread);
    sched_idle();
}
