/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands for the CUDA driver's library while the front is linked (meson.build): it has the name
 * that the front needs, and no functions. It is not installed, and no program loads it. */
