/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls ibv_copy_ah_attr_from_kern() and similar functions for verbs_probe.c. */
#ifndef HCASIM_TESTS_PROGRAMS_VERBS_COPIES_H
#define HCASIM_TESTS_PROGRAMS_VERBS_COPIES_H

/* Return 0 if the functions copied correctly, else EINVAL. */
int copies_ah(void);
int copies_qp(void);
int copies_path(void);

#endif
