/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usual mistakes of a first verbs program, and what hcasim says of each, word for word.
 *
 * Two devices of one process, on a wire. HCASIM_EXPLAIN is set, so that refused verbs and error
 * completions are explained on standard error, which each statement catches and compares as a
 * whole.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"
#include "tests/programs/said.h"

#define MANY   100000u
#define NO_KEY 0xabcd12u

static struct ibv_cq *cq[2];
static struct ibv_qp *qp[2];
static struct ibv_mr *mr[2];
static uint8_t bytes[2][4096];
static const char *name[2]; /* the devices' */

/* -- two QPs ----------------------------------------------------------------------------------- */

static struct ibv_qp_attr attr_of(enum ibv_qp_state state, int to)
{
    struct ibv_qp_attr attr = {
        .qp_state = state,
        .port_num = 1,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp[to]->qp_num,
        .min_rnr_timer = 1,
        .timeout = 8,
        .retry_cnt = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}}};

    gid_of(to, &attr.ah_attr.grh.dgid);
    return attr;
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                                     \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                                     \
    (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |         \
     IBV_QP_MAX_QP_RD_ATOMIC)

static int to_init(int end)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_INIT, !end);

    return ibv_modify_qp(qp[end], &attr, TO_INIT);
}

static int to_rtr(int end)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_RTR, !end);

    return ibv_modify_qp(qp[end], &attr, TO_RTR);
}

static int to_rts_now(int end)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_RTS, !end);

    return ibv_modify_qp(qp[end], &attr, TO_RTS);
}

static void both_to_rts(void)
{
    for (int end = 0; end < 2; end++) {
        must_be_0(to_init(end));
        must_be_0(to_rtr(end));
        must_be_0(to_rts_now(end));
    }
}

static int send_of(int end, uint64_t wr_id, uint32_t lkey, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)bytes[end], length, lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};

    return ibv_post_send(qp[end], &wr, &bad);
}

static int write_to(int end, uint64_t wr_id, uint32_t rkey, const uint8_t *to)
{
    struct ibv_sge sge = {(uintptr_t)bytes[end], 8, mr[end]->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)to, rkey}};

    return ibv_post_send(qp[end], &wr, &bad);
}

static int write_of(int end, uint64_t wr_id, uint32_t rkey)
{
    return write_to(end, wr_id, rkey, bytes[!end]);
}

static int receive_of(int end, uint64_t wr_id, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)bytes[end], length, mr[end]->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    return ibv_post_recv(qp[end], &wr, &bad);
}

static void setup(void)
{
    use_two_devices();
    device_open();
    for (int end = 0; end < 2; end++) {
        name[end] = ibv_get_device_name(list[end]);
        cq[end] = ibv_create_cq(ctx[end], DEPTH, NULL, NULL, 0);
        must(cq[end], "errno %d", errno);
        mr[end] = ibv_reg_mr(pd[end], bytes[end], sizeof(bytes[end]), IBV_ACCESS_LOCAL_WRITE);
        must(mr[end], "errno %d", errno);
        qp[end] = new_qp(end, cq[end], NULL);
    }
}

static void teardown(void)
{
    for (int end = 0; end < 2; end++) {
        must_be_0(ibv_destroy_qp(qp[end]));
        must_be_0(ibv_dereg_mr(mr[end]));
        must_be_0(ibv_destroy_cq(cq[end]));
    }
    device_close();
}

/* -- the five ---------------------------------------------------------------------------------- */

START_TEST(a_wrong_gid_index)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_RTR, 1);

    must_be_0(to_init(0));
    attr.ah_attr.grh.sgid_index = 17;
    said_catch();
    ck_assert_int_eq(ibv_modify_qp(qp[0], &attr, TO_RTR), EINVAL);
    said("%s: modify_qp: ah_attr.grh.sgid_index 17 is empty; 0 (link-local) and 1 (IPv4) are in "
         "use, and 2 and 3, which are the same for RoCE v1 (EINVAL)\n",
         name[0]);
}
END_TEST

START_TEST(a_forgotten_rtr)
{
    must_be_0(to_init(0));
    said_catch();
    ck_assert_int_eq(to_rts_now(0), EINVAL);
    said("%s: modify_qp (QP 0x%x, INIT to RTS): there is no such transition; from INIT the QP may "
         "go to RESET or RTR or ERR (EINVAL)\n",
         name[0], qp[0]->qp_num);
}
END_TEST

START_TEST(a_bad_lkey)
{
    both_to_rts();
    said_catch();
    must_be_0(send_of(0, 42, NO_KEY, 100));
    must_be_0(send_of(0, 43, mr[0]->lkey, 100));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_WR_FLUSH_ERR);
    said("%s: qp 0x%x: WQE 0 (SEND 0xa) fails with LOCAL_PROT_ERR (syndrome 0x4): lkey 0xabcd12 "
         "does not exist\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 42): IBV_WC_LOC_PROT_ERR (vendor_err 0x51): lkey "
         "0xabcd12, for 100 bytes at 0x%" PRIxPTR ", is no key of this PD; look at sge.lkey and at "
         "whether the region is still registered\n"
         "%s: QP 0x%x, WR 1 (SEND, wr_id 43): IBV_WC_WR_FLUSH_ERR (vendor_err 0xf9): the QP went "
         "to ERR with IBV_WC_LOC_PROT_ERR of wr_id 42 (send queue), which flushes all WRs behind "
         "it; this is said once\n",
         name[0], qp[0]->qp_num, name[0], qp[0]->qp_num, (uintptr_t)bytes[0], name[0],
         qp[0]->qp_num);
}
END_TEST

START_TEST(a_receiver_without_receives)
{
    both_to_rts();
    said_catch();
    must_be_0(send_of(0, 7, mr[0]->lkey, 100));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_RNR_RETRY_EXC_ERR);
    said("%s: qp 0x%x: WQE 0 (SEND 0xa) fails with RNR_RETRY_EXC_ERR (syndrome 0x16)\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 7): IBV_WC_RNR_RETRY_EXC_ERR (vendor_err 0x87): QP 0x%x "
         "at 10.0.0.2 has no receive posted (rnr_retry was 0); post receives there before this "
         "side sends, or set rnr_retry to 7, which retries for ever\n",
         name[0], qp[0]->qp_num, name[0], qp[0]->qp_num, qp[1]->qp_num);
}
END_TEST

START_TEST(a_wrong_qp_number)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_RTR, 1);
    uint32_t wrong = qp[1]->qp_num ^ 0x800000;

    attr.dest_qp_num = wrong;
    must_be_0(to_init(0));
    must_be_0(ibv_modify_qp(qp[0], &attr, TO_RTR));
    must_be_0(to_rts_now(0));
    said_catch();
    must_be_0(send_of(0, 7, mr[0]->lkey, 100));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_RETRY_EXC_ERR);
    said("%s: qp 0x%x: WQE 0 (SEND 0xa) fails with TRANSPORT_RETRY_EXC_ERR (syndrome 0x15)\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 7): IBV_WC_RETRY_EXC_ERR (vendor_err 0x81): QP 0x%x at "
         "10.0.0.2 did not answer after retry_cnt 1 retries (timeout 8); a host has this address, "
         "so look at whether dest_qp_num is right, and at whether the peer's QP is in RTR or RTS "
         "and connected to this QP\n",
         name[0], qp[0]->qp_num, name[0], qp[0]->qp_num, wrong);
}
END_TEST

/* -- others ------------------------------------------------------------------------------------ */

START_TEST(attributes_that_are_missing_or_too_many)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_INIT, 1);

    said_catch();
    ck_assert_int_eq(ibv_modify_qp(qp[0], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX), EINVAL);
    ck_assert_int_eq(ibv_modify_qp(qp[0], &attr, TO_INIT | IBV_QP_QKEY), EINVAL);
    attr.port_num = 2;
    ck_assert_int_eq(ibv_modify_qp(qp[0], &attr, TO_INIT), EINVAL);
    said("%s: modify_qp (QP 0x%x, RESET to INIT): attr_mask must have IBV_QP_ACCESS_FLAGS, "
         "IBV_QP_PORT, too (EINVAL)\n"
         "%s: modify_qp (QP 0x%x, RESET to INIT): attr_mask must not have IBV_QP_QKEY in this "
         "transition of RC QPs (EINVAL)\n"
         "%s: modify_qp (QP 0x%x, RESET to INIT): port_num is 2; the device has port 1 (EINVAL)\n",
         name[0], qp[0]->qp_num, name[0], qp[0]->qp_num, name[0], qp[0]->qp_num);
}
END_TEST

/* ibv_rc_pingpong without -g. */
START_TEST(no_gid_at_all)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_RTR, 1);

    must_be_0(to_init(0));
    attr.ah_attr.is_global = 0;
    said_catch();
    ck_assert_int_eq(ibv_modify_qp(qp[0], &attr, TO_RTR), EINVAL);
    said("%s: modify_qp (QP 0x%x): ah_attr.is_global is 0, but RoCE has no LIDs: set is_global, "
         "grh.dgid and grh.sgid_index (an option of most programs, such as -g 1) (EINVAL)\n",
         name[0], qp[0]->qp_num);
}
END_TEST

START_TEST(posts_too_early_and_too_many)
{
    said_catch();
    ck_assert_int_eq(send_of(0, 1, mr[0]->lkey, 8), ENOMEM);
    ck_assert_int_eq(receive_of(0, 1, 8), EINVAL);
    said("%s: post_send (QP 0x%x): the QP is in RESET; it must be in RTS (ENOMEM)\n"
         "%s: post_recv: QP 0x%x is in RESET; it must be in INIT or later (EINVAL)\n",
         name[0], qp[0]->qp_num, name[0], qp[0]->qp_num);
    both_to_rts();
    for (unsigned i = 0; i < DEPTH; i++) {
        must_be_0(receive_of(0, i, 8));
    }
    said_catch();
    ck_assert_int_eq(receive_of(0, DEPTH, 8), ENOMEM);
    said("%s: post_recv: the receive queue is full: 16 WRs wait to be completed and polled, "
         "max_recv_wr is 16 (ENOMEM)\n",
         name[0]);
}
END_TEST

START_TEST(limits)
{
    struct ibv_qp_init_attr init = {.send_cq = cq[0],
                                    .recv_cq = cq[0],
                                    .cap = {.max_send_wr = MANY, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_device_attr device;

    must_be_0(ibv_query_device(ctx[0], &device));
    said_catch();
    ck_assert_ptr_null(ibv_create_qp(pd[0], &init));
    ck_assert_ptr_null(ibv_create_cq(ctx[0], device.max_cqe + 1, NULL, NULL, 0));
    said("%s: create_qp: max_send_wr is 100000; the device allows 32768 (EINVAL)\n"
         "%s: create_cq: cqe is %d; it may be 1 to %d (EINVAL)\n",
         name[0], name[0], device.max_cqe + 1, device.max_cqe);
}
END_TEST

START_TEST(regions)
{
    said_catch();
    ck_assert_ptr_null(ibv_reg_mr(pd[0], bytes[0], 8, IBV_ACCESS_REMOTE_WRITE));
    ck_assert_ptr_null(ibv_reg_mr(pd[0], NULL, 8192, IBV_ACCESS_LOCAL_WRITE));
    said("%s: reg_mr: access 0x2 has IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC, which "
         "need IBV_ACCESS_LOCAL_WRITE, too (EINVAL)\n"
         "%s: reg_mr: the 8192 bytes at (nil) are not all mapped and writable (EFAULT)\n",
         name[0], name[0]);
}
END_TEST

START_TEST(things_in_use)
{
    said_catch();
    ck_assert_int_eq(ibv_dealloc_pd(pd[0]), EBUSY);
    ck_assert_int_eq(ibv_destroy_cq(cq[0]), EBUSY);
    said("%s: dealloc_pd: 2 objects are in the PD (QPs, MRs, MWs, AHs, SRQs, WQs); destroy them "
         "first (EBUSY)\n"
         "%s: destroy_cq: 2 queues use the CQ (QPs count for send_cq and for recv_cq); destroy "
         "them first (EBUSY)\n",
         name[0], name[0]);
}
END_TEST

/* The other side says why, too. */
START_TEST(an_rkey_without_rights)
{
    both_to_rts();
    said_catch();
    must_be_0(write_of(0, 9, mr[1]->rkey));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_REM_INV_REQ_ERR);
    said(
        "%s: qp 0x%x: a request of the peer (psn 0x0) fails: the QP does not allow RDMA WRITE; its "
        "qp_access_flags have no remote right (syndrome 0x12, nak 0x61)\n"
        "%s: qp 0x%x: WQE 0 (RDMA_WRITE 0x8) fails with REMOTE_INVAL_REQ_ERR (syndrome 0x12)\n"
        "%s: QP 0x%x, WR 0 (RDMA_WRITE, wr_id 9): IBV_WC_REM_INV_REQ_ERR (vendor_err 0x8a): QP "
        "0x%x at 10.0.0.2 does not take this operation (8 bytes); look at whether its "
        "qp_access_flags have IBV_ACCESS_REMOTE_WRITE, and at its max_dest_rd_atomic\n",
        name[1], qp[1]->qp_num, name[0], qp[0]->qp_num, name[0], qp[0]->qp_num, qp[1]->qp_num);
}
END_TEST

START_TEST(a_message_that_is_too_long)
{
    both_to_rts();
    must_be_0(receive_of(1, 5, 50));
    said_catch();
    must_be_0(send_of(0, 9, mr[0]->lkey, 100));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_REM_INV_REQ_ERR);
    ck_assert_int_eq(completion(cq[1]).status, IBV_WC_LOC_LEN_ERR);
    said("%s: qp 0x%x: a request of the peer (psn 0x0) fails: the message is longer than the "
         "receive that it takes (syndrome 0x1, nak 0x61)\n"
         "%s: qp 0x%x: WQE 0 (SEND 0xa) fails with REMOTE_INVAL_REQ_ERR (syndrome 0x12)\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 9): IBV_WC_REM_INV_REQ_ERR (vendor_err 0x8a): QP 0x%x at "
         "10.0.0.2 does not take this message of 100 bytes; look at whether the receive that it "
         "took is shorter\n"
         "%s: QP 0x%x, WR 0 (RECV, wr_id 5): IBV_WC_LOC_LEN_ERR (vendor_err 0xa1): the message is "
         "longer than this receive, which has room for 50 bytes\n",
         name[1], qp[1]->qp_num, name[0], qp[0]->qp_num, name[0], qp[0]->qp_num, qp[1]->qp_num,
         name[1], qp[1]->qp_num);
}
END_TEST

START_TEST(keys_of_other_places)
{
    struct ibv_pd *other = ibv_alloc_pd(ctx[0]);
    struct ibv_mr *theirs = ibv_reg_mr(other, bytes[0], 64, IBV_ACCESS_LOCAL_WRITE);

    must(other && theirs, "errno %d", errno);
    both_to_rts();
    said_catch();
    must_be_0(send_of(0, 3, theirs->lkey, 8));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_LOC_PROT_ERR);
    said("%s: qp 0x%x: WQE 0 (SEND 0xa) fails with LOCAL_PROT_ERR (syndrome 0x4): lkey 0x%x is in "
         "PD 0x#, but the access needs a key of PD 0x#\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 3): IBV_WC_LOC_PROT_ERR (vendor_err 0x51): lkey 0x%x is "
         "of another PD than the QP; register the memory in the QP's PD\n",
         name[0], qp[0]->qp_num, theirs->lkey, name[0], qp[0]->qp_num, theirs->lkey);
    must_be_0(ibv_dereg_mr(theirs));
    must_be_0(ibv_dealloc_pd(other));
}
END_TEST

/* A receive of an SRQ is judged by the SRQ's PD. */
START_TEST(keys_of_an_srq)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2, .max_sge = 1}};
    struct ibv_pd *other = ibv_alloc_pd(ctx[1]);
    struct ibv_mr *theirs = ibv_reg_mr(other, bytes[1], 64, 0);
    struct ibv_srq *srq = ibv_create_srq(other, &attr);
    struct ibv_sge sge = {(uintptr_t)bytes[1], 64, theirs->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};

    must(other && theirs && srq, "errno %d", errno);
    must_be_0(ibv_destroy_qp(qp[1]));
    qp[1] = new_qp(1, cq[1], srq);
    both_to_rts();
    must_be_0(ibv_post_srq_recv(srq, &wr, &bad));
    said_catch();
    must_be_0(send_of(0, 9, mr[0]->lkey, 64));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(completion(cq[1]).status, IBV_WC_LOC_PROT_ERR);
    said("%s: qp 0x%x: a request of the peer (psn 0x0) fails: a key of the receive that it takes "
         "does not allow the write: lkey 0x%x does not allow local write; it allows local read "
         "(syndrome 0x4, nak 0x63)\n"
         "%s: qp 0x%x: WQE 0 (SEND 0xa) fails with REMOTE_OP_ERR (syndrome 0x14)\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 9): IBV_WC_REM_OP_ERR (vendor_err 0x89): QP 0x%x at "
         "10.0.0.2 could not carry it out; look at its own completions: the receive that it took "
         "may have a bad lkey\n"
         "%s: QP 0x%x, WR 0 (RECV, wr_id 5): IBV_WC_LOC_PROT_ERR (vendor_err 0x32): the region of "
         "lkey 0x%x has no IBV_ACCESS_LOCAL_WRITE, which receives, READs and atomics need\n",
         name[1], qp[1]->qp_num, theirs->lkey, name[0], qp[0]->qp_num, name[0], qp[0]->qp_num,
         qp[1]->qp_num, name[1], qp[1]->qp_num, theirs->lkey);
    must_be_0(ibv_destroy_qp(qp[1]));
    must_be_0(ibv_destroy_srq(srq));
    qp[1] = new_qp(1, cq[1], NULL);
    must_be_0(ibv_dereg_mr(theirs));
    must_be_0(ibv_dealloc_pd(other));
}
END_TEST

START_TEST(bytes_behind_the_region)
{
    both_to_rts();
    said_catch();
    must_be_0(send_of(0, 3, mr[0]->lkey, sizeof(bytes[0]) + 1));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_LOC_PROT_ERR);
    said("%s: qp 0x%x: WQE 0 (SEND 0xa) fails with LOCAL_PROT_ERR (syndrome 0x4): 1 byte at "
         "0x%" PRIxPTR " is not inside lkey 0x%x, which has 4096 bytes at 0x%" PRIxPTR "\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 3): IBV_WC_LOC_PROT_ERR (vendor_err 0x51): 4097 bytes at "
         "0x%" PRIxPTR " are not inside the region of lkey 0x%x, which has 4096 bytes at "
         "0x%" PRIxPTR "\n",
         name[0], qp[0]->qp_num, (uintptr_t)bytes[0] + sizeof(bytes[0]), mr[0]->lkey,
         (uintptr_t)bytes[0], name[0], qp[0]->qp_num, (uintptr_t)bytes[0], mr[0]->lkey,
         (uintptr_t)bytes[0]);
}
END_TEST

static void allow_writes(void)
{
    struct ibv_qp_attr attr = attr_of(IBV_QPS_RTS, 0);

    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    must_be_0(ibv_modify_qp(qp[1], &attr, IBV_QP_ACCESS_FLAGS));
}

/* A WRITE of 8 bytes is refused: the device of the other side says why, in these words. */
static void refused(uint32_t rkey, const uint8_t *to, const char *why)
{
    both_to_rts();
    allow_writes();
    said_catch();
    must_be_0(write_to(0, 9, rkey, to));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_REM_ACCESS_ERR);
    said("%s: qp 0x%x: a request of the peer (psn 0x0) fails: %s (syndrome 0x11, nak 0x62)\n"
         "%s: qp 0x%x: WQE 0 (RDMA_WRITE 0x8) fails with REMOTE_ACCESS_ERR (syndrome 0x13)\n"
         "%s: QP 0x%x, WR 0 (RDMA_WRITE, wr_id 9): IBV_WC_REM_ACCESS_ERR (vendor_err 0x88): QP "
         "0x%x at 10.0.0.2 refused rkey 0x%x for 8 bytes at 0x%" PRIxPTR "; look at whether the "
         "region there has these bytes and IBV_ACCESS_REMOTE_WRITE, and is in the PD of its QP\n",
         name[1], qp[1]->qp_num, why, name[0], qp[0]->qp_num, name[0], qp[0]->qp_num, qp[1]->qp_num,
         rkey, (uintptr_t)to);
}

START_TEST(a_wrong_rkey)
{
    refused(NO_KEY, bytes[1], "rkey 0xabcd12 does not exist");
}
END_TEST

START_TEST(a_region_without_the_right)
{
    char why[128];

    snprintf(why, sizeof(why),
             "rkey 0x%x does not allow remote write; it allows local read, local write",
             mr[1]->rkey);
    refused(mr[1]->rkey, bytes[1], why);
}
END_TEST

#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

START_TEST(a_wrong_address)
{
    struct ibv_mr *half = ibv_reg_mr(pd[1], bytes[1], 2048, WRITABLE);
    const uint8_t *to = bytes[1] + 2044;
    char why[128];

    must(half, "errno %d", errno);
    snprintf(why, sizeof(why),
             "8 bytes at 0x%" PRIxPTR " are not inside rkey 0x%x, which has 2048 bytes at "
             "0x%" PRIxPTR,
             (uintptr_t)to, half->rkey, (uintptr_t)bytes[1]);
    refused(half->rkey, to, why);
    must_be_0(ibv_dereg_mr(half));
}
END_TEST

START_TEST(an_rkey_of_another_pd)
{
    struct ibv_pd *other = ibv_alloc_pd(ctx[1]);
    struct ibv_mr *theirs = ibv_reg_mr(other, bytes[1], 4096, WRITABLE);
    char why[128];

    must(other && theirs, "errno %d", errno);
    snprintf(why, sizeof(why), "rkey 0x%x is in PD 0x#, but the access needs a key of PD 0x#",
             theirs->rkey);
    refused(theirs->rkey, bytes[1], why);
    must_be_0(ibv_dereg_mr(theirs));
    must_be_0(ibv_dealloc_pd(other));
}
END_TEST

START_TEST(a_region_that_was_deregistered)
{
    struct ibv_mr *gone = ibv_reg_mr(pd[1], bytes[1], 4096, WRITABLE);
    uint32_t rkey;
    char why[64];

    must(gone, "errno %d", errno);
    rkey = gone->rkey;
    must_be_0(ibv_dereg_mr(gone));
    snprintf(why, sizeof(why), "rkey 0x%x does not exist", rkey);
    refused(rkey, bytes[1], why);
}
END_TEST

/* The receiver's side: its device has refused the peer's request, which flushes its receives, also
 * if the program moves the QP to ERR itself before it polls. */
START_TEST(flushed_by_the_device)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    both_to_rts();
    allow_writes();
    must_be_0(receive_of(1, 5, 8));
    must_be_0(write_of(0, 9, NO_KEY));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_REM_ACCESS_ERR);
    if (_i == 1) {
        must_be_0(ibv_modify_qp(qp[1], &attr, IBV_QP_STATE));
    }
    said_catch();
    ck_assert_int_eq(completion(cq[1]).status, IBV_WC_WR_FLUSH_ERR);
    said("%s: QP 0x%x, WR 0 (RECV, wr_id 5): IBV_WC_WR_FLUSH_ERR (vendor_err 0xf9): the device "
         "moved the QP to ERR with LOCAL_ACCESS_ERR (syndrome 0x11), which flushes all WRs; the "
         "device's line above says why; this is said once\n",
         name[1], qp[1]->qp_num);
}
END_TEST

START_TEST(flushed_by_the_program)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    both_to_rts();
    must_be_0(receive_of(0, 5, 8));
    must_be_0(receive_of(0, 6, 8));
    said_catch();
    must_be_0(ibv_modify_qp(qp[0], &attr, IBV_QP_STATE));
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_int_eq(completion(cq[0]).status, IBV_WC_WR_FLUSH_ERR);
    said("%s: QP 0x%x, WR 0 (RECV, wr_id 5): IBV_WC_WR_FLUSH_ERR (vendor_err 0xf9): the program "
         "moved the QP to ERR, which flushes all WRs; this is said once\n",
         name[0], qp[0]->qp_num);
}
END_TEST

/* What ibv_post_send() itself refuses. */
START_TEST(lists_that_a_send_queue_does_not_take)
{
    struct ibv_sge sge[2] = {{(uintptr_t)bytes[0], 8, mr[0]->lkey},
                             {(uintptr_t)bytes[0], 8, mr[0]->lkey}};
    struct ibv_sge large = {(uintptr_t)bytes[0], sizeof(bytes[0]), mr[0]->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = sge, .num_sge = 60, .opcode = IBV_WR_SEND};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    unsigned posted = 0;

    both_to_rts();
    must_be_0(ibv_query_qp(qp[0], &attr, IBV_QP_CAP, &init));
    said_catch();
    ck_assert_int_eq(ibv_post_send(qp[0], &wr, &bad), ENOMEM);
    wr = (struct ibv_send_wr){
        .sg_list = &large, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    ck_assert_int_eq(ibv_post_send(qp[0], &wr, &bad), ENOMEM);
    wr = (struct ibv_send_wr){.sg_list = sge, .num_sge = 1, .opcode = (enum ibv_wr_opcode)77};
    ck_assert_int_eq(ibv_post_send(qp[0], &wr, &bad), EINVAL);
    said("%s: post_send (QP 0x%x): num_sge is 60; max_send_sge is %u (ENOMEM)\n"
         "%s: post_send (QP 0x%x): more inline data than max_inline_data, which is %u (ENOMEM)\n"
         "%s: post_send (QP 0x%x): the device does not support opcode 77 (EINVAL)\n",
         name[0], qp[0]->qp_num, init.cap.max_send_sge, name[0], qp[0]->qp_num,
         init.cap.max_inline_data, name[0], qp[0]->qp_num);
    for (unsigned i = 0; i < 16; i++) {
        must_be_0(receive_of(1, i, 8));
    }
    while (posted < init.cap.max_send_wr) {
        must_be_0(send_of(0, posted++, mr[0]->lkey, 8));
    }
    said_catch();
    ck_assert_int_eq(send_of(0, posted, mr[0]->lkey, 8), ENOMEM);
    said("%s: post_send (QP 0x%x): the send queue is full: %u WRs wait for their completions to "
         "be polled, max_send_wr is %u; the completion of a signaled WR frees those before it, too "
         "(ENOMEM)\n",
         name[0], qp[0]->qp_num, posted, posted);
}
END_TEST

START_TEST(addresses_and_groups)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 9}};
    union ibv_gid gid;

    gid_of(1, &gid);
    attr.grh.dgid = gid;
    said_catch();
    ck_assert_ptr_null(ibv_create_ah(pd[0], &attr));
    attr.port_num = 3;
    ck_assert_ptr_null(ibv_create_ah(pd[0], &attr));
    ck_assert_int_eq(ibv_attach_mcast(qp[0], &gid, 0), EINVAL);
    said("%s: create_ah: grh.sgid_index 9 is empty; 0 (link-local) and 1 (IPv4) are in use, "
         "and 2 and 3, which are the same for RoCE v1 (ENODATA)\n"
         "%s: create_ah: port_num is 3; the device has port 1 (EINVAL)\n"
         "%s: attach_mcast: QP 0x%x has the type RC; only UD QPs have groups (EINVAL)\n",
         name[0], name[0], name[0], qp[0]->qp_num);
}
END_TEST

/* Lines have a bound: a program that errs for ever fills no disk. */
START_TEST(the_number_of_lines_is_bounded)
{
    char text[64 * 1024];
    unsigned lines = 0;

    said_catch();
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_eq(to_rts_now(0), EINVAL);
    }
    said_text(text, sizeof(text));
    for (const char *at = text; (at = strchr(at, '\n')); at++) {
        lines++;
    }
    ck_assert_uint_ge(lines, 100);
    ck_assert_uint_le(lines, 150);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mistakes");
    TCase *c = tcase_create("mistakes");

    setenv("HCASIM_EXPLAIN", "1", 1);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 3 * SECONDS);
    tcase_add_test(c, a_wrong_gid_index);
    tcase_add_test(c, a_forgotten_rtr);
    tcase_add_test(c, a_bad_lkey);
    tcase_add_test(c, a_receiver_without_receives);
    tcase_add_test(c, a_wrong_qp_number);
    tcase_add_test(c, attributes_that_are_missing_or_too_many);
    tcase_add_test(c, no_gid_at_all);
    tcase_add_test(c, posts_too_early_and_too_many);
    tcase_add_test(c, limits);
    tcase_add_test(c, regions);
    tcase_add_test(c, things_in_use);
    tcase_add_test(c, an_rkey_without_rights);
    tcase_add_test(c, a_message_that_is_too_long);
    tcase_add_test(c, keys_of_other_places);
    tcase_add_test(c, keys_of_an_srq);
    tcase_add_test(c, bytes_behind_the_region);
    tcase_add_test(c, a_wrong_rkey);
    tcase_add_test(c, a_region_without_the_right);
    tcase_add_test(c, a_wrong_address);
    tcase_add_test(c, an_rkey_of_another_pd);
    tcase_add_test(c, a_region_that_was_deregistered);
    tcase_add_loop_test(c, flushed_by_the_device, 0, 2);
    tcase_add_test(c, flushed_by_the_program);
    tcase_add_test(c, lists_that_a_send_queue_does_not_take);
    tcase_add_test(c, addresses_and_groups);
    tcase_add_test(c, the_number_of_lines_is_bounded);
    suite_add_tcase(suite, c);
    return run_on_own_wire(suite, "mistakes");
}
