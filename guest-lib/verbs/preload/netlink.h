/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of netlink, as the answers to programs are built: several in one buffer, each whole or
 * not there at all.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_NETLINK_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>
#include "guest-lib/verbs/preload/preload.h"

struct msghdr;

/* -- netlink.c ---------------------------------------------------------------------------------
 */

/* What is about to be sent. True: to a socket of ours, which has its answers now; the kernel has
 * nothing to do with it. */
bool netlink_send(int fd, const struct msghdr *message);

/* -- netlink_message.c -------------------------------------------------------------------------
 */

struct netlink_buf {
    size_t len, size;
    bool failed; /* something did not fit */
    size_t last; /* where the message that is being built begins */
    uint8_t *bytes;
};

/* Room for a device's messages. False: there is no memory. netlink_buf_free() what it has. */
bool netlink_buf_init(struct netlink_buf *buf, unsigned devices);
void netlink_buf_free(struct netlink_buf *buf);
/* A message as an answer to a request, with a header of its type of len bytes. */
void netlink_begin(struct netlink_buf *buf, const struct nlmsghdr *request, uint16_t type,
                   uint16_t flags, const void *header, size_t len);
/* The end of a dump; whether a request was carried out (0, or an errno below 0). */
void netlink_done(struct netlink_buf *buf, const struct nlmsghdr *request);
void netlink_ack(struct netlink_buf *buf, const struct nlmsghdr *request, int error);
/* An attribute of the message. */
void netlink_put(struct netlink_buf *buf, uint16_t type, const void *value, size_t len);
void netlink_put_string(struct netlink_buf *buf, uint16_t type, const char *text);
void netlink_put_u8(struct netlink_buf *buf, uint16_t type, uint8_t value);
void netlink_put_u32(struct netlink_buf *buf, uint16_t type, uint32_t value);
void netlink_put_u64(struct netlink_buf *buf, uint16_t type, uint64_t value);

/* A whole message at an offset of a program's bytes. NULL: there is none. */
const struct nlmsghdr *netlink_next(const uint8_t *bytes, size_t len, size_t *at);
/* An attribute of a message behind its header of header_len bytes, and its length. NULL: it has
 * none that is at least min_len long. */
const void *netlink_attribute(const struct nlmsghdr *message, size_t header_len, uint16_t type,
                              size_t min_len, size_t *len);
bool netlink_is_dump(const struct nlmsghdr *request);

/* -- netlink_rdma.c, netlink_route.c -----------------------------------------------------------
 */

/* All answers to a request of family RDMA. */
void netlink_rdma_answer(const struct nlmsghdr *request, const struct hv_facts *facts,
                         struct netlink_buf *answer);

enum netlink_part {
    NETLINK_NOTHING, /* the kernel's answer is all */
    NETLINK_BESIDE,  /* ours are in front of the end of the kernel's dump */
    NETLINK_INSTEAD, /* ours alone */
};
/* Whether we may have something to say to a request of family ROUTE; what. */
bool netlink_route_asks(const struct nlmsghdr *request);
enum netlink_part netlink_route_answer(const struct nlmsghdr *request, const struct hv_facts *facts,
                                       struct netlink_buf *answer);

#endif
