/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: a datagram QP receives the messages to the groups that it is in. */
#include <string.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/kernel/qp.h"

/* A membership of a QP. Two memberships may differ only in lid, the LID that was given to
 * attach. */
struct hv_mcast {
    union ibv_gid gid;
    uint16_t lid;
    struct hv_mcast *next;
};

/* The QP and its device are there; groups are for UD QPs, and have multicast GIDs: 0 or errno. */
static int mcast_check(struct hv_qp *qp, const union ibv_gid *gid, const char *verb)
{
    int err = hv_check_there(qp->hca);
    struct hv_words name;

    err = err ? err : hv_qp_check(&qp->ibv);
    if (err) {
        return err;
    }
    if (qp->ibv.qp_type != IBV_QPT_UD) {
        return hv_refuse(qp->hca, EINVAL, "%s: QP 0x%x has the type %s; only UD QPs have groups",
                         verb, qp->ibv.qp_num, hv_qp_type_name(qp->ibv.qp_type));
    }
    if (!hv_gid_is_multicast(gid)) {
        return hv_refuse(qp->hca, EINVAL,
                         "%s: %s is no multicast address (ff00::/8, or 224.0.0.0/4 as an IPv4 GID)",
                         verb, hv_gid_name(gid, &name));
    }
    return 0;
}

static int mcast_attach(struct hv_qp *qp, const union ibv_gid *gid)
{
    struct prm_attach_to_mcg_in in[1] = {0};

    PRM_SET(attach_to_mcg_in, in, opcode, PRM_CMD_OP_ATTACH_TO_MCG);
    PRM_SET(attach_to_mcg_in, in, uid, qp->uid);
    PRM_SET(attach_to_mcg_in, in, qpn, qp->ibv.qp_num);
    memcpy(PRM_PTR(attach_to_mcg_in, in, multicast_gid), gid->raw, 16);
    return hv_cmd_simple(qp->hca, in, sizeof(in));
}

static int mcast_detach(struct hv_qp *qp, const union ibv_gid *gid)
{
    struct prm_detach_from_mcg_in in[1] = {0};

    PRM_SET(detach_from_mcg_in, in, opcode, PRM_CMD_OP_DETACH_FROM_MCG);
    PRM_SET(detach_from_mcg_in, in, uid, qp->uid);
    PRM_SET(detach_from_mcg_in, in, qpn, qp->ibv.qp_num);
    memcpy(PRM_PTR(detach_from_mcg_in, in, multicast_gid), gid->raw, 16);
    return hv_cmd_simple(qp->hca, in, sizeof(in));
}

/* The link to the membership, or the end of the list. Under ibv.mutex. */
static struct hv_mcast **mcast_find(struct hv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct hv_mcast **at = &qp->groups;

    while (*at && ((*at)->lid != lid || memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

/* As ib_uverbs_attach_mcast(): joining a group again is not an error, and counts once. Returns 0 or
 * errno. */
static int mcast_join(struct hv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct ibv_qp *ibqp = &qp->ibv;
    struct hv_mcast **at;
    int err = mcast_check(qp, gid, "attach_mcast");

    if (err) {
        return err;
    }
    pthread_mutex_lock(&ibqp->mutex);
    at = mcast_find(qp, gid, lid);
    if (!*at) {
        struct hv_mcast *group = calloc(1, sizeof(*group));

        err = group ? mcast_attach(qp, gid) : ENOMEM;
        if (err) {
            free(group);
        } else {
            group->gid = *gid;
            group->lid = lid;
            *at = group;
            g_atomic_int_inc(&qp->refs);
        }
    }
    pthread_mutex_unlock(&ibqp->mutex);
    return err;
}

HV_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return hv_kernel(mcast_join(hv_qp(qp), gid, lid));
}

/* As ib_uverbs_detach_mcast(): 0 or errno. */
static int mcast_leave(struct hv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct ibv_qp *ibqp = &qp->ibv;
    struct hv_mcast **at;
    int err = mcast_check(qp, gid, "detach_mcast");

    if (err) {
        return err;
    }
    pthread_mutex_lock(&ibqp->mutex);
    at = mcast_find(qp, gid, lid);
    if (*at) {
        struct hv_mcast *group = *at;

        err = mcast_detach(qp, gid);
        if (!err) {
            *at = group->next;
            free(group);
            g_atomic_int_add(&qp->refs, -1);
        }
    } else {
        struct hv_words name;

        err = hv_refuse(qp->hca, EINVAL, "detach_mcast: QP 0x%x is not in the group %s",
                        ibqp->qp_num, hv_gid_name(gid, &name));
    }
    pthread_mutex_unlock(&ibqp->mutex);
    return err;
}

void hv_mcast_leave_all(struct hv_qp *qp)
{
    struct hv_mcast *next;

    pthread_mutex_lock(&qp->ibv.mutex);
    for (struct hv_mcast *group = qp->groups; group; group = next) {
        next = group->next;
        mcast_detach(qp, &group->gid); /* succeeds on a removed device */
        free(group);
        g_atomic_int_add(&qp->refs, -1);
    }
    qp->groups = NULL;
    pthread_mutex_unlock(&qp->ibv.mutex);
}

HV_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return hv_kernel(mcast_leave(hv_qp(qp), gid, lid));
}
