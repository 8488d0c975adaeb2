/* The scanner of Perfetto's protobuf: bytes of packets → arrays, in one pass.

It fills the same arrays as the scanner of JSON, so that everything behind it is shared: a text becomes the JSON token
that a writer of JSON would have written. What packets refer to is in `Tables`, for which Python makes
room (state.py); stages of devices, counters and compressed packets are left to the caller. Field numbers are those of Perfetto's protos/perfetto/trace, and of torch 2.15's
extensions. reader/perfetto/wire.py has the numbers that Python uses too. */
#include "scanner.h"

enum { MORE, FULL, STATE, GROW };
enum {
    STATE_OF_SCAN, USED, NEEDS_ROOM, BEGINS, ENDS, COUNTERS, LAUNCHES, WAITS, STAGES, LABELS, LOST, FIRST_LOST, IS_LOST,
    UNKNOWN_TEXTS, FIRST_UNKNOWN_TEXT, FOREIGN, FIRST_FOREIGN, DROPPED, FIRST_DROPPED, CLOCK_ROW, CLOCK_BEFORE,
    LOST_WORK, SEQUENCE, DAMAGED_STATE, FIRST_DAMAGED_STATE,
};
enum { N_CLOCKS, N_ENTRIES, N_INTERNED, N_TRACKS, N_SEQUENCES, N_SCOPES, N_BYTES, IS_TIMED, HAS_BASE, BASE_NS, ORIGIN_NS, IS_GPU }; /* of `counts` */
enum { SEQ_ID, SEQ_SCOPE, SEQ_TRACK, SEQ_CLOCK, SEQ_GROUP, SEQ_ENDED, SEQ_FLAGS, SEQ_PID, SEQ_TID, SEQ_FIELDS };
enum { BEGIN_FLAGGED = 1, END_FLAGGED = 2, END_BARE = 4 };
enum { CLOCK_SEQ, CLOCK_ID, CLOCK_OFFSET, CLOCK_UNIT, CLOCK_INCREMENTAL, CLOCK_LAST, CLOCK_FIELDS };
enum {
    TRACK_UUID, TRACK_PID, TRACK_TID, TRACK_CATEGORY, TRACK_NAME, TRACK_PARENT, TRACK_HAS_PROCESS, TRACK_PROCESS,
    TRACK_FIELDS,
};
enum { TEXT_SCOPE, TEXT_FIELD, TEXT_ID, TEXT_ENTRY, TEXT_KIND, TEXT_NAME, TEXT_PLACE, TEXT_FIELDS };
enum { X, INSTANT, COUNTER, FLOW_BEGIN, FLOW_END, KERNEL, FLOW, EMPTY_TEXT, RENDER_STAGE, MEMCPY, MEMSET, OVERHEAD, CUDA_SYNC };
enum {
    CATEGORIES = 1, NAMES = 2, ANNOTATION_NAMES = 3, GPU_SPECIFICATIONS = 24, GPU_COUNTERS = 47, KERNELS = 1000,
    KERNEL_ARGUMENTS = 1001, COUNTER_NAMES = -47,
};
enum { REALTIME = 1, BOOTTIME = 6, FIRST_OF_SEQUENCE = 64 }; /* clocks; those from the last on are of a sequence */
static const int64_t FARTHEST = (int64_t)1 << 62; /* ns */
enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };
enum { SLICE_BEGIN = 1, SLICE_END, SLICE_INSTANT, COUNTER_VALUE };
enum {
    PACKET = 10,                /* the tag of Trace.packet, with its length */
    NEAR = 1 << 20,             /* a packet that damage precedes is believed to be one if it isn't longer */
    LONGEST_PACKET = 1 << 26,
    MOST_FIELDS = 256,          /* that are looked at there */
    LONGEST_TAG = 10,
    MOST_LOST_WORK = 1 << 28,   /* bytes of broken packets that are searched: then their lengths are believed */
    MOST_LEVELS = 30,           /* of values in arguments; deeper ones become null */
    MOST_PARENTS = 64,          /* of a track */
    NOT_A_PROCESS = INT32_MAX,  /* torch's pid of "Overhead", -1 in its JSON */
};

/* What packets refer to; an entry is a JSON token in `strings`. Each table has its fields one after the other; of those
with a number in `counts`, so many rows are used. */
typedef struct {
    FIELD(uint8_t, strings);
    FIELD(int64_t, entries); /* start, length, code in this scan or -1 */
    FIELD(int32_t, slots);
    FIELD(int64_t, interned);
    FIELD(int32_t, track_slots);
    FIELD(int64_t, tracks);
    FIELD(int32_t, sequence_slots);
    FIELD(int64_t, sequences);
    FIELD(int64_t, clocks);
    FIELD(const int64_t, devices);
    FIELD(int64_t, counts);
    int64_t seed, entries_room, interned_room, tracks_room, sequences_room, clocks_room;
} Tables;

#define OF(t, table, field, i) AT((t)->table, (field) * (t)->table##_room + (i))

/* What a scan finds besides the events; each field of a record in a row. */
typedef struct {
    FIELD(int64_t, at);
    int64_t room;
} Record;

typedef struct {
    Record begins, ends, counters, launches, waits, stages, labels, places;
} Records;

/* The columns of arguments that aren't found by their key. */
typedef struct {
    int64_t device, original_stream, grid, block, registers_per_thread, bytes, id, graph_id, graph_node_id;
} Columns;

/* Everything of a scan. `text` has the tokens, of which state[USED] bytes are used. */
typedef struct {
    Text b;
    FIELD(uint8_t, text);
    FIELD(int64_t, state);
    const Keys *keys;
    const Columns *columns;
    Tables *t;
    Records *r;
    Out *out;
} Scan;

#define CODE_OF(out, column, row) AT((out)->codes, (column) * room(out) + (row))
#define TIME_OF(out, column, row) AT((out)->times, (column) * room(out) + (row))

typedef struct {
    int64_t tag, value, after;
} Field;

/* The varint at *i as 64 signed bits; *i becomes the index after it, or -1 if there is none. */
static inline int64_t read_varint(Text b, int64_t *i, int64_t end) {
    uint64_t x = 0;
    for (int64_t at = *i, shift = 0; at < end && shift < 70; shift += 7) {
        uint64_t c = AT(b.at, at++);
        x |= (c & 127) << shift;
        if (c < 128) {
            *i = at;
            return (int64_t)x;
        }
    }
    *i = -1;
    return 0;
}

/* The field at i: its tag, its value if it is a varint or else where it begins, the index after it or -1. */
static inline Field read_field(Text b, int64_t i, int64_t end) {
    int64_t tag = read_varint(b, &i, end);
    if (i < 0 || tag < 8 || tag > UINT32_MAX) return (Field){0, 0, -1};
    switch (tag & 7) {
    case VARINT: {
        int64_t value = read_varint(b, &i, end);
        return (Field){tag, value, i};
    }
    case BYTES: {
        int64_t length = read_varint(b, &i, end);
        if (i < 0 || length < 0 || length > end - i) return (Field){tag, 0, -1};
        return (Field){tag, i, i + length};
    }
    case FIXED64: return end - i >= 8 ? (Field){tag, i, i + 8} : (Field){tag, 0, -1};
    case FIXED32: return end - i >= 4 ? (Field){tag, i, i + 4} : (Field){tag, 0, -1};
    default: return (Field){tag, 0, -1};
    }
}

/* Whether b[i:end] begins like the fields of a packet: with the time, the sequence or the track that they have. */
static bool is_packet(Text b, int64_t i, int64_t end) {
    bool known = false;
    for (int k = 0; k < MOST_FIELDS && i < end; k++) {
        Field f = read_field(b, i, end);
        if (f.after < 0) return false;
        known |= f.tag == 64 || f.tag == 80 || f.tag == 482;
        i = f.after;
    }
    return known;
}

/* Whether a packet begins at i, and another after it, unless it is the last: 1 or 0; -1 if more bytes will show.

It is used behind damage, where any byte may look like the beginning of a packet, so long ones aren't believed. */
static int look_for_packets(Text b, int64_t i, int64_t end, bool is_last) {
    if (i >= end) return is_last ? 0 : -1;
    if (AT(b.at, i) != PACKET) return 0;
    int64_t start = i + 1, length = read_varint(b, &start, end);
    if (start < 0) return is_last || end - i > LONGEST_TAG ? 0 : -1;
    if (length <= 0 || length > NEAR) return 0;
    int64_t after = start + length;
    if (after > end || (after == end && !is_last)) return is_last ? 0 : -1;
    return is_packet(b, start, after) && (after == end || AT(b.at, after) == PACKET);
}

/* Where packets can be read again, or more bytes will show whether they can; `end` if nowhere. */
static int64_t find_packet(Text b, int64_t i, int64_t end, bool is_last) {
    for (; i < end; i++)
        if (AT(b.at, i) == PACKET && look_for_packets(b, i, end, is_last) != 0) return i;
    return end;
}

/* Whether the field at i, which isn't whole, may be so with more bytes. */
static bool may_go_on(Text b, int64_t i, int64_t end) {
    if (end - i < 2 * LONGEST_TAG) return true;
    int64_t tag = read_varint(b, &i, end);
    if (i < 0 || (tag & 7) != BYTES || tag < 8 || tag > UINT32_MAX) return false;
    int64_t length = read_varint(b, &i, end);
    return i > 0 && length >= 0 && length <= LONGEST_PACKET;
}

EXPORT int64_t varint(IN(uint8_t, text), int64_t i, int64_t end, OUT(int64_t, found)) {
    AT(found, 0) = read_varint((Text){text, text_size}, &i, end);
    return i;
}

EXPORT int64_t field(IN(uint8_t, text), int64_t i, int64_t end, OUT(int64_t, found)) {
    Field f = read_field((Text){text, text_size}, i, end);
    AT(found, 0) = f.tag;
    AT(found, 1) = f.value;
    return f.after;
}

EXPORT int64_t looks_like_packets(IN(uint8_t, text), int64_t i, int64_t end, int64_t is_last) {
    return look_for_packets((Text){text, text_size}, i, end, is_last != 0);
}

EXPORT int64_t next_packet(IN(uint8_t, text), int64_t i, int64_t end, int64_t is_last) {
    return find_packet((Text){text, text_size}, i, end, is_last != 0);
}

/* ---- what packets refer to */

static inline int64_t slot_of(int64_t a, int64_t b, int64_t c, int64_t seed, int64_t mask) {
    uint64_t hash = mix(mix(mix(1, (uint64_t)a, seed), (uint64_t)b, seed), (uint64_t)c, seed);
    return (int64_t)hash & mask;
}

/* Enter rows of the table of texts into its hash table; a later definition replaces an earlier one. */
static void place_texts(OUT(int32_t, slots), IN(int64_t, interned), int64_t from, int64_t to, int64_t seed) {
    int64_t width = interned_size / TEXT_FIELDS, mask = slots_size - 1;
    const int64_t *scopes = interned + TEXT_SCOPE * width, *fields = interned + TEXT_FIELD * width;
    const int64_t *ids = interned + TEXT_ID * width;
    CHECK(from >= 0 && to <= width);
    for (int64_t row = from; row < to; row++) {
        int64_t slot = slot_of(scopes[row], fields[row], ids[row], seed, mask);
        for (; AT(slots, slot) >= 0; slot = (slot + 1) & mask) {
            int64_t k = AT(slots, slot);
            if (scopes[k] == scopes[row] && fields[k] == fields[row] && ids[k] == ids[row]) break;
        }
        AT(slots, slot) = (int32_t)row;
    }
}

EXPORT int64_t place_interned(OUT(int32_t, slots), IN(int64_t, interned), int64_t from, int64_t to, int64_t seed) {
    place_texts(slots, slots_size, interned, interned_size, from, to, seed);
    return 0;
}

/* The same for a table with one number as its key. */
EXPORT int64_t place_ids(OUT(int32_t, slots), IN(int64_t, ids), int64_t from, int64_t to, int64_t seed) {
    int64_t mask = slots_size - 1;
    for (int64_t row = from; row < to; row++) {
        int64_t slot = slot_of(AT(ids, row), 0, 0, seed, mask);
        while (AT(slots, slot) >= 0 && AT(ids, AT(slots, slot)) != AT(ids, row)) slot = (slot + 1) & mask;
        AT(slots, slot) = (int32_t)row;
    }
    return 0;
}

/* The row of an interned text, or -1. */
static int64_t find_interned(const Tables *t, int64_t scope, int64_t kind, int64_t iid) {
    int64_t mask = t->slots_size - 1;
    for (int64_t slot = slot_of(scope, kind, iid, t->seed, mask); AT(t->slots, slot) >= 0; slot = (slot + 1) & mask) {
        int64_t k = AT(t->slots, slot);
        if (OF(t, interned, TEXT_ID, k) == iid && OF(t, interned, TEXT_FIELD, k) == kind &&
            OF(t, interned, TEXT_SCOPE, k) == scope)
            return k;
    }
    return -1;
}

static int64_t find_id(IN(int32_t, slots), IN(int64_t, ids), int64_t key, int64_t seed) {
    int64_t mask = slots_size - 1;
    for (int64_t slot = slot_of(key, 0, 0, seed, mask); AT(slots, slot) >= 0; slot = (slot + 1) & mask)
        if (AT(ids, AT(slots, slot)) == key) return AT(slots, slot);
    return -1;
}

/* The code of the token text[at:end], which stays in `text` if it is new. */
static int64_t new_code(Scan *s, int64_t at, int64_t end) {
    int64_t before = AT(s->out->state, TOKENS);
    int64_t code = token_code((Text){s->text, s->text_size}, at, end, s->out);
    if (code < 0)
        AT(s->state, NEEDS_ROOM) = 1;
    else if (AT(s->out->state, TOKENS) > before)
        AT(s->state, USED) = end;
    return code;
}

/* The code of an entry that this scan uses for the first time. */
static int64_t entry_code(Scan *s, int64_t entry) {
    int64_t start = OF(s->t, entries, 0, entry), length = OF(s->t, entries, 1, entry), at = AT(s->state, USED);
    if (at + length > s->text_size) {
        AT(s->state, NEEDS_ROOM) = 1;
        return -1;
    }
    for (int64_t k = 0; k < length; k++) AT(s->text, at + k) = AT(s->t->strings, start + k);
    int64_t code = new_code(s, at, at + length);
    OF(s->t, entries, 2, entry) = code;
    return code;
}

static void count_first(Scan *s, int64_t count, int64_t first, int64_t offset) {
    if (AT(s->state, count) == 0) AT(s->state, first) = offset;
    AT(s->state, count)++;
}

/* The entry of a text that an event refers to, or -1, which is counted. */
static int64_t interned_entry(Scan *s, int64_t scope, int64_t kind, int64_t iid, int64_t offset) {
    int64_t k = find_interned(s->t, scope, kind, iid);
    if (k >= 0) return OF(s->t, interned, TEXT_ENTRY, k);
    count_first(s, UNKNOWN_TEXTS, FIRST_UNKNOWN_TEXT, offset);
    return -1;
}

/* ---- values as JSON; each function returns the index after what it wrote, and its caller sees that there is room */

/* Write b[i:end] as a JSON string into text from `at` on. */
static int64_t write_string(Text b, int64_t i, int64_t end, OUT(uint8_t, text), int64_t at) {
    AT(text, at++) = '"';
    for (; i < end; i++) {
        uint8_t c = AT(b.at, i);
        if (c == '"' || c == '\\') {
            AT(text, at++) = '\\';
            AT(text, at++) = c;
        } else if (c < ' ') {
            const uint8_t escape[] = {'\\', 'u', '0', '0', (uint8_t)('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
            for (int k = 0; k < 6; k++) AT(text, at++) = escape[k];
        } else {
            AT(text, at++) = c;
        }
    }
    AT(text, at++) = '"';
    return at;
}

static int64_t write_text(Scan *s, int64_t i, int64_t end, int64_t at) {
    return write_string(s->b, i, end, s->text, s->text_size, at);
}

static int64_t write_digits(int64_t value, bool is_signed, OUT(uint8_t, text), int64_t at) {
    uint64_t x = (uint64_t)value;
    if (is_signed && value < 0) {
        AT(text, at++) = '-';
        x = 0 - x;
    }
    int64_t n = 1;
    for (uint64_t rest = x / 10; rest; rest /= 10) n++;
    for (int64_t k = n - 1; k >= 0; k--, x /= 10) AT(text, at + k) = (uint8_t)('0' + x % 10);
    return at + n;
}

static int64_t write_number(Scan *s, int64_t value, bool is_signed, int64_t at) {
    return write_digits(value, is_signed, s->text, s->text_size, at);
}

static int64_t write_constant(Scan *s, const char *what, int64_t at) {
    for (; *what; what++) AT(s->text, at++) = (uint8_t)*what;
    return at;
}

/* Write a float: in up to 17 decimals if that gives exactly it, else its 17 digits with an exponent. */
static int64_t write_float(Scan *s, uint64_t bits, int64_t at) {
    if ((bits >> 52 & 2047) == 2047) return write_constant(s, "null", at);
    if (bits >> 63) AT(s->text, at++) = '-';
    bits &= UINT64_MAX >> 1;
    double value, scale = 1;
    __builtin_memcpy(&value, &bits, 8);
    double scaled = value;
    int64_t power = 0, shift = 0; /* no number below 9e17 changes as an int64_t but for its fraction */
    while (power < 17 && value < 1e16 &&
           (scaled != (double)(int64_t)scaled || (double)(int64_t)scaled / scale != value)) {
        power++;
        scale *= 10;
        scaled = value * scale;
        if (scaled > 9e17) break;
    }
    for (; scaled >= 9e17; shift++) scaled /= 10;
    at = write_number(s, (int64_t)(scaled + 0.5), true, at);
    if (power || shift) {
        AT(s->text, at++) = 'e';
        at = write_number(s, shift - power, true, at);
    }
    return at;
}

static uint64_t fixed64(Text b, int64_t i) {
    uint64_t x = 0;
    for (int k = 0; k < 8; k++) x |= (uint64_t)AT(b.at, i + k) << 8 * k;
    return x;
}

/* Write the name of the annotation b[i:end] as the key of an object. */
static int64_t write_key(Scan *s, int64_t i, int64_t end, int64_t scope, int64_t at, int64_t limit) {
    int64_t start = -1, stop = -1, iid = 0, k = -1;
    while (i < end) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) {
            start = -2;
            break;
        }
        if (f.tag == 82) {
            start = f.value;
            stop = f.after;
        } else if (f.tag == 8) {
            iid = f.value;
        }
        i = f.after;
    }
    if (start == -1) k = find_interned(s->t, scope, ANNOTATION_NAMES, iid);
    int64_t entry = k >= 0 ? OF(s->t, interned, TEXT_ENTRY, k) : -1;
    if (start >= 0) {
        at = write_text(s, start, stop, at);
    } else if (entry >= 0 && at + OF(s->t, entries, 1, entry) < limit) {
        int64_t from = OF(s->t, entries, 0, entry), length = OF(s->t, entries, 1, entry);
        for (int64_t n = 0; n < length; n++) AT(s->text, at++) = AT(s->t->strings, from + n);
    } else {
        at = write_constant(s, "\"\"", at);
    }
    AT(s->text, at++) = ':';
    return at;
}

static bool is_scalar(int64_t tag) { return tag == 16 || tag == 24 || tag == 32 || tag == 41 || tag == 50; }

static int64_t write_scalar(Scan *s, Field f, int64_t at) {
    if (f.tag == 16) return write_constant(s, f.value ? "true" : "false", at);
    if (f.tag == 41) return write_float(s, fixed64(s->b, f.value), at);
    if (f.tag == 50) return write_text(s, f.value, f.after, at);
    return write_number(s, f.value, f.tag == 32, at);
}

/* Write the value of the annotation b[i:end]; returns -1 if it is broken.

`levels` holds of each open list or object where it continues and ends, and its closing bracket; 0 before a value, 1
after a scalar. Values nested deeper than that has room become null, as those of kinds that have no JSON do. The caller
sees that there is room for six times the bytes; a name from a table might need more, so it is left out where less than
that would remain. An empty list is written as no value; so is the shape of a number in a list. */
static int64_t write_value(Scan *s, int64_t i, int64_t end, int64_t scope, int64_t at) {
    struct {
        int64_t i, end;
        uint8_t closing;
    } levels[MOST_LEVELS] = {{i, end, 0}};
    int64_t depth = 0, limit = s->text_size - 6 * (end - i) - 64;
    while (depth >= 0) {
        uint8_t closing = levels[depth].closing;
        if (levels[depth].i >= levels[depth].end) {
            if (closing > 1)
                AT(s->text, at++) = closing;
            else if (closing == 0)
                at = write_constant(s, depth > 0 && levels[depth - 1].closing == ']' ? "[]" : "null", at);
            depth--;
            continue;
        }
        Field f = read_field(s->b, levels[depth].i, levels[depth].end);
        if (f.after < 0) return -1;
        levels[depth].i = f.after;
        if (f.tag == 90 || f.tag == 98) {
            uint8_t bracket = f.tag == 90 ? '}' : ']';
            if (closing != 0 && closing != bracket) continue;
            AT(s->text, at++) = closing ? ',' : (uint8_t)(bracket - 2);
            levels[depth].closing = bracket;
            if (f.tag == 90) at = write_key(s, f.value, f.after, scope, at, limit);
            if (depth + 1 < MOST_LEVELS) {
                depth++;
                levels[depth].i = f.value;
                levels[depth].end = f.after;
                levels[depth].closing = 0;
            } else {
                at = write_constant(s, "null", at);
            }
        } else if (closing == 0 && is_scalar(f.tag)) {
            levels[depth].closing = 1;
            at = write_scalar(s, f, at);
        }
    }
    return at;
}

/* ---- events */

/* The integer that the text b[i:end] spells; -1 if it isn't a plain one. */
static int64_t spelled_integer(Text b, int64_t i, int64_t end) {
    bool is_negative = i < end && AT(b.at, i) == '-';
    i += is_negative;
    if (i == end || end - i > 18) return -1;
    int64_t x = 0;
    for (; i < end; i++) {
        if ((uint8_t)(AT(b.at, i) - '0') > 9) return -1;
        x = x * 10 + (AT(b.at, i) - '0');
    }
    return is_negative ? -x : x;
}

/* The integer part of a float, by its bits; -1 beyond 2^62. */
static int64_t float_as_integer(uint64_t bits) {
    int64_t exponent = (int64_t)(bits >> 52 & 2047) - 1023;
    if (exponent >= 62) return -1;
    if (exponent < 0) return 0;
    int64_t mantissa = (int64_t)((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52);
    int64_t x = exponent >= 52 ? mantissa << (exponent - 52) : mantissa >> (52 - exponent);
    return bits >> 63 ? -x : x;
}

static bool is_text(Text b, int64_t i, int64_t end, const char *what) {
    for (; i < end && *what; i++, what++)
        if (AT(b.at, i) != (uint8_t)*what) return false;
    return i == end && !*what;
}

/* The slot of an argument's name among the keys, by its text or else by its id; -1 if it has none. */
static int64_t slot_of_name(const Scan *s, int64_t start, int64_t stop, int64_t iid, int64_t scope) {
    if (start >= 0) return stop > start ? find_key(s->b, start, stop, 1, s->keys) : -1;
    int64_t k = find_interned(s->t, scope, ANNOTATION_NAMES, iid);
    if (k < 0) return -1;
    int64_t entry = OF(s->t, interned, TEXT_ENTRY, k);
    int64_t at = OF(s->t, entries, 0, entry) + 1, size = OF(s->t, entries, 1, entry) - 2;
    return size > 0 ? find_key((Text){s->t->strings, s->t->strings_size}, at, at + size, 1, s->keys) : -1;
}

/* Read an argument of a slice; returns -1 if it is broken. */
static int64_t read_annotation(Scan *s, int64_t first, int64_t end, int64_t scope, int64_t row) {
    int64_t start = -1, stop = -1, iid = 0;
    Field number = {0, 0, 0};
    for (int64_t i = first; i < end;) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) return -1;
        if (f.tag == 82) {
            start = f.value;
            stop = f.after;
        } else if (f.tag == 8) {
            iid = f.value;
        } else if (is_scalar(f.tag)) {
            number = f;
        }
        i = f.after;
    }
    int64_t slot = slot_of_name(s, start, stop, iid, scope);
    if (slot < 0 || AT(s->keys->lengths, slot) < 0) return 0;
    int64_t kind = AT(s->keys->kinds, slot), column = AT(s->keys->columns, slot);
    if (kind == INTEGER && number.tag) {
        int64_t value = number.value;
        if (number.tag == 41) value = float_as_integer(fixed64(s->b, number.value));
        if (number.tag == 50) value = spelled_integer(s->b, number.value, number.after);
        append(s->out, column, row, number.tag != 24 || value >= 0 ? value : -1);
    } else if (kind == CODE) {
        int64_t at = AT(s->state, USED);
        if (s->text_size - at < 12 * (end - first) + 128) {
            AT(s->state, NEEDS_ROOM) = 1;
            return 0;
        }
        int64_t after = write_value(s, first, end, scope, at);
        if (after < 0) return -1;
        if (AT(s->text, at) != 'n') append(s->out, column, row, new_code(s, at, after)); /* null */
    }
    return 0;
}

/* Read one of the texts that come with device work: name 1, value 2. Returns its column, 0, or -1 if it is broken.

A mark may have the name of a property, such as `stream`; the properties themselves are `stream id` and `device id`. */
static int64_t read_extra(Scan *s, int64_t i, int64_t end, int64_t row) {
    int64_t key = 0, key_end = 0, start = 0, stop = 0;
    while (i < end) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) return -1;
        if (f.tag == 10) {
            key = f.value;
            key_end = f.after;
        } else if (f.tag == 18) {
            start = f.value;
            stop = f.after;
        }
        i = f.after;
    }
    if (key_end <= key) return 0;
    int64_t at = AT(s->state, USED);
    bool has_room = s->text_size - at >= 6 * (stop - start) + 64;
    if (is_text(s->b, key, key_end, "host fn") && has_room) {
        int64_t name = write_constant(s, "\"HostNode: ", at);
        int64_t after = write_text(s, start, stop, name - 1);
        AT(s->text, name - 1) = ' ';
        CODE_OF(s->out, 2, row) = (int32_t)new_code(s, at, after);
        return 0;
    }
    bool is_stream = is_text(s->b, key, key_end, "stream id");
    if (is_stream || is_text(s->b, key, key_end, "device id")) {
        append(s->out, is_stream ? s->columns->original_stream : s->columns->device, row,
               spelled_integer(s->b, start, stop));
        return 0;
    }
    int64_t slot = find_key(s->b, key, key_end, 1, s->keys);
    if (AT(s->keys->lengths, slot) < 0 || is_text(s->b, key, key_end, "stream") ||
        is_text(s->b, key, key_end, "device"))
        return 0;
    int64_t kind = AT(s->keys->kinds, slot), column = AT(s->keys->columns, slot);
    if (kind == INTEGER) {
        append(s->out, column, row, spelled_integer(s->b, start, stop));
        return column;
    }
    if (kind == CODE) {
        if (!has_room) {
            AT(s->state, NEEDS_ROOM) = 1;
            return 0;
        }
        int64_t after = write_text(s, start, stop, at);
        append(s->out, column, row, new_code(s, at, after));
    }
    return 0;
}

static int64_t new_row(Out *out, int64_t offset, int64_t length, int64_t ts, int64_t dur) {
    int64_t row = AT(out->state, EVENTS);
    for (int column = 0; column < N_CODES; column++) CODE_OF(out, column, row) = -1;
    TIME_OF(out, 0, row) = ts;
    TIME_OF(out, 1, row) = dur;
    AT(out->offsets, row) = offset;
    AT(out->lengths, row) = (int32_t)length;
    return row;
}

/* Set the texts of an event by their entries. */
static void place(Scan *s, int64_t row, int64_t phase, int64_t category, int64_t name, int64_t pid, int64_t tid) {
    const int64_t entries[N_CODES] = {phase, category, name, pid, tid};
    for (int column = 0; column < N_CODES; column++) {
        int64_t entry = entries[column], code = entry;
        if (entry >= 0) {
            code = OF(s->t, entries, 2, entry);
            if (code < 0) code = entry_code(s, entry);
        }
        CODE_OF(s->out, column, row) = (int32_t)code;
    }
}

static void record(Scan *s, Record *table, int64_t count, int64_t a, int64_t b, int64_t c) {
    int64_t n = AT(s->state, count);
    if (n >= table->room) {
        AT(s->state, NEEDS_ROOM) = 1;
        return;
    }
    AT(table->at, n) = a;
    AT(table->at, table->room + n) = b;
    AT(table->at, 2 * table->room + n) = c;
    AT(s->state, count) = n + 1;
}

/* Note a repeated varint, packed or not; returns -1 if it is broken. */
static int64_t record_ids(Scan *s, Field f, Record *table, int64_t count, int64_t row) {
    if ((f.tag & 7) == VARINT) {
        record(s, table, count, row, f.value, 0);
        return 0;
    }
    for (int64_t at = f.value; at < f.after;) {
        int64_t one = read_varint(s->b, &at, f.after);
        if (at < 0) return -1;
        record(s, table, count, row, one, 0);
    }
    return 0;
}

/* Add the end of an arrow that an event names. */
static void add_flow(Scan *s, uint64_t flow, int64_t phase, int64_t row) {
    Out *out = s->out;
    if (AT(out->state, EVENTS) + 1 >= room(out)) {
        AT(s->state, NEEDS_ROOM) = 1;
        return;
    }
    int64_t at = new_row(out, AT(out->offsets, row), AT(out->lengths, row), TIME_OF(out, 0, row), MISSING);
    place(s, at, phase, FLOW, FLOW, -1, -1);
    CODE_OF(out, 3, at) = CODE_OF(out, 3, row);
    CODE_OF(out, 4, at) = CODE_OF(out, 4, row);
    append(out, s->columns->id, at, (int64_t)(flow & INT64_MAX));
    AT(out->state, EVENTS) = at + 1;
}

/* The plain fields of a packet. */
typedef struct {
    int64_t time, clock, sequence, flags, event, event_end, work, work_end, samples, samples_end;
    bool has_time, changes, is_cleared, is_foreign, is_dropped;
} Packet;

/* The plain fields of a track event; those of texts begin at -1 where there is none. */
typedef struct {
    int64_t kind, uuid, name, name_start, name_end, category, category_start, category_end, value_kind, value;
} Event;

static int64_t read_event_fields(const Scan *s, int64_t i, int64_t end, Event *event) {
    while (i < end) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) return -1;
        if (f.tag == 72) {
            event->kind = f.value;
        } else if (f.tag == 88) {
            event->uuid = f.value;
        } else if (f.tag == 80) {
            event->name = f.value;
        } else if (f.tag == 186) {
            event->name_start = f.value;
            event->name_end = f.after;
        } else if (f.tag == 24 && event->category < 0) {
            event->category = f.value;
        } else if (f.tag == 26 && event->category < 0 && f.after > f.value) {
            int64_t at = f.value;
            event->category = read_varint(s->b, &at, f.after);
        } else if (f.tag == 178 && event->category_start < 0) {
            event->category_start = f.value;
            event->category_end = f.after;
        } else if (f.tag == 240) {
            event->value_kind = 0;
            event->value = f.value;
        } else if (f.tag == 353) {
            event->value_kind = 1;
            event->value = (int64_t)fixed64(s->b, f.value);
        }
        i = f.after;
    }
    return 0;
}

/* Note the begin or end of a slice, and to which group of its sequence it belongs. */
static void note_slice(Scan *s, int64_t offset, int64_t seq, const Event *event, const Packet *packet) {
    bool is_end = event->kind == SLICE_END;
    Record *table = is_end ? &s->r->ends : &s->r->begins;
    int64_t count = is_end ? ENDS : BEGINS, n = AT(s->state, count);
    if (n >= table->room) {
        AT(s->state, NEEDS_ROOM) = 1;
        return;
    }
    if (!is_end && OF(s->t, sequences, SEQ_ENDED, seq)) OF(s->t, sequences, SEQ_GROUP, seq)++;
    OF(s->t, sequences, SEQ_ENDED, seq) = is_end;
    if (packet->flags & 2)
        OF(s->t, sequences, SEQ_FLAGS, seq) |= is_end ? END_FLAGGED : BEGIN_FLAGGED;
    else if (is_end)
        OF(s->t, sequences, SEQ_FLAGS, seq) |= END_BARE;
    const int64_t fields[] = {offset, seq, OF(s->t, sequences, SEQ_GROUP, seq), event->uuid, packet->time};
    for (int k = 0; k < 5; k++) AT(table->at, k * table->room + n) = fields[k];
    AT(s->state, count) = n + 1;
}

/* Set the name, category and place of a track event. */
static void place_event(Scan *s, int64_t row, int64_t seq, int64_t offset, const Event *event) {
    Tables *t = s->t;
    int64_t scope = OF(t, sequences, SEQ_SCOPE, seq);
    int64_t track = find_id(t->track_slots, t->track_slots_size, t->tracks, t->tracks_room, event->uuid, t->seed);
    int64_t pid = track >= 0 ? OF(t, tracks, TRACK_PID, track) : OF(t, sequences, SEQ_PID, seq);
    int64_t tid = track >= 0 ? OF(t, tracks, TRACK_TID, track) : OF(t, sequences, SEQ_TID, seq);
    int64_t name = event->name > 0 ? interned_entry(s, scope, NAMES, event->name, offset) : -1;
    int64_t category = event->category > 0 ? interned_entry(s, scope, CATEGORIES, event->category, offset) : -1;
    int64_t phase = event->kind == SLICE_BEGIN ? X : event->kind == SLICE_INSTANT ? INSTANT : COUNTER;
    bool writes_name = name < 0 && event->name_start >= 0, writes_category = category < 0 && event->category_start >= 0;
    if (track >= 0 && category < 0 && !writes_category && phase == X) category = OF(t, tracks, TRACK_CATEGORY, track);
    if (track >= 0 && name < 0 && !writes_name) name = OF(t, tracks, TRACK_NAME, track);
    place(s, row, phase, category, name, pid, tid);
    if (s->text_size - AT(s->state, USED) < 6 * ((int64_t)AT(s->out->lengths, row) + 64)) {
        AT(s->state, NEEDS_ROOM) = 1;
        return;
    }
    if (writes_category) {
        int64_t at = AT(s->state, USED), after = write_text(s, event->category_start, event->category_end, at);
        CODE_OF(s->out, 1, row) = (int32_t)new_code(s, at, after);
    }
    if (writes_name) {
        int64_t at = AT(s->state, USED), after = write_text(s, event->name_start, event->name_end, at);
        CODE_OF(s->out, 2, row) = (int32_t)new_code(s, at, after);
    }
}

enum { LINKS = 24002 }; /* to device work */
static bool is_flow(int64_t tag) {
    return tag == 377 || tag == 378 || tag == 385 || tag == 386 || tag == 288 || tag == 336;
}

/* Read a field that links a track event: to device work, or by flows. Returns -1 if it is broken. */
static int64_t read_links(Scan *s, Field f, int64_t row) {
    int64_t phase = f.tag == 377 || f.tag == 378 || f.tag == 288 ? FLOW_BEGIN : FLOW_END;
    if (f.tag == 288 || f.tag == 336) {
        add_flow(s, (uint64_t)f.value, phase, row);
    } else if (f.tag != LINKS) {
        for (int64_t at = f.value; at + 8 <= f.after; at += 8) add_flow(s, fixed64(s->b, at), phase, row);
    } else {
        for (int64_t at = f.value; at < f.after;) {
            Field inner = read_field(s->b, at, f.after);
            if (inner.after < 0) return -1;
            bool is_id = inner.tag == 8 || inner.tag == 10;
            if (is_id && record_ids(s, inner, &s->r->launches, LAUNCHES, row) < 0) return -1;
            at = inner.after;
        }
    }
    return 0;
}

/* Read a slice's begin or end, an instant or a counter; returns -1 if it is broken. */
static int64_t read_track_event(Scan *s, int64_t offset, int64_t length, int64_t seq, const Packet *packet) {
    Event event = {0, OF(s->t, sequences, SEQ_TRACK, seq), -1, -1, 0, -1, -1, 0, -1, 0};
    int64_t scope = OF(s->t, sequences, SEQ_SCOPE, seq);
    if (read_event_fields(s, packet->event, packet->event_end, &event) < 0) return -1;
    if (event.kind == SLICE_BEGIN || event.kind == SLICE_END) note_slice(s, offset, seq, &event, packet);
    bool is_value = event.kind == COUNTER_VALUE && event.value_kind >= 0;
    if (event.kind != SLICE_BEGIN && event.kind != SLICE_INSTANT && !is_value) return 0;
    int64_t row = new_row(s->out, offset, length, packet->time, MISSING);
    place_event(s, row, seq, offset, &event);
    AT(s->out->state, EVENTS) = row + 1;
    if (is_value) record(s, &s->r->counters, COUNTERS, row, event.value_kind, event.value);
    for (int64_t i = packet->event; i < packet->event_end;) {
        Field f = read_field(s->b, i, packet->event_end);
        if (f.tag == 34 && read_annotation(s, f.value, f.after, scope, row) < 0) return -1;
        if ((f.tag == LINKS || is_flow(f.tag)) && read_links(s, f, row) < 0) return -1;
        i = f.after;
    }
    return 0;
}

/* Write x 1, y 2, z 3 as a list; returns the index after it, or -1. */
static int64_t write_dimensions(Scan *s, int64_t i, int64_t end, int64_t at) {
    int64_t dimensions[3] = {0, 0, 0};
    while (i < end) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) return -1;
        if (f.tag == 8 || f.tag == 16 || f.tag == 24) dimensions[f.tag / 8 - 1] = f.value;
        i = f.after;
    }
    for (int k = 0; k < 3; k++) {
        at = write_constant(s, k ? ", " : "[", at);
        at = write_number(s, dimensions[k], true, at);
    }
    AT(s->text, at++) = ']';
    return at;
}

/* Read how a kernel was launched: grid 1, block 2, arguments 3; returns -1 if it is broken. */
static int64_t read_launch(Scan *s, int64_t i, int64_t end, int64_t scope, int64_t row) {
    while (i < end) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) return -1;
        i = f.after;
        if (f.tag == 10 || f.tag == 18) {
            int64_t at = AT(s->state, USED);
            if (s->text_size - at < 128) {
                AT(s->state, NEEDS_ROOM) = 1;
                return 0;
            }
            int64_t after = write_dimensions(s, f.value, f.after, at);
            if (after < 0) return -1;
            append(s->out, f.tag == 10 ? s->columns->grid : s->columns->block, row, new_code(s, at, after));
        } else if (f.tag == 26) {
            int64_t name = 0, number = 0;
            for (int64_t at = f.value; at < f.after;) {
                Field inner = read_field(s->b, at, f.after);
                if (inner.after < 0) return -1;
                if (inner.tag == 8) name = inner.value;
                if (inner.tag == 32 || inner.tag == 24) number = inner.value;
                at = inner.after;
            }
            int64_t k = find_interned(s->t, scope, KERNEL_ARGUMENTS, name);
            if (k >= 0 && OF(s->t, interned, TEXT_KIND, k) == 1)
                append(s->out, s->columns->registers_per_thread, row, number);
        }
    }
    return 0;
}

/* The plain fields of device work. */
typedef struct {
    int64_t id, dur, gpu, queue, stage, kernel, name;
} Stage;

static int64_t read_stage_fields(Text b, int64_t i, int64_t end, Stage *stage) {
    while (i < end) {
        Field f = read_field(b, i, end);
        if (f.after < 0) return -1;
        switch (f.tag) {
        case 8: stage->id = f.value; break;
        case 16: stage->dur = f.value; break;
        case 88: stage->gpu = f.value; break;
        case 104: stage->queue = f.value; break;
        case 112: stage->stage = f.value; break;
        case 152: stage->kernel = f.value; break;
        case 160: stage->name = f.value; break;
        default: break;
        }
        i = f.after;
    }
    return 0;
}

/* Set the name, category and place of device work; returns the entry of its name. */
static int64_t place_stage(Scan *s, int64_t row, int64_t scope, int64_t offset, const Stage *stage) {
    Tables *t = s->t;
    int64_t of_stage = stage->stage ? find_interned(t, scope, GPU_SPECIFICATIONS, stage->stage) : -1;
    int64_t of_queue = stage->queue ? find_interned(t, scope, GPU_SPECIFICATIONS, stage->queue) : -1;
    int64_t category = of_stage >= 0 ? OF(t, interned, TEXT_KIND, of_stage) : RENDER_STAGE;
    int64_t name = of_stage >= 0 ? OF(t, interned, TEXT_NAME, of_stage) : -1;
    if (stage->name > 0)
        name = interned_entry(s, scope, NAMES, stage->name, offset);
    else if (stage->kernel > 0 && category == KERNEL)
        name = interned_entry(s, scope, KERNELS, stage->kernel, offset);
    int64_t tid = of_queue >= 0 ? OF(t, interned, TEXT_PLACE, of_queue) : -1;
    int64_t pid = stage->gpu >= 0 && stage->gpu < t->devices_size ? AT(t->devices, stage->gpu) : -1;
    place(s, row, X, category, name, pid, tid);
    return name;
}

/* Read work of a device; returns -1 if it is broken. */
static int64_t read_stage(Scan *s, int64_t offset, int64_t length, int64_t seq, const Packet *packet) {
    Stage stage = {0, 0, 0, 0, 0, 0, 0};
    if (read_stage_fields(s->b, packet->work, packet->work_end, &stage) < 0) return -1;
    int64_t row = new_row(s->out, offset, length, packet->time, stage.dur), scope = OF(s->t, sequences, SEQ_SCOPE, seq);
    int64_t name = place_stage(s, row, scope, offset, &stage);
    AT(s->out->state, EVENTS) = row + 1;
    if (stage.id) record(s, &s->r->stages, STAGES, row, stage.id, 0);
    bool has_graph = false, has_node = false, has_bytes = false;
    for (int64_t i = packet->work; i < packet->work_end;) {
        Field f = read_field(s->b, i, packet->work_end);
        int64_t result = 0;
        if (f.tag == 50) {
            result = read_extra(s, f.value, f.after, row);
            has_graph |= result == s->columns->graph_id;
            has_node |= result == s->columns->graph_node_id;
            has_bytes |= result == s->columns->bytes;
        } else if (f.tag == 144 || f.tag == 146) {
            result = record_ids(s, f, &s->r->waits, WAITS, row);
        } else if (f.tag == 170) {
            result = read_launch(s, f.value, f.after, scope, row);
        }
        if (result < 0) return -1;
        i = f.after;
    }
    if (has_graph && !has_node) append(s->out, s->columns->graph_node_id, row, 0); /* torch leaves out zeros */
    if (!has_bytes && (name == MEMCPY || name == MEMSET)) append(s->out, s->columns->bytes, row, 0);
    return 0;
}

/* Read samples of a device's counters; each is a row, at the offset of the sample. Returns -1 if it is broken. */
static int64_t read_samples(Scan *s, int64_t offset, int64_t pos, int64_t seq, const Packet *packet) {
    int64_t scope = OF(s->t, sequences, SEQ_SCOPE, seq), descriptor = 0;
    for (int64_t i = packet->samples; i < packet->samples_end;) {
        Field f = read_field(s->b, i, packet->samples_end);
        if (f.after < 0) return -1;
        if (f.tag == 32) descriptor = f.value;
        i = f.after;
    }
    int64_t k = find_interned(s->t, scope, GPU_COUNTERS, descriptor);
    int64_t pid = k >= 0 ? OF(s->t, interned, TEXT_PLACE, k) : EMPTY_TEXT;
    for (int64_t i = packet->samples, at; i < packet->samples_end;) {
        Field f = read_field(s->b, at = i, packet->samples_end);
        i = f.after;
        if (f.tag != 18) continue;
        int64_t counter = 0, kind = -1, number = 0;
        for (int64_t j = f.value; j < f.after;) {
            Field inner = read_field(s->b, j, f.after);
            if (inner.after < 0) return -1;
            if (inner.tag == 8) {
                counter = inner.value;
            } else if (inner.tag == 16) {
                kind = 0;
                number = inner.value;
            } else if (inner.tag == 25) {
                kind = 1;
                number = (int64_t)fixed64(s->b, inner.value);
            }
            j = inner.after;
        }
        if (AT(s->out->state, EVENTS) + 1 >= room(s->out)) {
            AT(s->state, NEEDS_ROOM) = 1;
            return 0;
        }
        int64_t row = new_row(s->out, offset + at - pos, i - at, packet->time, MISSING);
        int64_t id = (int64_t)((uint64_t)descriptor << 32 | (uint64_t)counter);
        place(s, row, COUNTER, -1, interned_entry(s, scope, COUNTER_NAMES, id, offset), pid, EMPTY_TEXT);
        AT(s->out->state, EVENTS) = row + 1;
        if (kind >= 0) record(s, &s->r->counters, COUNTERS, row, kind, number);
    }
    return 0;
}

/* The time in the clock that all others were set against; MISSING if nothing says how. */
static int64_t clock_time(Scan *s, int64_t clock, int64_t seq, int64_t ts) {
    Tables *t = s->t;
    for (int64_t k = 0; k < AT(t->counts, N_CLOCKS); k++) {
        if (OF(t, clocks, CLOCK_ID, k) != clock || (OF(t, clocks, CLOCK_SEQ, k) != seq && clock >= FIRST_OF_SEQUENCE)) continue;
        if (OF(t, clocks, CLOCK_INCREMENTAL, k)) {
            AT(s->state, CLOCK_ROW) = k;
            AT(s->state, CLOCK_BEFORE) = OF(t, clocks, CLOCK_LAST, k);
            ts = (int64_t)((uint64_t)OF(t, clocks, CLOCK_LAST, k) + (uint64_t)ts);
            OF(t, clocks, CLOCK_LAST, k) = ts;
        }
        uint64_t time = (uint64_t)ts * (uint64_t)OF(t, clocks, CLOCK_UNIT, k);
        return (int64_t)(time + (uint64_t)OF(t, clocks, CLOCK_OFFSET, k));
    }
    return MISSING;
}

/* ---- packets that change what others refer to; Python reads stages, counters and compressed packets */

/* The row of a sequence, which is new or known; -1 if there is no room. */
static int64_t sequence_row(Tables *t, int64_t id) {
    int64_t row = find_id(t->sequence_slots, t->sequence_slots_size, t->sequences, t->sequences_room, id, t->seed);
    if (row >= 0) return row;
    row = AT(t->counts, N_SEQUENCES);
    if (row == t->sequences_room) return -1;
    for (int64_t field = 0; field < SEQ_FIELDS; field++) OF(t, sequences, field, row) = 0;
    OF(t, sequences, SEQ_ID, row) = id;
    OF(t, sequences, SEQ_SCOPE, row) = ++AT(t->counts, N_SCOPES);
    OF(t, sequences, SEQ_PID, row) = OF(t, sequences, SEQ_TID, row) = EMPTY_TEXT;
    AT(t->counts, N_SEQUENCES) = row + 1;
    place_ids(t->sequence_slots, t->sequence_slots_size, t->sequences, t->sequences_room, row, row + 1, t->seed);
    return row;
}

/* Append an entry that was written from the used bytes on up to `end`. */
static int64_t new_entry(Tables *t, int64_t end) {
    int64_t start = AT(t->counts, N_BYTES), entry = AT(t->counts, N_ENTRIES);
    const int64_t fields[] = {start, end - start, -1};
    for (int64_t field = 0; field < 3; field++) OF(t, entries, field, entry) = fields[field];
    AT(t->counts, N_BYTES) = end;
    AT(t->counts, N_ENTRIES) = entry + 1;
    return entry;
}

/* Enter a text of a sequence; returns whether there was room. */
static bool enter_text(Scan *s, int64_t scope, int64_t kind, int64_t iid, int64_t i, int64_t end) {
    Tables *t = s->t;
    int64_t start = AT(t->counts, N_BYTES), entry = AT(t->counts, N_ENTRIES), row = AT(t->counts, N_INTERNED);
    if (entry == t->entries_room || row == t->interned_room || t->strings_size - start < 6 * (end - i) + 2) return false;
    new_entry(t, write_string(s->b, i, end, t->strings, t->strings_size, start));
    bool is_registers = kind == KERNEL_ARGUMENTS && is_text(s->b, i, end, "registers_per_thread");
    const int64_t of_text[] = {scope, kind, iid, entry, is_registers, -1, -1};
    for (int64_t field = 0; field < TEXT_FIELDS; field++) OF(t, interned, field, row) = of_text[field];
    AT(t->counts, N_INTERNED) = row + 1;
    place_texts(t->slots, t->slots_size, t->interned, t->interned_size, row, row + 1, t->seed);
    return true;
}

/* Read interned texts: 0, 1 if some are of kinds that Python reads, 2 if there was no room. */
static int64_t read_interned(Scan *s, int64_t i, int64_t end, int64_t scope) {
    int64_t result = 0;
    while (i < end) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) return result;
        i = f.after;
        int64_t kind = f.tag >> 3, iid = 0, start = 0, stop = 0;
        if (kind == GPU_SPECIFICATIONS || kind == GPU_COUNTERS) result = 1;
        bool has_text = kind == CATEGORIES || kind == NAMES || kind == ANNOTATION_NAMES || kind == KERNELS ||
                        kind == KERNEL_ARGUMENTS;
        if ((f.tag & 7) != BYTES || !has_text) continue;
        bool is_whole = true;
        for (int64_t at = f.value; at < f.after && is_whole;) {
            Field inner = read_field(s->b, at, f.after);
            is_whole = inner.after > 0;
            at = inner.after;
            if (inner.tag == 8 && is_whole) iid = inner.value;
            if (inner.tag == (kind == KERNELS ? 26 : 18) && is_whole) {
                start = inner.value;
                stop = inner.after;
            }
        }
        if (is_whole && !enter_text(s, scope, kind, iid, start, stop)) return 2;
    }
    return result;
}

/* Read the defaults of a sequence: its clock, and the track of its events. */
static void read_defaults(Scan *s, int64_t i, int64_t end, int64_t seq) {
    int64_t clock = 0, track = 0;
    while (i < end) {
        Field f = read_field(s->b, i, end);
        if (f.after < 0) return;
        i = f.after;
        if (f.tag == 464) clock = f.value;
        if (f.tag != 90) continue;
        track = 0;
        for (int64_t at = f.value; at < f.after;) {
            Field inner = read_field(s->b, at, f.after);
            if (inner.after < 0) return;
            if (inner.tag == 88) track = inner.value;
            at = inner.after;
        }
    }
    OF(s->t, sequences, SEQ_CLOCK, seq) = clock;
    OF(s->t, sequences, SEQ_TRACK, seq) = track;
}

/* One clock of a snapshot. */
typedef struct {
    int64_t id, time, is_incremental, unit;
} Clock;

/* The next clock of a snapshot; *i becomes the index after it, `end` behind the last. */
static Clock next_clock(Text b, int64_t *i, int64_t end) {
    while (*i < end) {
        Field f = read_field(b, *i, end);
        *i = f.after < 0 ? end : f.after;
        if (f.after < 0 || f.tag != 10) continue;
        Clock clock = {0, 0, 0, 1};
        int64_t at = f.value;
        while (at >= 0 && at < f.after) {
            Field inner = read_field(b, at, f.after);
            at = inner.after;
            if (inner.tag == 8) clock.id = inner.value;
            if (inner.tag == 16) clock.time = inner.value;
            if (inner.tag == 24) clock.is_incremental = inner.value & 1;
            if (inner.tag == 32 && inner.value) clock.unit = inner.value;
        }
        if (at >= 0 && clock.id > 0) return clock;
    }
    return (Clock){0, 0, 0, 1};
}

static void set_clock(Tables *t, Clock clock, int64_t sequence, int64_t reference) {
    int64_t row = 0, count = AT(t->counts, N_CLOCKS);
    sequence = clock.id >= FIRST_OF_SEQUENCE ? sequence : 0;
    while (row < count && (OF(t, clocks, CLOCK_ID, row) != clock.id || OF(t, clocks, CLOCK_SEQ, row) != sequence)) row++;
    if (clock.id == BOOTTIME || row == t->clocks_room) return;
    int64_t offset = (int64_t)((uint64_t)reference - (uint64_t)clock.time * (uint64_t)clock.unit);
    const int64_t fields[] = {sequence, clock.id, offset, clock.unit, clock.is_incremental, clock.time};
    for (int64_t field = 0; field < CLOCK_FIELDS; field++) OF(t, clocks, field, row) = fields[field];
    AT(t->counts, N_CLOCKS) = larger(count, row + 1);
}

/* Set each clock against BOOTTIME, or against the first one without it. REALTIME of the first snapshot gives the Unix time,
unless an event had a time before. */
static void read_clocks(Scan *s, int64_t start, int64_t end, int64_t sequence) {
    Tables *t = s->t;
    int64_t i = start, reference = 0, realtime = 0;
    bool has_boottime = false, is_first = true;
    for (Clock clock; (clock = next_clock(s->b, &i, end)).id; is_first = false) {
        if (clock.id == BOOTTIME || (is_first && !has_boottime)) reference = clock.time;
        has_boottime |= clock.id == BOOTTIME;
        if (clock.id == REALTIME) realtime = clock.time;
    }
    if (is_first) return;
    if (!AT(t->counts, HAS_BASE) && !AT(t->counts, IS_TIMED)) {
        AT(t->counts, ORIGIN_NS) = reference > -FARTHEST && reference < FARTHEST ? reference : 0;
        AT(t->counts, BASE_NS) = realtime;
    }
    AT(t->counts, HAS_BASE) = 1;
    i = start;
    for (Clock clock; (clock = next_clock(s->b, &i, end)).id;) set_clock(t, clock, sequence, reference);
}

/* A message's text. */
typedef struct {
    int64_t begin, end;
} Span;

/* A process or a thread as a packet describes it. */
typedef struct {
    int64_t pid, tid;
    Span name;
} Description;

static Description read_description(Text b, Span message, int64_t name_tag) {
    Description description = {0, 0, {0, 0}};
    for (int64_t i = message.begin; i < message.end;) {
        Field f = read_field(b, i, message.end);
        if (f.after < 0) break;
        i = f.after;
        if (f.tag == 8) description.pid = (int32_t)f.value;
        if (f.tag == 16) description.tid = f.value;
        if (f.tag == name_tag) description.name = (Span){f.value, f.after};
    }
    return description;
}

/* Note the name of a process, or of a thread. */
static void note_label(Scan *s, bool is_thread, const Description *what, int64_t entry) {
    Record *table = &s->r->labels;
    int64_t n = AT(s->state, LABELS);
    if (n == table->room) {
        AT(s->state, NEEDS_ROOM) = 1;
        return;
    }
    const int64_t fields[] = {is_thread, what->pid, what->tid, entry};
    for (int field = 0; field < 4; field++) AT(table->at, field * table->room + n) = fields[field];
    AT(s->state, LABELS) = n + 1;
}

static int64_t text_entry(Scan *s, Span text) {
    Tables *t = s->t;
    if (text.begin == text.end) return EMPTY_TEXT;
    return new_entry(t, write_string(s->b, text.begin, text.end, t->strings, t->strings_size, AT(t->counts, N_BYTES)));
}

static int64_t number_entry(Tables *t, int64_t value) {
    return new_entry(t, write_digits(value, true, t->strings, t->strings_size, AT(t->counts, N_BYTES)));
}

/* The entry of a track's name in place of a thread's number: of a number if it looks like one. */
static int64_t place_entry(Scan *s, Span name) {
    Tables *t = s->t;
    int64_t first = name.begin + (name.begin < name.end && AT(s->b.at, name.begin) == '-'), i = first;
    while (i < name.end && AT(s->b.at, i) >= '0' && AT(s->b.at, i) <= '9') i++;
    if (i < name.end || i == first || i - first > 19) return text_entry(s, name);
    int64_t at = AT(t->counts, N_BYTES);
    for (int64_t k = name.begin; k < name.end; k++) AT(t->strings, at++) = AT(s->b.at, k);
    return new_entry(t, at);
}

/* The entry of the words "track N". */
static int64_t unnamed_track_entry(Tables *t, int64_t uuid) {
    int64_t at = AT(t->counts, N_BYTES);
    for (const char *word = "\"track "; *word; word++) AT(t->strings, at++) = (uint8_t)*word;
    at = write_digits(uuid, false, t->strings, t->strings_size, at);
    AT(t->strings, at++) = '"';
    return new_entry(t, at);
}

static bool has_room_for_track(const Scan *s, int64_t message_bytes) {
    const Tables *t = s->t;
    return AT(t->counts, N_TRACKS) < t->tracks_room && AT(t->counts, N_ENTRIES) + 8 <= t->entries_room &&
           t->strings_size - AT(t->counts, N_BYTES) >= 18 * message_bytes + 128;
}

static void note_process(Scan *s, const Description *process, Span name) {
    if (name.begin == name.end) return;
    int64_t gpu = process->pid, first = name.begin + 4, number = 0;
    bool is_gpu = name.end - first > 0 && name.end - first < 10 && is_text(s->b, name.begin, first, "GPU ");
    for (int64_t i = first; is_gpu && i < name.end; i++) {
        number = 10 * number + AT(s->b.at, i) - '0';
        is_gpu = AT(s->b.at, i) >= '0' && AT(s->b.at, i) <= '9';
    }
    if (gpu >= 0 && IS_GPU + gpu < s->t->counts_size) AT(s->t->counts, IS_GPU + gpu) = is_gpu && number == gpu;
    note_label(s, false, process, text_entry(s, name));
}

/* The row of the next track above that has a process, or of the last one that is known; `row` itself if it has one. */
static int64_t track_with_process(const Tables *t, int64_t row) {
    for (int level = 0; level < MOST_PARENTS && !OF(t, tracks, TRACK_HAS_PROCESS, row); level++) {
        int64_t parent = OF(t, tracks, TRACK_PARENT, row);
        int64_t above = find_id(t->track_slots, t->track_slots_size, t->tracks, t->tracks_room, parent, t->seed);
        if (above < 0) break;
        row = above;
    }
    return row;
}

/* What a descriptor says of a track. */
typedef struct {
    int64_t uuid, parent;
    Span name, process, thread;
    bool is_counter;
} Track;

static Track read_track_fields(Text b, int64_t i, int64_t end) {
    Track track = {0, 0, {0, 0}, {0, 0}, {0, 0}, false};
    while (i < end) {
        Field f = read_field(b, i, end);
        if (f.after < 0) break;
        i = f.after;
        switch (f.tag) {
        case 8: track.uuid = f.value; break;
        case 40: track.parent = f.value; break;
        case 18: track.name = (Span){f.value, f.after}; break;
        case 26: track.process = (Span){f.value, f.after}; break;
        case 34: track.thread = (Span){f.value, f.after}; break;
        case 66: track.is_counter = true; break;
        default: break;
        }
    }
    return track;
}

/* Enter a track: a thread's, a process', a counter's, or one that a program named; returns 2 if there was no room. */
static int64_t read_track(Scan *s, int64_t i, int64_t end) {
    Tables *t = s->t;
    if (!has_room_for_track(s, end - i)) return 2;
    Track track = read_track_fields(s->b, i, end);
    Description thread = read_description(s->b, track.thread, 42), process = read_description(s->b, track.process, 50);
    bool has_thread = track.thread.begin > 0, has_process = track.process.begin > 0;
    if (has_thread) {
        Span name = thread.name.end > thread.name.begin ? thread.name : track.name;
        if (name.end > name.begin) note_label(s, true, &thread, text_entry(s, name));
    }
    if (has_process) note_process(s, &process, process.name.end > process.name.begin ? process.name : track.name);
    int64_t row = AT(t->counts, N_TRACKS);
    OF(t, tracks, TRACK_UUID, row) = track.uuid;
    OF(t, tracks, TRACK_PARENT, row) = track.parent;
    OF(t, tracks, TRACK_HAS_PROCESS, row) = has_thread || has_process;
    OF(t, tracks, TRACK_PROCESS, row) = has_process ? process.pid : thread.pid;
    int64_t above = track_with_process(t, row), pid = OF(t, tracks, TRACK_PROCESS, above), tid, category = -1;
    bool is_placed = OF(t, tracks, TRACK_HAS_PROCESS, above);
    if (has_thread)
        tid = number_entry(t, thread.tid);
    else
        tid = track.name.end > track.name.begin || has_process ? place_entry(s, track.name) : unnamed_track_entry(t, track.uuid);
    if (is_placed && pid == NOT_A_PROCESS)
        category = OVERHEAD;
    else if (has_thread && pid >= 0 && IS_GPU + pid < t->counts_size && AT(t->counts, IS_GPU + pid))
        category = CUDA_SYNC;
    OF(t, tracks, TRACK_PID, row) = is_placed ? number_entry(t, pid == NOT_A_PROCESS ? -1 : pid) : EMPTY_TEXT;
    OF(t, tracks, TRACK_TID, row) = tid;
    OF(t, tracks, TRACK_CATEGORY, row) = category;
    OF(t, tracks, TRACK_NAME, row) = track.is_counter && track.name.end > track.name.begin ? text_entry(s, track.name) : -1;
    AT(t->counts, N_TRACKS) = row + 1;
    place_ids(t->track_slots, t->track_slots_size, t->tracks, t->tracks_room, row, row + 1, t->seed);
    return 0;
}

/* Read the process or the thread of a sequence, as programs before track descriptors wrote them; returns 2 if there was
no room. */
static int64_t read_descriptor(Scan *s, Span message, int64_t seq, bool is_thread) {
    if (!has_room_for_track(s, message.end - message.begin)) return 2;
    Description what = read_description(s->b, message, is_thread ? 42 : 50);
    if (!is_thread) {
        note_process(s, &what, what.name);
        return 0;
    }
    OF(s->t, sequences, SEQ_PID, seq) = number_entry(s->t, what.pid);
    OF(s->t, sequences, SEQ_TID, seq) = number_entry(s->t, what.tid);
    if (what.name.end > what.name.begin) note_label(s, true, &what, text_entry(s, what.name));
    return 0;
}

/* Whether this field of a packet changes what others refer to (or, 402, has packets inside). */
static bool changes_tables(int64_t tag) {
    return tag == 50 || tag == 98 || tag == 474 || tag == 482 || tag == 354 || tag == 346 || tag == 402;
}

/* Whether these bytes are the fields of a message, and its messages those of theirs, down to some level. */
static bool is_message(Text b, int64_t i, int64_t end, int levels) {
    while (i < end) {
        Field f = read_field(b, i, end);
        if (f.after < 0 || (levels && (f.tag & 7) == BYTES && !is_message(b, f.value, f.after, levels - 1))) return false;
        i = f.after;
    }
    return true;
}

/* Read what a packet changes of a sequence: 0, 1 if it changes more, which Python reads, 2 if there was no room. */
static int64_t read_changes(Scan *s, int64_t i, int64_t end, int64_t offset, int64_t seq, bool is_cleared) {
    int64_t result = 0;
    bool is_whole = true;
    if (is_cleared) {
        OF(s->t, sequences, SEQ_SCOPE, seq) = ++AT(s->t->counts, N_SCOPES);
        OF(s->t, sequences, SEQ_TRACK, seq) = OF(s->t, sequences, SEQ_CLOCK, seq) = 0;
    }
    while (i < end && result < 2) {
        Field f = read_field(s->b, i, end);
        i = f.after;
        if (changes_tables(f.tag) && f.tag != 402)
            is_whole &= is_message(s->b, f.value, f.after, f.tag == 50 || f.tag == 98);
        switch (f.tag) {
        case 98: /* interned_data */ {
            int64_t of_texts = read_interned(s, f.value, f.after, OF(s->t, sequences, SEQ_SCOPE, seq));
            result = larger(result, of_texts);
            break;
        }
        case 474: /* trace_packet_defaults */ read_defaults(s, f.value, f.after, seq); break;
        case 50: /* clock_snapshot */
            read_clocks(s, f.value, f.after, OF(s->t, sequences, SEQ_ID, seq));
            break;
        case 482: /* track_descriptor */ result = larger(result, read_track(s, f.value, f.after)); break;
        case 354: /* thread_descriptor */
        case 346: /* process_descriptor */
            result = larger(result, read_descriptor(s, (Span){f.value, f.after}, seq, f.tag == 354));
            break;
        case 402: /* compressed_packets */ result = larger(result, 1); break;
        default: break;
        }
    }
    if (!is_whole) count_first(s, DAMAGED_STATE, FIRST_DAMAGED_STATE, offset);
    return result;
}

static int64_t read_packet_fields(Text b, int64_t i, int64_t end, Packet *packet) {
    while (i < end) {
        Field f = read_field(b, i, end);
        if (f.after < 0) return -1;
        if (f.tag == 64) {
            packet->time = f.value;
            packet->has_time = true;
        } else if (f.tag == 80) {
            packet->sequence = f.value;
        } else if (f.tag == 90) {
            packet->event = f.value;
            packet->event_end = f.after;
        } else if (f.tag == 426) {
            packet->work = f.value;
            packet->work_end = f.after;
        } else if (f.tag == 418) {
            packet->samples = f.value;
            packet->samples_end = f.after;
        } else if (f.tag == 464) {
            packet->clock = f.value;
        } else if (f.tag == 336) {
            packet->is_dropped = f.value != 0;
        } else if (changes_tables(f.tag)) {
            packet->changes = true;
        } else if ((f.tag & 7) == BYTES) {
            packet->is_foreign = true;
        }
        if (f.tag == 104) packet->flags = f.value;
        packet->is_cleared |= (f.tag == 104 && f.value & 1) || (f.tag == 328 && f.value); /* incremental_state_cleared */
        i = f.after;
    }
    return 0;
}

/* Read a packet: 0, -1 if it is broken, STATE if it changes what Python hasn't read yet, GROW if the tables have no room. */
static int64_t read_packet(Scan *s, int64_t i, int64_t end, int64_t pos, int64_t base, bool knows_state) {
    Tables *t = s->t;
    Packet packet = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, false, false, false};
    if (read_packet_fields(s->b, i, end, &packet) < 0) return -1;
    int64_t offset = base + pos, length = end - pos, seq = sequence_row(t, packet.sequence), result = seq < 0 ? 2 : 0;
    if (result == 0 && !knows_state && (packet.changes || packet.is_cleared))
        result = read_changes(s, i, end, offset, seq, packet.is_cleared);
    AT(s->state, SEQUENCE) = seq;
    if (result > 0) return result == 1 ? STATE : GROW;
    if (packet.is_dropped) count_first(s, DROPPED, FIRST_DROPPED, offset);
    if (!packet.event_end && !packet.work_end && !packet.samples_end) {
        if (packet.is_foreign && !packet.changes) count_first(s, FOREIGN, FIRST_FOREIGN, offset);
        return 0;
    }
    AT(t->counts, IS_TIMED) |= packet.has_time;
    int64_t clock = packet.clock ? packet.clock : OF(t, sequences, SEQ_CLOCK, seq);
    if (!packet.has_time)
        packet.time = MISSING;
    else if (clock && clock != BOOTTIME)
        packet.time = clock_time(s, clock, packet.sequence, packet.time);
    if (packet.event_end) result = read_track_event(s, offset, length, seq, &packet);
    if (packet.work_end && result == 0) result = read_stage(s, offset, length, seq, &packet);
    if (packet.samples_end && result == 0) result = read_samples(s, offset, pos, seq, &packet);
    return result;
}

/* Forget the rows and records of a packet. */
static void undo(Scan *s, int64_t rows, const int64_t *saved) {
    while (AT(s->out->state, EVENTS) > rows) forget(s->out, --AT(s->out->state, EVENTS));
    forget(s->out, rows);
    for (int k = BEGINS; k < LOST; k++) AT(s->state, k) = saved[k];
    if (AT(s->state, CLOCK_ROW) >= 0)
        OF(s->t, clocks, CLOCK_LAST, AT(s->state, CLOCK_ROW)) = AT(s->state, CLOCK_BEFORE);
}

/* Count damage where something whole precedes it, and the work of searching in it. */
static void note_damage(Scan *s, int64_t offset, int64_t length) {
    if (!AT(s->state, IS_LOST)) {
        if (AT(s->state, LOST) < s->r->places.room) AT(s->r->places.at, AT(s->state, LOST)) = offset;
        count_first(s, LOST, FIRST_LOST, offset);
        AT(s->state, IS_LOST) = 1;
    }
    AT(s->state, LOST_WORK) += larger(length, 0);
}

/* Read a whole packet, and forget it if it is broken or can't be read yet; returns as read_packet does, FULL if there was
no room for it. */
static int64_t keep_packet(Scan *s, int64_t i, int64_t end, int64_t pos, int64_t base, bool knows_state) {
    int64_t saved[LOST], rows = AT(s->out->state, EVENTS);
    for (int k = BEGINS; k < LOST; k++) saved[k] = AT(s->state, k);
    AT(s->state, NEEDS_ROOM) = 0;
    AT(s->state, CLOCK_ROW) = -1;
    int64_t damaged = AT(s->state, DAMAGED_STATE);
    int64_t result = read_packet(s, i, end, pos, base, knows_state);
    if (AT(s->state, NEEDS_ROOM) || result != 0) undo(s, rows, saved);
    if (AT(s->state, NEEDS_ROOM) || result == GROW) AT(s->state, DAMAGED_STATE) = damaged; /* it is read again */
    return result == 0 && AT(s->state, NEEDS_ROOM) ? FULL : result;
}

/* Read the packets in b[pos:end], and return the first byte that wasn't read.

`base`: the offset of b in the file. `knows_state`: the caller has read what the first packet changes. */
static int64_t read_packets(Scan *s, int64_t pos, int64_t end, int64_t base, bool is_last, bool knows_state) {
    AT(s->state, STATE_OF_SCAN) = MORE;
    for (; pos < end; knows_state = false) {
        if (AT(s->out->state, EVENTS) + 8 >= room(s->out)) {
            AT(s->state, STATE_OF_SCAN) = FULL;
            return pos;
        }
        if (AT(s->state, IS_LOST)) {
            pos = find_packet(s->b, pos, end, is_last);
            if (pos == end || look_for_packets(s->b, pos, end, is_last) < 0) return pos;
        }
        Field f = read_field(s->b, pos, end);
        if (f.after < 0 && !is_last && may_go_on(s->b, pos, end)) return pos;
        int64_t result = -1;
        if (f.after > 0 && f.tag == PACKET) {
            result = keep_packet(s, f.value, f.after, pos, base, knows_state);
            if (result > 0) {
                AT(s->state, STATE_OF_SCAN) = result;
                return pos;
            }
        } else if (f.after > 0 && (f.tag & 7) == BYTES) { /* an unknown field of the file */
            int seems = f.after == end && is_last ? 1 : look_for_packets(s->b, f.after, end, is_last);
            if (seems < 0) return pos;
            result = seems - 1;
        }
        if (result == 0) {
            AT(s->state, IS_LOST) = 0;
            pos = f.after;
            continue;
        }
        bool is_cut = is_last && f.after < 0 && AT(s->b.at, pos) == PACKET;
        if (is_cut && find_packet(s->b, pos + 1, end, is_last) == end) return pos;
        note_damage(s, base + pos, f.after - pos);
        pos = AT(s->state, LOST_WORK) > MOST_LOST_WORK && f.after > 0 ? f.after : pos + 1;
    }
    return pos;
}

#define ARRAY(name) name, name##_size
#define RECORD(name, fields) {name, name##_size, name##_size / (fields)}

EXPORT int64_t scan_packets(
    IN(uint8_t, bytes), int64_t pos, int64_t end, int64_t base, int64_t is_last, int64_t knows_state,
    OUT(uint8_t, strings), OUT(int64_t, entries), OUT(int32_t, slots), OUT(int64_t, interned), OUT(int32_t, track_slots),
    OUT(int64_t, tracks), OUT(int32_t, sequence_slots), OUT(int64_t, sequences), OUT(int64_t, clocks),
    IN(int64_t, devices), OUT(int64_t, counts), OUT(int64_t, begins), OUT(int64_t, ends), OUT(int64_t, counters),
    OUT(int64_t, launches), OUT(int64_t, waits), OUT(int64_t, stages), OUT(int64_t, labels), OUT(int64_t, places), IN(int64_t, levels),
    IN(int64_t, kinds), IN(int64_t, key_columns), IN(int64_t, starts), IN(int64_t, key_lengths), IN(uint8_t, key_text),
    IN(int64_t, columns), OUT(uint8_t, text), OUT(int32_t, codes), OUT(int64_t, times), OUT(int64_t, offsets),
    OUT(int32_t, lengths), OUT(int64_t, arg_counts), OUT(int32_t, arg_rows), OUT(int64_t, arg_values),
    OUT(uint64_t, token_slots), OUT(int32_t, slot_codes), OUT(int64_t, token_starts), OUT(int64_t, token_lengths),
    OUT(int64_t, odd), OUT(int64_t, damage), OUT(int64_t, out_state), OUT(int64_t, state)) {
    const Keys keys = {ARRAY(levels), ARRAY(kinds), ARRAY(key_columns), ARRAY(starts), ARRAY(key_lengths),
                       {key_text, key_text_size}};
    Out out = {ARRAY(codes), ARRAY(times), ARRAY(offsets), ARRAY(lengths), ARRAY(arg_counts), ARRAY(arg_rows),
               ARRAY(arg_values), ARRAY(token_slots), ARRAY(slot_codes), ARRAY(token_starts), ARRAY(token_lengths),
               ARRAY(odd), ARRAY(damage), ARRAY(out_state)};
    Tables tables = {ARRAY(strings), ARRAY(entries), ARRAY(slots), ARRAY(interned), ARRAY(track_slots),
                     ARRAY(tracks), ARRAY(sequence_slots), ARRAY(sequences), ARRAY(clocks), ARRAY(devices),
                     ARRAY(counts), AT(out_state, SEED), entries_size / 3, interned_size / TEXT_FIELDS, tracks_size / TRACK_FIELDS,
                     sequences_size / SEQ_FIELDS, clocks_size / CLOCK_FIELDS};
    Records records = {RECORD(begins, 5), RECORD(ends, 5), RECORD(counters, 3), RECORD(launches, 3),
                       RECORD(waits, 3), RECORD(stages, 3), RECORD(labels, 4), RECORD(places, 3)};
    CHECK(columns_size == sizeof(Columns) / sizeof(int64_t));
    Columns args;
    __builtin_memcpy(&args, columns, sizeof args);
    Scan scan = {{bytes, bytes_size}, ARRAY(text), ARRAY(state), &keys, &args, &tables, &records, &out};
    return read_packets(&scan, pos, end, base, is_last != 0, knows_state != 0);
}
