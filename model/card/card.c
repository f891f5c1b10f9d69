/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and frees cards, and restarts the card of a function that is alone on it. */
#include "model/card/card.h"
#include "model/port/port.h"

struct card *card_new(void)
{
    struct card *card = g_new0(struct card, 1);

    eswitch_init(&card->sw);
    return card;
}

void card_free(struct card *card)
{
    eswitch_clear(&card->sw);
    g_free(card);
}

bool card_has_room(const struct card *card, unsigned number)
{
    const struct vport *vport = eswitch_find_vport(&card->sw, number);

    return vport ? !vport->hca : card->sw.num_vports < ESWITCH_MAX_VPORTS;
}

bool hca_restart_card(struct hca *hca)
{
    struct vport *vport = hca->vport;
    bool alone = vport->sw->num_functions == 1;

    if (alone) {
        uplink_reset(vport->uplink);
        hca->card->real_time = (struct real_time){0};
        vport->counters = vport->cleared = (struct vport_counters){0};
    }
    vport_release(vport);
    vport_set_pending(vport, VPORT_PENDING_LINK, false);
    vport->link_lost = false;
    vport->was_up = port_is_up(hca);
    return alone;
}
