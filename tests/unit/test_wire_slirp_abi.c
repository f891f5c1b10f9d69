/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares libslirp's interface, as wire/slirp/library.h states it, with libslirp's own header: the
 * places of all members, the types of all functions, and the values of flags. What differs does not
 * compile.
 */
#include <libslirp.h>
#include <stddef.h>
#include "wire/slirp/library.h"

#define SAME_PLACE(ours, our_member, theirs, member)                                               \
    _Static_assert(offsetof(struct ours, our_member) == offsetof(theirs, member) &&                \
                       sizeof(((struct ours *)0)->our_member) == sizeof(((theirs *)0)->member),    \
                   #member)
#define SAME_CALL(name)   SAME_PLACE(slirp_calls, name, SlirpCb, name)
#define SAME_CONFIG(name) SAME_PLACE(slirp_config, name, SlirpConfig, name)
#define SAME_VALUE(ours, theirs)                                                                   \
    _Static_assert((int)SLIRP_LOOK_##ours == (int)SLIRP_POLL_##theirs, #theirs)

SAME_CALL(send_packet);
SAME_CALL(guest_error);
SAME_CALL(clock_get_ns);
SAME_PLACE(slirp_calls, make_timer, SlirpCb, timer_new);
SAME_PLACE(slirp_calls, free_timer, SlirpCb, timer_free);
SAME_PLACE(slirp_calls, set_timer, SlirpCb, timer_mod);
SAME_CALL(register_poll_fd);
SAME_CALL(unregister_poll_fd);
SAME_CALL(notify);
SAME_CONFIG(version);
SAME_CONFIG(restricted);
SAME_CONFIG(in_enabled);
SAME_CONFIG(vnetwork);
SAME_CONFIG(vnetmask);
SAME_CONFIG(vhost);
SAME_CONFIG(in6_enabled);
SAME_CONFIG(vprefix_addr6);
SAME_CONFIG(vprefix_len);
SAME_CONFIG(vhost6);
SAME_CONFIG(vhostname);
SAME_CONFIG(tftp_server_name);
SAME_CONFIG(tftp_path);
SAME_CONFIG(bootfile);
SAME_CONFIG(vdhcp_start);
SAME_CONFIG(vnameserver);
SAME_CONFIG(vnameserver6);
SAME_CONFIG(vdnssearch);
SAME_CONFIG(vdomainname);
SAME_CONFIG(if_mtu);
SAME_CONFIG(if_mru);
SAME_CONFIG(disable_host_loopback);
SAME_CONFIG(enable_emu);
SAME_VALUE(IN, IN);
SAME_VALUE(OUT, OUT);
SAME_VALUE(PRI, PRI);
SAME_VALUE(ERR, ERR);
SAME_VALUE(HUP, HUP);
_Static_assert(SLIRP_CONFIG_VERSION_MIN <= 1, "a configuration of version 1 is served");

/* libslirp's functions with their own types, which ours must be able to call. */
_Static_assert(_Generic(slirp_pollfds_fill,
                        void (*)(Slirp *, uint32_t *, int (*)(int, int, void *), void *) : 1,
                        default : 0),
               "slirp_pollfds_fill");
_Static_assert(_Generic(slirp_pollfds_poll,
                        void (*)(Slirp *, int, int (*)(int, void *), void *) : 1, default : 0),
               "slirp_pollfds_poll");
_Static_assert(_Generic(slirp_input, void (*)(Slirp *, const uint8_t *, int) : 1, default : 0),
               "slirp_input");
_Static_assert(_Generic(slirp_cleanup, void (*)(Slirp *) : 1, default : 0), "slirp_cleanup");
_Static_assert(_Generic(slirp_new, Slirp *(*)(const SlirpConfig *, const SlirpCb *, void *) : 1,
                        default : 0),
               "slirp_new");
_Static_assert(_Generic(slirp_add_hostfwd,
                        int (*)(Slirp *, int, struct in_addr, int, struct in_addr, int) : 1,
                        default : 0),
               "slirp_add_hostfwd");

int main(void)
{
    return 0;
}
