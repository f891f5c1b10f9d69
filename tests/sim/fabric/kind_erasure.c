/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure codes (ibv_exp_ec_*()): random codes encode random blocks, lose some, decode them, and
 * update their code after changes. gf_ref.h is the reference of each block. Some calculations have
 * a key that does not allow the access: they fail, with all that follow, and the calculation is
 * made anew.
 *
 * A job has a calculation on each of its hosts. Several stripes of blocks are in work at a time.
 */
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/exp/exp.h"
#include "tests/sim/fabric/sim.h"
#include "tests/unit/gf_ref.h"

#define STRIPES 3u
#define MOST_K  10u
#define MOST_M  6u
#define SPARE   4u /* blocks that hold the old data of an update */
#define BLOCKS  (MOST_K + MOST_M + SPARE)
#define LONGEST 1600u /* bytes of a block */
#define ROUNDS  6u    /* of a stripe, for each code */
#define CODES   2u

enum erasure_step {
    ERASURE_IDLE,
    ERASURE_ENCODES,
    ERASURE_DECODES,
    ERASURE_UPDATES,
};

struct erasure_stripe {
    struct ibv_exp_ec_comp comp; /* first */
    struct erasure_side *side;
    uint8_t *block[BLOCKS];
    struct ibv_sge sge[BLOCKS];
    enum erasure_step step;
    bool has_ended, has_code;
    unsigned rounds;
    uint8_t lost[MOST_K + MOST_M];
    uint8_t kept[MOST_K + MOST_M][LONGEST];
};

struct erasure_side {
    struct job *job;
    struct sim_host *host;
    struct span memory;
    struct code code;
    struct ibv_exp_ec_calc *calc;
    uint32_t len; /* of the blocks */
    struct erasure_stripe stripe[STRIPES];
    unsigned codes; /* that are still to come */
    bool is_spoilt; /* a calculation has a bad key: it and all that follow fail */
};

struct erasure {
    struct erasure_side side[2];
};

static void erasure_end(struct ibv_exp_ec_comp *comp)
{
    ((struct erasure_stripe *)comp)->has_ended = true;
}

/* -- a code ------------------------------------------------------------------------------------ */

static void erasure_draw_code(struct erasure_side *side)
{
    struct chance *c = &side->job->chance;
    unsigned w = 1u << chance_below(c, 4), most = 1u << w;
    unsigned k = 1 + (unsigned)chance_below(c, MIN(MOST_K, most - 1));
    unsigned m = 1 + (unsigned)chance_below(c, MIN(MOST_M, most - k));

    code_make(&side->code, k, m, w);
    side->len = 4 * (1 + (uint32_t)chance_below(c, LONGEST / 4));
    if (chance_one_in(c, 2)) {
        side->len = MAX(side->len / 64 * 64, 64);
    }
}

/* Blocks follow one another, or have gaps of the others' lengths between them. */
static void erasure_place(struct erasure_side *side, struct erasure_stripe *stripe, unsigned nth)
{
    uint8_t *at = side->memory.at + (size_t)nth * BLOCKS * LONGEST;
    uint32_t distance = chance_one_in(&side->job->chance, 2) ? side->len : LONGEST;

    for (unsigned b = 0; b < BLOCKS; b++) {
        stripe->block[b] = at + b * distance;
        stripe->sge[b] =
            (struct ibv_sge){(uintptr_t)stripe->block[b], side->len, side->memory.mr->lkey};
    }
    stripe->comp.done = erasure_end;
    stripe->side = side;
    stripe->step = ERASURE_IDLE;
    stripe->has_code = stripe->has_ended = false;
    stripe->rounds = ROUNDS;
}

static void erasure_begin(struct erasure_side *side)
{
    struct ibv_exp_ec_calc_init_attr attr = {
        .comp_mask = IBV_EXP_EC_CALC_INIT_ATTR_RESERVED - 1,
        .max_inflight_calcs = STRIPES,
        .polling = 1,
    };

    erasure_draw_code(side);
    attr.k = attr.max_data_sge = (int)side->code.k;
    attr.m = attr.max_code_sge = (int)side->code.m;
    attr.w = (int)side->code.w;
    attr.encode_matrix = side->code.matrix;
    side->calc = ibv_exp_alloc_ec_calc(side->host->pd, &attr);
    sim_check(side->job, side->calc, "no calculation for k %u, m %u, w %u: errno %d", side->code.k,
              side->code.m, side->code.w, errno);
    side->is_spoilt = false;
    for (unsigned i = 0; i < STRIPES; i++) {
        erasure_place(side, &side->stripe[i], i);
    }
    sim_note(side->job, "host %u: k %u, m %u, w %u, blocks of %u bytes", side->host->number,
             side->code.k, side->code.m, side->code.w, side->len);
}

/* -- calls ------------------------------------------------------------------------------------- */

static void erasure_fill(struct erasure_side *side, uint8_t *block)
{
    for (uint32_t i = 0; i < side->len; i++) {
        block[i] = (uint8_t)chance_below(&side->job->chance, 256);
    }
}

static struct ibv_exp_ec_mem erasure_mem(struct erasure_stripe *stripe)
{
    const struct code *code = &stripe->side->code;

    return (struct ibv_exp_ec_mem){.data_blocks = stripe->sge,
                                   .num_data_sge = (int)code->k,
                                   .code_blocks = stripe->sge + code->k,
                                   .num_code_sge = (int)code->m,
                                   .block_size = (int)stripe->side->len};
}

/* Sometimes a block has a bad key. Posting copies the keys, so it is good again after the call. */
static uint32_t erasure_spoil(struct erasure_side *side)
{
    if (!chance_one_in(&side->job->chance, 40)) {
        return 0;
    }
    side->is_spoilt = true;
    return 0x7fff00;
}

static void erasure_encode(struct erasure_stripe *stripe)
{
    struct erasure_side *side = stripe->side;
    struct ibv_exp_ec_mem mem = erasure_mem(stripe);
    unsigned victim = (unsigned)chance_below(&side->job->chance, side->code.k + side->code.m);
    uint32_t spoilt = erasure_spoil(side);

    for (unsigned i = 0; i < side->code.k; i++) {
        erasure_fill(side, stripe->block[i]);
    }
    stripe->sge[victim].lkey ^= spoilt;
    stripe->step = ERASURE_ENCODES;
    sim_must(side->job, ibv_exp_ec_encode_async(side->calc, &mem, &stripe->comp));
    stripe->sge[victim].lkey ^= spoilt;
}

static void erasure_decode(struct erasure_stripe *stripe)
{
    struct erasure_side *side = stripe->side;
    const struct code *code = &side->code;
    struct ibv_exp_ec_mem mem = erasure_mem(stripe);
    unsigned n = 1 + (unsigned)chance_below(&side->job->chance, code->m);
    uint8_t decoder[MOST_K * MOST_M];

    memset(stripe->lost, 0, sizeof(stripe->lost));
    for (unsigned i = 0; i < n; i++) {
        stripe->lost[chance_below(&side->job->chance, code->k + code->m)] = 1;
    }
    for (unsigned b = 0; b < code->k + code->m; b++) {
        memcpy(stripe->kept[b], stripe->block[b], side->len);
        if (stripe->lost[b]) {
            erasure_fill(side, stripe->block[b]);
        }
    }
    code_decoder(code, stripe->lost, decoder);
    stripe->step = ERASURE_DECODES;
    sim_must(side->job,
             ibv_exp_ec_decode_async(side->calc, &mem, stripe->lost, decoder, &stripe->comp));
}

/* Changes blocks of data, whose old contents go to the spare blocks. */
static void erasure_update(struct erasure_stripe *stripe)
{
    struct erasure_side *side = stripe->side;
    const struct code *code = &side->code;
    unsigned spare = code->k + code->m, most = (code->k - code->m - 1) / 2;
    unsigned changes = 1 + (unsigned)chance_below(&side->job->chance, MIN(most, SPARE));
    uint8_t data[MOST_K] = {0}, all[MOST_M];
    struct ibv_sge in[BLOCKS];
    struct ibv_exp_ec_mem mem = erasure_mem(stripe);

    memset(all, 1, sizeof(all));
    memcpy(in, stripe->sge + code->k, code->m * sizeof(*in));
    mem.data_blocks = in;
    mem.num_data_sge = (int)code->m;
    for (unsigned i = 0; i < changes; i++) {
        data[chance_below(&side->job->chance, code->k)] = 1;
    }
    for (unsigned i = 0; i < code->k; i++) {
        if (data[i]) {
            memcpy(stripe->block[spare], stripe->block[i], side->len);
            erasure_fill(side, stripe->block[i]);
            in[mem.num_data_sge++] = stripe->sge[spare++];
            in[mem.num_data_sge++] = stripe->sge[i];
        }
    }
    stripe->step = ERASURE_UPDATES;
    sim_must(side->job, ibv_exp_ec_update_async(side->calc, &mem, data, all, &stripe->comp));
}

static void erasure_post(struct erasure_stripe *stripe)
{
    const struct code *code = &stripe->side->code;
    struct chance *c = &stripe->side->job->chance;

    stripe->rounds--;
    if (!stripe->has_code || chance_one_in(c, 3)) {
        erasure_encode(stripe);
    } else if (code->k > code->m + 2 && chance_one_in(c, 2)) {
        erasure_update(stripe);
    } else {
        erasure_decode(stripe);
    }
}

/* -- results ----------------------------------------------------------------------------------- */

static void erasure_compare(struct erasure_stripe *stripe)
{
    struct erasure_side *side = stripe->side;
    const struct code *code = &side->code;

    for (unsigned j = 0; j < code->m && stripe->step != ERASURE_DECODES; j++) {
        for (uint32_t at = 0; at < side->len; at++) {
            uint8_t is = stripe->block[code->k + j][at];
            uint8_t should = code_byte(code, stripe->block, j, at);

            sim_check(side->job, is == should, "code %u of k %u, m %u, w %u: byte %u is %u, not %u",
                      j, code->k, code->m, code->w, at, is, should);
        }
    }
    for (unsigned b = 0; b < code->k + code->m && stripe->step == ERASURE_DECODES; b++) {
        sim_check(side->job, !memcmp(stripe->block[b], stripe->kept[b], side->len),
                  "block %u of k %u, m %u, w %u is not decoded", b, code->k, code->m, code->w);
    }
}

static void erasure_finish(struct erasure_stripe *stripe)
{
    struct erasure_side *side = stripe->side;
    struct sim_tally *tally = &side->job->sim->tally;
    bool is_good = stripe->comp.status == IBV_EXP_EC_CALC_SUCCESS;

    sim_check(side->job, is_good || side->is_spoilt, "a calculation with good keys has failed");
    if (is_good) {
        erasure_compare(stripe);
        tally->messages++;
        tally->bytes += side->len * (side->code.k + side->code.m);
        tally->checks++;
    } else {
        tally->errors++;
    }
    stripe->has_code = is_good;
    stripe->has_ended = false;
    stripe->step = ERASURE_IDLE;
}

/* -- the kind ---------------------------------------------------------------------------------- */

static bool erasure_is_idle(const struct erasure_side *side)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        if (side->stripe[i].step != ERASURE_IDLE) {
            return false;
        }
    }
    return true;
}

static bool erasure_is_over(const struct erasure_side *side)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        if (side->stripe[i].rounds) {
            return false;
        }
    }
    return true;
}

static void kind_erasure_make(struct job *job)
{
    struct erasure *e = job->state;

    for (unsigned h = 0; h < 2; h++) {
        struct erasure_side *side = &e->side[h];

        side->job = job;
        side->host = job->host[h];
        side->memory = sim_span(job, side->host, (size_t)STRIPES * BLOCKS * LONGEST);
        side->codes = CODES;
        erasure_begin(side);
    }
}

static bool erasure_step_side(struct erasure_side *side)
{
    bool did = ibv_exp_ec_poll(side->calc, 1 + (int)chance_below(&side->job->chance, 8)) > 0;

    for (unsigned i = 0; i < STRIPES; i++) {
        struct erasure_stripe *stripe = &side->stripe[i];

        if (stripe->has_ended) {
            erasure_finish(stripe);
            did = true;
        }
        if (stripe->step == ERASURE_IDLE && stripe->rounds && !side->is_spoilt &&
            chance_one_in(&side->job->chance, 2)) {
            erasure_post(stripe);
            did = true;
        }
    }
    if (erasure_is_idle(side) && (side->is_spoilt || (erasure_is_over(side) && side->codes))) {
        side->codes -= side->codes != 0;
        ibv_exp_dealloc_ec_calc(side->calc);
        erasure_begin(side);
        did = true;
    }
    return did;
}

static bool kind_erasure_step(struct job *job)
{
    struct erasure *e = job->state;
    bool did = erasure_step_side(&e->side[0]);

    return erasure_step_side(&e->side[1]) || did;
}

static bool kind_erasure_is_done(const struct job *job)
{
    const struct erasure *e = job->state;

    for (unsigned h = 0; h < 2; h++) {
        const struct erasure_side *side = &e->side[h];

        if (side->codes || side->is_spoilt || !erasure_is_over(side) || !erasure_is_idle(side)) {
            return false;
        }
    }
    return true;
}

static void kind_erasure_free(struct job *job)
{
    struct erasure *e = job->state;

    for (unsigned h = 0; h < 2; h++) {
        ibv_exp_dealloc_ec_calc(e->side[h].calc);
        sim_span_free(job, &e->side[h].memory);
    }
}

const struct kind kind_erasure = {
    .name = "erasure",
    .about = "erasure codes: blocks are encoded, lost, decoded and updated",
    .hosts = 2,
    .size = sizeof(struct erasure),
    .make = kind_erasure_make,
    .step = kind_erasure_step,
    .is_done = kind_erasure_is_done,
    .free = kind_erasure_free,
};
