/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hot removal of a device while its program runs: when it happens (HCASIM_REMOVE_AFTER,
 * HCASIM_REMOVE_WHEN). A thread waits for that time, from the moment that the process opens the
 * device. If no removal is configured, there is no thread. A child of fork() has a device of its
 * own, and its own thread.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/user/device.h"
#include "guest-lib/verbs/verbs.h"

#define LOOK_NS 10000000u /* between two checks for the file */

struct removal {
    struct ibv_device *device;
    uint64_t at_ns;   /* UINT64_MAX: never */
    const char *when; /* or NULL */
};

static uint64_t removal_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *removal_main(void *opaque)
{
    struct removal *removal = opaque;
    uint64_t now = removal_now_ns();

    while (now < removal->at_ns && (!removal->when || access(removal->when, F_OK))) {
        uint64_t left = removal->at_ns - now, ns = removal->when ? MIN(left, LOOK_NS) : left;
        struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                              .tv_nsec = (long)(ns % 1000000000u)};

        nanosleep(&ts, NULL);
        now = removal_now_ns();
    }
    hv_device_remove(removal->device);
    g_free(removal);
    return NULL;
}

/* The program's signals must not run on this thread. */
int hv_removal_watch(struct ibv_device *device)
{
    const struct hv_port_config *config = hv_device(device)->config;
    struct removal *removal;
    sigset_t all, old;
    pthread_t thread;
    int err;

    if (!config->removes && !config->remove_when) {
        return 0;
    }
    removal = g_new0(struct removal, 1);
    removal->device = device;
    removal->at_ns = config->removes ? removal_now_ns() + config->remove_after_ns : UINT64_MAX;
    removal->when = config->remove_when;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&thread, NULL, removal_main, removal);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err) {
        g_free(removal);
    } else {
        pthread_detach(thread);
    }
    return err;
}
