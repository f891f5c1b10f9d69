/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the lines of BlueFlame data. */
#include <string.h>
#include "model/core/hca.h"
#include "model/queue/blueflame.h"
#include "model/queue/wq.h"

void blueflame_init(struct hca *hca)
{
    hca->blueflame = g_new0(struct blueflame, 1);
}

void blueflame_clear(struct hca *hca)
{
    g_clear_pointer(&hca->blueflame, g_free);
}

void blueflame_drop(struct wq *wq)
{
    if (wq->bf) {
        wq->bf->owner = NULL;
        wq->bf = NULL;
    }
}

static struct blueflame_line *blueflame_take(struct blueflame *blueflame)
{
    struct blueflame_line *line = &blueflame->lines[blueflame->next++ % BLUEFLAME_LINES];

    if (line->owner) {
        blueflame_drop(line->owner);
    }
    return line;
}

void blueflame_fill(struct hca *hca, struct wq *wq, uint16_t index, const void *data, size_t len)
{
    struct blueflame_line *line;

    if (wq->gate) {
        return;
    }
    line = wq->bf ? wq->bf : blueflame_take(hca->blueflame);
    wq->bf = line;
    line->owner = wq;
    line->index = index;
    line->len = (uint16_t)MIN(len, sizeof(line->bytes));
    memcpy(line->bytes, data, line->len);
}
