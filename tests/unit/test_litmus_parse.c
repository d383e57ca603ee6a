/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unit tests: litmus tests as text. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>

#include "error.h"
#include "litmus/image.h"
#include "litmus/test.h"

static struct litmus_test *parsed(const char *text)
{
    GError *error = NULL;
    struct litmus_test *test = litmus_parse(text, "t", &error);

    ck_assert_msg(test != NULL, "%s", error ? error->message : "no error");
    return test;
}

static void refused(const char *text, const char *message)
{
    GError *error = NULL;
    struct litmus_test *test = litmus_parse(text, "t", &error);

    ck_assert_msg(test == NULL, "accepted: %s", text);
    ck_assert_msg(error && error->domain == VM_ERROR &&
                      strcmp(error->message, message) == 0,
                  "'%s' for '%s', expected '%s'",
                  error ? error->message : "nothing", text, message);
    g_error_free(error);
}

#define CODE "\n P0 ;\n NOP ;\n"
#define TEST(init) "AArch64 T\n{" init "}" CODE "exists (0:X0=1)"
#define CONDITION(c) "AArch64 T\n{ x; int64_t y; int z[2]; }" CODE c

START_TEST(every_way_to_write_an_initial_value_is_read)
{
    struct litmus_test *t = parsed(TEST(
        "0:X1=x; P0:W2=7; 0:x3=PTE(y); 0:X4=pte_y; 0:X5=TTD(y);"
        "pteval_t 0:X6=(oa:PA(y),valid:0, af:0,db:0,dbm:1,el0:0,x:0);"
        "0:X7=-1; 0:X8=0x10; int64_t 0:X9; x=1; int64_t w=2; [v]=y;"
        "int a[3]={1,2,3}; int *p=&x; [PTE(x)]=(oa:phy_y); pte_y=(valid:0);"));
    const struct litmus_thread *p0 = &t->thread[0];

    ck_assert_int_eq(p0->init[1].kind, LITMUS_ADDRESS);
    ck_assert_str_eq(t->var[p0->init[1].var].name, "x");
    ck_assert_uint_eq(p0->init[2].number, 7);
    for (unsigned r = 3; r <= 5; r++) {
        ck_assert_int_eq(p0->init[r].kind, LITMUS_PTE_ADDRESS);
        ck_assert_str_eq(t->var[p0->init[r].var].name, "y");
    }
    ck_assert_int_eq(p0->init[6].kind, LITMUS_PTE);
    ck_assert_str_eq(t->var[p0->init[6].pte.oa].name, "y");
    ck_assert(!p0->init[6].pte.valid && !p0->init[6].pte.af &&
              !p0->init[6].pte.db && p0->init[6].pte.dbm &&
              !p0->init[6].pte.el0 && !p0->init[6].pte.x);
    ck_assert_uint_eq(p0->init[7].number, UINT64_MAX);
    ck_assert_uint_eq(p0->init[8].number, 16);
    ck_assert(!p0->has_init[9]);
    for (unsigned i = 0; i < t->vars; i++) {
        const struct litmus_var *v = &t->var[i];

        switch (v->name[0]) {
        case 'x':
            ck_assert(v->size == 4 && v->init[0].number == 1);
            ck_assert(v->pte.valid && t->var[v->pte.oa].name[0] == 'y');
            break;
        case 'y':
            ck_assert(!v->pte.valid && v->pte.af && v->pte.oa == -1);
            break;
        case 'w':
            ck_assert(v->size == 8 && v->init[0].number == 2);
            break;
        case 'v':
        case 'p':
            ck_assert(v->size == 8 && v->init[0].kind == LITMUS_ADDRESS);
            break;
        case 'a':
            ck_assert(v->count == 3 && v->init[2].number == 3);
            break;
        default:
            ck_abort_msg("%s", v->name);
        }
    }
    litmus_test_free(t);
}
END_TEST

START_TEST(the_header_says_who_handles_what)
{
    struct litmus_test *t =
        parsed("AArch64 A+b.c\nVariant=vmsa,imprecise\nTTHM=P1:HA P2:HD\n"
               "EL0=P0,P2\nHash=abc\n\"DMB.SYdWW\"\nCom=Rf Fr\n{}\n"
               "P0|P1|P2;\nNOP|NOP|NOP;\nexists (0:X0=1)");

    ck_assert_str_eq(t->name, "A+b.c");
    ck_assert_str_eq(t->hash, "abc");
    ck_assert_int_eq(t->mode, LITMUS_RETRY);
    ck_assert_uint_eq(t->threads, 3);
    ck_assert(!t->thread[0].ha && t->thread[1].ha && t->thread[2].ha);
    ck_assert(!t->thread[1].hd && t->thread[2].hd);
    ck_assert(t->thread[0].el0 && !t->thread[1].el0 && t->thread[2].el0);
    litmus_test_free(t);
    t = parsed("AArch64 T\nTTHM=HA HD\nvariant=faultToNext\n{}" CODE
               "exists (0:X0=1)");
    ck_assert(t->thread[0].ha && t->thread[0].hd);
    ck_assert_int_eq(t->mode, LITMUS_SKIP);
    litmus_test_free(t);
}
END_TEST

START_TEST(columns_labels_and_handlers_are_told_apart)
{
    struct litmus_test *t =
        parsed("AArch64 T\n{}\n"
               " P0           | P1 | P1.F ;\n"
               " L0:          | L1: LDR W0,[X1,W2,SXTW] | ERET ;\n"
               " STLR W1,[X2] | L2: L3: LDAR X1,[X2] | ;\n"
               " TLBI VMALLE1IS | DSB ISH ;\n"
               " CBZ W1,END   | AT S1E1R,X0 | ;\n"
               " END:         | SWP W1,W2,[X3,#8] | ;\n"
               "exists (0:X0=1)");
    const GPtrArray *p0 = t->thread[0].code, *p1 = t->thread[1].code;
    const struct litmus_insn *insn = p0->pdata[0];

    ck_assert_uint_eq(p0->len, 4);
    ck_assert(litmus_insn_has_label(insn, "L0"));
    ck_assert(insn->kind == LITMUS_ACCESS && insn->writes && insn->base == 2);
    ck_assert_uint_eq(insn->line, 5);
    ck_assert_uint_eq(insn->column, 2);
    insn = p0->pdata[1];
    ck_assert_int_eq(insn->kind, LITMUS_TLBI);
    /* A label behind the last instruction is on a no-operation. */
    insn = p0->pdata[3];
    ck_assert(litmus_insn_has_label(insn, "END"));
    ck_assert_str_eq(insn->text, "NOP");
    insn = p1->pdata[0];
    ck_assert(insn->kind == LITMUS_ACCESS && !insn->writes);
    ck_assert(insn->base == 1 && insn->index == 2 && insn->index_is_word);
    insn = p1->pdata[1];
    ck_assert(litmus_insn_has_label(insn, "L2") &&
              litmus_insn_has_label(insn, "L3"));
    insn = p1->pdata[2];
    ck_assert_int_eq(insn->kind, LITMUS_DSB);
    insn = p1->pdata[3];
    ck_assert_int_eq(insn->kind, LITMUS_AT);
    insn = p1->pdata[4];
    ck_assert(insn->writes && insn->base == 3 && insn->offset == 8);
    ck_assert_uint_eq(t->thread[1].handler->len, 1);
    ck_assert(!t->thread[0].handler);
    litmus_test_free(t);
}
END_TEST

/* r: orders earlier stores, c: completes all, a: acquires, f: may fail, w:
 * will write. */
static const struct {
    const char *insn, *marks;
} ordered[] = {
    {"DSB ISH", "rc"},
    {"DSB SY", "rc"},
    {"dsb st", "r"},
    {"DSB ISHST", "r"},
    {"DSB LD", ""},
    {"DSB ISHLD", ""},
    {"DSB NSH", ""},
    {"DSB NSHST", ""},
    {"DSB #11", "rc"},
    {"DMB ISH", "r"},
    {"DMB ST", "r"},
    {"DMB LD", ""},
    {"ISB", ""},
    {"STR X1,[X2]", "w"},
    {"STLR X1,[X2]", "rw"},
    {"STXR W3,X1,[X2]", "f"},
    {"STLXR W3,X1,[X2]", "rf"},
    {"LDR X1,[X2]", ""},
    {"LDAR X1,[X2]", "a"},
    {"LDAPR X1,[X2]", "a"},
    {"LDAXR X1,[X2]", "a"},
    {"LDXR X1,[X2]", ""},
    {"LDADD X1,X3,[X2]", "w"},
    {"LDADDA X1,X3,[X2]", "aw"},
    {"LDADDL X1,X3,[X2]", "rw"},
    {"LDCLRALB W1,W3,[X2]", "raw"},
    {"STSETL X1,[X2]", "rw"},
    {"SWPAL X1,X3,[X2]", "raw"},
    {"SWPH W1,W3,[X2]", "w"},
    {"CAS X1,X3,[X2]", ""},
    {"CASAL X1,X3,[X2]", "ra"},
    {"CASPL X0,X1,X4,X5,[X2]", "r"},
};

START_TEST(what_an_instruction_orders_is_read_off_it)
{
    g_autofree char *text = g_strdup_printf(
        "AArch64 T\n{}\n P0 ;\n %s ;\nexists (0:X0=1)", ordered[_i].insn);
    GError *error = NULL;
    struct litmus_test *t = litmus_parse(text, "t", &error);
    const struct litmus_insn *insn;
    g_autofree char *marks = NULL;

    ck_assert_msg(t != NULL, "%s", error ? error->message : "");
    insn = t->thread[0].code->pdata[0];
    marks =
        g_strdup_printf("%s%s%s%s%s", insn->orders_stores ? "r" : "",
                        insn->completes ? "c" : "", insn->acquires ? "a" : "",
                        insn->may_fail ? "f" : "", insn->must_write ? "w" : "");
    ck_assert_msg(strcmp(marks, ordered[_i].marks) == 0, "%s: %s, not %s",
                  ordered[_i].insn, marks, ordered[_i].marks);
    litmus_test_free(t);
}
END_TEST

START_TEST(a_condition_is_a_formula_over_places)
{
    struct litmus_test *t = parsed(CONDITION(
        "locations [0:X5; y; pte_x; Fault(P0,x);]\n"
        "~exists (0:X1=1 /\\ (x=2 \\/ not z[1]=3) /\\\n"
        "  ~fault(P0:L0,x,MMU:Permission) /\\ [PTE(y)]=(oa:PA(x),af:0)\n"
        "  /\\ 0:X9=label:\"P0:L7\" /\\ 0:X1 <> 2)"));
    const struct litmus_formula *f = t->formula;

    ck_assert_int_eq(t->quantifier, LITMUS_NOT_EXISTS);
    ck_assert(g_str_has_prefix(t->condition, "~exists (0:X1=1 /\\ (x=2"));
    ck_assert_uint_eq(t->places->len, 10);
    ck_assert_int_eq(f->kind, LITMUS_AND);
    ck_assert(f->right->kind == LITMUS_IS && f->right->differs);
    f = f->left;
    ck_assert_int_eq(f->right->value.kind, LITMUS_LABEL);
    f = f->left;
    ck_assert_int_eq(f->right->place.kind, LITMUS_AT_PTE);
    f = f->left;
    ck_assert_int_eq(f->right->kind, LITMUS_NOT);
    ck_assert_int_eq(f->right->left->place.fault, LITMUS_FAULT_PERMISSION);
    ck_assert_str_eq(f->right->left->place.label, "L0");
    f = f->left;
    ck_assert_int_eq(f->right->kind, LITMUS_OR);
    ck_assert_uint_eq(f->right->right->left->place.element, 1);
    litmus_test_free(t);
}
END_TEST

static const char *const bad[][2] = {
    {"X86 T\n{}", "t:1:1: found 'X86 T', expected 'AArch64' and the test's "
                  "name"},
    {"AArch64 T\n", "t:2:1: found the end of the file, expected '{' and the "
                    "initial state"},
    {"AArch64 T (* a (* b *)\n{}", "t:1:11: this comment is not closed"},
    {"AArch64 T\nVariant=vmsa,lazy\n{}",
     "t:2:14: found 'lazy', expected vmsa, fatal, precise, handled, imprecise, "
     "skip or faultToNext"},
    {"AArch64 T\nTTHM=P1:HX\n{}", "t:2:6: found 'P1:HX', expected HA or HD"},
    {TEST(" 0:X1=; "), "t:2:8: found '; }', expected a number, a variable, "
                       "PTE(variable) or a descriptor"},
    {TEST(" PTE(x)=(valid:2); "), "t:2:17: found '2); }', expected 0 or 1"},
    {TEST(" PTE(x)=(vlid:0); "),
     "t:2:11: found 'vlid:0); }', expected one of oa, valid, af, db, dbm, el0, "
     "x and attrs"},
    {TEST(" x=1 y=2; "), "t:2:7: found 'y=2; }', expected ';' or '}'"},
    {TEST(" int x[99]; "),
     "t:2:9: found '99]; }', expected a number of 1 to 16, and ']'"},
    {TEST(" 1:X1=2; "), "t:1:1: 1:X1 has an initial value, but there is no P1"},
    {"AArch64 T\n{}\nQ0;\nNOP;\nexists (0:X0=1)",
     "t:3:1: found 'Q0;', expected the head of a column, P0 or P0.F"},
    {"AArch64 T\n{}\nP0|P0;\nNOP;\nexists (0:X0=1)",
     "t:3:4: this column is there twice"},
    {"AArch64 T\n{}\nP1;\nNOP;\nexists (1:X0=1)",
     "t:5:1: there is no column P0"},
    {"AArch64 T\n{}\nP0;\nNOP|NOP;\nexists (0:X0=1)",
     "t:4:5: a cell beyond the last column"},
    {"AArch64 T\n{}\nP0;\n.incbin \"a\";\nexists (0:X0=1)",
     "t:4:1: found '.incbin \"a\";', expected an instruction"},
    {"AArch64 T\n{}\nP0;\nNOP /*;\nexists (0:X0=1)",
     "t:4:5: found '/*;', expected a character of an instruction"},
    {"AArch64 T\n{}\nP0;\nNOP",
     "t:4:4: found the end of the file, expected '|' or ';'"},
    {CONDITION("exists (1:X0=1)"), "t:5:13: there is no P1"},
    {CONDITION("exists (0:X0=1"),
     "t:5:15: found the end of the file, expected ')'"},
    {CONDITION("exists (0:X0)"), "t:5:13: found ')', expected '=' or '<>'"},
    {CONDITION("exists (fault(P0,x,Lost))"),
     "t:5:20: found 'Lost))', expected Translation, AccessFlag or Permission"},
    {CONDITION("exists (z[2]=1)"),
     "t:5:11: found '2]=1)', expected an element's number and ']'"},
    {CONDITION("exists (0:X0=1) and"),
     "t:5:17: found 'and', expected the end of the file"},
};

START_TEST(what_is_wrong_is_told_with_line_and_column)
{
    refused(bad[_i][0], bad[_i][1]);
}
END_TEST

START_TEST(too_many_parentheses_are_refused)
{
    GString *text = g_string_new("AArch64 T\n{}" CODE "exists ");
    GError *error = NULL;

    for (unsigned i = 0; i < 100000; i++) {
        g_string_append_c(text, '(');
    }
    ck_assert(!litmus_parse(text->str, "t", &error));
    ck_assert(strstr(error->message, "parentheses inside each other"));
    g_error_free(error);
    g_string_free(text, TRUE);
}
END_TEST

/* Whatever somebody writes: a test or an error, and nothing else. */
START_TEST(damaged_tests_are_refused_or_read)
{
    static const char whole[] =
        "AArch64 T (* c *)\nTTHM=P1:HA\nVariant=vmsa,fatal\n"
        "{ x=1; int64_t y=2; 0:X1=(oa:PA(x),valid:0); 0:X2=PTE(x); "
        "int a[2]={1,2}; }\n P0 | P1 | P1.F ;\n L0: STR X1,[X2] | "
        "LDR W7,[X3,W4,SXTW] | ERET ;\nlocations [x; a[1];]\n"
        "exists (1:X6=1 /\\ ~fault(P1:L0,x,MMU:Permission) \\/ "
        "pte_x=(oa:PA(y),af:0))";
    static const char letters[] = "{}()[];|:=,~/\\ \n\t*PX0xA9\"<>-.&";
    guint32 seed = 20;
    GRand *rand = g_rand_new_with_seed(seed);
    unsigned accepted = 0;

    printf("seed %u\n", seed);
    for (unsigned i = 0; i < 20000; i++) {
        char *text = g_strdup(whole);
        size_t length = strlen(text);
        struct litmus_test *test;
        GError *error = NULL;

        for (int k = g_rand_int_range(rand, 1, 4); k > 0; k--) {
            size_t at = (size_t)g_rand_int_range(rand, 0, (gint32)length);

            if (g_rand_boolean(rand)) {
                text[at] = letters[g_rand_int_range(
                    rand, 0, (gint32)sizeof(letters) - 1)];
            } else {
                memmove(text + at, text + at + 1, length - at);
                length--;
            }
        }
        test = litmus_parse(text, "t", &error);
        ck_assert((test == NULL) == (error != NULL));
        if (test) {
            g_autofree char *source = litmus_assembly(test, NULL);

            accepted++;
            ck_assert(strstr(source, "head:"));
        }
        g_clear_error(&error);
        litmus_test_free(test);
        g_free(text);
    }
    ck_assert_uint_gt(accepted, 100);
    g_rand_free(rand);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("litmus_parse");
    TCase *tcase = tcase_create("text");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, every_way_to_write_an_initial_value_is_read);
    tcase_add_test(tcase, the_header_says_who_handles_what);
    tcase_add_test(tcase, columns_labels_and_handlers_are_told_apart);
    tcase_add_loop_test(tcase, what_an_instruction_orders_is_read_off_it, 0,
                        (int)G_N_ELEMENTS(ordered));
    tcase_add_test(tcase, a_condition_is_a_formula_over_places);
    tcase_add_loop_test(tcase, what_is_wrong_is_told_with_line_and_column, 0,
                        (int)G_N_ELEMENTS(bad));
    tcase_add_test(tcase, too_many_parentheses_are_refused);
    tcase_add_test(tcase, damaged_tests_are_refused_or_read);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
