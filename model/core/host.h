/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines what an HCA needs from its owner: DMA, interrupts, time, a log.
 *
 * The owner (a QEMU device, guest-lib, a test) fills in one table of callbacks. The model has no
 * thread, lock or clock of its own: it runs inside the calls its owner makes (fw/fw.h), and calls
 * back only from there. All calls for one HCA are serialized by the owner.
 *
 * Re-entry: every callback may come back into the function before it returns. DMA and interrupts go
 * to addresses that the guest chose. Behind such an address there may be the function's own BAR,
 * its configuration space (a reset), or the slot that the function is plugged into. A call that
 * comes back while an entry is under way is noted, and done when that entry ends (fw/entry.c):
 *
 *   fw_mmio_read()    is answered at once
 *   fw_mmio_write()   waits in a short queue, as a posted write does. If the queue is full, the
 *                     write is lost, counted and logged as the guest's error
 *   fw_reset(), and a write that disables the function
 *                     From here on the entry does not reach the host any more: DMA is not
 *                     answered, interrupts are not sent. The writes noted before are forgotten
 *   fw_set_wire()     the old cable is in use until the entry ends
 *   fw_run()          does nothing and says that there is work
 *   fw_retire()       acts like a reset, for good; fw_free() must wait until the entry has ended
 *   the wire's callbacks (wire/port.h)
 *                     note the event, whether an entry is under way or not, and ask for a turn
 *
 * Therefore nothing that the HCA works on is freed during the work. When an entry ends, it does a
 * bounded number of the noted calls. The rest, and calls that they provoke, are done in the turn
 * that the entry asks for.
 *
 * Addresses are bus addresses as the function puts them on PCI; the owner translates (a vIOMMU
 * included). Data is a byte image: nothing here swaps bytes.
 */
#ifndef HCASIM_MODEL_HOST_H
#define HCASIM_MODEL_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Length in bytes from which on dma_read_far pays off (docs/adr/0017). */
#define HOST_FAR_BYTES 2048

enum hca_log_level {
    HCA_LOG_ERROR,       /* the device itself is at fault or cannot go on */
    HCA_LOG_GUEST_ERROR, /* the guest or a peer did something the specification forbids */
    HCA_LOG_INFO,
    HCA_LOG_TRACE,
};

/* What an atomic operation does to a word (IBTA 9.4.5). */
enum host_atomic_kind {
    HOST_ATOMIC_ADD,      /* operand is added to the word */
    HOST_ATOMIC_CMP_SWAP, /* if the word equals compare, it becomes operand */
    HOST_ATOMIC_COMPUTE,  /* the word becomes the result of compute() */
};

struct host_atomic {
    enum host_atomic_kind kind;
    uint64_t operand, compare;
    uint64_t (*compute)(const void *with, uint64_t held);
    const void *with;
    /* What compute() does, for a host whose word is in memory where it cannot call compute(): a
     * masked operation (enum masked_op of model/memory/masked.h) with these operands, each a word.
     * NULL: something else. */
    unsigned masked;
    const uint64_t *operands;

    uint64_t held; /* out: what the word was before */
    /* out: nothing was done, because CPUs changed the word too often; only with compute() */
    bool lost;
};

/* A thread that waits for completions by an instruction of its processor (AS notify). */
struct host_thread {
    uint32_t partition, process, thread; /* as the CQ's context names them */
};

struct hca_host_ops {
    /*
     * Reads or writes len bytes at a bus address. False: the address does not answer (nothing
     * may be assumed about buf). Two calls are seen by the host's CPUs in the order made.
     */
    bool (*dma_read)(void *host, uint64_t addr, void *buf, size_t len);
    /* The last 8 bytes become visible to the host's CPUs no earlier than all before them. */
    bool (*dma_write)(void *host, uint64_t addr, const void *buf, size_t len);
    /* Announces that the next dma_read() is the first of reads that go on, one behind the other,
     * for len bytes: they are the rest of one message, whose data does not change. Together with
     * dma_settle(); both may be NULL, and are called only after fw_host_settles(). */
    void (*dma_expect)(void *host, size_t len);
    /* Waits until all that was written is visible to everything that can reach the memory. Called
     * before an answer leaves that acknowledges requests; what software posts needs no such call,
     * because it has seen what it tells of. */
    void (*dma_settle)(void *host);
    /* As dma_read(), for HOST_FAR_BYTES or more that go to memory which another processor reads
     * next. NULL: there is no such function, dma_read() does it. */
    bool (*dma_read_far)(void *host, uint64_t addr, void *buf, size_t len);

    /*
     * Direct access for the data path. Maps up to *len bytes at addr and stores in *len how many
     * are contiguous at the returned pointer; NULL if the address does not answer or is not
     * memory. Every map is followed by one unmap with the same length before control returns to
     * the owner. Both may be NULL: then nothing can be mapped.
     */
    void *(*dma_map)(void *host, uint64_t addr, size_t *len, bool is_write);
    void (*dma_unmap)(void *host, void *ptr, size_t len, bool is_write);

    /*
     * Changes the len (4 or 8) naturally aligned bytes at addr as host_atomic_do() does. The bytes
     * are one word in host byte order. The change is atomic to the host's CPUs and to everything
     * else that changes the word by an atomic operation of that size. False: the address does not
     * answer.
     */
    bool (*dma_atomic)(void *host, uint64_t addr, size_t len, struct host_atomic *op);

    /* Sends MSI-X message vector (0 is the driver's async/command vector by its own choice). */
    void (*irq)(void *host, unsigned vector);

    /* Wakes a thread that waits. False: the host cannot, for example because the thread runs on no
     * processor. NULL: the host has no such message, as all hosts but POWER9. */
    bool (*as_notify)(void *host, const struct host_thread *thread);

    /* Nanoseconds since an arbitrary start; never goes back. A test's clock stands still
     * until the test moves it. */
    uint64_t (*clock_ns)(void *host);

    /* Asks for a call of fw_run() once clock_ns() reaches deadline; the last call counts,
     * UINT64_MAX disarms. */
    void (*timer_arm)(void *host, uint64_t deadline_ns);

    /* Asks for a call of fw_run() soon. The HCA may call it from within any call into the HCA. */
    void (*wake)(void *host);

    /* Takes one line without a newline. May be NULL. hca_log() bounds the number of lines that a
     * guest can cause. */
    void (*log)(void *host, enum hca_log_level level, const char *line);

    /* Takes an event of the trace: len bytes, the members of a JSON object. NULL: the turn is over,
     * and what was taken should become readable. Called only if fw_config.trace_events is set. */
    void (*trace)(void *host, const char *event, size_t len);

    /* Memory may stop answering before the driver can invalidate its pages, because bus addresses
     * are translated anew at each access. If memory of an on-demand key does not answer, this is a
     * page fault then (docs/adr/0024). */
    bool pages_may_go;
};

/*
 * Copies for dma_write() if the host's memory is directly accessible. Programs wait for the last
 * word of a WRITE and then use the rest, because a card writes from the first byte to the last.
 * memcpy() may store in any order.
 */
static inline void host_copy_in_order(void *to, const void *from, size_t len)
{
    uint64_t last;

    if (len <= sizeof(last)) {
        memcpy(to, from, len);
        return;
    }
    len -= sizeof(last);
    memcpy(to, from, len);
    memcpy(&last, (const uint8_t *)from + len, sizeof(last));
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy((uint8_t *)to + len, &last, sizeof(last));
}

/* Stores desired if memory holds *expected. *expected receives the value before. */
static inline void host_cmpxchg(void *at, size_t len, uint64_t *expected, uint64_t desired)
{
    if (len == sizeof(uint32_t)) {
        uint32_t held = (uint32_t)*expected;

        __atomic_compare_exchange_n((uint32_t *)at, &held, (uint32_t)desired, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        *expected = held;
    } else {
        __atomic_compare_exchange_n((uint64_t *)at, expected, desired, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    }
}

/* Number of tries of an exchange that succeeds only if no CPU changed the word meanwhile. Only a
 * few instructions lie between the read and the exchange, so a CPU that changes the word in a loop
 * does not win every time. */
#define HOST_ATOMIC_TRIES 1000

static inline void host_atomic_compute(void *at, size_t len, struct host_atomic *op)
{
    uint64_t seen = 0;

    for (unsigned i = 0; i < HOST_ATOMIC_TRIES; i++) {
        op->held = seen;
        host_cmpxchg(at, len, &seen, op->compute(op->with, op->held));
        if (seen == op->held) {
            return;
        }
    }
    op->lost = true;
}

/* Does the work of dma_atomic() if the host's memory is directly accessible and aligned. */
static inline void host_atomic_do(void *at, size_t len, struct host_atomic *op)
{
    switch (op->kind) {
    case HOST_ATOMIC_ADD:
        op->held = len == sizeof(uint32_t)
                       ? __atomic_fetch_add((uint32_t *)at, (uint32_t)op->operand, __ATOMIC_SEQ_CST)
                       : __atomic_fetch_add((uint64_t *)at, op->operand, __ATOMIC_SEQ_CST);
        break;
    case HOST_ATOMIC_CMP_SWAP:
        op->held = op->compare;
        host_cmpxchg(at, len, &op->held, op->operand);
        break;
    case HOST_ATOMIC_COMPUTE:
        host_atomic_compute(at, len, op);
        break;
    }
}

#endif
