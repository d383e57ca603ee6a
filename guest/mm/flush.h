/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB flushing of user address spaces, and the context switch's share of it.
 * Two back ends, chosen at boot (bootargs.tlb): broadcast (TLBI ...IS + DSB
 * ISH) and IPI (SGI + local TLBI + DSB NSH); invlpgb is the IPI back end with
 * the other's instructions. Every TLBI and every DSB that belongs to a flush is
 * in an out-of-line function whose name begins with flush_ or tlb_, next to the
 * increment of its counter; nowhere else.
 */
#ifndef MM_FLUSH_H
#define MM_FLUSH_H

#include "kernel/bootargs.h"
#include "kernel/cpumask.h"

struct mm;
struct tlb_ubc;

/* Levels of one flush */
struct flush_range {
    uint64_t start, end;
    uint64_t stride;   /* bytes per TLBI: the smallest level cleared */
    uint8_t level;     /* 1..3 if exactly one level was cleared, else 0 */
    bool last_level;   /* no table was unhooked */
    bool freed_tables; /* IPI: lazy CPUs must hear of it too */
};

/* --- boot --- */
void flush_init(void);     /* reads the ID registers and the options */
void flush_cpu_init(void); /* each CPU, IRQs off, before its first switch */
void flush_mm_init(struct mm *mm); /* a new one's context */

/* --- thread context, IRQs on; complete on every CPU on return --- */
void flush_tlb_page(struct mm *mm, uint64_t va);
void flush_tlb_mm(struct mm *mm);
void flush_tlb_range(struct mm *mm, const struct flush_range *range);
/* The access flag was cleared: not waited for, the IPI back end does nothing.
 */
void flush_tlb_young(struct mm *mm, uint64_t va);
/* A stale entry that is only too strict, on this CPU. */
void flush_tlb_fix_spurious(struct mm *mm, uint64_t va);

/* mm_context.active_cpu; from many there is no way back. */
#define FLUSH_NO_CPU UINT32_MAX
#define FLUSH_MANY_CPUS (UINT32_MAX - 1)

/* --- batch hooks --- */
void flush_batch_add_pending(struct tlb_ubc *ubc, struct mm *mm, uint64_t start,
                             uint64_t end);
void flush_batch(struct tlb_ubc *ubc);
bool flush_batch_should_defer(struct mm *mm);
void flush_batch_drain(struct mm *mm); /* the policy of bootargs.drain */

/* --- for /proc/interrupts --- */
/* TLB shootdown interrupts that this CPU took; 0 with broadcast. */
uint64_t flush_shootdowns(unsigned cpu);

/* --- per-CPU state of loaded address spaces; IRQs off (flush.c) --- */
struct mm;
#define LOADED_MM_SWITCHING ((struct mm *)1)
#define TLB_NR_DYN_CTXS 6

struct tlb_cpu {
    _Atomic(struct mm *) loaded; /* or SWITCHING; NULL: no user space */
    _Atomic bool is_lazy;        /* loaded but not used: idle, kernel thread */
    uint64_t ttbr0;              /* what is in the register */
    unsigned slot;               /* IPI: ctxs[] of loaded */
    unsigned next_slot;
    /*
     * IPI: this CPU's TLB holds nothing of mm ctx_id that is older than
     * tlb_gen. No entry for an mm: its ASID must be flushed when loaded.
     */
    struct {
        uint64_t ctx_id;
        uint64_t tlb_gen;
    } ctxs[TLB_NR_DYN_CTXS];
    struct mm *dropped; /* pin to drop at the next switch */
    struct mm *retired; /* [own CPU] pin to drop after this switch */
} CACHE_ALIGNED;

extern struct tlb_cpu tlb_cpus[MAX_CPUS];

/* Loads the empty table. keep_bit: this CPU stays in the mm's mask. */
void flush_unload(struct tlb_cpu *tc, bool keep_bit);
/* Loads the empty table for a moment; the caller loads another one. */
void flush_park_ttbr0(void);
void flush_set_ttbr0(struct tlb_cpu *tc, struct mm *mm, uint16_t asid);
/* Every CPU that is lazy forgets its mm. Thread context. */
void flush_unload_lazy_cpus(void);

/* --- back ends --- */
/* Broadcast */
void flush_bc_page(struct mm *mm, uint64_t va);
void flush_bc_mm(struct mm *mm);
void flush_bc_range(struct mm *mm, const struct flush_range *range);
void flush_bc_page_nosync(struct mm *mm, uint64_t start, uint64_t end);
void flush_bc_young(struct mm *mm, uint64_t va); /* does not wait */
void flush_bc_sync(void);
void flush_bc_all(void);
/* invlpgb: after flush_ipi_new_gen(); NULL: all of the mm. */
void flush_bc_generation(struct mm *mm, const struct flush_range *range);
/* Local: this CPU's TLB only; counters: IRQs masked by the callee */
void tlb_local_flush_all(void);
void tlb_local_flush_asid(uint16_t asid);
void tlb_local_flush_pages(uint16_t asid, const struct flush_range *range);
/* IPI */
void flush_ipi_range(struct mm *mm, const struct flush_range *range);
void flush_ipi_switch(struct tlb_cpu *tc, struct mm *next);
void flush_ipi_add_pending(struct tlb_ubc *ubc, struct mm *mm);
void flush_ipi_batch(struct tlb_ubc *ubc);
bool flush_ipi_should_defer(struct mm *mm);

/* --- ASIDs (asid.c) --- */
#define ASID_GENERATION_STEP (1UL << 16)
void asid_init(void);
/* IRQs off. The ASID with which this CPU may now run mm. */
uint16_t asid_check_and_switch(struct mm *mm);
/* Its ASID now; read it after the DSB ISHST that precedes the TLBI. */
uint16_t asid_of(struct mm *mm);
/* Tests: hand out only ASIDs below n (0: all) from the next one on. */
void asid_limit(unsigned n);
uint64_t asid_generation_now(void);
/* asid_free=on: nobody has mm loaded, and nobody will. */
void asid_free(struct mm *mm);

#endif
