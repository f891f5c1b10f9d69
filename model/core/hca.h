/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines one HCA: its objects, its pending work, its timers.
 *
 * Everything that happens to an HCA happens inside hca_run() or a call of its owner, one event at a
 * time, so nothing here locks. Work that cannot be done at once (a QP with WQEs to send, a command
 * to execute) is a struct work on the ready list; hca_run() takes them in turn. Work that found no
 * credit on the wire waits on the tx list of its credit class until that class has credit again.
 */
#ifndef HCASIM_MODEL_HCA_H
#define HCASIM_MODEL_HCA_H

#include <glib.h>
#include "model/core/fault.h"
#include "model/core/host.h"
#include "model/core/ledger.h"
#include "model/core/obj.h"
#include "model/core/syndrome.h"
#include "wire/encap/tunnel.h"

struct blueflame;
struct card;
struct cqe_session;
struct eth_lro;
struct ets;
struct hca;
struct inject;
struct mem_space;
struct pace_rate;
struct q_counter;
struct rdma;
struct sig;
struct steering;
struct sw_icm;
struct vport;

/* Something that wants the HCA's attention. Zero-initialized means idle. */
struct work {
    struct work *prev, *next; /* NULL when on no list */
    /* Does at least one step, and goes on as long as hca_may_go_on(). If there is more to do, it
     * reschedules itself by hca_schedule() or hca_wait_tx(). */
    void (*run)(struct hca *hca, struct work *work);
    uint64_t waits_since; /* its place in the order of waiting for credit; 0: none */
};

struct hca_timer {
    uint64_t deadline; /* clock_ns(); valid while armed */
    unsigned pos;      /* place in the heap + 1; 0: not armed */
    void (*fire)(struct hca *hca, struct hca_timer *timer);
};

/* How much of the budget of one log level was used up lately (model/core/log.c). */
struct log_bucket {
    uint64_t since;    /* clock_ns() */
    uint64_t left_out; /* lines not written since the last written one */
    unsigned lines;
};

/* Number spaces and sizes. fw fills them in from the profile; capabilities report them. */
struct hca_limits {
    unsigned log_max_qp, log_max_cq, log_max_srq, log_max_mkey, log_max_pd, log_max_eq, log_max_uar;
    unsigned log_max_umem, log_max_uctx;
    unsigned qpn_start; /* offset of the first QPN that is given out */
    unsigned log_max_qp_sz, log_max_cq_sz, log_max_srq_sz, log_max_eq_sz;
    unsigned log_max_msg;                          /* largest message: 30 */
    unsigned log_max_ra_res_qp, log_max_ra_req_qp; /* READ/atomic resources per QP */
    unsigned num_msix;
    unsigned max_gid;                /* entries of the RoCE address table */
    uint32_t max_sq_wqe, max_rq_wqe; /* bytes of one WQE */
    unsigned dc_responders;          /* most sessions of the function's DC targets at one time */
    uint8_t dc_version;              /* bits of the DC transport versions: v0, v1 */
    /* operand sizes that are atomic to the host's CPUs: bit 0 for 4 bytes, bit 1 for 8 */
    unsigned pci_atomics;
    bool inline_l2;     /* a send WQE of an SQ must carry the layer 2 header itself */
    bool no_send_dbr;   /* QPs may do without a send doorbell record: qpc.send_dbr_mode */
    bool tunneled;      /* keys may turn RDMA WRITEs into atomics: mkc.tunneled_atomic */
    bool early_packets; /* reliable QPs may take packets out of order: qpc.dp_ordering */
    /* Memory to memory operations: on SQs, RC QPs and DCIs; on RC QPs and DCIs that are enabled for
     * them (qpc_ext.mmo). */
    bool mmo_sq, mmo_qp;
    bool enhanced_cqes; /* CQs may compress in the enhanced layout: cqc.cqe_compression_layout */
    uint8_t crypto;     /* enum hca_crypto */
    bool real_time;     /* time stamps may be those of the card's real-time clock */
    bool wait_on_time;  /* SQs may wait for a time (model/eth/eth_wait.c) */
    bool swp;           /* SQs may have a software parser: sqc.allow_swp */
    bool multi_packet;  /* send WQEs may have several packets: model/eth/eth_mpw.c */
    bool tunnels;       /* TIRs may look into tunnels: tirc.tunneled_offload_en */
    bool hairpin;       /* SQs and RQs may be joined: model/eth/eth_hairpin.h */
    bool cqe_checksum_full; /* check_sum of a CQE covers a received frame to its end */
};

/* How data encryption keys are imported (model/memory/dek.h). */
enum hca_crypto {
    HCA_CRYPTO_NONE,
    HCA_CRYPTO_WRAPPED,
    HCA_CRYPTO_PLAINTEXT,
};

enum {
    /* credit classes of the wire, for which work can wait (wire_tx_credits()) */
    HCA_CREDIT_CLASSES = 64,
    HCA_HOLDS = 8, /* priorities that the link partner may hold (model/port/pause.h) */
    /* a hold counts as a credit class, behind those of the wire */
    HCA_WAIT_CLASSES = HCA_CREDIT_CLASSES + HCA_HOLDS,
    HCA_MEM_SPACES = 3, /* enum mem_space_id */
    HCA_MAX_EQS = 128,
    HCA_KEY_RUNS = 16,
};

/* A trace is lines of the log (model/core/trace.h), events (model/core/trace_event.h), or both. */
enum hca_traces {
    HCA_TRACES_TEXT = 1,
    HCA_TRACES_EVENTS = 2,
};

/* Progress of a reset, which is done in parts (model/card/hca.c). */
struct hca_reset {
    bool under_way;
    uint32_t flow_table; /* the next flow table to be emptied */
    unsigned groups;     /* the next slot of the multicast groups */
    unsigned space;      /* the next number space of obj_spaces */
    uint32_t num;        /* the next number in that space */
};

/* A run of a key's memory, cached from the last access (model/memory/mkey_access.c). */
struct key_run {
    uint32_t key, pdn; /* the key as an access names it, and the PD that was checked */
    uint8_t rights;    /* enum mem_access */
    uint8_t space;     /* enum mem_space_id */
    uint64_t va, len;  /* the range in the key; len 0: nothing is cached */
    uint64_t address;  /* where the range is in that space */
};

/* An access that a memory key refused; mkey_why() describes it. */
struct mem_refusal {
    uint8_t result;    /* enum mem_result */
    uint8_t access;    /* enum mem_access; 0: the key was to be invalidated */
    uint32_t key, pdn; /* the key, and the PD that the access was checked against */
    uint32_t outer;    /* the key whose list names the key; MKEY_NONE: no list does */
    uint32_t qpn;      /* the QP that may not use the key; 0: that was not the reason */
    uint64_t va, len;
};

/* Whether the function's pending work may still include answers that peers wait for
 * (model/port/owing.c). */
struct owing {
    bool begun; /* a round of the mark is under way */
    bool owes;  /* peers have to wait for this function */
    bool awaits_credit;
    /* the credit class that the mark waits for, and how often it has waited */
    unsigned credit_class, waits;
    uint64_t next_epoch; /* epoch of the uplink in which the function may begin a round again */
    /* the mark on the ready list: work before it may be an answer that is owed */
    struct work round;
};

struct hca {
    const struct hca_host_ops *ops;
    void *host;
    struct hca_limits limits;
    /* memory that the objects take; the only limits are the owner's (memory) and the pages'
     * (icm) */
    struct ledger memory, icm;

    /* the objects, each kind in its number space */
#define SPACE(table, ...) struct obj_table table;
#define KIND(...)
#define PART(...)
#include "model/core/obj_classes.def"
#undef SPACE
#undef KIND
#undef PART
    struct blueflame *blueflame; /* model/queue/blueflame.h */
    struct rdma *rdma;           /* model/rdma/rdma.h */
    struct steering *steering;
    struct pace_rate *pace_rates; /* model/port/pace.h; NULL: no rate was ever set */
    struct ets *ets;              /* model/port/ets.h; NULL: traffic classes are not divided */
    struct eth_vxlan_ports vxlan; /* UDP ports (model/eth/vxlan_ports.h) */
    uint64_t delay_drop_ns;       /* how long a frame waits for a WQE (model/eth/eth_delay.h) */
    size_t delayed_bytes;         /* what the waiting frames take */
    struct eth_lro *lro;          /* sessions of LRO (model/eth/eth_lro.h); NULL: no TIR has it */
    unsigned hairpin_sqs, hairpin_rqs; /* how many there are (model/eth/eth_hairpin.h) */
    bool sniffs_tx;   /* sniffers of sent frames exist, or rules for sent RoCE frames */
    bool steers_roce; /* sniffers exist, or rules that a RoCE frame passes before its QP */
    struct q_counter *scratch_q_counter; /* counts for objects that name no counter set */
    uint32_t cq_overruns;                /* how often a CQ had no room for a CQE */
    uint32_t eq_overruns;                /* how often an EQ had no room for an event that is lost */
    struct cqe_session *open_sessions;   /* compressed CQEs not yet written (cqe_compress.h) */
    /* per event type: a bit for each EQ that takes events of the type */
    uint64_t eqs_for[256][HCA_MAX_EQS / 64];

    const struct mem_space *spaces[HCA_MEM_SPACES]; /* model/memory/place.h */
    uint8_t *device_memory;       /* the memory behind MEM_SPACE_DEVICE (model/memory/memic.h) */
    bool device_memory_is_owners; /* else it exists while there are allocations */
    struct sw_icm **sw_icm_owner; /* of each block of steering memory (model/memory/sw_icm.h) */
    /* cached by key; a change of any key empties the cache */
    struct key_run key_runs[HCA_KEY_RUNS];
    unsigned transforms;     /* keys with a descriptor (model/memory/transform.h) */
    struct sig *sig_pending; /* list of the keys with an error that is not reported */
    uint32_t psv_stamp;      /* of the last value of a signature value (psv_set()) */
    struct pager *pager;     /* NULL: no pager */
    /* on-demand paging as the driver has set it up (SET_HCA_CAP): the scheme, and for each
     * transport the operations that may fault (enum fault_op; index: enum paging_transport) */
    bool memory_faults;
    uint8_t may_fault[PAGING_TRANSPORTS];
    struct mem_fault fault; /* the last access that returned MEM_FAULT */

    struct real_time *real_time; /* the card's (model/core/real_time.h) */
    struct card *card;           /* the card whose function this is (model/card/card.h) */
    struct vport *vport;         /* the function's vport on that card */
    uint64_t event_count;        /* async events delivered, for tests and traces */

    /* All costs are counted in pieces. A call of the host for DMA, a frame received or sent, a
     * frame delivered, and HCA_PIECE_ENTRIES entries of a list in the device's own memory cost one
     * piece each. */
    uint64_t pieces;      /* all pieces spent so far */
    uint64_t pieces_end;  /* the part of the turn that runs now ends at this count */
    uint64_t turn_end;    /* from this count on, the turn looks for no more frames */
    uint64_t most_pieces; /* the most pieces that one turn has spent */
    unsigned timers_held; /* turns in a row in which timers waited for frames */

    /* special keys: the reserved lkey that means "bus address, no translation" */
    uint32_t resd_lkey, null_mkey;

    struct work ready, rx_waiting, late; /* list heads */
    /* list heads by the credit class that the work waits for */
    struct work tx_waiting[HCA_WAIT_CLASSES];
    /* likewise, for work that had sent something; it waits behind tx_waiting */
    struct work tx_served[HCA_WAIT_CLASSES];
    uint64_t waits;            /* places given so far: work.waits_since */
    uint64_t tx_frames;        /* frames sent so far */
    uint64_t tx_frames_before; /* tx_frames when the running work began */
    unsigned credit_class;     /* the credit class that the last failed reservation lacks */
    bool tx_far;               /* another processor reads the frame that is being built */
    /* a bit for each credit class that got credit since the last port_owe() */
    uint64_t credits_back;
    struct hca_timer late_timer; /* runs the work on the late list */
    struct hca_timer hold_timer; /* looks at holds for which work waits (model/port/pause.c) */
    GPtrArray *timers;           /* heap of struct hca_timer by deadline */
    bool running;                /* inside hca_run() */
    struct owing owing;          /* model/port/owing.c */
    bool holding;                /* a call works on objects: none may be freed */
    bool off; /* a reset or the end is due: the function does not call the host any more */
    struct hca_reset reset; /* progress of the reset */
    /* the driver has told where the host takes tunneled operations (SET_TUNNELED_OPERATIONS) */
    bool tunnels;
    /* the response of an 8-byte atomic is big endian, as the driver requested */
    bool big_endian_replies;
    /* cache lines of the host have 128 bytes, as the driver said; else 64 (model/memory/end_pad.h)
     */
    bool long_cache_lines;
    /* READ data is always read when its answer gets its turn, never at once with the request */
    bool late_reads;
    uint8_t tracing;        /* enum hca_traces: how the owner wants a trace */
    uint64_t traced_frames; /* frames of the trace so far: a frame's number in it */
    bool settles;           /* the host has dma_expect() and dma_settle(): fw_host_settles() */
    struct log_bucket logged[HCA_LOG_TRACE];
    struct mem_refusal refused; /* the last access that a key refused, for the log */
    struct inject *inject;      /* faults that the owner wants (inject.h), or NULL */
};

/* The operand sizes that dma_atomic() supports; see hca_limits.pci_atomics. */
#define HCA_PCI_ATOMICS 3u

/* Puts work at the end of the ready list (no effect if it is on a list already) and wakes the
 * owner. */
void hca_schedule(struct hca *hca, struct work *work);
/* Runs work at once, whatever list it is on. Called by work that decides which of several may run.
 */
void hca_run_now(struct hca *hca, struct work *work);
/* Called from work->run(): runs the work again in this turn, after the turn has looked for frames
 * once more. False: the turn is used up. */
bool hca_wait_frames(struct hca *hca, struct work *work);

/* Asks the owner for a turn, if none is under way. */
void hca_wake(struct hca *hca);
/* Parks work until the wire has credit of class hca->credit_class, which the work's reservation did
 * not find. Work that has sent nothing this time gets the credit before work that has sent
 * something, and the work that has waited longest is the first to try. */
void hca_wait_tx(struct hca *hca, struct work *work);
/* The same, but behind all work that waits for this credit class now. */
void hca_wait_tx_last(struct hca *hca, struct work *work);
/* Parks work that nothing wakes. The work runs again after a quarter of a second, or later if more
 * than 256 works wait in this way. */
void hca_wait_late(struct hca *hca, struct work *work);
/* Takes work off the list that it is on. If no late work is left, stops the late timer. */
void hca_unschedule_late(struct hca *hca, struct work *work);
/* Takes work off whatever list it is on. */
void hca_unschedule(struct work *work);
/* Called by the port: moves work that waits for credit back to the ready list. hca_credits_back()
 * moves the work of the given credit classes (a bit each), hca_tx_ready() that of all classes,
 * hca_holds_over() the work that waits for the end of holds of priorities (a bit each). */
void hca_credits_back(struct hca *hca, uint64_t classes);
void hca_holds_over(struct hca *hca, unsigned priorities);
void hca_tx_ready(struct hca *hca);

/* Zeroed memory for an object of a kind, or for something that is counted as an object
 * (model/core/ledger.h). NULL: refused. */
void *hca_alloc(struct hca *hca, enum obj_kind kind, size_t size);
void hca_free(struct hca *hca, enum obj_kind kind, void *block, size_t size);

static inline uint64_t hca_now(struct hca *hca)
{
    return hca->ops->clock_ns(hca->host);
}

/* Arms or moves a timer to an absolute time; fire() runs in hca_run() at or after it. */
void hca_timer_set(struct hca *hca, struct hca_timer *timer, uint64_t deadline_ns);
void hca_timer_stop(struct hca *hca, struct hca_timer *timer);

/* Entries of a list in the device's own memory that cost the same as one call of the host. */
#define HCA_PIECE_ENTRIES 64

static inline void hca_spend(struct hca *hca, uint64_t pieces)
{
    hca->pieces += pieces;
}

/* Whether the turn has room for one more step that does not call the host. */
static inline bool hca_has_room(const struct hca *hca)
{
    return hca->pieces < hca->pieces_end;
}

/* Whether the running work may do one more step in this turn. */
static inline bool hca_may_go_on(const struct hca *hca)
{
    return hca_has_room(hca) && !hca->off;
}

/* These call the host's callbacks (model/core/host.h), unless the function is off. */
static inline bool hca_dma_read(struct hca *hca, uint64_t addr, void *buf, size_t len)
{
    hca_spend(hca, 1);
    return !hca->off && hca->ops->dma_read(hca->host, addr, buf, len);
}

/* The same for data that goes into a frame. */
static inline bool hca_dma_read_to_send(struct hca *hca, uint64_t addr, void *buf, size_t len)
{
    if (len < HOST_FAR_BYTES || !hca->tx_far || hca->off) {
        return hca_dma_read(hca, addr, buf, len);
    }
    hca_spend(hca, 1);
    return hca->ops->dma_read_far(hca->host, addr, buf, len);
}

static inline bool hca_dma_write(struct hca *hca, uint64_t addr, const void *buf, size_t len)
{
    hca_spend(hca, 1);
    return !hca->off && hca->ops->dma_write(hca->host, addr, buf, len);
}

/* Announces that so many bytes of a message are still to be read, to a host that wants to know. */
static inline void hca_dma_expect(struct hca *hca, size_t len)
{
    if (G_UNLIKELY(hca->settles) && !hca->off) {
        hca->ops->dma_expect(hca->host, len);
    }
}

/* Called before an answer leaves that acknowledges requests: what they wrote is in memory by then.
 */
static inline void hca_dma_settle(struct hca *hca)
{
    if (G_UNLIKELY(hca->settles) && !hca->off) {
        hca->ops->dma_settle(hca->host);
    }
}

static inline void *hca_dma_map(struct hca *hca, uint64_t addr, size_t *len, bool is_write)
{
    if (hca->off || !hca->ops->dma_map) {
        return NULL;
    }
    hca_spend(hca, 1);
    return hca->ops->dma_map(hca->host, addr, len, is_write);
}

static inline void hca_dma_unmap(struct hca *hca, void *ptr, size_t len, bool is_write)
{
    hca->ops->dma_unmap(hca->host, ptr, len, is_write);
}

static inline bool hca_dma_atomic(struct hca *hca, uint64_t addr, size_t len,
                                  struct host_atomic *op)
{
    hca_spend(hca, 1);
    return !hca->off && hca->ops->dma_atomic(hca->host, addr, len, op);
}

bool inject_interrupt(struct hca *hca, unsigned vector); /* model/core/inject.h */

static inline void hca_irq(struct hca *hca, unsigned vector)
{
    if (!hca->off && !(G_UNLIKELY(hca->inject) && inject_interrupt(hca, vector))) {
        hca->ops->irq(hca->host, vector);
    }
}

/* Writes a line to the owner's log. A guest can cause any line at will. Therefore each level except
 * the trace is limited to a burst of lines and then one line per second; the next line that is
 * written says how many were left out (model/core/log.c). */
void hca_log(struct hca *hca, enum hca_log_level level, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* Logs how many lines were left out since the last written line. */
void hca_log_end(struct hca *hca);

#endif
