/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice stream: asks the source, counts, and records what is not 0. */
#include "choice/choice.h"

#include <string.h>

static const struct {
    const char *name, *text;
    char letter;
} kinds[CHOICE_KINDS] = {
#define CHOICE(name, letter, what) {#name, what, letter},
#include "choice/choices.inc"
#undef CHOICE
};

static const char *const event_names[CHOICE_EVENTS] = {
    [CHOICE_EVENT_UNKNOWN] = "unknown", [CHOICE_EVENT_PTE_STORE] = "pte-store",
    [CHOICE_EVENT_TLBI] = "tlbi",       [CHOICE_EVENT_DSB] = "dsb",
    [CHOICE_EVENT_ROOT] = "root",       [CHOICE_EVENT_IPI] = "ipi",
    [CHOICE_EVENT_ATOMIC] = "atomic",   [CHOICE_EVENT_FAULT] = "fault",
    [CHOICE_EVENT_NOTE] = "note",       [CHOICE_EVENT_SPIN] = "spin",
};

void choice_source_free(struct choice_source *source)
{
    if (source) {
        source->ops->free(source);
    }
}

bool choice_source_next_run(struct choice_source *source)
{
    return !source->ops->next_run || source->ops->next_run(source);
}

const char *choice_source_problem(struct choice_source *source)
{
    return source->ops->problem ? source->ops->problem(source) : NULL;
}

void choice_stream_init(struct choice_stream *stream, unsigned places)
{
    *stream = (struct choice_stream){
        .entries = g_array_new(FALSE, FALSE, sizeof(struct choice_entry)),
        .places = places,
        .asked = g_new0(uint32_t, places * CHOICE_KINDS),
    };
}

void choice_stream_fini(struct choice_stream *stream)
{
    g_array_unref(stream->entries);
    g_free(stream->asked);
    *stream = (struct choice_stream){0};
}

void choice_stream_begin(struct choice_stream *stream,
                         struct choice_source *source)
{
    g_array_set_size(stream->entries, 0);
    memset(stream->asked, 0,
           stream->places * CHOICE_KINDS * sizeof(*stream->asked));
    stream->source = source;
    stream->count = 0;
    stream->place = 0;
    source->stream = stream;
}

static unsigned ask(struct choice_stream *stream, enum choice_kind kind,
                    unsigned n, const struct choice_candidate *candidates)
{
    uint64_t index = stream->count++;
    unsigned value;

    stream->ordinal = ++stream->asked[stream->place * CHOICE_KINDS + kind];
    value =
        stream->source->ops->choose(stream->source, kind, n, index, candidates);
    if (value) {
        struct choice_entry entry = {
            .index = index,
            .kind = kind,
            .n = n,
            .value = value,
            .vcpu = candidates ? candidates[value].vcpu + 1 : 0,
            .ordinal = stream->ordinal,
            .place = (uint16_t)stream->place,
        };

        g_assert(value < n);
        g_array_append_val(stream->entries, entry);
    }
    return value;
}

unsigned choice(struct choice_stream *stream, enum choice_kind kind, unsigned n)
{
    g_assert(kind != CHOICE_vcpu && n - 1 < CHOICE_MAX);
    return n == 1 ? 0 : ask(stream, kind, n, NULL);
}

unsigned choice_vcpu(struct choice_stream *stream,
                     const struct choice_candidate *candidates, unsigned n)
{
    g_assert(n - 1 < CHOICE_MAX);
    return n == 1 ? 0 : ask(stream, CHOICE_vcpu, n, candidates);
}

const char *choice_kind_name(enum choice_kind kind)
{
    return kinds[kind].name;
}

char choice_kind_letter(enum choice_kind kind)
{
    return kinds[kind].letter;
}

const char *choice_kind_text(enum choice_kind kind)
{
    return kinds[kind].text;
}

enum choice_kind choice_kind_from_letter(char letter)
{
    unsigned kind = 0;

    while (kind < CHOICE_KINDS && kinds[kind].letter != letter) {
        kind++;
    }
    return kind;
}

const char *choice_event_name(enum choice_event event)
{
    return event_names[event];
}
