/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests references between objects: an object that another object names cannot be destroyed. The
 * kernel frees a umem's pages when DESTROY_UMEM has succeeded. An object that still had their
 * addresses would read and write memory that now belongs to somebody else.
 *
 * There is one object of each kind that names others, and of each kind that is named, made by
 * commands of a user context. The table things repeats which object names which, and is compared
 * with the table of object classes.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/core/obj_class.h"
#include "model/core/pd.h"
#include "model/eth/eth.h"
#include "model/memory/memic.h"
#include "model/memory/mkey.h"
#include "model/steering/tables.h"
#include "tests/unit/crypto_in.h"
#include "tests/unit/steer_objects.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define ORDERS     200
#define MAX_NAMES  11
#define UMEM_PAGES 8
#define DBR_AT     64 /* offset in the umem of records */
#define OUT_ROOM   0x40
#define KEY_VA     0x10000

enum {
    UAR = 1, /* 0 ends a list */
    PD,
    TD,
    XRCD,
    COUNTER,
    REFORMAT,
    MODIFY,
    RANGE,
    RING_UMEM,
    DBR_UMEM,
    KEY_UMEM,
    EQ,
    CQ,
    KEY,
    DEVICE_MEMORY,
    DEVICE_KEY,
    STEERING_MEMORY,
    STEERING_KEY,
    PSV,
    DEK,
    GROUP,
    KERNEL_GROUP,
    SRQ,
    XRC_SRQ,
    RMP,
    XRQ,
    QP,
    QP_OF_RMP,
    QP_OF_XRQ,
    QP_XRC,
    DCT,
    DCT_OF_RMP,
    DCT_OF_XRQ,
    TIS,
    SQ,
    KERNEL_GROUPS_SQ,
    RQ,
    RQ_OF_RMP,
    RQT,
    TIR,
    TIR_OF_RQT,
    NEXT_TABLE,
    LAST_TABLE,
    TABLE,
    SAMPLER,
    METER,
    THINGS
};

static struct fwd d;
static uint16_t uid;
static uint32_t number[THINGS];               /* 0: it does not exist */
static uint64_t umem_page[THINGS];            /* of umems: the address of their pages */
static void *const in = (uint8_t[0x1000]){0}; /* longer than any command below */
static void *const out = (uint8_t[OUT_ROOM]){0};

/* Executes the command in `in`, and clears `in`. */
static enum syn run_as(uint16_t who, uint16_t opcode, size_t len)
{
    struct prm_general_obj_in_cmd_hdr *hdr = in;
    enum syn syn;

    PRM_SET(general_obj_in_cmd_hdr, hdr, opcode, opcode);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, who);
    syn = fwd_cmd(&d, in, len, out, OUT_ROOM);
    memset(in, 0, len);
    return syn;
}

static void must_as(uint16_t who, uint16_t opcode, size_t len)
{
    enum syn syn = run_as(who, opcode, len);

    ck_assert_msg(syn == SYN_OK, "%s: %s", prm_cmd_op_name(opcode), syn_text(syn));
}

static void must(uint16_t opcode, size_t len)
{
    must_as(uid, opcode, len);
}

/* Returns the number in the second word of an answer, where most commands have it. */
static uint32_t made(void)
{
    return prm_load32((uint8_t *)out + 8) & 0xffffff;
}

/* -- one of each ------------------------------------------------------------------------------- */

static void make_umem(unsigned thing)
{
    struct prm_umem *umem = PRM_PTR(create_umem_in, in, umem);

    umem_page[thing] = fake_host_alloc(&d.host, UMEM_PAGES * 4096, 4096);
    PRM_SET(umem, umem, num_of_mtt, UMEM_PAGES);
    for (unsigned i = 0; i < UMEM_PAGES; i++) {
        prm_store64(PRM_PTR_AT(umem, umem, mtt, i), umem_page[thing] + 4096 * i);
    }
    must(PRM_CMD_OP_CREATE_UMEM, PRM_SIZE(create_umem_in) + 8 * UMEM_PAGES);
    number[thing] = PRM_GET(create_umem_out, out, umem_id);
}

/* Makes an object that consists only of a number. */
static void make_number(unsigned thing)
{
    static const uint16_t alloc[] = {
        [UAR] = PRM_CMD_OP_ALLOC_UAR,
        [PD] = PRM_CMD_OP_ALLOC_PD,
        [TD] = PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN,
        [XRCD] = PRM_CMD_OP_ALLOC_XRCD,
        [COUNTER] = PRM_CMD_OP_ALLOC_FLOW_COUNTER,
    };

    must(alloc[thing], 16);
    number[thing] = prm_load32((uint8_t *)out + 8);
}

static void make_dek(unsigned thing)
{
    must(PRM_CMD_OP_CREATE_GENERAL_OBJECT, crypto_dek_in(d.fw, in, number[PD]));
    number[thing] = made();
}

/* Makes a group of queues, and the root of its tree before it; root[] has the latter's number. */
static uint32_t root[THINGS];

static void make_group(unsigned thing)
{
    bool is_kernels = thing == KERNEL_GROUP;

    for (unsigned type = PRM_SCHEDULING_ELEMENT_TYPE_TSAR;;) {
        struct prm_sched_elem_obj *obj = PRM_PTR(general_object_in, in, object);
        struct prm_scheduling_context *ctx =
            is_kernels ? PRM_PTR(create_scheduling_element_in, in, scheduling_context)
                       : PRM_PTR(sched_elem_obj, obj, scheduling_context);

        PRM_SET(scheduling_context, ctx, element_type, type);
        PRM_SET(scheduling_context, ctx, parent_element_id, root[thing]);
        if (is_kernels) {
            PRM_SET(create_scheduling_element_in, in, scheduling_hierarchy,
                    PRM_SCHEDULING_HIERARCHY_NIC);
            must_as(0, PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT,
                    PRM_SIZE(create_scheduling_element_in));
            number[thing] = PRM_GET(create_scheduling_element_out, out, scheduling_element_id);
        } else {
            PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_SCHED_ELEM);
            PRM_SET(sched_elem_obj, obj, scheduling_hierarchy, PRM_SCHEDULING_HIERARCHY_NIC);
            must(PRM_CMD_OP_CREATE_GENERAL_OBJECT,
                 PRM_SIZE(general_object_in) + PRM_SIZE(sched_elem_obj));
            number[thing] = made();
        }
        if (type == PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP) {
            return;
        }
        type = PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP;
        root[thing] = number[thing];
    }
}

static enum syn destroy_element(unsigned thing, uint32_t id)
{
    if (thing == KERNEL_GROUP) {
        PRM_SET(destroy_scheduling_element_in, in, scheduling_hierarchy,
                PRM_SCHEDULING_HIERARCHY_NIC);
        PRM_SET(destroy_scheduling_element_in, in, scheduling_element_id, id);
        return run_as(0, PRM_CMD_OP_DESTROY_SCHEDULING_ELEMENT,
                      PRM_SIZE(destroy_scheduling_element_in));
    }
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_SCHED_ELEM);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_id, id);
    return run_as(uid, PRM_CMD_OP_DESTROY_GENERAL_OBJECT, PRM_SIZE(general_obj_in_cmd_hdr));
}

/* Destroys a group and its root, which is in use as long as the group is there. */
static enum syn destroy_group(unsigned thing)
{
    enum syn syn = destroy_element(thing, root[thing]);

    ck_assert_int_eq(syn, SYN_IN_USE);
    syn = destroy_element(thing, number[thing]);
    if (syn == SYN_OK) {
        ck_assert_int_eq(destroy_element(thing, root[thing]), SYN_OK);
        root[thing] = 0;
    }
    return syn;
}

static void make_range(unsigned thing)
{
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN);
    PRM_SET(general_obj_create_param, PRM_PTR(general_obj_in_cmd_hdr, in, op_param_create),
            log_obj_range, OBJ_LOG_RESERVED);
    must(PRM_CMD_OP_CREATE_GENERAL_OBJECT, PRM_SIZE(general_obj_in_cmd_hdr));
    number[thing] = made();
}

/* The doorbell record, in every context that can have one. */
#define PUT_RECORD(layout, ctx)                                                                    \
    do {                                                                                           \
        PRM_SET(layout, ctx, dbr_addr, DBR_AT);                                                    \
        PRM_SET(layout, ctx, dbr_umem_valid, 1);                                                   \
        PRM_SET(layout, ctx, dbr_umem_id, number[DBR_UMEM]);                                       \
    } while (0)

/* Makes the kernel's EQ on the context's page: a context has no EQ of its own. */
static void make_eq(unsigned thing)
{
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);

    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, number[UAR]);
    PRM_SET_AT(create_eq_in, in, pas, 0, fake_host_alloc(&d.host, 4096, 4096));
    must_as(UID_SHARED, PRM_CMD_OP_CREATE_EQ, PRM_SIZE(create_eq_in) + 8);
    number[thing] = PRM_GET(create_eq_out, out, eq_number);
}

static void make_cq(unsigned thing)
{
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);

    PRM_SET(create_cq_in, in, cq_umem_valid, 1);
    PRM_SET(create_cq_in, in, cq_umem_id, number[RING_UMEM]);
    PRM_SET(cqc, cqc, log_cq_size, 6);
    PRM_SET(cqc, cqc, uar_page, number[UAR]);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, number[EQ]);
    PUT_RECORD(cqc, cqc);
    must(PRM_CMD_OP_CREATE_CQ, PRM_SIZE(create_cq_in));
    number[thing] = made();
}

static void make_key(unsigned thing)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, in, mkey_umem_valid, 1);
    PRM_SET(create_mkey_in, in, mkey_umem_id, number[KEY_UMEM]);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, number[PD]);
    PRM_SET(mkc, mkc, start_addr, KEY_VA);
    PRM_SET(mkc, mkc, len, 4096 * UMEM_PAGES);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, translations_octword_size, UMEM_PAGES / 2);
    must(PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in));
    number[thing] = PRM_GET(create_mkey_out, out, mkey_index);
}

/* Device memory and its keys are the kernel's. The number is the first page; 0 is no number here.
 */
static void make_device_memory(unsigned thing)
{
    PRM_SET(alloc_memic_in, in, range_start_addr, MEMIC_BAR_START + MEMIC_PAGE_SIZE);
    PRM_SET(alloc_memic_in, in, range_size, MEMIC_PAGE_SIZE);
    PRM_SET(alloc_memic_in, in, memic_size, 64);
    must_as(0, PRM_CMD_OP_ALLOC_MEMIC, PRM_SIZE(alloc_memic_in));
    number[thing] = 1;
}

static enum syn destroy_device_memory(void)
{
    PRM_SET(dealloc_memic_in, in, memic_start_addr, MEMIC_BAR_START + MEMIC_PAGE_SIZE);
    PRM_SET(dealloc_memic_in, in, memic_size, 64);
    return run_as(0, PRM_CMD_OP_DEALLOC_MEMIC, PRM_SIZE(dealloc_memic_in));
}

static void make_device_key(unsigned thing)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MEMIC & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, PRM_MKC_ACCESS_MODE_MEMIC >> 2);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, number[PD]);
    PRM_SET(mkc, mkc, start_addr, MEMIC_BAR_START + MEMIC_PAGE_SIZE);
    PRM_SET(mkc, mkc, len, 64);
    must_as(0, PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in));
    number[thing] = PRM_GET(create_mkey_out, out, mkey_index);
}

static void make_steering_memory(unsigned thing)
{
    must(PRM_CMD_OP_CREATE_GENERAL_OBJECT, steer_fill_memory(in, 0));
    number[thing] = PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
}

static void make_steering_key(unsigned thing)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(mkc, mkc, access_mode_4_2, PRM_MKC_ACCESS_MODE_SW_ICM >> 2);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, number[PD]);
    PRM_SET(mkc, mkc, start_addr, SW_ICM_STE_START);
    PRM_SET(mkc, mkc, len, SW_ICM_BLOCK);
    must_as(0, PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in));
    number[thing] = PRM_GET(create_mkey_out, out, mkey_index);
}

static void make_psv(unsigned thing)
{
    PRM_SET(create_psv_in, in, num_psv, 1);
    PRM_SET(create_psv_in, in, pd, number[PD]);
    must(PRM_CMD_OP_CREATE_PSV, PRM_SIZE(create_psv_in));
    number[thing] = PRM_GET(create_psv_out, out, psv0_index);
}

static void put_wq(struct prm_wq *wq, unsigned type)
{
    PRM_SET(wq, wq, wq_type, type);
    PRM_SET(wq, wq, pd, number[PD]);
    PRM_SET(wq, wq, uar_page, number[UAR]);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, log_wq_sz, 4);
    PRM_SET(wq, wq, wq_umem_valid, 1);
    PRM_SET(wq, wq, wq_umem_id, number[RING_UMEM]);
    PUT_RECORD(wq, wq);
}

static void make_srq(unsigned thing)
{
    struct prm_srqc *srqc = PRM_PTR(create_srq_in, in, srq_context_entry);

    PRM_SET(srqc, srqc, log_srq_size, 4);
    PRM_SET(srqc, srqc, log_rq_stride, 2);
    PRM_SET(srqc, srqc, pd, number[PD]);
    PRM_SET(srqc, srqc, dbr_addr, fake_host_alloc(&d.host, 8, 8));
    PRM_SET_AT(create_srq_in, in, pas, 0, fake_host_alloc(&d.host, 4096, 4096));
    must(PRM_CMD_OP_CREATE_SRQ, PRM_SIZE(create_srq_in) + 8);
    number[thing] = made();
}

static void make_xrc_srq(unsigned thing)
{
    struct prm_xrc_srqc *srqc = PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry);

    PRM_SET(xrc_srqc, srqc, log_xrc_srq_size, 4);
    PRM_SET(xrc_srqc, srqc, log_rq_stride, 2);
    PRM_SET(xrc_srqc, srqc, pd, number[PD]);
    PRM_SET(xrc_srqc, srqc, xrcd, number[XRCD]);
    PRM_SET(xrc_srqc, srqc, cqn, number[CQ]);
    PRM_SET_AT(create_xrc_srq_in, in, pas, 0, fake_host_alloc(&d.host, 4096, 4096));
    must(PRM_CMD_OP_CREATE_XRC_SRQ, PRM_SIZE(create_xrc_srq_in) + 8);
    number[thing] = made();
}

static void make_rmp(unsigned thing)
{
    struct prm_rmpc *rmpc = PRM_PTR(create_rmp_in, in, ctx);

    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    put_wq(PRM_PTR(rmpc, rmpc, wq), PRM_WQ_TYPE_LINKED_LIST);
    must(PRM_CMD_OP_CREATE_RMP, PRM_SIZE(create_rmp_in));
    number[thing] = made();
}

/* Makes an XRQ with its own initiator, which lives as long as the XRQ. */
static void make_xrq(unsigned thing)
{
    struct prm_xrqc *xrqc = PRM_PTR(create_xrq_in, in, xrq_context);

    PRM_SET(xrqc, xrqc, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, xrqc, offload, PRM_XRQC_OFFLOAD_RNDV);
    PRM_SET(xrqc, xrqc, dc, 1);
    PRM_SET(xrqc, xrqc, cqn, number[CQ]);
    PRM_SET(tag_matching_topology_context, PRM_PTR(xrqc, xrqc, tag_matching_topology_context),
            log_matching_list_sz, 2);
    put_wq(PRM_PTR(xrqc, xrqc, wq), PRM_WQ_TYPE_LINKED_LIST);
    must(PRM_CMD_OP_CREATE_XRQ, PRM_SIZE(create_xrq_in));
    number[thing] = made();
    PRM_SET(set_xrq_dc_params_entry_in, in, xrqn, number[thing]);
    PRM_SET(set_xrq_dc_params_entry_in, in, mtu, PRM_QP_MTU_1024);
    must(PRM_CMD_OP_SET_XRQ_DC_PARAMS_ENTRY, PRM_SIZE(set_xrq_dc_params_entry_in));
}

/* The kernel may name groups of its own and of users. */
static void qp_join_groups(void)
{
    void *ext = PRM_PTR(init2init_qp_ext_in, in, qpc_data_ext);

    PRM_SET(rst2init_qp_in, in, qpn, number[QP]);
    PRM_SET(ads, PRM_PTR(qpc, PRM_PTR(rst2init_qp_in, in, qpc), primary_address_path),
            vhca_port_num, 1);
    must(PRM_CMD_OP_RST2INIT_QP, PRM_SIZE(rst2init_qp_in));
    PRM_SET(init2init_qp_ext_in, in, qpn, number[QP]);
    PRM_SET(init2init_qp_ext_in, in, qpc_ext, 1);
    PRM_SET(init2init_qp_ext_in, in, opt_param_mask_95_32,
            1ull << (PRM_QP_OPTPAR_QOS_QUEUE_GROUP - 32));
    PRM_SET(qp_context_extension, ext, qos_queue_group_id_requester, number[GROUP]);
    PRM_SET(qp_context_extension, ext, qos_queue_group_id_responder, number[KERNEL_GROUP]);
    must_as(0, PRM_CMD_OP_INIT2INIT_QP, PRM_SIZE(init2init_qp_ext_in));
}

static void make_qp(unsigned thing)
{
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    uint32_t srqn = thing == QP ? SRQ : thing == QP_OF_RMP ? RMP : thing == QP_OF_XRQ ? XRQ : 0;

    PRM_SET(create_qp_in, in, input_qpn, thing == QP ? number[RANGE] + 3 : 0);
    PRM_SET(create_qp_in, in, wq_umem_valid, 1);
    PRM_SET(create_qp_in, in, wq_umem_id, number[RING_UMEM]);
    PRM_SET(qpc, qpc, st, thing == QP_XRC ? PRM_QP_ST_XRC : PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, number[PD]);
    PRM_SET(qpc, qpc, rq_type, thing == QP_OF_RMP ? PRM_RQ_TYPE_RMP : PRM_RQ_TYPE_SRQ);
    PRM_SET(qpc, qpc, srqn_rmpn_xrqn, number[srqn]);
    PRM_SET(qpc, qpc, xrcd, number[XRCD]);
    PRM_SET(qpc, qpc, log_sq_size, 4);
    PRM_SET(qpc, qpc, uar_page, number[UAR]);
    PRM_SET(qpc, qpc, cqn_snd, number[CQ]);
    PRM_SET(qpc, qpc, cqn_rcv, number[CQ]);
    PUT_RECORD(qpc, qpc);
    must(PRM_CMD_OP_CREATE_QP, PRM_SIZE(create_qp_in));
    number[thing] = made();
    if (thing == QP) {
        qp_join_groups();
    }
}

static void make_dct(unsigned thing)
{
    struct prm_dctc *dctc = PRM_PTR(create_dct_in, in, dct_context_entry);

    PRM_SET(dctc, dctc, pd, number[PD]);
    PRM_SET(dctc, dctc, cqn, number[CQ]);
    PRM_SET(dctc, dctc, srqn_xrqn, number[thing == DCT ? SRQ : thing == DCT_OF_RMP ? RMP : XRQ]);
    PRM_SET(dctc, dctc, mtu, PRM_QP_MTU_1024);
    must(PRM_CMD_OP_CREATE_DCT, PRM_SIZE(create_dct_in));
    number[thing] = made();
}

static void make_tis(unsigned thing)
{
    PRM_SET(tisc, PRM_PTR(create_tis_in, in, ctx), transport_domain, number[TD]);
    must(PRM_CMD_OP_CREATE_TIS, PRM_SIZE(create_tis_in));
    number[thing] = made();
}

static void make_sq(unsigned thing)
{
    struct prm_sqc *sqc = PRM_PTR(create_sq_in, in, ctx);

    PRM_SET(sqc, sqc, cqn, number[CQ]);
    PRM_SET(sqc, sqc, tis_lst_sz, 1);
    PRM_SET(sqc, sqc, tis_num_0, number[TIS]);
    PRM_SET(sqc, sqc, qos_queue_group_id, thing == SQ ? number[GROUP] : 0);
    put_wq(PRM_PTR(sqc, sqc, wq), PRM_WQ_TYPE_CYCLIC);
    must(PRM_CMD_OP_CREATE_SQ, PRM_SIZE(create_sq_in));
    number[thing] = made();
    if (thing == KERNEL_GROUPS_SQ) {
        PRM_SET(modify_sq_in, in, sqn, number[thing]);
        PRM_SET(modify_sq_in, in, modify_bitmask, PRM_MODIFY_SQ_QOS_QUEUE_GROUP_ID);
        PRM_SET(sqc, PRM_PTR(modify_sq_in, in, ctx), qos_queue_group_id, number[KERNEL_GROUP]);
        must_as(0, PRM_CMD_OP_MODIFY_SQ, PRM_SIZE(modify_sq_in));
    }
}

static void make_rq(unsigned thing)
{
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);

    PRM_SET(rqc, rqc, cqn, number[CQ]);
    put_wq(PRM_PTR(rqc, rqc, wq), PRM_WQ_TYPE_CYCLIC);
    must(PRM_CMD_OP_CREATE_RQ, PRM_SIZE(create_rq_in));
    number[thing] = made();
}

static void make_rq_of_rmp(unsigned thing)
{
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);

    PRM_SET(rqc, rqc, cqn, number[CQ]);
    PRM_SET(rqc, rqc, mem_rq_type, PRM_RQC_MEM_RQ_TYPE_MEMORY_RQ_RMP);
    PRM_SET(rqc, rqc, rmpn, number[RMP]);
    must(PRM_CMD_OP_CREATE_RQ, PRM_SIZE(create_rq_in));
    number[thing] = made();
}

/* Names the same RQ twice. */
static void make_rqt(unsigned thing)
{
    struct prm_rqtc *rqtc = PRM_PTR(create_rqt_in, in, rqt_context);

    PRM_SET(rqtc, rqtc, rqt_max_size, 2);
    PRM_SET(rqtc, rqtc, rqt_actual_size, 2);
    for (unsigned i = 0; i < 2; i++) {
        PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, i), rq_num, number[RQ]);
    }
    must(PRM_CMD_OP_CREATE_RQT, PRM_SIZE(create_rqt_in) + 2 * PRM_SIZE(rq_num));
    number[thing] = made();
}

static void make_tir(unsigned thing)
{
    struct prm_tirc *tirc = PRM_PTR(create_tir_in, in, ctx);

    PRM_SET(tirc, tirc, transport_domain, number[TD]);
    PRM_SET(tirc, tirc, inline_rqn, number[RQ]);
    if (thing == TIR_OF_RQT) {
        PRM_SET(tirc, tirc, disp_type, PRM_TIRC_DISP_TYPE_INDIRECT);
        PRM_SET(tirc, tirc, indirect_table, number[RQT]);
    }
    PRM_SET(tirc, tirc, rx_hash_fn, PRM_RX_HASH_FN_TOEPLITZ);
    memset(PRM_PTR(tirc, tirc, rx_hash_toeplitz_key), 0x5a, 40);
    must(PRM_CMD_OP_CREATE_TIR, PRM_SIZE(create_tir_in));
    number[thing] = made();
}

static void make_reformat(unsigned thing)
{
    struct prm_packet_reformat_context_in *context =
        PRM_PTR(alloc_packet_reformat_context_in, in, packet_reformat_context);

    PRM_SET(packet_reformat_context_in, context, reformat_type, PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2);
    PRM_SET(packet_reformat_context_in, context, reformat_data_size, 14);
    must(PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT, PRM_SIZE(alloc_packet_reformat_context_in) + 12);
    number[thing] = made();
}

static void make_modify(unsigned thing)
{
    struct prm_set_action_in *action = PRM_PTR_AT(alloc_modify_header_context_in, in, actions, 0);

    PRM_SET(alloc_modify_header_context_in, in, num_of_actions, 1);
    PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
    PRM_SET(set_action_in, action, field, PRM_MODIFY_HEADER_FIELD_METADATA_REG_A);
    must(PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT, PRM_SIZE(alloc_modify_header_context_in) + 8);
    number[thing] = made();
}

/* Tables belong to the kernel. TABLE: misses go to the last table; one entry leads to a TIR, and
 * changes its frames; another leads to the next table, with a reformat on the way; both count. */
static void make_table(unsigned thing)
{
    struct prm_flow_table_context *ctx = PRM_PTR(create_flow_table_in, in, flow_table_context);
    uint32_t group;

    PRM_SET(flow_table_context, ctx, level, thing == TABLE ? 1 : thing == NEXT_TABLE ? 2 : 3);
    PRM_SET(flow_table_context, ctx, log_size, 2);
    if (thing == TABLE) {
        PRM_SET(flow_table_context, ctx, table_miss_action, PRM_FLOW_TABLE_MISS_ACTION_FWD);
        PRM_SET(flow_table_context, ctx, table_miss_id, number[LAST_TABLE]);
        PRM_SET(flow_table_context, ctx, reformat_en, 1);
    }
    must_as(0, PRM_CMD_OP_CREATE_FLOW_TABLE, PRM_SIZE(create_flow_table_in));
    number[thing] = made();
    if (thing != TABLE) {
        return;
    }
    PRM_SET(create_flow_group_in, in, table_id, number[thing]);
    PRM_SET(create_flow_group_in, in, end_flow_index, 1);
    PRM_SET(create_flow_group_in, in, match_criteria_enable, 1);
    PRM_SET(
        fte_match_set_lyr_2_4,
        PRM_PTR(fte_match_param, PRM_PTR(create_flow_group_in, in, match_criteria), outer_headers),
        tcp_dport, 0xffff);
    must_as(0, PRM_CMD_OP_CREATE_FLOW_GROUP, PRM_SIZE(create_flow_group_in));
    group = PRM_GET(create_flow_group_out, out, group_id);
    for (unsigned i = 0; i < 2; i++) {
        struct prm_flow_context *flow = PRM_PTR(set_fte_in, in, flow_context);
        struct prm_dest_format_struct *dest = PRM_PTR_AT(flow_context, flow, destination, 0);
        size_t dest_len = i ? PRM_SIZE(extended_dest_format) : PRM_SIZE(dest_format_struct);
        struct prm_flow_counter_list *counter = (void *)((uint8_t *)dest + dest_len);
        uint16_t changes = i ? 0 : PRM_FLOW_ACTION_PACKET_REFORMAT | PRM_FLOW_ACTION_MOD_HDR;

        PRM_SET(set_fte_in, in, table_id, number[thing]);
        PRM_SET(set_fte_in, in, flow_index, i);
        PRM_SET(flow_context, flow, group_id, group);
        PRM_SET(flow_context, flow, action,
                PRM_FLOW_ACTION_FWD_DEST | PRM_FLOW_ACTION_COUNT | changes);
        PRM_SET(flow_context, flow, packet_reformat_id, changes ? number[REFORMAT] : 0);
        PRM_SET(flow_context, flow, modify_header_id, changes ? number[MODIFY] : 0);
        PRM_SET(flow_context, flow, extended_destination, i);
        PRM_SET(flow_context, flow, destination_list_size, 1);
        PRM_SET(flow_context, flow, flow_counter_list_size, 1);
        PRM_SET(fte_match_set_lyr_2_4,
                PRM_PTR(fte_match_param, PRM_PTR(flow_context, flow, match_value), outer_headers),
                tcp_dport, i);
        PRM_SET(dest_format_struct, dest, destination_type,
                i ? PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE : PRM_FLOW_DESTINATION_TYPE_TIR);
        PRM_SET(dest_format_struct, dest, destination_id, number[i ? NEXT_TABLE : TIR]);
        if (i) {
            PRM_SET(dest_format_struct, dest, packet_reformat, 1);
            PRM_SET(extended_dest_format, (void *)dest, packet_reformat_id, number[REFORMAT]);
        }
        PRM_SET(flow_counter_list, counter, flow_counter_id, number[COUNTER]);
        must_as(0, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY,
                PRM_SIZE(set_fte_in) + dest_len + PRM_SIZE(flow_counter_list));
    }
}

/* In an order in which they can be made. */
/* As tables do, they belong to the kernel. */
static void make_sampler(unsigned thing)
{
    must_as(0, PRM_CMD_OP_CREATE_GENERAL_OBJECT,
            steer_fill_sampler(in, number[NEXT_TABLE], number[LAST_TABLE]));
    number[thing] = PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
}

static void make_meter(unsigned thing)
{
    must_as(0, PRM_CMD_OP_CREATE_GENERAL_OBJECT, steer_fill_meter(in, number[LAST_TABLE]));
    number[thing] = PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
}

static const struct {
    enum obj_kind kind;
    void (*make)(unsigned thing);
    uint8_t names[MAX_NAMES]; /* a thing that is named twice is listed twice */
} things[THINGS] = {
    [UAR] = {OBJ_UAR, make_number, {0}},
    [PD] = {OBJ_PD, make_number, {0}},
    [TD] = {OBJ_TD, make_number, {0}},
    [XRCD] = {OBJ_XRCD, make_number, {0}},
    [COUNTER] = {OBJ_FLOW_COUNTER, make_number, {0}},
    [REFORMAT] = {OBJ_PACKET_REFORMAT, make_reformat, {0}},
    [MODIFY] = {OBJ_MODIFY_HEADER, make_modify, {0}},
    [RANGE] = {OBJ_RESERVED_QPN, make_range, {0}},
    [RING_UMEM] = {OBJ_UMEM, make_umem, {0}},
    [DBR_UMEM] = {OBJ_UMEM, make_umem, {0}},
    [KEY_UMEM] = {OBJ_UMEM, make_umem, {0}},
    [EQ] = {OBJ_EQ, make_eq, {UAR}},
    [CQ] = {OBJ_CQ, make_cq, {EQ, UAR, RING_UMEM, DBR_UMEM}},
    [KEY] = {OBJ_MKEY, make_key, {PD, KEY_UMEM}},
    [DEVICE_MEMORY] = {OBJ_MEMIC, make_device_memory, {0}},
    [DEVICE_KEY] = {OBJ_MKEY, make_device_key, {PD, DEVICE_MEMORY}},
    [STEERING_MEMORY] = {OBJ_SW_ICM, make_steering_memory, {0}},
    [STEERING_KEY] = {OBJ_MKEY, make_steering_key, {PD, STEERING_MEMORY}},
    [PSV] = {OBJ_PSV, make_psv, {PD}},
    [DEK] = {OBJ_ENCRYPTION_KEY, make_dek, {PD}},
    [GROUP] = {OBJ_SCHED_ELEM, make_group, {0}},
    [KERNEL_GROUP] = {OBJ_SCHEDULING_ELEMENT, make_group, {0}},
    [SRQ] = {OBJ_SRQ, make_srq, {PD}},
    [XRC_SRQ] = {OBJ_XRC_SRQ, make_xrc_srq, {PD, XRCD, CQ}},
    [RMP] = {OBJ_RMP, make_rmp, {PD, RING_UMEM, DBR_UMEM}},
    [XRQ] = {OBJ_XRQ, make_xrq, {PD, CQ, RING_UMEM, DBR_UMEM}},
    [QP] = {OBJ_QP,
            make_qp,
            {PD, CQ, CQ, SRQ, RANGE, UAR, RING_UMEM, DBR_UMEM, GROUP, KERNEL_GROUP}},
    [QP_OF_RMP] = {OBJ_QP, make_qp, {PD, CQ, CQ, RMP, UAR, RING_UMEM, DBR_UMEM}},
    [QP_OF_XRQ] = {OBJ_QP, make_qp, {PD, CQ, CQ, XRQ, UAR, RING_UMEM, DBR_UMEM}},
    [QP_XRC] = {OBJ_QP, make_qp, {PD, CQ, XRCD, UAR, RING_UMEM, DBR_UMEM}},
    [DCT] = {OBJ_DCT, make_dct, {PD, CQ, SRQ}},
    [DCT_OF_RMP] = {OBJ_DCT, make_dct, {PD, CQ, RMP}},
    [DCT_OF_XRQ] = {OBJ_DCT, make_dct, {PD, CQ, XRQ}},
    [TIS] = {OBJ_TIS, make_tis, {TD}},
    [SQ] = {OBJ_SQ, make_sq, {PD, CQ, TIS, UAR, RING_UMEM, DBR_UMEM, GROUP}},
    [KERNEL_GROUPS_SQ] = {OBJ_SQ, make_sq, {PD, CQ, TIS, UAR, RING_UMEM, DBR_UMEM, KERNEL_GROUP}},
    [RQ] = {OBJ_RQ, make_rq, {PD, CQ, RING_UMEM, DBR_UMEM}},
    [RQ_OF_RMP] = {OBJ_RQ, make_rq_of_rmp, {PD, CQ, RMP}},
    [RQT] = {OBJ_RQT, make_rqt, {RQ, RQ}},
    [TIR] = {OBJ_TIR, make_tir, {TD, RQ}},
    [TIR_OF_RQT] = {OBJ_TIR, make_tir, {TD, RQT}},
    [NEXT_TABLE] = {OBJ_FLOW_TABLE, make_table, {0}},
    [LAST_TABLE] = {OBJ_FLOW_TABLE, make_table, {0}},
    [TABLE] = {OBJ_FLOW_TABLE,
               make_table,
               {TIR, NEXT_TABLE, LAST_TABLE, COUNTER, COUNTER, REFORMAT, REFORMAT, MODIFY}},
    [SAMPLER] = {OBJ_SAMPLER, make_sampler, {NEXT_TABLE, LAST_TABLE}},
    [METER] = {OBJ_FLOW_METER, make_meter, {LAST_TABLE}},
};

static struct obj *object(unsigned thing)
{
    const struct obj_class *class = &obj_classes[things[thing].kind];
    struct obj_table *table = class->space ? (struct obj_table *)((char *)&d.fw->hca + class->space)
                                           : &d.fw->hca.steering->tables;

    return obj_find(table, number[thing]);
}

/* Destroys the entries and the group of a table first: nothing names those. */
static enum syn destroy_table(unsigned thing)
{
    struct flow_table *table = (struct flow_table *)object(thing);
    uint32_t group =
        table->groups->len ? ((struct flow_group *)g_ptr_array_index(table->groups, 0))->id : 0;

    for (unsigned i = 0; group && i < 2; i++) {
        PRM_SET(delete_fte_in, in, table_id, number[thing]);
        PRM_SET(delete_fte_in, in, flow_index, i);
        must_as(0, PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY, PRM_SIZE(delete_fte_in));
    }
    if (group) {
        PRM_SET(destroy_flow_group_in, in, table_id, number[thing]);
        PRM_SET(destroy_flow_group_in, in, group_id, group);
        must_as(0, PRM_CMD_OP_DESTROY_FLOW_GROUP, PRM_SIZE(destroy_flow_group_in));
    }
    PRM_SET(destroy_flow_table_in, in, table_id, number[thing]);
    return run_as(0, PRM_CMD_OP_DESTROY_FLOW_TABLE, PRM_SIZE(destroy_flow_table_in));
}

static enum syn destroy(unsigned thing)
{
    const struct obj_class *class = &obj_classes[things[thing].kind];
    const struct prm_command *command;

    if (things[thing].kind == OBJ_FLOW_TABLE) {
        return destroy_table(thing);
    }
    if (thing == DEVICE_MEMORY) {
        return destroy_device_memory();
    }
    if (thing == GROUP || thing == KERNEL_GROUP) {
        return destroy_group(thing);
    }
    command = class->object->destroy;
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, class->general_type);
    prm_set(in, command->number, number[thing], command->name);
    return run_as(object(thing)->uid, command->opcode, 16);
}

/* Returns how often the existing things name this one. */
static unsigned names_of(unsigned thing)
{
    unsigned n = 0;

    for (unsigned i = 1; i < THINGS; i++) {
        for (const uint8_t *name = things[i].names; number[i] && *name; name++) {
            n += *name == thing;
        }
    }
    return n;
}

static void check_counts(void)
{
    for (unsigned i = 1; i < THINGS; i++) {
        if (number[i]) {
            ck_assert_msg(object(i)->refs == names_of(i), "thing %u (%s): %u references, not %u", i,
                          obj_classes[things[i].kind].name, object(i)->refs, names_of(i));
        }
    }
}

static void make_all(void)
{
    for (unsigned i = 1; i < THINGS; i++) {
        things[i].make(i);
    }
    check_counts();
}

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    ck_assert_uint_eq(fwd_give_pages(&d, 1024), SYN_OK);
    memset(number, 0, sizeof(number));
    memset(root, 0, sizeof(root));
    must(PRM_CMD_OP_CREATE_UCTX, PRM_SIZE(create_uctx_in));
    uid = (uint16_t)PRM_GET(create_uctx_out, out, uid);
}

static void teardown(void)
{
    fwd_clear(&d);
    uid = 0;
}

/* -- statements -------------------------------------------------------------------------------- */

/* Each reference that the table of classes allows occurs here, so the statements below cover all of
 * them. (A reference that is not in the table is impossible: obj_ref().) */
START_TEST(every_sort_of_reference_is_among_these)
{
    for (unsigned kind = 1; kind < OBJ_KINDS; kind++) {
        uint64_t named = 0;

        for (unsigned i = 1; i < THINGS; i++) {
            for (const uint8_t *name = things[i].names; things[i].kind == kind && *name; name++) {
                named |= 1ull << things[*name].kind;
            }
        }
        ck_assert_msg(named == obj_classes[kind].names,
                      "%s: 0x%" PRIx64 " named, 0x%" PRIx64 " in the table", obj_classes[kind].name,
                      named, obj_classes[kind].names);
    }
}
END_TEST

/* A reset, an FLR and the end of a user context empty the number spaces one after the other: the
 * naming objects before the named ones. */
START_TEST(spaces_are_emptied_users_first)
{
    for (unsigned kind = 1; kind < OBJ_KINDS; kind++) {
        for (unsigned named = 1; named < OBJ_KINDS; named++) {
            unsigned user = 0, used = 0;

            /* parts have no space: they end with their owner, tables after all objects */
            if (!(obj_classes[kind].names >> named & 1) || !obj_classes[kind].space ||
                !obj_classes[named].space) {
                continue;
            }
            while (obj_spaces[user] != obj_classes[kind].space) {
                user++;
            }
            while (obj_spaces[used] != obj_classes[named].space) {
                used++;
            }
            ck_assert_msg(user < used, "%s goes after %s", obj_classes[kind].name,
                          obj_classes[named].name);
        }
    }
}
END_TEST

START_TEST(an_object_in_use_cannot_be_destroyed)
{
    make_all();
    for (unsigned i = 1; i < THINGS; i++) {
        if (names_of(i)) {
            ck_assert_int_eq(destroy(i), SYN_IN_USE);
            ck_assert_uint_eq(PRM_GET(cmd_out, out, status), PRM_CMD_STATUS_BAD_RES_STATE);
        }
    }
    check_counts();
}
END_TEST

/* Whatever the order in which software tries: an object can be destroyed after the last object that
 * names it, and never before. */
START_TEST(objects_go_in_any_order_that_leaves_nothing_dangling)
{
    GRand *random = g_rand_new_with_seed((guint32)_i);
    unsigned left = THINGS - 1;

    make_all();
    while (left) {
        unsigned thing = (unsigned)g_rand_int_range(random, 1, THINGS);
        bool named = names_of(thing);

        if (!number[thing]) {
            continue;
        }
        if (thing == TABLE) { /* its entries can be destroyed in any case */
            named = false;
        }
        ck_assert_int_eq(destroy(thing), named ? SYN_IN_USE : SYN_OK);
        if (!named) {
            number[thing] = 0;
            left--;
        }
        check_counts();
    }
    g_rand_free(random);
    for (unsigned i = 0; i < obj_n_spaces; i++) {
        ck_assert_uint_eq(obj_space(&d.fw->hca, i)->count,
                          obj_spaces[i] == obj_classes[OBJ_UCTX].space);
    }
}
END_TEST

/* Marks the things that were destroyed with the context. */
static enum syn destroy_context(void)
{
    enum syn syn;

    PRM_SET(destroy_uctx_in, in, uid, uid);
    syn = run_as(0, PRM_CMD_OP_DESTROY_UCTX, PRM_SIZE(destroy_uctx_in));
    for (unsigned i = 1; i < THINGS; i++) {
        number[i] = object(i) ? number[i] : 0;
    }
    return syn;
}

/* The end of a context destroys everything that the kernel's objects do not name: the kernel's EQ
 * names a page of the context, its table a TIR, and with that a whole chain. */
START_TEST(a_context_goes_with_all_that_names_each_other)
{
    make_all();
    ck_assert_int_eq(destroy_context(), SYN_IN_USE);
    check_counts();
    ck_assert(number[UAR] && number[RQ] && number[RING_UMEM] && number[TIR]);
    ck_assert(!number[QP] && !number[RQT] && !number[KEY_UMEM]);

    ck_assert_int_eq(destroy(TABLE), SYN_OK);
    ck_assert_int_eq(destroy_context(), SYN_IN_USE);
    ck_assert_uint_eq(d.fw->hca.umems.count, 0);
    for (unsigned i = THINGS - 1; i; i--) {
        if (number[i] && object(i)->uid != uid) {
            ck_assert_int_eq(destroy(i), SYN_OK);
        }
    }
    ck_assert_int_eq(destroy_context(), SYN_OK);
    for (unsigned i = 0; i < obj_n_spaces; i++) {
        ck_assert_uint_eq(obj_space(&d.fw->hca, i)->count, 0);
    }
}
END_TEST

/* A CQ whose ring moves names the umem of the new ring; the record's umem stays. */
START_TEST(a_resized_cq_keeps_the_umem_of_its_new_ring)
{
    struct prm_cqc *cqc = PRM_PTR(modify_cq_in, in, cq_context);

    for (unsigned i = 1; i <= CQ; i++) {
        things[i].make(i);
    }
    PRM_SET(modify_cq_in, in, op_mod, PRM_MODIFY_CQ_OP_RESIZE_CQ);
    PRM_SET(modify_cq_in, in, cqn, number[CQ]);
    PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select, PRM_CQ_RESIZE_LOG_CQ_SIZE);
    PRM_SET(modify_cq_in, in, cq_umem_valid, 1);
    PRM_SET(modify_cq_in, in, cq_umem_id, number[KEY_UMEM]);
    PRM_SET(cqc, cqc, log_cq_size, 7);
    must(PRM_CMD_OP_MODIFY_CQ, PRM_SIZE(modify_cq_in));
    ck_assert_int_eq(destroy(KEY_UMEM), SYN_IN_USE);
    ck_assert_int_eq(destroy(DBR_UMEM), SYN_IN_USE);
    ck_assert_int_eq(destroy(RING_UMEM), SYN_OK);
    ck_assert_int_eq(destroy(CQ), SYN_OK);
    ck_assert_int_eq(destroy(KEY_UMEM), SYN_OK);
    ck_assert_int_eq(destroy(DBR_UMEM), SYN_OK);
}
END_TEST

/* A key that could not be made names nothing. */
START_TEST(a_refused_object_names_nothing)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    for (unsigned i = 1; i <= CQ; i++) {
        things[i].make(i);
    }
    PRM_SET(create_mkey_in, in, mkey_umem_valid, 1);
    PRM_SET(create_mkey_in, in, mkey_umem_id, number[KEY_UMEM]);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, pd, 0xffff);
    PRM_SET(mkc, mkc, log_page_size, 12);
    ck_assert_int_eq(run_as(uid, PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in)), SYN_NO_PD);
    check_counts();
    ck_assert_int_eq(destroy(KEY_UMEM), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw references");
    TCase *tc = tcase_create("references");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_sort_of_reference_is_among_these);
    tcase_add_test(tc, spaces_are_emptied_users_first);
    tcase_add_test(tc, an_object_in_use_cannot_be_destroyed);
    tcase_add_loop_test(tc, objects_go_in_any_order_that_leaves_nothing_dangling, 0, ORDERS);
    tcase_add_test(tc, a_context_goes_with_all_that_names_each_other);
    tcase_add_test(tc, a_resized_cq_keeps_the_umem_of_its_new_ring);
    tcase_add_test(tc, a_refused_object_names_nothing);
    suite_add_tcase(s, tc);
    return s;
}
