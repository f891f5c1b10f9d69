/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the environment variables HCASIM_*, and finds those whose names are wrong. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_VARIABLES_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_VARIABLES_H

#define HV_VARIABLE_PREFIX "HCASIM_"

/* A variable that is no setting (settings.h). */
struct hv_variable {
    const char *name;
    const char *means; /* for the reference page, in Markdown */
};

/* The table's rows in order; NULL behind the last one. */
const struct hv_variable *hv_variable_at(unsigned i);

/* The variable of a setting. The caller frees the name. */
char *hv_variable_of(const char *setting);

/* The names of the variables HCASIM_* that the environment has and hcasim does not know. Empty
 * variables do not count. Free the list with g_strfreev(). */
char **hv_variables_unknown(void);

/* The variable that was meant by this name: if the name differs by slips of typing
 * (spelling_find_slip()); if it is similar in any way (spelling_guess()). NULL: there is none. The
 * caller frees the name. */
char *hv_variable_slip(const char *name);
char *hv_variable_guess(const char *name);

/* The line about a variable that was misspelt. The caller frees it. */
char *hv_variable_slip_text(const char *name, const char *meant);

/* For a program: writes a line to standard error for each variable that was misspelt, once in the
 * life of the process. */
void hv_variables_warn(void);

#endif
