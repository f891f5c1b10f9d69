/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: wire_bench [-n ROUNDS] [-k TEXT] [URI-A URI-B]...
 *
 * Measures the backends of the wire beside a bare memcpy() and bare sockets: how many frames of
 * each size arrive in a second, how many bytes that is, and how long a frame of 64 bytes and its
 * answer take. Prints medians of ROUNDS rounds (default 5), in which the backends take turns. -k:
 * only backends with TEXT in their name. Each pair of URIs adds a row of its own, such as two tap
 * interfaces in one bridge: tap:a tap:b.
 *
 * The two ends are two processes, except of the pair, whose ends belong to one thread. Both poll
 * all the time, and leave the processor to others when nothing has come. Each has a processor of
 * its own, if there are two: on a shared one, sched_yield() may return to its caller for
 * milliseconds. A sender copies each frame from elsewhere to where the port wants it, and commits
 * WINDOW frames before it flushes.
 */
#define _GNU_SOURCE
#include <glib.h>
#include <glib/gstdio.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "wire/open.h"
#include "wire/pair.h"

#define WINDOW     16
#define IN_FLIGHT  32
#define RUN_NS     200000000ull   /* of each measurement */
#define ANSWER_NS  200000000ull   /* then a frame, or its answer, counts as lost */
#define LOST_NS    20000000ull    /* then the frames in flight count as lost */
#define START_NS   10000000000ull /* for both ends to find each other */
#define MAX_ROUNDS 99
#define MAX_ROWS   32

static const unsigned sizes[] = {64, 1500, 4096};

enum {
    SIZES = G_N_ELEMENTS(sizes),
    LATENCY = SIZES, /* the last measurement */
    MEASUREMENTS,
};

/* What both processes see. */
struct board {
    _Atomic uint64_t frames; /* that have arrived at the second end */
    atomic_bool answers;     /* the second end sends each frame back */
};

static struct board *board;
static cpu_set_t processors;
static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
static uint8_t pattern[WIRE_FRAME_MAX];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

G_GNUC_PRINTF(1, 2) static void fail(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("wire_bench: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_FAILURE);
}

/* -- bare sockets: a port that is nothing but a system call ------------------------------------ */

struct bare {
    struct wire_port port;
    int fd;
    uint8_t tx[WIRE_FRAME_MAX], rx[WIRE_FRAME_MAX];
};

static uint8_t *bare_tx_reserve(struct wire_port *port, size_t len)
{
    return ((struct bare *)port)->tx;
}

static void bare_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct bare *b = (struct bare *)port;

    send(b->fd, b->tx, len, 0); /* waits for room, or loses the frame (UDP) */
}

static unsigned bare_poll(struct wire_port *port, unsigned max)
{
    struct bare *b = (struct bare *)port;
    unsigned n = 0;
    ssize_t len;

    for (; n < max && (len = recv(b->fd, b->rx, sizeof(b->rx), MSG_DONTWAIT)) > 0; n++) {
        port->client->rx(port->opaque, b->rx, (size_t)len, 0);
    }
    return n;
}

static bool bare_link_up(struct wire_port *port)
{
    return true;
}

static void bare_close(struct wire_port *port)
{
    close(((struct bare *)port)->fd);
    g_free(port);
}

static struct wire_port *bare_new(int fd)
{
    static const struct wire_port_ops ops = {.tx_reserve = bare_tx_reserve,
                                             .tx_commit = bare_tx_commit,
                                             .poll = bare_poll,
                                             .link_up = bare_link_up,
                                             .close = bare_close};
    struct bare *b = g_new0(struct bare, 1);

    b->port.ops = &ops;
    b->fd = fd;
    return &b->port;
}

static int bare_udp_socket(struct sockaddr_in *at)
{
    socklen_t len = sizeof(*at);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = g_htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr *)at, len) ||
        getsockname(fd, (struct sockaddr *)at, &len)) {
        fail("no socket of UDP");
    }
    return fd;
}

/* -- rows -------------------------------------------------------------------------------------- */

static char *dir; /* of the files of sockets */

/* Two ends: ports that exist before the second process does, or URIs that each process opens. */
struct ends {
    struct wire_port *port[2];
    char *uri[2];
    bool is_one_process;
};

static void ends_of_bare_unix(struct ends *e)
{
    int fd[2];

    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fd)) {
        fail("no pair of sockets");
    }
    e->port[0] = bare_new(fd[0]);
    e->port[1] = bare_new(fd[1]);
}

static void ends_of_bare_udp(struct ends *e)
{
    struct sockaddr_in at[2];
    int fd[2] = {bare_udp_socket(&at[0]), bare_udp_socket(&at[1])};

    for (int i = 0; i < 2; i++) {
        if (connect(fd[i], (struct sockaddr *)&at[!i], sizeof(at[0]))) {
            fail("a socket of UDP does not connect");
        }
        e->port[i] = bare_new(fd[i]);
    }
}

static void ends_of_pair(struct ends *e)
{
    wire_pair_new(2 * IN_FLIGHT, e->port);
    e->is_one_process = true;
}

static void ends_of_shm(struct ends *e)
{
    for (int i = 0; i < 2; i++) {
        e->uri[i] = g_strdup_printf("shm:bench-%d", getpid());
    }
}

static void ends_of_stream(struct ends *e)
{
    e->uri[0] = g_strdup_printf("listen:%s/stream", dir);
    e->uri[1] = g_strdup_printf("connect:%s/stream", dir);
}

/* Two ports of this machine that were free a moment ago. */
static void bench_free_ports(unsigned port[2])
{
    struct sockaddr_in at[2];
    int fd[2] = {bare_udp_socket(&at[0]), bare_udp_socket(&at[1])};

    for (int i = 0; i < 2; i++) {
        port[i] = g_ntohs(at[i].sin_port);
        close(fd[i]);
    }
}

static void ends_of_tcp(struct ends *e)
{
    unsigned port[2];

    bench_free_ports(port);
    e->uri[0] = g_strdup_printf("listen:127.0.0.1:%u", port[0]);
    e->uri[1] = g_strdup_printf("connect:127.0.0.1:%u", port[0]);
}

static void ends_of_unix(struct ends *e)
{
    for (int i = 0; i < 2; i++) {
        e->uri[i] = g_strdup_printf("unix:%s/%d:%s/%d", dir, i, dir, !i);
    }
}

static void ends_of_udp(struct ends *e)
{
    unsigned port[2];

    bench_free_ports(port);
    for (int i = 0; i < 2; i++) {
        e->uri[i] = g_strdup_printf("udp:%u:127.0.0.1:%u", port[i], port[!i]);
    }
}

static void ends_of_vxlan(struct ends *e)
{
    unsigned port[2];

    bench_free_ports(port);
    for (int i = 0; i < 2; i++) {
        e->uri[i] = g_strdup_printf("vxlan:7:%u:127.0.0.1:%u", port[i], port[!i]);
    }
}

struct row {
    const char *name;
    void (*make)(struct ends *e); /* NULL: bare memcpy(), or the two URIs */
    const char *uri[2];
    double found[MEASUREMENTS][MAX_ROUNDS]; /* frames in a second; ns of a round trip */
};

static struct row rows[MAX_ROWS] = {
    {.name = "memcpy (bare)"},
    {.name = "Unix datagrams (bare)", .make = ends_of_bare_unix},
    {.name = "UDP (bare)", .make = ends_of_bare_udp},
    {.name = "pair", .make = ends_of_pair},
    {.name = "shm:", .make = ends_of_shm},
    {.name = "listen:/PATH", .make = ends_of_stream},
    {.name = "listen:HOST:PORT", .make = ends_of_tcp},
    {.name = "unix:", .make = ends_of_unix},
    {.name = "udp:", .make = ends_of_udp},
    {.name = "vxlan:", .make = ends_of_vxlan},
};

/* -- the two ends ------------------------------------------------------------------------------ */

static struct wire_port *open_one(struct ends *e, int i)
{
    GError *err = NULL;

    if (!e->port[i]) {
        e->port[i] = wire_open(e->uri[i], &err);
    }
    if (!e->port[i]) {
        fail("%s: %s", e->uri[i], err->message);
    }
    wire_set_busy(e->port[i], true);
    return e->port[i];
}

/* Sends one frame. False: there is no credit. */
static bool send_frame(struct wire_port *port, int from, size_t len, unsigned flags)
{
    uint8_t *at = wire_tx_reserve_to(port, mac[!from], len);

    if (!at) {
        return false;
    }
    memcpy(at, mac[!from], 6);
    memcpy(at + 6, mac[from], 6);
    memcpy(at + 12, pattern + 12, len - 12);
    wire_tx_commit_as(port, len, flags);
    return true;
}

static void on_second_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    if (len < 12 || memcmp(frame, mac[1], 6)) {
        return; /* others send on an interface, too */
    }
    if (board->answers) {
        send_frame(client, 1, len, 0);
    }
    atomic_store_explicit(&board->frames, board->frames + 1, memory_order_release);
}

static void on_first_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    if (len >= 12 && !memcmp(frame, mac[0], 6)) {
        (*(uint64_t *)client)++;
    }
}

static const struct wire_client second = {.rx = on_second_rx}, first = {.rx = on_first_rx};

/* Binds this process to a processor of those that the program may use; 1: to the second one. */
static void bind_to(int which)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&processors) > 1; cpu++) {
        if (CPU_ISSET(cpu, &processors) && !which--) {
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
        }
    }
}

/* The second process. It is killed. */
static void receive(struct ends *e)
{
    struct wire_port *port;

    bind_to(1);
    port = open_one(e, 1);
    wire_set_client(port, &second, port);
    for (;;) {
        wire_fd_event(port); /* the link of a stream comes up */
        for (unsigned i = 0; i < 1000; i++) {
            if (!wire_poll(port, WINDOW)) {
                sched_yield();
            }
        }
    }
}

/* -- measurements ------------------------------------------------------------------------------ */

struct bench {
    struct ends ends;
    struct wire_port *port;
    uint64_t answers;
    pid_t child;
};

/* Lets the ends work: this one and, in one process, the other. */
static void work(struct bench *b)
{
    wire_poll(b->port, WINDOW);
    if (b->ends.is_one_process) {
        wire_poll(b->ends.port[1], WINDOW);
    } else {
        sched_yield();
    }
}

static void begin(struct bench *b, const struct row *row)
{
    uint64_t end = now_ns() + START_NS, again = 0;

    if (row->make) {
        row->make(&b->ends);
    } else {
        b->ends.uri[0] = g_strdup(row->uri[0]);
        b->ends.uri[1] = g_strdup(row->uri[1]);
    }
    *board = (struct board){.answers = true};
    b->child = b->ends.is_one_process ? 0 : fork();
    if (!b->child && !b->ends.is_one_process) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        receive(&b->ends);
    }
    b->port = open_one(&b->ends, 0);
    wire_set_client(b->port, &first, &b->answers);
    if (b->ends.is_one_process) {
        wire_set_client(open_one(&b->ends, 1), &second, b->ends.port[1]);
    }
    while (!b->answers) { /* until both ends are there, and a wire knows their addresses */
        if (now_ns() > end || (b->child && waitpid(b->child, NULL, WNOHANG))) {
            fail("%s: the ends do not find each other", row->name);
        }
        if (now_ns() > again) {
            wire_fd_event(b->port);
            send_frame(b->port, 0, sizes[0], 0);
            again = now_ns() + ANSWER_NS / 20;
        }
        work(b);
    }
}

static void end(struct bench *b)
{
    if (b->child) {
        kill(b->child, SIGKILL);
        waitpid(b->child, NULL, 0);
        if (!b->ends.uri[1]) {
            wire_close(b->ends.port[1]);
        }
    } else {
        wire_close(b->ends.port[1]);
    }
    wire_close(b->port);
    g_free(b->ends.uri[0]);
    g_free(b->ends.uri[1]);
}

/* Frames of a size that arrive in a second. At most IN_FLIGHT are on their way, as with a transport
 * that waits for acknowledgements: fewer than any socket's queue takes. */
static double measure_rate(struct bench *b, unsigned size)
{
    uint64_t begun, ended, before, sent = 0, arrived = 0, last;

    board->answers = false;
    begun = last = now_ns();
    before = board->frames;
    do {
        uint64_t had = arrived;
        unsigned n = 0;

        while (n < WINDOW && (int64_t)(sent - arrived) < IN_FLIGHT &&
               send_frame(b->port, 0, size, WIRE_MORE)) {
            n++;
            sent++;
        }
        wire_tx_flush(b->port);
        if (n < WINDOW || b->ends.is_one_process) {
            work(b);
        }
        ended = now_ns();
        arrived = board->frames - before;
        if (arrived != had) {
            last = ended;
        } else if (ended - last > LOST_NS) {
            sent = arrived;
            last = ended;
        }
    } while (ended - begun < RUN_NS);
    /* What is on its way belongs to this measurement and not to the next. */
    while ((int64_t)(board->frames - before - sent) < 0 && now_ns() - ended < LOST_NS) {
        work(b);
    }
    return (double)arrived * 1e9 / (double)(ended - begun);
}

/* Nanoseconds until the answer to a frame is there. */
static double measure_latency(struct bench *b)
{
    uint64_t begun, ended, before, trips = 0, since;

    /* Nothing of the measurement before is on its way any more. */
    do {
        before = board->frames + b->answers;
        for (since = now_ns(); now_ns() - since < ANSWER_NS / 20;) {
            work(b);
        }
    } while (before != board->frames + b->answers);
    board->answers = true;
    begun = now_ns();
    do {
        before = b->answers;
        while (!send_frame(b->port, 0, sizes[0], 0)) {
            work(b);
        }
        wire_tx_flush(b->port);
        for (since = now_ns(); b->answers == before && now_ns() - since < ANSWER_NS;) {
            work(b);
        }
        trips += b->answers != before;
        ended = now_ns();
    } while (ended - begun < RUN_NS);
    return trips ? (double)(ended - begun) / (double)trips : 0;
}

static void measure_memcpy(struct row *row, unsigned round)
{
    static uint8_t ring[256][WIRE_FRAME_MAX];

    for (unsigned i = 0; i < SIZES; i++) {
        uint64_t begun = now_ns(), ended, n = 0;

        do {
            for (unsigned k = 0; k < 256; k++, n++) {
                memcpy(ring[k], pattern, sizes[i]);
                __asm__ volatile("" : : "r"(ring[k]) : "memory"); /* each copy is made */
            }
            ended = now_ns();
        } while (ended - begun < RUN_NS);
        row->found[i][round] = (double)n * 1e9 / (double)(ended - begun);
    }
}

static void measure(struct row *row, unsigned round)
{
    struct bench b = {0};

    if (!row->make && !row->uri[0]) {
        measure_memcpy(row, round);
        return;
    }
    begin(&b, row);
    row->found[LATENCY][round] = measure_latency(&b);
    for (unsigned i = 0; i < SIZES; i++) {
        row->found[i][round] = measure_rate(&b, sizes[i]);
    }
    end(&b);
}

/* -- the table --------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof(*values), compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void print_head(unsigned rounds)
{
    double load[1] = {0};

    getloadavg(load, 1);
    printf("medians of %u rounds, load average %.1f\n\n%-24s", rounds, load[0], "");
    for (unsigned i = 0; i < SIZES; i++) {
        printf("  %9u B %10s", sizes[i], "");
    }
    printf("\n%-24s", "backend");
    for (unsigned i = 0; i < SIZES; i++) {
        printf("  %11s %10s", "frames/s", "MB/s");
    }
    printf("  round trip\n");
}

static void print_row(struct row *row, unsigned rounds)
{
    double latency = median(row->found[LATENCY], rounds);

    printf("%-24s", row->name);
    for (unsigned i = 0; i < SIZES; i++) {
        double rate = median(row->found[i], rounds);

        printf("  %11.0f %10.1f", rate, rate * sizes[i] / 1e6);
    }
    if (latency > 0) {
        printf("  %7.2f us", latency / 1000);
    }
    putchar('\n');
}

static unsigned read_options(int argc, char **argv, const char **text, unsigned *n_rows)
{
    unsigned rounds = 5;
    int option;

    while ((option = getopt(argc, argv, "n:k:")) != -1) {
        if (option == 'k') {
            *text = optarg;
        } else if (option != 'n' || (rounds = (unsigned)strtoul(optarg, NULL, 10)) < 1 ||
                   rounds > MAX_ROUNDS) {
            fail("usage: wire_bench [-n ROUNDS (1 to %d)] [-k TEXT] [URI-A URI-B]...", MAX_ROUNDS);
        }
    }
    if ((argc - optind) % 2) {
        fail("'%s' is one URI: a row has two", argv[argc - 1]);
    }
    for (; optind < argc && *n_rows < MAX_ROWS; optind += 2) {
        rows[(*n_rows)++] =
            (struct row){.name = argv[optind], .uri = {argv[optind], argv[optind + 1]}};
    }
    return rounds;
}

/* A second end that was killed leaves its file. */
static void remove_dir(void)
{
    GDir *files = g_dir_open(dir, 0, NULL);
    const char *name;

    while (files && (name = g_dir_read_name(files))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        g_unlink(path);
    }
    g_clear_pointer(&files, g_dir_close);
    g_rmdir(dir);
    g_free(dir);
}

int main(int argc, char **argv)
{
    unsigned n_rows = 0, rounds;
    const char *text = "";

    while (rows[n_rows].name) {
        n_rows++;
    }
    rounds = read_options(argc, argv, &text, &n_rows);
    sched_getaffinity(0, sizeof(processors), &processors);
    bind_to(0);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    dir = g_dir_make_tmp("hcasim-bench.XXXXXX", NULL);
    if (board == MAP_FAILED || !dir) {
        fail("no memory, or no folder for sockets");
    }
    for (size_t i = 0; i < sizeof(pattern); i++) {
        pattern[i] = (uint8_t)(i * 7);
    }
    pattern[12] = 0x88; /* a type for experiments: no kernel takes the frame for its own */
    pattern[13] = 0xb5;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < n_rows; i++) {
            if (strstr(rows[i].name, text)) {
                measure(&rows[i], round);
            }
        }
    }
    print_head(rounds);
    for (unsigned i = 0; i < n_rows; i++) {
        if (strstr(rows[i].name, text)) {
            print_row(&rows[i], rounds);
        }
    }
    remove_dir();
    return 0;
}
