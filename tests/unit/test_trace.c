/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the lines of a trace (docs/reference/trace.md), word for word: what two HCAs write when one
 * sends to the other, each kind of line, and foreign bytes.
 */
#include "model/core/trace.h"
#include <inttypes.h>
#include <stdio.h>
#include "model/rdma/service.h"
#include "model/rdma/trace_wqe.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"
#include "wire/packet/describe.h"

#define LEN 100

static GString *said;
static struct hca_host_ops traced_ops;

static void note_trace(void *host, enum hca_log_level level, const char *line)
{
    if (level == HCA_LOG_TRACE) {
        g_string_append_printf(said, "%s\n", line);
    }
}

static void trace(struct lab_side *side)
{
    said = g_string_new(NULL);
    traced_ops = *side->hca.ops;
    traced_ops.log = note_trace;
    side->hca.ops = &traced_ops;
    side->hca.tracing = true;
}

static void end_trace(void)
{
    g_string_free(said, true);
}

static void expect_said(const char *what)
{
    ck_assert_msg(strstr(said->str, what) != NULL, "nothing says '%s':\n%s", what, said->str);
}

/* -- two HCAs ---------------------------------------------------------------------------------- */

static uint64_t from, to; /* the bus addresses of the message and of its place */

static void send_one(void)
{
    struct lab_wr wr;

    from = lab_mem(left, LEN, 1);
    to = lab_mem(right, LEN, 0);
    wr = send_wr(from, LEN);
    lab_post_recv(&b, to, LEN);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(LEN);
}

/* A number as a field has it: hexadecimal from 10 on. The caller's line is the last that uses
 * it. */
static const char *number(uint64_t value)
{
    static char numbers[4][24];
    static unsigned next;
    char *number = numbers[next++ % G_N_ELEMENTS(numbers)];

    snprintf(number, sizeof(numbers[0]), value < 10 ? "%" PRIu64 : "0x%" PRIx64, value);
    return number;
}

START_TEST(a_sender_traces_its_wqe_and_packet)
{
    g_autofree char *lines = NULL;

    trace(left);
    send_one();
    lines = g_strdup_printf("qp 0x%x: send wqe 0 SEND ce=ALWAYS data{byte_count=100 lkey=%s "
                            "addr=%s}\n"
                            "-> 10.0.0.2 RC_SEND_ONLY qp 0x%x psn 16777088, 100 bytes, ackreq\n"
                            "<- 10.0.0.2 RC_ACK qp 0x%x psn 16777088 ACK msn 1\n"
                            "cq 0x%x: cqe REQ SEND qp 0x%x wqe 0\n",
                            a.qp->obj.num, number(left->key), number(from), b.qp->obj.num,
                            a.qp->obj.num, left->cqn, a.qp->obj.num);
    ck_assert_str_eq(said->str, lines);
    end_trace();
}
END_TEST

START_TEST(a_receiver_traces_its_packet_and_wqe)
{
    g_autofree char *lines = NULL;

    trace(right);
    send_one();
    lines = g_strdup_printf("<- 10.0.0.1 RC_SEND_ONLY qp 0x%x psn 16777088, 100 bytes, ackreq\n"
                            "qp 0x%x: receive wqe 0, 100 bytes: data{byte_count=100 lkey=%s "
                            "addr=%s}\n"
                            "cq 0x%x: cqe RESP_SEND qp 0x%x wqe 0: byte_cnt=100 rqpn=%s\n"
                            "-> 10.0.0.1 RC_ACK qp 0x%x psn 16777088 ACK msn 1\n",
                            b.qp->obj.num, b.qp->obj.num, number(right->key), number(to),
                            right->cqn, b.qp->obj.num, number(a.qp->obj.num), a.qp->obj.num);
    ck_assert_str_eq(said->str, lines);
    end_trace();
}
END_TEST

/* A receiver without a receive answers with an RNR NAK, which the trace names. */
START_TEST(a_nak_has_its_name)
{
    struct lab_wr wr = send_wr(lab_mem(left, LEN, 1), LEN);

    trace(left);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_said(" RNR NAK ");
    end_trace();
}
END_TEST

/* A QP in RTR that receives is an event (communication established). */
START_TEST(an_event_has_its_type_and_number)
{
    g_autofree char *line =
        g_strdup_printf("eq 0x%x: event COMM_EST: qpn_rqn_sqn=0x%x\n", right->eqn, b.qp->obj.num);

    trace(right);
    b.qp->state = PRM_QP_STATE_RTR;
    send_one();
    expect_said(line);
    end_trace();
}
END_TEST

START_TEST(a_state_has_its_name)
{
    g_autofree char *line = g_strdup_printf("qp 0x%x: state RTS -> ERR\n", a.qp->obj.num);

    trace(left);
    qp_set_state(a.qp, PRM_QP_STATE_ERR);
    ck_assert_str_eq(said->str, line);
    end_trace();
}
END_TEST

/* While the cable is out, packets are lost, and the trace says so. */
START_TEST(a_packet_without_a_link_is_lost)
{
    struct lab_wr wr = send_wr(lab_mem(left, LEN, 1), LEN);
    struct wire_port *wire = left->hca.vport->uplink->wire;

    trace(left);
    port_set_wire(&left->hca, NULL);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_said("psn 16777088, 100 bytes, ackreq, lost: the link is down\n");
    port_set_wire(&left->hca, wire);
    end_trace();
}
END_TEST

/* Without a request for a trace nothing is printed or formatted. */
START_TEST(nothing_is_traced_unless_requested)
{
    trace(left);
    left->hca.tracing = false;
    send_one();
    ck_assert_uint_eq(said->len, 0);
    end_trace();
}
END_TEST

/* -- single lines ------------------------------------------------------------------------------ */

static char text[TRACE_LINE + 1];
static struct prm_line line;

static void begin(void)
{
    memset(text, '?', sizeof(text));
    prm_line_begin(&line, text, sizeof(text));
}

START_TEST(a_command_has_inputs_and_outputs)
{
    void *in = (uint8_t[PRM_create_cq_in_SIZE]){0}, *out = (uint8_t[PRM_create_cq_out_SIZE]){0};
    struct trace_command what = {PRM_COMMAND(CREATE_CQ), PRM_CMD_OP_CREATE_CQ,    SYN_OK, in, out,
                                 PRM_SIZE(create_cq_in), PRM_SIZE(create_cq_out), NULL};

    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, uid, 3);
    PRM_SET(cqc, PRM_PTR(create_cq_in, in, cq_context), log_cq_size, 6);
    PRM_SET(create_cq_out, out, cqn, 0x80);
    trace_describe_command(&line, &what);
    ck_assert_str_eq(text, "command CREATE_CQ OK -> cqn=0x80: uid=3 cq_context{log_cq_size=6}");
}
END_TEST

START_TEST(a_command_without_fields_is_a_name)
{
    void *in = (uint8_t[PRM_alloc_pd_in_SIZE]){0}, *out = (uint8_t[PRM_alloc_pd_out_SIZE]){0};
    struct trace_command what = {PRM_COMMAND(ALLOC_PD), PRM_CMD_OP_ALLOC_PD,    SYN_OK, in, out,
                                 PRM_SIZE(alloc_pd_in), PRM_SIZE(alloc_pd_out), NULL};

    trace_describe_command(&line, &what);
    ck_assert_str_eq(text, "command ALLOC_PD OK");
}
END_TEST

START_TEST(a_refused_command_has_its_reason)
{
    void *in = (uint8_t[PRM_dealloc_pd_in_SIZE]){0}, *out = (uint8_t[16]){0};
    struct trace_command what = {PRM_COMMAND(DEALLOC_PD),
                                 PRM_CMD_OP_DEALLOC_PD,
                                 SYN_IN_USE,
                                 in,
                                 out,
                                 PRM_SIZE(dealloc_pd_in),
                                 16,
                                 NULL};

    PRM_SET(dealloc_pd_in, in, pd, 0x12);
    trace_describe_command(&line, &what);
    ck_assert_str_eq(text, "command DEALLOC_PD BAD_RES_STATE (syndrome 0x10009, object is "
                           "referenced by another one): pd=0x12");
}
END_TEST

START_TEST(an_unknown_command_has_its_bytes)
{
    uint8_t in[16] = {0x0f, 0xee, 0, 1}, out[16] = {0};
    struct trace_command what = {NULL, 0xfee, SYN_BAD_OPCODE, in, out, 16, 16, NULL};

    trace_describe_command(&line, &what);
    ck_assert_str_eq(text, "unknown command 0xfee BAD_OP (syndrome 0x10001, unknown command "
                           "opcode): 0fee0001000000000000000000000000");
}
END_TEST

START_TEST(a_modified_object_has_its_changes)
{
    void *in = (uint8_t[PRM_rst2init_qp_in_SIZE]){0}, *out = (uint8_t[16]){0};
    struct trace_command what = {PRM_COMMAND(RST2INIT_QP),
                                 PRM_CMD_OP_RST2INIT_QP,
                                 SYN_OK,
                                 in,
                                 out,
                                 PRM_SIZE(rst2init_qp_in),
                                 16,
                                 " qpc{state=RST->INIT}"};

    PRM_SET(rst2init_qp_in, in, qpn, 0x4a);
    PRM_SET(qpc, PRM_PTR(rst2init_qp_in, in, qpc), pd, 2);
    trace_describe_command(&line, &what);
    ck_assert_str_eq(text, "command RST2INIT_QP OK: qpn=0x4a qpc{state=RST->INIT}");
}
END_TEST

START_TEST(a_failed_wqe_has_its_syndromes)
{
    struct prm_cqe64 cqe[1] = {0};

    PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_REQ_ERR);
    PRM_SET(cqe64, cqe, qpn, 0x4a);
    PRM_SET(cqe64, cqe, wqe_counter, 7);
    PRM_SET(err_cqe, (void *)cqe, syndrome, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    PRM_SET(err_cqe, (void *)cqe, vendor_err_synd, 0x51);
    PRM_SET(err_cqe, (void *)cqe, send_wqe_opcode, PRM_WQE_OPCODE_RDMA_READ);
    trace_describe_cqe(&line, cqe);
    ck_assert_str_eq(text, "cqe REQ_ERR RDMA_READ qp 0x4a wqe 7: syndrome=LOCAL_PROT_ERR "
                           "vendor_err_synd=0x51");
}
END_TEST

/* Data is in the place of the first fields, which are not fields then. */
START_TEST(data_in_a_cqe_is_no_field)
{
    struct prm_cqe64 cqe[1] = {0};

    memset(cqe, 0xff, 16);
    PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_SEND_IMM);
    PRM_SET(cqe64, cqe, format, PRM_CQE_FORMAT_INLINE_32);
    PRM_SET(cqe64, cqe, byte_cnt, 16);
    PRM_SET(cqe64, cqe, immediate, 0x2a);
    PRM_SET(cqe64, cqe, se, 1);
    trace_describe_cqe(&line, cqe);
    ck_assert_str_eq(text, "cqe RESP_SEND_IMM qp 0x0 wqe 0: immediate=0x2a byte_cnt=16 "
                           "format=INLINE_32 se=1");
}
END_TEST

START_TEST(an_unknown_event_has_its_bytes)
{
    struct prm_eqe eqe[1] = {0};

    PRM_SET(eqe, eqe, event_type, 0xee);
    PRM_SET(eqe, eqe, event_sub_type, 2);
    trace_describe_eqe(&line, eqe);
    ck_assert_str_eq(text, "event unknown event_type 0xee sub-type 0x2: "
                           "00000000000000000000000000000000000000000000000000000000");
}
END_TEST

START_TEST(a_port_change_has_its_sub_type)
{
    struct prm_eqe eqe[1] = {0};

    PRM_SET(eqe, eqe, event_type, PRM_EVENT_TYPE_PORT_CHANGE);
    PRM_SET(eqe, eqe, event_sub_type, PRM_PORT_CHANGE_SUBTYPE_DOWN);
    PRM_SET(port_state_change_event, PRM_PTR(eqe, eqe, event_data), port_num, 1);
    trace_describe_eqe(&line, eqe);
    ck_assert_str_eq(text, "event PORT_CHANGE DOWN: port_num=1");
}
END_TEST

/* The dwords of a send WQE, and its line. */
static const struct {
    uint8_t st;
    uint32_t words[24];
    unsigned ds;
    const char *text;
} wqes[] = {
    {PRM_QP_ST_RC,
     {0x00000008, 0x4a03, 0x8, 0, 0, 0x7f3a10, 0x1800, 0, 64, 0x1900, 0, 0x7f4a10},
     3,
     " RDMA_WRITE ce=ALWAYS raddr{raddr=0x7f3a10 rkey=0x1800} data{byte_count=64 lkey=0x1900 "
     "addr=0x7f4a10}"},
    {PRM_QP_ST_RC,
     {0x0000000b, 0x4a02, 0x2, 0x2a, 0x80000004, 0xdeadbeef},
     2,
     " SEND_IMM se=1 imm=0x2a inline{byte_count=4 data=deadbeef}"},
    {PRM_QP_ST_RC,
     {0x00000011, 0x4a04, 0, 0, 0, 0x1000, 0x1800, 0, 0, 6, 0, 5, 8, 0x1900, 0, 0x2000},
     4,
     " ATOMIC_CS raddr{raddr=0x1000 rkey=0x1800} atomic{swap_add=6 compare=5} data{byte_count=8 "
     "lkey=0x1900 addr=0x2000}"},
    {PRM_QP_ST_RC, {0x0000001b, 0x4a01, 0, 0x1900}, 1, " LOCAL_INVAL inval_key=0x1900"},
    {PRM_QP_ST_RC,
     {0x0000000f, 0x4a02, 0, 0, 0, 0, 7, 0x33},
     2,
     " CQE_WAIT cross{pi=7 obj_num=0x33}"},
    {PRM_QP_ST_XRC,
     {0x0000000f, 0x4a03, 0, 0, 0x44, 0, 0, 0, 0, 0, 7, 0x33},
     3,
     " CQE_WAIT xrc{xrc_srqn=0x44} cross{pi=7 obj_num=0x33}"},
    {PRM_QP_ST_RC,
     {0x00000017, 0x4a02, 0, 0, 0, 0, 0x10, 0x4a},
     2,
     " SEND_ENABLE cross{pi=0x10 obj_num=0x4a}"},
    {PRM_QP_ST_RC,
     {0xff00000a, 0x4a04, 0, 0, 0x05050000, 0, 0, 0x0090000a, 0, 0x1900, 0, 0x3000, 0x400, 0x1a00,
      0, 0x4000},
     4,
     " SEND opmod=0xff calc{calc_op=05050000 matrix=1 matrix_8bit=1 vec_count=0xa cm_lkey=0x1900 "
     "cm_addr=0x3000 vec_size=0x400 vec_lkey=0x1a00 vec_addr=0x4000}"},
    {PRM_QP_ST_UD,
     {0x0000000a, 0x4a04, 0, 0, 0x11111111, 0, 0x8000004b, 0xc000, 0, 0x02000000, 0x00020040, 0},
     4,
     " SEND av{qkey=0x11111111 ext=1 dqp_dct=0x4b udp_sport=0xc000 rmac=020000000002 "
     "hop_limit=0x40}"},
    /* A message names what is missing. */
    {PRM_QP_ST_RC, {0x00000008, 0x4a01}, 1, " RDMA_WRITE raddr{0 of 16 bytes}"},
    {PRM_QP_ST_UD, {0x0000000a, 0x4a02, 0, 0, 1}, 2, " SEND av{16 of 48 bytes}"},
    {PRM_QP_ST_RC, {0x0000000a, 0x4a02, 0, 0, 0x800000ff}, 2, " SEND inline{16 of 272 bytes}"},
    {PRM_QP_ST_RC, {0x0300003f, 0x4a01}, 1, " unknown wqe_opcode 0x3f opmod=3"},
    {PRM_QP_ST_UD,
     {0x00000010, 0x4a02, 0, 0, 0x01020304},
     2,
     " RDMA_READ (no operation of UD) other{01020304000000000000000000000000}"},
};

START_TEST(a_send_wqe_has_its_segments)
{
    size_t len = wqes[_i].ds * 16;
    uint8_t *image = malloc(len); /* nothing behind it may be read */

    for (size_t i = 0; i < len / 4; i++) {
        uint32_t word = GUINT32_TO_BE(wqes[_i].words[i]);

        memcpy(image + 4 * i, &word, 4);
    }
    trace_describe_send_wqe(&line, &services[wqes[_i].st], image, len);
    ck_assert_str_eq(text, wqes[_i].text);
    free(image);
}
END_TEST

/* -- foreign bytes ----------------------------------------------------------------------------- */

#define ROUNDS 200

static uint64_t state = 0x9e3779b97f4a7c15;

static uint32_t chance(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* A copy of its own length on the heap, so that AddressSanitizer sees each byte too many. */
static uint8_t *foreign(size_t len)
{
    uint8_t *bytes = malloc(len ? len : 1);

    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(chance() % 3 ? chance() : 0);
    }
    return bytes;
}

static void expect_a_line(void)
{
    ck_assert_ptr_nonnull(memchr(text, '\0', sizeof(text)));
    ck_assert_ptr_null(strchr(text, '\n'));
    ck_assert_uint_gt(strlen(text), 0);
}

/* Every send opcode, of every service, in every length. */
START_TEST(foreign_wqes_are_described)
{
    for (unsigned st = 0; st < SERVICES; st++) {
        for (unsigned opcode = 0; services[st].name && opcode < 256; opcode++) {
            size_t len = 16 * (chance() % 12);
            uint8_t *image = foreign(len);

            if (len) {
                image[3] = (uint8_t)opcode;
            }
            begin();
            trace_describe_send_wqe(&line, &services[st], image, len);
            expect_a_line();
            free(image);
        }
    }
}
END_TEST

START_TEST(foreign_completions_and_events_are_described)
{
    for (unsigned i = 0; i < 256; i++) {
        struct prm_cqe64 *cqe = (void *)foreign(PRM_SIZE(cqe64));
        struct prm_eqe *eqe = (void *)foreign(PRM_SIZE(eqe));

        PRM_SET(cqe64, cqe, opcode, i % 16);
        begin();
        trace_describe_cqe(&line, cqe);
        expect_a_line();
        PRM_SET(eqe, eqe, event_type, i);
        begin();
        trace_describe_eqe(&line, eqe);
        expect_a_line();
        free(cqe);
        free(eqe);
    }
}
END_TEST

START_TEST(foreign_commands_are_described)
{
    static const struct prm_command *const commands[] = {
        PRM_COMMAND(CREATE_QP),  PRM_COMMAND(INIT2RTR_QP), PRM_COMMAND(CREATE_MKEY),
        PRM_COMMAND(CREATE_RMP), PRM_COMMAND(QUERY_QP),    PRM_COMMAND(QUERY_HCA_CAP),
        PRM_COMMAND(ACCESS_REG), PRM_COMMAND(CREATE_EQ),   NULL,
    };

    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct prm_command *command = commands[i % G_N_ELEMENTS(commands)];
        size_t in_len = chance() % 6000, out_len = chance() % 6000;
        uint8_t *in = foreign(in_len), *out = foreign(out_len);
        struct trace_command what = {command,
                                     command ? command->opcode : (uint16_t)chance(),
                                     i % 5 ? SYN_OK : SYN_IN_LEN,
                                     in,
                                     out,
                                     in_len,
                                     out_len,
                                     i % 7 ? NULL : " qpc{state=RST->INIT}"};

        begin();
        trace_describe_command(&line, &what);
        expect_a_line();
        free(in);
        free(out);
    }
}
END_TEST

/* RoCE frames whose bytes are changed one after the other, and cut at any length. */
START_TEST(foreign_frames_are_described)
{
    struct roce_packet pkt = {.opcode = BTH_RC | BTH_WRITE_ONLY_IMM, .pkey = 0xffff};
    uint8_t whole[ROCE_HEADER_MAX + 64 + 8];
    size_t len;

    pkt.addr.is_ipv4 = true;
    memset(roce_build(whole, &pkt, 64), 0, 64);
    len = roce_finish(whole, &pkt, 64);
    for (size_t at = 0; at < len; at++) {
        uint8_t *frame = malloc(len);

        memcpy(frame, whole, len);
        frame[at] = (uint8_t)chance();
        begin();
        trace_describe_frame(&line, at % 2, frame, len, at % 3);
        expect_a_line();
        begin();
        frame = realloc(frame, MAX(at, 1));
        trace_describe_frame(&line, at % 2, frame, at, at % 3);
        expect_a_line();
        free(frame);
    }
}
END_TEST

START_TEST(a_damaged_frame_is_named)
{
    struct roce_packet pkt = {.opcode = BTH_RC | BTH_ACK, .pkey = 0xffff, .dest_qp = 0x4a};
    uint8_t frame[ROCE_HEADER_MAX + 8];
    size_t len, bth = ETH_BYTES + IPV4_BYTES + UDP_BYTES;

    pkt.addr.is_ipv4 = true;
    gid_of_ipv4(pkt.addr.sgid, (const uint8_t[]){10, 0, 0, 2});
    pkt.aeth.syndrome = AETH_NAK_ACCESS;
    roce_build(frame, &pkt, 0);
    len = roce_finish(frame, &pkt, 0);
    trace_describe_frame(&line, false, frame, len, true);
    ck_assert_str_eq(text, "<- 10.0.0.2 RC_ACK qp 0x4a psn 0 NAK remote access error msn 0");
    begin();
    frame[len - 1] ^= 1;
    trace_describe_frame(&line, false, frame, len, true);
    ck_assert_str_eq(text,
                     "<- 10.0.0.2 RC_ACK qp 0x4a psn 0 NAK remote access error msn 0, bad ICRC");
    begin();
    frame[bth] = 0x1e;
    trace_describe_frame(&line, false, frame, len, false);
    ck_assert_str_eq(text, "<- RoCE, 62 bytes, unknown opcode 0x1e");
    begin();
    trace_describe_frame(&line, false, frame, len - 1, false);
    ck_assert_str_eq(text, "<- RoCE, 61 bytes, lengths that do not agree");
    begin();
    trace_describe_frame(&line, true, frame, 13, false);
    ck_assert_str_eq(text, "-> 13 bytes, too short for a frame");
    begin();
    frame[12] = 0x08;
    frame[13] = 0x06;
    memset(frame, 0xff, 6);
    trace_describe_frame(&line, true, frame, 60, false);
    ck_assert_str_eq(text, "-> ff:ff:ff:ff:ff:ff ethertype 0x0806, 60 bytes");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("trace");
    TCase *tc = tcase_create("two HCAs"), *lines = tcase_create("lines");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_sender_traces_its_wqe_and_packet);
    tcase_add_test(tc, a_receiver_traces_its_packet_and_wqe);
    tcase_add_test(tc, a_nak_has_its_name);
    tcase_add_test(tc, an_event_has_its_type_and_number);
    tcase_add_test(tc, a_state_has_its_name);
    tcase_add_test(tc, a_packet_without_a_link_is_lost);
    tcase_add_test(tc, nothing_is_traced_unless_requested);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(lines, begin, NULL);
    tcase_add_test(lines, a_command_has_inputs_and_outputs);
    tcase_add_test(lines, a_command_without_fields_is_a_name);
    tcase_add_test(lines, a_refused_command_has_its_reason);
    tcase_add_test(lines, an_unknown_command_has_its_bytes);
    tcase_add_test(lines, a_modified_object_has_its_changes);
    tcase_add_test(lines, a_failed_wqe_has_its_syndromes);
    tcase_add_test(lines, data_in_a_cqe_is_no_field);
    tcase_add_test(lines, an_unknown_event_has_its_bytes);
    tcase_add_test(lines, a_port_change_has_its_sub_type);
    tcase_add_loop_test(lines, a_send_wqe_has_its_segments, 0, G_N_ELEMENTS(wqes));
    tcase_add_test(lines, foreign_wqes_are_described);
    tcase_add_test(lines, foreign_completions_and_events_are_described);
    tcase_add_test(lines, foreign_commands_are_described);
    tcase_add_test(lines, foreign_frames_are_described);
    tcase_add_test(lines, a_damaged_frame_is_named);
    suite_add_tcase(s, lines);
    return s;
}
