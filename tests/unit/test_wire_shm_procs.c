/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests shared-memory segments between processes that may die at any moment, and whose memory any
 * member of the segment may overwrite. (Only the test that overwrites it uses its layout.)
 */
#include "tests/unit/wire_nodes.h"
#include "wire/shm/file.h"
#include "wire/shm/port.h"
#include "wire/shm/segment.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    int ready; /* readable once the child has reached the intended point */
};

/* Runs body in a process that then waits to be killed. */
static struct child spawn(void (*body)(void))
{
    struct child c;
    int pipes[2];
    char byte;

    ck_assert_int_eq(pipe(pipes), 0);
    c.pid = fork();
    if (c.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pipes[0]);
        body();
        (void)!write(pipes[1], "", 1);
        pause();
        _exit(0);
    }
    close(pipes[1]);
    c.ready = pipes[0];
    ck_assert_int_eq(read(c.ready, &byte, 1), 1);
    return c;
}

static void kill_child(struct child c)
{
    close(c.ready);
    ck_assert_int_eq(kill(c.pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(c.pid, NULL, 0), c.pid);
}

static void join_and_announce(void)
{
    announce(join(9));
}

static void hold_a_reservation(void)
{
    const uint8_t dmac[6] = {2, 0, 0, 0, 0, 1};
    struct node *n = join(9);

    announce(n);
    memset(wire_tx_reserve_to(n->port, dmac, 1000), 0xee, 500);
}

static void fill_receiver(void)
{
    struct node *n = join(9);

    announce(n);
    while (send_frame(n, 1, 0, 64)) {
    }
}

static void nothing_more(void)
{
    join(9);
}

/* The receiver dies while its room is used up: the waiting senders are notified, and continue. */
START_TEST(a_receiver_that_dies_frees_its_senders)
{
    struct node *a = join(1);
    struct child c = spawn(join_and_announce);
    int64_t until;

    drain(a);
    while (send_frame(a, 9, 0, 1000)) {
    }
    wire_poll(a->port, 64);
    kill_child(c);
    a->tx_readies = 0;
    until = ms_now() + PATIENCE_MS;
    while (ms_now() < until && !send_frame(a, 9, 0, 1000)) {
        sleep_on(a, 100);
        wire_poll(a->port, 64);
    }
    ck_assert_uint_ge(a->tx_readies, 1);
    for (int i = 0; i < 1000; i++) {
        ck_assert(send_frame(a, 9, 0, 1000)); /* to nobody, because nobody has that address */
    }
    ck_assert_uint_ge(stats_of(a).tx_no_dest, 1000);
    leave(a);
}
END_TEST

static void join_and_watch(void)
{
    struct node *n = join(9);

    wire_watch_hosts(n->port);
    announce(n);
}

static uint64_t host_of(struct node *n, uint8_t id)
{
    uint8_t mac[6];

    mac_of(mac, id);
    return wire_host_at(n->port, mac);
}

/* Sleeps as an owner does until the host has ended, or the time is up. */
static bool is_told_of_end(struct node *n, uint64_t host)
{
    int64_t until = ms_now() + PATIENCE_MS;

    while (!n->ends && ms_now() < until) {
        sleep_on(n, PATIENCE_MS);
        wire_poll(n->port, 64);
    }
    while (!wire_has_ended(n->port, host) && ms_now() < until) {
        g_usleep(1000); /* its files are closed before its locks are released */
    }
    return n->ends && wire_has_ended(n->port, host);
}

/* The end is reported however the host ends, and also once another host has its place. Its last
 * frames come first. */
START_TEST(the_end_of_a_host_is_reported)
{
    struct node *a = join(1);
    struct child c;
    uint64_t host;

    announce(a);
    ck_assert(wire_watch_hosts(a->port));
    c = spawn(join_and_watch);
    drain(a);
    host = host_of(a, 9);
    ck_assert_uint_ne(host, 0);
    ck_assert(!wire_has_ended(a->port, host));
    a->ends = 0; /* a newcomer opens and closes files */
    kill_child(c);
    ck_assert(is_told_of_end(a, host));
    ck_assert_uint_eq(host_of(a, 9), 0);
    c = spawn(join_and_watch);
    drain(a);
    ck_assert_uint_ne(host_of(a, 9), host);
    ck_assert(!wire_has_ended(a->port, host_of(a, 9)));
    ck_assert(wire_has_ended(a->port, host));
    kill_child(c);
    leave(a);
}
END_TEST

/* A device that is removed sends no goodbye; a host that does not ask for others' ends gets
 * none. */
START_TEST(a_host_that_leaves_has_not_ended)
{
    struct node *a, *b;
    struct child c;
    uint64_t host;

    two(&a, &b);
    ck_assert_uint_eq(host_of(a, 2), 0);
    ck_assert(wire_watch_hosts(a->port) && wire_watch_hosts(b->port));
    host = host_of(a, 2);
    ck_assert_uint_ne(host, 0);
    ck_assert_uint_eq(host_of(a, 1), 0); /* itself */
    leave(b);
    ck_assert(!wire_has_ended(a->port, host));
    ck_assert(!wire_has_ended(a->port, 0));
    c = spawn(join_and_announce);
    drain(a);
    ck_assert_uint_eq(host_of(a, 9), 0);
    ck_assert(!wire_has_ended(a->port, host));
    kill_child(c);
    leave(a);
}
END_TEST

/* The same for an owner that only polls. */
START_TEST(a_receiver_that_dies_frees_busy_senders)
{
    struct node *a = join(1);
    struct child c = spawn(join_and_announce);
    int64_t until = ms_now() + PATIENCE_MS;

    wire_set_busy(a->port, true);
    drain(a);
    while (send_frame(a, 9, 0, 1000)) {
    }
    kill_child(c);
    a->tx_readies = 0;
    while (ms_now() < until && !a->tx_readies) {
        wire_poll(a->port, 64);
    }
    ck_assert(send_frame(a, 9, 0, 1000));
    leave(a);
}
END_TEST

/* Reservations of killed senders return to senders that need room. */
START_TEST(reservations_of_the_dead_come_back)
{
    struct node *a = join(1), *senders[3];
    struct child dead[6];
    unsigned whole = 0, accepted = 0;

    announce(a);
    for (int i = 0; i < 3; i++) {
        senders[i] = join((uint8_t)(20 + i));
        announce(senders[i]);
    }
    drain(a);
    for (int i = 0; i < 3; i++) {
        while (send_frame(senders[i], 1, 0, 64)) {
            whole++; /* this much room is there for all together */
        }
    }
    drain(a);
    for (int i = 0; i < 6; i++) {
        dead[i] = spawn(hold_a_reservation);
    }
    drain(a);
    for (int i = 0; i < 6; i++) {
        kill_child(dead[i]);
    }
    for (int i = 0; i < 3; i++) {
        drain(senders[i]);
        while (send_frame(senders[i], 1, 0, 64)) {
            accepted++;
        }
    }
    ck_assert_uint_eq(accepted, whole - 6);
    /* Waiting makes the receiver check which members are alive. */
    drain(a);
    g_usleep(100000);
    for (int i = 0; i < 3; i++) {
        drain(senders[i]);
    }
    accepted = 0;
    for (int round = 0; round < 30 && accepted != whole; round++) {
        accepted = 0;
        drain(a);
        for (int i = 0; i < 3; i++) {
            drain(senders[i]);
            while (send_frame(senders[i], 1, 0, 64)) {
                accepted++;
            }
        }
        g_usleep(100000);
    }
    ck_assert_uint_eq(accepted, whole);
    for (int i = 0; i < 3; i++) {
        leave(senders[i]);
    }
    leave(a);
}
END_TEST

START_TEST(frames_of_a_sender_that_died_still_arrive)
{
    struct node *a = join(1);
    struct child c;
    unsigned got;

    announce(a);
    c = spawn(fill_receiver);
    kill_child(c);
    got = drain(a);
    ck_assert_uint_gt(got, 10);
    ck_assert_uint_eq(a->last_from, 9);
    leave(a);
}
END_TEST

/* The sender sent its last frame and ended just before the receiver searched for slots of the
 * dead. */
START_TEST(a_look_for_the_dead_takes_nothing_that_they_had_sent)
{
    struct node *a = join(1);
    struct child c;
    unsigned got, known;

    announce(a);
    /* of a sender that the receiver has heard before, and of one that it has not */
    for (known = 0; known < 2; known++) {
        c = spawn(fill_receiver);
        if (known) {
            wire_poll(a->port, 1);
        }
        kill_child(c);
        ck_assert(!shm_rx_reap(shm_port_of(a->port)));
        got = drain(a);
        ck_assert_uint_gt(got, 10);
        ck_assert_uint_eq(stats_of(a).rx_malformed, 0);
    }
    leave(a);
}
END_TEST

/* A new member gets the place of a dead one, and nothing of its past. */
START_TEST(a_place_is_taken_over)
{
    struct node *a = join(1), *n;

    announce(a);
    for (int i = 0; i < 10; i++) {
        struct child c = spawn(i % 3 == 0   ? fill_receiver
                               : i % 3 == 1 ? hold_a_reservation
                                            : join_and_announce);

        if (i % 2) {
            drain(a);
        }
        while (i % 4 == 3 && send_frame(a, 9, 1, 64)) {
        }
        kill_child(c);
        n = join(9);
        drain(a);
        announce(n);
        ck_assert_uint_eq(drain(a), 1);
        drain(n);
        n->frames = a->frames = 0;
        for (uint32_t k = 0; k < 500; k++) {
            g_usleep(k == 0 ? 60000 : 0);
            wire_poll(a->port, 64);
            ck_assert(send_frame(a, 9, k, 64));
            ck_assert_uint_eq(drain(n), 1);
            ck_assert_uint_eq(n->last_number, k);
            ck_assert(send_frame(n, 1, k, 64));
            ck_assert_uint_eq(drain(a), 1);
            ck_assert_uint_eq(a->last_number, k);
        }
        leave(n);
    }
    ck_assert_uint_eq(stats_of(a).rx_malformed, 0);
    leave(a);
}
END_TEST

/* "stale segments reclaimed" */
START_TEST(the_segment_of_dead_processes_is_replaced)
{
    struct child c = spawn(nothing_more), d = spawn(join_and_announce);
    struct node *a, *b;

    kill_child(c);
    kill_child(d);
    ck_assert_uint_gt(nodes_files_left(), 0);
    two(&a, &b);
    ck_assert(send_frame(a, 9, 7, 64)); /* flooded: nobody remembers 9 */
    ck_assert_uint_eq(drain(b), 1);
    leave(a);
    leave(b);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* A name that is never used again would stay for ever: a user of any other name removes it. */
START_TEST(segments_of_the_dead_are_swept)
{
    struct child dead = spawn(nothing_more), live;
    char *other = g_build_filename(nodes_dir, "other", NULL);

    kill_child(dead);
    ck_assert_uint_eq(nodes_files_left(), 2); /* the segment, a FIFO */
    shm_file_sweep(nodes_dir, "another-", NULL);
    ck_assert_uint_eq(nodes_files_left(), 2);
    shm_file_sweep(nodes_dir, "se", NULL);
    ck_assert_uint_eq(nodes_files_left(), 0);

    /* Segments in use, and files that are no segments, stay. */
    live = spawn(nothing_more);
    ck_assert(g_file_set_contents(other, "precious", -1, NULL));
    shm_file_sweep(nodes_dir, "", NULL);
    ck_assert_uint_eq(nodes_files_left(), 3);
    ck_assert_int_eq(unlink(other), 0);
    g_free(other);
    kill_child(live);
    shm_file_sweep(nodes_dir, "", NULL);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* The segment was removed by hand while its member was alive. */
START_TEST(a_fifo_without_its_segment_is_swept)
{
    char *seg = g_build_filename(nodes_dir, "seg", NULL), *other = NULL;
    struct child dead = spawn(nothing_more), live;

    ck_assert_int_eq(unlink(seg), 0);
    live = spawn(nothing_more); /* has a segment and a FIFO of the same names */
    kill_child(dead);
    shm_file_sweep(nodes_dir, "se", NULL);
    ck_assert_uint_eq(nodes_files_left(), 2);
    ck_assert_int_eq(unlink(seg), 0);
    kill_child(live);
    ck_assert_uint_eq(nodes_files_left(), 1);
    shm_file_sweep(nodes_dir, "another-", NULL);
    ck_assert_uint_eq(nodes_files_left(), 1);
    shm_file_sweep(nodes_dir, "se", NULL);
    ck_assert_uint_eq(nodes_files_left(), 0);

    /* A file that belongs to no member stays. */
    other = g_build_filename(nodes_dir, "seg.pipe", NULL);
    ck_assert_int_eq(mkfifo(other, 0600), 0);
    shm_file_sweep(nodes_dir, "se", NULL);
    ck_assert_uint_eq(nodes_files_left(), 1);
    ck_assert_int_eq(unlink(other), 0);
    g_free(other);
    g_free(seg);
}
END_TEST

/* A process that dies while it makes a segment leaves one of these: an empty file, or one without
 * content.
 */
START_TEST(unfinished_segments_are_swept)
{
    char *empty = g_build_filename(nodes_dir, "seg1", NULL);
    char *sized = g_build_filename(nodes_dir, "seg2", NULL);
    char *shorter = g_build_filename(nodes_dir, "seg3", NULL);
    GPtrArray *removed = g_ptr_array_new_with_free_func(g_free);

    ck_assert(g_file_set_contents(empty, "", 0, NULL));
    ck_assert(g_file_set_contents(sized, "", 0, NULL));
    ck_assert(g_file_set_contents(shorter, "", 0, NULL));
    ck_assert_int_eq(truncate(sized, shm_region_offset(SHM_MEMBERS)), 0);
    ck_assert_int_eq(truncate(shorter, SHM_PAGE), 0); /* somebody else's */
    shm_file_sweep(nodes_dir, "se", removed);
    ck_assert_uint_eq(removed->len, 2);
    ck_assert_uint_eq(nodes_files_left(), 1);
    ck_assert_int_eq(unlink(shorter), 0);
    g_ptr_array_unref(removed);
    g_free(shorter);
    g_free(sized);
    g_free(empty);
}
END_TEST

/* The FIFO of member 0 of "seg" has the path of the wire "seg.0". Whoever makes or removes the FIFO
 * leaves the wire alone. */
START_TEST(a_wire_with_the_name_of_a_fifo_stays)
{
    char *path = g_build_filename(nodes_dir, "seg", NULL);
    char *longer = g_strconcat("shm:", path, ".0", NULL), *uri = g_strconcat("shm:", path, NULL);
    struct wire_port *port = wire_open(longer, NULL);
    GError *err = NULL;

    ck_assert_ptr_nonnull(port);
    ck_assert_uint_eq(nodes_files_left(), 2);
    ck_assert_ptr_null(wire_open(uri, &err));
    ck_assert_ptr_nonnull(strstr(err->message, "cannot make the wake-up FIFO: File exists"));
    g_clear_error(&err);
    ck_assert_uint_eq(nodes_files_left(), 2);
    shm_file_sweep(nodes_dir, "seg", NULL);
    ck_assert_uint_eq(nodes_files_left(), 2);
    wire_close(port);
    ck_assert_uint_eq(nodes_files_left(), 0);
    g_free(uri);
    g_free(longer);
    g_free(path);
}
END_TEST

#define STRESS_NODES  4
#define STRESS_FRAMES 4000

/* Sends to all others as fast as it may, takes what comes, and sleeps when there is nothing to
 * do. */
static int stress(uint8_t self)
{
    struct node *n = join(self);
    uint32_t next[STRESS_NODES + 1] = {0};
    int64_t until = ms_now() + 3 * PATIENCE_MS;
    unsigned known = 0;

    /* All know each other when three kinds of greeting have been heard. A poll may find only a
     * greeting that was overwritten meanwhile: then it hears nobody, or the last one again. */
    while ((known | 1u << self | 1u) != (1u << (STRESS_NODES + 1)) - 1 && ms_now() < until) {
        send_frame(n, 0xff, 0, 17);
        if (wire_poll(n->port, 1)) {
            known |= 1u << n->last_from;
        } else {
            g_usleep(1000);
        }
    }
    send_frame(n, 0xff, 0, 17);
    while (ms_now() < until) {
        bool done = true, progress = false;

        for (uint8_t to = 1; to <= STRESS_NODES; to++) {
            if (to == self) {
                continue;
            }
            if (next[to] < STRESS_FRAMES &&
                send_frame(n, to, next[to], 18 + next[to] * 37 % 4000)) {
                next[to]++;
                progress = true;
            }
            done &= next[to] == STRESS_FRAMES && n->expect[to] == STRESS_FRAMES;
        }
        if (done) {
            unsigned wrong = n->out_of_order;
            uint64_t malformed = stats_of(n).rx_malformed;

            leave(n);
            if (wrong || malformed) {
                fprintf(stderr, "%d: %u out of order, %" PRIu64 " malformed\n", self, wrong,
                        malformed);
            }
            return wrong || malformed ? 1 : 0;
        }
        if (wire_poll(n->port, 16) < 16 && !progress) {
            sleep_on(n, 1000);
        }
    }
    fprintf(stderr, "%d: to 1..4 %u %u %u %u, from %u %u %u %u\n", self, next[1], next[2], next[3],
            next[4], n->expect[1], n->expect[2], n->expect[3], n->expect[4]);
    return 2;
}

START_TEST(many_processes_lose_nothing)
{
    pid_t pids[STRESS_NODES];

    for (uint8_t i = 0; i < STRESS_NODES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(stress((uint8_t)(i + 1)));
        }
    }
    for (int i = 0; i < STRESS_NODES; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* Exchanges frames with its neighbours for ever. */
static void chatter(uint8_t self)
{
    struct node *n = join(self);

    announce(n);
    for (uint32_t i = 0;; i++) {
        send_frame(n, (uint8_t)(1 + i % 4), i, 64 + i % 1000);
        if (i % 64 == 0) {
            announce(n);
        }
        wire_poll(n->port, 32);
    }
}

/* Processes are killed at any point; the surviving process continues to be served. */
START_TEST(processes_are_killed_at_random_moments)
{
    pid_t pids[3] = {0};
    struct node *a = join(1), *b = join(2);
    uint32_t got = 0, number = 0;

    announce(a);
    announce(b);
    for (int round = 0; round < 24; round++) {
        int victim = round % 3;

        if (pids[victim]) {
            kill(pids[victim], SIGKILL);
            waitpid(pids[victim], NULL, 0);
        }
        pids[victim] = fork();
        if (pids[victim] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            chatter((uint8_t)(3 + victim));
        }
        for (int i = 0; i < 40; i++) {
            if (send_frame(a, 2, number, 64)) {
                number++;
            }
            wire_poll(b->port, 64);
            wire_poll(a->port, 64);
            g_usleep(20 + (unsigned)(i * round % 50));
        }
    }
    for (int v = 0; v < 3; v++) {
        kill(pids[v], SIGKILL);
        waitpid(pids[v], NULL, 0);
    }
    /* When all of them are gone, a and b can still exchange frames, without loss. */
    for (int64_t until = ms_now() + PATIENCE_MS; ms_now() < until;) {
        sleep_on(a, 10);
        sleep_on(b, 10);
        if (!drain(a) && !drain(b)) {
            break;
        }
    }
    b->frames = 0;
    for (int64_t until = ms_now() + PATIENCE_MS; got < 2000 && ms_now() < until;) {
        got += send_frame(a, 2, got, 64);
        wire_poll(b->port, 64);
        wire_poll(a->port, 64);
    }
    drain(b);
    ck_assert_uint_eq(got, 2000);
    ck_assert_uint_eq(b->frames, 2000);
    ck_assert_uint_eq(b->last_number, 1999);
    leave(a);
    leave(b);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* Whatever the shared memory contains, a port neither crashes nor hangs nor delivers an invalid
 * frame. */
START_TEST(random_bytes_in_shared_memory_cause_no_crash)
{
    struct node *a, *b, *c;
    char *path = g_build_filename(nodes_dir, "seg", NULL);
    GRand *rnd = g_rand_new_with_seed((guint32)_i + 1);
    size_t size = (size_t)shm_region_offset(3);
    uint8_t *map;
    int fd;

    two(&a, &b);
    c = join(3);
    announce(c);
    fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);

    for (int i = 0; i < 1500; i++) {
        /* Writes small, plausible and wild values into the control structures. */
        struct shm_header *h = (struct shm_header *)map;
        unsigned r = (unsigned)g_rand_int_range(rnd, 0, 3);
        struct shm_region *region = (struct shm_region *)(map + shm_region_offset(r));
        unsigned s = (unsigned)g_rand_int_range(rnd, 0, i % 2 ? 3 : SHM_MEMBERS);
        unsigned k = (unsigned)g_rand_int_range(rnd, 0, SHM_SLOTS);
        uint32_t gen = h->member[s].gen;
        uint64_t wild = (uint64_t)g_rand_int(rnd) << 32 | g_rand_int(rnd);
        struct node *nodes[] = {a, b, c}, *n = nodes[g_rand_int_range(rnd, 0, 3)];

        switch (g_rand_int_range(rnd, 0, 16)) {
        case 0:
            region->slot[k].len = g_rand_int(rnd) >> g_rand_int_range(rnd, 0, 32);
            break;
        case 1:
            region->slot[k].owner = g_rand_boolean(rnd) ? shm_tag(s, gen) : wild;
            break;
        case 2:
            region->slot[k].stamp = g_rand_boolean(rnd) ? shm_stamp(gen, k) : wild;
            break;
        case 3:
            region->ends[s].tail = g_rand_boolean(rnd) ? shm_tail(gen, k) : wild;
            break;
        case 4:
            region->ring[s].entry[k % SHM_RING] =
                g_rand_boolean(rnd) ? shm_stamp(gen, k) << 16 | (wild & 0x1ff) : wild;
            break;
        case 5:
            for (unsigned e = 0; e < SHM_RING; e++) { /* a whole ring of forged entries */
                region->ring[s].entry[e] = shm_stamp(gen, e + (k & ~127u)) << 16 | (wild & 0xff);
            }
            break;
        case 6:
            h->member[s].gen = g_rand_boolean(rnd) ? gen + 1 : (uint32_t)wild;
            break;
        case 7:
            h->member[s].attached = g_rand_boolean(rnd);
            break;
        case 8:
            h->member[s].senders.word[k % SHM_WORDS] = wild;
            h->member[s].senders.some = wild >> 8;
            h->member[s].floods.word[k % SHM_WORDS] = wild;
            h->member[s].floods.some = wild >> 16;
            break;
        case 9:
            h->member[s].waiters.word[k % SHM_WORDS] = wild;
            h->member[s].waiters.some = wild >> 8;
            h->present.word[k % SHM_WORDS] = wild;
            break;
        case 10:
            h->member[s].mac[k % SHM_MACS] = (uint32_t)wild;
            h->fdb[(wild >> 32) % SHM_FDB] = (0x020000000000 | k % 4) << 16 | (wild & 0x7ff);
            break;
        case 11:
            h->member[s].sleep = (uint32_t)wild;
            h->member[s].credits.word[k % SHM_WORDS] = wild;
            h->member[s].credits.some = wild >> 8;
            break;
        case 12:
            h->member[s].log_head = g_rand_boolean(rnd) ? k * 64 : wild;
            h->member[s].log_tail = g_rand_boolean(rnd) ? 0 : wild;
            break;
        case 13:
            *(uint32_t *)(h->log[s].bytes + k * 64 % SHM_LOG + 8) = (uint32_t)wild;
            break;
        case 14:
            h->member[s].chunks[k % 2] = wild;
            break;
        default:
            ((uint64_t *)map)[wild % (size / 8)] = wild;
            break;
        }
        send_frame(n, (uint8_t)g_rand_int_range(rnd, 1, 5), 0, 64);
        send_frame(n, 0xff, 0, 64);
        wire_poll(n->port, (unsigned)g_rand_int_range(rnd, 1, 100));
        wire_fd_event(n->port);
    }
    munmap(map, size);
    close(fd);
    leave(a);
    leave(b);
    leave(c);
    g_rand_free(rnd);
    g_free(path);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire shm processes");
    TCase *tc = tcase_create("shm");

    nodes_make_dir();
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_receiver_that_dies_frees_its_senders);
    tcase_add_test(tc, a_receiver_that_dies_frees_busy_senders);
    tcase_add_test(tc, the_end_of_a_host_is_reported);
    tcase_add_test(tc, a_host_that_leaves_has_not_ended);
    tcase_add_test(tc, reservations_of_the_dead_come_back);
    tcase_add_test(tc, frames_of_a_sender_that_died_still_arrive);
    tcase_add_test(tc, a_look_for_the_dead_takes_nothing_that_they_had_sent);
    tcase_add_test(tc, a_place_is_taken_over);
    tcase_add_test(tc, the_segment_of_dead_processes_is_replaced);
    tcase_add_test(tc, segments_of_the_dead_are_swept);
    tcase_add_test(tc, a_fifo_without_its_segment_is_swept);
    tcase_add_test(tc, unfinished_segments_are_swept);
    tcase_add_test(tc, a_wire_with_the_name_of_a_fifo_stays);
    tcase_add_test(tc, many_processes_lose_nothing);
    tcase_add_test(tc, processes_are_killed_at_random_moments);
    tcase_add_loop_test(tc, random_bytes_in_shared_memory_cause_no_crash, 0, 6);
    suite_add_tcase(s, tc);
    return s;
}
