/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts inside this process, on one virtual clock.
 *
 * A world holds the clock and any number of members: the HCAs below, which tests bring up with the
 * driver; the HCAs of the verbs library (local.h); a test's own members. inproc_step() runs each
 * member that has something to do, in the order in which they joined. If no member has anything to
 * do, the clock jumps to the next timer. So a run is deterministic, and a timeout of seconds costs
 * no time.
 *
 * Bus addresses of the HCAs here are process addresses, but only addresses inside the HCA's own DMA
 * arena are accessible.
 */
#ifndef HCASIM_GUEST_LIB_HOST_INPROC_H
#define HCASIM_GUEST_LIB_HOST_INPROC_H

#include <glib.h>
#include "fw/fw.h"
#include "guest-lib/drv/pci.h"

#define INPROC_VECTORS    64
#define INPROC_ARENA_SIZE (256ul << 20)

/*
 * Makes the choices that a real host makes freely: in which order the members run, how much of its
 * work an HCA does in a turn, how long a turn or an interrupt is delayed. If the same answers are
 * given in the same order, a world repeats exactly.
 */
struct inproc_whims {
    uint64_t (*below)(void *opaque, uint64_t n); /* a number below n */
    void *opaque;
    uint64_t late_ns; /* the longest delay of a turn or an interrupt */
};

struct inproc_world {
    uint64_t now_ns;
    size_t arena_size;                /* of HCAs made from now on; initially INPROC_ARENA_SIZE */
    const struct inproc_whims *whims; /* NULL: no random choices */
    GPtrArray *members;               /* struct inproc_member */
    GPtrArray *hcas;                  /* struct inproc_hca; freed with the world */
};

/* Anything that runs on the clock. It is embedded in the member's own structure. */
struct inproc_member {
    /* Does what can be done now. False: there was nothing to do. */
    bool (*run)(struct inproc_member *member, uint64_t now_ns);
    /* When the member has to run again, whatever happens before. UINT64_MAX: never. */
    uint64_t (*deadline_ns)(const struct inproc_member *member);
};

struct inproc_hca {
    struct inproc_member member; /* first */
    struct inproc_world *world;
    struct fw *fw;
    bool woken;
    uint64_t deadline_ns;
    uint8_t *arena;
    size_t arena_size;
    size_t used;        /* bump pointer */
    GHashTable *freed;  /* size in pages -> GPtrArray of blocks */
    size_t outstanding; /* bytes allocated and not freed */
    unsigned irqs[INPROC_VECTORS];
    unsigned log_errors, log_guest_errors; /* lines logged at these levels */
    bool verbose;    /* print the log on stderr (also: environment HCASIM_LOG=1) */
    uint64_t budget; /* pieces of one fw_run() */
};

struct inproc_world *inproc_world_new(void);
/* Frees all HCAs, too. Other members must have left. */
void inproc_world_free(struct inproc_world *world);
void inproc_join(struct inproc_world *world, struct inproc_member *member);
void inproc_leave(struct inproc_world *world, struct inproc_member *member);

struct inproc_hca *inproc_hca_new(struct inproc_world *world, const struct fw_config *config,
                                  GError **err);
/* Takes an HCA out of its world and frees it. The world frees HCAs that have not ended this way. */
void inproc_hca_end(struct inproc_hca *hca);

/* Runs one round. Returns true if any member did something. */
bool inproc_run_ready(struct inproc_world *world);
/* As inproc_run_ready(), but if nothing is ready, moves the clock to the next timer, at most to
 * limit_ns. False: nothing is left to do before limit_ns (the clock then stands at limit_ns). */
bool inproc_step(struct inproc_world *world, uint64_t limit_ns);
/* Runs until nothing is ready now; the clock does not move. */
void inproc_settle(struct inproc_world *world);
/* Runs everything that happens in the next ns nanoseconds. */
void inproc_advance(struct inproc_world *world, uint64_t ns);

/* The driver's view of an HCA. */
struct pci_dev inproc_pci(struct inproc_hca *hca);

#endif
