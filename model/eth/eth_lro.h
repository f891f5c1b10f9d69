/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large receive offload: consecutive TCP segments of a connection become one packet. eth_lro.c
 * describes it.
 */
#ifndef HCASIM_MODEL_ETH_LRO_H
#define HCASIM_MODEL_ETH_LRO_H

#include "model/eth/eth_priv.h"

/* Sessions of a function, and the bytes of a merged packet, with all headers. */
#define ETH_LRO_SESSIONS 16
#define ETH_LRO_BYTES    (65535u + 64)

/* lro_timer_supported_periods, in microseconds. No public source has the values of a card. mlx5e
 * asks for 32 (MLX5E_DEFAULT_LRO_TIMEOUT) and takes the least that is not below; DPDK takes the
 * first. */
#define ETH_LRO_PERIOD_0 8
#define ETH_LRO_PERIOD_1 16
#define ETH_LRO_PERIOD_2 32
#define ETH_LRO_PERIOD_3 1024

/* Takes the LRO fields of a tirc into the TIR, on CREATE_TIR (the TIR has none yet) and MODIFY_TIR.
 * Sessions that the TIR has open are closed. Counterpart: eth_lro_end(). */
enum syn eth_lro_set(struct hca *hca, struct eth_tir *tir, const struct prm_tirc *tirc);
/* The TIR ends, and what its sessions hold is dropped. */
void eth_lro_end(struct hca *hca, struct eth_tir *tir);

/* A frame has come to a TIR with LRO, which leads to the RQ. True: a session has taken it. */
bool eth_lro_take(struct hca *hca, const struct eth_tir *tir, struct eth_rq *rq,
                  const struct eth_arrival *a);
/* The RQ receives no more: what sessions hold for it is dropped. */
void eth_lro_forget(struct hca *hca, const struct eth_rq *rq);

#endif
