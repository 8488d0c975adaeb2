/* Pickles of plain values (protocols 2 to 5) → flat arrays. Nothing is imported, called or built: whatever isn't a dict, list,
tuple, text, number, bool or None is refused.

The text comes in blocks, and arrays grow between calls, so memory is what the values need. Nothing recurses. A container
that is inside another can't change any more, as no pickler needs: so there are no cycles, and its depth is final.

Dicts with known keys become records (a row of columns), equal frames of stacks and equal stacks are stored once. */
#include "pickle.h"

enum { MORE_TEXT, ENDED, ROOM, REFUSED_OPCODE, REFUSED_FUNCTION, TOO_DEEP, CHANGED, NO_VALUE, NO_MEMO, WRONG_KIND, LONG_NUMBER,
       LONG_TEXT, TOO_MANY };
enum { DEEPEST = 64, MOST_TEXT = 1 << 24, MOST_TEXTS = 1 << 28, MOST = 1 << 27, SCATTERED = 1 << 12, LONGEST_FUNCTION = 64, PAIRS = 64 };

/* `state`: where the walk is, and how much of each array is used. */
enum {
    AT_BYTE, OUTCOME, NEEDED, ENDED_STACKS, /* in the block; why it stopped; items that must have room; frames left out */
    VALUES, MARKS, OBJECTS, WORDS, WIDES, TEXT_BYTES, TEXTS, FRAMES, STACKS, STACK_FRAMES, RECORDS, MEMO, SCATTER,
    RECORDS_OF, /* RECORD_KINDS of them */
    MARK_PLACES = RECORDS_OF + RECORD_KINDS,
    PAIR_OBJECTS = MARK_PLACES + DEEPEST, /* PAIRS of them: the last tuple of two integers with each hash, plus 1 */
    STATE_SIZE = PAIR_OBJECTS + PAIRS
};

/* Of an object: what it is, whether it is inside another, and its depth. */
enum { OF_LIST, OF_DICT, OF_RECORD, OF_STACK, WHAT = 3, IS_INSIDE = 4, DEPTH_SHIFT = 3, RECORD_KIND_BITS = 3 };

#define ARRAY(type, name) type *name; int64_t name##_size
typedef struct {
    Text b;
    ARRAY(int64_t, state);
    ARRAY(int64_t, values);   /* the pickle's stack */
    ARRAY(int32_t, memo);     /* the word of each number; ELSEWHERE: a row of `wide` that has the word */
    ARRAY(int64_t, scattered); /* (number + 1, word) of numbers beyond it: a hash table */
    ARRAY(int32_t, heads);    /* of each object its last chunk; the kind and number of a record; the row of a stack */
    ARRAY(int16_t, facts);
    ARRAY(int64_t, words);    /* chunks: (the chunk before it, how many, the words); records in a row are their first and RUN */
    ARRAY(int64_t, wide);
    ARRAY(uint8_t, text_bytes);
    ARRAY(int64_t, text_ends);
    ARRAY(int64_t, text_hashes);
    ARRAY(int32_t, text_slots);
    ARRAY(int64_t, frames);   /* file, line, function: words */
    ARRAY(int64_t, frame_hashes);
    ARRAY(int32_t, frame_slots);
    ARRAY(int32_t, stack_frames);
    ARRAY(int64_t, stack_ends);
    ARRAY(int64_t, stack_hashes);
    ARRAY(int32_t, stack_slots);
    ARRAY(int64_t, records);  /* kind, and a word per column */
    const int64_t *required;  /* of each kind of record the keys that it must have, as bits */
    int64_t required_size;
    const int32_t *columns;   /* of each kind and key the column */
    int64_t columns_size;
    int64_t keys, width, seed;
} Machine;

#define S(index) AT(m->state, index)

static inline int64_t fail(Machine *m, int64_t outcome) {
    S(OUTCOME) = outcome;
    return NONE;
}
static inline bool refuse(Machine *m, int64_t outcome) { return fail(m, outcome) >= 0; }

/* ---- texts, frames and stacks, each stored once ---- */

typedef bool Equal(const Machine *m, int64_t row, const int64_t *key, int64_t size);

static inline int64_t find(const Machine *m, const int32_t *slots, int64_t slots_size, IN(int64_t, hashes), int64_t hash,
                           Equal *equal, const int64_t *key, int64_t size, int64_t *slot) {
    int64_t i = hash & (slots_size - 1);
    for (; AT(slots, i) >= 0; i = (i + 1) & (slots_size - 1)) {
        int64_t row = AT(slots, i);
        if (AT(hashes, row) == hash && equal(m, row, key, size)) return row;
    }
    *slot = i;
    return NONE;
}

static inline bool is_text(const Machine *m, int64_t row, const int64_t *key, int64_t size) {
    int64_t begin = row ? AT(m->text_ends, row - 1) : 0;
    return AT(m->text_ends, row) - begin == size && same((Text){m->text_bytes, m->text_bytes_size}, begin, m->b, *key, size);
}

static inline int64_t text_row(Machine *m, int64_t i, int64_t size) {
    int64_t slot, hash = (int64_t)hash_text(m->b, i, i + size, m->seed);
    int64_t row = find(m, m->text_slots, m->text_slots_size, m->text_hashes, m->text_hashes_size, hash, is_text, &i, size, &slot);
    if (row >= 0) return row;
    row = S(TEXTS)++;
    for (int64_t n = 0; n < size; n++) AT(m->text_bytes, S(TEXT_BYTES) + n) = AT(m->b.at, i + n);
    S(TEXT_BYTES) += size;
    AT(m->text_ends, row) = S(TEXT_BYTES);
    AT(m->text_hashes, row) = hash;
    AT(m->text_slots, slot) = (int32_t)row;
    return row;
}

static inline bool is_frame(const Machine *m, int64_t row, const int64_t *key, int64_t size) {
    return AT(m->frames, 3 * row) == key[0] && AT(m->frames, 3 * row + 1) == key[1] && AT(m->frames, 3 * row + 2) == key[2];
}

static int64_t frame_row(Machine *m, const int64_t *frame) {
    int64_t slot, hash = (int64_t)mix(mix(mix(1, (uint64_t)frame[0], m->seed), (uint64_t)frame[1], m->seed), (uint64_t)frame[2], m->seed);
    int64_t row = find(m, m->frame_slots, m->frame_slots_size, m->frame_hashes, m->frame_hashes_size, hash, is_frame, frame, 3, &slot);
    if (row >= 0) return row;
    row = S(FRAMES)++;
    for (int64_t n = 0; n < 3; n++) AT(m->frames, 3 * row + n) = frame[n];
    AT(m->frame_hashes, row) = hash;
    AT(m->frame_slots, slot) = (int32_t)row;
    return row;
}

static inline bool is_stack(const Machine *m, int64_t row, const int64_t *key, int64_t size) {
    int64_t begin = row ? AT(m->stack_ends, row - 1) : 0;
    if (AT(m->stack_ends, row) - begin != size) return false;
    for (int64_t n = 0; n < size; n++)
        if (AT(m->stack_frames, begin + n) != value_of(value_of(key[n]))) return false;
    return true;
}

static int64_t stack_row(Machine *m, int64_t first, int64_t size) {
    uint64_t mixed = (uint64_t)size;
    const int64_t *frames = m->values + first;
    for (int64_t n = 0; n < size; n++) mixed = mix(mixed, (uint64_t)AT(m->values, first + n), m->seed);
    int64_t slot, hash = (int64_t)mixed;
    int64_t row = find(m, m->stack_slots, m->stack_slots_size, m->stack_hashes, m->stack_hashes_size, hash, is_stack, frames, size, &slot);
    if (row >= 0) return row;
    row = S(STACKS)++;
    for (int64_t n = 0; n < size; n++)
        AT(m->stack_frames, S(STACK_FRAMES) + n) = (int32_t)value_of(value_of(AT(m->values, first + n)));
    S(STACK_FRAMES) += size;
    AT(m->stack_ends, row) = S(STACK_FRAMES);
    AT(m->stack_hashes, row) = hash;
    AT(m->stack_slots, slot) = (int32_t)row;
    return row;
}

/* ---- containers ---- */

/* Where the values above the last mark begin: no opcode takes one below it. */
static inline int64_t floor_of(Machine *m) { return S(MARKS) ? AT(m->state, MARK_PLACES + S(MARKS) - 1) : 0; }
static inline bool is_above_mark(Machine *m, int64_t count) { return S(VALUES) - count >= floor_of(m) || refuse(m, NO_VALUE); }

static inline bool is_object(int64_t word) { return kind_of(word) >= LIST && kind_of(word) <= TUPLE; }
static inline bool is_frame_word(int64_t word) { return kind_of(word) == RECORD && kind_of(value_of(word)) == FRAME_KIND; }

static inline int64_t new_object(Machine *m, int64_t what, int64_t depth) {
    int64_t object = S(OBJECTS)++;
    AT(m->heads, object) = NONE;
    AT(m->facts, object) = (int16_t)(what | depth << DEPTH_SHIFT);
    return object;
}

static inline int64_t record_word(int64_t head) {
    return word_of(RECORD, word_of(head & (RECORD_KINDS - 1), head >> RECORD_KIND_BITS));
}

/* Put the values from `first` on inside a container: they can't change any more. Returns the depth of what holds them,
or NONE. */
static inline int64_t put_inside(Machine *m, int64_t first, int64_t depth) {
    for (int64_t n = first; n < S(VALUES); n++) {
        int64_t word = AT(m->values, n);
        if (kind_of(word) == FUNCTION) return fail(m, WRONG_KIND);
        if (!is_object(word)) continue;
        int64_t object = value_of(word), facts = AT(m->facts, object);
        depth = larger(depth, (facts >> DEPTH_SHIFT) + 1);
        if (!(facts & IS_INSIDE)) AT(m->facts, object) = (int16_t)(facts | IS_INSIDE);
        if ((facts & WHAT) == OF_RECORD) AT(m->values, n) = record_word(AT(m->heads, object));
        if ((facts & WHAT) == OF_STACK) AT(m->values, n) = word_of(STACK, AT(m->heads, object));
    }
    return depth > DEEPEST ? fail(m, TOO_DEEP) : depth;
}

/* Append a word to the chunk whose words begin there; a record that follows the last one makes a run of them longer. */
static inline void append_word(Machine *m, int64_t begin, int64_t word) {
    int64_t at = S(WORDS) - 1;
    if (kind_of(word) == RECORD && at >= begin) {
        bool is_run = kind_of(AT(m->words, at)) == RUN;
        int64_t more = is_run ? value_of(AT(m->words, at)) : 0;
        if (word == AT(m->words, at - is_run) + (more + 1) * NEXT_RECORD) {
            AT(m->words, at + !is_run) = word_of(RUN, more + 1);
            S(WORDS) += !is_run;
            return;
        }
    }
    AT(m->words, S(WORDS)++) = word;
}

/* Append the values from `first` on to an object as a chunk, or to its last one if nothing is behind that. */
static void append_chunk(Machine *m, int64_t object, int64_t first) {
    int64_t last = AT(m->heads, object), count = S(VALUES) - first;
    if (last < 0 || last + 2 + AT(m->words, last + 1) != S(WORDS)) {
        AT(m->words, S(WORDS)) = last;
        AT(m->words, S(WORDS) + 1) = 0;
        last = S(WORDS);
        AT(m->heads, object) = (int32_t)last;
        S(WORDS) += 2;
    }
    int64_t begin = last + 2;
    for (int64_t n = 0; n < count; n++) append_word(m, begin, AT(m->values, first + n));
    AT(m->words, last + 1) = S(WORDS) - begin;
}

/* The object at a place of the stack, if it is of that kind and may change; NONE otherwise. */
static inline int64_t open_object(Machine *m, int64_t place, int64_t kind) {
    if (place < floor_of(m)) return fail(m, NO_VALUE);
    int64_t word = AT(m->values, place);
    if (kind_of(word) != kind) return fail(m, WRONG_KIND);
    return AT(m->facts, value_of(word)) & IS_INSIDE ? fail(m, CHANGED) : value_of(word);
}

static inline bool deepen(Machine *m, int64_t object, int64_t depth) {
    AT(m->facts, object) = (int16_t)((AT(m->facts, object) & ((1 << DEPTH_SHIFT) - 1)) | depth << DEPTH_SHIFT);
    return true;
}

/* Append the values from `first` on to the list before them. */
static bool append(Machine *m, int64_t first) {
    int64_t list = open_object(m, first - 1, LIST), depth;
    if (list < 0) return false;
    if ((depth = put_inside(m, first, AT(m->facts, list) >> DEPTH_SHIFT)) < 0) return false;
    if (AT(m->facts, list) & IS_INSIDE) return refuse(m, CHANGED);
    deepen(m, list, depth);
    bool are_frames = S(VALUES) > first && (AT(m->heads, list) < 0 || (AT(m->facts, list) & WHAT) == OF_STACK);
    for (int64_t n = first; are_frames && n < S(VALUES); n++) are_frames = is_frame_word(AT(m->values, n));
    if ((AT(m->facts, list) & WHAT) == OF_STACK) {
        S(ENDED_STACKS) += S(VALUES) - first;
    } else if (are_frames) {
        AT(m->heads, list) = (int32_t)stack_row(m, first, S(VALUES) - first);
        AT(m->facts, list) |= OF_STACK;
    } else if (S(VALUES) > first) {
        append_chunk(m, list, first);
    }
    S(VALUES) = first;
    return true;
}

/* The kind of record that has these keys, or NONE. */
static inline int64_t record_kind(const Machine *m, int64_t keys) {
    for (int64_t kind = 0; kind < m->required_size; kind++)
        if ((AT(m->required, kind) & ~keys) == 0) return kind;
    return NONE;
}

static void add_record(Machine *m, int64_t dict, int64_t kind, int64_t first) {
    int64_t *row = m->records + S(RECORDS) * m->width;
    CHECK((S(RECORDS) + 1) * m->width <= m->records_size);
    row[0] = kind;
    for (int64_t n = 1; n < m->width; n++) row[n] = word_of(MISSING, 0);
    for (int64_t n = first; n < S(VALUES); n += 2) {
        int64_t key = AT(m->values, n);
        if (kind_of(key) != TEXT || value_of(key) >= m->keys) continue;
        int64_t column = AT(m->columns, kind * m->keys + value_of(key));
        CHECK(column < m->width - 1);
        if (column >= 0) row[1 + column] = AT(m->values, n + 1);
    }
    int64_t number;
    if (kind == FRAME_KIND) {
        number = frame_row(m, row + 1);
    } else {
        number = S(RECORDS_OF + kind)++;
        S(RECORDS)++;
    }
    AT(m->heads, dict) = (int32_t)(number << RECORD_KIND_BITS | kind);
    AT(m->facts, dict) = (int16_t)((AT(m->facts, dict) & ~WHAT) | OF_RECORD);
}

/* Set the keys and values from `first` on in the dict before them. */
static bool set_items(Machine *m, int64_t first) {
    int64_t dict = open_object(m, first - 1, DICT), depth, keys = 0;
    if (dict < 0) return false;
    if ((S(VALUES) - first) % 2) return refuse(m, NO_VALUE);
    for (int64_t n = first; n < S(VALUES); n += 2) {
        int64_t key = AT(m->values, n);
        if (is_object(key) && kind_of(key) != TUPLE) return refuse(m, WRONG_KIND);
        if (kind_of(key) == TEXT && value_of(key) < m->keys) keys |= (int64_t)1 << value_of(key);
    }
    if ((depth = put_inside(m, first, AT(m->facts, dict) >> DEPTH_SHIFT)) < 0) return false;
    if (AT(m->facts, dict) & IS_INSIDE) return refuse(m, CHANGED);
    deepen(m, dict, depth);
    int64_t what = AT(m->facts, dict) & WHAT, kind = what == OF_DICT && AT(m->heads, dict) < 0 ? record_kind(m, keys) : NONE;
    if (what == OF_RECORD) return refuse(m, CHANGED);
    if (kind >= 0)
        add_record(m, dict, kind, first);
    else if (S(VALUES) > first)
        append_chunk(m, dict, first);
    S(VALUES) = first;
    return true;
}

/* The object of an equal tuple if the values from `first` on are two integers, or 0: events of one memory pool share its tuple.
`*slot` is where to remember a new one. */
static int64_t equal_pair(Machine *m, int64_t first, int64_t **slot) {
    const int64_t *pair = m->values + first;
    if (S(VALUES) - first != 2 || kind_of(pair[0]) != INTEGER || kind_of(pair[1]) != INTEGER) return 0;
    *slot = &S(PAIR_OBJECTS + (int64_t)(mix(mix(1, (uint64_t)pair[0], m->seed), (uint64_t)pair[1], m->seed) & (PAIRS - 1)));
    int64_t object = **slot, head = object ? AT(m->heads, object - 1) + 2 : 0;
    return object && AT(m->words, head) == pair[0] && AT(m->words, head + 1) == pair[1] ? object : 0;
}

static bool make_tuple(Machine *m, int64_t first) {
    if (first < 0) return refuse(m, NO_VALUE);
    int64_t *slot = 0, equal = equal_pair(m, first, &slot);
    if (equal) {
        S(VALUES) = first + 1;
        AT(m->values, first) = word_of(TUPLE, equal - 1);
        return true;
    }
    int64_t depth = put_inside(m, first, 1);
    if (depth < 0) return false;
    int64_t object = new_object(m, OF_LIST, depth);
    if (S(VALUES) > first) append_chunk(m, object, first);
    if (slot) *slot = object + 1;
    S(VALUES) = first + 1;
    AT(m->values, first) = word_of(TUPLE, object);
    return true;
}

/* What one of torch's functions returns: its first argument. */
static bool reduce(Machine *m) {
    int64_t top = S(VALUES) - 1;
    if (top < 1) return refuse(m, NO_VALUE);
    int64_t arguments = AT(m->values, top), head = kind_of(arguments) == TUPLE ? AT(m->heads, value_of(arguments)) : NONE;
    if (kind_of(AT(m->values, top - 1)) != FUNCTION) return refuse(m, REFUSED_OPCODE);
    if (head < 0) return refuse(m, WRONG_KIND);
    AT(m->values, top - 1) = AT(m->words, head + 2);
    S(VALUES) = top;
    return true;
}

/* ---- the memo ---- */

static int64_t *scattered_place(Machine *m, int64_t number) {
    int64_t i = (int64_t)(mix(1, (uint64_t)number, m->seed) & (SCATTERED - 1));
    while (AT(m->scattered, 2 * i) && AT(m->scattered, 2 * i) != number + 1) i = (i + 1) & (SCATTERED - 1);
    return &AT(m->scattered, 2 * i);
}

static bool remember(Machine *m, int64_t number) {
    if (!is_above_mark(m, 1)) return false;
    int64_t word = AT(m->values, S(VALUES) - 1);
    if (number < m->memo_size) {
        S(MEMO) += AT(m->memo, number) == MISSING && !(S(SCATTER) && scattered_place(m, number)[0]);
        bool is_small = word == (int32_t)word;
        if (!is_small) AT(m->wide, S(WIDES)) = word;
        AT(m->memo, number) = (int32_t)(is_small ? word : word_of(ELSEWHERE, S(WIDES)++));
        return true;
    }
    int64_t *place = scattered_place(m, number);
    if (!place[0] && ++S(SCATTER) > SCATTERED / 2) return refuse(m, TOO_MANY);
    place[0] = number + 1;
    place[1] = word;
    return true;
}

static int64_t recalled(Machine *m, int64_t number) {
    int64_t word = number < m->memo_size ? AT(m->memo, number) : MISSING;
    if (kind_of(word) == ELSEWHERE) return AT(m->wide, value_of(word));
    if (word == MISSING && S(SCATTER)) {
        int64_t *place = scattered_place(m, number);
        word = place[0] ? place[1] : MISSING;
    }
    return word == MISSING ? fail(m, NO_MEMO) : word;
}

/* ---- opcodes ---- */

static inline uint64_t little(Text b, int64_t i, int64_t bytes) {
    uint64_t value = 0;
    for (int64_t n = bytes - 1; n >= 0; n--) value = value << 8 | AT(b.at, i + n);
    return value;
}

static inline bool push(Machine *m, int64_t word) {
    if (word == NONE) return false;
    AT(m->values, S(VALUES)++) = word;
    return true;
}

static bool push_wide(Machine *m, int64_t kind, uint64_t bits) {
    AT(m->wide, S(WIDES)) = (int64_t)bits;
    return push(m, word_of(kind, S(WIDES)++));
}

/* A number in little endian, two's complement. */
static bool push_long(Machine *m, int64_t i, int64_t bytes) {
    if (bytes > 9 || (bytes == 9 && AT(m->b.at, i + 8))) return refuse(m, LONG_NUMBER);
    uint64_t value = little(m->b, i, smaller(bytes, 8));
    if (bytes == 9) return push_wide(m, UNSIGNED, value);
    if (bytes && bytes < 8 && AT(m->b.at, i + bytes - 1) > 127) value |= ~(uint64_t)0 << (8 * bytes);
    int64_t number = (int64_t)value;
    return number == value_of(word_of(INTEGER, number)) ? push(m, word_of(INTEGER, number)) : push_wide(m, SIGNED, value);
}

static inline bool push_text(Machine *m, int64_t i, int64_t size) { return push(m, word_of(TEXT, text_row(m, i, size))); }

static bool push_mark(Machine *m) {
    if (S(MARKS) >= DEEPEST) return refuse(m, TOO_DEEP);
    AT(m->state, MARK_PLACES + S(MARKS)++) = S(VALUES);
    return true;
}

/* The place of the last mark, which is removed; NONE if there is none. */
static inline int64_t pop_mark(Machine *m) {
    return S(MARKS) ? AT(m->state, MARK_PLACES + --S(MARKS)) : fail(m, NO_VALUE);
}

/* The line of a function that is known ends where this says; 0: more text is needed; NONE: it is another function. */
static int64_t function_end(Text b, int64_t i, int64_t end) {
    static const char *const known[] = {"build_intlist\n", "build_doublelist\n", "build_boollist\n", "build_tensorlist\n",
                                        "restore_type_tag\n"};
    static const char module[] = "torch.jit._pickle\n";
    for (int64_t which = 0; which < 5; which++) {
        int64_t n = 0, at = i;
        while (at < end && module[n] && AT(b.at, at) == (uint8_t)module[n]) n++, at++;
        if (at == end && module[n]) return 0;
        if (module[n]) return NONE;
        for (n = 0; at < end && known[which][n] && AT(b.at, at) == (uint8_t)known[which][n]; n++) at++;
        if (!known[which][n]) return at;
        if (at == end) return 0;
    }
    return NONE;
}

/* How many bytes an opcode has, with what follows it, of which a text is not a part; 0: unknown. */
static inline int64_t fixed_size(uint8_t opcode) {
    switch (opcode) {
    case '(': case '0': case '1': case '2': case 'N': case '.': case ']': case '}': case ')': case 'a': case 'e': case 's':
    case 'u': case 't': case 0x85: case 0x86: case 0x87: case 0x88: case 0x89: case 0x94: case 'R': case 'c': return 1;
    case 0x80: case 'K': case 'q': case 'h': case 0x8a: case 0x8c: return 2;
    case 'M': return 3;
    case 'J': case 'r': case 'j': case 'X': case 0x8b: return 5;
    case 'G': case 0x95: case 0x8d: return 9;
    default: return 0;
    }
}

/* The bytes of a text or number behind an opcode. */
static inline uint64_t payload_size(Text b, int64_t i, uint8_t opcode) {
    switch (opcode) {
    case 0x8a: case 0x8c: return AT(b.at, i + 1);
    case 'X': case 0x8b: return little(b, i + 1, 4);
    case 0x8d: return little(b, i + 1, 8);
    default: return 0;
    }
}

enum { SMALL = 3, SMALL_TEXT = 256 }; /* values and bytes that any opcode may add */

static inline int64_t room(int64_t used, int64_t size) { return smaller(size, MOST) - used; }

/* How many opcodes can run before an array is full, at most SMALL values and SMALL_TEXT bytes each. */
static int64_t credit(Machine *m) {
    int64_t least = smaller(room(S(VALUES), m->values_size), room(S(OBJECTS), smaller(m->facts_size, m->heads_size)));
    least = smaller(least, room(S(WORDS), m->words_size) / (SMALL + 2));
    least = smaller(least, smaller(room(S(WIDES), m->wide_size), room(S(MEMO), m->memo_size)));
    least = smaller(least, (smaller(m->text_bytes_size, MOST_TEXTS) - S(TEXT_BYTES)) / SMALL_TEXT);
    least = smaller(least, smaller(room(S(TEXTS), m->text_ends_size), m->text_slots_size / 2 - S(TEXTS) - 1));
    least = smaller(least, smaller(room(3 * S(FRAMES), m->frames_size) / 3, m->frame_slots_size / 2 - S(FRAMES) - 1));
    least = smaller(least, smaller(room(S(STACKS), m->stack_ends_size), m->stack_slots_size / 2 - S(STACKS) - 1));
    least = smaller(least, room(S(STACK_FRAMES), m->stack_frames_size) / SMALL);
    return m->width ? smaller(least, m->records_size / m->width - S(RECORDS)) : least;
}

/* Whether an opcode with that many values or bytes of text has room. */
static bool has_room(Machine *m, int64_t items, int64_t text) {
    S(NEEDED) = larger(items, text);
    return credit(m) > 0 && S(WORDS) + items + 2 <= m->words_size && S(STACK_FRAMES) + items <= m->stack_frames_size &&
           S(TEXT_BYTES) + text <= m->text_bytes_size;
}

/* Whether no array may grow any more for it. */
static bool is_full(Machine *m, int64_t items, int64_t text) {
    int64_t most = larger(larger(S(VALUES), S(OBJECTS)), larger(S(WORDS) + items + SMALL + 2, S(WIDES)));
    most = larger(larger(most, S(STACK_FRAMES) + items + SMALL), larger(S(MEMO), larger(S(TEXTS), 3 * S(FRAMES) + 3)));
    return most >= MOST || S(TEXT_BYTES) + text + SMALL_TEXT >= MOST_TEXTS;
}

static inline bool needs_mark(uint8_t opcode) { return opcode == 'e' || opcode == 'u' || opcode == 't'; }

static bool pop(Machine *m) {
    if (S(VALUES) > floor_of(m)) return S(VALUES)--, true;
    if (!S(MARKS)) return refuse(m, NO_VALUE);
    S(MARKS)--;
    return true;
}

/* Do what the opcode at i says; `size`: the bytes of its text or number. */
static inline bool act(Machine *m, int64_t i, uint8_t opcode, int64_t size) {
    Text b = m->b;
    int64_t mark;
    switch (opcode) {
    case 0x80: case 0x95: return true;
    case 'h': return push(m, recalled(m, AT(b.at, i + 1)));
    case 'j': return push(m, recalled(m, (int64_t)little(b, i + 1, 4)));
    case 'q': return remember(m, AT(b.at, i + 1));
    case 'r': return remember(m, (int64_t)little(b, i + 1, 4));
    case 0x94: return remember(m, S(MEMO) + S(SCATTER)); /* as many as the memo has */
    case '(': return push_mark(m);
    case 'K': return push(m, word_of(INTEGER, AT(b.at, i + 1)));
    case 'M': return push(m, word_of(INTEGER, (int64_t)little(b, i + 1, 2)));
    case 'J': return push(m, word_of(INTEGER, (int32_t)little(b, i + 1, 4)));
    case 0x8a: return push_long(m, i + 2, size);
    case 0x8b: return push_long(m, i + 5, size);
    case 'G': return push_wide(m, REAL, __builtin_bswap64(little(b, i + 1, 8)));
    case 0x8c: return push_text(m, i + 2, size);
    case 'X': return push_text(m, i + 5, size);
    case 0x8d: return push_text(m, i + 9, size);
    case 'N': return push(m, word_of(NOTHING, 0));
    case 0x88: return push(m, word_of(BOOLEAN, 1));
    case 0x89: return push(m, word_of(BOOLEAN, 0));
    case ']': return push(m, word_of(LIST, new_object(m, OF_LIST, 1)));
    case '}': return push(m, word_of(DICT, new_object(m, OF_DICT, 1)));
    case ')': return push(m, word_of(TUPLE, new_object(m, OF_LIST, 1)));
    case 'a': return is_above_mark(m, 2) && append(m, S(VALUES) - 1);
    case 's': return is_above_mark(m, 3) && set_items(m, S(VALUES) - 2);
    case 'e': return (mark = pop_mark(m)) >= 0 && append(m, mark);
    case 'u': return (mark = pop_mark(m)) >= 0 && set_items(m, mark);
    case 't': return (mark = pop_mark(m)) >= 0 && make_tuple(m, mark);
    case 0x85: case 0x86: case 0x87: return is_above_mark(m, opcode - 0x84) && make_tuple(m, S(VALUES) - (opcode - 0x84));
    case '0': return pop(m);
    case '1': return (mark = pop_mark(m)) >= 0 && (S(VALUES) = mark, true);
    case '2': return is_above_mark(m, 1) && push(m, AT(m->values, S(VALUES) - 1));
    case 'R': return is_above_mark(m, 2) && reduce(m);
    case 'c': return push(m, word_of(FUNCTION, 0));
    default: return refuse(m, REFUSED_OPCODE);
    }
}

/* Push what the memo has for BINGET and LONG_BINGET in a row, as stacks of frames are written, `most` of them at most; returns
where they end. */
static int64_t push_recalled(Machine *m, int64_t i, int64_t most) {
    Text b = m->b;
    int64_t count = S(VALUES), last = b.at_size - 5;
    for (; most > 0 && i <= last; most--) {
        bool is_long = AT(b.at, i) == 'j';
        if (!is_long && AT(b.at, i) != 'h') break;
        int64_t number = (int64_t)little(b, i + 1, 4) & (is_long ? UINT32_MAX : UINT8_MAX);
        int64_t word = number < m->memo_size ? AT(m->memo, number) : MISSING;
        if (word == MISSING || kind_of(word) == ELSEWHERE) break;
        AT(m->values, count++) = word;
        i += is_long ? 5 : 2;
    }
    S(VALUES) = count;
    return i;
}

/* Walk the opcodes from AT_BYTE on, as far as the block and the arrays reach. */
static void walk(Machine *m) {
    Text b = m->b;
    int64_t left = 0; /* opcodes that have room for sure */
    for (int64_t i = S(AT_BYTE);; S(AT_BYTE) = i) {
        if (i >= b.at_size) break;
        uint8_t opcode = AT(b.at, i);
        if ((opcode == 'h' || opcode == 'j') && left > 0) {
            int64_t first = S(VALUES), end = push_recalled(m, i, left);
            left -= S(VALUES) - first;
            if (end > i) {
                i = end;
                continue;
            }
        }
        int64_t length = fixed_size(opcode), items = 0;
        if (!length) return (void)fail(m, REFUSED_OPCODE);
        if (b.at_size - i < length) break;
        uint64_t size = payload_size(b, i, opcode);
        if (size > MOST_TEXT) return (void)fail(m, LONG_TEXT);
        if ((uint64_t)(b.at_size - i - length) < size) break;
        if (opcode == 'c') {
            int64_t end = function_end(b, i + 1, b.at_size);
            if (!end && b.at_size - i < LONGEST_FUNCTION) break;
            if (end <= 0) return (void)fail(m, REFUSED_FUNCTION);
            length = end - i;
        }
        if (needs_mark(opcode) && S(MARKS)) items = S(VALUES) - AT(m->state, MARK_PLACES + S(MARKS) - 1);
        int64_t takes = larger(items, 1) + (int64_t)size / SMALL_TEXT; /* as many opcodes take at least as much room */
        if (takes > left) {
            if (is_full(m, items, (int64_t)size)) return (void)fail(m, TOO_MANY);
            if (!has_room(m, items, (int64_t)size)) return (void)fail(m, ROOM);
            left = 0;
        }
        left -= takes;
        if (opcode == '.') return is_above_mark(m, 1) ? (void)(S(AT_BYTE) = i + 1, S(OUTCOME) = ENDED) : (void)0;
        if (!act(m, i, opcode, (int64_t)size)) return;
        i += length + (int64_t)size;
        if (left <= 0) left = credit(m);
    }
    S(OUTCOME) = MORE_TEXT;
}

/* Put what is still open into what holds it, after a text that ends too early. */
static void close_open(Machine *m) {
    while (S(VALUES) > 1 && S(OUTCOME) != ROOM) {
        int64_t first = S(MARKS) ? AT(m->state, MARK_PLACES + S(MARKS) - 1) : S(VALUES) - 1;
        if (!has_room(m, S(VALUES) - first, 0)) return (void)fail(m, ROOM);
        if (S(MARKS)) S(MARKS)--;
        int64_t kind = first ? kind_of(AT(m->values, first - 1)) : NONE;
        if (S(VALUES) - first > 2 && kind == DICT && (S(VALUES) - first) % 2) append(m, S(VALUES) - 1);
        if (kind == DICT) S(VALUES) -= (S(VALUES) - first) % 2;
        if (kind == TEXT && !S(MARKS) && first > 1 && S(VALUES) == first + 1) kind = kind_of(AT(m->values, --first - 1));
        bool is_closed = kind == LIST ? append(m, first) : kind == DICT && set_items(m, first);
        if (!is_closed) S(VALUES) = smaller(first, S(VALUES) - 1);
    }
}

/* Walk a block of a pickle, or with `is_over` close what is open; returns why it stopped.

`required`, `columns`: the known records; the first `keys` texts are their keys. The other arrays: see Machine. */
EXPORT int64_t walk_pickle(IN(uint8_t, block), int64_t is_over, int64_t keys, int64_t width, int64_t seed, IN(int64_t, required),
                           IN(int32_t, columns), OUT(int64_t, state), OUT(int64_t, values), OUT(int32_t, memo),
                           OUT(int64_t, scattered), OUT(int32_t, heads), OUT(int16_t, facts), OUT(int64_t, words),
                           OUT(int64_t, wide), OUT(uint8_t, text_bytes), OUT(int64_t, text_ends), OUT(int64_t, text_hashes),
                           OUT(int32_t, text_slots), OUT(int64_t, frames), OUT(int64_t, frame_hashes), OUT(int32_t, frame_slots),
                           OUT(int32_t, stack_frames), OUT(int64_t, stack_ends), OUT(int64_t, stack_hashes),
                           OUT(int32_t, stack_slots), OUT(int64_t, records)) {
    Machine machine = {
        {block, block_size}, state, state_size, values, values_size, memo, memo_size, scattered, scattered_size,
        heads, heads_size, facts, facts_size, words, words_size, wide, wide_size, text_bytes, text_bytes_size,
        text_ends, text_ends_size, text_hashes, text_hashes_size, text_slots, text_slots_size, frames, frames_size,
        frame_hashes, frame_hashes_size, frame_slots, frame_slots_size, stack_frames, stack_frames_size,
        stack_ends, stack_ends_size, stack_hashes, stack_hashes_size, stack_slots, stack_slots_size,
        records, records_size, required, required_size, columns, columns_size, keys, width, seed};
    CHECK(state_size >= STATE_SIZE);
    state[OUTCOME] = MORE_TEXT;
    if (is_over)
        close_open(&machine);
    else
        walk(&machine);
    return state[OUTCOME];
}

/* Fill the slots of a larger hash table. */
EXPORT int64_t fill_slots(IN(int64_t, hashes), OUT(int32_t, slots)) {
    for (int64_t row = 0; row < hashes_size; row++) {
        int64_t i = AT(hashes, row) & (slots_size - 1);
        while (AT(slots, i) >= 0) i = (i + 1) & (slots_size - 1);
        AT(slots, i) = (int32_t)row;
    }
    return hashes_size;
}

/* The words in an object's chunks, in order; returns how many. Without room for them nothing is written. */
EXPORT int64_t items_of(IN(int64_t, words), int64_t last, OUT(int64_t, items)) {
    int64_t count = 0;
    for (int64_t chunk = last; chunk >= 0; chunk = AT(words, chunk))
        for (int64_t at = chunk + 2; at < chunk + 2 + AT(words, chunk + 1); at++)
            count += kind_of(AT(words, at)) == RUN ? value_of(AT(words, at)) : 1;
    if (count > items_size) return count;
    int64_t n = count;
    for (int64_t chunk = last; chunk >= 0; chunk = AT(words, chunk))
        for (int64_t at = chunk + 1 + AT(words, chunk + 1); at >= chunk + 2; at--) {
            int64_t word = AT(words, at), more = kind_of(word) == RUN ? value_of(word) : 0;
            if (more) word = AT(words, --at);
            for (; more >= 0; more--) AT(items, --n) = word + more * NEXT_RECORD;
        }
    return count;
}

/* Set the owner of each record of a kind in an object's chunks; returns how many other items there are. */
EXPORT int64_t set_owner(IN(int64_t, words), int64_t last, int64_t kind, int64_t value, OUT(int32_t, owners)) {
    int64_t others = 0;
    for (int64_t chunk = last; chunk >= 0; chunk = AT(words, chunk))
        for (int64_t at = chunk + 1 + AT(words, chunk + 1); at >= chunk + 2; at--) {
            int64_t word = AT(words, at), more = kind_of(word) == RUN ? value_of(word) : 0;
            if (more) word = AT(words, --at);
            bool is_it = kind_of(word) == RECORD && kind_of(value_of(word)) == kind;
            if (!is_it) others += more + 1;
            for (int64_t n = 0; is_it && n <= more; n++) AT(owners, value_of(value_of(word)) + n) = (int32_t)value;
        }
    return others;
}
