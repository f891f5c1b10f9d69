/* SPDX-License-Identifier: BSD-2-Clause */
/* How a doorbell page of hcasim is recognized in a list of mappings: by the name of its file. */
#ifndef HCASIM_GUEST_LIB_CUDA_DOORBELL_FILE_H
#define HCASIM_GUEST_LIB_CUDA_DOORBELL_FILE_H

/* The file in memory (memfd_create()) that stands for the descriptor of a context. It has nothing
 * but doorbell pages (guest-lib/verbs/kernel/watch.c). The name of the device follows. */
#define DOORBELL_FILE "hcasim-doorbells-"

#endif
