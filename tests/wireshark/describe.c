/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads frames from standard input, a line of hexadecimal digits each, and prints of each how the
 * device itself describes its packet in a trace (wire/packet/describe.h), or an empty line: it is
 * no RoCE packet that the device accepts.
 */
#include "wire/encap/roce.h"
#include "wire/packet/describe.h"
#include "wire/port.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

static size_t describe_read_frame(const char *digits, uint8_t frame[static WIRE_FRAME_MAX])
{
    size_t len = 0;

    while (len < WIRE_FRAME_MAX && g_ascii_isxdigit(digits[2 * len]) &&
           g_ascii_isxdigit(digits[2 * len + 1])) {
        frame[len] = (uint8_t)(g_ascii_xdigit_value(digits[2 * len]) << 4 |
                               g_ascii_xdigit_value(digits[2 * len + 1]));
        len++;
    }
    return len;
}

int main(void)
{
    static char digits[2 * WIRE_FRAME_MAX + 2];
    static uint8_t frame[WIRE_FRAME_MAX];
    struct roce_packet pkt;

    while (fgets(digits, sizeof(digits), stdin)) {
        g_autoptr(GString) line = g_string_new(NULL);
        size_t len = describe_read_frame(digits, frame);

        if (roce_parse(frame, len, &pkt) == ROCE_OK) {
            transport_describe(line, &pkt.transport);
        }
        puts(line->str);
    }
    return 0;
}
