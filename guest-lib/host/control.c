/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements control.h. */
#define _GNU_SOURCE
#include "guest-lib/host/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "fw/control.h"
#include "guest-lib/host/local.h"
#include "wire/control/server.h"
#include "wire/own_fd.h"

/* The thread looks at least so often whether it should stop: a program that closes descriptors that
 * it does not know may have closed the one that wakes it. */
#define STOP_LOOK_MS 1000
#define SWEEP_MOST   4096 /* files of a folder that are looked at */

struct host_control {
    struct local_hca *hca;
    struct fw_control commands;
    char *device, *wire;
    struct control *server;
    struct own_fd wake;
    pthread_t thread;
    bool stop;
};

static bool host_control_begin(void *opaque)
{
    struct host_control *c = opaque;

    c->commands.fw = local_lock_fw(c->hca);
    return c->commands.fw != NULL;
}

static void host_control_end(void *opaque)
{
    struct host_control *c = opaque;

    local_unlock_fw(c->hca);
}

static void *host_control_main(void *opaque)
{
    struct host_control *c = opaque;
    struct pollfd fds[] = {{.fd = control_fd(c->server), .events = POLLIN},
                           {.fd = c->wake.fd, .events = POLLIN}};
    bool works = true;

    while (works && !__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
        poll(fds, G_N_ELEMENTS(fds), STOP_LOOK_MS);
        works = !(fds[0].revents & (POLLNVAL | POLLERR)) && control_run(c->server);
    }
    return NULL;
}

/* Whether a name is one that control_path() makes. */
static bool host_control_is_ours(const char *name)
{
    unsigned ip[4], pid, device;
    int end = 0;

    return sscanf(name, "%3u.%3u.%3u.%3u.%9u.mlx5_%2u%n", &ip[0], &ip[1], &ip[2], &ip[3], &pid,
                  &device, &end) == 6 &&
           !name[end];
}

/* Removes what killed processes left. */
static void host_control_sweep(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;

    for (unsigned i = 0; dir && i < SWEEP_MOST && (name = g_dir_read_name(dir)); i++) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        if (host_control_is_ours(name)) {
            control_remove_stale(path);
        }
    }
}

static bool host_control_start_thread(struct host_control *c, GError **err)
{
    sigset_t all, old;
    int code;

    /* the program's signals must not run on this thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    code = pthread_create(&c->thread, NULL, host_control_main, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                    "there is no thread for the control socket: %s", g_strerror(code));
    }
    return !code;
}

static bool host_control_open_wake(struct host_control *c, GError **err)
{
    int fd;

    own_fd_lock();
    fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd >= 0) {
        own_fd_set(&c->wake, fd);
    }
    own_fd_unlock();
    if (fd < 0) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                    "there is no descriptor for the control socket: %s", g_strerror(errno));
    }
    return fd >= 0;
}

static void host_control_free(struct host_control *c)
{
    if (c->server) {
        control_close(c->server);
    }
    own_fd_close(&c->wake);
    g_free(c->device);
    g_free(c->wire);
    g_free(c);
}

struct host_control *host_control_start(struct local_hca *hca,
                                        const struct host_control_config *config, GError **err)
{
    g_autofree char *path = g_strdup_printf("%s/%s.%d.%s", config->folder, config->address,
                                            (int)getpid(), config->device);
    struct host_control *c;

    if (g_mkdir_with_parents(config->folder, 0700)) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC,
                    "the folder of the control sockets, %s: %s", config->folder, g_strerror(errno));
        return NULL;
    }
    host_control_sweep(config->folder);
    c = g_new0(struct host_control, 1);
    c->hca = hca;
    c->wake.fd = -1;
    c->device = g_strdup(config->device);
    c->wire = g_strdup(config->wire);
    c->commands = (struct fw_control){
        .device = c->device,
        .program = program_invocation_short_name,
        .wire = c->wire,
        .begin = host_control_begin,
        .end = host_control_end,
        .opaque = c,
    };
    c->server = control_open(path, err);
    if (c->server) {
        control_add(c->server, fw_control_commands, &c->commands);
    }
    if (!c->server || !host_control_open_wake(c, err) || !host_control_start_thread(c, err)) {
        host_control_free(c);
        return NULL;
    }
    return c;
}

void host_control_stop(struct host_control *control)
{
    uint64_t one = 1;

    __atomic_store_n(&control->stop, true, __ATOMIC_RELEASE);
    if (own_fd_is_there(&control->wake) && write(control->wake.fd, &one, sizeof(one)) < 0) {
        /* it is full, so it wakes the thread */
    }
    pthread_join(control->thread, NULL);
    host_control_free(control);
}

void host_control_unlink(struct host_control *control)
{
    control_unlink(control->server);
}
