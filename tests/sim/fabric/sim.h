/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulation: hosts with an HCA each on a fabric (fabric.h), in virtual time, and jobs on them. A
 * job is of a kind, which is a row in kinds.def and a file; docs/simulation.md shows how to write
 * one.
 *
 * A kind posts what its job's stream of chance says, and holds what comes of it against what it
 * knows must hold; what does not ends the simulation by sim_fail(). It never waits: its step() is
 * called again and again, each time after a while that the seed decides.
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
    unsigned number; /* from 0 */
    unsigned port;   /* of the fabric */
    bool up;         /* a host that no job is on stays out */
    struct hv_port_config config;
    struct ibv_device *device;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    uint64_t objects, memory, icm; /* of the HCA, before any job */
    bool is_reset;                 /* its HCA has lost all that was made, */
    bool has_heard;                /* and has told so */
};

/* What a run has done. */
struct sim_tally {
    uint64_t messages; /* operations that completed, or datagrams that arrived */
    uint64_t bytes;    /* of theirs */
    uint64_t checks;   /* completions that were as they had to be */
    uint64_t errors;   /* that had to come, and did */
    uint64_t connections;
    uint64_t frames, faults, dropped, marked;
    uint64_t ns;          /* of virtual time */
    uint64_t fingerprint; /* of every frame and when it came: the same for the same run */
};

struct sim {
    struct sim_options options; /* all drawn */
    struct inproc_world *world;
    struct fabric *fabric;
    struct timeline *timeline;
    struct witness *witness; /* of what is on the wire */
    struct liveness *liveness;
    struct chance strays;
    struct sim_host *hosts;
    GPtrArray *jobs; /* struct job */
    unsigned undone;
    bool stepping;        /* a job is in its step, and waits for a command perhaps */
    GQueue late;          /* jobs whose time came meanwhile */
    uint64_t progress_ns; /* when a job last got on */
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
    struct sim_host *host[JOB_HOSTS]; /* as many as the kind wants, different ones */
    struct chance chance;
    void *state; /* of the kind's size, zeroed */
    uint64_t sleep_ns;
    bool is_done;
};

struct kind {
    const char *name, *about;
    bool usual;     /* part of a run that names no kinds */
    unsigned hosts; /* that a job takes, 2 to JOB_HOSTS; 0: all of them */
    size_t size;    /* of a job's state */
    void (*make)(struct job *job);
    /* Posts, polls. True: something happened. */
    bool (*step)(struct job *job);
    /* All that was to be posted has come to its end. */
    bool (*is_done)(const struct job *job);
    /* What must hold at the end. May be NULL. */
    void (*check)(struct job *job);
    void (*free)(struct job *job);
};

/* Kinds by name; NULL: there is none. And all of them, up to NULL. */
const struct kind *kind_find(const char *name);
const struct kind *kind_at(unsigned nth);

/* -- for kinds --------------------------------------------------------------------------------- */

/* Ends the simulation: it has failed. */
void sim_fail(const struct job *job, const char *fmt, ...) G_GNUC_PRINTF(2, 3) G_GNUC_NORETURN;
/* What must hold; else the rest says what did not. */
#define sim_check(job, holds, ...)                                                                 \
    do {                                                                                           \
        if (G_UNLIKELY(!(holds))) {                                                                \
            sim_fail(job, __VA_ARGS__);                                                            \
        }                                                                                          \
    } while (0)
/* A call that must return 0. */
#define sim_must(job, call)                                                                        \
    do {                                                                                           \
        int result_ = (call);                                                                      \
                                                                                                   \
        sim_check(job, !result_, "%s is %d", #call, result_);                                      \
    } while (0)

/* A line of the trace, if there is one. */
void sim_note(const struct job *job, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* Memory of a job, zeroed and registered at a host. Its address is the same in each run. */
struct span {
    uint8_t *at;
    size_t len;
    struct ibv_mr *mr;
};

/* The same without a region. Nobody gives it back. */
uint8_t *sim_memory(struct sim *sim, size_t len);
struct span sim_span(struct job *job, struct sim_host *host, size_t len);
void sim_span_free(struct job *job, struct span *span);

/* A host beside those of options.hosts, of which a job has one for itself. up: its HCA is brought
 * up at that end of a cable. down: all that was made at it is gone, and so is the HCA. */
void sim_host_up(struct sim *sim, struct sim_host *host, struct wire_port *port);
void sim_host_begin(struct sim_host *host);
void sim_host_down(struct sim_host *host);
/* Its function is reset: what was made is to be destroyed, and the host to go down. */
void sim_host_reset(struct sim_host *host);

/* Asynchronous events by type. A QP, SRQ or CQ whose context is one of these has them counted in
 * it; that of others is NULL. */
struct sim_told {
    unsigned n[32];
};

/* Counts what has come of a host; of those in job->host that is done before each step. */
void sim_poll_events(const struct job *job, struct sim_host *host);

/* Whether ibv_get_cq_event() has something to say: a poller asks often, and that is a call of the
 * kernel. */
bool sim_has_notice(struct ibv_comp_channel *channel);

/* Whether frames may be lost on the way, so that a connection may end by itself. */
bool sim_is_lossy(const struct sim *sim);
/* Whether they may come twice, or late. */
bool sim_is_disorderly(const struct sim *sim);
/* After that time nothing of what is on its way now can arrive any more. */
uint64_t sim_quiet_ns(const struct sim *sim);

/* -- for those who run them -------------------------------------------------------------------- */

/* Runs one seed to its end. What fails ends the process with status 1, after a line on standard
 * error. */
void sim_run(const struct sim_options *options, struct sim_tally *tally);

#endif
