/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: datagrams of communication management as a peer may send them, to two identifiers with
 * requests of their own and one listener. The manager must keep nothing beyond its bounds.
 *
 * An input is a list of: a byte that selects the message, a byte of flags, and six pairs of an
 * offset in it and the byte that is written there. Flags: 1, 2: the names are those of the first or
 * second identifier; 4: those of the last requested identifier; 8: time advances; 32: the peer's
 * host ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/cm_host.h"

#define STEP    14
#define SERVICE 0x1060000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cm_id *asked; /* the last requested identifier that still exists */
static uint64_t last_sent;

static void fuzz_send(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    last_sent += mad[17]; /* reads all of it */
}

static const struct cm_ops ops = CM_HOST(fuzz_send);

/* Reads everything of an event, and does what a consumer may do. */
static int fuzz_event(struct cm_id *id, const struct cm_event *event)
{
    static const struct cm_params params = {.qpn = 0x222};

    for (unsigned i = 0; i < event->private_len; i++) {
        last_sent += event->private_data[i];
    }
    switch (event->type) {
    case CM_EVENT_REQ:
        if (event->private_data[0] & 1) {
            return EINVAL;
        }
        asked = event->id;
        return event->private_data[0] & 2 ? cm_delay_answer(event->id, 24)
                                          : cm_send_rep(event->id, &params, "x", 1);
    case CM_EVENT_SIDR_REQ:
        return cm_send_sidr_rep(event->id, 0, 1, 2, "y", 1);
    case CM_EVENT_REP:
        return event->private_data[0] & 1 ? cm_delay_answer(id, 3) : cm_send_rtu(id);
    case CM_EVENT_DREQ:
        return cm_send_drep(id);
    default:
        return 0;
    }
}

static void fuzz_name(uint8_t *mad, const struct cm_id *id)
{
    PRM_SET(cm_rtu, (void *)mad, remote_comm_id, id->local_id);
    PRM_SET(cm_rtu, (void *)mad, local_comm_id, id->remote_id ? id->remote_id : 0x99);
    PRM_SET(cm_dreq, (void *)mad, remote_qpn, id->local_qpn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cm *cm = cm_new(&ops, NULL);
    struct cm_id *ids[3];
    struct cm_req_param req = {.service_id = SERVICE, .cm_timeout = 20, .max_cm_retries = 15};
    struct cm_av from = {.dgid = {[15] = 1}};

    now_ns = SECOND;
    asked = NULL;
    for (unsigned i = 0; i < 3; i++) {
        ids[i] = cm_create_id(cm, fuzz_event, NULL);
    }
    req.params.qpn = 0x111;
    cm_send_req(ids[0], &req);
    req.params.qpn = 0x112;
    cm_send_req(ids[1], &req);
    cm_listen(ids[2], SERVICE);
    for (; size >= STEP; data += STEP, size -= STEP) {
        uint8_t mad[CM_MAD_LEN] = {1, 7, 2, 3};

        mad[17] = PRM_CM_ATTR_REQ + data[0] % 12;
        if (data[0] % 12 == 0 || data[0] % 12 == 7) {
            PRM_SET(cm_req, (void *)mad, service_id, SERVICE);
        }
        if (data[1] & 3) {
            fuzz_name(mad, ids[data[1] & 1]);
        } else if (data[1] & 4 && asked) {
            fuzz_name(mad, asked);
        }
        for (unsigned i = 2; i < STEP; i += 2) {
            mad[data[i]] ^= data[i + 1];
        }
        asked = data[1] & 8 ? NULL : asked; /* time may end it, so it is not used any more */
        now_ns += data[1] & 8 ? 5 * SECOND : 0;
        cm_run(cm);
        cm_recv(cm, &from, mad, data[1] & 16 ? data[2] : sizeof(mad));
        all_ended = data[1] & 32;
        cm_hosts_ended(cm);
    }
    for (unsigned i = 0; i < 3; i++) {
        cm_destroy_id(ids[i]);
    }
    cm_free(cm);
    return 0;
}
