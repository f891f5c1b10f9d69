/* SPDX-License-Identifier: BSD-2-Clause */
/* Lab 1: a message goes from one end to the other. */
#include "lab.h"

int main(void)
{
    struct end *alice = lab_open("alice", 0), *bob = lab_open("bob", 1);

    lab_connect(alice, bob, (struct lab_retries)LAB_RETRIES);
    strcpy((char *)alice->buf, "hello, bob");

    lab_post_recv(bob, 1, 0, 64);
    lab_post(alice, IBV_WR_SEND, 2, 0, 11, NULL, 0);
    lab_wait(alice);
    struct ibv_wc wc = lab_wait(bob);
    printf("bob has %u bytes: %s\n", wc.byte_len, bob->buf);
    return 0;
}
