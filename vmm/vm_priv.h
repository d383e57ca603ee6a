/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine as its own files see it. */
#ifndef VMM_VM_PRIV_H
#define VMM_VM_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "abi/board.h"
#include "config.h"
#include "dev/annot.h"
#include "dev/arch_timer.h"
#include "dev/bus.h"
#include "dev/gic.h"
#include "dev/loader.h"
#include "dev/pl011.h"
#include "dev/psci.h"
#include "execview.h"
#include "insn/exclusive.h"
#include "ledger_watch.h"
#include "loop.h"
#include "obs/events.h"
#include "obs/trace_hash.h"
#include "scheduler.h"
#include "session.h"
#include "vcpu.h"
#include "vm.h"

struct vm {
    const struct vm_config *config; /* [init] */
    struct events *events;          /* [init] */
    struct ram ram;                 /* [init] */
    struct loaded_image image;      /* [init] */
    unsigned cpus;                  /* [init] */
    struct vcpu **vcpu;             /* [init] */
    bool broadcast;                 /* [init] IS operations reach everybody */
    unsigned inject;                /* [init] INJECT_BIT()s, of config */
    bool hafdbs; /* [init] hardware manages the access flag and dirty state */

    /*
     * table_pages.h's: a byte a page of RAM, not 0: a walker has read it as a
     * table. NULL unless somebody listens to pte_store. Bytes only ever rise;
     * relaxed, since who has still W loses it by the flush that `micro` asks
     * for. And which generation of `micro` that is, with the ledger in
     * `parallel`; else NULL.
     */
    _Atomic uint8_t *tables;
    _Atomic uint64_t *table_since;

    /*
     * Deterministic engines: enum written_bits, a byte a page of RAM, and which
     * of them are kept. NULL in `parallel`.
     */
    uint8_t *written;
    uint8_t written_want;
    struct snapshot *snapshot;    /* or NULL */
    struct ledger_watch *ledger;  /* or NULL */
    struct probes *probes;        /* [init] or NULL */
    struct execution *execution;  /* or NULL */
    struct ledger_site stop_site; /* of execution_stop_like() */
    struct trace_hash trace_hash;
    struct session session;

    struct exclusives *exclusives;
    struct exec_views *views;
    struct sched *sched;
    struct det *det; /* [init] NULL in `parallel`: see det.h */
    struct loop *loop;

    struct bus *bus;
    struct gic *gic;
    struct arch_timer *timer;
    struct pl011 *uart;
    struct annot *annot;

    /*
     * Raised when every micro-TLB must be flushed: by IC, whose issuer's DSB
     * waits until each vCPU has seen it, and when a page turns out to be a
     * translation table.
     */
    _Atomic uint64_t micro;

    _Atomic int outcome; /* enum vm_outcome; the first one stays */
    _Atomic bool stopping;
    _Atomic int abandoned; /* by a signal or --timeout: the outcome, or 0 */
    uint64_t finding;      /* code of VM_OUTCOME_FINDING */
    uv_mutex_t error_lock;
    char *engine_error; /* [lock: error_lock] */

    uint64_t epoch_ns;          /* [init] host time of counter value 0 */
    uint64_t start_ns, stop_ns; /* of the run, host clock */
};

/* Ends the run; the first outcome wins. Any thread. */
void vm_stop(struct vm *vm, enum vm_outcome outcome);
/* The person or the clock has had enough: as above, from the loop's thread. */
void vm_abandon(struct vm *vm, enum vm_outcome outcome);
/* As vm_stop(), VM_OUTCOME_ENGINE_ERROR. Takes the text. Any thread. */
void vm_stop_error(struct vm *vm, char *text);

/* Of the guest's counter, which runs at 62.5 MHz. */
#define VM_TICK_NS (UINT64_C(1000000000) / BOARD_CNTFRQ)

/*
 * The guest's counter, as the calling vCPU sees it: of the host's monotonic
 * clock, 0 at epoch_ns, or virtual in the deterministic engines.
 */
uint64_t vm_now_ticks(void *vm);
/* Host time (CLOCK_MONOTONIC) at which the counter reads `ticks`. */
uint64_t vm_ticks_to_ns(const struct vm *vm, uint64_t ticks);

/* The CPU with this affinity, or NULL. */
struct vcpu *vm_vcpu_of_mpidr(struct vm *vm, uint64_t mpidr);

/* Host address of `size` bytes of RAM at pa, or NULL. */
static inline void *vm_ram_at(const struct vm *vm, gpa_t pa, uint64_t size)
{
    if (pa < vm->ram.base || pa - vm->ram.base >= vm->ram.size ||
        size > vm->ram.size - (pa - vm->ram.base)) {
        return NULL;
    }
    return vm->ram.host + (pa - vm->ram.base);
}

/* machine.c: devices and their wiring. */
bool machine_init(struct vm *vm, GError **error);
void machine_fini(struct vm *vm);
/* An HVC; true: x0 has the answer, false: action is set. */
void machine_psci(struct vcpu *vcpu);

#endif
