/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers on a shared-memory segment. The holder of a number holds the lock on the file's byte for
 * it, as a member does for its place, and keeps the file in place as a member does.
 */
#include "wire/shm/number.h"
#include "wire/shm/file.h"
#include "wire/shm/segment.h"

#include <fcntl.h>
#include <unistd.h>

struct wire_number {
    char *path;
    int fd; /* -1: nothing holds the number */
    unsigned number;
    pid_t pid; /* the process that owns it; a child of fork() has only a copy of this structure */
};

static bool shm_number_is_free(int fd, off_t byte)
{
    return !shm_is_locked(fd, byte, 1);
}

/* The first number from first to last for whose byte can_be_had() is true. 0: none. */
static unsigned shm_number_find(int fd, unsigned first, unsigned last,
                                bool (*can_be_had)(int fd, off_t byte))
{
    for (unsigned n = first; n <= last; n++) {
        if (can_be_had(fd, SHM_LOCK_NUMBERS + (off_t)n)) {
            return n;
        }
    }
    return 0;
}

struct wire_number *wire_shm_number_take(const char *path, bool own_only, unsigned wanted,
                                         GError **err)
{
    int fd = shm_file_open(path, own_only, err);
    struct wire_number *number;
    unsigned n;

    if (fd < 0) {
        return NULL;
    }
    n = shm_number_find(fd, wanted ? wanted : 1, wanted ? wanted : WIRE_NUMBER_MAX, shm_lock);
    shm_file_joined(fd);
    if (!n) {
        if (wanted) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_TAKEN, "%s: number %u is taken", path, wanted);
        } else {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_TAKEN, "%s: all numbers are taken", path);
        }
        shm_file_left(fd, path);
        shm_file_close(fd);
        return NULL;
    }
    number = g_new0(struct wire_number, 1);
    *number = (struct wire_number){g_strdup(path), fd, n, getpid()};
    return number;
}

struct wire_number *wire_number_unheld(unsigned n)
{
    struct wire_number *number = g_new0(struct wire_number, 1);

    *number = (struct wire_number){NULL, -1, n, getpid()};
    return number;
}

unsigned wire_shm_number_look(const char *path, unsigned beyond)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    unsigned n;

    if (fd < 0) {
        return beyond < WIRE_NUMBER_MAX ? beyond + 1 : 0; /* no wire yet */
    }
    n = shm_number_find(fd, beyond + 1, WIRE_NUMBER_MAX, shm_number_is_free);
    close(fd);
    return n;
}

unsigned wire_number_get(const struct wire_number *number)
{
    return number->number;
}

bool wire_number_is_held(const struct wire_number *number)
{
    return number->pid == getpid() && (number->fd < 0 || shm_file_is_open(number->fd));
}

void wire_number_release(struct wire_number *number)
{
    if (number->pid == getpid() && number->fd >= 0) {
        shm_unlock(number->fd, SHM_LOCK_NUMBERS + (off_t)number->number);
        shm_file_left(number->fd, number->path);
        shm_file_close(number->fd);
    }
    g_free(number->path);
    g_free(number);
}
