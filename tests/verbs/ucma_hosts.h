/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with the rdma_cm ABI (guest-lib/cm/ucma.h). Their datagrams reach each other when the
 * test delivers them. Addresses: fe80::1 and 10.0.0.1; fe80::2 and 10.0.0.2.
 */
#ifndef HCASIM_TESTS_VERBS_UCMA_HOSTS_H
#define HCASIM_TESTS_VERBS_UCMA_HOSTS_H

#include <errno.h>
#include <stdlib.h>
#include "guest-lib/cm/ucma.h"

#define PORT 7174

struct mail {
    unsigned to;
    struct cm_av from;
    uint8_t mad[CM_MAD_LEN];
};
extern GQueue mails; /* datagrams on the way */

extern struct ucma_host {
    struct ucma *ucma;
    struct ucma_file *file;
    struct cma_device device;
} hosts[2];
extern struct ucma_file *second; /* a second file of host 0 */

extern uint64_t now_ns;
extern bool privileged; /* this program may use ports below 1024 */
extern int found;       /* the errno of a search for a peer */
extern unsigned finds;  /* the number of these searches */

/* The fixture of each test. */
void setup(void);
void teardown(void);
struct ucma_file *open_file(unsigned host);
/* Delivers all datagrams that are on the way. */
void deliver(void);

/* Executes a command. Returns 0 or an errno. */
int command(struct ucma_file *file, uint32_t cmd, const void *in, size_t len, size_t out);
#define COMMAND(file, name, ...)                                                                   \
    command(file, RDMA_USER_CM_CMD_##name, &(__VA_ARGS__), sizeof(__VA_ARGS__), 0)
#define ASK(file, name, resp, ...)                                                                 \
    command(file, RDMA_USER_CM_CMD_##name, &(__VA_ARGS__), sizeof(__VA_ARGS__), sizeof(resp))

uint32_t create_for(struct ucma_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type);
uint32_t create(struct ucma_file *file, uint64_t uid, uint16_t ps);
/* Destroys an id. Returns how many of its events were taken. */
uint32_t destroy(struct ucma_file *file, uint32_t id);
struct sockaddr_in6 ipv4(const char *addr, uint16_t port);
int bind_to(struct ucma_file *file, uint32_t id, const char *addr, uint16_t port);
int listen_on(struct ucma_file *file, uint32_t id, uint32_t backlog);
/* Resolves a peer's address, with PORT. */
int resolve(struct ucma_file *file, uint32_t id, const char *addr);
/* Takes the next event, which must be of that type. */
struct rdma_ucm_event_resp event_of(struct ucma_file *file, uint32_t type);
bool is_readable(const struct ucma_file *file);

struct rdma_ucm_conn_param param(uint32_t qpn, const char *data);
/* Makes a listener of host 1, at PORT, with uid 0x100. */
uint32_t listener_of(uint16_t ps, uint8_t qp_type, uint32_t backlog);
uint32_t listener(uint32_t backlog);
/* Connects an id of host 0 as far as the request; its queue pair is 0x100 + uid. */
extern const struct rdma_ucm_ece options_wanted;
uint32_t connecting_of(uint16_t ps, uint8_t qp_type, uint64_t uid, const char *data);
uint32_t connecting(uint64_t uid, const char *data);
struct ib_uverbs_qp_attr qp_attr(struct ucma_file *file, uint32_t id, uint32_t state);

#endif
