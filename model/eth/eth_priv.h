/* SPDX-License-Identifier: BSD-2-Clause */
/* Defines the objects of the Ethernet half, for the files of model/eth only. */
#ifndef HCASIM_MODEL_ETH_PRIV_H
#define HCASIM_MODEL_ETH_PRIV_H

#include "model/eth/eth.h"
#include "model/port/ets.h"
#include "model/port/pace.h"
#include "model/port/sched.h"
#include "model/port/port.h"
#include "model/queue/cq.h"
#include "model/queue/srq.h"
#include "model/queue/wq.h"
#include "prm/prm.h"
#include "wire/encap/tunnel.h"

/* Transport interface send: the transport domain and priority that an SQ sends with. */
struct eth_tis {
    struct obj obj; /* refs: SQs */
    struct prm_tisc tisc[1];
    uint8_t priority; /* of the frames, from prio */
};

/* Send queue (model/eth/eth_tx.c). */
struct eth_sq {
    struct obj obj; /* num is the SQN, in the QPN space */
    struct prm_sqc sqc[1];
    uint8_t state;       /* PRM_SQC_STATE_ */
    bool real_time;      /* ts_format (model/queue/cqe.h) */
    uint32_t user_index; /* goes into each CQE, like a QP's user index */
    struct wq wq;        /* slots are 64-byte basic blocks */
    uint32_t pdn;
    struct cq *cq;
    struct obj *uar;     /* the page of its doorbell; referenced */
    struct eth_tis *tis; /* may be NULL */
    uint32_t tdn;        /* transport domain of the TIS; PORT_NO_TD without a TIS */
    bool swp;            /* WQEs may say where headers are (allow_swp) */
    bool counted;        /* rules' counters have counted the frame that is made next */
    bool traced;         /* the trace has the WQE at ci */
    /* of the WQE at ci: bytes of an LSO message or copy, or packets, that were sent or copied */
    size_t done;
    /* of a UMR at ci whose entries are in memory: their copy, or NULL (model/eth/eth_umr.c) */
    uint8_t *umr;
    size_t umr_len, umr_have;
    struct work work; /* RDY: sends; ERR: flushes */
    struct pace pace;
    struct sched_member sched;
    struct hca_timer wait_timer;    /* of a WAIT at ci (model/eth/eth_wait.c) */
    struct eth_hairpin_sq *hairpin; /* model/eth/eth_hairpin.h; NULL: it has a ring */
};

/* Receive queue (model/eth/eth_rx.c). */
struct eth_rq {
    struct obj obj; /* refs: TIRs and RQTs */
    struct prm_rqc rqc[1];
    uint8_t state;  /* PRM_RQC_STATE_ */
    bool vsd;       /* VLAN tags are left in the frame */
    bool fcs;       /* the frame check sequence is stored behind the frame (scatter_fcs) */
    bool pads_end;  /* wq.end_padding_mode (model/memory/end_pad.h) */
    bool real_time; /* ts_format (model/queue/cqe.h) */
    uint32_t user_index, counter_set_id, pdn;
    struct wq wq;
    struct eth_strides
        *strides;            /* model/eth/eth_stride.h; NULL: a ring of WQEs of one frame each */
    struct eth_delay *delay; /* model/eth/eth_delay.h; NULL: no delayed drop */
    struct eth_hairpin_rq *hairpin; /* model/eth/eth_hairpin.h; NULL: it has a ring */
    struct srq *rmp;                /* the pool that it takes WQEs from; NULL: it has a ring */
    struct cq *cq;
    struct work flush_work; /* runs in ERR */
};

/* Receive queue table: the indirection table of RSS. */
struct eth_rqt {
    struct obj obj; /* refs: TIRs */
    uint32_t max_size, size;
    uint32_t rqn[];
};

/* The fields of a frame that a TIR hashes: those of the frame's own headers, or of the packet in
 * its tunnel. */
struct tir_fields {
    uint32_t bits; /* PRM_RX_HASH_FIELD_ */
    uint8_t l3_type, l4_type;
};

/* Transport interface receive: leads a steered frame to an RQ (model/eth/tir.c). */
struct eth_tir {
    struct obj obj; /* refs: flow table entries */
    struct prm_tirc tirc[1];
    bool indirect;
    uint32_t rqn, rqtn; /* which one is used depends on disp_type */
    uint8_t hash_fn;    /* PRM_RX_HASH_FN_ */
    bool symmetric;
    uint32_t tdn;
    uint8_t self_lb;                /* bits PRM_SELF_LB_ */
    struct tir_fields outer, inner; /* inner: none unless it looks into tunnels */
    bool tunnels;                   /* it looks into tunnels (tunneled_offload_en) */
    struct {
        uint8_t mask;       /* bits PRM_PACKET_MERGE_; 0: no LRO */
        uint32_t most;      /* bytes of IP payload of a merged packet */
        uint64_t period_ns; /* after which a session ends */
    } lro;
    struct toeplitz_table toeplitz;
};

static inline struct eth_rq *eth_rq_find(struct hca *hca, uint32_t rqn)
{
    return obj_find_kind(&hca->qpns, rqn, OBJ_RQ);
}

/* The priority of the SQ's frames: that of its TIS, not that of a VLAN tag or DSCP. Drivers put a
 * frame into the queue of its priority (mlx5e_select_queue()). */
static inline unsigned eth_sq_priority(const struct eth_sq *sq)
{
    return sq->tis ? sq->tis->priority : 0;
}

/* Whether rate and scheduling of the SQ let its next frame leave. If not, the work runs when they
 * do. */
static inline bool eth_sq_may_send(struct hca *hca, struct eth_sq *sq)
{
    if (!pace_may_send(hca, &sq->pace)) {
        return false;
    }
    if (G_UNLIKELY(hca->ets)) {
        return ets_may_send(hca, &sq->obj, &sq->sched, eth_sq_priority(sq), &sq->work);
    }
    return sched_may_send(hca, &sq->sched);
}

static inline struct eth_sq *eth_sq_find(struct hca *hca, uint32_t sqn)
{
    return obj_find_kind(&hca->qpns, sqn, OBJ_SQ);
}

/* The findings of a TIR about a frame (model/eth/tir.c): the hash over the fields that it selects,
 * which fields the hash covers, and the tunnel. */
struct rss {
    uint32_t hash;
    uint8_t ip, l4;                  /* PRM_RSS_HASH_IP_, PRM_RSS_HASH_L4_ */
    const struct eth_tunnel *tunnel; /* NULL: none, or the TIR does not look into tunnels */
};

/* Fills in the results of the NIC's checks: checksums and kinds of headers. tunnel: NULL for none.
 * strip: the outer VLAN tag is not stored (model/eth/eth_rx_checks.c). */
void eth_rx_fill_checks(const struct hca *hca, struct prm_cqe64 *cqe, const uint8_t *frame,
                        size_t len, const struct eth_info *info, const struct eth_tunnel *tunnel,
                        bool strip);

/* A frame that has come to an RQ, and what the NIC has found in it. */
struct eth_arrival {
    const uint8_t *frame;
    size_t len;
    const struct eth_info *info;
    const struct rss *rss;
    uint32_t flow_tag;
    uint32_t metadata;               /* register B of rules, for a hairpin RQ */
    const struct eth_merged *merged; /* NULL: the frame is as it came */
};

/* What the CQE of a packet of several TCP segments says (model/eth/eth_lro.c). */
struct eth_merged {
    uint8_t segments;
    uint8_t min_ttl;
    uint16_t window; /* of the last segment, as ack and psh */
    uint32_t ack;
    bool psh;
    uint16_t sum; /* of the payload (csum_partial()) */
};

/* The same for a packet of several TCP segments, whose checksums are right. */
void eth_rx_fill_merged(struct prm_cqe64 *cqe, const struct eth_info *info,
                        const struct eth_merged *merged);

/* With cqe_checksum_full: adds the stored frame check sequence to check_sum. */
void eth_rx_sum_fcs(struct prm_cqe64 *cqe, const uint8_t *frame, size_t len);

/* The queue receives no more: forgets the frames that are held for it. */
void eth_rq_stop(struct hca *hca, struct eth_rq *rq);

/* Receives a frame on this RQ: takes a receive WQE, scatters the frame, completes the WQE
 * (model/eth/eth_rx.c). Without a WQE the frame waits (model/eth/eth_delay.h) or is dropped. */
void eth_rq_receive(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a);
/* As eth_rq_receive(). False: there is no WQE, and nothing was done. */
bool eth_rq_try(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a);

/* ERR: a work of the RQ completes everything posted with WR_FLUSH_ERR (flush_in_error_en). If
 * software moves the RQ to RST before that is done, the rest gets no completions. */
void eth_rq_flush(struct hca *hca, struct eth_rq *rq);
void eth_rq_flush_run(struct hca *hca, struct work *work);

/* Handles a failure that no completion can report: the queue goes to ERR and raises
 * WQ_CATAS_ERROR. */
void eth_sq_fatal(struct hca *hca, struct eth_sq *sq);
void eth_rq_fatal(struct hca *hca, struct eth_rq *rq);

/* A parsed send WQE (model/eth/eth_tx.c). */
struct eth_wqe {
    uint16_t index;
    uint8_t opcode, ds;
    bool signaled;
    uint8_t cs_flags; /* bits ETH_CS_ */
    uint16_t mss;
    uint32_t metadata; /* for rules of sent frames */
    bool insert_vlan;
    uint16_t vlan_tpid, vlan_tci;
    /* the software parser: where headers are, in words of two bytes (model/eth/eth_headers.h) */
    struct {
        bool named; /* an offset is not 0 */
        uint8_t outer_l3, outer_l4, inner_l3, inner_l4, flags;
    } swp;
    const uint8_t *inline_hdr;
    size_t inline_len;
    uint64_t inl; /* bit n: sge[n].va is a pointer to data in the WQE's image */
    struct sge sge[WQE_MAX_SGE];
    unsigned num_sge;
    uint64_t data_len;
};

#define ETH_MIN_FRAME 60 /* IEEE 802.3 minimum without FCS: shorter frames are padded */
/* Makes the nth element one of data in the WQE's image. */
static inline void eth_wqe_set_inline(struct eth_wqe *wqe, unsigned n, const uint8_t *data,
                                      uint32_t len)
{
    wqe->inl |= 1ull << n;
    wqe->sge[n] = (struct sge){.va = (uintptr_t)data, .len = len};
}

/* wqe_eth_seg.cs_flags */
#define ETH_CS_L3_INNER 0x10
#define ETH_CS_L4_INNER 0x20
#define ETH_CS_L3       0x40
#define ETH_CS_L4       0x80
#define ETH_CS_ANY      0xf0

enum eth_sent {
    ETH_SENT,
    ETH_NO_CREDIT, /* try again when the wire has credit */
    ETH_HELD,    /* rate, scheduling or a WAIT holds what comes; the work runs when it may leave */
    ETH_MORE,    /* the turn's share is used up, there is more to send */
    ETH_NO_DATA, /* memory that the WQE names does not answer */
    ETH_BAD_WQE, /* lengths or headers are invalid */
    ETH_BAD_LENGTH, /* the message is longer than it may be */
    ETH_BAD_BIND,   /* the UMR may not change the key in this way */
};

/* Parses the segments from seg to end, pointers to data and data, behind those that wqe has. An
 * element that names the lkey `denied` gets no key. False: there are too many, or inline data are
 * not whole. */
bool eth_tx_parse_data(struct eth_wqe *wqe, const struct prm_wqe_data_seg *seg, const void *end,
                       uint32_t denied);
/* Carries out a UMR; raw is its image of len bytes (model/eth/eth_umr.c). ETH_MORE: a part of its
 * entries was read; call again. */
enum eth_sent eth_umr(struct hca *hca, struct eth_sq *sq, struct eth_wqe *wqe, const void *raw,
                      size_t len, uint32_t denied);
/* Carries out a WAIT on time; seg are the len bytes behind its control segment. */
enum eth_sent eth_wait(struct hca *hca, struct eth_sq *sq, const void *seg, size_t len);
/* The WQE at ci is done, or another one comes. */
void eth_umr_forget(struct hca *hca, struct eth_sq *sq);

/* Gathers bytes of the inline headers and the data. */
enum mem_result eth_gather(struct hca *hca, const struct eth_sq *sq, const struct eth_wqe *wqe,
                           uint64_t offset, uint8_t *buf, size_t len);
/* Sends an ordinary packet. */
enum eth_sent eth_send_packet(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe);
/* Sends the packets of the segments from seg to end, from where it stopped last time
 * (model/eth/eth_mpw.c). An element that names the lkey `denied` gets no key. */
enum eth_sent eth_send_mpw(struct hca *hca, struct eth_sq *sq, struct eth_wqe *wqe,
                           const uint8_t *seg, const uint8_t *end, uint32_t denied);
/* Sends an LSO message, from where it stopped last time (model/eth/eth_lso.c). */
enum eth_sent eth_send_lso(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe);

/* Sends the frame in the last reserved place, unless a rule drops it. metadata is that of its WQE.
 * If it is a group frame, copies it to the TIRs that take group frames of this SQ's transport
 * domain. False: rules have changed the frame so that it needs another place on the wire, for which
 * there is no credit; then the frame is made again when there is (model/eth/eth_commit.c). */
bool eth_commit(struct hca *hca, struct eth_sq *sq, uint32_t metadata, uint8_t *frame, size_t len)
    __attribute__((warn_unused_result));

/* Ends the waits of an SQ that does not send any more. */
void eth_sq_stop(struct hca *hca, struct eth_sq *sq);
void eth_sq_run(struct hca *hca, struct work *work);
/* As eth_rq_flush(). A doorbell makes it flush also WQEs posted since. */
void eth_sq_flush(struct hca *hca, struct eth_sq *sq);

#endif
