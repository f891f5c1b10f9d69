/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements signed.h. */
#include "tests/sim/fabric/signed.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"

#define GAP    64u /* the most unused bytes between two parts */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

void signed_make_key(struct job *job, struct signed_side *side)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = side->host->pd,
                                         .create_flags =
                                             MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
                                             MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
                                         .max_entries = SIGNED_PARTS};

    side->mkey = hv_dv_create_mkey(&attr);
    sim_check(job, side->mkey, "no key: errno %d", errno);
}

void signed_init(struct job *job, struct signed_side *side, struct sim_host *host)
{
    side->host = host;
    side->span = sim_span(job, host, SIGNED_MEMORY);
    side->old = g_malloc(SIGNED_MEMORY);
    side->want = g_malloc(SIGNED_MEMORY);
    signed_make_key(job, side);
}

void signed_free(struct job *job, struct signed_side *side)
{
    sim_must(job, hv_dv_destroy_mkey(side->mkey));
    sim_span_free(job, &side->span);
    g_free(side->old);
    g_free(side->want);
}

/* -- a round is drawn -------------------------------------------------------------------------- */

static const struct {
    uint32_t bytes;
    enum mlx5dv_block_size size;
} signed_blocks[] = {
    {512, MLX5DV_BLOCK_SIZE_512},   {520, MLX5DV_BLOCK_SIZE_520},   {4048, MLX5DV_BLOCK_SIZE_4048},
    {4096, MLX5DV_BLOCK_SIZE_4096}, {4160, MLX5DV_BLOCK_SIZE_4160},
};

/* The seed has all bits clear, or all bits of the guard set. */
static uint64_t signed_seed(struct chance *chance, const struct dif_format *f)
{
    unsigned bits = dif_is_t10(f) ? 16 : 8 * dif_bytes(f);

    return f->kind && chance_one_in(chance, 2) ? UINT64_MAX >> (64 - bits) : 0;
}

static void signed_draw_tags(struct chance *chance, struct dif_format *f)
{
    f->seed = signed_seed(chance, f);
    f->app = (uint16_t)chance_next(chance);
    f->ref = chance_one_in(chance, 4) ? UINT32_MAX - 2 : (uint32_t)chance_next(chance);
    f->ref_grows = chance_below(chance, 3); /* types 1 and 2 */
    f->app_escapes = chance_one_in(chance, 3);
    f->app_ref_escapes = !f->app_escapes && chance_one_in(chance, 2);
}

static struct dif_format signed_draw_format(struct chance *chance)
{
    struct dif_format f = {
        .kind = (enum dif_kind)chance_from(chance, DIF_NONE + 1, DIF_KINDS - 1),
        .block = signed_blocks[chance_below(chance, G_N_ELEMENTS(signed_blocks))].bytes};

    signed_draw_tags(chance, &f);
    return f;
}

/* Draws the format of a key's memory: none, one that is similar to that of the wire, or another. */
static struct dif_format signed_draw_memory(struct chance *chance, const struct dif_format *wire)
{
    struct dif_format f = *wire;

    switch (chance_below(chance, wire->kind ? 4 : 2)) {
    case 0:
        return (struct dif_format){.kind = DIF_NONE};
    case 1:
        return signed_draw_format(chance);
    case 2:
        if (dif_is_t10(&f) && chance_one_in(chance, 2)) {
            f.kind = DIF_T10_CRC + DIF_T10_CHECKSUM - f.kind;
        }
        signed_draw_tags(chance, &f);
        f.app = chance_one_in(chance, 2) ? wire->app : f.app;
        f.ref = chance_one_in(chance, 2) ? wire->ref : f.ref;
        return f;
    default:
        return f;
    }
}

/* Returns whether the device may copy signatures from domain to domain, and the parts of them that
 * are equal in both (mlx5dv_wr_set_mkey_sig_block(3)). */
static bool signed_is_same(const struct signed_side *side, uint8_t *copy)
{
    const struct dif_format *m = &side->mem, *w = &side->wire;

    *copy = 0;
    if (!m->kind || !w->kind || m->block != w->block || dif_is_t10(m) != dif_is_t10(w) ||
        (!dif_is_t10(m) && m->kind != w->kind)) {
        return false;
    }
    if (!dif_is_t10(m)) {
        *copy = 0xff;
        return true;
    }
    *copy = (uint8_t)((m->kind == w->kind && m->seed == w->seed ? 0xc0 : 0) |
                      (m->app == w->app ? 0x30 : 0) | (m->ref == w->ref ? 0x0f : 0));
    return true;
}

static void signed_draw_side(struct job *job, struct signed_side *side,
                             const struct dif_format *wire, uint32_t data)
{
    struct chance *chance = &job->chance;
    bool same;

    side->wire = *wire;
    side->mem = signed_draw_memory(chance, wire);
    side->has_key = side->mkey && (side->mem.kind || wire->kind) && chance_below(chance, 3);
    side->mem = side->has_key ? side->mem : *wire;
    same = signed_is_same(side, &side->copy);
    side->names_copy = side->has_key && (same || !wire->kind) && chance_one_in(chance, 4);
    if (same && side->names_copy) {
        side->copy = (uint8_t)chance_next(chance);
    }
    side->check = chance_below(chance, 4) ? 0xff : (uint8_t)chance_next(chance);
    side->image = dif_length(&side->mem, data);
    side->is_asked = side->is_ready = !side->has_key;
    side->error = (struct dif_error){.bad = DIF_GOOD};
}

/* Chooses where the image lies in the memory. whole: in one part. */
static void signed_draw_parts(struct chance *chance, struct signed_side *side, bool whole)
{
    unsigned n = whole ? 1 : (unsigned)chance_from(chance, 1, MIN(SIGNED_PARTS, side->image));
    unsigned turn = (unsigned)chance_below(chance, n);
    uint32_t at = (uint32_t)chance_below(chance, GAP), left = side->image;
    uint32_t skip = (uint32_t)chance_below(chance, GAP);

    side->interleaved = side->has_key && side->image % n == 0 && chance_one_in(chance, 2);
    side->parts = n;
    for (unsigned i = 0; i < n; i++) {
        unsigned nth = side->interleaved ? i : (i + turn) % n;
        uint32_t len = side->interleaved ? side->image / n
                       : i + 1 == n      ? left
                                         : (uint32_t)chance_from(chance, 1, left - (n - i - 1));

        side->part[nth].at = at;
        side->part[nth].len = len;
        at += len + (side->interleaved ? skip : (uint32_t)chance_below(chance, GAP));
        left -= len;
    }
}

static void signed_scatter(const struct signed_side *side, const uint8_t *image, uint8_t *memory)
{
    for (unsigned i = 0; i < side->parts; i++) {
        memcpy(memory + side->part[i].at, image, side->part[i].len);
        image += side->part[i].len;
    }
}

/* Damages some bits, or makes some tags into escapes. */
static void signed_damage(struct job *job, const struct dif_format *f, uint8_t *image, uint32_t len)
{
    struct chance *chance = &job->chance;
    uint32_t unit = f->block + dif_bytes(f);
    unsigned n = chance_one_in(chance, 2) ? (unsigned)chance_from(chance, 1, 3) : 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t at = (uint32_t)chance_below(chance, len);

        if (f->kind && len >= unit && chance_below(chance, 3)) { /* in a signature */
            at = (uint32_t)chance_below(chance, len / unit) * unit + f->block +
                 (uint32_t)chance_below(chance, dif_bytes(f));
        }
        image[at] ^= (uint8_t)(1u << chance_below(chance, 8));
        if (dif_is_t10(f) && at % unit >= f->block && chance_one_in(chance, 2)) {
            memset(image + at / unit * unit + f->block + 2, 0xff, chance_one_in(chance, 2) ? 2 : 6);
        }
    }
}

/* Draws the data, passes it through the keys as the reference says, and fills both memories. */
static void signed_fill(struct job *job, struct signed_round *r, struct signed_side *source,
                        struct signed_side *sink)
{
    struct chance *chance = &job->chance;
    g_autofree uint8_t *data = g_malloc(r->data), *from = g_malloc(source->image);
    g_autofree uint8_t *wire = g_malloc(r->wire), *to = g_malloc(sink->image);

    chance_fill(chance, data, r->data);
    dif_make(&source->mem, data, r->data, from);
    signed_damage(job, &source->mem, from, source->image);
    if (source->has_key) {
        source->error =
            dif_pass(&source->mem, &source->wire, source->check, source->copy, r->data, from, wire);
        source->on_wire = false;
    } else {
        memcpy(wire, from, r->wire);
    }
    if (sink->has_key) {
        sink->error = dif_pass(&sink->wire, &sink->mem, sink->check, sink->copy, r->data, wire, to);
        sink->on_wire = true;
    } else {
        memcpy(to, wire, r->wire);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct signed_side *side = &r->side[i];

        chance_fill(chance, side->span.at, SIGNED_MEMORY);
        if (side == source) {
            signed_scatter(side, from, side->span.at);
        }
        memcpy(side->old, side->span.at, SIGNED_MEMORY);
        memcpy(side->want, side->span.at, SIGNED_MEMORY);
    }
    signed_scatter(sink, to, sink->want);
}

void signed_draw_round(struct job *job, struct signed_round *r)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
    struct chance *chance = &job->chance;
    struct dif_format wire = chance_below(chance, 4) ? signed_draw_format(chance)
                                                     : (struct dif_format){.kind = DIF_NONE};
    uint32_t unit = wire.kind ? wire.block : 512;
    uint32_t most = (uint32_t)CLAMP(4 * job->sim->options.size, 1, SIGNED_DATA);
    struct signed_side *near, *far;

    r->from = (unsigned)chance_below(chance, 2);
    r->opcode = opcodes[chance_below(chance, G_N_ELEMENTS(opcodes))];
    r->data = chance_below(chance, 4) ? unit * (uint32_t)chance_from(chance, 1, MAX(most / unit, 1))
                                      : (uint32_t)chance_from(chance, 1, most);
    r->wire = dif_length(&wire, r->data);
    near = &r->side[r->from];
    far = &r->side[!r->from];
    signed_draw_side(job, near, &wire, r->data);
    signed_draw_side(job, far, &wire, r->data);
    if (far->has_key && dif_is_t10(&far->wire) && chance_one_in(chance, 8)) {
        far->wire.app ^= 1; /* each block is damaged, unless its tag is not checked */
        signed_is_same(far, &far->copy);
        far->names_copy = false;
    }
    signed_draw_parts(chance, near, false);
    signed_draw_parts(chance, far, !far->has_key);
    r->messages = near->has_key || r->opcode == IBV_WR_SEND || r->wire < SIGNED_MESSAGES
                      ? 1
                      : (unsigned)chance_from(chance, 1, SIGNED_MESSAGES);
    r->done = 0;
    r->received = r->opcode != IBV_WR_SEND;
    r->reads = r->opcode == IBV_WR_RDMA_READ && far->has_key;
    r->is_posted = false;
    r->runs = true;
    if (r->opcode == IBV_WR_RDMA_READ) {
        signed_fill(job, r, far, near);
    } else {
        signed_fill(job, r, near, far);
    }
}

void signed_note(struct job *job, const struct signed_round *r)
{
    static const char *const names[] = {"none",  "T10-DIF with CRC", "T10-DIF with checksum",
                                        "CRC32", "CRC32C",           "CRC64-XP10"};

    sim_note(job, "host %u: opcode %u of %u bytes, wire: %s", r->side[r->from].host->number,
             r->opcode, r->data, names[r->side[0].wire.kind]);
    for (unsigned e = 0; e < 2; e++) {
        const struct signed_side *side = &r->side[e];

        if (side->has_key) {
            sim_note(job,
                     "host %u: key 0x%x, memory: %s, blocks of %u and %u, checks 0x%x, copies "
                     "0x%x, %s",
                     side->host->number, side->mkey->lkey, names[side->mem.kind], side->mem.block,
                     side->wire.block, side->check, side->copy,
                     side->error.bad ? "damaged" : "good");
        }
    }
}

/* -- requests ---------------------------------------------------------------------------------- */

static struct mlx5dv_sig_block_domain
signed_domain(const struct dif_format *f, struct mlx5dv_sig_t10dif *dif, struct mlx5dv_sig_crc *crc)
{
    static const enum mlx5dv_sig_crc_type types[] = {
        [DIF_CRC32] = MLX5DV_SIG_CRC_TYPE_CRC32,
        [DIF_CRC32C] = MLX5DV_SIG_CRC_TYPE_CRC32C,
        [DIF_CRC64_XP10] = MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
    };
    struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = crc};

    for (unsigned i = 0; i < G_N_ELEMENTS(signed_blocks); i++) {
        if (signed_blocks[i].bytes == f->block) {
            domain.block_size = signed_blocks[i].size;
        }
    }
    if (!dif_is_t10(f)) {
        *crc = (struct mlx5dv_sig_crc){.type = types[f->kind], .seed = f->seed};
        return domain;
    }
    *dif = (struct mlx5dv_sig_t10dif){
        .bg_type = f->kind == DIF_T10_CRC ? MLX5DV_SIG_T10DIF_CRC : MLX5DV_SIG_T10DIF_CSUM,
        .bg = (uint16_t)f->seed,
        .app_tag = f->app,
        .ref_tag = f->ref,
        .flags = (uint16_t)((f->ref_grows ? MLX5DV_SIG_T10DIF_FLAG_REF_REMAP : 0) |
                            (f->app_escapes ? MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE : 0) |
                            (f->app_ref_escapes ? MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE : 0))};
    domain.sig_type = MLX5DV_SIG_TYPE_T10DIF;
    domain.sig.dif = dif;
    return domain;
}

static void signed_set_layout(struct mlx5dv_qp_ex *dv, const struct signed_side *side)
{
    uint64_t at = (uintptr_t)side->span.at;
    struct mlx5dv_mr_interleaved source = {.addr = at + side->part[0].at,
                                           .bytes_count = side->part[0].len,
                                           .lkey = side->span.mr->lkey};
    struct ibv_sge list[SIGNED_PARTS];

    if (side->interleaved) {
        source.bytes_skip =
            side->parts > 1 ? side->part[1].at - side->part[0].at - side->part[0].len : 0;
        mlx5dv_wr_set_mkey_layout_interleaved(dv, side->parts, 1, &source);
        return;
    }
    for (unsigned i = 0; i < side->parts; i++) {
        list[i] = (struct ibv_sge){at + side->part[i].at, side->part[i].len, side->span.mr->lkey};
    }
    mlx5dv_wr_set_mkey_layout_list(dv, (uint16_t)side->parts, list);
}

void signed_configure(struct job *job, struct ibv_qp *to, uint64_t id, struct signed_side *side)
{
    struct mlx5dv_sig_t10dif dif[2];
    struct mlx5dv_sig_crc crc[2];
    const struct mlx5dv_sig_block_domain mem = signed_domain(&side->mem, &dif[0], &crc[0]);
    const struct mlx5dv_sig_block_domain wire = signed_domain(&side->wire, &dif[1], &crc[1]);
    struct mlx5dv_sig_block_attr attr = {
        .mem = side->mem.kind ? &mem : NULL,
        .wire = side->wire.kind ? &wire : NULL,
        .flags = side->names_copy ? MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK : 0,
        .check_mask = side->check,
        .copy_mask = side->copy};
    struct mlx5dv_mkey_conf_attr conf = {0};
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(to);
    struct mlx5dv_qp_ex *dv = hv_dv_ops.qp_ex_from_ibv_qp_ex(qp);

    side->is_asked = true;
    ibv_wr_start(qp);
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(dv, side->mkey, 3, &conf);
    mlx5dv_wr_set_mkey_access_flags(dv, ACCESS);
    signed_set_layout(dv, side);
    mlx5dv_wr_set_mkey_sig_block(dv, &attr);
    sim_must(job, ibv_wr_complete(qp));
}

int signed_list(const struct signed_round *r, const struct signed_side *side, uint32_t from,
                uint32_t len, struct ibv_sge *list)
{
    bool both = side->mem.kind && side->wire.kind;
    int n = 0;

    if (side->has_key) { /* an element counts the signatures that both domains have */
        list[0] = (struct ibv_sge){0, both ? side->image : r->data, side->mkey->lkey};
        return 1;
    }
    for (unsigned i = 0; i < side->parts && len; i++) {
        uint32_t now = MIN(len, side->part[i].len - MIN(from, side->part[i].len));

        if (now) {
            list[n++] = (struct ibv_sge){(uintptr_t)side->span.at + side->part[i].at + from, now,
                                         side->span.mr->lkey};
        }
        from -= MIN(from, side->part[i].len);
        len -= now;
    }
    return n;
}

/* -- results ----------------------------------------------------------------------------------- */

void signed_check_key(struct job *job, const struct signed_side *side)
{
    static const enum mlx5dv_mkey_err_type types[] = {
        [DIF_GOOD] = MLX5DV_MKEY_NO_ERR,
        [DIF_BAD_GUARD] = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
        [DIF_BAD_APP] = MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG,
        [DIF_BAD_REF] = MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG,
    };
    const struct dif_error *error = &side->error;
    struct mlx5dv_mkey_err info = {0};

    sim_must(job, hv_dv_ops.mkey_check(side->mkey, &info, sizeof(info)));
    sim_check(job,
              info.err_type == types[error->bad] &&
                  (!error->bad || (info.err.sig.offset == error->offset &&
                                   info.err.sig.expected_value == error->found &&
                                   info.err.sig.actual_value == error->computed)),
              "key 0x%x has error %u of the block at byte %" PRIu64 ", found 0x%" PRIx64
              ", computed 0x%" PRIx64 ", and not error %u at byte %" PRIu64 ", 0x%" PRIx64
              ", 0x%" PRIx64 " (%s)",
              side->mkey->lkey, info.err_type, info.err.sig.offset, info.err.sig.expected_value,
              info.err.sig.actual_value, types[error->bad], error->offset, error->found,
              error->computed, side->on_wire ? "wire" : "memory");
    job->sim->tally.checks++;
    job->sim->tally.errors += error->bad != DIF_GOOD;
}

void signed_check_memory(struct job *job, const struct signed_side *side, bool whole)
{
    for (uint32_t i = 0; i < SIGNED_MEMORY; i++) {
        sim_check(job,
                  side->span.at[i] == side->want[i] || (!whole && side->span.at[i] == side->old[i]),
                  "byte %u of a memory of host %u is 0x%x, and must be 0x%x%s", i,
                  side->host->number, side->span.at[i], side->want[i],
                  side->is_gone ? ": it was touched after its key was destroyed" : "");
    }
}
