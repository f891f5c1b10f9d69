/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lab 4: one operation over a connection that repeats what is lost, and the time it takes.
 *
 *     lab4 write|read|send [norecv]
 *
 * The operation is 4 KiB long: four packets. norecv: bob posts no receive for the first 5 ms.
 */
#include "lab.h"
#include <unistd.h>

#define BYTES 4096

int main(int argc, char *argv[])
{
    struct end *alice = lab_open("alice", 0), *bob = lab_open("bob", 1);
    const char *what = argc > 1 ? argv[1] : "write";
    int is_send = !strcmp(what, "send"), late = argc > 2 && !strcmp(argv[2], "norecv");
    enum ibv_wr_opcode opcode = is_send                 ? IBV_WR_SEND
                                : !strcmp(what, "read") ? IBV_WR_RDMA_READ
                                                        : IBV_WR_RDMA_WRITE;

    struct lab_retries retries = LAB_RETRIES;
    if (late) {
        retries.rnr_retry = 7; /* without end */
    }
    lab_connect(alice, bob, retries);
    memset(alice->buf, 'a', BYTES);
    memset(bob->buf + BYTES, 'b', BYTES);
    if (is_send && !late) {
        lab_post_recv(bob, 1, 0, BYTES);
    }

    double start = lab_ms();
    lab_post(alice, opcode, 2, 0, BYTES, opcode == IBV_WR_RDMA_READ ? bob->buf + BYTES : bob->buf,
             bob->mr->rkey);
    if (late) {
        usleep(5000);
        lab_post_recv(bob, 1, 0, BYTES);
    }
    struct ibv_wc wc = lab_wait(alice);
    printf("alice waited %.1f ms\n", lab_ms() - start);
    if (wc.status == IBV_WC_SUCCESS) {
        const uint8_t *data = opcode == IBV_WR_RDMA_READ ? alice->buf : bob->buf;
        printf("the last byte is '%c'\n", data[BYTES - 1]);
    }
    return wc.status != IBV_WC_SUCCESS;
}
