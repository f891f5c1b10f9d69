/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture in pcapng with several writers.
 *
 * The record in the section header (wire/capture_blocks.h) says how many interfaces the section
 * has, how many bytes of the file are whole blocks, and which run wrote them. Two locks of the open
 * file (F_OFD_SETLK) order the writers. The kernel releases them when the last process that has the
 * open file closes it or ends. A child of fork() closes it at once, because it would keep its
 * parent's locks.
 * - PRESENCE is held shared for as long as a port writes the file. A port that gets it exclusively
 *   is alone, and may empty the file.
 * - TURN is held exclusively while a block is written. Its holder first cuts off bytes behind those
 *   that the record counts: the writer of these bytes died before it had counted them.
 *
 * In a ring, the holder of the turn who finds the file full makes the next one under another name,
 * with the turn of that, too. It marks the record of the full file, and puts the next one into the
 * place of path (wire/capture_ring.c). A port that gets the turn of a full file later opens path
 * again. A process that is killed on the way may leave a file that is marked and still at path: its
 * next writer makes the next file.
 */
#include "wire/capture_file.h"
#include "wire/cancel.h"
#include "wire/capture_pipe.h"
#include "wire/capture_ring.h"
#include "wire/open.h"
#include "wire/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Bytes of the file that stand for the locks. */
enum {
    PRESENCE = 0,
    TURN = 1,
};

/* How long a frame waits for its turn, and how long a port that joins; in steps of how long. */
#define PATIENCE_US      20000
#define JOIN_PATIENCE_US 2000000
#define STEP_US          50

/* How many files of a ring a port looks at before it leaves a frame out, and one that joins before
 * it fails. Others may change the file all the time. */
#define FOLLOW_MAX 8
#define JOIN_MAX   1000

struct capture_file {
    char *path, *name;
    struct capture_pipe *pipe; /* instead of all below, or NULL */
    struct own_fd own[2];      /* of the file, and of the next file while that is made */
    unsigned at;               /* which one; its fd is -1: capturing has ended */
    struct capture_ring ring;
    bool is_impatient; /* the last frame waited in vain */
    bool is_busy;      /* another port had the turn at the last attempt */
    bool is_other;     /* the file is of another ring than this port's */
    bool has_interface;
    uint32_t interface;
    uint64_t missing; /* frames that were left out since the last one that was written */
};

static int capture_file_fd(const struct capture_file *f)
{
    return f->own[f->at].fd;
}

/* -- the descriptor ---------------------------------------------------------------------------- */

/* Opens a file. The flags have O_NONBLOCK, because a fork() waits for this call. Sets own->fd; -1:
 * errno. */
static void capture_file_open_own(struct own_fd *own, const char *path, int flags)
{
    int state = cancel_disable(), code, fd;

    own->fd = -1;
    own_fd_lock();
    fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0644);
    code = errno;
    if (fd >= 0) {
        own_fd_set(own, fd);
    }
    own_fd_unlock();
    cancel_restore(state);
    errno = code;
}

static bool capture_file_open_path(struct capture_file *f)
{
    f->has_interface = false;
    capture_file_open_own(&f->own[f->at], f->path, O_RDWR | O_CREAT);
    return capture_file_fd(f) >= 0;
}

/* -- locks and the record ---------------------------------------------------------------------- */

static bool capture_file_lock(int fd, int command, short type, off_t which)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    int failed;

    do {
        failed = fcntl(fd, command, &lock);
    } while (failed < 0 && errno == EINTR);
    return !failed;
}

/* Whether a lock failed because another open file has it. Some file systems have no such locks. */
static bool capture_file_is_taken(int err)
{
    return err == EAGAIN || err == EACCES;
}

/* False: another port has the turn (is_busy), or errno says why there are no turns. */
static bool capture_file_take_turn(struct capture_file *f, unsigned patience_us)
{
    unsigned waited = 0;

    f->is_busy = false;
    while (!capture_file_lock(capture_file_fd(f), F_OFD_SETLK, F_WRLCK, TURN)) {
        struct timespec step = {.tv_nsec = STEP_US * 1000};

        if (!capture_file_is_taken(errno)) {
            return false;
        }
        f->is_busy = true;
        if (f->is_impatient || waited >= patience_us) {
            f->is_impatient = true;
            return false;
        }
        nanosleep(&step, NULL);
        waited += STEP_US;
    }
    f->is_impatient = false;
    return true;
}

static void capture_file_end_turn(struct capture_file *f)
{
    capture_file_lock(capture_file_fd(f), F_OFD_SETLK, F_UNLCK, TURN);
}

/* False: the file does not begin with a section of ours, or its section can have no more
 * interfaces. */
static bool capture_file_read_record(int fd, struct capture_record *record)
{
    struct capture_section section;
    ssize_t len = pread(fd, &section, sizeof(section), 0);

    return capture_record_parse((const uint8_t *)&section, len > 0 ? (size_t)len : 0, record);
}

static bool capture_file_write_record(int fd, const struct capture_record *record)
{
    char text[CAPTURE_RECORD_LEN];

    capture_record_print(text, record);
    return pwrite(fd, text, sizeof(text), offsetof(struct capture_section, record)) == sizeof(text);
}

/* In this port's turn: what the record says, and the file cut to what it counts. */
static bool capture_file_begin(int fd, struct capture_record *record)
{
    struct stat stat;

    if (!capture_file_read_record(fd, record) || fstat(fd, &stat) < 0 ||
        (uint64_t)stat.st_size < record->bytes) {
        return false;
    }
    return (uint64_t)stat.st_size == record->bytes || !ftruncate(fd, (off_t)record->bytes);
}

static bool capture_file_has_ring(const struct capture_record *record,
                                  const struct capture_ring *ring)
{
    return record->ring.size == ring->size && record->ring.files == ring->files;
}

/* Whether path is the file that is open: another writer of a ring may have begun the next one. */
static bool capture_file_is_at_path(const struct capture_file *f)
{
    struct stat open, named;

    return !fstat(capture_file_fd(f), &open) && !stat(f->path, &named) &&
           open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

/* -- beginning a file -------------------------------------------------------------------------- */

/* In this port's turn: an empty file with the section header. */
static bool capture_file_start(int fd, struct capture_record *record)
{
    struct capture_section section;

    record->bytes = sizeof(section);
    record->interfaces = 0;
    record->is_full = false;
    capture_section_make(&section, record);
    return !ftruncate(fd, 0) && pwrite(fd, &section, sizeof(section), 0) == sizeof(section);
}

/* In this port's turn. False: errno. */
static bool capture_file_add_interface(struct capture_file *f, struct capture_record *record)
{
    struct capture_interface interface;
    size_t len = capture_interface_make(&interface, f->name);

    errno = ENOSPC; /* for a short write */
    if (pwrite(capture_file_fd(f), &interface, len, (off_t)record->bytes) != (ssize_t)len) {
        return false;
    }
    f->interface = record->interfaces++;
    record->bytes += len;
    f->has_interface = capture_file_write_record(capture_file_fd(f), record);
    return f->has_interface;
}

/* In this port's turn: an empty file. The files of the ring that it was in are removed. */
static bool capture_file_empty(struct capture_file *f, const char *run,
                               struct capture_record *record)
{
    if (capture_file_read_record(capture_file_fd(f), record)) {
        capture_ring_remove(f->path, record);
    }
    *record = (struct capture_record){.number = 1, .ring = f->ring};
    g_strlcpy(record->run, run, sizeof(record->run));
    return capture_file_start(capture_file_fd(f), record);
}

/* In this port's turn. False: errno. Closing the file ends the turn as well. */
static bool capture_file_join(struct capture_file *f, const char *run)
{
    int fd = capture_file_fd(f);
    struct capture_record record;
    bool is_alone = capture_file_lock(fd, F_OFD_SETLK, F_WRLCK, PRESENCE);

    if (!is_alone && !capture_file_is_taken(errno)) {
        return false;
    }
    if (is_alone && run[0] && capture_file_begin(fd, &record) && !strcmp(record.run, run)) {
        is_alone = false;
    }
    if ((is_alone && !capture_file_empty(f, run, &record)) ||
        !capture_file_lock(fd, F_OFD_SETLK, F_RDLCK, PRESENCE)) {
        return false;
    }
    errno = 0;
    if (!capture_file_begin(fd, &record)) {
        errno = errno ? errno : EINVAL;
        return false;
    }
    f->is_other = !capture_file_has_ring(&record, &f->ring);
    return !f->is_other && capture_file_add_interface(f, &record);
}

/* Opens path and joins its writers. False: errno. */
static bool capture_file_open_and_join(struct capture_file *f, const char *run_given)
{
    char run[CAPTURE_RUN_MAX + 1];
    bool joined;

    g_strlcpy(run, run_given ? run_given : "", sizeof(run));
    g_strchomp(run); /* blanks fill the record's end */
    for (unsigned i = 0; i < JOIN_MAX; i++) {
        if (!capture_file_open_path(f)) {
            return false;
        }
        if (!capture_file_take_turn(f, JOIN_PATIENCE_US)) {
            errno = f->is_busy ? EBUSY : errno;
            return false;
        }
        if (capture_file_is_at_path(f)) {
            joined = capture_file_join(f, run);
            capture_file_end_turn(f);
            return joined;
        }
        own_fd_close(&f->own[f->at]); /* a ring went on meanwhile */
    }
    errno = EBUSY;
    return false;
}

#define OTHER_RING                                                                                  \
    "others write it with another size or number of files: name another file, or set capture_size " \
    "and capture_files as they did"

static bool capture_file_open_regular(struct capture_file *f, const char *run, GError **err)
{
    if (capture_file_open_and_join(f, run)) {
        return true;
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: cannot write the capture: %s", f->path,
                f->is_other ? OTHER_RING : g_strerror(errno));
    return false;
}

/* The path as it stays when the program changes its folder: a ring and a pipe are opened again. */
static char *capture_file_whole_path(const char *path)
{
    g_autofree char *folder = g_get_current_dir();

    return g_path_is_absolute(path) ? g_strdup(path) : g_build_filename(folder, path, NULL);
}

struct capture_file *capture_file_open(const char *path, const char *name, const char *run,
                                       const struct capture_ring *ring, GError **err)
{
    struct capture_file *f = g_new0(struct capture_file, 1);
    struct stat st;
    bool is_regular = stat(path, &st) < 0 || S_ISREG(st.st_mode);

    f->own[0].fd = f->own[1].fd = -1;
    f->path = capture_file_whole_path(path);
    f->name = g_strdup(name);
    if (ring && ring->size) {
        f->ring.size = MAX(ring->size, CAPTURE_RING_SIZE_MIN);
        f->ring.files = CLAMP(ring->files, 1, CAPTURE_RING_FILES_MAX);
    }
    if (!is_regular) {
        f->pipe = capture_pipe_open(f->path, &st, name, err);
    }
    if (is_regular ? !capture_file_open_regular(f, run, err) : !f->pipe) {
        capture_file_close(f);
        return NULL;
    }
    return f;
}

void capture_file_close(struct capture_file *f)
{
    if (f->pipe) {
        capture_pipe_close(f->pipe);
    }
    own_fd_close(&f->own[f->at]);
    g_free(f->path);
    g_free(f->name);
    g_free(f);
}

static void capture_file_give_up(struct capture_file *f, const char *why)
{
    g_warning("%s: capture ends: %s", f->path, why);
    own_fd_close(&f->own[f->at]);
}

/* -- the next file of a ring ------------------------------------------------------------------- */

/* In this port's turn of a full file, which is at path: the next file takes its place. This port
 * has the turn of that, then. The full file is marked first: nobody may write a small frame into a
 * file that is not at path any more. False: errno; this port still has the turn of the full file.
 */
static bool capture_file_next(struct capture_file *f, struct capture_record *record)
{
    g_autofree char *next_path = capture_ring_next_name(f->path);
    struct own_fd *full = &f->own[f->at], *next = &f->own[!f->at];
    struct capture_record made = *record;

    made.number++;
    unlink(next_path); /* one who was killed has left it */
    capture_file_open_own(next, next_path, O_RDWR | O_CREAT | O_EXCL);
    if (next->fd < 0) {
        return false;
    }
    record->is_full = true;
    if (!capture_file_lock(next->fd, F_OFD_SETLK, F_WRLCK, TURN) ||
        !capture_file_lock(next->fd, F_OFD_SETLK, F_RDLCK, PRESENCE) ||
        !capture_file_start(next->fd, &made) || !capture_file_write_record(full->fd, record) ||
        !capture_ring_advance(f->path, next_path, record)) {
        int why = errno ? errno : ENOSPC;

        record->is_full = false;
        capture_file_write_record(full->fd, record);
        unlink(next_path);
        own_fd_close(next);
        errno = why;
        return false;
    }
    own_fd_close(full);
    f->at = !f->at;
    f->has_interface = false;
    *record = made;
    return true;
}

/* In this port's turn of a file whose place another one has: opens that and takes its turn. False:
 * is_busy, or errno. */
static bool capture_file_follow(struct capture_file *f)
{
    own_fd_close(&f->own[f->at]);
    f->is_busy = false;
    return capture_file_open_path(f) && capture_file_take_turn(f, PATIENCE_US);
}

/* -- frames ------------------------------------------------------------------------------------ */

/* Takes this port's turn of the file that has room for a block, and reads its record. False: the
 * frame is left out; capturing may have ended. */
static bool capture_file_find_room(struct capture_file *f, uint32_t len,
                                   struct capture_record *record)
{
    bool has_turn = capture_file_take_turn(f, PATIENCE_US);

    for (unsigned i = 0; has_turn && i < FOLLOW_MAX; i++) {
        errno = 0;
        if (!capture_file_begin(capture_file_fd(f), record)) {
            /* Closing the file ends the turn as well. */
            capture_file_give_up(f, errno ? g_strerror(errno)
                                          : "somebody else has emptied or replaced what it had");
            return false;
        }
        if (!capture_file_has_ring(record, &f->ring)) {
            capture_file_give_up(f, OTHER_RING);
            return false;
        }
        if (!record->is_full &&
            (!f->ring.size ||
             record->bytes + len + sizeof(struct capture_interface) <= f->ring.size)) {
            return true;
        }
        if (!capture_file_is_at_path(f)) {
            has_turn = capture_file_follow(f);
        } else if (!capture_file_next(f, record)) {
            capture_file_give_up(f, g_strerror(errno));
            return false;
        }
    }
    if (has_turn) {
        capture_file_end_turn(f);
    } else if (!f->is_busy) {
        capture_file_give_up(f, g_strerror(errno));
    }
    return false;
}

/* In this port's turn: a file of the ring that another writer began has no interface of this port
 * yet. */
static bool capture_file_describe(struct capture_file *f, struct capture_record *record)
{
    return f->has_interface ||
           (capture_file_lock(capture_file_fd(f), F_OFD_SETLK, F_RDLCK, PRESENCE) &&
            capture_file_add_interface(f, record));
}

/* In this port's turn: writes a block behind what the record counts. */
static void capture_file_packet(struct capture_file *f, const struct capture_frame *frame,
                                uint64_t now_ns, struct capture_record *record)
{
    int fd = capture_file_fd(f);
    struct capture_packet packet;
    ssize_t written;
    const char *why;

    capture_packet_make(&packet, frame, f->interface, now_ns, f->missing);
    do {
        written = pwritev(fd, packet.parts, CAPTURE_PACKET_PARTS, (off_t)record->bytes);
    } while (written < 0 && errno == EINTR);
    why = written < 0 ? g_strerror(errno) : "short write";
    if (written == (ssize_t)packet.start.len) {
        f->missing = 0;
        record->bytes += packet.start.len;
        if (capture_file_write_record(fd, record)) {
            return;
        }
        why = g_strerror(errno);
        record->bytes -= packet.start.len;
    }
    if (ftruncate(fd, (off_t)record->bytes) < 0) {
        g_warning("%s: the last packet is incomplete: %s", f->path, g_strerror(errno));
    }
    capture_file_give_up(f, why);
}

void capture_file_frame(struct capture_file *f, const struct capture_frame *frame,
                        uint64_t (*clock_ns)(void *opaque), void *clock_opaque)
{
    struct capture_record record;

    if (f->pipe) {
        capture_pipe_frame(f->pipe, frame, clock_ns(clock_opaque));
        return;
    }
    if (capture_file_fd(f) < 0) {
        return;
    }
    if (!capture_file_find_room(f, capture_packet_len(frame, f->missing), &record)) {
        f->missing++;
        return;
    }
    if (!capture_file_describe(f, &record)) {
        capture_file_give_up(f, g_strerror(errno));
        return;
    }
    capture_file_packet(f, frame, clock_ns(clock_opaque), &record);
    if (capture_file_fd(f) >= 0) {
        capture_file_end_turn(f);
    }
}
