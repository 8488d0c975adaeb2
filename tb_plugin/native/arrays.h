/* Arrays of numpy's in C, and how functions are exported.

Python passes each array as its address and its number of items (native/library.py), so every access can be checked:
`AT(array, i)` is checked if CHECKED is defined, which the tests and the fuzzer do. Nothing here allocates memory, calls
the C library or fails: whatever a function needs is passed to it. */
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
