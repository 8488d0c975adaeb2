/* Rows of SQLite's pages; filesystem/databases.py has the format, and a slow way for single rows. */
#include "text.h"

enum { ROWS_PAGE = 13, REAL = 7, ZERO = 8, ONE = 9, FIRST_BLOB = 12 };

typedef struct {
    uint64_t value;
    int64_t after; /* the index after it, or NONE */
} Varint;

/* Seven bits a byte, the most significant ones first; eight in the ninth. */
static Varint read_varint(Text b, int64_t i, int64_t end) {
    uint64_t value = 0;
    for (int64_t n = 0; n < 9 && i + n < end; n++) {
        uint8_t byte = AT(b.at, i + n);
        if (n == 8) return (Varint){value << 8 | byte, i + 9};
        value = value << 7 | (byte & 127);
        if (byte < 128) return (Varint){value, i + n + 1};
    }
    return (Varint){0, NONE};
}

static int64_t read_integer(Text b, int64_t i, int64_t bytes) {
    uint64_t value = bytes && AT(b.at, i) > 127 ? ~(uint64_t)0 : 0;
    for (int64_t n = 0; n < bytes; n++) value = value << 8 | AT(b.at, i + n);
    return (int64_t)value;
}

static int64_t stored_bytes(uint64_t kind) {
    static const int64_t of_numbers[FIRST_BLOB] = {0, 1, 2, 3, 4, 6, 8, 8};
    return kind < FIRST_BLOB ? of_numbers[kind] : (int64_t)((kind - FIRST_BLOB) / 2);
}

/* How much of a record is in its own page. */
static int64_t local_bytes(uint64_t size, int64_t usable) {
    int64_t most = usable - 35, least = (usable - 12) * 32 / 255 - 23;
    if (size <= (uint64_t)most) return (int64_t)size;
    int64_t local = least + (int64_t)((size - (uint64_t)least) % (uint64_t)(usable - 4));
    return local <= most ? local : least;
}

typedef struct {
    int64_t row, begin, end; /* its number; the part of its record in the page */
    bool is_whole;           /* whether that is all of it */
} Cell;

/* The cell at i of a page; `end` is NONE if it isn't inside of it. */
static Cell read_cell(Text b, int64_t i, int64_t page_end, int64_t usable) {
    Varint size = read_varint(b, i, page_end);
    Varint row = size.after < 0 ? size : read_varint(b, size.after, page_end);
    if (row.after < 0) return (Cell){0, 0, NONE, false};
    int64_t local = local_bytes(size.value, usable), end = row.after + local;
    bool is_whole = (uint64_t)local == size.value;
    if (end + (is_whole ? 0 : 4) > page_end) end = NONE;
    return (Cell){(int64_t)row.value, row.after, end, is_whole};
}

/* What is read of rows: a slot per column of the table, NONE for those that aren't; of each slot the serial types and the
values, a row of `room` numbers. The value of a text or blob is where it begins. */
typedef struct {
    const int64_t *slots;
    int64_t slots_size;
    int64_t *kinds, kinds_size, *values, values_size, room;
} Columns;

static int64_t number(Text b, int64_t i, uint64_t kind) {
    if (kind == ZERO || kind == ONE) return (int64_t)kind - ZERO;
    return kind >= FIRST_BLOB ? i : read_integer(b, i, stored_bytes(kind));
}

/* Read the columns of a row; returns 0, 1 if they reach into other pages, NONE if the record is broken. */
static int64_t read_record(Text b, Cell cell, const Columns *c, int64_t row) {
    const int64_t beyond = cell.is_whole ? NONE : 1;
    Varint head = read_varint(b, cell.begin, cell.end);
    if (head.after < 0 || head.value > (uint64_t)(cell.end - cell.begin)) return beyond;
    int64_t head_end = cell.begin + (int64_t)head.value, i = head.after, begin = head_end;
    for (int64_t column = 0; column < c->slots_size && i < head_end; column++) {
        Varint kind = read_varint(b, i, head_end);
        if (kind.after < 0) return NONE;
        int64_t size = stored_bytes(kind.value), slot = AT(c->slots, column);
        if (size > cell.end - begin) return beyond;
        if (slot >= 0) {
            AT(c->kinds, slot * c->room + row) = (int64_t)kind.value;
            AT(c->values, slot * c->room + row) = number(b, begin, kind.value);
        }
        i = kind.after;
        begin += size;
    }
    return 0;
}

/* Read the rows of one page into those from `row` on; returns the row after the last, and sets is_damaged if some can't
be read. Their records together have no more bytes than the page. */
static int64_t read_page(Text b, int64_t page, int64_t head, int64_t usable, const Columns *c, int64_t row,
                         OUT(int64_t, numbers), OUT(int64_t, places), OUT(uint8_t, is_spilled), uint8_t *is_damaged) {
    int64_t page_end = page + usable, left = usable, first = head + 8;
    int64_t count = (int64_t)AT(b.at, head + 3) << 8 | AT(b.at, head + 4);
    *is_damaged = AT(b.at, head) != ROWS_PAGE || first + 2 * count > page_end || count > c->room - row;
    for (int64_t n = 0; n < count && !*is_damaged; n++) {
        int64_t place = page + ((int64_t)AT(b.at, first + 2 * n) << 8 | AT(b.at, first + 2 * n + 1));
        Cell cell = read_cell(b, place, page_end, usable);
        left -= cell.end - cell.begin;
        int64_t result = cell.end < 0 || left < 0 ? NONE : read_record(b, cell, c, row);
        *is_damaged = result < 0;
        if (*is_damaged) break;
        AT(numbers, row) = cell.row;
        AT(places, row) = place;
        AT(is_spilled, row) = (uint8_t)result;
        row++;
    }
    return row;
}

/* Read the rows of pages, and return how many.

`heads`: where each page's own header begins in it. `slots`, `kinds`, `values`: see Columns; `kinds` is 0 before, which
is NULL. `places`: where each row begins. `is_spilled`: whether its columns reach into other pages, so that only those
before are read. `is_damaged`: whether a page has more rows than could be read. */
EXPORT int64_t read_rows(IN(uint8_t, pages), int64_t page_bytes, int64_t usable, IN(int64_t, heads), IN(int64_t, slots),
                         OUT(int64_t, numbers), OUT(int64_t, places), OUT(uint8_t, is_spilled), OUT(int64_t, kinds),
                         OUT(int64_t, values), OUT(uint8_t, is_damaged)) {
    const Text b = {pages, pages_size};
    const Columns columns = {slots, slots_size, kinds, kinds_size, values, values_size, numbers_size};
    int64_t row = 0;
    for (int64_t page = 0; page < heads_size; page++)
        row = read_page(b, page * page_bytes, page * page_bytes + AT(heads, page), usable, &columns, row, numbers,
                        numbers_size, places, places_size, is_spilled, is_spilled_size, &AT(is_damaged, page));
    return row;
}
