/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering rules of experimental verbs: each becomes a rule of ibv_create_flow(). Most
 * specifications have the same layout there.
 */
#include <string.h>
#include "guest-lib/verbs/exp/exp.h"

struct exp_flow {
    struct ibv_exp_flow ibv;
    struct ibv_flow *verbs;
};

#define SAME(exp, verbs)                                                                           \
    G_STATIC_ASSERT(sizeof(struct ibv_exp_flow_spec_##exp) == sizeof(struct ibv_flow_spec_##verbs))
SAME(eth, eth);
SAME(ipv4, ipv4);
SAME(ipv4_ext, ipv4_ext);
SAME(ipv6_ext, ipv6);
SAME(tcp_udp, tcp_udp);
SAME(tunnel, tunnel);
SAME(action_tag, action_tag);
SAME(action_drop, action_drop);

/* The size of a specification, by its type without the bit for inner headers. 0: there is none. */
static size_t exp_flow_spec_size(uint32_t type)
{
    switch (type) {
    case IBV_EXP_FLOW_SPEC_ETH:
        return sizeof(struct ibv_exp_flow_spec_eth);
    case IBV_EXP_FLOW_SPEC_IPV4:
        return sizeof(struct ibv_exp_flow_spec_ipv4);
    case IBV_EXP_FLOW_SPEC_IPV4_EXT:
        return sizeof(struct ibv_exp_flow_spec_ipv4_ext);
    case IBV_EXP_FLOW_SPEC_IPV6:
        return sizeof(struct ibv_exp_flow_spec_ipv6);
    case IBV_EXP_FLOW_SPEC_IPV6_EXT:
        return sizeof(struct ibv_exp_flow_spec_ipv6_ext);
    case IBV_EXP_FLOW_SPEC_TCP:
    case IBV_EXP_FLOW_SPEC_UDP:
        return sizeof(struct ibv_exp_flow_spec_tcp_udp);
    case IBV_EXP_FLOW_SPEC_VXLAN_TUNNEL:
        return sizeof(struct ibv_exp_flow_spec_tunnel);
    case IBV_EXP_FLOW_SPEC_ACTION_TAG:
        return sizeof(struct ibv_exp_flow_spec_action_tag);
    case IBV_EXP_FLOW_SPEC_ACTION_DROP:
        return sizeof(struct ibv_exp_flow_spec_action_drop);
    default:
        return 0;
    }
}

/* Verbs have one specification for IPv6, with the fields that only the extended one has here.
 * Returns the size of what it wrote. */
static size_t exp_flow_put_ipv6(uint8_t *to, const struct ibv_exp_flow_spec *spec, uint32_t inner)
{
    struct ibv_flow_spec_ipv6 ipv6 = {.type = IBV_FLOW_SPEC_IPV6, .size = sizeof(ipv6)};

    if ((spec->hdr.type & ~(uint32_t)IBV_EXP_FLOW_SPEC_INNER) == IBV_EXP_FLOW_SPEC_IPV6_EXT) {
        memcpy(&ipv6.val, &spec->ipv6_ext.val, sizeof(ipv6.val));
        memcpy(&ipv6.mask, &spec->ipv6_ext.mask, sizeof(ipv6.mask));
    } else {
        memcpy(ipv6.val.src_ip, spec->ipv6.val.src_ip, 16);
        memcpy(ipv6.val.dst_ip, spec->ipv6.val.dst_ip, 16);
        memcpy(ipv6.mask.src_ip, spec->ipv6.mask.src_ip, 16);
        memcpy(ipv6.mask.dst_ip, spec->ipv6.mask.dst_ip, 16);
    }
    ipv6.type |= inner;
    memcpy(to, &ipv6, sizeof(ipv6));
    return sizeof(ipv6);
}

/* Writes a rule of verbs. NULL: a specification is unknown, has a wrong size, or lies beyond the
 * rule's size. */
static struct ibv_flow_attr *exp_flow_verbs(const struct ibv_exp_flow_attr *flow)
{
    size_t at = sizeof(*flow), to;
    struct ibv_flow_attr *attr =
        g_malloc0(sizeof(*attr) + flow->num_of_specs * sizeof(struct ibv_flow_spec));

    *attr = (struct ibv_flow_attr){
        .type = (enum ibv_flow_attr_type)flow->type,
        .priority = flow->priority,
        .num_of_specs = flow->num_of_specs,
        .port = flow->port,
        .flags = flow->flags,
    };
    to = sizeof(*attr);
    for (unsigned i = 0; i < flow->num_of_specs; i++) {
        const struct ibv_exp_flow_spec *spec = (const void *)((const uint8_t *)flow + at);
        uint32_t inner, type;

        if (at + sizeof(spec->hdr) > flow->size) {
            g_free(attr);
            return NULL;
        }
        inner = spec->hdr.type & IBV_EXP_FLOW_SPEC_INNER;
        type = spec->hdr.type & ~(uint32_t)IBV_EXP_FLOW_SPEC_INNER;
        if (!exp_flow_spec_size(type) || spec->hdr.size != exp_flow_spec_size(type) ||
            at + spec->hdr.size > flow->size) {
            g_free(attr);
            return NULL;
        }
        if (type == IBV_EXP_FLOW_SPEC_IPV6 || type == IBV_EXP_FLOW_SPEC_IPV6_EXT) {
            to += exp_flow_put_ipv6((uint8_t *)attr + to, spec, inner);
        } else {
            memcpy((uint8_t *)attr + to, spec, spec->hdr.size);
            to += spec->hdr.size;
        }
        at += spec->hdr.size;
    }
    attr->size = (uint16_t)to;
    return attr;
}

static struct ibv_exp_flow *exp_create_flow(struct ibv_qp *qp, struct ibv_exp_flow_attr *flow)
{
    g_autofree struct ibv_flow_attr *attr = exp_flow_verbs(flow);
    struct exp_flow *made;

    if (!attr) {
        errno = hv_refuse(hv_hca_of(qp->context), EINVAL,
                          "exp_create_flow: a specification is unknown or has a wrong size");
        return NULL;
    }
    made = calloc(1, sizeof(*made));
    if (!made) {
        return NULL;
    }
    made->verbs = ibv_create_flow(qp, attr);
    if (!made->verbs) {
        free(made);
        return NULL;
    }
    made->ibv.context = qp->context;
    made->ibv.handle = made->verbs->handle;
    return &made->ibv;
}

static int exp_destroy_flow(struct ibv_exp_flow *ibv)
{
    int err = ibv_destroy_flow(((struct exp_flow *)ibv)->verbs);

    if (!err) {
        free(ibv);
    }
    return err;
}

void hv_exp_flow_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_ibv_create_flow = exp_create_flow;
    ops->lib_exp_ibv_create_flow = exp_create_flow;
    ops->drv_exp_ibv_destroy_flow = exp_destroy_flow;
    ops->lib_exp_ibv_destroy_flow = exp_destroy_flow;
}
