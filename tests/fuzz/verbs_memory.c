/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements verbs_memory.h: bytes as a program's calls about memory. */
#define _GNU_SOURCE
#include "tests/fuzz/take.h"
#include "tests/fuzz/verbs_memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/verbs/dv.h"

#define SLOTS 4
#define PAGE  4096u
#define BYTES (4 * PAGE)

/* Stops the program, and prints the result, unless the call returns 0. */
#define MUST_BE_0(call)                                                                            \
    do {                                                                                           \
        int result_ = (call);                                                                      \
                                                                                                   \
        if (result_) {                                                                             \
            fprintf(stderr, "%s:%d: " #call ": %d\n", __func__, __LINE__, result_);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The card's credential, wrapped by its KEK (model/memory/dek.h). */
static const uint8_t credential[48] = {
    0xdd, 0xca, 0xca, 0x05, 0x27, 0x0e, 0x76, 0x9c, 0x06, 0x50, 0xef, 0x7c, 0xfe, 0x74, 0x91, 0xb0,
    0x13, 0x66, 0x02, 0xac, 0x2a, 0x2a, 0xcd, 0x28, 0x74, 0x2c, 0x31, 0xcd, 0xc4, 0x02, 0x28, 0x04,
    0x1c, 0x54, 0x78, 0xac, 0x42, 0x68, 0x93, 0x39, 0x12, 0x0c, 0x80, 0x9c, 0xb7, 0x5e, 0x81, 0x4d};
static const uint8_t wrapped_key[40] = {0xbd, 0x2a, 0x27, 0x6a, 0xe8, 0xc7, 0x46, 0x4c, 0x7e, 0x8b,
                                        0x39, 0x66, 0x74, 0xac, 0x6e, 0x0e, 0x95, 0x58, 0xc8, 0x4c,
                                        0x60, 0x09, 0xb3, 0xfa, 0x41, 0x3c, 0xf0, 0x6a, 0x67, 0xa2,
                                        0x00, 0x82, 0x3e, 0x4d, 0x72, 0x0d, 0xf2, 0x41, 0x9f, 0xa9};

static struct memory {
    const struct verbs_world *world;
    const uint8_t *data;
    size_t size;
    uint8_t *bytes; /* memory of the program */
    struct ibv_dm *dm[SLOTS];
    struct ibv_mr *mr[SLOTS];
    struct mlx5dv_mkey *mkey[SLOTS];
    struct mlx5dv_dek *dek[SLOTS];
    struct mlx5dv_crypto_login_obj *login[SLOTS];
    struct ibv_cq_ex *cq[SLOTS];
    struct ibv_cq_ex *own_cq;
    struct ibv_qp *qp; /* connected to itself */
} m;

/* -- bytes ------------------------------------------------------------------------------------- */

static uint8_t take_u8(void)
{
    return take_u8_from(&m.data, &m.size);
}

static uint32_t take_u32(void)
{
    return take_u32_from(&m.data, &m.size);
}

/* A number: mostly small, often at a limit, sometimes anything. */
static uint32_t take_value(void)
{
    static const uint32_t edges[] = {
        0,   1,    3,    4,    7,    8,    63,   64,    65,    511,        512,       513,
        520, 1024, 1040, 4095, 4096, 4097, 8192, 16383, 16384, 0x7fffffff, 1u << 31u, UINT32_MAX};
    uint8_t how = take_u8();

    return how < 64 ? how : how == 255 ? take_u32() : edges[how % G_N_ELEMENTS(edges)];
}

static bool take_chance(unsigned of_256)
{
    return take_u8() < of_256;
}

#define SLOT(list) (&(list)[take_u8() % SLOTS])

static int take_access(void)
{
    int good = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
               IBV_ACCESS_REMOTE_ATOMIC;

    return take_chance(200) ? good | (int)(take_u8() & IBV_ACCESS_ON_DEMAND) : (int)take_value();
}

/* -- regions ----------------------------------------------------------------------------------- */

static void memory_dm(void)
{
    struct ibv_dm **dm = SLOT(m.dm);
    struct ibv_alloc_dm_attr attr = {.length = take_value(), .log_align_req = take_u8() & 0x1f};
    struct mlx5dv_alloc_dm_attr dv = {.type = (enum mlx5dv_alloc_dm_type)take_u8()};
    uint8_t buf[PAGE];
    uint32_t offset, len;

    if (!*dm) {
        *dm = take_chance(200) ? ibv_alloc_dm(m.world->ctx, &attr)
                               : hv_dv_alloc_dm(m.world->ctx, &attr, &dv);
        return;
    }
    offset = take_value();
    len = take_value() % (sizeof(buf) + 1);
    memset(buf, (int)len, sizeof(buf));
    switch (take_u8() % 4) {
    case 0:
        ibv_memcpy_to_dm(*dm, offset, buf, len);
        break;
    case 1:
        ibv_memcpy_from_dm(buf, *dm, offset, len);
        break;
    case 2:
        hv_dv_dm_map_op_addr(*dm, take_u8());
        break;
    default:
        if (!ibv_free_dm(*dm)) {
            *dm = NULL;
        }
        break;
    }
}

static void memory_region(void)
{
    struct ibv_mr **mr = SLOT(m.mr);
    struct ibv_dm *dm = *SLOT(m.dm);
    int access = take_access();
    uint32_t at = take_value() % BYTES, len = take_value();

    if (*mr && take_chance(128)) {
        ibv_rereg_mr(*mr, (int)(take_u8() & 15), m.world->pd, m.bytes + at, len, access);
        return;
    }
    if (*mr) {
        MUST_BE_0(ibv_dereg_mr(*mr));
        *mr = NULL;
        return;
    }
    switch (take_u8() % 4) {
    case 0:
        *mr = dm ? ibv_reg_dm_mr(m.world->pd, dm, at, len,
                                 (unsigned)access | (take_chance(200) ? IBV_ACCESS_ZERO_BASED : 0))
                 : NULL;
        break;
    case 1:
        *mr = ibv_alloc_null_mr(m.world->pd);
        break;
    case 2: /* all of the address space, if the access says on demand */
        *mr = ibv_reg_mr(m.world->pd, NULL, SIZE_MAX, access);
        break;
    default:
        *mr = ibv_reg_mr(m.world->pd, m.bytes + at, len % (BYTES - at) + 1, access);
    }
}

/* Pages go, or come ahead. */
static void memory_pages(void)
{
    const struct ibv_mr *mr = *SLOT(m.mr);
    struct ibv_sge sge = {(uintptr_t)m.bytes + take_value() % BYTES, take_value(),
                          mr && take_chance(224) ? mr->lkey : take_u32()};

    if (take_chance(128)) {
        madvise(m.bytes + take_u8() % 4 * PAGE, PAGE, MADV_DONTNEED);
    } else {
        ibv_advise_mr(m.world->pd, (enum ibv_advise_mr_advice)(take_u8() % 4), take_u8() & 3, &sge,
                      take_u8() & 1);
    }
}

/* -- encryption -------------------------------------------------------------------------------- */

static void memory_session(void)
{
    struct mlx5dv_crypto_login_obj **login = SLOT(m.login);
    uint8_t bytes[64];
    struct mlx5dv_crypto_login_attr_ex attr = {.credential_id = take_chance(32) ? take_u32() : 0,
                                               .import_kek_id = take_chance(32) ? take_u32() : 0,
                                               .credential = bytes,
                                               .credential_len =
                                                   take_chance(32) ? take_u8() & 63 : 48};
    struct mlx5dv_crypto_login_attr own = {.credential_id = attr.credential_id};
    struct mlx5dv_crypto_login_query_attr state = {0};

    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, credential, sizeof(credential));
    if (take_chance(32)) {
        bytes[take_u8() % 48] ^= take_u8();
    }
    memcpy(own.credential, bytes, sizeof(own.credential));
    switch (take_u8() % 4) {
    case 0:
        hv_dv_crypto_login(m.world->ctx, &own);
        break;
    case 1:
        hv_dv_crypto_logout(m.world->ctx);
        break;
    default:
        if (!*login) {
            *login = hv_dv_crypto_login_create(m.world->ctx, &attr);
        } else if (take_chance(128)) {
            MUST_BE_0(hv_dv_crypto_login_query(*login, &state));
        } else {
            MUST_BE_0(hv_dv_crypto_login_destroy(*login));
            *login = NULL;
        }
    }
}

static void memory_dek(void)
{
    struct mlx5dv_dek **dek = SLOT(m.dek);
    struct mlx5dv_dek_init_attr attr = {
        .key_size = (enum mlx5dv_crypto_key_size)(take_chance(32) ? take_u8() & 3 : 0),
        .has_keytag = take_chance(32),
        .key_purpose = (enum mlx5dv_crypto_key_purpose)take_chance(16),
        .pd = m.world->pd,
        .comp_mask = take_chance(128) ? MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN : 0,
        .crypto_login = *SLOT(m.login)};
    struct mlx5dv_dek_attr told = {0};

    memcpy(attr.key, wrapped_key, sizeof(wrapped_key));
    if (take_chance(32)) {
        attr.key[take_u8() % 40] ^= (char)take_u8();
    }
    if (!*dek) {
        *dek = hv_dv_dek_create(m.world->ctx, &attr);
    } else if (take_chance(128)) {
        MUST_BE_0(hv_dv_dek_query(*dek, &told));
    } else {
        MUST_BE_0(hv_dv_dek_destroy(*dek));
        *dek = NULL;
    }
}

/* -- completion queues ------------------------------------------------------------------------- */

static struct ibv_cq_ex *memory_new_cq(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = take_chance(224) ? 63 : take_value() & 0xfff,
                                       .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = take_chance(224) ? take_u8() & 7 : take_u8(),
                                     .cqe_comp_res_format = take_u8(),
                                     .flags = take_chance(224) ? take_u8() & 1 : take_u8(),
                                     .cqe_size = take_chance(128)   ? 64
                                                 : take_chance(200) ? 128
                                                                    : take_u8()};

    return hv_dv_create_cq(m.world->ctx, &attr, &dv);
}

static void memory_cq(void)
{
    struct ibv_cq_ex **cq = SLOT(m.cq);

    if (!*cq) {
        *cq = memory_new_cq();
    } else if (take_chance(128)) {
        ibv_resize_cq(ibv_cq_ex_to_cq(*cq), (int)(take_value() & 0xfff));
    } else {
        MUST_BE_0(ibv_destroy_cq(ibv_cq_ex_to_cq(*cq)));
        *cq = NULL;
    }
}

/* -- the queue pair ---------------------------------------------------------------------------- */

static void memory_connect(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = m.qp->qp_num,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .timeout = 5,
        .retry_cnt = 1,
        .rnr_retry = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = m.world->gid, .sgid_index = 1, .hop_limit = 1}}};

    MUST_BE_0(ibv_modify_qp(m.qp, &attr,
                            IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    MUST_BE_0(ibv_modify_qp(m.qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    MUST_BE_0(ibv_modify_qp(m.qp, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* Takes completions, and restarts a QP that has failed. */
static void memory_settle(void)
{
    struct ibv_wc wc[8];
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    m.world->settle(m.world->opaque);
    if (!m.qp) {
        return;
    }
    for (unsigned i = 0; i < 100 && ibv_poll_cq(ibv_cq_ex_to_cq(m.own_cq), 8, wc) > 0; i++) {
    }
    MUST_BE_0(ibv_query_qp(m.qp, &attr, IBV_QP_STATE, &init));
    if (attr.qp_state == IBV_QPS_ERR) {
        attr.qp_state = IBV_QPS_RESET;
        MUST_BE_0(ibv_modify_qp(m.qp, &attr, IBV_QP_STATE));
        memory_connect();
    }
}

/* The queue pair; NULL: it cannot be made with that CQ. */
static struct ibv_qp *memory_qp(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .pd = m.world->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                          IBV_QP_EX_WITH_LOCAL_INV,
        .cap = {.max_send_wr = 32,
                .max_recv_wr = 16,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 512},
    };
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask =
            MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
        /* data in a CQE would be copied to a key's addresses, which may be no memory */
        .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
                        (take_chance(64) ? MLX5DV_QP_CREATE_SIG_PIPELINING : 0),
        .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
                          MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MEMCPY};

    if (m.qp) {
        return m.qp;
    }
    m.own_cq = m.own_cq ? m.own_cq : memory_new_cq();
    if (!m.own_cq) {
        return NULL;
    }
    attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(m.own_cq);
    m.qp = hv_dv_create_qp(m.world->ctx, &attr, &dv);
    if (m.qp) {
        memory_connect();
    }
    return m.qp;
}

/* -- work -------------------------------------------------------------------------------------- */

static void memory_mkey(void)
{
    struct mlx5dv_mkey **mkey = SLOT(m.mkey);
    struct mlx5dv_mkey_init_attr attr = {.pd = m.world->pd,
                                         .create_flags = 1u | (take_u8() & 0x1f),
                                         .max_entries = (uint16_t)take_value()};

    if (!*mkey) {
        *mkey = hv_dv_create_mkey(&attr);
    } else {
        MUST_BE_0(hv_dv_destroy_mkey(*mkey));
        *mkey = NULL;
    }
}

/* A key and an address in it that are mostly right. */
static struct ibv_sge memory_sge(void)
{
    const struct ibv_mr *mr = *SLOT(m.mr);
    const struct mlx5dv_mkey *mkey = *SLOT(m.mkey);
    bool is_mkey = mkey && take_chance(128);
    uint64_t base = is_mkey || !mr ? 0 : (uintptr_t)mr->addr;

    return (struct ibv_sge){base + take_value(), take_value(),
                            is_mkey ? mkey->lkey
                            : mr    ? mr->lkey
                                    : take_u32()};
}

static struct mlx5dv_sig_block_domain memory_domain(struct mlx5dv_sig_t10dif *dif,
                                                    struct mlx5dv_sig_crc *crc)
{
    bool is_crc = take_chance(96);
    struct mlx5dv_sig_block_domain domain = {.sig_type = is_crc ? MLX5DV_SIG_TYPE_CRC
                                                                : MLX5DV_SIG_TYPE_T10DIF,
                                             .block_size = (enum mlx5dv_block_size)(take_u8() % 6)};

    *dif = (struct mlx5dv_sig_t10dif){.bg_type = (enum mlx5dv_sig_t10dif_bg_type)(take_u8() & 1),
                                      .bg = take_chance(128) ? 0xffff : 0,
                                      .app_tag = take_u8(),
                                      .ref_tag = take_u8(),
                                      .flags = take_u8() & 15};
    *crc = (struct mlx5dv_sig_crc){.type = (enum mlx5dv_sig_crc_type)(take_u8() & 3),
                                   .seed = take_chance(128) ? UINT64_MAX : 0};
    if (is_crc && crc->type != MLX5DV_SIG_CRC_TYPE_CRC64_XP10 && crc->seed) {
        crc->seed = UINT32_MAX;
    }
    if (is_crc) {
        domain.sig.crc = crc;
    } else {
        domain.sig.dif = dif;
    }
    return domain;
}

static void memory_set_sig(struct mlx5dv_qp_ex *dv)
{
    struct mlx5dv_sig_t10dif dif[2];
    struct mlx5dv_sig_crc crc[2];
    const struct mlx5dv_sig_block_domain mem = memory_domain(&dif[0], &crc[0]);
    const struct mlx5dv_sig_block_domain wire = memory_domain(&dif[1], &crc[1]);
    struct mlx5dv_sig_block_attr attr = {.mem = take_chance(160) ? &mem : NULL,
                                         .flags = take_chance(64),
                                         .check_mask = take_u8(),
                                         .copy_mask = take_u8()};

    attr.wire = take_chance(96) ? attr.mem : take_chance(160) ? &wire : NULL;
    mlx5dv_wr_set_mkey_sig_block(dv, &attr);
}

static void memory_set_crypto(struct mlx5dv_qp_ex *dv)
{
    struct mlx5dv_crypto_attr attr = {.encrypt_on_tx = take_chance(128),
                                      .signature_crypto_order =
                                          (enum mlx5dv_signature_crypto_order)(take_u8() % 3),
                                      .data_unit_size = (enum mlx5dv_block_size)(take_u8() % 6),
                                      .dek = *SLOT(m.dek)};

    attr.initial_tweak[take_u8() % 16] = (char)take_u8();
    if (attr.dek) {
        mlx5dv_wr_set_mkey_crypto(dv, &attr);
    }
}

static void memory_configure(void)
{
    struct ibv_qp *qp = memory_qp();
    struct ibv_qp_ex *ex = qp ? ibv_qp_to_qp_ex(qp) : NULL;
    struct mlx5dv_qp_ex *dv = ex ? hv_dv_qp_ex_from_ibv_qp_ex(ex) : NULL;
    struct mlx5dv_mkey *mkey = *SLOT(m.mkey);
    struct mlx5dv_mkey_conf_attr conf = {.conf_flags = take_u8() & 1};
    struct ibv_sge sge[4];
    struct mlx5dv_mr_interleaved pieces[4];
    uint8_t setters;

    if (!dv || !mkey) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(sge); i++) {
        sge[i] = memory_sge();
        pieces[i] =
            (struct mlx5dv_mr_interleaved){sge[i].addr, sge[i].length, take_value(), sge[i].lkey};
    }
    setters = take_u8() & 7;
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_INLINE | (take_chance(200) ? IBV_SEND_SIGNALED : 0);
    mlx5dv_wr_mkey_configure(
        dv, mkey, take_chance(240) ? (uint8_t)__builtin_popcount(setters) + 1u : take_u8() & 7,
        &conf);
    mlx5dv_wr_set_mkey_access_flags(dv, (uint32_t)take_access());
    if (setters & 1) {
        if (take_chance(160)) {
            mlx5dv_wr_set_mkey_layout_list(dv, take_u8() % 5, sge);
        } else {
            mlx5dv_wr_set_mkey_layout_interleaved(dv, take_value(), take_u8() % 5, pieces);
        }
    }
    if (setters & 2) {
        memory_set_sig(dv);
    }
    if (setters & 4) {
        memory_set_crypto(dv);
    }
    ibv_wr_complete(ex);
    memory_settle();
}

static void memory_work(void)
{
    struct ibv_qp *qp = memory_qp();
    struct ibv_qp_ex *ex = qp ? ibv_qp_to_qp_ex(qp) : NULL;
    struct mlx5dv_qp_ex *dv = ex ? hv_dv_qp_ex_from_ibv_qp_ex(ex) : NULL;
    struct ibv_sge from = memory_sge(), to = memory_sge();
    struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad;
    struct mlx5dv_mkey *mkey = *SLOT(m.mkey);
    struct mlx5dv_mkey_err info;

    if (!dv) {
        return;
    }
    from.length &= 0x3fff; /* longer messages only take longer */
    if (take_chance(128)) {
        ibv_post_recv(qp, &recv, &bad);
    }
    ibv_wr_start(ex);
    ex->wr_id = 2;
    ex->wr_flags = IBV_SEND_SIGNALED;
    switch (take_u8() % 6) {
    case 0:
        ibv_wr_send(ex);
        ibv_wr_set_sge(ex, from.lkey, from.addr, from.length);
        break;
    case 1:
        ibv_wr_rdma_write(ex, to.lkey, to.addr);
        ibv_wr_set_sge(ex, from.lkey, from.addr, from.length);
        break;
    case 2:
        ibv_wr_rdma_read(ex, to.lkey, to.addr);
        ibv_wr_set_sge(ex, from.lkey, from.addr, from.length);
        break;
    case 3:
        ibv_wr_atomic_fetch_add(ex, to.lkey, to.addr & ~7ull, 1);
        ibv_wr_set_sge(ex, from.lkey, from.addr, 8);
        break;
    case 4:
        ibv_wr_local_inv(ex, to.lkey);
        break;
    default:
        mlx5dv_wr_memcpy(dv, to.lkey, to.addr, from.lkey, from.addr, from.length);
    }
    ibv_wr_complete(ex);
    memory_settle();
    if (mkey) {
        hv_dv_ops.mkey_check(mkey, &info, sizeof(info));
    }
}

/* -- a call ------------------------------------------------------------------------------------ */

void verbs_memory_op(const struct verbs_world *world, const uint8_t **data, size_t *size)
{
    static void (*const calls[])(void) = {
        memory_dm,        memory_region, memory_region, memory_pages, memory_session,
        memory_dek,       memory_dek,    memory_cq,     memory_mkey,  memory_configure,
        memory_configure, memory_work,   memory_work,   memory_work,  memory_settle,
    };

    if (!m.bytes) {
        m.bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (m.bytes == MAP_FAILED) {
            abort();
        }
    }
    m.world = world;
    m.data = *data;
    m.size = *size;
    calls[take_u8() % G_N_ELEMENTS(calls)]();
    *data = m.data;
    *size = m.size;
}

#define END(object, destroy)                                                                       \
    do {                                                                                           \
        if (object) {                                                                              \
            MUST_BE_0(destroy(object));                                                            \
            (object) = NULL;                                                                       \
        }                                                                                          \
    } while (0)

void verbs_memory_end(const struct verbs_world *world)
{
    struct ibv_cq *cq = m.own_cq ? ibv_cq_ex_to_cq(m.own_cq) : NULL;

    if (!m.bytes) {
        return;
    }
    m.world = world;
    END(m.qp, ibv_destroy_qp);
    END(cq, ibv_destroy_cq);
    m.own_cq = NULL;
    for (unsigned i = 0; i < SLOTS; i++) {
        cq = m.cq[i] ? ibv_cq_ex_to_cq(m.cq[i]) : NULL;
        m.cq[i] = NULL;
        END(cq, ibv_destroy_cq);
        END(m.mkey[i], hv_dv_destroy_mkey);
        END(m.mr[i], ibv_dereg_mr);
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        END(m.dm[i], ibv_free_dm);
        END(m.dek[i], hv_dv_dek_destroy);
        END(m.login[i], hv_dv_crypto_login_destroy);
    }
    hv_dv_crypto_logout(world->ctx); /* ENOENT: there is no session */
    munmap(m.bytes, BYTES);
    m.bytes = NULL;
}
