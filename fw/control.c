/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of a function's commands, and the commands about its state and its cable. */
#include "fw/control.h"

#include <arpa/inet.h>
#include <unistd.h>
#include "fw/fw_internal.h"

#define QPS_USUAL 256
#define QPS_MOST  8192 /* QPs of one answer: about half of CONTROL_ANSWER_MAX */

bool fw_control_begin(const struct fw_control *c, GError **err)
{
    if (!c->begin || c->begin(c->opaque)) {
        return true;
    }
    g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND, "%s was removed", c->device);
    return false;
}

void fw_control_end(const struct fw_control *c)
{
    if (c->end) {
        c->end(c->opaque);
    }
}

/* A GID as an IP address. */
static json_t *fw_control_address_text(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];

    if (memcmp(gid, mapped, sizeof(mapped)) == 0) {
        inet_ntop(AF_INET, gid + sizeof(mapped), text, sizeof(text));
    } else {
        inet_ntop(AF_INET6, gid, text, sizeof(text));
    }
    return json_string(text);
}

/* Whether an entry before this one has the same GID: for another version of RoCE or another VLAN.
 */
static bool fw_control_has_said(const struct vport *vport, unsigned at)
{
    for (unsigned i = 0; i < at; i++) {
        if (vport->gids[i].valid && memcmp(vport->gids[i].gid, vport->gids[at].gid, 16) == 0) {
            return true;
        }
    }
    return false;
}

static json_t *fw_control_addresses(const struct vport *vport)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < PORT_MAX_GIDS; i++) {
        if (vport->gids[i].valid && !fw_control_has_said(vport, i)) {
            json_array_append_new(list, fw_control_address_text(vport->gids[i].gid));
        }
    }
    return list;
}

static bool fw_control_query_status(void *opaque, const json_t *arguments, json_t **result,
                                    GError **err)
{
    const struct fw_control *c = opaque;
    const struct vport *vport;
    char mac[18];

    if (!fw_control_begin(c, err)) {
        return false;
    }
    vport = c->fw->hca.vport;
    g_snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", vport->mac[0], vport->mac[1],
               vport->mac[2], vport->mac[3], vport->mac[4], vport->mac[5]);
    *result =
        json_pack("{ss ss ss si ss ss? ss so ss sb si}", "kind", "host", "device", c->device,
                  "program", c->program, "pid", (int)getpid(), "profile", c->fw->profile->name,
                  "wire", c->wire, "mac", mac, "addresses", fw_control_addresses(vport), "link",
                  uplink_is_up(vport->uplink) ? "up" : "down", "cut", vport->uplink->is_cut, "mtu",
                  (int)vport->uplink->mtu);
    fw_control_end(c);
    return true;
}

static bool fw_control_query_stats(void *opaque, const json_t *arguments, json_t **result,
                                   GError **err)
{
    const struct fw_control *c = opaque;

    if (!fw_control_begin(c, err)) {
        return false;
    }
    *result = fw_control_stats(c->fw);
    fw_control_end(c);
    return true;
}

static const struct control_arg qps_args[] = {
    {.name = "from",
     .type = CONTROL_INT,
     .most = 0xffffff,
     .help = "the least number of a QP (default: 0)"},
    {.name = "count",
     .type = CONTROL_INT,
     .least = 1,
     .most = QPS_MOST,
     .help = "how many QPs at most (default: 256)"},
    {.name = NULL},
};

static bool fw_control_query_qps(void *opaque, const json_t *arguments, json_t **result,
                                 GError **err)
{
    const struct fw_control *c = opaque;
    const json_t *from = json_object_get(arguments, "from");
    const json_t *count = json_object_get(arguments, "count");

    if (!fw_control_begin(c, err)) {
        return false;
    }
    *result = fw_control_qps(c->fw, (uint32_t)json_integer_value(from),
                             count ? (unsigned)json_integer_value(count) : QPS_USUAL);
    fw_control_end(c);
    return true;
}

static const struct control_arg link_args[] = {
    {.name = "up",
     .type = CONTROL_BOOL,
     .required = true,
     .help = "false: cuts the cable; true: mends it"},
    {.name = NULL},
};

static bool fw_control_set_link(void *opaque, const json_t *arguments, json_t **result,
                                GError **err)
{
    const struct fw_control *c = opaque;
    bool did;

    if (!fw_control_begin(c, err)) {
        return false;
    }
    did = fw_cut_cable(c->fw, !json_is_true(json_object_get(arguments, "up")));
    fw_control_end(c);
    if (!did) {
        g_set_error_literal(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                            "the device is busy: try again");
    }
    return did;
}

static const struct control_arg fault_add_args[] = {
    {.name = "rules",
     .type = CONTROL_TEXT,
     .required = true,
     .help = "rules with ; between them, as those of --fault"},
    {.name = NULL},
};

static const struct control_arg fault_remove_args[] = {
    {.name = "number",
     .type = CONTROL_INT,
     .least = 1,
     .most = UINT32_MAX,
     .help = "the number in fault-list (default: all)"},
    {.name = NULL},
};

const struct control_command fw_control_commands[] = {
    {"query-status", "tells what the device is, its addresses and its link", NULL,
     fw_control_query_status},
    {"query-stats", "tells the counters of port and transports, and the objects by number", NULL,
     fw_control_query_stats},
    {"query-qps", "lists the QPs: type, state, peer, queue depths, PSNs, retries", qps_args,
     fw_control_query_qps},
    {"fault-add", "adds faults of frames and of the device", fault_add_args, fw_control_fault_add},
    {"fault-list", "lists the faults, with how often each matched and was caused", NULL,
     fw_control_fault_list},
    {"fault-remove", "removes a fault, or all", fault_remove_args, fw_control_fault_remove},
    {"set-link", "cuts the cable of the device, or mends it", link_args, fw_control_set_link},
    {.name = NULL},
};
