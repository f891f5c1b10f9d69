/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * masked_atomics: compare-and-swap under masks and fetch-and-add within fields, as WQEs that the
 * program writes itself, over libibverbs and libmlx5. Compares each with a reference in C.
 *
 *     masked_atomics -g GID [-d DEVICE] [-p PORT]          the side that owns the memory
 *     masked_atomics -g GID [-d DEVICE] [-p PORT] HOST     the side that operates on it
 *
 * Exit status 0: every returned word and every resulting word is right. 77: the device has no such
 * atomics.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/masked_wqe.h"
#include "tests/programs/other_side.h"

#define NO_ATOMICS 77
#define ROUNDS     400
#define TIMEOUT    18 /* 1 s */

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
static uint64_t *memory; /* [0] the word, [1] the returned value */
static struct hello mine, theirs;
static struct endpoint_options options = {.port = "18519"};
static unsigned done;
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

/* A boundary bit is the most significant bit of its field: no carry leaves the field. */
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

static uint64_t load(const uint64_t *at, unsigned size)
{
    uint32_t word;

    if (size == 8) {
        return *at;
    }
    memcpy(&word, at, 4);
    return word;
}

/* Operands are in the order of the WQE. Returns the old value of the word. */
static uint64_t operate(enum masked_opcode opcode, unsigned size, const uint64_t *operands,
                        unsigned num)
{
    struct masked_wqe w = {.opcode = opcode,
                           .size = size,
                           .remote = theirs.addr,
                           .rkey = theirs.rkey,
                           .local = &memory[1],
                           .lkey = mr->lkey,
                           .wr_id = done};
    struct ibv_wc wc;

    memcpy(w.operands, operands, num * sizeof(*operands));
    memory[1] = ~0ull;
    masked_post(qp, &w);
    wc = endpoint_completion(cq);
    if (wc.status || wc.wr_id != done) {
        fail("operation %u is %s (vendor %x)", done, ibv_wc_status_str(wc.status), wc.vendor_err);
    }
    done++;
    return masked_reply(&w);
}

static void check(const char *what, uint64_t is, uint64_t wanted)
{
    if (is != wanted) {
        fail("operation %u: %s is %" PRIx64 ", not %" PRIx64, done, what, is, wanted);
    }
}

/* Returns the other side's word as it is now, by RDMA READ. */
static uint64_t fetch(unsigned size)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(ex, theirs.rkey, theirs.addr);
    ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)&memory[1], size);
    need(!ibv_wr_complete(ex), "ibv_wr_complete()");
    need(!endpoint_completion(cq).status, "a READ");
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
            check("what was swapped", operate(MASKED_SWAP, size, cs, 4), word);
            result = swapped(word, cs[0], cs[2], cs[1], cs[3]);
        } else {
            check("what was added to", operate(MASKED_ADD, size, fa, 2), word);
            result = added(word, fa[0], fa[1], size * 8);
        }
        word = fetch(size);
        check("what was left", word, result);
    }
}

/* -- objects ------------------------------------------------------------------------------------
 */

static void make_objects(void)
{
    need((pd = ibv_alloc_pd(ctx)) && (memory = aligned_alloc(4096, 4096)), "memory");
    memset(memory, 0x5a, 4096);
    need((mr = ibv_reg_mr(pd, memory, 4096,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)),
         "ibv_reg_mr()");
    need((cq = ibv_create_cq(ctx, 64, NULL, NULL, 0)), "ibv_create_cq()");
    qp = masked_make_qp(pd, cq);
}

static void connect_qp(void)
{
    endpoint_init_rc(qp, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    mine = (struct hello){.gid = endpoint_gid(ctx, options.gid_index),
                          .addr = (uintptr_t)memory,
                          .rkey = mr->rkey,
                          .qpn = qp->qp_num};
    tell(peer, &mine, &theirs, sizeof(mine));
    endpoint_connect_rc(qp, endpoint_towards(theirs.gid, options.gid_index), theirs.qpn, TIMEOUT);
}

int main(int argc, char **argv)
{
    endpoint_options(argc, argv, &options);
    ctx = endpoint_open(options.device, masked_open);
    if (!masked_device_has_them(ctx)) {
        printf("skipped: the device has no atomics under masks\n");
        return NO_ATOMICS;
    }
    make_objects();
    peer = other_side_connect(options.host, options.port);
    connect_qp();
    together(peer);
    if (options.host) {
        operations(8);
        operations(4);
    }
    together(peer);
    need(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) &&
             !ibv_close_device(ctx),
         "the end");
    printf("%u operations\n", done);
    return 0;
}
