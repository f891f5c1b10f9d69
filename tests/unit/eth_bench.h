/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One HCA for the tests of its Ethernet half, on a rig (rig.h); the test holds the far end of its
 * cable. Objects are made by the model's own functions; WQEs are written and CQEs read as a driver
 * does it. The checksums that frames must have are computed here, independently of the code under
 * test.
 */
#ifndef HCASIM_TESTS_ETH_BENCH_H
#define HCASIM_TESTS_ETH_BENCH_H

#include "tests/unit/rig.h"
#include "wire/port.h"

#define BENCH_FRAMES  128
#define BENCH_CQ_LOG  9
#define BENCH_LOG_SQ  4 /* basic blocks */
#define BENCH_LOG_RQ  3 /* WQEs */
#define BENCH_RX_SIZE 2048

/* user_index of every queue made here. */
#define BENCH_SQ_INDEX 0x51515
#define BENCH_RQ_INDEX 0x52525

struct bench_frame {
    size_t len;
    uint8_t data[WIRE_FRAME_MAX];
};

struct bench {
    struct rig rig;
    struct rig_eq eq; /* EQ of all asynchronous events */
    struct wire_port *wire, *far;
    unsigned num_frames; /* frames that came out of the HCA */
    struct bench_frame *frames;
    uint32_t tdn, tisn;
    int mini_format;        /* PRM_MINI_CQE_FORMAT_ of the CQs made here; 0: they do not compress */
    uint8_t ts_format;      /* PRM_TS_FORMAT_ of the queues made here */
    bool swp, multi_packet; /* the SQs made here allow that */
    uint8_t rq_type;    /* PRM_WQ_TYPE_ of the receive queues made here; CYCLIC from the start */
    uint8_t table_type; /* PRM_FLOW_TABLE_TYPE_ of the tables made here; 0 is NIC_RX */
};

/* A queue with its own CQ. */
struct bench_queue {
    struct bench *bench;
    uint32_t num, cqn;
    uint64_t ring, dbr, cq_ring, cq_dbr;
    unsigned log_size, log_stride;
    uint16_t pi;
    uint32_t cq_ci;
};

struct bench_sge {
    uint64_t addr;
    uint32_t len, key; /* key 0: the reserved lkey */
};

/* cs_flags of the Ethernet segment: checksums that the device fills in. */
#define CS_L3_INNER 0x10
#define CS_L4_INNER 0x20
#define CS_L3       0x40
#define CS_L4       0x80

struct bench_wr {
    uint8_t opcode; /* PRM_WQE_OPCODE_ */
    uint8_t cs_flags;
    bool unsignaled, insert_vlan, svlan;
    uint16_t mss, vlan_tci;
    /* the software parser's offsets, in words: outer L3, outer L4, inner L3, inner L4 */
    uint8_t swp[4], swp_flags;
    const uint8_t *hdr; /* inline headers */
    size_t hdr_len;
    struct bench_sge sge[4];
    const uint8_t *inline_data[4]; /* NULL, or the element's data: it is put into the WQE */
    unsigned num_sge;
};

extern const uint8_t bench_mac[6], bench_peer_mac[6];

struct bench *bench_new(void);
/* Makes a bench on function `number` of a card (rig_init_on()). The first function has the
 * cable. */
struct bench *bench_new_on(struct card *card, unsigned number);
void bench_free(struct bench *b);

/* Runs HCA and cable until nothing is left to do. The frames that came out are in b->frames. */
void bench_run(struct bench *b);
/* Puts a frame on the cable to the HCA. */
void bench_put(struct bench *b, const uint8_t *frame, size_t len);
/* Sends a frame over the cable to the HCA, and runs. */
void bench_rx(struct bench *b, const uint8_t *frame, size_t len);

uint64_t bench_mem(struct bench *b, const void *data, size_t len);

/* Makes a TIS of a transport domain. */
uint32_t bench_tis(struct bench *b, uint32_t tdn);
/* MODIFY_TIS: its queues have this priority. */
void bench_set_priority(struct bench *b, uint32_t tisn, unsigned priority);
uint32_t bench_td(struct bench *b);

/* Make queues in state RDY. rqc, sqc: a context with further fields set, or NULL. */
void bench_sq_new(struct bench *b, uint32_t tisn, struct bench_queue *sq);
void bench_rq_new(struct bench *b, const struct prm_rqc *rqc, struct bench_queue *rq);
void bench_sq_new_sized(struct bench *b, uint32_t tisn, unsigned log_size, struct bench_queue *sq);
void bench_rq_new_sized(struct bench *b, const struct prm_rqc *rqc, unsigned log_size,
                        struct bench_queue *rq);
enum syn bench_sq_move(struct bench_queue *sq, uint8_t from, uint8_t to);
/* Makes a send queue in the error state ready again, as mlx5e does. Its next WQE is the first. */
void bench_sq_revive(struct bench_queue *sq);
/* Posts a WQE that must fail with this syndrome after so many frames, and revives the queue. */
void bench_expect_failure(struct bench_queue *sq, const struct bench_wr *wr, uint8_t syndrome,
                          unsigned sent);
enum syn bench_rq_move(struct bench_queue *rq, uint8_t from, uint8_t to);

/* Writes a WQE; returns its control segment. */
void *bench_write_wqe(struct bench_queue *sq, const struct bench_wr *wr);
void bench_ring_sq(struct bench_queue *sq);
/* Writes a WQE, rings the doorbell, and runs. */
void bench_send(struct bench_queue *sq, const struct bench_wr *wr);
/* The same for a frame with metadata, for flow tables. Returns how many frames came out. The WQE
 * must complete in any case. */
unsigned bench_send_metadata(struct bench_queue *sq, const struct bench_wr *wr, uint32_t metadata);
/* Posts a receive WQE of one segment. */
void bench_post_recv(struct bench_queue *rq, uint64_t addr, uint32_t len);
/* Returns the next CQE, a cqe64 or err_cqe (valid until the ring wraps), or NULL. */
const void *bench_cqe(struct bench_queue *queue);
/* Expects a CQE of that opcode, syndrome (0: none) and wqe_counter. */
void bench_expect(struct bench_queue *queue, uint8_t opcode, uint8_t syndrome, uint16_t counter);
void bench_expect_none(struct bench_queue *queue);
/* Expects the event WQ_CATAS_ERROR about a queue of that kind (PRM_EVENT_QUEUE_TYPE_). */
void bench_expect_fatal(struct bench_queue *queue, uint8_t kind);

/* -- steering: each function returns the number of the object that it made */
uint32_t bench_table(struct bench *b, unsigned level, unsigned log_size);
/* A root table that leads every frame to a table. */
uint32_t bench_root_to(struct bench *b, uint32_t table);
/* mask: NULL for none. */
uint32_t bench_group(struct bench *b, uint32_t table, uint32_t start, uint32_t end,
                     const struct prm_fte_match_set_lyr_2_4 *mask);
/* Makes a group of the entry 0 only. enable: match_criteria_enable. */
enum syn bench_try_group(struct bench *b, uint32_t table, uint8_t enable,
                         const struct prm_fte_match_param *mask, uint32_t *id);
struct bench_dest {
    uint8_t type; /* PRM_FLOW_DESTINATION_TYPE_ */
    uint32_t id;
};
struct bench_fte {
    uint32_t table, group, index;
    const struct prm_fte_match_set_lyr_2_4 *value; /* or NULL */
    const struct prm_fte_match_param *param;       /* or NULL; instead of value */
    uint16_t action; /* 0: FWD_DEST, and also COUNT if there are counters */
    uint32_t flow_tag;
    struct bench_dest dests[40];
    unsigned num_dests;
    uint32_t counters[8];
    unsigned num_counters;
    uint8_t modify; /* modify_enable_mask; 0: makes a new entry */
    bool any_level; /* ignore_flow_level */
    uint16_t uid;
};
enum syn bench_fte_set(struct bench *b, const struct bench_fte *fte);
uint32_t bench_direct_tir(struct bench *b, uint32_t rqn);
/* Directs all frames to the TIR. */
void bench_catch_all(struct bench *b, uint32_t tirn);

/* -- frames */
struct bench_pkt {
    const uint8_t *dmac; /* NULL: bench_mac */
    bool vlan;
    uint16_t tci;
    uint8_t ip_version; /* 4 or 6 */
    uint8_t proto;      /* 6 or 17 */
    uint8_t src[16], dst[16];
    uint16_t sport, dport;
    uint8_t tcp_flags;
    uint32_t seq;
    uint16_t id;
    bool no_csum; /* checksum fields contain 0xdead */
    size_t payload;
};
/* Writes the frame, with a payload of increasing bytes; returns its length. */
size_t bench_build(uint8_t *frame, const struct bench_pkt *pkt);
/* Returns the length of what bench_build() puts before the payload. */
size_t bench_headers(const struct bench_pkt *pkt);
/* Returns the ones' complement sum, not inverted. */
uint16_t bench_sum(const uint8_t *p, size_t len, uint32_t start);
/* Returns whether an IP frame's checksums and lengths are right (IPv4 header, TCP or UDP). */
bool bench_sums_ok(const uint8_t *frame, size_t len);

#endif
