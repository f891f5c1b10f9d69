/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds where each range of a KLM list begins.
 *
 * The entries form a tree of sums in place (a Fenwick tree). Entry i, counted from 1, has the total
 * bytes of the last n entries up to and including itself, where n is the lowest set bit of i.
 * Therefore a change of n entries computes the n sums again, and at most one sum behind them for
 * each bit of the list's length. A search for an offset descends from the largest step to the
 * smallest.
 *
 * A sum keeps the two halves of the byte counts apart. So it is right both for a plain list and for
 * an interleaved list, whose byte counts have 16 bits (struct klm). The first entry says which of
 * the two the list is.
 */
#include "model/memory/mkey_priv.h"

G_STATIC_ASSERT(MKEY_LOG_MAX_KLM <= 16); /* no half of a sum overflows */

static uint64_t klm_own(const struct mkey *mkey, uint32_t i)
{
    const struct klm *klm = &mkey->klm[i - 1];

    return i == 1 && klm->key == PRM_WQE_REPEAT_OP_STRIDED_BLOCK ? 0 : klm_halves(klm->count);
}

static void klm_sum(struct mkey *mkey, uint32_t i)
{
    uint64_t sum = klm_own(mkey, i);

    for (uint32_t step = 1; !(i & step); step <<= 1) {
        sum += mkey->klm[i - step - 1].sum;
    }
    mkey->klm[i - 1].sum = sum;
}

/* Sum of the first n entries. */
static uint64_t klm_sum_to(const struct mkey *mkey, uint32_t n)
{
    uint64_t sum = 0;

    for (; n; n &= n - 1) {
        sum += mkey->klm[n - 1].sum;
    }
    return sum;
}

uint32_t klm_changed(struct mkey *mkey, uint32_t first, uint32_t n)
{
    uint32_t i = first, ranges = mkey->capacity, sums = n;

    if (!n) {
        return 0;
    }
    while (i < first + n) {
        klm_sum(mkey, ++i);
    }
    for (i += i & -i; i <= mkey->capacity; i += i & -i, sums++) {
        klm_sum(mkey, i);
    }
    mkey->rounds = 1;
    mkey->repeat = mkey->klm[0].key == PRM_WQE_REPEAT_OP_STRIDED_BLOCK;
    if (mkey->repeat) {
        /* wqe_repeat_block_seg, followed by wqe_repeat_ent_seg */
        mkey->rounds = mkey->klm[0].va >> 32;
        ranges = MIN((mkey->klm[0].va & 0xffff) + 1, mkey->capacity);
    }
    mkey->round_len = klm_bytes(mkey, klm_sum_to(mkey, ranges));
    return sums;
}
