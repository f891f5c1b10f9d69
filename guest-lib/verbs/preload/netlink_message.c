/* SPDX-License-Identifier: BSD-2-Clause */
/* Netlink messages: builds them, and parses those of a program. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/preload/netlink.h"

#define ROOM_OF_A_DEVICE 2048 /* bytes */

bool netlink_buf_init(struct netlink_buf *buf, unsigned devices)
{
    *buf = (struct netlink_buf){.size = (size_t)(devices + 1) * ROOM_OF_A_DEVICE};
    buf->bytes = calloc(1, buf->size);
    return buf->bytes != NULL;
}

void netlink_buf_free(struct netlink_buf *buf)
{
    free(buf->bytes);
    *buf = (struct netlink_buf){0};
}

static struct nlmsghdr *netlink_last(struct netlink_buf *buf)
{
    return (struct nlmsghdr *)(void *)(buf->bytes + buf->last);
}

/* Takes len bytes of room, with padding behind. NULL: there is no room. */
static uint8_t *netlink_take(struct netlink_buf *buf, size_t len)
{
    size_t aligned = NLMSG_ALIGN(len);
    uint8_t *at = buf->bytes + buf->len;

    if (buf->failed || aligned > buf->size - buf->len) {
        buf->failed = true;
        return NULL;
    }
    buf->len += aligned;
    return at;
}

void netlink_begin(struct netlink_buf *buf, const struct nlmsghdr *request, uint16_t type,
                   uint16_t flags, const void *header, size_t len)
{
    size_t at = buf->len;
    uint8_t *bytes = netlink_take(buf, NLMSG_HDRLEN + len);

    if (bytes) {
        struct nlmsghdr message = {.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + NLMSG_ALIGN(len)),
                                   .nlmsg_type = type,
                                   .nlmsg_flags = flags,
                                   .nlmsg_seq = request->nlmsg_seq};

        buf->last = at;
        memcpy(bytes, &message, sizeof(message));
        if (len) {
            memcpy(bytes + NLMSG_HDRLEN, header, len);
        }
    }
}

void netlink_done(struct netlink_buf *buf, const struct nlmsghdr *request)
{
    const int32_t error = 0;

    netlink_begin(buf, request, NLMSG_DONE, NLM_F_MULTI, &error, sizeof(error));
}

void netlink_ack(struct netlink_buf *buf, const struct nlmsghdr *request, int error)
{
    struct nlmsgerr answer = {.error = error, .msg = *request};

    netlink_begin(buf, request, NLMSG_ERROR, NLM_F_CAPPED, &answer, sizeof(answer));
}

void netlink_put(struct netlink_buf *buf, uint16_t type, const void *value, size_t len)
{
    struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
    uint8_t *bytes = netlink_take(buf, NLA_HDRLEN + len);

    if (bytes) {
        memcpy(bytes, &attribute, sizeof(attribute));
        memcpy(bytes + NLA_HDRLEN, value, len);
        netlink_last(buf)->nlmsg_len = (uint32_t)(buf->len - buf->last);
    }
}

void netlink_put_string(struct netlink_buf *buf, uint16_t type, const char *text)
{
    netlink_put(buf, type, text, strlen(text) + 1);
}

void netlink_put_u8(struct netlink_buf *buf, uint16_t type, uint8_t value)
{
    netlink_put(buf, type, &value, sizeof(value));
}

void netlink_put_u32(struct netlink_buf *buf, uint16_t type, uint32_t value)
{
    netlink_put(buf, type, &value, sizeof(value));
}

void netlink_put_u64(struct netlink_buf *buf, uint16_t type, uint64_t value)
{
    netlink_put(buf, type, &value, sizeof(value));
}

/* -- parsing a program's messages -------------------------------------------------------------- */

const struct nlmsghdr *netlink_next(const uint8_t *bytes, size_t len, size_t *at)
{
    const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)(bytes + *at);

    if (*at > len || len - *at < NLMSG_HDRLEN || message->nlmsg_len < NLMSG_HDRLEN ||
        message->nlmsg_len > len - *at) {
        return NULL;
    }
    *at += NLMSG_ALIGN(message->nlmsg_len);
    return message;
}

const void *netlink_attribute(const struct nlmsghdr *message, size_t header_len, uint16_t type,
                              size_t min_len, size_t *len)
{
    const uint8_t *bytes = (const uint8_t *)message;
    size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(header_len), end = message->nlmsg_len;

    while (at <= end && end - at >= NLA_HDRLEN) {
        struct nlattr attribute;

        memcpy(&attribute, bytes + at, sizeof(attribute));
        if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > end - at) {
            return NULL;
        }
        if ((attribute.nla_type & NLA_TYPE_MASK) == type &&
            attribute.nla_len >= NLA_HDRLEN + min_len) {
            *len = (size_t)attribute.nla_len - NLA_HDRLEN;
            return bytes + at + NLA_HDRLEN;
        }
        at += NLA_ALIGN(attribute.nla_len);
    }
    return NULL;
}

bool netlink_is_dump(const struct nlmsghdr *request)
{
    return (request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
}
