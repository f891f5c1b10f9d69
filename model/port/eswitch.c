/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves frames between the vports of a card, and between them and the cable. */
#include "model/port/eswitch.h"
#include "model/core/hca.h"
#include "model/port/pause.h"
#include "model/port/port.h"
#include "wire/port.h"

/* Whether the vport has a function that takes frames. */
static bool eswitch_is_served(const struct vport *vport)
{
    return vport->hca && !vport->hca->off;
}

/* -- from a vport ------------------------------------------------------------------------------
 */

struct vport *eswitch_find(const struct vport *from, const uint8_t dmac[6])
{
    struct vport_set owners;
    struct vport *to;

    if (mac_is_group(dmac)) {
        return NULL;
    }
    owners = eswitch_owners(from->sw, dmac);
    while ((to = eswitch_next(from->sw, &owners)) && (to == from || !to->hca)) {
    }
    return to;
}

bool eswitch_copy(struct vport *to, const uint8_t *frame, size_t len, unsigned flags,
                  uint32_t from_td)
{
    uint8_t *copy = wire_tx_reserve(to->queue[0], len);

    if (!copy) {
        return false;
    }
    memcpy(copy, frame, len);
    to->queue_td[to->queued++ % VPORT_QUEUE] = from_td;
    wire_tx_commit_as(to->queue[0], len, flags);
    return true;
}

void eswitch_copy_group(const struct vport *from, const uint8_t *frame, size_t len, unsigned flags)
{
    struct vport_set takers = eswitch_takers(from->sw, frame);
    struct vport *to;

    while ((to = eswitch_next(from->sw, &takers))) {
        if (to != from && eswitch_is_served(to)) {
            hca_spend(from->hca, 1);
            to->counters.rx_discards += !eswitch_copy(to, frame, len, flags, PORT_NO_TD);
        }
    }
}

void eswitch_tx_ready(struct eswitch *sw)
{
    for (unsigned i = 0; i < sw->num_vports; i++) {
        if (sw->vports[i]->hca) {
            hca_tx_ready(sw->vports[i]->hca);
        }
    }
}

/* -- from the cable ----------------------------------------------------------------------------
 */

/* Delivers a frame of the cable to a vport. The reader's function receives it at once, because it
 * is in its turn. Other functions receive it from their queues in later turns. */
static void eswitch_bring(struct vport *to, const uint8_t *frame, size_t len, unsigned flags)
{
    if (to == to->sw->reader) {
        vport_rx(to, frame, len, flags, PORT_NO_TD);
    } else {
        hca_spend(to->sw->reader->hca, 1);
        to->counters.rx_discards += !eswitch_copy(to, frame, len, flags, PORT_NO_TD);
    }
}

/* Delivers a frame to the vports of a set. False: none of them has a function that takes frames. */
static bool eswitch_bring_to(struct eswitch *sw, struct vport_set set, const uint8_t *frame,
                             size_t len, unsigned flags)
{
    bool brought = false;
    struct vport *to;

    while ((to = eswitch_next(sw, &set))) {
        if (eswitch_is_served(to)) {
            eswitch_bring(to, frame, len, flags);
            brought = true;
        }
    }
    return brought;
}

static void eswitch_distribute(struct eswitch *sw, const uint8_t *frame, size_t len, unsigned flags)
{
    if (!eswitch_bring_to(sw, eswitch_takers(sw, frame), frame, len, flags)) {
        eswitch_bring_to(sw, sw->everyone, frame, len, flags);
    }
}

static void eswitch_cable_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct eswitch *sw = opaque;

    if (!uplink_takes(&sw->uplink)) {
        return;
    }
    if (len < 14) {
        hca_spend(sw->reader->hca, 1);
        sw->uplink.counters.rx_truncated++;
        return;
    }
    uplink_count_rx(&sw->uplink, frame, len);
    if (G_UNLIKELY(pause_is_control(frame))) {
        pause_rx(sw, frame, len);
        return;
    }
    if (G_LIKELY(sw->num_functions == 1)) {
        vport_rx(sw->reader, frame, len, flags, PORT_NO_TD);
    } else {
        eswitch_distribute(sw, frame, len, flags);
    }
}

static void eswitch_cable_has_credit(void *opaque)
{
    struct eswitch *sw = opaque;
    uint64_t classes = wire_tx_credits(sw->uplink.wire);

    for (unsigned i = 0; i < sw->num_vports; i++) {
        if (sw->vports[i]->hca) {
            hca_credits_back(sw->vports[i]->hca, classes);
        }
    }
}

static void eswitch_look_at_cable(struct eswitch *sw)
{
    if (sw->reader) {
        vport_set_pending(sw->reader, VPORT_PENDING_CABLE, sw->uplink.wire);
    }
    if (sw->reader && sw->uplink.wire) {
        hca_wake(sw->reader->hca);
    }
}

static void eswitch_cable_has_frames(void *opaque)
{
    eswitch_look_at_cable(opaque);
}

bool eswitch_may_read(struct eswitch *sw, unsigned frames)
{
    for (unsigned i = 0; i < sw->num_vports; i++) {
        const struct vport *to = sw->vports[i];

        if (to != sw->reader && eswitch_is_served(to) &&
            VPORT_QUEUE - (to->queued - to->taken) < frames) {
            sw->cable_waits = true;
            return false;
        }
    }
    return true;
}

void eswitch_queue_taken(struct eswitch *sw)
{
    if (sw->cable_waits) {
        sw->cable_waits = false;
        eswitch_look_at_cable(sw);
    }
}

/* -- the link ----------------------------------------------------------------------------------
 */

void eswitch_link_changed(struct eswitch *sw)
{
    bool up = uplink_look(&sw->uplink);

    if (!up) {
        pause_link_down(sw);
    }
    for (unsigned i = 0; i < sw->num_vports; i++) {
        struct vport *vport = sw->vports[i];

        vport->link_lost |= !up;
        if (vport->hca) {
            vport_set_pending(vport, VPORT_PENDING_LINK, true);
            hca_wake(vport->hca);
        }
    }
}

/* The wire may call this at any time, so the events wait for the next turns. */
static void eswitch_cable_link_change(void *opaque)
{
    eswitch_link_changed(opaque);
}

static const struct wire_client cable_client = {
    .rx = eswitch_cable_rx,
    .tx_ready = eswitch_cable_has_credit,
    .link_change = eswitch_cable_link_change,
    .rx_ready = eswitch_cable_has_frames,
};

void eswitch_set_wire(struct eswitch *sw, struct wire_port *wire)
{
    if (sw->uplink.wire) {
        wire_set_client(sw->uplink.wire, NULL, NULL);
        wire_owe(sw->uplink.wire, false); /* its peers get no more answers from this card */
    }
    sw->uplink.wire = wire;
    if (wire) {
        wire_set_client(wire, &cable_client, sw);
        wire_owe(wire, sw->uplink.owing.owing > 0);
    }
    eswitch_look_at_cable(sw);
}

/* -- vports and functions ----------------------------------------------------------------------
 */

void eswitch_init(struct eswitch *sw)
{
    eswitch_macs_init(sw);
    sw->uplink.number = 1;
    uplink_reset(&sw->uplink);
}

void eswitch_clear(struct eswitch *sw)
{
    g_assert(!sw->num_functions);
    eswitch_set_wire(sw, NULL);
    for (unsigned i = 0; i < sw->num_vports; i++) {
        vport_free(sw->vports[i]);
    }
    sw->num_vports = 0;
    g_clear_pointer(&sw->uplink.cleared, g_free);
    eswitch_macs_clear(sw);
}

struct vport *eswitch_find_vport(const struct eswitch *sw, unsigned number)
{
    for (unsigned i = 0; i < sw->num_vports; i++) {
        if (sw->vports[i]->number == number) {
            return sw->vports[i];
        }
    }
    return NULL;
}

struct vport *eswitch_vport(struct eswitch *sw, unsigned number, const uint8_t mac[6])
{
    struct vport *vport = eswitch_find_vport(sw, number);

    if (vport) {
        return vport;
    }
    g_assert(sw->num_vports < ESWITCH_MAX_VPORTS);
    sw->everyone.bits[sw->num_vports / 64] |= 1ull << sw->num_vports % 64;
    sw->vports[sw->num_vports] = vport_new(sw, number, mac);
    if (sw->num_vports == 0) {
        sw->system_image_guid = sw->vports[0]->node_guid;
    }
    return sw->vports[sw->num_vports++];
}

void eswitch_paths_changed(struct eswitch *sw)
{
    for (unsigned i = 0; i < sw->num_vports; i++) {
        sw->vports[i]->gid_version++;
    }
}

/* The reader is the first vport that has a function. */
static void eswitch_choose_reader(struct eswitch *sw)
{
    if (sw->reader) {
        vport_set_pending(sw->reader, VPORT_PENDING_CABLE, false);
    }
    sw->reader = NULL;
    for (unsigned i = 0; i < sw->num_vports && !sw->reader; i++) {
        sw->reader = sw->vports[i]->hca ? sw->vports[i] : NULL;
    }
    eswitch_look_at_cable(sw);
}

void eswitch_attach(struct vport *vport, struct hca *hca)
{
    g_assert(!vport->hca);
    vport_release(vport);
    vport->hca = hca;
    vport->pending = 0;
    vport->link_lost = false;
    vport->was_up = uplink_is_up(vport->uplink);
    vport->sw->num_functions++;
    if (!vport->sw->reader) {
        eswitch_choose_reader(vport->sw);
    }
}

void eswitch_detach(struct vport *vport)
{
    vport->hca = NULL;
    vport->sw->num_functions--;
    eswitch_choose_reader(vport->sw);
    vport_release(vport);
}
