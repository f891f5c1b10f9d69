/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of gpu_probes share: the device, memory as a library would use it, and queues that
 * are made by DevX commands.
 */
#ifndef HCASIM_TESTS_PROGRAMS_GPU_PROBES_H
#define HCASIM_TESTS_PROGRAMS_GPU_PROBES_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE         4096u
#define GPU_PAGE     65536u
#define NC_DEDICATED (1u << 31) /* MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED, newer than some headers */
#define ACCESS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

extern struct ibv_context *ctx;
extern struct ibv_device_attr device_attr;
extern struct ibv_port_attr port_attr;
extern struct ibv_pd *pd;
extern uint32_t pdn;
extern int gid_index;
extern union ibv_gid gid;

/* Says why a library would give up. Returns false. */
bool give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* -- memory (memory.c) ------------------------------------------------------------------------- */

/* Loads libcuda.so.1, and makes a context of the first GPU. From then on pieces are its memory. */
bool gpu_start(void);
bool gpu_is_there(void);
/* Returns a descriptor of a dma-buf, or -1: there is no GPU, or it makes none. */
int gpu_export(const void *at, size_t size);
/* Registers a doorbell register with the GPU, as all libraries do: with the flag IoMemory. */
bool gpu_map_uar(void *reg, size_t size);
void gpu_unmap_uar(void *reg);
void *memory_new(size_t size); /* begins at a multiple of GPU_PAGE; zeroes */
void memory_free_all(void);
void memory_put(void *to, const void *from, size_t size);
void memory_get(void *to, const void *from, size_t size);

/* -- queues (queues.c) ------------------------------------------------------------------------- */

/* How a library makes its queues. */
struct queue_way {
    unsigned uar_types[2]; /* tried in this order */
    size_t uar_size;       /* bytes that a GPU maps */
    uint64_t page_sizes;   /* of mlx5dv_devx_umem_reg_ex(); 0: mlx5dv_devx_umem_reg() */
    bool one_umem;         /* the queues, records and the ring lie in one umem */
    unsigned log_cq;       /* CQEs; the CQ is collapsed */
    unsigned cq_log_page;  /* log_page_size of the CQ */
    bool pi_valid_bits;    /* the bits are set that say that umems are valid */
    bool with_srq;         /* else the QP has no receive queue (ZERO_SIZE) */
    bool has_recv_cq;      /* cqn_rcv names the CQ; else it is 0 */
    bool ece;              /* asks for connection options */
    bool with_counter;     /* RST2INIT names the counters of a verbs QP */
    bool with_user_index;
    enum ibv_mtu mtu;    /* 0: that of the port */
    bool zero_iova;      /* its keys begin at address 0 */
    bool by_iova;        /* ibv_reg_mr_iova2(), else ibv_reg_mr() */
    bool doorbell_first; /* doorbell, record, doorbell (gpunetio); else record, doorbell */
    bool queries;        /* QUERY_QP follows CREATE_QP, and must return an MTU that can be */
    bool no_record;      /* NO_DBR: the doorbell alone tells what is posted */
};

/* Makes the queues, connects the QP to itself, and posts a WRITE as the GPU of that library does.
 * Then compares the data, and destroys everything. */
bool queues_work(const struct queue_way *way);
/* A DCI by DevX and a DCT by verbs, as NVSHMEM makes them. */
bool dc_queues_work(const struct queue_way *way);
/* Queues in memory of a parent domain's allocators (domain.c). */
bool domain_queues_work(void);
/* A umem of one byte or page of a GPU through its dma-buf. True if there is no GPU. */
bool umem_of_dmabuf_works(size_t size, uint64_t page_sizes);

#endif
