/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements foreign.h: the connections to a foreign device and to its host. */
#include "tests/conformance/foreign.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/conformance/packet_port.h"
#include "wire/open.h"

#define GROUP       "peer"
#define SETTLE_MS   30
#define PATIENCE_MS 10000
#define MS_NS       1000000ull
#define TURN_MS     1
#define ANSWER_MAX  4096

/* -- its key file ------------------------------------------------------------------------------ */

static bool foreign_read_player(GKeyFile *file, struct stand_party *player, GError **err)
{
    g_autofree char *address = g_key_file_get_string(file, GROUP, "address", err);
    g_autofree char *mac = g_key_file_get_string(file, GROUP, "mac", NULL);
    uint8_t *m = player->mac;

    if (!address) {
        return false;
    }
    player->gid[10] = player->gid[11] = 0xff; /* IPv4-mapped (RFC 4291, 2.5.5.2) */
    if (inet_pton(AF_INET, address, &player->gid[12]) != 1) {
        g_set_error(err, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE,
                    "address must be an IPv4 address, but it is %s", address);
        return false;
    }
    memcpy(m,
           (const uint8_t[]){0x02, 0, player->gid[12], player->gid[13], player->gid[14],
                             player->gid[15]},
           sizeof(player->mac));
    if (mac && sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &m[0], &m[1], &m[2], &m[3], &m[4],
                      &m[5]) != 6) {
        g_set_error(err, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE,
                    "mac must be a MAC address, but it is %s", mac);
        return false;
    }
    return true;
}

static uint64_t foreign_read_ms(GKeyFile *file, const char *key, int usual)
{
    int value = g_key_file_get_integer(file, GROUP, key, NULL);

    return MS_NS * (uint64_t)(value > 0 ? value : usual);
}

struct foreign_config *foreign_config_read(const char *path, GError **err)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    struct foreign_config *config = g_new0(struct foreign_config, 1);

    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, err) ||
        !(config->wire = g_key_file_get_string(file, GROUP, "wire", err)) ||
        !(config->helper = g_key_file_get_string(file, GROUP, "helper", err)) ||
        !foreign_read_player(file, &config->player, err)) {
        g_prefix_error(err, "%s: ", path);
        foreign_config_free(config);
        return NULL;
    }
    config->settle_ns = foreign_read_ms(file, "settle_ms", SETTLE_MS);
    config->patience_ns = foreign_read_ms(file, "patience_ms", PATIENCE_MS);
    return config;
}

void foreign_config_free(struct foreign_config *config)
{
    g_free(config->wire);
    g_free(config->helper);
    g_free(config);
}

/* -- the wire ---------------------------------------------------------------------------------- */

static struct wire_port *foreign_wire_open(const char *uri, GError **err)
{
    return packet_port_is(uri) ? packet_port_open(uri, err) : wire_open(uri, err);
}

static void foreign_wait(void *opaque, uint64_t until_ns)
{
    struct foreign *foreign = opaque;
    struct pollfd fd = {.fd = wire_fd(foreign->stand.end), .events = POLLIN};

    if (!stand_poll(&foreign->stand)) {
        if (poll(&fd, 1, TURN_MS) > 0) {
            wire_fd_event(foreign->stand.end);
        }
    }
}

/* -- the helper -------------------------------------------------------------------------------- */

static int foreign_call(const char *helper)
{
    g_auto(GStrv) parts = g_strsplit(helper, ":", 2);
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int fd = -1;

    if (!parts[1] || getaddrinfo(parts[0], parts[1], &hints, &found)) {
        errno = EHOSTUNREACH;
        return -1;
    }
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen)) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static char *foreign_no_helper(const struct foreign_config *config)
{
    return g_strdup_printf("no helper at %s: %s", config->helper, g_strerror(errno));
}

char *foreign_try(const struct foreign_config *config)
{
    int fd = foreign_call(config->helper);

    if (fd < 0) {
        return foreign_no_helper(config);
    }
    close(fd);
    return NULL;
}

char *foreign_init(struct foreign *foreign, const struct foreign_config *config)
{
    g_autoptr(GError) err = NULL;
    struct wire_port *port = foreign_wire_open(config->wire, &err);

    if (!port) {
        return g_strdup(err->message);
    }
    *foreign = (struct foreign){.config = config, .answer = g_string_new(NULL)};
    real_clock_init(&foreign->real, config->settle_ns, config->patience_ns, foreign_wait, foreign);
    foreign->stand.peer = config->player;
    stand_init(&foreign->stand, &foreign->real.clock, port);
    foreign->fd = foreign_call(config->helper);
    return foreign->fd < 0 ? foreign_no_helper(config) : NULL;
}

void foreign_clear(struct foreign *foreign)
{
    close(foreign->fd);
    stand_clear(&foreign->stand);
    g_string_free(foreign->answer, true);
}

/* Returns the helper's next line, without its end; serves the wire meanwhile. */
static char *foreign_hear(struct foreign *foreign, struct play *p)
{
    /* the helper has its own patience, and reports when that ends */
    uint64_t limit = play_now(p) + 2 * p->clock->patience_ns;
    GString *answer = foreign->answer;
    char *end, *line;

    while (!(end = strchr(answer->str, '\n'))) {
        char bytes[ANSWER_MAX];
        ssize_t len = recv(foreign->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (len > 0) {
            g_string_append_len(answer, bytes, len);
        } else if (!len || (errno != EAGAIN && errno != EINTR)) {
            words_fail(&p->words, "the helper is gone");
        } else if (!p->clock->step(p->clock, limit)) {
            words_fail(&p->words, "the helper does not answer");
        }
    }
    line = g_strndup(answer->str, (gsize)(end - answer->str));
    g_string_erase(answer, 0, end + 1 - answer->str);
    return line;
}

/* "mr NAME LEN SEED ADDR LKEY RKEY", again when a window gets another key */
static void foreign_note_mr(struct play *p, char **word)
{
    struct play_mr *mr = NULL;

    for (unsigned i = 0; i < p->mrs->len; i++) {
        struct play_mr *old = g_ptr_array_index(p->mrs, i);

        mr = strcmp(old->name, word[1]) ? mr : old;
    }
    if (!mr) {
        mr = g_new0(struct play_mr, 1);
        g_ptr_array_add(p->mrs, mr);
    }
    mr->name = g_intern_string(word[1]);
    mr->len = g_ascii_strtoull(word[2], NULL, 0);
    mr->seed = (unsigned)g_ascii_strtoull(word[3], NULL, 0);
    mr->addr = g_ascii_strtoull(word[4], NULL, 0);
    mr->lkey = (uint32_t)g_ascii_strtoull(word[5], NULL, 0);
    mr->rkey = (uint32_t)g_ascii_strtoull(word[6], NULL, 0);
}

/* "srq NAME SRQN" */
static void foreign_note_srq(struct play *p, char **word)
{
    struct play_srq *srq = g_new0(struct play_srq, 1);

    srq->name = g_intern_string(word[1]);
    srq->srqn = (uint32_t)g_ascii_strtoull(word[2], NULL, 0);
    g_ptr_array_add(p->srqs, srq);
}

/* "qp NAME TYPE QPN PEER_QPN QKEY", again when these change */
static void foreign_note_qp(struct play *p, char **word)
{
    struct play_qp *qp = NULL;

    for (unsigned i = 0; i < p->qps->len; i++) {
        struct play_qp *old = g_ptr_array_index(p->qps, i);

        qp = strcmp(old->name, word[1]) ? qp : old;
    }
    if (!qp) {
        qp = g_new0(struct play_qp, 1);
        g_ptr_array_add(p->qps, qp);
    }
    qp->name = g_intern_string(word[1]);
    qp->type = (unsigned)g_ascii_strtoull(word[2], NULL, 0);
    qp->qpn = (uint32_t)g_ascii_strtoull(word[3], NULL, 0);
    qp->peer_qpn = (uint32_t)g_ascii_strtoull(word[4], NULL, 0);
    qp->attr.qkey = (uint32_t)g_ascii_strtoull(word[5], NULL, 0);
}

/* Sends a line and returns the words behind the answer's "ok". */
static char **foreign_ask(struct foreign *foreign, struct play *p, const char *line)
{
    g_autofree char *sent = g_strconcat(line, "\n", NULL), *heard = NULL;
    const char *what;

    if (send(foreign->fd, sent, strlen(sent), MSG_NOSIGNAL) != (ssize_t)strlen(sent)) {
        words_fail(&p->words, "the helper is gone");
    }
    heard = foreign_hear(foreign, p);
    what = strchr(heard, ' ');
    what = what ? what + 1 : "";
    if (g_str_has_prefix(heard, "fail ") || g_str_has_prefix(heard, "cannot ")) {
        p->ends(p, heard[0] == 'f' ? PLAY_FAILS : PLAY_CANNOT, what);
    }
    if (strncmp(heard, "ok", 2) != 0) {
        words_fail(&p->words, "the helper says: %s", heard);
    }
    return g_strsplit(what, " ", -1);
}

void foreign_begin(struct foreign *foreign, struct play *p)
{
    g_autofree char *line = NULL;
    g_auto(GStrv) words = NULL;
    char address[INET_ADDRSTRLEN];
    uint64_t limit;
    struct stand_packet *old;

    inet_ntop(AF_INET, &foreign->config->player.gid[12], address, sizeof(address));
    line = g_strdup_printf("begin rq_psn=%u sq_psn=%u peer=%s scale=%u patience=%" G_GUINT64_FORMAT
                           " settle=%" G_GUINT64_FORMAT,
                           p->rq_psn, p->sq_psn, address, p->scale_bits,
                           foreign->config->patience_ns, foreign->config->settle_ns);
    words = foreign_ask(foreign, p, line);
    foreign->stand.device.gid[10] = foreign->stand.device.gid[11] = 0xff;
    if (!words[0] || inet_pton(AF_INET, words[0], &foreign->stand.device.gid[12]) != 1) {
        words_fail(&p->words, "the helper says no address of its device");
    }
    limit = play_now(p) + p->clock->patience_ns;
    stand_ask(&foreign->stand);
    while (!foreign->stand.met) {
        if (!p->clock->step(p->clock, limit)) {
            words_fail(&p->words, "nobody on the wire has the address %s", words[0]);
        }
    }
    /* packets of another case that were still on the way */
    while ((old = stand_take(&foreign->stand, 0))) {
        g_free(old);
    }
    foreign->stand.bad_frames = 0;
}

void foreign_step(struct foreign *foreign, struct play *p, const char *line)
{
    g_autofree char *rest = NULL;
    g_auto(GStrv) words = NULL;
    bool is_send = g_str_has_prefix(line, "send "), is_wc = g_str_has_prefix(line, "wc ");
    uint64_t before = play_now(p);

    words_split(&p->words, line);
    rest = words_without(&p->words, "after");
    words = foreign_ask(foreign, p, rest);
    if (g_strv_length(words) == 7 && !strcmp(words[0], "mr")) {
        foreign_note_mr(p, words);
    } else if (g_strv_length(words) == 3 && !strcmp(words[0], "srq")) {
        foreign_note_srq(p, words);
    } else if (g_strv_length(words) == 6 && !strcmp(words[0], "qp")) {
        foreign_note_qp(p, words);
    }
    if (is_send) {
        p->mark_ns = before;
    } else if (is_wc) {
        play_happened(p, play_now(p));
    }
    words_clear(&p->words);
}

void foreign_end(struct foreign *foreign, struct play *p)
{
    g_strfreev(foreign_ask(foreign, p, "end"));
}
