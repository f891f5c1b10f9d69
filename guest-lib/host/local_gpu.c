/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host callbacks of an HCA that reaches memory of a GPU (gpu.h). They take the place of those
 * in local.c when the first such memory is registered, so an HCA without a GPU pays nothing for
 * them.
 *
 * Writes to a GPU are only submitted. What must come after them waits for them: a write to other
 * memory, an interrupt, a frame.
 */
#include "guest-lib/host/gpu.h"
#include "guest-lib/host/local_internal.h"

/* Writes the reason for an access that the GPU did not answer. Returns whether it did. */
static bool local_gpu_answered(void *host, bool answered, uint64_t addr, size_t len)
{
    g_autofree char *line = NULL;

    if (!answered) {
        line = g_strdup_printf("no answer from the GPU's memory at 0x%" G_GINT64_MODIFIER
                               "x (%zu bytes): %s",
                               addr, len, gpu_why());
        local_log(host, HCA_LOG_GUEST_ERROR, line);
    }
    return answered;
}

static void local_gpu_settle(void *host)
{
    if (!gpu_settle()) {
        g_autofree char *line =
            g_strdup_printf("writes to the GPU's memory were lost: %s", gpu_why());

        local_log(host, HCA_LOG_GUEST_ERROR, line);
    }
}

static bool local_gpu_read(void *host, uint64_t addr, void *buf, size_t len)
{
    if (gpu_has(addr)) {
        return local_gpu_answered(host, gpu_read(addr, buf, len), addr, len);
    }
    gpu_expect(0);
    return local_ops.dma_read(host, addr, buf, len);
}

static bool local_gpu_read_far(void *host, uint64_t addr, void *buf, size_t len)
{
    if (gpu_has(addr)) {
        return local_gpu_answered(host, gpu_read(addr, buf, len), addr, len);
    }
    gpu_expect(0);
    return local_ops.dma_read_far(host, addr, buf, len);
}

static bool local_gpu_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    if (gpu_has(addr)) {
        return local_gpu_answered(host, gpu_write(addr, buf, len), addr, len);
    }
    local_gpu_settle(host);
    return local_ops.dma_write(host, addr, buf, len);
}

static bool local_gpu_atomic(void *host, uint64_t addr, size_t len, struct host_atomic *op)
{
    if (gpu_has(addr)) {
        return local_gpu_answered(host, gpu_atomic(addr, len, op), addr, len);
    }
    local_gpu_settle(host);
    return local_ops.dma_atomic(host, addr, len, op);
}

static void local_gpu_expect(void *host, size_t len)
{
    gpu_expect(len);
}

static void local_gpu_irq(void *host, unsigned vector)
{
    local_gpu_settle(host);
    local_ops.irq(host, vector);
}

void local_reach_gpu(struct local_hca *hca)
{
    pthread_mutex_lock(&hca->lock);
    hca->ops.dma_read = local_gpu_read;
    hca->ops.dma_read_far = local_gpu_read_far;
    hca->ops.dma_write = local_gpu_write;
    hca->ops.dma_atomic = local_gpu_atomic;
    hca->ops.dma_expect = local_gpu_expect;
    hca->ops.dma_settle = local_gpu_settle;
    hca->ops.irq = local_gpu_irq;
    fw_host_settles(hca->fw);
    pthread_mutex_unlock(&hca->lock);
}
