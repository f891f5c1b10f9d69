/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements TIS, RQT and TIR: their contexts, and the way of a frame through a TIR: hash, table,
 * RQ.
 *
 * The input of the hash is source address, destination address, source port, and destination port
 * (or SPI), as far as they are selected, in this order and in network byte order (Microsoft RSS).
 * With rx_hash_symmetric, if both fields of a pair are selected, the pair is replaced by source |
 * destination and source ^ destination. So both directions of a flow have the same hash (Linux,
 * ethtool: "Symmetric OR-XOR", which mlx5e's TIRs use).
 *
 * A TIR with tunneled_offload_en looks into tunnels: if it selects inner fields, they are the input
 * of the hash of a frame with a tunnel.
 */
#include <string.h>
#include "model/core/pd.h"
#include "model/eth/eth_lro.h"
#include "model/eth/eth_priv.h"
#include "model/eth/tir.h"

enum {
    IP_PROTO_AH = 51, /* RFC 4302 */
};

static struct td *tir_find_td(struct hca *hca, uint32_t tdn)
{
    return obj_find_kind(&hca->tds, tdn, OBJ_TD);
}

/* -- TIS ----------------------------------------------------------------------------------------
 */

/* prio is the priority << 1 (mlx5e_create_tises()). */
static void tir_set_tis_priority(struct eth_tis *tis, uint32_t prio)
{
    PRM_SET(tisc, tis->tisc, prio, prio);
    tis->priority = (uint8_t)(prio >> 1);
}

enum syn tis_create(struct hca *hca, uint16_t uid, const struct prm_tisc *tisc, uint32_t *tisn)
{
    struct td *td = tir_find_td(hca, PRM_GET(tisc, tisc, transport_domain));
    struct eth_tis *tis;
    enum syn syn = uid_check((const struct obj *)td, uid, SYN_ETH_TD);

    if (syn != SYN_OK) {
        return syn;
    }
    tis = obj_make(hca, OBJ_TIS, uid, sizeof(*tis));
    if (!tis) {
        return SYN_NO_MEMORY;
    }
    memcpy(tis->tisc, tisc, sizeof(tis->tisc));
    tir_set_tis_priority(tis, PRM_GET(tisc, tisc, prio));
    obj_ref(&tis->obj, &td->obj);
    *tisn = tis->obj.num;
    return SYN_OK;
}

static enum syn tir_find_owned(struct obj_table *table, uint32_t num, uint16_t uid,
                               struct obj **obj)
{
    *obj = obj_find(table, num);
    if (!*obj) {
        return SYN_ETH_NOT_FOUND;
    }
    return uid_owns(*obj, uid) ? SYN_OK : SYN_BAD_UID;
}

enum syn tis_modify(struct hca *hca, uint16_t uid, uint32_t tisn,
                    const struct prm_modify_tis_bitmask *bitmask, const struct prm_tisc *tisc)
{
    struct obj *obj;
    struct eth_tis *tis;
    enum syn syn = tir_find_owned(&hca->tiss, tisn, uid, &obj);

    if (syn != SYN_OK) {
        return syn;
    }
    if (PRM_GET(modify_tis_bitmask, bitmask, lag_tx_port_affinity) ||
        PRM_GET(modify_tis_bitmask, bitmask, strict_lag_tx_port_affinity)) {
        return SYN_ETH_MODIFY;
    }
    tis = (struct eth_tis *)obj;
    if (PRM_GET(modify_tis_bitmask, bitmask, prio)) {
        tir_set_tis_priority(tis, PRM_GET(tisc, tisc, prio));
    }
    return SYN_OK;
}

enum syn tis_query(struct hca *hca, uint32_t tisn, struct prm_tisc *tisc)
{
    const struct eth_tis *tis = obj_find_kind(&hca->tiss, tisn, OBJ_TIS);

    if (!tis) {
        return SYN_ETH_NOT_FOUND;
    }
    memcpy(tisc, tis->tisc, sizeof(tis->tisc));
    return SYN_OK;
}

enum syn tis_destroy(struct hca *hca, uint16_t uid, uint32_t tisn)
{
    struct obj *obj;
    enum syn syn = tir_find_owned(&hca->tiss, tisn, uid, &obj);

    if (syn != SYN_OK) {
        return syn;
    }
    if (obj->refs) {
        return SYN_IN_USE;
    }
    tis_free(hca, obj);
    return SYN_OK;
}

void tis_free(struct hca *hca, struct obj *obj)
{
    const struct eth_tis *tis = (const struct eth_tis *)obj;

    obj_unref(obj, &tir_find_td(hca, PRM_GET(tisc, tis->tisc, transport_domain))->obj);
    obj_end(hca, obj);
}

/* -- RQT ----------------------------------------------------------------------------------------
 */

static void rqt_hold(struct hca *hca, struct eth_rqt *rqt, int by)
{
    for (uint32_t i = 0; i < rqt->size; i++) {
        obj_count(&rqt->obj, &eth_rq_find(hca, rqt->rqn[i])->obj, by);
    }
}

/* Reads the list after rqtc into rqn[]. Its size must be a power of two, because the hash is
 * masked. */
static enum syn read_rqt_list(struct hca *hca, uint16_t uid, const struct prm_rqtc *rqtc,
                              size_t list_len, uint32_t max_size, uint32_t *rqn, uint32_t *size)
{
    const struct prm_rq_num *list = PRM_PTR_AT(rqtc, rqtc, rq_num, 0);

    *size = PRM_GET(rqtc, rqtc, rqt_actual_size);
    if (PRM_GET(rqtc, rqtc, list_q_type) || PRM_GET(rqtc, rqtc, rq_vhca_id_format)) {
        return SYN_ETH_RQT_LIST;
    }
    if (*size == 0 || *size > max_size || *size & (*size - 1)) {
        return SYN_ETH_RQT_LIST;
    }
    if (list_len < *size * PRM_SIZE(rq_num)) {
        return SYN_IN_LEN;
    }
    for (uint32_t i = 0; i < *size; i++) {
        const struct eth_rq *rq;

        rqn[i] = PRM_GET(rq_num, &list[i], rq_num);
        rq = eth_rq_find(hca, rqn[i]);
        if (!rq) {
            return SYN_ETH_RQT_LIST;
        }
        if (!uid_may_use(&rq->obj, uid)) {
            return SYN_BAD_UID;
        }
    }
    return SYN_OK;
}

enum syn rqt_create(struct hca *hca, uint16_t uid, const struct prm_rqtc *rqtc, size_t list_len,
                    uint32_t *rqtn)
{
    uint32_t max_size = PRM_GET(rqtc, rqtc, rqt_max_size);
    struct eth_rqt *rqt;
    enum syn syn;

    if (max_size == 0 || max_size > RQT_MAX_SIZE) {
        return SYN_ETH_RQT_LIST;
    }
    rqt = obj_new(hca, OBJ_RQT, uid, sizeof(*rqt) + max_size * sizeof(rqt->rqn[0]));
    if (!rqt) {
        return SYN_NO_MEMORY;
    }
    rqt->max_size = max_size;
    syn = read_rqt_list(hca, uid, rqtc, list_len, max_size, rqt->rqn, &rqt->size);
    if (syn == SYN_OK && !obj_insert(&hca->rqts, &rqt->obj)) {
        syn = SYN_NO_MEMORY;
    }
    if (syn != SYN_OK) {
        obj_free(hca, &rqt->obj);
        return syn;
    }
    rqt_hold(hca, rqt, 1);
    *rqtn = rqt->obj.num;
    return SYN_OK;
}

enum syn rqt_modify(struct hca *hca, uint16_t uid, uint32_t rqtn,
                    const struct prm_rqt_bitmask *bitmask, const struct prm_rqtc *rqtc,
                    size_t list_len)
{
    g_autofree uint32_t *rqn = NULL;
    struct obj *obj;
    struct eth_rqt *rqt;
    uint32_t size;
    enum syn syn = tir_find_owned(&hca->rqts, rqtn, uid, &obj);

    if (syn != SYN_OK || !PRM_GET(rqt_bitmask, bitmask, rqn_list)) {
        return syn;
    }
    rqt = (struct eth_rqt *)obj;
    rqn = g_new(uint32_t, rqt->max_size);
    syn = read_rqt_list(hca, uid, rqtc, list_len, rqt->max_size, rqn, &size);
    if (syn != SYN_OK) {
        return syn;
    }
    rqt_hold(hca, rqt, -1);
    memcpy(rqt->rqn, rqn, size * sizeof(rqn[0]));
    rqt->size = size;
    rqt_hold(hca, rqt, 1);
    return SYN_OK;
}

enum syn rqt_query(struct hca *hca, uint32_t rqtn, struct prm_rqtc *rqtc, size_t list_len)
{
    const struct eth_rqt *rqt = obj_find_kind(&hca->rqts, rqtn, OBJ_RQT);
    struct prm_rq_num *list = PRM_PTR_AT(rqtc, rqtc, rq_num, 0);

    if (!rqt) {
        return SYN_ETH_NOT_FOUND;
    }
    PRM_SET(rqtc, rqtc, rqt_max_size, rqt->max_size);
    PRM_SET(rqtc, rqtc, rqt_actual_size, rqt->size);
    for (uint32_t i = 0; i < rqt->size && (i + 1) * PRM_SIZE(rq_num) <= list_len; i++) {
        PRM_SET(rq_num, &list[i], rq_num, rqt->rqn[i]);
    }
    return SYN_OK;
}

enum syn rqt_destroy(struct hca *hca, uint16_t uid, uint32_t rqtn)
{
    struct obj *obj;
    enum syn syn = tir_find_owned(&hca->rqts, rqtn, uid, &obj);

    if (syn != SYN_OK) {
        return syn;
    }
    if (obj->refs) {
        return SYN_IN_USE;
    }
    rqt_free(hca, obj);
    return SYN_OK;
}

void rqt_free(struct hca *hca, struct obj *obj)
{
    rqt_hold(hca, (struct eth_rqt *)obj, -1);
    obj_end(hca, obj);
}

/* -- TIR ----------------------------------------------------------------------------------------
 */

static struct tir_fields tir_read_fields(const struct prm_rx_hash_field_select *select)
{
    return (struct tir_fields){
        .bits = PRM_GET(rx_hash_field_select, select, selected_fields),
        .l3_type = (uint8_t)PRM_GET(rx_hash_field_select, select, l3_prot_type),
        .l4_type = (uint8_t)PRM_GET(rx_hash_field_select, select, l4_prot_type),
    };
}

/* Takes the hash function, key and fields of a tirc. */
static enum syn tir_read_hash(struct eth_tir *tir, const struct prm_tirc *tirc)
{
    struct tir_fields outer = tir_read_fields(PRM_PTR(tirc, tirc, rx_hash_field_selector_outer));
    struct tir_fields inner = tir_read_fields(PRM_PTR(tirc, tirc, rx_hash_field_selector_inner));
    uint8_t fn = (uint8_t)PRM_GET(tirc, tirc, rx_hash_fn);

    if (fn > PRM_RX_HASH_FN_TOEPLITZ ||
        (outer.bits | inner.bits) >> (PRM_RX_HASH_FIELD_IPSEC_SPI + 1) ||
        (inner.bits && !tir->tunnels)) {
        return SYN_ETH_HASH;
    }
    tir->hash_fn = fn;
    tir->symmetric = PRM_GET(tirc, tirc, rx_hash_symmetric);
    tir->outer = outer;
    tir->inner = inner;
    if (fn == PRM_RX_HASH_FN_TOEPLITZ) {
        toeplitz_table_init(&tir->toeplitz, PRM_PTR(tirc, tirc, rx_hash_toeplitz_key));
    }
    return SYN_OK;
}

/* Whether the TIR takes multicasts of its own transport domain. */
static bool tir_listens(const struct eth_tir *tir)
{
    return tir->self_lb & 1u << PRM_SELF_LB_MULTICAST;
}

/* The RQ or RQT that the TIR leads to. */
static struct obj *tir_target(struct hca *hca, const struct eth_tir *tir)
{
    return tir->indirect ? obj_find(&hca->rqts, tir->rqtn)
                         : obj_find_kind(&hca->qpns, tir->rqn, OBJ_RQ);
}

static enum syn check_tirc(const struct hca *hca, const struct prm_tirc *tirc)
{
    if (PRM_GET(tirc, tirc, disp_type) > PRM_TIRC_DISP_TYPE_INDIRECT) {
        return SYN_ETH_DISP_TYPE;
    }
    if (PRM_GET(tirc, tirc, tls_en)) {
        return SYN_ETH_LRO;
    }
    if (PRM_GET(tirc, tirc, tunneled_offload_en) && !hca->limits.tunnels) {
        return SYN_ETH_TUNNELS;
    }
    return SYN_OK;
}

enum syn tir_create(struct hca *hca, uint16_t uid, const struct prm_tirc *tirc, uint32_t *tirn)
{
    struct td *td = tir_find_td(hca, PRM_GET(tirc, tirc, transport_domain));
    struct obj *target;
    struct eth_tir *tir;
    enum syn syn = check_tirc(hca, tirc);

    if (syn != SYN_OK) {
        return syn;
    }
    /* Programs make TIRs of no transport domain, by DevX (rdma-core's test_mlx5_dr, test_dest_tir).
     * Then no queue is of the TIR's domain. */
    if (!td && PRM_GET(tirc, tirc, transport_domain)) {
        return SYN_ETH_TD;
    }
    tir = obj_new(hca, OBJ_TIR, uid, sizeof(*tir));
    if (!tir) {
        return SYN_NO_MEMORY;
    }
    memcpy(tir->tirc, tirc, sizeof(tir->tirc));
    tir->indirect = PRM_GET(tirc, tirc, disp_type) == PRM_TIRC_DISP_TYPE_INDIRECT;
    tir->rqn = PRM_GET(tirc, tirc, inline_rqn);
    tir->rqtn = PRM_GET(tirc, tirc, indirect_table);
    tir->tdn = PRM_GET(tirc, tirc, transport_domain);
    tir->self_lb = (uint8_t)PRM_GET(tirc, tirc, self_lb_block);
    tir->tunnels = PRM_GET(tirc, tirc, tunneled_offload_en);
    target = tir_target(hca, tir);
    syn = tir_read_hash(tir, tirc);
    if (syn == SYN_OK && !target) {
        syn = SYN_ETH_NOT_FOUND;
    }
    if (syn == SYN_OK && !((!td || uid_may_use(&td->obj, uid)) && uid_may_use(target, uid))) {
        syn = SYN_BAD_UID;
    }
    if (syn == SYN_OK) {
        syn = eth_lro_set(hca, tir, tirc);
    }
    if (syn == SYN_OK && !obj_insert(&hca->tirs, &tir->obj)) {
        syn = SYN_NO_MEMORY;
    }
    if (syn != SYN_OK) {
        eth_lro_end(hca, tir);
        obj_free(hca, &tir->obj);
        return syn;
    }
    obj_ref(&tir->obj, td ? &td->obj : NULL);
    obj_ref(&tir->obj, target);
    if (td) {
        td->tirs++;
        td->listening += tir_listens(tir);
    }
    *tirn = tir->obj.num;
    return SYN_OK;
}

enum syn tir_modify(struct hca *hca, uint16_t uid, uint32_t tirn,
                    const struct prm_modify_tir_bitmask *bitmask, const struct prm_tirc *tirc)
{
    static const size_t lro_at = 0x10; /* lro_timeout_period_usecs and the fields beside it */
    static const size_t hash_from = PRM_OFFSET(tirc, rx_hash_toeplitz_key);
    static const size_t hash_to =
        PRM_OFFSET(tirc, rx_hash_field_selector_inner) + PRM_SIZE(rx_hash_field_select);
    struct obj *obj;
    struct eth_tir *tir;
    enum syn syn = tir_find_owned(&hca->tirs, tirn, uid, &obj);

    if (syn != SYN_OK) {
        return syn;
    }
    tir = (struct eth_tir *)obj;
    if (PRM_GET(modify_tir_bitmask, bitmask, packet_merge)) {
        syn = eth_lro_set(hca, tir, tirc);
        if (syn != SYN_OK) {
            return syn;
        }
        memcpy(tir->tirc->bytes + lro_at, tirc->bytes + lro_at, sizeof(uint32_t));
    }
    if (PRM_GET(modify_tir_bitmask, bitmask, hash)) {
        syn = tir_read_hash(tir, tirc);
        if (syn != SYN_OK) {
            return syn;
        }
        PRM_SET(tirc, tir->tirc, rx_hash_fn, tir->hash_fn);
        PRM_SET(tirc, tir->tirc, rx_hash_symmetric, tir->symmetric);
        memcpy(tir->tirc->bytes + hash_from, tirc->bytes + hash_from, hash_to - hash_from);
    }
    if (PRM_GET(modify_tir_bitmask, bitmask, self_lb_en)) {
        struct td *td = tir_find_td(hca, tir->tdn);

        if (td) {
            td->listening -= tir_listens(tir);
        }
        tir->self_lb = (uint8_t)PRM_GET(tirc, tirc, self_lb_block);
        if (td) {
            td->listening += tir_listens(tir);
        }
        PRM_SET(tirc, tir->tirc, self_lb_block, tir->self_lb);
    }
    return SYN_OK;
}

enum syn tir_query(struct hca *hca, uint32_t tirn, struct prm_tirc *tirc)
{
    const struct eth_tir *tir = obj_find_kind(&hca->tirs, tirn, OBJ_TIR);

    if (!tir) {
        return SYN_ETH_NOT_FOUND;
    }
    memcpy(tirc, tir->tirc, sizeof(tir->tirc));
    return SYN_OK;
}

enum syn tir_destroy(struct hca *hca, uint16_t uid, uint32_t tirn)
{
    struct obj *obj;
    enum syn syn = tir_find_owned(&hca->tirs, tirn, uid, &obj);

    if (syn != SYN_OK) {
        return syn;
    }
    if (obj->refs) {
        return SYN_IN_USE;
    }
    tir_free(hca, obj);
    return SYN_OK;
}

void tir_free(struct hca *hca, struct obj *obj)
{
    struct eth_tir *tir = (struct eth_tir *)obj;
    struct td *td = tir_find_td(hca, tir->tdn);

    eth_lro_end(hca, tir);
    obj_unref(obj, tir_target(hca, tir));
    if (td) {
        obj_unref(obj, &td->obj);
        td->tirs--;
        td->listening -= tir_listens(tir);
    }
    obj_end(hca, obj);
}

/* -- the way of a frame
 * ------------------------------------------------------------------------- */

static bool tir_selected(const struct tir_fields *fields, unsigned field)
{
    return fields->bits & 1u << field;
}

/* Appends the fields of source and destination, of len bytes each, that are selected. */
static size_t tir_put_pair(uint8_t *data, const struct tir_fields *fields, bool symmetric,
                           unsigned src_field, const uint8_t *src, const uint8_t *dst, size_t len)
{
    bool has_src = tir_selected(fields, src_field), has_dst = tir_selected(fields, src_field + 1);
    size_t n = 0;

    if (symmetric && has_src && has_dst) {
        for (size_t i = 0; i < len; i++) {
            data[i] = src[i] | dst[i];
            data[len + i] = src[i] ^ dst[i];
        }
        return 2 * len;
    }
    if (has_src) {
        memcpy(data, src, len);
        n += len;
    }
    if (has_dst) {
        memcpy(data + n, dst, len);
        n += len;
    }
    return n;
}

static uint32_t tir_hash_bytes(const struct eth_tir *tir, const uint8_t *data, size_t len)
{
    uint8_t x = 0;

    if (tir->hash_fn == PRM_RX_HASH_FN_TOEPLITZ) {
        return toeplitz_table_hash(&tir->toeplitz, data, len);
    }
    for (size_t i = 0; i < len; i++) {
        x ^= data[i];
    }
    return (uint8_t)~x;
}

/* Appends the SPI of ESP or AH (RFC 4303, 4302), if it is selected and the frame has one. */
static size_t tir_put_spi(uint8_t *data, const struct tir_fields *fields, const uint8_t *frame,
                          const struct eth_info *info)
{
    size_t at = info->l4_off + (info->proto == IP_PROTO_AH ? 4 : 0);

    if (!tir_selected(fields, PRM_RX_HASH_FIELD_IPSEC_SPI) || info->fragment ||
        (info->proto != IP_PROTO_ESP && info->proto != IP_PROTO_AH) || at + 4 > info->ip_end) {
        return 0;
    }
    memcpy(data, frame + at, 4);
    return 4;
}

/* The hash over fields of the frame's own headers, or of the inner ones; info describes them. */
static struct rss tir_compute_rss(const struct eth_tir *tir, const struct tir_fields *fields,
                                  const uint8_t *frame, const struct eth_info *info)
{
    uint8_t data[TOEPLITZ_DATA_MAX];
    struct rss rss = {0};
    bool ipv4 = info->ip_version == 4;
    const uint8_t *l3 = frame + info->l3_off;
    enum eth_l4 l4 = fields->l4_type == PRM_L4_PROT_TYPE_TCP ? ETH_L4_TCP : ETH_L4_UDP;
    size_t len, l3_len;

    if (tir->hash_fn == PRM_RX_HASH_FN_NONE || !info->ip_version ||
        ipv4 != (fields->l3_type == PRM_L3_PROT_TYPE_IPV4)) {
        return rss;
    }
    len = l3_len = tir_put_pair(data, fields, tir->symmetric, PRM_RX_HASH_FIELD_SRC_IP,
                                l3 + (ipv4 ? 12 : 8), l3 + (ipv4 ? 16 : 24), ipv4 ? 4 : 16);
    len += tir_put_spi(data + len, fields, frame, info);
    if (len > l3_len) {
        rss.l4 = PRM_RSS_HASH_L4_IPSEC;
    } else if (info->l4 == l4) {
        len += tir_put_pair(data + len, fields, tir->symmetric, PRM_RX_HASH_FIELD_L4_SPORT,
                            frame + info->l4_off, frame + info->l4_off + 2, 2);
        if (len > l3_len) {
            rss.l4 = l4 == ETH_L4_TCP ? PRM_RSS_HASH_L4_TCP : PRM_RSS_HASH_L4_UDP;
        }
    }
    if (len == 0) {
        return rss;
    }
    rss.hash = tir_hash_bytes(tir, data, len);
    if (l3_len) {
        rss.ip = ipv4 ? PRM_RSS_HASH_IP_IPV4 : PRM_RSS_HASH_IP_IPV6;
    }
    return rss;
}

/* Whether the TIR takes a frame. It takes frames of its own transport domain only if its
 * self_lb_block bits are set. In spite of their name, these bits allow such frames (driver:
 * MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC, and the loopback self-test of mlx5e). */
static bool tir_takes(const struct eth_tir *tir, const uint8_t dmac[6], uint32_t from_td)
{
    unsigned kind = dmac[0] & 1 ? PRM_SELF_LB_MULTICAST : PRM_SELF_LB_UNICAST;

    return from_td != tir->tdn || (tir->self_lb & 1u << kind);
}

bool tir_takes_group(struct hca *hca, uint32_t from_td)
{
    const struct td *td = tir_find_td(hca, from_td);

    return hca->tirs.count > (td ? td->tirs - td->listening : 0);
}

/* Whether the TIR looks into the frame's tunnel, which is then parsed. Labels of MPLS alone are no
 * tunnel here, as there is no outer IP packet that a CQE could speak of. */
static bool tir_tunneled(const struct hca *hca, const struct eth_tir *tir, const uint8_t *frame,
                         const struct eth_info *info, struct eth_tunnel *tunnel)
{
    return tir->tunnels && info->ip_version && eth_tunnel_possible(info) &&
           eth_tunnel_parse(frame, info, &hca->vxlan, tunnel);
}

bool tir_rx(struct hca *hca, uint32_t tirn, const uint8_t *frame, size_t len,
            const struct eth_info *info, uint32_t flow_tag, uint32_t metadata, uint32_t from_td)
{
    const struct eth_tir *tir = obj_find_kind(&hca->tirs, tirn, OBJ_TIR);
    struct eth_tunnel tunnel;
    struct eth_arrival arrival;
    struct eth_rq *rq;
    struct rss rss;
    uint32_t rqn;

    if (!tir || !tir_takes(tir, frame, from_td)) {
        return false;
    }
    if (G_UNLIKELY(tir_tunneled(hca, tir, frame, info, &tunnel))) {
        rss = tir->inner.bits ? tir_compute_rss(tir, &tir->inner, frame, &tunnel.inner)
                              : tir_compute_rss(tir, &tir->outer, frame, info);
        rss.tunnel = &tunnel;
    } else {
        rss = tir_compute_rss(tir, &tir->outer, frame, info);
    }
    rqn = tir->rqn;
    if (tir->indirect) {
        const struct eth_rqt *rqt = obj_find_kind(&hca->rqts, tir->rqtn, OBJ_RQT);

        rqn = rqt->rqn[rss.hash & (rqt->size - 1)];
    }
    rq = eth_rq_find(hca, rqn);
    arrival = (struct eth_arrival){.frame = frame,
                                   .len = len,
                                   .info = info,
                                   .rss = &rss,
                                   .flow_tag = flow_tag,
                                   .metadata = metadata};
    if (G_LIKELY(!tir->lro.mask) || !eth_lro_take(hca, tir, rq, &arrival)) {
        eth_rq_receive(hca, rq, &arrival);
    }
    return true;
}
