/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs over UCP share: ends the program on an error of UCX, and waits for requests. */
#ifndef HCASIM_TESTS_PROGRAMS_UCP_WAIT_H
#define HCASIM_TESTS_PROGRAMS_UCP_WAIT_H

#include <ucp/api/ucp.h>
#include "tests/programs/other_side.h"

/* Ends the program unless the status is UCS_OK. what: what was called. */
static inline void ucp_ok(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fail("%s: %s", what, ucs_status_string(status));
    }
}

/* Waits for a request of ucp_*_nbx() and frees it. go_on() is called until the request has ended;
 * it lets UCX progress, and may end the program. */
static inline void ucp_wait(ucs_status_ptr_t request, const char *what, void (*go_on)(void *opaque),
                            void *opaque)
{
    ucs_status_t status;

    if (!request) {
        return;
    }
    if (UCS_PTR_IS_ERR(request)) {
        ucp_ok(UCS_PTR_STATUS(request), what);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        go_on(opaque);
    }
    ucp_ok(status, what);
    ucp_request_free(request);
}

#endif
