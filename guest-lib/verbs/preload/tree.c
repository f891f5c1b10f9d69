/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes and removes the tree. It is made when a program first asks for something in it, made again
 * if the process has become a host since then (its addresses may differ from those that it would
 * have had), and removed at the end.
 *
 * The tree is in the first place of tree_place.h that can hold it. A process that makes a tree
 * removes the trees that dead processes left. A child of fork() leaves its parent's tree alone and
 * makes its own.
 */
#define _GNU_SOURCE
#include "guest-lib/verbs/preload/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guest-lib/verbs/preload/tree_place.h"

static pthread_mutex_t tree_lock = PTHREAD_MUTEX_INITIALIZER; /* around the variables below */
static char tree_root[PATH_MAX];                              /* "": there is no tree */
static pid_t tree_process;    /* owner of this memory: a child of vfork() only borrows it */
static pid_t tree_pid;        /* the process that made the tree */
static pid_t tree_host;       /* hv_facts.host when it was made */
static uint32_t tree_removed; /* hv_facts.removed at that time */
static int tree_fd = -1;      /* holds the lock */
static dev_t tree_dev;
static ino_t tree_ino;
static bool tree_over; /* the process ends: no more trees are made */

/* -- which paths -------------------------------------------------------------------------------
 */

bool tree_has_gpu(void)
{
    const char *gpu = getenv("HCASIM_GPU");

    return gpu && *gpu;
}

/* Whether the path begins with the prefix and then ends or continues with one of these
 * characters. */
static bool tree_begins(const char *path, const char *prefix, const char *next)
{
    size_t len = strlen(prefix);

    return !strncmp(path, prefix, len) && strchr(next, path[len]) != NULL;
}

#define DIGITS "0123456789"

/* tree_begins() uses strchr(), which also finds the end of the string. */
static bool tree_is_path(const char *path)
{
    return tree_begins(path, "/sys/class/infiniband", "/_") ||
           tree_begins(path, "/dev/infiniband", "/") || tree_begins(path, "/" TREE_PCI_ROOT, "/") ||
           (tree_begins(path, "/sys/class/net/" TREE_NETDEV, DIGITS) &&
            path[strlen("/sys/class/net/" TREE_NETDEV)] != '\0') ||
           tree_begins(path, "/sys/bus/pci/devices/" TREE_PCI_DOMAIN, ":") ||
           tree_begins(path, "/sys/class/pci_bus/" TREE_PCI_BUS, "/") ||
           ((tree_begins(path, "/" TREE_PEER_MEMORY, "/") ||
             tree_begins(path, "/" TREE_PEER_MODULE, "/")) &&
            tree_has_gpu()) ||
           tree_joins(path);
}

/* -- making ------------------------------------------------------------------------------------
 */

/* Whether the descriptor is still the tree's: the program may have closed it. */
static bool tree_fd_is_ours(void)
{
    struct stat st;

    return tree_fd >= 0 && !fstat(tree_fd, &st) && st.st_dev == tree_dev && st.st_ino == tree_ino;
}

static void tree_forget(void)
{
    if (tree_fd_is_ours()) {
        close(tree_fd);
    }
    tree_fd = -1;
    tree_root[0] = '\0';
}

static void tree_remove(void)
{
    if (tree_root[0] && tree_pid == getpid()) {
        int fd = open(tree_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (fd >= 0) {
            tree_clear(fd);
            close(fd);
        }
        rmdir(tree_root);
    }
    tree_forget();
}

/* Makes the tree in this place. False: errno. */
static bool tree_make_at(const char *place, const struct hv_facts *facts)
{
    struct stat st;
    int why;

    tree_fd = tree_place_make(place, tree_root);
    if (tree_fd < 0 || fstat(tree_fd, &st)) {
        tree_root[0] = '\0';
        return false;
    }
    tree_dev = st.st_dev;
    tree_ino = st.st_ino;
    tree_pid = getpid();
    tree_host = facts->host;
    tree_removed = facts->removed;
    if (!tree_write(tree_fd, facts)) {
        why = errno;
        tree_remove();
        errno = why;
        return false;
    }
    return true;
}

/* Says once that there is no tree. why: the errno of the last place. */
static void tree_complain(int why)
{
    static bool said;
    char line[256];
    int len = snprintf(line, sizeof(line),
                       "hcasim: the program finds no files of the HCA in /sys and /dev, because "
                       "$XDG_RUNTIME_DIR, /tmp and /dev/shm cannot hold them (%s)\n",
                       strerror(why));

    if (!said && len > 0) {
        said = true;
        (void)!write(STDERR_FILENO, line, strnlen(line, sizeof(line)));
    }
}

static void tree_make(const struct hv_facts *facts)
{
    int why = ENOENT;

    tree_place_sweep(NULL, NULL);
    for (unsigned i = 0; i < TREE_PLACES; i++) {
        const char *place = tree_place_at(i);

        if (place && tree_make_at(place, facts)) {
            return;
        }
        why = place ? errno : why;
    }
    tree_complain(why);
}

/* Whether there is a tree that shows these facts. */
static bool tree_is_fresh(const struct hv_facts *facts)
{
    return tree_root[0] && tree_pid == getpid() && tree_host == facts->host &&
           tree_removed == facts->removed && (tree_fd_is_ours() || !access(tree_root, F_OK));
}

/* -- lookup ------------------------------------------------------------------------------------ */

/* Opens the tree again, because the program may have closed tree_fd. */
static void tree_join_machine(const char *path)
{
    int fd = open(tree_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0) {
        tree_join(fd, path);
        close(fd);
    }
}

/* While this thread makes the tree, it opens files without a lookup in the tree. */
static __thread bool tree_busy;

PRELOAD_SLOW static bool tree_find_in(const struct hv_facts *facts, const char *path,
                                      char there[PATH_MAX])
{
    bool found;
    int len;

    pthread_mutex_lock(&tree_lock);
    if (!tree_over && getpid() == tree_process && !tree_is_fresh(facts)) {
        tree_remove();
        tree_make(facts);
    }
    len = snprintf(there, PATH_MAX, "%s%s", tree_root, path);
    found = tree_root[0] && len < PATH_MAX;
    if (found && tree_joins(path)) {
        tree_join_machine(path);
    }
    pthread_mutex_unlock(&tree_lock);
    return found;
}

/* Removes parts without effect ("//", "/./") from an absolute path. At the end, such a part stays
 * as a slash, which says that the path is a folder. False: the path is too long. */
static bool tree_tidy(const char *path, char tidy[PATH_MAX])
{
    size_t len = 0;

    while (*path) {
        size_t part = 1 + strcspn(path + 1, "/");
        bool leads_on = part > 1 && !(part == 2 && path[1] == '.');
        size_t keep = leads_on ? part : path[part] ? 0 : 1;

        if (len + keep >= PATH_MAX) {
            return false;
        }
        memcpy(tidy + len, path, keep);
        len += keep;
        path += part;
    }
    tidy[len] = '\0';
    return true;
}

static bool tree_find_absolute(const char *path, char there[PATH_MAX])
{
    struct hv_facts facts;
    char tidy[PATH_MAX];
    int state;
    bool found;

    if (tree_busy || !tree_tidy(path, tidy) || !tree_is_path(tidy)) {
        return false;
    }
    path = tidy;
    tree_busy = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    found = self_look(&facts) && tree_find_in(&facts, path, there);
    pthread_setcancelstate(state, &state);
    tree_busy = false;
    return found;
}

/* -- relative paths ---------------------------------------------------------------------------- */

bool tree_may_lead(const char *path)
{
    const char *last = strrchr(path, '/');

    last = last ? last + 1 : path;
    return strstr(path, "infiniband") || strstr(path, TREE_NETDEV) ||
           strstr(path, TREE_PCI_DOMAIN) || strstr(path, "memory_peers") ||
           strstr(path, "nvidia_peermem") || !strcmp(last, "net") || !strcmp(last, "devices") ||
           !strcmp(last, "pci_bus");
}

/* The folder that relative paths start from. Returns the length of its path; 0: it is unknown. */
static size_t tree_folder(int at, char folder[PATH_MAX])
{
    char name[32];
    ssize_t len;

    folder[0] = '\0';
    if (at == AT_FDCWD) {
        len = syscall(SYS_getcwd, folder, PATH_MAX);
        len = len > 0 ? (ssize_t)strlen(folder) : 0;
    } else {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
        len = readlink(name, folder, PATH_MAX - 1);
        folder[len > 0 ? len : 0] = '\0';
    }
    if (len > 0 && folder[0] == '/') {
        tree_strip(folder);
        return strlen(folder);
    }
    return 0;
}

/* Makes a path absolute. Leading ".." are resolved by name. A ".." further behind, which may follow
 * a link, is not resolved. False: the path cannot be resolved, or is too long. */
static bool tree_absolute(int at, const char *path, char full[PATH_MAX])
{
    size_t len = tree_folder(at, full);
    int more;

    while (len && path[0] == '.' && (path[1] == '/' || !strncmp(path, "../", 3))) {
        if (path[1] == '.') {
            while (len && full[--len] != '/') {
            }
        }
        path += path[1] == '.' ? 3 : 2;
        path += strspn(path, "/");
    }
    if ((!len && full[0] != '/') || strstr(path, "../")) {
        return false;
    }
    if (len == 1) { /* the root folder */
        len = 0;
    }
    more = snprintf(full + len, PATH_MAX - len, "/%s", path);
    return more > 0 && (size_t)more < PATH_MAX - len;
}

bool tree_find(int at, const char *path, char there[PATH_MAX])
{
    char full[PATH_MAX];
    int err = errno;
    bool found = path[0] == '/' ? tree_find_absolute(path, there)
                                : !tree_busy && tree_absolute(at, path, full) &&
                                      tree_find_absolute(full, there);

    errno = err;
    return found;
}

void tree_strip(char *path)
{
    size_t len;

    pthread_mutex_lock(&tree_lock);
    len = strlen(tree_root);
    if (len && !strncmp(path, tree_root, len) && path[len] == '/') {
        memmove(path, path + len, strlen(path + len) + 1);
    }
    pthread_mutex_unlock(&tree_lock);
}

const char *tree_stands_for(const char *there)
{
    size_t len;

    pthread_mutex_lock(&tree_lock);
    len = strlen(tree_root);
    if (!len || strncmp(there, tree_root, len)) {
        len = 0;
    }
    pthread_mutex_unlock(&tree_lock);
    return there + len;
}

/* -- the process -------------------------------------------------------------------------------
 */

static void tree_before_fork(void)
{
    pthread_mutex_lock(&tree_lock);
}

static void tree_after_fork(void)
{
    pthread_mutex_unlock(&tree_lock);
}

/* Closes the descriptor in the child, which would otherwise keep a killed parent's tree. */
static void tree_in_child(void)
{
    tree_process = getpid();
    tree_forget();
    pthread_mutex_unlock(&tree_lock);
}

__attribute__((constructor)) static void tree_begin(void)
{
    tree_process = getpid();
    pthread_atfork(tree_before_fork, tree_after_fork, tree_in_child);
}

__attribute__((destructor)) static void tree_end(void)
{
    if (!pthread_mutex_trylock(&tree_lock)) {
        tree_over = true;
        tree_busy = true;
        tree_remove();
        pthread_mutex_unlock(&tree_lock);
    }
}
