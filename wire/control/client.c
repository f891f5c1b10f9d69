/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements client.h. */
#include "wire/control/client.h"
#include "wire/control/address.h"
#include "wire/control/command.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct control_client {
    char *path;
    int fd;
    unsigned timeout_ms;
    gint64 deadline; /* of the call that runs, microseconds */
    GString *in;     /* bytes behind the last line */
    json_t *greeting;
    json_int_t id; /* of the last request */
};

G_GNUC_PRINTF(3, 4)
static void *client_fail(const struct control_client *client, GError **err, const char *fmt, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, fmt);
    what = g_strdup_vprintf(fmt, args);
    va_end(args);
    g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "%s: %s", client->path, what);
    return NULL;
}

/* Waits until the socket is ready for an event, or the time of the call is over. */
static bool client_wait(struct control_client *client, short event, GError **err)
{
    struct pollfd poll_fd = {.fd = client->fd, .events = event};
    int n;

    do {
        gint64 left = client->deadline - g_get_monotonic_time();

        n = poll(&poll_fd, 1, left > 0 ? (int)(left / 1000) + 1 : 0);
    } while (n < 0 && errno == EINTR);
    if (!n) {
        client_fail(client, err, "there is no answer after %u ms", client->timeout_ms);
    } else if (n < 0) {
        client_fail(client, err, "%s", g_strerror(errno));
    }
    return n > 0;
}

static bool client_send(struct control_client *client, const GString *line, GError **err)
{
    size_t sent = 0;

    while (sent < line->len) {
        ssize_t n = send(client->fd, line->str + sent, line->len - sent, MSG_NOSIGNAL);

        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN) {
            if (!client_wait(client, POLLOUT, err)) {
                return false;
            }
        } else if (errno != EINTR) {
            client_fail(client, err, "%s", g_strerror(errno));
            return false;
        }
    }
    return true;
}

/* Appends what the server has sent to client->in. */
static bool client_receive(struct control_client *client, GError **err)
{
    char piece[4096];
    ssize_t n;

    if (!client_wait(client, POLLIN, err)) {
        return false;
    }
    n = recv(client->fd, piece, sizeof(piece), 0);
    if (n > 0) {
        g_string_append_len(client->in, piece, n);
    } else if (!n) {
        client_fail(client, err, "the process has closed the socket");
    } else if (errno != EAGAIN && errno != EINTR) {
        client_fail(client, err, "%s", g_strerror(errno));
        n = 0;
    }
    return n != 0;
}

/* The next line that the server sends. */
static json_t *client_read(struct control_client *client, GError **err)
{
    size_t looked = 0;
    char *newline;
    json_t *value;

    while (!(newline = memchr(client->in->str + looked, '\n', client->in->len - looked))) {
        looked = client->in->len;
        if (looked > CONTROL_ANSWER_MAX) {
            return client_fail(client, err, "the answer has more than %u bytes",
                               CONTROL_ANSWER_MAX);
        }
        if (!client_receive(client, err)) {
            return NULL;
        }
    }
    value = control_parse(client->in->str, (size_t)(newline - client->in->str), err);
    g_string_erase(client->in, 0, newline + 1 - client->in->str);
    if (!value) {
        g_prefix_error(err, "%s: the answer is wrong: ", client->path);
    }
    return value;
}

/* Takes the value of an answer, or its error. */
static json_t *client_take(struct control_client *client, const json_t *answer, GError **err)
{
    const json_t *error = json_object_get(answer, "error");
    const char *class_name = json_string_value(json_object_get(error, "class"));
    const char *text = json_string_value(json_object_get(error, "desc"));
    json_t *value = json_object_get(answer, "return");

    if (value && !error) {
        return json_incref(value);
    }
    if (!text) {
        return client_fail(client, err, "the answer is neither a result nor an error");
    }
    g_set_error_literal(err, CONTROL_ERROR, (int)control_error_code(class_name), text);
    return NULL;
}

json_t *control_call(struct control_client *client, const char *name, json_t *arguments,
                     GError **err)
{
    json_auto_t *request =
        json_pack("{ss sO* sI}", "execute", name, "arguments", arguments, "id", ++client->id);
    GString *line = request ? control_line(request) : NULL;
    json_auto_t *answer = NULL;
    bool is_sent;

    if (!line) {
        return client_fail(client, err, "the request cannot be written as JSON");
    }
    client->deadline = g_get_monotonic_time() + client->timeout_ms * 1000ll;
    is_sent = client_send(client, line, err);
    g_string_free(line, TRUE);
    answer = is_sent ? client_read(client, err) : NULL;
    if (!answer) {
        return NULL;
    }
    if (json_integer_value(json_object_get(answer, "id")) != client->id &&
        json_object_get(answer, "return")) {
        return client_fail(client, err, "the answer is to another request");
    }
    return client_take(client, answer, err);
}

/* -- the connection ---------------------------------------------------------------------------- */

static bool client_connect(struct control_client *client, GError **err)
{
    struct sockaddr_un at;

    if (!control_address(&at, client->path, err)) {
        return false;
    }
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd >= 0 && !connect(client->fd, (const struct sockaddr *)&at, sizeof(at))) {
        return true;
    }
    if (errno == ECONNREFUSED || errno == ENOENT) {
        g_set_error(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND, "%s: %s", client->path,
                    errno == ENOENT ? "there is no such socket"
                                    : "no process listens there any more");
    } else if (errno == EAGAIN) {
        client_fail(client, err, "too many clients are waiting there: try again");
    } else {
        client_fail(client, err, "%s", g_strerror(errno));
    }
    return false;
}

static bool client_take_greeting(struct control_client *client, GError **err)
{
    json_auto_t *line = client_read(client, err);
    json_t *greeting = json_object_get(line, "hcasim");

    if (!line) {
        return false;
    }
    if (json_is_object(greeting)) {
        client->greeting = json_incref(greeting);
    } else if (json_object_get(line, "error")) {
        json_decref(client_take(client, line, err));
    } else {
        client_fail(client, err, "this is no control socket of hcasim");
    }
    return client->greeting != NULL;
}

struct control_client *control_connect(const char *path, unsigned timeout_ms, GError **err)
{
    struct control_client *client = g_new0(struct control_client, 1);

    client->path = g_strdup(path);
    client->fd = -1;
    client->in = g_string_new(NULL);
    client->timeout_ms = timeout_ms;
    client->deadline = g_get_monotonic_time() + timeout_ms * 1000ll;
    if (client_connect(client, err) && client_take_greeting(client, err)) {
        return client;
    }
    control_disconnect(client);
    return NULL;
}

const json_t *control_greeting(const struct control_client *client)
{
    return client->greeting;
}

void control_disconnect(struct control_client *client)
{
    if (client->fd >= 0) {
        close(client->fd);
    }
    json_decref(client->greeting);
    g_string_free(client->in, TRUE);
    g_free(client->path);
    g_free(client);
}
