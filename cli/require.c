/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs library leaves a mark when a process opens a device: it writes to the file that
 * HCASIM_OPENED names. That file is a memory file of this process, seen through /proc. So nothing
 * is left behind, however this process ends, and a program that closes all its descriptors does no
 * harm.
 */
#include "cli/require.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/command.h"

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static int require_status(int status)
{
    return WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Waits for the child's end. Signals that come meanwhile go to the child. The terminal sends its
 * signals to the child, too: those are not sent again. */
static int require_wait(pid_t pid, const sigset_t *signals)
{
    int status;

    for (;;) {
        siginfo_t info;

        if (waitpid(pid, &status, WNOHANG) == pid) {
            return require_status(status);
        }
        if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD && info.si_code <= 0) {
            kill(pid, info.si_signo);
        }
    }
}

/* In the child. The program ends with hcasim: nobody else waits for it. */
static void require_exec(char **argv, const sigset_t *before, const struct sigaction *child,
                         pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(CLI_FAILED);
    }
    sigaction(SIGCHLD, child, NULL);
    sigprocmask(SIG_SETMASK, before, NULL);
    _exit(cli_exec(argv));
}

/* A run inside of another one that has --require, too: a device was opened there as well. */
static void require_tell(const char *outer)
{
    int fd = open(outer, O_WRONLY | O_APPEND | O_CLOEXEC);

    if (fd < 0 || write(fd, "1", 1) != 1) {
        cli_say("--require: the outer run cannot be told: %s", g_strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

int require_run(char **argv)
{
    g_autofree char *mark = NULL, *outer = g_strdup(g_getenv("HCASIM_OPENED"));
    /* A caller that ignores SIGCHLD passes that on: then the kernel would tell nobody of the end.
     */
    struct sigaction usual = {.sa_handler = SIG_DFL}, child;
    sigset_t signals, before;
    pid_t pid, self = getpid();
    struct stat st = {0};
    int fd, status;

    fd = memfd_create("hcasim-opened", MFD_CLOEXEC);
    if (fd < 0) {
        cli_say("--require: %s", g_strerror(errno));
        return CLI_FAILED;
    }
    mark = g_strdup_printf("/proc/%d/fd/%d", (int)self, fd);
    g_setenv("HCASIM_OPENED", mark, TRUE);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (unsigned i = 0; i < G_N_ELEMENTS(forwarded); i++) {
        sigaddset(&signals, forwarded[i]);
    }
    sigprocmask(SIG_BLOCK, &signals, &before);
    sigaction(SIGCHLD, &usual, &child);
    pid = fork();
    if (pid < 0) {
        cli_say("--require: %s", g_strerror(errno));
        return CLI_FAILED;
    }
    if (!pid) {
        require_exec(argv, &before, &child, self);
    }
    status = require_wait(pid, &signals);
    fstat(fd, &st);
    if (st.st_size && outer) {
        require_tell(outer);
    }
    if (!st.st_size) {
        cli_say("--require: %s ended, and no process opened a device", argv[0]);
    }
    return status || st.st_size ? status : CLI_FAILED;
}
