/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens, makes, locks and removes the file of a shared-memory segment.
 *
 * The kernel tells which members live: a member holds a lock (fcntl, open file description) on a
 * byte of the file, and the kernel releases the lock when the process ends, however it ends. A
 * child of fork() would share the open file description and hold the lock for its parent; so the
 * child closes its descriptors of such files. (A mapping also refers to an open file description,
 * so mappings are made from another one.)
 *
 * One more byte is the join lock. A process that inspects the file, replaces it, removes it, or
 * gives out places in it holds this lock, for a few system calls. A process that needs the join
 * lock waits for SHM_JOIN_WAIT_MS at most. A process that leaves does not wait for it: the holder
 * checks again, after it has released the lock, whether the file is still needed.
 */
#ifndef HCASIM_WIRE_SHM_FILE_H
#define HCASIM_WIRE_SHM_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#define SHM_JOIN_WAIT_MS 5000

/* Takes the lock on a byte. False: another open file description holds it, or fcntl() failed
 * (errno). */
bool shm_lock(int fd, off_t byte);
void shm_unlock(int fd, off_t byte);

/* Whether another open file description holds a lock on one of the bytes. If the kernel cannot
 * tell, the answer is true. */
bool shm_is_locked(int fd, off_t byte, off_t len);

/* posix_fallocate() that is called again when a signal interrupts it. Sets errno. */
bool shm_allocate(int fd, off_t offset, size_t len);

/*
 * Opens the segment at path. If the file is not there, or no member lives in it, it is made again
 * (mode 0600). own_only: fails if the file belongs to another user. Returns the descriptor, with
 * the join lock taken, so that the caller can take a place and then call shm_file_joined(). -1:
 * *err says why.
 */
int shm_file_open(const char *path, bool own_only, GError **err);
void shm_file_joined(int fd);
/* Opens another descriptor of the same file, for mappings, while the join lock is held. -1:
 * errno. */
int shm_file_open_again(int fd, const char *path);
/* Whether fd is still open and refers to the segment's file: the program may have closed it. */
bool shm_file_is_open(int fd);
/* Closes what shm_file_open() returned. If the program has closed the descriptor and its number now
 * belongs to another file, that file stays open. */
void shm_file_close(int fd);

/* To be called when this open file description holds no place any more. Removes the file at path if
 * it is this file and no member lives in it. Never waits. */
void shm_file_left(int fd, const char *path);

/* Removes the segment at path and its FIFOs if it belongs to this user and no member lives in it.
 * with_remains: also what a process leaves that dies while it makes a segment. Adds the paths of
 * the removed files to `removed`, which may be NULL. */
void shm_file_sweep_one(const char *path, bool with_remains, GPtrArray *removed);

/* Removes the segments in a folder that belong to this user, whose names begin with prefix, and in
 * which no member lives. Their FIFOs are removed with them: a process that is killed, or that ends
 * with _exit(), leaves its FIFO behind. A FIFO without a segment is removed, too, and so are the
 * files of a process that died while it made a segment. Adds the paths of the removed files to
 * `removed`, which may be NULL. */
void shm_file_sweep(const char *dir, const char *prefix, GPtrArray *removed);

enum shm_file_kind {
    SHM_FILE_SEGMENT,    /* a segment of this version */
    SHM_FILE_OTHER,      /* a segment of another version, or a damaged one */
    SHM_FILE_UNFINISHED, /* an empty file, or a segment that is just made */
    SHM_FILE_FOREIGN,    /* something else */
};

/* What the contents of a file say. A file that cannot be read is foreign. */
enum shm_file_kind shm_file_kind(int fd);

/* Whether fd and path are the same file. */
bool shm_file_is_at(int fd, const char *path);

/* The path of a member's FIFO, which wakes the member. The caller frees it. */
char *shm_wake_path(const char *path, unsigned id);
/* Removes a FIFO. False: there is none at this path. The segment of another wire may have the path
 * of a FIFO (the wire "lab.3" that of member 3 of "lab"): it stays. */
bool shm_file_unlink_fifo(const char *fifo);

/* Sets *err from errno. Returns false. */
bool shm_file_fail(GError **err, const char *path, const char *what);
/* The same if memory could not be allocated: for a full file system, the message also says how
 * large it is, and what to do in a container. */
bool shm_file_fail_memory(GError **err, const char *path, const char *what);

#endif
