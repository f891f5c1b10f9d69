/* SPDX-License-Identifier: BSD-2-Clause */
/* Lab 2: one SEND of 3000 bytes, which takes three packets. */
#include "lab.h"

int main(void)
{
    struct end *alice = lab_open("alice", 0), *bob = lab_open("bob", 1);

    lab_connect(alice, bob, (struct lab_retries)LAB_RETRIES);
    memset(alice->buf, 'x', 3000);

    lab_post_recv(bob, 1, 0, 4096);
    lab_post(alice, IBV_WR_SEND, 2, 0, 3000, NULL, 0);
    struct ibv_wc wc = lab_wait(bob);
    lab_wait(alice);
    printf("bob has %u bytes\n", wc.byte_len);
    return 0;
}
