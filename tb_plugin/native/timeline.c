/* Lanes, levels and tiles of the timeline; timeline/ says what each function returns. */
#include "arrays.h"

enum { FINEST = 8, COARSEST = 50, BUCKETS = 512, SUB_BITS = 3 }; /* as in timeline/core/pyramid.py */

static inline void copy_leaves(int64_t *until, int64_t until_size, int64_t leaves) {
    for (int64_t node = 4 * leaves - 1; node >= 2 * leaves; node--)
        AT(until, node) = node < 3 * leaves ? AT(until, node - leaves) : INT64_MIN;
    for (int64_t node = 2 * leaves - 1; node > 0; node--)
        AT(until, node) = smaller(AT(until, 2 * node), AT(until, 2 * node + 1));
}

/* The first lane from `least` on that is free at that time, or -1. */
static int64_t first_free(const int64_t *until, int64_t until_size, int64_t leaves, int64_t least, int64_t at) {
    int64_t node = leaves + least;
    while (AT(until, node) > at) {
        while (node & 1) { /* the last of its parent's two: go up */
            node >>= 1;
            if (node <= 1) return -1;
        }
        node++;
        if ((node & (node - 1)) == 0) return -1; /* past the last of this height */
    }
    while (node < leaves) {
        node *= 2;
        if (AT(until, node) > at) node++;
    }
    return node - leaves;
}

/* Continues at `from` with `leaves` lanes, and returns the slice for which `until`, a tree of minima of twice as many
nodes, has no room; the number of slices if there is none. `leaves` is updated. */
EXPORT int64_t lanes(IN(int32_t, track), IN(int64_t, start), IN(int64_t, end), IN(int32_t, parent), int64_t from,
                     OUT(int64_t, leaves), OUT(int64_t, until), OUT(int32_t, lane)) {
    int64_t width = AT(leaves, 0);
    for (int64_t i = from; i < start_size; i++) {
        if (i == 0 || AT(track, i) != AT(track, i - 1))
            for (int64_t node = 0; node < 2 * width; node++) AT(until, node) = INT64_MIN;
        int64_t least = AT(parent, i) >= 0 ? AT(lane, AT(parent, i)) + 1 : 0, found = -1;
        while (found < 0) {
            if (least < width) found = first_free(until, until_size, width, least, AT(start, i));
            if (found >= 0) break;
            if (4 * width > until_size) { /* all lanes are occupied, and no more fit */
                AT(leaves, 0) = width;
                return i;
            }
            copy_leaves(until, until_size, width);
            width *= 2;
        }
        AT(lane, i) = (int32_t)found;
        AT(until, width + found) = AT(end, i);
        for (int64_t node = (width + found) >> 1; node > 0; node >>= 1)
            AT(until, node) = smaller(AT(until, 2 * node), AT(until, 2 * node + 1));
    }
    AT(leaves, 0) = width;
    return start_size;
}

/* A stable counting sort; `at` is a copy of where each row begins. */
EXPORT int64_t sort_by_row(IN(int64_t, row), OUT(int64_t, at), OUT(int32_t, place), OUT(int32_t, order)) {
    for (int64_t i = 0; i < row_size; i++) {
        int64_t next = AT(at, AT(row, i))++;
        AT(place, i) = (int32_t)next;
        AT(order, next) = (int32_t)i;
    }
    return 0;
}

/* In how many buckets of a level the sorted starts from `lo` up to `hi` lie. */
static int64_t count_buckets(const int64_t *start, int64_t start_size, int64_t lo, int64_t hi, int64_t level) {
    int64_t buckets = 1;
    for (int64_t i = lo + 1; i < hi; i++) buckets += AT(start, i) >> level != AT(start, i - 1) >> level;
    return buckets;
}

/* Writes the levels of each row; returns how many entries they have. `at_level` has a place more than `shift`. */
EXPORT int64_t build_levels(IN(int64_t, start), IN(int64_t, dur), IN(uint32_t, label), IN(int64_t, first),
                            OUT(int64_t, of_row), OUT(int64_t, shift), OUT(int64_t, at_level), OUT(uint32_t, place),
                            OUT(int64_t, starts), OUT(int64_t, durs), OUT(uint32_t, tops), OUT(uint32_t, count),
                            OUT(int64_t, busy)) {
    int64_t levels = 0, end = 0;
    AT(of_row, 0) = AT(at_level, 0) = 0;
    for (int64_t row = 0; row < first_size - 1; row++) {
        int64_t lo = AT(first, row), hi = AT(first, row + 1);
        bool is_base = true;
        for (int64_t level = FINEST; level <= COARSEST; level++) {
            if (hi - lo <= 4) break;
            int64_t buckets = is_base ? count_buckets(start, start_size, lo, hi, level)
                                      : count_buckets(starts, starts_size, lo, hi, level);
            if (2 * buckets > hi - lo) continue;
            int64_t at = end - 1, before = -1;
            for (int64_t i = lo; i < hi; i++) {
                int64_t begun = is_base ? AT(start, i) : AT(starts, i), lasts = is_base ? AT(dur, i) : AT(durs, i);
                if (begun >> level != before) {
                    before = begun >> level;
                    at++;
                    AT(durs, at) = -1;
                    AT(count, at) = 0;
                    AT(busy, at) = 0;
                }
                if (lasts > AT(durs, at)) {
                    AT(place, at) = is_base ? (uint32_t)i : AT(place, i);
                    AT(starts, at) = begun;
                    AT(durs, at) = lasts;
                }
                AT(count, at) += is_base ? 1 : AT(count, i);
                AT(busy, at) += is_base ? lasts : AT(busy, i);
            }
            AT(shift, levels) = level;
            AT(at_level, ++levels) = at + 1;
            lo = end;
            hi = end = at + 1;
            is_base = false;
        }
        AT(of_row, row + 1) = levels;
    }
    for (int64_t i = 0; i < end; i++) AT(tops, i) = AT(label, AT(place, i));
    return end;
}

/* The first place from `lo` up to `hi` whose start is at that time or later. */
static int64_t begun_before(const int64_t *start, int64_t start_size, int64_t lo, int64_t hi, int64_t at) {
    while (lo < hi) {
        int64_t middle = (lo + hi) / 2;
        if (AT(start, middle) < at)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

typedef struct {
    int32_t *x;
    uint32_t *width, *number, *labels, *count, *busy;
    int64_t x_size, size; /* all have the same room */
} Tile;

/* Write where a slice begins and how wide it is, in quanta from `begin` on. */
static void put_slice(Tile *tile, int64_t at, int64_t start, int64_t dur, int64_t begin, int64_t level) {
    int64_t quantum = larger(0, level - SUB_BITS), left = larger((start - begin) >> quantum, INT32_MIN);
    AT(tile->x, at) = (int32_t)left;
    tile->width[at] = (uint32_t)smaller(larger(((start + dur - begin) >> quantum) - left, 0), UINT32_MAX);
}

typedef struct {
    const int64_t *start, *dur;
    const uint32_t *place, *label, *count;
    const int64_t *busy;
    int64_t start_size;
} Entries; /* slices, or the entries of stored levels; `place`, `count` and `busy` are null for slices */

/* Write an entry per bucket of the entries from `lo` up to `hi`. */
static void gather_buckets(Tile *tile, const Entries *from, int64_t lo, int64_t hi, int64_t level, int64_t begin) {
    int64_t bucket = -1, longest = -1, total = -1;
    for (int64_t i = lo; i < hi; i++) {
        int64_t begun = AT(from->start, i), lasts = from->dur[i];
        if (begun >> level != bucket) {
            bucket = begun >> level;
            longest = -1;
            total = 0;
            CHECK(tile->size < tile->x_size);
            tile->count[tile->size++] = 0;
        }
        int64_t at = tile->size - 1;
        CHECK(at >= 0);
        tile->count[at] += from->count ? from->count[i] : 1;
        total = smaller(total + (from->busy ? from->busy[i] : lasts), INT64_C(1) << 62);
        tile->busy[at] = (uint32_t)smaller(total >> larger(0, level - SUB_BITS), UINT32_MAX);
        if (lasts > longest) {
            longest = lasts;
            put_slice(tile, at, begun, lasts, begin, level);
            tile->number[at] = from->place ? from->place[i] : (uint32_t)i;
            tile->labels[at] = from->label[i];
        }
    }
}

/* Write a tile's columns; returns how many entries it has. */
EXPORT int64_t fill_tile(IN(int64_t, start), IN(int64_t, dur), IN(uint32_t, label), IN(int64_t, first),
                         IN(int64_t, of_row), IN(int64_t, shift), IN(int64_t, level_first), IN(uint32_t, place),
                         IN(int64_t, starts), IN(int64_t, durs), IN(uint32_t, tops), IN(uint32_t, counts),
                         IN(int64_t, totals), int64_t first_row, int64_t last_row, int64_t level, int64_t begin,
                         OUT(uint32_t, offsets), OUT(int32_t, x), OUT(uint32_t, width), OUT(uint32_t, number),
                         OUT(uint32_t, labels), OUT(uint32_t, count), OUT(uint32_t, busy)) {
    Tile tile = {x, width, number, labels, count, busy, x_size, 0};
    const Entries slices = {start, dur, 0, label, 0, 0, start_size};
    const Entries stored = {starts, durs, place, tops, counts, totals, starts_size};
    int64_t end = begin + ((int64_t)BUCKETS << level);
    CHECK(dur_size == start_size && label_size == start_size);
    CHECK(durs_size == starts_size && place_size == starts_size && tops_size == starts_size);
    CHECK(counts_size == starts_size && totals_size == starts_size);
    CHECK(width_size == x_size && number_size == x_size && labels_size == x_size);
    CHECK(count_size == x_size && busy_size == x_size);
    for (int64_t row = first_row; row < last_row; row++) {
        AT(offsets, row - first_row) = (uint32_t)tile.size;
        int64_t lo = begun_before(start, start_size, AT(first, row), AT(first, row + 1), begin), hi, chosen = -1;
        if (lo > AT(first, row) && AT(start, lo - 1) + AT(dur, lo - 1) > begin) {
            put_slice(&tile, tile.size, AT(start, lo - 1), AT(dur, lo - 1), begin, level);
            AT(number, tile.size) = (uint32_t)(lo - 1);
            AT(labels, tile.size) = AT(label, lo - 1);
            AT(count, tile.size) = 1;
            AT(busy, tile.size) = AT(width, tile.size);
            tile.size++;
        }
        for (int64_t k = AT(of_row, row); k < AT(of_row, row + 1); k++)
            if (AT(shift, k) <= level) chosen = k;
        if (chosen < 0) {
            hi = begun_before(start, start_size, lo, AT(first, row + 1), end);
        } else {
            lo = begun_before(starts, starts_size, AT(level_first, chosen), AT(level_first, chosen + 1), begin);
            hi = begun_before(starts, starts_size, lo, AT(level_first, chosen + 1), end);
        }
        gather_buckets(&tile, chosen < 0 ? &slices : &stored, lo, hi, level, begin);
    }
    AT(offsets, last_row - first_row) = (uint32_t)tile.size;
    return tile.size;
}

/* Where the values that are no numbers begin: NaN is the one that differs from itself. */
static inline bool is_number(double value) { return value == value; }

/* Writes the least, the largest and the last value of each bucket, or three times the mean, from place `at` on. */
EXPORT int64_t fill_counter_tile(IN(int64_t, at), IN(float64_t, value), int64_t place, int64_t end, int64_t level,
                                 int64_t begin, int64_t is_mean, IN(float64_t, nan), OUT(float64_t, tile)) {
    double none = AT(nan, 0), current = place ? AT(value, place - 1) : none;
    for (int64_t bucket = 0; bucket < BUCKETS; bucket++) {
        int64_t edge = begin + (bucket << level), stop = edge + (INT64_C(1) << level);
        if (edge > end) break;
        bool changes_at_edge = place < at_size && AT(at, place) == edge;
        double least = changes_at_edge ? none : current, most = least, area = 0;
        int64_t since = edge, until = smaller(stop, larger(end, edge + 1)), covered = 0;
        for (; place < at_size && AT(at, place) < stop; place++) {
            if (is_number(current)) {
                area += current * (double)(AT(at, place) - since);
                covered += AT(at, place) - since;
            }
            since = AT(at, place);
            current = AT(value, place);
            if (is_number(current)) {
                if (!(least <= current)) least = current;
                if (!(most >= current)) most = current;
            }
        }
        if (is_mean) {
            if (is_number(current)) {
                area += current * (double)(until - since);
                covered += until - since;
            }
            least = most = covered > 0 ? area / (double)covered : current;
        }
        AT(tile, bucket) = least;
        AT(tile, BUCKETS + bucket) = most;
        AT(tile, 2 * BUCKETS + bucket) = is_mean ? least : current;
    }
    return 0;
}

/* `until`: as early as possible at first. */
EXPORT int64_t sum_by_group(IN(int64_t, order), IN(int64_t, start), IN(int64_t, end), IN(int64_t, group),
                            OUT(int64_t, until), OUT(int64_t, calls), OUT(int64_t, total), OUT(int64_t, united)) {
    for (int64_t k = 0; k < order_size; k++) {
        int64_t i = AT(order, k), of = AT(group, i), begin = larger(AT(start, i), AT(until, of));
        AT(calls, of)++;
        AT(total, of) += AT(end, i) - AT(start, i);
        if (AT(end, i) <= begin) continue;
        AT(united, of) += AT(end, i) - begin;
        AT(until, of) = AT(end, i);
    }
    return 0;
}

/* A sweep line over each thread or stream: an instant belongs to what is open on the highest layer, and there to what
began last. `stack`: what is open or has ended unnoticed, that on the highest layer last; `own`: 0 at first. */
EXPORT int64_t time_on_top(IN(int32_t, axis), IN(int64_t, start), IN(int64_t, end), IN(uint8_t, layer),
                           OUT(int32_t, stack), OUT(int64_t, own)) {
    int64_t top = 0, at = 0;
    for (int64_t i = 0; i <= axis_size; i++) {
        bool goes_on = i > 0 && i < axis_size && AT(axis, i) == AT(axis, i - 1);
        int64_t until = goes_on ? AT(start, i) : INT64_MAX;
        while (top && at < until) {
            int64_t last = AT(stack, top - 1), reached = smaller(AT(end, last), until);
            if (reached > at) {
                AT(own, last) += reached - at;
                at = reached;
            }
            if (AT(end, last) <= until) top--;
        }
        if (i == axis_size) break;
        at = AT(start, i);
        int64_t place = top++;
        for (; place && AT(layer, AT(stack, place - 1)) > AT(layer, i); place--)
            AT(stack, place) = AT(stack, place - 1);
        AT(stack, place) = (int32_t)i;
    }
    return 0;
}

/* What a stored entry of the timeline must be; engine/cache/timeline_entry.py. */
EXPORT int64_t are_offsets(IN(int64_t, first), int64_t size) {
    if (!first_size || AT(first, 0) != 0 || AT(first, first_size - 1) != size) return false;
    for (int64_t i = 1; i < first_size; i++)
        if (AT(first, i) < AT(first, i - 1)) return false;
    return true;
}

EXPORT int64_t begin_in_order(IN(int64_t, start), IN(int64_t, dur), IN(int64_t, first), int64_t begin, int64_t end) {
    for (int64_t row = 0; row < first_size - 1; row++) {
        int64_t before = begin;
        for (int64_t i = AT(first, row); i < AT(first, row + 1); i++) {
            if (AT(start, i) < before || AT(start, i) > end || AT(dur, i) < 0 || AT(dur, i) > end - AT(start, i))
                return false;
            before = AT(start, i);
        }
    }
    return true;
}

EXPORT int64_t are_parents_first(IN(int64_t, parent)) {
    for (int64_t i = 0; i < parent_size; i++)
        if (AT(parent, i) >= i) return false;
    return true;
}

EXPORT int64_t have_room(IN(int64_t, of_row), IN(int64_t, level_first), IN(int64_t, first)) {
    for (int64_t row = 0; row < of_row_size - 1; row++)
        for (int64_t level = AT(of_row, row); level < AT(of_row, row + 1); level++)
            if (AT(level_first, level + 1) - AT(level_first, level) > AT(first, row + 1) - AT(first, row)) return false;
    return true;
}
