/* Arrays of numpy's in C, and how functions are exported.

Python passes each array as its address and its number of items (arrays/native.py), so every access can be checked:
`AT(array, i)` is checked if CHECKED is defined, which the tests and the fuzzer do. Nothing here allocates memory, calls
the C library or fails: whatever a function needs is passed to it, and so is any array of more than a few items, since
Windows lets no function use more than a page of the stack without the C library. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define IN(type, name) const type *restrict name, int64_t name##_size
#define OUT(type, name) type *restrict name, int64_t name##_size

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#ifdef CHECKED
static inline int64_t checked(int64_t i, int64_t size) {
    if (i < 0 || i >= size) __builtin_trap();
    return i;
}
#define AT(array, i) ((array)[checked((i), array##_size)])
#define CHECK(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define AT(array, i) ((array)[i])
#define CHECK(condition) ((void)0)
#endif

typedef double float64_t; /* as numpy calls it */

enum { NONE = -1 };

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* A step of a hash: a product with a number that no file knows, both halves of it. So the keys of a file can't be chosen to
collide; every hash table of the library uses it. */
static inline uint64_t mix(uint64_t hash, uint64_t word, int64_t seed) {
    unsigned __int128 product = (unsigned __int128)(hash ^ word) * (uint64_t)seed;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* How many of sorted values are at most `most`; `near` is a guess, which a merge of two sorted arrays makes right. */
static inline int64_t count_until(IN(int64_t, values), int64_t most, int64_t near) {
    int64_t low = 0, high = near;
    if (!near || AT(values, near - 1) <= most) {
        int64_t stride = 1;
        if (near == values_size || AT(values, near) > most) return near;
        for (low = near; low + stride <= values_size && AT(values, low + stride - 1) <= most; stride *= 2) low += stride;
        high = smaller(low + stride, values_size);
    }
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (AT(values, middle) <= most)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How much of a union lies before an instant. `before`: its length before each of its intervals, and at the end; `begun`:
   how many of its intervals have begun by then, at first a guess. */
static inline int64_t union_before(IN(int64_t, start), IN(int64_t, end), IN(int64_t, before), int64_t at, int64_t *begun) {
    *begun = count_until(start, start_size, at, *begun);
    return AT(before, *begun) - (*begun ? larger(AT(end, *begun - 1) - at, 0) : 0);
}
