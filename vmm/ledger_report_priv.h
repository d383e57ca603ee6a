/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the ledger's reports share. */
#ifndef VMM_LEDGER_REPORT_PRIV_H
#define VMM_LEDGER_REPORT_PRIV_H

#include "ledger_report.h"
#include "obs/events.h"
#include "vcpu.h"

/* --- ledger_report_place.c: places --- */

/* Nothing but who and where. */
struct ledger_place ledger_place_at(unsigned vcpu, uint64_t pc);
/* Step and call chain; the vCPU is there now. */
void ledger_place_take(struct ledger_place *site, struct vm *vm);
/*
 * The instructions around it, as vCPU `by` finds them, whose thread this is;
 * any time before the machine is gone.
 */
void ledger_place_take_code(struct ledger_place *site, struct vm *vm,
                            unsigned by);
/*
 * The callers that a reader is to see, innermost first, at most
 * LEDGER_CHAIN_MAX; the addresses are those of the calls. Returns how many.
 */
unsigned ledger_place_calls(const struct ledger_place *site,
                            const struct symbols *symbols,
                            uint64_t out_pc[LEDGER_CHAIN_MAX]);
uint64_t ledger_step_now(const struct vm *vm);
/* The machine is still on its way to the snapshot. */
bool ledger_is_before(const struct vm *vm);

/* --- ledger_report_words.c: sentences; static, or to be freed --- */

/* "freed": what was done at that place. */
const char *ledger_place_deed(const struct ledger_finding *f,
                              enum ledger_place_kind kind);
const char *ledger_moment_text(enum ledger_moment_kind kind);
const char *ledger_moment_name(enum ledger_moment_kind kind);
/* "removed": what the store did. */
const char *ledger_why_text(const struct ledger_violation *v);
/* "ISHST"; of v->dsb. */
const char *ledger_dsb_text(const struct ledger_near *near);
/* What the program promised by what it did; g_free() it. */
char *ledger_promise_text(const struct ledger_finding *f);
/* What is missing and who has to do it; g_free() it. */
char *ledger_owed_text(const struct ledger_finding *f);
/* Why the TLBI that came nearest does not count; "": it does. */
const char *ledger_tlbi_excuse(const struct ledger_violation *v);
/* One sentence: how programs that are right do it. */
const char *ledger_fix_text(const struct ledger_violation *v, bool is_ipi);
/* "0, 2 and 5" of a mask; g_free() it. */
char *ledger_vcpus_text(uint64_t mask);
/* The command that shows it again, as one line; g_free() it. */
char *ledger_again_text(const struct ledger_finding *f,
                        const struct vm_config *config);

/* One of the same rule and cause at the same places. */
bool ledger_finding_is(const struct ledger_finding *f,
                       const struct ledger_violation *v);
/* The frame that a violation is about. */
gpa_t ledger_frame_of(const struct ledger_violation *v);

#endif
