/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program whose every result is known in advance: all-to-all, all-reduce, puts and
 * accumulates into windows, fetch-and-op and compare-and-swap, round after round. It compares every
 * value.
 *
 * usage: collective [ROUNDS [SEED]]. Prints each wrong value (round, operation, place, actual
 * value, expected value) and, on rank 0, a last line "N rounds, N wrong". Exit status 1: a value
 * was wrong.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 512
#define CELLS 64

static int rank, ranks;
static unsigned long wrong, current_round;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

static uint64_t word(uint64_t what, uint64_t from, uint64_t to, uint64_t i)
{
    return mix(mix(mix(current_round * 8 + what) + from * 64 + to) + i);
}

static void expect(const char *operation, size_t i, uint64_t is, uint64_t should_be)
{
    if (is != should_be) {
        wrong++;
        printf("rank %d round %lu %s [%zu]: %016lx, should be %016lx\n", rank, current_round,
               operation, i, (unsigned long)is, (unsigned long)should_be);
        fflush(stdout);
    }
}

static void all_to_all(size_t n)
{
    uint64_t *out = malloc(n * (size_t)ranks * 8), *in = malloc(n * (size_t)ranks * 8);

    for (int to = 0; to < ranks; to++) {
        for (size_t i = 0; i < n; i++) {
            out[(size_t)to * n + i] = word(0, (uint64_t)rank, (uint64_t)to, i);
        }
    }
    memset(in, 0xee, n * (size_t)ranks * 8);
    MPI_Alltoall(out, (int)n, MPI_UINT64_T, in, (int)n, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) {
        for (size_t i = 0; i < n; i++) {
            expect("alltoall", (size_t)from * n + i, in[(size_t)from * n + i],
                   word(0, (uint64_t)from, (uint64_t)rank, i));
        }
    }
    free(out);
    free(in);
}

static void all_reduce(size_t n)
{
    uint64_t *out = malloc(n * 8), *in = malloc(n * 8);

    for (size_t i = 0; i < n; i++) {
        out[i] = word(1, (uint64_t)rank, 0, i);
    }
    MPI_Allreduce(out, in, (int)n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;

        for (int r = 0; r < ranks; r++) {
            sum += word(1, (uint64_t)r, 0, i);
        }
        expect("allreduce", i, in[i], sum);
    }
    free(out);
    free(in);
}

static void put(MPI_Win win, uint64_t *mem, size_t n)
{
    uint64_t *out = malloc(n * (size_t)ranks * 8);

    MPI_Win_fence(0, win);
    for (int to = 0; to < ranks; to++) {
        for (size_t i = 0; i < n; i++) {
            out[(size_t)to * n + i] = word(2, (uint64_t)rank, (uint64_t)to, i);
        }
        MPI_Put(out + (size_t)to * n, (int)n, MPI_UINT64_T, to, (MPI_Aint)((size_t)rank * n),
                (int)n, MPI_UINT64_T, win);
    }
    MPI_Win_fence(0, win);
    for (int from = 0; from < ranks; from++) {
        for (size_t i = 0; i < n; i++) {
            expect("put", (size_t)from * n + i, mem[(size_t)from * n + i],
                   word(2, (uint64_t)from, (uint64_t)rank, i));
        }
    }
    MPI_Win_fence(0, win);
    free(out);
}

static uint64_t share(int from, int to, size_t i)
{
    return word(3, (uint64_t)from, (uint64_t)to, i) & 0xffffff;
}

/* Each cell of each rank gets a share from every rank, under a shared lock. */
static void accumulate(MPI_Win win, uint64_t *mem)
{
    memset(mem, 0, CELLS * 8);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < ranks; k++) {
        int to = (rank + k) % ranks;
        uint64_t mine[CELLS];

        for (size_t i = 0; i < CELLS; i++) {
            mine[i] = share(rank, to, i);
        }
        MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
        MPI_Accumulate(mine, CELLS / 2, MPI_UINT64_T, to, 0, CELLS / 2, MPI_UINT64_T, MPI_SUM, win);
        for (size_t i = CELLS / 2; i < CELLS; i++) {
            MPI_Accumulate(&mine[i], 1, MPI_UINT64_T, to, (MPI_Aint)i, 1, MPI_UINT64_T, MPI_SUM,
                           win);
        }
        MPI_Win_unlock(to, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    for (size_t i = 0; i < CELLS; i++) {
        uint64_t sum = 0;

        for (int from = 0; from < ranks; from++) {
            sum += share(from, rank, i);
        }
        expect("accumulate", i, mem[i], sum);
    }
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every rank draws numbers from one counter of rank 0; each number is given once. Then a counter is
 * raised by compare-and-swap. */
static void counters(MPI_Win win, uint64_t *mem, unsigned each)
{
    uint64_t one = 1, *got = malloc(each * 8), *all = malloc(each * (size_t)ranks * 8);
    uint64_t total = each * (uint64_t)ranks;
    uint8_t *given = calloc(total, 1);

    memset(mem, 0, 2 * 8);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (unsigned i = 0; i < each; i++) {
        uint64_t seen = 0, is, next;

        MPI_Fetch_and_op(&one, &got[i], MPI_UINT64_T, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        for (;; seen = is) {
            next = seen + 1;
            MPI_Compare_and_swap(&next, &seen, &is, MPI_UINT64_T, 0, 1, win);
            MPI_Win_flush(0, win);
            if (is == seen) {
                break;
            }
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Gather(got, (int)each, MPI_UINT64_T, all, (int)each, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        expect("fetch_and_op", 0, mem[0], total);
        expect("compare_and_swap", 0, mem[1], total);
        for (size_t i = 0; i < total; i++) {
            expect("fetch_and_op's ticket", i, all[i] < total && !given[all[i]]++, 1);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(got);
    free(all);
    free(given);
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 10;
    unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 0) * 1000000 : 0;
    unsigned long all_wrong = 0;
    uint64_t *mem;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate((MPI_Aint)(WORDS * (size_t)ranks * 8), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mem,
                     &win);
    for (unsigned long r = 0; r < rounds; r++) {
        current_round = first + r;
        all_to_all(1 + current_round % 7);
        all_to_all(WORDS << current_round % 6);
        all_reduce(1 + current_round % 5);
        all_reduce(WORDS);
        put(win, mem, 1 + mix(current_round) % WORDS);
        accumulate(win, mem);
        counters(win, mem, 10);
    }
    MPI_Win_free(&win);
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Bcast(&all_wrong, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%lu rounds, %lu wrong\n", rounds, all_wrong);
    }
    MPI_Finalize();
    return all_wrong != 0;
}
