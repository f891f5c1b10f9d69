/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of a switch on a control socket (wire/control). */
#ifndef HCASIM_WIRE_SWITCH_COMMANDS_H
#define HCASIM_WIRE_SWITCH_COMMANDS_H

#include "wire/control/command.h"
#include "wire/switch/loop.h"

/* The first argument of the handlers is a struct switch_loop. */
extern const struct control_command switch_commands[];

#endif
