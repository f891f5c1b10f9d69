/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user-space mlx5 driver: the bring-up that mlx5_core does, and the queues that verbs need.
 *
 * It accesses its device only through BAR0, DMA memory and waiting (guest-lib/drv/pci.h), and uses
 * the real command interface. Functions that issue commands return the command's status
 * (PRM_CMD_STATUS_OK is 0); drv->syndrome then has the syndrome of the last command. DRV_TIMEOUT:
 * the device did not answer in time.
 *
 *   drv.c      open, close: the initialization segment, pages, capabilities
 *   drv_cmd.c  the command queue
 *   drv_eq.c   event queues
 *   drv_obj.c  PD, UAR, mkey, GID
 *   drv_cq.c   completion queues
 *   drv_qp.c   SRQs, queue pairs and their states
 *   drv_wqe.c  posting work
 *   drv_db.c   doorbell records
 *   drv_umr.c  the driver's own UMR queue
 */
#ifndef HCASIM_GUEST_LIB_DRV_DRV_H
#define HCASIM_GUEST_LIB_DRV_DRV_H

#include <glib.h>
#include "guest-lib/drv/pci.h"
#include "prm/prm.h"

#define DRV_TIMEOUT     (-110)
#define DRV_UNDELIVERED (-5)           /* drv_delivery_status() says why */
#define DRV_CMD_TIMEOUT 10000000000ull /* ns */

/* The slots of the command queue that are in use. */
enum {
    DRV_SLOT_CMD,
    DRV_SLOT_PAGES,
    DRV_SLOTS
};

/* Memory that the device and the driver share. */
struct drv_mem {
    void *ptr;
    uint64_t bus;
    size_t size;
};

struct drv_event {
    uint8_t type, sub_type;
    uint32_t num; /* the CQ, QP, SRQ or queue that the event is about */
    union {
        uint8_t bytes[28];
        struct prm_qp_events queue[1];
        struct prm_cq_error cq[1];
        struct prm_pages_req_event pages[1];
        struct prm_wqe_associated_page_fault_event fault_wqe[1];
        struct prm_rdma_page_fault_event fault_rdma[1];
        struct prm_memory_page_fault_event fault_memory[1];
    } data; /* which member: see type, and sub_type of a page fault (PRM_PFAULT_SUBTYPE_) */
};

struct drv_eq {
    struct drv_mem ring;
    uint32_t eqn, log_size, ci;
};

/* Interrupt vectors: the EQ for asynchronous events has vector 0; the i-th EQ for completions only
 * has vector i + 1. */
#define DRV_COMP_EQS    8 /* at most */
#define DRV_ALL_VECTORS UINT32_MAX

struct drv {
    struct pci_dev dev;
    struct drv_mem cmdq, mailboxes[DRV_SLOTS];
    unsigned cmd_log_stride;
    uint8_t token;
    uint32_t syndrome;             /* of the last command */
    uint16_t uid;                  /* put into every command that has the field; 0 is the kernel */
    GHashTable *pages;             /* bus address -> driver's pointer: pages the firmware holds */
    struct prm_cmd_hca_cap cap[1]; /* general device capabilities, current */
    /* The same for other capability sections; all zero if the device does not have the section. */
    struct prm_per_protocol_networking_offload_caps eth_cap[1];
    struct prm_roce_cap roce_cap[1];
    struct prm_device_event_cap event_cap[1];
    struct prm_atomic_caps atomic_cap[1];
    struct prm_cmd_hca_cap_2 cap_2[1];
    struct prm_device_mem_cap device_mem_cap[1];
    struct prm_qos_cap qos_cap[1];
    struct prm_flow_table_nic_cap flow_cap[1];
    struct prm_odp_cap odp_cap[1]; /* as handle_hca_cap_odp() sets it */
    struct drv_eq eq;              /* async events, and completions of the driver's own CQs */
    struct prm_crypto_cap crypto_cap[1];
    struct drv_eq comp_eq[DRV_COMP_EQS];
    unsigned num_comp_eqs;
    struct drv_eq fault_eq; /* page faults; without a ring: not needed yet */
    GArray *events;         /* struct drv_event received but not taken; no page requests */
    GArray *db_pages;       /* struct drv_mem with doorbell records (drv_db.c) */
    GArray *free_dbs;       /* free doorbell records */
    uint32_t uarn, pdn;
    uint32_t resd_lkey, dump_fill_mkey, null_mkey;
    struct drv_umr *umr; /* NULL: not needed yet */
    uint8_t mac[6];
    bool up;
    /* The function was reset while in use, or is gone. As with mlx5_core, commands that destroy
     * something succeed from then on, and all others fail; the device sees none of them. */
    bool lost;
};

/* Brings the function up. NULL: *err says at which step it stopped. */
struct drv *drv_open(struct pci_dev dev, GError **err);
/* The first steps of drv_open(), one by one. drv_attach(): sets up the initialization segment and
 * the command queue, sends no command yet; NULL: the function does not start. drv_init_hca(): sends
 * ENABLE_HCA to INIT_HCA; returns the name of the step that failed, with its status in *status, or
 * NULL. */
struct drv *drv_attach(struct pci_dev dev);
const char *drv_init_hca(struct drv *drv, int *status);
/* Tears the function down as modprobe -r does: all objects must have been destroyed. Returns the
 * number of firmware pages that the device failed to give back. */
unsigned drv_close(struct drv *drv);

struct drv_mem drv_alloc(struct drv *drv, size_t size);
void drv_free(struct drv *drv, struct drv_mem *mem);

/* -- commands -----------------------------------------------------------------------------------
 */

/* Executes a command and waits for it. in has opcode and op_mod set. Returns the status of the
 * output. */
int drv_cmd(struct drv *drv, const void *in, size_t in_len, void *out, size_t out_len);
int drv_cmd_slot(struct drv *drv, unsigned slot, const void *in, size_t in_len, void *out,
                 size_t out_len);
/* The steps of drv_cmd_slot(), for callers that read an entry or a mailbox before or after the
 * device. prepare: writes both, without signatures, and returns the number of input mailboxes; the
 * output mailboxes follow them. ring: returns 0, DRV_TIMEOUT or DRV_UNDELIVERED. output: returns
 * the command's status. */
unsigned drv_cmd_prepare(struct drv *drv, unsigned slot, const void *in, size_t in_len,
                         size_t out_len);
int drv_cmd_ring(struct drv *drv, unsigned slot);
int drv_cmd_output(struct drv *drv, unsigned slot, unsigned in_blocks, void *out, size_t out_len);
struct prm_cmd_queue_entry *drv_cmd_entry(const struct drv *drv, unsigned slot);
struct prm_cmd_if_box *drv_cmd_mailbox(const struct drv *drv, unsigned slot, unsigned i);
/* The delivery status of the last command (the queue entry's status field). 0: delivered. */
uint8_t drv_delivery_status(const struct drv *drv);
/* As drv_cmd(), for the many commands whose output is not read. */
int drv_cmd_simple(struct drv *drv, const void *in, size_t in_len);

/* Makes n EQs for completions, all of them disarmed. */
int drv_create_comp_eqs(struct drv *drv, unsigned n);
/* Makes the EQ for page faults, armed, unless it is there already (mlx5r_odp_create_eq()). It
 * shares the interrupt vector of asynchronous events, as an EQ of mlx5_eq_create_generic(). */
int drv_create_fault_eq(struct drv *drv);
/* Arms all EQs. Polling arms an EQ again whenever it has taken something. */
void drv_arm_eqs(struct drv *drv);
/* Takes EQEs from the EQs of these vectors (one bit each). Pages that the firmware asks for are
 * supplied; other events go to drv->events. drv_poll_events() does this for all vectors. */
void drv_poll_eqs(struct drv *drv, uint32_t vectors);
void drv_poll_events(struct drv *drv);
/* Waits for an event of that type about that object and takes it. False: none came in
 * timeout_ns. */
bool drv_wait_event(struct drv *drv, uint8_t type, uint32_t num, struct drv_event *event,
                    uint64_t timeout_ns);
#define DRV_ANY_NUM UINT32_MAX /* as num: any object */

/* -- objects ------------------------------------------------------------------------------------
 */

int drv_alloc_pd(struct drv *drv, uint32_t *pdn);
int drv_dealloc_pd(struct drv *drv, uint32_t pdn);

/* A key over bus-contiguous memory, with access rights as mkc bits. va: the address that the key
 * gives to the first byte. */
enum drv_access {
    DRV_LOCAL_WRITE = 1,
    DRV_REMOTE_READ = 2,
    DRV_REMOTE_WRITE = 4,
    DRV_REMOTE_ATOMIC = 8,
    DRV_ALL = 15,
};
struct drv_mr {
    uint32_t key; /* lkey and rkey */
    uint64_t va, len;
};
int drv_reg_mr(struct drv *drv, uint32_t pdn, const struct drv_mem *mem, uint64_t va, uint64_t len,
               unsigned access, struct drv_mr *mr);
int drv_dereg_mr(struct drv *drv, struct drv_mr *mr);
/* Fills in a CREATE_MKEY, whose bytes are 0, for an on-demand key with all rights on so many pages
 * (an even number, no fewer than [va, va + len) touches). Opcode and variant are missing, and the
 * page list, in which 0 is a page that is not there. */
void drv_fill_paged_key(struct prm_create_mkey_in *in, uint32_t pdn, uint64_t va, uint64_t len,
                        uint32_t pages);

/* Sets an entry of the RoCE address table: a v2 GID with the port's MAC. */
int drv_set_gid(struct drv *drv, unsigned index, const uint8_t gid[16]);
/* The same for RoCE v1. */
int drv_set_gid_v1(struct drv *drv, unsigned index, const uint8_t gid[16]);
/* Sets the real-time clock of a card that has one: nanoseconds since the epoch. */
int drv_set_real_time(struct drv *drv, uint64_t ns);
/* Sets the largest frame of the port, FCS included. */
int drv_set_port_mtu(struct drv *drv, unsigned bytes);
/* ::ffff:10.0.0.host, the GID that drv_open's callers use. */
void drv_ipv4_gid(uint8_t gid[16], uint8_t host);

/* Changes those fields of a key that mask names (bits PRM_MKEY_MASK_) to the values in mkc. Posts a
 * UMR on the driver's own queue and waits until it is done. BAD_PARAM: the device refused it. */
int drv_umr(struct drv *drv, uint32_t key, uint64_t mask, const struct prm_mkc *mkc);
/* A UMR that also writes translation entries, which it reads from the driver's buffer. */
#define DRV_UMR_ENTRIES ((size_t)64 * 1024) /* bytes of the buffer */
#define DRV_UMR_ALIGN   64u                 /* offset and len are multiples of this */
struct drv_umr_entries {
    uint32_t key;
    uint64_t mask;             /* fields of mkc that change */
    const struct prm_mkc *mkc; /* NULL: none */
    bool is_free;              /* the key must be free now; false: it must be in use */
    uint64_t offset;           /* bytes: where the entries lie in the key's list */
    size_t len;                /* bytes of entries; 0: none */
};
/* The buffer. Its content lasts until the next UMR. NULL: the queue cannot be made (*status). */
void *drv_umr_buffer(struct drv *drv, int *status);
int drv_umr_entries(struct drv *drv, const struct drv_umr_entries *umr);

/* -- completion queues --------------------------------------------------------------------------
 */

/*
 * Reads the last word of an entry of 64 bytes that the device writes (command, EQE, CQE). The
 * device writes this word last. It has the owner bit, and the rest of the entry is read after it.
 * In host byte order.
 */
#define DRV_OWNER 1u
static inline uint32_t drv_last_word(const void *entry)
{
    uint32_t last = __atomic_load_n((const uint32_t *)entry + 15, __ATOMIC_ACQUIRE);

    return GUINT32_FROM_BE(last);
}

struct drv_cq {
    struct drv_mem ring;
    uint32_t cqn, log_size, ci;
    unsigned cqe_size; /* 64, or 128, which has space for data in the CQE (drv_qp_attr) */
    uint32_t *dbr;     /* [0] consumer index, [1] arm word, big-endian */
    uint64_t dbr_bus;
    unsigned arm_sn;
};
int drv_create_cq(struct drv *drv, unsigned log_size, struct drv_cq *cq);
int drv_create_cq128(struct drv *drv, unsigned log_size, struct drv_cq *cq);
int drv_destroy_cq(struct drv *drv, struct drv_cq *cq);

/* One completion, with the fields of its CQE. */
struct drv_wc {
    uint8_t opcode;                    /* PRM_CQE_OPCODE_ */
    uint8_t send_opcode;               /* PRM_WQE_OPCODE_ of a send WQE */
    uint8_t syndrome, vendor_syndrome; /* errors */
    uint32_t qpn, byte_cnt, imm, src_qp, srqn;
    uint16_t wqe_counter;
    bool grh, solicited;
    struct prm_cqe64 raw[1];
};
/* Takes the next completion. False: there is none. */
bool drv_poll_cq(struct drv *drv, struct drv_cq *cq, struct drv_wc *wc);
/* Waits for a completion and takes it. False: none came in timeout_ns. */
bool drv_wait_cq(struct drv *drv, struct drv_cq *cq, struct drv_wc *wc, uint64_t timeout_ns);
/* Asks for an event at the next completion. */
void drv_arm_cq(struct drv *drv, struct drv_cq *cq, bool solicited_only);
/* Waits for that event. */
bool drv_wait_cq_event(struct drv *drv, struct drv_cq *cq, uint64_t timeout_ns);

/* -- queues -------------------------------------------------------------------------------------
 */

struct drv_srq {
    struct drv_mem ring;
    uint32_t srqn, log_size, log_stride;
    uint32_t head;    /* slot that is filled next */
    uint16_t counter; /* posted so far */
    uint32_t *dbr;
    uint64_t dbr_bus;
};

struct drv_qp_attr {
    uint8_t st; /* PRM_QP_ST_ */
    uint32_t pdn;
    struct drv_cq *send_cq, *recv_cq;
    struct drv_srq *srq; /* or NULL */
    bool no_rq;          /* without a receive queue */
    /* without a send queue: an XRC target, or a QP that its XRQ sends for */
    bool no_sq;
    bool fetches;            /* its XRQ sends for it (offload_type RNDV) */
    uint32_t xrcd;           /* XRC */
    uint8_t log_streams;     /* DCI; 0: no streams */
    unsigned log_sq, log_rq; /* WQEBBs, receive WQEs */
    unsigned max_recv_sge;   /* power of two */
    uint32_t user_index;     /* the QP's number in CQEs; 0: none */
    uint8_t cs_req, cs_res;  /* PRM_CS_REQ_, PRM_CS_RES_: how much data its CQEs may hold */
    /* cross channel: may wait, enable and calculate; its queues are managed */
    bool cd_master, cd_slave_send, cd_slave_receive;
};

struct drv_qp {
    struct drv *drv;
    struct drv_qp_attr attr;
    struct drv_mem ring;
    uint32_t qpn;
    uint32_t *dbr; /* [0] receive, [1] send counter */
    uint64_t dbr_bus;
    uint32_t log_rq_stride;
    size_t sq_offset;
    uint16_t sq_pi, rq_pi;
    uint32_t qkey;
    unsigned bf_toggle;
};

/* How to reach the peer. Fields that are 0 have usable defaults. */
struct drv_path {
    uint8_t mac[6], gid[16];
    unsigned sgid_index;
    uint32_t remote_qpn;
    uint32_t sq_psn, rq_psn;
    uint8_t mtu;                    /* 1: 256 ... 5: 4096; 0: 1024 */
    uint8_t ack_timeout;            /* 4.096 us << n; 0: 14 */
    uint8_t retry_count, rnr_retry; /* 0: 7; DRV_NO_RETRY: none */
    uint8_t min_rnr_nak;            /* 0: 1 */
    uint8_t log_rd_atom;            /* READs and atomics outstanding, both directions; 0: 4 */
    /* PRM_DP_ORDERING_, forced; if not the standard one, atomics have up to 8 bytes */
    uint8_t order;
    bool no_remote_access;
};
#define DRV_NO_RETRY 0xff

int drv_create_srq(struct drv *drv, uint32_t pdn, unsigned log_size, struct drv_srq *srq);
int drv_destroy_srq(struct drv *drv, struct drv_srq *srq);
/* Asks for one SRQ_RQ_LIMIT event, sent when fewer than limit WQEs are left. */
int drv_arm_srq(struct drv *drv, struct drv_srq *srq, uint16_t limit);
int drv_create_qp(struct drv *drv, const struct drv_qp_attr *attr, struct drv_qp *qp);
int drv_destroy_qp(struct drv_qp *qp);
int drv_query_qp(struct drv_qp *qp, struct prm_qpc *qpc);
/* Sends one state transition command (PRM_CMD_OP_..._QP) with a qpc that the caller filled in. */
int drv_modify_qp(struct drv_qp *qp, uint16_t opcode, uint32_t opt_mask, const struct prm_qpc *qpc);
int drv_qp_to_init(struct drv_qp *qp, const struct drv_path *path);
int drv_qp_to_rtr(struct drv_qp *qp, const struct drv_path *path);
int drv_qp_to_rts(struct drv_qp *qp, const struct drv_path *path);
/* Takes the QP from RST to RTS. */
int drv_qp_connect(struct drv_qp *qp, const struct drv_path *path);

struct drv_sge {
    uint64_t va;
    uint32_t len, lkey;
};
enum drv_send_flags {
    DRV_SIGNALED = 1,
    DRV_SOLICITED = 2,
    DRV_FENCE = 4,
    DRV_INLINE = 8, /* payload is copied into the WQE: sge.va is a process address */
    DRV_NO_DOORBELL = 16,
};
struct drv_send {
    uint8_t opcode; /* PRM_WQE_OPCODE_ */
    unsigned flags;
    const struct drv_sge *sge;
    unsigned num_sge;
    uint32_t imm; /* immediate, or rkey to invalidate */
    uint64_t raddr;
    uint32_t rkey;
    uint64_t compare, swap_add;
    /* Extended atomic on numbers of sge's length: the operands in the WQE's layout. */
    const void *operands;
    uint32_t xrc_srqn; /* XRC */
    /* UD, DC */
    const struct drv_path *ah;
    uint32_t qkey;
    uint64_t dc_key;
};
/* Writes a send WQE and rings the doorbell. Returns the wqe_counter of its completion. */
uint16_t drv_post_send(struct drv_qp *qp, const struct drv_send *send);
void drv_post_recv(struct drv_qp *qp, const struct drv_sge *sge, unsigned num_sge);
void drv_post_srq_recv(struct drv *drv, struct drv_srq *srq, const struct drv_sge *sge,
                       unsigned num_sge);
/* Rings an SQ's doorbell with the given first 8 bytes of a control segment. */
void drv_ring_doorbell(struct drv_qp *qp, uint32_t ctrl0, uint32_t ctrl1);

#endif
