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
