/* SPDX-License-Identifier: BSD-2-Clause */
/* Says whether a frame is one that a rule is about. */
#include "wire/fault/rule.h"
#include "wire/encap/neigh.h"
#include "wire/bytes.h"
#include "wire/encap/roce.h"

#include <string.h>

static bool fault_frame_has_grh(const struct fault_frame *f)
{
    return f->eth.ethertype == ETH_TYPE_ROCE && f->eth.l3_off + GRH_BYTES <= f->len;
}

bool fault_find_packet(const struct fault_frame *f, size_t *at, size_t *end)
{
    if (fault_frame_has_grh(f)) {
        *at = f->eth.l3_off + GRH_BYTES;
        *end = MIN(*at + get16(f->bytes + f->eth.l3_off + 4), f->len);
    } else if (!f->eth.malformed && f->eth.l4 == ETH_L4_UDP && f->eth.dport == ROCE_UDP_DPORT) {
        *at = f->eth.payload_off;
        *end = f->eth.ip_end;
    } else {
        return false;
    }
    return *at + BTH_BYTES + ICRC_BYTES <= *end;
}

static bool fault_frame_read_packet(struct fault_frame *f)
{
    uint8_t head[TRANSPORT_HEADER_MAX] = {0};
    size_t at, end;

    if (!fault_find_packet(f, &at, &end)) {
        return false;
    }
    end -= ICRC_BYTES;
    memcpy(head, f->bytes + at, MIN(end - at, sizeof(head)));
    return transport_parse(head, f->bytes + at, end - at, &f->packet) == TRANSPORT_OK;
}

void fault_frame_read(struct fault_frame *frame, uint8_t *bytes, size_t len, bool inbound)
{
    *frame = (struct fault_frame){.bytes = bytes, .len = len, .inbound = inbound};
    if (!eth_parse(bytes, len, &frame->eth)) {
        return;
    }
    frame->is_neighbour = neigh_is_one(bytes, len);
    frame->is_ip = frame->eth.ip_version != 0;
    frame->is_roce = fault_frame_read_packet(frame);
}

/* -- addresses --------------------------------------------------------------------------------- */

/* Whether the source (or destination) of the IP packet, or of the GRH, is the address. */
static bool fault_match_ip(const struct fault_frame *f, const uint8_t *gid, bool is_source)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *ip = f->bytes + f->eth.l3_off;

    if (!f->is_ip && !fault_frame_has_grh(f)) {
        return false;
    }
    if (f->eth.ip_version == 4) {
        return !memcmp(gid, mapped, sizeof(mapped)) &&
               !memcmp(gid + 12, ip + (is_source ? 12 : 16), 4);
    }
    return !memcmp(gid, ip + (is_source ? 8 : 24), 16);
}

static bool fault_match_address(const struct fault_frame *f, const struct fault_address *address,
                                bool is_source)
{
    return address->is_mac ? !memcmp(f->bytes + (is_source ? 6 : 0), address->bytes, 6)
                           : fault_match_ip(f, address->bytes, is_source);
}

static bool fault_match_ends(const struct fault_rule *rule, const struct fault_frame *f)
{
    if (rule->action->what == FAULT_PART) {
        return !FAULT_HAS(rule, FAULT_ROW_FROM) || fault_match_address(f, &rule->from, true) ||
               fault_match_address(f, &rule->from, false);
    }
    return (!FAULT_HAS(rule, FAULT_ROW_FROM) || fault_match_address(f, &rule->from, true)) &&
           (!FAULT_HAS(rule, FAULT_ROW_TO) || fault_match_address(f, &rule->to, false));
}

/* -- packets ----------------------------------------------------------------------------------- */

/* Whether the PSN is in the range, which may pass the highest PSN. */
static bool fault_match_psn(const struct fault_rule *rule, uint32_t psn)
{
    return ((psn - rule->psn[0]) & 0xffffff) <= ((rule->psn[1] - rule->psn[0]) & 0xffffff);
}

static bool fault_match_packet(const struct fault_rule *rule, const struct fault_frame *f)
{
    const struct transport_packet *pkt = &f->packet;

    if (!rule->names_opcodes && !FAULT_HAS(rule, FAULT_ROW_QP) && !FAULT_HAS(rule, FAULT_ROW_PSN)) {
        return true;
    }
    return f->is_roce &&
           (!rule->names_opcodes || rule->opcodes[pkt->opcode / 8] >> pkt->opcode % 8 & 1) &&
           (rule->aeth_class < 0 || (int)aeth_class(pkt->aeth.syndrome) == rule->aeth_class) &&
           (!FAULT_HAS(rule, FAULT_ROW_QP) || pkt->dest_qp == rule->qp) &&
           (!FAULT_HAS(rule, FAULT_ROW_PSN) || fault_match_psn(rule, pkt->psn));
}

/* Whether the action can be done to the frame at all. */
static bool fault_match_action(const struct fault_rule *rule, const struct fault_frame *f)
{
    switch (rule->action->what) {
    case FAULT_MARK:
        return fault_may_mark(f);
    case FAULT_CORRUPT:
        return !FAULT_HAS(rule, FAULT_ROW_BYTE) || rule->byte < f->len;
    default:
        return true;
    }
}

bool fault_match(const struct fault_rule *rule, const struct fault_frame *f)
{
    return (f->inbound ? rule->in : rule->out) &&
           (!f->is_neighbour || rule->action->what == FAULT_PART) && fault_match_ends(rule, f) &&
           fault_match_packet(rule, f) && fault_match_action(rule, f);
}
