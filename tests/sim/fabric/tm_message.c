/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements tm_message.h. */
#include "tests/sim/fabric/tm_message.h"
#include <string.h>

static const uint8_t tm_opcodes[] = {
    [TM_EAGER] = TM_OP_EAGER,         [TM_REQUEST] = TM_OP_REQUEST, [TM_NO_TAG] = TM_OP_NO_TAG,
    [TM_BAD_REQUEST] = TM_OP_REQUEST, [TM_BAD_LKEY] = TM_OP_EAGER,
};

static bool tm_message_is_request(const struct tm_message *msg)
{
    return msg->what == TM_REQUEST || msg->what == TM_BAD_REQUEST;
}

uint8_t *tm_message_data(const struct tm_message *msg, uint8_t *at)
{
    return at + (tm_message_is_request(msg) ? TM_HEADERS : sizeof(struct tm_header));
}

void tm_message_write(struct tm_message *msg, uint8_t *at, uint32_t number, uint32_t rkey,
                      struct chance *chance)
{
    struct tm_header *tmh = (void *)at;
    struct tm_rendezvous *rvh = (void *)(tmh + 1);

    chance_fill(chance, at, TM_HEADERS);
    memset(tmh, 0, sizeof(*tmh));
    tmh->opcode = tm_opcodes[msg->what];
    tmh->app_ctx = GUINT32_TO_BE(number);
    tmh->tag = GUINT64_TO_BE(msg->match.tag);
    msg->sent_len = (uint32_t)sizeof(*tmh) + msg->len;
    if (tm_message_is_request(msg)) {
        rvh->va = GUINT64_TO_BE((uintptr_t)tm_message_data(msg, at));
        rvh->rkey = GUINT32_TO_BE(rkey ^ (msg->what == TM_REQUEST ? 0 : 0x5500));
        rvh->len = GUINT32_TO_BE(msg->len);
        msg->sent_len = (uint32_t)(sizeof(*tmh) + sizeof(*rvh) + chance_below(chance, 9));
    }
    chance_fill(chance, tm_message_data(msg, at), msg->len);
}
