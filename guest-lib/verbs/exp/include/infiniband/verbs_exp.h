/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experimental verbs (ibv_exp_*) over the verbs of rdma-core. Names, values and layouts are those
 * of MLNX_OFED 4.6, so a program that was compiled with its header and a program that is compiled
 * with this header use the same library. How to compile and run: docs/howto/experimental-verbs.md.
 *
 * Each ibv_exp_ call but ibv_exp_get_device_list() is inline: it looks up the device's function in
 * a table that lies before the device's struct verbs_context. A device without the function, or
 * another libibverbs.so.1, gives ENOSYS, in the way that the call reports errors.
 */
#ifndef INFINIBAND_VERBS_EXP_H
#define INFINIBAND_VERBS_EXP_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <infiniband/verbs.h>
#include "ofa_verbs.h"

/* Macros of the old <infiniband/verbs.h> */
#ifndef BEGIN_C_DECLS
#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS   }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#include "exp/context.h"
#include "exp/calls_device.h"
#include "exp/calls_memory.h"
#include "exp/calls_queue.h"
#include "exp/calls_wq.h"
#include "exp/calls_ec.h"

#ifdef __cplusplus
}
#endif

#endif
