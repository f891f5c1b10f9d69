/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulation: hosts with an HCA each on a fabric (fabric.h), in virtual time, and jobs on them. A
 * job is of a kind, which is a row in kinds.def and a file; docs/howto/simulation.md shows how to
 * write a kind.
 *
 * A kind posts what its job's stream of chance says, and compares the results with what must hold.
 * If something does not hold, it ends the simulation by sim_fail(). It never waits: its step() is
 * called again and again, each time after an interval that the seed decides.
 */
#ifndef HCASIM_TESTS_SIM_H
#define HCASIM_TESTS_SIM_H

#include "guest-lib/verbs/kernel/config.h"
#include "tests/sim/fabric/fabric.h"
#include "tests/sim/fabric/options.h"

#define SIM_MS     1000000ull
#define SIM_SECOND (1000 * SIM_MS)
#define JOB_HOSTS  4

struct sim_host {
    unsigned number;     /* from 0 */
    unsigned port;       /* port of the fabric */
    bool up;             /* a host without jobs stays down */
    const char *profile; /* its generation (fw/profile.h); NULL: the usual one */
    struct hv_port_config config;
    struct ibv_device *device;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    uint64_t objects, memory, icm; /* the HCA's use before any job */
    bool is_reset;                 /* its HCA was reset and has lost all objects */
    bool has_heard;                /* it has reported the reset */
};

/* What a run has done. */
struct sim_tally {
    uint64_t messages; /* operations that completed, or datagrams that arrived */
    uint64_t bytes;    /* bytes of these messages */
    uint64_t checks;   /* completions that were as expected */
    uint64_t errors;   /* errors that had to come, and did */
    uint64_t connections;
    uint64_t frames, faults, dropped, marked;
    uint64_t ns;          /* of virtual time */
    uint64_t fingerprint; /* a hash of every frame and its arrival time: the same run has the same
                             value */
};

struct sim {
    struct sim_options options; /* with all values drawn */
    struct inproc_world *world;
    struct fabric *fabric;
    struct timeline *timeline;
    struct witness *witness; /* checks what is on the wire */
    struct liveness *liveness;
    struct chance strays;
    char *capture_run; /* hosts that come again append to the capture (wire/capture.h) */
    struct sim_host *hosts;
    struct sim_host *at_port[FABRIC_PORTS]; /* also the hosts that jobs have for themselves */
    GPtrArray *jobs;                        /* struct job */
    unsigned undone;
    bool stepping;        /* a job is in its step, and may be waiting for a command */
    GQueue late;          /* jobs whose time came meanwhile */
    uint64_t progress_ns; /* when a job last made progress */
    uint8_t *arena;       /* memory of the jobs, at the same address in each run */
    size_t arena_used;
    struct chance order;
    struct inproc_whims whims;
    struct sim_tally tally;
};

struct job {
    struct sim *sim;
    const struct kind *kind;
    unsigned number;
    struct sim_host *host[JOB_HOSTS]; /* as many as the kind needs, all different */
    struct chance chance;
    void *state; /* of the kind's size, zeroed */
    uint64_t sleep_ns;
    bool is_done;
};

struct kind {
    const char *name, *about;
    bool usual;     /* it is part of a run that names no kinds */
    unsigned hosts; /* the number of hosts that a job needs, 2 to JOB_HOSTS; 0: all of them */
    size_t size;    /* of a job's state */
    void (*make)(struct job *job);
    /* Posts and polls. Returns true if something happened. */
    bool (*step)(struct job *job);
    /* Returns whether everything that was to be posted has ended. */
    bool (*is_done)(const struct job *job);
    /* Checks what must hold at the end. May be NULL. */
    void (*check)(struct job *job);
    void (*free)(struct job *job);
};

/* Returns a kind by name, or NULL. And returns all kinds, up to NULL. */
const struct kind *kind_find(const char *name);
const struct kind *kind_at(unsigned nth);
/* Further kinds, up to NULL: defined by a program that is linked with libhcasim-sim.a. */
extern const struct kind *const sim_own_kinds[];

/* -- for kinds --------------------------------------------------------------------------------- */

/* Ends the simulation: it has failed. */
void sim_fail(const struct job *job, const char *fmt, ...) G_GNUC_PRINTF(2, 3) G_GNUC_NORETURN;
/* Checks what must hold; the further arguments describe a failure. */
#define sim_check(job, holds, ...)                                                                 \
    do {                                                                                           \
        if (G_UNLIKELY(!(holds))) {                                                                \
            sim_fail(job, __VA_ARGS__);                                                            \
        }                                                                                          \
    } while (0)
/* Fails unless the call returns 0. */
#define sim_must(job, call)                                                                        \
    do {                                                                                           \
        int result_ = (call);                                                                      \
                                                                                                   \
        sim_check(job, !result_, "%s is %d", #call, result_);                                      \
    } while (0)

/* Writes a line to the trace, if there is a trace. */
void sim_note(const struct job *job, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* Memory of a job, zeroed and registered at a host. Its address is the same in each run. */
struct span {
    uint8_t *at;
    size_t len;
    struct ibv_mr *mr;
};

/* The same without a region. It is never freed. */
uint8_t *sim_memory(struct sim *sim, size_t len);
struct span sim_span(struct job *job, struct sim_host *host, size_t len);
void sim_span_free(struct job *job, struct span *span);

/* Bring up or remove a host in addition to those of options.hosts, of which a job has one for
 * itself. up: brings its HCA up at that end of a cable. down: everything that was made on it must
 * be destroyed; the HCA is removed. */
void sim_host_up(struct sim *sim, struct sim_host *host, struct wire_port *port);
void sim_host_begin(struct sim_host *host);
/* Brings up the nth further host of a job: 0 or 1. sim_host_down() removes it. profile: NULL is the
 * usual generation. */
void sim_host_own(struct job *job, struct sim_host *host, unsigned nth, const char *profile);
void sim_host_down(struct sim_host *host);
/* Resets its function. The job must then destroy its objects, and the host goes down. */
void sim_host_reset(struct sim_host *host);

/* Counts asynchronous events by type. The context of a QP, SRQ or CQ may point to such a struct,
 * which then counts the object's events; otherwise the context is NULL. */
struct sim_told {
    unsigned n[32];
};

/* Counts the events of a host. For the hosts of job->host this is done before each step. */
void sim_poll_events(const struct job *job, struct sim_host *host);

/* Returns whether ibv_get_cq_event() has an event: a poller asks often, and that call enters the
 * kernel. */
bool sim_has_notice(struct ibv_comp_channel *channel);

/* Returns whether frames may be lost on the way, so that a connection may end by itself. */
bool sim_is_lossy(const struct sim *sim);
/* Returns whether frames may arrive twice, or late. */
bool sim_is_disorderly(const struct sim *sim);
/* Returns the time after which no frame that is on its way now can arrive any more. */
uint64_t sim_quiet_ns(const struct sim *sim);

/* -- for those who run them -------------------------------------------------------------------- */

/* Runs one seed to its end. A failure ends the process with status 1, after a line on standard
 * error. */
void sim_run(const struct sim_options *options, struct sim_tally *tally);

#endif
