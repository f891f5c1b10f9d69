/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements options.h. */
#include "wire/slirp/options.h"
#include "wire/open.h"

#include <arpa/inet.h>
#include <string.h>

enum {
    MASK_MIN = 4, /* bits, as QEMU requires */
    MASK_MAX = 30,
    HOST_AT = 2, /* of the network's addresses */
    DNS_AT = 3,
    DHCP_AT = 15,
};

static bool slirp_read_address(struct in_addr *address, const char *text)
{
    return inet_pton(AF_INET, text, address) == 1;
}

static bool slirp_read_number(const char *text, guint64 min, guint64 max, guint64 *number)
{
    size_t len = strlen(text);

    *number = len && len <= 5 && strspn(text, "0123456789") == len
                  ? g_ascii_strtoull(text, NULL, 10)
                  : max + 1;
    return *number >= min && *number <= max;
}

static bool slirp_read_net(struct slirp_options *o, const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, "/", 2);
    guint64 bits;

    if (g_strv_length(parts) != 2 || !slirp_read_address(&o->net, parts[0]) ||
        !slirp_read_number(parts[1], MASK_MIN, MASK_MAX, &bits)) {
        return false;
    }
    o->mask.s_addr = htonl(~0u << (32 - bits));
    return !(o->net.s_addr & ~o->mask.s_addr);
}

static bool slirp_read_host(struct slirp_options *o, const char *text)
{
    return slirp_read_address(&o->host, text);
}

static bool slirp_read_dns(struct slirp_options *o, const char *text)
{
    return slirp_read_address(&o->dns, text);
}

static bool slirp_read_dhcp(struct slirp_options *o, const char *text)
{
    return slirp_read_address(&o->dhcp, text);
}

static bool slirp_read_hostname(struct slirp_options *o, const char *text)
{
    size_t len = strlen(text);

    return len >= 1 && len <= SLIRP_NAME_MAX && text[0] != '-' &&
           strspn(text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-") == len &&
           g_strlcpy(o->hostname, text, sizeof(o->hostname)) == len;
}

static bool slirp_read_on(const char *text, bool *is_on)
{
    *is_on = !strcmp(text, "on");
    return *is_on || !strcmp(text, "off");
}

static bool slirp_read_ipv6(struct slirp_options *o, const char *text)
{
    return slirp_read_on(text, &o->has_ipv6);
}

static bool slirp_read_restrict(struct slirp_options *o, const char *text)
{
    return slirp_read_on(text, &o->is_restricted);
}

/* "[ADDRESS]:PORT" */
static bool slirp_read_end(const char *text, struct in_addr *address, uint16_t *port)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 2);
    guint64 number;

    address->s_addr = 0;
    if (g_strv_length(parts) != 2 || (parts[0][0] && !slirp_read_address(address, parts[0])) ||
        !slirp_read_number(parts[1], 1, UINT16_MAX, &number)) {
        return false;
    }
    *port = (uint16_t)number;
    return true;
}

static bool slirp_read_hostfwd(struct slirp_options *o, const char *text)
{
    struct slirp_forward *f = o->forwards + o->n_forwards;
    g_auto(GStrv) ends = NULL;

    if (o->n_forwards == SLIRP_FORWARDS_MAX ||
        (!g_str_has_prefix(text, "tcp:") && !g_str_has_prefix(text, "udp:"))) {
        return false;
    }
    f->is_udp = text[0] == 'u';
    ends = g_strsplit(text + strlen("tcp:"), "-", 2);
    if (g_strv_length(ends) != 2 || !slirp_read_end(ends[0], &f->host, &f->host_port) ||
        !slirp_read_end(ends[1], &f->guest, &f->guest_port)) {
        return false;
    }
    o->n_forwards++;
    return true;
}

static const struct {
    const char *name;
    bool (*read)(struct slirp_options *o, const char *value);
    const char *allowed;
} keys[] = {
    {"net", slirp_read_net, "a network, as 10.0.2.0/24, of 4 to 30 bits"},
    {"host", slirp_read_host, "an IPv4 address"},
    {"dns", slirp_read_dns, "an IPv4 address"},
    {"dhcpstart", slirp_read_dhcp, "an IPv4 address"},
    {"hostname", slirp_read_hostname, "letters, digits and '-', 63 at most"},
    {"ipv6", slirp_read_ipv6, "on or off"},
    {"restrict", slirp_read_restrict, "on or off"},
    {"hostfwd", slirp_read_hostfwd, "tcp|udp:[HOSTADDR]:HOSTPORT-[ADDR]:PORT, 32 times at most"},
};

static bool slirp_read_option(struct slirp_options *o, const char *word, GError **err)
{
    g_auto(GStrv) parts = g_strsplit(word, "=", 2);
    bool has_value = g_strv_length(parts) == 2;

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!strcmp(parts[0] ? parts[0] : "", keys[i].name)) {
            if (has_value && keys[i].read(o, parts[1])) {
                return true;
            }
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "'%s': %s is %s", word, keys[i].name,
                        keys[i].allowed);
            return false;
        }
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                "'%s' is no option of slirp: (net, host, dns, dhcpstart, hostname, ipv6, restrict, "
                "hostfwd, with '+' between them)",
                word);
    return false;
}

/* Sets an address that no option has set. */
static void slirp_default(const struct slirp_options *o, struct in_addr *address, unsigned at)
{
    if (!address->s_addr) {
        address->s_addr = o->net.s_addr | (htonl(at) & ~o->mask.s_addr);
    }
}

/* Whether an address is one of the network that a host may have. */
static bool slirp_is_inside(const struct slirp_options *o, struct in_addr address)
{
    uint32_t own = address.s_addr & ~o->mask.s_addr;

    return (address.s_addr & o->mask.s_addr) == o->net.s_addr && own && own != ~o->mask.s_addr;
}

static bool slirp_check(const struct slirp_options *o, GError **err)
{
    if (!slirp_is_inside(o, o->host) || !slirp_is_inside(o, o->dns) ||
        !slirp_is_inside(o, o->dhcp) || o->host.s_addr == o->dns.s_addr ||
        o->host.s_addr == o->dhcp.s_addr || o->dns.s_addr == o->dhcp.s_addr) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                    "host, dns and dhcpstart must be three addresses of the network net");
        return false;
    }
    return true;
}

bool slirp_options_read(struct slirp_options *o, const char *text, GError **err)
{
    g_auto(GStrv) words = g_strsplit(text, "+", -1);

    *o = (struct slirp_options){.has_ipv6 = true};
    slirp_read_net(o, "10.0.2.0/24");
    for (unsigned i = 0; words[i]; i++) {
        if (!slirp_read_option(o, words[i], err)) {
            return false;
        }
    }
    slirp_default(o, &o->host, HOST_AT);
    slirp_default(o, &o->dns, DNS_AT);
    slirp_default(o, &o->dhcp, DHCP_AT);
    return slirp_check(o, err);
}
