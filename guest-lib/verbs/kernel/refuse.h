/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says in the log why a verb is refused, or what an error completion means, in words of verbs.
 *
 * The lines come at log level `guest`; below that level nothing is formatted. Their number is
 * bounded as that of the model's lines is (model/core/log.c): REFUSE_BURST at once, then one each
 * second, and the next line says how many were left out. Level `trace` has no bound.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_REFUSE_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_REFUSE_H

#include "guest-lib/verbs/verbs.h"

/* Rarely called: the compiler moves the branches that call it out of the hot path. */
#define HV_COLD __attribute__((cold))

/* The number of lines that an HCA has written lately. */
struct hv_said {
    pthread_mutex_t
        lock; /* around what follows and the first errors of QPs; nothing else is taken inside it */
    unsigned lines;
    uint64_t since_ns, left_out;
};

/* Whether the HCA's log has lines of level `guest`. A caller that has to search for the reason does
 * so only in this case. */
bool hv_says(struct hv_hca *hca);
/* Whether error completions are to be explained (setting `explain`). */
bool hv_explains(struct hv_hca *hca);
/* Says "DEVICE: LINE (ERRNO)" and returns err, which is the errno that the program gets. The line
 * begins with the verb's name without `ibv_`, then a colon. If err is 0, it says nothing. Any
 * thread, with any lock. */
HV_COLD int hv_refuse(struct hv_hca *hca, int err, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* Says "DEVICE: LINE". */
HV_COLD void hv_say(struct hv_hca *hca, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

void hv_said_init(struct hv_said *said);
void hv_said_fini(struct hv_said *said);
/* Around the first errors of QPs (user/explain.c). Nothing is said, and nothing else taken, inside.
 */
void hv_said_lock(struct hv_hca *hca);
void hv_said_unlock(struct hv_hca *hca);

/* Names of the bits of an attribute mask, such as "IBV_QP_PORT, IBV_QP_AV". The result lies in the
 * buffer. */
struct hv_words {
    char text[640];
};
const char *hv_qp_mask_names(int mask, struct hv_words *words);
/* "RESET", "INIT", ... */
const char *hv_qp_state_name(enum ibv_qp_state state);
const char *hv_qp_type_name(enum ibv_qp_type type);
/* A GID as an IP address: 10.0.0.1 or fe80::1. */
const char *hv_gid_name(const union ibv_gid *gid, struct hv_words *words);

#endif
