/* The graph of what waited for what; the modules of critical_path/ say what each function returns. */
#include "arrays.h"

static const int64_t NEVER = INT64_MIN / 2;

/* `above`: a stack of ranges that are or were open, the outermost first. */
EXPORT int64_t merge_boundaries(IN(int32_t, order), IN(int32_t, ends), IN(int32_t, thread), IN(int64_t, start),
                                IN(int64_t, end), OUT(uint8_t, is_open), OUT(int32_t, above), OUT(int64_t, time),
                                OUT(int32_t, on), OUT(int32_t, inner), OUT(int32_t, begins), OUT(int32_t, stops)) {
    int64_t n = order_size, top = 0, i = 0, j = 0;
    for (int64_t k = 0; k < 2 * n; k++) {
        bool is_end = i == n;
        if (!is_end) {
            int64_t a = AT(order, i), b = AT(ends, j);
            is_end = AT(thread, a) != AT(thread, b)
                         ? AT(thread, b) < AT(thread, a)
                         : AT(end, b) < AT(start, a) || (AT(end, b) == AT(start, a) && AT(start, b) < AT(end, b));
        }
        int64_t r = is_end ? AT(ends, j++) : AT(order, i++);
        AT(time, k) = is_end ? AT(end, r) : AT(start, r);
        AT(is_open, r) = !is_end;
        if (is_end) {
            AT(stops, r) = (int32_t)k;
        } else {
            AT(begins, r) = (int32_t)k;
            AT(above, top++) = (int32_t)r;
        }
        while (top && !AT(is_open, AT(above, top - 1))) top--;
        AT(on, k) = (int32_t)AT(thread, r);
        AT(inner, k) = top ? AT(above, top - 1) : NONE;
    }
    return 0;
}

/* The latest end of each node's edges of some kinds (bits), for nodes from `low` on; `reached`: NEVER at first. */
EXPORT int64_t latest_arrivals(IN(int32_t, predecessor), IN(int32_t, successor), IN(int8_t, kind), IN(int64_t, lag),
                               IN(int64_t, time), int64_t kinds, int64_t low, OUT(int64_t, reached)) {
    for (int64_t e = 0; e < successor_size; e++) {
        int64_t v = AT(successor, e) - low;
        if (v < 0 || v >= reached_size || !(kinds >> AT(kind, e) & 1)) continue;
        int64_t at = AT(time, AT(predecessor, e)) + (lag_size ? AT(lag, e) : 0);
        AT(reached, v) = larger(AT(reached, v), at);
    }
    return 0;
}

/* Counting sort by successor: compressed sparse rows. `first`: 0 at first. */
EXPORT int64_t group_edges(IN(int32_t, predecessor), IN(int32_t, successor), IN(int64_t, lag), IN(int8_t, kind),
                           OUT(int32_t, first), OUT(int32_t, from), OUT(int64_t, lags), OUT(int8_t, kinds)) {
    for (int64_t e = 0; e < successor_size; e++) AT(first, AT(successor, e) + 1)++;
    for (int64_t v = 1; v < first_size; v++) AT(first, v) += AT(first, v - 1);
    for (int64_t e = 0; e < successor_size; e++) {
        int64_t place = AT(first, AT(successor, e))++;
        AT(from, place) = AT(predecessor, e);
        AT(lags, place) = AT(lag, e);
        AT(kinds, place) = AT(kind, e);
    }
    for (int64_t v = first_size - 1; v > 0; v--) AT(first, v) = AT(first, v - 1);
    AT(first, 0) = 0;
    return 0;
}

/* Also writes the delay of each node after all its predecessors. */
EXPORT int64_t driving_edges(IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, lag), IN(int64_t, time),
                             OUT(int32_t, edges), OUT(int64_t, own)) {
    for (int64_t v = 0; v < time_size; v++) {
        int64_t best = NONE;
        for (int64_t e = AT(first, v); e < AT(first, v + 1); e++) {
            if (best >= 0) {
                int64_t at = AT(time, AT(predecessor, e)), best_at = AT(time, AT(predecessor, best));
                int64_t ahead = at + AT(lag, e) - best_at - AT(lag, best);
                if (ahead < 0 || (ahead == 0 && at <= best_at)) continue;
            }
            best = e;
        }
        AT(edges, v) = (int32_t)best;
        AT(own, v) = best >= 0 ? AT(time, v) - AT(time, AT(predecessor, best)) - AT(lag, best) : 0;
    }
    return 0;
}

static int64_t share_of(int64_t length, int64_t percent) { /* of any length without overflow */
    return length / 100 * percent + length % 100 * percent / 100;
}

/* By how much the ends of steps come earlier in some variants, in each of which the delays of its own nodes are shorter
   by their percents. A node comes earlier by the least that its predecessors do plus the slack of that edge.

   `place`: of each node in `order`; `window`: where in `order` each step begins, and the end; `earlier`: room for
   `variants` values of each node of the longest step. */
EXPORT int64_t simulate_steps(IN(int32_t, order), IN(int32_t, place), IN(int32_t, first), IN(int32_t, predecessor),
                              IN(int64_t, lag), IN(int64_t, time), IN(int64_t, own), IN(int8_t, part),
                              IN(int8_t, lag_part), IN(int8_t, variant), IN(uint8_t, percent), IN(int64_t, window),
                              int64_t first_variant, int64_t variants, int64_t first_end, OUT(int64_t, earlier),
                              OUT(int64_t, saved)) {
    for (int64_t s = 0; s + 1 < window_size; s++) {
        int64_t low = AT(window, s), high = AT(window, s + 1);
        CHECK((high - low) * variants <= earlier_size);
        for (int64_t k = low; k < high; k++) {
            int64_t v = AT(order, k), begin = AT(first, v), end = AT(first, v + 1), chosen = AT(variant, v) - first_variant;
            int64_t *now = earlier + (k - low) * variants, share = AT(percent, v), least = INT64_MAX;
            bool is_chosen = chosen >= 0 && chosen < variants && share && begin < end;
            for (int64_t j = 0; j < variants; j++) now[j] = 0;
            for (int64_t e = begin; e < end; e++) {
                int64_t u = AT(predecessor, e), slack = AT(time, v) - AT(own, v) - AT(time, u) - AT(lag, e);
                const int64_t *before = AT(place, u) < low ? 0 : earlier + (AT(place, u) - low) * variants;
                if (is_chosen) {
                    int64_t shorter = AT(lag_part, e) == AT(part, v) ? share_of(AT(lag, e), share) : 0;
                    least = smaller(least, slack + shorter + (before ? before[chosen] : 0));
                }
                for (int64_t j = 0; j < variants; j++) {
                    int64_t reached = before ? slack + before[j] : slack;
                    now[j] = e == begin ? reached : smaller(now[j], reached);
                }
            }
            if (is_chosen) now[chosen] = least + share_of(AT(own, v), share);
            int64_t step = v - first_end;
            if (step >= 0 && (step + 1) * variants <= saved_size)
                for (int64_t j = 0; j < variants; j++) AT(saved, step * variants + j) = now[j];
        }
    }
    return 0;
}

/* Writes as many segments as there is room for; returns how many there are. */
EXPORT int64_t walk_back(IN(int32_t, driving_edge), IN(int32_t, predecessor), IN(int64_t, time), IN(int64_t, target),
                         IN(int64_t, start), IN(int64_t, end), OUT(int64_t, node), OUT(int64_t, edge),
                         OUT(int64_t, begin), OUT(int64_t, step)) {
    int64_t count = 0;
    for (int64_t s = start_size - 1; s >= 0; s--) {
        int64_t v = AT(target, s), at = AT(end, s);
        while (at > AT(start, s)) {
            int64_t e = AT(driving_edge, v), u = e >= 0 ? AT(predecessor, e) : NONE;
            int64_t reached = u >= 0 ? larger(AT(time, u), AT(start, s)) : AT(start, s);
            if (reached < at) {
                if (count < node_size) {
                    AT(node, count) = v;
                    AT(edge, count) = e;
                    AT(begin, count) = reached;
                    AT(step, count) = s;
                }
                count++;
                at = reached;
            }
            v = u;
        }
    }
    return count;
}

/* The events of the segment before each node; `in_call` and `of_launch`: the kinds (bits) of waits in calls, and of rows
   that wait for their launch. Ranges up to `hosts` are host events, the others calls. */
EXPORT int64_t segment_events(IN(int32_t, node), IN(int8_t, kind), IN(int32_t, inner), IN(int32_t, thread),
                              IN(int64_t, holding_row), IN(int32_t, row_launch), IN(int32_t, call_host),
                              IN(int32_t, call_thread), int64_t hosts, int64_t in_call, int64_t of_launch,
                              OUT(int32_t, host_event), OUT(int32_t, launch), OUT(int32_t, device_event),
                              OUT(int32_t, on)) {
    int64_t rows = row_launch_size;
    for (int64_t i = 0; i < node_size; i++) {
        int64_t v = AT(node, i), range = v < inner_size ? AT(inner, v) : NONE, row = v - inner_size;
        bool is_start = row >= 0 && row < rows, is_row = row >= 0 && row < 2 * rows;
        bool is_in_call = in_call >> AT(kind, i) & 1;
        if (is_row && !is_start) row -= rows;
        int64_t call = is_row && (of_launch >> AT(kind, i) & 1) ? AT(row_launch, row) : NONE;
        if (range >= hosts) call = range - hosts;
        bool is_held = is_start && AT(holding_row, row) >= 0;
        AT(launch, i) = (int32_t)call;
        AT(host_event, i) = (int32_t)(range >= 0 && range < hosts ? range : call >= 0 ? AT(call_host, call) : NONE);
        AT(device_event, i) = (int32_t)(is_in_call || !is_row ? NONE : is_held ? AT(holding_row, row) : row);
        AT(on, i) = is_in_call ? (call >= 0 ? AT(call_thread, call) : NONE) : v < inner_size ? AT(thread, v) : NONE;
    }
    return 0;
}

/* Radix sort by 16 bits at a time, stable; `order` is the order before and after. `count`: room for 65,536. */
EXPORT int64_t sort_by_time(IN(int64_t, time), OUT(int32_t, order), OUT(int32_t, other), OUT(int64_t, count)) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t i = 0; i < time_size; i++) {
        least = smaller(least, AT(time, i));
        most = larger(most, AT(time, i));
    }
    int32_t *from = order, *to = other;
    for (int64_t shift = 0; time_size && shift < 64 && ((uint64_t)most - (uint64_t)least) >> shift; shift += 16) {
        for (int64_t digit = 0; digit < count_size; digit++) AT(count, digit) = 0;
        for (int64_t i = 0; i < time_size; i++) AT(count, ((uint64_t)AT(time, i) - (uint64_t)least) >> shift & 0xFFFF)++;
        for (int64_t digit = 0, sum = 0; digit < count_size; digit++) {
            sum += AT(count, digit);
            AT(count, digit) = sum - AT(count, digit);
        }
        for (int64_t i = 0; i < time_size; i++) {
            uint64_t key = ((uint64_t)AT(time, from[i]) - (uint64_t)least) >> shift & 0xFFFF;
            to[AT(count, key)++] = from[i];
        }
        int32_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != order)
        for (int64_t i = 0; i < time_size; i++) AT(order, i) = from[i];
    return 0;
}

/* Store a path from a source if it arrives later than the stored one, or than the earliest of all slots. */
static void store_path(int32_t *since, int64_t *over, int32_t *parent, int64_t slots, int64_t source, int64_t at,
                       int64_t way) {
    int64_t place = 0;
    for (int64_t j = 0; j < slots; j++) {
        if (over[j] > NEVER && since[j] == source) {
            place = j;
            break;
        }
        if (over[j] < over[place]) place = j;
    }
    if (at > over[place]) {
        since[place] = (int32_t)source;
        over[place] = at;
        parent[place] = (int32_t)way;
    }
}

EXPORT int64_t longest_paths(IN(int32_t, order), IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, lag),
                             IN(int64_t, time), IN(int64_t, own), IN(int32_t, driving_edge), IN(int64_t, window),
                             IN(int64_t, begin), IN(int64_t, ended_by), int64_t most, OUT(int32_t, since),
                             OUT(int64_t, over), OUT(int32_t, parent)) {
    for (int64_t k = 0; k < order_size; k++) {
        int64_t v = AT(order, k), w = AT(window, v);
        if (w < 0) continue;
        int32_t *sources = &AT(since, v * most), *ways = &AT(parent, v * most);
        int64_t *arrivals = &AT(over, v * most);
        CHECK((v + 1) * most <= since_size && (v + 1) * most <= over_size && (v + 1) * most <= parent_size);
        if (AT(ended_by, v) >= 0) {
            sources[0] = (int32_t)AT(ended_by, v);
            arrivals[0] = AT(time, v);
            continue;
        }
        if (AT(driving_edge, v) < 0) arrivals[0] = AT(time, v);
        for (int64_t i = AT(first, v); i <= AT(first, v + 1); i++) { /* the driving edge comes first, so it wins a tie */
            int64_t e = i == AT(first, v) ? AT(driving_edge, v) : i - 1;
            if (e < 0) break;
            int64_t u = AT(predecessor, e), took = AT(lag, e) + AT(own, v);
            if (AT(window, u) != w) {
                if (AT(time, u) + took > AT(begin, w))
                    store_path(sources, arrivals, ways, most, NONE, AT(time, u) + took, NONE);
                continue;
            }
            for (int64_t j = u * most; j < (u + 1) * most; j++)
                if (AT(over, j) > NEVER)
                    store_path(sources, arrivals, ways, most, AT(since, j), AT(over, j) + took, j);
        }
    }
    return 0;
}

/* Marks the paths that lead to those in `way`, and returns how many there are. */
EXPORT int64_t mark_ancestors(IN(int32_t, order), IN(int64_t, way), IN(int32_t, parent), int64_t most,
                              OUT(uint8_t, is_reachable)) {
    int64_t count = 0;
    for (int64_t k = 0; k < way_size; k++) AT(is_reachable, AT(way, k)) = true;
    for (int64_t k = order_size - 1; k >= 0; k--)
        for (int64_t i = AT(order, k) * most; i < (AT(order, k) + 1) * most; i++)
            if (AT(is_reachable, i)) {
                count++;
                if (AT(parent, i) >= 0) AT(is_reachable, AT(parent, i)) = true;
            }
    return count;
}

EXPORT int64_t list_ancestors(IN(int32_t, order), int64_t most, IN(uint8_t, is_reachable), OUT(int64_t, reachable)) {
    int64_t count = 0;
    for (int64_t k = 0; k < order_size; k++)
        for (int64_t i = AT(order, k) * most; i < (AT(order, k) + 1) * most; i++)
            if (AT(is_reachable, i)) AT(reachable, count++) = i;
    return count;
}

EXPORT int64_t sum_by_class(IN(int64_t, part), IN(int64_t, duration), IN(int64_t, parent), IN(int64_t, places),
                            int64_t classes, OUT(int64_t, so_far), OUT(int64_t, sums)) {
    for (int64_t c = 0; c < classes; c++) {
        for (int64_t k = 0; k < part_size; k++) {
            int64_t above = AT(parent, k) >= 0 ? AT(so_far, AT(parent, k)) : 0;
            AT(so_far, k) = above + (AT(part, k) == c ? AT(duration, k) : 0);
        }
        for (int64_t i = 0; i < places_size; i++) AT(sums, i * classes + c) = AT(so_far, AT(places, i));
    }
    return 0;
}

EXPORT int64_t next_launch(IN(int32_t, thread), IN(int32_t, first), IN(uint8_t, is_wait_call), OUT(int32_t, rows)) {
    int64_t following = NONE;
    for (int64_t i = thread_size - 1; i >= 0; i--) {
        if (i + 1 < thread_size && AT(thread, i) != AT(thread, i + 1)) following = NONE;
        AT(rows, i) = AT(is_wait_call, i) ? (int32_t)following : NONE;
        if (AT(first, i) >= 0) following = AT(first, i);
    }
    return 0;
}

EXPORT int64_t last_elsewhere(IN(int64_t, at), IN(int64_t, thread), IN(int64_t, when), IN(int64_t, own),
                              OUT(int32_t, threads)) {
    for (int64_t q = 0; q < when_size; q++) {
        int64_t low = 0, high = at_size;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (AT(at, middle) <= AT(when, q))
                low = middle + 1;
            else
                high = middle;
        }
        int64_t k = low - 1;
        while (k >= 0 && AT(thread, k) == AT(own, q)) k--;
        AT(threads, q) = k >= 0 ? (int32_t)AT(thread, k) : NONE;
    }
    return 0;
}

EXPORT int64_t last_end_before(IN(int64_t, time), IN(int64_t, thread), IN(int64_t, resumes), IN(int64_t, over),
                               IN(uint8_t, is_backward), int64_t main_thread, int64_t wake_ns, OUT(int32_t, ends)) {
    for (int64_t q = 0; q < resumes_size; q++) {
        int64_t p = AT(resumes, q), low = 0, high = over_size;
        AT(ends, q) = NONE;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (AT(time, AT(over, middle)) <= AT(time, p))
                low = middle + 1;
            else
                high = middle;
        }
        for (int64_t k = low - 1; k >= 0 && AT(time, AT(over, k)) > AT(time, p - 1); k--) {
            int64_t e = AT(over, k);
            bool backward = AT(thread, p) == main_thread && AT(is_backward, e);
            if (AT(thread, e) != AT(thread, p) && (backward || AT(time, p) - AT(time, e) <= wake_ns)) {
                AT(ends, q) = (int32_t)e;
                break;
            }
        }
    }
    return 0;
}
