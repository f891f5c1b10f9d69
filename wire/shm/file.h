/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a shared-memory segment: opened or made, its locks, and its end.
 *
 * Who lives is what the kernel says: a member holds a lock (fcntl, open file description) on a byte
 * of the file, and the kernel lets go of it however the process ends. A child of fork() shares the
 * description and would hold the lock for its parent; so its descriptors of such files are closed.
 * (A mapping refers to a description, too, and is made from another one.)
 *
 * One byte more is the lock under which the file is looked at, made anew or removed, and places in
 * it are given out. It is held for a few system calls. Whoever wants it waits for SHM_JOIN_WAIT_MS
 * at most, and nobody who leaves waits for it: who has it looks again, after giving it back,
 * whether the file is still needed.
 */
#ifndef HCASIM_WIRE_SHM_FILE_H
#define HCASIM_WIRE_SHM_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#define SHM_JOIN_WAIT_MS 5000

/* Takes the lock of a byte, if nobody else has it. */
bool shm_lock(int fd, off_t byte);
void shm_unlock(int fd, off_t byte);

/* Whether another open file description holds one of the bytes. Unknown counts as held. */
bool shm_is_locked(int fd, off_t byte, off_t len);

/* posix_fallocate() that goes on after signals. Sets errno. */
bool shm_allocate(int fd, off_t offset, size_t len);

/*
 * Opens the segment at path, making it (mode 0600) if it is not there or nobody lives in it.
 * own_only: fails if the file belongs to another user. Returns the descriptor, with the join lock
 * taken, for the caller to take a place and then call shm_file_joined(). -1: *err says why.
 */
int shm_file_open(const char *path, bool own_only, GError **err);
void shm_file_joined(int fd);
/* Another descriptor of the same file, for mappings; while the join lock is taken. -1: errno. */
int shm_file_open_again(int fd, const char *path);
/* Whether the program has left it open. */
bool shm_file_is_open(int fd);
/* Closes what shm_file_open() returned, if the program has not done so and had that number for
 * another file since. */
void shm_file_close(int fd);

/* Once this description holds no place any more: removes the file at path, if it is this one and
 * nobody lives in it. Never waits. */
void shm_file_left(int fd, const char *path);

/* Removes the segments in a folder, of this user and with names that begin with prefix, in which
 * nobody lives, with what they were woken by: a process that is killed, or leaves by _exit(),
 * leaves its FIFO there, which goes with the segment, or with the next one at its place. */
void shm_file_sweep(const char *dir, const char *prefix);

/* Whether what is open is what has this name. */
bool shm_file_is_at(int fd, const char *path);

/* The FIFO of a member. The caller frees it. */
char *shm_wake_path(const char *path, unsigned id);

/* Sets *err from errno. Returns false. */
bool shm_file_fail(GError **err, const char *path, const char *what);

#endif
