/* Sweeps over events and gaps; measures/ and reader/ say what each function returns. */
#include "arrays.h"

/* Pairs allocations with their releases; `order` is changed where another thread's release comes too late. */
EXPORT int64_t pair_allocations(IN(int64_t, address), IN(int64_t, time), IN(int64_t, change), OUT(int64_t, order),
                                OUT(int64_t, other), OUT(uint8_t, is_reused)) {
    int64_t open_record = NONE;
    for (int64_t k = 0; k < order_size; k++) {
        int64_t record = AT(order, k);
        if (k && AT(address, record) != AT(address, AT(order, k - 1))) open_record = NONE;
        int64_t following = k + 1 < order_size ? AT(order, k + 1) : record;
        if (AT(change, record) > 0 && open_record >= 0 && AT(change, following) < 0 &&
            AT(address, following) == AT(address, record) && AT(time, following) == AT(time, record)) {
            AT(order, k) = following;
            AT(order, k + 1) = record;
            record = following;
        }
        if (AT(change, record) > 0) {
            if (open_record >= 0) {
                AT(other, open_record) = record;
                AT(is_reused, open_record) = true;
            }
            open_record = record;
        } else if (AT(change, record) < 0 && open_record >= 0) {
            AT(other, open_record) = record;
            AT(other, record) = open_record;
            open_record = NONE;
        }
    }
    return 0;
}

/* `order`: 0, 1, … at first. */
EXPORT int64_t chain_totals(IN(int64_t, time), IN(int64_t, thread), IN(int64_t, change), IN(int64_t, total),
                            int64_t look_ahead, OUT(int64_t, order)) {
    for (int64_t i = 1; i < time_size; i++) {
        int64_t left = AT(total, AT(order, i - 1));
        for (int64_t j = i; j < smaller(i + look_ahead, time_size); j++) {
            int64_t chosen = AT(order, j);
            if (AT(time, chosen) != AT(time, i)) break;
            bool is_next = true; /* of its thread */
            for (int64_t k = i; k < j; k++) is_next &= AT(thread, AT(order, k)) != AT(thread, chosen);
            if (is_next && AT(total, chosen) - AT(change, chosen) == left) {
                for (int64_t k = j; k > i; k--) AT(order, k) = AT(order, k - 1);
                AT(order, i) = chosen;
                break;
            }
        }
    }
    return 0;
}

/* Returns at how many instants the number changes. */
EXPORT int64_t queue_lengths(IN(int64_t, joins), IN(int64_t, leaves), OUT(int64_t, at), OUT(int64_t, length)) {
    int64_t joined = 0, left = 0, size = 0;
    while (left < leaves_size) { /* nothing leaves before it joined */
        int64_t now = AT(leaves, left);
        if (joined < joins_size) now = smaller(now, AT(joins, joined));
        while (joined < joins_size && AT(joins, joined) == now) joined++;
        while (left < leaves_size && AT(leaves, left) == now) left++;
        if (joined - left != (size ? AT(length, size - 1) : 0)) {
            AT(at, size) = now;
            AT(length, size) = joined - left;
            size++;
        }
    }
    return size;
}

/* Sets the durations of matched events; those of end events to 0. */
EXPORT int64_t close_ranges(IN(int64_t, order), IN(int64_t, thread), IN(int64_t, ts), IN(uint8_t, is_end),
                            OUT(int64_t, stack), OUT(int64_t, dur)) {
    int64_t depth = 0;
    for (int64_t i = 0; i < order_size; i++) {
        int64_t event = AT(order, i);
        if (i && AT(thread, event) != AT(thread, AT(order, i - 1))) depth = 0;
        if (!AT(is_end, event)) {
            AT(stack, depth++) = event;
        } else if (depth) {
            depth--;
            AT(dur, AT(stack, depth)) = AT(ts, event) - AT(ts, AT(stack, depth));
            AT(dur, event) = 0;
        }
    }
    return 0;
}

EXPORT int64_t spread(IN(int32_t, rows), IN(int64_t, values), IN(int8_t, frame_of), IN(int32_t, place), int64_t frame,
                      int64_t first_wins, OUT(int64_t, result)) {
    for (int64_t i = 0; i < rows_size; i++) {
        int64_t row = AT(rows, i);
        if (AT(frame_of, row) == frame && !(first_wins && AT(result, AT(place, row)) != NONE))
            AT(result, AT(place, row)) = AT(values, i);
    }
    return 0;
}

/* Writes as many pieces as there is room for; returns how many there are. */
EXPORT int64_t cut_at_spans(IN(int64_t, start), IN(int64_t, end), IN(int64_t, span_start), IN(int64_t, span_end),
                            OUT(int64_t, piece), OUT(int64_t, begins), OUT(int64_t, ends), OUT(int32_t, span)) {
    int64_t count = 0, begun = 0; /* spans that begin no later than the instant */
    for (int64_t i = 0; i < start_size; i++) {
        int64_t at = AT(start, i);
        if (at >= AT(end, i)) continue;
        for (begun = count_until(span_start, span_start_size, at, begun); at < AT(end, i); count++) {
            while (begun < span_start_size && AT(span_start, begun) <= at) begun++;
            bool is_inside = begun && at < AT(span_end, begun - 1);
            int64_t stop = is_inside ? smaller(AT(end, i), AT(span_end, begun - 1)) : AT(end, i);
            if (begun < span_start_size) stop = smaller(stop, AT(span_start, begun));
            if (count < piece_size) {
                AT(piece, count) = i;
                AT(begins, count) = at;
                AT(ends, count) = stop;
                AT(span, count) = is_inside ? (int32_t)(begun - 1) : NONE;
            }
            at = stop;
        }
    }
    return count;
}

/* The pieces of intervals that lie in none of the spans of a union. Returns how many there are, and writes those for which
   there is room. */
EXPORT int64_t subtract(IN(int64_t, start), IN(int64_t, end), IN(int64_t, span_start), IN(int64_t, span_end),
                        OUT(int64_t, begins), OUT(int64_t, ends)) {
    int64_t count = 0, begun = 0; /* spans that begin no later than the instant */
    for (int64_t i = 0; i < start_size; i++)
        for (int64_t at = AT(start, i), stop = at; at < AT(end, i); at = stop) {
            begun = count_until(span_start, span_start_size, at, begun);
            stop = begun < span_start_size ? smaller(AT(end, i), AT(span_start, begun)) : AT(end, i);
            if (begun && at < AT(span_end, begun - 1)) {
                stop = AT(span_end, begun - 1);
                continue;
            }
            if (count < begins_size) {
                AT(begins, count) = at;
                AT(ends, count) = stop;
            }
            count++;
        }
    return count;
}

/* A hash table with linear probing. `table`: -1 at first, its size is a power of two. Returns the number of distinct
   values; -1 if there is no room for them in `first`. */
EXPORT int64_t number_values(IN(int64_t, values), int64_t seed, OUT(int32_t, table), OUT(int64_t, first), OUT(int32_t, numbers)) {
    int64_t count = 0;
    for (int64_t i = 0; i < values_size; i++) {
        if (i && AT(values, i) == AT(values, i - 1)) {
            AT(numbers, i) = AT(numbers, i - 1);
            continue;
        }
        int64_t slot = (int64_t)mix(0, (uint64_t)AT(values, i), seed) & (table_size - 1);
        while (AT(table, slot) >= 0 && AT(values, AT(first, AT(table, slot))) != AT(values, i))
            slot = (slot + 1) & (table_size - 1);
        if (AT(table, slot) < 0) {
            if (count == first_size) return NONE;
            AT(first, count) = i;
            AT(table, slot) = (int32_t)count++;
        }
        AT(numbers, i) = AT(table, slot);
    }
    return count;
}

/* A trie of the sequences of codes of each call, up to each row; its node 0 is the empty sequence. `table`: -1 at first,
   its size is a power of two. Returns the number of nodes; -1 if there is no room for them in `parent`. */
EXPORT int64_t number_sequences(IN(int32_t, call), IN(int32_t, code), int64_t seed, OUT(int32_t, table), OUT(int32_t, parent),
                                OUT(int32_t, last), OUT(int32_t, sequence)) {
    int64_t count = 1;
    AT(parent, 0) = AT(last, 0) = NONE;
    for (int64_t i = 0; i < call_size; i++) {
        int64_t from = i && AT(call, i) == AT(call, i - 1) ? AT(sequence, i - 1) : 0, node;
        int64_t slot = (int64_t)mix((uint64_t)from << 32, (uint32_t)AT(code, i), seed) & (table_size - 1);
        while ((node = AT(table, slot)) >= 0 && (AT(parent, node) != from || AT(last, node) != AT(code, i)))
            slot = (slot + 1) & (table_size - 1);
        if (node < 0) {
            if (count == parent_size) return NONE;
            node = AT(table, slot) = (int32_t)count++;
            AT(parent, node) = (int32_t)from;
            AT(last, node) = AT(code, i);
        }
        AT(sequence, i) = (int32_t)node;
    }
    return count;
}

/* Sums pieces of the same gap and culprit, which come gap by gap. `latest`: -1 at first. Returns the number of rows. */
EXPORT int64_t sum_by_gap(IN(int32_t, gap), IN(int32_t, culprit), IN(int64_t, start), IN(int64_t, end),
                          OUT(int32_t, latest), OUT(int32_t, first), OUT(int64_t, total)) {
    int64_t count = 0;
    for (int64_t i = 0; i < gap_size; i++) {
        int64_t row = AT(latest, AT(culprit, i));
        if (row < 0 || AT(gap, AT(first, row)) != AT(gap, i)) {
            row = AT(latest, AT(culprit, i)) = (int32_t)count;
            AT(first, count) = (int32_t)i;
            AT(total, count++) = 0;
        }
        AT(total, row) += AT(end, i) - AT(start, i);
    }
    return count;
}

/* Sums the rows of sum_by_gap by culprit. `total`, `gaps`, `longest`: 0 at first; `largest`, the row of the longest:
   -1; `is_alike`: true at first; whether the same name follows all gaps. */
EXPORT int64_t sum_of_gaps(IN(int32_t, culprit), IN(int64_t, spent), IN(int64_t, name), OUT(int64_t, total),
                           OUT(int64_t, gaps), OUT(int64_t, longest), OUT(int64_t, largest), OUT(uint8_t, is_alike)) {
    for (int64_t row = 0; row < culprit_size; row++) {
        int64_t c = AT(culprit, row);
        if (AT(largest, c) >= 0 && AT(name, AT(largest, c)) != AT(name, row)) AT(is_alike, c) = false;
        AT(total, c) += AT(spent, row);
        AT(gaps, c)++;
        if (AT(spent, row) > AT(longest, c)) {
            AT(longest, c) = AT(spent, row);
            AT(largest, c) = row;
        }
    }
    return 0;
}

/* Sums the pieces within steps by culprit; those of a culprit come in the order of steps. `latest`: -1 at first. */
EXPORT int64_t sum_in_steps(IN(int32_t, culprit), IN(int32_t, step), IN(int64_t, start), IN(int64_t, end),
                            OUT(int32_t, latest), OUT(int64_t, total), OUT(int64_t, steps)) {
    for (int64_t i = 0; i < culprit_size; i++) {
        int64_t c = AT(culprit, i);
        if (AT(step, i) < 0) continue;
        AT(total, c) += AT(end, i) - AT(start, i);
        if (AT(step, i) != AT(latest, c)) AT(steps, c)++;
        AT(latest, c) = AT(step, i);
    }
    return 0;
}

/* Adds an interval, which starts no earlier than the last one, to a union of so many intervals; returns how many it has
   then. Empty intervals don't count. */
static int64_t extend_union(int64_t start, int64_t end, int64_t count, OUT(int64_t, starts), OUT(int64_t, ends)) {
    if (end <= start) return count;
    if (count && start <= AT(ends, count - 1)) {
        AT(ends, count - 1) = larger(AT(ends, count - 1), end);
        return count;
    }
    AT(starts, count) = start;
    AT(ends, count) = end;
    return count + 1;
}

/* The union of intervals; returns how many intervals it has, or -1 if they aren't sorted by start. */
EXPORT int64_t unite(IN(int64_t, start), IN(int64_t, end), OUT(int64_t, starts), OUT(int64_t, ends)) {
    int64_t count = 0;
    for (int64_t i = 0; i < start_size; i++) {
        if (i && AT(start, i) < AT(start, i - 1)) return NONE;
        count = extend_union(AT(start, i), AT(end, i), count, starts, starts_size, ends, ends_size);
    }
    return count;
}

/* Unions of those rows that are chosen, or of all if `chosen` is empty: one for each run of rows that are sorted by
   start. `first`: where each of them begins, and where the last one ends. Returns how many there are; -1 if there is no
   room for them in `first`. */
EXPORT int64_t unite_runs(IN(int64_t, start), IN(int64_t, dur), IN(uint8_t, chosen), OUT(int64_t, starts),
                          OUT(int64_t, ends), OUT(int64_t, first)) {
    int64_t runs = 0, begun = 0, size = 0, last = INT64_MIN;
    AT(first, 0) = 0;
    for (int64_t i = 0; i < start_size; i++) {
        if (chosen_size && !AT(chosen, i)) continue;
        if (AT(start, i) < last) {
            if (++runs + 1 == first_size) return NONE;
            begun += size;
            AT(first, runs) = begun;
            size = 0;
        }
        last = AT(start, i);
        size = extend_union(last, last + AT(dur, i), size, starts + begun, starts_size - begun, ends + begun,
                            ends_size - begun);
    }
    AT(first, runs + 1) = begun + size;
    return runs + 1;
}

/* The union of two sets of intervals, each sorted by start. */
EXPORT int64_t unite_two(IN(int64_t, start), IN(int64_t, end), IN(int64_t, other_start), IN(int64_t, other_end),
                         OUT(int64_t, starts), OUT(int64_t, ends)) {
    int64_t count = 0, i = 0, j = 0;
    while (i < start_size || j < other_start_size) {
        if (j == other_start_size || (i < start_size && AT(start, i) <= AT(other_start, j))) {
            if (i && AT(start, i) < AT(start, i - 1)) return NONE;
            count = extend_union(AT(start, i), AT(end, i), count, starts, starts_size, ends, ends_size);
            i++;
        } else {
            if (j && AT(other_start, j) < AT(other_start, j - 1)) return NONE;
            count = extend_union(AT(other_start, j), AT(other_end, j), count, starts, starts_size, ends, ends_size);
            j++;
        }
    }
    return count;
}

static void add_up_union(IN(int64_t, start), IN(int64_t, end), OUT(int64_t, before)) {
    AT(before, 0) = 0;
    for (int64_t i = 0; i < start_size; i++) AT(before, i + 1) = AT(before, i) + AT(end, i) - AT(start, i);
}

/* `before`: room for the length of the union before each of its intervals, and at the end. */
EXPORT int64_t length_before(IN(int64_t, start), IN(int64_t, end), IN(int64_t, at), OUT(int64_t, before),
                             OUT(int64_t, length)) {
    int64_t begun = 0;
    add_up_union(start, start_size, end, end_size, before, before_size);
    for (int64_t i = 0; i < at_size; i++)
        AT(length, i) = union_before(start, start_size, end, end_size, before, before_size, AT(at, i), &begun);
    return 0;
}

/* How much of the union lies in each window. */
EXPORT int64_t length_within(IN(int64_t, start), IN(int64_t, end), IN(int64_t, from), IN(int64_t, until),
                             OUT(int64_t, before), OUT(int64_t, length)) {
    int64_t begun = 0, over = 0;
    add_up_union(start, start_size, end, end_size, before, before_size);
    for (int64_t i = 0; i < from_size; i++) {
        int64_t least = union_before(start, start_size, end, end_size, before, before_size, AT(from, i), &begun);
        AT(length, i) = union_before(start, start_size, end, end_size, before, before_size, AT(until, i), &over) - least;
    }
    return 0;
}

/* How long each of some unions is the first that covers an instant, by windows that come in order and don't overlap.
   `first`: where the intervals of each union begin, and the end of them; `group`: that of each window; or empty, if each
   is one by itself; `at`: room for a place in each; `lengths`: by union, then by group of windows; those of the last are
   the rest. */
EXPORT int64_t exclusive_lengths(IN(int64_t, start), IN(int64_t, end), IN(int64_t, first), IN(int64_t, from),
                                 IN(int64_t, until), IN(int32_t, group), OUT(int64_t, at), OUT(int64_t, lengths)) {
    int64_t unions = first_size - 1, windows = from_size, groups = lengths_size / first_size;
    for (int64_t u = 0; u < unions; u++) AT(at, u) = AT(first, u);
    for (int64_t w = 0; w < windows; w++) {
        for (int64_t now = AT(from, w), next; now < AT(until, w); now = next) {
            int64_t covering = 0;
            next = AT(until, w);
            for (; covering < unions; covering++) {
                int64_t i = AT(at, covering), stop = AT(first, covering + 1);
                while (i < stop && AT(end, i) <= now) i++;
                AT(at, covering) = i;
                if (i == stop) continue;
                if (AT(start, i) <= now) {
                    next = smaller(next, AT(end, i));
                    break;
                }
                next = smaller(next, AT(start, i));
            }
            AT(lengths, covering * groups + (group_size ? AT(group, w) : w)) += next - now;
        }
    }
    return 0;
}

/* The integral of min(sum of the heights of open intervals, cap) up to each of some instants, from the first one on.
   `by_start`, `by_end`: the intervals in order of both; `cap`: one number. */
EXPORT int64_t capped_integrals(IN(int64_t, start), IN(int64_t, end), IN(float64_t, height), IN(int64_t, by_start),
                                IN(int64_t, by_end), IN(float64_t, cap), IN(int64_t, at), OUT(float64_t, integral)) {
    double level = 0, sum = 0;
    int64_t last = INT64_MIN;
    for (int64_t i = 0, j = 0, k = 0; k < at_size;) {
        int64_t begins = i < by_start_size ? AT(start, AT(by_start, i)) : INT64_MAX;
        int64_t ends = j < by_end_size ? AT(end, AT(by_end, j)) : INT64_MAX;
        int64_t now = smaller(smaller(begins, ends), AT(at, k));
        double capped = level < 0 ? 0 : level > AT(cap, 0) ? AT(cap, 0) : level;
        if (last > INT64_MIN) sum += capped * (double)(now - last);
        last = now;
        if (begins == now && i < by_start_size)
            level += AT(height, AT(by_start, i++));
        else if (ends == now && j < by_end_size)
            level -= AT(height, AT(by_end, j++));
        else
            AT(integral, k++) = sum;
    }
    return 0;
}

EXPORT int64_t scatter_add(IN(int32_t, place), IN(int64_t, value), OUT(int64_t, total)) {
    for (int64_t i = 0; i < place_size; i++)
        if (AT(place, i) >= 0) AT(total, AT(place, i)) += AT(value, i);
    return 0;
}

/* How often the number of each row came before; `count`: 0 at first, by number. */
EXPORT int64_t occurrences(IN(int32_t, number), OUT(int32_t, count), OUT(int32_t, occurrence)) {
    for (int64_t i = 0; i < number_size; i++) AT(occurrence, i) = AT(count, AT(number, i))++;
    return 0;
}

/* How long each row overlaps its neighbors: those before it, and the next one. `rows`: in order of their start. */
EXPORT int64_t overlaps_of_neighbors(IN(int64_t, start), IN(int64_t, dur), IN(int32_t, rows), OUT(int64_t, overlap)) {
    int64_t reach = INT64_MIN;
    for (int64_t i = 0; i < rows_size; i++) {
        int64_t row = AT(rows, i), end = AT(start, row) + AT(dur, row), sum = 0;
        if (i) sum += larger(reach - AT(start, row), 0);
        if (i + 1 < rows_size) sum += larger(end - AT(start, AT(rows, i + 1)), 0);
        AT(overlap, row) = sum;
        reach = larger(reach, end);
    }
    return 0;
}

/* Item `i` of unsigned codes of `width` bytes each: 1, 2 or 4. */
static inline int64_t code_at(IN(uint8_t, codes), int64_t width, int64_t i) {
    if (width == 1) return AT(codes, i);
    int64_t at = width * i;
    int64_t code = AT(codes, at) | AT(codes, at + 1) << 8;
    return width == 2 ? code : code | (int64_t)AT(codes, at + 2) << 16 | (int64_t)AT(codes, at + 3) << 24;
}

static inline void mark(IN(uint8_t, codes), int64_t width, OUT(uint8_t, occurs)) {
    for (int64_t i = 0; i < codes_size / width; i++) AT(occurs, code_at(codes, codes_size, width, i)) = 1;
}

static inline void look_up(IN(uint8_t, codes), int64_t width, IN(uint8_t, answer), OUT(uint8_t, rows)) {
    for (int64_t i = 0; i < codes_size / width; i++) AT(rows, i) = AT(answer, code_at(codes, codes_size, width, i));
}

/* Which codes occur. */
EXPORT int64_t mark_codes(IN(uint8_t, codes), int64_t width, OUT(uint8_t, occurs)) {
    if (width == 1)
        mark(codes, codes_size, 1, occurs, occurs_size);
    else if (width == 2)
        mark(codes, codes_size, 2, occurs, occurs_size);
    else
        mark(codes, codes_size, 4, occurs, occurs_size);
    return 0;
}

/* The answer for the code of each row. */
EXPORT int64_t answers_of_codes(IN(uint8_t, codes), int64_t width, IN(uint8_t, answer), OUT(uint8_t, rows)) {
    if (width == 1)
        look_up(codes, codes_size, 1, answer, answer_size, rows, rows_size);
    else if (width == 2)
        look_up(codes, codes_size, 2, answer, answer_size, rows, rows_size);
    else
        look_up(codes, codes_size, 4, answer, answer_size, rows, rows_size);
    return 0;
}

/* Values of `width` bytes each at some rows, or `missing` at NONE. */
static inline __attribute__((always_inline)) int64_t gather_of(IN(uint8_t, values), int64_t width, IN(int32_t, rows),
                                                               IN(uint8_t, missing), OUT(uint8_t, gathered)) {
    int64_t size = values_size / width;
    CHECK(missing_size == width && gathered_size == rows_size * width);
    for (int64_t i = 0; i < rows_size; i++) {
        int64_t row = AT(rows, i);
        if (row >= size) return NONE;
        __builtin_memcpy(gathered + i * width, row < 0 ? missing : values + row * width, width);
    }
    return rows_size;
}

/* How many rows there are; NONE: there is no value for one of them. */
EXPORT int64_t gather_values(IN(uint8_t, values), int64_t width, IN(int32_t, rows), IN(uint8_t, missing),
                             OUT(uint8_t, gathered)) {
    if (width == 1)
        return gather_of(values, values_size, 1, rows, rows_size, missing, missing_size, gathered, gathered_size);
    if (width == 2)
        return gather_of(values, values_size, 2, rows, rows_size, missing, missing_size, gathered, gathered_size);
    if (width == 4)
        return gather_of(values, values_size, 4, rows, rows_size, missing, missing_size, gathered, gathered_size);
    return gather_of(values, values_size, 8, rows, rows_size, missing, missing_size, gathered, gathered_size);
}
