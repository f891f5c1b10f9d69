/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on event queues. */
#include "fw/cmd.h"
#include "model/queue/eq.h"
#include "model/core/pd.h"
#include "model/rdma/paging.h"

static enum syn cmd_create_eq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_eq_in *in = cmd->in;
    const size_t pas_off = PRM_OFFSET(create_eq_in, pas);
    uint64_t mask[4];
    uint32_t eqn = 0;
    enum syn syn;

    /* the ring is given as bus addresses, which only the kernel may choose */
    if (cmd->uid != 0 && cmd->uid != UID_SHARED) {
        return SYN_EQ_UID;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(mask); i++) {
        mask[i] = PRM_GET_AT(create_eq_in, in, event_bitmask, i);
    }
    syn = eq_create(&fw->hca, cmd->uid, PRM_PTR(create_eq_in, in, eq_context_entry),
                    cmd->in + pas_off, (uint32_t)((cmd->in_len - pas_off) / 8), mask, &eqn);
    PRM_SET(create_eq_out, cmd->out, eq_number, eqn);
    paging_follow_eqs(&fw->hca);
    return syn;
}

static enum syn cmd_query_eq(struct fw *fw, struct fw_cmd *cmd)
{
    struct prm_query_eq_out *out = cmd->out;
    uint64_t mask[4] = {0};
    enum syn syn = eq_query(&fw->hca, PRM_GET(query_eq_in, cmd->in, eq_number),
                            PRM_PTR(query_eq_out, out, eq_context_entry), mask);

    for (unsigned i = 0; i < G_N_ELEMENTS(mask); i++) {
        PRM_SET_AT(query_eq_out, out, event_bitmask, i, mask[i]);
    }
    return syn;
}

static enum syn cmd_destroy_eq(struct fw *fw, struct fw_cmd *cmd)
{
    enum syn syn = eq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_eq_in, cmd->in, eq_number));

    paging_follow_eqs(&fw->hca);
    return syn;
}

/* Puts an EQE that the kernel has made on an EQ. */
static enum syn cmd_gen_eqe(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_gen_eqe_in *in = cmd->in;
    const void *eqe = PRM_PTR(gen_eqe_in, in, eqe);
    uint32_t eqn = PRM_GET(gen_eqe_in, in, eq_number);

    if (!eq_find(&fw->hca, eqn)) {
        return SYN_NO_EQ;
    }
    eq_post(&fw->hca, eqn, PRM_GET(eqe, eqe, event_type), PRM_GET(eqe, eqe, event_sub_type),
            PRM_PTR(eqe, eqe, event_data));
    return SYN_OK;
}

const struct fw_cmd_row cmds_eq[] = {
    FW_CMD(CREATE_EQ, cmd_create_eq),
    FW_KERNEL_CMD(QUERY_EQ, cmd_query_eq),
    FW_KERNEL_CMD(DESTROY_EQ, cmd_destroy_eq),
    FW_KERNEL_CMD(GEN_EQE, cmd_gen_eqe),
    {0},
};
