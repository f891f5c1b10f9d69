/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands: what a handler gets, and the table row that describes a command.
 *
 * Each fw/cmd_*.c exports one table; fw/cmd_table.c lists the tables. Before a handler runs, the
 * dispatcher has checked the opcode, function state, user context, lengths and reserved bits
 * (fw/cmd_table.c), and found whom it is about: the function that handlers get, and a vport; the
 * output is zeroed and out_len bytes long, and the dispatcher fills in status and syndrome from
 * what the handler returns. op_mod is one of the command's variants, of which the handler may know
 * fewer. A command that is not in a table fails with BAD_OP.
 *
 * A handler whose work may be long does it in steps: as long as hca_may_go_on(), one at least, each
 * with hca_spend(), and returns SYN_AGAIN if there is more. It is called again in a later turn,
 * with the same struct fw_cmd, and keeps in at how far it has come. Everything else goes on
 * meanwhile, but for other commands. What it keeps that nobody else knows of, drop frees, should a
 * reset come first.
 */
#ifndef HCASIM_FW_CMD_H
#define HCASIM_FW_CMD_H

#include "fw/fw_internal.h"
#include "model/core/hca.h"
#include "model/memory/mem.h"
#include "prm/prm.h"

struct fw_cmd_row;

struct fw_cmd {
    const struct fw_cmd_row *row; /* NULL: not checked yet */
    uint16_t opcode, op_mod, uid;
    struct vport *vport; /* that it is about */
    const void *in;      /* the whole input, mailboxes joined */
    size_t in_len;
    void *out; /* zeroed; status and syndrome are written after the handler */
    size_t out_len;
    union {
        struct pages_progress pages; /* fw/pages.c */
        struct uctx_progress {
            bool tables_gone; /* the flow tables come first */
            unsigned space;   /* which of obj_spaces is next */
            uint32_t num;     /* of the object there to look at next */
            unsigned gone, left;
        } uctx;
        struct list_progress {
            void *object; /* that is made from a long list; nobody else knows of it yet */
            uint64_t done;
        } list;
    } at;                                            /* zeroed before the first call */
    void (*drop)(struct fw *fw, struct fw_cmd *cmd); /* NULL: nothing is kept */
};

/* Entries of a long list that are taken over in a step. */
#define FW_LIST_PART 512

typedef enum syn fw_cmd_fn(struct fw *fw, struct fw_cmd *cmd);

/* States of the function in which a command is legal. */
enum fw_cmd_states {
    CMD_DISABLED = 1 << 0, /* before ENABLE_HCA */
    CMD_ENABLED = 1 << 1,  /* between ENABLE_HCA and INIT_HCA, and after TEARDOWN_HCA */
    CMD_READY = 1 << 2,    /* after INIT_HCA */
    CMD_ANY = 7,
};

struct fw_cmd_row {
    const struct prm_command *command; /* opcode, layouts, variants: prm/cmd_op.prm */
    uint8_t states;                    /* enum fw_cmd_states */
    bool any_uid;                      /* false: only uid 0 (the kernel) may use it */
    fw_cmd_fn *handler;
};

/* The row of most commands: legal after INIT_HCA, for every user context. */
#define FW_CMD(op, fn)                                                                             \
    {                                                                                              \
        PRM_COMMAND(op), CMD_READY, true, fn                                                       \
    }
/* The same, for the kernel alone. */
#define FW_KERNEL_CMD(op, fn)                                                                      \
    {                                                                                              \
        PRM_COMMAND(op), CMD_READY, false, fn                                                      \
    }

/* One table ends with a row whose handler is NULL. */
extern const struct fw_cmd_row cmds_hca[], cmds_pages[], cmds_caps[], cmds_vport[],
    cmds_access_reg[], cmds_roce[], cmds_lag[], cmds_cong[], cmds_devx[]; /* the function itself */
extern const struct fw_cmd_row cmds_general[];
extern const struct fw_cmd_row cmds_pd_uar[], cmds_mkey[], cmds_eq[], cmds_cq[], cmds_q_counter[];
extern const struct fw_cmd_row cmds_qp[], cmds_dct[], cmds_srq[];
extern const struct fw_cmd_row cmds_eth_queue[], cmds_tir[], cmds_flow[];

/*
 * Resolves where a queue's ring lies: the command's pas[] list (at offset pas_off of its input, to
 * its end), or the DevX umem that the command names. size is the ring's bytes. On success *buf has
 * a reference.
 */
struct fw_ring_ref {
    bool umem_valid;
    uint32_t umem_id;
    uint64_t umem_offset;
    uint8_t log_page;     /* log2 bytes of the page size of pas (log_page_size field + 12) */
    uint32_t page_offset; /* bytes from the first page's start to the ring */
    size_t pas_off;       /* byte offset of pas[] in the command's input */
};
enum syn fw_ring(struct fw *fw, struct fw_cmd *cmd, const struct fw_ring_ref *ref, uint64_t size,
                 struct mem_buf *buf);

/* A doorbell record: at the plain dbr_addr, or at an offset in umem dbr_umem_id, which then is the
 * ring's dbr_umem. */
struct fw_dbr {
    uint64_t addr; /* on the bus */
    struct obj *umem;
};
enum syn fw_dbr(struct fw *fw, struct fw_cmd *cmd, bool umem_valid, uint32_t umem_id,
                uint64_t dbr_addr, struct fw_dbr *dbr);

#endif
