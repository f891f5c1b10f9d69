/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a program's lists of header changes and its tunnel headers, on a peer's frames. What
 * is changed must stay inside the frame and the room before it; a right checksum must stay right;
 * and what was inserted can be removed again.
 *
 * An input is: the number of actions and the actions (8 bytes each); the number of header bytes and
 * the headers; a byte of flags; and the frame. Flags: 1: the checksums are right; 2: the tunnel
 * carries the Ethernet header, too; 4: there is room for the headers; 8: tags are pushed and
 * popped.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "model/steering/reformat.h"
#include "model/steering/rewrite.h"
#include "tests/fuzz/take.h"
#include "wire/encap/eth.h"

#define LIST 20 /* more than a list may have */
#define ROOM 140

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct change_input {
    struct prm_set_action_in list[LIST];
    unsigned n;
    uint8_t headers[REFORMAT_MAX];
    size_t num_headers;
    uint8_t flags;
};

static void take_bytes(void *to, size_t n, const uint8_t **data, size_t *size)
{
    for (uint8_t *p = to; n > 0; n--) {
        *p++ = take_u8_from(data, size);
    }
}

static void take_input(struct change_input *in, const uint8_t **data, size_t *size)
{
    in->n = take_u8_from(data, size) % (LIST + 1);
    take_bytes(in->list, in->n * sizeof(in->list[0]), data, size);
    in->num_headers = take_u8_from(data, size) % (REFORMAT_MAX + 1);
    take_bytes(in->headers, in->num_headers, data, size);
    in->flags = take_u8_from(data, size);
}

static void fuzz_must(bool is)
{
    if (!is) {
        abort();
    }
}

/* Runs the list, if it is one. */
static void fuzz_rewrite(const struct change_input *in, struct steer_packet *packet)
{
    struct rewrite_action actions[REWRITE_MAX];
    struct flow_regs regs = {.a = 1, .c = {2, 3, 4, 5, 6, 7, 8, 9}};
    struct eth_info before, after;
    bool l3_ok, l4_ok;
    unsigned n = MIN(in->n, REWRITE_MAX);

    if (rewrite_read(in->list, n, actions) != SYN_OK ||
        !eth_parse(packet->bytes, packet->len, &before)) {
        return;
    }
    if (in->flags & 1) {
        eth_csum_fill_ipv4(packet->bytes, &before);
        eth_csum_fill_l4(packet->bytes, &before);
    }
    l3_ok = eth_csum_ipv4_ok(packet->bytes, &before);
    l4_ok = before.l4 != ETH_L4_NONE && eth_csum_l4_ok(packet->bytes, &before);
    rewrite_run(actions, n, packet, &regs);
    fuzz_must(eth_parse(packet->bytes, packet->len, &after));
    if (after.ethertype == before.ethertype) {
        fuzz_must(!l3_ok || eth_csum_ipv4_ok(packet->bytes, &after));
        fuzz_must(!l4_ok || eth_csum_l4_ok(packet->bytes, &after));
    }
}

static void fuzz_tunnel(const struct change_input *in, struct steer_packet *packet)
{
    g_autofree uint8_t *frame = g_memdup2(packet->bytes, packet->len);
    size_t len = packet->len, room = packet->headroom;
    struct eth_info info;
    uint16_t ip_id = 7;
    bool keep_l2 = in->flags & 2;

    if (!reformat_encap(packet, in->headers, in->num_headers, keep_l2, &ip_id)) {
        fuzz_must(packet->len == len && packet->headroom == room);
        fuzz_must(len == 0 || memcmp(packet->bytes, frame, len) == 0);
        return;
    }
    if (keep_l2) {
        fuzz_must(packet->len == len + in->num_headers);
        if (reformat_decap_l2(packet, in->num_headers)) {
            fuzz_must(packet->len == len && memcmp(packet->bytes, frame, len) == 0);
        }
    } else if (eth_parse(frame, len, &info) && packet->len > in->num_headers) {
        fuzz_must(reformat_decap_l3(packet, in->num_headers, frame, info.l3_off));
        fuzz_must(packet->len == len && memcmp(packet->bytes, frame, len) == 0);
    }
}

static void fuzz_tags(struct steer_packet *packet)
{
    size_t len = packet->len;

    if (reformat_push_vlan(packet, ETH_TYPE_VLAN, 5)) {
        fuzz_must(packet->len == len + 4);
        reformat_pop_vlan(packet);
        fuzz_must(packet->len == len);
    }
    reformat_pop_vlan(packet);
    reformat_pop_vlan(packet);
    reformat_pop_vlan(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct change_input in;
    size_t room;
    g_autofree uint8_t *block = NULL;
    struct steer_packet packet;

    take_input(&in, &data, &size);
    size = MIN(size, WIRE_FRAME_MAX);
    room = in.flags & 4 ? ROOM : 6;
    block = g_malloc(room + size); /* exactly, so that an access beyond it is found */
    memcpy(block + room, data, size);
    packet = (struct steer_packet){.bytes = block + room, .len = size, .headroom = room};
    fuzz_rewrite(&in, &packet);
    fuzz_tunnel(&in, &packet);
    if (in.flags & 8) {
        fuzz_tags(&packet);
    }
    fuzz_must(packet.bytes == block + packet.headroom);
    return 0;
}
