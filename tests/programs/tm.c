/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tm: a process whose shared receive queue matches tags, and a process that sends to it, over
 * libibverbs. An expected message lands in the first buffer whose tag fits, in the order in which
 * buffers were posted. An unexpected message lands in a receive. The device fetches an announced
 * message.
 *
 *     tm -g GID [-d DEVICE] [-p PORT]          the side that receives
 *     tm -g GID [-d DEVICE] [-p PORT] HOST     the side that sends
 *
 * Exit status 0: everything is right, including every byte. 77: the device has no tag matching.
 */
#include <endian.h>
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define NO_TM   77
#define TAGS    64
#define OPS     128
#define RECVS   128
#define TIMEOUT 18   /* 1 s */
#define SLOT    4096 /* bytes of a message in a receive or a matched buffer */
#define LARGE   300000
#define ROUNDS  60
#define HEADER  (sizeof(struct ibv_tmh))
#define RNDV    (HEADER + sizeof(struct ibv_rvh))
#define EXACT   (~0ull)
#define ADD_ID  0x1000 /* wr_ids of list operations */
#define TAG_ID  0x2000 /* of messages that entries match */
#define RECV_ID 0x3000 /* of receives */

struct hello {
    union ibv_gid gid;
    uint32_t qpn;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory;
static struct hello mine, theirs;
static struct endpoint_options options = {.port = "18518"};
static unsigned unexpected;
static int peer;

static uint8_t byte_of(uint64_t message, size_t at)
{
    return (uint8_t)(message * 13 + at * 5 + 1);
}

/* Buffers: receives, then matched buffers by number, then the large buffer. */
static uint8_t *receive_at(uint64_t n)
{
    return memory + n * SLOT;
}

static uint8_t *buffer_at(uint64_t n)
{
    return memory + (RECVS + n) * SLOT;
}

static uint8_t *large(void)
{
    return memory + (RECVS + TAGS) * SLOT;
}

/* -- completions --------------------------------------------------------------------------------
 */

struct done {
    uint64_t wr_id, tag;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    unsigned flags;
    uint32_t len, priv;
};

static struct done completion(void)
{
    time_t end = time(NULL) + OTHER_SIDE_PATIENCE;
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info = {0};
    struct done done;
    int err;

    while ((err = ibv_start_poll(cq, &attr)) == ENOENT) {
        need(time(NULL) < end, "waiting for a completion");
    }
    need(!err, "ibv_start_poll()");
    done = (struct done){.wr_id = cq->wr_id, .status = cq->status};
    done.opcode = ibv_wc_read_opcode(cq);
    done.flags = ibv_wc_read_wc_flags(cq);
    done.len = ibv_wc_read_byte_len(cq);
    ibv_wc_read_tm_info(cq, &info);
    done.tag = info.tag;
    done.priv = info.priv;
    ibv_end_poll(cq);
    return done;
}

static struct done expect(uint64_t wr_id, enum ibv_wc_opcode opcode, unsigned flags)
{
    struct done done = completion();

    if (done.status || done.wr_id != wr_id || done.opcode != opcode || done.flags != flags) {
        fail("%lx is %s, opcode %d, flags %x; wanted are %lx, %d, %x", (unsigned long)done.wr_id,
             ibv_wc_status_str(done.status), done.opcode, done.flags, (unsigned long)wr_id, opcode,
             flags);
    }
    return done;
}

/* -- the list -----------------------------------------------------------------------------------
 */

static uint32_t add(unsigned n, void *buf, uint32_t len, uint64_t tag, uint64_t mask)
{
    struct ibv_sge sge = {(uintptr_t)buf, len, mr->lkey};
    struct ibv_ops_wr *bad, wr = {.wr_id = ADD_ID + n,
                                  .opcode = IBV_WR_TAG_ADD,
                                  .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
                                  .tm = {.unexpected_cnt = unexpected,
                                         .add = {.recv_wr_id = TAG_ID + n,
                                                 .sg_list = &sge,
                                                 .num_sge = 1,
                                                 .tag = tag,
                                                 .mask = mask}}};

    need(!ibv_post_srq_ops(srq, &wr, &bad), "adding a tag");
    expect(ADD_ID + n, IBV_WC_TM_ADD, 0);
    return wr.tm.handle;
}

static enum ibv_wc_status take_back(unsigned n, uint32_t handle)
{
    struct ibv_ops_wr *bad, wr = {.wr_id = ADD_ID + n,
                                  .opcode = IBV_WR_TAG_DEL,
                                  .flags = IBV_OPS_SIGNALED,
                                  .tm = {.handle = handle}};
    struct done done;

    need(!ibv_post_srq_ops(srq, &wr, &bad), "removing a tag");
    done = completion();
    if (done.wr_id != ADD_ID + n || done.opcode != IBV_WC_TM_DEL) {
        fail("removing a tag is wr_id %lx, opcode %d", (unsigned long)done.wr_id, done.opcode);
    }
    return done.status;
}

static void post_receive(uint64_t n)
{
    struct ibv_sge sge = {(uintptr_t)receive_at(n), SLOT, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = RECV_ID + n, .sg_list = &sge, .num_sge = 1}, *bad;

    need(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)),
         "posting a receive");
}

static void check(const uint8_t *buf, uint64_t message, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != byte_of(message, i)) {
            fail("byte %zu of message %lu differs", i, (unsigned long)message);
        }
    }
}

/* Expects two completions of a matched message, or one if it fits in a packet. */
static void expect_match(unsigned n, uint64_t tag, uint32_t len)
{
    struct done done = completion();

    if (done.status || done.wr_id != TAG_ID + n || done.opcode != IBV_WC_TM_RECV ||
        !(done.flags & IBV_WC_TM_MATCH) || done.tag != tag) {
        fail("match %u is %s, wr_id %lx, opcode %d, flags %x, tag %lx", n,
             ibv_wc_status_str(done.status), (unsigned long)done.wr_id, done.opcode, done.flags,
             (unsigned long)done.tag);
    }
    if (!(done.flags & IBV_WC_TM_DATA_VALID)) {
        done = expect(TAG_ID + n, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
    }
    if (done.len != len) {
        fail("match %u has %u bytes, not %u", n, done.len, len);
    }
}

/* -- both sides' parts of a statement ---------------------------------------------------------- */

/* Sends a message with a tag, and waits for its completion. */
static void send_eager(uint64_t message, uint64_t tag, uint32_t len, uint8_t opcode)
{
    struct ibv_tmh *tmh = (void *)buffer_at(0);
    struct ibv_sge sge = {(uintptr_t)tmh, (uint32_t)HEADER + len, mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = message,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .sg_list = &sge,
                                   .num_sge = 1};

    memset(tmh, 0, HEADER);
    tmh->opcode = opcode;
    tmh->app_ctx = htobe32(0x1234);
    tmh->tag = htobe64(tag);
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)(tmh + 1))[i] = byte_of(message, i);
    }
    need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send()");
    expect(message, IBV_WC_SEND, 0);
}

static uint32_t length_of(unsigned round)
{
    static const uint32_t lengths[] = {0, 1, 33, 64, 1000, 1008, 2500, 4000};

    return lengths[round % 8];
}

static void expected(bool receives)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t len = length_of(round);
        uint64_t tag = 0xabcd0000ull + round;

        if (receives) {
            memset(buffer_at(0), 0, SLOT);
            add(0, buffer_at(0), SLOT, tag, EXACT);
            together(peer);
            expect_match(0, tag, len);
            check(buffer_at(0), round, len);
        } else {
            together(peer);
            send_eager(round, tag, len, IBV_TMH_EAGER);
        }
        together(peer);
    }
}

/* MPI's order: of all entries that fit, the one that was posted first matches; a mask is a
 * wildcard. */
static void in_order(bool receives)
{
    static const struct {
        uint64_t tag, mask;
    } entries[] = {{0x10, 0xf0}, {0x15, EXACT}, {0, 0}, {0x15, EXACT}};
    static const uint64_t tags[] = {0x15, 0x15, 0x99, 0x15};

    if (receives) {
        for (unsigned i = 0; i < 4; i++) {
            add(i, buffer_at(i), SLOT, entries[i].tag, entries[i].mask);
        }
        together(peer);
        for (unsigned i = 0; i < 4; i++) {
            expect_match(i, tags[i], 500 + i);
            check(buffer_at(i), 3000 + i, 500 + i);
        }
    } else {
        together(peer);
        for (unsigned i = 0; i < 4; i++) {
            send_eager(3000 + i, tags[i], 500 + i, IBV_TMH_EAGER);
        }
    }
    together(peer);
}

/* No receive with a tag waits for the message, so the whole message, header included, is in a plain
 * receive. The device has counted it; after software reports that it knows of the message, it may
 * post again. */
static void unexpected_ones(bool receives)
{
    for (unsigned i = 0; i < 5; i++) {
        bool no_tag = i == 3;

        if (receives) {
            uint32_t handle = add(1, buffer_at(1), SLOT, 0x7777, EXACT);
            struct done done;
            const struct ibv_tmh *tmh;

            together(peer);
            done = completion();
            if (done.status || (done.wr_id & ~0xfffull) != RECV_ID ||
                done.opcode != (no_tag ? IBV_WC_TM_NO_TAG : IBV_WC_TM_RECV) || done.flags ||
                done.len != HEADER + 700) {
                fail("an unexpected message is %s, wr_id %lx, opcode %d, flags %x, %u bytes",
                     ibv_wc_status_str(done.status), (unsigned long)done.wr_id, done.opcode,
                     done.flags, done.len);
            }
            tmh = (const void *)receive_at(done.wr_id - RECV_ID);
            need(be64toh(tmh->tag) == 0x8888 + i, "the tag of an unexpected message");
            check((const uint8_t *)(tmh + 1), 4000 + i, 700);
            post_receive(done.wr_id - RECV_ID);
            unexpected += !no_tag;
            need(take_back(1, handle) == IBV_WC_SUCCESS, "removing what was not matched");
        } else {
            together(peer);
            send_eager(4000 + i, 0x8888 + i, 700, no_tag ? IBV_TMH_NO_TAG : IBV_TMH_EAGER);
        }
        together(peer);
    }
}

/* The sender announces where its data is; the receiver's device fetches it and reports a
 * completion. */
static void rendezvous(bool receives)
{
    for (unsigned i = 0; i < 3; i++) {
        uint32_t len = i == 0 ? 100 : i == 1 ? 5000 : LARGE;

        if (receives) {
            struct done done;

            memset(large(), 0, LARGE);
            add(2, large(), LARGE, 0x5555, EXACT);
            together(peer);
            expect(TAG_ID + 2, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
            done = expect(TAG_ID + 2, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
            need(done.len == len, "the length of a rendezvous");
            check(large(), 5000 + i, len);
        } else {
            struct ibv_tmh *tmh = (void *)buffer_at(0);
            struct ibv_rvh *rvh = (void *)(tmh + 1);
            struct ibv_sge sge = {(uintptr_t)tmh, RNDV, mr->lkey};
            struct ibv_send_wr *bad, wr = {.wr_id = 5,
                                           .opcode = IBV_WR_SEND,
                                           .send_flags = IBV_SEND_SIGNALED,
                                           .sg_list = &sge,
                                           .num_sge = 1};
            struct done done;
            const struct ibv_tmh *fin;
            bool sent = false;

            for (size_t n = 0; n < len; n++) {
                large()[n] = byte_of(5000 + i, n);
            }
            memset(tmh, 0, RNDV);
            tmh->opcode = IBV_TMH_RNDV;
            tmh->tag = htobe64(0x5555);
            rvh->va = htobe64((uintptr_t)large());
            rvh->rkey = htobe32(mr->rkey);
            rvh->len = htobe32(len);
            together(peer);
            need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send()");
            done = completion();
            if (done.opcode == IBV_WC_SEND && !done.status) {
                sent = true;
                done = completion();
            }
            if (done.status || done.opcode != IBV_WC_RECV) {
                fail("a FIN is %s, opcode %d", ibv_wc_status_str(done.status), done.opcode);
            }
            fin = (const void *)receive_at(done.wr_id - RECV_ID);
            need(fin->opcode == IBV_TMH_FIN && be64toh(fin->tag) == 0x5555, "what a FIN says");
            post_receive(done.wr_id - RECV_ID);
            if (!sent) {
                expect(5, IBV_WC_SEND, 0);
            }
        }
        together(peer);
    }
}

/* Checks the refusals of lists and limits. */
static void limits(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, 16, mr->lkey};
    struct ibv_ops_wr *bad, wr = {.opcode = IBV_WR_TAG_ADD,
                                  .tm = {.add = {.sg_list = &sge, .num_sge = 1, .mask = EXACT}}};
    uint32_t handles[TAGS];

    for (unsigned i = 0; i < TAGS; i++) {
        handles[i] = add(i, buffer_at(0), SLOT, 0x900000 + i, EXACT);
    }
    need(ibv_post_srq_ops(srq, &wr, &bad) == ENOMEM && bad == &wr, "refusing a tag too many");
    for (unsigned i = 0; i < TAGS; i++) {
        need(take_back(i, handles[i]) == IBV_WC_SUCCESS, "emptying the list");
    }
}

/* -- objects ------------------------------------------------------------------------------------
 */

static void make_queues(bool receives)
{
    struct ibv_cq_init_attr_ex cq_attr = {
        .cqe = 1023, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct ibv_srq_init_attr_ex srq_attr = {
        .attr = {.max_wr = RECVS, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM,
        .tm_cap = {.max_num_tags = TAGS, .max_ops = OPS},
    };
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 16, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1}};

    need((cq = ibv_create_cq_ex(ctx, &cq_attr)), "ibv_create_cq_ex()");
    attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
    if (receives) {
        srq_attr.pd = pd;
        srq_attr.cq = ibv_cq_ex_to_cq(cq);
        need((srq = ibv_create_srq_ex(ctx, &srq_attr)), "ibv_create_srq_ex()");
        attr.srq = srq;
    }
    need((qp = ibv_create_qp(pd, &attr)), "ibv_create_qp()");
}

static void connect_qp(void)
{
    endpoint_init_rc(qp, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    for (unsigned i = 0; i < RECVS - 1; i++) {
        post_receive(i);
    }
    mine.qpn = qp->qp_num;
    mine.gid = endpoint_gid(ctx, options.gid_index);
    tell(peer, &mine, &theirs, sizeof(mine));
    endpoint_connect_rc(qp, endpoint_towards(theirs.gid, options.gid_index), theirs.qpn, TIMEOUT);
    together(peer);
}

int main(int argc, char **argv)
{
    const size_t size = (RECVS + TAGS) * SLOT + (LARGE + 4095) / 4096 * 4096;
    struct ibv_device_attr_ex attr;
    bool receives;

    endpoint_options(argc, argv, &options);
    receives = !options.host;
    ctx = endpoint_open(options.device, ibv_open_device);
    need(!ibv_query_device_ex(ctx, NULL, &attr), "ibv_query_device_ex()");
    if (attr.tm_caps.max_num_tags < TAGS) {
        printf("skipped: the device has no tag matching\n");
        return NO_TM;
    }
    need((pd = ibv_alloc_pd(ctx)) && (memory = aligned_alloc(4096, size)), "memory");
    memset(memory, 0, size);
    need((mr = ibv_reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)),
         "ibv_reg_mr()");
    make_queues(receives);
    peer = other_side_connect(options.host, options.port);
    connect_qp();
    expected(receives);
    in_order(receives);
    unexpected_ones(receives);
    expected(receives);
    rendezvous(receives);
    if (receives) {
        limits();
    }
    together(peer);
    need(!ibv_destroy_qp(qp) && (!srq || !ibv_destroy_srq(srq)) &&
             !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) &&
             !ibv_close_device(ctx),
         "the end");
    printf("all as it must be\n");
    return 0;
}
