/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous over UCP: messages that the receiver fetches, or that the sender puts into the
 * receiver's memory, or for which UCX chooses the method. They go from and to any alignment, from
 * an empty message to LARGEST bytes; receives are posted before the message comes and after;
 * messages go one at a time, and many in both directions.
 *
 * usage: ucp_rndv [-l LARGEST] [-v]
 *
 * Both sides are in this process and one thread drives them in turn, as in UCX's own tests: neither
 * side may keep the thread for itself. If a message takes longer than it would on any machine, the
 * program ends. -v prints how long each size took.
 *
 * Prints "N messages, N bytes, 0 wrong" and exits with 0 if all was right.
 */
#include "tests/programs/ucp_wait.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define LINE       512 /* alignment of buffers in bytes, before the offset */
#define PATIENCE   60  /* seconds for a message, plus one for each SLOWEST bytes */
#define SLOWEST    (1u << 20)
#define SOON       300 /* rounds after which a request has usually come to the other side */
#define TAG        0x1337
#define MASK       0xffff
#define BOTH_WAYS  16 /* messages in each direction at a time */

struct side {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    ucp_address_t *address;
};

static const char *const schemes[] = {"auto", "get_zcopy", "put_zcopy"};
static const size_t offsets[] = {0, 1, 63, 511, 237};
static const size_t sizes[] = {0, 1, 16, 64, 512, 2000, 8000, 139 << 10, 1148576};

static struct side sides[2];
static uint64_t messages, bytes, wrong;
static const ucp_request_param_t none;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* -- both sides -------------------------------------------------------------------------------- */

static void set(ucp_config_t *config, const char *name, const char *value)
{
    ucp_ok(ucp_config_modify(config, name, value), name);
}

static void start(struct side *side, const char *scheme)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_TAG};
    const ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_config_t *config;
    size_t len;

    ucp_ok(ucp_config_read(NULL, NULL, &config), "reading the configuration");
    set(config, "RNDV_THRESH", "0");
    set(config, "RNDV_SCHEME", scheme);
    ucp_ok(ucp_init(&params, config, &side->context), "ucp_init");
    ucp_config_release(config);
    ucp_ok(ucp_worker_create(side->context, &worker, &side->worker), "ucp_worker_create");
    ucp_ok(ucp_worker_get_address(side->worker, &side->address, &len), "ucp_worker_get_address");
}

static void connect_to(struct side *side, const struct side *other)
{
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                    .address = other->address};

    ucp_ok(ucp_ep_create(side->worker, &params, &side->ep), "ucp_ep_create");
}

static void progress(void)
{
    ucp_worker_progress(sides[0].worker);
    ucp_worker_progress(sides[1].worker);
}

static void soon(void)
{
    for (unsigned i = 0; i < SOON; i++) {
        progress();
    }
}

/* Waits for a request of ucp_*_nbx() that moves so many bytes. */
/* A request that both sides are let progress for. */
struct waiting {
    const char *what;
    size_t len;
    double until;
};

static void go_on(void *opaque)
{
    const struct waiting *waiting = opaque;

    if (now() > waiting->until) {
        fail("%s of %zu bytes has not ended", waiting->what, waiting->len);
    }
    progress();
}

static void finish(ucs_status_ptr_t request, size_t len, const char *what)
{
    struct waiting waiting = {what, len, now() + PATIENCE + (double)len / SLOWEST};

    ucp_wait(request, what, go_on, &waiting);
}

static void end(struct side *side)
{
    finish(ucp_ep_close_nbx(side->ep, &none), 0, "ucp_ep_close_nbx");
    ucp_worker_release_address(side->worker, side->address);
}

static void clean_up(struct side *side)
{
    ucp_worker_destroy(side->worker);
    ucp_cleanup(side->context);
}

/* -- messages ---------------------------------------------------------------------------------- */

/* A buffer that is sent from or received into. */
struct place {
    uint8_t *all, *data;
    size_t len;
};

static struct place place_new(size_t len, size_t offset)
{
    struct place place = {.len = len};

    place.all = aligned_alloc(LINE, (len + offset + 2 * LINE - 1) / LINE * LINE);
    need(place.all, "allocating");
    place.data = place.all + offset;
    return place;
}

static void fill(struct place *place)
{
    uint64_t next = 0x9e3779b97f4a7c15 * ++messages;

    for (size_t i = 0; i < place->len; i += sizeof(next), next = next * 10 + 17) {
        size_t left = place->len - i;

        memcpy(place->data + i, &next, left < sizeof(next) ? left : sizeof(next));
    }
}

static void compare(const struct place *sent, const struct place *received, const char *how)
{
    bytes += sent->len;
    if (memcmp(sent->data, received->data, sent->len) != 0) {
        fprintf(stderr, "%s: %zu bytes from %p to %p are not the same\n", how, sent->len,
                (void *)sent->data, (void *)received->data);
        wrong++;
    }
}

static ucs_status_ptr_t post_send(struct side *side, const struct place *what)
{
    return ucp_tag_send_nbx(side->ep, what->data, what->len, 0x110000 | TAG, &none);
}

static ucs_status_ptr_t post_receive(struct side *side, const struct place *where)
{
    return ucp_tag_recv_nbx(side->worker, where->data, where->len, TAG, MASK, &none);
}

/* Sends a message from one side to the other. expected: the receive is posted before the message
 * comes. */
static void one_message(unsigned from, size_t len, size_t offset, bool expected, const char *how)
{
    struct place sent = place_new(len, 0), received = place_new(len, offset);
    ucs_status_ptr_t sending, receiving;

    fill(&sent);
    memset(received.data, 0, len);
    if (expected) {
        receiving = post_receive(&sides[!from], &received);
        sending = post_send(&sides[from], &sent);
    } else {
        sending = post_send(&sides[from], &sent);
        soon();
        receiving = post_receive(&sides[!from], &received);
    }
    finish(receiving, len, "receiving");
    finish(sending, len, "sending");
    compare(&sent, &received, how);
    free(sent.all);
    free(received.all);
}

static void all_offsets(size_t len, const char *how, bool verbose)
{
    double began = now();

    for (unsigned i = 0; i < 2 * LEN(offsets); i++) {
        one_message(i % 2, len, offsets[i / 2], true, how);
        one_message(i % 2, len, offsets[i / 2], false, how);
    }
    if (verbose) {
        double time = now() - began;

        printf("%s: %zu messages of %zu bytes: %.3f s, %.0f MB/s\n", how, 4 * LEN(offsets), len,
               time, (double)len * 4 * LEN(offsets) / time / 1e6);
        fflush(stdout);
    }
}

static void both_ways(size_t len, const char *how)
{
    struct place sent[2 * BOTH_WAYS], received[2 * BOTH_WAYS];
    ucs_status_ptr_t sending[2 * BOTH_WAYS], receiving[2 * BOTH_WAYS];

    for (unsigned i = 0; i < 2 * BOTH_WAYS; i++) {
        bool from = i >= BOTH_WAYS;

        sent[i] = place_new(len, 0);
        received[i] = place_new(len, offsets[i % LEN(offsets)]);
        fill(&sent[i]);
        memset(received[i].data, 0, len);
        receiving[i] = post_receive(&sides[!from], &received[i]);
        sending[i] = post_send(&sides[from], &sent[i]);
    }
    for (unsigned i = 0; i < 2 * BOTH_WAYS; i++) {
        finish(receiving[i], 2 * BOTH_WAYS * len, "receiving");
        finish(sending[i], 2 * BOTH_WAYS * len, "sending");
        compare(&sent[i], &received[i], how);
        free(sent[i].all);
        free(received[i].all);
    }
}

int main(int argc, char **argv)
{
    size_t largest = 8 << 20;
    bool verbose = false;
    int option;

    while ((option = getopt(argc, argv, "l:v")) > 0) {
        switch (option) {
        case 'l':
            largest = strtoull(optarg, NULL, 0);
            break;
        case 'v':
            verbose = true;
            break;
        default:
            fprintf(stderr, "usage: ucp_rndv [-l LARGEST] [-v]\n");
            return 2;
        }
    }
    setenv("UCX_RNDV_ALIGN_THRESH", "0", 0); /* UCX 1.13 does not know this variable yet */
    for (unsigned scheme = 0; scheme < LEN(schemes); scheme++) {
        start(&sides[0], schemes[scheme]);
        start(&sides[1], schemes[scheme]);
        connect_to(&sides[0], &sides[1]);
        connect_to(&sides[1], &sides[0]);
        for (unsigned i = 0; i < LEN(sizes); i++) {
            all_offsets(sizes[i], schemes[scheme], verbose);
        }
        all_offsets(largest, schemes[scheme], verbose);
        for (unsigned i = 0; i < LEN(sizes); i++) {
            both_ways(sizes[i], schemes[scheme]);
        }
        end(&sides[0]);
        end(&sides[1]);
        clean_up(&sides[0]);
        clean_up(&sides[1]);
    }
    printf("%" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " wrong\n", messages, bytes, wrong);
    return wrong ? 1 : 0;
}
