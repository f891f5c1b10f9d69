/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements packet_rx.h. */
#include "wire/socket/packet_rx.h"
#include "wire/bytes.h"
#include "wire/encap/eth.h"

#include <string.h>
#include <sys/socket.h>

enum {
    MACS = 12, /* bytes before the tag */
};

bool packet_rx_prepare(int fd)
{
    int one = 1;

    return !setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one));
}

static uint8_t *packet_rx_tag(uint8_t *frame, const struct tpacket_auxdata *aux)
{
    uint16_t tpid =
        aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : (uint16_t)ETH_TYPE_VLAN;

    memmove(frame - PACKET_RX_TAG, frame, MACS);
    put16(frame - PACKET_RX_TAG + MACS, tpid);
    put16(frame - PACKET_RX_TAG + MACS + 2, aux->tp_vlan_tci);
    return frame - PACKET_RX_TAG;
}

uint8_t *packet_rx_restore(uint8_t *buffer, size_t *len, const struct tpacket_auxdata *aux)
{
    uint8_t *frame = buffer + PACKET_RX_TAG;

    if (*len < ETH_BYTES) {
        return frame;
    }
    if (aux->tp_status & TP_STATUS_VLAN_VALID) {
        frame = packet_rx_tag(frame, aux);
        *len += PACKET_RX_TAG;
    }
    if (aux->tp_status & TP_STATUS_CSUMNOTREADY) {
        struct eth_info info;

        eth_parse(frame, *len, &info);
        eth_csum_fill_l4(frame, &info);
    }
    return frame;
}

ssize_t packet_rx_read(int fd, uint8_t *buffer, size_t room, uint8_t **frame)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control;
    struct iovec part = {buffer + PACKET_RX_TAG, room - PACKET_RX_TAG};
    struct sockaddr_ll from = {0};
    struct msghdr message = {
        .msg_name = &from,
        .msg_namelen = sizeof(from),
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    struct tpacket_auxdata aux = {0};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
    size_t len = (size_t)n;

    *frame = NULL;
    if (n < 0 || from.sll_pkttype == PACKET_OUTGOING) {
        return n;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA &&
            c->cmsg_len >= CMSG_LEN(sizeof(aux))) {
            memcpy(&aux, CMSG_DATA(c), sizeof(aux));
        }
    }
    *frame = packet_rx_restore(buffer, &len, &aux);
    return (ssize_t)len;
}
