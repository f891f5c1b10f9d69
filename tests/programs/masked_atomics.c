/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * masked_atomics: compare-and-swap under masks and fetch-and-add within fields, as WQEs that the
 * program writes itself, over libibverbs and libmlx5; each against a reference in C.
 *
 *     masked_atomics -g GID [-d DEVICE] [-p PORT]          the side whose memory it is
 *     masked_atomics -g GID [-d DEVICE] [-p PORT] HOST     the side that operates on it
 *
 * Exit status 0: every word that came back and every word that was left is right. 77: the device
 * has no such atomics.
 */
#include <endian.h>
#include <getopt.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/programs/other_side.h"

#define PORT        "18519"
#define NO_ATOMICS  77
#define ROUNDS      400
#define OPMOD_EXT   8u /* opmod of such a WQE: this, and log2 of the size less 2 */
#define OP_CS       0x14u
#define OP_FA       0x15u
#define CAP_EXT     0xcu /* masked compare and swap, masked fetch and add */
#define QUERY_CAPS  0x100u
#define CAPS_ATOMIC 3u

struct hello {
    union ibv_gid gid;
    uint64_t addr;
    uint32_t rkey, qpn;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint64_t *memory; /* [0] the word, [1] what came back */
static struct hello mine, theirs;
static unsigned gid_index, done;
static int peer;

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252ull;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* -- the reference ------------------------------------------------------------------------------
 */

static uint64_t swapped(uint64_t word, uint64_t swap, uint64_t swap_mask, uint64_t compare,
                        uint64_t compare_mask)
{
    return (word ^ compare) & compare_mask ? word : (word & ~swap_mask) | (swap & swap_mask);
}

/* A boundary bit is the most significant one of its field: nothing is carried out of it. */
static uint64_t added(uint64_t word, uint64_t add, uint64_t boundary, unsigned bits)
{
    uint64_t sum = 0, carry = 0;

    for (unsigned i = 0; i < bits; i++) {
        uint64_t a = word >> i & 1, b = add >> i & 1;

        sum |= (a ^ b ^ carry) << i;
        carry = boundary >> i & 1 ? 0 : (a & b) | (a & carry) | (b & carry);
    }
    return sum;
}

/* -- the device ---------------------------------------------------------------------------------
 */

static void put_be32(uint8_t *at, uint32_t v)
{
    v = htobe32(v);
    memcpy(at, &v, 4);
}

static void put_word(uint8_t *at, uint64_t v, unsigned size)
{
    uint64_t be = size == 8 ? htobe64(v) : htobe32((uint32_t)v);

    memcpy(at, &be, size);
}

static uint64_t load(const uint64_t *at, unsigned size)
{
    uint32_t word;

    if (size == 8) {
        return *at;
    }
    memcpy(&word, at, 4);
    return word;
}

/* Operands in the order in which they are in the WQE. Returns what the word was. */
static uint64_t operate(unsigned op, unsigned size, const uint64_t *operands, unsigned num)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    size_t operand_bytes = (num * size + 15) / 16 * 16, len = 32 + operand_bytes + 16;
    uint8_t wqe[96] = {0};
    time_t end = time(NULL) + OTHER_SIDE_PATIENCE;
    uint64_t address = htobe64(theirs.addr), local = htobe64((uintptr_t)&memory[1]);
    struct ibv_wc wc;
    int n;

    put_be32(wqe, (OPMOD_EXT | (size == 8 ? 1u : 0u)) << 24 | op);
    put_be32(wqe + 4, qp->qp_num << 8 | (uint32_t)(len / 16));
    wqe[11] = MLX5_WQE_CTRL_CQ_UPDATE;
    memcpy(wqe + 16, &address, 8);
    put_be32(wqe + 24, theirs.rkey);
    for (unsigned i = 0; i < num; i++) {
        put_word(wqe + 32 + i * size, operands[i], size);
    }
    put_be32(wqe + 32 + operand_bytes, size);
    put_be32(wqe + 36 + operand_bytes, mr->lkey);
    memcpy(wqe + 40 + operand_bytes, &local, 8);
    memory[1] = ~0ull;
    ibv_wr_start(ex);
    ex->wr_id = done;
    ex->wr_flags = IBV_SEND_SIGNALED;
    mlx5dv_wr_raw_wqe(dv, wqe);
    need(!ibv_wr_complete(ex), "ibv_wr_complete()");
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        need(time(NULL) < end, "waiting for a completion");
    }
    if (n < 0 || wc.status || wc.wr_id != done) {
        fail("operation %u is %s (vendor %x)", done, ibv_wc_status_str(wc.status), wc.vendor_err);
    }
    done++;
    /* a reply of 8 bytes is in the host's order, one of 4 in the network's */
    return size == 8 ? memory[1] : be32toh((uint32_t)load(&memory[1], 4));
}

static void check(const char *what, uint64_t is, uint64_t wanted)
{
    if (is != wanted) {
        fail("operation %u: %s is %" PRIx64 ", not %" PRIx64, done, what, is, wanted);
    }
}

/* The word as the other side has it now, by RDMA READ. */
static uint64_t fetch(unsigned size)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    time_t end = time(NULL) + OTHER_SIDE_PATIENCE;
    struct ibv_wc wc;
    int n;

    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(ex, theirs.rkey, theirs.addr);
    ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)&memory[1], size);
    need(!ibv_wr_complete(ex), "ibv_wr_complete()");
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        need(time(NULL) < end, "waiting for a READ");
    }
    need(n == 1 && !wc.status, "a READ");
    return load(&memory[1], size);
}

static void operations(unsigned size)
{
    const uint64_t all = size == 8 ? ~0ull : 0xffffffffull;
    uint64_t word = fetch(size);

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t a = next_random() & all, mask = next_random() & all, result;
        uint64_t cs[4] = {a, round % 3 ? word : next_random() & all, mask,
                          round % 4 ? next_random() & all : all};
        uint64_t fa[2] = {a, round % 5 == 0 ? 0 : round % 5 == 1 ? all : mask};

        if (round & 1) {
            check("what was swapped", operate(OP_CS, size, cs, 4), word);
            result = swapped(word, cs[0], cs[2], cs[1], cs[3]);
        } else {
            check("what was added to", operate(OP_FA, size, fa, 2), word);
            result = added(word, fa[0], fa[1], size * 8);
        }
        word = fetch(size);
        check("what was left", word, result);
    }
}

/* -- objects ------------------------------------------------------------------------------------
 */

static void open_device(const char *name)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_device **list = ibv_get_device_list(NULL);

    for (int i = 0; list && list[i] && !ctx; i++) {
        if (!name || !strcmp(name, ibv_get_device_name(list[i]))) {
            ctx = mlx5dv_open_device(list[i], &attr);
        }
    }
    need(ctx, "opening the device");
    ibv_free_device_list(list);
}

static bool device_has_them(void)
{
    uint8_t in[16] = {0}, out[16 + 4096] = {0};

    put_be32(in, QUERY_CAPS << 16);
    put_be32(in + 4, CAPS_ATOMIC << 1 | 1);
    return !mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)) &&
           (out[16 + 0x13] & CAP_EXT) == CAP_EXT && (out[16 + 0x17] & 0xc) == 0xc;
}

static void make_objects(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 16, .max_send_sge = 4, .max_inline_data = 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE};

    need((pd = ibv_alloc_pd(ctx)) && (memory = aligned_alloc(4096, 4096)), "memory");
    memset(memory, 0x5a, 4096);
    need((mr = ibv_reg_mr(pd, memory, 4096,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)),
         "ibv_reg_mr()");
    need((cq = ibv_create_cq(ctx, 64, NULL, NULL, 0)), "ibv_create_cq()");
    attr.pd = pd;
    attr.send_cq = attr.recv_cq = cq;
    need((qp = mlx5dv_create_qp(ctx, &attr, &dv)), "mlx5dv_create_qp()");
}

static void connect_qp(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags =
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};

    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "to INIT");
    mine = (struct hello){.addr = (uintptr_t)memory, .rkey = mr->rkey, .qpn = qp->qp_num};
    need(!ibv_query_gid(ctx, 1, (int)gid_index, &mine.gid), "ibv_query_gid()");
    tell(peer, &mine, &theirs, sizeof(mine));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = theirs.qpn,
        .max_dest_rd_atomic = 8,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = theirs.gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
    };
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "to RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 8};
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "to RTS");
}

static void together(void)
{
    uint8_t one = 1, other;

    tell(peer, &one, &other, 1);
}

int main(int argc, char **argv)
{
    const char *device = NULL, *port = PORT;
    int option;

    while ((option = getopt(argc, argv, "d:g:p:")) != -1) {
        switch (option) {
        case 'd':
            device = optarg;
            break;
        case 'g':
            gid_index = (unsigned)atoi(optarg);
            break;
        case 'p':
            port = optarg;
            break;
        default:
            return 2;
        }
    }
    open_device(device);
    if (!device_has_them()) {
        printf("skipped: the device has no atomics under masks\n");
        return NO_ATOMICS;
    }
    make_objects();
    peer = other_side_connect(argv[optind], port);
    connect_qp();
    together();
    if (optind < argc) {
        operations(8);
        operations(4);
    }
    together();
    need(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) &&
             !ibv_close_device(ctx),
         "the end");
    printf("%u operations\n", done);
    return 0;
}
