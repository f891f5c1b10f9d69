/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements dc_tags_lab.h: tag matching over DC in the two-HCA lab. */
#include <check.h>
#include <string.h>
#include "tests/unit/dc_tags_lab.h"

struct lab *lab;
struct lab_side *near, *far;
struct lab_qp one, two;
struct lab_dct dct;
struct srq *xrq;
uint64_t src, dst, wqes;

static void make_xrq(bool dc)
{
    struct prm_tag_matching_topology_context tags[1] = {0};
    struct srq_attr attr = {
        .kind = OBJ_XRQ,
        .pdn = far->pdn,
        .cqn = far->cqn,
        .user_index = USER_INDEX_CQE_V0,
        .log_size = DC_LAB_LOG,
        .log_stride = 6,
        .tags = tags,
        .fetches = true,
        .dc = dc,
    };

    PRM_SET(tag_matching_topology_context, tags, log_matching_list_sz, 3);
    dct.ring = lab_mem(far, 64 << DC_LAB_LOG, 0);
    dct.dbr = attr.dbr = lab_mem(far, 8, 0);
    attr.buf = lab_buf(dct.ring, 64 << DC_LAB_LOG);
    ck_assert_int_eq(srq_create(&far->hca, &attr, &xrq), SYN_OK);
    for (unsigned i = 0; i < 1 << DC_LAB_LOG; i++) {
        PRM_SET(wqe_srq_next_seg, lab_ptr(far, dct.ring + i * 64ull, 64), next_wqe_index,
                (i + 1) % (1 << DC_LAB_LOG));
    }
}

void dc_tags_target(bool dc)
{
    struct prm_dctc dctc[1];

    dct = (struct lab_dct){.side = far};
    make_xrq(dc);
    dct.srq = xrq;
    lab_dctc(far, dctc);
    PRM_SET(dctc, dctc, offload_type, PRM_QP_OFFLOAD_RNDV);
    ck_assert_int_eq(lab_dct_create(far, dctc, &dct), SYN_OK);
}

void dc_tags_setup(void)
{
    lab = lab_new();
    near = &lab->side[0];
    far = &lab->side[1];
    dc_tags_target(false);
    lab_dci_new(near, &lab_dci, NULL, &one);
    lab_dci_new(near, &lab_dci, NULL, &two);
    src = lab_mem(near, 2 * ROOM, 1);
    dst = lab_mem(far, TAGS * ROOM, 0);
    wqes = lab_mem(far, TAGS * ROOM, 0);
}

void dc_tags_teardown(void)
{
    lab_free(lab);
}

uint16_t append(uint64_t tag, uint32_t len)
{
    uint16_t handle = xrq->tags->append_next;
    struct sge buffer = {.va = dst + handle * ROOM, .len = len, .lkey = far->key};

    ck_assert_uint_eq(
        tag_list_append(xrq->tags, (uint16_t)((handle + 1) % TAGS), tag, UINT64_MAX, &buffer),
        handle);
    return handle;
}

uint64_t memory_of(const struct lab_qp *dci)
{
    return src + (dci == &two ? ROOM : 0);
}

void send_tagged(struct lab_qp *dci, uint8_t op, uint64_t tag, uint32_t len)
{
    struct prm_tmh *tmh = lab_ptr(near, memory_of(dci), sizeof(*tmh));
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                        .unsignaled = true,
                        .sge = {{memory_of(dci), (uint32_t)HEADER + len, 0}},
                        .num_sge = 1};

    PRM_SET(tmh, tmh, op, op);
    PRM_SET(tmh, tmh, tag, tag);
    lab_post(dci, lab_to(&wr, &dct));
}

const struct prm_cqe64 *next_cqe(void)
{
    uint32_t slot = far->cq_ci & ((1u << LAB_CQ_LOG) - 1);
    const struct prm_cqe64 *cqe = lab_ptr(far, far->cq_ring + 64 * slot, 64);
    struct lab_cqe taken;

    ck_assert(lab_poll(far, &taken));
    return cqe;
}

const struct prm_cqe64 *expect(uint8_t op, uint16_t handle)
{
    const struct prm_cqe64 *cqe = next_cqe();

    ck_assert_uint_eq(PRM_GET(cqe64, cqe, app), PRM_CQE_APP_TAG_MATCHING);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, app_op), op);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), dct.dctn);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), xrq->obj.num);
    if (op != PRM_CQE_TM_OP_UNEXPECTED) {
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, app_info), handle);
    }
    return cqe;
}

void expect_none(void)
{
    struct lab_cqe cqe;

    ck_assert(!lab_poll(far, &cqe));
}

void expect_data(const struct lab_qp *dci, uint16_t handle, uint32_t len)
{
    ck_assert_mem_eq(lab_ptr(far, dst + handle * ROOM, len),
                     lab_ptr(near, memory_of(dci) + HEADER, len), len);
}
