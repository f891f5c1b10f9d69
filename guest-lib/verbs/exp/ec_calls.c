/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that calculate: encode, decode, update; see exp/ec.h.
 *
 * Errors are those of libmlx5: numbers of blocks that do not fit are -EINVAL, lengths are EINVAL
 * (in errno, too), too many calculations in flight are -EOVERFLOW.
 */
#include "guest-lib/verbs/exp/ec.h"
#include <string.h>
#include "guest-lib/verbs/user/send_wqe.h"

#define MOST_BLOCKS 256

static int exp_ec_bad_length(struct exp_ec_calc *calc, const char *call, const struct ibv_sge *sge,
                             int block)
{
    errno = hv_refuse(calc->hca, EINVAL, "%s: a block has %u bytes; block_size is %d", call,
                      sge->length, block);
    return errno;
}

/* Returns 0, or EINVAL if a block does not have the length of all blocks. */
static int exp_ec_check_lengths(struct exp_ec_calc *calc, const char *call,
                                const struct ibv_sge *sge, unsigned n, int block)
{
    for (unsigned i = 0; i < n; i++) {
        if (block < 0 || sge[i].length != (uint32_t)block) {
            return exp_ec_bad_length(calc, call, &sge[i], block);
        }
    }
    return 0;
}

/* Blocks of less than 4 bytes have nothing to compute. */
static int exp_ec_check_block(struct exp_ec_calc *calc, const char *call, int block)
{
    if (block < 4) {
        errno =
            hv_refuse(calc->hca, EINVAL, "%s: block_size is %d; it must be 4 or more", call, block);
        return errno;
    }
    return 0;
}

/* Posts the next step of a job. True: it is posted. */
static bool exp_ec_go(struct exp_ec_calc *calc, struct exp_ec_step *step,
                      const struct exp_ec_plan *plan)
{
    if (exp_ec_post(calc, step, plan)) {
        exp_ec_drop_step(calc, step);
        return false;
    }
    return true;
}

/* The result of a call: it succeeds if a step was posted, whose end tells of the others. */
static int exp_ec_result(bool is_posted)
{
    errno = is_posted ? 0 : EIO;
    return is_posted ? 0 : EIO;
}

/* -- encode ------------------------------------------------------------------------------------ */

int exp_ec_check_encode(struct exp_ec_calc *calc, const struct ibv_exp_ec_mem *mem)
{
    int err;

    if (mem->num_data_sge != (int)calc->k || mem->num_code_sge != (int)calc->m) {
        return -hv_refuse(calc->hca, EINVAL,
                          "ec_encode: num_data_sge is %d and num_code_sge is %d; they must be k "
                          "(%u) and m (%u)",
                          mem->num_data_sge, mem->num_code_sge, calc->k, calc->m);
    }
    err = exp_ec_check_block(calc, "ec_encode", mem->block_size);
    err = err ? err
              : exp_ec_check_lengths(calc, "ec_encode", mem->data_blocks, calc->k, mem->block_size);
    return err ? err
               : exp_ec_check_lengths(calc, "ec_encode", mem->code_blocks, calc->m,
                                      mem->block_size);
}

int exp_ec_encode(struct exp_ec_calc *calc, const struct ibv_exp_ec_mem *mem,
                  struct ibv_exp_ec_comp *comp)
{
    struct exp_ec_step *step, *next;
    bool is_posted = false;

    if (!exp_ec_take(calc, calc->groups, comp, &step)) {
        return -EOVERFLOW;
    }
    for (unsigned group = 0; step; group++, step = next) {
        unsigned first = group * EXP_EC_RESULTS;
        struct exp_ec_plan plan = {
            .in = mem->data_blocks,
            .num_in = calc->k,
            .out = mem->code_blocks + first,
            .num_out = MIN(calc->m - first, EXP_EC_RESULTS),
            .block = (uint32_t)mem->block_size,
            .matrix = exp_ec_group_matrix(calc, group),
        };

        next = step->next;
        is_posted |= exp_ec_go(calc, step, &plan);
    }
    return exp_ec_result(is_posted);
}

static int exp_ec_encode_async(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem,
                               struct ibv_exp_ec_comp *comp)
{
    struct exp_ec_calc *calc = exp_ec_calc(ibv);
    int err = exp_ec_check_encode(calc, mem);

    err = err ? err : exp_ec_begin(calc);
    if (!err) {
        err = exp_ec_encode(calc, mem, comp);
        pthread_mutex_unlock(&calc->lock);
    }
    return err;
}

/* -- decode ------------------------------------------------------------------------------------ */

/* Block i of data and code together. */
static const struct ibv_sge *exp_ec_block(const struct exp_ec_calc *calc,
                                          const struct ibv_exp_ec_mem *mem, unsigned i)
{
    return i < calc->k ? &mem->data_blocks[i] : &mem->code_blocks[i - calc->k];
}

/* The blocks of a decoding: the first k that are left, and those that are lost. */
struct exp_ec_loss {
    struct ibv_sge left[MOST_BLOCKS], lost[MOST_BLOCKS];
    unsigned num_lost;
};

static int exp_ec_find_loss(struct exp_ec_calc *calc, const struct ibv_exp_ec_mem *mem,
                            const uint8_t *erasures, struct exp_ec_loss *loss)
{
    unsigned num_left = 0;
    int err = exp_ec_check_block(calc, "ec_decode", mem->block_size);

    loss->num_lost = 0;
    for (unsigned i = 0; i < calc->k + calc->m && !err; i++) {
        const struct ibv_sge *block = exp_ec_block(calc, mem, i);

        if (erasures[i]) {
            loss->lost[loss->num_lost++] = *block;
        } else if (num_left < calc->k) {
            loss->left[num_left++] = *block;
        }
        err = exp_ec_check_lengths(calc, "ec_decode", block, 1, mem->block_size);
    }
    if (!err && loss->num_lost > calc->m) {
        err = hv_refuse(calc->hca, EINVAL, "ec_decode: %u blocks are lost; the code has %u (m)",
                        loss->num_lost, calc->m);
        errno = err;
    }
    return err;
}

/* Fills the matrix of a step: the columns of the program's from first on. */
static void exp_ec_fill_decode(const struct exp_ec_calc *calc, uint8_t *to, const uint8_t *from,
                               unsigned columns, unsigned first, unsigned n)
{
    for (unsigned i = 0; i < calc->k; i++) {
        for (unsigned j = 0; j < n; j++) {
            *to++ = exp_ec_entry(calc, from[i * columns + first + j]);
        }
    }
}

static int exp_ec_decode(struct exp_ec_calc *calc, const struct exp_ec_loss *loss, int block,
                         const uint8_t *matrix, struct ibv_exp_ec_comp *comp)
{
    struct exp_ec_step *step, *next;
    unsigned num = (loss->num_lost + EXP_EC_RESULTS - 1) / EXP_EC_RESULTS;
    bool is_posted = false;

    if (!exp_ec_take(calc, num, comp, &step)) {
        return -EOVERFLOW;
    }
    for (unsigned first = 0; step; first += EXP_EC_RESULTS, step = next) {
        struct exp_ec_plan plan = {
            .in = loss->left,
            .num_in = calc->k,
            .out = loss->lost + first,
            .num_out = MIN(loss->num_lost - first, EXP_EC_RESULTS),
            .block = (uint32_t)block,
            .matrix = step->matrix,
        };

        exp_ec_fill_decode(calc, step->matrix, matrix, loss->num_lost, first, plan.num_out);
        next = step->next;
        is_posted |= exp_ec_go(calc, step, &plan);
    }
    return exp_ec_result(is_posted);
}

static int exp_ec_decode_async(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem,
                               uint8_t *erasures, uint8_t *matrix, struct ibv_exp_ec_comp *comp)
{
    struct exp_ec_calc *calc = exp_ec_calc(ibv);
    struct exp_ec_loss loss;
    int err = exp_ec_find_loss(calc, mem, erasures, &loss);

    if (err) {
        return err;
    }
    if (!loss.num_lost) {
        comp->status = IBV_EXP_EC_CALC_SUCCESS;
        comp->done(comp);
        return 0;
    }
    err = exp_ec_begin(calc);
    if (!err) {
        err = exp_ec_decode(calc, &loss, mem->block_size, matrix, comp);
        pthread_mutex_unlock(&calc->lock);
    }
    return err;
}

/* -- update ------------------------------------------------------------------------------------ */

static unsigned exp_ec_count(const uint8_t *map, unsigned n)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++) {
        count += map[i] != 0;
    }
    return count;
}

/* Returns 0 or an error. An update that reads as many blocks as an encoding is refused, as by
 * libmlx5 (check_update_params()). */
static int exp_ec_check_update(struct exp_ec_calc *calc, const struct ibv_exp_ec_mem *mem,
                               unsigned data, unsigned code)
{
    int err;

    if (calc->m + 2 * data >= calc->k) {
        return -hv_refuse(
            calc->hca, EINVAL,
            "ec_update: m (%u) and two blocks for each of the %u changes are not less "
            "than k (%u); encode instead",
            calc->m, data, calc->k);
    }
    if (!code || mem->num_code_sge != (int)code || mem->num_data_sge != (int)(code + 2 * data)) {
        return -hv_refuse(calc->hca, EINVAL,
                          "ec_update: num_code_sge is %d and num_data_sge is %d; the maps have %u "
                          "blocks of code, and %u of data, of which there are two each",
                          mem->num_code_sge, mem->num_data_sge, code, data);
    }
    err = exp_ec_check_block(calc, "ec_update", mem->block_size);
    err = err ? err
              : exp_ec_check_lengths(calc, "ec_update", mem->data_blocks, code + 2 * data,
                                     mem->block_size);
    return err ? err
               : exp_ec_check_lengths(calc, "ec_update", mem->code_blocks, code, mem->block_size);
}

/* Fills the matrix of a step that updates n blocks of code, whose numbers are in codes: the old
 * block of code counts once; the old and the new block of data count with their constant. */
static void exp_ec_fill_update(const struct exp_ec_calc *calc, uint8_t *to, const uint8_t *codes,
                               unsigned n, const uint8_t *data_updates)
{
    for (unsigned i = 0; i < n; i++) {
        for (unsigned j = 0; j < n; j++) {
            *to++ = exp_ec_entry(calc, i == j);
        }
    }
    for (unsigned i = 0; i < calc->k; i++) {
        for (unsigned copy = 0; data_updates[i] && copy < 2; copy++) {
            for (unsigned j = 0; j < n; j++) {
                *to++ = exp_ec_entry(calc, calc->code[i * calc->m + codes[j]]);
            }
        }
    }
}

/* mem has code old blocks of code, then an old and a new one for each of data changed blocks. */
static int exp_ec_update(struct exp_ec_calc *calc, const struct ibv_exp_ec_mem *mem,
                         const uint8_t *data_updates, const uint8_t *codes, unsigned data,
                         unsigned code, struct ibv_exp_ec_comp *comp)
{
    struct exp_ec_step *step, *next;
    struct ibv_sge in[MOST_BLOCKS];
    bool is_posted = false;

    if (!exp_ec_take(calc, (code + EXP_EC_RESULTS - 1) / EXP_EC_RESULTS, comp, &step)) {
        return -EOVERFLOW;
    }
    for (unsigned first = 0; step; first += EXP_EC_RESULTS, step = next) {
        unsigned n = MIN(code - first, EXP_EC_RESULTS);
        struct exp_ec_plan plan = {
            .in = in,
            .num_in = n + 2 * data,
            .out = mem->code_blocks + first,
            .num_out = n,
            .block = (uint32_t)mem->block_size,
            .matrix = step->matrix,
        };

        memcpy(in, mem->data_blocks + first, n * sizeof(*in));
        memcpy(in + n, mem->data_blocks + code, 2 * (size_t)data * sizeof(*in));
        exp_ec_fill_update(calc, step->matrix, codes + first, n, data_updates);
        next = step->next;
        is_posted |= exp_ec_go(calc, step, &plan);
    }
    return exp_ec_result(is_posted);
}

static int exp_ec_update_async(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem,
                               uint8_t *data_updates, uint8_t *code_updates,
                               struct ibv_exp_ec_comp *comp)
{
    struct exp_ec_calc *calc = exp_ec_calc(ibv);
    unsigned data = exp_ec_count(data_updates, calc->k), code = 0;
    uint8_t codes[MOST_BLOCKS];
    int err = exp_ec_check_update(calc, mem, data, exp_ec_count(code_updates, calc->m));

    if (err) {
        return err;
    }
    for (unsigned j = 0; j < calc->m; j++) {
        if (code_updates[j]) {
            codes[code++] = (uint8_t)j;
        }
    }
    err = exp_ec_begin(calc);
    if (!err) {
        err = exp_ec_update(calc, mem, data_updates, codes, data, code, comp);
        pthread_mutex_unlock(&calc->lock);
    }
    return err;
}

/* -- synchronous calls ------------------------------------------------------------------------- */

struct exp_ec_wait {
    struct ibv_exp_ec_comp comp;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_done;
};

static void exp_ec_wake(struct ibv_exp_ec_comp *comp)
{
    struct exp_ec_wait *wait =
        (struct exp_ec_wait *)((char *)comp - offsetof(struct exp_ec_wait, comp));

    pthread_mutex_lock(&wait->mutex);
    wait->is_done = true;
    pthread_cond_signal(&wait->cond);
    pthread_mutex_unlock(&wait->mutex);
}

#define EXP_EC_WAIT                                                                                \
    {                                                                                              \
        .comp.done = exp_ec_wake, .mutex = PTHREAD_MUTEX_INITIALIZER,                              \
        .cond = PTHREAD_COND_INITIALIZER                                                           \
    }

/* Waits for the end of a call that returned err. Returns its status, or err. A thread that calls
 * back, as polling and the poller do, polls meanwhile. EIO: a callback has ended the calculation.
 */
static int exp_ec_await(struct ibv_exp_ec_calc *ibv, struct exp_ec_wait *wait, int err)
{
    struct exp_ec_calc *calc = exp_ec_calc(ibv);
    bool polls = calc->polling || exp_ec_is_poller(calc);

    if (err) {
        errno = abs(err);
        return err;
    }
    exp_ec_hold(calc);
    pthread_mutex_lock(&wait->mutex);
    while (!wait->is_done && !(polls && calc->is_over)) {
        if (polls) {
            pthread_mutex_unlock(&wait->mutex);
            exp_ec_poll(calc, EXP_EC_BATCH);
            pthread_mutex_lock(&wait->mutex);
        } else {
            pthread_cond_wait(&wait->cond, &wait->mutex);
        }
    }
    pthread_mutex_unlock(&wait->mutex);
    exp_ec_put(calc);
    return wait->is_done ? (int)wait->comp.status : EIO;
}

static int exp_ec_encode_sync(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem)
{
    struct exp_ec_wait wait = EXP_EC_WAIT;

    return exp_ec_await(ibv, &wait, exp_ec_encode_async(ibv, mem, &wait.comp));
}

static int exp_ec_decode_sync(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem,
                              uint8_t *erasures, uint8_t *matrix)
{
    struct exp_ec_wait wait = EXP_EC_WAIT;

    return exp_ec_await(ibv, &wait, exp_ec_decode_async(ibv, mem, erasures, matrix, &wait.comp));
}

static int exp_ec_update_sync(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem,
                              uint8_t *data_updates, uint8_t *code_updates)
{
    struct exp_ec_wait wait = EXP_EC_WAIT;

    return exp_ec_await(ibv, &wait,
                        exp_ec_update_async(ibv, mem, data_updates, code_updates, &wait.comp));
}

void exp_ec_calls(struct verbs_context_exp *ops)
{
    ops->ec_encode_async = exp_ec_encode_async;
    ops->ec_encode_sync = exp_ec_encode_sync;
    ops->ec_encode_send = exp_ec_encode_send;
    ops->ec_decode_async = exp_ec_decode_async;
    ops->ec_decode_sync = exp_ec_decode_sync;
    ops->ec_update_async = exp_ec_update_async;
    ops->ec_update_sync = exp_ec_update_sync;
}
