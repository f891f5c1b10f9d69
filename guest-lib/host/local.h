/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs an HCA inside this process: a function on a wire. The threads that use the HCA drive it in
 * real time; in a simulation, the owner of the virtual clock drives it.
 *
 * Bus addresses are process addresses. One lock is taken around every call into the firmware, so
 * all functions here may be called from any thread. A thread that rings a doorbell or polls lets
 * the HCA work in this thread (local_run()). A helper thread takes over when no other thread does,
 * so that a passive target makes progress. If there is nothing to do, the helper sleeps in poll()
 * on the wire, on a wake-up descriptor, and until the next timer, so an idle process uses no
 * processor time.
 *
 * If several threads use the HCA, one of them works for all, as long as it calls again and again.
 * Then a doorbell of another thread only leaves a note for that thread, and a poll of an empty CQ
 * does nothing (progress.c).
 *
 * While a thread polls, frames raise no wake-up. Of the send doorbells between two polls, only the
 * first and then each eighth is worked on at once. The helper only checks once a millisecond
 * whether that thread still polls. If it finds that frames waited although that thread had the
 * processor, the program waits for its memory to change and polls a CQ in between: then the helper
 * works until the thread has polled for some time. If doorbells waited, or the program arms CQs,
 * each doorbell is worked on at once for a while. While no thread calls at all, the helper looks
 * for more frames for some microseconds after each frame before it sleeps.
 *
 * The thread that ran the HCA reports interrupts to a callback, without the lock. No thread is
 * cancelled inside these functions.
 *
 * In a world (inproc.h) there is no helper. A doorbell is only noted, and a poll does nothing: the
 * HCA works, and interrupts are reported, when the world is stepped. Only a thread that waits for a
 * command steps the world.
 */
#ifndef HCASIM_GUEST_LIB_HOST_LOCAL_H
#define HCASIM_GUEST_LIB_HOST_LOCAL_H

#include <glib.h>
#include "fw/fw.h"
#include "guest-lib/drv/pci.h"
#include "guest-lib/host/inproc.h"
#include "wire/capture_blocks.h"

struct local_hca;

struct local_config {
    struct fw_config fw;
    struct inproc_world *world;  /* the world whose clock drives the HCA; NULL: real time */
    struct wire_port *port;      /* one end of a cable, closed with the HCA; NULL: opens wire */
    const char *wire;            /* URI (wire/open.h) */
    const char *capture;         /* file for all frames, or NULL */
    const char *capture_name;    /* name of the interface in that file, or NULL */
    const char *capture_run;     /* the run whose frames the file keeps (wire/capture.h), or NULL */
    const char *capture_process; /* the process in its comments, or NULL */
    bool capture_comments;
    struct capture_ring capture_ring; /* size 0: the capture is one file */
    const char *trace_file;           /* file for the events of the trace, or NULL */
    /* Rules about its frames and its device (wire/fault/fault.h), and which random numbers they
     * draw. NULL: it has no faults, and cannot get some later. */
    const char *faults;
    uint64_t fault_seed, fault_stream;
    /* The host's IP addresses, as GIDs. The HCA announces them and answers questions for them
     * (host/neighbours.h). */
    const uint8_t (*gids)[16];
    unsigned num_gids;
    int log_level;    /* lines of this enum hca_log_level and below go to stderr; -1: none */
    const char *name; /* appears in log lines */
};

/* Makes an HCA. NULL with *err: the configuration is bad, or the wire cannot be opened. No thread
 * runs yet. */
struct local_hca *local_hca_new(const struct local_config *config, GError **err);
/* Stops the helper. Interrupts are not reported from now on. If the driver waits for the HCA, the
 * HCA works in the driver's thread. */
void local_stop(struct local_hca *hca);
/* To be called before the HCA ends, while threads may still call. From now on only the thread that
 * calls as the driver gets in. Waits until all other threads have left. */
void local_shut(struct local_hca *hca);
/* Stops the helper, unplugs the cable, and frees the firmware and the device. No other thread may
 * be in a call, unless local_shut() was called: then later calls of the program's threads do
 * nothing. */
void local_hca_end(struct local_hca *hca);
/* Frees the rest of an HCA that has ended. No thread may call any more. */
void local_hca_free(struct local_hca *hca);
/* Takes the HCA's lock, for a look at the firmware or a change of it from outside. NULL: the HCA
 * was removed or has ended, and the lock is not held. */
struct fw *local_lock_fw(struct local_hca *hca);
/* Releases the lock, and lets the HCA work on what has changed. */
void local_unlock_fw(struct local_hca *hca);
/* Performs a function-level reset. */
void local_reset(struct local_hca *hca);
/* Hot removal of the function: its cable and its helper are gone, it does no work any more, and
 * writes to it have no effect. Other threads may be in any other call. To be called once. */
void local_remove(struct local_hca *hca);
/* Change the rules of an HCA that has faults, from any thread. local_list_faults(): the caller
 * frees the text; NULL: the HCA has none. */
bool local_add_faults(struct local_hca *hca, const char *rules, GError **err);
char *local_list_faults(struct local_hca *hca);
bool local_remove_fault(struct local_hca *hca, unsigned number);
/* Writes a line to standard error if the log has this level. Any thread. */
bool local_logs(const struct local_hca *hca, enum hca_log_level level);
void local_log(const struct local_hca *hca, enum hca_log_level level, const char *line);
/* Adds an event of the program to the trace file (wire/trace_file.h), if there is one. Any thread.
 */
void local_trace(struct local_hca *hca, const char *event, size_t len);
/* To be called around fork(), in the parent: the helper sleeps meanwhile. */
void local_before_fork(struct local_hca *hca);
void local_after_fork(struct local_hca *hca);
/* To be called in the child of fork(). From now on doorbells and turns do nothing, because wire and
 * helper are the parent's. After this, only local_is_ours() may be called. */
void local_hca_abandon(struct local_hca *hca);
/* False: local_hca_abandon() was called. The first call that returns false writes a message to
 * standard error. */
bool local_is_ours(struct local_hca *hca);

/* Starts the helper. irq is called after the HCA raised interrupts, with one bit for each vector.
 * scan is called in every turn, with the lock held, while there are things to look at
 * (local_unlock_scan()); it returns true if it rang a doorbell (local_mmio_locked()). False: no
 * thread could be made (errno). */
bool local_start(struct local_hca *hca, void (*irq)(void *opaque, uint32_t vectors),
                 bool (*scan)(void *opaque, uint64_t now_ns), void *opaque);

/* To be called around changes of the things that scan looks at. things: how many there are now.
 * While there are any, scan runs again and again, even if no thread calls: at once if there are
 * more things than before, because the helper is woken; then as often as helper.c says. */
void local_lock_scan(struct local_hca *hca);
void local_unlock_scan(struct local_hca *hca, unsigned things);
/* Whether there are things for scan to look at. */
bool local_is_watched(const struct local_hca *hca);

/* Finds the MAC address of a GID on the wire. True: it is in *mac. False: the wire is being asked;
 * the caller tries again now and then (host/neighbours.h). derived, or NULL: the MAC address that
 * the GID has by convention; it is returned at once if a host with that MAC address is on the
 * wire. */
bool local_find_neighbour(struct local_hca *hca, const uint8_t gid[16], const uint8_t *derived,
                          uint8_t mac[6]);
/* Sets the callback that is called, with the lock held, when such a question has an answer; the
 * callback only makes a note. There is one callback; NULL: none. */
void local_on_neighbour(struct local_hca *hca, void (*answered)(void *opaque), void *opaque);
/* wire_knows(): another host of the wire is known to have this address. */
bool local_knows(struct local_hca *hca, const uint8_t mac[6]);
/* wire_tells_hosts(): local_knows() has an answer for this wire. */
bool local_tells_hosts(struct local_hca *hca);
/* Sets the callback that is called, with the lock held, when a host of the wire may have ended; the
 * callback only makes a note. There is one callback; NULL: none. From then on other hosts that
 * watch are told of this host's end. False: the wire cannot report ends, so the caller must check
 * by itself. The two functions below are wire_host_at() and wire_has_ended(). */
bool local_on_host_end(struct local_hca *hca, void (*ended)(void *opaque), void *opaque);
uint64_t local_host_at(struct local_hca *hca, const uint8_t mac[6]);
bool local_has_ended(struct local_hca *hca, uint64_t host);

/* Lets the HCA work, unless another thread does. True: something may have come since the caller
 * last looked, so it should look again. */
bool local_run(struct local_hca *hca);
/* For a poll that found completions, which need not let the HCA work. A program whose polls always
 * find something must still be recognized as one that polls; this call sees to that. */
void local_run_now_and_then(struct local_hca *hca);
/* A thread that polled is about to sleep until an event comes: the helper takes over at once. */
void local_rest(struct local_hca *hca);
/* A doorbell of 8 bytes that arms something; the HCA works on it at once. False: the HCA belongs to
 * the parent of this process. */
bool local_doorbell(struct local_hca *hca, uint64_t offset, uint64_t value);
/* A doorbell that may wait for the next poll, if the program polls. */
bool local_doorbell_soon(struct local_hca *hca, uint64_t offset, uint64_t value);
/* To be called when the process is about to end: finishes the work that doorbells asked for. */
void local_finish(struct local_hca *hca);
/* Reports the interrupts that the driver's own calls raised, which report none themselves. The
 * caller must not hold a lock that irq takes. */
void local_tell_irq(struct local_hca *hca);
/* Writes a doorbell from scan, which is called with the lock held. */
void local_mmio_locked(struct local_hca *hca, uint64_t offset, uint64_t value);

/* Maps size bytes of the HCA's device memory from that offset in BAR0 on once more, for a program;
 * both are multiples of a page, and inside the memory. The caller unmaps them by munmap(), also
 * after the HCA has ended. NULL with errno. */
void *local_map_device_memory(struct local_hca *hca, uint64_t bar_offset, size_t size);

/* To be called when memory of a GPU was claimed for the HCA (gpu.h), before the HCA is told of it.
 */
void local_reach_gpu(struct local_hca *hca);

/* The driver's view of the HCA. */
struct pci_dev local_pci(struct local_hca *hca);

#endif
