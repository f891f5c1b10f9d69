/* SPDX-License-Identifier: BSD-2-Clause */
/* Erasure coding: what a calculation has, and how its jobs end; see exp/ec.h. */
#include "guest-lib/verbs/exp/ec.h"
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/to_itself.h"

/* The calculations that the driver says may be in flight. */
#define EXP_EC_INFLIGHT  1024

#define STEP_COMPLETIONS 2 /* of its receive WQE and its SEND */

/* -- who has the calculation ------------------------------------------------------------------- */

void exp_ec_hold(struct exp_ec_calc *calc)
{
    g_atomic_int_inc(&calc->users);
}

void exp_ec_put(struct exp_ec_calc *calc)
{
    if (g_atomic_int_dec_and_test(&calc->users)) {
        pthread_mutex_destroy(&calc->lock);
        free(calc->steps);
        free(calc->jobs);
        free(calc->code);
        free(calc);
    }
}

int exp_ec_begin(struct exp_ec_calc *calc)
{
    if (!hv_is_ours(calc->hca)) { /* a thread that is not here may have the lock */
        return EIO;
    }
    pthread_mutex_lock(&calc->lock);
    if (calc->is_gone || hv_is_removed(calc->hca)) {
        pthread_mutex_unlock(&calc->lock);
        return hv_refuse(calc->hca, EIO, "ec: the device has been removed, or the context closed");
    }
    return 0;
}

/* -- jobs and steps ---------------------------------------------------------------------------- */

struct exp_ec_job *exp_ec_take(struct exp_ec_calc *calc, unsigned num, struct ibv_exp_ec_comp *comp,
                               struct exp_ec_step **steps)
{
    struct exp_ec_job *job = calc->free_jobs;

    if (!job || calc->num_free < num) {
        hv_refuse(calc->hca, EOVERFLOW,
                  "ec: %u of %u steps are in flight; poll, or ask for more max_inflight_calcs",
                  calc->num_steps - calc->num_free, calc->num_steps);
        return NULL;
    }
    calc->free_jobs = job->next;
    *job = (struct exp_ec_job){.comp = comp, .left = num};
    *steps = NULL;
    calc->num_free -= num;
    while (num--) {
        struct exp_ec_step *step = calc->free_steps;

        calc->free_steps = step->next;
        step->next = *steps;
        step->job = job;
        step->left = 0;
        *steps = step;
    }
    return job;
}

/* A step has ended. Returns the job if that was its last step: then the caller ends the job,
 * without the lock. */
static struct exp_ec_job *exp_ec_end_step(struct exp_ec_calc *calc, struct exp_ec_step *step)
{
    struct exp_ec_job *job = step->job;

    step->job = NULL;
    step->next = calc->free_steps;
    calc->free_steps = step;
    calc->num_free++;
    return --job->left ? NULL : job;
}

static void exp_ec_free_job(struct exp_ec_calc *calc, struct exp_ec_job *job)
{
    job->next = calc->free_jobs;
    calc->free_jobs = job;
}

void exp_ec_drop_step(struct exp_ec_calc *calc, struct exp_ec_step *step)
{
    struct exp_ec_job *job = step->job;

    job->has_failed = true;
    if (exp_ec_end_step(calc, step)) {
        exp_ec_free_job(calc, job);
    }
}

/* Completions of a step have come. If they are the last of its job, the program is told. A step
 * that has ended is left alone. */
static void exp_ec_complete(struct exp_ec_calc *calc, struct exp_ec_step *step,
                            unsigned completions, bool has_failed)
{
    struct ibv_exp_ec_comp *comp = NULL;
    struct exp_ec_job *job = NULL;

    pthread_mutex_lock(&calc->lock);
    if (step->job) {
        step->job->has_failed |= has_failed;
        step->left -= MIN(completions, step->left);
        job = step->left ? NULL : exp_ec_end_step(calc, step);
    }
    if (job) {
        comp = job->comp;
        if (comp) {
            comp->status = job->has_failed ? IBV_EXP_EC_CALC_FAIL : IBV_EXP_EC_CALC_SUCCESS;
        }
        exp_ec_free_job(calc, job);
    }
    pthread_mutex_unlock(&calc->lock);
    if (comp) {
        comp->done(comp);
    }
}

/* No completion comes any more, so all calculations that are in flight fail. The caller holds the
 * calculation: a callback may end it. */
static void exp_ec_give_up(struct exp_ec_calc *calc)
{
    for (unsigned i = 0; i < calc->num_steps && !calc->is_over; i++) {
        exp_ec_complete(calc, &calc->steps[i], STEP_COMPLETIONS, true);
    }
}

/* The receive WQE and the SEND have the step as their number, and complete in any case. UMRs
 * complete only if they fail, and have no step. Completions are taken one at a time, because a
 * callback may end the calculation, or wait for another one. */
int exp_ec_poll(struct exp_ec_calc *calc, int n)
{
    int count = 0, got = 1;
    struct ibv_wc wc;

    exp_ec_hold(calc);
    while (count < n && got > 0 && !calc->is_over) {
        got = ibv_poll_cq(calc->cq, 1, &wc);
        if (got > 0) {
            count++;
            if (wc.wr_id) {
                exp_ec_complete(calc, (struct exp_ec_step *)(uintptr_t)wc.wr_id, 1,
                                wc.status != IBV_WC_SUCCESS);
            }
        }
    }
    if (got == 0 && hv_is_removed(calc->hca)) {
        exp_ec_give_up(calc);
    }
    exp_ec_put(calc);
    return got < 0 ? got : count;
}

/* -- the poller -------------------------------------------------------------------------------- */

/* Sleeps until the CQ has an event. False: a byte is in the pipe; or the channel was closed, with
 * its context or because the device was removed. */
static bool exp_ec_sleep(struct exp_ec_calc *calc)
{
    struct pollfd fds[] = {{.fd = calc->channel->fd, .events = POLLIN},
                           {.fd = calc->stop[0], .events = POLLIN}};
    struct ibv_cq *cq;
    void *context;

    if (poll(fds, 2, -1) < 0) {
        return errno == EINTR;
    }
    if (fds[1].revents) {
        return false;
    }
    if (fds[0].revents && ibv_get_cq_event(calc->channel, &cq, &context)) {
        pthread_mutex_lock(&calc->lock);
        calc->is_gone = true;
        pthread_mutex_unlock(&calc->lock);
        exp_ec_poll(calc, INT_MAX);
        exp_ec_give_up(calc);
        return false;
    }
    if (fds[0].revents) {
        ibv_ack_cq_events(cq, 1);
    }
    return true;
}

static void *exp_ec_poller(void *arg)
{
    struct exp_ec_calc *calc = arg;

    do {
        ibv_req_notify_cq(calc->cq, 0);
        exp_ec_poll(calc, INT_MAX);
    } while (!calc->is_over && exp_ec_sleep(calc));
    exp_ec_put(calc);
    return NULL;
}

/* The program's signals must not run on this thread. */
static int exp_ec_start_poller(struct exp_ec_calc *calc)
{
    int err = pipe(calc->stop) ? errno : 0;
    sigset_t all, old;

    if (err) {
        calc->stop[0] = calc->stop[1] = -1;
        return err;
    }
    exp_ec_hold(calc);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&calc->poller, NULL, exp_ec_poller, calc);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    calc->has_poller = !err;
    if (err) {
        exp_ec_put(calc);
    }
    return err;
}

bool exp_ec_is_poller(const struct exp_ec_calc *calc)
{
    return calc->has_poller && pthread_equal(pthread_self(), calc->poller);
}

/* In a child of fork() there is no thread, and a byte in the pipe would end the parent's. */
static void exp_ec_stop_poller(struct exp_ec_calc *calc)
{
    if (calc->has_poller && !hv_is_ours(calc->hca)) {
        exp_ec_put(calc);
    } else if (exp_ec_is_poller(calc)) {
        pthread_detach(calc->poller); /* it ends when the callback returns */
    } else if (calc->has_poller) {
        while (write(calc->stop[1], "", 1) < 0 && errno == EINTR) {
        }
        pthread_join(calc->poller, NULL);
    }
    calc->has_poller = false;
    if (calc->stop[0] >= 0) {
        close(calc->stop[0]);
        close(calc->stop[1]);
        calc->stop[0] = calc->stop[1] = -1;
    }
}

/* -- the memory -------------------------------------------------------------------------------- */

uint8_t exp_ec_entry(const struct exp_ec_calc *calc, uint8_t entry)
{
    return calc->w == 8 ? entry : entry | (calc->w == 2 ? 0x20 : 0x10);
}

uint8_t *exp_ec_group_matrix(struct exp_ec_calc *calc, unsigned group)
{
    return calc->memory + (size_t)group * EXP_EC_RESULTS * calc->k;
}

static size_t exp_ec_aligned(size_t size)
{
    return (size + 63) & ~(size_t)63;
}

/* The memory of a step: the lists of its keys, and a matrix. A list has whole units of 4 entries.
 */
static size_t exp_ec_in_list(const struct exp_ec_calc *calc)
{
    return exp_ec_aligned(calc->k * sizeof(struct prm_wqe_klm_seg));
}

static size_t exp_ec_out_list(void)
{
    return exp_ec_aligned((EXP_EC_RESULTS + 1) * sizeof(struct prm_wqe_klm_seg));
}

static size_t exp_ec_step_memory(const struct exp_ec_calc *calc)
{
    return exp_ec_in_list(calc) + exp_ec_out_list() +
           exp_ec_aligned((size_t)calc->k * EXP_EC_RESULTS);
}

/* The matrices of the groups of an encoding: a group has the next columns of the program's. */
static void exp_ec_fill_matrices(struct exp_ec_calc *calc)
{
    for (unsigned group = 0; group < calc->groups; group++) {
        unsigned first = group * EXP_EC_RESULTS, columns = MIN(calc->m - first, EXP_EC_RESULTS);
        uint8_t *to = exp_ec_group_matrix(calc, group);

        for (unsigned i = 0; i < calc->k; i++) {
            for (unsigned j = 0; j < columns; j++) {
                *to++ = exp_ec_entry(calc, calc->code[i * calc->m + first + j]);
            }
        }
    }
}

static int exp_ec_make_memory(struct exp_ec_calc *calc)
{
    size_t matrices = exp_ec_aligned((size_t)calc->groups * EXP_EC_RESULTS * calc->k);

    calc->memory_size = matrices + calc->num_steps * exp_ec_step_memory(calc);
    calc->memory = hv_ring_alloc(calc->memory_size);
    if (!calc->memory) {
        return ENOMEM;
    }
    exp_ec_fill_matrices(calc);
    for (unsigned i = 0; i < calc->num_steps; i++) {
        uint8_t *own = calc->memory + matrices + i * exp_ec_step_memory(calc);

        calc->steps[i].in_list = (void *)own;
        calc->steps[i].out_list = (void *)(own + exp_ec_in_list(calc));
        calc->steps[i].matrix = own + exp_ec_in_list(calc) + exp_ec_out_list();
    }
    calc->mr = ibv_reg_mr(calc->ibv.pd, calc->memory, calc->memory_size, IBV_ACCESS_LOCAL_WRITE);
    return calc->mr ? 0 : errno;
}

static struct mlx5dv_mkey *exp_ec_make_key(struct exp_ec_calc *calc, unsigned entries)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = calc->ibv.pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
        .max_entries = (uint16_t)entries,
    };

    return hv_dv_create_mkey(&attr);
}

static int exp_ec_make_steps(struct exp_ec_calc *calc)
{
    for (unsigned i = 0; i < calc->num_steps; i++) {
        struct exp_ec_step *step = &calc->steps[i];

        step->in = exp_ec_make_key(calc, calc->k);
        step->out = step->in ? exp_ec_make_key(calc, EXP_EC_RESULTS + 1) : NULL;
        if (!step->out) {
            return errno;
        }
        step->next = calc->free_steps;
        calc->free_steps = step;
        calc->num_free++;
    }
    for (unsigned i = 0; i < calc->num_jobs; i++) {
        exp_ec_free_job(calc, &calc->jobs[i]);
    }
    return 0;
}

/* -- the queue --------------------------------------------------------------------------------- */

/* Connects the QP to itself, with the attributes that libmlx5 gives it (alloc_calc_qp()). */
static int exp_ec_connect(struct ibv_qp *qp)
{
    const struct ibv_qp_attr attr = {.path_mtu = IBV_MTU_1024,
                                     .min_rnr_timer = 12,
                                     .timeout = 14,
                                     .retry_cnt = 7,
                                     .rnr_retry = 7,
                                     .max_rd_atomic = 1};

    return hv_connect_to_itself(qp, &attr);
}

/* A step has up to 3 send WQEs; if the QP fails, each WQE has a completion. */
static int exp_ec_make_queue(struct exp_ec_calc *calc, int vector)
{
    struct ibv_context *ctx = calc->ibv.pd->context;
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 3 * calc->num_steps,
                .max_recv_wr = calc->num_steps,
                .max_send_sge = 1,
                .max_recv_sge = 1 + EXP_EC_RESULTS},
    };

    calc->channel = ibv_create_comp_channel(ctx);
    if (!calc->channel) {
        return errno;
    }
    calc->cq = ibv_create_cq(ctx, (int)(4 * calc->num_steps), NULL, calc->channel, vector);
    if (!calc->cq) {
        return errno;
    }
    attr.send_cq = attr.recv_cq = calc->cq;
    calc->qp = ibv_create_qp(calc->ibv.pd, &attr);
    return calc->qp ? exp_ec_connect(calc->qp) : errno;
}

/* -- life -------------------------------------------------------------------------------------- */

/* Ends all that the calculation has on the device. Its memory goes when nobody is in a call. */
static void exp_ec_free(struct exp_ec_calc *calc)
{
    exp_ec_stop_poller(calc);
    if (calc->qp) {
        ibv_destroy_qp(calc->qp);
    }
    for (unsigned i = 0; calc->steps && i < calc->num_steps; i++) {
        if (calc->steps[i].in) {
            hv_mkey_end(calc->steps[i].in);
        }
        if (calc->steps[i].out) {
            hv_mkey_end(calc->steps[i].out);
        }
    }
    if (calc->mr) {
        ibv_dereg_mr(calc->mr);
    }
    if (calc->memory) {
        hv_ring_free(calc->memory, calc->memory_size);
    }
    if (calc->cq) {
        ibv_destroy_cq(calc->cq);
    }
    if (calc->channel) {
        ibv_destroy_comp_channel(calc->channel);
    }
    calc->is_over = true;
    exp_ec_put(calc);
}

/* The checks of libmlx5 (ec_attr_sanity_checks()): 0 or EINVAL. */
static int exp_ec_check(struct hv_hca *hca, const struct ibv_exp_ec_calc_init_attr *attr)
{
    bool w = attr->w == 1 || attr->w == 2 || attr->w == 4 || attr->w == 8;

    if (attr->k <= 0 || attr->k >= 256 || attr->m <= 0 || attr->m >= 256) {
        return hv_refuse(hca, EINVAL, "alloc_ec_calc: k is %d and m is %d; they may be 1 to 255",
                         attr->k, attr->m);
    }
    if (!w || attr->k + attr->m > 1 << attr->w) {
        return hv_refuse(hca, EINVAL,
                         "alloc_ec_calc: w is %d; it may be 1, 2, 4 or 8, and k + m (%d) may be "
                         "2^w at most",
                         attr->w, attr->k + attr->m);
    }
    if (attr->max_data_sge != attr->k || attr->max_code_sge != attr->m) {
        return hv_refuse(hca, EINVAL,
                         "alloc_ec_calc: max_data_sge is %d and max_code_sge is %d; they must be k "
                         "(%d) and m (%d)",
                         attr->max_data_sge, attr->max_code_sge, attr->k, attr->m);
    }
    if (!attr->encode_matrix || attr->max_inflight_calcs > INT_MAX / 1024) {
        return hv_refuse(hca, EINVAL,
                         "alloc_ec_calc: encode_matrix is NULL, or max_inflight_calcs (%u) is more "
                         "than %d",
                         attr->max_inflight_calcs, INT_MAX / 1024);
    }
    return 0;
}

static int exp_ec_make(struct exp_ec_calc *calc, const struct ibv_exp_ec_calc_init_attr *attr)
{
    int err;

    calc->num_jobs = attr->max_inflight_calcs + EXP_EC_BATCH;
    calc->num_steps = calc->num_jobs * calc->groups;
    calc->steps = calloc(calc->num_steps, sizeof(*calc->steps));
    calc->jobs = calloc(calc->num_jobs, sizeof(*calc->jobs));
    calc->code = malloc((size_t)calc->k * calc->m);
    if (!calc->steps || !calc->jobs || !calc->code) {
        return ENOMEM;
    }
    memcpy(calc->code, attr->encode_matrix, (size_t)calc->k * calc->m);
    err = exp_ec_make_queue(calc, attr->affinity_hint);
    err = err ? err : exp_ec_make_memory(calc);
    err = err ? err : exp_ec_make_steps(calc);
    return err || calc->polling ? err : exp_ec_start_poller(calc);
}

static struct ibv_exp_ec_calc *exp_ec_alloc(struct ibv_pd *pd,
                                            struct ibv_exp_ec_calc_init_attr *attr)
{
    struct hv_hca *hca = hv_hca_of(pd->context);
    struct exp_ec_calc *calc;
    int err = HV_CAP(hca, vector_calc) ? exp_ec_check(hca, attr) : ENOSYS;

    calc = err ? NULL : calloc(1, sizeof(*calc));
    if (!calc) {
        errno = err ? err : ENOMEM;
        return NULL;
    }
    calc->ibv.pd = pd;
    calc->hca = hca;
    calc->k = (unsigned)attr->k;
    calc->m = (unsigned)attr->m;
    calc->w = (unsigned)attr->w;
    calc->polling = attr->polling;
    calc->groups = (calc->m + EXP_EC_RESULTS - 1) / EXP_EC_RESULTS;
    calc->stop[0] = calc->stop[1] = -1;
    calc->users = 1;
    pthread_mutex_init(&calc->lock, NULL);
    err = exp_ec_make(calc, attr);
    if (err) {
        exp_ec_free(calc);
        errno = err;
        return NULL;
    }
    return &calc->ibv;
}

#define DRAIN_ROUNDS 10000 /* of 100 us */

/* Fails the calculations that are in flight, and tells the program of each. A QP in the error state
 * completes its WQEs; if it cannot be brought there, the device has gone, and no completion comes.
 */
static void exp_ec_drain(struct exp_ec_calc *calc)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int err = ibv_modify_qp(calc->qp, &attr, IBV_QP_STATE);

    exp_ec_stop_poller(calc);
    for (unsigned n = 0; !err && n < DRAIN_ROUNDS && calc->num_free < calc->num_steps; n++) {
        if (exp_ec_poll(calc, INT_MAX) == 0) {
            usleep(100);
        }
    }
    exp_ec_give_up(calc);
}

/* Calculations that are in flight fail. Without polling, the program is told so before this
 * returns. In a child of fork() they are the parent's. A callback may call this, too. */
static void exp_ec_dealloc(struct ibv_exp_ec_calc *ibv)
{
    struct exp_ec_calc *calc = exp_ec_calc(ibv);

    if (!calc->polling && hv_is_ours(calc->hca)) {
        exp_ec_drain(calc);
    }
    exp_ec_free(calc);
}

static int exp_ec_poll_call(struct ibv_exp_ec_calc *ibv, int n)
{
    return exp_ec_poll(exp_ec_calc(ibv), n);
}

/* The capabilities of vector calculations. False: the device does not answer. */
static bool exp_ec_query(struct ibv_context *ctx, struct prm_vector_calc_cap *cap)
{
    struct prm_query_hca_cap_in in[1] = {0};
    struct prm_query_hca_cap_out *out = g_new0(struct prm_query_hca_cap_out, 1);
    bool ok;

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, PRM_HCA_CAP_TYPE_VECTOR_CALC << 1 | 1);
    ok = !hv_dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(*out));
    memcpy(cap, PRM_PTR(query_hca_cap_out, out, capability), sizeof(*cap));
    g_free(out);
    return ok;
}

/* The driver for MLNX_OFED says the same (mlx5_ib_exp_query_device()). */
void hv_exp_ec_caps(struct ibv_context *ctx, struct ibv_exp_device_attr *attr)
{
    struct prm_vector_calc_cap cap[1];

    attr->ec_caps = (struct ibv_exp_ec_caps){0};
    attr->ec_w_mask = 0;
    if (HV_CAP(hv_hca_of(ctx), vector_calc) && exp_ec_query(ctx, cap) &&
        PRM_GET(vector_calc_cap, cap, calc_matrix)) {
        attr->exp_device_cap_flags |= IBV_EXP_DEVICE_EC_OFFLOAD;
        attr->ec_caps.max_ec_data_vector_count = PRM_GET(vector_calc_cap, cap, max_vec_count);
        attr->ec_caps.max_ec_calc_inflight_calcs = EXP_EC_INFLIGHT;
        attr->ec_w_mask = 1u << 0 | 1u << 1 | 1u << 3;
        if (PRM_GET(vector_calc_cap, cap, calc_matrix_type_8bit)) {
            attr->ec_w_mask |= 1u << 7;
        }
    }
}

void hv_exp_ec_ops(struct verbs_context_exp *ops)
{
    ops->alloc_ec_calc = exp_ec_alloc;
    ops->dealloc_ec_calc = exp_ec_dealloc;
    ops->ec_poll = exp_ec_poll_call;
    exp_ec_calls(ops);
}
