/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that every byte that UCX moves is right: a program of two processes over UCP, for any of
 * its transports (UCX_TLS and similar variables choose).
 *
 * usage: ucp_data [-p PORT] [-n ROUNDS] [-s SEED] [-m] [HOST]
 *
 * Both sides do the same at the same time. A round consists of (-m: only tags):
 *
 *   tags     messages of all sizes, eager and rendezvous, under a few tags; some receives are
 *            posted before they arrive, some after (in every other round: all before); messages of
 *            one tag arrive in order
 *   put      pieces into the other side's window, whose every byte is then compared
 *   get      pieces out of it
 *   atomics  tickets by fetch-and-add on a counter of each side: no ticket twice, none missing;
 *            and a word that compare-and-swap changes once
 *
 * Prints "N rounds, N messages, N bytes, 0 wrong" and exits with 0 if all was right.
 */
#include "tests/programs/ucp_wait.h"
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGES 24
#define TAGS     3
#define MAX_LEN  (1u << 20)
#define WINDOW   (1u << 20) /* bytes for puts and gets; the counters lie behind them */
#define PIECES   16         /* pieces of the window, one operation each */
#define TICKETS  32         /* tickets that each side draws from each counter */
#define BLOB     4096       /* the most bytes of an address or a packed key */
#define TAG_MASK 0xffffffffffffffffull

struct counters {
    uint64_t tickets, once;
};

struct blob {
    uint64_t len;
    uint8_t bytes[BLOB];
};

static struct {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    ucp_mem_h window_memh;
    ucp_rkey_h rkey;
    uint8_t *window; /* WINDOW bytes and struct counters */
    uint64_t remote; /* address of the other side's window */
    uint8_t *sent[MESSAGES], *received[MESSAGES];
    int fd;
    unsigned side;
    uint64_t seed, messages, bytes, wrong;
} me;

/* -- what is sent ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    return x ^ x >> 32;
}

/* Returns a number that both sides can compute: of this kind, in this round, by that side. */
static uint64_t number(unsigned round, unsigned side, unsigned what, unsigned i)
{
    return mix(mix(me.seed + round) ^ mix(side * 0x10001 + what * 0x101 + i + 1));
}

static void fill(uint8_t *to, size_t len, uint64_t key)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (uint8_t)(mix(key + i / 8) >> (i % 8 * 8));
    }
}

static void compare(const uint8_t *what, size_t len, uint64_t key, const char *name, unsigned i)
{
    for (size_t at = 0; at < len; at++) {
        if (what[at] != (uint8_t)(mix(key + at / 8) >> (at % 8 * 8))) {
            fprintf(stderr, "%s %u of %zu bytes: byte %zu is wrong\n", name, i, len, at);
            me.wrong++;
            return;
        }
    }
    me.messages++;
    me.bytes += len;
}

/* In every other round the conditions suit hardware tag matching: all receives are posted before
 * the messages, and no message is so short that UCX would match it in software (UCX_TM_THRESH). */
static bool is_calm(unsigned round)
{
    return round % 2 == 1;
}

/* Returns a length: mostly short, but anything from an empty message to MAX_LEN occurs. */
static size_t message_len(unsigned round, unsigned side, unsigned i)
{
    uint64_t r = number(round, side, 'l', i);

    if (is_calm(round)) {
        return (size_t)(2048 + (r >> 8) % (4096u << r % 8));
    }
    return (size_t)((r >> 8) % (1u << r % 21 | 1));
}

static ucp_tag_t message_tag(unsigned round, unsigned side, unsigned i)
{
    return (uint64_t)side << 32 | number(round, side, 't', i) % TAGS;
}

/* -- UCX --------------------------------------------------------------------------------------- */

static void go_on(void *opaque)
{
    ucp_worker_progress(me.worker);
}

static void finish(ucs_status_ptr_t request, const char *what)
{
    ucp_wait(request, what, go_on, NULL);
}

static void flush(void)
{
    const ucp_request_param_t none = {0};

    finish(ucp_worker_flush_nbx(me.worker, &none), "flush");
}

/* Returns when both sides are here; meanwhile the other side's requests are served. */
static void meet(void)
{
    char byte = 1;

    need(send(me.fd, &byte, 1, MSG_NOSIGNAL) == 1, "telling the other side");
    for (;;) {
        ssize_t n = recv(me.fd, &byte, 1, MSG_DONTWAIT);

        if (n == 1) {
            return;
        }
        need(n < 0 && (errno == EAGAIN || errno == EINTR), "hearing from the other side");
        ucp_worker_progress(me.worker);
    }
}

static void start_ucx(void)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64};
    const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                               .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucp_mem_map_params_t window = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                         .address = me.window,
                                         .length = WINDOW + sizeof(struct counters)};
    static struct blob mine, theirs;
    ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                          .address = (const ucp_address_t *)theirs.bytes};
    uint64_t at = (uintptr_t)me.window;
    ucp_config_t *config;
    ucp_address_t *address;
    void *key;
    size_t len;

    ucp_ok(ucp_config_read(NULL, NULL, &config), "reading the configuration");
    ucp_ok(ucp_init(&params, config, &me.context), "ucp_init");
    ucp_config_release(config);
    ucp_ok(ucp_worker_create(me.context, &worker_params, &me.worker), "ucp_worker_create");
    ucp_ok(ucp_worker_get_address(me.worker, &address, &len), "ucp_worker_get_address");
    need(len <= BLOB, "fitting the address in its place");
    mine.len = len;
    memcpy(mine.bytes, address, len);
    ucp_worker_release_address(me.worker, address);
    tell(me.fd, &mine, &theirs, sizeof(mine));
    ucp_ok(ucp_ep_create(me.worker, &ep, &me.ep), "ucp_ep_create");

    ucp_ok(ucp_mem_map(me.context, &window, &me.window_memh), "ucp_mem_map");
    ucp_ok(ucp_rkey_pack(me.context, me.window_memh, &key, &len), "ucp_rkey_pack");
    need(len <= BLOB, "fitting the key in its place");
    mine.len = len;
    memcpy(mine.bytes, key, len);
    ucp_rkey_buffer_release(key);
    tell(me.fd, &mine, &theirs, sizeof(mine));
    tell(me.fd, &at, &me.remote, sizeof(at));
    ucp_ok(ucp_ep_rkey_unpack(me.ep, theirs.bytes, &me.rkey), "ucp_ep_rkey_unpack");
    meet();
}

static void end_ucx(void)
{
    const ucp_request_param_t none = {0};

    flush();
    meet();
    ucp_rkey_destroy(me.rkey);
    finish(ucp_ep_close_nbx(me.ep, &none), "ucp_ep_close_nbx");
    meet();
    ucp_ok(ucp_mem_unmap(me.context, me.window_memh), "ucp_mem_unmap");
    ucp_worker_destroy(me.worker);
    ucp_cleanup(me.context);
}

/* -- a round ----------------------------------------------------------------------------------- */

static void check_tags(unsigned round)
{
    const ucp_request_param_t none = {0};
    ucs_status_ptr_t receives[MESSAGES], sends[MESSAGES];
    unsigned other = 1 - me.side;
    unsigned early =
        is_calm(round) ? MESSAGES : (unsigned)(number(round, 2, 'e', 0) % (MESSAGES + 1));

    for (unsigned i = 0; i < MESSAGES; i++) {
        fill(me.sent[i], message_len(round, me.side, i), number(round, me.side, 'm', i));
        memset(me.received[i], 0, message_len(round, other, i));
    }
    for (unsigned i = 0; i < early; i++) {
        receives[i] = ucp_tag_recv_nbx(me.worker, me.received[i], message_len(round, other, i),
                                       message_tag(round, other, i), TAG_MASK, &none);
    }
    meet();
    for (unsigned i = 0; i < MESSAGES; i++) {
        sends[i] = ucp_tag_send_nbx(me.ep, me.sent[i], message_len(round, me.side, i),
                                    message_tag(round, me.side, i), &none);
        ucp_worker_progress(me.worker);
    }
    for (unsigned i = 0; i < 1000; i++) {
        ucp_worker_progress(me.worker);
    }
    for (unsigned i = early; i < MESSAGES; i++) {
        receives[i] = ucp_tag_recv_nbx(me.worker, me.received[i], message_len(round, other, i),
                                       message_tag(round, other, i), TAG_MASK, &none);
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        finish(receives[i], "receiving");
        compare(me.received[i], message_len(round, other, i), number(round, other, 'm', i),
                "message", i);
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        finish(sends[i], "sending");
    }
}

/* Returns where a piece of the window begins in a round; it ends where the next one begins. */
static size_t piece(unsigned round, unsigned i)
{
    size_t whole = WINDOW / PIECES;

    return i % PIECES == 0 ? i * whole : i * whole - number(round, 2, 'p', i) % whole;
}

static void check_put(unsigned round)
{
    const ucp_request_param_t none = {0};
    uint8_t *source = me.received[0];
    ucs_status_ptr_t requests[PIECES];
    unsigned other = 1 - me.side;

    memset(me.window, 0, WINDOW);
    fill(source, WINDOW, number(round, me.side, 'w', 0));
    meet();
    for (unsigned i = 0; i < PIECES; i++) {
        size_t at = piece(round, i);

        requests[i] = ucp_put_nbx(me.ep, source + at, piece(round, i + 1) - at, me.remote + at,
                                  me.rkey, &none);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        finish(requests[i], "put");
    }
    flush();
    meet();
    compare(me.window, WINDOW, number(round, other, 'w', 0), "window of puts in round", round);
}

/* Checks that the window holds what the other side put there. */
static void check_get(unsigned round)
{
    const ucp_request_param_t none = {0};
    uint8_t *to = me.received[0];
    ucs_status_ptr_t requests[PIECES];

    memset(to, 0, WINDOW);
    for (unsigned i = 0; i < PIECES; i++) {
        size_t at = piece(round, i);

        requests[i] =
            ucp_get_nbx(me.ep, to + at, piece(round, i + 1) - at, me.remote + at, me.rkey, &none);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        finish(requests[i], "get");
    }
    compare(to, WINDOW, number(round, me.side, 'w', 0), "window of gets in round", round);
    meet();
}

/* Performs one atomic operation on a counter of the other side; returns its old value. */
static uint64_t atomic(ucp_atomic_op_t op, uint64_t value, uint64_t reply, size_t at)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                                                       UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                       .datatype = ucp_dt_make_contig(8),
                                       .reply_buffer = &reply};

    finish(ucp_atomic_op_nbx(me.ep, op, &value, 1, me.remote + WINDOW + at, me.rkey, &param),
           "an atomic");
    return reply;
}

static void check_atomics(unsigned round)
{
    struct counters *mine = (struct counters *)(me.window + WINDOW);
    uint64_t mark = number(round, me.side, 'o', 0), last = 0;

    mine->tickets = 1;
    mine->once = round;
    meet();
    for (unsigned i = 0; i < TICKETS; i++) {
        uint64_t ticket = atomic(UCP_ATOMIC_OP_ADD, 1, 0, offsetof(struct counters, tickets));

        if (ticket != last + 1) {
            fprintf(stderr, "ticket %" PRIu64 " after %" PRIu64 "\n", ticket, last);
            me.wrong++;
        }
        last = ticket;
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t was = atomic(UCP_ATOMIC_OP_CSWAP, round, mark, offsetof(struct counters, once));

        if (was != (i ? mark : round)) {
            fprintf(stderr, "compare-and-swap %u saw %" PRIx64 "\n", i, was);
            me.wrong++;
        }
    }
    flush();
    meet();
    if (mine->tickets != TICKETS + 1 || mine->once != number(round, 1 - me.side, 'o', 0)) {
        fprintf(stderr, "counters are %" PRIu64 ", %" PRIx64 "\n", mine->tickets, mine->once);
        me.wrong++;
    }
    me.messages += TICKETS + 2;
}

int main(int argc, char **argv)
{
    const char *port = "18520", *host;
    unsigned rounds = 20;
    bool only_messages = false;
    int option;

    while ((option = getopt(argc, argv, "p:n:s:m")) > 0) {
        switch (option) {
        case 'p':
            port = optarg;
            break;
        case 'n':
            rounds = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 's':
            me.seed = strtoull(optarg, NULL, 0);
            break;
        case 'm':
            only_messages = true;
            break;
        default:
            fprintf(stderr, "usage: ucp_data [-p PORT] [-n ROUNDS] [-s SEED] [-m] [HOST]\n");
            return 2;
        }
    }
    host = optind < argc ? argv[optind] : NULL;
    me.side = !!host;
    me.fd = other_side_connect(host, port);
    for (unsigned i = 0; i < MESSAGES; i++) {
        me.sent[i] = malloc(MAX_LEN);
        me.received[i] = malloc(MAX_LEN);
        need(me.sent[i] && me.received[i], "allocating");
    }
    me.window = aligned_alloc(4096, WINDOW + 4096);
    need(me.window, "allocating");
    start_ucx();
    for (unsigned round = 0; round < rounds; round++) {
        check_tags(round);
        if (!only_messages) {
            check_put(round);
            check_get(round);
            check_atomics(round);
        }
    }
    end_ucx();
    for (unsigned i = 0; i < MESSAGES; i++) {
        free(me.sent[i]);
        free(me.received[i]);
    }
    free(me.window);
    printf("%u rounds, %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " wrong\n", rounds,
           me.messages, me.bytes, me.wrong);
    return me.wrong ? 1 : 0;
}
