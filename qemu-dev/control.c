/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Implements control.h. The main loop holds the big lock, so no vCPU is in the device meanwhile. */
#include "qemu-dev/compat.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu-dev/control.h"
#include "wire/control/server.h"

static void control_readable(void *opaque)
{
    struct hcasim_control *c = opaque;

    if (!control_run(c->server)) { /* this process is a child of QEMU */
        qemu_set_fd_handler(control_fd(c->server), NULL, NULL, NULL);
    }
}

bool hcasim_control_init(struct hcasim_control *c, const char *path, struct fw *fw,
                         const char *device, const char *wire, Error **errp)
{
    const char *program = g_get_prgname();
    GError *err = NULL;

    c->server = control_open(path, &err);
    if (!c->server) {
        error_setg(errp, "hcasim: control=%s: %s", path, err->message);
        g_error_free(err);
        return false;
    }
    c->commands = (struct fw_control){
        .fw = fw, .device = device, .program = program ? program : "qemu", .wire = wire};
    control_add(c->server, fw_control_commands, &c->commands);
    qemu_set_fd_handler(control_fd(c->server), control_readable, NULL, c);
    return true;
}

void hcasim_control_end(struct hcasim_control *c)
{
    if (c->server) {
        qemu_set_fd_handler(control_fd(c->server), NULL, NULL, NULL);
        control_close(c->server);
        c->server = NULL;
    }
}
