/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An HCA in this process: a function on a wire, driven in real time by the threads that use it, or
 * on a virtual clock by who owns that.
 *
 * Bus addresses are process addresses. One lock is taken around every call into the firmware, so
 * all functions here may be called from any thread. Who rings a doorbell or polls lets the HCA work
 * in its own thread (local_run()). A helper thread takes over when nobody does, so that a passive
 * target makes progress; when there is nothing to do it sleeps in poll() on the wire, on a wake-up
 * descriptor, and until the next timer: an idle process uses no processor time.
 *
 * Of several threads one works for the others, too, as long as it comes again and again: a doorbell
 * of another one is a note for it, and an empty poll nothing (progress.c).
 *
 * While some thread polls, frames raise no wake-up, of the send doorbells between two polls only
 * the first and then each eighth is worked on at once, and the helper only looks once a millisecond
 * whether that thread still polls. If it finds that frames waited although that thread had the
 * processor, the program waits for its memory to change and polls a CQ in between: then the helper
 * stays until the thread has polled for some time. If doorbells waited, or the program arms CQs,
 * each is worked on at once for a while. While no thread calls at all, the helper looks for some
 * microseconds after each frame before it sleeps.
 *
 * Interrupts are told to a callback, without the lock, by the thread that ran the HCA. No thread is
 * cancelled inside.
 *
 * In a world (inproc.h) all of that is the world's: there is no helper, a doorbell is only noted, a
 * poll does nothing, and the HCA works, and interrupts are told, when the world is stepped. Only
 * who waits for a command steps it.
 */
#ifndef HCASIM_GUEST_LIB_HOST_LOCAL_H
#define HCASIM_GUEST_LIB_HOST_LOCAL_H

#include <glib.h>
#include "fw/fw.h"
#include "guest-lib/drv/pci.h"
#include "guest-lib/host/inproc.h"

struct local_hca;

struct local_config {
    struct fw_config fw;
    struct inproc_world *world; /* whose clock it lives on; NULL: in real time */
    struct wire_port *port;     /* its end of a cable, which it will close; NULL: that of wire */
    const char *wire;           /* URI (wire/open.h) */
    const char *capture;        /* file for all frames, or NULL */
    /* the host's IP addresses, as GIDs: to be announced, and answered for (host/neighbours.h) */
    const uint8_t (*gids)[16];
    unsigned num_gids;
    int log_level;    /* enum hca_log_level up to which lines go to stderr; -1: none */
    const char *name; /* in log lines */
};

/* NULL with *err: bad configuration, or the wire cannot be opened. No thread runs yet. */
struct local_hca *local_hca_new(const struct local_config *config, GError **err);
/* Stops the helper; interrupts are told to nobody from now on. What the driver waits for the HCA
 * does in its thread. */
void local_stop(struct local_hca *hca);
/* It is about to end, but threads may come yet: from now on none of them gets in but the one that
 * calls as the driver, and those that were in are out. */
void local_shut(struct local_hca *hca);
/* Stops the helper, pulls the cable, and frees what is in it. Nobody else may be in a call, unless
 * it is shut: then what threads of the program may call afterwards finds nothing to do. */
void local_hca_end(struct local_hca *hca);
/* Frees what is left of one that has ended. Nobody comes any more. */
void local_hca_free(struct local_hca *hca);
/* A function-level reset. */
void local_reset(struct local_hca *hca);
/* The function is pulled out: its cable and its helper are gone, nothing in it works any more, and
 * what is written to it goes nowhere. Any thread may be in any other call. Once. */
void local_remove(struct local_hca *hca);
/* Around fork(), in the parent: the helper sleeps meanwhile. */
void local_before_fork(struct local_hca *hca);
void local_after_fork(struct local_hca *hca);
/* In the child of fork(): from now on doorbells and turns do nothing, since wire and helper are the
 * parent's. Nothing else may be called but local_is_ours(). */
void local_hca_abandon(struct local_hca *hca);
/* False: it was abandoned, which the first call says on standard error. */
bool local_is_ours(struct local_hca *hca);

/* irq runs whenever the HCA raised interrupts, with a bit for each vector. scan runs in every
 * round, with the lock held, while there is something to look at (local_lock_scan()), and returns
 * true if it rang a doorbell (local_mmio_locked()). Starts the helper. False: no thread could be
 * made (errno). */
bool local_start(struct local_hca *hca, void (*irq)(void *opaque, uint32_t vectors),
                 bool (*scan)(void *opaque), void *opaque);

/* Around changes of what scan looks at. things: how many there are now. While there are any, scan
 * runs again and again, though nobody calls: at once where there are more than before, for the
 * helper is woken, then as often as helper.c says. */
void local_lock_scan(struct local_hca *hca);
void local_unlock_scan(struct local_hca *hca, unsigned things);
/* Whether there are any. */
bool local_is_watched(const struct local_hca *hca);

/* Where an address is on the wire. True: at *mac. False: it is being asked for; who wants to know
 * asks again, now and then (host/neighbours.h). derived, or NULL: where the address is by
 * convention, which counts at once if somebody on the wire has that. */
bool local_find_neighbour(struct local_hca *hca, const uint8_t gid[16], const uint8_t *derived,
                          uint8_t mac[6]);
/* Who is told that such a question has its answer, with the lock held: he only notes it. One, or
 * NULL: nobody. */
void local_on_neighbour(struct local_hca *hca, void (*answered)(void *opaque), void *opaque);
/* Who is told that a host of the wire may have ended, with the lock held: he only notes it. Then
 * those who are told of others' ends are told of this one's. One, or NULL: nobody. False: nothing
 * is told, so who wants to know looks. The others are wire_host_at() and wire_has_ended(). */
bool local_on_host_end(struct local_hca *hca, void (*ended)(void *opaque), void *opaque);
uint64_t local_host_at(struct local_hca *hca, const uint8_t mac[6]);
bool local_has_ended(struct local_hca *hca, uint64_t host);

/* Lets the HCA work unless another thread does. True: something may have come since the caller
 * looked, so he looks again. */
bool local_run(struct local_hca *hca);
/* A poll found completions and need not let the HCA work; but a program of which no poll is in vain
 * is one that polls, too. */
void local_run_now_and_then(struct local_hca *hca);
/* Who polled is about to sleep until an event comes: the helper takes over at once. */
void local_rest(struct local_hca *hca);
/* A doorbell of 8 bytes that arms something; the HCA works on it at once. False: it is not this
 * process's. */
bool local_doorbell(struct local_hca *hca, uint64_t offset, uint64_t value);
/* One that need not be worked on before the next poll of who polls. */
bool local_doorbell_soon(struct local_hca *hca, uint64_t offset, uint64_t value);
/* The process is about to end: what doorbells rang for, and has not been worked on, is now. */
void local_finish(struct local_hca *hca);
/* Tells of the interrupts that the driver's own calls raised, which tell nobody. Without the lock
 * of whatever irq takes. */
void local_tell_irq(struct local_hca *hca);
/* The same from scan, which is called with the lock held. */
void local_mmio_locked(struct local_hca *hca, uint64_t offset, uint64_t value);

/* The driver's view. */
struct pci_dev local_pci(struct local_hca *hca);

#endif
