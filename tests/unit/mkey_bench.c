/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements mkey_bench.h: the bench for memory keys. */
#include <check.h>
#include <string.h>
#include "tests/unit/mkey_bench.h"

struct rig rig;
uint64_t mem; /* bus address of page 0 */

uint8_t *ram(uint64_t offset)
{
    return fake_host_ptr(&rig.host, mem + offset, 1);
}

uint8_t pattern(uint64_t offset)
{
    return offset * 7 + offset / PAGE;
}

void setup(void)
{
    rig_init(&rig);
    mem = fake_host_alloc(&rig.host, PAGES * PAGE, PAGE);
    for (unsigned i = 0; i < PAGES * PAGE; i++) {
        *ram(i) = pattern(i);
    }
}

void teardown(void)
{
    rig_clear(&rig);
}

/* -- keys ------------------------------------------------------------------------------------- */

/* Fills in a context in use with all rights and no room for translations. */
void fill_mkc(struct prm_mkc *mkc, unsigned mode, uint64_t start, uint64_t len)
{
    memset(mkc, 0, PRM_SIZE(mkc));
    PRM_SET(mkc, mkc, access_mode_1_0, mode & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, mode >> 2);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, a, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, VARIANT);
    PRM_SET(mkc, mkc, pd, rig.pdn);
    PRM_SET(mkc, mkc, start_addr, start);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, log_page_size, mode == PRM_MKC_ACCESS_MODE_KLMS ? 0 : 12);
}

uint32_t create(const struct prm_mkc *mkc, const void *xlt, size_t xlt_len)
{
    uint32_t index;

    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, xlt, xlt_len, false, &index), SYN_OK);
    return index << 8 | PRM_GET(mkc, mkc, mkey_7_0);
}

/* Makes an MTT key of n of the pages, by their numbers, from va start. */
uint32_t create_mtt(uint64_t start, uint64_t len, const unsigned *pages, unsigned n)
{
    struct prm_mkc mkc[1];
    uint8_t mtt[PAGES * 8];

    for (unsigned i = 0; i < n; i++) {
        prm_store64(mtt + 8 * i, mem + (uint64_t)pages[i] * PAGE);
    }
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, start, len);
    PRM_SET(mkc, mkc, translations_octword_size, (n + 1) / 2);
    return create(mkc, mtt, n * 8);
}

void klm(void *list, unsigned i, uint32_t count, uint32_t key, uint64_t va)
{
    struct prm_wqe_klm_seg *entry = list;

    PRM_SET(wqe_klm_seg, &entry[i], byte_count, count);
    PRM_SET(wqe_klm_seg, &entry[i], mkey, key);
    PRM_SET(wqe_klm_seg, &entry[i], va, va);
}

uint32_t create_klm(unsigned mode, uint64_t start, uint64_t len, const void *list, unsigned n)
{
    struct prm_mkc mkc[1];

    fill_mkc(mkc, mode, start, len);
    PRM_SET(mkc, mkc, translations_octword_size, n);
    return create(mkc, list, n * 16);
}

/* The plain key that most tests use: pages 5, 2, 3, 9, from 0x123 bytes into the first. */
const unsigned scattered[4] = {5, 2, 3, 9};

uint32_t create_scattered(void)
{
    return create_mtt(VA + IN_PAGE, LEN, scattered, 4);
}

/* Returns the address in memory of byte `at` of that key. */
uint64_t scattered_at(uint64_t at)
{
    at += IN_PAGE;
    return (uint64_t)scattered[at / PAGE] * PAGE + at % PAGE;
}

enum mem_result peek(uint32_t key, uint64_t va, uint8_t *byte)
{
    return mkey_read(&rig.hca, key, rig.pdn, va, byte, 1, MEM_LOCAL_READ);
}

/* -- translation ------------------------------------------------------------------------------ */

void umr_start(struct umr *umr, uint32_t key, uint64_t mask)
{
    memset(umr, 0, sizeof(*umr));
    PRM_SET(wqe_umr_ctrl_seg, umr->ctrl, mkey_mask, mask);
    umr->req = (struct mkey_umr){
        .key = key,
        .pdn = rig.pdn,
        .fast = true,
        .ctrl = umr->ctrl,
        .mkey_seg = umr->mkc,
        .xlt = umr->xlt,
        .xlt_len = sizeof(umr->xlt),
    };
}

void umr_mtts(struct umr *umr, const unsigned *pages, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        prm_store64(umr->xlt + 8 * i, (mem + (uint64_t)pages[i] * PAGE) | 3);
    }
    PRM_SET(wqe_umr_ctrl_seg, umr->ctrl, xlt_octowords, (n + 7) / 8 * 4);
}

/* Makes a key as in the driver's cache: free, in the driver's PD, with room for ndescs pages. */
uint32_t create_cached(unsigned ndescs, uint32_t pdn)
{
    struct prm_mkc mkc[1];

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_MTT, 0, 0);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, translations_octword_size, (ndescs + 1) / 2);
    return create(mkc, NULL, 0);
}
