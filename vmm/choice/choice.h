/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The choice stream: every decision that a deterministic run could make
 * differently. A run is its choices; whoever answers them, the source, decides
 * what the run is: a plain one, a random one, a replay, one of all.
 *
 * Depends on GLib only. One thread at a time.
 */
#ifndef CHOICE_CHOICE_H
#define CHOICE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

enum choice_kind {
#define CHOICE(name, letter, what) CHOICE_##name,
#include "choice/choices.inc"
#undef CHOICE
    CHOICE_KINDS
};

/* Alternatives of one choice; more are cut off by the asker. */
#define CHOICE_MAX 1024u

/* What a vCPU that could run next is about to do. */
enum choice_event {
    CHOICE_EVENT_UNKNOWN, /* it was stopped between two events */
    CHOICE_EVENT_PTE_STORE, /* object: physical address of the descriptor */
    CHOICE_EVENT_TLBI,      /* object: page address, 0: everything */
    CHOICE_EVENT_DSB,
    CHOICE_EVENT_ROOT,   /* a TTBR, SCTLR or TCR is written */
    CHOICE_EVENT_IPI,    /* send, take or acknowledge; object: intid */
    CHOICE_EVENT_ATOMIC, /* object: physical address, 16-byte granule */
    CHOICE_EVENT_FAULT,  /* it has just faulted; object: page address */
    CHOICE_EVENT_NOTE,   /* an annotation, such as a frame freed */
    CHOICE_EVENT_SPIN,   /* YIELD or WFE: it waits for another vCPU */
    CHOICE_EVENTS
};

struct choice_candidate {
    uint32_t vcpu;
    enum choice_event event;
    uint64_t object;
};

/* One decision that was not 0. */
struct choice_entry {
    uint64_t index; /* among all choices of the run, from 0 */
    uint16_t kind;  /* enum choice_kind */
    uint16_t n;     /* alternatives there were, at least 2 */
    uint16_t value; /* 1..n-1 */
    /* CHOICE_vcpu: 1 + the vCPU that it named; 0: not known (from a file). */
    uint16_t vcpu;
    /*
     * Among the choices of its kind that were asked at its place, from 1; 0:
     * not known (from a file). A place keeps its choices together however
     * those of other places come and go: "vCPU 2, at its 7th event".
     */
    uint32_t ordinal;
    uint16_t place; /* see choice_stream.place */
};

/*
 * Who answers. choose() returns 0..n-1 (checked by the stream); candidates has
 * n elements for CHOICE_vcpu, in the order of the values, and is NULL for all
 * other kinds; index counts the choices of this run from 0.
 */
struct choice_source;
struct choice_source_ops {
    unsigned (*choose)(struct choice_source *source, enum choice_kind kind,
                       unsigned n, uint64_t index,
                       const struct choice_candidate *candidates);
    /*
     * Between two runs of the same program, not before the first. False: the
     * source has nothing more to try (exhaustive ones), or cannot go on, see
     * problem(). May be NULL: always true.
     */
    bool (*next_run)(struct choice_source *source);
    /* A sentence on where the answers stopped to fit, or NULL. May be NULL. */
    const char *(*problem)(struct choice_source *source);
    void (*free)(struct choice_source *source);
};

struct choice_source {
    const struct choice_source_ops *ops;
    const struct choice_stream *stream; /* that asks; set by it */
};

void choice_source_free(struct choice_source *source);
/* The optional operations; a source without them says true and NULL. */
bool choice_source_next_run(struct choice_source *source);
const char *choice_source_problem(struct choice_source *source);

struct choice_stream {
    struct choice_source *source; /* borrowed */
    uint64_t count;               /* choices of this run */
    GArray *entries; /* struct choice_entry, those that are not 0 */
    unsigned places;
    /* Who asks, in what situation: the asker's to set, below `places`. */
    unsigned place;
    uint32_t ordinal; /* of the choice that is being asked */
    uint32_t *asked;  /* [place * CHOICE_KINDS + kind] */
};

/* places: at least 1; nobody needs to use more than place 0. */
void choice_stream_init(struct choice_stream *stream, unsigned places);
void choice_stream_fini(struct choice_stream *stream);
/* Begins a run with this source; forgets what was recorded. */
void choice_stream_begin(struct choice_stream *stream,
                         struct choice_source *source);

/* Asks. n from 1 to CHOICE_MAX; n == 1 is answered 0 and is no choice. */
unsigned choice(struct choice_stream *stream, enum choice_kind kind,
                unsigned n);
unsigned choice_vcpu(struct choice_stream *stream,
                     const struct choice_candidate *candidates, unsigned n);

/* Names: "vcpu", 'v'; CHOICE_KINDS for an unknown letter. */
const char *choice_kind_name(enum choice_kind kind);
char choice_kind_letter(enum choice_kind kind);
const char *choice_kind_text(enum choice_kind kind);
enum choice_kind choice_kind_from_letter(char letter);
const char *choice_event_name(enum choice_event event);

#endif
