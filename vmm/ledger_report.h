/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a violation of the ledger is told: what was found in a run, and the
 * report that explains each finding. docs/LEDGER.md shows one and has the
 * schema of the JSON.
 *
 * A finding is a violation at a pair of places in the program, the one that
 * took a translation away and the one that relied on it too early: one report
 * for (rule and cause, two places), however often it happens.
 *
 * Call chains, steps and the frame's history are not taken when the run is
 * made: almost none is ever printed, and a run that finds nothing would pay
 * for all. Taking eight return addresses at each store to a table, TLBI and DSB
 * costs a tenth of a run of reclaim_race (205 runs a second instead of 230; 280
 * without the ledger), and a history of every frame would come on top. A
 * deterministic run can be had again: what was found is known then, so that
 * the second time only the events at its places are looked at
 * (ledger_findings_retell()), as closely as one likes. What is cheap is taken
 * at once: the code around the places, and the chain and step of the last one,
 * where the vCPU is.
 *
 * The thread that runs the vCPUs while the machine runs, the main thread
 * afterwards; in `parallel` the caller holds the watch's lock. No lock here.
 */
#ifndef VMM_LEDGER_REPORT_H
#define VMM_LEDGER_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <glib.h>

#include "choice/schedule.h"
#include "config.h"
#include "mmu/ledger.h"

struct symbols;
struct vm;

/* Return addresses of a place; more are cut off. */
#define LEDGER_CHAIN_MAX 12u
/* Instructions around a place, the place included. */
#define LEDGER_CODE_MAX 6u
/* What is remembered of a frame's life, the last of it. */
#define LEDGER_HISTORY_MAX 16u

enum ledger_place_kind {
    LEDGER_PLACE_STORE,    /* took the translation away */
    LEDGER_PLACE_TLBI,     /* came nearest */
    LEDGER_PLACE_DSB,      /* came nearest */
    LEDGER_PLACE_CONTRACT, /* relied on it: freed, returned, read, wrote ... */
    LEDGER_PLACES
};

/* One place in the program at one moment. */
struct ledger_place {
    bool is_known;
    bool has_step;  /* deterministic engines */
    bool is_before; /* the snapshot: `step` is of the way there */
    bool has_chain; /* lr and caller are those of that moment */
    unsigned vcpu;
    uint64_t pc;
    uint64_t step; /* scheduling points of the run before it */
    uint64_t lr;   /* x30: the caller in a function without a frame */
    unsigned callers;
    uint64_t caller[LEDGER_CHAIN_MAX]; /* return addresses, innermost first */
    uint64_t code_pc;                  /* of word[0] */
    unsigned words;                    /* 0: the memory could not be read */
    uint32_t word[LEDGER_CODE_MAX];
};

enum ledger_moment_kind {
    LEDGER_MOMENT_ALLOC,
    LEDGER_MOMENT_FREE,
    LEDGER_MOMENT_IO_BEGIN,
    LEDGER_MOMENT_IO_END,
    LEDGER_MOMENT_COPY,
    LEDGER_MOMENT_MAP,
    LEDGER_MOMENT_UNMAP,
    LEDGER_MOMENT_CHANGE, /* of the descriptor, the frame stays mapped */
    LEDGER_MOMENTS
};

/* Something that happened to a frame. */
struct ledger_moment {
    enum ledger_moment_kind kind;
    bool is_before; /* the snapshot, so that `step` is of the way there */
    unsigned vcpu;
    uint64_t pc, step;
    gpa_t descriptor;  /* MAP, UNMAP, CHANGE */
    uint64_t old, now; /* likewise */
};

struct ledger_finding {
    struct ledger_violation first; /* as it was seen first */
    uint64_t count;
    uint64_t run, seed; /* in which, from 1; 0: not said */
    bool is_bbm;        /* of --check bbm, not of the ledger */
    bool is_retold;     /* all that a second run can tell is there */
    struct ledger_place site[LEDGER_PLACES];
    bool has_range; /* S2: of the operation; known when retold */
    gva_t op_start, op_end;
    uint64_t op_step;
    gpa_t frame; /* whose history it is; 0: none */
    uint64_t moments;
    struct ledger_moment moment[LEDGER_HISTORY_MAX]; /* [moments % MAX] next */
    struct schedule *schedule; /* shared by the run's findings; NULL: none */
    char *schedule_path;       /* where it was written, or NULL */
};

struct ledger_findings;

struct ledger_findings *ledger_findings_new(void);
void ledger_findings_free(struct ledger_findings *findings);
/* None is found any more. */
void ledger_findings_clear(struct ledger_findings *findings);

/*
 * A violation happens now, told by the ledger of this machine, on the thread of
 * that vCPU. True: it is the first at these places.
 */
bool ledger_findings_add(struct ledger_findings *findings, struct vm *vm,
                         const struct ledger_violation *violation,
                         unsigned teller, bool is_bbm);
unsigned ledger_findings_count(const struct ledger_findings *findings);
/* 0..count-1, in the order in which they were found. */
struct ledger_finding *
ledger_findings_at(const struct ledger_findings *findings, unsigned index);

/* There are some that no schedule was given to. */
bool ledger_findings_want_schedule(const struct ledger_findings *findings);
/* To those: the run in which they were found. Takes the schedule. */
void ledger_findings_take_schedule(struct ledger_findings *findings,
                                   struct schedule *schedule, uint64_t run,
                                   uint64_t seed);

/*
 * Runs again what the schedules tell, silently, and completes the findings.
 * Without a schedule, or if the second run goes another way: they stay as they
 * are. FALSE and error: a machine could not be built.
 */
bool ledger_findings_retell(struct ledger_findings *findings,
                            const struct vm_config *config, GError **error);

/* What a report is told with; all borrowed. */
struct ledger_telling {
    const struct vm_config *config;
    const struct symbols *symbols; /* or NULL */
    bool has_colour;
};

/* For people, at most 80 columns wide. */
void ledger_finding_print(const struct ledger_finding *finding,
                          const struct ledger_telling *telling, FILE *out);
/* One JSON object without a newline; index from 1. g_free() it. */
char *ledger_finding_json(const struct ledger_finding *finding, unsigned index,
                          const struct ledger_telling *telling);
/*
 * All of them, a line each, "-": standard output. FALSE and error: the file
 * cannot be written.
 */
bool ledger_findings_write(const struct ledger_findings *findings,
                           const struct ledger_telling *telling,
                           const char *path, GError **error);

#endif
