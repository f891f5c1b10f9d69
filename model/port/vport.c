/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and frees vports; has their queue and their MAC filter. */
#include "model/port/vport.h"
#include "model/core/hca.h"
#include "model/port/eswitch.h"
#include "model/port/port.h"
#include "wire/pair.h"

bool vport_accepts_mac(const struct vport *vport, const uint8_t dmac[6])
{
    if (vport->promisc_all || mac_is_broadcast(dmac)) {
        return true;
    }
    if (mac_is_group(dmac)) {
        return vport->promisc_mc || mac_list_has(&vport->mc, dmac);
    }
    return vport->promisc_uc || vport_has_mac(vport, dmac);
}

void vport_set_mac(struct vport *vport, const uint8_t mac[6])
{
    uint8_t had[6];

    memcpy(had, vport->mac, 6);
    memcpy(vport->mac, mac, 6);
    vport->gid_version++; /* paths of forced loopback have the MAC */
    eswitch_mac_changed(vport, had);
    eswitch_mac_changed(vport, mac);
}

void vport_set_macs(struct vport *vport, struct mac_list *list, const uint8_t (*macs)[6],
                    unsigned n)
{
    struct mac_list had = *list;

    mac_list_set(list, macs, n);
    for (unsigned i = 0; i < had.n; i++) {
        eswitch_mac_changed(vport, had.mac[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        eswitch_mac_changed(vport, macs[i]);
    }
}

void vport_set_promisc(struct vport *vport, bool uc, bool mc, bool all)
{
    vport->promisc_uc = uc;
    vport->promisc_mc = mc;
    vport->promisc_all = all;
    eswitch_promisc_changed(vport);
}

/* -- the queue ---------------------------------------------------------------------------------
 */

static void vport_queue_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct vport *vport = opaque;

    vport_rx(vport, frame, len, flags, vport->queue_td[vport->taken % VPORT_QUEUE]);
    vport->taken++;
}

/* Any function of the card may wait for credit of this queue. */
static void vport_queue_has_credit(void *opaque)
{
    struct vport *vport = opaque;

    eswitch_tx_ready(vport->sw);
}

static void vport_queue_has_frames(void *opaque)
{
    struct vport *vport = opaque;

    vport_set_pending(vport, VPORT_PENDING_QUEUE, true);
    if (vport->hca) {
        hca_wake(vport->hca);
    }
}

static void vport_queue_link_change(void *opaque)
{
}

static const struct wire_client queue_client = {
    .rx = vport_queue_rx,
    .tx_ready = vport_queue_has_credit,
    .link_change = vport_queue_link_change,
    .rx_ready = vport_queue_has_frames,
};

/* Drops all waiting frames, because they were for a function that is gone. */
static void vport_queue_drain(struct vport *vport)
{
    wire_set_client(vport->queue[1], NULL, NULL);
    while (wire_poll(vport->queue[1], VPORT_QUEUE)) {
    }
    wire_set_client(vport->queue[1], &queue_client, vport);
    vport->taken = vport->queued;
    vport_set_pending(vport, VPORT_PENDING_QUEUE, false);
    eswitch_queue_taken(vport->sw);
}

/* -- life ---------------------------------------------------------------------------------------
 */

/* The MAC with 0300 in its middle: the vendor's adapters derive GUIDs in this way. */
static uint64_t vport_guid_from_mac(const uint8_t mac[6])
{
    return (uint64_t)mac[0] << 56 | (uint64_t)mac[1] << 48 | (uint64_t)mac[2] << 40 |
           0x0300000000ull | (uint64_t)mac[3] << 16 | (uint64_t)mac[4] << 8 | mac[5];
}

struct vport *vport_new(struct eswitch *sw, unsigned number, const uint8_t mac[6])
{
    struct vport *vport = g_new0(struct vport, 1);

    vport->number = number;
    vport->place = sw->num_vports;
    vport->sw = sw;
    vport->uplink = &sw->uplink;
    memcpy(vport->permanent_mac, mac, 6);
    vport->node_guid = vport->port_guid = vport_guid_from_mac(mac);
    wire_pair_new(VPORT_QUEUE, vport->queue);
    vport->queue[0]->offers = WIRE_NO_ICRC;
    wire_set_client(vport->queue[0], &queue_client, vport);
    wire_set_client(vport->queue[1], &queue_client, vport);
    vport->drop = g_malloc(WIRE_FRAME_MAX);
    vport_release(vport);
    return vport;
}

void vport_free(struct vport *vport)
{
    g_assert(!vport->hca);
    wire_set_client(vport->queue[0], NULL, NULL);
    wire_set_client(vport->queue[1], NULL, NULL);
    wire_close(vport->queue[0]);
    wire_close(vport->queue[1]);
    g_free(vport->drop);
    g_free(vport);
}

void vport_release(struct vport *vport)
{
    vport_queue_drain(vport);
    vport_set_mac(vport, vport->permanent_mac);
    vport->mtu = vport->uplink->mtu;
    vport->roce_enabled = false;
    vport->no_loop_uc = vport->no_loop_mc = false;
    vport_set_promisc(vport, false, false, false);
    vport_set_macs(vport, &vport->uc, NULL, 0);
    vport_set_macs(vport, &vport->mc, NULL, 0);
    vport_clear_gids(vport);
    memset(vport->vlans, 0, sizeof(vport->vlans));
}
