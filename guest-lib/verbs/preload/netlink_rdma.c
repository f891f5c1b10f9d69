/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Netlink of family RDMA, as the kernel's nldev answers it: devices, ports, the system's settings,
 * device files. `rdma` of iproute2 and librdmacm use it.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "guest-lib/verbs/preload/netlink.h"
#include "guest-lib/verbs/preload/tree.h"

#define PORT         1
#define STATE_ACTIVE 4
#define PHYS_LINK_UP 5
#define NODE_CA      1
#define ABI_UVERBS   1 /* mlx5's */
#define ABI_RDMA_CM  4

#define NLDEV(op)    (uint16_t) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op)

static void rdma_put_handle(struct netlink_buf *answer, unsigned index)
{
    char name[16];

    snprintf(name, sizeof(name), "mlx5_%u", index);
    netlink_put_u32(answer, RDMA_NLDEV_ATTR_DEV_INDEX, index);
    netlink_put_string(answer, RDMA_NLDEV_ATTR_DEV_NAME, name);
}

static void rdma_put_device(struct netlink_buf *answer, unsigned index,
                            const struct hv_device_facts *facts)
{
    uint64_t guid;

    memcpy(&guid, facts->node_guid, sizeof(guid));
    rdma_put_handle(answer, index);
    netlink_put_u32(answer, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    netlink_put_string(answer, RDMA_NLDEV_ATTR_FW_VERSION, facts->firmware);
    netlink_put_u64(answer, RDMA_NLDEV_ATTR_NODE_GUID, be64toh(guid));
    netlink_put_u64(answer, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, be64toh(guid));
    netlink_put_u8(answer, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, NODE_CA);
    netlink_put_string(answer, RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
}

static void rdma_put_port(struct netlink_buf *answer, unsigned index,
                          const struct hv_device_facts *facts)
{
    char netdev[16];

    (void)facts;
    snprintf(netdev, sizeof(netdev), TREE_NETDEV "%u", index);
    rdma_put_handle(answer, index);
    netlink_put_u32(answer, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    netlink_put_u8(answer, RDMA_NLDEV_ATTR_PORT_STATE, STATE_ACTIVE);
    netlink_put_u8(answer, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, PHYS_LINK_UP);
    netlink_put_u32(answer, RDMA_NLDEV_ATTR_NDEV_INDEX, TREE_IFINDEX + index);
    netlink_put_string(answer, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
}

/* The attribute's value, or `otherwise` if it is absent. */
static uint32_t rdma_get_u32(const struct nlmsghdr *request, uint16_t type, uint32_t otherwise)
{
    uint32_t value = otherwise;
    size_t len;
    const void *found = netlink_attribute(request, 0, type, sizeof(value), &len);

    if (found) {
        memcpy(&value, found, sizeof(value));
    }
    return value;
}

typedef void rdma_put_fn(struct netlink_buf *answer, unsigned index,
                         const struct hv_device_facts *facts);

/* Answers about all devices, or about the device that the request names. */
static int rdma_tell(const struct nlmsghdr *request, const struct hv_facts *facts,
                     struct netlink_buf *answer, rdma_put_fn *put)
{
    uint32_t wanted = rdma_get_u32(request, RDMA_NLDEV_ATTR_DEV_INDEX, UINT32_MAX);
    uint32_t port = rdma_get_u32(request, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    bool dump = netlink_is_dump(request);

    if (!dump && wanted == UINT32_MAX) {
        return -EINVAL;
    }
    if (port != PORT || (wanted != UINT32_MAX && !hv_facts_has(facts, wanted))) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < facts->count; i++) {
        if (hv_facts_has(facts, i) && (wanted == UINT32_MAX || wanted == i)) {
            netlink_begin(answer, request, request->nlmsg_type, dump ? NLM_F_MULTI : 0, NULL, 0);
            put(answer, i, &facts->device[i]);
        }
    }
    return 0;
}

static int rdma_tell_devices(const struct nlmsghdr *request, const struct hv_facts *facts,
                             struct netlink_buf *answer)
{
    return rdma_tell(request, facts, answer, rdma_put_device);
}

static int rdma_tell_ports(const struct nlmsghdr *request, const struct hv_facts *facts,
                           struct netlink_buf *answer)
{
    return rdma_tell(request, facts, answer, rdma_put_port);
}

/* Devices are visible in all network namespaces. Registered memory is copied when a process forks,
 * as far as programs can tell (user/process.c). */
static int rdma_tell_system(const struct nlmsghdr *request, const struct hv_facts *facts,
                            struct netlink_buf *answer)
{
    (void)facts;
    netlink_begin(answer, request, request->nlmsg_type, 0, NULL, 0);
    netlink_put_u8(answer, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
    netlink_put_u8(answer, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
    return 0;
}

/* The device files are those of the tree. */
static int rdma_tell_file(const struct nlmsghdr *request, const struct hv_facts *facts,
                          struct netlink_buf *answer)
{
    uint32_t index = rdma_get_u32(request, RDMA_NLDEV_ATTR_DEV_INDEX, UINT32_MAX);
    size_t len = 0;
    const char *type = netlink_attribute(request, 0, RDMA_NLDEV_ATTR_CHARDEV_TYPE, 1, &len);
    bool is_uverbs = type && strnlen(type, len) == 6 && !memcmp(type, "uverbs", 6);
    bool is_rdma_cm = type && strnlen(type, len) == 7 && !memcmp(type, "rdma_cm", 7);
    char name[24] = "rdma_cm";
    struct stat st;

    if (!type) {
        return -EINVAL;
    }
    if (is_uverbs && hv_facts_has(facts, index)) {
        snprintf(name, sizeof(name), "uverbs%u", index);
    } else if (!is_rdma_cm) {
        return -ENODEV;
    }
    if (stat(TREE_FILE, &st)) {
        return -ENODEV;
    }
    netlink_begin(answer, request, request->nlmsg_type, 0, NULL, 0);
    netlink_put_u64(answer, RDMA_NLDEV_ATTR_CHARDEV,
                    (minor(st.st_rdev) & 0xff) | major(st.st_rdev) << 8 |
                        (uint64_t)(minor(st.st_rdev) & ~0xffu) << 12);
    netlink_put_u64(answer, RDMA_NLDEV_ATTR_CHARDEV_ABI, is_uverbs ? ABI_UVERBS : ABI_RDMA_CM);
    netlink_put_string(answer, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
    return 0;
}

static const struct {
    uint16_t type;
    bool dumps;
    int (*tell)(const struct nlmsghdr *request, const struct hv_facts *facts,
                struct netlink_buf *answer);
} rdma_commands[] = {
    {NLDEV(RDMA_NLDEV_CMD_GET), true, rdma_tell_devices},
    {NLDEV(RDMA_NLDEV_CMD_PORT_GET), true, rdma_tell_ports},
    {NLDEV(RDMA_NLDEV_CMD_SYS_GET), false, rdma_tell_system},
    {NLDEV(RDMA_NLDEV_CMD_GET_CHARDEV), false, rdma_tell_file},
};

/* Requests for other things (resources, counters) find nothing, and nothing can be set. */
void netlink_rdma_answer(const struct nlmsghdr *request, const struct hv_facts *facts,
                         struct netlink_buf *answer)
{
    bool dump = netlink_is_dump(request);
    int error = -EOPNOTSUPP;

    for (size_t i = 0; i < sizeof(rdma_commands) / sizeof(rdma_commands[0]); i++) {
        if (rdma_commands[i].type == request->nlmsg_type && (rdma_commands[i].dumps || !dump)) {
            error = rdma_commands[i].tell(request, facts, answer);
        }
    }
    if (dump && !error) {
        netlink_done(answer, request);
    } else if (error || request->nlmsg_flags & NLM_F_ACK) {
        netlink_ack(answer, request, error);
    }
}
