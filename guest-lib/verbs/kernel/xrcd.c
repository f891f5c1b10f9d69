/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains. Handles that open a domain through the same file share it, within this process,
 * because each process has its own HCA.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/uverbs.h"

/* A domain that belongs to a file. */
struct hv_xrcd_inode {
    dev_t dev;
    ino_t ino;
    uint32_t xrcdn;
    unsigned opens;
};

static int xrcd_alloc_cmd(struct hv_hca *hca, uint32_t *xrcdn)
{
    struct prm_alloc_xrcd_in in[1] = {0};
    struct prm_alloc_xrcd_out out[1] = {0};
    int err;

    PRM_SET(alloc_xrcd_in, in, opcode, PRM_CMD_OP_ALLOC_XRCD);
    err = hv_cmd(hca, in, sizeof(in), out, sizeof(out));
    *xrcdn = PRM_GET(alloc_xrcd_out, out, xrcd);
    return err;
}

static int xrcd_dealloc_cmd(struct hv_hca *hca, uint32_t xrcdn)
{
    struct prm_dealloc_xrcd_in in[1] = {0};

    PRM_SET(dealloc_xrcd_in, in, opcode, PRM_CMD_OP_DEALLOC_XRCD);
    PRM_SET(dealloc_xrcd_in, in, xrcd, xrcdn);
    return hv_cmd_simple(hca, in, sizeof(in));
}

/* Under xrcd_lock. */
static struct hv_xrcd_inode *xrcd_find_inode(struct hv_hca *hca, const struct stat *st)
{
    for (guint i = 0; i < hca->xrcds->len; i++) {
        struct hv_xrcd_inode *inode = hca->xrcds->pdata[i];

        if (inode->dev == st->st_dev && inode->ino == st->st_ino) {
            return inode;
        }
    }
    return NULL;
}

/* Finds the domain of an open file; makes it if there is none and O_CREAT allows that. Returns 0 or
 * errno. Under xrcd_lock. */
static int xrcd_open_inode(struct hv_hca *hca, int fd, int oflags, struct hv_xrcd *xrcd)
{
    struct hv_xrcd_inode *inode;
    struct stat st;
    int err;

    if (fstat(fd, &st)) {
        return EBADF;
    }
    inode = xrcd_find_inode(hca, &st);
    if (!inode && !(oflags & O_CREAT)) {
        return EAGAIN;
    }
    if (inode && (oflags & O_EXCL)) {
        return EINVAL;
    }
    if (!inode) {
        inode = g_new0(struct hv_xrcd_inode, 1);
        err = xrcd_alloc_cmd(hca, &inode->xrcdn);
        if (err) {
            g_free(inode);
            return err;
        }
        inode->dev = st.st_dev;
        inode->ino = st.st_ino;
        g_ptr_array_add(hca->xrcds, inode);
    }
    inode->opens++;
    xrcd->inode = inode;
    xrcd->xrcdn = inode->xrcdn;
    return 0;
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t need = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct hv_hca *hca = hv_hca_of(context);
    struct hv_xrcd *xrcd;
    int err;

    if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED || (attr->comp_mask & need) != need) {
        errno = attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    xrcd = calloc(1, sizeof(*xrcd));
    if (!xrcd) {
        return NULL;
    }
    if (hv_is_removed(hca)) {
        err = EIO;
    } else if (attr->fd == -1) {
        err = xrcd_alloc_cmd(hca, &xrcd->xrcdn);
    } else {
        pthread_mutex_lock(&hca->xrcd_lock);
        err = xrcd_open_inode(hca, attr->fd, attr->oflags, xrcd);
        pthread_mutex_unlock(&hca->xrcd_lock);
    }
    if (hv_kernel(err)) {
        free(xrcd);
        return NULL;
    }
    xrcd->ibv.context = context;
    xrcd->handle = hv_handle_add(context, HV_HANDLE_XRCD, xrcd);
    return &xrcd->ibv;
}

/* Closes a domain under xrcd_lock. The last close frees the domain in the device. */
static int xrcd_close_inode(struct hv_hca *hca, struct hv_xrcd_inode *inode)
{
    int err;

    if (inode->opens > 1) {
        inode->opens--;
        return 0;
    }
    err = xrcd_dealloc_cmd(hca, inode->xrcdn);
    if (!err) {
        g_ptr_array_remove(hca->xrcds, inode);
        g_free(inode);
    }
    return err;
}

int uverbs_close_xrcd(struct hv_xrcd *xrcd)
{
    struct hv_hca *hca = hv_hca_of(xrcd->ibv.context);
    int err = hv_xrcd_check(&xrcd->ibv);

    if (!err && g_atomic_int_get(&xrcd->refs)) {
        err = hv_refuse(hca, EBUSY, "close_xrcd: %d XRC QPs and SRQs use the domain",
                        g_atomic_int_get(&xrcd->refs));
    }
    if (err) {
        return err;
    }
    if (xrcd->inode) {
        pthread_mutex_lock(&hca->xrcd_lock);
        err = xrcd_close_inode(hca, xrcd->inode);
        pthread_mutex_unlock(&hca->xrcd_lock);
    } else {
        err = xrcd_dealloc_cmd(hca, xrcd->xrcdn);
    }
    if (!err) {
        hv_handle_del(xrcd->ibv.context, xrcd->handle);
    }
    return err;
}

static int close_xrcd(struct ibv_xrcd *ibxrcd)
{
    struct hv_xrcd *xrcd = (struct hv_xrcd *)ibxrcd;
    int err = hv_kernel(uverbs_close_xrcd(xrcd));

    if (!err) {
        free(xrcd);
    }
    return err;
}

void hv_xrcd_ops(struct verbs_context *ops)
{
    ops->open_xrcd = open_xrcd;
    ops->close_xrcd = close_xrcd;
}
