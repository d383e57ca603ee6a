/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shrinking, the passes over vCPUs and slices. A slice is what runs between two
 * switches, which are the vCPU choices that are not plain.
 */
#include "choice/minimize_priv.h"

#include <limits.h>
#include <string.h>

/* Sliding tries all places near by; only worth it for few choices. */
#define SLIDE_CHOICES 8u
#define SLIDE_FAR_CHOICES 4u
#define SLIDE_REACH 16
#define SLIDE_FAR_REACH 64
/* Slices are merged with others near by if there are not too many. */
#define MERGE_SWITCHES 32u
#define MERGE_NEAR 8u
/* So many others are tried in the place of a vCPU that is dropped. */
#define RENAMES 4u

static bool names(const uint64_t *set, unsigned vcpu)
{
    return vcpu < MINIMIZE_VCPUS_MAX && (set[vcpu / 64] >> (vcpu % 64) & 1);
}

/*
 * Where the vCPUs in gone are named: name another one instead, or (UINT_MAX)
 * leave the switch out and let those behind come sooner by the choices until
 * the next one.
 */
static GArray *rename_vcpus(const struct minimizer *m, const uint64_t *gone,
                            unsigned other)
{
    GArray *candidate = minimize_copy(m);
    uint64_t earlier = 0, skipped = 0;
    guint kept = 0;

    for (guint i = 0; i < candidate->len; i++) {
        struct choice_entry entry = *minimize_entry(candidate, i);

        if (entry.kind == CHOICE_vcpu) {
            unsigned vcpu = entry.vcpu - 1u;

            if (skipped) {
                earlier += entry.ordinal - skipped;
                skipped = 0;
            }
            if (entry.vcpu && names(gone, vcpu)) {
                if (other == UINT_MAX) {
                    skipped = entry.ordinal;
                    continue;
                }
                entry.vcpu = (uint16_t)(other + 1);
            }
            entry.ordinal -= earlier;
        }
        *minimize_entry(candidate, kept++) = entry;
    }
    g_array_set_size(candidate, kept);
    return candidate;
}

/* Drops the vCPUs [first, first + count), in several ways. */
static bool drop_range(struct minimizer *m, unsigned first, unsigned count)
{
    uint64_t gone[8], without[8];
    unsigned others = 0;
    bool news = false;

    memset(gone, 0, sizeof(gone));
    for (unsigned v = first; v < MIN(first + count, m->ops->vcpus); v++) {
        news |= !names(m->without, v);
        gone[v / 64] |= UINT64_C(1) << (v % 64);
    }
    for (unsigned i = 0; i < 8; i++) {
        without[i] = m->without[i] | gone[i];
    }
    if (!news) {
        return false;
    }
    if (minimize_try_all(m, minimize_copy(m), without, true, NULL) ||
        minimize_try_all(m, rename_vcpus(m, gone, UINT_MAX), without, true,
                         NULL)) {
        return true;
    }
    for (unsigned v = 0; v < m->ops->vcpus && others < RENAMES; v++) {
        if (!names(without, v)) {
            others++;
            if (minimize_try_all(m, rename_vcpus(m, gone, v), without, true,
                                 NULL)) {
                return true;
            }
        }
    }
    return false;
}

bool minimize_drop_vcpus(struct minimizer *m)
{
    bool better = false;

    for (unsigned size = MAX(m->ops->vcpus / 2, 1); size; size /= 2) {
        for (unsigned first = 0; first < m->ops->vcpus; first += size) {
            better |= drop_range(m, first, size);
        }
    }
    return better;
}

/* Where the vCPU choices are in m->entries. */
static GArray *find_switches(const struct minimizer *m)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(guint));

    for (guint i = 0; i < m->entries->len; i++) {
        if (minimize_entry(m->entries, i)->kind == CHOICE_vcpu) {
            g_array_append_val(found, i);
        }
    }
    return found;
}

static uint64_t ordinal_of(const struct minimizer *m, const GArray *switches,
                           guint i)
{
    return minimize_entry(m->entries, g_array_index(switches, guint, i))
        ->ordinal;
}

/*
 * Tries without the switches [first, first + count), and with those in
 * [begin, end) moved by so many choices.
 */
static bool try_without(struct minimizer *m, const GArray *switches,
                        guint first, guint count, guint begin, guint end,
                        int64_t by)
{
    GArray *candidate = minimize_copy(m);

    for (guint i = begin; i < end; i++) {
        struct choice_entry *entry =
            minimize_entry(candidate, g_array_index(switches, guint, i));

        if (by < 0 && entry->ordinal <= (uint64_t)-by) {
            g_array_unref(candidate);
            return false; /* there is no such moment */
        }
        entry->ordinal += (uint64_t)by;
    }
    for (guint i = first + count; i-- > first;) {
        g_array_remove_index(candidate, g_array_index(switches, guint, i));
    }
    return minimize_try(m, candidate);
}

/*
 * One to three switches less: a slice in the middle goes, and what it did is
 * left to another slice of the same vCPU. If that is a later one, the switches
 * up to there come sooner by the length of the slice; if it is an earlier one,
 * those from there on come later by as much; the others stay. Which slices are
 * of the same vCPU is not known here, so all near by are tried.
 */
static bool merge_at(struct minimizer *m, guint first, guint count)
{
    GArray *switches = find_switches(m);
    guint behind = first + count, len = switches->len;
    guint near = len <= MERGE_SWITCHES ? MERGE_NEAR : 0;
    bool better = false;

    if (behind <= len) {
        int64_t at = (int64_t)ordinal_of(m, switches, first);
        int64_t inner = (int64_t)ordinal_of(m, switches, behind - 1) - at;
        int64_t outer =
            behind < len ? (int64_t)ordinal_of(m, switches, behind) - at : 0;

        better = try_without(m, switches, first, count, 0, 0, 0) ||
                 try_without(m, switches, first, count, behind, len, -inner) ||
                 try_without(m, switches, first, count, behind, len, -outer);
        for (guint n = 1; n <= near && !better; n++) {
            if (behind + n < len) {
                better = try_without(m, switches, first, count, behind,
                                     behind + n, -inner) ||
                         try_without(m, switches, first, count, behind,
                                     behind + n, -outer);
            }
            if (n <= first && !better) {
                better = try_without(m, switches, first, count, first - n,
                                     first, inner);
            }
        }
    }
    g_array_unref(switches);
    return better;
}

bool minimize_merge_slices(struct minimizer *m)
{
    bool better = false;

    for (guint count = 1; count <= 3; count++) {
        for (guint first = m->entries->len; first-- > 0;) {
            better |= merge_at(m, first, count);
        }
    }
    return better;
}

/*
 * One switch less, if others come at another moment: those in [begin, end), of
 * the ones that there were.
 */
static bool slide_at(struct minimizer *m, guint drop, guint begin, guint end,
                     int by)
{
    GArray *switches = find_switches(m);
    bool better = false;

    if (begin < end && end <= switches->len) {
        better = try_without(m, switches, drop, 1, begin, end, by);
    }
    g_array_unref(switches);
    return better;
}

static guint count_switches(const struct minimizer *m)
{
    GArray *switches = find_switches(m);
    guint count = switches->len;

    g_array_unref(switches);
    return count;
}

bool minimize_slide(struct minimizer *m)
{
    guint count = count_switches(m);
    int reach = count <= SLIDE_FAR_CHOICES ? SLIDE_FAR_REACH : SLIDE_REACH;

    if (count > SLIDE_CHOICES) {
        return false;
    }
    for (guint drop = 0; drop < count; drop++) {
        for (int by = 1; by <= reach; by++) {
            if (slide_at(m, drop, drop + 1, count, -by) ||
                slide_at(m, drop, drop + 1, count, by)) {
                return true;
            }
            for (guint move = 0; move < count; move++) {
                if (move != drop && (slide_at(m, drop, move, move + 1, -by) ||
                                     slide_at(m, drop, move, move + 1, by))) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* The same switches, but sooner: the failure comes after fewer steps. */
bool minimize_shorten(struct minimizer *m)
{
    bool better = false;

    for (guint i = 0; i < m->entries->len; i++) {
        uint64_t by = 1;

        if (minimize_entry(m->entries, i)->kind != CHOICE_vcpu) {
            continue;
        }
        while (by < minimize_entry(m->entries, i)->ordinal) {
            by *= 2;
        }
        for (; by && i < m->entries->len; by /= 2) {
            GArray *candidate = minimize_copy(m);
            struct choice_entry *entry = minimize_entry(candidate, i);

            if (entry->ordinal > by) {
                entry->ordinal -= by;
                better |= minimize_try(m, candidate);
            } else {
                g_array_unref(candidate);
            }
        }
    }
    return better;
}
