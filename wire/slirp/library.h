/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libslirp, loaded when the first port needs it.
 *
 * The verbs library runs inside programs that it does not know, so it must not bring a library into
 * all of them for the few that want this port; and Debian has no static libslirp (docs/adr/0038).
 * Its interface is stated here in the version (1 of its configuration) that each libslirp since 4.1
 * serves; tests/unit/test_wire_slirp_abi.c compares it with libslirp's own header.
 *
 * libslirp keeps some data for all of its instances and has no lock. Its callers hold
 * own_fd_lock() (wire/own_fd.h), so that no two call it at a time and no fork() comes between the
 * making of a socket and its place on the list of descriptors that a child does not keep.
 */
#ifndef HCASIM_WIRE_SLIRP_LIBRARY_H
#define HCASIM_WIRE_SLIRP_LIBRARY_H

#include <glib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SLIRP_LIBRARY "libslirp.so.0"

/* What a descriptor is watched for, and what has happened to it. */
enum {
    SLIRP_LOOK_IN = 1 << 0,
    SLIRP_LOOK_OUT = 1 << 1,
    SLIRP_LOOK_PRI = 1 << 2,
    SLIRP_LOOK_ERR = 1 << 3,
    SLIRP_LOOK_HUP = 1 << 4,
};

struct slirp_calls {
    ssize_t (*send_packet)(const void *frame, size_t len, void *opaque);
    void (*guest_error)(const char *text, void *opaque);
    int64_t (*clock_get_ns)(void *opaque);
    void *(*make_timer)(void (*cb)(void *), void *cb_opaque, void *opaque);
    void (*free_timer)(void *timer, void *opaque);
    void (*set_timer)(void *timer, int64_t expire_ms, void *opaque);
    void (*register_poll_fd)(int fd, void *opaque);
    void (*unregister_poll_fd)(int fd, void *opaque);
    void (*notify)(void *opaque);
};

struct slirp_config {
    uint32_t version; /* 1 */
    int restricted;
    bool in_enabled;
    struct in_addr vnetwork, vnetmask, vhost;
    bool in6_enabled;
    struct in6_addr vprefix_addr6;
    uint8_t vprefix_len;
    struct in6_addr vhost6;
    const char *vhostname, *tftp_server_name, *tftp_path, *bootfile;
    struct in_addr vdhcp_start, vnameserver;
    struct in6_addr vnameserver6;
    const char **vdnssearch;
    const char *vdomainname;
    size_t if_mtu, if_mru;
    bool disable_host_loopback, enable_emu;
};

/* One user-mode network. */
struct slirp;

struct slirp_library {
    struct slirp *(*slirp_new)(const struct slirp_config *config, const struct slirp_calls *calls,
                               void *opaque);
    void (*slirp_cleanup)(struct slirp *slirp);
    void (*slirp_pollfds_fill)(struct slirp *slirp, uint32_t *timeout_ms,
                               int (*add)(int fd, int looks, void *opaque), void *opaque);
    void (*slirp_pollfds_poll)(struct slirp *slirp, int select_error,
                               int (*get)(int index, void *opaque), void *opaque);
    void (*slirp_input)(struct slirp *slirp, const uint8_t *frame, int len);
    int (*slirp_add_hostfwd)(struct slirp *slirp, int is_udp, struct in_addr host, int host_port,
                             struct in_addr guest, int guest_port);
};

/* NULL: *err says what is missing. */
const struct slirp_library *slirp_library_get(GError **err);

#endif
