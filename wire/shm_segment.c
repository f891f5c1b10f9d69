/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining and leaving a shared-memory segment, and telling the living from the dead.
 *
 * States of an id: free (its byte not locked) -> joined (locked, generation raised, attached) ->
 * left (detached, unlocked) or dead (attached, unlocked; detached by whoever finds out, or taken
 * over by the next one to join).
 */
#include "wire/shm_segment.h"
#include "wire/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM_MAGIC   "hcasimSW"
#define SHM_VERSION 3

/* Where the lock bytes are: behind every member's, so that ids and offsets are the same. */
#define JOIN_LOCK_OFFSET 4096

/* How long to wait for others to finish joining or leaving, about a minute: one takes milliseconds
 * (its region's memory is cleared), but a hundred may come at once on a busy machine. */
#define JOIN_LOCK_TRIES    60000
#define JOIN_LOCK_SLEEP_US 1000

static size_t page_up(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (n + page - 1) / page * page;
}

static off_t region_offset(unsigned id)
{
    return (off_t)(page_up(sizeof(struct shm_header)) + id * page_up(sizeof(struct shm_region)));
}

static bool set_lock(int fd, off_t byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc;

    do {
        rc = fcntl(fd, F_OFD_SETLK, &lock);
    } while (rc < 0 && errno == EINTR);
    return rc == 0;
}

/* Whether another open file description holds one of the bytes. Unknown counts as held. */
static bool is_any_locked(int fd, off_t byte, off_t len)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = len};

    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static bool is_locked(int fd, off_t byte)
{
    return is_any_locked(fd, byte, 1);
}

static bool anybody_alive(int fd)
{
    return is_any_locked(fd, 0, SHM_MEMBERS);
}

static bool lock_join(int fd)
{
    for (int i = 0; i < JOIN_LOCK_TRIES; i++) {
        if (set_lock(fd, JOIN_LOCK_OFFSET, F_WRLCK)) {
            return true;
        }
        if (errno != EAGAIN && errno != EACCES) {
            return false;
        }
        g_usleep(JOIN_LOCK_SLEEP_US);
    }
    errno = ETIMEDOUT;
    return false;
}

static void unlock_join(int fd)
{
    set_lock(fd, JOIN_LOCK_OFFSET, F_UNLCK);
}

static char *wake_path(const char *path, unsigned id)
{
    return g_strdup_printf("%s.%u", path, id);
}

static bool fail(GError **err, const char *path, const char *what)
{
    int code = errno;

    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: %s: %s", path, what, g_strerror(code));
    return false;
}

/* Opens the file at path and takes the join lock; the file is then still the one at path. */
static int open_locked(const char *path, bool own_only, GError **err)
{
    for (;;) {
        struct stat opened, named;
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0 && errno == ENOENT) {
            fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
            if (fd < 0 && errno == EEXIST) {
                continue;
            }
        }
        if (fd < 0) {
            fail(err, path, "cannot open the segment");
            return -1;
        }
        if (fstat(fd, &opened) < 0 || !S_ISREG(opened.st_mode) ||
            (own_only && opened.st_uid != geteuid())) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: not a regular file%s", path,
                        own_only ? " of this user" : "");
            close(fd);
            return -1;
        }
        if (!lock_join(fd)) {
            fail(err, path, "cannot lock the segment");
            close(fd);
            return -1;
        }
        if (lstat(path, &named) == 0 && named.st_ino == opened.st_ino &&
            named.st_dev == opened.st_dev) {
            return fd;
        }
        close(fd); /* its last user removed it while we waited for the lock */
    }
}

/* posix_fallocate() that goes on after signals. Sets errno. */
static bool allocate(int fd, off_t offset, size_t len)
{
    int rc;

    do {
        rc = posix_fallocate(fd, offset, (off_t)len);
    } while (rc == EINTR);
    errno = rc;
    return rc == 0;
}

/* Those of members that died, when nobody is left. */
static void unlink_fifos(const char *path)
{
    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        char *fifo = wake_path(path, id);

        unlink(fifo);
        g_free(fifo);
    }
}

/* Makes an empty segment. Nobody lives in it, so nobody has it mapped. */
static bool create(struct shm_segment *seg, GError **err)
{
    struct shm_header start = {.version = SHM_VERSION, .members = SHM_MEMBERS};
    off_t size = region_offset(SHM_MEMBERS);

    memcpy(start.magic, SHM_MAGIC, sizeof(start.magic));
    start.file_size = (uint64_t)size;
    if (ftruncate(seg->fd, 0) < 0 || ftruncate(seg->fd, size) < 0) {
        return fail(err, seg->path, "cannot set the segment's size");
    }
    if (!allocate(seg->fd, 0, sizeof(struct shm_header))) {
        return fail(err, seg->path, "no memory for the segment");
    }
    if (pwrite(seg->fd, &start, offsetof(struct shm_header, fdb_gen), 0) !=
        (ssize_t)offsetof(struct shm_header, fdb_gen)) {
        return fail(err, seg->path, "cannot write the segment");
    }
    unlink_fifos(seg->path);
    return true;
}

static bool check(const struct shm_segment *seg, GError **err)
{
    struct shm_header start;
    size_t len = offsetof(struct shm_header, fdb_gen);
    off_t size = region_offset(SHM_MEMBERS);
    struct stat st;

    if (pread(seg->fd, &start, len, 0) != (ssize_t)len || fstat(seg->fd, &st) < 0 ||
        st.st_size != size || memcmp(start.magic, SHM_MAGIC, sizeof(start.magic)) ||
        start.version != SHM_VERSION || start.members != SHM_MEMBERS ||
        start.file_size != (uint64_t)size) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO,
                    "%s: in use by another version of this program, or not a segment", seg->path);
        return false;
    }
    return true;
}

/* The FIFO that wakes this member, with the segment's own access rights. */
static bool make_fifo(struct shm_segment *seg, GError **err)
{
    char *path = wake_path(seg->path, seg->id);
    struct stat st;
    bool ok;

    unlink(path);
    ok = fstat(seg->fd, &st) == 0 && mkfifo(path, 0600) == 0;
    if (ok) {
        seg->wake_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        ok = seg->wake_fd >= 0 && fchmod(seg->wake_fd, st.st_mode & 0666) == 0;
        /* Where the file is shared by a group, so is the FIFO; if not allowed, wake-ups by
         * members of that group fail, which the mode then says, too. */
        if (ok && fchown(seg->wake_fd, (uid_t)-1, st.st_gid) < 0) {
            ok = fchmod(seg->wake_fd, st.st_mode & 0606) == 0;
        }
    }
    if (!ok) {
        fail(err, path, "cannot make the wake-up FIFO");
    }
    g_free(path);
    return ok;
}

/* Gives back the slots of this member's region whose sender is no more. */
static void free_dead_slots(struct shm_segment *seg, struct shm_region *region)
{
    bool alive[SHM_MEMBERS];

    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        alive[id] = id != seg->id && is_locked(seg->fd, id);
    }
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        uint32_t owner = atomic_load(&region->slot[i].owner);
        unsigned id = (owner & 0xff) - 1u;

        if (owner && (id >= SHM_MEMBERS || !alive[id] ||
                      owner != shm_tag(id, atomic_load(&seg->header->member[id].gen)))) {
            atomic_store(&region->slot[i].owner, 0);
        }
    }
}

static void attach(struct shm_segment *seg)
{
    struct shm_member *self = &seg->header->member[seg->id];

    seg->gen = (atomic_load(&self->gen) + 1) & ((1u << SHM_GEN_BITS) - 1);
    if (!seg->gen) {
        seg->gen = 1;
    }
    atomic_store(&self->attached, 0);
    free_dead_slots(seg, seg->region[seg->id]);
    atomic_store(&self->macs_used, 0);
    for (unsigned i = 0; i < SHM_MACS; i++) {
        atomic_store(&self->mac[i].mac, 0);
    }
    for (unsigned i = 0; i < SHM_MEMBERS / 64; i++) {
        atomic_store(&self->waiters[i], 0);
    }
    atomic_store(&self->tx_wake, 0);
    atomic_store(&self->sleep, 1);
    atomic_store(&self->gen, seg->gen);
    atomic_store(&self->attached, 1);
    atomic_fetch_add(&seg->header->fdb_gen, 1);
}

/* Whether the file may be made a new segment: an empty one, or one that was (or was about to be) a
 * segment before. Nobody's other data is overwritten. */
static bool is_reusable(const struct shm_segment *seg, GError **err)
{
    static const char zeros[sizeof(((struct shm_header *)0)->magic)];
    char magic[sizeof(zeros)] = {0};
    struct stat st;

    if (fstat(seg->fd, &st) < 0 || pread(seg->fd, magic, sizeof(magic), 0) < 0) {
        return fail(err, seg->path, "cannot read the segment");
    }
    if (st.st_size == 0 || memcmp(magic, SHM_MAGIC, sizeof(magic)) == 0 ||
        (st.st_size == region_offset(SHM_MEMBERS) && memcmp(magic, zeros, sizeof(magic)) == 0)) {
        return true;
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: this file is something else", seg->path);
    return false;
}

static bool join_locked(struct shm_segment *seg, GError **err)
{
    void *map;

    if (anybody_alive(seg->fd)) {
        if (!check(seg, err)) {
            return false;
        }
    } else if (!is_reusable(seg, err) || !create(seg, err)) {
        return false;
    }
    while (seg->id < SHM_MEMBERS && !set_lock(seg->fd, seg->id, F_WRLCK)) {
        seg->id++;
    }
    if (seg->id == SHM_MEMBERS) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: all %d places of the segment are taken",
                    seg->path, SHM_MEMBERS);
        return false;
    }
    /* Memory that is short must show here and not as SIGBUS at a later access. */
    if (!allocate(seg->fd, region_offset(seg->id), sizeof(struct shm_region))) {
        return fail(err, seg->path, "no memory for another member of the segment");
    }
    map = mmap(NULL, page_up(sizeof(struct shm_header)), PROT_READ | PROT_WRITE, MAP_SHARED,
               seg->fd, 0);
    if (map == MAP_FAILED) {
        return fail(err, seg->path, "cannot map the segment");
    }
    seg->header = map;
    if (!shm_segment_region(seg, seg->id)) {
        return fail(err, seg->path, "cannot map the segment");
    }
    if (!make_fifo(seg, err)) {
        return false;
    }
    attach(seg);
    return true;
}

/* Unmaps and closes, which also drops the locks. */
static void release(struct shm_segment *seg)
{
    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        if (seg->region[id]) {
            munmap(seg->region[id], page_up(sizeof(struct shm_region)));
        }
    }
    if (seg->header) {
        munmap(seg->header, page_up(sizeof(struct shm_header)));
    }
    if (seg->wake_fd >= 0) {
        close(seg->wake_fd);
    }
    if (seg->fd >= 0) {
        close(seg->fd);
    }
    g_free(seg->path);
    memset(seg, 0, sizeof(*seg));
}

/* Removes this member's FIFO, and the file if nobody else lives. Under the join lock. */
static void remove_files(struct shm_segment *seg)
{
    if (seg->wake_fd >= 0) {
        char *fifo = wake_path(seg->path, seg->id);

        unlink(fifo);
        g_free(fifo);
    }
    /* This member's own lock does not count: it is this very open file description's. A file that
     * never became a segment is somebody's, and stays. */
    if (seg->header && !anybody_alive(seg->fd)) {
        unlink(seg->path);
        unlink_fifos(seg->path);
    }
}

/* Whether the file is a segment that nobody lives in. The join lock is taken if so. */
static bool is_abandoned(int fd)
{
    char magic[sizeof(((struct shm_header *)0)->magic)];
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
           memcmp(magic, SHM_MAGIC, sizeof(magic)) == 0 &&
           set_lock(fd, JOIN_LOCK_OFFSET, F_WRLCK) && !anybody_alive(fd);
}

void shm_segment_sweep(const char *dir, const char *prefix)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        char *path;
        int fd;

        if (!g_str_has_prefix(name, prefix)) {
            continue;
        }
        path = g_build_filename(dir, name, NULL);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0) {
            /* Whoever waits for the lock finds the file gone and makes a new one. */
            if (is_abandoned(fd)) {
                unlink(path);
                unlink_fifos(path);
            }
            close(fd);
        }
        g_free(path);
    }
    if (d) {
        g_dir_close(d);
    }
}

bool shm_segment_join(struct shm_segment *seg, const char *path, bool own_only, GError **err)
{
    memset(seg, 0, sizeof(*seg));
    seg->path = g_strdup(path);
    seg->wake_fd = -1;
    seg->fd = open_locked(path, own_only, err);
    if (seg->fd < 0) {
        release(seg);
        return false;
    }
    if (!join_locked(seg, err)) {
        remove_files(seg);
        release(seg);
        return false;
    }
    unlock_join(seg->fd);
    return true;
}

void shm_segment_detach(struct shm_segment *seg)
{
    atomic_store(&seg->header->member[seg->id].attached, 0);
    atomic_fetch_add(&seg->header->fdb_gen, 1);
}

void shm_segment_leave(struct shm_segment *seg)
{
    shm_segment_detach(seg);
    if (lock_join(seg->fd)) {
        remove_files(seg);
    }
    release(seg);
}

bool shm_segment_alive(struct shm_segment *seg, unsigned id)
{
    return is_locked(seg->fd, id);
}

void shm_segment_detach_dead(struct shm_segment *seg, unsigned id)
{
    if (!set_lock(seg->fd, JOIN_LOCK_OFFSET, F_WRLCK)) {
        return;
    }
    if (!is_locked(seg->fd, id)) {
        atomic_store(&seg->header->member[id].attached, 0);
        atomic_fetch_add(&seg->header->fdb_gen, 1);
    }
    unlock_join(seg->fd);
}

struct shm_region *shm_segment_region(struct shm_segment *seg, unsigned id)
{
    if (!seg->region[id]) {
        void *map = mmap(NULL, page_up(sizeof(struct shm_region)), PROT_READ | PROT_WRITE,
                         MAP_SHARED, seg->fd, region_offset(id));

        seg->region[id] = map == MAP_FAILED ? NULL : map;
    }
    return seg->region[id];
}

/* Opened for reading, too: a write to a FIFO that nobody reads would be a SIGPIPE. */
int shm_segment_open_wake(struct shm_segment *seg, unsigned id)
{
    char *path = wake_path(seg->path, id);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    g_free(path);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}
