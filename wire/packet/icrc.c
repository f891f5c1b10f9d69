/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See wire/packet/icrc.h. A payload is read once and never copied.
 */
#include "wire/packet/icrc.h"

#include <libdeflate.h>

enum {
    BTH_VARIANT = 4, /* FECN, BECN and the reserved bits beside them */
};

uint32_t icrc(uint32_t crc, uint8_t *head, size_t bth_off, size_t head_len, const uint8_t *body,
              size_t body_len)
{
    head[bth_off + BTH_VARIANT] = 0xff;
    crc = libdeflate_crc32(crc, head, head_len);
    return body_len ? libdeflate_crc32(crc, body, body_len) : crc;
}
