/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses and carries out copies from memory to memory. */
#include "model/queue/mmo.h"
#include "prm/prm.h"

static struct sge mmo_parse_data(const struct prm_wqe_data_seg *seg, uint32_t denied)
{
    uint32_t bytes = PRM_GET(wqe_data_seg, seg, byte_count);
    uint32_t lkey = PRM_GET(wqe_data_seg, seg, lkey);

    return (struct sge){
        .va = PRM_GET(wqe_data_seg, seg, addr),
        .len = bytes ? bytes : 1u << 31,
        .lkey = lkey == denied ? MKEY_NONE : lkey,
    };
}

bool mmo_parse(uint32_t opmod, const void *segments, size_t len, uint32_t denied,
               struct mmo_copy *copy)
{
    const struct prm_wqe_mmo_seg *mmo = segments;
    const struct prm_wqe_data_seg *from, *to;

    if (opmod != PRM_MMO_OPMOD_DMA || len != PRM_SIZE(wqe_mmo_seg)) {
        return false;
    }
    from = PRM_PTR(wqe_mmo_seg, mmo, source);
    to = PRM_PTR(wqe_mmo_seg, mmo, destination);
    if (PRM_GET(wqe_data_seg, from, inl) || PRM_GET(wqe_data_seg, to, inl)) {
        return false;
    }
    copy->from = mmo_parse_data(from, denied);
    copy->to = mmo_parse_data(to, denied);
    return true;
}

bool mmo_length_ok(const struct mmo_copy *copy)
{
    return copy->from.len <= 1u << MMO_LOG_MAX && copy->from.len <= copy->to.len;
}

enum mem_result mmo_copy_part(struct hca *hca, uint32_t pdn, const struct mmo_copy *copy,
                              size_t *done)
{
    const struct sge *from = &copy->from, *to = &copy->to;
    size_t part = MIN(from->len - *done, MMO_PART);
    uint8_t bytes[MMO_PART];
    enum mem_result result =
        mkey_read(hca, from->lkey, pdn, from->va + *done, bytes, part, MEM_LOCAL_READ);

    if (result == MEM_OK) {
        result = mkey_write(hca, to->lkey, pdn, to->va + *done, bytes, part, MEM_LOCAL_WRITE);
    }
    if (result == MEM_OK) {
        *done += part;
    }
    return result;
}
