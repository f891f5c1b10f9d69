/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines commands: what a handler gets, and the table row that describes a command.
 *
 * Each fw/cmd_*.c exports one table; fw/cmd_table.c lists the tables. Before a handler runs, the
 * dispatcher has checked the opcode, function state, user context, lengths and reserved bits
 * (fw/cmd_table.c). It has also resolved the target of the command: handlers get the function, and
 * a vport. The output is zeroed and out_len bytes long; the dispatcher fills in status and syndrome
 * from the handler's result. op_mod is one of the command's variants; the handler may know fewer of
 * them. A command that is not in a table fails with BAD_OP.
 *
 * A handler whose work may be long does it in steps: at least one, and more as long as
 * hca_may_go_on(). Each step calls hca_spend(). If there is more to do, the handler returns
 * SYN_AGAIN. It is called again in a later turn, with the same struct fw_cmd, and keeps its
 * progress in "at". Everything else goes on meanwhile, except other commands. If the handler keeps
 * something that nothing else knows, drop() frees it if a reset comes first.
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
    struct vport *vport; /* the vport that the command is about */
    const void *in;      /* the whole input, from all mailboxes */
    size_t in_len;
    void *out; /* zeroed; status and syndrome are written after the handler has run */
    size_t out_len;
    union {
        struct pages_progress pages; /* fw/pages.c */
        struct uctx_progress {
            bool tables_gone; /* the flow tables, which come first, are done */
            unsigned space;   /* index of the next number space in obj_spaces */
            uint32_t num;     /* the next number in that space */
            unsigned gone, left;
        } uctx;
        struct list_progress {
            void *object; /* the object that is made from a long list; nothing else knows it yet */
            uint64_t done;
        } list;
    } at;                                            /* zeroed before the first call */
    void (*drop)(struct fw *fw, struct fw_cmd *cmd); /* NULL: nothing is kept */
};

/* Entries of a long list that one step takes. */
#define FW_LIST_PART 512

typedef enum syn fw_cmd_fn(struct fw *fw, struct fw_cmd *cmd);

/* States of the function, as a mask of those in which a command is legal. */
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
/* The same, but only for the kernel. */
#define FW_KERNEL_CMD(op, fn)                                                                      \
    {                                                                                              \
        PRM_COMMAND(op), CMD_READY, false, fn                                                      \
    }

/* Each table ends with a row whose handler is NULL. */
extern const struct fw_cmd_row cmds_hca[], cmds_pages[], cmds_caps[], cmds_vport[],
    cmds_access_reg[], cmds_roce[], cmds_lag[], cmds_cong[], cmds_qos[],
    cmds_devx[]; /* the function itself */
extern const struct fw_cmd_row cmds_general[];
extern const struct fw_cmd_row cmds_pd_uar[], cmds_mkey[], cmds_psv[], cmds_eq[], cmds_cq[],
    cmds_q_counter[];
extern const struct fw_cmd_row cmds_memic[];
extern const struct fw_cmd_row cmds_page_fault[];
extern const struct fw_cmd_row cmds_qp[], cmds_dct[], cmds_srq[];
extern const struct fw_cmd_row cmds_eth_queue[], cmds_tir[], cmds_vxlan[], cmds_flow[],
    cmds_reformat[];

/*
 * Finds the pages of a queue's ring: the command's pas[] list (from offset pas_off of its input to
 * the input's end), or the DevX umem that the command names. size is the ring's length in bytes. On
 * success *buf holds a reference.
 */
struct fw_ring_ref {
    bool umem_valid;
    uint32_t umem_id;
    uint64_t umem_offset;
    uint8_t log_page;     /* log2 of the page size of pas in bytes (log_page_size field + 12) */
    uint32_t page_offset; /* offset of the ring from the start of the first page, in bytes */
    size_t pas_off;       /* offset of pas[] in the command's input, in bytes */
};
enum syn fw_ring(struct fw *fw, struct fw_cmd *cmd, const struct fw_ring_ref *ref, uint64_t size,
                 struct mem_buf *buf);

/* The place of a doorbell record: the address dbr_addr, or an offset in umem dbr_umem_id. That umem
 * then becomes the ring's dbr_umem. */
struct fw_dbr {
    uint64_t addr; /* bus address */
    struct obj *umem;
};
enum syn fw_dbr(struct fw *fw, struct fw_cmd *cmd, bool umem_valid, uint32_t umem_id,
                uint64_t dbr_addr, struct fw_dbr *dbr);

#endif
