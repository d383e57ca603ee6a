/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --ledger and --check bbm: feeds the ledger (mmu/ledger.h) with the events of
 * a machine, and keeps what it found (ledger_report.h tells it). The machine
 * runs the same way with and without, but for what its guest says when it is
 * listened to.
 *
 * In the deterministic engines the vCPUs are all on one thread, and there is no
 * lock. In `parallel` there is one for the whole ledger: who does what others
 * can see before it is told (a store to a translation table) holds it until it
 * was told. See docs/CONCURRENCY.md.
 */
#ifndef VMM_LEDGER_WATCH_H
#define VMM_LEDGER_WATCH_H

#include <stdio.h>

#include "config.h"
#include "ledger_report.h"
#include "mmu/ledger.h"
#include "obs/events.h"

struct ledger_watch;
struct vm;

typedef void (*ledger_finding_fn)(void *opaque,
                                  const struct ledger_finding *finding);

/* Subscribes; before vm_new(). The result must outlive ev. */
struct ledger_watch *ledger_watch_new(const struct vm_config *config,
                                      struct events *ev);
/* The machine whose tables are read. Before vm_run(); NULL: it is gone. */
void ledger_watch_attach(struct ledger_watch *watch, struct vm *vm);
/*
 * With the snapshot of the machine: what is owed is remembered, and put back.
 * What was found stays. NULL watch: nothing. False: memory is short.
 */
bool ledger_watch_checkpoint(struct ledger_watch *watch);
void ledger_watch_rollback(struct ledger_watch *watch);

/*
 * `parallel`: what happens in between is, for the ledger, one with the event
 * that tells it. Nests. Never wait for another vCPU meanwhile. Else, or NULL:
 * nothing.
 */
void ledger_watch_lock(struct ledger_watch *watch);
void ledger_watch_unlock(struct ledger_watch *watch);
/*
 * `parallel`: nobody may look at another thread's vCPU to see where it is, so
 * each exception return is told, by the vCPU's thread, before it counts.
 */
bool ledger_watch_wants_returns(const struct ledger_watch *watch);
void ledger_watch_returned(struct ledger_watch *watch, unsigned vcpu,
                           unsigned el);

/*
 * What tells one violation from another: the rule and the two places, and for
 * S2 the kind of the operation, whose ends are often told at one place.
 */
struct ledger_site {
    enum ledger_rule rule;
    uint64_t break_pc, now_pc;
    unsigned op; /* S2: ANNOT_OP_*; 0: another rule, or it is not said */
};

struct ledger_site ledger_site_of(const struct ledger_violation *violation);
bool ledger_site_is_same(const struct ledger_site *a,
                         const struct ledger_site *b);

/*
 * --ledger stop: whether a violation at this site ends the run. Until this is
 * called every one does. NULL: every one.
 */
void ledger_watch_stop_at(struct ledger_watch *watch,
                          bool (*stops)(void *opaque,
                                        const struct ledger_site *site),
                          void *opaque);
/*
 * The run is over: who owes what he can no longer pay. Then: the violation
 * that ended it, or NULL (also for a NULL watch, or without --ledger stop).
 */
const struct ledger_violation *ledger_watch_stopped(struct ledger_watch *watch);
/* What was found so far is not reported. */
void ledger_watch_forget(struct ledger_watch *watch);

/* "freed 0x... 0x... [munmap]", as the header of a schedule has it; g_free()
 * it. */
char *ledger_site_text(const struct ledger_site *site);
bool ledger_site_parse(const char *text, struct ledger_site *out);

/* A run is over: who came back late in it is judged now. NULL: nothing. */
void ledger_watch_settle(struct ledger_watch *watch);
/* fn is told of each finding when it is new; before vm_run(). */
void ledger_watch_listen(struct ledger_watch *watch, ledger_finding_fn fn,
                         void *opaque);
/* What was found; the watch's own, or the caller's from now on. NULL: NULL. */
struct ledger_findings *ledger_watch_findings(struct ledger_watch *watch);
struct ledger_findings *ledger_watch_take_findings(struct ledger_watch *watch);
/*
 * What was not looked at; with verbose, how much there was. Returns how many
 * violations there were; NULL watch: 0.
 */
uint64_t ledger_watch_report(const struct ledger_watch *watch, bool verbose,
                             FILE *out);
/*
 * Pages that came back in another frame while the old translation was still
 * owed for: no violation (docs/decisions/0007). NULL watch: 0.
 */
uint64_t ledger_watch_windows(const struct ledger_watch *watch);
void ledger_watch_free(struct ledger_watch *watch);

#endif
