/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One HCA: its objects, its pending work, its timers.
 *
 * Everything that happens to an HCA happens inside hca_run() or a call of its owner, one event at a
 * time, so nothing here locks. Work that cannot be done on the spot (a QP with WQEs to send, a
 * command to execute) is a struct work on the ready list; hca_run() takes them in turn.
 * Work that found no credit on the wire waits on a tx list until there is some of that class again.
 */
#ifndef HCASIM_MODEL_HCA_H
#define HCASIM_MODEL_HCA_H

#include <glib.h>
#include "model/core/fault.h"
#include "model/core/host.h"
#include "model/core/ledger.h"
#include "model/core/obj.h"
#include "model/core/syndrome.h"

struct blueflame;
struct card;
struct hca;
struct mem_space;
struct q_counter;
struct rdma;
struct steering;
struct vport;

/* Something that wants the HCA's attention. Zero-initialized means idle. */
struct work {
    struct work *prev, *next; /* NULL when on no list */
    /* Does one step at least, and more as long as hca_may_go_on(). Reschedules itself by
     * hca_schedule() or hca_wait_tx() if there is more to do. */
    void (*run)(struct hca *hca, struct work *work);
};

struct hca_timer {
    uint64_t deadline; /* clock_ns(); valid while armed */
    unsigned pos;      /* place in the heap + 1; 0: not armed */
    void (*fire)(struct hca *hca, struct hca_timer *timer);
};

/* How much of a level of the log was used up lately (model/core/log.c). */
struct log_bucket {
    uint64_t since;    /* clock_ns() */
    uint64_t left_out; /* lines, since one was written */
    unsigned lines;
};

/* Number spaces and sizes; filled in by fw from the profile, and what capabilities report. */
struct hca_limits {
    unsigned log_max_qp, log_max_cq, log_max_srq, log_max_mkey, log_max_pd, log_max_eq, log_max_uar;
    unsigned log_max_umem, log_max_uctx;
    unsigned qpn_start; /* which of its QPNs it gives out first */
    unsigned log_max_qp_sz, log_max_cq_sz, log_max_srq_sz, log_max_eq_sz;
    unsigned log_max_msg;                          /* largest message, 30 */
    unsigned log_max_ra_res_qp, log_max_ra_req_qp; /* READ/atomic resources per QP */
    unsigned num_msix;
    unsigned max_gid;                /* entries of the RoCE address table */
    uint32_t max_sq_wqe, max_rq_wqe; /* bytes of one WQE */
    unsigned dc_responders; /* sessions that the DC targets of the function have at a time */
    uint8_t dc_version;     /* of the DC transport: v0, v1 */
    unsigned pci_atomics;   /* that the host's CPUs see as such: bit 0 of 4 bytes, bit 1 of 8 */
    bool inline_l2;         /* a send WQE of an SQ must carry the layer 2 header itself */
    bool early_packets;     /* reliable QPs may take packets out of order: qpc.dp_ordering */
};

enum {
    HCA_CREDIT_CLASSES = 64, /* of the wire, that work can wait for (wire_tx_credits()) */
    HCA_MEM_SPACES = 2,      /* enum mem_space_id */
    HCA_MAX_EQS = 128,
    HCA_KEY_RUNS = 16,
};

/* A reset is done in parts (model/card/hca.c). */
struct hca_reset {
    bool under_way;
    uint32_t flow_table; /* the next to be emptied */
    unsigned groups;     /* the next slot of multicast groups */
    unsigned space;      /* the next of obj_spaces, */
    uint32_t num;        /* and the next number in it */
};

/* A run of a key's memory as it was found last (model/memory/mkey_access.c). */
struct key_run {
    uint32_t key, pdn; /* as an access names it; the PD that it is for */
    uint8_t rights;    /* enum mem_access */
    uint8_t space;     /* enum mem_space_id */
    uint64_t va, len;  /* in the key; len 0: nothing was */
    uint64_t address;  /* where it is in that space */
};

/* Whether answers to peers may still be among a function's work. */
struct owing {
    bool begun; /* the mark is under way */
    bool owes;  /* and on the ready list */
    bool awaits_credit;
    unsigned credit_class, waits; /* of which class, and how often it has waited for some */
    uint64_t next_epoch;          /* of the uplink, in which it may come to owe again */
    struct work round;            /* what is ready before this one may be an answer that is owed */
};

struct hca {
    const struct hca_host_ops *ops;
    void *host;
    struct hca_limits limits;
    struct ledger memory, icm; /* what the objects take; no limit but the owner's and the pages' */

    /* objects, each in its number space */
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
    bool sniffs_tx;   /* there are sniffers of what is sent */
    bool steers_roce; /* there are sniffers, or rules that RoCE passes before a QP gets it */
    struct q_counter *scratch_q_counter;     /* counts what names no set */
    uint32_t cq_overruns;                    /* CQs that had no room for a CQE */
    uint64_t eqs_for[256][HCA_MAX_EQS / 64]; /* a bit for each EQ that wants events of a type */

    const struct mem_space *spaces[HCA_MEM_SPACES]; /* model/memory/place.h */
    struct key_run key_runs[HCA_KEY_RUNS];          /* by key; a change of any key empties them */
    struct pager *pager;                            /* NULL: nobody brings pages in */
    struct mem_fault fault;                         /* of the access that came to MEM_FAULT last */

    struct card *card;    /* that it is a function of (model/card/card.h) */
    struct vport *vport;  /* where it stands there */
    uint64_t event_count; /* async events delivered, for tests and traces */

    /* What everything costs is counted in pieces: a call of the host for DMA, a frame received or
     * sent, a frame delivered, HCA_PIECE_ENTRIES entries of a list in our own memory. */
    uint64_t pieces;      /* spent, ever */
    uint64_t pieces_end;  /* who is at work goes on until then */
    uint64_t turn_end;    /* no more frames are looked for then */
    uint64_t most_pieces; /* in one turn */
    unsigned timers_held; /* turns in a row in which timers waited for frames */

    /* special keys: the reserved lkey that means "bus address, no translation" */
    uint32_t resd_lkey, null_mkey;

    struct work ready, rx_waiting, late;        /* list heads */
    struct work tx_waiting[HCA_CREDIT_CLASSES]; /* likewise, by the credit that they wait for, */
    struct work tx_served[HCA_CREDIT_CLASSES];  /* before those who have sent something */
    uint64_t tx_frames;                         /* sent so far, */
    uint64_t tx_frames_before;                  /* and when the work began that runs now */
    unsigned credit_class;       /* the one that the last reservation waits for that failed */
    bool tx_far;                 /* a frame is being built that another processor reads */
    uint64_t credits_back;       /* in these classes, since port_owe() has looked */
    struct hca_timer late_timer; /* of what is on the last one */
    GPtrArray *timers;           /* heap of struct hca_timer by deadline */
    bool running;                /* inside hca_run() */
    struct owing owing;          /* model/port/owing.c */
    bool holding;                /* somebody is at work on objects: none may be freed */
    bool off;                    /* a reset or the end is due: the host is reached no more */
    struct hca_reset reset;      /* how far one has come */
    bool big_endian_replies;     /* what an atomic of 8 bytes brings, as the driver wishes it */
    bool late_reads;             /* READ data is taken when its answer has its turn, always */
    bool tracing;                /* the owner wants a trace (model/core/trace.h) */
    struct log_bucket logged[HCA_LOG_TRACE];
};

/* What dma_atomic() does. */
#define HCA_PCI_ATOMICS 3u

/* Puts work at the end of the ready list (no effect if it is on a list already) and wakes the
 * owner. */
void hca_schedule(struct hca *hca, struct work *work);
/* From work->run(): runs it again after another look whether frames came, in this turn. False: the
 * turn is used up. */
bool hca_wait_frames(struct hca *hca, struct work *work);

/* Asks the owner for a turn, if none is under way. */
void hca_wake(struct hca *hca);
/* Parks work until the wire has the credit, of hca->credit_class, that its reservation did not
 * find. Work that got nothing this time has it before work that has sent something. */
void hca_wait_tx(struct hca *hca, struct work *work);
/* The same, behind all that waits for such credit now. */
void hca_wait_tx_last(struct hca *hca, struct work *work);
/* Parks work that nothing will wake: it is run again after a quarter of a second, or later where
 * more than 256 wait so. */
void hca_wait_late(struct hca *hca, struct work *work);
/* Takes such work off whatever list it is on, and stops the clock of those if it was the last one.
 */
void hca_unschedule_late(struct hca *hca, struct work *work);
/* Takes work off whatever list it is on. */
void hca_unschedule(struct work *work);
/* Moves what waits for the wire back to the ready list (the port calls it): what waits for credit
 * of these classes, a bit each, or of any. */
void hca_credits_back(struct hca *hca, uint64_t classes);
void hca_tx_ready(struct hca *hca);

/* Zeroed memory for a kind's object or what is counted as one (model/core/ledger.h). NULL: refused.
 */
void *hca_alloc(struct hca *hca, enum obj_kind kind, size_t size);
void hca_free(struct hca *hca, enum obj_kind kind, void *block, size_t size);

static inline uint64_t hca_now(struct hca *hca)
{
    return hca->ops->clock_ns(hca->host);
}

/* Arms or moves a timer to an absolute time; fire() runs in hca_run() at or after it. */
void hca_timer_set(struct hca *hca, struct hca_timer *timer, uint64_t deadline_ns);
void hca_timer_stop(struct hca *hca, struct hca_timer *timer);

/* Entries of a list in our own memory that cost what one call of the host does. */
#define HCA_PIECE_ENTRIES 64

static inline void hca_spend(struct hca *hca, uint64_t pieces)
{
    hca->pieces += pieces;
}

/* Whether the turn has room for one more step of what does not reach the host. */
static inline bool hca_has_room(const struct hca *hca)
{
    return hca->pieces < hca->pieces_end;
}

/* Whether who is at work may do one more step in this turn. */
static inline bool hca_may_go_on(const struct hca *hca)
{
    return hca_has_room(hca) && !hca->off;
}

/* The host's callbacks (model/core/host.h), which a function that is off does not reach. */
static inline bool hca_dma_read(struct hca *hca, uint64_t addr, void *buf, size_t len)
{
    hca_spend(hca, 1);
    return !hca->off && hca->ops->dma_read(hca->host, addr, buf, len);
}

/* The same of what goes into a frame. */
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

static inline void hca_irq(struct hca *hca, unsigned vector)
{
    if (!hca->off) {
        hca->ops->irq(hca->host, vector);
    }
}

/* A line for the owner's log. A guest can cause any of them at will: of each level but a trace's no
 * more are written than a burst and then one a second; the next one tells how many were left out
 * (model/core/log.c). */
void hca_log(struct hca *hca, enum hca_log_level level, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* Tells what was left out and not told yet. */
void hca_log_end(struct hca *hca);

#endif
