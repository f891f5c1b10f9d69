/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on the whole function: bring-up, tear-down, interface revision, identity.
 *
 * The driver's order (mlx5_function_setup) is ENABLE_HCA, QUERY/SET_ISSI, boot pages, capabilities,
 * init pages, INIT_HCA. The way back is TEARDOWN_HCA, all pages, DISABLE_HCA.
 */
#include <string.h>
#include "fw/cmd.h"
#include "model/card/card.h"

/* Supported interface steps (ISSI): bit n is revision n. The driver wants 1 and can also use 0. */
#define SUPPORTED_ISSI 3u

#define IEEE_VENDOR_ID 0x2c9

static enum syn cmd_enable_hca(struct fw *fw, struct fw_cmd *cmd)
{
    if (fw->state != CMD_DISABLED) {
        /* The driver has not torn the function down before (a crashed guest): start over. */
        if (!hca_reset_part(&fw->hca)) {
            return SYN_AGAIN;
        }
        hca_log(&fw->hca, HCA_LOG_INFO, "ENABLE_HCA on a function in use: starting over");
        pages_reset(fw);
    }
    caps_reset(fw);
    fw->issi = 0;
    fw_set_state(fw, CMD_ENABLED);
    return SYN_OK;
}

static enum syn cmd_disable_hca(struct fw *fw, struct fw_cmd *cmd)
{
    if (fw->pages.list->len) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "DISABLE_HCA with %u pages not taken back",
                fw->pages.list->len);
        pages_reset(fw);
    }
    fw_set_state(fw, CMD_DISABLED);
    return SYN_OK;
}

static enum syn cmd_init_hca(struct fw *fw, struct fw_cmd *cmd)
{
    (void)cmd;
    if (pages_wanted_boot(fw) || pages_wanted_init(fw)) {
        return SYN_PAGES_MISSING;
    }
    fw_set_state(fw, CMD_READY);
    return SYN_OK;
}

static enum syn cmd_teardown_hca(struct fw *fw, struct fw_cmd *cmd)
{
    switch (PRM_GET(teardown_hca_in, cmd->in, profile)) {
    case PRM_TEARDOWN_PROFILE_GRACEFUL_CLOSE:
    case PRM_TEARDOWN_PROFILE_FORCE_CLOSE:
        if (!hca_reset_part(&fw->hca)) {
            return SYN_AGAIN;
        }
        pages_forget_request(fw);
        fw_set_state(fw, CMD_ENABLED);
        return SYN_OK;
    case PRM_TEARDOWN_PROFILE_PREPARE_FAST_TEARDOWN:
        /* The teardown takes effect when the driver writes "disabled" to the initialization
         * segment. */
        return SYN_OK;
    default:
        return SYN_BAD_TEARDOWN;
    }
}

static enum syn cmd_query_issi(struct fw *fw, struct fw_cmd *cmd)
{
    struct prm_query_issi_out *out = cmd->out;

    PRM_SET(query_issi_out, out, current_issi, fw->issi);
    PRM_SET(query_issi_out, out, supported_issi_dw0, SUPPORTED_ISSI);
    return SYN_OK;
}

static enum syn cmd_set_issi(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t issi = PRM_GET(set_issi_in, cmd->in, current_issi);

    if (issi >= 32 || !(SUPPORTED_ISSI >> issi & 1)) {
        return SYN_BAD_ISSI;
    }
    fw->issi = (uint16_t)issi;
    return SYN_OK;
}

static enum syn cmd_set_driver_version(struct fw *fw, struct fw_cmd *cmd)
{
    size_t room =
        PRM_SIZE(set_driver_version_in) - PRM_OFFSET(set_driver_version_in, driver_version);
    g_autofree char *raw =
        g_strndup((const char *)PRM_PTR(set_driver_version_in, cmd->in, driver_version), room);
    g_autofree char *printable = g_strescape(raw, NULL);

    hca_log(&fw->hca, HCA_LOG_INFO, "driver: %s", printable);
    return SYN_OK;
}

static enum syn cmd_query_adapter(struct fw *fw, struct fw_cmd *cmd)
{
    struct prm_query_adapter_param_block *block =
        PRM_PTR(query_adapter_out, cmd->out, query_adapter_struct);
    const char *psid = fw->profile->psid;

    PRM_SET(query_adapter_param_block, block, ieee_vendor_id, IEEE_VENDOR_ID);
    memcpy(PRM_PTR(query_adapter_param_block, block, vsd_contd_psid), psid, strlen(psid));
    return SYN_OK;
}

static enum syn cmd_query_special_contexts(struct fw *fw, struct fw_cmd *cmd)
{
    struct prm_query_special_contexts_out *out = cmd->out;

    PRM_SET(query_special_contexts_out, out, resd_lkey, fw->hca.resd_lkey);
    PRM_SET(query_special_contexts_out, out, null_mkey, fw->hca.null_mkey);
    /* both keys read as zeros and drop what is written; here they are one */
    PRM_SET(query_special_contexts_out, out, dump_fill_mkey, fw->hca.null_mkey);
    return SYN_OK;
}

/* The host knows tunneled operations by the top of their addresses. Here the host's answer is the
 * result of a call (hca_host_ops.as_notify), so the device needs no range to which the host
 * answers: log_response_bar_size and response_bar_address stay 0. */
static enum syn cmd_set_tunneled_operations(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_set_tunnel_operation_in *in = cmd->in;
    uint32_t mask = PRM_GET(set_tunnel_operation_in, in, asn_match_mask);

    if (PRM_GET(set_tunnel_operation_in, in, asn_match_value) & ~mask) {
        return SYN_TUNNEL_MATCH;
    }
    fw->hca.tunnels = mask != 0;
    return SYN_OK;
}

static enum syn cmd_nop(struct fw *fw, struct fw_cmd *cmd)
{
    (void)fw;
    (void)cmd;
    return SYN_OK;
}

#define UP (CMD_ENABLED | CMD_READY)

const struct fw_cmd_row cmds_hca[] = {
    {PRM_COMMAND(ENABLE_HCA), CMD_ANY, false, cmd_enable_hca},
    {PRM_COMMAND(DISABLE_HCA), CMD_ENABLED, false, cmd_disable_hca},
    {PRM_COMMAND(INIT_HCA), CMD_ENABLED, false, cmd_init_hca},
    FW_KERNEL_CMD(TEARDOWN_HCA, cmd_teardown_hca),
    {PRM_COMMAND(QUERY_ISSI), CMD_ANY, true, cmd_query_issi},
    {PRM_COMMAND(SET_ISSI), CMD_ENABLED, false, cmd_set_issi},
    {PRM_COMMAND(SET_DRIVER_VERSION), UP, false, cmd_set_driver_version},
    {PRM_COMMAND(QUERY_ADAPTER), UP, true, cmd_query_adapter},
    FW_CMD(QUERY_SPECIAL_CONTEXTS, cmd_query_special_contexts),
    FW_KERNEL_CMD(SET_TUNNELED_OPERATIONS, cmd_set_tunneled_operations),
    FW_CMD(NOP, cmd_nop),
    {0},
};
