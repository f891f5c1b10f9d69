/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's connection manager: its devices and its thread.
 *
 * Like a kernel's, it exists from the first time that it is needed, and it answers peers about
 * connections whose program has closed its files. It has a thread of its own, so that received
 * messages and due timers do not wait for a command of the program. The thread sleeps until there
 * is something to do, and works in turns; between turns the program's commands run. A child of
 * fork() has neither the thread nor the HCAs, and gets a connection manager of its own when it
 * opens the file.
 */
#define _GNU_SOURCE
#include "guest-lib/verbs/cm/door.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "guest-lib/cm/ucma.h"
#include "guest-lib/verbs/cm/port.h"
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "wire/cancel.h"
#include "wire/signals.h"

struct door {
    pid_t pid;
    struct ucma *ucma;
    struct cm_port ports[HV_MAX_DEVICES];
    struct cma_device devices[HV_MAX_DEVICES];
    unsigned num_ports; /* indexed like their devices; some devices have none (door_has()) */
    struct hv_hca *hca; /* an HCA of one of the ports; tells which process opened them */
    /* devices that the connection manager knows to be removed: a bit for each */
    uint32_t removed;
    int wake_fd;
    /* the time of the next check for hosts that ended (CM_NEVER: there is no reason for one), and
     * the pause to the check after it */
    uint64_t ends_at_ns, ends_pause_ns;
    unsigned ends_left; /* checks left */
    bool blind;         /* the wire of some port does not report ends */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* around door */
static struct door *door;

static bool door_has(const struct door *d, unsigned port)
{
    return d->ports[port].context != NULL;
}

/* -- callbacks of the connection manager ------------------------------------------------------- */

static void door_send(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    struct door *d = opaque;

    cm_port_send(&d->ports[av->port], av, mad);
}

static uint64_t door_now_ns(void *opaque)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t door_random(void *opaque)
{
    return g_random_int();
}

static uint64_t door_ca_guid(void *opaque, unsigned port)
{
    const struct door *d = opaque;

    return GUINT64_FROM_BE(d->devices[port].node_guid);
}

static void door_wake(void *opaque)
{
    const struct door *d = opaque;
    uint64_t one = 1;
    int state = cancel_disable();

    if (write(d->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN) {
        g_warning("waking the connection manager: %s", g_strerror(errno));
    }
    cancel_restore(state);
}

static void door_changed(void *opaque);

static bool door_has_low_ports(void *opaque)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    return !syscall(SYS_capget, &header, data) && data[0].effective & 1u << CAP_NET_BIND_SERVICE;
}

static int door_find(void *opaque, unsigned device, unsigned sgid_index, const uint8_t dgid[16])
{
    const struct door *d = opaque;

    return cm_port_find(&d->ports[device], sgid_index, dgid);
}

static uint64_t door_host_at(void *opaque, const struct cm_av *av)
{
    const struct door *d = opaque;

    return cm_port_host_at(&d->ports[av->port], av);
}

static bool door_has_ended(void *opaque, unsigned port, uint64_t host)
{
    const struct door *d = opaque;

    return cm_port_has_ended(&d->ports[port], host);
}

static const struct ucma_ops door_ops = {
    .cm = {.send = door_send,
           .now_ns = door_now_ns,
           .random = door_random,
           .ca_guid = door_ca_guid,
           .host_at = door_host_at,
           .has_ended = door_has_ended},
    .changed = door_changed,
    .has_low_ports = door_has_low_ports,
    .find = door_find,
};

/* To be called after a command, which may have set a timer. */
static void door_changed(void *opaque)
{
    door_wake(opaque);
}

/* -- the thread ---------------------------------------------------------------------------------
 */

static void door_sleep(const struct door *d, uint64_t until_ns)
{
    struct pollfd fd = {.fd = d->wake_fd, .events = POLLIN};
    uint64_t now = door_now_ns(NULL), left = until_ns > now ? until_ns - now : 0, count;
    struct timespec ts = {.tv_sec = (time_t)(left / 1000000000u),
                          .tv_nsec = (long)(left % 1000000000u)};

    if (ppoll(&fd, 1, until_ns == CM_NEVER ? NULL : &ts, NULL) > 0 &&
        read(d->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN) {
        g_warning("the connection manager's descriptor: %s", g_strerror(errno));
    }
}

/* Tells the connection manager which devices were removed or never existed. With its lock held. */
static void door_look_for_removals(struct door *d)
{
    for (unsigned i = 0; i < d->num_ports; i++) {
        if (!(d->removed >> i & 1) && (!door_has(d, i) || cm_port_is_removed(&d->ports[i]))) {
            d->removed |= 1u << i;
            ucma_remove_device(d->ucma, i);
        }
    }
}

/* The end of a host is reported before all signs of it are visible. So the connection manager
 * checks again, each time after a longer pause. If ends are not reported (a machine has a limited
 * number of file watches), it checks all the time while there are peers. */
#define ENDS_LOOKS    5
#define ENDS_FIRST_NS 500000u
#define ENDS_FACTOR   4
#define ENDS_BLIND_NS 50000000u

static void door_note_ends(struct door *d, bool told)
{
    if (told) {
        d->ends_at_ns = 0;
        d->ends_pause_ns = ENDS_FIRST_NS;
        d->ends_left = ENDS_LOOKS;
    }
}

/* To be called with the connection manager's lock, after it has received all earlier messages. */
static void door_look_for_ends(struct door *d, struct cm *cm)
{
    uint64_t now = door_now_ns(NULL);
    bool others;

    if (d->ends_at_ns > now && !(d->blind && d->ends_at_ns == CM_NEVER)) {
        return;
    }
    others = cm_hosts_ended(cm);
    d->ends_left -= d->ends_left > 0;
    if (others && d->ends_left) {
        d->ends_at_ns = now + d->ends_pause_ns;
        d->ends_pause_ns *= ENDS_FACTOR;
    } else {
        d->ends_at_ns = others && d->blind ? now + ENDS_BLIND_NS : CM_NEVER;
    }
}

static void *door_main(void *opaque)
{
    struct door *d = opaque;

    for (;;) {
        struct cm *cm = ucma_lock(d->ucma);
        uint64_t until_ns;
        bool more = false, answered = false;

        door_look_for_removals(d);
        for (unsigned i = 0; i < d->num_ports; i++) {
            if (!(d->removed >> i & 1)) {
                door_note_ends(d, cm_port_is_host_ended(&d->ports[i]));
                more |= cm_port_run(&d->ports[i], cm);
                answered |= cm_port_is_answered(&d->ports[i]);
            }
        }
        ucma_run(d->ucma, answered);
        if (!more) {
            door_look_for_ends(d, cm);
        }
        until_ns = more ? 0 : MIN(ucma_deadline_ns(d->ucma), d->ends_at_ns);
        ucma_unlock(d->ucma);
        door_sleep(d, until_ns);
    }
    return NULL;
}

/* The program's signals must not run on this thread. */
static int door_start(struct door *d)
{
    sigset_t all, old;
    pthread_t thread;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&thread, NULL, door_main, d);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!err) {
        pthread_detach(thread);
    }
    return err;
}

/* -- creation and end -------------------------------------------------------------------------- */

static int door_open_ports(struct door *d)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int err = list && list[0] ? 0 : ENODEV;

    for (unsigned n = 0; !err && list[n]; n++) {
        struct ibv_context *context = ibv_open_device(list[n]);
        unsigned i = hv_device(list[n])->index;

        err =
            context ? cm_port_open(&d->ports[i], i, context, door_wake, d, &d->devices[i]) : errno;
        if (err && context) {
            d->ports[i].context = NULL;
            ibv_close_device(context);
        }
        d->blind |= !err && !cm_port_tells_ends(&d->ports[i]);
        if (!err) {
            d->num_ports = i + 1;
            d->hca = hv_hca_of(context);
        }
    }
    ibv_free_device_list(list);
    return err;
}

static void door_free(struct door *d)
{
    for (unsigned i = 0; i < d->num_ports; i++) {
        if (door_has(d, i)) {
            cm_port_close(&d->ports[i]);
            ibv_close_device(d->ports[i].context);
        }
    }
    if (d->ucma) {
        ucma_free(d->ucma);
    }
    close(d->wake_fd);
    g_free(d);
}

/* Makes the connection manager, with the lock held. NULL with errno. */
static struct door *door_make(void)
{
    struct door *d = g_new0(struct door, 1);
    int err;

    d->pid = getpid();
    d->ends_at_ns = CM_NEVER;
    d->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    err = d->wake_fd < 0 ? errno : door_open_ports(d);
    if (!err) {
        d->ucma = ucma_new(&door_ops, d, d->devices, d->num_ports);
        door_look_for_removals(d);
        err = door_start(d);
    }
    if (err) {
        door_free(d);
        errno = err;
        return NULL;
    }
    return d;
}

/* If `least` is above the process's limit, no such descriptor can be had (EINVAL, EMFILE). */
static int door_descriptor(int fd, int flags, int least)
{
    int duplicate = flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD,
        got = fcntl(fd, duplicate, least);

    return got < 0 && least ? fcntl(fd, duplicate, 0) : got;
}

static struct ucma_file *door_open(struct ucma_file *(*file_of)(int fd), int flags, int least,
                                   int *fd)
{
    struct ucma_file *file = NULL;
    int err, state = cancel_disable();
    sigset_t signals;

    signals_hold(&signals);
    pthread_mutex_lock(&lock);
    if (!door || door->pid != getpid()) {
        door = door_make(); /* that of a parent stays with the parent */
    }
    if (door) {
        file = ucma_open(door->ucma, file_of);
    }
    pthread_mutex_unlock(&lock);
    if (file) {
        *fd = door_descriptor(ucma_fd(file), flags, least);
        if (*fd < 0 || (flags & O_NONBLOCK && fcntl(*fd, F_SETFL, O_NONBLOCK))) {
            err = errno;
            ucma_close(file);
            file = NULL;
            errno = err;
        }
    }
    err = errno;
    signals_release(&signals);
    cancel_restore(state);
    errno = err;
    return file;
}

/* Whether this process opened it; otherwise a parent did, before fork(). */
static bool door_is_ours(const struct door *d)
{
    return hv_is_ours(d->hca);
}

static ssize_t door_write(struct ucma_file *file, const void *buf, size_t len)
{
    if (!door_is_ours(ucma_opaque(file))) {
        errno = EIO;
        return -1;
    }
    return ucma_write(file, buf, len);
}

static void door_close(struct ucma_file *file)
{
    struct door *d = ucma_opaque(file);
    int state = cancel_disable();
    sigset_t signals;

    signals_hold(&signals);
    if (door_is_ours(d)) {
        ucma_close(file);
        door_wake(d);
    }
    signals_release(&signals);
    cancel_restore(state);
}

/* In a child, another thread of the parent may hold the lock, so the child initializes it again.
 * fork() does not wait for this lock, because its holder takes the locks of the devices, for which
 * fork() waits. */
static void door_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void door_begin(void)
{
    pthread_atfork(NULL, NULL, door_in_child);
}

/* Ends the program's identifiers when it ends, as a kernel does when it closes the program's files:
 * peers are told. A thread that is in a command leaves it soon, unless it waits for a lock of this
 * thread: exit() may have been called by a signal handler that interrupted a call of another
 * device. */
__attribute__((destructor)) static void door_finish(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (!door || door->pid != getpid() || !door_is_ours(door) || !ucma_end(door->ucma, &until)) {
        return;
    }
    for (unsigned i = 0; i < door->num_ports; i++) {
        if (door_has(door, i)) {
            hv_finish(hv_hca_of(door->ports[i].context));
        }
    }
}

const struct hv_cm_ops hv_cm_ops = {
    .open = door_open,
    .write = door_write,
    .close = door_close,
};
