/* SPDX-License-Identifier: BSD-2-Clause */
/* Capabilities of ibv_exp_query_device() that are about more than one feature, or about none here.
 */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

static void print(const char *name, bool is)
{
    printf("%s: %s\n", name, is ? "yes" : "no");
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {
        .comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS | IBV_EXP_DEVICE_ATTR_MAX_DCT |
                     IBV_EXP_DEVICE_ATTR_RX_PAD_END_ALIGN | IBV_EXP_DEVICE_ATTR_PACKET_PACING_CAPS |
                     IBV_EXP_DEVICE_ATTR_TUNNEL_OFFLOADS_CAPS,
        .tunnel_offloads_caps = ~0u};
    uint64_t flags;

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    flags = attr.exp_device_cap_flags;
    print("CAPI, which needs a POWER machine", flags & IBV_EXP_DEVICE_CAPI);
    print("VXLAN", flags & IBV_EXP_DEVICE_VXLAN_SUPPORT);
    print("tunnels", attr.tunnel_offloads_caps);
    print("packet pacing", attr.comp_mask & IBV_EXP_DEVICE_ATTR_PACKET_PACING_CAPS);
    print("padding to cache lines", attr.rx_pad_end_addr_align == 64);
    print("dynamic connections", flags & IBV_EXP_DEVICE_DC_TRANSPORT && attr.max_dct > 0);
    return 0;
}
