/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rig.h: the HCA for tests of the model's parts. */
#include <check.h>
#include <string.h>
#include "tests/unit/rig.h"

static const struct hca_limits limits = {
    .log_max_qp = 12,
    .log_max_cq = 10,
    .log_max_srq = 10,
    .log_max_mkey = 12,
    .log_max_pd = 8,
    .log_max_eq = 6,
    .log_max_uar = 6,
    .log_max_umem = 4,
    .log_max_uctx = 4,
    .log_max_qp_sz = 12,
    .log_max_cq_sz = 12,
    .log_max_srq_sz = 12,
    .log_max_eq_sz = 10,
    .log_max_msg = 30,
    .log_max_ra_res_qp = 4,
    .log_max_ra_req_qp = 4,
    .num_msix = RIG_MSIX,
    .max_gid = 16,
    .max_sq_wqe = 1024,
    .max_rq_wqe = 512,
    .tunneled = true,
    .swp = true,
    .multi_packet = true,
    .tunnels = true,
    .dc_responders = 64,
    .dc_version = 1,
    .enhanced_cqes = true,
};

void rig_init_on(struct rig *rig, struct card *card, unsigned number)
{
    const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(1 + 0x10 * number)};

    memset(rig, 0, sizeof(*rig));
    fake_host_init(&rig->host);
    if (card) {
        hca_init_on(&rig->hca, &fake_host_ops, &rig->host, &limits, card, number, mac);
    } else {
        hca_init(&rig->hca, &fake_host_ops, &rig->host, &limits, mac);
    }
    rig->hca.resd_lkey = RIG_RESD_LKEY;
    rig->hca.null_mkey = RIG_NULL_MKEY;
    ck_assert_int_eq(pd_alloc(&rig->hca, 0, &rig->pdn), SYN_OK);
    ck_assert_int_eq(uar_alloc(&rig->hca, 0, &rig->uarn), SYN_OK);
    ck_assert_int_eq(pd_alloc(&rig->hca, RIG_USER, &rig->user_pdn), SYN_OK);
    ck_assert_int_eq(uar_alloc(&rig->hca, RIG_USER, &rig->user_uarn), SYN_OK);
}

void rig_init(struct rig *rig)
{
    rig_init_on(rig, NULL, 0);
}

void rig_clear(struct rig *rig)
{
    ck_assert_uint_eq(rig->host.open_maps, 0);
    hca_clear(&rig->hca);
    fake_host_clear(&rig->host);
}

void rig_run(struct rig *rig)
{
    while (hca_run(&rig->hca, 512)) {
    }
}

void rig_advance(struct rig *rig, uint64_t ns)
{
    rig->host.now += ns;
    rig_run(rig);
}

void *rig_ring(struct rig *rig, uint64_t size, struct mem_buf *buf)
{
    uint64_t addr = fake_host_alloc(&rig->host, MAX(size, 4096), 4096);
    uint32_t npages = (uint32_t)((size + 4095) / 4096);
    g_autofree uint8_t *pas = g_malloc(npages * 8);
    struct mtt *mtt;

    for (uint32_t i = 0; i < npages; i++) {
        prm_store64(pas + 8 * i, addr + 4096ull * i);
    }
    mtt = mtt_new(pas, npages, 12);
    ck_assert(mem_buf_init(buf, mtt, 0, size));
    mtt_unref(mtt);
    return fake_host_ptr(&rig->host, addr, size);
}

void rig_eq_create(struct rig *rig, struct rig_eq *eq, unsigned log_size, unsigned vector,
                   uint64_t event_mask)
{
    const uint64_t mask[4] = {event_mask, 0, 0, 0};
    struct prm_eqc eqc[1] = {0};
    uint8_t pas[8];

    eq->log_size = log_size;
    eq->ci = 0;
    eq->ring = fake_host_alloc(&rig->host, PRM_SIZE(eqe) << log_size, 4096);
    for (unsigned i = 0; i < 1u << log_size; i++) {
        uint64_t at = eq->ring + i * PRM_SIZE(eqe);

        PRM_SET(eqe, fake_host_ptr(&rig->host, at, PRM_SIZE(eqe)), owner, 1);
    }
    PRM_SET(eqc, eqc, log_eq_size, log_size);
    PRM_SET(eqc, eqc, uar_page, rig->uarn);
    PRM_SET(eqc, eqc, intr, vector);
    PRM_SET(eqc, eqc, log_page_size, log_size > 6 ? log_size - 6 : 0);
    prm_store64(pas, eq->ring);
    ck_assert_int_eq(eq_create(&rig->hca, 0, eqc, pas, 1, mask, &eq->eqn), SYN_OK);
}

const struct prm_eqe *rig_eq_peek(struct rig *rig, struct rig_eq *eq)
{
    uint32_t slot = eq->ci & ((1u << eq->log_size) - 1);
    const struct prm_eqe *eqe =
        fake_host_ptr(&rig->host, eq->ring + slot * PRM_SIZE(eqe), PRM_SIZE(eqe));

    return (PRM_GET(eqe, eqe, owner) ^ eq->ci >> eq->log_size) & 1 ? NULL : eqe;
}

const struct prm_eqe *rig_eq_next(struct rig *rig, struct rig_eq *eq)
{
    const struct prm_eqe *eqe = rig_eq_peek(rig, eq);

    if (eqe) {
        eq->ci++;
    }
    return eqe;
}

void rig_eq_doorbell(struct rig *rig, struct rig_eq *eq, bool arm)
{
    uar_write(&rig->hca, rig->uarn, arm ? 0x40 : 0x48, eq->eqn << 24 | (eq->ci & 0xffffff), 4);
}
