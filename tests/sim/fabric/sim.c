/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements sim.h: one run with its hosts, jobs, time and verdict. A process has one at a time.
 * Every decision is drawn from streams of the seed, in an order that is the run's own: nothing
 * depends on addresses, the wall clock or the order of a hash table.
 */
#include "tests/sim/fabric/sim.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fw/fw_internal.h"
#include "guest-lib/host/local_internal.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/user/device.h"
#include "model/port/uplink.h"
#include "model/rdma/rdma.h"
#include "tests/sim/fabric/liveness.h"
#include "tests/sim/fabric/strays.h"
#include "tests/sim/fabric/trace.h"
#include "tests/sim/fabric/weather.h"
#include "tests/sim/fabric/witness.h"
#include "wire/capture.h"
#include "wire/fault/fault.h"

#define ARENA_AT   0x200000000000ull
#define ARENA_SIZE (64ull << 30)
#define PAGE       4096u
#define STALLED    (20 * SIM_SECOND) /* time without progress of any job */
#define NEVER_ENDS 20000000u         /* rounds of the same */

static struct sim *running;

/* -- output ------------------------------------------------------------------------------------ */

static void sim_print_job(FILE *to, const struct job *job)
{
    fprintf(to, "job %u (%s, hosts%s", job->number, job->kind->name,
            job->kind->hosts ? "" : " all");
    for (unsigned i = 0; i < job->kind->hosts; i++) {
        fprintf(to, "%s %u", i ? "," : "", job->host[i]->number);
    }
    fprintf(to, "): ");
}

void sim_fail(const struct job *job, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "at %.3f us: ", running ? (double)running->world->now_ns / 1000 : 0.0);
    if (job) {
        sim_print_job(stderr, job);
    }
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

void sim_note(const struct job *job, const char *fmt, ...)
{
    g_autofree char *line = NULL;
    va_list args;

    if (!running->options.trace) {
        return;
    }
    va_start(args, fmt);
    line = g_strdup_vprintf(fmt, args);
    va_end(args);
    printf("%12.3f us  ", (double)running->world->now_ns / 1000);
    if (job) {
        sim_print_job(stdout, job);
    }
    puts(line);
}

/* Shows the fate of a frame that arrives, or would have arrived, in the capture of its host, also
 * while the host still opens its HCA. A frame that is sent while the cable is out is marked by the
 * capture itself. */
static void sim_capture_fate(const struct sim *sim, unsigned port, const uint8_t *frame, size_t len,
                             unsigned fate)
{
    const struct sim_host *host = sim->at_port[port];
    g_autofree char *said = frame_describe_fate(fate);
    struct wire_port *capture;

    if (!said || !host) {
        return;
    }
    capture = wire_capture_around(host->config.port);
    if (capture && fate & FRAME_GONE) {
        wire_capture_lost(capture, frame, len, true, said);
    } else if (capture) {
        wire_capture_comment(capture, said);
    }
}

/* Adds a frame that is lost on its way to the trace file, as an event of the host that misses it.
 */
static void sim_trace_loss(const struct sim *sim, unsigned port, const uint8_t *frame, size_t len,
                           unsigned fate)
{
    const struct sim_host *host = sim->at_port[port];
    g_autofree char *said = frame_describe_fate(fate);

    if (host && host->ctx) {
        fw_trace_fault(hv_context(host->ctx)->hca->local->fw,
                       &(struct fault_deed){.subject = FAULT_ABOUT_FRAMES,
                                            .is_lost = true,
                                            .what = said,
                                            .frame = frame,
                                            .len = len,
                                            .inbound = true});
    }
}

static void sim_on_frame(void *opaque, unsigned port, bool arrives, const uint8_t *frame,
                         size_t len, unsigned fate)
{
    struct sim *sim = opaque;

    trace_frame(sim, port, arrives, frame, len, fate);
    if (fate && arrives && sim->options.capture) {
        sim_capture_fate(sim, port, frame, len, fate);
    }
    if (fate & FRAME_GONE) {
        if (arrives && sim->options.trace_file) {
            sim_trace_loss(sim, port, frame, len, fate);
        }
        return;
    }
    if (!sim->options.fault) { /* the witness would take what rules do for what hosts do */
        witness_frame(sim->witness, port, arrives, frame, len);
    }
    if (!arrives) {
        strays_frame(sim, port, frame, len);
    }
}

/* -- memory of the jobs ------------------------------------------------------------------------ */

uint8_t *sim_memory(struct sim *sim, size_t len)
{
    size_t room = (len + PAGE - 1) & ~(size_t)(PAGE - 1);
    uint8_t *at = sim->arena + sim->arena_used;

    g_assert_cmpuint(room, <=, ARENA_SIZE - sim->arena_used);
    sim->arena_used += room;
    return at;
}

struct span sim_span(struct job *job, struct sim_host *host, size_t len)
{
    struct span span = {.at = sim_memory(job->sim, len), .len = len};

    span.mr = ibv_reg_mr(host->pd, span.at, len,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    sim_check(job, span.mr, "a region of %zu bytes: errno %d", len, errno);
    return span;
}

void sim_span_free(struct job *job, struct span *span)
{
    if (span->mr) {
        sim_must(job, ibv_dereg_mr(span->mr));
    }
    madvise(span->at, span->len, MADV_DONTNEED);
}

/* -- what may happen --------------------------------------------------------------------------- */

bool sim_is_lossy(const struct sim *sim)
{
    const struct sim_options *o = &sim->options;

    return o->loss || o->corruption || o->queue || o->partitions || o->flaps || o->fault;
}

bool sim_is_disorderly(const struct sim *sim)
{
    return sim->options.reorder || sim->options.duplication || sim->options.fault;
}

/* A frame waits in an uplink, then behind all other frames in a downlink, then at a host that takes
 * turns late. */
uint64_t sim_quiet_ns(const struct sim *sim)
{
    const struct link_config *config = &fabric_config(sim->fabric)->downlink;
    uint64_t bytes = 0, wait = 0;

    for (unsigned i = 0; i < fabric_num_ports(sim->fabric); i++) {
        bytes += link_queued(fabric_uplink(sim->fabric, i));
        wait = MAX(wait, link_queued(fabric_downlink(sim->fabric, i)));
    }
    wait = config->rate ? 2 * (bytes + wait) * 8 * SIM_SECOND / config->rate : 0;
    return sim->world->now_ns + wait +
           2 * (config->latency_ns + config->jitter_ns + config->faults.late_ns) +
           (sim->options.fault ? 2 * fault_longest_ns(sim->options.fault) : 0) +
           10 * sim->options.whims + SIM_MS;
}

static uint64_t sim_whim(void *opaque, uint64_t n)
{
    return chance_below(&((struct sim *)opaque)->order, n);
}

/* -- fabric and hosts -------------------------------------------------------------------------- */

static void sim_make_fabric(struct sim *sim)
{
    const struct sim_options *o = &sim->options;
    struct fabric_config config = {.seed = o->seed};
    struct link_config *link = &config.downlink;

    *link = (struct link_config){
        .latency_ns = o->latency,
        .jitter_ns = o->jitter,
        .rate = o->rate * 1000000,
        .queue = (uint32_t)o->queue,
        .ecn_min = (uint32_t)o->ecn / 2,
        .ecn_max = (uint32_t)o->ecn,
        .ecn_most = CHANCE_MILLION / 5,
        .faults = {.lose = (unsigned)o->loss,
                   .twice = (unsigned)o->duplication,
                   .late = (unsigned)o->reorder,
                   .corrupt = (unsigned)o->corruption,
                   .late_ns = 4 * o->latency},
    };
    config.uplink.rate = link->rate;
    sim->fabric = fabric_new(sim->world, &config);
    sim->timeline = fabric_timeline(sim->fabric);
    sim->witness = witness_new(sim);
    sim->liveness = liveness_new(sim);
    sim->strays = chance_of(o->seed, "strays", 0);
    fabric_set_trace(sim->fabric, sim_on_frame, sim);
}

static const struct hca *sim_hca(const struct sim_host *host)
{
    return &hv_context(host->ctx)->hca->local->fw->hca;
}

static uint64_t sim_num_objects(const struct sim_host *host)
{
    const struct hca *hca = sim_hca(host);

    return 0
#define SPACE(table, ...) +hca->table.count
#define KIND(...)
#define PART(...)
#include "model/core/obj_classes.def"
#undef SPACE
#undef KIND
#undef PART
        ;
}

/* A context makes an XRC domain for its first initiator and keeps it (guest-lib/verbs/kernel/qp.c):
 * it belongs to no job. */
static void sim_make_xrc_domain(const struct sim_host *host)
{
    struct ibv_cq *cq = ibv_create_cq(host->ctx, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq,
                                       .cap = {.max_send_wr = 1, .max_send_sge = 1},
                                       .qp_type = IBV_QPT_XRC_SEND,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = host->pd};
    struct ibv_qp *qp = cq ? ibv_create_qp_ex(host->ctx, &attr) : NULL;

    if (!qp || ibv_destroy_qp(qp) || ibv_destroy_cq(cq)) {
        sim_fail(NULL, "host %u makes no XRC QP: errno %d", host->number, errno);
    }
}

/* The driver makes its UMR queue for the first key that it changes in place, and keeps it. */
static void sim_make_umr_queue(const struct sim_host *host)
{
    static uint8_t byte;
    struct ibv_mr *mr = ibv_reg_mr(host->pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);

    if (!mr || ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) || ibv_dereg_mr(mr)) {
        sim_fail(NULL, "host %u changes no region: errno %d", host->number, errno);
    }
}

/* Sets what no driver and no verb sets. */
static void sim_set_up(const struct sim *sim, struct hca *hca)
{
    hca->late_reads = sim->options.late_reads;
    if (sim->options.cnp_rate) {
        hca->vport->uplink->cong.rp.rate_to_set_on_first_cnp = (uint32_t)sim->options.cnp_rate;
    }
}

void sim_host_up(struct sim *sim, struct sim_host *host, struct wire_port *port)
{
    hv_config_simulate(&host->config, host->number + 1, NULL, sim->world, port);
    host->config.profile = (char *)host->profile; /* only read */
    host->config.capture = sim->options.capture;
    host->config.capture_run = sim->capture_run;
    host->config.faults = sim->options.fault; /* only read */
    host->config.fault_seed = sim->options.seed;
    host->config.fault_stream = host->number;
    host->config.capture_comments = true;
    sim->at_port[host->port] = host;
    host->config.trace_file = sim->options.trace_file;
    host->device = hv_sim_device_new(host->number, &host->config);
    host->ctx = ibv_open_device(host->device);
    if (!host->ctx) {
        sim_fail(NULL, "host %u has no HCA: errno %d", host->number, errno);
    }
    sim_set_up(sim, &hv_context(host->ctx)->hca->local->fw->hca);
    host->is_reset = host->has_heard = false;
    fcntl(host->ctx->async_fd, F_SETFL, O_NONBLOCK);
    host->pd = ibv_alloc_pd(host->ctx);
    sim_make_xrc_domain(host);
    sim_make_umr_queue(host);
    liveness_host_up(sim->liveness, host);
}

/* Memory that a function keeps once it has taken it: pools whose entries go from object to object
 * (architecture.md, a connection), chunks of tables. */
#define POOLS (256u << 10)

/* Memory of initiators whose targets are destroyed (model/rdma/dc_note.c). */
#define NOTE_ICM 64

static uint64_t sim_notes_icm(const struct hca *hca)
{
    return (uint64_t)NOTE_ICM * g_hash_table_size(hca->rdma->dc.notes);
}

/* From now on the host has jobs. */
void sim_host_begin(struct sim_host *host)
{
    host->objects = sim_num_objects(host);
    host->memory = sim_hca(host)->memory.used;
    host->icm = sim_hca(host)->icm.used;
}

void sim_host_own(struct job *job, struct sim_host *host, unsigned nth, const char *profile)
{
    const struct sim_options *o = &job->sim->options;

    host->number = (unsigned)(o->hosts + o->jobs) + 2 * job->number + nth;
    host->port = fabric_num_ports(job->sim->fabric);
    sim_check(job, host->port < FABRIC_PORTS, "there is no port for another host");
    host->profile = profile;
    sim_host_up(job->sim, host, fabric_plug(job->sim->fabric));
    sim_host_begin(host);
}

void sim_host_reset(struct sim_host *host)
{
    hv_sim_device_reset(host->device);
    host->is_reset = true;
    host->objects = host->icm = host->memory = 0;
}

/* Checks that everything that the jobs took was given back. */
void sim_host_down(struct sim_host *host)
{
    const struct hca *hca = sim_hca(host);

    if (sim_num_objects(host) != host->objects || hca->icm.used != host->icm + sim_notes_icm(hca) ||
        hca->memory.used > host->memory + POOLS) {
        sim_fail(NULL,
                 "host %u has %" PRIu64 " objects, %" PRIu64 " bytes of ICM, %" PRIu64
                 " of memory after all jobs, and had %" PRIu64 ", %" PRIu64 ", %" PRIu64 " before",
                 host->number, sim_num_objects(host), hca->icm.used, hca->memory.used,
                 host->objects, host->icm, host->memory);
    }
    liveness_host_down(running->liveness, host);
    sim_poll_events(NULL, host);
    if (host->is_reset && !host->has_heard) {
        sim_fail(NULL, "host %u was not told that its HCA is lost", host->number);
    }
    if (ibv_dealloc_pd(host->pd) || ibv_close_device(host->ctx)) {
        sim_fail(NULL, "host %u does not go down", host->number);
    }
    host->ctx = NULL;
    running->at_port[host->port] = NULL;
    hv_sim_device_free(host->device);
}

/* Every host has its port; the port of a host without jobs has an unconnected cable. */
static void sim_make_hosts(struct sim *sim)
{
    for (unsigned i = 0; i < sim->options.hosts; i++) {
        struct sim_host *host = &sim->hosts[i];
        struct wire_port *port = fabric_plug(sim->fabric);

        host->port = i;
        if (host->up) {
            sim_host_up(sim, host, port);
        } else {
            wire_close(port);
        }
    }
    inproc_settle(sim->world);
    for (unsigned i = 0; i < sim->options.hosts; i++) {
        if (sim->hosts[i].up) {
            sim_host_begin(&sim->hosts[i]);
        }
    }
}

/* -- jobs -------------------------------------------------------------------------------------- */

#define IDLE_MOST (SIM_MS / 4)

/* A poller that found something soon polls again; other pollers poll later and later. */
static uint64_t sim_sleep_ns(struct job *job, bool did)
{
    if (did) {
        job->sleep_ns = 0;
        return chance_one_in(&job->chance, 4)
                   ? 0
                   : chance_below(&job->chance, 2 * job->sim->options.latency + 1);
    }
    job->sleep_ns = MIN(2 * job->sleep_ns + 500, IDLE_MOST);
    return chance_from(&job->chance, job->sleep_ns / 2, job->sleep_ns);
}

static void sim_take_event(const struct job *job, struct sim_host *host,
                           const struct ibv_async_event *event)
{
    struct sim_told *told = NULL;

    switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
        sim_check(job, host->is_reset && !host->has_heard,
                  "host %u hears that its HCA is lost, and it is not, or has heard", host->number);
        host->has_heard = true;
        break;
    case IBV_EVENT_CQ_ERR:
        sim_fail(job, "a CQ fails");
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        told = event->element.srq->srq_context;
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        told = event->element.qp->qp_context;
        break;
    default:
        break;
    }
    if (told) {
        told->n[event->event_type]++;
    }
}

void sim_poll_events(const struct job *job, struct sim_host *host)
{
    const struct hv_event_queue *events = &hv_context(host->ctx)->async->queue;
    struct ibv_async_event event;

    /* this call enters the kernel, in each step of a job */
    while (hv_event_count(events) && !ibv_get_async_event(host->ctx, &event)) {
        sim_take_event(job, host, &event);
        ibv_ack_async_event(&event);
    }
}

bool sim_has_notice(struct ibv_comp_channel *channel)
{
    return hv_event_count(&hv_channel(channel)->file.queue);
}

/* A command steps the world while it waits: no other job does anything meanwhile. */
static void sim_step_job(void *opaque, void *what)
{
    struct sim *sim = opaque;
    struct job *job = what, *next;
    bool did;

    if (sim->stepping) {
        g_queue_push_tail(&sim->late, job);
        return;
    }
    sim->stepping = true;
    for (unsigned i = 0; i < job->kind->hosts; i++) {
        sim_poll_events(job, job->host[i]);
    }
    did = job->kind->step(job);
    sim->stepping = false;
    while ((next = g_queue_pop_head(&sim->late))) {
        timeline_at(sim->timeline, sim->world->now_ns, sim_step_job, sim, next);
    }
    if (did) {
        sim->progress_ns = sim->world->now_ns;
    }
    if (job->kind->is_done(job)) {
        job->is_done = true;
        sim->undone--;
        sim_note(job, "done");
        return;
    }
    timeline_at(sim->timeline, sim->world->now_ns + sim_sleep_ns(job, did), sim_step_job, sim, job);
}

/* A program outside of this tree defines it in place of this one. */
__attribute__((weak)) const struct kind *const sim_own_kinds[] = {NULL};

/* Returns the requested kinds. */
static GPtrArray *sim_kinds(const struct sim *sim)
{
    GPtrArray *kinds = g_ptr_array_new();
    g_auto(GStrv) names = NULL;
    const struct kind *kind;

    if (sim->options.workload) {
        names = g_strsplit(sim->options.workload, ",", -1);
        for (unsigned i = 0; names[i]; i++) {
            g_ptr_array_add(kinds, (gpointer)kind_find(names[i]));
        }
        return kinds;
    }
    for (unsigned i = 0; (kind = kind_at(i)); i++) {
        if (kind->usual && kind->hosts <= sim->options.hosts) {
            g_ptr_array_add(kinds, (gpointer)kind);
        }
    }
    return kinds;
}

/* Makes as many hosts as the kinds need that were requested by name. */
static void sim_find_enough_hosts(struct sim *sim)
{
    g_autoptr(GPtrArray) kinds = sim_kinds(sim);

    for (unsigned i = 0; i < kinds->len; i++) {
        const struct kind *kind = g_ptr_array_index(kinds, i);

        sim->options.hosts = MAX(sim->options.hosts, kind->hosts);
    }
}

static void sim_draw_hosts(struct job *job)
{
    struct sim *sim = job->sim;
    unsigned n = 0;

    for (unsigned i = 0; !job->kind->hosts && i < sim->options.hosts; i++) {
        sim->hosts[i].up = true;
    }
    while (n < job->kind->hosts) {
        struct sim_host *host = &sim->hosts[chance_below(&job->chance, sim->options.hosts)];
        bool new = true;

        for (unsigned i = 0; i < n; i++) {
            new &= job->host[i] != host;
        }
        if (new) {
            job->host[n++] = host;
            host->up = true;
        }
    }
}

static bool sim_is_wanted(const struct sim *sim, unsigned number)
{
    g_auto(GStrv) only = NULL;
    g_autofree char *text = g_strdup_printf("%u", number);

    if (!sim->options.only) {
        return true;
    }
    only = g_strsplit(sim->options.only, ",", -1);
    return g_strv_contains((const char *const *)only, text);
}

/* Draws the jobs and their hosts. Each job draws from its own stream: leaving out one job changes
 * no other job. */
static void sim_draw_jobs(struct sim *sim)
{
    g_autoptr(GPtrArray) kinds = sim_kinds(sim);

    for (unsigned i = 0; i < sim->options.jobs; i++) {
        struct job *job;

        if (!sim_is_wanted(sim, i)) {
            continue;
        }
        job = g_new0(struct job, 1);
        job->sim = sim;
        job->number = i;
        job->chance = chance_of(sim->options.seed, "job", i);
        job->kind = g_ptr_array_index(kinds, chance_below(&job->chance, kinds->len));
        sim_draw_hosts(job);
        job->state = g_malloc0(job->kind->size);
        g_ptr_array_add(sim->jobs, job);
    }
}

static void sim_make_jobs(struct sim *sim)
{
    for (unsigned i = 0; i < sim->jobs->len; i++) {
        struct job *job = g_ptr_array_index(sim->jobs, i);

        sim_note(job, "begins");
        job->kind->make(job);
    }
    for (unsigned i = 0; i < sim->jobs->len; i++) {
        timeline_at(sim->timeline, sim->world->now_ns, sim_step_job, sim,
                    g_ptr_array_index(sim->jobs, i));
    }
    sim->undone = sim->jobs->len;
}

static void sim_free_jobs(struct sim *sim)
{
    for (unsigned i = 0; i < sim->jobs->len; i++) {
        struct job *job = g_ptr_array_index(sim->jobs, i);

        if (job->kind->check) {
            job->kind->check(job);
        }
    }
    for (unsigned i = 0; i < sim->jobs->len; i++) {
        struct job *job = g_ptr_array_index(sim->jobs, i);

        job->kind->free(job);
        g_free(job->state);
        g_free(job);
    }
    g_ptr_array_free(sim->jobs, TRUE);
}

/* -- the run ----------------------------------------------------------------------------------- */

static void sim_say_who_stands(const struct sim *sim)
{
    for (unsigned i = 0; i < sim->jobs->len; i++) {
        const struct job *job = g_ptr_array_index(sim->jobs, i);

        if (!job->is_done) {
            sim_fail(job, "has not got on for %.1f s%s",
                     (double)(sim->world->now_ns - sim->progress_ns) / SIM_SECOND,
                     liveness_tell(sim->liveness));
        }
    }
}

static void sim_let_it_happen(struct sim *sim)
{
    uint64_t last = sim->progress_ns = sim->world->now_ns;
    unsigned rounds = 0;

    while (sim->undone) {
        inproc_step(sim->world, UINT64_MAX - 1);
        rounds = last == sim->progress_ns ? rounds + 1 : 0;
        last = sim->progress_ns;
        if (sim->world->now_ns > sim->progress_ns + STALLED || rounds > NEVER_ENDS) {
            sim_say_who_stands(sim);
        }
    }
}

static void sim_sum_up(struct sim *sim)
{
    struct fabric_stats stats = fabric_stats(sim->fabric);

    sim->tally.frames = stats.frames;
    sim->tally.faults = stats.faults + stats.parted;
    sim->tally.dropped = stats.dropped;
    sim->tally.marked = stats.marked;
    sim->tally.ns = sim->world->now_ns;
}

void sim_run(const struct sim_options *options, struct sim_tally *tally)
{
    struct sim *sim = g_new0(struct sim, 1);

    running = sim;
    sim->options = sim_options_draw(options);
    sim->capture_run = g_strdup_printf("%d.%" PRIi64, (int)getpid(), g_get_real_time());
    sim->world = inproc_world_new();
    sim->order = chance_of(sim->options.seed, "order", 0);
    sim->whims = (struct inproc_whims){sim_whim, sim, sim->options.whims};
    sim->arena = mmap((void *)(uintptr_t)ARENA_AT, ARENA_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (sim->arena != (void *)(uintptr_t)ARENA_AT) {
        sim_fail(NULL, "there is no room at 0x%llx", ARENA_AT);
    }
    sim_find_enough_hosts(sim);
    sim->hosts = g_new0(struct sim_host, sim->options.hosts);
    for (unsigned i = 0; i < sim->options.hosts; i++) {
        sim->hosts[i].number = i;
    }
    sim->jobs = g_ptr_array_new();
    g_queue_init(&sim->late);
    sim_make_fabric(sim);
    sim_draw_jobs(sim);
    sim_make_hosts(sim);
    sim_make_jobs(sim);
    sim->world->whims = sim->options.whims ? &sim->whims : NULL;
    weather_begin(sim);
    sim_let_it_happen(sim);
    sim_sum_up(sim);
    sim->world->whims = NULL;
    sim_free_jobs(sim);
    for (unsigned i = 0; i < sim->options.hosts; i++) {
        if (sim->hosts[i].up) {
            sim_host_down(&sim->hosts[i]);
        }
    }
    *tally = sim->tally;
    witness_free(sim->witness);
    liveness_free(sim->liveness);
    fabric_free(sim->fabric);
    inproc_world_free(sim->world);
    munmap(sim->arena, ARENA_SIZE);
    g_free(sim->hosts);
    g_free(sim->capture_run);
    sim_options_clear(&sim->options);
    running = NULL;
    g_free(sim);
}
