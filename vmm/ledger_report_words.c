/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sentences of the ledger's reports: what was promised, what is owed and
 * by whom, why a TLBI does not count, how it is done right. Pure.
 */
#include "ledger_report_priv.h"

#include <inttypes.h>
#include <string.h>

#include "abi/annot.h"
#include "mmu/desc.h"
#include "obs/stats.h"

const char *ledger_dsb_text(const struct ledger_near *near)
{
    static const char *const names[] = {"?", "NSHLD", "NSHST", "NSH",
                                        "?", "LD",    "ST",    "ISH or SY"};

    return names[near->dsb & 7];
}

const char *ledger_place_deed(const struct ledger_finding *f,
                              enum ledger_place_kind kind)
{
    static const char *const deeds[LEDGER_RULES] = {
        [LEDGER_VALID_TO_VALID] = "written",
        [LEDGER_UNCLEAN] = "written",
        [LEDGER_TABLE_FREED] = "given away",
        [LEDGER_TABLE_REUSED] = "used",
        [LEDGER_FREE] = "given away",
        [LEDGER_RETURN] = "ended",
        [LEDGER_READER] = "read",
        [LEDGER_TAG] = "loaded",
        [LEDGER_LIVELOCK] = "faults",
        [LEDGER_LOST] = "taken as done",
        [LEDGER_DIRTY] = "dropped",
        [LEDGER_CONTEXT] = "used",
    };

    switch (kind) {
    case LEDGER_PLACE_STORE:
        return f->first.rule == LEDGER_DIRTY     ? "last found clean"
               : f->first.rule == LEDGER_CONTEXT ? "stored"
                                                 : "taken away";
    case LEDGER_PLACE_TLBI:
        return "invalidated";
    case LEDGER_PLACE_DSB:
        return "barrier";
    default:
        return deeds[f->first.rule];
    }
}

static const struct {
    const char *name, *text;
} moments[LEDGER_MOMENTS] = {
    [LEDGER_MOMENT_ALLOC] = {"alloc", "has a new owner"},
    [LEDGER_MOMENT_FREE] = {"free", "given away"},
    [LEDGER_MOMENT_IO_BEGIN] = {"io_begin", "a device reads it"},
    [LEDGER_MOMENT_IO_END] = {"io_end", "the device is done"},
    [LEDGER_MOMENT_COPY] = {"copy_begin", "a copy is made"},
    [LEDGER_MOMENT_MAP] = {"map", "mapped"},
    [LEDGER_MOMENT_UNMAP] = {"unmap", "unmapped"},
    [LEDGER_MOMENT_CHANGE] = {"change", "mapped otherwise"},
};

const char *ledger_moment_text(enum ledger_moment_kind kind)
{
    return moments[kind].text;
}

const char *ledger_moment_name(enum ledger_moment_kind kind)
{
    return moments[kind].name;
}

/* Of the descriptor. */
const char *ledger_why_text(const struct ledger_violation *v)
{
    static const char *const why[] = {"removed", "less allowed", "replaced"};
    unsigned number = ledger_rule_number(v->rule);

    return number == 10 || number == 8 ? ledger_change_name(v->change)
           : number == 9               ? "another root"
           : number == 15              ? "unchanged"
                                       : why[v->why];
}

char *ledger_vcpus_text(uint64_t mask)
{
    GString *text = g_string_new(NULL);

    for (; mask; mask &= mask - 1) {
        bool is_last = !(mask & (mask - 1));

        g_string_append_printf(text, "%s%u",
                               !text->len ? ""
                               : is_last  ? " and "
                                          : ", ",
                               (unsigned)__builtin_ctzll(mask));
    }
    return g_string_free(text, FALSE);
}

char *ledger_promise_text(const struct ledger_finding *f)
{
    const struct ledger_violation *v = &f->first;
    g_autofree char *range = NULL;

    switch (v->rule) {
    case LEDGER_FREE:
        return g_strdup_printf("frame 0x%" PRIx64 " is given away: nobody can "
                               "reach it any more",
                               v->frame);
    case LEDGER_READER:
        return g_strdup_printf("the contents of frame 0x%" PRIx64 " are being "
                               "read: nobody can change them meanwhile",
                               v->frame);
    case LEDGER_RETURN:
        range = f->has_range ? g_strdup_printf(" of 0x%" PRIx64 "..0x%" PRIx64,
                                               f->op_start, f->op_end - 1)
                             : g_strdup("");
        return g_strdup_printf("%s%s has ended: %s is possible there any more "
                               "through what was mapped before",
                               op_kind_name(v->op), range,
                               ledger_contract_name(v->contract));
    case LEDGER_TABLE_FREED:
        return g_strdup_printf("the table at 0x%" PRIx64 " is given away: no "
                               "walk can read it any more",
                               f->frame);
    case LEDGER_TABLE_REUSED:
        return g_strdup_printf("the table at 0x%" PRIx64 " is something else "
                               "now: no walk takes it for what it was",
                               f->frame);
    case LEDGER_TAG:
        return g_strdup_printf("ASID %u belongs to the root at 0x%" PRIx64 ": "
                               "no entry of another root has it",
                               v->asid, v->pa);
    case LEDGER_LOST:
        return g_strdup("the vCPUs that were asked to flush have done it");
    case LEDGER_DIRTY:
        return g_strdup_printf("frame 0x%" PRIx64 " is dropped: what it holds "
                               "is what was written out",
                               v->frame);
    case LEDGER_CONTEXT:
        return g_strdup("a vCPU's own stores to its kernel's tables hold for "
                        "it after a DSB and a context synchronization");
    case LEDGER_LIVELOCK:
        return g_strdup_printf("a fault at 0x%" PRIx64 " is over when it was "
                               "handled",
                               v->va);
    default:
        return g_strdup("the new translation is the only one: break before "
                        "make");
    }
}

/* "TLBI by address 0x..., ASID 3, of all levels" that would do. */
static char *tlbi_wanted(const struct ledger_violation *v)
{
    bool is_table = desc_kind(v->old, v->level) == DESC_KIND_TABLE;
    g_autofree char *va =
        v->has_va ? g_strdup_printf(" of 0x%" PRIx64, v->va) : g_strdup("");
    g_autofree char *asid = v->va >> 55 & 1 || !v->has_va
                                ? g_strdup("")
                                : g_strdup_printf(", ASID %u", v->asid);

    return g_strdup_printf("a TLBI%s%s%s that reaches vCPU", va, asid,
                           is_table ? ", of all levels," : "");
}

char *ledger_owed_text(const struct ledger_finding *f)
{
    const struct ledger_violation *v = &f->first;
    g_autofree char *who = ledger_vcpus_text(v->dirty);
    g_autofree char *tlbi = tlbi_wanted(v);

    if (v->rule == LEDGER_LIVELOCK) {
        return g_strdup_printf("by vCPU %u: a TLBI of its own for 0x%" PRIx64
                               ", or a change of the descriptor",
                               v->now_vcpu, v->va);
    }
    if (v->rule == LEDGER_TAG) {
        return g_strdup_printf("a TLBI of ASID %u that reaches vCPU %s, and "
                               "its DSB",
                               v->asid, who);
    }
    switch (v->step) {
    case LEDGER_STEP_WALKER:
        return g_strdup_printf("by vCPU %s: the end of a walk without a lock "
                               "that began before the table was unlinked",
                               who);
    case LEDGER_STEP_SERVICE:
        return g_strdup_printf("by vCPU %s: the flush that vCPU %u asked for",
                               who, v->now_vcpu);
    case LEDGER_STEP_OWN_DSB:
        return g_strdup_printf("by vCPU %s: a DSB ISH of its own, after the "
                               "issuer's of the TLBI",
                               who);
    case LEDGER_STEP_MADE_DSB:
        return g_strdup_printf("by vCPU %u: DSB ISHST (or NSHST) and ISB",
                               v->now_vcpu);
    case LEDGER_STEP_CONTEXT:
        return g_strdup_printf("by vCPU %u: an ISB", v->now_vcpu);
    case LEDGER_STEP_CLEAN:
        return g_strdup("by who drops it: writing out what was stored since");
    case LEDGER_STEP_BREAK:
        return g_strdup_printf("by vCPU %u: an invalid descriptor, a DSB, %s "
                               "%s, and a DSB",
                               v->now_vcpu, tlbi, who);
    case LEDGER_STEP_STORE_DSB:
    case LEDGER_STEP_STORE_KIND:
    case LEDGER_STEP_STORE_BY:
        return g_strdup_printf("by vCPU %u, who stored: a DSB ISHST; then %s "
                               "%s, and a DSB ISH of its issuer",
                               v->break_vcpu, tlbi, who);
    case LEDGER_STEP_ORDER:
    case LEDGER_STEP_TLBI:
    case LEDGER_STEP_VA:
    case LEDGER_STEP_ASID:
    case LEDGER_STEP_LEVEL:
    case LEDGER_STEP_SCOPE:
        return g_strdup_printf("by anybody: %s %s, and a DSB ISH of its issuer",
                               tlbi, who);
    case LEDGER_STEP_TLBI_DSB:
    case LEDGER_STEP_TLBI_KIND:
    case LEDGER_STEP_TLBI_BY:
    default:
        return v->tlbi.known
                   ? g_strdup_printf("by vCPU %u, who issued the TLBI: a DSB "
                                     "ISH after it",
                                     v->tlbi.vcpu)
                   : g_strdup("by who issued the TLBI: a DSB ISH after it");
    }
}

const char *ledger_tlbi_excuse(const struct ledger_violation *v)
{
    switch (v->tlbi.step) {
    case LEDGER_STEP_STORE_DSB:
    case LEDGER_STEP_STORE_KIND:
    case LEDGER_STEP_STORE_BY:
    case LEDGER_STEP_ORDER:
        return "does not count: a walk could still read the old descriptor";
    case LEDGER_STEP_VA:
        return "does not count: it names other addresses";
    case LEDGER_STEP_ASID:
        return "does not count: it names another ASID";
    case LEDGER_STEP_LEVEL:
        return "does not count: it leaves descriptors of this level alone";
    case LEDGER_STEP_SCOPE:
        return "does not count for all: it did not reach every holder";
    case LEDGER_STEP_TLBI_DSB:
    case LEDGER_STEP_TLBI_KIND:
    case LEDGER_STEP_TLBI_BY:
        return v->step == LEDGER_STEP_OWN_DSB
                   ? "does not count yet: it says nothing of others' units"
                   : "does not count yet: it was not waited for";
    default:
        return "";
    }
}

/* Where nothing that was tried failed: by what the program wanted. */
static const char *fix_of_rule(enum ledger_rule rule)
{
    switch (rule) {
    case LEDGER_FREE:
        return "Flush before the frame is given away: clear, DSB ISHST, TLBI, "
               "DSB ISH, and only then free; or keep the frame in a gather "
               "until the flush.";
    case LEDGER_RETURN:
        return "Before it returns, an operation must also close what others "
               "have deferred in its range: drain pending flushes under the "
               "page-table lock, even if nothing is mapped there.";
    case LEDGER_READER:
        return "Flush before contents are read: take the write permission "
               "away, DSB ISHST, TLBI, DSB ISH, then copy or start the I/O.";
    case LEDGER_TABLE_FREED:
    case LEDGER_TABLE_REUSED:
        return "Unlink the table, flush all levels of its range, wait with "
               "DSB ISH, and only then free or reuse its page.";
    case LEDGER_TAG:
        return "Give an ASID to another root only after a flush of it on every "
               "CPU that may have used it: by a rollover, flush before the "
               "first load of the new generation.";
    case LEDGER_LIVELOCK:
        return "A fault that the tables do not explain is spurious: flush the "
               "address on this CPU before the return, or change the "
               "descriptor.";
    default:
        return "Break before make: write an invalid descriptor, DSB ISHST, "
               "TLBI, DSB ISH, then write the new one.";
    }
}

const char *ledger_fix_text(const struct ledger_violation *v, bool is_ipi)
{
    switch (v->step) {
    case LEDGER_STEP_WALKER:
        return "Free a table only when nobody can be walking it: wait for "
               "walkers (an IPI to each, or a grace period); a broadcast TLBI "
               "sends none.";
    case LEDGER_STEP_SERVICE:
        return "Count requests and what was served for each CPU, never clear "
               "one that another CPU may have just set, and wait until both "
               "are equal.";
    case LEDGER_STEP_OWN_DSB:
        return "After TLBI and DSB ask every CPU whose unit may be active to "
               "execute a DSB, and wait for that; to repeat TLBI and DSB does "
               "not help.";
    case LEDGER_STEP_MADE_DSB:
    case LEDGER_STEP_CONTEXT:
        return "Put DSB ISHST and ISB between the store and the first use of "
               "what it maps, on the CPU that does both.";
    case LEDGER_STEP_CLEAN:
        return "Flush the writable translation before the page is declared "
               "clean: what is stored through it later does not set the "
               "dirty bit again.";
    case LEDGER_STEP_STORE_DSB:
    case LEDGER_STEP_STORE_KIND:
    case LEDGER_STEP_ORDER:
        return "Put DSB ISHST between the store and the TLBI, on the CPU that "
               "stored: until then walks may read the old descriptor, and "
               "cache it again.";
    case LEDGER_STEP_STORE_BY:
        return "A DSB shows its own CPU's stores only: the one between store "
               "and TLBI must be on the CPU that stored (a context switch "
               "needs one as well).";
    case LEDGER_STEP_VA:
        return "Flush the range that the stores changed, from its first to its "
               "last page, or everything; count pages and not bytes, and "
               "check the range operand's scale.";
    case LEDGER_STEP_ASID:
        return "Read the ASID for the TLBI after the DSB that makes the store "
               "visible, and flush every ASID that the address space may "
               "still have entries under.";
    case LEDGER_STEP_LEVEL:
        return "Where a table was unlinked or a block split, flush all levels: "
               "no last-level form (VALE1IS) and no level hint.";
    case LEDGER_STEP_SCOPE:
        return is_ipi ? "Ask every CPU that may have the root loaded, and wait "
                        "for each: set its bit before it loads the root, clear "
                        "it after its own flush."
                      : "Use the inner-shareable form (...IS): without it a "
                        "TLBI reaches the issuer alone.";
    case LEDGER_STEP_TLBI_DSB:
        return "Wait for the TLBI with DSB ISH on the CPU that issued it, "
               "before anybody relies on it.";
    case LEDGER_STEP_TLBI_KIND:
        return "Wait with DSB ISH or SY: NSH does not wait for other CPUs, ST "
               "and LD do not wait for a TLBI.";
    case LEDGER_STEP_TLBI_BY:
        return "A DSB completes its own CPU's TLBIs only: wait on the issuer, "
               "or issue the TLBI again and wait for that (a drain needs its "
               "own).";
    default:
        return fix_of_rule(v->rule);
    }
}

char *ledger_again_text(const struct ledger_finding *f,
                        const struct vm_config *config)
{
    g_autofree char *run = NULL, *path = NULL, *packed = NULL;
    const char *line;

    if (f->schedule_path) {
        path = vm_config_word(f->schedule_path);
        return g_strdup_printf("shootdown replay %s", path);
    }
    if (f->schedule && f->run == 0) { /* of bytes: no seed has it */
        packed = schedule_to_line(f->schedule);
        return g_strdup_printf("shootdown replay %s", packed);
    }
    if (f->schedule && (line = schedule_get(f->schedule, "run")) != NULL) {
        return g_strdup_printf("shootdown run %s", line);
    }
    run = vm_config_to_text(config);
    return g_strdup_printf("shootdown run %s", run);
}
