/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests: what a litmus machine can end in. Each program is small enough
 * for a search that leaves nothing out, with which the real one must agree.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <glib.h>
#include <glib/gstdio.h>

#include "litmus/explore.h"
#include "litmus/image.h"
#include "litmus/machine.h"
#include "litmus/pool.h"
#include "litmus/report.h"
#include "litmus/state.h"
#include "litmus/test.h"
#include "litmus/verdicts.h"

struct sample {
    const char *text;
    enum litmus_observation seen;
};

#define UNMAP                                                                  \
    "{ x=1; 0:X1=(oa:PA(x),valid:0); 0:X2=PTE(x); 0:X3=x; 0:X5=f; 1:X3=x;"     \
    " 1:X5=f; }\n P0 | P1 ;\n STR X1,[X2] | LDR W6,[X5] ;\n"                   \
    " DSB ISH | L0: LDR W7,[X3] ;\n"
#define SIGNAL " MOV W6,#1 | ;\n STR W6,[X5] | ;\n"
/* x's page is mapped by P0, which tells P1. */
#define MAP_HEAD                                                               \
    "{ PTE(x)=(valid:0); 0:X1=(oa:PA(x)); 0:X2=PTE(x); 0:X5=f; 0:X6=1;"        \
    " 1:X3=x; 1:X5=f; }\n P0 | P1 ;\n STR X1,[X2] | LDR W6,[X5] ;\n"           \
    " NOP | L0: LDR W7,[X3] ;\n"
#define MAP MAP_HEAD " STR W6,[X5] | ;\n"
/* Stores of P0 set the dirty state of x's page, those of P1 do not. */
#define DIRTY                                                                  \
    "TTHM=P0:HA P0:HD\n{ PTE(x)=(db:0,dbm:1); 0:X1=1; 0:X3=x; 0:X5=f; 1:X3=x;" \
    " 1:X2=PTE(x); 1:X4=(oa:PA(x),valid:0); 1:X5=f; 1:X8=x1;"                  \
    " PTE(x1)=(oa:PA(x)); }\n P0 | P1 ;\n "
#define STALE "exists (1:X6=1 /\\ ~fault(P1:L0,x))"

/* x's page is unmapped by P0, which tells P1 through f. */
static const struct sample samples[] = {
    {"AArch64 shot-down\n" UNMAP
     " LSR X4,X3,#12 | ;\n TLBI VAAE1IS,X4 | ;\n DSB ISH | ;\n" SIGNAL STALE,
     LITMUS_NEVER},
    {"AArch64 not-complete\n" UNMAP
     " LSR X4,X3,#12 | ;\n TLBI VAAE1IS,X4 | ;\n DSB ISHST | ;\n" SIGNAL STALE,
     LITMUS_SOMETIMES},
    {"AArch64 another-page\n" UNMAP
     " LSR X4,X5,#12 | ;\n TLBI VAAE1IS,X4 | ;\n DSB ISH | ;\n" SIGNAL STALE,
     LITMUS_SOMETIMES},
    {"AArch64 everything\n" UNMAP
     " TLBI VMALLE1IS | ;\n DSB ISH | ;\n" SIGNAL STALE,
     LITMUS_NEVER},
    {"AArch64 local\n" UNMAP " TLBI VMALLE1 | ;\n DSB ISH | ;\n" SIGNAL STALE,
     LITMUS_SOMETIMES},
    {"AArch64 no-tlbi\n" UNMAP SIGNAL STALE, LITMUS_SOMETIMES},
    /* A fault is not cached. */
    {"AArch64 mapped\n{ PTE(x)=(valid:0); x=1; 0:X1=(oa:PA(x)); 0:X2=PTE(x);"
     " 0:X3=x; }\n P0 ;\n STR X1,[X2] ;\n DSB ISH ;\n ISB ;\n"
     " L0: LDR W4,[X3] ;\nexists (fault(P0:L0,x))",
     LITMUS_NEVER},
    /* Speculation sets the access flag, but makes nothing dirty. */
    {"AArch64 touched\nTTHM=HA HD\n{ PTE(x)=(af:0,db:0,dbm:1); 0:X1=x;"
     " 0:X2=PTE(x); 0:X3=0; }\n P0 ;\n LDR X4,[X2] ;\n CBZ X3,END ;\n"
     " STR W4,[X1] ;\n END: ;\n"
     "exists (0:X4=(oa:PA(x),af:1,db:0,dbm:1))",
     LITMUS_SOMETIMES},
    {"AArch64 dirty\nTTHM=HA HD\n{ PTE(x)=(af:0,db:0,dbm:1); 0:X1=x;"
     " 0:X2=PTE(x); 0:X3=0; }\n P0 ;\n LDR X4,[X2] ;\n CBZ X3,END ;\n"
     " STR W4,[X1] ;\n END: ;\n"
     "exists (PTE(x)=(oa:PA(x),af:1,db:1,dbm:1) \\/"
     " PTE(x)=(oa:PA(x),af:0,db:1,dbm:1))",
     LITMUS_NEVER},
    /* Tries again until it is mapped; runs that never are do not count. */
    {"AArch64 again\nVariant=handled\n{ PTE(x)=(valid:0); x=1;"
     " 0:X1=(oa:PA(x)); 0:X2=PTE(x); 1:X3=x; }\n P0 | P1 ;\n"
     " STR X1,[X2] | L0: LDR W4,[X3] ;\nforall (1:X4=1)",
     LITMUS_ALWAYS},
    {"AArch64 handled\n{ PTE(x)=(db:0); 0:X1=x; 0:X2=PTE(x);"
     " 0:X3=(oa:PA(x)); 0:X5=3; }\n P0 | P0.F ;\n L0: STR W5,[X1] |"
     " STR X3,[X2] ;\n LDR W6,[X1] | LSR X8,X1,#12 ;\n"
     " | TLBI VAE1,X8 ;\n | DSB NSH ;\n | ADR X9,L1 ;\n"
     " L1: NOP | MSR ELR_EL1,X9 ;\n | ERET ;\n"
     "forall (x=0 /\\ 0:X6=0 /\\ 0:X9=label:\"P0:L1\" /\\ fault(P0:L0,x))",
     LITMUS_ALWAYS},
    /* A store to a table shows to walks later, unless a barrier orders it. */
    {"AArch64 mapped-late\n" MAP "exists (1:X6=1 /\\ fault(P1:L0,x))",
     LITMUS_SOMETIMES},
    {"AArch64 mapped-dmb\n" MAP_HEAD " DMB ISHST | ;\n STR W6,[X5] | ;\n"
     "exists (1:X6=1 /\\ fault(P1:L0,x))",
     LITMUS_NEVER},
    {"AArch64 mapped-dmb-ld\n" MAP_HEAD " DMB LD | ;\n STR W6,[X5] | ;\n"
     "exists (1:X6=1 /\\ fault(P1:L0,x))",
     LITMUS_SOMETIMES},
    {"AArch64 mapped-release\n" MAP_HEAD
     " STLR W6,[X5] | ;\nexists (1:X6=1 /\\ fault(P1:L0,x))",
     LITMUS_NEVER},
    {"AArch64 mapped-swap\n" MAP_HEAD
     " SWPAL W6,W8,[X5] | ;\nexists (1:X6=1 /\\ fault(P1:L0,x))",
     LITMUS_NEVER},
    /* One that a load has seen is visible. */
    {"AArch64 mapped-seen\n{ PTE(x)=(valid:0); 0:X1=(oa:PA(x)); 0:X2=PTE(x);"
     " 1:X2=PTE(x); 1:X3=x; }\n P0 | P1 ;\n STR X1,[X2] | LDR X6,[X2] ;\n"
     " | L0: LDR W7,[X3] ;\nexists (1:X6=(oa:PA(x)) /\\ fault(P1:L0,x))",
     LITMUS_NEVER},
    /* Those to two pages show in any order, those to one page do not. */
    {"AArch64 two-pages\n{ PTE(x)=(valid:0); PTE(y)=(valid:0);"
     " 0:X1=(oa:PA(x)); 0:X2=PTE(x); 0:X3=(oa:PA(y)); 0:X4=PTE(y); 1:X3=x;"
     " 1:X4=y; }\n P0 | P1 ;\n STR X1,[X2] | L0: LDR W7,[X4] ;\n"
     " STR X3,[X4] | L1: LDR W8,[X3] ;\n"
     "exists (~fault(P1:L0,y) /\\ fault(P1:L1,x))",
     LITMUS_SOMETIMES},
    {"AArch64 one-page\nVariant=skip\n{ PTE(x)=(valid:0);"
     " 0:X1=(oa:PA(x),af:0); 0:X2=PTE(x); 0:X3=(oa:PA(x),db:0); 1:X3=x; }\n"
     " P0 | P1 ;\n STR X1,[X2] | L0: STR W7,[X3] ;\n"
     " STR X3,[X2] | L1: STR W7,[X3] ;\n"
     "exists (fault(P1:L0,x,MMU:Permission) /\\"
     " fault(P1:L1,x,MMU:AccessFlag))",
     LITMUS_NEVER},
    {"AArch64 one-page-between\nVariant=skip\n{ PTE(x)=(valid:0);"
     " 0:X1=(oa:PA(x),af:0); 0:X2=PTE(x); 0:X3=(oa:PA(x),db:0); 0:X5=f;"
     " 0:X6=1; 1:X3=x; 1:X5=f; }\n"
     " P0 | P1 ;\n STR X1,[X2] | LDR W6,[X5] ;\n"
     " STR X3,[X2] | L0: STR W7,[X3] ;\n STR W6,[X5] | ;\n"
     "exists (1:X6=1 /\\ fault(P1:L0,x,MMU:AccessFlag))",
     LITMUS_SOMETIMES},
    /* The writer's own walks see it at once. */
    {"AArch64 own-walk\n{ PTE(x)=(valid:0); 0:X1=(oa:PA(x)); 0:X2=PTE(x);"
     " 0:X3=x; 1:X0=0; }\n P0 | P1 ;\n STR X1,[X2] | NOP ;\n"
     " L0: LDR W4,[X3] | ;\nexists (fault(P0:L0,x))",
     LITMUS_NEVER},
    /* A TLBI before the store shows does not count. */
    {"AArch64 tlbi-first\n{ x=1; 0:X1=(oa:PA(x),valid:0); 0:X2=PTE(x);"
     " 0:X3=x; 0:X5=f; 1:X3=x; 1:X5=f; }\n P0 | P1 ;\n"
     " STR X1,[X2] | LDR W6,[X5] ;\n TLBI VMALLE1IS | L0: LDR W7,[X3] ;\n"
     " DSB ISH | ;\n" SIGNAL STALE,
     LITMUS_SOMETIMES},
    /* Hardware sets the dirty state before or after the store; not after the
     * thread's DSB, and not for an access that another has shot down. */
    {"AArch64 dirty-late\n" DIRTY "STR W1,[X3] | LDR W6,[X3] ;\n"
     " | LDR X7,[X2] ;\nexists (1:X6=1 /\\ 1:X7=(oa:PA(x),db:0,dbm:1))",
     LITMUS_SOMETIMES},
    {"AArch64 dirty-dsb\n" DIRTY "STR W1,[X3] | LDR W6,[X5] ;\n"
     " DSB ISH | LDR X7,[X2] ;\n STR W1,[X5] | ;\n"
     "exists (1:X6=1 /\\ 1:X7=(oa:PA(x),db:0,dbm:1))",
     LITMUS_NEVER},
    {"AArch64 dirty-early\n" DIRTY "STR W1,[X3] | L0: STR W0,[X3] ;\n"
     "exists (x=1 /\\ ~fault(P1:L0,x))",
     LITMUS_SOMETIMES},
    {"AArch64 dirty-for-nothing\n" DIRTY "L0: STR W1,[X3] | LDR X7,[X2] ;\n"
     " | STR X4,[X2] ;\n | DSB ISH ;\n | TLBI VMALLE1IS ;\n | DSB ISH ;\n"
     "exists (fault(P0:L0,x) /\\ 1:X7=(oa:PA(x),db:1,dbm:1))",
     LITMUS_NEVER},
    {"AArch64 dirty-shot-down\n" DIRTY "STR W1,[X3] | STR X4,[X2] ;\n"
     " | DSB ISH ;\n | TLBI VMALLE1IS ;\n | DSB ISH ;\n | LDR W6,[X8] ;\n"
     "exists (1:X6=0 /\\ x=1)",
     LITMUS_NEVER},
    {"AArch64 two-tlbis\n{ 0:X0=(oa:PA(x),valid:0); 0:X1=PTE(x); 0:X6=f;"
     " 0:X7=1; 0:X2=x; 1:X2=x; 1:X6=f; }\n P0 | P1 ;\n"
     " STR X0,[X1] | LDR W7,[X6] ;\n LSR X3,X2,#12 | L0: LDR W8,[X2] ;\n"
     " TLBI VAAE1IS,X3 | ;\n TLBI VMALLE1IS | ;\n DSB ISH | ;\n"
     " STR W7,[X6] | ;\nexists (1:X7=1 /\\ ~fault(P1:L0,x))",
     LITMUS_SOMETIMES},
    /* A store-exclusive may fail; then nothing is stored. */
    {"AArch64 exclusive\n{ 0:X1=1; 0:X3=x; }\n P0 ;\n LDXR W4,[X3] ;\n"
     " STXR W5,W1,[X3] ;\nexists (0:X5=1 /\\ x=0)",
     LITMUS_SOMETIMES},
    /* The address is loaded: nobody has it at the beginning. */
    {"AArch64 pointer\n{ p=x; 0:X1=p; 1:X2=PTE(x); 1:X3=(oa:PA(x),valid:0); }"
     "\n P0 | P1 ;\n LDR X4,[X1] | STR X3,[X2] ;\n LDR X5,[X2,X6] | DSB ISH ;\n"
     "exists (0:X4=x)",
     LITMUS_ALWAYS},
    /* What was valid between two states can be remembered. */
    {"AArch64 between\n{ 0:X1=(oa:PA(y)); 0:X2=PTE(x); 0:X4=(oa:PA(z)); y=1;"
     " z=2; 1:X3=x; 0:X5=1; 0:X6=f; 1:X8=f; }\n P0 | P1 ;\n"
     " STR X1,[X2] | LDR W7,[X8] ;\n STR X4,[X2] | LDR W5,[X3] ;\n"
     " STR W5,[X6] | ;\nexists (1:X7=1 /\\ 1:X5=1)",
     LITMUS_SOMETIMES},
    /*
     * TLBIs are applied one by one, in any order: the second is, x is cached
     * again before its new descriptor shows, and y is used as before.
     */
    {"AArch64 newer-first\n"
     "{ 0:X0=(oa:PA(x),valid:0); 0:X1=PTE(x); 0:X6=f; 0:X11=x; 0:X12=y;"
     " 0:X7=1; 0:X8=2; 1:X2=x; 1:X5=y; 1:X6=f; 0:X4=PTE(y);"
     " 0:X9=(oa:PA(y),valid:0); }\n P0 | P1 ;\n"
     " STR X9,[X4] | LDR W7,[X6] ;\n DSB ISH | L0: LDR W9,[X5] ;\n"
     " LSR X11,X11,#12 | LDR W8,[X6] ;\n"
     " LSR X12,X12,#12 | L1: LDR W10,[X2] ;\n STR X0,[X1] | ;\n"
     " TLBI VAAE1IS,X12 | ;\n TLBI VAAE1IS,X11 | ;\n DMB ST | ;\n"
     " STR W7,[X6] | ;\n DSB ISH | ;\n STR W8,[X6] | ;\n"
     "exists (1:X7=1 /\\ ~fault(P1:L0,y) /\\ 1:X8=2 /\\ ~fault(P1:L1,x))",
     LITMUS_SOMETIMES},
};
/* The last ones, too much for a search that leaves nothing out. */
#define LARGE_SAMPLES 2

struct explored {
    struct litmus_test *test;
    struct litmus_image *image;
    struct litmus_machine *machine;
    struct litmus_outcomes out;
};

static void explore(struct explored *e, const char *text,
                    const struct litmus_bounds *bounds)
{
    GError *error = NULL;
    bool ok;

    memset(e, 0, sizeof(*e));
    e->test = litmus_parse(text, "t", &error);
    ck_assert_msg(e->test != NULL, "%s", error ? error->message : "");
    e->image = litmus_image_new(e->test, "t", &error);
    ck_assert_msg(e->image != NULL, "%s", error ? error->message : "");
    e->machine = litmus_machine_new(e->test, e->image, NULL, &error);
    ck_assert_msg(e->machine != NULL, "%s", error ? error->message : "");
    ok = litmus_explore(e->machine, bounds, &e->out, &error);
    ck_assert_msg(ok, "%s", error ? error->message : "");
}

static void explored_fini(struct explored *e)
{
    litmus_outcomes_fini(&e->out);
    litmus_machine_free(e->machine);
    litmus_image_free(e->image);
    litmus_test_free(e->test);
}

/* The states, a line each. */
static char *states_of(const struct litmus_outcomes *out)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < out->finals->len; i++) {
        const struct litmus_final *f = out->finals->pdata[i];

        g_string_append_printf(text, "%s\n", f->text);
    }
    return g_string_free(text, FALSE);
}

START_TEST(a_search_sees_what_it_should)
{
    struct litmus_bounds bounds = LITMUS_BOUNDS_DEFAULT;
    struct explored e;

    bounds.seconds = 0;
    explore(&e, samples[_i].text, &bounds);
    ck_assert(e.out.complete);
    ck_assert_msg(litmus_observe(&e.out) == samples[_i].seen, "%s",
                  litmus_report_text(e.test, &e.out, NULL));
    explored_fini(&e);
}
END_TEST

START_TEST(what_the_search_leaves_out_changes_nothing)
{
    struct litmus_bounds bounds = LITMUS_BOUNDS_DEFAULT;
    struct explored reduced, naive;
    g_autofree char *few = NULL;
    g_autofree char *all = NULL;

    bounds.seconds = 0;
    explore(&reduced, samples[_i].text, &bounds);
    few = states_of(&reduced.out);
    explored_fini(&reduced);
    bounds.naive = true;
    bounds.seconds = 0; /* it takes what it takes */
    explore(&naive, samples[_i].text, &bounds);
    ck_assert(naive.out.complete);
    all = states_of(&naive.out);
    ck_assert_str_eq(few, all);
    explored_fini(&naive);
}
END_TEST

START_TEST(random_runs_see_nothing_that_the_search_does_not)
{
    struct litmus_bounds bounds = LITMUS_BOUNDS_DEFAULT;
    struct explored all, some;
    g_autofree char *complete = NULL;

    explore(&all, samples[_i].text, &bounds);
    complete = states_of(&all.out);
    explored_fini(&all);
    bounds.states = 1;
    bounds.random_runs = 300;
    explore(&some, samples[_i].text, &bounds);
    for (guint i = 0; i < some.out.finals->len; i++) {
        const struct litmus_final *f = some.out.finals->pdata[i];

        ck_assert_msg(strstr(complete, f->text) != NULL, "%s", f->text);
    }
    ck_assert_uint_gt(some.out.finals->len, 0);
    explored_fini(&some);
}
END_TEST

START_TEST(states_compare_however_they_are_written)
{
    g_autofree char *a = litmus_state_normalized(
        "0:X1=1; [PTE(x)]=(oa:PA(y), dbm:1, af:0);  ~Fault(P0:L0,x);");
    g_autofree char *b = litmus_state_normalized(
        "~Fault(P0:L0,x);[PTE(x)]=(oa:PA(y),af:0, dbm:1);0:X1=1");

    ck_assert_str_eq(a, b);
}
END_TEST

START_TEST(kinds_are_read_from_lines_and_from_tables)
{
    g_autofree char *path =
        g_build_filename(g_get_user_cache_dir(), "kinds", NULL);
    struct litmus_verdicts *v;
    GError *error = NULL;

    ck_assert(g_file_set_contents(path, "# c\nA+b Allow # x\nC Required\n", -1,
                                  NULL));
    v = litmus_verdicts_load(path, &error);
    ck_assert(v != NULL);
    ck_assert_int_eq(litmus_verdicts_find(v, "d/f", "A+b")->kind,
                     LITMUS_ALLOWED);
    ck_assert(!litmus_verdicts_find(v, "d/f", "B"));
    litmus_verdicts_free(v);
    ck_assert(g_file_set_contents(
        path,
        "file\tname\tkind_published\tclass\nd/f.litmus\tA\tForbid\tFORBIDDEN\n"
        "g.litmus\tA\tAllowed\tX\n",
        -1, NULL));
    v = litmus_verdicts_load(path, &error);
    ck_assert(v != NULL);
    ck_assert_int_eq(litmus_verdicts_find(v, "/r/d/f.litmus", "A")->kind,
                     LITMUS_FORBIDDEN);
    ck_assert_str_eq(litmus_verdicts_find(v, "/r/d/g.litmus", "A")->class, "X");
    litmus_verdicts_free(v);
    ck_assert(g_file_set_contents(path, "A Maybe\n", -1, NULL));
    ck_assert(!litmus_verdicts_load(path, &error));
    ck_assert(g_str_has_suffix(error->message,
                               "kinds:1: Maybe; expected a kind: Forbidden, "
                               "Allowed, Required or none"));
    g_error_free(error);
}
END_TEST

struct jobs {
    guint finished, died;
    bool in_order;
};

static void do_job(void *opaque, guint job, GString *out)
{
    (void)opaque;
    if (job == 3) {
        _exit(5);
    }
    if (job == 5) {
        (void)raise(SIGKILL);
    }
    for (guint i = 0; i < (20 - job) * 1000; i++) {
        g_string_append_printf(out, "%u ", job);
    }
}

static void job_finished(void *opaque, guint job, const char *text, int status)
{
    struct jobs *jobs = opaque;

    jobs->in_order = jobs->in_order && job == jobs->finished;
    jobs->finished++;
    if (!text) {
        jobs->died++;
        ck_assert(job == 3 ? WIFEXITED(status) && WEXITSTATUS(status) == 5
                           : job == 5 && WIFSIGNALED(status));
    } else {
        ck_assert_uint_eq(strtoul(text, NULL, 10), job);
        ck_assert_uint_ge(strlen(text), (20 - job) * 2000);
    }
}

START_TEST(a_job_that_dies_is_one_failed_job)
{
    static const struct pool_ops ops = {do_job, job_finished, NULL};
    const unsigned workers[] = {1, 3, 50};
    struct jobs jobs = {.in_order = true};
    GError *error = NULL;

    ck_assert(pool_run(&ops, &jobs, 20, workers[_i], &error));
    ck_assert(jobs.in_order);
    ck_assert_uint_eq(jobs.finished, 20);
    ck_assert_uint_eq(jobs.died, 2);
}
END_TEST

static void do_slowly(void *opaque, guint job, GString *out)
{
    (void)opaque;
    (void)job;
    (void)out;
    g_usleep(G_USEC_PER_SEC);
}

static void slow_finished(void *opaque, guint job, const char *text, int status)
{
    (void)opaque;
    (void)job;
    (void)status;
    ck_assert(text != NULL);
}

static void count_progress(void *opaque, guint done)
{
    guint *calls = opaque;

    *calls += done == 0;
}

START_TEST(progress_is_told_while_a_job_runs)
{
    static const struct pool_ops ops = {do_slowly, slow_finished,
                                        count_progress};
    guint calls = 0;
    GError *error = NULL;

    ck_assert(pool_run(&ops, &calls, 1, 1, &error));
    ck_assert_uint_ge(calls, 2);
}
END_TEST

START_TEST(the_assembler_s_complaint_is_told_of_the_test)
{
    GError *error = NULL;
    struct litmus_test *test = litmus_parse(
        "AArch64 T\n{}\n P0 | P1 ;\n NOP | NOP ;\n NOP | FROB X1 ;\n"
        "exists (0:X0=1)",
        "t", &error);

    ck_assert(test != NULL);
    ck_assert(!litmus_image_new(test, "t", &error));
    ck_assert_msg(g_str_has_prefix(error->message, "t:5:8: 'FROB X1': "), "%s",
                  error->message);
    g_error_free(error);
    litmus_test_free(test);
}
END_TEST

/* Everything in it, two directories deep, is a file of ours. */
static void remove_cache(const char *cache)
{
    g_autofree char *outer = g_build_filename(cache, "shootdown", NULL);
    g_autofree char *inner = g_build_filename(outer, "litmus", NULL);
    const char *const dirs[] = {inner, outer, cache};

    for (unsigned i = 0; i < G_N_ELEMENTS(dirs); i++) {
        GDir *dir = g_dir_open(dirs[i], 0, NULL);
        const char *name;

        while (dir && (name = g_dir_read_name(dir))) {
            g_autofree char *path = g_build_filename(dirs[i], name, NULL);

            (void)g_unlink(path);
        }
        if (dir) {
            g_dir_close(dir);
        }
        (void)g_rmdir(dirs[i]);
    }
}

int main(void)
{
    Suite *suite = suite_create("litmus_search");
    TCase *tcase = tcase_create("machine");
    g_autofree char *cache = g_dir_make_tmp("litmus-XXXXXX", NULL);
    SRunner *runner;
    int failed;

    if (!cache || !g_setenv("XDG_CACHE_HOME", cache, TRUE)) {
        return EXIT_FAILURE;
    }
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, a_search_sees_what_it_should, 0,
                        (int)G_N_ELEMENTS(samples));
    tcase_add_loop_test(tcase, what_the_search_leaves_out_changes_nothing, 0,
                        (int)G_N_ELEMENTS(samples) - LARGE_SAMPLES);
    tcase_add_loop_test(tcase, random_runs_see_nothing_that_the_search_does_not,
                        0, (int)G_N_ELEMENTS(samples));
    tcase_add_loop_test(tcase, a_job_that_dies_is_one_failed_job, 0, 3);
    tcase_add_test(tcase, progress_is_told_while_a_job_runs);
    tcase_add_test(tcase, states_compare_however_they_are_written);
    tcase_add_test(tcase, kinds_are_read_from_lines_and_from_tables);
    tcase_add_test(tcase, the_assembler_s_complaint_is_told_of_the_test);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    remove_cache(cache);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
