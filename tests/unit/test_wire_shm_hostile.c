/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests how much a malicious member of a shared-memory segment may cost the others: it writes
 * arbitrary values anywhere, holds locks and fills FIFOs. The amount of work is counted, or is
 * visible in memory that must not be touched; a wait without an end exceeds the time limit.
 */
#include "tests/unit/wire_nodes.h"
#include "wire/shm/file.h"
#include "wire/shm/port.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *seg_path(void)
{
    return g_build_filename(nodes_dir, "seg", NULL);
}

/* Returns a descriptor of the segment, as another process opens it. */
static int open_segment(void)
{
    char *path = seg_path();
    int fd = open(path, O_RDWR | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    g_free(path);
    return fd;
}

/* The port can no longer access the slots of its own region. */
static void forbid_slots(struct shm_port *sp, int prot)
{
    uint8_t *first = (uint8_t *)sp->seg.region[sp->seg.id]->slot;
    uintptr_t begin = ((uintptr_t)first + 4095) & ~(uintptr_t)4095;

    ck_assert_int_eq(mprotect((void *)begin, (SHM_SLOTS - 1) * sizeof(struct shm_slot), prot), 0);
}

/* A generation that changes at each look costs a look at that one sender. The slots that its
 * predecessors may have left are searched for only now and then. */
START_TEST(a_changing_generation_costs_no_search)
{
    struct node *a, *b;
    struct shm_port *sp;

    two(&a, &b);
    sp = shm_port_of(b->port);
    sp->recheck_at_ms[SHM_RECHECK_OWNERS] = UINT64_MAX;
    forbid_slots(sp, PROT_NONE);
    for (unsigned i = 0; i < 1000; i++) {
        for (unsigned id = 0; id < SHM_MEMBERS; id++) {
            atomic_fetch_add(&shm_member_at(sp, id)->gen, id != sp->seg.id);
        }
        atomic_store(&sp->self->senders.word[i % SHM_WORDS], ~0ull);
        atomic_store(&sp->self->senders.some, ~0ull);
        ck_assert_uint_eq(wire_poll(b->port, 64), 0);
    }
    forbid_slots(sp, PROT_READ | PROT_WRITE);
    /* A reservation under an old generation is returned when that search is due. */
    atomic_store(&sp->seg.region[sp->seg.id]->slot[2].owner, shm_tag(5, 1));
    sp->recheck_at_ms[SHM_RECHECK_OWNERS] = 0;
    wire_poll(b->port, 64);
    ck_assert_uint_eq(atomic_load(&sp->seg.region[sp->seg.id]->slot[2].owner), 0);
    leave(a);
    leave(b);
}
END_TEST

/* A frame from one to the other: there is a ring between them. */
static void meet(struct node *from, struct node *to)
{
    ck_assert(send_frame(from, to->id, 0, 64));
    ck_assert_uint_eq(drain(to), 1);
    to->frames = 0;
}

/* Invented entries count as frames that were taken: a poll does not do more than asked. */
START_TEST(made_up_entries_are_taken_as_many_as_asked_for)
{
    struct node *a, *b;
    struct shm_port *sp;
    struct shm_ring *ring;
    unsigned from, total = 0;

    two(&a, &b);
    meet(a, b);
    sp = shm_port_of(b->port);
    from = shm_port_of(a->port)->seg.id;
    ring = &sp->seg.region[sp->seg.id]->ring[from];
    for (uint32_t i = 0; i < SHM_RING; i++) {
        uint32_t pos = sp->source[from].pos + i;

        ring->entry[pos % SHM_RING] =
            shm_stamp(sp->source[from].gen, pos) << 16 | (i % 2 ? 0xffff : i);
    }
    while (total < SHM_RING) {
        uint64_t before = stats_of(b).rx_malformed;
        unsigned n = wire_poll(b->port, 10);

        ck_assert_uint_le(n, 10);
        ck_assert_uint_gt(n, 0);
        ck_assert_uint_eq(stats_of(b).rx_malformed - before, n);
        total += n;
    }
    ck_assert_uint_eq(total, SHM_RING);
    ck_assert_uint_eq(b->frames, 0);
    leave(a);
    leave(b);
}
END_TEST

/* Returns how much memory for slots a member has, as the segment says. */
static unsigned chunks_of(struct shm_port *sp, unsigned id)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SHM_CHUNKS / 64; i++) {
        n += (unsigned)__builtin_popcountll(atomic_load(&shm_member_at(sp, id)->chunks[i]));
    }
    return n;
}

/* A receiver whose slots all have an owner, and which removes chunks from the list as they come,
 * has no room. A sender sees that after a few looks, and waits as for any other receiver. */
START_TEST(the_search_for_a_free_chunk_in_a_hostile_region_ends)
{
    struct node *a, *b;
    struct shm_port *sp;
    unsigned before;

    two(&a, &b);
    meet(a, b);
    sp = shm_port_of(b->port);
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        atomic_store(&sp->seg.region[sp->seg.id]->slot[i].owner, shm_tag(7, 1));
    }
    before = chunks_of(sp, sp->seg.id);
    ck_assert(!send_frame(a, b->id, 0, 64));
    ck_assert_uint_gt(chunks_of(sp, sp->seg.id), before);
    /* It looks twice, the second time when the receiver knows that it waits. */
    ck_assert_uint_le(chunks_of(sp, sp->seg.id) - before, 2 * 8);
    for (unsigned i = 0; i < SHM_SLOTS; i++) {
        atomic_store(&sp->seg.region[sp->seg.id]->slot[i].owner, 0);
    }
    leave(a);
    leave(b);
}
END_TEST

/* All members claim to wait for room and to sleep: a few of them are notified at a time, each in
 * its turn, and none is left out. */
START_TEST(waking_many_is_spread)
{
    struct node *a, *b;
    struct shm_port *sp;
    unsigned told = 0;
    char *path = seg_path();

    two(&a, &b);
    sp = shm_port_of(b->port);
    for (unsigned id = 2; id < SHM_MEMBERS; id++) {
        char *fifo = shm_wake_path(path, id);

        ck_assert_int_eq(mkfifo(fifo, 0600), 0);
        g_free(fifo);
    }
    for (unsigned round = 0; round < SHM_MEMBERS / 16; round++) {
        uint64_t before = stats_of(b).wakeups;

        for (unsigned id = 2; id < SHM_MEMBERS; id++) {
            atomic_store(&shm_member_at(sp, id)->sleep, 1);
            atomic_fetch_add(&shm_member_at(sp, id)->gen, 1);
        }
        for (unsigned w = 0; w < SHM_WORDS; w++) {
            atomic_store(&sp->self->waiters.word[w], ~0ull);
        }
        atomic_store(&sp->self->waiters.some, ~0ull);
        ck_assert(send_frame(a, 2, 0, 64));
        ck_assert_uint_eq(drain(b), 1);
        ck_assert_uint_le(stats_of(b).wakeups - before, 40);
    }
    for (unsigned id = 2; id < SHM_MEMBERS; id++) {
        told += shm_set_has(&shm_member_at(sp, id)->credits, sp->seg.id);
    }
    ck_assert_uint_eq(told, SHM_MEMBERS - 2);
    leave(a);
    leave(b);
    ck_assert_uint_eq(nodes_files_left(), 0);
    g_free(path);
}
END_TEST

/* However fast somebody writes to a FIFO, its reader takes a limited amount and continues. */
START_TEST(a_fifo_that_never_empties_is_left)
{
    struct node *a, *b;
    char bytes[4096] = {0};
    int fifo, left;

    two(&a, &b);
    while (sleep_on(b, 0)) {
    }
    fifo = shm_segment_open_wake(&shm_port_of(a->port)->seg, shm_port_of(b->port)->seg.id);
    while (write(fifo, bytes, sizeof(bytes)) > 0) {
    }
    wire_fd_event(b->port);
    ck_assert_int_eq(ioctl(fifo, FIONREAD, &left), 0);
    ck_assert_int_gt(left, 0);
    close(fifo);
    leave(a);
    leave(b);
}
END_TEST

/* Somebody holds the join lock for ever: members continue, and leave, without it. */
START_TEST(living_and_leaving_members_need_no_join_lock)
{
    struct node *a, *b;
    int fd;

    two(&a, &b);
    fd = open_segment();
    ck_assert(shm_lock(fd, SHM_LOCK_JOIN));
    ck_assert(send_frame(a, 2, 1, 64));
    ck_assert_uint_eq(drain(b), 1);
    leave(a);
    leave(b);
    /* The lock's holder had to check whether anybody is left. */
    ck_assert_uint_eq(nodes_files_left(), 1);
    shm_unlock(fd, SHM_LOCK_JOIN);
    shm_file_sweep(nodes_dir, "se", NULL);
    ck_assert_uint_eq(nodes_files_left(), 0);
    close(fd);
}
END_TEST

START_TEST(joining_waits_for_the_join_lock_for_a_bounded_time)
{
    struct node *a = join(1);
    char *path = seg_path(), *uri = g_strconcat("shm:", path, NULL);
    GError *err = NULL;
    int fd = open_segment();

    ck_assert(shm_lock(fd, SHM_LOCK_JOIN));
    ck_assert_ptr_null(wire_open(uri, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    ck_assert_ptr_nonnull(strstr(err->message, "cannot lock the segment"));
    g_clear_error(&err);
    close(fd);
    leave(a);
    ck_assert_uint_eq(nodes_files_left(), 0);
    g_free(uri);
    g_free(path);
}
END_TEST

/* Puts its own file under the name, again and again, and releases the lock of each when the next
 * one is there. */
static void replace_for_ever(const char *path)
{
    char *aside = g_strconcat(path, "-next", NULL);
    int before = -1;

    for (;;) {
        int fd = open(aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (fd < 0 || !shm_lock(fd, SHM_LOCK_JOIN) || rename(aside, path)) {
            _exit(1);
        }
        if (before >= 0) {
            close(before);
        }
        before = fd;
        g_usleep(3000);
    }
}

START_TEST(a_file_that_is_always_another_one_is_not_joined)
{
    char *path = seg_path(), *uri = g_strconcat("shm:", path, NULL);
    GError *err = NULL;
    gint64 start;
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        replace_for_ever(path);
    }
    while (access(path, F_OK)) {
        g_usleep(1000);
    }
    start = g_get_monotonic_time();
    ck_assert_ptr_null(wire_open(uri, &err));
    ck_assert_int_lt(g_get_monotonic_time() - start, 4 * SHM_JOIN_WAIT_MS * 1000);
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    g_clear_error(&err);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    unlink(path);
    g_free(path);
    path = g_build_filename(nodes_dir, "seg-next", NULL);
    unlink(path);
    ck_assert_uint_eq(nodes_files_left(), 0);
    g_free(uri);
    g_free(path);
}
END_TEST

/* In its own process: joins, announces its address, and reports that. */
static pid_t member_process(int *ready)
{
    int pipes[2];
    pid_t pid;

    ck_assert_int_eq(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        announce(join(9));
        (void)!write(pipes[1], "", 1);
        pause();
        _exit(0);
    }
    close(pipes[1]);
    *ready = pipes[0];
    return pid;
}

/* Finding out that a receiver has died does not need the lock, either. */
START_TEST(the_dead_are_detached_without_the_join_lock)
{
    struct node *a = join(1);
    int ready, fd;
    char byte;
    pid_t pid = member_process(&ready);
    int64_t until = ms_now() + PATIENCE_MS;

    ck_assert_int_eq(read(ready, &byte, 1), 1);
    close(ready);
    drain(a);
    while (send_frame(a, 9, 0, 1000)) {
    }
    fd = open_segment();
    ck_assert(shm_lock(fd, SHM_LOCK_JOIN));
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    a->tx_readies = 0;
    while (ms_now() < until && !a->tx_readies) {
        sleep_on(a, 100);
        wire_poll(a->port, 64);
    }
    ck_assert_uint_ge(a->tx_readies, 1);
    ck_assert(send_frame(a, 9, 0, 1000));
    close(fd);
    leave(a);
}
END_TEST

/* A child of fork() shares its parent's open files. It does not keep the parent's place. */
START_TEST(a_fork_does_not_keep_the_dead_alive)
{
    struct node *a = join(1);
    pid_t *grandchild = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct shm_segment *seg = &shm_port_of(a->port)->seg;
    int pipes[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        announce(join(9));
        *grandchild = fork();
        if (*grandchild == 0) {
            *grandchild = getpid();
            (void)!write(pipes[1], "", 1);
            alarm(30);
            pause();
            _exit(0);
        }
        pause();
        _exit(0);
    }
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    drain(a);
    ck_assert(shm_segment_alive(seg, 1));
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(kill(*grandchild, 0), 0);
    ck_assert(!shm_segment_alive(seg, 1));
    kill(*grandchild, SIGKILL);
    munmap(grandchild, 4096);
    leave(a);
}
END_TEST

/* Whoever has the lock while the last member leaves checks again, so no file is left. */
START_TEST(many_come_and_go_at_once_and_nothing_is_left)
{
    pid_t pids[4];

    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int k = 0; k < 60; k++) {
                leave(join((uint8_t)(i + 1)));
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* The file under the name is no longer the one that was opened: it is not removed, nor are the
 * FIFOs of its members. */
START_TEST(another_file_of_the_name_stays)
{
    struct node *a = join(1), *b;
    char *path = seg_path(), *aside = g_strconcat(path, "-aside", NULL);
    char *fifo = shm_wake_path(path, 0);

    ck_assert_int_eq(g_rename(path, aside), 0);
    b = join(2); /* makes a new one */
    leave(a);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(access(fifo, F_OK), 0);
    leave(b);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(g_remove(aside), 0);
    ck_assert_uint_eq(nodes_files_left(), 0);
    g_free(fifo);
    g_free(aside);
    g_free(path);
}
END_TEST

/* A member lives in it, but it is truncated: a newcomer would only crash. */
START_TEST(a_truncated_segment_is_not_joined)
{
    int fd = -1, ready;
    char byte, *path = seg_path(), *uri = g_strconcat("shm:", path, NULL);
    pid_t pid = member_process(&ready);
    GError *err = NULL;

    ck_assert_int_eq(read(ready, &byte, 1), 1);
    close(ready);
    fd = open_segment();
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    close(fd);
    ck_assert_ptr_null(wire_open(uri, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    g_clear_error(&err);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    shm_file_sweep(nodes_dir, "se", NULL);
    ck_assert_uint_eq(nodes_files_left(), 0);
    g_free(uri);
    g_free(path);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire shm hostile");
    TCase *tc = tcase_create("hostile");

    nodes_make_dir();
    tcase_set_timeout(tc, 50); /* less than what used to be waited for the lock */
    tcase_add_test(tc, a_changing_generation_costs_no_search);
    tcase_add_test(tc, made_up_entries_are_taken_as_many_as_asked_for);
    tcase_add_test(tc, the_search_for_a_free_chunk_in_a_hostile_region_ends);
    tcase_add_test(tc, waking_many_is_spread);
    tcase_add_test(tc, a_fifo_that_never_empties_is_left);
    tcase_add_test(tc, living_and_leaving_members_need_no_join_lock);
    tcase_add_test(tc, joining_waits_for_the_join_lock_for_a_bounded_time);
    tcase_add_test(tc, a_file_that_is_always_another_one_is_not_joined);
    tcase_add_test(tc, the_dead_are_detached_without_the_join_lock);
    tcase_add_test(tc, a_fork_does_not_keep_the_dead_alive);
    tcase_add_test(tc, many_come_and_go_at_once_and_nothing_is_left);
    tcase_add_test(tc, another_file_of_the_name_stays);
    tcase_add_test(tc, a_truncated_segment_is_not_joined);
    suite_add_tcase(s, tc);
    return s;
}
