/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps registers of a function into the process: each load or store of the program there is an
 * access to the function's BAR.
 *
 * Such memory has no pages: an access raises SIGBUS, whose handler carries the instruction out (as
 * a hypervisor does for a guest's MMIO). It knows the instructions by which compilers load and
 * store a word, or compare a word in memory. An access by any other instruction ends the program,
 * as the signal does by default. docs/adr/0025 has the reasons.
 */
#ifndef HCASIM_GUEST_LIB_HOST_MMIO_H
#define HCASIM_GUEST_LIB_HOST_MMIO_H

#include <signal.h>
#include "guest-lib/drv/pci.h"

/* Maps size bytes of BAR0 from offset on, both multiples of a page. The caller, or the program,
 * unmaps them by munmap(); nothing needs to be told of that. NULL: there is no memory (ENOMEM), or
 * this processor's instructions are not known (EOPNOTSUPP). */
void *mmio_map(struct pci_dev dev, uint64_t offset, size_t size);
/* The function has no registers any more in this part of the BAR: later reads return 0, and writes
 * do nothing. */
void mmio_forget(struct pci_dev dev, uint64_t offset, size_t size);

/* To be called by the handler of SIGBUS. True: it was an access to registers, and has been done. */
bool mmio_fault(const siginfo_t *info, void *context);

/* The number of ranges that are known, for tests. */
unsigned mmio_ranges(void);

#endif
