/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC as OFED had it before XRC domains came to <infiniband/verbs.h>: a domain, shared receive
 * queues that name their number, and receiving QPs that a program knows by number alone. The calls
 * are functions of the library, which MLNX_OFED 4.6 still exported.
 */
#ifndef INFINIBAND_OFA_VERBS_H
#define INFINIBAND_OFA_VERBS_H

#include <pthread.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of ibv_create_qp(), once the context has a domain, and of ibv_exp_create_qp(): a QP that sends.
 * Its qp_type is IBV_QPT_XRC_SEND afterwards. */
#define IBV_QPT_XRC ((enum ibv_qp_type)5)

/* The handle of each struct ibv_srq_legacy. */
#define LEGACY_XRC_SRQ_HANDLE 0xffffffff

/* Only a pointer to it is of use. */
struct ibv_xrc_domain {
    struct ibv_context *context;
    uint32_t handle;
};

/* The structure behind ibv_create_xrc_srq()'s pointer. Programs of OFED 1.5 have the members with
 * "bin_compat" at these places in their struct ibv_srq; programs of later releases have the last
 * three. */
struct ibv_srq_legacy {
    struct ibv_context *context;
    void *srq_context;
    struct ibv_pd *pd;
    uint32_t handle;
    uint32_t events_completed;
    uint32_t xrc_srq_num_bin_compat;
    struct ibv_xrc_domain *xrc_domain_bin_compat;
    struct ibv_cq *xrc_cq_bin_compat;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    void *ibv_srq; /* the library's own */
    uint32_t xrc_srq_num;
    struct ibv_xrc_domain *xrc_domain;
    struct ibv_cq *xrc_cq;
};

/* struct ibv_qp_init_attr of that time: rdma-core's, and the domain behind it. */
struct ibv_xrc_qp_init_attr {
    struct ibv_qp_init_attr base;
    struct ibv_xrc_domain *xrc_domain;
};

/* Opens a domain: of the file fd, with oflag O_CREAT and O_EXCL as open() has them, or with fd -1 a
 * domain of its own. NULL with errno. */
struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag);
/* Returns 0 or errno: EBUSY while a QP or SRQ uses the domain. */
int ibv_close_xrc_domain(struct ibv_xrc_domain *domain);

/* Makes an SRQ of the domain, whose messages complete in xrc_cq. The sizes in *attr stay as they
 * are. NULL with errno. ibv_destroy_srq() destroys it. */
struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
                                   struct ibv_cq *xrc_cq, struct ibv_srq_init_attr *attr);

/* Makes a receiving QP of attr->xrc_domain, which is a struct ibv_xrc_qp_init_attr's; no other
 * member is read. The program is registered with the QP. Returns 0 or errno. */
int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *attr, uint32_t *xrc_rcv_qpn);
/* These find a QP with which the program is registered; EINVAL if there is none. They do not check
 * that it is the domain's. */
int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num,
                          struct ibv_qp_attr *attr, int attr_mask);
int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num,
                         struct ibv_qp_attr *attr, int attr_mask,
                         struct ibv_qp_init_attr *init_attr);
/* Registers the program with a QP of the domain. Returns 0 or errno: EINVAL, if there is no such
 * QP; EEXIST, if it is registered. */
int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num);
/* Ends the registration. The last one destroys the QP. Returns 0 or errno. */
int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t xrc_qp_num);

#ifdef __cplusplus
}
#endif

#endif
