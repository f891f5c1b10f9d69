/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts inside this process, on one virtual clock.
 *
 * A world holds the clock and any number of members: the HCAs below, which tests bring up with the
 * driver; those of the verbs library (local.h); a test's own. inproc_step() lets each member that
 * has something to do run, in the order in which they joined; when none has, the clock jumps to the
 * next timer. So a run is deterministic, and a timeout of seconds costs nothing.
 *
 * Bus addresses of the HCAs here are process addresses, but only those inside the HCA's own DMA
 * arena answer.
 */
#ifndef HCASIM_GUEST_LIB_HOST_INPROC_H
#define HCASIM_GUEST_LIB_HOST_INPROC_H

#include <glib.h>
#include "fw/fw.h"
#include "guest-lib/drv/pci.h"

#define INPROC_VECTORS    64
#define INPROC_ARENA_SIZE (256ul << 20)

/*
 * Who decides where a host may do one thing or another: in which order the members run, how much
 * of its work an HCA does in a turn, how long a turn or an interrupt is on its way. Asked in the
 * same order with the same answers, a world goes the same way.
 */
struct inproc_whims {
    uint64_t (*below)(void *opaque, uint64_t n); /* a number below n */
    void *opaque;
    uint64_t late_ns; /* how long a turn, or an interrupt, may be on its way */
};

struct inproc_world {
    uint64_t now_ns;
    size_t arena_size; /* of the HCAs that are made from now on; INPROC_ARENA_SIZE at first */
    const struct inproc_whims *whims; /* NULL: nothing is decided by chance */
    GPtrArray *members;               /* struct inproc_member */
    GPtrArray *hcas;                  /* struct inproc_hca, which go with the world */
};

/* One who lives on the clock; the head of, or a part of its own structure. */
struct inproc_member {
    /* Does what can be done now. False: there was nothing. */
    bool (*run)(struct inproc_member *member, uint64_t now_ns);
    /* When it has to run again, whatever happens before; UINT64_MAX: never. */
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
/* Frees all HCAs, too; other members have left. */
void inproc_world_free(struct inproc_world *world);
void inproc_join(struct inproc_world *world, struct inproc_member *member);
void inproc_leave(struct inproc_world *world, struct inproc_member *member);

struct inproc_hca *inproc_hca_new(struct inproc_world *world, const struct fw_config *config,
                                  GError **err);
/* Takes it out of its world, which frees those that are left. */
void inproc_hca_end(struct inproc_hca *hca);

/* One round; true if any member did something. */
bool inproc_run_ready(struct inproc_world *world);
/* As above, and when nothing is ready moves the clock to the next timer, at most to limit_ns.
 * False: nothing left to do before limit_ns (the clock then stands at limit_ns). */
bool inproc_step(struct inproc_world *world, uint64_t limit_ns);
/* Runs until nothing is ready now; the clock does not move. */
void inproc_settle(struct inproc_world *world);
/* Runs everything that happens in the next ns nanoseconds. */
void inproc_advance(struct inproc_world *world, uint64_t ns);

/* The driver's view of an HCA. */
struct pci_dev inproc_pci(struct inproc_hca *hca);

#endif
