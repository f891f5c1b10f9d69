/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: the address vector in a UD WQE, and the address for an answer to a datagram. The
 * destination's MAC address is found when the handle is created.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/user/user.h"

#define PORTS         1
#define NEXT_HDR_IBA  0x1b /* IBTA 8.3: a GRH is followed by a BTH */
#define IPV4_IN_GRH   20   /* RoCEv2 over IPv4: the IPv4 header is in the last 20 of the 40 bytes */
#define IHL_NO_OPTION 5

/* Static rates in the encoding of a WQE, by enum ibv_rate; 0: no limit. */
static const uint8_t rates[] = {
    [IBV_RATE_2_5_GBPS] = 7,  [IBV_RATE_5_GBPS] = 10,   [IBV_RATE_10_GBPS] = 8,
    [IBV_RATE_14_GBPS] = 11,  [IBV_RATE_20_GBPS] = 11,  [IBV_RATE_25_GBPS] = 9,
    [IBV_RATE_28_GBPS] = 9,   [IBV_RATE_30_GBPS] = 9,   [IBV_RATE_40_GBPS] = 12,
    [IBV_RATE_50_GBPS] = 13,  [IBV_RATE_56_GBPS] = 13,  [IBV_RATE_60_GBPS] = 13,
    [IBV_RATE_80_GBPS] = 14,  [IBV_RATE_100_GBPS] = 15, [IBV_RATE_112_GBPS] = 15,
    [IBV_RATE_120_GBPS] = 15,
};

/* Any UDP source port is allowed, but in a simulation runs must repeat. */
static uint16_t ah_udp_sport(const struct hv_ah *ah, uint32_t flow_label)
{
    flow_label &= IB_GRH_FLOWLABEL_MASK;
    if (flow_label) {
        return ibv_flow_label_to_udp_sport(flow_label);
    }
    if (hv_device(ah->ibv.context->device)->config->world) {
        return IB_ROCE_UDP_ENCAP_VALID_PORT_MIN;
    }
    return (uint16_t)g_random_int_range(IB_ROCE_UDP_ENCAP_VALID_PORT_MIN,
                                        IB_ROCE_UDP_ENCAP_VALID_PORT_MAX + 1);
}

/* Initializes the handle and the address vector from attr: 0 or errno. */
static int ah_init(struct hv_ah *ah, const struct ibv_ah_attr *attr)
{
    struct hv_hca *hca = hv_hca_of(ah->ibv.context);
    struct ibv_gid_entry sgid;
    struct prm_wqe_av *av = ah->av;
    uint8_t mac[6];
    int err;

    if (attr->port_num < 1 || attr->port_num > PORTS) {
        return hv_refuse(hca, EINVAL, "create_ah: port_num is %u; the device has port 1",
                         attr->port_num);
    }
    if (!attr->is_global) {
        return hv_refuse(hca, EINVAL, "create_ah: " HV_NOT_GLOBAL);
    }
    err = ibv_query_gid_ex(ah->ibv.context, attr->port_num, attr->grh.sgid_index, &sgid, 0);
    if (err) {
        err = err < 0 ? errno : err;
        if (err == ENODATA) {
            hv_refuse(hca, err, "create_ah: grh.sgid_index %u is empty; " HV_GIDS_USED,
                      attr->grh.sgid_index);
        } else {
            hv_refuse(hca, err, "create_ah: grh.sgid_index is %u; the table has %u entries",
                      attr->grh.sgid_index, hv_gid_table_len(hca));
        }
        return err;
    }
    err = uverbs_create_ah(ah, attr, mac);
    if (err) {
        return err;
    }
    if (sgid.gid_type == IBV_GID_TYPE_ROCE_V2) {
        PRM_SET(wqe_av, av, udp_sport, ah_udp_sport(ah, attr->grh.flow_label));
    }
    if (attr->static_rate < G_N_ELEMENTS(rates)) {
        PRM_SET(wqe_av, av, stat_rate, rates[attr->static_rate]);
    }
    PRM_SET(wqe_av, av, sl, (attr->sl & 7) << 1);
    PRM_SET(wqe_av, av, tclass, attr->grh.traffic_class);
    PRM_SET(wqe_av, av, hop_limit, attr->grh.hop_limit);
    PRM_SET(wqe_av, av, src_addr_index, attr->grh.sgid_index);
    PRM_SET(wqe_av, av, flow_label, attr->grh.flow_label & IB_GRH_FLOWLABEL_MASK);
    memcpy(PRM_PTR(wqe_av, av, rgid), attr->grh.dgid.raw, 16);
    memcpy(PRM_PTR(wqe_av, av, rmac), mac, sizeof(mac));
    return 0;
}

HV_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct hv_ah *ah = calloc(1, sizeof(*ah));

    if (!ah) {
        return NULL;
    }
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    pthread_mutex_init(&ah->lock, NULL);
    if (hv_kernel(ah_init(ah, attr))) {
        free(ah);
        return NULL;
    }
    return &ah->ibv;
}

HV_EXPORT int ibv_destroy_ah(struct ibv_ah *ibah)
{
    struct hv_ah *ah = hv_ah(ibah);
    int err = hv_kernel(uverbs_destroy_ah(ah));

    if (!err) {
        hv_ah_unmap(ah);
        free(ah);
    }
    return err;
}

/* -- answering a datagram -----------------------------------------------------------------------
 */

/* The checksum of RFC 1071 over a header without options, its checksum field included. 0: it is
 * right. */
static uint16_t ah_ipv4_sum(const uint8_t *hdr)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < 4 * IHL_NO_OPTION; i += 2) {
        sum += (uint32_t)prm_load16(hdr + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* The IP version (4 or 6) of the network header in the 40 bytes before a datagram. 0: neither. If
 * the last bytes of a GRH happen to look like an IPv4 header, the checksum tells them apart. */
static int ah_header_version(const uint8_t *grh)
{
    const uint8_t *ip4 = grh + IPV4_IN_GRH;
    bool is_ip6 = grh[0] >> 4 == 6, is_ip4 = ip4[0] >> 4 == 4;

    if (!is_ip6) {
        return is_ip4 ? 4 : 0;
    }
    return ip4[0] == (4 << 4 | IHL_NO_OPTION) && !ah_ipv4_sum(ip4) ? 4 : 6;
}

/* The index of a GID of this type, or -1 with errno. */
static int ah_find_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid,
                       uint32_t type)
{
    struct ibv_gid_entry entry;
    int err;

    for (int i = 0;; i++) {
        err = ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0);
        if (!err && entry.gid_type == type && !memcmp(&entry.gid, gid, sizeof(*gid))) {
            return i;
        }
        if (err && err != ENODATA) {
            errno = err < 0 ? errno : err;
            return -1;
        }
    }
}

static void ah_map_ipv4(union ibv_gid *gid, const uint8_t *addr)
{
    memset(gid, 0, 10);
    memset(gid->raw + 10, 0xff, 2);
    memcpy(gid->raw + 12, addr, 4);
}

static int ah_answer_ipv4(struct ibv_context *context, uint8_t port, const uint8_t *ip4,
                          struct ibv_ah_attr *attr)
{
    union ibv_gid dgid;
    int index;

    if (IN_CLASSD((uint32_t)prm_load32(ip4 + 16))) {
        errno = EINVAL;
        return -1;
    }
    ah_map_ipv4(&dgid, ip4 + 16);
    index = ah_find_gid(context, port, &dgid, IBV_GID_TYPE_ROCE_V2);
    if (index < 0) {
        return -1;
    }
    ah_map_ipv4(&attr->grh.dgid, ip4 + 12);
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = ip4[8];
    attr->grh.traffic_class = ip4[1];
    return 0;
}

static int ah_answer_ipv6(struct ibv_context *context, uint8_t port, const struct ibv_grh *grh,
                          struct ibv_ah_attr *attr)
{
    uint32_t type;
    int index;

    if (grh->dgid.raw[0] == 0xff) {
        errno = EINVAL;
        return -1;
    }
    if (grh->next_hdr != IPPROTO_UDP && grh->next_hdr != NEXT_HDR_IBA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    type = grh->next_hdr == IPPROTO_UDP ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
    attr->grh.dgid = grh->sgid;
    index = ah_find_gid(context, port, &grh->dgid, type);
    if (index < 0) {
        return -1;
    }
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = grh->hop_limit;
    attr->grh.traffic_class = (uint8_t)(GUINT32_FROM_BE(grh->version_tclass_flow) >> 20);
    return 0;
}

HV_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
                                  struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
    memset(ah_attr, 0, sizeof(*ah_attr));
    ah_attr->grh.flow_label = GUINT32_FROM_BE(grh->version_tclass_flow) & IB_GRH_FLOWLABEL_MASK;
    ah_attr->dlid = wc->slid;
    ah_attr->sl = wc->sl;
    ah_attr->src_path_bits = wc->dlid_path_bits;
    ah_attr->port_num = port_num;
    if (!(wc->wc_flags & IBV_WC_GRH)) {
        return 0;
    }
    ah_attr->is_global = 1;
    switch (ah_header_version((const uint8_t *)grh)) {
    case 4:
        return ah_answer_ipv4(context, port_num, (const uint8_t *)grh + IPV4_IN_GRH, ah_attr);
    case 6:
        return ah_answer_ipv6(context, port_num, grh, ah_attr);
    default:
        errno = EPROTONOSUPPORT;
        return -1;
    }
}

HV_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                               struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr)) {
        return NULL;
    }
    return ibv_create_ah(pd, &attr);
}
