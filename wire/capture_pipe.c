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
 * A lock of the open pipe (F_OFD_SETLK) keeps a second process away: nobody could number their
 * interfaces. The kernel releases it when the writer ends. A child of fork() closes its copy at
 * once. The ports of one process share a stream, in which each describes its interface before its
 * first frame.
 */
#include "wire/capture_pipe.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
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

/* What the ports of a process that write one pipe share. */
struct capture_stream {
    struct capture_stream *next;
    char *path;
    dev_t dev;
    ino_t ino;
    pid_t pid; /* a child of fork() does not write */
    unsigned ports;
    bool is_pipe;
    bool has_warned;
    bool has_ended;
    pthread_mutex_t lock; /* of all below: ports may have threads of their own */
    struct own_fd own;    /* fd -1: there is no reader, or capturing has ended */
    uint64_t look_ns;     /* when to look for a reader again */
    size_t slots;         /* of the open pipe */
    uint64_t readers;     /* how many there have been */
    uint32_t interfaces;  /* that the reader has been told of */
};

struct capture_pipe {
    struct capture_stream *stream;
    char name[CAPTURE_NAME_MAX + 1];
    uint64_t reader; /* the one that has been told of this interface; 0: none */
    uint32_t interface;
    uint64_t missing; /* frames that were left out since the last one that was written */
};

/* Changed under own_fd_lock(), which is never held during a fork(). */
static struct capture_stream *streams;

static uint64_t capture_pipe_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Writes without a signal if the reader is gone: the program may have its own use for SIGPIPE. */
static ssize_t capture_pipe_write(const struct capture_stream *p, const struct iovec *parts,
                                  int num)
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

static bool capture_pipe_has_room(const struct capture_stream *p, size_t len)
{
    int bytes = 0;

    return !p->is_pipe || len <= PIPE_BUF ||
           (!ioctl(p->own.fd, FIONREAD, &bytes) &&
            2 * ((size_t)bytes / SLOT) + 2 + len / SLOT + 2 <= p->slots);
}

/* Begins the stream of a new reader. The ports describe their interfaces when they have frames. */
static bool capture_pipe_begin(struct capture_stream *p)
{
    struct capture_record record = {.bytes = sizeof(struct capture_section), .number = 1};
    struct capture_section section;
    struct iovec part = {&section, sizeof(section)};

    p->readers++;
    p->interfaces = 0;
    capture_section_make(&section, &record);
    errno = EAGAIN; /* for a short write */
    return capture_pipe_write(p, &part, 1) == (ssize_t)sizeof(section);
}

/* Opens the pipe and begins the stream. False: errno says why; ENXIO: nobody reads the pipe, EBUSY:
 * another port writes it. */
static bool capture_pipe_attach(struct capture_stream *p)
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
static void capture_pipe_warn(struct capture_stream *p, const char *why)
{
    if (!p->has_warned) {
        p->has_warned = true;
        g_warning("%s: %s", p->path, why);
    }
}

static void capture_pipe_end(struct capture_stream *p, const char *why)
{
    g_warning("%s: capture ends: %s", p->path, why);
    own_fd_close(&p->own);
    p->has_ended = true;
}

/* Whether there is a reader. Looks for one now and then if there was none. */
static bool capture_pipe_find_reader(struct capture_stream *p)
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
        capture_pipe_warn(p, "another process writes the pipe: frames are left out until it ends");
    } else if (errno != ENXIO && errno != EAGAIN) {
        capture_pipe_end(p, g_strerror(errno));
    }
    return false;
}

/* Whether there is no reader, or one that has read nothing yet. */
static bool capture_pipe_may_come(int err)
{
    return err == ENXIO || err == EAGAIN;
}

/* Opens the pipe for the first port, and gives a reader time to come. */
static bool capture_pipe_open_first(struct capture_stream *p, GError **err)
{
    bool is_open = capture_pipe_attach(p);

    for (unsigned waited = 0;
         !is_open && p->is_pipe && capture_pipe_may_come(errno) && waited < PATIENCE_US;
         waited += LOOK_US) {
        g_usleep(LOOK_US);
        is_open = capture_pipe_attach(p);
    }
    if (is_open) {
        return true;
    }
    if (p->is_pipe && capture_pipe_may_come(errno)) {
        capture_pipe_warn(p, "nobody reads the pipe: frames are left out until somebody does");
        return true;
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: cannot write the capture: %s", p->path,
                errno == EBUSY ? "another process writes the pipe, and a pipe has one writer: name "
                                 "another pipe, or a file"
                               : g_strerror(errno));
    return false;
}

/* The stream of this process to that file, with one more port; or NULL. */
static struct capture_stream *capture_pipe_find(const struct stat *st)
{
    struct capture_stream *p;

    own_fd_lock();
    for (p = streams; p && !(p->dev == st->st_dev && p->ino == st->st_ino && p->pid == getpid());
         p = p->next) {
    }
    if (p) {
        p->ports++;
    }
    own_fd_unlock();
    return p;
}

static struct capture_stream *capture_pipe_make(const char *path, const struct stat *st)
{
    struct capture_stream *p = g_new0(struct capture_stream, 1);

    p->path = g_strdup(path);
    p->dev = st->st_dev;
    p->ino = st->st_ino;
    p->pid = getpid();
    p->ports = 1;
    p->is_pipe = S_ISFIFO(st->st_mode);
    p->own.fd = -1;
    pthread_mutex_init(&p->lock, NULL);
    own_fd_lock();
    p->next = streams;
    streams = p;
    own_fd_unlock();
    return p;
}

/* Takes a port away, and ends the stream with its last port. */
static void capture_pipe_release(struct capture_stream *p)
{
    bool is_last;

    own_fd_lock();
    is_last = !--p->ports;
    for (struct capture_stream **at = &streams; is_last && *at; at = &(*at)->next) {
        if (*at == p) {
            *at = p->next;
            break;
        }
    }
    own_fd_unlock();
    if (is_last) {
        own_fd_close(&p->own);
        g_free(p->path);
        g_free(p);
    }
}

struct capture_pipe *capture_pipe_open(const char *path, const struct stat *st, const char *name,
                                       GError **err)
{
    struct capture_pipe *port = g_new0(struct capture_pipe, 1);
    int state = cancel_disable();

    g_strlcpy(port->name, name, sizeof(port->name));
    port->stream = capture_pipe_find(st);
    if (!port->stream) {
        port->stream = capture_pipe_make(path, st);
        if (!capture_pipe_open_first(port->stream, err)) {
            capture_pipe_close(port);
            port = NULL;
        }
    }
    cancel_restore(state);
    return port;
}

/* Tells the reader of this port's interface, if it does not know it. False: there is no room. */
static bool capture_pipe_describe(struct capture_pipe *port)
{
    struct capture_stream *p = port->stream;
    struct capture_interface interface;
    struct iovec part = {&interface, capture_interface_make(&interface, port->name)};

    if (port->reader == p->readers) {
        return true;
    }
    errno = EAGAIN;
    if (capture_pipe_write(p, &part, 1) != (ssize_t)part.iov_len) {
        return false;
    }
    port->reader = p->readers;
    port->interface = p->interfaces++;
    return true;
}

/* Writes the frame. False: it is left out. */
static bool capture_pipe_put(struct capture_pipe *port, const struct capture_frame *frame,
                             uint64_t now_ns)
{
    struct capture_stream *p = port->stream;
    size_t len = capture_packet_len(frame, port->missing);
    struct capture_packet packet;
    ssize_t written = -1;

    if (!capture_pipe_find_reader(p) ||
        !capture_pipe_has_room(p, len + sizeof(struct capture_interface))) {
        return false;
    }
    if (capture_pipe_describe(port)) {
        capture_packet_make(&packet, frame, port->interface, now_ns, port->missing);
        written = capture_pipe_write(p, packet.parts, CAPTURE_PACKET_PARTS);
    }
    if (written == (ssize_t)len) {
        return true;
    }
    if (written < 0 && errno == EPIPE) {
        own_fd_close(&p->own); /* the next reader gets a stream of its own */
    } else if (written >= 0 || errno != EAGAIN) {
        capture_pipe_end(p, written < 0 ? g_strerror(errno) : "short write");
    }
    return false;
}

void capture_pipe_frame(struct capture_pipe *port, const struct capture_frame *frame,
                        uint64_t now_ns)
{
    struct capture_stream *p = port->stream;

    if (p->pid != getpid()) {
        return; /* the lock may be held by a thread that this child does not have */
    }
    pthread_mutex_lock(&p->lock);
    port->missing = capture_pipe_put(port, frame, now_ns) ? 0 : port->missing + 1;
    pthread_mutex_unlock(&p->lock);
}

void capture_pipe_close(struct capture_pipe *port)
{
    capture_pipe_release(port->stream);
    g_free(port);
}
