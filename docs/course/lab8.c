/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lab 8: a sender keeps the wire busy for two seconds, and prints how much it sends.
 */
#include "lab.h"

#define BYTES     32768
#define IN_FLIGHT 16
#define STEP      250.0 /* ms between two lines */
#define STEPS     8

int main(void)
{
    struct end *alice = lab_open("alice", 0), *bob = lab_open("bob", 1);
    unsigned posted = 0, completed = 0;

    lab_connect(alice, bob, (struct lab_retries)LAB_RETRIES);
    for (int step = 0; step < STEPS; step++) {
        double start = lab_ms();
        unsigned before = completed;

        while (lab_ms() < start + STEP) {
            struct ibv_wc wc[IN_FLIGHT];

            while (posted - completed < IN_FLIGHT) {
                lab_post(alice, IBV_WR_RDMA_WRITE, posted++, 0, BYTES, bob->buf, bob->mr->rkey);
            }
            int found = ibv_poll_cq(alice->cq, IN_FLIGHT, wc);
            for (int i = 0; i < found; i++) {
                lab_check(wc[i].status ? EIO : 0, "complete a write");
            }
            completed += found;
        }
        printf("%4.2f s: %6.0f MB/s\n", (step + 1) * STEP / 1e3,
               (completed - before) * (BYTES / 1e3) / STEP);
    }
    return 0;
}
