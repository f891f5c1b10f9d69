/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a segment with a thousand members, all in this process: they find each other, come and go,
 * a look costs only what is on its way, and memory is what segment.h promises.
 */
#include "tests/unit/wire_nodes.h"
#include "wire/shm/file.h"
#include "wire/shm/port.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MANY = 1000
};

/* A member: its number is in its address and in each frame. */
struct one {
    struct wire_port *port;
    unsigned number, frames, last_from;
};

static struct one many[SHM_MEMBERS + 1];
static GRand *rnd;

static void number_to_mac(uint8_t mac[6], unsigned number)
{
    memcpy(mac, (uint8_t[]){2, 0, 0, 1, (uint8_t)(number >> 8), (uint8_t)number}, 6);
}

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    struct one *n = client;

    n->frames++;
    n->last_from = (unsigned)frame[10] << 8 | frame[11];
}

static const struct wire_client listening = {.rx = on_rx};

static char *seg_uri(void)
{
    return g_strdup_printf("shm:%s/seg", nodes_dir);
}

static void open_one(struct one *n, unsigned number)
{
    char *uri = seg_uri();
    GError *err = NULL;

    *n = (struct one){.port = wire_open(uri, &err), .number = number};
    ck_assert_msg(n->port, "%s", err ? err->message : "");
    wire_set_client(n->port, &listening, n);
    g_free(uri);
}

static void close_one(struct one *n)
{
    wire_close(n->port);
    n->port = NULL;
}

static bool send_to(struct one *n, unsigned to)
{
    uint8_t dmac[6], *frame;

    number_to_mac(dmac, to);
    frame = wire_tx_reserve_to(n->port, dmac, 64);
    if (!frame) {
        return false;
    }
    memset(frame, 0, 64);
    memcpy(frame, dmac, 6);
    number_to_mac(frame + 6, n->number);
    wire_tx_commit(n->port, 64);
    return true;
}

static void tell_all(struct one *n)
{
    uint8_t *frame = wire_tx_reserve(n->port, 64);

    memset(frame, 0xff, 6);
    number_to_mac(frame + 6, n->number);
    memset(frame + 12, 0, 52);
    wire_tx_commit(n->port, 64);
}

static unsigned poll_all(struct one *n)
{
    unsigned total = 0, got;

    while ((got = wire_poll(n->port, 64))) {
        total += got;
    }
    return total;
}

/* Returns the memory of the segment in tmpfs, in KiB. */
static unsigned segment_kib(void)
{
    char *path = g_build_filename(nodes_dir, "seg", NULL);
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    g_free(path);
    return (unsigned)(st.st_blocks / 2);
}

static void open_many(unsigned count)
{
    struct rlimit files;

    /* A port has five descriptors. */
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (unsigned i = 0; i < count; i++) {
        open_one(&many[i], i);
    }
}

static void close_many(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        close_one(&many[i]);
    }
    ck_assert_uint_eq(nodes_files_left(), 0);
}

static unsigned other_than(unsigned number, unsigned count)
{
    return (number + 1 + (unsigned)g_rand_int_range(rnd, 0, (gint32)count - 1)) % count;
}

/* A pair of members: one frame to the other, and one back. */
static void talk(unsigned from, unsigned to)
{
    ck_assert(send_to(&many[from], to));
    many[to].frames = 0;
    ck_assert_uint_eq(poll_all(&many[to]), 1);
    ck_assert_uint_eq(many[to].last_from, from);
    ck_assert(send_to(&many[to], from));
    ck_assert_uint_eq(poll_all(&many[from]), 1);
    ck_assert_uint_eq(many[from].last_from, to);
}

START_TEST(a_thousand_members_find_each_other)
{
    unsigned kib;

    open_many(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        tell_all(&many[i]);
    }
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_uint_eq(poll_all(&many[i]), MANY - 1);
    }
    for (unsigned i = 0; i < 4 * MANY; i++) {
        unsigned from = (unsigned)g_rand_int_range(rnd, 0, MANY);

        talk(from, other_than(from, MANY));
    }
    /* Some members leave, and others take their places with new addresses or with the old ones. */
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = round; i < MANY; i += 7) {
            close_one(&many[i]);
        }
        for (unsigned i = round; i < MANY; i += 7) {
            open_one(&many[i], i);
            tell_all(&many[i]);
        }
        for (unsigned i = 0; i < MANY; i++) {
            poll_all(&many[i]);
        }
        for (unsigned i = 0; i < MANY; i++) {
            talk(i, other_than(i, MANY));
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        struct wire_stats stats;

        wire_get_stats(many[i].port, &stats);
        ck_assert_uint_eq(stats.rx_malformed + stats.tx_no_room + stats.rx_missed, 0);
        ck_assert_uint_eq(stats.tx_no_dest, 0);
    }
    /* 512 for addresses, 88 a member and 16 for its log, 4 for each ring, of which there are two
     * for each of 7,000 pairs at most, and a page beside each for where it is. */
    kib = segment_kib();
    ck_assert_uint_le(kib, 600 + (88 + 16) * MANY + 2 * 7 * MANY * 4 * 2);
    close_many(MANY);
}
END_TEST

/* The segment takes memory only as it is used (wire/shm/segment.h): {members, KiB}. Each member
 * listens, and exchanges frames with one other member. */
static const unsigned promised[][2] = {{2, 700}, {128, 8200}, {1000, 60000}};

START_TEST(memory_is_what_is_used)
{
    unsigned count = promised[_i][0];

    open_many(count);
    for (unsigned i = 0; i < count; i += 2) {
        tell_all(&many[i]);
        tell_all(&many[i + 1]);
        for (unsigned k = 0; k < count; k++) {
            poll_all(&many[k]);
        }
        talk(i, i + 1);
    }
    ck_assert_uint_le(segment_kib(), promised[_i][1]);
    close_many(count);
}
END_TEST

/* A flooded receiver has 1,024 slots of 10 KiB, and no more. */
START_TEST(memory_of_a_full_receiver)
{
    unsigned sent = 0;

    open_many(4);
    for (unsigned i = 0; i < 4; i++) {
        tell_all(&many[i]);
    }
    for (unsigned i = 1; i < 4; i++) {
        while (send_to(&many[i], 0)) {
            sent++;
        }
    }
    ck_assert_uint_eq(sent, SHM_SLOTS);
    ck_assert_uint_le(segment_kib(), 1200 + 10 * SHM_SLOTS + SHM_SLOTS / 8);
    ck_assert_uint_eq(poll_all(&many[0]), 3 + SHM_SLOTS);
    /* Existing slots are used again. */
    for (unsigned i = 0; i < 10 * SHM_SLOTS; i++) {
        unsigned before = segment_kib();

        poll_all(&many[1]);
        ck_assert(send_to(&many[1], 0));
        ck_assert_uint_eq(poll_all(&many[0]), 1);
        ck_assert_uint_eq(segment_kib(), before);
    }
    close_many(4);
}
END_TEST

START_TEST(one_host_too_many_is_refused)
{
    GError *err = NULL;
    char *uri = seg_uri();

    open_many(SHM_MEMBERS);
    ck_assert_ptr_null(wire_open(uri, &err));
    ck_assert_ptr_nonnull(strstr(err->message, "all 1024 places of the segment are taken"));
    g_clear_error(&err);
    close_one(&many[517]);
    open_one(&many[517], 517);
    close_many(SHM_MEMBERS);
    g_free(uri);
}
END_TEST

/* Idle rings are not examined: their memory can then not be read, and a poll does not notice. A
 * member that sends again is heard. */
START_TEST(a_poll_visits_only_senders)
{
    struct shm_port *sp;
    struct shm_ring *rings;
    unsigned polls = 0;

    open_many(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        tell_all(&many[i]);
    }
    poll_all(&many[0]);
    for (unsigned i = 1; i < MANY; i++) {
        ck_assert(send_to(&many[i], 0));
    }
    ck_assert_uint_eq(poll_all(&many[0]), MANY - 1);
    sp = shm_port_of(many[0].port);
    ck_assert_uint_eq(sp->num_active, MANY - 1);
    while (sp->num_active) {
        wire_poll(many[0].port, 64);
        ck_assert_uint_lt(++polls, 2000);
    }
    rings = sp->seg.region[sp->seg.id]->ring;
    ck_assert_int_eq(mprotect(rings, sizeof(struct shm_ring) * SHM_MEMBERS, PROT_NONE), 0);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(wire_poll(many[0].port, 64), 0);
    }
    ck_assert_int_eq(mprotect(rings, sizeof(struct shm_ring) * SHM_MEMBERS, PROT_READ | PROT_WRITE),
                     0);
    for (unsigned i = 1; i < MANY; i += 100) {
        ck_assert(send_to(&many[i], 0));
        ck_assert_uint_eq(poll_all(&many[0]), 1);
        ck_assert_uint_eq(many[0].last_from, i);
    }
    ck_assert_uint_eq(sp->num_active, (MANY + 98) / 100);
    close_many(MANY);
}
END_TEST

/* All members have as many addresses as a member may have, and somebody takes over an address of
 * another: each address has one owner, its last user. */
START_TEST(the_table_of_addresses_is_exact)
{
    enum {
        MEMBERS = 64,
        EACH = SHM_MACS / 2
    };

    open_many(MEMBERS);
    for (unsigned i = 0; i < MEMBERS; i++) {
        for (unsigned k = 0; k < EACH; k++) {
            many[i].number = i * EACH + k;
            tell_all(&many[i]);
        }
        poll_all(&many[(i + 1) % MEMBERS]);
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        poll_all(&many[i]);
    }
    for (unsigned at = 0; at < MEMBERS * EACH; at++) {
        unsigned owner = at / EACH, from = (owner + 1) % MEMBERS;

        ck_assert(send_to(&many[from], at));
        for (unsigned i = 0; i < MEMBERS; i++) {
            unsigned got = poll_all(&many[i]);

            ck_assert_msg(got == (i == owner), "address %u at %u: %u", at, i, got);
        }
        if (at % 97 == 0) {
            /* Its neighbour uses it, and it follows. */
            many[from].number = at;
            tell_all(&many[from]);
            for (unsigned i = 0; i < MEMBERS; i++) {
                poll_all(&many[i]);
            }
            ck_assert(send_to(&many[owner], at));
            ck_assert_uint_eq(poll_all(&many[from]), 1);
        }
    }
    close_many(MEMBERS);
}
END_TEST

/* A member that leaves leaves no address behind: frames to its addresses go to all, and not to its
 * successor in the place. */
START_TEST(a_reused_place_has_none_of_the_old_addresses)
{
    open_many(3);
    tell_all(&many[1]);
    tell_all(&many[0]);
    close_one(&many[1]);
    open_one(&many[1], 9);
    ck_assert_uint_eq(shm_port_of(many[1].port)->seg.id, 1);
    poll_all(&many[1]), poll_all(&many[2]);
    ck_assert(send_to(&many[0], 1));
    ck_assert_uint_eq(poll_all(&many[1]), 1);
    ck_assert_uint_eq(poll_all(&many[2]), 1);
    close_many(3);
}
END_TEST

/* An older or newer process has another layout. */
START_TEST(another_version_is_refused_in_one_line)
{
    char *path = g_build_filename(nodes_dir, "seg", NULL), *uri = seg_uri();
    GError *err = NULL;
    uint32_t version = 5;
    int fd;

    open_many(1);
    fd = open(path, O_RDWR);
    ck_assert_int_eq(pwrite(fd, &version, 4, offsetof(struct shm_start, version)), 4);
    ck_assert_ptr_null(wire_open(uri, &err));
    ck_assert_ptr_nonnull(strstr(err->message, "in use by another version of this program"));
    ck_assert_ptr_null(strchr(err->message, '\n'));
    g_clear_error(&err);
    close(fd);
    close_many(1);
    g_free(path);
    g_free(uri);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire shm many");
    TCase *tc = tcase_create("many");

    nodes_make_dir();
    rnd = g_rand_new_with_seed(1);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, a_thousand_members_find_each_other);
    tcase_add_loop_test(tc, memory_is_what_is_used, 0, G_N_ELEMENTS(promised));
    tcase_add_test(tc, memory_of_a_full_receiver);
    tcase_add_test(tc, one_host_too_many_is_refused);
    tcase_add_test(tc, a_poll_visits_only_senders);
    tcase_add_test(tc, the_table_of_addresses_is_exact);
    tcase_add_test(tc, a_reused_place_has_none_of_the_old_addresses);
    tcase_add_test(tc, another_version_is_refused_in_one_line);
    suite_add_tcase(s, tc);
    return s;
}
