/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the process's HCA (guest-lib/verbs/kernel/hca.h): which commands it gets, that its
 * interrupts are delivered, and that its work is done, whether or not a thread makes calls.
 *
 * The driver reaches its function through a table (guest-lib/drv/pci.h). A copy of that table is
 * put in between here, so that a test sees each register write before the function does.
 */
#include <check.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/host/local_internal.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

static struct hv_hca *hca;
static const struct pci_ops *real;
static struct pci_ops watched;

static void setup(void)
{
    device_open();
    hca = hv_hca_of(ctx[1]); /* the first device's HCA, unless there are two devices */
    real = hca->drv->dev.ops;
    watched = *real;
}

static void setup_cx4(void)
{
    setenv("HCASIM_PROFILE", "cx4", 1);
    setup();
}

static void setup_two(void)
{
    use_two_devices();
    setup();
}

static void teardown(void)
{
    hca->drv->dev.ops = real;
    device_close();
}

static void watch(void (*mmio_write)(void *pci, uint64_t offset, uint64_t value, unsigned size))
{
    watched.mmio_write = mmio_write;
    hca->drv->dev.ops = &watched;
}

/* -- commands ---------------------------------------------------------------------------------- */

static unsigned commands;

static void count_commands(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    commands += offset == PRM_OFFSET(initial_seg, command_doorbell_vector);
    real->mmio_write(pci, offset, value, size);
}

/* mlx5_core and mlx5_ib read the capabilities when they find the device, and the GID table is in
 * memory: values that do not change are queried once. */
START_TEST(what_does_not_change_is_asked_for_once)
{
    struct mlx5dv_context dv_attr = {.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ};
    struct ibv_ah_attr ah_attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1};
    struct ibv_device_attr_ex attr_ex;
    struct ibv_device_attr attr;
    struct ibv_gid_entry entry;
    struct ibv_ah *ah;
    __be16 pkey;

    watch(count_commands);
    must_be_0(ibv_query_gid(ctx[0], 1, 1, &ah_attr.grh.dgid));
    must_be_0(ibv_query_gid_ex(ctx[0], 1, 0, &entry, 0));
    must_be_0(ibv_query_pkey(ctx[0], 1, 0, &pkey));
    must_be_0(ibv_query_device(ctx[0], &attr));
    ck_assert_uint_eq(attr.vendor_part_id, 0x1017); /* the default generation */
    must_be_0(ibv_query_device_ex(ctx[0], NULL, &attr_ex));
    must_be_0(hv_context(ctx[0])->dv->query_device(ctx[0], &dv_attr));
    ah = ibv_create_ah(pd[0], &ah_attr);
    must(ah, "errno %d", errno);
    must_be_0(ibv_destroy_ah(ah));
    ck_assert_uint_eq(commands, 0);
}
END_TEST

/* The link's state and speed do change; a query of the port reads only these
 * (mlx5_query_port_roce()). */
START_TEST(a_query_of_the_port_asks_for_its_state_and_speed)
{
    struct ibv_port_attr attr;

    watch(count_commands);
    must_be_0(ibv_query_port(ctx[0], 1, &attr));
    ck_assert_int_eq(attr.state, IBV_PORT_ACTIVE);
    ck_assert_int_gt(attr.gid_tbl_len, 0);
    ck_assert_uint_eq(commands, 2);
}
END_TEST

/* ECE: the device enables no option. Here another device answers the commands: with the options
 * that it was asked for and one more. */
#define MORE 0x100

static uint32_t asked;

static void answer_ece(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    struct prm_cmd_queue_entry *entry = drv_cmd_entry(hca->drv, DRV_SLOT_CMD);
    const struct prm_create_qp_in *in = PRM_PTR(cmd_queue_entry, entry, command_input_inline_data);
    struct prm_create_qp_out *out = PRM_PTR(cmd_queue_entry, entry, command_output_inline_data);
    /* in bytes 0x10 and on, behind those in the entry */
    const uint8_t *box = (const void *)drv_cmd_mailbox(hca->drv, DRV_SLOT_CMD, 0);
    bool is_command = offset == PRM_OFFSET(initial_seg, command_doorbell_vector);
    unsigned opcode = PRM_GET(create_qp_in, in, opcode);

    real->mmio_write(pci, offset, value, size);
    if (!is_command || (opcode != PRM_CMD_OP_CREATE_QP && opcode != PRM_CMD_OP_RST2INIT_QP &&
                        opcode != PRM_CMD_OP_INIT2RTR_QP)) {
        return;
    }
    while (PRM_GET(cmd_queue_entry, entry, ownership)) {
        real->wait(pci, 1000000);
    }
    asked = prm_load32(box + PRM_OFFSET(create_qp_in, ece) - 0x10);
    PRM_SET(create_qp_out, out, ece, asked + MORE);
}

static uint32_t options_of(struct ibv_qp *qp)
{
    struct ibv_ece ece;

    must_be_0(ibv_query_ece(qp, &ece));
    ck_assert_uint_eq(ece.vendor_id, 0x15b3);
    return ece.options;
}

/* mlx5_set_ece(), mlx5_modify_qp(), modify_qp_mbox_alloc(): the next command has the options, once;
 * its answer is what a query returns. */
START_TEST(connection_options_go_to_the_device_and_back)
{
    struct ibv_cq *cq = ibv_create_cq(ctx[0], 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr to_rtr = {.qp_state = IBV_QPS_RTR}, to_err = {.qp_state = IBV_QPS_ERR};
    const int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 0x30000002};
    struct ibv_qp *qp;

    watch(answer_ece);
    qp = ibv_create_qp(pd[0], &init);
    must(qp, "errno %d", errno);
    ck_assert_uint_eq(asked, 0x10000000); /* libmlx5's: version 1 of the options, and none */
    ck_assert_uint_eq(options_of(qp), 0x10000000 + MORE);
    must_be_0(ibv_set_ece(qp, &ece));
    ck_assert_uint_eq(options_of(qp), 0);
    ck_assert_int_eq(ibv_modify_qp(qp, &to_init, IBV_QP_STATE), EINVAL); /* asks for nothing */
    ck_assert_uint_eq(options_of(qp), 0);
    must_be_0(ibv_modify_qp(qp, &to_init, init_mask));
    ck_assert_uint_eq(asked, 0x30000002);
    ck_assert_uint_eq(options_of(qp), 0x30000002 + MORE);
    must_be_0(ibv_modify_qp(qp, &to_rtr, IBV_QP_STATE));
    ck_assert_uint_eq(asked, 0);
    ck_assert_uint_eq(options_of(qp), 0x30000002 + MORE);
    must_be_0(ibv_set_ece(qp, &ece));
    must_be_0(ibv_modify_qp(qp, &to_err, IBV_QP_STATE)); /* 2ERR_QP has no options */
    ck_assert_uint_eq(options_of(qp), 0);
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_destroy_cq(cq));
}
END_TEST

/* mlx5_set_ece(), and no options in the commands of create_user_qp() without ece_support. */
START_TEST(a_connectx_4_has_no_connection_options)
{
    struct ibv_cq *cq = ibv_create_cq(ctx[0], 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 0x30000002};
    struct ibv_qp *qp;

    asked = 1;
    watch(answer_ece);
    qp = ibv_create_qp(pd[0], &init);
    must(qp, "errno %d", errno);
    ck_assert_uint_eq(asked, 0);
    ck_assert_int_eq(ibv_set_ece(qp, &ece), EOPNOTSUPP);
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_destroy_cq(cq));
}
END_TEST

/* -- interrupts -------------------------------------------------------------------------------- */

static struct pair *first, *second;
static gint second_is_due;

/* The EQ has been emptied and is about to be armed: an event comes before it is armed. */
static void event_before_arming(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    const struct prm_cqe64 *cqe = (const void *)hv_cq(second->cq[1])->ring;
    uint64_t arm = (uint64_t)hca->drv->uarn * PCI_PAGE + PRM_OFFSET(uar, eq_db_arm);

    if (offset == arm && g_atomic_int_compare_and_exchange(&second_is_due, 1, 0)) {
        post_send(second, 0, 0);
        must(PRM_GET(cqe64, cqe, opcode) == PRM_CQE_OPCODE_RESP_SEND,
             "the completion is not there yet");
    }
    real->mmio_write(pci, offset, value, size);
}

static bool comes_within(const struct ibv_comp_channel *channel, int ms)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

    return poll(&fd, 1, ms) == 1;
}

/* An EQ that is armed while it holds an event raises its interrupt at once (PRM, EQ arming), while
 * the driver still handles the previous interrupt. Then the program sleeps at the channel's
 * descriptor and makes no more calls. */
START_TEST(an_event_before_the_eq_is_armed_is_reported)
{
    first = pair_new(true, false);
    second = pair_new(true, false);
    post_recv(first, 1, 0);
    post_recv(second, 1, 0);
    must_be_0(ibv_req_notify_cq(first->cq[1], 0));
    must_be_0(ibv_req_notify_cq(second->cq[1], 0));
    usleep(20000); /* the helper has gone to sleep: nobody else would deliver the event */
    g_atomic_int_set(&second_is_due, 1);
    watch(event_before_arming);
    post_send(first, 0, 0);
    ck_assert(comes_within(first->channel[1], SECONDS * 1000));
    ck_assert_int_eq(g_atomic_int_get(&second_is_due), 0);
    ck_assert(comes_within(second->channel[1], SECONDS * 1000));
    hca->drv->dev.ops = real;
    pair_free(first);
    pair_free(second);
}
END_TEST

/* -- work that is left ------------------------------------------------------------------------- */

#define MANY 4096 /* more than a turn does */

static bool is_written(const uint8_t *cqe)
{
    const uint8_t *owner = cqe + PRM_SIZE(cqe64) - 1; /* the opcode is in the same byte */
    double end = now() + SECONDS;

    while (__atomic_load_n(owner, __ATOMIC_ACQUIRE) >> 4 == PRM_CQE_OPCODE_INVALID) {
        if (now() > end) {
            return false;
        }
        usleep(1000);
    }
    return true;
}

/* A command that causes work returns when the command is done. The helper, which sleeps then, does
 * the rest. The program reads its memory and makes no more calls. */
START_TEST(what_a_command_leaves_to_do_is_done)
{
    struct ibv_cq *cq = ibv_create_cq(ctx[0], MANY, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = MANY, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr to_error = {.qp_state = IBV_QPS_ERR};
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
    struct ibv_qp *qp;

    must(cq, "errno %d", errno);
    qp = ibv_create_qp(pd[0], &init);
    must(qp, "errno %d", errno);
    must_be_0(ibv_modify_qp(qp, &to_init,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    for (unsigned i = 0; i < MANY; i++) {
        must_be_0(ibv_post_recv(qp, &wr, &bad));
    }
    usleep(20000); /* the helper has gone to sleep: nobody else would continue the work */
    must_be_0(ibv_modify_qp(qp, &to_error, IBV_QP_STATE));
    ck_assert(is_written(hv_cq(cq)->ring + (size_t)(MANY - 1) * PRM_SIZE(cqe64)));
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_destroy_cq(cq));
}
END_TEST

static gint poll_is_due;

/* The helper has delivered an interrupt and is about to sleep: now the program polls. */
static void poll_before_sleep(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    uint64_t arm = (uint64_t)hca->drv->uarn * PCI_PAGE + PRM_OFFSET(uar, eq_db_arm);
    struct ibv_wc wc;

    real->mmio_write(pci, offset, value, size);
    if (offset == arm && g_atomic_int_compare_and_exchange(&poll_is_due, 1, 0)) {
        ck_assert_int_eq(ibv_poll_cq(first->cq[1], 1, &wc), 1);
        ck_assert_int_eq(ibv_poll_cq(first->cq[1], 1, &wc), 0); /* the poll lets the HCA work */
    }
}

/* A thread that has polled once need not poll again: the helper does the work that comes then. This
 * also holds if the poll came when the helper had seen nobody poll and was about to sleep. The
 * helper goes to sleep directly from its work if other threads want the processor; otherwise it
 * checks once more, which would hide the case that this tests. */
START_TEST(the_helper_sees_a_poll_before_it_sleeps)
{
    first = pair_new(true, false);
    post_recv(first, 1, 0);
    post_recv(first, 1, 1);
    must_be_0(ibv_req_notify_cq(first->cq[1], 0));
    pthread_mutex_lock(&hca->local->lock);
    hca->local->helper.crowded_until_ns = UINT64_MAX;
    pthread_mutex_unlock(&hca->local->lock);
    usleep(20000); /* the helper sleeps */
    g_atomic_int_set(&poll_is_due, 1);
    watch(poll_before_sleep);
    post_send(first, 0, 0);
    ck_assert(comes_within(first->channel[1], SECONDS * 1000));
    usleep(20000);
    ck_assert_int_eq(g_atomic_int_get(&poll_is_due), 0);
    post_send(first, 0, 1);
    ck_assert(is_written(hv_cq(first->cq[1])->ring + PRM_SIZE(cqe64)));
    hca->drv->dev.ops = real;
    pair_free(first);
}
END_TEST

/* A thread that posts while another thread is in a turn does not wait for the lock, or only briefly
 * if that turn takes long. It leaves a note, and the next turn sends (docs/adr/0016). */
START_TEST(a_post_during_a_turn_leaves_a_note)
{
    struct local_hca *local = hca->local;
    struct ibv_wc wc;
    bool left;

    first = pair_new(true, false);
    post_recv(first, 1, 0);
    /* stands for that other thread, which took the lock long ago */
    pthread_mutex_lock(&local->lock);
    local_set_polled(local, true);
    local->worker.thread = local->helper.thread;
    local->worker.there_ns = 0;
    post_send(first, 0, 0);
    left = notes_any(&local->notes);
    pthread_mutex_unlock(&local->lock);
    ck_assert(left);
    wc = success(first->cq[1]);
    ck_assert_int_eq((int)wc.wr_id, 0);
    pair_free(first);
}
END_TEST

static gint send_is_due;
static pthread_t poller;
static unsigned yields;     /* calls by the poller */
static bool others_compute; /* other threads use the processor for a slice after each call */

/* Replaces the C library's function: other threads get the processor, one of them sends, and the
 * helper works. */
int sched_yield(void)
{
    yields += pthread_equal(pthread_self(), poller);
    if (others_compute) {
        usleep(100);
    }
    if (pthread_equal(pthread_self(), poller) &&
        g_atomic_int_compare_and_exchange(&send_is_due, 1, 0)) {
        post_send(first, 0, 0);
        must(is_written(hv_cq(first->cq[1])->ring), "it has not come");
    }
    return 0;
}

/* A thread that polls a CQ and then checks elsewhere, as libfabric does for its peer's goodbye,
 * takes what it finds there for later than what it found in the CQ. Therefore a poll that yields
 * the processor does so before its last check of the CQ. */
START_TEST(a_poll_finds_what_came_while_others_had_the_processor)
{
    double end = now() + SECONDS;
    struct ibv_wc wc;
    int found = 0;

    first = pair_new(true, false);
    post_recv(first, 1, 0);
    poller = pthread_self();
    g_atomic_int_set(&send_is_due, 1);
    while (g_atomic_int_get(&send_is_due) && now() < end) {
        found = ibv_poll_cq(first->cq[1], 1, &wc);
    }
    ck_assert_int_eq(g_atomic_int_get(&send_is_due), 0);
    ck_assert_int_eq(found, 1);
    pair_free(first);
}
END_TEST

#define MANY_POLLS 1000

static void polls_in_vain(void)
{
    struct ibv_wc wc;

    ck_assert_int_eq(ibv_poll_cq(first->cq[1], 1, &wc), 0);
}

/* While another thread works, a thread that polls in vain only waits. With more threads than
 * processors it would keep the threads from running whose messages all wait for. Therefore it
 * yields now and then (docs/adr/0016). */
START_TEST(a_thread_that_waits_for_the_worker_yields)
{
    struct local_hca *local = hca->local;

    first = pair_new(false, false);
    poller = pthread_self();
    pthread_mutex_lock(&local->lock); /* stands for that other thread, which works all the time */
    local_set_polled(local, true);
    local->worker.thread = local->helper.thread;
    local->worker.there_ns = UINT64_MAX / 2;
    yields = 0;
    for (unsigned i = 0; i < MANY_POLLS; i++) {
        polls_in_vain();
    }
    local_set_polled(local, false);
    local->worker.there_ns = 0;
    pthread_mutex_unlock(&local->lock);
    ck_assert_uint_gt(yields, 0);
    ck_assert(local->worker.waited_for);
    pair_free(first);
}
END_TEST

/* If other threads compute, a yielded processor comes back only after a slice of the scheduler,
 * each time. A thread that gets nothing for it polls longer and longer before it yields again. */
START_TEST(a_thread_that_gains_nothing_yields_less_often)
{
    first = pair_new(false, false);
    poller = pthread_self();
    others_compute = true;
    yields = 0;
    for (unsigned i = 0; i < 20 * MANY_POLLS; i++) {
        polls_in_vain();
    }
    others_compute = false;
    ck_assert_uint_gt(yields, 0);
    ck_assert_uint_lt(yields, MANY_POLLS / 10);
    pair_free(first);
}
END_TEST

/* A thread that works for the others always has something to do, though nothing comes for itself:
 * it lets waiting threads run. */
START_TEST(a_thread_that_works_for_others_yields)
{
    struct local_hca *local = hca->local;

    first = pair_new(false, false);
    poller = pthread_self();
    yields = 0;
    for (unsigned i = 0; i < MANY_POLLS; i++) {
        pthread_mutex_lock(&local->lock);
        local->poller.idle_polls = 0; /* its previous turn did something */
        local->worker.waited_for = true;
        pthread_mutex_unlock(&local->lock);
        polls_in_vain();
    }
    ck_assert_uint_gt(yields, 0);
    pair_free(first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-hca");
    TCase *tc = tcase_create("hca"), *two = tcase_create("two");
    TCase *cx4 = tcase_create("cx4");

    tcase_set_timeout(tc, 3 * SECONDS);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_does_not_change_is_asked_for_once);
    tcase_add_test(tc, a_query_of_the_port_asks_for_its_state_and_speed);
    tcase_add_test(tc, connection_options_go_to_the_device_and_back);
    tcase_add_test(tc, an_event_before_the_eq_is_armed_is_reported);
    tcase_add_test(tc, what_a_command_leaves_to_do_is_done);
    tcase_add_test(tc, a_poll_finds_what_came_while_others_had_the_processor);
    tcase_add_test(tc, a_post_during_a_turn_leaves_a_note);
    tcase_add_test(tc, a_thread_that_waits_for_the_worker_yields);
    tcase_add_test(tc, a_thread_that_gains_nothing_yields_less_often);
    tcase_add_test(tc, a_thread_that_works_for_others_yields);
    tcase_set_timeout(two, 3 * SECONDS);
    tcase_add_checked_fixture(two, setup_two, teardown);
    tcase_add_test(two, the_helper_sees_a_poll_before_it_sleeps);
    suite_add_tcase(suite, tc);
    suite_add_tcase(suite, two);
    tcase_set_timeout(cx4, 3 * SECONDS);
    tcase_add_checked_fixture(cx4, setup_cx4, teardown);
    tcase_add_test(cx4, a_connectx_4_has_no_connection_options);
    suite_add_tcase(suite, cx4);
    return run_on_own_wire(suite, "hca");
}
