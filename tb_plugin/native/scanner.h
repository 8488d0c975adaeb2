/* What the scanners of JSON and of Perfetto's protobuf share: the keys that are read, and the arrays that are filled.

reader/scan/scanner.py describes both, and has the same numbers. */
#pragma once

#include "text.h"

enum { SKIP, CODE, INTEGER, TIME, OBJECT };
enum { EVENTS, TOKENS, ODD, PLACES, STATUS, NAMELESS, FIRST_NAMELESS, ANOMALIES };
enum { WORD, HEX, EMPTY, COMMA, N_ANOMALIES };
enum { FIRST_ANOMALIES = ANOMALIES + N_ANOMALIES, SEED = FIRST_ANOMALIES + N_ANOMALIES };
enum { PHASE = 0, N_CODES = 5, N_TIMES = 2, ODD_FIELDS = 5 };
enum { ODD_PER_EVENT = 64, TOKENS_PER_EVENT = 256 };
static const int64_t MISSING = INT64_MIN;

#define FIELD(type, name) \
    type *name;           \
    int64_t name##_size

typedef struct {
    FIELD(const int64_t, levels);
    FIELD(const int64_t, kinds);
    FIELD(const int64_t, columns);
    FIELD(const int64_t, starts);
    FIELD(const int64_t, lengths);
    Text text;
} Keys;

typedef struct {
    FIELD(int32_t, codes);
    FIELD(int64_t, times);
    FIELD(int64_t, offsets);
    FIELD(int32_t, lengths);
    FIELD(int64_t, arg_counts);
    FIELD(int32_t, arg_rows);
    FIELD(int64_t, arg_values);
    FIELD(uint64_t, slots);
    FIELD(int32_t, slot_codes);
    FIELD(int64_t, token_starts);
    FIELD(int64_t, token_lengths);
    FIELD(int64_t, odd);
    FIELD(int64_t, places);
    FIELD(int64_t, state);
} Out;

/* How many events there is room for: the length of a row in codes, times, arg_rows and arg_values. */
static inline int64_t room(const Out *out) { return out->offsets_size; }

/* The slot of the key b[i:end]; a free one if it isn't read. Keys that are read differ in length or in three bytes. */
static inline int64_t find_key(Text b, int64_t i, int64_t end, int64_t level, const Keys *keys) {
    int64_t mask = keys->lengths_size - 1, length = end - i;
    int64_t slot = (length * 7 + AT(b.at, i) * 3 + AT(b.at, (i + end) >> 1) * 31 + AT(b.at, end - 1) * 113) & mask;
    for (; AT(keys->lengths, slot) >= 0; slot = (slot + 1) & mask)
        if (AT(keys->lengths, slot) == length && AT(keys->levels, slot) == level &&
            same(keys->text, AT(keys->starts, slot), b, i, length))
            break;
    return slot;
}

/* The code of the token b[i:end], which is new or known; -1 if there is no room for a new one. */
static inline int64_t token_code(Text b, int64_t i, int64_t end, Out *out) {
    uint64_t h = hash_text(b, i, end, AT(out->state, SEED));
    int64_t mask = out->slots_size - 1, slot = (int64_t)(h & (uint64_t)mask);
    for (; AT(out->slots, slot); slot = (slot + 1) & mask) {
        int64_t code = AT(out->slot_codes, slot);
        if (AT(out->slots, slot) == h && AT(out->token_lengths, code) == end - i &&
            same(b, AT(out->token_starts, code), b, i, end - i)) /* equal hashes can be constructed */
            return code;
    }
    int64_t code = AT(out->state, TOKENS);
    if (code >= out->token_starts_size) return -1;
    AT(out->slots, slot) = h;
    AT(out->slot_codes, slot) = (int32_t)code;
    AT(out->token_starts, code) = i;
    AT(out->token_lengths, code) = end - i;
    AT(out->state, TOKENS) = code + 1;
    return code;
}

/* Note an argument of an event; returns which value of its column it is, -1 if there was no room. */
static inline int64_t append(Out *out, int64_t column, int64_t row, int64_t value) {
    int64_t nth = AT(out->arg_counts, column);
    if (nth >= room(out)) return -1;
    AT(out->arg_rows, column * room(out) + nth) = (int32_t)row;
    AT(out->arg_values, column * room(out) + nth) = value;
    AT(out->arg_counts, column) = nth + 1;
    return nth;
}

/* Undo the entries of an event that was dropped. Its tokens stay: another event may use them. */
static inline void forget(Out *out, int64_t row) {
    for (int64_t column = 0; column < out->arg_counts_size; column++) {
        int64_t count = AT(out->arg_counts, column);
        while (count && AT(out->arg_rows, column * room(out) + count - 1) == row) count--;
        AT(out->arg_counts, column) = count;
    }
    while (AT(out->state, ODD) && AT(out->odd, (AT(out->state, ODD) - 1) * ODD_FIELDS) == row) AT(out->state, ODD)--;
}
