/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver's list of MACs, with a hash table of their positions. The cost of a lookup does not
 * depend on the length of the list.
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
    uint8_t slots[MAC_LIST_SLOTS]; /* position in mac[] + 1, by the hash of the MAC; 0: free */
};

/* Replaces the list; n is at most PORT_MAX_MACS. */
void mac_list_set(struct mac_list *list, const uint8_t (*macs)[6], unsigned n);
bool mac_list_find(const struct mac_list *list, const uint8_t mac[6]);

static inline bool mac_list_has(const struct mac_list *list, const uint8_t mac[6])
{
    return list->n && mac_list_find(list, mac);
}

#endif
