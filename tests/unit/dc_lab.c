/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements dc_lab.h: DC targets and initiators in the two-HCA lab. */
#include <check.h>
#include <string.h>
#include "tests/unit/dc_lab.h"

const struct lab_qp_attr lab_dci = {
    .st = PRM_QP_ST_DCI,
    .log_sq = 7,
    .no_rq = true,
};

void lab_dctc(struct lab_side *side, struct prm_dctc *dctc)
{
    memset(dctc, 0, PRM_SIZE(dctc));
    PRM_SET(dctc, dctc, user_index, 0xffffff);
    PRM_SET(dctc, dctc, cqn, side->cqn);
    PRM_SET(dctc, dctc, pd, side->pdn);
    PRM_SET(dctc, dctc, rre, 1);
    PRM_SET(dctc, dctc, rwe, 1);
    PRM_SET(dctc, dctc, rae, 1);
    PRM_SET(dctc, dctc, atomic_mode, PRM_ATOMIC_MODE_UP_TO_128B);
    PRM_SET(dctc, dctc, min_rnr_nak, 12);
    PRM_SET(dctc, dctc, dc_access_key, DC_LAB_KEY);
    PRM_SET(dctc, dctc, mtu, PRM_QP_MTU_1024);
    PRM_SET(dctc, dctc, port, 1);
    PRM_SET(dctc, dctc, my_addr_index, 3);
    PRM_SET(dctc, dctc, hop_limit, 64);
}

enum syn lab_dct_create(struct lab_side *side, const struct prm_dctc *dctc, struct lab_dct *dct)
{
    struct prm_dctc with_srq[1];

    memcpy(with_srq, dctc, sizeof(with_srq));
    PRM_SET(dctc, with_srq, srqn_xrqn, dct->srq->obj.num);
    return dct_create(&side->hca, 0, with_srq, &dct->dctn);
}

static void make_srq(struct lab_side *side, struct lab_dct *dct)
{
    struct srq_attr attr = {
        .kind = OBJ_RMP,
        .pdn = side->pdn,
        .log_size = DC_LAB_LOG,
        .log_stride = 6,
    };

    dct->side = side;
    dct->ring = fake_host_alloc(&side->host, 64 << DC_LAB_LOG, 4096);
    dct->dbr = attr.dbr = fake_host_alloc(&side->host, 8, 8);
    attr.buf = lab_buf(dct->ring, 64 << DC_LAB_LOG);
    ck_assert_int_eq(srq_create(&side->hca, &attr, &dct->srq), SYN_OK);
    for (unsigned i = 0; i < 1 << DC_LAB_LOG; i++) {
        PRM_SET(wqe_srq_next_seg, lab_ptr(side, dct->ring + i * 64ull, 64), next_wqe_index,
                (i + 1) % (1 << DC_LAB_LOG));
    }
}

static void make_dct(struct lab_side *side, struct lab_dct *dct, bool ordered)
{
    struct prm_dctc dctc[1];

    *dct = (struct lab_dct){0};
    make_srq(side, dct);
    lab_dctc(side, dctc);
    if (ordered) {
        PRM_SET(dctc, dctc, dp_ordering_1, PRM_DP_ORDERING_OOO_ALL >> 1);
        PRM_SET(dctc, dctc, dp_ordering_force, 1);
        /* long atomics are not possible with early packets */
        PRM_SET(dctc, dctc, atomic_mode, PRM_ATOMIC_MODE_UP_TO_8B);
    }
    ck_assert_int_eq(lab_dct_create(side, dctc, dct), SYN_OK);
}

void lab_dct_new(struct lab_side *side, struct lab_dct *dct)
{
    make_dct(side, dct, false);
}

void lab_dct_new_ordered(struct lab_side *side, struct lab_dct *dct)
{
    make_dct(side, dct, true);
}

void lab_dct_post_recv(struct lab_dct *dct, uint64_t addr, uint32_t len)
{
    uint8_t *slot = lab_ptr(dct->side, dct->ring + (dct->posted % (1u << DC_LAB_LOG)) * 64ull, 64);
    void *seg = slot + PRM_SIZE(wqe_srq_next_seg);

    PRM_SET(wqe_data_seg, seg, byte_count, len);
    PRM_SET(wqe_data_seg, seg, lkey, dct->side->key);
    PRM_SET(wqe_data_seg, seg, addr, addr);
    seg += PRM_SIZE(wqe_data_seg);
    PRM_SET(wqe_data_seg, seg, byte_count, 0);
    PRM_SET(wqe_data_seg, seg, lkey, WQE_TERMINATOR_LKEY);
    PRM_SET(srq_dbr, lab_ptr(dct->side, dct->dbr, 4), counter, ++dct->posted);
}

struct dct *lab_dct_of(const struct lab_dct *dct)
{
    return obj_find_kind(&dct->side->hca.qpns, dct->dctn, OBJ_DCT);
}

void lab_dci_new(struct lab_side *side, const struct lab_qp_attr *attr, const struct lab_path *path,
                 struct lab_qp *dci)
{
    path = path ? path : &lab_path;
    lab_qp_new(side, attr, dci);
    ck_assert_int_eq(lab_modify(dci, PRM_CMD_OP_RST2INIT_QP, path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(dci, PRM_CMD_OP_INIT2RTR_QP, path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(dci, PRM_CMD_OP_RTR2RTS_QP, path, path->psn, NULL), SYN_OK);
}

struct lab_wr *lab_to(struct lab_wr *wr, const struct lab_dct *dct)
{
    wr->dest_qpn = dct->dctn;
    wr->dc_key = DC_LAB_KEY;
    return wr;
}
