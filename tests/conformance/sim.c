/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements sim.h: the verbs library's device, and its time. */
#include "tests/conformance/sim.h"
#include <fcntl.h>
#include <string.h>
#include "guest-lib/verbs/user/device.h"
#include "wire/pair.h"

#define SLOTS       256
#define GID         1  /* the IPv4 one */
#define TIMEOUT     10 /* 4.2 ms */
#define RESPONDERS  2  /* few enough that a script can use all of them */
#define PATIENCE_NS 100000000000ull

static struct sim *sim_of_clock(struct play_clock *clock)
{
    return (struct sim *)((char *)clock - offsetof(struct sim, clock));
}

static uint64_t sim_now(struct play_clock *clock)
{
    return sim_of_clock(clock)->world->now_ns;
}

static void sim_settle(struct play_clock *clock)
{
    inproc_settle(sim_of_clock(clock)->world);
}

static bool sim_step(struct play_clock *clock, uint64_t limit_ns)
{
    return inproc_step(sim_of_clock(clock)->world, limit_ns);
}

static bool sim_run_player(struct inproc_member *member, uint64_t now_ns)
{
    return stand_poll(&((struct sim *)((char *)member - offsetof(struct sim, member)))->stand);
}

static uint64_t sim_player_deadline_ns(const struct inproc_member *member)
{
    return UINT64_MAX;
}

static void sim_party(struct stand_party *party, const struct hv_port_config *config)
{
    memcpy(party->mac, config->mac, sizeof(party->mac));
    memcpy(party->gid, &config->gid[GID], sizeof(party->gid));
}

/* Applies the script's options. Everything that no user configures is as in hcasim run. */
static void sim_take_wishes(struct sim *sim, const struct sim_wishes *wishes)
{
    /* The cases of a run append to one file, if somebody wants the packets. Both are only read. */
    sim->device.capture = (char *)g_getenv("HCASIM_SIM_CAPTURE");
    sim->device.capture_run = (char *)"conformance";
    sim->device.profile = wishes->profile;
    sim->device.responders = wishes->responders ? wishes->responders : RESPONDERS;
}

bool sim_init(struct sim *sim, const struct sim_wishes *wishes)
{
    struct wire_port *ends[2];
    struct host *host = &sim->host;

    *sim = (struct sim){
        .clock = {.now = sim_now,
                  .settle = sim_settle,
                  .step = sim_step,
                  .patience_ns = PATIENCE_NS},
        .world = inproc_world_new(),
        .member = {sim_run_player, sim_player_deadline_ns},
    };
    wire_pair_new(SLOTS, ends);
    inproc_join(sim->world, &sim->member);
    hv_config_simulate(&sim->device, 1, NULL, sim->world, ends[1]);
    sim_take_wishes(sim, wishes);
    hv_config_simulate(&sim->peer, 2, NULL, sim->world, NULL);
    sim_party(&sim->stand.device, &sim->device);
    sim_party(&sim->stand.peer, &sim->peer);
    stand_init(&sim->stand, &sim->clock, ends[0]);
    sim->ibdev = hv_sim_device_new(0, &sim->device);
    host->ctx = ibv_open_device(sim->ibdev);
    if (!host->ctx || fcntl(host->ctx->async_fd, F_SETFL, O_NONBLOCK)) {
        return false;
    }
    host->pd = ibv_alloc_pd(host->ctx);
    host->other_pd = ibv_alloc_pd(host->ctx);
    host->port = 1;
    host->gid_index = wishes->is_v1 ? HV_ADDRESSES + GID : GID;
    sim->stand.is_v1 = wishes->is_v1;
    host->timeout = TIMEOUT;
    host->peer = sim->peer.gid[GID];
    host->direct = &host_direct;
    return host->pd && host->other_pd;
}

void sim_clear(struct sim *sim)
{
    g_assert_cmpint(ibv_dealloc_pd(sim->host.pd), ==, 0);
    g_assert_cmpint(ibv_dealloc_pd(sim->host.other_pd), ==, 0);
    g_assert_cmpint(ibv_close_device(sim->host.ctx), ==, 0);
    hv_sim_device_free(sim->ibdev);
    inproc_leave(sim->world, &sim->member);
    stand_clear(&sim->stand);
    inproc_world_free(sim->world);
}
