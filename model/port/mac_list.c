/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements lists of MACs with an open hash table of positions, which is never more than half
 * full. */
#include <string.h>
#include "model/port/address_hash.h"
#include "model/port/mac_list.h"

void mac_list_set(struct mac_list *list, const uint8_t (*macs)[6], unsigned n)
{
    memset(list, 0, sizeof(*list));
    list->n = n;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = mac_place(macs[i], MAC_LIST_LOG_SLOTS);

        memcpy(list->mac[i], macs[i], 6);
        while (list->slots[at]) {
            at = (at + 1) % MAC_LIST_SLOTS;
        }
        list->slots[at] = (uint8_t)(i + 1);
    }
}

bool mac_list_find(const struct mac_list *list, const uint8_t mac[6])
{
    for (unsigned at = mac_place(mac, MAC_LIST_LOG_SLOTS); list->slots[at];
         at = (at + 1) % MAC_LIST_SLOTS) {
        if (memcmp(list->mac[list->slots[at] - 1], mac, 6) == 0) {
            return true;
        }
    }
    return false;
}
