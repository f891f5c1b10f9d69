/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with a tag, as their sender writes them. */
#ifndef HCASIM_TESTS_TM_MESSAGE_H
#define HCASIM_TESTS_TM_MESSAGE_H

#include "tests/sim/fabric/chance.h"
#include "tests/sim/fabric/matcher.h"

#define TM_HEADERS 64u /* bytes of a request at most; behind them its data begins */

/* The first bytes of each (TMH), and of a request what follows (RVH): big-endian. */
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
    TM_BAD_REQUEST, /* its key is nobody's: if the device fetches, it fails */
    TM_BAD_LKEY,    /* its sender may not send it */
};

struct tm_message {
    struct matcher_message match; /* first */
    enum tm_what what;
    uint32_t sent_len, len; /* of the SEND; of the data */
    bool sent, arrived, by_device, fin, done;
};

/* Where its data is, of what is at that place. */
uint8_t *tm_message_data(const struct tm_message *msg, uint8_t *at);
/* All its bytes; then sent_len is how many are sent. rkey: by which a request's data is fetched. */
void tm_message_write(struct tm_message *msg, uint8_t *at, uint32_t number, uint32_t rkey,
                      struct chance *chance);

#endif
