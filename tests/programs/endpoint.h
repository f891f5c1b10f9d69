/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs of two sides have of a device: their options, the device of a name, and a QP's way
 * to where it can be used. Whatever fails ends the program.
 */
#ifndef HCASIM_TESTS_PROGRAMS_ENDPOINT_H
#define HCASIM_TESTS_PROGRAMS_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define ENDPOINT_PORT 1 /* of the device */

struct endpoint_options {
    const char *device; /* NULL: the first one */
    const char *host;   /* NULL: the other side calls */
    const char *port;   /* of TCP */
    unsigned gid_index;
};

/* -d DEVICE -g GID -p PORT HOST, each over what is there. With others the program ends, status 2.
 */
void endpoint_options(int argc, char **argv, struct endpoint_options *options);

/* Opens the device of a name, or the first one, with a function like ibv_open_device(). */
struct ibv_context *endpoint_open(const char *name,
                                  struct ibv_context *(*open)(struct ibv_device *device));
union ibv_gid endpoint_gid(struct ibv_context *ctx, unsigned gid_index);
struct ibv_ah_attr endpoint_towards(union ibv_gid gid, unsigned gid_index);

/* A QP of RC: to INIT, and then to RTS with its peer. timeout is the attribute's, 2^timeout * 4 us.
 */
void endpoint_init_rc(struct ibv_qp *qp, unsigned access);
void endpoint_connect_rc(struct ibv_qp *qp, struct ibv_ah_attr to, uint32_t qpn, uint8_t timeout);

/* The next completion, whatever it says. Waits for it, OTHER_SIDE_PATIENCE seconds at most. */
struct ibv_wc endpoint_completion(struct ibv_cq *cq);

#endif
