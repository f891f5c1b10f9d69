/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays the steps of the host, and ends a case there. */
#include "tests/conformance/play.h"

const struct play_step play_host_steps[] = {
    {"mr", play_new_mr},     {"dereg", play_dereg},
    {"srq", play_new_srq},   {"memory", play_memory},
    {"qp", play_new_qp},     {"modify", play_modify},
    {"query", play_query},   {"destroy", play_destroy},
    {"resize", play_resize}, {"mw", play_new_mw},
    {"arm", play_arm},       {"notice", play_notice},
    {"recv", play_recv},     {"send", play_send},
    {"wc", play_wc},         {"event", play_event},
    {"key", play_new_key},   {"null", play_new_null},
    {"check", play_check},   {NULL, NULL},
};

void play_end_host(struct play *p)
{
    play_settle(p);
    play_end_work(p);
    play_free_windows(p); /* a device may refuse to destroy a QP that a window is bound to */
    play_free_qps(p);
    play_free_objects(p);
}
