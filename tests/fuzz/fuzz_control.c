/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: what comes over a control socket (wire/control) is arbitrary text.
 *
 * The first byte says who sends the rest. 'c': a client, in pieces which end at each byte 0. The
 * server must answer each line with one line of JSON, a result or an error, and run no command
 * whose arguments do not have their types. 's': a server, to a client that makes one call. The
 * client must return with a value or with an error, and not wait once the socket is closed. 'h': a
 * client of HTTP, which gets the text or an error in one answer, and is closed.
 */
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "wire/control/client.h"
#include "wire/control/http.h"
#include "wire/control/server.h"

#define MAX_SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/hcasim-fuzz-XXXXXX";

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void begin(struct sockaddr_un *at)
{
    static bool made;

    if (!made) {
        require(g_mkdtemp(dir) != NULL);
        made = true;
    }
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    g_snprintf(at->sun_path, sizeof(at->sun_path), "%s/s", dir);
}

/* -- a client -------------------------------------------------------------------------------- */

static bool run_typed(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    const json_t *number = json_object_get(arguments, "number");
    const json_t *list = json_object_get(arguments, "list");

    require(json_is_integer(number) && json_integer_value(number) >= 1 &&
            json_integer_value(number) <= 9);
    require(json_object_size(arguments) == (list ? 2 : 1));
    *result = json_pack("[OO*]", number, list);
    return true;
}

static const struct control_arg typed_args[] = {
    {.name = "number", .type = CONTROL_INT, .required = true, .least = 1, .most = 9},
    {.name = "list", .type = CONTROL_ANY},
    {.name = NULL},
};

static const struct control_command table[] = {
    {"typed", "takes a number and a list", typed_args, run_typed},
    {.name = NULL},
};

/* Lines that are answered: those that have more than blanks, also the last one without an end. */
static unsigned count_requests(const GString *sent)
{
    g_auto(GStrv) lines = g_strsplit(sent->str, "\n", -1);
    unsigned n = 0;

    for (char **line = lines; *line; line++) {
        n += strspn(*line, " \t\r") < strlen(*line);
    }
    return n;
}

static void check_answer(const char *line)
{
    json_auto_t *answer = json_loads(line, 0, NULL);
    const json_t *error = json_object_get(answer, "error");

    require(json_is_object(answer));
    require(!json_object_get(answer, "return") == !!error);
    require(!error || (json_is_string(json_object_get(error, "class")) &&
                       json_is_string(json_object_get(error, "desc"))));
}

static void take(int fd, GString *got)
{
    char piece[4096];
    ssize_t n;

    while ((n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0) {
        g_string_append_len(got, piece, n);
    }
}

static void fuzz_server(const char *text, size_t size)
{
    struct control *server;
    struct sockaddr_un at;
    GString *got = g_string_new(NULL), *sent = g_string_new(NULL);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    g_auto(GStrv) lines = NULL;
    unsigned requests;

    begin(&at);
    server = control_open(at.sun_path, NULL);
    require(server != NULL);
    control_add(server, table, NULL);
    require(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
    for (size_t from = 0; from < size;) {
        size_t len = strnlen(text + from, size - from);

        require(send(fd, text + from, len, MSG_NOSIGNAL) == (ssize_t)len);
        g_string_append_len(sent, text + from, (gssize)len);
        from += len + 1;
        control_run(server);
        take(fd, got);
    }
    shutdown(fd, SHUT_WR);
    requests = count_requests(sent);
    for (unsigned i = 0; i < 2 * (requests + sent->len) + 10; i++) {
        control_run(server);
        take(fd, got);
    }
    require(recv(fd, &size, 1, MSG_DONTWAIT) == 0);
    lines = g_strsplit(got->str, "\n", -1);
    require(g_strv_length(lines) == requests + 2); /* the greeting; the end */
    for (unsigned i = 1; i <= requests; i++) {
        check_answer(lines[i]);
    }
    close(fd);
    control_close(server);
    g_string_free(got, TRUE);
    g_string_free(sent, TRUE);
}

/* -- a server -------------------------------------------------------------------------------- */

struct answers {
    int listener;
    const char *text;
    size_t size;
};

static void *serve(void *opaque)
{
    const struct answers *answers = opaque;
    int fd = accept(answers->listener, NULL, NULL);

    require(send(fd, answers->text, answers->size, MSG_NOSIGNAL) == (ssize_t)answers->size ||
            errno == EPIPE);
    shutdown(fd, SHUT_WR);
    return GINT_TO_POINTER(fd);
}

static void fuzz_client(const char *text, size_t size)
{
    struct answers answers = {socket(AF_UNIX, SOCK_STREAM, 0), text, size};
    g_autoptr(GError) err = NULL;
    json_auto_t *value = NULL;
    struct control_client *client;
    struct sockaddr_un at;
    GThread *thread;

    begin(&at);
    require(!bind(answers.listener, (struct sockaddr *)&at, sizeof(at)) &&
            !listen(answers.listener, 1));
    thread = g_thread_new("answers", serve, &answers);
    client = control_connect(at.sun_path, 60000, &err);
    if (client) {
        value = control_call(client, "query", NULL, &err);
        control_disconnect(client);
    }
    require(!value == !!err);
    require(!err || g_utf8_validate(err->message, -1, NULL));
    require(!err || !g_str_has_suffix(err->message, ": there is no answer after 60000 ms"));
    close(GPOINTER_TO_INT(g_thread_join(thread)));
    close(answers.listener);
    unlink(at.sun_path);
}

/* -- HTTP ------------------------------------------------------------------------------------ */

static GString *the_text(void *asked)
{
    *(bool *)asked = true;
    return g_string_new("the text");
}

static void fuzz_http(const char *text, size_t size)
{
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    GString *got = g_string_new(NULL);
    struct sockaddr_un at;
    bool asked = false;

    begin(&at);
    require(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 1));
    require(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
    require(send(fd, text, size, MSG_NOSIGNAL) == (ssize_t)size);
    shutdown(fd, SHUT_WR);
    http_serve(listener, the_text, &asked);
    take(fd, got);
    require(g_str_has_prefix(got->str, "HTTP/1.1 "));
    require(g_str_has_prefix(got->str, "HTTP/1.1 200 OK\r\n") == asked);
    require(g_str_has_suffix(got->str, "\r\n\r\nthe text") == asked);
    if (asked) {
        require(size > 12 && !memcmp(text, "GET /", 5) &&
                g_strstr_len(text, (gssize)size, "\r\n\r\n"));
    }
    close(fd);
    close(listener);
    unlink(at.sun_path);
    g_string_free(got, TRUE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && size <= MAX_SIZE && data[0] == 'c') {
        fuzz_server((const char *)data + 1, size - 1);
    } else if (size && size <= MAX_SIZE && data[0] == 's') {
        fuzz_client((const char *)data + 1, size - 1);
    } else if (size && size <= MAX_SIZE && data[0] == 'h') {
        fuzz_http((const char *)data + 1, size - 1);
    }
    return 0;
}
