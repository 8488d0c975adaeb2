/* JSON by its structure: where strings and values end. Anything inside a string is tolerated. */
#pragma once

#include "text.h"

enum { INCOMPLETE = -1, BROKEN = -2 };
enum {
    DEEPEST = 62,               /* levels of nesting inside an argument */
    SHORT_NESTED = 1 << 12,
};

static inline bool is_blank(uint8_t c) { return c <= ' '; }
static inline bool ends_number(uint8_t c) { return c <= ' ' || c == ',' || c == ']' || c == '}'; }
static inline bool ends_bare(uint8_t c) { return ends_number(c) || c == '"'; }
static inline bool is_digit(uint8_t c) { return (uint8_t)(c - '0') <= 9; }

static inline int64_t skip_blanks(Text b, int64_t i, int64_t end) {
    while (i < end && is_blank(AT(b.at, i))) i++;
    return i;
}

/* Index of the closing quote of the string whose text begins at i; end or more if it is missing. */
static inline int64_t string_end(Text b, int64_t i, int64_t end) {
    while (i < end) {
        if (i + SHORT <= end) {
            Sixteen v = load_16(b, i);
            uint64_t bits = equal_16(v, '"') | equal_16(v, '\\');
            if (!bits) {
                i += SHORT;
                continue;
            }
            i += lowest_bit(bits);
        }
        if (AT(b.at, i) == '"') return i;
        i += AT(b.at, i) == '\\' ? 2 : 1;
    }
    return i;
}

/* From the places of quotes: which bytes follow an odd number of them, a quote itself counted. */
static inline uint64_t in_strings(uint64_t quotes) {
#if defined(__PCLMUL__)
    return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_set_epi64x(0, (int64_t)quotes), _mm_set1_epi8(-1), 0));
#else
    for (int shift = 1; shift < 64; shift *= 2) quotes ^= quotes << shift;
    return quotes;
#endif
}

/* What nested_end returns, for a short value without anything unusual that ends well before `end`; else 0. */
static inline int64_t simple_nested_end(Text b, int64_t i, int64_t end) {
    int64_t depth = 0, lists = 0;
    uint64_t inside = 0, string_ended = 0;
    end = smaller(end, i + SHORT_NESTED);
    for (; i + WIDE <= end; i += WIDE) {
        SixtyFour v = load_64(b, i);
        if (equal_64(v, '\\')) return 0;
        uint64_t quotes = equal_64(v, '"'), within = in_strings(quotes) ^ inside;
        uint64_t lists_opened = equal_64(v, '[') & ~within, lists_closed = equal_64(v, ']') & ~within;
        uint64_t opened = lists_opened | (equal_64(v, '{') & ~within);
        uint64_t closed = lists_closed | (equal_64(v, '}') & ~within);
        if (depth + count_bits(opened) > DEEPEST) return 0;
        uint64_t odd = 0; /* what follows a string, and isn't punctuation */
        if (quotes | string_ended) {
            uint64_t after_string = (quotes & ~within) << 1 | string_ended;
            odd = after_string & ~(closed | equal_64(v, ',') | equal_64(v, ':'));
            string_ended = (quotes & ~within) >> 63;
        }
        int64_t closings = 0;
        for (uint64_t rest = count_bits(closed) >= depth ? closed : 0; rest;) {
            uint64_t following = rest & (rest - 1), this = rest ^ following, up_to_here = this | (this - 1);
            if (depth + count_bits(opened & up_to_here) == ++closings) {
                if (odd & up_to_here) return 0;
                lists += count_bits(lists_opened & up_to_here) - count_bits(lists_closed & up_to_here);
                return lists ? BROKEN : i + count_bits(up_to_here);
            }
            rest = following;
        }
        if (odd) return 0;
        depth += count_bits(opened) - count_bits(closed);
        lists += count_bits(lists_opened) - count_bits(lists_closed);
        inside = 0 - (within >> 63);
    }
    return 0;
}

static inline bool follows_colon(Text b, int64_t i) {
    do i--;
    while (is_blank(AT(b.at, i)));
    return AT(b.at, i) == ':';
}

static inline bool follows_string(uint8_t c) { return c == ',' || c == ':' || c == ']' || c == '}'; }

/* Index after the object or array that begins at i, INCOMPLETE, or BROKEN.

It is broken if some bracket closes a brace, or if something other than punctuation follows a string; a long one also
if it holds an object without a key. So the loss of one bracket or quote is seen near it, and swallows little of what
follows. */
static int64_t nested_end(Text b, int64_t i, int64_t end) {
    int64_t after = simple_nested_end(b, i, end);
    if (after) return after;
    int64_t depth = 0, lists = 0, far = i + SHORT_NESTED;
    for (; i < end; i++) {
        uint8_t c = AT(b.at, i);
        if (c == '"') {
            i = string_end(b, i + 1, end);
            int64_t following = skip_blanks(b, i + 1, end);
            if (following < end && !follows_string(AT(b.at, following))) return BROKEN;
        } else if (c == '{' || c == '[') {
            depth++;
            lists += c == '[';
            if (depth > DEEPEST || (lists == 0 && i > far && !follows_colon(b, i))) return BROKEN;
        } else if (c == '}' || c == ']') {
            depth--;
            lists -= c == ']';
            if (depth == 0) return lists ? BROKEN : i + 1;
        }
    }
    return INCOMPLETE;
}

/* Index after the JSON value that begins at i, or INCOMPLETE or BROKEN.

A missing value (`"key": ,`) is an empty one: kineto b10f04a4. */
static inline int64_t find_value_end(Text b, int64_t i, int64_t end) {
    uint8_t c = AT(b.at, i);
    if (c == '"') {
        i = string_end(b, i + 1, end) + 1;
    } else if (c == '{' || c == '[') {
        return nested_end(b, i, end);
    } else if (c == ']') {
        return BROKEN;
    } else {
        while (i + SHORT <= end) {
            Sixteen v = load_16(b, i);
            uint64_t bits = equal_16(v, ',') | equal_16(v, '}') | up_to_16(v, ' ') | equal_16(v, ']') | equal_16(v, '"');
            if (bits) {
                i += lowest_bit(bits);
                break;
            }
            i += SHORT;
        }
        while (i < end && !ends_bare(AT(b.at, i))) i++;
        if (i == end) return INCOMPLETE;
        if (!ends_number(AT(b.at, i))) return BROKEN;
    }
    return i <= end ? i : INCOMPLETE;
}
