/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pads received data to the end of a cache line: of 64 bytes, or of 128 if the driver says so
 * (SET_HCA_CAP, cache_line_128byte; driver: handle_hca_cap()). docs/adr/0028 has what the sources
 * leave open.
 */
#include "model/memory/end_pad.h"

enum {
    LONGEST_LINE = 128
};

void sge_pad_end(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn, uint64_t len)
{
    static const uint8_t zeros[LONGEST_LINE];
    uint64_t line = hca->long_cache_lines ? LONGEST_LINE : LONGEST_LINE / 2, end, room;
    unsigned i = 0;

    while (i < n && len > list[i].len) {
        len -= list[i++].len;
    }
    if (i == n || !len) {
        return;
    }
    end = list[i].va + len;
    room = MIN(list[i].len - len, -end % line);
    if (room) {
        mkey_write(hca, list[i].lkey, pdn, end, zeros, room, MEM_LOCAL_WRITE);
    }
}
