/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of a context (ib_get_peer_private_data() of MLNX_OFED's kernel).
 *
 * There, a module that knows the memory of a peer registers a name and is asked for the memory of
 * the peer with that number. Here, the library itself knows the memory of GPUs
 * (guest-lib/host/gpu.h), under the name of NVIDIA's module. The number is the GPU's. A context
 * with a peer finds memory of that GPU alone, besides memory of the host.
 */
#include <inttypes.h>
#include <string.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/kernel/uverbs.h"

#define PEER_NAME      "nv_mem" /* nvidia-peermem's */
#define PEER_NAME_SIZE 64       /* of a name in the command, with its end */

int uverbs_set_peer(struct hv_context *ctx, uint64_t peer_id, const char *name)
{
    int err = hv_check_there(ctx->hca);

    if (err) {
        return err;
    }
    if (strncmp(name, PEER_NAME, PEER_NAME_SIZE) != 0 || !gpu_exists(peer_id)) {
        return hv_refuse(ctx->hca, ENODEV,
                         "exp_open_device: there is no peer \"%.*s\" with peer_id %" PRIu64
                         "; the peer of GPU n is \"" PEER_NAME
                         "\" with peer_id n, in a process that has loaded the CUDA driver",
                         PEER_NAME_SIZE, name, peer_id);
    }
    ctx->peer_gpu = peer_id;
    ctx->has_peer = true;
    return 0;
}

bool uverbs_is_gpu_memory(const void *addr, size_t len)
{
    struct gpu_claim *claim;
    bool is = gpu_claim_range(addr, len, &claim) || claim;

    gpu_release(claim);
    return is;
}
