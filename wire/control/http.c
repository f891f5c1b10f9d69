/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements http.h. */
#include "wire/control/http.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* -- requests ---------------------------------------------------------------------------------- */

unsigned http_status(const char *head, gsize len)
{
    const char *end = memchr(head, '\r', len);
    g_autofree char *line = g_strndup(head, end ? (gsize)(end - head) : 0);
    g_auto(GStrv) words = g_strsplit(line, " ", 4);

    if (g_strv_length(words) != 3 || !g_str_has_prefix(words[2], "HTTP/1.")) {
        return 400;
    }
    if (strcmp(words[0], "GET") != 0) {
        return 405;
    }
    return strcmp(words[1], "/") == 0 || strcmp(words[1], "/metrics") == 0 ? 200 : 404;
}

static const char *http_reason(unsigned status)
{
    switch (status) {
    case 200:
        return "OK";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    default:
        return "Bad Request";
    }
}

/* Waits for the client until the time is over. */
static bool http_wait(int fd, short event, gint64 deadline)
{
    gint64 left = deadline - g_get_monotonic_time();
    struct pollfd poll_fd = {.fd = fd, .events = event};

    return left > 0 && poll(&poll_fd, 1, (int)(left / 1000) + 1) == 1;
}

/* Reads the head of a request. False: it does not come, or is too long. */
static bool http_read(int fd, GString *head)
{
    gint64 deadline = g_get_monotonic_time() + HTTP_PATIENCE_MS * 1000;
    char piece[1024];

    while (!strstr(head->str, "\r\n\r\n") && head->len < HTTP_HEAD_MAX) {
        ssize_t n = http_wait(fd, POLLIN, deadline) ? recv(fd, piece, sizeof(piece), 0) : 0;

        if (n <= 0 || memchr(piece, '\0', (size_t)n)) {
            return false;
        }
        g_string_append_len(head, piece, n);
    }
    return head->len < HTTP_HEAD_MAX;
}

static void http_write(int fd, const GString *answer)
{
    gint64 deadline = g_get_monotonic_time() + HTTP_PATIENCE_MS * 1000;

    for (gsize sent = 0; sent < answer->len && http_wait(fd, POLLOUT, deadline);) {
        ssize_t n = send(fd, answer->str + sent, answer->len - sent, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return;
        }
        sent += n > 0 ? (gsize)n : 0;
    }
}

void http_serve(int listener, GString *(*text)(void *opaque), void *opaque)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    GString *head = g_string_new(NULL), *answer = g_string_new(NULL), *body;
    unsigned status;

    if (fd >= 0) {
        status = http_read(fd, head) ? http_status(head->str, head->len) : 400;
        body = status == 200 ? text(opaque) : g_string_new("hcasim: see /metrics\n");
        g_string_append_printf(answer,
                               "HTTP/1.1 %u %s\r\n"
                               "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                               "Content-Length: %" G_GSIZE_FORMAT "\r\n"
                               "Connection: close\r\n\r\n%s",
                               status, http_reason(status), body->len, body->str);
        http_write(fd, answer);
        g_string_free(body, TRUE);
        close(fd);
    }
    g_string_free(head, TRUE);
    g_string_free(answer, TRUE);
}
