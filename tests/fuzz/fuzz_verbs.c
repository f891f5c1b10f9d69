/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a program's calls of verbs, with any values (verbs_ops.h; of memory: verbs_memory.h;
 * of a peer's queues: verbs_peers.h), on a host of its own in virtual time, whose messages come
 * back to it.
 */
#include <fcntl.h>
#include "tests/fuzz/verbs_memory.h"
#include "tests/fuzz/verbs_peers.h"
#include "tests/sim/verbs_hosts.h"

#define RUNS 32 /* runs that share a host */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_settle(void *opaque)
{
    struct verbs_hosts *hosts = opaque;

    inproc_advance(hosts->world, VERBS_SECOND / 20);
}

/* The byte 255 begins a call about a peer's queues. Every other byte belongs to a call about
 * memory. */
static void fuzz_more(const struct verbs_world *world, const uint8_t **data, size_t *size)
{
    if (*size && **data == UINT8_MAX) {
        ++*data;
        --*size;
        verbs_peers_op(world, data, size);
    } else {
        verbs_memory_op(world, data, size);
    }
}

static void fuzz_more_end(const struct verbs_world *world)
{
    verbs_memory_end(world);
    verbs_peers_end();
}

/* A few inputs share a host, because bringing it up takes longer than most inputs. Nothing of an
 * input may be left for the next; when the host goes, leftovers are found. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct verbs_hosts *hosts;
    static unsigned runs;
    static bool fresh;
    struct verbs_world world = {.own_events = true,
                                .settle = fuzz_settle,
                                .more = fuzz_more,
                                .more_end = fuzz_more_end,
                                .flush_polls = 200};

    if (!hosts) {
        hosts = verbs_hosts_new_as(1, NULL, "cx6dx"); /* it has crypto, too */
        fresh = g_getenv("FUZZ_FRESH");
        runs = 0;
    }
    world.ctx = hosts->host[0].ctx;
    world.pd = hosts->host[0].pd;
    world.gid = hosts->host[0].config.gid[1];
    world.opaque = hosts;
    verbs_must_be_0(fcntl(world.ctx->async_fd, F_SETFL, O_NONBLOCK));
    verbs_ops_run(&world, data, size);
    if (++runs == RUNS || fresh) {
        verbs_hosts_free(hosts);
        hosts = NULL;
    }
    return 0;
}
