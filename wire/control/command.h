/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that a control socket takes, as tables; and the answer to a request.
 *
 * A request is a line {"execute": NAME, "arguments": {...}, "id": ...}, in which arguments and id
 * may be missing. Its answer is {"return": ..., "id": ...} or {"error": {"class": ..., "desc":
 * ...}, "id": ...}. This is the manner of QEMU's monitor protocol (QMP).
 */
#ifndef HCASIM_WIRE_CONTROL_COMMAND_H
#define HCASIM_WIRE_CONTROL_COMMAND_H

#include "wire/control/json.h"

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_ANSWER_MAX (4u << 20) /* bytes of an answer; a longer one becomes an error */

enum control_type {
    CONTROL_TEXT,   /* "string" */
    CONTROL_INT,    /* "int", from least to most if these differ */
    CONTROL_NUMBER, /* "number" */
    CONTROL_BOOL,   /* "bool" */
    CONTROL_ANY,    /* "any": the handler checks it */
};

struct control_arg {
    const char *name; /* NULL: the end of the list */
    enum control_type type;
    bool required;
    int64_t least, most;
    const char *help;
};

/*
 * Runs a command. The arguments are there, have their types and ranges, and there are no others.
 * *result is the answer, to which the handler gives up its reference; NULL stands for {}. False:
 * *err, whose message is a whole clause that a user can act on.
 */
typedef bool (*control_handler)(void *opaque, const json_t *arguments, json_t **result,
                                GError **err);

struct control_command {
    const char *name;               /* NULL: the end of the table */
    const char *help;               /* a line without a full stop */
    const struct control_arg *args; /* NULL: none */
    control_handler handler;
};

/* Tables, each with the first argument of its handlers. */
struct control_commands;

/* With query-commands alone. */
struct control_commands *control_commands_new(void);
void control_commands_free(struct control_commands *commands);
/* The table must live as long as the commands; a name may be there once. */
void control_commands_add(struct control_commands *commands, const struct control_command *table,
                          void *opaque);

/* Runs a request of len bytes, without its newline. Returns the answer, a line; the caller frees
 * it. */
GString *control_answer(const struct control_commands *commands, const char *line, size_t len);
/* The answer to what is no request. */
GString *control_answer_error(const GError *err);

#endif
