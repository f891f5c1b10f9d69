/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures how long a cache line takes from one processor to another one and back, in nanoseconds:
 * the least of some tries. A virtual machine's processors may share a cache now and be far from
 * each other a second later. Then everything that two threads or processes do together is slower,
 * in any program (scripts/bench verbs).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define TRIES 5
#define TURNS 20000u

static _Atomic unsigned ball; /* the number of throws so far */
static cpu_set_t processors[2];

/* Finds a processor for each of two threads. Returns false if there is only one. */
static bool find_processors(void)
{
    unsigned n = 0;
    cpu_set_t all;

    if (sched_getaffinity(0, sizeof(all), &all)) {
        return false;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &processors[n++]);
        }
    }
    return n == 2;
}

static void stay_on(const cpu_set_t *processor)
{
    pthread_setaffinity_np(pthread_self(), sizeof(*processor), processor);
}

/* Waits for that number of throws, and throws the ball. */
static void throw_back(unsigned thrown)
{
    while (atomic_load(&ball) != thrown) {
    }
    atomic_store(&ball, thrown + 1);
}

static void *other(void *opaque)
{
    stay_on(&processors[1]);
    for (unsigned turn = 0; turn < TRIES * TURNS; turn++) {
        throw_back(2 * turn + 1);
    }
    return NULL;
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double least_of_tries(void)
{
    double least = 0;

    for (unsigned try = 0; try < TRIES; try++) {
        double begin = now_ns(), each;

        for (unsigned turn = try * TURNS; turn < (try + 1) * TURNS; turn++) {
            throw_back(2 * turn);
        }
        each = (now_ns() - begin) / TURNS;
        least = try && least < each ? least : each;
    }
    return least;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc > 1) {
        fprintf(stderr, "usage: cache_line\n");
        return 2;
    }
    if (!find_processors() || pthread_create(&thread, NULL, other, NULL)) {
        fprintf(stderr, "there are no two processors\n");
        return 1;
    }
    stay_on(&processors[0]);
    printf("%.0f ns\n", least_of_tries());
    pthread_join(thread, NULL);
    return 0;
}
