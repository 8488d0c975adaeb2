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

EXPORT int64_t reach_of_group(IN(int64_t, end), IN(int64_t, rows), IN(int64_t, group), OUT(int64_t, reach),
                              OUT(int32_t, latest)) {
    for (int64_t i = 0; i < rows_size; i++) {
        bool goes_on = i && AT(group, i) == AT(group, i - 1) && AT(reach, i - 1) > AT(end, AT(rows, i));
        AT(reach, i) = goes_on ? AT(reach, i - 1) : AT(end, AT(rows, i));
        AT(latest, i) = goes_on ? AT(latest, i - 1) : (int32_t)AT(rows, i);
    }
    return 0;
}

/* `parents`: -1 at first. */
EXPORT int64_t gap_of_piece(IN(int64_t, group), IN(int64_t, begin), IN(int64_t, parent_group), IN(int64_t, parent_end),
                            int64_t until, OUT(int64_t, parents)) {
    int64_t at = 0;
    for (int64_t i = 0; i < begin_size; i++) {
        if (AT(begin, i) >= until) continue;
        while (AT(parent_group, at) < AT(group, i) || AT(parent_end, at) <= AT(begin, i)) at++;
        AT(parents, i) = at;
    }
    return 0;
}

EXPORT int64_t earliest_launch(IN(int64_t, start), IN(int64_t, launched), IN(int64_t, row_group),
                               IN(int64_t, gap_group), IN(int64_t, begin), OUT(int32_t, first)) {
    int64_t row = start_size - 1, group = NONE, least = NONE;
    for (int64_t gap = begin_size - 1; gap >= 0; gap--) {
        if (AT(gap_group, gap) != group) {
            group = AT(gap_group, gap);
            least = NONE;
            while (row >= 0 && AT(row_group, row) > group) row--;
        }
        for (; row >= 0 && AT(row_group, row) == group && AT(start, row) > AT(begin, gap); row--)
            if (AT(launched, row) >= 0 && (least < 0 || AT(launched, row) < AT(launched, least))) least = row;
        AT(first, gap) = (int32_t)least;
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
