/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Netlink messages, as the answers to programs are built: several in one buffer, each either whole
 * or absent.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_NETLINK_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>
#include "guest-lib/verbs/preload/preload.h"

struct msghdr;

/* -- netlink.c ---------------------------------------------------------------------------------
 */

/* To be called with a message that is about to be sent. True: it goes to one of this library's
 * sockets, whose answers are now ready; the kernel does not get the message. */
bool netlink_send(int fd, const struct msghdr *message);

/* -- netlink_message.c -------------------------------------------------------------------------
 */

struct netlink_buf {
    size_t len, size;
    bool failed; /* something did not fit */
    size_t last; /* where the message that is being built begins */
    uint8_t *bytes;
};

/* Allocates room for the messages of so many devices. False: there is no memory. netlink_buf_free()
 * frees it. */
bool netlink_buf_init(struct netlink_buf *buf, unsigned devices);
void netlink_buf_free(struct netlink_buf *buf);
/* Begins a message that answers a request, with the header of its type, which has len bytes. */
void netlink_begin(struct netlink_buf *buf, const struct nlmsghdr *request, uint16_t type,
                   uint16_t flags, const void *header, size_t len);
/* netlink_done() ends a dump. netlink_ack() says whether a request was carried out (0, or a
 * negative errno). */
void netlink_done(struct netlink_buf *buf, const struct nlmsghdr *request);
void netlink_ack(struct netlink_buf *buf, const struct nlmsghdr *request, int error);
/* Adds an attribute to the message. */
void netlink_put(struct netlink_buf *buf, uint16_t type, const void *value, size_t len);
void netlink_put_string(struct netlink_buf *buf, uint16_t type, const char *text);
void netlink_put_u8(struct netlink_buf *buf, uint16_t type, uint8_t value);
void netlink_put_u32(struct netlink_buf *buf, uint16_t type, uint32_t value);
void netlink_put_u64(struct netlink_buf *buf, uint16_t type, uint64_t value);

/* Takes the next whole message from a program's bytes, at offset *at. NULL: there is none. */
const struct nlmsghdr *netlink_next(const uint8_t *bytes, size_t len, size_t *at);
/* Finds an attribute of a message behind its header of header_len bytes, and the attribute's
 * length. NULL: there is none of at least min_len bytes. */
const void *netlink_attribute(const struct nlmsghdr *message, size_t header_len, uint16_t type,
                              size_t min_len, size_t *len);
bool netlink_is_dump(const struct nlmsghdr *request);

/* -- netlink_rdma.c, netlink_route.c -----------------------------------------------------------
 */

/* Builds all answers to a request of family RDMA. */
void netlink_rdma_answer(const struct nlmsghdr *request, const struct hv_facts *facts,
                         struct netlink_buf *answer);

enum netlink_part {
    NETLINK_NOTHING, /* only the kernel answers */
    NETLINK_BESIDE,  /* these messages are inserted before the end of the kernel's dump */
    NETLINK_INSTEAD, /* only this library answers */
};
/* netlink_route_asks(): whether this library may have an answer to a request of family ROUTE.
 * netlink_route_answer(): builds the answer. */
bool netlink_route_asks(const struct nlmsghdr *request);
enum netlink_part netlink_route_answer(const struct nlmsghdr *request, const struct hv_facts *facts,
                                       struct netlink_buf *answer);

#endif
