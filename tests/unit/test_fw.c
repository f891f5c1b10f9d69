/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the function as a driver meets it: bring-up, pages, user contexts. test_caps.c tests
 * capabilities.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/cmd_table.h"
#include "model/core/obj_class.h"
#include "model/core/pd.h"
#include "model/steering/steering.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;

static void setup(void)
{
    fwd_init(&d);
}

static void setup_ready(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* -- tunneled operations: the host knows them by the top of their addresses -------------------- */

START_TEST(tunneled_operations_last_until_the_function_is_torn_down)
{
    struct prm_set_tunnel_operation_in in[1] = {0};
    struct prm_set_tunnel_operation_out out[1] = {0};

    PRM_SET(set_tunnel_operation_in, in, opcode, PRM_CMD_OP_SET_TUNNELED_OPERATIONS);
    ck_assert(!d.fw->hca.tunnels);
    PRM_SET(set_tunnel_operation_in, in, asn_match_mask, 0xffff);
    PRM_SET(set_tunnel_operation_in, in, asn_match_value, 0x0440);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), 0);
    ck_assert(d.fw->hca.tunnels);
    ck_assert_uint_eq(PRM_GET(set_tunnel_operation_out, out, log_response_bar_size), 0);
    ck_assert_uint_eq(PRM_GET(set_tunnel_operation_out, out, response_bar_address), 0);
    memset(in, 0, sizeof(in));
    PRM_SET(set_tunnel_operation_in, in, opcode, PRM_CMD_OP_SET_TUNNELED_OPERATIONS);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), 0); /* matches nothing */
    ck_assert(!d.fw->hca.tunnels);

    PRM_SET(set_tunnel_operation_in, in, asn_match_mask, 0x8000);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), 0);
    ck_assert(d.fw->hca.tunnels);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_TEARDOWN_HCA, 0), 0);
    ck_assert(!d.fw->hca.tunnels);
}
END_TEST

/* -- states ------------------------------------------------------------------------------------ */

START_TEST(commands_wait_for_enable)
{
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_INIT_HCA, 0), SYN_SYS_STATE);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_QUERY_PAGES, 1), SYN_SYS_STATE);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ALLOC_PD, 0), SYN_SYS_STATE);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ALLOC_PD, 0), SYN_SYS_STATE);
}
END_TEST

START_TEST(issi_is_negotiated)
{
    uint8_t in_bytes[16] = {0};
    void *in = in_bytes;
    struct prm_query_issi_out out[1];

    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    PRM_SET(set_issi_in, in, opcode, PRM_CMD_OP_SET_ISSI);
    PRM_SET(set_issi_in, in, current_issi, 1);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), 0);
    PRM_SET(set_issi_in, in, current_issi, 5);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), SYN_BAD_ISSI);
    PRM_SET(set_issi_in, in, current_issi, 0xffff);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), SYN_BAD_ISSI);
    memset(in, 0, sizeof(in_bytes));
    PRM_SET(query_issi_in, in, opcode, PRM_CMD_OP_QUERY_ISSI);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(query_issi_out, out, current_issi), 1);
}
END_TEST

START_TEST(init_waits_for_its_pages)
{
    uint32_t boot, init;

    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    boot = fwd_query_pages(&d, 1);
    ck_assert_uint_gt(boot, 0);
    ck_assert_uint_eq(fwd_give_pages(&d, boot), 0);
    ck_assert_uint_eq(fwd_query_pages(&d, 1), 0);
    init = fwd_query_pages(&d, 2);
    ck_assert_uint_gt(init, 0);
    ck_assert_uint_eq(fwd_give_pages(&d, init - 1), 0);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_INIT_HCA, 0), SYN_PAGES_MISSING);
    ck_assert_uint_eq(fwd_give_pages(&d, 1), 0);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_INIT_HCA, 0), 0);
}
END_TEST

/* Driver mlx5_reclaim_startup_pages(): after TEARDOWN_HCA the driver has got all pages back. */
START_TEST(teardown_returns_every_page)
{
    uint32_t given, back = 0, n;

    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    given = fwd_query_pages(&d, 1);
    ck_assert_uint_eq(fwd_give_pages(&d, given), 0);
    n = fwd_query_pages(&d, 2);
    ck_assert_uint_eq(fwd_give_pages(&d, n), 0);
    given += n;
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_INIT_HCA, 0), 0);
    ck_assert_uint_eq(fwd_take_pages(&d, 100), 0); /* none to give back while it runs */
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_TEARDOWN_HCA, 0), 0);
    while ((n = fwd_take_pages(&d, 100))) {
        back += n;
    }
    ck_assert_uint_eq(back, given);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_DISABLE_HCA, 0), 0);
    fwd_bring_up(&d);
}
END_TEST

static enum syn give_one(uint64_t pa)
{
    uint8_t in_bytes[PRM_SIZE(manage_pages_in) + 8] = {0}, out[16];
    void *in = in_bytes;

    PRM_SET(manage_pages_in, in, opcode, PRM_CMD_OP_MANAGE_PAGES);
    PRM_SET(manage_pages_in, in, op_mod, 1);
    PRM_SET(manage_pages_in, in, input_num_entries, 1);
    PRM_SET_AT(manage_pages_in, in, pas, 0, pa);
    return fwd_cmd(&d, in, sizeof(in_bytes), out, sizeof(out));
}

START_TEST(bad_pages_are_refused)
{
    uint8_t in_bytes[PRM_SIZE(manage_pages_in) + 16] = {0}, out[16];
    void *in = in_bytes;

    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    ck_assert_uint_eq(give_one(0x10000), 0);
    ck_assert_uint_eq(give_one(0x10000), SYN_BAD_PAGE); /* twice */
    ck_assert_uint_eq(give_one(0x20010), SYN_BAD_PAGE); /* not aligned */
    ck_assert_uint_eq(give_one(0), SYN_BAD_PAGE);
    /* a list with one bad page is refused as a whole */
    PRM_SET(manage_pages_in, in, opcode, PRM_CMD_OP_MANAGE_PAGES);
    PRM_SET(manage_pages_in, in, op_mod, 1);
    PRM_SET(manage_pages_in, in, input_num_entries, 2);
    PRM_SET_AT(manage_pages_in, in, pas, 0, 0x30000);
    PRM_SET_AT(manage_pages_in, in, pas, 1, 0x10000);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), SYN_BAD_PAGE);
    ck_assert_uint_eq(give_one(0x30000), 0);
    /* more entries than the input has */
    PRM_SET(manage_pages_in, in, input_num_entries, 0xffffffff);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), SYN_IN_LEN);
    ck_assert_uint_eq(fwd_take_pages(&d, 100), 2);
    ck_assert_uint_eq(fwd_take_pages(&d, 100), 0);
}
END_TEST

START_TEST(reset_starts_over)
{
    fwd_bring_up(&d);
    fw_reset(d.fw);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x10, 8) >> 12, 0);
    /* driver mlx5_health_check_fatal_sensors(): "disabled" tells a bound driver what happened */
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x14, 4) >> 8 & 7, 1);
    fw_mmio_write(d.fw, 0x10, d.drv->cmdq.bus >> 32, 4);
    fw_mmio_write(d.fw, 0x14, d.drv->cmdq.bus & 0xffffffff, 4);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_INIT_HCA, 0), SYN_SYS_STATE);
    fwd_bring_up(&d);
}
END_TEST

/* Driver mlx5_cmd_fast_teardown_hca(): prepare, write "disabled", read it back. */
START_TEST(fast_teardown)
{
    struct prm_teardown_hca_in in[1] = {0};
    struct prm_teardown_hca_out out[1];

    fwd_bring_up(&d);
    PRM_SET(teardown_hca_in, in, opcode, PRM_CMD_OP_TEARDOWN_HCA);
    PRM_SET(teardown_hca_in, in, profile, 2);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), 0);
    ck_assert_uint_eq(PRM_GET(teardown_hca_out, out, state), 0);
    fw_mmio_write(d.fw, 0x14, (d.drv->cmdq.bus & 0xfffff000) | 1 << 8, 4);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x14, 4) >> 8 & 7, 1);
    fw_mmio_write(d.fw, 0x14, d.drv->cmdq.bus & 0xfffff000, 4);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0x14, 4) >> 8 & 7, 0);
    fwd_bring_up(&d);
}
END_TEST

#define HEALTH_RFR      (fw_mmio_read(d.fw, 0x238, 1) >> 7)
#define HEALTH_SYND     fw_mmio_read(d.fw, 0x23d, 1)
#define HEALTH_COUNTER  fw_mmio_read(d.fw, 0x1010, 4)
#define NIC_INTERFACE   (fw_mmio_read(d.fw, 0x14, 4) >> 8 & 7)
#define RESET_SUPPORTED (fw_mmio_read(d.fw, 0x1fc, 4) >> 30 & 1)

static void tell_queue(uint32_t nic_interface)
{
    fw_mmio_write(d.fw, 0x10, d.drv->cmdq.bus >> 32, 4);
    fw_mmio_write(d.fw, 0x14, (d.drv->cmdq.bus & 0xfffff000) | nic_interface << 8, 4);
}

/* Driver mlx5_health_check_fatal_sensors(), mlx5_error_sw_reset(): a syndrome with rfr is fatal.
 * The driver writes "SW reset" if that is supported, waits for "disabled", and starts again. */
START_TEST(a_firmware_that_failed_is_reset)
{
    struct prm_cmd_in in[2] = {0};
    uint64_t counter;

    fwd_bring_up(&d);
    fw_set_health(d.fw, PRM_HEALTH_SYNDROME_FW_INTERNAL_ERR, true);
    ck_assert_uint_eq(HEALTH_SYND, 1);
    ck_assert_uint_eq(HEALTH_RFR, 1);
    ck_assert_uint_eq(RESET_SUPPORTED, 1);
    counter = HEALTH_COUNTER;
    d.host.now += 10000000000;
    ck_assert_uint_eq(HEALTH_COUNTER, counter); /* firmware that has failed does not move it */
    PRM_SET(cmd_in, (void *)in, opcode, PRM_CMD_OP_NOP);
    fwd_prepare(&d, in, sizeof(in), 16);
    ck_assert_int_eq(fwd_ring(&d), -1); /* and does not answer */

    tell_queue(7);
    ck_assert_uint_eq(NIC_INTERFACE, 1);
    ck_assert_uint_eq(HEALTH_SYND, 0);
    ck_assert_uint_eq(HEALTH_RFR, 0);
    d.host.now += 10000000000;
    ck_assert_uint_ne(HEALTH_COUNTER, counter);
    tell_queue(0);
    fwd_bring_up(&d);
}
END_TEST

/* Driver poll_health(): a syndrome without rfr is reported, and the driver continues. */
START_TEST(a_firmware_with_a_reported_problem_continues)
{
    uint64_t counter;

    fwd_bring_up(&d);
    fw_set_health(d.fw, PRM_HEALTH_SYNDROME_HIGH_TEMP_ERR, false);
    counter = HEALTH_COUNTER;
    d.host.now += 10000000000;
    ck_assert_uint_eq(HEALTH_SYND, 0x10);
    ck_assert_uint_eq(HEALTH_RFR, 0);
    ck_assert_uint_ne(HEALTH_COUNTER, counter);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_NOP, 0), SYN_OK);
    fw_set_health(d.fw, PRM_HEALTH_SYNDROME_NONE, true);
    ck_assert_uint_eq(HEALTH_SYND, 0);
    ck_assert_uint_eq(HEALTH_RFR, 0);
    fw_set_health(d.fw, PRM_HEALTH_SYNDROME_FW_CRC_ERR, true);
    fw_reset(d.fw);
    ck_assert_uint_eq(HEALTH_SYND, 0);
}
END_TEST

START_TEST(bad_teardown_profile)
{
    struct prm_teardown_hca_in in[1] = {0};
    uint8_t out[16];

    fwd_bring_up(&d);
    PRM_SET(teardown_hca_in, in, opcode, PRM_CMD_OP_TEARDOWN_HCA);
    PRM_SET(teardown_hca_in, in, profile, 9);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), SYN_BAD_TEARDOWN);
}
END_TEST

START_TEST(a_command_is_found_by_its_opcode)
{
    const struct fw_cmd_row *row;
    unsigned n = 0;

    while ((row = fw_cmd_at(n))) {
        ck_assert_ptr_eq(fw_cmd_find(row->command->opcode), row);
        n++;
    }
    for (unsigned opcode = 0; opcode <= UINT16_MAX; opcode++) {
        row = fw_cmd_find((uint16_t)opcode);
        ck_assert(!row || row->command->opcode == opcode);
        n -= row != NULL;
    }
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(configuration_is_checked)
{
    struct fw_config config = {.profile = "cx99", .mac = {2, 0, 0, 0, 0, 1}};
    GError *err = NULL;

    ck_assert_ptr_null(fw_new(&fake_host_ops, &d.host, &config, &err));
    g_clear_error(&err);
    config.profile = NULL;
    config.mac[0] = 3; /* group address */
    ck_assert_ptr_null(fw_new(&fake_host_ops, &d.host, &config, &err));
    g_clear_error(&err);
    config.mac[0] = 2;
    config.num_msix = 100000;
    ck_assert_ptr_null(fw_new(&fake_host_ops, &d.host, &config, &err));
    g_clear_error(&err);
    config.num_msix = 0;
    config.log_max_qp = FW_LOG_QPS_MIN - 1;
    ck_assert_ptr_null(fw_new(&fake_host_ops, &d.host, &config, &err));
    g_clear_error(&err);
    config.log_max_qp = FW_LOG_QPS_MAX + 1;
    ck_assert_ptr_null(fw_new(&fake_host_ops, &d.host, &config, &err));
    g_clear_error(&err);
    config.log_max_qp = 0;
    config.responders = FW_RESPONDERS_MAX + 1;
    ck_assert_ptr_null(fw_new(&fake_host_ops, &d.host, &config, &err));
    g_clear_error(&err);
}
END_TEST

/* The number of QPNs is a setting of the card: the owner may choose it, and the driver can read
 * it. */
START_TEST(the_owner_says_how_many_qps_there_are)
{
    struct fw_config config = {.mac = {2, 0, 0, 0, 0, 1}, .log_max_qp = FW_LOG_QPS_MAX};
    struct fw *fw = fw_new(&fake_host_ops, &d.host, &config, NULL);
    uint8_t section[CAP_SECTION_BYTES];
    const void *cap = section;

    ck_assert_ptr_nonnull(fw);
    for (unsigned max = 0; max < 2; max++) {
        ck_assert(caps_fill(fw, PRM_HCA_CAP_TYPE_GENERAL, max, section));
        ck_assert_uint_eq(PRM_GET(cmd_hca_cap, cap, log_max_qp), FW_LOG_QPS_MAX);
    }
    ck_assert_uint_eq(fw->hca.qpns.end, 1u << FW_LOG_QPS_MAX);
    fw_free(fw);
}
END_TEST

/* -- pages at run time ------------------------------------------------------------------------- */

static uint32_t create_uctx(enum syn *status)
{
    struct prm_create_uctx_in in[1] = {0};
    struct prm_create_uctx_out out[1];

    PRM_SET(create_uctx_in, in, opcode, PRM_CMD_OP_CREATE_UCTX);
    *status = fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
    return PRM_GET(create_uctx_out, out, uid);
}

static enum syn destroy_uctx(uint32_t uid)
{
    struct prm_destroy_uctx_in in[1] = {0};
    uint8_t out[16];

    PRM_SET(destroy_uctx_in, in, opcode, PRM_CMD_OP_DESTROY_UCTX);
    PRM_SET(destroy_uctx_in, in, uid, uid);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

static enum syn create_umem(uint32_t uid, uint32_t n, uint32_t listed, uint32_t offset,
                            uint32_t *id)
{
    uint8_t in_bytes[PRM_SIZE(create_umem_in) + 64] = {0};
    void *in = in_bytes;
    struct prm_create_umem_out out[1];
    struct prm_umem *umem = PRM_PTR(create_umem_in, in, umem);
    enum syn status;

    PRM_SET(create_umem_in, in, opcode, PRM_CMD_OP_CREATE_UMEM);
    PRM_SET(create_umem_in, in, uid, uid);
    PRM_SET(umem, umem, num_of_mtt, n);
    PRM_SET(umem, umem, page_offset, offset);
    status = fwd_cmd(&d, in, PRM_SIZE(create_umem_in) + 8 * listed, out, sizeof(out));
    *id = PRM_GET(create_umem_out, out, umem_id);
    return status;
}

static enum syn destroy_umem(uint32_t uid, uint32_t id)
{
    struct prm_destroy_umem_in in[1] = {0};
    uint8_t out[16];

    PRM_SET(destroy_umem_in, in, opcode, PRM_CMD_OP_DESTROY_UMEM);
    PRM_SET(destroy_umem_in, in, uid, uid);
    PRM_SET(destroy_umem_in, in, umem_id, id);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

/* Objects use pages. A function that gets no more pages refuses new objects, and continues when
 * pages come. */
START_TEST(objects_need_pages)
{
    enum syn status;
    uint32_t uid = create_uctx(&status), id, made = 0;

    ck_assert_uint_eq(status, 0);
    while (!(status = create_umem(uid, 1, 1, 0, &id))) {
        made++;
        ck_assert_uint_lt(made, 1000000);
    }
    ck_assert_uint_eq(status, SYN_NO_MEMORY);
    ck_assert_uint_gt((int32_t)fwd_query_pages(&d, 3), 0); /* regular pages: it wants more */
    ck_assert_uint_eq(fwd_give_pages(&d, fwd_query_pages(&d, 3)), 0);
    ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &id), 0);
    /* what a user context leaves behind is destroyed with it */
    ck_assert_uint_eq(destroy_uctx(uid), 0);
    ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &id), SYN_BAD_UID);
}
END_TEST

/* Makes an armed EQ of 64 entries for page requests only; returns the address of its ring. */
static uint64_t create_page_eq(void)
{
    uint8_t in_bytes[PRM_SIZE(create_eq_in) + 8] = {0}, out_bytes[16];
    void *out = out_bytes;
    void *in = in_bytes;
    struct prm_alloc_uar_in uar_in[1] = {0};
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);
    struct prm_eqe *ring;
    uint64_t pa = fake_host_alloc(&d.host, 4096, 4096);
    uint32_t uarn;

    PRM_SET(alloc_uar_in, uar_in, opcode, PRM_CMD_OP_ALLOC_UAR);
    ck_assert_uint_eq(fwd_cmd(&d, uar_in, 16, out, 16), 0);
    uarn = PRM_GET(alloc_uar_out, out, uar);
    ring = fake_host_ptr(&d.host, pa, 4096);
    for (unsigned i = 0; i < 64; i++) {
        PRM_SET(eqe, &ring[i], owner, 1); /* the device's */
    }
    PRM_SET(create_eq_in, in, opcode, PRM_CMD_OP_CREATE_EQ);
    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, uarn);
    PRM_SET_AT(create_eq_in, in, event_bitmask, 0, 1ull << PRM_EVENT_TYPE_PAGE_REQUEST);
    PRM_SET_AT(create_eq_in, in, pas, 0, pa);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), 0);
    fw_mmio_write(d.fw, (uint64_t)uarn * 4096 + 0x40, PRM_GET(create_eq_out, out, eq_number) << 24,
                  4);
    return pa;
}

/* The function has a pager as long as an EQ of the kernel's takes page faults. */
START_TEST(an_eq_for_page_faults_makes_a_pager)
{
    uint8_t in_bytes[PRM_SIZE(create_eq_in) + 8] = {0}, out_bytes[16];
    void *in = in_bytes, *out = out_bytes;
    struct prm_alloc_uar_in uar_in[1] = {0};
    struct prm_destroy_eq_in destroy[1] = {0};
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);

    PRM_SET(alloc_uar_in, uar_in, opcode, PRM_CMD_OP_ALLOC_UAR);
    ck_assert_uint_eq(fwd_cmd(&d, uar_in, 16, out, 16), 0);
    PRM_SET(create_eq_in, in, opcode, PRM_CMD_OP_CREATE_EQ);
    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, PRM_GET(alloc_uar_out, out, uar));
    PRM_SET_AT(create_eq_in, in, event_bitmask, 0, 1ull << PRM_EVENT_TYPE_PAGE_FAULT);
    PRM_SET_AT(create_eq_in, in, pas, 0, fake_host_alloc(&d.host, 4096, 4096));
    ck_assert_ptr_null(d.fw->hca.pager);
    PRM_SET(create_eq_in, in, uid, UID_SHARED); /* a program's EQ hears nothing of page faults */
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), 0);
    ck_assert_ptr_null(d.fw->hca.pager);
    PRM_SET(create_eq_in, in, uid, 0);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), 0);
    ck_assert_ptr_nonnull(d.fw->hca.pager);
    PRM_SET(destroy_eq_in, destroy, opcode, PRM_CMD_OP_DESTROY_EQ);
    PRM_SET(destroy_eq_in, destroy, eq_number, PRM_GET(create_eq_out, out, eq_number));
    ck_assert_uint_eq(fwd_cmd(&d, destroy, sizeof(destroy), out, 16), 0);
    ck_assert_ptr_null(d.fw->hca.pager);
}
END_TEST

static int32_t requested(uint64_t ring, unsigned index)
{
    const struct prm_eqe *eqe = fake_host_ptr(&d.host, ring + index * 64, 64);

    if (PRM_GET(eqe, eqe, owner)) {
        return 0; /* not written */
    }
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_PAGE_REQUEST);
    return (int32_t)PRM_GET(pages_req_event, PRM_PTR(eqe, eqe, event_data), num_pages);
}

/* Driver req_pages_handler(): a positive number requests pages, a negative number offers them.
 * There is one request at a time, and pages that were given in batches are returned in batches. */
START_TEST(page_requests_follow_the_objects)
{
    uint64_t ring = create_page_eq();
    enum syn status;
    uint32_t uid = create_uctx(&status), id, made = 0;
    int32_t batch;

    while (!requested(ring, 0)) {
        ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &id), 0);
        made++;
        ck_assert_uint_lt(made, 100000);
    }
    batch = requested(ring, 0);
    ck_assert_int_gt(batch, 0);
    ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &id), 0);
    ck_assert_int_eq(requested(ring, 1), 0); /* not while a request is pending */
    ck_assert_uint_eq(fwd_give_pages(&d, (uint32_t)batch), 0);
    ck_assert_int_eq(requested(ring, 1), 0); /* and it was enough */

    /* far more than needed: some pages are offered back once nothing needs them */
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_eq(fwd_give_pages(&d, (uint32_t)batch), 0);
    }
    ck_assert_uint_eq(destroy_uctx(uid), 0);
    ck_assert_int_lt(requested(ring, 1), 0);
    ck_assert_uint_eq(fwd_take_pages(&d, (uint32_t)-requested(ring, 1)),
                      (uint32_t)-requested(ring, 1));
}
END_TEST

/* A host without memory is not asked repeatedly. */
START_TEST(refused_request_is_not_repeated)
{
    uint64_t ring = create_page_eq();
    enum syn status;
    uint32_t uid = create_uctx(&status), id;

    while (!requested(ring, 0)) {
        ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &id), 0);
    }
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_MANAGE_PAGES, 0), 0); /* cannot give */
    ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &id), 0);
    ck_assert_int_eq(requested(ring, 1), 0);
}
END_TEST

/* -- kinds of objects -------------------------------------------------------------------------- */

/* The commands that the row of a kind in prm/cmd_op.prm names exist. */
START_TEST(a_kind_of_object_has_the_commands_of_its_row)
{
    for (unsigned kind = OBJ_NONE + 1; kind < OBJ_KINDS; kind++) {
        const struct prm_object *o = obj_classes[kind].object;

        if (o) {
            ck_assert_msg(fw_cmd_find(o->create->opcode), "%s: create", o->name);
            ck_assert_msg(fw_cmd_find(o->destroy->opcode), "%s: destroy", o->name);
            ck_assert_msg(!o->query || fw_cmd_find(o->query->opcode), "%s: query", o->name);
        }
    }
}
END_TEST

/* -- user contexts ----------------------------------------------------------------------------- */

START_TEST(umem_belongs_to_its_context)
{
    enum syn status;
    uint32_t a = create_uctx(&status), b = create_uctx(&status), id;

    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(create_umem(a, 2, 2, 0, &id), 0);
    ck_assert_uint_eq(destroy_umem(b, id), SYN_BAD_UID);
    ck_assert_uint_eq(destroy_umem(a, id), 0);
    ck_assert_uint_eq(destroy_umem(a, id), SYN_NO_UMEM);
}
END_TEST

START_TEST(umem_is_checked)
{
    enum syn status;
    uint32_t uid = create_uctx(&status), id;

    ck_assert_uint_eq(create_umem(uid, 3, 2, 0, &id), SYN_IN_LEN);
    ck_assert_uint_eq(create_umem(uid, 0xffffffff, 2, 0, &id), SYN_IN_LEN);
    ck_assert_uint_eq(create_umem(uid, 0, 0, 0, &id), SYN_UMEM_RANGE);
    ck_assert_uint_eq(create_umem(uid, 1, 1, 4096, &id), SYN_UMEM_RANGE);
    ck_assert_uint_eq(create_umem(uid, 1, 1, 4095, &id), 0);
    ck_assert_uint_eq(create_umem(0, 1, 1, 0, &id), SYN_BAD_UID);
    ck_assert_uint_eq(create_umem(1000, 1, 1, 0, &id), SYN_BAD_UID);
}
END_TEST

static enum syn alloc_pd(uint32_t uid, uint32_t *pdn)
{
    struct prm_alloc_pd_in in[1] = {0};
    struct prm_alloc_pd_out out[1];
    enum syn status;

    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    PRM_SET(alloc_pd_in, in, uid, uid);
    status = fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
    *pdn = PRM_GET(alloc_pd_out, out, pd);
    return status;
}

START_TEST(context_takes_its_objects_along)
{
    struct prm_dealloc_pd_in in[1] = {0};
    uint8_t out[16];
    enum syn status;
    uint32_t uid = create_uctx(&status), pdn, kernel_pdn;

    ck_assert_uint_eq(alloc_pd(uid, &pdn), 0);
    ck_assert_uint_eq(alloc_pd(0, &kernel_pdn), 0);
    ck_assert_uint_eq(destroy_uctx(uid), 0);
    ck_assert_uint_eq(destroy_uctx(uid), SYN_NO_UCTX);
    PRM_SET(dealloc_pd_in, in, opcode, PRM_CMD_OP_DEALLOC_PD);
    PRM_SET(dealloc_pd_in, in, pd, pdn);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), SYN_NO_PD);
    PRM_SET(dealloc_pd_in, in, pd, kernel_pdn); /* the kernel's own stays */
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), 0);
}
END_TEST

/* If requested, a query sets the values that it reports to zero. */
START_TEST(flow_counters_are_cleared_by_a_query)
{
    uint8_t in_bytes[32] = {0}, out_bytes[32];
    void *in = in_bytes, *out = out_bytes, *stat;
    struct flow_counter *counter;
    uint32_t id;

    PRM_SET(alloc_flow_counter_in, in, opcode, PRM_CMD_OP_ALLOC_FLOW_COUNTER);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), SYN_OK);
    id = PRM_GET(alloc_flow_counter_out, out, flow_counter_id);
    counter = flow_counter_find(&d.fw->hca, id);
    counter->packets = 5;
    counter->bytes = 600;
    PRM_SET(query_flow_counter_in, in, opcode, PRM_CMD_OP_QUERY_FLOW_COUNTER);
    PRM_SET(query_flow_counter_in, in, flow_counter_id, id);
    for (unsigned clear = 0; clear < 2; clear++) {
        PRM_SET(query_flow_counter_in, in, clear, clear);
        ck_assert_uint_eq(fwd_cmd(&d, in, 32, out, 32), SYN_OK);
        stat = PRM_PTR_AT(query_flow_counter_out, out, flow_statistics, 0);
        ck_assert_uint_eq(PRM_GET(traffic_counter, stat, packets), 5);
        ck_assert_uint_eq(PRM_GET(traffic_counter, stat, octets), 600);
    }
    ck_assert_uint_eq(fwd_cmd(&d, in, 32, out, 32), SYN_OK);
    ck_assert_uint_eq(PRM_GET(traffic_counter, stat, packets), 0);
    ck_assert_uint_eq(PRM_GET(traffic_counter, stat, octets), 0);
}
END_TEST

/* The bytes behind a command's layout are reserved, whatever their number: zeros are accepted,
 * others are refused. */
START_TEST(a_command_may_be_longer_than_its_layout_by_zeros)
{
    const size_t len = 16 + 3 * 4096;
    g_autofree uint8_t *in = g_malloc0(len);
    uint8_t out[16];

    PRM_SET(cmd_in, (void *)in, opcode, PRM_CMD_OP_NOP);
    ck_assert_uint_eq(fwd_cmd(&d, in, len, out, 16), SYN_OK);
    for (size_t at = 16; at < len; at += 1000) {
        in[at] = 1;
        ck_assert_uint_eq(fwd_cmd(&d, in, len, out, 16), SYN_RESERVED);
        in[at] = 0;
    }
}
END_TEST

/* INTx is not wired: there is nothing to clear. */
START_TEST(the_register_that_clears_intx_does_nothing)
{
    for (uint64_t at = 0x100c; at <= 0x200c; at += 0x1000) {
        fw_mmio_write(d.fw, at, UINT32_MAX, 4);
        ck_assert_uint_eq(fw_mmio_read(d.fw, at, 4), 0);
    }
    ck_assert_uint_eq(HEALTH_SYND, 0);
}
END_TEST

static enum syn flow_counter(uint16_t opcode, uint32_t uid, uint32_t id, void *out)
{
    uint8_t in_bytes[32] = {0};
    void *in = in_bytes;

    PRM_SET(query_flow_counter_in, in, opcode, opcode);
    PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
    if (opcode == PRM_CMD_OP_DEALLOC_FLOW_COUNTER) {
        PRM_SET(dealloc_flow_counter_in, in, flow_counter_id, id);
    } else if (opcode == PRM_CMD_OP_QUERY_FLOW_COUNTER) {
        PRM_SET(query_flow_counter_in, in, flow_counter_id, id);
    }
    return fwd_cmd(&d, in, opcode == PRM_CMD_OP_QUERY_FLOW_COUNTER ? 32 : 16, out,
                   opcode == PRM_CMD_OP_QUERY_FLOW_COUNTER ? 32 : 16);
}

/* Driver devx_is_obj_create_cmd(): a process allocates flow counters with its own commands, which
 * carry its uid. */
START_TEST(flow_counters_belong_to_their_context)
{
    enum syn status;
    uint32_t uid = create_uctx(&status), other = create_uctx(&status), id;
    uint8_t bytes[48];
    void *out = bytes;

    ck_assert_uint_eq(flow_counter(PRM_CMD_OP_ALLOC_FLOW_COUNTER, uid, 0, out), SYN_OK);
    id = PRM_GET(alloc_flow_counter_out, out, flow_counter_id);
    ck_assert_uint_eq(flow_counter(PRM_CMD_OP_QUERY_FLOW_COUNTER, uid, id, out), SYN_OK);
    ck_assert_uint_eq(flow_counter(PRM_CMD_OP_QUERY_FLOW_COUNTER, other, id, out), SYN_BAD_UID);
    ck_assert_uint_eq(flow_counter(PRM_CMD_OP_DEALLOC_FLOW_COUNTER, other, id, out), SYN_BAD_UID);
    ck_assert_uint_eq(flow_counter(PRM_CMD_OP_DEALLOC_FLOW_COUNTER, uid, id, out), SYN_OK);
    ck_assert_uint_eq(flow_counter(PRM_CMD_OP_QUERY_FLOW_COUNTER, uid, id, out), SYN_FC_NOT_FOUND);
    /* the root of the port's rules stays the kernel's */
    ck_assert_uint_eq(flow_counter(PRM_CMD_OP_SET_FLOW_TABLE_ROOT, uid, 0, out), SYN_BAD_UID);
}
END_TEST

START_TEST(privileged_commands_take_no_uid)
{
    struct prm_general_obj_in_cmd_hdr in[1] = {0};
    uint8_t out[16];
    enum syn status;
    uint32_t uid = create_uctx(&status);

    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_TEARDOWN_HCA);
    PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, 16), SYN_BAD_UID);
}
END_TEST

static enum syn create_cq_in_umem(uint32_t uid, uint32_t ring, uint64_t offset, uint32_t dbr_umem,
                                  uint64_t dbr)
{
    struct prm_create_cq_in in[1] = {0};
    uint8_t out[16];
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);

    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, uid, uid);
    PRM_SET(create_cq_in, in, cq_umem_valid, 1);
    PRM_SET(create_cq_in, in, cq_umem_id, ring);
    PRM_SET(create_cq_in, in, cq_umem_offset, offset);
    PRM_SET(cqc, cqc, log_cq_size, 6); /* 64 CQEs of 64 bytes: 4096 bytes */
    PRM_SET(cqc, cqc, dbr_umem_valid, 1);
    PRM_SET(cqc, cqc, dbr_umem_id, dbr_umem);
    PRM_SET(cqc, cqc, dbr_addr, dbr);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

/* A ring and a doorbell record lie wholly inside a umem of the same user context. */
START_TEST(rings_lie_inside_their_umem)
{
    enum syn status;
    uint32_t uid = create_uctx(&status), other = create_uctx(&status);
    uint32_t ring, dbr, foreign, shifted;
    static const uint64_t outside[] = {1, 4096, 0xffffffff, UINT64_MAX};
    static const struct {
        uint64_t offset;
        enum syn syn;
    } bad_dbr[] = {{4092, SYN_UMEM_RANGE},
                   {4096, SYN_UMEM_RANGE},
                   {UINT64_MAX & ~7ull, SYN_UMEM_RANGE},
                   {2, SYN_BAD_DBR}};

    ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &ring), 0);
    ck_assert_uint_eq(create_umem(uid, 1, 1, 0, &dbr), 0);
    ck_assert_uint_eq(create_umem(other, 1, 1, 0, &foreign), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(outside); i++) {
        ck_assert_uint_eq(create_cq_in_umem(uid, ring, outside[i], dbr, 0), SYN_UMEM_RANGE);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(bad_dbr); i++) {
        ck_assert_uint_eq(create_cq_in_umem(uid, ring, 0, dbr, bad_dbr[i].offset), bad_dbr[i].syn);
    }
    /* an offset that wraps around to the start of the umem's first page */
    ck_assert_uint_eq(create_umem(uid, 2, 2, 64, &shifted), 0);
    ck_assert_uint_eq(create_cq_in_umem(uid, shifted, UINT64_MAX - 63, dbr, 0), SYN_UMEM_RANGE);
    ck_assert_uint_eq(create_cq_in_umem(uid, foreign, 0, dbr, 0), SYN_BAD_UID);
    ck_assert_uint_eq(create_cq_in_umem(uid, ring, 0, foreign, 0), SYN_BAD_UID);
    ck_assert_uint_eq(create_cq_in_umem(uid, 0xffffff, 0, dbr, 0), SYN_NO_UMEM);
}
END_TEST

/* general_obj_in_cmd_hdr: the type is where other commands have op_mod. Types that
 * general_obj_types of QUERY_HCA_CAP does not list are refused, including type 0. A range of QP
 * numbers has nothing that could be modified. */
START_TEST(general_objects_of_other_types_are_refused)
{
    static const uint16_t opcodes[] = {
        PRM_CMD_OP_CREATE_GENERAL_OBJECT, PRM_CMD_OP_MODIFY_GENERAL_OBJECT,
        PRM_CMD_OP_QUERY_GENERAL_OBJECT, PRM_CMD_OP_DESTROY_GENERAL_OBJECT};
    static const uint16_t types[] = {0, 0xd, 0xffff};
    struct prm_general_obj_in_cmd_hdr in[1] = {0};
    uint8_t out[16];

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        PRM_SET(general_obj_in_cmd_hdr, in, opcode, opcodes[_i]);
        PRM_SET(general_obj_in_cmd_hdr, in, obj_type, types[i]);
        ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_NO_OBJ_TYPE);
    }
    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_MODIFY_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_NO_OBJ_TYPE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw");
    TCase *cold = tcase_create("cold"), *ready = tcase_create("ready");

    tcase_add_checked_fixture(cold, setup, teardown);
    tcase_add_test(cold, commands_wait_for_enable);
    tcase_add_test(cold, issi_is_negotiated);
    tcase_add_test(cold, init_waits_for_its_pages);
    tcase_add_test(cold, teardown_returns_every_page);
    tcase_add_test(cold, bad_pages_are_refused);
    tcase_add_test(cold, reset_starts_over);
    tcase_add_test(cold, fast_teardown);
    tcase_add_test(cold, a_firmware_that_failed_is_reset);
    tcase_add_test(cold, a_firmware_with_a_reported_problem_continues);
    tcase_add_test(cold, bad_teardown_profile);
    tcase_add_test(cold, a_command_is_found_by_its_opcode);
    tcase_add_test(cold, configuration_is_checked);
    tcase_add_test(cold, the_owner_says_how_many_qps_there_are);
    suite_add_tcase(s, cold);

    tcase_add_checked_fixture(ready, setup_ready, teardown);
    tcase_set_timeout(ready, 60);
    tcase_add_test(ready, objects_need_pages);
    tcase_add_test(ready, tunneled_operations_last_until_the_function_is_torn_down);
    tcase_add_test(ready, page_requests_follow_the_objects);
    tcase_add_test(ready, an_eq_for_page_faults_makes_a_pager);
    tcase_add_test(ready, refused_request_is_not_repeated);
    tcase_add_test(ready, a_kind_of_object_has_the_commands_of_its_row);
    tcase_add_test(ready, umem_belongs_to_its_context);
    tcase_add_test(ready, umem_is_checked);
    tcase_add_test(ready, context_takes_its_objects_along);
    tcase_add_test(ready, flow_counters_belong_to_their_context);
    tcase_add_test(ready, flow_counters_are_cleared_by_a_query);
    tcase_add_test(ready, the_register_that_clears_intx_does_nothing);
    tcase_add_test(ready, a_command_may_be_longer_than_its_layout_by_zeros);
    tcase_add_test(ready, privileged_commands_take_no_uid);
    tcase_add_test(ready, rings_lie_inside_their_umem);
    tcase_add_loop_test(ready, general_objects_of_other_types_are_refused, 0, 4);
    suite_add_tcase(s, ready);
    return s;
}
