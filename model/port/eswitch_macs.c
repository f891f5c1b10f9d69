/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the vports of a card that take a MAC. A hash table has their current MACs and all MACs of
 * their lists and of their functions' groups, so each frame needs one lookup, however many vports
 * there are. A vport calls this file when the MACs that it takes change. Groups pay the ledger for
 * their entries. The other entries are not charged: a vport's lists bound their number.
 */
#include "model/port/address_hash.h"
#include "model/port/eswitch.h"
#include "model/port/port.h"

/* The vports that name a MAC: at least one. */
struct mac_takers {
    uint8_t mac[6]; /* first: it is the key of the hash table */
    struct vport_set vports;
};

static guint eswitch_macs_takers_hash(gconstpointer key)
{
    return mac_hash(key);
}

static gboolean eswitch_macs_takers_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, 6) == 0;
}

void eswitch_macs_init(struct eswitch *sw)
{
    sw->macs =
        g_hash_table_new_full(eswitch_macs_takers_hash, eswitch_macs_takers_equal, g_free, NULL);
}

void eswitch_macs_clear(struct eswitch *sw)
{
    g_clear_pointer(&sw->macs, g_hash_table_destroy);
}

static void eswitch_macs_set_put(struct vport_set *set, const struct vport *vport, bool value)
{
    uint64_t *word = &set->bits[vport->place / 64], bit = 1ull << vport->place % 64;

    *word = value ? *word | bit : *word & ~bit;
}

static bool eswitch_macs_set_is_empty(const struct vport_set *set)
{
    static const struct vport_set empty;

    return memcmp(set, &empty, sizeof(empty)) == 0;
}

struct vport *eswitch_next(const struct eswitch *sw, struct vport_set *set)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(set->bits); i++) {
        uint64_t word = set->bits[i];

        if (word) {
            set->bits[i] = word & (word - 1);
            return sw->vports[i * 64 + (unsigned)__builtin_ctzll(word)];
        }
    }
    return NULL;
}

struct vport_set eswitch_owners(const struct eswitch *sw, const uint8_t mac[6])
{
    const struct mac_takers *takers = g_hash_table_lookup(sw->macs, mac);

    return takers ? takers->vports : (struct vport_set){0};
}

struct vport_set eswitch_takers(const struct eswitch *sw, const uint8_t mac[6])
{
    const struct vport_set *promiscuous = &sw->promiscuous[mac_is_group(mac)];
    struct vport_set set;

    if (mac_is_broadcast(mac)) {
        return sw->everyone;
    }
    set = eswitch_owners(sw, mac);
    for (unsigned i = 0; i < G_N_ELEMENTS(set.bits); i++) {
        set.bits[i] |= promiscuous->bits[i];
    }
    return set;
}

/* -- changes ----------------------------------------------------------------------------------- */

static bool vport_names_mac(const struct vport *vport, const uint8_t mac[6])
{
    if (mac_is_group(mac)) {
        return mac_list_has(&vport->mc, mac) ||
               (vport->hca && port_receivers.wants_mac(vport->hca, mac));
    }
    return vport_has_mac(vport, mac);
}

void eswitch_mac_changed(const struct vport *vport, const uint8_t mac[6])
{
    struct mac_takers *takers = g_hash_table_lookup(vport->sw->macs, mac);
    bool names = vport_names_mac(vport, mac);

    if (!takers && !names) {
        return;
    }
    if (!takers) {
        takers = g_new0(struct mac_takers, 1);
        memcpy(takers->mac, mac, 6);
        g_hash_table_add(vport->sw->macs, takers);
    }
    eswitch_macs_set_put(&takers->vports, vport, names);
    if (eswitch_macs_set_is_empty(&takers->vports)) {
        g_hash_table_remove(vport->sw->macs, mac);
    }
}

void eswitch_promisc_changed(const struct vport *vport)
{
    struct eswitch *sw = vport->sw;

    eswitch_macs_set_put(&sw->promiscuous[false], vport, vport->promisc_uc || vport->promisc_all);
    eswitch_macs_set_put(&sw->promiscuous[true], vport, vport->promisc_mc || vport->promisc_all);
}
