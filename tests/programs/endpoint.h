/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs with two sides need of a device: their options, opening the device by name, and the
 * transitions of a QP. Any failure ends the program.
 */
#ifndef HCASIM_TESTS_PROGRAMS_ENDPOINT_H
#define HCASIM_TESTS_PROGRAMS_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define ENDPOINT_PORT 1 /* of the device */

struct endpoint_options {
    const char *device; /* NULL: the first one */
    const char *host;   /* NULL: waits for the other side's call */
    const char *port;   /* TCP port */
    unsigned gid_index;
};

/* Reads -d DEVICE -g GID -p PORT HOST; each overrides the value in the struct. An unknown option
 * ends the program with status 2. */
void endpoint_options(int argc, char **argv, struct endpoint_options *options);

/* Opens the device of that name, or the first device, with a function like ibv_open_device(). */
struct ibv_context *endpoint_open(const char *name,
                                  struct ibv_context *(*open)(struct ibv_device *device));
union ibv_gid endpoint_gid(struct ibv_context *ctx, unsigned gid_index);
struct ibv_ah_attr endpoint_towards(union ibv_gid gid, unsigned gid_index);

/* Move an RC QP to INIT, and from there to RTS with its peer. timeout is the attribute's: 2^timeout
 * * 4 us. */
void endpoint_init_rc(struct ibv_qp *qp, unsigned access);
void endpoint_connect_rc(struct ibv_qp *qp, struct ibv_ah_attr to, uint32_t qpn, uint8_t timeout);

/* Returns the next completion, whatever its status. Waits at most OTHER_SIDE_PATIENCE seconds. */
struct ibv_wc endpoint_completion(struct ibv_cq *cq);

#endif
