/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper on the host of a foreign device: performs with ordinary verbs the steps that the
 * player (foreign.h) sends, a step of a script in each line. Each caller plays one case and is
 * served by its own process; the kernel cleans up after that process. The next caller has to wait
 * for the end of the previous process: if its device belongs to the process, it would still answer
 * for the same address.
 *
 * Anybody who can call the helper can make this device read and write the memory that it offers: it
 * is for a lab.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/conformance/play.h"

#define PORT         7471
#define TIMEOUT      20 /* 4.3 s: if a script sets none, no packet may be retransmitted */
#define NAP_US       200
#define CASE_SECONDS 120
#define LINE_MAX_LEN 4096
#define GIDS         256
#define NO_DEVICE    2 /* exit status */

static char *device_name;
static gint port = PORT;

static const GOptionEntry options[] = {
    {"device", 0, 0, G_OPTION_ARG_STRING, &device_name, "The device. Default: the first one.",
     "NAME"},
    {"port", 0, 0, G_OPTION_ARG_INT, &port,
     "The TCP port on which the helper listens. 0: any free port. Default: 7471.", "N"},
    {0},
};

struct helper {
    struct play play;
    struct real_clock real;
    struct host host;
    FILE *in, *out;
};

static void helper_wait(void *opaque, uint64_t until_ns)
{
    usleep(NAP_US);
}

static void helper_ends(struct play *p, enum play_end how, const char *why)
{
    static const char *const answers[] = {
        [PLAY_FAILS] = "fail", [PLAY_CANNOT] = "cannot", [PLAY_MISTAKE] = "mistake"};
    struct helper *helper = (struct helper *)p;

    fprintf(helper->out, "%s %s\n", answers[how], why);
    fflush(helper->out);
    _exit(EXIT_FAILURE);
}

/* Finds the index of the RoCEv2 GID of an IPv4 address, which is the device's on its wire. */
static bool helper_find_gid(struct host *host, struct in_addr *address)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct ibv_gid_entry entries[GIDS];
    ssize_t n = ibv_query_gid_table(host->ctx, entries, GIDS, 0);

    for (ssize_t i = 0; i < n; i++) {
        if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
            !memcmp(entries[i].gid.raw, mapped, sizeof(mapped))) {
            host->port = (uint8_t)entries[i].port_num;
            host->gid_index = (uint8_t)entries[i].gid_index;
            memcpy(address, &entries[i].gid.raw[12], sizeof(*address));
            return true;
        }
    }
    return false;
}

static struct ibv_context *helper_open(void)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *ctx = NULL;

    for (int i = 0; i < n && !ctx; i++) {
        if (!device_name || !strcmp(ibv_get_device_name(list[i]), device_name)) {
            ctx = ibv_open_device(list[i]);
        }
    }
    if (list) { /* NULL: this host has no RDMA at all */
        ibv_free_device_list(list);
    }
    return ctx;
}

/* begin rq_psn=N sq_psn=N peer=A.B.C.D scale=N patience=NS settle=NS */
static void helper_begin(struct helper *helper)
{
    struct play *p = &helper->play;
    struct host *host = &helper->host;
    struct in_addr address;
    char text[INET_ADDRSTRLEN];
    const char *peer;

    p->rq_psn = (uint32_t)words_number(&p->words, "rq_psn", 0);
    p->sq_psn = (uint32_t)words_number(&p->words, "sq_psn", 0);
    p->scale_bits = (unsigned)words_number(&p->words, "scale", 0);
    helper->real.clock.patience_ns = words_number(&p->words, "patience", 0);
    helper->real.settle_ns = words_number(&p->words, "settle", 0);
    peer = words_value(&p->words, "peer");
    host->peer.raw[10] = host->peer.raw[11] = 0xff;
    if (!peer || inet_pton(AF_INET, peer, &host->peer.raw[12]) != 1) {
        words_fail(&p->words, "there is no peer's address");
    }
    host->timeout = TIMEOUT;
    host->ctx = helper_open();
    if (!host->ctx || fcntl(host->ctx->async_fd, F_SETFL, O_NONBLOCK)) {
        words_fail(&p->words, "there is no such device");
    }
    if (!helper_find_gid(host, &address)) {
        words_fail(&p->words, "the device has no RoCEv2 GID of an IPv4 address");
    }
    host->pd = ibv_alloc_pd(host->ctx);
    host->other_pd = ibv_alloc_pd(host->ctx);
    if (!host->pd || !host->other_pd) {
        words_fail(&p->words, "no protection domain: %s", g_strerror(errno));
    }
    fprintf(helper->out, "ok %s\n", inet_ntop(AF_INET, &address, text, sizeof(text)));
}

/* Answers with the numbers of the newest object, or of an object that a step has changed, that
 * packets may name. */
static void helper_answer(struct helper *helper, const char *line)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 3);

    const char *bound = strstr(line, " mw=");

    fprintf(helper->out, "ok");
    if (!strcmp(words[0], "mr") || !strcmp(words[0], "mw") || !strcmp(words[0], "null") || bound) {
        g_auto(GStrv) name = g_strsplit(bound ? bound + strlen(" mw=") : words[1], " ", 2);
        const struct play_mr *mr = play_mr(&helper->play, name[0]);

        fprintf(helper->out, " mr %s %zu %u 0x%" G_GINT64_MODIFIER "x 0x%x 0x%x", mr->name, mr->len,
                mr->seed, mr->addr, mr->lkey, mr->rkey);
    } else if (!strcmp(words[0], "srq")) {
        fprintf(helper->out, " srq %s 0x%x", words[1], play_srq(&helper->play, words[1])->srqn);
    } else if ((!strcmp(words[0], "qp") || !strcmp(words[0], "modify")) &&
               !play_srq_if(&helper->play, words[1])) {
        const struct play_qp *qp = play_qp(&helper->play, words[1]);

        fprintf(helper->out, " qp %s %u 0x%x 0x%x 0x%x", qp->name, qp->type, qp->qpn, qp->peer_qpn,
                qp->attr.qkey);
    }
    fprintf(helper->out, "\n");
}

static void helper_line(struct helper *helper, const char *line)
{
    struct play *p = &helper->play;

    if (g_str_has_prefix(line, "begin ")) {
        words_split(&p->words, line + strlen("begin "));
        helper_begin(helper);
        words_clear(&p->words);
    } else if (!strcmp(line, "end")) {
        words_split(&p->words, "");
        play_end_host(p);
        fprintf(helper->out, "ok\n");
    } else if (!helper->host.pd || !play_step(p, play_host_steps, line)) {
        helper_ends(p, PLAY_CANNOT, "the helper knows no such step");
    } else {
        helper_answer(helper, line);
    }
    fflush(helper->out);
}

static void helper_serve(int fd)
{
    struct helper helper = {.in = fdopen(fd, "r"), .out = fdopen(dup(fd), "w")};
    char line[LINE_MAX_LEN];

    alarm(CASE_SECONDS);
    real_clock_init(&helper.real, 0, 0, helper_wait, NULL);
    play_init(&helper.play, &helper.real.clock);
    helper.play.ends = helper_ends;
    helper.play.host = &helper.host;
    while (helper.in && helper.out && fgets(line, sizeof(line), helper.in)) {
        line[strcspn(line, "\r\n")] = 0;
        helper_line(&helper, line);
    }
    exit(EXIT_SUCCESS);
}

/* Says which devices there are, if the wanted one is not among them. */
static bool helper_has_device(void)
{
    g_autoptr(GString) names = g_string_new(NULL);
    struct ibv_device **list = ibv_get_device_list(NULL);
    bool found = false;

    for (int i = 0; list && list[i]; i++) {
        const char *name = ibv_get_device_name(list[i]);

        found = found || !device_name || !strcmp(name, device_name);
        g_string_append_printf(names, "%s%s", names->len ? ", " : "", name);
    }
    if (list) {
        ibv_free_device_list(list);
    }
    if (!found && device_name) {
        fprintf(stderr, "conformance-helper: there is no device %s; devices: %s\n", device_name,
                names->len ? names->str : "none");
    } else if (!found) {
        fprintf(stderr, "conformance-helper: there is no RDMA device\n");
    }
    return found;
}

/* In a process of its own: this one must not become a host of the device. */
static bool helper_check_device(void)
{
    int status = -1;
    pid_t pid = fork();

    if (!pid) {
        _exit(helper_has_device() ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static int helper_listen(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    socklen_t len = sizeof(own);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) || listen(fd, SOMAXCONN)) {
        fprintf(stderr, "conformance-helper: port %d: %s\n", port, strerror(errno));
        exit(EXIT_FAILURE);
    }
    if (!getsockname(fd, (struct sockaddr *)&own, &len)) {
        printf("waits for calls at port %u\n", ntohs(own.sin_port));
        fflush(stdout);
    }
    return fd;
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) err = NULL;
    int fd;

    g_option_context_set_summary(context,
                                 "Does on the host of a device what a player of conformance\n"
                                 "scripts asks for (docs/howto/conformance.md).");
    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err)) {
        fprintf(stderr, "conformance-helper: %s\n", err->message);
        return 2;
    }
    if (!helper_check_device()) {
        return NO_DEVICE;
    }
    fd = helper_listen();
    for (;;) {
        int caller = accept(fd, NULL, NULL);
        pid_t pid = caller >= 0 ? fork() : -1;

        if (!pid) {
            close(fd);
            helper_serve(caller);
        }
        close(caller);
        if (pid > 0) {
            waitpid(pid, NULL, 0); /* its caller already knows how the case ended */
        }
    }
}
