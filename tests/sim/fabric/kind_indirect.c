/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys whose lists name other keys: ranges (KLM), blocks (KSM) and interleaved rounds, made by
 * commands and by UMRs in the ring, nested to any depth. The keys behind a list change, are
 * invalidated and destroyed under traffic; lists also name themselves, keys that are gone, keys of
 * another protection domain, and the null key. Behind the lists are regions of the host's memory
 * and of device memory. keymap.h is the reference: it says for each byte of each operation where it
 * may go.
 */
#include "tests/sim/fabric/access.h"
#include "tests/sim/fabric/keymap.h"
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"

#define MEMORY    (256u << 10) /* of each host */
#define DM        (64u << 10)  /* the first part, if the device has this much memory of its own */
#define INLINE    512u         /* bytes of a WQE for the description of a key */
#define LOG_BLOCK 12u
#define BLOCK     (1u << LOG_BLOCK)
#define GROUP     4u /* a UMR changes whole groups of entries */
#define OCTWORD   16u
#define REMOTE    (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The slots of a host's table of keys. */
enum {
    REGIONS = 5,              /* the last one is in another protection domain */
    LAID = REGIONS + 4,       /* filled by UMRs */
    MADE = KEYMAP_KEYS,       /* made with their lists by a command */
    FOREIGN = REGIONS - 1,    /* that region */
    LARGEST = MEMORY / 4,     /* of a region, in bytes */
    LONGEST_RANGE = 2 * BLOCK /* of a list, in bytes */
};

struct indirect_key {
    unsigned host, slot;
    struct ibv_mr *mr;
    struct mlx5dv_mkey *mkey;
    struct mlx5dv_devx_obj *obj;
};

struct indirect {
    struct access access; /* first member, so a pointer to it is also one to the struct */
    struct keymap now[2], next[2];
    struct indirect_key key[2][KEYMAP_KEYS];
    struct indirect_key *unsure[2]; /* its change may have been executed or not */
    uint8_t *memory[2];
    struct ibv_dm *dm[2]; /* or NULL */
    struct ibv_pd *other_pd[2];
    uint32_t gone[2]; /* a key that was destroyed */
    uint8_t variant;
    uint64_t changes;
};

static struct keymap_key *indirect_now(struct indirect *in, const struct indirect_key *k)
{
    return &in->now[k->host].key[k->slot];
}

static struct keymap_key *indirect_next(struct indirect *in, const struct indirect_key *k)
{
    return &in->next[k->host].key[k->slot];
}

static struct ibv_qp *indirect_make_qp(struct access *a, struct sim_host *host, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {.max_send_wr = ACCESS_WINDOW,
                                               .max_recv_wr = ACCESS_WINDOW,
                                               .max_send_sge = ACCESS_SGES,
                                               .max_recv_sge = ACCESS_SGES,
                                               .max_inline_data = INLINE},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = host->pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_LOCAL_INV};
    /* Data that comes in a CQE is copied by the library, which knows no indirect keys
     * (mlx5dv_create_mkey(3)). */
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
                                                  MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST |
                                                       MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
                                                       MLX5DV_QP_EX_WITH_RAW_WQE,
                                     .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE};

    return hv_dv_create_qp(host->ctx, &attr, &dv);
}

static uint32_t indirect_find(struct access *a, unsigned host, bool next, uint32_t key,
                              unsigned need, uint64_t va, uint32_t *run)
{
    const struct indirect *in = (struct indirect *)a;

    return keymap_find(next ? &in->next[host] : &in->now[host], key, 0, need, va, run, 1);
}

/* -- drawn layouts ----------------------------------------------------------------------------- */

/* Draws a key that exists, or none: mostly a region. */
static const struct keymap_key *indirect_draw_key(struct indirect *in, unsigned host)
{
    struct chance *chance = &in->access.job->chance;
    bool region = chance_below(chance, 3);
    unsigned slot = region ? (unsigned)chance_below(chance, REGIONS)
                           : (unsigned)chance_from(chance, REGIONS, MADE - 1);
    const struct keymap_key *key = &in->now[host].key[slot];

    return key->key && key->len && (slot != FOREIGN || chance_one_in(chance, 12)) ? key : NULL;
}

/* Draws where a range begins: a key and an address in it. least: the bytes that should follow
 * there. Returns how many bytes follow. */
static uint64_t indirect_draw_start(struct indirect *in, const struct indirect_key *for_key,
                                    uint64_t least, struct keymap_range *range)
{
    struct chance *chance = &in->access.job->chance;
    const struct keymap_key *key;
    uint64_t at;

    if (chance_one_in(chance, 12)) {
        range->key = chance_one_in(chance, 4)   ? in->gone[for_key->host]
                     : chance_one_in(chance, 2) ? in->now[for_key->host].null
                                                : indirect_now(in, for_key)->key;
        range->va = chance_below(chance, MEMORY);
        return MEMORY;
    }
    do {
        key = indirect_draw_key(in, for_key->host);
    } while (!key);
    at = chance_below(chance, key->len > least ? key->len - least : 1);
    if (chance_below(chance, 3)) {
        at &= ~7ull;
    }
    range->key = key->key;
    range->va = key->start + at;
    return key->len - at;
}

static void indirect_draw_list(struct indirect *in, const struct indirect_key *k,
                               struct keymap_key *layout)
{
    struct chance *chance = &in->access.job->chance;

    layout->form = KEYMAP_LIST;
    layout->num = (unsigned)chance_from(chance, 1, KEYMAP_RANGES);
    layout->rounds = 1;
    layout->len = 0;
    for (unsigned i = 0; i < layout->num; i++) {
        struct keymap_range *range = &layout->range[i];
        uint64_t left = indirect_draw_start(in, k, LONGEST_RANGE, range);

        range->stride = 0;
        range->len = (uint32_t)chance_from(chance, 1, MIN(left, LONGEST_RANGE));
        if (chance_below(chance, 3) && range->len > 8) {
            range->len &= ~7u;
        }
        layout->len += range->len;
    }
}

/* any_stride: rounds may overlap. */
static void indirect_draw_rounds(struct indirect *in, const struct indirect_key *k,
                                 struct keymap_key *layout, bool any_stride)
{
    struct chance *chance = &in->access.job->chance;

    layout->form = KEYMAP_ROUNDS;
    layout->num = (unsigned)chance_from(chance, 1, 4);
    layout->rounds = (unsigned)chance_from(chance, 1, 12);
    layout->len = 0;
    for (unsigned i = 0; i < layout->num; i++) {
        struct keymap_range *range = &layout->range[i];
        uint64_t left = indirect_draw_start(in, k, LARGEST / 4, range) / layout->rounds;
        uint32_t most = (uint32_t)CLAMP(left, 2, 0x7fff);

        range->len = (uint32_t)chance_from(chance, 1, most);
        range->stride = any_stride ? (uint32_t)chance_below(chance, most)
                                   : (uint32_t)chance_from(chance, range->len, most);
        if (chance_below(chance, 3) && range->len > 8) {
            range->len &= ~7u;
            range->stride = (range->stride + 7) & ~7u;
        }
        layout->len += (uint64_t)range->len * layout->rounds;
    }
}

static void indirect_draw_block(struct indirect *in, const struct indirect_key *k,
                                struct keymap_range *range)
{
    indirect_draw_start(in, k, BLOCK, range);
    range->len = range->stride = 0;
}

static void indirect_draw_blocks(struct indirect *in, const struct indirect_key *k,
                                 struct keymap_key *layout)
{
    struct chance *chance = &in->access.job->chance;

    layout->form = KEYMAP_BLOCKS;
    layout->log_block = LOG_BLOCK;
    layout->num = (unsigned)chance_from(chance, 1, KEYMAP_RANGES);
    layout->len = ((uint64_t)layout->num << LOG_BLOCK) - chance_below(chance, BLOCK);
    for (unsigned i = 0; i < layout->num; i++) {
        indirect_draw_block(in, k, &layout->range[i]);
    }
}

/* -- regions ----------------------------------------------------------------------------------- */

static void indirect_register(struct indirect *in, struct indirect_key *k)
{
    static const unsigned rights[] = {
        IBV_ACCESS_LOCAL_WRITE | REMOTE,
        IBV_ACCESS_LOCAL_WRITE | REMOTE,
        IBV_ACCESS_LOCAL_WRITE,
        IBV_ACCESS_REMOTE_READ,
        0,
    };
    struct access *a = &in->access;
    struct chance *chance = &a->job->chance;
    struct keymap_key *key = indirect_now(in, k);
    unsigned access = rights[chance_below(chance, G_N_ELEMENTS(rights))];
    bool dm = in->dm[k->host] && chance_one_in(chance, 3);
    uint32_t first = in->dm[k->host] && !dm ? DM : 0, room = dm ? DM : MEMORY - first;
    uint32_t len = (uint32_t)chance_from(chance, BLOCK, MIN(LARGEST, room));
    uint32_t at = first + (uint32_t)chance_below(chance, room - len + 1);
    struct ibv_pd *pd = k->slot == FOREIGN ? in->other_pd[k->host] : a->job->host[k->host]->pd;

    k->mr = dm ? ibv_reg_dm_mr(pd, in->dm[k->host], at, len, access | IBV_ACCESS_ZERO_BASED)
               : ibv_reg_mr(pd, in->memory[k->host] + at, len, access);
    sim_check(a->job, k->mr, "no region%s: errno %d", dm ? " of device memory" : "", errno);
    *key = (struct keymap_key){.key = k->mr->lkey,
                               .form = KEYMAP_MEMORY,
                               .rights = access,
                               .pd = k->slot == FOREIGN,
                               .start = dm ? 0 : (uintptr_t)k->mr->addr,
                               .len = len,
                               .at = at};
    in->next[k->host] = in->now[k->host];
}

/* -- keys that UMRs fill ----------------------------------------------------------------------- */

static void indirect_make_laid(struct indirect *in, struct indirect_key *k)
{
    struct job *job = in->access.job;
    struct mlx5dv_mkey_init_attr attr = {.pd = job->host[k->host]->pd,
                                         .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                         .max_entries = KEYMAP_RANGES};

    k->mkey = hv_dv_create_mkey(&attr);
    sim_check(job, k->mkey, "no key: errno %d", errno);
    *indirect_now(in, k) = (struct keymap_key){.key = k->mkey->lkey, .free = true};
    in->next[k->host] = in->now[k->host];
}

/* The keys of next are those after a change. Returns whether the change may be made; if not, next
 * is as before. */
static bool indirect_may(struct indirect *in, unsigned host)
{
    if (access_may_change(&in->access, host, !access_may_be_rude(&in->access))) {
        in->changes++;
        return true;
    }
    in->next[host] = in->now[host];
    return false;
}

/* Begins a UMR that makes the change. Returns NULL if there is no room, or the change must not be
 * made. */
static struct ibv_qp_ex *indirect_begin(struct indirect *in, struct indirect_key *k)
{
    struct access_conn *c = access_find_room(&in->access, k->host);
    struct ibv_qp_ex *qp;
    uint64_t id;

    if (!c || !indirect_may(in, k->host)) {
        in->next[k->host] = in->now[k->host];
        return NULL;
    }
    qp = ibv_qp_to_qp_ex(access_claim(c, k->host, k, &id));
    ibv_wr_start(qp);
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    return qp;
}

static void indirect_post_layout(struct indirect *in, const struct indirect_key *k,
                                 struct ibv_qp_ex *qp)
{
    const struct keymap_key *layout = indirect_next(in, k);
    struct mlx5dv_qp_ex *dv = hv_dv_ops.qp_ex_from_ibv_qp_ex(qp);
    struct mlx5dv_mr_interleaved source[KEYMAP_RANGES];
    struct ibv_sge list[KEYMAP_RANGES];

    for (unsigned i = 0; i < layout->num; i++) {
        const struct keymap_range *range = &layout->range[i];

        list[i] = (struct ibv_sge){range->va, range->len, range->key};
        source[i] = (struct mlx5dv_mr_interleaved){.addr = range->va,
                                                   .bytes_count = range->len,
                                                   .bytes_skip = range->stride - range->len,
                                                   .lkey = range->key};
    }
    qp->wr_flags |= IBV_SEND_INLINE;
    if (layout->form == KEYMAP_ROUNDS) {
        mlx5dv_wr_mr_interleaved(dv, k->mkey, layout->rights, layout->rounds, (uint16_t)layout->num,
                                 source);
    } else {
        mlx5dv_wr_mr_list(dv, k->mkey, layout->rights, (uint16_t)layout->num, list);
    }
}

static bool indirect_lay(struct indirect *in, struct indirect_key *k)
{
    struct chance *chance = &in->access.job->chance;
    struct keymap_key *layout = indirect_next(in, k);
    struct ibv_qp_ex *qp;

    layout->free = false;
    layout->rights = IBV_ACCESS_LOCAL_WRITE | ((unsigned)chance_next(chance) & REMOTE);
    if (chance_one_in(chance, 2)) {
        indirect_draw_rounds(in, k, layout, false);
    } else {
        indirect_draw_list(in, k, layout);
    }
    qp = indirect_begin(in, k);
    if (!qp) {
        return false;
    }
    indirect_post_layout(in, k, qp);
    sim_must(in->access.job, ibv_wr_complete(qp));
    return true;
}

static bool indirect_invalidate(struct indirect *in, struct indirect_key *k)
{
    struct ibv_qp_ex *qp;

    indirect_next(in, k)->free = true;
    qp = indirect_begin(in, k);
    if (!qp) {
        return false;
    }
    ibv_wr_local_inv(qp, k->mkey->rkey);
    sim_must(in->access.job, ibv_wr_complete(qp));
    return true;
}

/* -- keys that are made with their lists ------------------------------------------------------- */

static void indirect_set_entry(struct prm_wqe_klm_seg *entry, const struct keymap_range *range,
                               enum keymap_form form)
{
    PRM_SET(wqe_klm_seg, entry, byte_count,
            form == KEYMAP_ROUNDS ? range->stride << 16 | range->len : range->len);
    PRM_SET(wqe_klm_seg, entry, mkey, range->key);
    PRM_SET(wqe_klm_seg, entry, va, range->va);
}

/* Writes the entries of a layout. Returns their number. */
static unsigned indirect_set_entries(struct prm_wqe_klm_seg *entry, const struct keymap_key *layout)
{
    unsigned n = layout->num;

    if (layout->form == KEYMAP_ROUNDS) {
        struct prm_wqe_repeat_block_seg *block = (void *)entry++;

        PRM_SET(wqe_repeat_block_seg, block, op, PRM_WQE_REPEAT_OP_STRIDED_BLOCK);
        PRM_SET(wqe_repeat_block_seg, block, repeat_count, layout->rounds);
        PRM_SET(wqe_repeat_block_seg, block, num_ent, layout->num);
        n++;
    }
    for (unsigned i = 0; i < layout->num; i++) {
        indirect_set_entry(&entry[i], &layout->range[i], layout->form);
    }
    return n;
}

static void indirect_draw_layout(struct indirect *in, const struct indirect_key *k,
                                 struct keymap_key *layout)
{
    struct chance *chance = &in->access.job->chance;

    switch (chance_below(chance, 3)) {
    case 0:
        indirect_draw_list(in, k, layout);
        break;
    case 1:
        indirect_draw_rounds(in, k, layout, true);
        break;
    default:
        indirect_draw_blocks(in, k, layout);
    }
    layout->rights = IBV_ACCESS_LOCAL_WRITE * (chance_below(chance, 4) != 0) |
                     ((unsigned)chance_next(chance) & REMOTE);
    layout->start =
        chance_below(chance, 3) ? chance_next(chance) >> 20 << 12 : chance_next(chance) >> 8;
}

static void indirect_make_made(struct indirect *in, struct indirect_key *k)
{
    enum {
        ROOM = (KEYMAP_RANGES + 1 + GROUP) / GROUP * GROUP
    };
    uint8_t cmd[PRM_SIZE(create_mkey_in) + ROOM * OCTWORD] = {0};
    struct prm_create_mkey_in *input = (void *)cmd;
    struct prm_create_mkey_out out[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, input, memory_key_mkey_entry);
    struct job *job = in->access.job;
    struct keymap_key *key = indirect_now(in, k);
    unsigned n;

    *key = (struct keymap_key){0};
    indirect_draw_layout(in, k, key);
    n = indirect_set_entries((void *)(cmd + PRM_OFFSET(create_mkey_in, klm_pas_mtt)), key);
    PRM_SET(create_mkey_in, input, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(create_mkey_in, input, translations_octword_actual_size, n);
    PRM_SET(mkc, mkc, access_mode_1_0,
            key->form == KEYMAP_BLOCKS ? PRM_MKC_ACCESS_MODE_KSM : PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, !!(key->rights & IBV_ACCESS_LOCAL_WRITE));
    PRM_SET(mkc, mkc, rr, !!(key->rights & IBV_ACCESS_REMOTE_READ));
    PRM_SET(mkc, mkc, rw, !!(key->rights & IBV_ACCESS_REMOTE_WRITE));
    PRM_SET(mkc, mkc, a, !!(key->rights & IBV_ACCESS_REMOTE_ATOMIC));
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, ++in->variant);
    PRM_SET(mkc, mkc, pd, hv_pd(job->host[k->host]->pd)->pdn);
    PRM_SET(mkc, mkc, start_addr, key->start);
    PRM_SET(mkc, mkc, len, key->len);
    PRM_SET(mkc, mkc, log_page_size, key->log_block);
    PRM_SET(mkc, mkc, translations_octword_size, ROOM);
    k->obj = hv_dv_devx_obj_create(job->host[k->host]->ctx, cmd, sizeof(cmd), out, sizeof(out));
    sim_check(job, k->obj, "no key: errno %d, syndrome 0x%x", errno,
              (unsigned)PRM_GET(create_mkey_out, out, syndrome));
    key->key = PRM_GET(create_mkey_out, out, mkey_index) << 8 | in->variant;
    in->next[k->host] = in->now[k->host];
}

/* Draws some whole groups of a list again. Returns the first range that is changed, and their
 * number in *num. */
static unsigned indirect_draw_part(struct indirect *in, struct indirect_key *k,
                                   struct keymap_key *layout, unsigned *num)
{
    struct chance *chance = &in->access.job->chance;
    unsigned groups = layout->num / GROUP;
    unsigned first = (unsigned)chance_below(chance, groups) * GROUP;

    *num = (unsigned)chance_from(chance, 1, groups - first / GROUP) * GROUP;
    for (unsigned i = first; i < first + *num; i++) {
        struct keymap_range *range = &layout->range[i];

        if (layout->form == KEYMAP_BLOCKS) {
            indirect_draw_block(in, k, range);
        } else {
            range->len = (uint32_t)MIN(indirect_draw_start(in, k, range->len, range), range->len);
        }
    }
    return first;
}

/* A WQE that the program writes itself changes a part of the list. */
static bool indirect_change_part(struct indirect *in, struct indirect_key *k)
{
    enum {
        BYTES = sizeof(struct hv_umr_wqe) + KEYMAP_RANGES * OCTWORD
    };
    uint8_t bytes[BYTES] __attribute__((aligned(64))) = {0};
    struct hv_umr_wqe *wqe = (void *)bytes;
    struct keymap_key *layout = indirect_next(in, k);
    struct ibv_qp_ex *qp;
    unsigned first, num;

    if (layout->form == KEYMAP_ROUNDS || layout->num < GROUP) {
        return false;
    }
    first = indirect_draw_part(in, k, layout, &num);
    qp = indirect_begin(in, k);
    if (!qp) {
        return false;
    }
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, opcode, PRM_WQE_OPCODE_UMR);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, qpn, qp->qp_base.qp_num);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ds, (sizeof(*wqe) + num * OCTWORD) / 16);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ce, 2);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, umr_mkey, layout->key);
    PRM_SET(wqe_umr_ctrl_seg, wqe->umr, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, wqe->umr, translation_offset_en, 1);
    PRM_SET(wqe_umr_ctrl_seg, wqe->umr, xlt_octowords, num);
    PRM_SET(wqe_umr_ctrl_seg, wqe->umr, xlt_offset, first);
    for (unsigned i = 0; i < num; i++) {
        indirect_set_entry((struct prm_wqe_klm_seg *)wqe->entries + i, &layout->range[first + i],
                           layout->form);
    }
    mlx5dv_wr_raw_wqe(hv_dv_ops.qp_ex_from_ibv_qp_ex(qp), wqe);
    sim_must(in->access.job, ibv_wr_complete(qp));
    return true;
}

/* -- changes ----------------------------------------------------------------------------------- */

/* Makes the key of a slot, which is empty. */
static void indirect_make_key(struct indirect *in, struct indirect_key *k)
{
    if (k->slot < REGIONS) {
        indirect_register(in, k);
    } else if (k->slot < LAID) {
        indirect_make_laid(in, k);
    } else {
        indirect_make_made(in, k);
    }
    sim_note(in->access.job, "host %u: key 0x%x is new", in->access.job->host[k->host]->number,
             indirect_now(in, k)->key);
}

/* A command destroys the key. It may have to wait for a turn of the HCA. */
static void indirect_destroy(struct indirect *in, struct indirect_key *k)
{
    struct job *job = in->access.job;

    if (k->mr) {
        sim_must(job, ibv_dereg_mr(k->mr));
    } else if (k->mkey) {
        sim_must(job, hv_dv_destroy_mkey(k->mkey));
    } else if (k->obj) {
        sim_must(job, hv_dv_devx_obj_destroy(k->obj));
    }
    k->mr = NULL;
    k->mkey = NULL;
    k->obj = NULL;
}

static bool indirect_replace(struct indirect *in, struct indirect_key *k)
{
    in->gone[k->host] = indirect_now(in, k)->key;
    *indirect_next(in, k) = (struct keymap_key){0};
    if (in->unsure[k->host] == k) {
        access_may_change(&in->access, k->host, false);
    } else if (!indirect_may(in, k->host)) {
        return false;
    }
    indirect_destroy(in, k);
    in->now[k->host] = in->next[k->host];
    in->unsure[k->host] = NULL;
    access_has_changed(&in->access, k->host);
    indirect_make_key(in, k);
    in->changes++;
    return true;
}

static void indirect_ctrl_done(struct access *a, struct access_op *op, enum ibv_wc_status status)
{
    struct indirect *in = (struct indirect *)a;
    struct indirect_key *k = op->about;

    if (status != IBV_WC_SUCCESS) {
        in->unsure[k->host] = k;
        return;
    }
    in->now[k->host] = in->next[k->host];
    access_has_changed(a, k->host);
    sim_note(a->job, "host %u: key 0x%x is changed", a->job->host[k->host]->number,
             indirect_now(in, k)->key);
}

/* One change at a time is under way at a host. */
static bool indirect_step_host(struct indirect *in, unsigned host)
{
    struct chance *chance = &in->access.job->chance;
    struct indirect_key *k = &in->key[host][chance_below(chance, KEYMAP_KEYS)];

    if (in->unsure[host]) {
        return indirect_replace(in, in->unsure[host]);
    }
    if (in->access.pending[host] || (chance_below(chance, 8) && !indirect_now(in, k)->free)) {
        return false;
    }
    if (k->slot >= REGIONS && k->slot < LAID) {
        if (indirect_now(in, k)->free || chance_one_in(chance, 2)) {
            return indirect_lay(in, k);
        }
        return chance_one_in(chance, 4) ? indirect_replace(in, k) : indirect_invalidate(in, k);
    }
    if (k->slot >= LAID && chance_one_in(chance, 2)) {
        return indirect_change_part(in, k);
    }
    return indirect_replace(in, k);
}

/* -- operations -------------------------------------------------------------------------------- */

/* Draws an address of len bytes in a key, mostly. */
static bool indirect_draw_sge(struct indirect *in, unsigned host, struct access_sge *sge,
                              uint32_t len, bool word)
{
    struct chance *chance = &in->access.job->chance;
    const struct keymap_key *key = &in->now[host].key[chance_below(chance, KEYMAP_KEYS)];
    uint64_t at;

    if (!key->key || key->free || key->len <= len) {
        return false;
    }
    at = key->start + chance_below(chance, key->len - len + 1) +
         (chance_one_in(chance, 16) ? chance_below(chance, len) : 0);
    at = word ? (at + 7) & ~7ull : at;
    *sge = (struct access_sge){chance_one_in(chance, 64) ? in->gone[host] : key->key, len, at};
    return true;
}

static bool indirect_draw(struct access *a, struct access_side *side, uint32_t len)
{
    struct indirect *in = (struct indirect *)a;
    bool remote = side->need & REMOTE, word = side->need == IBV_ACCESS_REMOTE_ATOMIC;

    side->num_sge =
        remote || len < ACCESS_SGES ? 1 : (unsigned)chance_from(&a->job->chance, 1, ACCESS_SGES);
    for (unsigned i = 0; i < side->num_sge; i++) {
        uint32_t now =
            i + 1 == side->num_sge
                ? len
                : (uint32_t)chance_from(&a->job->chance, 1, len - (side->num_sge - i - 1));

        if (!indirect_draw_sge(in, side->host, &side->sge[i], now, word)) {
            return false;
        }
        len -= now;
    }
    return true;
}

/* -- steps ------------------------------------------------------------------------------------- */

static uint32_t indirect_query_null(const struct job *job, const struct sim_host *host)
{
    struct prm_query_special_contexts_in in[1] = {0};
    struct prm_query_special_contexts_out out[1] = {0};

    PRM_SET(query_special_contexts_in, in, opcode, PRM_CMD_OP_QUERY_SPECIAL_CONTEXTS);
    sim_must(job, hv_cmd(hv_hca_of(host->ctx), in, sizeof(in), out, sizeof(out)));
    return (uint32_t)PRM_GET(query_special_contexts_out, out, null_mkey);
}

/* The first part of a host's memory is in the device, unless other jobs have taken the device's
 * memory. */
static void indirect_use_dm(struct indirect *in, unsigned h)
{
    struct mirror *m = &in->access.mirror[h];
    struct ibv_alloc_dm_attr attr = {.length = DM};

    in->dm[h] = ibv_alloc_dm(in->access.job->host[h]->ctx, &attr);
    sim_check(in->access.job, in->dm[h] || errno == ENOMEM, "no device memory: errno %d", errno);
    for (unsigned i = 0; in->dm[h] && i < DM / MIRROR_PAGE; i++) {
        m->page[i] = (uint8_t *)hv_dm(in->dm[h])->map + (size_t)i * MIRROR_PAGE;
        memcpy(m->page[i], m->copy + (size_t)i * MIRROR_PAGE, MIRROR_PAGE);
    }
}

static void kind_indirect_make(struct job *job)
{
    struct indirect *in = job->state;

    in->access.make_qp = indirect_make_qp;
    in->access.find = indirect_find;
    in->access.draw = indirect_draw;
    in->access.ctrl_done = indirect_ctrl_done;
    for (unsigned h = 0; h < 2; h++) {
        in->memory[h] = sim_memory(job->sim, MEMORY);
        in->other_pd[h] = ibv_alloc_pd(job->host[h]->ctx);
        sim_check(job, in->other_pd[h], "no PD: errno %d", errno);
        in->now[h].null = indirect_query_null(job, job->host[h]);
    }
    access_init(&in->access, job, in->memory, MEMORY);
    indirect_use_dm(in, 0);
    indirect_use_dm(in, 1);
    for (unsigned i = 0; i < 2 * KEYMAP_KEYS; i++) {
        struct indirect_key *k = &in->key[i % 2][i / 2];

        k->host = i % 2;
        k->slot = i / 2;
        indirect_make_key(in, k);
    }
}

static bool kind_indirect_step(struct job *job)
{
    struct indirect *in = job->state;
    bool did = access_step(&in->access);

    did |= indirect_step_host(in, 0);
    return indirect_step_host(in, 1) || did;
}

static bool kind_indirect_is_done(const struct job *job)
{
    const struct indirect *in = job->state;

    return access_is_done(&in->access);
}

static void kind_indirect_check(struct job *job)
{
    access_check(job->state);
}

static void kind_indirect_free(struct job *job)
{
    struct indirect *in = job->state;

    access_free(&in->access);
    for (unsigned i = 0; i < 2 * KEYMAP_KEYS; i++) {
        indirect_destroy(in, &in->key[i % 2][i / 2]);
    }
    for (unsigned h = 0; h < 2; h++) {
        sim_must(job, in->dm[h] ? ibv_free_dm(in->dm[h]) : 0);
        sim_must(job, ibv_dealloc_pd(in->other_pd[h]));
    }
}

const struct kind kind_indirect = {
    .name = "indirect",
    .about = "keys whose lists name other keys, nested, which change and go under traffic",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct indirect),
    .make = kind_indirect_make,
    .step = kind_indirect_step,
    .is_done = kind_indirect_is_done,
    .check = kind_indirect_check,
    .free = kind_indirect_free,
};
