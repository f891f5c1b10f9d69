/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture of the verbs library's object tests. */
#include "tests/verbs/verbs_table.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/hca.h"

#define PAGE 4096

void table_do_not_wait(int fd)
{
    g_assert_cmpint(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
}

struct verbs_table *verbs_table_new(void)
{
    return verbs_table_on(verbs_hosts_new(2, NULL));
}

struct verbs_table *verbs_table_on(struct verbs_hosts *hosts)
{
    struct verbs_table *v = g_new0(struct verbs_table, 1);

    v->hosts = hosts;
    v->a = v->hosts->host[0].ctx;
    v->b = v->hosts->host[1].ctx;
    v->hca[0] = hv_hca_of(v->a);
    v->hca[1] = hv_hca_of(v->b);
    table_do_not_wait(v->a->async_fd);
    table_do_not_wait(v->b->async_fd);
    return v;
}

void verbs_table_free(struct verbs_table *v)
{
    verbs_hosts_free(v->hosts);
    g_free(v);
}

/* -- a device that refuses ----------------------------------------------------------------------
 */

static struct {
    struct drv *drv;
    const struct pci_ops *real;
    struct pci_ops ops;
    uint8_t status;
    unsigned others; /* commands that are to be carried out before */
} refusal;

static void refuse_mmio_write(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    struct prm_cmd_queue_entry *entry = drv_cmd_entry(refusal.drv, DRV_SLOT_CMD);
    struct prm_cmd_out *out = (void *)PRM_PTR(cmd_queue_entry, entry, command_output_inline_data);

    if (offset != PRM_OFFSET(initial_seg, command_doorbell_vector) || refusal.others) {
        refusal.others -= offset == PRM_OFFSET(initial_seg, command_doorbell_vector);
        refusal.real->mmio_write(pci, offset, value, size);
        return;
    }
    PRM_SET(cmd_out, out, status, refusal.status);
    PRM_SET(cmd_queue_entry, entry, ownership, 0);
    refusal.drv->dev.ops = refusal.real;
}

void table_refuse(struct verbs_table *v, int side, uint8_t status)
{
    table_refuse_nth(v, side, status, 0);
}

void table_refuse_nth(struct verbs_table *v, int side, uint8_t status, unsigned n)
{
    refusal.others = n;
    refusal.drv = v->hca[side]->drv;
    refusal.real = refusal.drv->dev.ops;
    refusal.ops = *refusal.real;
    refusal.ops.mmio_write = refuse_mmio_write;
    refusal.status = status;
    refusal.drv->dev.ops = &refusal.ops;
}

bool table_refuse_end(void)
{
    bool waits = refusal.drv->dev.ops == &refusal.ops;

    refusal.drv->dev.ops = refusal.real;
    return waits;
}

/* -- objects ------------------------------------------------------------------------------------
 */

struct ibv_qp *table_qp_new(struct verbs_table *v, int side, struct ibv_cq *cq, struct ibv_srq *srq)
{
    return verbs_qp(&v->hosts->host[side], IBV_QPT_RC, cq, srq, NULL);
}

void table_qp_free(struct ibv_qp *qp)
{
    verbs_must_be_0(ibv_destroy_qp(qp));
}

void table_connect(struct verbs_table *v, struct ibv_qp *a, struct ibv_qp *b)
{
    verbs_connect(a, &v->hosts->host[1], b->qp_num, NULL);
    verbs_connect(b, &v->hosts->host[0], a->qp_num, NULL);
}

struct ibv_mr *table_mr_new(struct verbs_table *v, int side)
{
    void *page = aligned_alloc(PAGE, PAGE);
    struct ibv_mr *mr = ibv_reg_mr(v->hosts->host[side].pd, page, PAGE,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

    g_assert_nonnull(mr);
    for (int i = 0; i < PAGE; i++) {
        ((uint8_t *)page)[i] = (uint8_t)(i * 7 + side + 1);
    }
    return mr;
}

void table_mr_free(struct ibv_mr *mr)
{
    void *page = mr->addr;

    verbs_must_be_0(ibv_dereg_mr(mr));
    free(page);
}

struct table_umem table_umem_new(struct ibv_context *context, size_t size)
{
    size_t whole = hv_whole_pages(size);
    struct table_umem memory = {.ptr = memset(aligned_alloc(PCI_PAGE, whole), 0, whole)};

    memory.umem = hv_dv_devx_umem_reg(context, memory.ptr, size, IBV_ACCESS_LOCAL_WRITE);
    g_assert(memory.umem);
    return memory;
}

void table_umem_free(struct table_umem *memory)
{
    int err = hv_dv_devx_umem_dereg(memory->umem);

    g_assert(!err);
    free(memory->ptr);
}

struct mlx5dv_mkey *table_mkey_new(struct verbs_table *v, int side, uint32_t flags)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = v->hosts->host[side].pd,
                                         .create_flags =
                                             MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | flags,
                                         .max_entries = 4};
    struct mlx5dv_mkey *made = hv_dv_create_mkey(&attr);

    g_assert_nonnull(made);
    return made;
}

void table_wait(struct verbs_table *v)
{
    inproc_advance(v->hosts->world, VERBS_SECOND);
}

struct ibv_wc table_wc(struct verbs_table *v, struct ibv_cq *cq)
{
    return verbs_wc(v->hosts, cq);
}
