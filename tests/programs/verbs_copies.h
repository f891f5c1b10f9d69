/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_copy_ah_attr_from_kern() and its like, called by verbs_probe.c. */
#ifndef HCASIM_TESTS_PROGRAMS_VERBS_COPIES_H
#define HCASIM_TESTS_PROGRAMS_VERBS_COPIES_H

/* 0: they copied; or EINVAL. */
int copies_ah(void);
int copies_qp(void);
int copies_path(void);

#endif
