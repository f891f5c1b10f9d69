/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies past the caches, if the processor has stores for that: whole cache lines, with the widest
 * common stores. Bytes before the first whole line and behind the last one are copied as usual. */
#include "guest-lib/host/far.h"
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

/* to is the start of a line, len a multiple of FAR_LINE. */
__attribute__((target("avx2"))) static void far_lines_avx2(uint8_t *to, const uint8_t *from,
                                                           size_t len)
{
    for (size_t i = 0; i < len; i += FAR_LINE) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
        __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(from + i + 32));

        _mm256_stream_si256((__m256i *)(void *)(to + i), low);
        _mm256_stream_si256((__m256i *)(void *)(to + i + 32), high);
    }
}

static void far_lines_sse2(uint8_t *to, const uint8_t *from, size_t len)
{
    for (size_t i = 0; i < len; i += 16) {
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
    }
}

void far_copy(void *to, const void *from, size_t len)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    size_t head = -(uintptr_t)out % FAR_LINE, lines;

    if (len < head + FAR_LINE) {
        memcpy(out, in, len);
        return;
    }
    lines = (len - head) / FAR_LINE * FAR_LINE;
    memcpy(out, in, head);
    if (__builtin_cpu_supports("avx2")) {
        far_lines_avx2(out + head, in + head, lines);
    } else {
        far_lines_sse2(out + head, in + head, lines);
    }
    memcpy(out + head + lines, in + head + lines, len - head - lines);
    _mm_sfence();
}

#else

void far_copy(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
}

#endif
