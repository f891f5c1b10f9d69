/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "fw/cmd.h"
#include "tests/fuzz/guest_input.h"

#define RUNS_PER_FUNCTION 16
/* turns of one input; otherwise the search ends up with inputs that only take long */
#define MAX_TURNS 300

struct guest_input *guest_input_start(const uint8_t *data, size_t size)
{
    static struct guest_input in;
    static unsigned runs;
    bool fresh = g_getenv("FUZZ_FRESH") || runs++ % RUNS_PER_FUNCTION == 0;

    if (!in.t) {
        in.t = two_hcas_data_in_cqe();
        fresh = true;
    } else if (fresh || in.t->a.hca->fw->state != CMD_READY) {
        node_revive(&in.t->a);
        fresh = true;
    }
    in.turns = MAX_TURNS;
    in.data = data;
    in.size = size;
    in.fresh = fresh;
    if (fresh) {
        in.names.num_nums = in.names.num_addrs = 0;
        guest_init(&in.guest, &in.t->a);
        guest_tell(&in.guest, &in.names);
    }
    return &in;
}

uint8_t input_u8(struct guest_input *in)
{
    if (!in->size) {
        return 0;
    }
    in->size--;
    return *in->data++;
}

uint16_t input_u16(struct guest_input *in)
{
    uint16_t high = input_u8(in);

    return (uint16_t)(high << 8 | input_u8(in));
}

uint32_t input_u32(struct guest_input *in)
{
    uint32_t high = input_u16(in);

    return high << 16 | input_u16(in);
}

static uint32_t number(const struct guest_input *in, unsigned i)
{
    return in->names.nums[i % in->names.num_nums];
}

void input_patch(struct guest_input *in, uint8_t *p, size_t len)
{
    for (unsigned n = input_u8(in) % 16; n && len >= 4; n--) {
        size_t at = input_u16(in) % (len - 3);
        uint8_t how = input_u8(in);

        switch (how % 6) {
        case 0:
            p[at] = input_u8(in);
            break;
        case 1:
            prm_store16(p + at, input_u16(in));
            break;
        case 2:
            prm_store32(p + at / 4 * 4, input_u32(in));
            break;
        case 3:
            prm_store32(p + at / 4 * 4, number(in, input_u8(in)));
            break;
        case 4:
            prm_store32(p + at / 4 * 4, number(in, input_u8(in)) << 8);
            break;
        case 5:
            if (at / 4 * 4 + 8 <= len) {
                prm_store64(p + at / 4 * 4,
                            in->names.addrs[input_u8(in) % in->names.num_addrs] + input_u16(in));
            }
            break;
        }
    }
}

void input_settle(struct guest_input *in)
{
    struct drv_wc wc;

    while (in->turns && inproc_run_ready(in->t->world)) {
        in->turns--;
        while (drv_poll_cq(in->t->a.drv, &in->t->a.cq, &wc)) {
        }
    }
}

void input_advance(struct guest_input *in, uint64_t ns)
{
    uint64_t limit = in->t->world->now_ns + ns;

    while (in->turns && inproc_step(in->t->world, limit)) {
        in->turns--;
    }
}
