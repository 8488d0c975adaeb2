/* Bytes of text: words, and the places of a byte among 16 or 64 as bits. */
#pragma once

#include "arrays.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* A text that is only read. `at` and `at_size` fit AT. */
typedef struct {
    const uint8_t *at;
    int64_t at_size;
} Text;

enum { SHORT = 16, WIDE = 64 };

static inline uint64_t eight_bytes(Text b, int64_t i) {
    uint64_t word;
    CHECK(i >= 0 && i + 8 <= b.at_size);
    __builtin_memcpy(&word, b.at + i, 8);
    return word;
}

static inline int64_t lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }
static inline int64_t count_bits(uint64_t bits) { return __builtin_popcountll(bits); }

/* Sixteen bytes, and which of them equal a byte or are no larger than it, a bit each. The caller sees that they exist. */
#if defined(__x86_64__)
typedef __m128i Sixteen;
static inline Sixteen load_16(Text b, int64_t i) {
    CHECK(i >= 0 && i + 16 <= b.at_size);
    return _mm_loadu_si128((const __m128i *)(b.at + i));
}
static inline uint64_t equal_16(Sixteen v, uint8_t byte) {
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char)byte)));
}
static inline uint64_t up_to_16(Sixteen v, uint8_t byte) {
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8((char)byte)), v));
}
#elif defined(__aarch64__)
typedef uint8x16_t Sixteen;
static inline Sixteen load_16(Text b, int64_t i) {
    CHECK(i >= 0 && i + 16 <= b.at_size);
    return vld1q_u8(b.at + i);
}
static inline uint64_t bits_of(uint8x16_t mask) {
    const uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bits = vandq_u8(mask, weights);
    return (uint64_t)vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
static inline uint64_t equal_16(Sixteen v, uint8_t byte) { return bits_of(vceqq_u8(v, vdupq_n_u8(byte))); }
static inline uint64_t up_to_16(Sixteen v, uint8_t byte) { return bits_of(vcleq_u8(v, vdupq_n_u8(byte))); }
#else
typedef struct {
    uint8_t bytes[16];
} Sixteen;
static inline Sixteen load_16(Text b, int64_t i) {
    Sixteen v;
    CHECK(i >= 0 && i + 16 <= b.at_size);
    __builtin_memcpy(v.bytes, b.at + i, 16);
    return v;
}
static inline uint64_t equal_16(Sixteen v, uint8_t byte) {
    uint64_t bits = 0;
    for (int k = 0; k < 16; k++) bits |= (uint64_t)(v.bytes[k] == byte) << k;
    return bits;
}
static inline uint64_t up_to_16(Sixteen v, uint8_t byte) {
    uint64_t bits = 0;
    for (int k = 0; k < 16; k++) bits |= (uint64_t)(v.bytes[k] <= byte) << k;
    return bits;
}
#endif

/* Sixty-four bytes. */
#if defined(__AVX2__)
typedef struct {
    __m256i low, high;
} SixtyFour;
static inline SixtyFour load_64(Text b, int64_t i) {
    CHECK(i >= 0 && i + 64 <= b.at_size);
    const __m256i *place = (const __m256i *)(b.at + i);
    return (SixtyFour){_mm256_loadu_si256(place), _mm256_loadu_si256(place + 1)};
}
static inline uint64_t equal_64(SixtyFour v, uint8_t byte) {
    __m256i one = _mm256_set1_epi8((char)byte);
    uint64_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v.low, one));
    return low | (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v.high, one)) << 32;
}
#else
typedef struct {
    Sixteen part[4];
} SixtyFour;
static inline SixtyFour load_64(Text b, int64_t i) {
    return (SixtyFour){{load_16(b, i), load_16(b, i + 16), load_16(b, i + 32), load_16(b, i + 48)}};
}
static inline uint64_t equal_64(SixtyFour v, uint8_t byte) {
    return equal_16(v.part[0], byte) | equal_16(v.part[1], byte) << 16 | equal_16(v.part[2], byte) << 32 |
           equal_16(v.part[3], byte) << 48;
}
#endif

static inline bool same(Text a, int64_t i, Text b, int64_t j, int64_t length) {
    int64_t k = 0;
    for (; k + 8 <= length; k += 8)
        if (eight_bytes(a, i + k) != eight_bytes(b, j + k)) return false;
    for (; k < length; k++)
        if (AT(a.at, i + k) != AT(b.at, j + k)) return false;
    return true;
}

/* A hash of b[i:end] that is never 0 and whose low bits depend on every byte. */
static inline uint64_t hash_text(Text b, int64_t i, int64_t end, int64_t seed) {
    const uint64_t begin = 0x9E3779B97F4A7C15u;
    uint64_t h = mix(begin, (uint64_t)(end - i), seed), rest = begin;
    for (; i + 8 <= end; i += 8) h = mix(h, eight_bytes(b, i), seed);
    for (; i < end; i++) rest = rest << 8 | AT(b.at, i);
    h = mix(h, rest, seed);
    return h ? h : 1;
}
