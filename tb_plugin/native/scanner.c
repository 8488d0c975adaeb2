/* The event scanner: bytes of a JSON array of trace events → arrays, in one pass.

It looks for structure only, so control characters, bad UTF-8, NaN, duplicate keys and stray commas inside an event
don't stop it; anomalies that JSON doesn't allow are counted. An incomplete event is left unread; the place of a damaged
one is noted, and repaired in Python. */
#include "json.h"
#include "scanner.h"

enum { MORE, ARRAY_END, FULL, STUCK, CUT };
enum {
    ANOMALY_BITS = 15,          /* of a count of anomalies in one event; four share an integer */
    MOST_UNFINISHED = 16,       /* events without an end in one text that are read to its end */
    MOST_DIGITS = 18,
};
static const uint64_t LARGEST_US = (UINT64_C(1) << 62) / 1000;
#define ONE(anomaly) (INT64_C(1) << (anomaly) * ANOMALY_BITS)

/* What was read before, since events of one kind have the same keys in the same order, and often the same values.

`keys` has the key that followed the one in each slot: its start, length, level and slot; length 0 if none did. */
enum { KEY_START, KEY_LENGTH, KEY_LEVEL, KEY_SLOT, KEY_FIELDS };
typedef struct {
    FIELD(int64_t, keys);
    FIELD(int32_t, codes); /* the last token of each column, or -1 */
} Seen;

/* Whether the text at i begins with the earlier one at `start`, and goes on. */
static inline bool is_repeated(Text b, int64_t i, int64_t end, int64_t start, int64_t length) {
    return i + length < end && same(b, start, b, i, length);
}

/* Read a plain number, quoted or not, and return the index after it; a negative one for any other form.

A time is microseconds with any number of decimals, and becomes nanoseconds by its digits, never through a float. */
static inline int64_t read_digits(Text b, int64_t i, int64_t end, bool is_time, int64_t *value) {
    bool is_quoted = AT(b.at, i) == '"'; /* Ascend's torch_npu writes times as strings */
    i += is_quoted;
    bool is_negative = i < end && AT(b.at, i) == '-';
    i += is_negative;
    int64_t first = i;
    uint64_t x = 0;
    for (; i < end && is_digit(AT(b.at, i)) && i - first <= MOST_DIGITS; i++) x = x * 10 + (AT(b.at, i) - '0');
    if (i == first || i - first > MOST_DIGITS || (is_time && x >= LARGEST_US)) return BROKEN;
    if (is_time) {
        int decimals = 0;
        if (i < end && AT(b.at, i) == '.')
            for (i++; i < end && is_digit(AT(b.at, i)); i++)
                if (decimals < 3) {
                    x = x * 10 + (AT(b.at, i) - '0');
                    decimals++;
                }
        for (; decimals < 3; decimals++) x *= 10;
    }
    if (i >= end || (is_quoted ? AT(b.at, i) != '"' : !ends_number(AT(b.at, i)))) return BROKEN;
    *value = is_negative ? -(int64_t)x : (int64_t)x;
    return i + is_quoted;
}

static inline bool means_null(uint8_t c) { return c == 'n' || c == 'N' || c == 'i' || c == 'I'; } /* nan, N/A, inf … */

/* Read a time or an integer at i; one in an odd form is noted for the exact, slow way. Returns as find_value_end. */
static inline int64_t read_number(Text b, int64_t i, int64_t end, int64_t kind, int64_t column, int64_t row, Out *out) {
    int64_t value, after = read_digits(b, i, end, kind == TIME, &value);
    if (after >= 0) {
        if (kind == TIME)
            AT(out->times, column * room(out) + row) = value;
        else
            append(out, column, row, value);
        return after;
    }
    after = find_value_end(b, i, end);
    if (after <= i || means_null(AT(b.at, i))) return after;
    int64_t nth = kind == INTEGER ? append(out, column, row, -1) : -1, n = AT(out->state, ODD);
    if (n < out->odd_size / ODD_FIELDS && (kind == TIME || nth >= 0)) {
        const int64_t fields[ODD_FIELDS] = {row, column, nth, i, after - i};
        for (int k = 0; k < ODD_FIELDS; k++) AT(out->odd, n * ODD_FIELDS + k) = fields[k];
        AT(out->state, ODD) = n + 1;
    }
    return after;
}

/* The index after the token at i if it is that of `code`, else 0: equal bytes have the same end. */
static inline int64_t seen_token_end(Text b, int64_t i, int64_t end, int64_t code, const Out *out) {
    if (code < 0) return 0;
    int64_t start = AT(out->token_starts, code), length = AT(out->token_lengths, code);
    if (!is_repeated(b, i, end, start, length)) return 0;
    bool is_closed = AT(b.at, i) == '"' || AT(b.at, i) == '[' || AT(b.at, i) == '{';
    return is_closed || ends_number(AT(b.at, i + length)) ? i + length : 0;
}

/* Read the token at i. Returns as find_value_end. */
static inline int64_t read_text(Text b, int64_t i, int64_t end, int64_t column, int64_t row, Out *out, Seen *seen) {
    int64_t code = AT(seen->codes, column), after = seen_token_end(b, i, end, code, out);
    if (after) {
        if (column < N_CODES)
            AT(out->codes, column * room(out) + row) = (int32_t)code;
        else
            append(out, column, row, code);
        return after;
    }
    if (AT(b.at, i) == '"') {
        after = string_end(b, i + 1, end) + 1;
        if (after > end) return INCOMPLETE;
    } else {
        after = find_value_end(b, i, end);
        if (after <= i || means_null(AT(b.at, i))) return after;
    }
    code = token_code(b, i, after, out);
    AT(seen->codes, column) = (int32_t)code;
    if (column < N_CODES)
        AT(out->codes, column * room(out) + row) = (int32_t)code;
    else if (code >= 0)
        append(out, column, row, code);
    return after;
}

/* Find the end and the slot of the key whose text begins at i, after the key in slot `last`. Returns as string_end. */
static inline int64_t read_key(Text b, int64_t i, int64_t end, int64_t level, int64_t last, const Keys *keys,
                               Seen *seen, int64_t *slot) {
    int64_t expected = last * KEY_FIELDS, length = AT(seen->keys, expected + KEY_LENGTH);
    if (length && AT(seen->keys, expected + KEY_LEVEL) == level &&
        is_repeated(b, i, end, AT(seen->keys, expected + KEY_START), length) && AT(b.at, i + length) == '"') {
        *slot = AT(seen->keys, expected + KEY_SLOT);
        return i + length;
    }
    int64_t key_end = string_end(b, i, end);
    if (key_end < end) {
        *slot = find_key(b, i, key_end, level, keys);
        AT(seen->keys, expected + KEY_START) = i;
        AT(seen->keys, expected + KEY_LENGTH) = key_end - i;
        AT(seen->keys, expected + KEY_LEVEL) = level;
        AT(seen->keys, expected + KEY_SLOT) = *slot;
    }
    return key_end;
}

/* The anomaly of the value at i, as a packed count; 0 for a text, list, object, number, boolean or null. */
static inline int64_t anomaly_of(Text b, int64_t i, int64_t end) {
    uint8_t c = AT(b.at, i);
    if (c == '0') return i + 1 < end && (AT(b.at, i + 1) | ' ') == 'x' ? ONE(HEX) : 0;
    if (c == '"' || c == '[' || c == '{' || c == '-' || is_digit(c) || c == 't' || c == 'f') return 0;
    if (c == 'n' && i + 1 < end && AT(b.at, i + 1) == 'u') return 0;
    return c == ',' || c == '}' ? ONE(EMPTY) : ONE(WORD);
}

/* Read the event that begins at start; returns the index after it, INCOMPLETE or BROKEN. */
static inline int64_t read_event(Text b, int64_t start, int64_t end, int64_t row, const Keys *keys, Out *out,
                                 Seen *seen, int64_t *anomalies) {
    int64_t level = 0, i = start + 1, count = 0, slot = 0;
    uint8_t last = '{'; /* punctuation; 0 after a value */
    while (i < end) {
        uint8_t c = AT(b.at, i);
        if (is_blank(c)) {
            i++;
        } else if (c == ',') {
            if (last) count += ONE(COMMA);
            last = ',';
            i++;
        } else if (c == '}') {
            if (last == ',') count += ONE(COMMA);
            last = 0;
            i++;
            if (level == 0) {
                *anomalies = count;
                return i;
            }
            level--;
        } else if (c != '"') {
            return BROKEN;
        } else {
            if (!last) count += ONE(COMMA);
            last = 0;
            int64_t key_end = read_key(b, i + 1, end, level, slot, keys, seen, &slot);
            if (key_end >= end) return INCOMPLETE;
            int64_t colon = skip_blanks(b, key_end + 1, end);
            if (colon < end && AT(b.at, colon) != ':') return BROKEN;
            i = skip_blanks(b, colon + 1, end);
            if (i >= end) return INCOMPLETE;
            count += anomaly_of(b, i, end);
            int64_t kind = AT(keys->kinds, slot), column = AT(keys->columns, slot);
            if (kind == OBJECT && AT(b.at, i) == '{') {
                level++;
                i++;
                last = '{';
                continue;
            }
            if (kind == CODE)
                i = read_text(b, i, end, column, row, out, seen);
            else if (kind == INTEGER || kind == TIME)
                i = read_number(b, i, end, kind, column, row, out);
            else
                i = find_value_end(b, i, end);
            if (i < 0) return i;
        }
    }
    return INCOMPLETE;
}

/* The next opening brace before "ph" or the key that begins the file's first event; end if there is none.

Kineto begins its named rows and its events differently. No string of valid JSON has a brace and such a key, since the
key's quotes would be escaped. */
static int64_t find_event(Text b, int64_t i, int64_t end, Text first_key) {
    static const uint8_t usual[] = "\"ph\"";
    const Text usual_key = {usual, sizeof usual - 1};
    for (; i < end; i++) {
        if (AT(b.at, i) != '{') continue;
        int64_t key = skip_blanks(b, i + 1, end);
        if (key + first_key.at_size <= end && same(b, key, first_key, 0, first_key.at_size)) return i;
        if (key + usual_key.at_size <= end && same(b, key, usual_key, 0, usual_key.at_size)) return i;
    }
    return end;
}

/* Whether the bracket at i closes the array: 1 yes, 0 it is damage, -1 the text ends before that is clear. */
static int closes_array(Text b, int64_t i, int64_t end) {
    i = skip_blanks(b, i + 1, end);
    int64_t following = skip_blanks(b, i + 1, end);
    if (i >= end) return -1;
    if (AT(b.at, i) == '[') return 1; /* another array */
    if (following >= end) return -1;
    uint8_t c = AT(b.at, following);
    if (AT(b.at, i) == ',') return c == '"';
    return AT(b.at, i) == '}' && c != ',' && c != '}' && c != ']';
}

static inline bool has_room(const Out *out) {
    return AT(out->state, EVENTS) < room(out) && AT(out->state, TOKENS) + TOKENS_PER_EVENT <= out->token_starts_size &&
           AT(out->state, ODD) + ODD_PER_EVENT <= out->odd_size / ODD_FIELDS &&
           AT(out->state, PLACES) < out->places_size / 2;
}

/* Add an event's packed counts of anomalies. */
static void add_anomalies(Out *out, int64_t counts, int64_t at) {
    for (int kind = 0; kind < N_ANOMALIES; kind++) {
        int64_t count = counts >> kind * ANOMALY_BITS & ((1 << ANOMALY_BITS) - 1);
        if (count && AT(out->state, ANOMALIES + kind) == 0) AT(out->state, FIRST_ANOMALIES + kind) = at;
        AT(out->state, ANOMALIES + kind) += count;
    }
}

/* Whether an object has no members: XLA writes one after its last event. */
static inline bool is_empty_object(Text b, int64_t pos, int64_t after) {
    for (int64_t at = pos + 1; at < after - 1; at++)
        if (!is_blank(AT(b.at, at))) return false;
    return true;
}

/* Read the event at pos into the next row, and keep it if it is whole and has a phase. Returns as find_value_end. */
static inline int64_t keep_event(Text b, int64_t pos, int64_t end, const Keys *keys, Out *out, Seen *seen) {
    int64_t row = AT(out->state, EVENTS), anomalies = 0;
    for (int column = 0; column < N_CODES; column++) AT(out->codes, column * room(out) + row) = -1;
    for (int column = 0; column < N_TIMES; column++) AT(out->times, column * room(out) + row) = MISSING;
    int64_t after = read_event(b, pos, end, row, keys, out, seen, &anomalies);
    if (after >= 0 && AT(out->codes, PHASE * room(out) + row) >= 0) {
        AT(out->offsets, row) = pos;
        AT(out->lengths, row) = (int32_t)(after - pos);
        AT(out->state, EVENTS) = row + 1;
        if (anomalies) add_anomalies(out, anomalies, pos);
        return after;
    }
    forget(out, row);
    if (after >= 0 && !is_empty_object(b, pos, after)) {
        if (AT(out->state, NAMELESS) == 0) AT(out->state, FIRST_NAMELESS) = pos;
        AT(out->state, NAMELESS)++;
    }
    return after;
}

/* Read the events in text[pos:end] into `out`, and return the first byte that wasn't read.

`is_last`: nothing follows, so what is incomplete stays so, and what lies beyond it is read. `first_key`: the quoted key
that the first event of this file begins with. */
static int64_t read_events(Text b, int64_t pos, int64_t end, bool is_last, Text first_key, const Keys *keys, Out *out,
                           Seen *seen) {
    for (int64_t field = 0; field < seen->keys_size; field++) AT(seen->keys, field) = 0;
    for (int64_t column = 0; column < seen->codes_size; column++) AT(seen->codes, column) = -1;
    AT(out->state, STATUS) = MORE;
    for (int64_t unfinished = 0;;) {
        while (pos < end && (is_blank(AT(b.at, pos)) || AT(b.at, pos) == ',')) pos++;
        if (pos >= end) return pos;
        if (!has_room(out)) {
            AT(out->state, STATUS) = FULL;
            return pos;
        }
        int64_t after = BROKEN;
        if (AT(b.at, pos) == '{') {
            after = keep_event(b, pos, end, keys, out, seen);
            if (after >= 0) {
                pos = after;
                continue;
            }
            if (after == INCOMPLETE && (!is_last || ++unfinished > MOST_UNFINISHED)) {
                AT(out->state, STATUS) = is_last ? CUT : MORE;
                return pos;
            }
        } else if (AT(b.at, pos) == ']') {
            int closes = closes_array(b, pos, end);
            if (closes == 1 || (closes == -1 && is_last)) AT(out->state, STATUS) = ARRAY_END;
            if (closes != 0) return pos;
        }
        int64_t following = find_event(b, pos + 1, end, first_key);
        if (following == end) {
            if (is_last) AT(out->state, STATUS) = after == BROKEN ? STUCK : CUT;
            return pos; /* more text will show */
        }
        int64_t place = AT(out->state, PLACES);
        AT(out->places, 2 * place) = pos;
        AT(out->places, 2 * place + 1) = following;
        AT(out->state, PLACES) = place + 1;
        pos = following;
    }
}

#define ARRAY(name) name, name##_size

EXPORT int64_t scan(IN(uint8_t, text), int64_t pos, int64_t end, int64_t is_last, IN(uint8_t, first_key),
                    IN(int64_t, levels), IN(int64_t, kinds), IN(int64_t, columns), IN(int64_t, starts),
                    IN(int64_t, key_lengths), IN(uint8_t, key_text), OUT(int32_t, codes), OUT(int64_t, times),
                    OUT(int64_t, offsets), OUT(int32_t, lengths), OUT(int64_t, arg_counts), OUT(int32_t, arg_rows),
                    OUT(int64_t, arg_values), OUT(uint64_t, slots), OUT(int32_t, slot_codes),
                    OUT(int64_t, token_starts), OUT(int64_t, token_lengths), OUT(int64_t, odd), OUT(int64_t, places),
                    OUT(int64_t, state), OUT(int64_t, seen_keys), OUT(int32_t, seen_codes)) {
    const Keys keys = {ARRAY(levels), ARRAY(kinds), ARRAY(columns), ARRAY(starts), ARRAY(key_lengths),
                       {key_text, key_text_size}};
    Out out = {ARRAY(codes),      ARRAY(times),        ARRAY(offsets),       ARRAY(lengths), ARRAY(arg_counts),
               ARRAY(arg_rows),   ARRAY(arg_values),   ARRAY(slots),         ARRAY(slot_codes),
               ARRAY(token_starts), ARRAY(token_lengths), ARRAY(odd),        ARRAY(places),  ARRAY(state)};
    const Text b = {text, text_size}, key = {first_key, first_key_size};
    Seen seen = {ARRAY(seen_keys), ARRAY(seen_codes)};
    return read_events(b, pos, end, is_last != 0, key, &keys, &out, &seen);
}
