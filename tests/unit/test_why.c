/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what the log says of a request that the responder refuses, word for word: which check
 * failed, the value that was wrong, and what is allowed. The path MTU is 256 bytes.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define MTU    256
#define REGION (64u << 10)
#define ALL                                                                                        \
    (MEM_LOCAL_READ | MEM_LOCAL_WRITE | MEM_REMOTE_READ | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)

static struct bench b;
static struct bench_qp qp;
static uint8_t data[2 * MTU];
static uint64_t mem;
static uint32_t all; /* a key for it with every right */

static void setup_attr(const struct bench_qp_attr *attr)
{
    bench_init(&b);
    bench_qp_rts(&b, attr, &qp);
    mem = fake_host_alloc(&b.host, REGION, 4096);
    all = bench_mkey(&b, mem, REGION, ALL);
}

static void setup(void)
{
    setup_attr(&(struct bench_qp_attr){
        .st = PRM_QP_ST_RC, .log_rra_max = 2, .atomic_mode = PRM_ATOMIC_MODE_UP_TO_64B});
}

static void teardown(void)
{
    bench_clear(&b);
}

/* A request of the peer for len bytes at va, with a payload of that many bytes. */
static void rx(uint8_t op, uint32_t psn, uint32_t rkey, uint64_t va, uint32_t len, size_t payload)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_RC | op, psn);

    pkt.ackreq = true;
    pkt.reth.va = pkt.atomic.va = va;
    pkt.reth.rkey = pkt.atomic.rkey = rkey;
    pkt.reth.len = len;
    bench_rx(&b, &pkt, data, payload);
}

static void rx_extended(uint64_t va, uint32_t len, size_t payload)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_EXTENDED_RC | BTH_EXTENDED_FETCH_ADD, 0);

    pkt.reth.va = va;
    pkt.reth.rkey = all;
    pkt.reth.len = len;
    bench_rx(&b, &pkt, data, payload);
}

static void rx_read(uint32_t rkey)
{
    rx(BTH_READ_REQUEST, 0, rkey, mem, 8, 0);
}

static void rx_write(uint32_t rkey, uint64_t va, uint32_t len)
{
    rx(BTH_WRITE_ONLY, 0, rkey, va, len, len);
}

/* The last line of the log names these causes of the failure of the request with this PSN. */
static void said_of(uint32_t psn, const char *numbers, const char *fmt, va_list ap)
{
    char why[256], line[512];

    vsnprintf(why, sizeof(why), fmt, ap);
    snprintf(line, sizeof(line), "qp 0x%x: a request of the peer (psn 0x%x) fails: %s (%s)", qp.qpn,
             psn, why, numbers);
    ck_assert_str_eq(b.host.last_line, line);
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_ERR);
}

static void __attribute__((format(printf, 1, 2))) key_refused(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    said_of(0, "syndrome 0x11, nak 0x62", fmt, ap);
    va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) invalid(uint32_t psn, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    said_of(psn, "syndrome 0x12, nak 0x61", fmt, ap);
    va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
receive_refused(const char *numbers, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    said_of(0, numbers, fmt, ap);
    va_end(ap);
}

/* -- keys -------------------------------------------------------------------------------------- */

START_TEST(an_rkey_that_does_not_exist)
{
    rx_read(0xabcd12);
    key_refused("rkey 0xabcd12 does not exist");
}
END_TEST

START_TEST(an_rkey_whose_low_byte_is_old)
{
    rx_read(all ^ 3);
    key_refused("rkey 0x%x does not exist; the key with this index is 0x%x", all ^ 3, all);
}
END_TEST

START_TEST(an_rkey_that_was_invalidated)
{
    ck_assert_int_eq(mkey_invalidate(&b.hca, all, b.pdn, false), MEM_OK);
    rx_read(all);
    key_refused("rkey 0x%x is free: it was invalidated, or is not registered", all);
}
END_TEST

START_TEST(an_rkey_of_another_pd)
{
    uint32_t pdn = b.pdn, key;

    ck_assert_int_eq(pd_alloc(&b.hca, 0, &b.pdn), SYN_OK);
    key = bench_mkey(&b, mem, REGION, ALL);
    rx_read(key);
    key_refused("rkey 0x%x is in PD 0x%x, but the access needs a key of PD 0x%x", key, b.pdn, pdn);
}
END_TEST

START_TEST(an_rkey_without_the_right)
{
    uint32_t key = bench_mkey(&b, mem, REGION, MEM_LOCAL_READ | MEM_REMOTE_READ);

    rx_write(key, mem, 8);
    key_refused("rkey 0x%x does not allow remote write; it allows local read, remote read", key);
}
END_TEST

START_TEST(an_rkey_without_any_right)
{
    uint32_t key = bench_mkey(&b, mem, REGION, 0);

    rx(BTH_FETCH_ADD, 0, key, mem, 0, 0);
    key_refused("rkey 0x%x does not allow remote atomic; it allows nothing", key);
}
END_TEST

START_TEST(addresses_outside_of_the_region)
{
    rx_write(all, mem + REGION - 4, 8);
    key_refused("8 bytes at 0x%" PRIx64 " are not inside rkey 0x%x, which has %u bytes at "
                "0x%" PRIx64,
                mem + REGION - 4, all, REGION, mem);
}
END_TEST

START_TEST(one_byte_behind_the_region)
{
    rx_write(all, mem + REGION, 1);
    key_refused("1 byte at 0x%" PRIx64 " is not inside rkey 0x%x, which has %u bytes at "
                "0x%" PRIx64,
                mem + REGION, all, REGION, mem);
}
END_TEST

START_TEST(an_rkey_that_is_bound_to_another_qp)
{
    uint32_t key = bench_key(
        &b, &(struct bench_key_attr){.addr = mem, .len = REGION, .access = ALL, .qpn = qp.qpn + 1});

    rx_read(key);
    key_refused("rkey 0x%x is bound to QP 0x%x; QP 0x%x may not use it", key, qp.qpn + 1, qp.qpn);
}
END_TEST

/* A READ is accepted; its key goes before the data is sent. */
START_TEST(an_rkey_that_goes_before_the_data_is_sent)
{
    b.deaf = true;
    b.hca.late_reads = true;
    for (uint32_t psn = 0; psn < 2; psn++) {
        rx(BTH_READ_REQUEST, psn * 64, all, mem, 64 * MTU, 0);
    }
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_RTS);
    ck_assert_int_eq(mkey_destroy(&b.hca, 0, all >> 8), SYN_OK);
    b.deaf = false;
    bench_run(&b);
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_ERR);
    ck_assert_ptr_nonnull(strstr(b.host.last_line, ") fails: rkey "));
    ck_assert_ptr_nonnull(strstr(b.host.last_line, " does not exist (syndrome 0x11, nak 0x62)"));
}
END_TEST

START_TEST(special_keys)
{
    b.hca.null_mkey = 0x7f00;
    b.hca.resd_lkey = 0x7e00;
    if (_i == 0) {
        rx_read(0x7f00);
        key_refused("rkey 0x7f00 is the null key, which allows only local access");
    } else {
        rx_read(0x7e00);
        key_refused("rkey 0x7e00 is the reserved lkey, which allows only local access by queues of "
                    "the kernel");
    }
}
END_TEST

START_TEST(an_lkey_of_the_receive)
{
    uint32_t key = bench_mkey(&b, mem, REGION, MEM_LOCAL_READ);

    bench_post_recv(&qp, mem, 64, key);
    rx(BTH_SEND_ONLY, 0, 0, 0, 0, 16);
    receive_refused("syndrome 0x4, nak 0x63",
                    "a key of the receive that it takes does not allow the write: lkey 0x%x does "
                    "not allow local write; it allows local read",
                    key);
}
END_TEST

START_TEST(a_key_that_a_send_may_not_invalidate)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_RC | BTH_SEND_ONLY_INV, 0);

    pkt.imm = bench_key(&b, &(struct bench_key_attr){
                                .addr = mem, .len = REGION, .access = ALL, .no_rinval = _i == 0});
    if (_i == 1) {
        ck_assert_int_eq(mkey_invalidate(&b.hca, pkt.imm, b.pdn, false), MEM_OK);
    }
    bench_post_recv(&qp, mem, 64, all);
    bench_rx(&b, &pkt, data, 16);
    receive_refused("syndrome 0x6, nak 0x0",
                    _i == 0 ? "the key that it invalidates cannot be invalidated: key 0x%x is not "
                              "for invalidation by a peer"
                            : "the key that it invalidates cannot be invalidated: key 0x%x is "
                              "free: it was invalidated, or is not registered",
                    pkt.imm);
}
END_TEST

#define NOWHERE (1ull << 40) /* no memory of the host is there */

START_TEST(memory_that_was_unmapped)
{
    uint32_t key = bench_mkey(&b, NOWHERE, REGION, ALL);

    if (_i == 0) {
        rx_write(key, NOWHERE, 8);
    } else {
        bench_post_recv(&qp, NOWHERE, 64, key);
        rx(BTH_SEND_ONLY, 0, 0, 0, 0, 16);
    }
    receive_refused("syndrome 0x2, nak 0x63",
                    "the device cannot carry it out: the memory of %s 0x%x does not answer: it was "
                    "unmapped, protected or never there",
                    _i == 0 ? "rkey" : "lkey", key);
}
END_TEST

START_TEST(a_receive_queue_that_cannot_be_read)
{
    bench_post_recv(&qp, mem, 64, all);
    b.host.hole = qp.ring;
    rx(BTH_SEND_ONLY, 0, 0, 0, 0, 16);
    receive_refused("syndrome 0x2, nak 0x63", "the receive queue is unreadable or in error");
}
END_TEST

/* -- invalid requests -------------------------------------------------------------------------- */

static void restart(const struct bench_qp_attr *attr)
{
    teardown();
    setup_attr(attr);
}

START_TEST(an_operation_that_the_qp_does_not_allow)
{
    restart(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .log_rra_max = 2, .no_access = true});
    switch (_i) {
    case 0:
        rx_write(all, mem, 8);
        invalid(0, "the QP does not allow RDMA WRITE; its qp_access_flags have no remote right");
        break;
    case 1:
        qp.qp->rwe = true;
        rx_read(all);
        invalid(0, "the QP does not allow RDMA READ; its qp_access_flags have REMOTE_WRITE");
        break;
    case 2:
        qp.qp->rre = qp.qp->rwe = true;
        rx(BTH_CMP_SWAP, 0, all, mem, 0, 0);
        invalid(0, "the QP does not allow atomics; its qp_access_flags have REMOTE_READ, "
                   "REMOTE_WRITE");
        break;
    default:
        qp.qp->rre = qp.qp->rae = true;
        rx_write(all, mem, 8);
        invalid(0, "the QP does not allow RDMA WRITE; its qp_access_flags have REMOTE_READ, "
                   "REMOTE_ATOMIC");
        break;
    }
}
END_TEST

START_TEST(packets_in_a_wrong_order)
{
    bench_post_recv(&qp, mem, REGION, all);
    if (_i == 0) {
        rx(BTH_SEND_MIDDLE, 0, 0, 0, 0, MTU);
        invalid(0, "the packet is RC_SEND_MIDDLE, but no message has begun");
    } else if (_i == 1) {
        rx(BTH_SEND_FIRST, 0, 0, 0, 0, MTU);
        rx(BTH_WRITE_LAST, 1, 0, 0, 0, 8);
        invalid(1, "the packet is RC_WRITE_LAST, but a SEND is arriving");
    } else {
        rx(BTH_WRITE_FIRST, 0, all, mem, 2 * MTU, MTU);
        rx(BTH_SEND_ONLY, 1, 0, 0, 0, 8);
        invalid(1, "the packet is RC_SEND_ONLY, but a WRITE is arriving");
    }
}
END_TEST

START_TEST(packets_of_a_wrong_length)
{
    bench_post_recv(&qp, mem, REGION, all);
    switch (_i) {
    case 0:
        rx(BTH_SEND_FIRST, 0, 0, 0, 0, 100);
        invalid(0, "the packet (RC_SEND_FIRST) has 100 bytes, but the path MTU is 256 (the "
                   "path_mtu of both QPs must be equal)");
        break;
    case 1:
        rx(BTH_SEND_ONLY, 0, 0, 0, 0, 300);
        invalid(0, "the packet (RC_SEND_ONLY) has 300 bytes, but the path MTU is 256 (the path_mtu "
                   "of both QPs must be equal)");
        break;
    default:
        rx(BTH_SEND_FIRST, 0, 0, 0, 0, MTU);
        rx(BTH_SEND_LAST, 1, 0, 0, 0, 0);
        invalid(1, "the packet (RC_SEND_LAST) is empty; only a whole message may be");
        break;
    }
}
END_TEST

START_TEST(lengths_that_differ_from_the_announced_one)
{
    rx(BTH_WRITE_ONLY, 0, all, mem, 16, _i == 0 ? 8 : 20);
    invalid(0,
            "the packet (RC_WRITE_ONLY) has %u bytes, but 16 bytes of the WRITE are still to come",
            _i == 0 ? 8u : 20u);
}
END_TEST

START_TEST(a_message_that_is_too_long)
{
    rx(BTH_READ_REQUEST, 0, all, mem, (1u << 30) + 1, 0);
    invalid(0, "the message has 1073741825 bytes; the QP allows 1073741824 bytes");
}
END_TEST

START_TEST(too_many_reads)
{
    b.deaf = true;
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_RTS);
        rx(BTH_READ_REQUEST, 100 * i, all, mem, 100 * MTU, 0);
    }
    invalid(400, "more READs and atomics are outstanding than max_dest_rd_atomic of the QP, which "
                 "is 4");
}
END_TEST

START_TEST(atomics_that_are_invalid)
{
    switch (_i) {
    case 0:
        rx(BTH_FETCH_ADD, 0, all, mem + 4, 0, 0);
        invalid(0, "the address 0x%" PRIx64 " of the atomic is no multiple of 8", mem + 4);
        break;
    case 1:
        rx_extended(mem + 8, 16, 32);
        invalid(0, "the address 0x%" PRIx64 " of the atomic is no multiple of 16", mem + 8);
        break;
    case 2:
        rx_extended(mem, 128, 256);
        invalid(0, "the extended atomic is on 128 bytes; the QP allows powers of two from 4 to 64");
        break;
    case 3:
        rx_extended(mem, 16, 48);
        invalid(0, "the operands of the extended atomic have 48 bytes; they must have 32, and not "
                   "more than the path MTU, which is 256");
        break;
    default:
        restart(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .log_rra_max = 2, .no_atomics = true});
        rx(BTH_FETCH_ADD, 0, all, mem, 0, 0);
        invalid(0, "the atomic_mode of the QP's context, which is 0, does not allow the atomic");
        break;
    }
}
END_TEST

/* An unreliable QP drops a request without a word: no text is made for it. */
START_TEST(nothing_is_said_of_an_unreliable_request)
{
    restart(&(struct bench_qp_attr){.st = PRM_QP_ST_UC});
    for (unsigned i = 0; i < 3; i++) {
        struct roce_packet pkt = bench_packet(&qp, BTH_UC | BTH_SEND_MIDDLE, 0);

        bench_rx(&b, &pkt, data, MTU);
    }
    ck_assert_uint_eq(b.host.lines, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("why");
    TCase *keys = tcase_create("keys"), *requests = tcase_create("requests");

    tcase_add_checked_fixture(keys, setup, teardown);
    tcase_add_test(keys, an_rkey_that_does_not_exist);
    tcase_add_test(keys, an_rkey_whose_low_byte_is_old);
    tcase_add_test(keys, an_rkey_that_was_invalidated);
    tcase_add_test(keys, an_rkey_of_another_pd);
    tcase_add_test(keys, an_rkey_without_the_right);
    tcase_add_test(keys, an_rkey_without_any_right);
    tcase_add_test(keys, addresses_outside_of_the_region);
    tcase_add_test(keys, one_byte_behind_the_region);
    tcase_add_test(keys, an_rkey_that_is_bound_to_another_qp);
    tcase_add_test(keys, an_rkey_that_goes_before_the_data_is_sent);
    tcase_add_loop_test(keys, special_keys, 0, 2);
    tcase_add_test(keys, an_lkey_of_the_receive);
    tcase_add_loop_test(keys, a_key_that_a_send_may_not_invalidate, 0, 2);
    tcase_add_loop_test(keys, memory_that_was_unmapped, 0, 2);
    tcase_add_test(keys, a_receive_queue_that_cannot_be_read);
    suite_add_tcase(s, keys);
    tcase_add_checked_fixture(requests, setup, teardown);
    tcase_add_loop_test(requests, an_operation_that_the_qp_does_not_allow, 0, 4);
    tcase_add_loop_test(requests, packets_in_a_wrong_order, 0, 3);
    tcase_add_loop_test(requests, packets_of_a_wrong_length, 0, 3);
    tcase_add_loop_test(requests, lengths_that_differ_from_the_announced_one, 0, 2);
    tcase_add_test(requests, a_message_that_is_too_long);
    tcase_add_test(requests, too_many_reads);
    tcase_add_loop_test(requests, atomics_that_are_invalid, 0, 5);
    tcase_add_test(requests, nothing_is_said_of_an_unreliable_request);
    suite_add_tcase(s, requests);
    return s;
}
