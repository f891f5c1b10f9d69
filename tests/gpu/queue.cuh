// SPDX-License-Identifier: BSD-2-Clause
// Posts WQEs, rings doorbells and polls CQs by loads and stores alone. The same code runs in a GPU
// kernel and on the CPU.
#pragma once

#include <cstdint>
#include <ctime>

#define HD __host__ __device__

// In which order a post makes itself known, after its WQE is there.
enum bell {
    BELL_RECORD_BELL,      // doorbell record, then 8 bytes to the doorbell page: NVSHMEM's IBGDA
    BELL_BELL_RECORD_BELL, // gpunetio's default
    BELL_BLUE_FLAME, // 64 bytes to the doorbell page, record, 8 bytes: gpunetio with BlueFlame
    BELL_HALVES,     // record, then 8 bytes to the two BlueFlame halves in turn: rocSHMEM
    BELL_NO_RECORD,  // 8 bytes to the doorbell page and no record at all: QPs with send_dbr_mode
                     // NO_DBR
    BELL_COUNT
};

enum {
    WQE_NOP = 0,
    WQE_WRITE = 8,
    WQE_WRITE_IMM = 9,
    WQE_SEND = 10,
    WQE_READ = 16,
    WQE_CAS = 17,
    WQE_FA = 18,
    WQE_MASKED_CAS = 20,
    WQE_MASKED_FA = 21,
    WQE_DUMP = 35
};

struct queue {
    uint8_t *ring;   // of blocks of 64 bytes
    uint8_t *record; // 4 bytes: the send queue's producer index
    uint8_t *cq;     // 64-byte CQEs
    uint8_t *cq_record;
    uint8_t *uar; // where a doorbell of 8 bytes goes
    uint32_t blocks, cqes, qpn;
    uint32_t collapsed; // every CQE goes to the first slot
    uint32_t bell;
    uint32_t dc;
    uint32_t av[12]; // DC: the address vector, in wire order
    uint32_t pi, ci; // in blocks; in CQEs
    uint32_t half;
};

// One work request. size is also the bytes of inline data.
struct op {
    uint32_t opcode, opmod, size, lkey, rkey, imm, inline_data, quiet; // quiet: makes no completion
    uint64_t local, remote, a, b, mask_a,
        mask_b; // atomics: a is added or swapped in, b is compared with
};

enum {
    POST_OK = 0,
    POST_TIMEOUT = 1,
    POST_ERROR = 0x100
}; // POST_ERROR | syndrome

struct outcome {
    uint32_t status, failed_at; // of the first op that failed
    uint32_t pi, ci, half, pad;
    uint64_t ns;
};

HD static inline uint32_t be32(uint32_t v)
{
    return v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24;
}

HD static inline void fence(void)
{
#ifdef __CUDA_ARCH__
    __threadfence_system();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Nanoseconds of a clock that only grows.
HD static inline uint64_t clock_ns(void)
{
#ifdef __CUDA_ARCH__
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
#endif
}

// Writes words one behind the other into the ring, which begins again at its end.
struct writer {
    uint8_t *ring;
    uint32_t mask, at;
};

HD static inline void put32(writer &w, uint32_t value)
{
    *(volatile uint32_t *)(w.ring + (w.at & w.mask)) = be32(value);
    w.at += 4;
}

HD static inline void put64(writer &w, uint64_t value)
{
    put32(w, (uint32_t)(value >> 32));
    put32(w, (uint32_t)value);
}

HD static inline uint32_t blocks_of(const queue &q, const op &o)
{
    uint32_t ds = 1 + (q.dc && o.opcode != WQE_NOP && o.opcode != WQE_DUMP ? 3 : 0);
    if (o.opcode == WQE_NOP)
        return 1;
    if (o.opcode != WQE_SEND && o.opcode != WQE_DUMP)
        ds++;
    if (o.inline_data)
        ds += (o.size + 4 + 15) / 16;
    else
        ds++;
    if (o.opcode == WQE_FA || o.opcode == WQE_CAS || o.opcode == WQE_MASKED_FA ||
        o.opcode == WQE_MASKED_CAS)
        ds += o.opcode == WQE_MASKED_CAS && o.opmod == 9 ? 2 : 1;
    return (ds + 3) / 4;
}

// Writes one WQE at the producer index. Returns the index of its first block.
HD static inline uint32_t write_wqe(queue &q, const op &o)
{
    uint32_t first = q.pi, bytes = 16;
    writer w = {q.ring, q.blocks * 64 - 1, (first & (q.blocks - 1)) * 64 + 16};
    bool remote = o.opcode != WQE_NOP && o.opcode != WQE_DUMP;

    if (q.dc && remote)
        for (int i = 0; i < 12; i++)
            put32(w, q.av[i]);
    if (remote && o.opcode != WQE_SEND) {
        put64(w, o.remote);
        put32(w, o.rkey);
        put32(w, 0);
    }
    if (o.opcode == WQE_FA || o.opcode == WQE_CAS) {
        put64(w, o.a);
        put64(w, o.b);
    } else if (o.opcode == WQE_MASKED_FA && o.opmod == 8) {
        put32(w, (uint32_t)o.a);
        put32(w, (uint32_t)o.mask_a);
        put64(w, 0);
    } else if (o.opcode == WQE_MASKED_FA) {
        put64(w, o.a);
        put64(w, o.mask_a);
    } else if (o.opcode == WQE_MASKED_CAS && o.opmod == 8) {
        put32(w, (uint32_t)o.a);
        put32(w, (uint32_t)o.b);
        put32(w, (uint32_t)o.mask_a);
        put32(w, (uint32_t)o.mask_b);
    } else if (o.opcode == WQE_MASKED_CAS) {
        put64(w, o.a);
        put64(w, o.b);
        put64(w, o.mask_a);
        put64(w, o.mask_b);
    }
    if (o.inline_data) {
        put32(w, 0x80000000u | o.size);
        // The bytes of a, then of b, mask_a and mask_b, as they lie in memory on a little-endian
        // machine.
        for (uint32_t i = 0; i < (o.size + 3) / 4; i++) {
            uint64_t word = i < 2 ? o.a : i < 4 ? o.b : i < 6 ? o.mask_a : o.mask_b;
            put32(w, be32((uint32_t)(i & 1 ? word >> 32 : word)));
        }
    } else if (o.opcode != WQE_NOP) {
        put32(w, o.size);
        put32(w, o.lkey);
        put64(w, o.local);
    }
    bytes = (w.at - (first & (q.blocks - 1)) * 64 + 15) / 16 * 16;
    w.at = (first & (q.blocks - 1)) * 64;
    put32(w, (o.opmod << 24) | (first & 0xffff) << 8 | o.opcode);
    put32(w, q.qpn << 8 | bytes / 16);
    put32(w, o.quiet ? 0 : 8);
    put32(w, o.imm);
    q.pi = first + (bytes + 63) / 64;
    return first;
}

HD static inline void store_record(queue &q)
{
    *(volatile uint32_t *)q.record = be32(q.pi & 0xffff);
    fence();
}

// 8 bytes of which the index and the QP number count: opcode and length are zero, as IBGDA writes
// them.
HD static inline void store_bell(queue &q, uint32_t half)
{
    uint64_t value = (uint64_t)be32(q.qpn << 8) << 32 | be32((q.pi & 0xffff) << 8);
    *(volatile uint64_t *)(q.uar + half * 0x100) = value;
    fence();
}

HD static inline void ring_bell(queue &q, uint32_t last)
{
    fence();
    switch (q.bell) {
    case BELL_BELL_RECORD_BELL:
        store_bell(q, 0);
        store_record(q);
        store_bell(q, 0);
        break;
    case BELL_BLUE_FLAME:
        for (uint32_t i = 0; i < 8; i++)
            *(volatile uint64_t *)(q.uar + 8 * i) =
                *(volatile uint64_t *)(q.ring + (last & (q.blocks - 1)) * 64 + 8 * i);
        fence();
        store_record(q);
        store_bell(q, 0);
        break;
    case BELL_HALVES:
        store_record(q);
        store_bell(q, q.half);
        q.half ^= 1;
        break;
    case BELL_NO_RECORD:
        store_bell(q, 0);
        break;
    default:
        store_record(q);
        store_bell(q, 0);
        break;
    }
}

// Waits for the completion of the WQE whose first block has that index.
HD static inline uint32_t wait_wqe(queue &q, uint32_t first, uint64_t limit_ns)
{
    uint64_t until = clock_ns() + limit_ns;

    for (uint32_t turn = 0;; turn++) {
        uint8_t *cqe = q.cq + (q.collapsed ? 0 : (q.ci & (q.cqes - 1)) * 64);
        uint32_t last = be32(*(volatile uint32_t *)(cqe + 60)); // wqe_counter, signature, op_own
        uint32_t code = last >> 4 & 15, counter = last >> 16;
        bool there = code != 15 && (q.collapsed ? true : (last & 1) == (q.ci / q.cqes & 1));

        if (there && q.collapsed && code != 13 && code != 14)
            there = (int16_t)(uint16_t)(counter - (first & 0xffff)) >= 0;
        if (there) {
            fence();
            if (code == 13 || code == 14)
                return POST_ERROR | (be32(*(volatile uint32_t *)(cqe + 52)) & 0xff);
            if (!q.collapsed) {
                q.ci++;
                *(volatile uint32_t *)q.cq_record = be32(q.ci & 0xffffff);
                if (counter != (first & 0xffff))
                    continue;
            }
            return POST_OK;
        }
        if (!(turn & 255) && clock_ns() > until)
            return POST_TIMEOUT;
    }
}

// Posts the ops one after the other, each once the one before has completed.
HD static inline void run_ops(queue q, const op *ops, uint32_t count, uint64_t limit_ns,
                              outcome *out)
{
    uint32_t status = POST_OK, i;
    uint64_t began = clock_ns();

    for (i = 0; i < count && status == POST_OK; i++) {
        uint32_t first = write_wqe(q, ops[i]);
        ring_bell(q, first);
        status = wait_wqe(q, first, limit_ns);
    }
    out->ns = clock_ns() - began;
    out->pi = q.pi;
    out->ci = q.ci;
    out->half = q.half;
    out->failed_at = status == POST_OK ? count : i - 1;
    fence();
    out->status = status;
    fence();
}

// Posts the same op again and again: batch WQEs behind one doorbell, of which the last one
// completes. *each gets what one batch took.
HD static inline void run_again(queue q, op o, uint32_t rounds, uint32_t batch, uint64_t limit_ns,
                                uint32_t *each, outcome *out)
{
    uint32_t status = POST_OK, i;
    uint64_t began = clock_ns();

    for (i = 0; i < rounds && status == POST_OK; i++) {
        uint64_t start = clock_ns();
        uint32_t first = 0;
        for (uint32_t k = 0; k < batch; k++) {
            o.quiet = k + 1 < batch;
            first = write_wqe(q, o);
        }
        ring_bell(q, first);
        status = wait_wqe(q, first, limit_ns);
        each[i] = (uint32_t)(clock_ns() - start);
    }
    out->ns = clock_ns() - began;
    out->pi = q.pi;
    out->ci = q.ci;
    out->half = q.half;
    out->failed_at = i;
    fence();
    out->status = status;
    fence();
}
