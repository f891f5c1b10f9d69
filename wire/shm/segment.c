/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining and leaving a shared-memory segment, and telling living members from dead ones.
 *
 * States of an id: free (its byte is not locked) -> joined (locked, generation raised, attached) ->
 * left (detached, unlocked) or dead (attached, unlocked). A dead id is detached by any member that
 * finds it, or taken over by the next process that joins.
 */
#include "wire/shm/segment.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/shm/fdb.h"
#include "wire/shm/file.h"
#include "wire/shm/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the FIFO that wakes this member, with the segment's own access rights. */
static bool shm_segment_make_fifo(struct shm_segment *seg, GError **err)
{
    char *path = shm_wake_path(seg->path, seg->id);
    struct stat st;
    bool ok;

    shm_file_unlink_fifo(path);
    ok = fstat(seg->fd, &st) == 0 && mkfifo(path, 0600) == 0;
    if (ok) {
        seg->wake_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        ok = seg->wake_fd >= 0 && fchmod(seg->wake_fd, st.st_mode & 0666) == 0;
        /* If a group shares the file, the FIFO gets the same group. If that is not allowed, the
         * FIFO's mode denies the group access: members of that group then cannot wake this
         * member. */
        if (ok && fchown(seg->wake_fd, (uid_t)-1, st.st_gid) < 0) {
            ok = fchmod(seg->wake_fd, st.st_mode & 0606) == 0;
        }
    }
    if (!ok) {
        shm_file_fail(err, path, "cannot make the wake-up FIFO");
    }
    g_free(path);
    return ok;
}

/* Whether the member with this tag is alive. *seen and *lives keep the last tag that was checked,
 * so that a run of equal tags costs one system call. */
static bool shm_segment_tag_lives(struct shm_segment *seg, uint64_t tag, uint64_t *seen,
                                  bool *lives)
{
    if (tag != *seen) {
        unsigned id = shm_tag_id(tag);

        *seen = tag;
        *lives = id < SHM_MEMBERS && id != seg->id && shm_segment_alive(seg, id) &&
                 tag == shm_tag(id, atomic_load(&seg->header->member[id].gen));
    }
    return *lives;
}

/* Frees the slots of this member's region whose sender is dead. */
static void shm_segment_free_dead_slots(struct shm_segment *seg, struct shm_region *region)
{
    uint64_t seen = 0;
    bool lives = false;

    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        if (shm_segment_has_chunk(seg, seg->id, i / SHM_CHUNK)) {
            uint64_t owner = atomic_load(&region->slot[i].owner);

            if (owner && !shm_segment_tag_lives(seg, owner, &seen, &lives)) {
                atomic_store(&region->slot[i].owner, 0);
            }
        }
    }
}

static void shm_segment_attach(struct shm_segment *seg)
{
    struct shm_member *self = &seg->header->member[seg->id];

    seg->gen = (atomic_load(&self->gen) + 1) & ((1u << SHM_GEN_BITS) - 1);
    if (!seg->gen) {
        seg->gen = 1;
    }
    atomic_store(&self->attached, 0);
    shm_segment_free_dead_slots(seg, seg->region[seg->id]);
    shm_fdb_forget(seg);
    shm_set_clear(&self->waiters);
    shm_set_clear(&self->credits);
    shm_set_clear(&self->floods);
    shm_log_begin(seg);
    atomic_store(&self->sleep, 1);
    atomic_store(&self->gen, seg->gen);
    atomic_store(&self->attached, seg->gen);
    shm_set_add(&seg->header->present, seg->id);
    atomic_fetch_add(&seg->header->fdb_gen, 1);
}

/* Takes the first free place, under the join lock. */
static bool shm_segment_take_place(struct shm_segment *seg, GError **err)
{
    while (seg->id < SHM_MEMBERS && !shm_lock(seg->fd, seg->id)) {
        seg->id++;
    }
    if (seg->id == SHM_MEMBERS) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: all %d places of the segment are taken",
                    seg->path, SHM_MEMBERS);
        return false;
    }
    return true;
}

/* Prepares this member's memory and FIFO, and attaches it. The place belongs to this member alone,
 * so the join lock is not needed. */
static bool shm_segment_move_in(struct shm_segment *seg, GError **err)
{
    void *map;

    if (!shm_allocate(seg->fd, (off_t)offsetof(struct shm_header, member[seg->id]),
                      sizeof(struct shm_member))) {
        return shm_file_fail_memory(err, seg->path, "no memory for another member of the segment");
    }
    map = mmap(NULL, shm_page_up(sizeof(struct shm_header)), PROT_READ | PROT_WRITE, MAP_SHARED,
               seg->map_fd, 0);
    if (map == MAP_FAILED) {
        return shm_file_fail(err, seg->path, "cannot map the segment");
    }
    seg->header = map;
    if (!shm_segment_region(seg, seg->id)) {
        return shm_file_fail(err, seg->path, "cannot map the segment");
    }
    /* The first chunk of slots is allocated now, so that others can send to this member even if
     * memory runs out later. */
    if (!shm_segment_has_chunk(seg, seg->id, 0) && !shm_segment_add_chunk(seg, seg->id)) {
        return shm_file_fail_memory(err, seg->path, "no memory for another member of the segment");
    }
    if (!shm_segment_make_fifo(seg, err)) {
        return false;
    }
    shm_segment_attach(seg);
    return true;
}

/* Gives up the place. Removes the file if no other member lives in it. */
static void shm_segment_move_out(struct shm_segment *seg)
{
    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        if (seg->region[id]) {
            munmap(seg->region[id], shm_page_up(sizeof(struct shm_region)));
        }
    }
    if (seg->header) {
        munmap(seg->header, shm_page_up(sizeof(struct shm_header)));
    }
    if (seg->wake_fd >= 0) {
        char *fifo = shm_wake_path(seg->path, seg->id);

        if (shm_file_is_at(seg->wake_fd, fifo)) { /* not that of a new segment */
            unlink(fifo);
        }
        g_free(fifo);
        close(seg->wake_fd);
    }
    if (seg->map_fd >= 0) {
        close(seg->map_fd);
    }
    if (seg->id < SHM_MEMBERS) {
        shm_unlock(seg->fd, seg->id);
    }
    shm_file_left(seg->fd, seg->path);
    shm_file_close(seg->fd);
    g_free(seg->path);
    memset(seg, 0, sizeof(*seg));
}

bool shm_segment_join(struct shm_segment *seg, const char *path, bool own_only, GError **err)
{
    bool ok;

    memset(seg, 0, sizeof(*seg));
    seg->wake_fd = -1;
    seg->fd = shm_file_open(path, own_only, err);
    if (seg->fd < 0) {
        return false;
    }
    seg->path = g_strdup(path);
    seg->map_fd = shm_file_open_again(seg->fd, path);
    ok = seg->map_fd >= 0 ? shm_segment_take_place(seg, err)
                          : shm_file_fail(err, path, "cannot open the segment again");
    shm_file_joined(seg->fd);
    if (!ok || !shm_segment_move_in(seg, err)) {
        shm_segment_move_out(seg);
        return false;
    }
    return true;
}

void shm_segment_detach(struct shm_segment *seg)
{
    atomic_store(&seg->header->member[seg->id].left, seg->gen);
    atomic_store(&seg->header->member[seg->id].attached, 0);
    shm_set_remove(&seg->header->present, seg->id);
    atomic_fetch_add(&seg->header->fdb_gen, 1);
}

void shm_segment_leave(struct shm_segment *seg)
{
    shm_segment_detach(seg);
    shm_segment_move_out(seg);
}

bool shm_segment_alive(struct shm_segment *seg, unsigned id)
{
    return shm_is_locked(seg->fd, id, 1);
}

void shm_segment_detach_dead(struct shm_segment *seg, unsigned id)
{
    struct shm_member *member = &seg->header->member[id];
    uint32_t gen = atomic_load(&member->attached);

    /* A process that takes the place meanwhile has another generation. */
    if (gen && !shm_segment_alive(seg, id) &&
        atomic_compare_exchange_strong(&member->attached, &gen, 0)) {
        shm_set_remove(&seg->header->present, id);
        if (atomic_load(&member->attached)) {
            shm_set_add(&seg->header->present, id); /* a new member attached just now */
        }
        atomic_fetch_add(&seg->header->fdb_gen, 1);
    }
}

/* Calls shm_allocate() for a part of a region or of the header. */
static bool shm_segment_add_memory(struct shm_segment *seg, off_t offset, size_t len)
{
    int state = cancel_disable();
    bool ok = shm_allocate(seg->fd, offset, len);

    cancel_restore(state);
    return ok;
}

bool shm_segment_add_ring(struct shm_segment *seg, unsigned id)
{
    off_t region = shm_region_offset(id);

    return shm_segment_add_memory(seg, region + (off_t)offsetof(struct shm_region, ends[seg->id]),
                                  sizeof(struct shm_ends)) &&
           shm_segment_add_memory(seg, region + (off_t)offsetof(struct shm_region, ring[seg->id]),
                                  sizeof(struct shm_ring));
}

/* Two members that do this at the same time add the same chunk. */
bool shm_segment_add_chunk(struct shm_segment *seg, unsigned id)
{
    struct shm_member *member = &seg->header->member[id];

    for (unsigned c = 0; c < SHM_CHUNKS; c++) {
        if (!shm_segment_has_chunk(seg, id, c)) {
            off_t first = (off_t)offsetof(struct shm_region, slot[c * SHM_CHUNK]);

            if (!shm_segment_add_memory(seg, shm_region_offset(id) + first,
                                        SHM_CHUNK * sizeof(struct shm_slot))) {
                return false;
            }
            atomic_fetch_or(&member->chunks[c / 64], 1ull << c % 64);
            return true;
        }
    }
    return false;
}

bool shm_segment_grow_log(struct shm_segment *seg, size_t len)
{
    return shm_segment_add_memory(seg, (off_t)offsetof(struct shm_header, log[seg->id]), len);
}

struct shm_region *shm_segment_map_region(struct shm_segment *seg, unsigned id)
{
    void *map = mmap(NULL, shm_page_up(sizeof(struct shm_region)), PROT_READ | PROT_WRITE,
                     MAP_SHARED, seg->map_fd, shm_region_offset(id));

    seg->region[id] = map == MAP_FAILED ? NULL : map;
    return seg->region[id];
}

/* The FIFO is opened for reading, too: a write to a FIFO without a reader would raise SIGPIPE. */
int shm_segment_open_wake(struct shm_segment *seg, unsigned id)
{
    char *path = shm_wake_path(seg->path, id);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    g_free(path);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}
