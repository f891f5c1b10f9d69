/* SPDX-License-Identifier: BSD-2-Clause */
/* Has moved. */
#include "wire/encap/roce.h"
