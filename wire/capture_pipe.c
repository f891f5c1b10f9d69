/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements capture_pipe.h.
 *
 * A block is written whole or not at all, because a reader cannot find the next block behind a part
 * of one. The kernel keeps what is written to a pipe in pages (slots). A write fills the last page
 * only if its odd part fits there, so that two pages beside each other have more than a page of
 * bytes together: n bytes take up at most 2n/4096 + 2 pages. If a block fits beside so many pages,
 * the kernel takes all of it at once. A block of PIPE_BUF bytes or less it never divides.
 *
 * A lock of the open pipe (F_OFD_SETLK) keeps a second writer away: their blocks could not be told
 * apart. The kernel releases it when the writer ends. A child of fork() closes its copy at once.
 */
#include "wire/capture_pipe.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PIPE_BYTES = 1 << 20, /* what the kernel allows each user, unless it was told otherwise */
    SLOT = 4096,
    PATIENCE_US = 5000000, /* for the first reader */
    LOOK_NS = 10000000,    /* for a reader, between two frames */
    LOOK_US = LOOK_NS / 1000,
};

struct capture_pipe {
    char *path;
    char name[CAPTURE_NAME_MAX + 1];
    bool is_pipe;
    bool has_warned;
    struct own_fd own; /* fd -1: there is no reader, or capturing has ended */
    bool has_ended;
    uint64_t look_ns; /* when to look for a reader again */
    size_t slots;     /* of the open pipe */
    uint64_t missing; /* frames that were left out since the last one that was written */
};

static uint64_t capture_pipe_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Writes without a signal if the reader is gone: the program may have its own use for SIGPIPE. */
static ssize_t capture_pipe_write(const struct capture_pipe *p, const struct iovec *parts, int num)
{
    static const struct timespec now;
    sigset_t sigpipe, old, pending;
    ssize_t written;
    bool was_pending;
    int why;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
    was_pending = !sigpending(&pending) && sigismember(&pending, SIGPIPE);
    do {
        written = writev(p->own.fd, parts, num);
    } while (written < 0 && errno == EINTR);
    why = errno;
    if (written < 0 && why == EPIPE && !was_pending) {
        sigtimedwait(&sigpipe, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = why;
    return written;
}

static bool capture_pipe_has_room(const struct capture_pipe *p, size_t len)
{
    int bytes = 0;

    return !p->is_pipe || len <= PIPE_BUF ||
           (!ioctl(p->own.fd, FIONREAD, &bytes) &&
            2 * ((size_t)bytes / SLOT) + 2 + len / SLOT + 2 <= p->slots);
}

static bool capture_pipe_begin(struct capture_pipe *p)
{
    struct capture_record record = {.interfaces = 1, .number = 1};
    struct capture_section section;
    struct capture_interface interface;
    size_t len = capture_interface_make(&interface, p->name);
    struct iovec parts[] = {{&section, sizeof(section)}, {&interface, len}};

    record.bytes = sizeof(section) + len;
    capture_section_make(&section, &record);
    errno = EAGAIN; /* for a short write */
    return capture_pipe_write(p, parts, 2) == (ssize_t)(sizeof(section) + len);
}

/* Opens the pipe and begins the stream. False: errno says why; ENXIO: nobody reads the pipe, EBUSY:
 * another port writes it. */
static bool capture_pipe_attach(struct capture_pipe *p)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int why, fd, size;

    own_fd_lock();
    fd = open(p->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    why = errno;
    if (fd >= 0) {
        own_fd_set(&p->own, fd);
    }
    own_fd_unlock();
    errno = why;
    if (fd < 0) {
        return false;
    }
    if (p->is_pipe) {
        if (fcntl(fd, F_OFD_SETLK, &lock) < 0 && (errno == EAGAIN || errno == EACCES)) {
            own_fd_close(&p->own);
            errno = EBUSY;
            return false;
        }
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* if it is refused, there is less room */
        size = fcntl(fd, F_GETPIPE_SZ);
        p->slots = size > 0 ? (size_t)size / SLOT : 0;
    }
    if (!capture_pipe_begin(p)) {
        why = errno == EPIPE ? ENXIO : errno;
        own_fd_close(&p->own);
        errno = why;
        return false;
    }
    return true;
}

/* Says once why there are no frames for the reader. */
static void capture_pipe_warn(struct capture_pipe *p, const char *why)
{
    if (!p->has_warned) {
        p->has_warned = true;
        g_warning("%s: %s", p->path, why);
    }
}

static void capture_pipe_end(struct capture_pipe *p, const char *why)
{
    g_warning("%s: capture ends: %s", p->path, why);
    own_fd_close(&p->own);
    p->has_ended = true;
}

/* Whether there is a reader. Looks for one now and then if there was none. */
static bool capture_pipe_find_reader(struct capture_pipe *p)
{
    uint64_t now;

    if (p->own.fd >= 0 || p->has_ended) {
        return p->own.fd >= 0;
    }
    now = capture_pipe_now_ns();
    if (now < p->look_ns) {
        return false;
    }
    p->look_ns = now + LOOK_NS;
    if (capture_pipe_attach(p)) {
        return true;
    }
    if (errno == EBUSY) {
        capture_pipe_warn(p, "another port writes the pipe: frames are left out until it ends");
    } else if (errno != ENXIO && errno != EAGAIN) {
        capture_pipe_end(p, g_strerror(errno));
    }
    return false;
}

struct capture_pipe *capture_pipe_open(const char *path, bool is_pipe, const char *name,
                                       GError **err)
{
    struct capture_pipe *p = g_new0(struct capture_pipe, 1);
    int state = cancel_disable();
    bool is_open;

    p->path = g_strdup(path);
    p->is_pipe = is_pipe;
    p->own.fd = -1;
    g_strlcpy(p->name, name, sizeof(p->name));
    is_open = capture_pipe_attach(p);
    for (unsigned waited = 0;
         !is_open && is_pipe && (errno == ENXIO || errno == EAGAIN) && waited < PATIENCE_US;
         waited += LOOK_US) {
        g_usleep(LOOK_US);
        is_open = capture_pipe_attach(p);
    }
    if (!is_open && is_pipe && (errno == ENXIO || errno == EAGAIN)) {
        capture_pipe_warn(p, "nobody reads the pipe: frames are left out until somebody does");
    } else if (!is_open) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: cannot write the capture: %s", path,
                    errno == EBUSY ? "another port writes the pipe, and a pipe has one writer: "
                                     "name another pipe, or a file"
                                   : g_strerror(errno));
        capture_pipe_close(p);
        p = NULL;
    }
    cancel_restore(state);
    return p;
}

void capture_pipe_frame(struct capture_pipe *p, const struct capture_frame *frame, uint64_t now_ns)
{
    struct capture_packet packet;
    size_t len = capture_packet_len(frame, p->missing);
    ssize_t written;

    if (!capture_pipe_find_reader(p) || !capture_pipe_has_room(p, len)) {
        p->missing++;
        return;
    }
    capture_packet_make(&packet, frame, 0, now_ns, p->missing);
    written = capture_pipe_write(p, packet.parts, CAPTURE_PACKET_PARTS);
    if (written == (ssize_t)len) {
        p->missing = 0;
        return;
    }
    p->missing++;
    if (written < 0 && errno == EPIPE) {
        own_fd_close(&p->own); /* the next reader gets a stream of its own */
    } else if (written >= 0 || errno != EAGAIN) {
        capture_pipe_end(p, written < 0 ? g_strerror(errno) : "short write");
    }
}

void capture_pipe_close(struct capture_pipe *p)
{
    own_fd_close(&p->own);
    g_free(p->path);
    g_free(p);
}
