/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements meter.h. */
#include "model/steering/meter.h"
#include "model/core/pd.h"
#include "model/steering/ste.h"
#include "model/steering/tables.h"

/* Bytes on the wire that belong to no frame: preamble, FCS and the gap between two frames. */
#define BETWEEN_FRAMES 24

#define PARAM(meter, field)                                                                        \
    PRM_GET(flow_meter_parameters, PRM_PTR(flow_meter, (meter)->ctx, flow_meter_params), field)

/* -- buckets ------------------------------------------------------------------------------------
 */

/* mantissa * 10^9 / 2^exponent bytes/s (DPDK: mlx5_flow_meter_xir_man_exp_calc()). A rate below
 * 1 kb/s becomes 1 kb/s. */
static uint32_t meter_kbps(uint32_t mantissa, uint32_t exponent)
{
    return mantissa ? MAX(mantissa * 8000000u >> exponent, 1) : 0;
}

/* mantissa * 2^exponent bytes. */
static int64_t meter_size(uint32_t mantissa, uint32_t exponent)
{
    return bucket_cost((uint64_t)mantissa << exponent);
}

/* Gives a bucket tokens. Returns those for which it has no room. */
static int64_t meter_fill(struct meter_bucket *bucket, int64_t tokens)
{
    int64_t room = MAX(bucket->tokens.debt + bucket->size, 0);
    int64_t taken = MIN(tokens, room);

    bucket->tokens.debt -= taken;
    return tokens - taken;
}

/* The tokens that a bucket has earned since the last time. */
static int64_t meter_earn(struct meter_bucket *bucket, uint64_t now)
{
    uint64_t passed = now - bucket->tokens.debt_at;

    bucket->tokens.debt_at = now;
    return bucket->kbps && passed > (uint64_t)INT64_MAX / bucket->kbps
               ? INT64_MAX
               : (int64_t)(passed * bucket->kbps);
}

static void meter_refill(struct flow_meter *meter, uint64_t now)
{
    int64_t rest = meter_fill(&meter->committed, meter_earn(&meter->committed, now));

    meter_fill(&meter->excess, meter_earn(&meter->excess, now));
    if (PARAM(meter, bucket_overflow)) {
        meter_fill(&meter->excess, rest);
    }
}

/* Whether a frame may take tokens of the bucket. */
static bool meter_gives(const struct meter_bucket *bucket)
{
    return bucket->tokens.debt < 0 || (!bucket->tokens.debt && !bucket->size && bucket->kbps);
}

/* -- frames -------------------------------------------------------------------------------------
 */

static size_t meter_bytes(const struct flow_meter *meter, size_t len, size_t l2)
{
    switch (PARAM(meter, meter_mode)) {
    case PRM_FLOW_METER_MODE_BYTES_IP_LENGTH:
        return len - MIN(l2, len);
    case PRM_FLOW_METER_MODE_BYTES_CALC_WITH_L2_IPG:
        return len + BETWEEN_FRAMES;
    default:
        return len;
    }
}

uint8_t flow_meter_colour(struct hca *hca, struct flow_meter *meter, size_t len, size_t l2)
{
    int64_t cost = bucket_cost(meter_bytes(meter, len, l2));

    meter->colour = (uint8_t)PARAM(meter, start_color);
    if (!PRM_GET(flow_meter, meter->ctx, active) || !PARAM(meter, valid)) {
        return meter->colour;
    }
    meter_refill(meter, hca_now(hca));
    if (meter->colour == PRM_FLOW_METER_COLOR_GREEN && meter_gives(&meter->committed)) {
        meter->committed.tokens.debt += cost;
        if (PARAM(meter, both_buckets_on_green) && meter->excess.tokens.debt <= 0) {
            meter->excess.tokens.debt += cost;
        }
    } else if (meter->colour != PRM_FLOW_METER_COLOR_RED && meter_gives(&meter->excess)) {
        meter->excess.tokens.debt += cost;
        meter->colour = PRM_FLOW_METER_COLOR_YELLOW;
    } else {
        meter->colour = PRM_FLOW_METER_COLOR_RED;
    }
    return meter->colour;
}

/* -- commands -----------------------------------------------------------------------------------
 */

/* Takes over rates and sizes of the context. A bucket that has become smaller loses what it has no
 * room for. */
static void meter_set_buckets(struct flow_meter *meter)
{
    meter->committed.kbps = meter_kbps(PARAM(meter, cir_mantissa), PARAM(meter, cir_exponent));
    meter->committed.size = meter_size(PARAM(meter, cbs_mantissa), PARAM(meter, cbs_exponent));
    meter->excess.kbps = meter_kbps(PARAM(meter, eir_mantissa), PARAM(meter, eir_exponent));
    meter->excess.size = meter_size(PARAM(meter, ebs_mantissa), PARAM(meter, ebs_exponent));
    meter->committed.tokens.debt = MAX(meter->committed.tokens.debt, -meter->committed.size);
    meter->excess.tokens.debt = MAX(meter->excess.tokens.debt, -meter->excess.size);
}

/* Whether the meter can do what its context says. */
static enum syn meter_check(const struct prm_flow_meter *object)
{
    const void *params = PRM_PTR(flow_meter, object, flow_meter_params);
    uint32_t type = PRM_GET(flow_meter, object, table_type);

    if (type != PRM_FLOW_TABLE_TYPE_NIC_RX && type != PRM_FLOW_TABLE_TYPE_NIC_TX) {
        return SYN_FT_TYPE;
    }
    if (!(METER_REGISTERS >> PRM_GET(flow_meter, object, return_reg_id) & 1)) {
        return SYN_METER_REGISTER;
    }
    return PRM_GET(flow_meter_parameters, params, start_color) > PRM_FLOW_METER_COLOR_GREEN ||
                   PRM_GET(flow_meter_parameters, params, meter_mode) >
                       PRM_FLOW_METER_MODE_BYTES_CALC_WITH_L2_IPG
               ? SYN_METER_PARAMS
               : SYN_OK;
}

enum syn flow_meter_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num)
{
    const struct prm_flow_meter *in = object;
    struct flow_meter *meter;
    struct flow_table *next;
    enum syn syn = meter_check(in);

    if (syn != SYN_OK) {
        return syn;
    }
    next = steering_find_table(hca, (uint8_t)PRM_GET(flow_meter, in, table_type),
                               PRM_GET(flow_meter, in, destination_table_id));
    syn = uid_check((const struct obj *)next, uid, SYN_FT_NOT_FOUND);
    if (syn != SYN_OK) {
        return syn;
    }
    meter = obj_make(hca, OBJ_FLOW_METER, uid, sizeof(*meter));
    if (!meter) {
        return SYN_NO_MEMORY;
    }
    *meter->ctx = *in;
    *num = meter->obj.num;
    PRM_SET(flow_meter, meter->ctx, sw_steering_icm_address_rx, ste_end_address(STE_METER, *num));
    PRM_SET(flow_meter, meter->ctx, sw_steering_icm_address_tx, ste_end_address(STE_METER, *num));
    meter->next = next;
    obj_ref(&meter->obj, &next->obj);
    meter_set_buckets(meter);
    meter->committed.tokens.debt = -meter->committed.size;
    meter->excess.tokens.debt = -meter->excess.size;
    meter->committed.tokens.debt_at = meter->excess.tokens.debt_at = hca_now(hca);
    return SYN_OK;
}

/* The fields that the command names (DPDK: mlx5_flow_meter_action_modify()). */
enum syn flow_meter_modify(struct hca *hca, struct obj *obj, const void *object)
{
    struct flow_meter *meter = (struct flow_meter *)obj;
    const void *in = PRM_PTR(flow_meter, (const struct prm_flow_meter *)object, flow_meter_params);
    uint64_t select =
        PRM_GET(flow_meter, (const struct prm_flow_meter *)object, modify_field_select);
    struct prm_flow_meter next[1] = {*meter->ctx};
    void *params = PRM_PTR(flow_meter, next, flow_meter_params);
    enum syn syn;

#define TAKE(bit, field)                                                                           \
    do {                                                                                           \
        if (select & PRM_MODIFY_METER_##bit) {                                                     \
            PRM_SET(flow_meter_parameters, params, field,                                          \
                    PRM_GET(flow_meter_parameters, in, field));                                    \
        }                                                                                          \
    } while (0)
    TAKE(CBS, cbs_exponent);
    TAKE(CBS, cbs_mantissa);
    TAKE(CIR, cir_exponent);
    TAKE(CIR, cir_mantissa);
    TAKE(EBS, ebs_exponent);
    TAKE(EBS, ebs_mantissa);
    TAKE(EIR, eir_exponent);
    TAKE(EIR, eir_mantissa);
#undef TAKE
    if (select & PRM_MODIFY_METER_ACTIVE) {
        PRM_SET(flow_meter, next, active,
                PRM_GET(flow_meter, (const struct prm_flow_meter *)object, active));
    }
    syn = select & ~(uint64_t)(PRM_MODIFY_METER_ACTIVE | PRM_MODIFY_METER_CBS |
                               PRM_MODIFY_METER_CIR | PRM_MODIFY_METER_EBS | PRM_MODIFY_METER_EIR)
              ? SYN_METER_PARAMS
              : meter_check(next);
    if (syn == SYN_OK) {
        meter_refill(meter, hca_now(hca));
        *meter->ctx = *next;
        meter_set_buckets(meter);
    }
    return syn;
}

void flow_meter_free(struct hca *hca, struct obj *obj)
{
    obj_unref(obj, &((struct flow_meter *)obj)->next->obj);
    obj_end(hca, obj);
}
