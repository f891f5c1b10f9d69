/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the members of a segment that have ended: their processes are gone, and they did not leave.
 *
 * If a process ends, the kernel closes its files, and tells each process that watches the segment's
 * file (inotify: IN_CLOSE_WRITE). The kernel does so a moment before it releases the locks that
 * mark living members (wire/shm/file.h), so a watcher must check again a little later. Each member
 * that joins or leaves wakes each watcher once.
 */
#include "wire/shm/port.h"

#include <sys/epoll.h>
#include <sys/inotify.h>

bool shm_ends_watch(struct wire_port *port)
{
    struct shm_port *sp = shm_port_of(port);
    struct epoll_event event = {.events = EPOLLIN};

    if (sp->ends_fd >= 0) {
        return true;
    }
    /* Stays set if the watch fails: this member then looks for ends by itself (door.c), and others
     * are told of its end all the same. */
    atomic_store(&sp->self->watches, sp->seg.gen);
    sp->ends_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (sp->ends_fd >= 0 &&
        inotify_add_watch(sp->ends_fd, sp->seg.path, IN_CLOSE_WRITE | IN_DONT_FOLLOW) >= 0 &&
        epoll_ctl(sp->epoll_fd, EPOLL_CTL_ADD, sp->ends_fd, &event) == 0) {
        return true;
    }
    if (sp->ends_fd >= 0) {
        close(sp->ends_fd);
        sp->ends_fd = -1;
    }
    return false;
}

void shm_ends_look(struct shm_port *sp)
{
    char events[1024];

    /* Reads once: if more events wait, the descriptor stays readable and wakes the port again. So
     * no other process can keep the caller here. */
    if (sp->ends_fd >= 0 && read(sp->ends_fd, events, sizeof(events)) > 0) {
        sp->ended = true;
    }
}

void shm_ends_tell(struct shm_port *sp)
{
    sp->ended = false;
    if (sp->port.client && sp->port.client->host_ended) {
        sp->port.client->host_ended(sp->port.opaque);
    }
}

uint64_t shm_ends_host_at(struct wire_port *port, const uint8_t mac[6])
{
    struct shm_port *sp = shm_port_of(port);
    unsigned id = shm_tx_find_member(sp, mac);
    uint32_t gen;

    if (id == SHM_NOBODY || id == sp->seg.id) {
        return 0;
    }
    gen = atomic_load(&shm_member_at(sp, id)->attached);
    return gen && atomic_load(&shm_member_at(sp, id)->watches) == gen ? shm_tag(id, gen) : 0;
}

bool shm_ends_has_ended(struct wire_port *port, uint64_t host)
{
    struct shm_port *sp = shm_port_of(port);
    unsigned id = shm_tag_id(host);
    uint64_t gen = host >> SHM_ID_BITS;
    struct shm_member *m;

    if (id >= SHM_MEMBERS || id == sp->seg.id) {
        return false;
    }
    m = shm_member_at(sp, id);
    if (atomic_load(&m->gen) == gen && atomic_load(&m->attached) == gen) {
        if (shm_segment_alive(&sp->seg, id)) {
            return false;
        }
        shm_segment_detach_dead(&sp->seg, id);
    }
    return atomic_load(&m->left) != gen;
}
