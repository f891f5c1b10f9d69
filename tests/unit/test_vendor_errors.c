/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of completion errors in docs/reference/errors.md is the one that the device has: each
 * syndrome, and the vendor's syndromes of send and receive completions. The test's environment says
 * where the tree is (HCASIM_SOURCE_ROOT).
 */
#include <check.h>
#include <glib.h>
#include <string.h>
#include "model/queue/cqe_vendor.h"
#include "prm/prm.h"
#include "tests/unit/suite.h"

#define SYNDROMES 0x40u /* all that there are come before */

static char *page;

static void setup(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("HCASIM_SOURCE_ROOT"), "docs/reference/errors.md", NULL);

    ck_assert_msg(g_file_get_contents(path, &page, NULL, NULL), "%s", path);
}

static void teardown(void)
{
    g_free(page);
}

/* The row as far as the meaning, without its status. */
static char *row_of(unsigned syndrome)
{
    return g_strdup_printf("` | 0x%02x | 0x%02x | 0x%02x | ", syndrome,
                           cqe_vendor_synd(PRM_CQE_OPCODE_REQ_ERR, (uint8_t)syndrome),
                           cqe_vendor_synd(PRM_CQE_OPCODE_RESP_ERR, (uint8_t)syndrome));
}

START_TEST(the_page_has_every_value)
{
    unsigned known = 0;

    for (unsigned i = 0; i < SYNDROMES; i++) {
        g_autofree char *row = row_of(i);

        if (prm_enum_name("cqe_syndrome", i)) {
            ck_assert_msg(strstr(page, row), "syndrome 0x%x has no row %s", i, row);
            known++;
        }
    }
    ck_assert_uint_ge(known, 13);
}
END_TEST

START_TEST(the_page_has_no_other_syndrome)
{
    g_auto(GStrv) lines = g_strsplit(page, "\n", -1);
    unsigned rows = 0, known = 0;

    for (char **line = lines; *line; line++) {
        rows += g_str_has_prefix(*line, "| `IBV_WC_");
    }
    for (unsigned i = 0; i < SYNDROMES; i++) {
        known += prm_enum_name("cqe_syndrome", i) != NULL;
    }
    ck_assert_uint_eq(rows, known);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("vendor-errors");
    TCase *c = tcase_create("page");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_page_has_every_value);
    tcase_add_test(c, the_page_has_no_other_syndrome);
    suite_add_tcase(suite, c);
    return suite;
}
