/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of MACs as a driver gives it, and where each stands, so that a frame is looked up at the
 * same cost however long the list is.
 */
#ifndef HCASIM_MODEL_MAC_LIST_H
#define HCASIM_MODEL_MAC_LIST_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define PORT_MAX_MACS      128
#define MAC_LIST_LOG_SLOTS 8
#define MAC_LIST_SLOTS     (1 << MAC_LIST_LOG_SLOTS)
G_STATIC_ASSERT(MAC_LIST_SLOTS >= 2 * PORT_MAX_MACS);

struct mac_list {
    unsigned n;
    uint8_t mac[PORT_MAX_MACS][6];
    uint8_t slots[MAC_LIST_SLOTS]; /* index in mac[] + 1 by a hash of it; 0: free */
};

/* The list is this one from now on; n is at most PORT_MAX_MACS. */
void mac_list_set(struct mac_list *list, const uint8_t (*macs)[6], unsigned n);
bool mac_list_find(const struct mac_list *list, const uint8_t mac[6]);

static inline bool mac_list_has(const struct mac_list *list, const uint8_t mac[6])
{
    return list->n && mac_list_find(list, mac);
}

#endif
