/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives whole frames from a packet socket (packet(7)).
 *
 * The kernel takes the outer VLAN tag out of a frame before a packet socket sees it, and a sender
 * on this machine (the other end of a veth pair) leaves the TCP or UDP checksum to a card that is
 * not there. Both are told beside the frame (PACKET_AUXDATA), and both are put back here. What
 * cannot be put back: a frame that the sender leaves to its card to cut into segments (TSO, GSO) is
 * longer than any frame, and the caller drops it.
 */
#ifndef HCASIM_WIRE_SOCKET_PACKET_RX_H
#define HCASIM_WIRE_SOCKET_PACKET_RX_H

#include <linux/if_packet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PACKET_RX_TAG 4 /* bytes of a VLAN tag */

/* Makes a packet socket tell what it takes out of frames. False with errno. */
bool packet_rx_prepare(int fd);

/* Puts back what aux tells of. The frame is at buffer + PACKET_RX_TAG; a tag takes the bytes before
 * it. Returns the frame's place, and changes *len. A frame without an Ethernet header stays as it
 * is. */
uint8_t *packet_rx_restore(uint8_t *buffer, size_t *len, const struct tpacket_auxdata *aux);

/* Reads one frame into buffer, which has room bytes, of which the first PACKET_RX_TAG are kept for
 * a tag. Returns its length and sets *frame to its place; NULL: a frame that this host has sent,
 * which is not for the caller. -1: there is none, with errno. A frame that does not fit is cut off.
 */
ssize_t packet_rx_read(int fd, uint8_t *buffer, size_t room, uint8_t **frame);

#endif
