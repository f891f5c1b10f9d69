/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See wire/look.h. The file is read with pread(), so a file that a process truncates meanwhile
 * gives short reads and no SIGBUS. Which bytes are locked comes from the kernel (F_OFD_GETLK).
 * Which process holds a lock is in /proc/PID/fdinfo, because the lock belongs to an open file
 * description.
 */
#include "wire/shm/look.h"
#include "wire/shm/file.h"
#include "wire/shm/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- one segment ------------------------------------------------------------------------------- */

/* Reads into a buffer; what the file does not have is 0. */
static void look_read(int fd, off_t offset, void *to, size_t len)
{
    ssize_t n = pread(fd, to, len, offset);
    size_t got = n > 0 ? (size_t)n : 0;

    memset((char *)to + got, 0, len - got);
}

/* Appends the numbers of the locked bytes among these, less `base`. */
static void look_find_locked(int fd, off_t first, off_t len, off_t base, GArray *found)
{
    if (!shm_is_locked(fd, first, len)) {
        return;
    }
    if (len == 1) {
        unsigned n = (unsigned)(first - base);

        g_array_append_val(found, n);
        return;
    }
    look_find_locked(fd, first, len / 2, base, found);
    look_find_locked(fd, first + len / 2, len - len / 2, base, found);
}

/* Fills in the addresses of member id. */
static void look_read_macs(int fd, unsigned id, struct wire_tenant *t)
{
    uint32_t places[SHM_MACS];

    look_read(fd, (off_t)offsetof(struct shm_header, member[id].mac), places, sizeof(places));
    for (unsigned i = 0; i < SHM_MACS; i++) {
        uint32_t place = places[i] - 1;
        uint64_t word;

        if (!places[i] || place >= SHM_FDB) {
            continue;
        }
        look_read(fd, (off_t)(offsetof(struct shm_header, fdb) + place * sizeof(word)), &word,
                  sizeof(word));
        if (shm_tag_id(word) != id) {
            continue;
        }
        for (unsigned b = 0; b < sizeof(t->mac) && !t->num_macs; b++) {
            t->mac[b] = (uint8_t)(word >> (SHM_ID_BITS + 40 - 8 * b));
        }
        t->num_macs++;
    }
}

static void look_add_members(int fd, GArray *tenants)
{
    g_autoptr(GArray) alive = g_array_new(FALSE, FALSE, sizeof(unsigned));
    unsigned next = 0;

    look_find_locked(fd, 0, SHM_MEMBERS, 0, alive);
    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        struct wire_tenant t = {.byte = id};
        uint32_t attached;

        t.alive = next < alive->len && g_array_index(alive, unsigned, next) == id;
        next += t.alive;
        look_read(fd, (off_t)offsetof(struct shm_header, member[id].attached), &attached,
                  sizeof(attached));
        if (!t.alive && !attached) {
            continue;
        }
        look_read_macs(fd, id, &t);
        g_array_append_val(tenants, t);
    }
}

static void look_add_numbers(int fd, GArray *tenants)
{
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(unsigned));

    look_find_locked(fd, SHM_LOCK_NUMBERS + 1, WIRE_NUMBER_MAX, SHM_LOCK_NUMBERS, numbers);
    for (unsigned i = 0; i < numbers->len; i++) {
        struct wire_tenant t = {.number = g_array_index(numbers, unsigned, i), .alive = true};

        t.byte = SHM_LOCK_NUMBERS + t.number;
        g_array_append_val(tenants, t);
    }
}

static bool look_can_see_locks(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &lock) == 0;
}

static void look_fail(struct wire_view *view)
{
    view->condition = WIRE_UNREADABLE;
    view->why = errno;
}

static void look_read_file(int fd, struct wire_view *view)
{
    GArray *tenants = g_array_new(FALSE, FALSE, sizeof(struct wire_tenant));
    enum shm_file_kind kind = shm_file_kind(fd);
    bool lives;

    if (kind == SHM_FILE_FOREIGN) {
        view->condition = WIRE_FOREIGN;
    } else if (!look_can_see_locks(fd)) {
        look_fail(view);
    } else {
        lives = shm_is_locked(fd, 0, SHM_LOCK_JOIN);
        if (kind == SHM_FILE_SEGMENT) {
            look_add_members(fd, tenants);
            look_add_numbers(fd, tenants);
        }
        view->condition = !lives                     ? WIRE_LEFT
                          : kind == SHM_FILE_SEGMENT ? WIRE_IN_USE
                                                     : WIRE_OTHER_VERSION;
    }
    view->num_tenants = tenants->len;
    view->tenants = (struct wire_tenant *)(void *)g_array_free(tenants, FALSE);
}

/* Whether this is the path of a FIFO of a member whose segment is there. */
static bool look_is_fifo_of_segment(const char *path)
{
    const char *id = strrchr(path, '.');
    g_autofree char *segment = id ? g_strndup(path, (gsize)(id - path)) : NULL;
    struct stat st;

    return segment && lstat(segment, &st) == 0 && S_ISREG(st.st_mode);
}

struct wire_view *wire_shm_look(const char *path, const char *name)
{
    struct wire_view *view;
    struct stat st;
    int fd;

    if (lstat(path, &st) < 0 || (S_ISFIFO(st.st_mode) && look_is_fifo_of_segment(path))) {
        return NULL;
    }
    view = g_new0(struct wire_view, 1);
    view->name = g_strdup(name);
    view->path = g_strdup(path);
    view->bytes = (uint64_t)st.st_blocks * 512;
    /* Members write to the mapped file, which does not change its time. */
    view->made = st.st_mtime;
    if (S_ISFIFO(st.st_mode)) {
        view->condition = WIRE_LEFT;
        return view;
    }
    if (!S_ISREG(st.st_mode)) {
        view->condition = WIRE_FOREIGN;
        return view;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        look_fail(view);
        return view;
    }
    look_read_file(fd, view);
    close(fd);
    return view;
}

/* -- processes --------------------------------------------------------------------------------- */

/* A process that holds locks on bytes of a file. */
struct look_lock {
    pid_t pid;
    off_t first, last;
};

/* Appends the locks that one descriptor of a process holds. */
static void look_read_fdinfo(pid_t pid, const char *fd, GArray *locks)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fdinfo/%s", (int)pid, fd);
    FILE *file = fopen(path, "re");
    char line[256];

    while (file && fgets(line, sizeof(line), file)) {
        struct look_lock lock = {.pid = pid};
        long long first, last;

        if (sscanf(line, "lock: %*d: OFDLCK %*s WRITE %*s %*s %lld %lld", &first, &last) == 2) {
            lock.first = first;
            lock.last = last;
            g_array_append_val(locks, lock);
        }
    }
    if (file) {
        fclose(file);
    }
}

/* Reads the name that the kernel has for a process. */
static void look_read_program(pid_t pid, char program[WIRE_PROGRAM_MAX])
{
    g_autofree char *path = g_strdup_printf("/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");

    if (!file || !fgets(program, WIRE_PROGRAM_MAX, file)) {
        program[0] = 0;
    }
    program[strcspn(program, "\n")] = 0;
    if (file) {
        fclose(file);
    }
}

/* The tenants whose bytes these locks cover get their process. */
static void look_settle(struct wire_view *view, const GArray *locks)
{
    for (unsigned i = 0; i < view->num_tenants; i++) {
        struct wire_tenant *t = &view->tenants[i];

        for (unsigned k = 0; t->alive && k < locks->len; k++) {
            const struct look_lock *lock = &g_array_index(locks, struct look_lock, k);

            if (lock->first <= t->byte && t->byte <= lock->last) {
                t->pid = lock->pid;
                look_read_program(lock->pid, t->program);
            }
        }
    }
}

/* Finds the descriptors of a process that refer to one of the files. */
static void look_at_process(pid_t pid, const GPtrArray *views, const struct stat *files)
{
    g_autofree char *folder = g_strdup_printf("/proc/%d/fd", (int)pid);
    g_autoptr(GArray) locks = g_array_new(FALSE, FALSE, sizeof(struct look_lock));
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 ||
            !S_ISREG(st.st_mode)) {
            continue;
        }
        for (unsigned i = 0; i < views->len; i++) {
            if (st.st_ino == files[i].st_ino && st.st_dev == files[i].st_dev) {
                g_array_set_size(locks, 0);
                look_read_fdinfo(pid, entry->d_name, locks);
                look_settle(g_ptr_array_index(views, i), locks);
            }
        }
    }
    if (dir) {
        closedir(dir);
    }
}

void wire_shm_find_processes(const GPtrArray *views)
{
    g_autofree struct stat *files = g_new0(struct stat, views->len);
    DIR *dir = opendir("/proc");
    const struct dirent *entry;

    for (unsigned i = 0; i < views->len; i++) {
        const struct wire_view *view = g_ptr_array_index(views, i);

        if (lstat(view->path, &files[i]) < 0) {
            files[i] = (struct stat){0}; /* no file has this number */
        }
    }
    while (dir && (entry = readdir(dir))) {
        if (g_ascii_isdigit(entry->d_name[0])) {
            look_at_process((pid_t)strtol(entry->d_name, NULL, 10), views, files);
        }
    }
    if (dir) {
        closedir(dir);
    }
}
