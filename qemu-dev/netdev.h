/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A wire port whose other end is a QEMU netdev (-netdev socket, tap, user, hubport...).
 */
#ifndef HCASIM_QEMU_DEV_NETDEV_H
#define HCASIM_QEMU_DEV_NETDEV_H

#include "qemu-dev/compat.h"
#include "net/net.h"

struct wire_port;

/*
 * Makes a port for the netdev that conf names; conf must outlive it. dev is the device with which
 * QEMU shows the netdev. The link follows QEMU's set_link. wire_close() frees the port.
 */
struct wire_port *netdev_port_new(DeviceState *dev, NICConf *conf);

#endif
