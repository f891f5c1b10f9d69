/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the program as a child, and waits for its end. The verbs library tells this process when a
 * process of the run opens a device (guest-lib/verbs/kernel/opened.h). Nothing is left behind,
 * however this process ends.
 */
#include "cli/require.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/command.h"
#include "guest-lib/verbs/kernel/opened.h"

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

/* In the child. The program ends with hcasim, because no other process waits for it. */
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

int require_run(char **argv)
{
    g_autofree char *address = NULL, *outer = g_strdup(g_getenv(HV_OPENED_VARIABLE));
    /* A caller that ignores SIGCHLD passes that on: then the kernel would not report the end of
     * the program. */
    struct sigaction usual = {.sa_handler = SIG_DFL}, child;
    struct hv_opened opened;
    sigset_t signals, before;
    pid_t pid, self = getpid();
    bool is_told;
    int status;

    address = hv_opened_begin(&opened);
    if (!address) {
        cli_say("--require: %s", g_strerror(errno));
        return CLI_FAILED;
    }
    g_setenv(HV_OPENED_VARIABLE, address, TRUE);
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
    is_told = hv_opened_is_told(&opened);
    /* A run inside of another one that has --require, too: a device was opened there as well. */
    if (is_told && outer && !hv_opened_tell(outer)) {
        cli_say("--require: the outer run does not learn of the device: %s", g_strerror(errno));
    }
    if (!is_told) {
        cli_say("--require: %s ended, and no process opened a device", argv[0]);
    }
    return status || is_told ? status : CLI_FAILED;
}
