/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of verbs_probe: the functions of libmlx5.so.1, direct verbs and DevX. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "prm/prm.h"
#include "tests/programs/verbs_probe.h"

/* Sets a command's opcode and its object's number, which are at the same place in all commands. */
#define COMMAND(in_type, op)                                                                       \
    struct prm_##in_type in[1] = {0};                                                              \
    uint8_t out[8192] = {0};                                                                       \
    PRM_SET(in_type, in, opcode, PRM_CMD_OP_##op)

static uint32_t cqn_of(struct ibv_cq *of)
{
    struct mlx5dv_cq dv = {0};
    struct mlx5dv_obj obj = {.cq = {of, &dv}};

    mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ);
    return dv.cqn;
}

static uint32_t srqn_of(struct ibv_srq *of)
{
    struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
    struct mlx5dv_obj obj = {.srq = {of, &dv}};

    mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ);
    return dv.srqn;
}

CALL(init_obj, return cqn_of(cq) ? 0 : ENODATA;)
CALL(dv_query_device, struct mlx5dv_context attr = {0};
     return num(mlx5dv_query_device(ctx, &attr));)
CALL(dv_query_port, struct mlx5dv_port attr = {0}; return num(mlx5dv_query_port(ctx, 1, &attr));)
CALL(is_supported, return mlx5dv_is_supported(list[0]) ? 0 : ENODATA;)
CALL(dv_open_device, struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
     struct ibv_context *made = mlx5dv_open_device(list[0], &attr);
     return made ? num(ibv_close_device(made)) : errno;)
CALL(set_context_attr, struct mlx5dv_ctx_allocators none = {0};
     return num(mlx5dv_set_context_attr(ctx, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &none));)
CALL(get_clock_info, struct mlx5dv_clock_info info; return num(mlx5dv_get_clock_info(ctx, &info));)
CALL(dv_create_cq, struct ibv_cq_init_attr_ex attr = {.cqe = 4};
     struct mlx5dv_cq_init_attr dv = {0};
     struct ibv_cq_ex *made = mlx5dv_create_cq(ctx, &attr, &dv);
     return made ? num(ibv_destroy_cq(ibv_cq_ex_to_cq(made))) : errno;)
CALL(dv_create_wq,
     struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1};
     struct ibv_wq * made; attr.pd = pd; attr.cq = cq; made = mlx5dv_create_wq(ctx, &attr, NULL);
     return made ? num(ibv_destroy_wq(made)) : errno;)

/* Calls a function on a QP that direct verbs made. */
static int with_qp(int (*ask)(struct mlx5dv_qp_ex *))
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE};
    struct ibv_qp *made = mlx5dv_create_qp(ctx, &attr, &dv);
    struct mlx5dv_qp_ex *ex;
    int err;

    if (!made) {
        return errno;
    }
    ex = mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(made));
    err = ex ? ask(ex) : errno;
    ibv_destroy_qp(made);
    return err;
}

static int nothing(struct mlx5dv_qp_ex *ex)
{
    (void)ex;
    return 0;
}

static int cancel(struct mlx5dv_qp_ex *ex)
{
    int left = mlx5dv_qp_cancel_posted_send_wrs(ex, 1);

    return left < 0 ? -left : left;
}

CALL(dv_create_qp, return with_qp(nothing);)
CALL(cancel_sends, return with_qp(cancel);)

/* Resets a DCI's stream. Nothing has failed on the DCI: EINVAL shows that it knows the call. */
static int call_stream_reset(void)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};
    struct ibv_qp *dci = mlx5dv_create_qp(ctx, &attr, &dv);
    int err = dci ? 0 : errno;

    if (dci) {
        dci->state = IBV_QPS_RTS; /* libmlx5 checks this field */
        err = mlx5dv_dci_stream_id_reset(dci, 1);
        dci->state = IBV_QPS_RESET;
        ibv_destroy_qp(dci);
    }
    return err == EINVAL ? 0 : err;
}

CALL(
    pace, uint8_t rate[4] = {0, 0, 0, 100};
    struct mlx5dv_pp *pp = mlx5dv_pp_alloc(ctx, sizeof(rate), rate, 0);
    if (!pp) { return errno; } mlx5dv_pp_free(pp); return 0;)

static int tree(void)
{
    struct mlx5dv_sched_attr attr = {.flags = 0}, limit = {.max_avg_bw = 10};
    struct mlx5dv_sched_node *root = mlx5dv_sched_node_create(ctx, &attr), *node;
    struct mlx5dv_sched_leaf *leaf;

    attr.parent = limit.parent = root;
    limit.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW;
    node = root ? mlx5dv_sched_node_create(ctx, &attr) : NULL;
    leaf = node ? mlx5dv_sched_leaf_create(ctx, &attr) : NULL;
    if (!leaf) {
        return errno;
    }
    if (mlx5dv_sched_node_modify(node, &limit) || mlx5dv_sched_leaf_modify(leaf, &limit) ||
        mlx5dv_modify_qp_sched_elem(raw, leaf, NULL) ||
        mlx5dv_modify_qp_sched_elem(raw, NULL, NULL) || mlx5dv_sched_leaf_destroy(leaf) ||
        mlx5dv_sched_node_destroy(node)) {
        return errno;
    }
    return num(mlx5dv_sched_node_destroy(root));
}
CALL(tree, return tree();)
CALL(reserve, uint32_t qpn; int err = num(mlx5dv_reserved_qpn_alloc(ctx, &qpn));
     return err ? err : num(mlx5dv_reserved_qpn_dealloc(ctx, qpn));)
CALL(map_ah, return num(mlx5dv_map_ah_to_qp(ah, rc->qp_num));)
CALL(modify_udp_sport, return num(mlx5dv_modify_qp_udp_sport(rc, 0xc123));)

static int dm_of_device(bool maps_operation)
{
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct mlx5dv_alloc_dm_attr dv = {.type = MLX5DV_DM_TYPE_MEMIC};
    struct ibv_dm *dm = mlx5dv_alloc_dm(ctx, &attr, &dv);
    int err = dm ? maps_operation ? ptr(mlx5dv_dm_map_op_addr(dm, 0)) : 0 : errno;

    return dm && ibv_free_dm(dm) ? errno : err;
}

CALL(dv_alloc_dm, return dm_of_device(false);)
CALL(dv_dm_map_op_addr, return dm_of_device(true);)

static int mkey(bool check)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
                        (check ? MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE : 0),
        .max_entries = 4};
    struct mlx5dv_mkey *made = mlx5dv_create_mkey(&attr);
    struct mlx5dv_mkey_err info;
    int err = made && check ? num(mlx5dv_mkey_check(made, &info)) : 0;

    return !made ? errno : mlx5dv_destroy_mkey(made) ? errno : err;
}

CALL(create_mkey, return mkey(false);)
CALL(mkey_check, return mkey(true);)

static int matcher(bool with_flow)
{
    union {
        struct mlx5dv_flow_match_parameters match;
        uint8_t room[sizeof(struct mlx5dv_flow_match_parameters) + 64];
    } all = {.match = {.match_sz = 64}};
    struct mlx5dv_flow_matcher_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .match_mask = &all.match};
    struct mlx5dv_flow_matcher *made = mlx5dv_create_flow_matcher(ctx, &attr);
    struct mlx5dv_flow_action_attr to_qp = {.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = raw};
    struct ibv_flow *rule =
        made && with_flow ? mlx5dv_create_flow(made, &all.match, 1, &to_qp) : NULL;
    int err = with_flow ? (rule ? num(ibv_destroy_flow(rule)) : errno) : 0;

    return !made ? errno : mlx5dv_destroy_flow_matcher(made) ? errno : err;
}

CALL(create_matcher, return matcher(false);)
CALL(dv_create_flow, return matcher(true);)

static int flow_action(bool rewrite)
{
    uint8_t headers[50] = {0};
    /* sets 16 bits of the destination port of UDP to 1 (struct set_action_in) */
    uint8_t set[8] = {0x10, 0x0c, 0, 16, 0, 0, 0, 1};
    struct ibv_flow_action *made =
        rewrite ? mlx5dv_create_flow_action_modify_header(ctx, sizeof(set), (uint64_t *)(void *)set,
                                                          MLX5DV_FLOW_TABLE_TYPE_NIC_RX)
                : mlx5dv_create_flow_action_packet_reformat(
                      ctx, sizeof(headers), headers,
                      MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
                      MLX5DV_FLOW_TABLE_TYPE_NIC_TX);

    return made ? num(ibv_destroy_flow_action(made)) : errno;
}
CALL(modify_header, return flow_action(true);)
CALL(packet_reformat, return flow_action(false);)
CALL(domain, return ptr(mlx5dv_dr_domain_create(ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX));)

CALL(general_cmd, COMMAND(query_hca_cap_in, QUERY_HCA_CAP);
     return num(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, PRM_SIZE(query_hca_cap_out)));)
CALL(umem_reg, struct mlx5dv_devx_umem *made = mlx5dv_devx_umem_reg(ctx, buf, 4096, 1);
     return made ? num(mlx5dv_devx_umem_dereg(made)) : errno;)
CALL(umem_reg_ex, struct mlx5dv_devx_umem_in attr = {.addr = buf,
                                                     .size = 4096,
                                                     .access = 1,
                                                     .pgsz_bitmap = 4096};
     struct mlx5dv_devx_umem *made = mlx5dv_devx_umem_reg_ex(ctx, &attr);
     return made ? num(mlx5dv_devx_umem_dereg(made)) : errno;)
CALL(
    alloc_uar, struct mlx5dv_devx_uar *made = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    int err = ptr(made); if (made) { mlx5dv_devx_free_uar(made); } return err;)
CALL(query_eqn, uint32_t eqn; return num(mlx5dv_devx_query_eqn(ctx, 0, &eqn));)
CALL(cq_query, COMMAND(query_cq_in, QUERY_CQ); PRM_SET(query_cq_in, in, cqn, cqn_of(cq));
     return num(mlx5dv_devx_cq_query(cq, in, sizeof(in), out, PRM_SIZE(query_cq_out)));)
CALL(cq_modify, COMMAND(modify_cq_in, MODIFY_CQ); PRM_SET(modify_cq_in, in, cqn, cqn_of(cq));
     PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select, PRM_CQ_MODIFY_CQ_PERIOD);
     return num(mlx5dv_devx_cq_modify(cq, in, sizeof(in), out, 16));)
CALL(qp_query, COMMAND(query_qp_in, QUERY_QP); PRM_SET(query_qp_in, in, qpn, rc->qp_num);
     return num(mlx5dv_devx_qp_query(rc, in, sizeof(in), out, PRM_SIZE(query_qp_out)));)
CALL(qp_modify, COMMAND(rts2rts_qp_in, RTS2RTS_QP); PRM_SET(rts2rts_qp_in, in, qpn, rc->qp_num);
     return num(mlx5dv_devx_qp_modify(rc, in, sizeof(in), out, PRM_SIZE(rts2rts_qp_out)));)
CALL(srq_query, COMMAND(query_rmp_in, QUERY_RMP); PRM_SET(query_rmp_in, in, rmpn, srqn_of(srq));
     return num(mlx5dv_devx_srq_query(srq, in, sizeof(in), out, PRM_SIZE(query_rmp_out)));)
CALL(srq_modify, COMMAND(modify_rmp_in, MODIFY_RMP); PRM_SET(modify_rmp_in, in, rmpn, srqn_of(srq));
     PRM_SET(modify_rmp_in, in, rmp_state, PRM_RMPC_STATE_RDY);
     PRM_SET(rmpc, PRM_PTR(modify_rmp_in, in, ctx), state, PRM_RMPC_STATE_RDY);
     PRM_SET(rmp_bitmask, PRM_PTR(modify_rmp_in, in, bitmask), lwm, 1);
     return num(mlx5dv_devx_srq_modify(srq, in, sizeof(in), out, 16));)
CALL(wq_query, COMMAND(query_rq_in, QUERY_RQ); PRM_SET(query_rq_in, in, rqn, wq->wq_num);
     return num(mlx5dv_devx_wq_query(wq, in, sizeof(in), out, PRM_SIZE(query_rq_out)));)
CALL(wq_modify, COMMAND(modify_rq_in, MODIFY_RQ); PRM_SET(modify_rq_in, in, rqn, wq->wq_num);
     PRM_SET(modify_rq_in, in, rq_state, wq->state == IBV_WQS_RDY);
     PRM_SET(rqc, PRM_PTR(modify_rq_in, in, ctx), state, wq->state == IBV_WQS_RDY);
     return num(mlx5dv_devx_wq_modify(wq, in, sizeof(in), out, 16));)
CALL(table_query, COMMAND(query_rqt_in, QUERY_RQT);
     PRM_SET(query_rqt_in, in, rqtn, (uint32_t)table->ind_tbl_num);
     return num(mlx5dv_devx_ind_tbl_query(table, in, sizeof(in), out,
                                          PRM_SIZE(query_rqt_out) + PRM_SIZE(rq_num)));)

CALL(
    table_modify,
    struct {
        struct prm_modify_rqt_in in[1];
        struct prm_rq_num rqn[1];
    } cmd = {0};
    uint8_t out[16] = {0}; struct prm_rqtc *rqtc = PRM_PTR(modify_rqt_in, cmd.in, ctx);
    PRM_SET(modify_rqt_in, cmd.in, opcode, PRM_CMD_OP_MODIFY_RQT);
    PRM_SET(modify_rqt_in, cmd.in, rqtn, (uint32_t)table->ind_tbl_num);
    PRM_SET(rqt_bitmask, PRM_PTR(modify_rqt_in, cmd.in, bitmask), rqn_list, 1);
    PRM_SET(rqtc, rqtc, rqt_actual_size, 1); PRM_SET(rq_num, cmd.rqn, rq_num, wq->wq_num);
    return num(mlx5dv_devx_ind_tbl_modify(table, &cmd, sizeof(cmd), out, sizeof(out)));)

/* Calls a function on an object that a command makes. */
struct devx {
    struct mlx5dv_devx_obj *domain, *tis;
    struct prm_create_tis_out made[1];
};

static int with_object(int (*ask)(struct devx *))
{
    struct prm_alloc_transport_domain_in domain_in[1] = {0};
    struct prm_alloc_transport_domain_out domain_out[1] = {0};
    struct prm_create_tis_in in[1] = {0};
    struct devx devx = {0};
    int err;

    PRM_SET(alloc_transport_domain_in, domain_in, opcode, PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN);
    devx.domain =
        mlx5dv_devx_obj_create(ctx, domain_in, sizeof(domain_in), domain_out, sizeof(domain_out));
    PRM_SET(create_tis_in, in, opcode, PRM_CMD_OP_CREATE_TIS);
    PRM_SET(tisc, PRM_PTR(create_tis_in, in, ctx), transport_domain,
            PRM_GET(alloc_transport_domain_out, domain_out, transport_domain));
    devx.tis = mlx5dv_devx_obj_create(ctx, in, sizeof(in), devx.made, sizeof(devx.made));
    if (!devx.tis) {
        return errno;
    }
    err = ask(&devx);
    if (mlx5dv_devx_obj_destroy(devx.tis) || mlx5dv_devx_obj_destroy(devx.domain)) {
        return errno;
    }
    return err;
}

static int ask_nothing(struct devx *devx)
{
    return devx->domain ? 0 : ENODATA;
}

#define TISN(devx) PRM_GET(create_tis_out, (devx)->made, tisn)

static int ask_query(struct devx *devx)
{
    COMMAND(query_tis_in, QUERY_TIS);

    PRM_SET(query_tis_in, in, tisn, TISN(devx));
    return num(mlx5dv_devx_obj_query(devx->tis, in, sizeof(in), out, PRM_SIZE(query_tis_out)));
}

static int ask_modify(struct devx *devx)
{
    COMMAND(modify_tis_in, MODIFY_TIS);

    PRM_SET(modify_tis_in, in, tisn, TISN(devx));
    return num(mlx5dv_devx_obj_modify(devx->tis, in, sizeof(in), out, 16));
}

static int ask_async(struct devx *devx)
{
    struct mlx5dv_devx_cmd_comp *comp = mlx5dv_devx_create_cmd_comp(ctx);
    COMMAND(query_tis_in, QUERY_TIS);
    int err = ptr(comp);

    PRM_SET(query_tis_in, in, tisn, TISN(devx));
    if (!err) {
        err = num(mlx5dv_devx_obj_query_async(devx->tis, in, sizeof(in), PRM_SIZE(query_tis_out), 5,
                                              comp));
        err = err ? err
                  : num(mlx5dv_devx_get_async_cmd_comp(
                        comp, (struct mlx5dv_devx_async_cmd_hdr *)out, sizeof(out)));
        mlx5dv_devx_destroy_cmd_comp(comp);
    }
    return err;
}

CALL(obj_create, return with_object(ask_nothing);)
CALL(obj_query, return with_object(ask_query);)
CALL(obj_modify, return with_object(ask_modify);)
CALL(obj_async, return with_object(ask_async);)

/* Subscribes to the port's changes. Nothing changes, so the channel has no event. */
static int subscribe(bool by_fd)
{
    struct mlx5dv_devx_event_channel *made = mlx5dv_devx_create_event_channel(ctx, 0);
    uint16_t type = PRM_EVENT_TYPE_PORT_CHANGE;
    uint8_t event[64];
    int err = ptr(made), fd = by_fd ? eventfd(0, 0) : -1;

    if (err) {
        return err;
    }
    err = num(by_fd ? mlx5dv_devx_subscribe_devx_event_fd(made, fd, NULL, type)
                    : mlx5dv_devx_subscribe_devx_event(made, NULL, sizeof(type), &type, 1));
    if (!err && !by_fd) {
        fcntl(made->fd, F_SETFL, O_NONBLOCK);
        errno = 0;
        err = mlx5dv_devx_get_event(made, (struct mlx5dv_devx_async_event_hdr *)event,
                                    sizeof(event)) < 0 &&
                      errno == EAGAIN
                  ? 0
                  : ENODATA;
    }
    mlx5dv_devx_destroy_event_channel(made);
    if (by_fd) {
        close(fd);
    }
    return err;
}

CALL(subscribe, return subscribe(false);)
CALL(subscribe_fd, return subscribe(true);)
CALL(vfio_fd, return num(mlx5dv_vfio_get_events_fd(ctx));)

/* The default generation has no crypto. */
static struct mlx5dv_crypto_login_obj *a_login(void)
{
    char credential[48] = {0};
    struct mlx5dv_crypto_login_attr_ex attr = {.credential = credential,
                                               .credential_len = sizeof(credential)};

    return mlx5dv_crypto_login_create(ctx, &attr);
}

static struct mlx5dv_dek *a_dek(void)
{
    struct mlx5dv_dek_init_attr attr = {.pd = pd};

    return mlx5dv_dek_create(ctx, &attr);
}

CALL(crypto_login, struct mlx5dv_crypto_login_attr attr = {0};
     return num(mlx5dv_crypto_login(ctx, &attr));)
CALL(login_state, enum mlx5dv_crypto_login_state state;
     return num(mlx5dv_crypto_login_query_state(ctx, &state));)
CALL(logout, return num(mlx5dv_crypto_logout(ctx));)
CALL(login_create, return ptr(a_login());)
CALL(login_query, struct mlx5dv_crypto_login_query_attr attr = {0};
     struct mlx5dv_crypto_login_obj *login = a_login();
     return login ? num(mlx5dv_crypto_login_query(login, &attr)) : errno;)
CALL(login_destroy, struct mlx5dv_crypto_login_obj *login = a_login();
     return login ? num(mlx5dv_crypto_login_destroy(login)) : errno;)
CALL(dek_create, return ptr(a_dek());)
CALL(dek_query, struct mlx5dv_dek_attr attr = {0}; struct mlx5dv_dek *dek = a_dek();
     return dek ? num(mlx5dv_dek_query(dek, &attr)) : errno;)
CALL(dek_destroy, struct mlx5dv_dek *dek = a_dek();
     return dek ? num(mlx5dv_dek_destroy(dek)) : errno;)

/* rdma-core has them from release 56 on. */
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                    uint64_t iova, int fd, int access, int mlx5_access);
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t buf_len);
CALL(dv_reg_dmabuf_mr,
     int err = ptr(mlx5dv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE, 0));
     return err == EBADF ? 0 : err;)
CALL(data_direct, char path[64];
     return num(mlx5dv_get_data_direct_sysfs_path(ctx, path, sizeof(path)));)

const struct probe_call probe_dv_calls[] = {
    {" mlx5dv_init_obj ", call_init_obj},
    {" mlx5dv_query_device ", call_dv_query_device},
    {" _mlx5dv_query_port ", call_dv_query_port},
    {" mlx5dv_is_supported ", call_is_supported},
    {" mlx5dv_open_device ", call_dv_open_device},
    {" mlx5dv_set_context_attr ", call_set_context_attr},
    {" mlx5dv_get_clock_info ", call_get_clock_info},
    {" mlx5dv_create_cq ", call_dv_create_cq},
    {" mlx5dv_create_wq ", call_dv_create_wq},
    {" mlx5dv_create_qp mlx5dv_qp_ex_from_ibv_qp_ex ", call_dv_create_qp},
    {" mlx5dv_qp_cancel_posted_send_wrs ", call_cancel_sends},
    {" mlx5dv_map_ah_to_qp ", call_map_ah},
    {" mlx5dv_modify_qp_udp_sport ", call_modify_udp_sport},
    {" mlx5dv_dci_stream_id_reset ", call_stream_reset},
    {" mlx5dv_pp_alloc mlx5dv_pp_free ", call_pace},
    {" mlx5dv_sched_node_create mlx5dv_sched_node_modify mlx5dv_sched_node_destroy "
     "mlx5dv_sched_leaf_create mlx5dv_sched_leaf_modify mlx5dv_sched_leaf_destroy "
     "mlx5dv_modify_qp_sched_elem ",
     call_tree},
    {" mlx5dv_reserved_qpn_alloc mlx5dv_reserved_qpn_dealloc ", call_reserve},
    {" mlx5dv_alloc_dm ", call_dv_alloc_dm},
    {" mlx5dv_dm_map_op_addr ", call_dv_dm_map_op_addr},
    {" mlx5dv_create_mkey mlx5dv_destroy_mkey ", call_create_mkey},
    {" _mlx5dv_mkey_check ", call_mkey_check},
    {" mlx5dv_create_flow_matcher mlx5dv_destroy_flow_matcher ", call_create_matcher},
    {" mlx5dv_create_flow ", call_dv_create_flow},
    {" mlx5dv_create_flow_action_modify_header ", call_modify_header},
    {" mlx5dv_create_flow_action_packet_reformat destroy_flow_action ", call_packet_reformat},
    {" mlx5dv_dr_domain_create ", call_domain},
    {" mlx5dv_devx_general_cmd ", call_general_cmd},
    {" mlx5dv_devx_umem_reg mlx5dv_devx_umem_dereg ", call_umem_reg},
    {" mlx5dv_devx_umem_reg_ex ", call_umem_reg_ex},
    {" mlx5dv_devx_alloc_uar mlx5dv_devx_free_uar ", call_alloc_uar},
    {" mlx5dv_devx_query_eqn ", call_query_eqn},
    {" mlx5dv_devx_cq_query ", call_cq_query},
    {" mlx5dv_devx_cq_modify ", call_cq_modify},
    {" mlx5dv_devx_qp_query ", call_qp_query},
    {" mlx5dv_devx_qp_modify ", call_qp_modify},
    {" mlx5dv_devx_srq_query ", call_srq_query},
    {" mlx5dv_devx_srq_modify ", call_srq_modify},
    {" mlx5dv_devx_wq_query ", call_wq_query},
    {" mlx5dv_devx_wq_modify ", call_wq_modify},
    {" mlx5dv_devx_ind_tbl_query ", call_table_query},
    {" mlx5dv_devx_ind_tbl_modify ", call_table_modify},
    {" mlx5dv_devx_obj_create mlx5dv_devx_obj_destroy ", call_obj_create},
    {" mlx5dv_devx_obj_query ", call_obj_query},
    {" mlx5dv_devx_obj_modify ", call_obj_modify},
    {" mlx5dv_devx_obj_query_async mlx5dv_devx_create_cmd_comp mlx5dv_devx_destroy_cmd_comp "
     "mlx5dv_devx_get_async_cmd_comp ",
     call_obj_async},
    {" mlx5dv_devx_create_event_channel mlx5dv_devx_destroy_event_channel "
     "mlx5dv_devx_subscribe_devx_event mlx5dv_devx_get_event ",
     call_subscribe},
    {" mlx5dv_devx_subscribe_devx_event_fd ", call_subscribe_fd},
    {" mlx5dv_vfio_get_events_fd ", call_vfio_fd},
    {" mlx5dv_crypto_login ", call_crypto_login},
    {" mlx5dv_crypto_login_query_state ", call_login_state},
    {" mlx5dv_crypto_logout ", call_logout},
    {" mlx5dv_crypto_login_create ", call_login_create},
    {" mlx5dv_crypto_login_query ", call_login_query},
    {" mlx5dv_crypto_login_destroy ", call_login_destroy},
    {" mlx5dv_dek_create ", call_dek_create},
    {" mlx5dv_dek_query ", call_dek_query},
    {" mlx5dv_dek_destroy ", call_dek_destroy},
    {" mlx5dv_reg_dmabuf_mr ", call_dv_reg_dmabuf_mr},
    {" mlx5dv_get_data_direct_sysfs_path ", call_data_direct},
    {NULL, NULL},
};
