/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC (IBTA volume 1, 7.8.1): the CRC-32 of Ethernet over all fields of a packet that do not
 * change on its way; fields that may change count as ff. The encapsulation knows which of its own
 * fields may change. In the transport headers it is byte 4 of the BTH (FECN, BECN, reserved).
 */
#ifndef HCASIM_WIRE_PACKET_ICRC_H
#define HCASIM_WIRE_PACKET_ICRC_H

#include <stddef.h>
#include <stdint.h>

#define ICRC_BYTES 4

/*
 * The ICRC of a packet. crc: the CRC of the bytes that an encapsulation counts before the headers
 * but does not send, or 0. head: a scratch copy of the encapsulation's headers, with ff in the
 * fields that may change, and of the transport headers, which begin at bth_off; this function
 * changes it. body: payload and pad.
 */
uint32_t icrc(uint32_t crc, uint8_t *head, size_t bth_off, size_t head_len, const uint8_t *body,
              size_t body_len);

/* The ICRC is sent with its low byte first. */
static inline uint32_t icrc_get(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline void icrc_put(uint8_t *p, uint32_t crc)
{
    p[0] = (uint8_t)crc;
    p[1] = (uint8_t)(crc >> 8);
    p[2] = (uint8_t)(crc >> 16);
    p[3] = (uint8_t)(crc >> 24);
}

#endif
