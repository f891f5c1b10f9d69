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
#include <sys/time.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/settings.h"
#include "guest-lib/verbs/kernel/spelling.h"
#include "wire/look.h"
#include "wire/open.h"

#define GROUP       HV_PEER_GROUP
#define SETTLE_MS   30
#define PATIENCE_MS 10000
#define MS_NS       1000000ull
#define S_NS        (1000 * MS_NS)
#define TURN_MS     1
#define ANSWER_MAX  4096
#define LONGEST_MS  600000        /* of settle_ms and patience_ms */
#define ASK_NS      (500 * MS_NS) /* between two questions for the address of the device */

/* -- its key file ------------------------------------------------------------------------------ */

static const struct hv_setting keys[] = {
    {.name = "wire", .kind = HV_SETTING_TEXT},
    {.name = "helper", .kind = HV_SETTING_TEXT},
    {.name = "address", .kind = HV_SETTING_IPV4},
    {.name = "mac", .kind = HV_SETTING_MAC},
    {.name = "settle_ms", .kind = HV_SETTING_NUMBER, .least = 1, .most = LONGEST_MS},
    {.name = "patience_ms", .kind = HV_SETTING_NUMBER, .least = 1, .most = LONGEST_MS},
};

static bool foreign_refuse(GError **err, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
static bool foreign_refuse(GError **err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    g_propagate_error(
        err, g_error_new_valist(G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_INVALID_VALUE, fmt, args));
    va_end(args);
    return false;
}

static const struct hv_setting *foreign_key(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!strcmp(keys[i].name, name)) {
            return &keys[i];
        }
    }
    return NULL;
}

static bool foreign_refuse_key(const char *key, GError **err)
{
    const char *names[G_N_ELEMENTS(keys) + 1] = {NULL}, *guess;
    g_autofree char *all = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        names[i] = keys[i].name;
    }
    all = g_strjoinv(" ", (char **)names);
    guess = spelling_guess(key, names);
    return guess ? foreign_refuse(err, "there is no key '%s'; did you mean %s? The keys are: %s",
                                  key, guess, all)
                 : foreign_refuse(err, "there is no key '%s'; the keys are: %s", key, all);
}

/* Checks a key, and its value by itself. */
static bool foreign_check_key(GKeyFile *file, const char *key, GError **err)
{
    const struct hv_setting *setting = foreign_key(key);
    g_autofree char *value = NULL;

    if (!setting) {
        return foreign_refuse_key(key, err);
    }
    value = g_key_file_get_string(file, GROUP, key, err);
    return value && hv_setting_check(setting, value, err);
}

static bool foreign_check_file(GKeyFile *file, GError **err)
{
    g_auto(GStrv) found = NULL;

    if (!hv_settings_check_groups(file, GROUP, err)) {
        return false;
    }
    found = g_key_file_get_keys(file, GROUP, NULL, err);
    for (char **key = found; key && *key; key++) {
        if (!foreign_check_key(file, *key, err)) {
            return false;
        }
    }
    return found;
}

/* Returns the value of a key that must be there, or NULL with *err. The caller frees it. */
static char *foreign_need(GKeyFile *file, const char *key, GError **err)
{
    char *value = g_key_file_get_string(file, GROUP, key, NULL);

    if (!value) {
        foreign_refuse(err, "the key '%s' is missing", key);
    }
    return value;
}

static bool foreign_read_wire(GKeyFile *file, struct foreign_config *config, GError **err)
{
    config->wire = foreign_need(file, "wire", err);
    if (config->wire && !wire_is_uri(config->wire)) {
        return foreign_refuse(err,
                              "wire must be if:NAME, tap:NAME, unix:OURS:THEIRS, shm:NAME or "
                              "another URI of hcasim help wire, but it is %s",
                              config->wire);
    }
    return config->wire;
}

static bool foreign_read_helper(GKeyFile *file, struct foreign_config *config, GError **err)
{
    const char *colon;

    config->helper = foreign_need(file, "helper", err);
    colon = config->helper ? strchr(config->helper, ':') : NULL;
    if (config->helper && (!colon || colon == config->helper || !colon[1])) {
        return foreign_refuse(err, "helper must be HOST:PORT, but it is %s", config->helper);
    }
    return config->helper;
}

static bool foreign_read_player(GKeyFile *file, struct stand_party *player, GError **err)
{
    g_autofree char *address = foreign_need(file, "address", err);
    g_autofree char *mac = g_key_file_get_string(file, GROUP, "mac", NULL);
    uint8_t *ipv4 = &player->gid[12];

    if (!address) {
        return false;
    }
    player->gid[10] = player->gid[11] = 0xff; /* IPv4-mapped (RFC 4291, 2.5.5.2) */
    inet_pton(AF_INET, address, ipv4);        /* the value was checked */
    memcpy(player->mac, (const uint8_t[]){0x02, 0, ipv4[0], ipv4[1], ipv4[2], ipv4[3]},
           sizeof(player->mac));
    if (mac) {
        struct hv_value value;

        hv_setting_parse(foreign_key("mac"), mac, &value, NULL);
        memcpy(player->mac, value.mac, sizeof(player->mac));
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

    config->path = g_strdup(path);
    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, err) ||
        !foreign_check_file(file, err) || !foreign_read_wire(file, config, err) ||
        !foreign_read_helper(file, config, err) ||
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
    g_free(config->path);
    g_free(config->wire);
    g_free(config->helper);
    g_free(config);
}

/* -- the wire ---------------------------------------------------------------------------------- */

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

/* Calls the helper at HOST:PORT. Waits patience_ms for an answer. Returns the socket; -1: *why says
 * why, in static text. */
static int foreign_call(const struct foreign_config *config, const char **why)
{
    g_auto(GStrv) parts = g_strsplit(config->helper, ":", 2);
    const struct timeval patience = {.tv_sec = (time_t)(config->patience_ns / S_NS),
                                     .tv_usec = (suseconds_t)(config->patience_ns % S_NS / 1000)};
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int fd, failed = getaddrinfo(parts[0], parts[1], &hints, &found);

    if (failed) {
        *why = failed == EAI_SYSTEM ? g_strerror(errno) : gai_strerror(failed);
        return -1;
    }
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
        connect(fd, found->ai_addr, found->ai_addrlen)) {
        *why = g_strerror(errno == EINPROGRESS ? ETIMEDOUT : errno);
        if (fd >= 0) {
            close(fd);
        }
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

char *foreign_init(struct foreign *foreign, const struct foreign_config *config)
{
    g_autoptr(GError) err = NULL;
    struct wire_port *port = wire_open(config->wire, &err);
    const char *why = NULL;

    if (!port) {
        return g_strdup_printf("wire=%s: %s", config->wire, err->message);
    }
    *foreign = (struct foreign){.config = config, .answer = g_string_new(NULL)};
    real_clock_init(&foreign->real, config->settle_ns, config->patience_ns, foreign_wait, foreign);
    foreign->stand.peer = config->player;
    stand_init(&foreign->stand, &foreign->real.clock, port);
    foreign->fd = foreign_call(config, &why);
    return why ? g_strdup_printf("no helper at %s: %s", config->helper, why) : NULL;
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
            words_fail(&p->words, "the helper does not answer (it serves one caller at a time)");
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
    static const struct {
        const char *word;
        enum play_end how;
    } ends[] = {{"fail ", PLAY_FAILS}, {"cannot ", PLAY_CANNOT}, {"mistake ", PLAY_MISTAKE}};
    g_autofree char *sent = g_strconcat(line, "\n", NULL), *heard = NULL;
    const char *what;

    if (send(foreign->fd, sent, strlen(sent), MSG_NOSIGNAL) != (ssize_t)strlen(sent)) {
        words_fail(&p->words, "the helper is gone");
    }
    heard = foreign_hear(foreign, p);
    what = strchr(heard, ' ');
    what = what ? what + 1 : "";
    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (g_str_has_prefix(heard, ends[i].word)) {
            p->ends(p, ends[i].how, what);
        }
    }
    if (strncmp(heard, "ok", 2) != 0) {
        words_fail(&p->words, "the helper says: %s", heard);
    }
    return g_strsplit(what, " ", -1);
}

/* Whether the wire can list its hosts, and this player is its only host. */
static bool foreign_is_alone(const char *wire)
{
    g_autoptr(GPtrArray) views = wire_views_new();
    unsigned members = 0;

    if (!wire_look(wire, views, NULL)) {
        return false;
    }
    for (unsigned i = 0; i < views->len; i++) {
        const struct wire_view *view = g_ptr_array_index(views, i);

        for (unsigned k = 0; k < view->num_tenants; k++) {
            members += !view->tenants[k].number && view->tenants[k].alive;
        }
    }
    return members < 2;
}

/* Finds the device on the wire. Its first answers may be lost, or late. */
static void foreign_meet(struct foreign *foreign, struct play *p, const char *address)
{
    uint64_t limit = play_now(p) + p->clock->patience_ns, next = 0;
    const char *wire = foreign->config->wire;

    if (foreign_is_alone(wire)) {
        words_fail(&p->words,
                   "wire=%s: nobody else is on this wire, so it is not the wire of the helper's "
                   "device, which has the address %s",
                   wire, address);
    }
    while (!foreign->stand.met) {
        if (play_now(p) >= next) {
            stand_ask(&foreign->stand);
            next = play_now(p) + ASK_NS;
        }
        if (!p->clock->step(p->clock, limit)) {
            words_fail(&p->words,
                       "wire=%s: nobody on this wire has the address %s, which is that of the "
                       "helper's device",
                       wire, address);
        }
    }
}

void foreign_begin(struct foreign *foreign, struct play *p)
{
    g_autofree char *line = NULL;
    g_auto(GStrv) words = NULL;
    char address[INET_ADDRSTRLEN];
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
    foreign_meet(foreign, p, words[0]);
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
