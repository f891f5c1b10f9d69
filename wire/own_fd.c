/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements own_fd.h: the list of open descriptors, and what fork() does with it. */
#include "wire/own_fd.h"
#include "wire/forks.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct own_fd *all;

void own_fd_lock(void)
{
    pthread_mutex_lock(&lock);
}

void own_fd_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void own_fd_set(struct own_fd *own, int fd)
{
    struct stat st = {0};

    fstat(fd, &st);
    *own = (struct own_fd){fd, st.st_dev, st.st_ino, all};
    all = own;
}

bool own_fd_is_there(const struct own_fd *own)
{
    struct stat st;

    return !fstat(own->fd, &st) && st.st_dev == own->dev && st.st_ino == own->ino;
}

static void own_fd_close_one(struct own_fd *own)
{
    if (own_fd_is_there(own)) {
        close(own->fd);
    }
    own->fd = -1;
}

/* Whether it was on the list. */
static bool own_fd_take_off(struct own_fd *own)
{
    for (struct own_fd **at = &all; *at; at = &(*at)->next) {
        if (*at == own) {
            *at = own->next;
            return true;
        }
    }
    return false;
}

void own_fd_forget(struct own_fd *own)
{
    own_fd_take_off(own);
    own->fd = -1;
}

void own_fd_close(struct own_fd *own)
{
    pthread_mutex_lock(&lock);
    if (own_fd_take_off(own)) {
        own_fd_close_one(own);
    }
    pthread_mutex_unlock(&lock);
}

static void own_fd_in_child(void)
{
    for (; all; all = all->next) {
        own_fd_close_one(all);
    }
    pthread_mutex_unlock(&lock);
}

FORKS_INNER_LOCK static void own_fd_watch_forks(void)
{
    pthread_atfork(own_fd_lock, own_fd_unlock, own_fd_in_child);
}
