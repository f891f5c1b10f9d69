/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the layout of experimental verbs. Programs that were compiled with MLNX_OFED 4.6's
 * <infiniband/verbs_exp.h> have its offsets, sizes and values in their code. exp_facts.def has them
 * as that header gives them on x86-64; this library's header must give the same.
 */
#include <check.h>
#include <stdint.h>
#include "guest-lib/verbs/exp/include/infiniband/peer_ops.h"
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/unit/suite.h"

struct fact {
    const char *what;
    uint64_t here, there;
};

static void expect(const struct fact *facts, size_t n)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < n; i++) {
        if (facts[i].here != facts[i].there) {
            fprintf(stderr, "%s is 0x%llx, but 0x%llx in MLNX_OFED 4.6\n", facts[i].what,
                    (unsigned long long)facts[i].here, (unsigned long long)facts[i].there);
            wrong++;
        }
    }
    ck_assert_uint_eq(wrong, 0);
}

#define NO_FACT(...)
#define EXPECT(facts) expect(facts, sizeof(facts) / sizeof((facts)[0]))

START_TEST(each_structure_has_its_size)
{
    static const struct fact facts[] = {
#define STRUCT(type, size, align)                                                                  \
    {"the size of " #type, sizeof(type), size}, {"the alignment of " #type, _Alignof(type), align},
#define ENUM(type, size) {"the size of " #type, sizeof(type), size},
#define MEMBER           NO_FACT
#define VALUE            NO_FACT
#include "tests/verbs/exp_facts.def"
    };

    EXPECT(facts);
}
END_TEST

START_TEST(each_member_has_its_place)
{
    static const struct fact facts[] = {
#define STRUCT NO_FACT
#define ENUM   NO_FACT
#define MEMBER(type, member, offset, size)                                                         \
    {"the offset of " #member " in " #type, offsetof(type, member), offset},                       \
        {"the size of " #member " in " #type, sizeof(((type *)0)->member), size},
#define VALUE NO_FACT
#include "tests/verbs/exp_facts.def"
    };

    EXPECT(facts);
}
END_TEST

START_TEST(each_name_has_its_value)
{
    static const struct fact facts[] = {
#define STRUCT             NO_FACT
#define ENUM               NO_FACT
#define MEMBER             NO_FACT
#define VALUE(name, value) {#name, (uint64_t)(name), value},
#include "tests/verbs/exp_facts.def"
    };

    EXPECT(facts);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-exp-facts");
    TCase *tc = tcase_create("facts");

    tcase_add_test(tc, each_structure_has_its_size);
    tcase_add_test(tc, each_member_has_its_place);
    tcase_add_test(tc, each_name_has_its_value);
    suite_add_tcase(suite, tc);
    return suite;
}
