/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket of an HCA in this process (wire/control), and the thread that serves it.
 *
 * The socket is a file in a folder that the user names, so that all programs of a run can have one:
 * ADDRESS.PROCESS.DEVICE, such as 10.0.0.3.4711.mlx5_0. The folder is made if it is missing. Files
 * of this form at which no process listens any more, because it was killed, are removed.
 *
 * The thread takes the HCA's lock only while it runs a command. Without a control socket there is
 * no thread.
 */
#ifndef HCASIM_GUEST_LIB_HOST_CONTROL_H
#define HCASIM_GUEST_LIB_HOST_CONTROL_H

#include <glib.h>

struct host_control;
struct local_hca;

struct host_control_config {
    const char *folder;
    const char *address; /* of the host; the first part of the file's name */
    const char *device;  /* its last part */
    const char *wire;    /* URI */
};

/* NULL: *err. */
struct host_control *host_control_start(struct local_hca *hca,
                                        const struct host_control_config *config, GError **err);
/* Removes the file, and ends the thread. To be called while the HCA exists. */
void host_control_stop(struct host_control *control);
/* The process ends without host_control_stop(): removes the file. */
void host_control_unlink(struct host_control *control);

#endif
