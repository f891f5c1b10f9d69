/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers on a shared-memory segment. The holder of a number holds the lock on the file's byte for
 * it, as a member does for its place, and keeps the file in place as a member does.
 */
#include "wire/shm/number.h"
#include "wire/number.h"
#include "wire/shm/file.h"
#include "wire/shm/segment.h"

#include <fcntl.h>
#include <unistd.h>

struct shm_number {
    struct wire_number head;
    char *path;
    int fd;
};

static bool shm_number_is_held(const struct wire_number *number)
{
    return shm_file_is_open(((const struct shm_number *)number)->fd);
}

static void shm_number_end(struct wire_number *head, bool is_owner)
{
    struct shm_number *number = (struct shm_number *)head;

    if (is_owner) {
        shm_unlock(number->fd, SHM_LOCK_NUMBERS + (off_t)head->number);
        shm_file_left(number->fd, number->path);
        shm_file_close(number->fd);
    }
    g_free(number->path);
    g_free(number);
}

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
    struct shm_number *number;
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
    number = g_new0(struct shm_number, 1);
    *number =
        (struct shm_number){{n, getpid(), shm_number_is_held, shm_number_end}, g_strdup(path), fd};
    return &number->head;
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
