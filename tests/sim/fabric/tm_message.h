/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with a tag, as their sender writes them. */
#ifndef HCASIM_TESTS_TM_MESSAGE_H
#define HCASIM_TESTS_TM_MESSAGE_H

#include "wire/chance.h"
#include "tests/sim/fabric/matcher.h"

#define TM_HEADERS 64u /* bytes of a request at most; its data begins behind them */

/* The first bytes of each message (TMH), and of a request the bytes after it (RVH): big-endian. */
enum tm_wire_op {
    TM_OP_NO_TAG,
    TM_OP_REQUEST,
    TM_OP_FIN,
    TM_OP_EAGER,
};

struct tm_header {
    uint8_t opcode, reserved[3];
    uint32_t app_ctx;
    uint64_t tag;
};

struct tm_rendezvous {
    uint64_t va;
    uint32_t rkey, len;
};

enum tm_what {
    TM_EAGER,
    TM_REQUEST,
    TM_NO_TAG,
    TM_BAD_REQUEST, /* nobody owns its key: if the device fetches, the fetch fails */
    TM_BAD_LKEY,    /* its sender may not send from that memory */
};

struct tm_message {
    struct matcher_message match; /* first member, so a pointer to it is also one to the message */
    enum tm_what what;
    uint32_t sent_len, len; /* bytes of the SEND; bytes of the data */
    bool sent, arrived, by_device, fin, done;
};

/* Returns where its data is, for a message at that place. */
uint8_t *tm_message_data(const struct tm_message *msg, uint8_t *at);
/* Writes all its bytes and sets sent_len to the number of bytes that are sent. rkey: the key
 * through which a request's data is fetched. */
void tm_message_write(struct tm_message *msg, uint8_t *at, uint32_t number, uint32_t rkey,
                      struct chance *chance);

#endif
