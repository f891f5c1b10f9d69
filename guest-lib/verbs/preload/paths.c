/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that take a path. If the path is one of the HCA's, it is looked up in the tree; for
 * any other path, this costs a comparison of its first characters. Programs that were built long
 * ago, or with checks of buffer sizes, call the C library by other names; those are here, too.
 */
/* open() and open64() must be two functions in this file, and so on. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"

#define RDMA_CM "/dev/infiniband/rdma_cm"

/* Functions that no header declares. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int at, const char *path, int flags);
int __openat64_2(int at, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t size);
ssize_t __readlinkat_chk(int at, const char *path, char *buf, size_t len, size_t size);
char *__realpath_chk(const char *path, char *resolved, size_t size);
int __xstat(int version, const char *path, struct stat *buf);
int __xstat64(int version, const char *path, struct stat64 *buf);
int __lxstat(int version, const char *path, struct stat *buf);
int __lxstat64(int version, const char *path, struct stat64 *buf);
int __fxstatat(int version, int at, const char *path, struct stat *buf, int flags);
int __fxstatat64(int version, int at, const char *path, struct stat64 *buf, int flags);

#define FUNCTIONS(X)                                                                               \
    X(open)                                                                                        \
    X(open64)                                                                                      \
    X(openat)                                                                                      \
    X(openat64)                                                                                    \
    X(__open_2)                                                                                    \
    X(__open64_2)                                                                                  \
    X(__openat_2)                                                                                  \
    X(__openat64_2)                                                                                \
    X(fopen)                                                                                       \
    X(fopen64)                                                                                     \
    X(stat)                                                                                        \
    X(stat64)                                                                                      \
    X(lstat)                                                                                       \
    X(lstat64)                                                                                     \
    X(fstatat)                                                                                     \
    X(fstatat64)                                                                                   \
    X(statx)                                                                                       \
    X(__xstat)                                                                                     \
    X(__xstat64)                                                                                   \
    X(__lxstat)                                                                                    \
    X(__lxstat64)                                                                                  \
    X(__fxstatat)                                                                                  \
    X(__fxstatat64)                                                                                \
    X(access)                                                                                      \
    X(faccessat)                                                                                   \
    X(eaccess)                                                                                     \
    X(euidaccess)                                                                                  \
    X(chdir)                                                                                       \
    X(opendir)                                                                                     \
    X(scandir)                                                                                     \
    X(scandir64)                                                                                   \
    X(getxattr)                                                                                    \
    X(lgetxattr)                                                                                   \
    X(listxattr)                                                                                   \
    X(llistxattr)                                                                                  \
    X(readlink)                                                                                    \
    X(readlinkat)                                                                                  \
    X(__readlink_chk)                                                                              \
    X(__readlinkat_chk)                                                                            \
    X(realpath)                                                                                    \
    X(__realpath_chk)                                                                              \
    X(canonicalize_file_name)                                                                      \
    X(getcwd)                                                                                      \
    X(ftw)                                                                                         \
    X(ftw64)                                                                                       \
    X(nftw)                                                                                        \
    X(nftw64)                                                                                      \
    X(glob)                                                                                        \
    X(glob64)
REAL_TABLE(FUNCTIONS)

/*
 * Defines a function that has a path as its parameter `path`: PATHS(type, name, (its parameters),
 * (its arguments)). For a path of the HCA's, the C library's function is called with the path in
 * the tree. PATHS_OF() is for functions that also take the folder to which a relative path belongs.
 */
#define PATHS(type, name, parameters, arguments)                                                   \
    PATHS_OF(AT_FDCWD, type, name, parameters, arguments)
#define PATHS_OF(folder, type, name, parameters, arguments)                                        \
    PRELOAD_SLOW static type paths_##name parameters                                               \
    {                                                                                              \
        char there[PATH_MAX];                                                                      \
                                                                                                   \
        path = tree_find(folder, path, there) ? there : path;                                      \
        return REAL(name) arguments;                                                               \
    }                                                                                              \
    PRELOAD_EXPORT type name parameters                                                            \
    {                                                                                              \
        return tree_may_have(path) ? paths_##name arguments : REAL(name) arguments;                \
    }

/* -- opening -----------------------------------------------------------------------------------
 */

#define MODE_OF(flags, mode)                                                                       \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list args;                                                                              \
                                                                                                   \
        va_start(args, flags);                                                                     \
        mode = va_arg(args, mode_t);                                                               \
        va_end(args);                                                                              \
    }

static bool paths_is_rdma_cm(const char *there)
{
    size_t len = strlen(there), name_len = strlen(RDMA_CM);

    return len > name_len && !strcmp(there + len - name_len, RDMA_CM);
}

/* Whether an open must fail. Device files may be opened for writing. Files that stand for a
 * kernel's may not, even by root, who may otherwise write to any file: nothing can be set. */
static bool paths_is_refused(const char *there, bool writes)
{
    bool refused = writes && !strncmp(tree_stands_for(there), "/sys/", 5);

    errno = refused ? EACCES : errno;
    return refused;
}

/* Opens a file in the tree. The connection manager's file is special: commands are written to
 * it. */
PRELOAD_SLOW static int paths_open(int at, const char *path, int flags, mode_t mode)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
    char there[PATH_MAX];

    if (!strcmp(path, RDMA_CM)) {
        return interpose_open(flags);
    }
    if (!tree_find(at, path, there)) {
        return REAL(openat)(at, path, flags, mode);
    }
    if (paths_is_refused(there, writes)) {
        return -1;
    }
    return paths_is_rdma_cm(there) ? interpose_open(flags) : REAL(openat)(at, there, flags, mode);
}

#define OPEN(name, flag)                                                                           \
    PRELOAD_EXPORT int name(const char *path, int flags, ...)                                      \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
                                                                                                   \
        MODE_OF(flags, mode)                                                                       \
        return tree_may_have(path) ? paths_open(AT_FDCWD, path, flags | (flag), mode)              \
                                   : REAL(name)(path, flags, mode);                                \
    }
#define OPENAT(name, flag)                                                                         \
    PRELOAD_EXPORT int name(int at, const char *path, int flags, ...)                              \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
                                                                                                   \
        MODE_OF(flags, mode)                                                                       \
        return tree_may_have(path) ? paths_open(at, path, flags | (flag), mode)                    \
                                   : REAL(name)(at, path, flags, mode);                            \
    }
#define OPEN_CHECKED(name, flag)                                                                   \
    PRELOAD_EXPORT int name(const char *path, int flags)                                           \
    {                                                                                              \
        return tree_may_have(path) ? paths_open(AT_FDCWD, path, flags | (flag), 0)                 \
                                   : REAL(name)(path, flags);                                      \
    }
#define OPENAT_CHECKED(name, flag)                                                                 \
    PRELOAD_EXPORT int name(int at, const char *path, int flags)                                   \
    {                                                                                              \
        return tree_may_have(path) ? paths_open(at, path, flags | (flag), 0)                       \
                                   : REAL(name)(at, path, flags);                                  \
    }
OPEN(open, 0)
OPEN(open64, O_LARGEFILE)
OPENAT(openat, 0)
OPENAT(openat64, O_LARGEFILE)
OPEN_CHECKED(__open_2, 0)
OPEN_CHECKED(__open64_2, O_LARGEFILE)
OPENAT_CHECKED(__openat_2, 0)
OPENAT_CHECKED(__openat64_2, O_LARGEFILE)

#define FOPEN(name)                                                                                \
    PRELOAD_SLOW static FILE *paths_##name(const char *path, const char *mode)                     \
    {                                                                                              \
        char there[PATH_MAX];                                                                      \
                                                                                                   \
        if (!tree_find(AT_FDCWD, path, there)) {                                                   \
            return REAL(name)(path, mode);                                                         \
        }                                                                                          \
        return paths_is_refused(there, mode[0] != 'r' || strchr(mode, '+'))                        \
                   ? NULL                                                                          \
                   : REAL(name)(there, mode);                                                      \
    }                                                                                              \
    PRELOAD_EXPORT FILE *name(const char *path, const char *mode)                                  \
    {                                                                                              \
        return tree_may_have(path) ? paths_##name(path, mode) : REAL(name)(path, mode);            \
    }
FOPEN(fopen)
FOPEN(fopen64)
PATHS(DIR *, opendir, (const char *path), (path))
PATHS(int, chdir, (const char *path), (path))
PATHS(int, scandir,
      (const char *path, struct dirent ***names, int (*select)(const struct dirent *),
       int (*compare)(const struct dirent **, const struct dirent **)),
      (path, names, select, compare))
PATHS(int, scandir64,
      (const char *path, struct dirent64 ***names, int (*select)(const struct dirent64 *),
       int (*compare)(const struct dirent64 **, const struct dirent64 **)),
      (path, names, select, compare))

/* -- attributes of a file ---------------------------------------------------------------------- */

PATHS(int, stat, (const char *path, struct stat *buf), (path, buf))
PATHS(int, stat64, (const char *path, struct stat64 *buf), (path, buf))
PATHS(int, lstat, (const char *path, struct stat *buf), (path, buf))
PATHS(int, lstat64, (const char *path, struct stat64 *buf), (path, buf))
PATHS_OF(at, int, fstatat, (int at, const char *path, struct stat *buf, int flags),
         (at, path, buf, flags))
PATHS_OF(at, int, fstatat64, (int at, const char *path, struct stat64 *buf, int flags),
         (at, path, buf, flags))
PATHS_OF(at, int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *buf),
         (at, path, flags, mask, buf))
PATHS(int, __xstat, (int version, const char *path, struct stat *buf), (version, path, buf))
PATHS(int, __xstat64, (int version, const char *path, struct stat64 *buf), (version, path, buf))
PATHS(int, __lxstat, (int version, const char *path, struct stat *buf), (version, path, buf))
PATHS(int, __lxstat64, (int version, const char *path, struct stat64 *buf), (version, path, buf))
PATHS_OF(at, int, __fxstatat, (int version, int at, const char *path, struct stat *buf, int flags),
         (version, at, path, buf, flags))
PATHS_OF(at, int, __fxstatat64,
         (int version, int at, const char *path, struct stat64 *buf, int flags),
         (version, at, path, buf, flags))
PATHS(int, access, (const char *path, int mode), (path, mode))
PATHS_OF(at, int, faccessat, (int at, const char *path, int mode, int flags),
         (at, path, mode, flags))
PATHS(int, eaccess, (const char *path, int mode), (path, mode))
PATHS(int, euidaccess, (const char *path, int mode), (path, mode))

PATHS(ssize_t, getxattr, (const char *path, const char *name, void *buf, size_t len),
      (path, name, buf, len))
PATHS(ssize_t, lgetxattr, (const char *path, const char *name, void *buf, size_t len),
      (path, name, buf, len))
PATHS(ssize_t, listxattr, (const char *path, char *names, size_t len), (path, names, len))
PATHS(ssize_t, llistxattr, (const char *path, char *names, size_t len), (path, names, len))

/* -- links -------------------------------------------------------------------------------------
 */

PATHS(ssize_t, readlink, (const char *path, char *buf, size_t len), (path, buf, len))
PATHS_OF(at, ssize_t, readlinkat, (int at, const char *path, char *buf, size_t len),
         (at, path, buf, len))
PATHS(ssize_t, __readlink_chk, (const char *path, char *buf, size_t len, size_t size),
      (path, buf, len, size))
PATHS_OF(at, ssize_t, __readlinkat_chk,
         (int at, const char *path, char *buf, size_t len, size_t size), (at, path, buf, len, size))

/* Functions that resolve a path: a result in the tree is changed to the machine's path. */
#define RESOLVES(name, parameters, arguments)                                                      \
    PRELOAD_SLOW static char *paths_##name parameters                                              \
    {                                                                                              \
        char there[PATH_MAX];                                                                      \
        char *found;                                                                               \
                                                                                                   \
        path = tree_find(AT_FDCWD, path, there) ? there : path;                                    \
        found = REAL(name) arguments;                                                              \
        if (found) {                                                                               \
            tree_strip(found);                                                                     \
        }                                                                                          \
        return found;                                                                              \
    }                                                                                              \
    PRELOAD_EXPORT char *name parameters                                                           \
    {                                                                                              \
        return tree_may_have(path) ? paths_##name arguments : REAL(name) arguments;                \
    }
RESOLVES(realpath, (const char *path, char *resolved), (path, resolved))
RESOLVES(__realpath_chk, (const char *path, char *resolved, size_t size), (path, resolved, size))
RESOLVES(canonicalize_file_name, (const char *path), (path))

PRELOAD_EXPORT char *getcwd(char *buf, size_t len)
{
    char *folder = REAL(getcwd)(buf, len);

    if (folder) {
        tree_strip(folder);
    }
    return folder;
}

/* -- walks ------------------------------------------------------------------------------------- */

/* The C library walks a tree by itself. If it walks in the HCA's tree, the program's function gets
 * the machine's paths. */
static __thread struct {
    size_t skip; /* length of the tree's own prefix of a path */
    __ftw_func_t each;
    __ftw64_func_t each64;
    __nftw_func_t each_at;
    __nftw64_func_t each_at64;
} paths_walk;

#define WALK_EACH(member, stat)                                                                    \
    static int paths_##member(const char *path, const struct stat *buf, int flag)                  \
    {                                                                                              \
        return paths_walk.member(path + paths_walk.skip, buf, flag);                               \
    }
#define WALK_EACH_AT(member, stat)                                                                 \
    static int paths_##member(const char *path, const struct stat *buf, int flag, struct FTW *at)  \
    {                                                                                              \
        struct FTW named = {.base = at->base - (int)paths_walk.skip, .level = at->level};          \
                                                                                                   \
        return paths_walk.member(path + paths_walk.skip, buf, flag, &named);                       \
    }
WALK_EACH(each, stat)
WALK_EACH(each64, stat64)
WALK_EACH_AT(each_at, stat)
WALK_EACH_AT(each_at64, stat64)

/* For absolute paths: the tree's root, then the path. A walk may be nested in another one. */
#define WALK(name, type, member, parameters, arguments)                                            \
    PRELOAD_SLOW static int paths_##name parameters                                                \
    {                                                                                              \
        __typeof__(paths_walk) outer = paths_walk;                                                 \
        char there[PATH_MAX];                                                                      \
        int status;                                                                                \
                                                                                                   \
        if (path[0] == '/' && tree_find(AT_FDCWD, path, there)) {                                  \
            paths_walk.skip = (size_t)(tree_stands_for(there) - there);                            \
            paths_walk.member = each;                                                              \
            each = paths_##member;                                                                 \
            path = there;                                                                          \
        }                                                                                          \
        status = REAL(name) arguments;                                                             \
        paths_walk = outer;                                                                        \
        return status;                                                                             \
    }                                                                                              \
    PRELOAD_EXPORT int name parameters                                                             \
    {                                                                                              \
        return tree_may_have(path) ? paths_##name arguments : REAL(name) arguments;                \
    }
WALK(ftw, __ftw_func_t, each, (const char *path, __ftw_func_t each, int fds), (path, each, fds))
WALK(ftw64, __ftw64_func_t, each64, (const char *path, __ftw64_func_t each, int fds),
     (path, each, fds))
WALK(nftw, __nftw_func_t, each_at, (const char *path, __nftw_func_t each, int fds, int flags),
     (path, each, fds, flags))
WALK(nftw64, __nftw64_func_t, each_at64,
     (const char *path, __nftw64_func_t each, int fds, int flags), (path, each, fds, flags))

/* glob() of the C library accepts the caller's own functions; it gets these. */
#define GLOB(name, type, dirent, stat_fn, lstat_fn, readdir_fn)                                    \
    static struct dirent *paths_##readdir_fn(void *dir)                                            \
    {                                                                                              \
        return readdir_fn(dir);                                                                    \
    }                                                                                              \
    PRELOAD_SLOW static int paths_##name(const char *path, int flags,                              \
                                         int (*error)(const char *, int), type *found)             \
    {                                                                                              \
        found->gl_closedir = paths_closedir;                                                       \
        found->gl_readdir = paths_##readdir_fn;                                                    \
        found->gl_opendir = paths_glob_opendir;                                                    \
        found->gl_lstat = lstat_fn;                                                                \
        found->gl_stat = stat_fn;                                                                  \
        return REAL(name)(path, flags | GLOB_ALTDIRFUNC, error, found);                            \
    }                                                                                              \
    PRELOAD_EXPORT int name(const char *path, int flags, int (*error)(const char *, int),          \
                            type *found)                                                           \
    {                                                                                              \
        return flags & GLOB_ALTDIRFUNC || !tree_may_have(path)                                     \
                   ? REAL(name)(path, flags, error, found)                                         \
                   : paths_##name(path, flags, error, found);                                      \
    }

static void paths_closedir(void *dir)
{
    closedir(dir);
}

static void *paths_glob_opendir(const char *path)
{
    return opendir(path);
}
GLOB(glob, glob_t, dirent, stat, lstat, readdir)
GLOB(glob64, glob64_t, dirent64, stat64, lstat64, readdir64)
