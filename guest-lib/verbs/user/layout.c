/* SPDX-License-Identifier: BSD-2-Clause */
/* Layout rules of the library's structures that the compiler can check. */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/queues.h"

/* Public structures come first, so that a pointer to one is also a pointer to the whole. */
G_STATIC_ASSERT(offsetof(struct user_cq, ibv) == 0);
G_STATIC_ASSERT(offsetof(struct user_qp, ibv) == 0);
G_STATIC_ASSERT(offsetof(struct hv_srq, ibv) == 0);
G_STATIC_ASSERT(offsetof(struct hv_rwq, ibv) == 0);
G_STATIC_ASSERT(offsetof(struct hv_pd, ibv) == 0);
G_STATIC_ASSERT(offsetof(struct hv_mr, ibv) == 0);
G_STATIC_ASSERT(offsetof(struct hv_ah, ibv) == 0);
