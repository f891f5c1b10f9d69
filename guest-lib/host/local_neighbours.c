/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbours of a local HCA's host. Their frames are read by a tap between the cable and the
 * card; the card gets these frames, too.
 */
#include <string.h>
#include "guest-lib/host/local_internal.h"
#include "wire/cancel.h"

static void local_tap_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct local_hca *hca = opaque;

    if (neigh_is_one(frame, len)) {
        neighbours_rx(hca->neighbours, local_now_ns(hca), frame, len);
    }
    hca->card->rx(hca->card_opaque, frame, len, flags);
}

static void local_tap_tx_ready(void *opaque)
{
    const struct local_hca *hca = opaque;

    hca->card->tx_ready(hca->card_opaque);
}

static void local_tap_link_change(void *opaque)
{
    const struct local_hca *hca = opaque;

    hca->card->link_change(hca->card_opaque);
}

static void local_tap_rx_ready(void *opaque)
{
    const struct local_hca *hca = opaque;

    hca->card->rx_ready(hca->card_opaque);
}

static void local_tap_host_ended(void *opaque)
{
    const struct local_hca *hca = opaque;

    if (hca->ended) {
        hca->ended(hca->ended_opaque);
    }
}

static const struct wire_client local_tap = {
    .rx = local_tap_rx,
    .tx_ready = local_tap_tx_ready,
    .link_change = local_tap_link_change,
    .rx_ready = local_tap_rx_ready,
    .host_ended = local_tap_host_ended,
};

static void local_send(void *opaque, const uint8_t *frame, size_t len)
{
    struct local_hca *hca = opaque;
    uint8_t *room = wire_tx_reserve_to(hca->port, frame, len);

    if (room) {
        memcpy(room, frame, len);
        wire_tx_commit(hca->port, len);
    }
}

static void local_answered(void *opaque)
{
    struct local_hca *hca = opaque;

    if (hca->answered) {
        hca->answered(hca->answered_opaque);
    }
}

static const struct neighbours_ops neighbours_ops = {local_send, local_answered};

void local_meet_neighbours(struct local_hca *hca, const struct local_config *config)
{
    hca->neighbours = neighbours_new(&neighbours_ops, hca, config->fw.mac);
    for (unsigned i = 0; i < config->num_gids; i++) {
        neighbours_add_own(hca->neighbours, config->gids[i]);
    }
    /* Without this announcement, the wire would never learn the address of a host that only
     * receives. The wire floods frames to unknown addresses, and does not wait for room for flooded
     * frames. */
    neighbours_announce(hca->neighbours);
    hca->card = hca->port->client;
    hca->card_opaque = hca->port->opaque;
    wire_set_client(hca->port, &local_tap, hca);
}

void local_leave_neighbours(struct local_hca *hca)
{
    neighbours_free(hca->neighbours);
}

bool local_find_neighbour(struct local_hca *hca, const uint8_t gid[16], const uint8_t *derived,
                          uint8_t mac[6])
{
    bool found;

    pthread_mutex_lock(&hca->lock);
    if (!hca->port) {
        found = false; /* the wire is not asked any more */
    } else if (derived && !neighbours_knows(hca->neighbours, gid) &&
               wire_knows(hca->port, derived)) {
        memcpy(mac, derived, MAC_BYTES);
        found = true;
    } else {
        found = neighbours_find(hca->neighbours, local_now_ns(hca), gid, mac);
    }
    pthread_mutex_unlock(&hca->lock);
    return found;
}

void local_on_neighbour(struct local_hca *hca, void (*answered)(void *opaque), void *opaque)
{
    pthread_mutex_lock(&hca->lock);
    hca->answered = answered;
    hca->answered_opaque = opaque;
    pthread_mutex_unlock(&hca->lock);
}

bool local_on_host_end(struct local_hca *hca, void (*ended)(void *opaque), void *opaque)
{
    int state = cancel_disable();
    bool told = true;

    pthread_mutex_lock(&hca->lock);
    hca->ended = ended;
    hca->ended_opaque = opaque;
    if (ended && hca->port) {
        told = wire_watch_hosts(hca->port);
    }
    pthread_mutex_unlock(&hca->lock);
    cancel_restore(state);
    return told;
}

bool local_knows(struct local_hca *hca, const uint8_t mac[6])
{
    bool knows;

    pthread_mutex_lock(&hca->lock);
    knows = hca->port && wire_knows(hca->port, mac);
    pthread_mutex_unlock(&hca->lock);
    return knows;
}

bool local_tells_hosts(struct local_hca *hca)
{
    bool tells;

    pthread_mutex_lock(&hca->lock);
    tells = hca->port && wire_tells_hosts(hca->port);
    pthread_mutex_unlock(&hca->lock);
    return tells;
}

uint64_t local_host_at(struct local_hca *hca, const uint8_t mac[6])
{
    uint64_t host;

    pthread_mutex_lock(&hca->lock);
    host = hca->port ? wire_host_at(hca->port, mac) : 0;
    pthread_mutex_unlock(&hca->lock);
    return host;
}

bool local_has_ended(struct local_hca *hca, uint64_t host)
{
    bool ended;

    pthread_mutex_lock(&hca->lock);
    ended = hca->port && wire_has_ended(hca->port, host);
    pthread_mutex_unlock(&hca->lock);
    return ended;
}
