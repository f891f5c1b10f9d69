/* SPDX-License-Identifier: BSD-2-Clause */
/* Lab 3: what a memory key allows, and what it stops. Each attempt has a connection of its own,
 * because an attempt that is stopped takes its connection to the error state. */
#include "lab.h"

#define WINDOW 4096 /* bytes of bob's buffer that alice may reach */

static struct end *alice, *bob;

static struct ibv_mr *window(int access)
{
    struct ibv_mr *mr = ibv_reg_mr(bob->pd, bob->buf, WINDOW, access);

    lab_check(mr ? 0 : errno, "register the window");
    return mr;
}

static void attempt(const char *what, enum ibv_wr_opcode opcode, const void *remote, uint32_t rkey)
{
    static int wr_id;

    printf("-- %s\n", what);
    lab_connect(alice, bob, (struct lab_retries)LAB_RETRIES);
    lab_post(alice, opcode, ++wr_id, 0, 64, remote, rkey);
    lab_wait(alice);
    ibv_destroy_qp(alice->qp);
    ibv_destroy_qp(bob->qp);
}

int main(void)
{
    alice = lab_open("alice", 0);
    bob = lab_open("bob", 1);
    struct ibv_mr *full =
        window(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    struct ibv_mr *read_only = window(IBV_ACCESS_REMOTE_READ);
    uint32_t old = full->rkey;

    attempt("a WRITE to the window", IBV_WR_RDMA_WRITE, bob->buf, full->rkey);
    attempt("a WRITE that ends with the window", IBV_WR_RDMA_WRITE, bob->buf + WINDOW - 64,
            full->rkey);
    attempt("a WRITE one byte further", IBV_WR_RDMA_WRITE, bob->buf + WINDOW - 63, full->rkey);
    attempt("a READ with a key that allows it", IBV_WR_RDMA_READ, bob->buf, read_only->rkey);
    attempt("a WRITE with a key that does not allow it", IBV_WR_RDMA_WRITE, bob->buf,
            read_only->rkey);
    attempt("a WRITE with a key that nobody has", IBV_WR_RDMA_WRITE, bob->buf, old ^ 0xff00);
    ibv_dereg_mr(full);
    attempt("a WRITE with a key that was closed", IBV_WR_RDMA_WRITE, bob->buf, old);
    return 0;
}
