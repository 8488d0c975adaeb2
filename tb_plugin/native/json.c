/* The members of a JSON object, for Python. */
#include "json.h"

/* Index after the object or array that begins at i, or INCOMPLETE; brackets needn't match in kind. BROKEN if neither does. */
static int64_t end_at_any_depth(Text b, int64_t i, int64_t end) {
    if (AT(b.at, i) != '{' && AT(b.at, i) != '[') return BROKEN;
    int64_t depth = 0;
    for (; i < end; i++) {
        uint8_t c = AT(b.at, i);
        if (c == '"') {
            i = string_end(b, i + 1, end);
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
            if (depth == 0) return i + 1;
        }
    }
    return INCOMPLETE;
}

static bool is_events_key(Text b, int64_t i, int64_t end) {
    static const uint8_t key[] = "\"traceEvents\"";
    const Text text = {key, sizeof key - 1};
    return end - i == text.at_size && same(text, 0, b, i, text.at_size);
}

/* Index after the JSON value that begins at i, or INCOMPLETE or BROKEN. */
EXPORT int64_t value_end(IN(uint8_t, text), int64_t i, int64_t end) {
    return find_value_end((Text){text, text_size}, i, end);
}

/* Find the members of an object from i on, up to an array that is the value of traceEvents; returns how many.

Of each its key begins and ends, and its value does, in a row of `places`; the array ends at -1. `next`: where the
following member begins, and whether more text wouldn't add one, since something else follows. */
EXPORT int64_t members(IN(uint8_t, text), int64_t i, int64_t end, OUT(int64_t, places), OUT(int64_t, next)) {
    const Text b = {text, text_size};
    int64_t count = 0;
    AT(next, 1) = 0;
    for (AT(next, 0) = i; count < places_size / 4; count++) {
        while (i < end && (is_blank(AT(b.at, i)) || AT(b.at, i) == ',' || AT(b.at, i) == '{')) i++;
        AT(next, 0) = i;
        if (i >= end) break;
        int64_t key_end = AT(b.at, i) == '"' ? string_end(b, i + 1, end) + 1 : i, colon = skip_blanks(b, key_end, end);
        AT(next, 1) = key_end == i || (colon < end && AT(b.at, colon) != ':');
        int64_t start = skip_blanks(b, colon + 1, end);
        if (start >= end || AT(next, 1)) break;
        bool is_events = is_events_key(b, i, key_end) && AT(b.at, start) == '[';
        int64_t after = is_events ? INCOMPLETE : find_value_end(b, start, end);
        if (after == BROKEN) after = end_at_any_depth(b, start, end);
        AT(next, 1) = after == BROKEN;
        if (after < 0 && !is_events) break;
        AT(places, 4 * count) = i;
        AT(places, 4 * count + 1) = key_end;
        AT(places, 4 * count + 2) = start;
        AT(places, 4 * count + 3) = after;
        if (is_events) {
            AT(next, 0) = start;
            return count + 1;
        }
        AT(next, 0) = i = after;
    }
    return count;
}

/* The integer at *i, with *i after it; *i is BROKEN if there is none, or a larger one than any time or size. */
static int64_t read_integer(Text b, int64_t *i, int64_t end) {
    const int64_t most = INT64_MAX / 10 - 1;
    int64_t at = *i, value = 0;
    bool is_negative = AT(b.at, at) == '-';
    int64_t first = at += is_negative;
    for (; at < end && AT(b.at, at) >= '0' && AT(b.at, at) <= '9' && value <= most; at++)
        value = 10 * value + AT(b.at, at) - '0';
    bool has_ended = at < end && (is_blank(AT(b.at, at)) || AT(b.at, at) == ',' || AT(b.at, at) == ']');
    *i = at > first && has_ended ? at : BROKEN;
    return is_negative ? -value : value;
}

/* Read nested arrays of integers; returns how many integers, or BROKEN if the text is something else, or has more.

Of each its value, how many arrays it is in, and how many arrays began before it. */
EXPORT int64_t nested_integers(IN(uint8_t, text), OUT(int64_t, values), OUT(int8_t, depths), OUT(int32_t, arrays)) {
    const Text b = {text, text_size};
    int64_t count = 0, i = skip_blanks(b, 0, text_size), depth = 0, begun = 0;
    do {
        if (i >= text_size) return BROKEN;
        uint8_t c = AT(text, i);
        if (c == '[' || c == ']') {
            depth += c == '[' ? 1 : -1;
            begun += c == '[';
            if (depth > INT8_MAX || begun > INT32_MAX) return BROKEN;
            i++;
        } else if (c == ',') {
            i++;
        } else {
            if (count == values_size || depth == 0) return BROKEN;
            AT(values, count) = read_integer(b, &i, text_size);
            AT(depths, count) = (int8_t)depth;
            AT(arrays, count++) = (int32_t)begun;
            if (i < 0) return BROKEN;
        }
        i = skip_blanks(b, i, text_size);
    } while (depth > 0);
    return i == text_size ? count : BROKEN;
}
