/* The graph of what waited for what; the modules of critical_path/ say what each function returns. */
#include "arrays.h"

static const int64_t NEVER = INT64_MIN / 2;
enum { MOST_MOVES = 8 };
enum { SAME = -2, WAIT_OF_HOST = -3, WAIT_OF_WORKERS = -4, WAITS = 128 };

/* A range of a thread: a host event, or a call, whose numbers follow those of host events. */
typedef struct {
    int64_t thread, start, end;
} Range;

static Range range_of(int64_t r, IN(int32_t, thread), IN(int64_t, start), IN(int64_t, dur), IN(int32_t, call_thread),
                      IN(int64_t, call_start), IN(int64_t, call_dur)) {
    int64_t call = r - start_size;
    if (call < 0) return (Range){AT(thread, r), AT(start, r), AT(start, r) + AT(dur, r)};
    return (Range){AT(call_thread, call), AT(call_start, call), AT(call_start, call) + AT(call_dur, call)};
}

#define RANGE(r)                                                                                                      \
    range_of(r, thread, thread_size, start, start_size, dur, dur_size, call_thread, call_thread_size, call_start,     \
             call_start_size, call_dur, call_dur_size)

static bool begins_first(Range host_event, Range call) {
    if (host_event.thread != call.thread) return host_event.thread < call.thread;
    return host_event.start != call.start ? host_event.start < call.start : host_event.end >= call.end;
}

/* At one instant ranges that take time end before others start, and empty ones after that. */
static int64_t key_of_end(Range range) { return 2 * range.end + (range.end == range.start); }

/* Host events and calls come by thread and start, the outer ones first; at each boundary of a thread the next one of them
   begins, unless the next one to end comes before. `open`: a stack of those that are open, the next to end at its top: by
   their ends, inner ones before outer ones; `ends`: all ranges in that order by thread, in place of the stack; or empty.
   `above`: a stack of ranges that are or were open, the outermost first. Returns NONE if ranges overlap partially so often
   that sorting `ends` is faster. */
EXPORT int64_t merge_boundaries(IN(int32_t, thread), IN(int64_t, start), IN(int64_t, dur), IN(int32_t, call_thread),
                                IN(int64_t, call_start), IN(int64_t, call_dur), IN(int32_t, ends), OUT(int32_t, open),
                                OUT(int32_t, above), OUT(int64_t, time), OUT(int32_t, inner), OUT(int32_t, begins),
                                OUT(int32_t, stops)) {
    int64_t hosts = start_size, calls = call_start_size, i = 0, j = 0, k = 0, top = 0, height = 0, ended = 0, moves = 0;
    for (;;) {
        int64_t next = i < hosts ? i : j < calls ? hosts + j : NONE, at = top;
        if (i < hosts && j < calls && !begins_first(RANGE(i), RANGE(hosts + j))) next = hosts + j;
        Range begun = next >= 0 ? RANGE(next) : (Range){INT64_MAX, 0, 0};
        while (ends_size ? ended < ends_size : top > 0) {
            int64_t r = ends_size ? AT(ends, ended) : AT(open, top - 1);
            Range over = RANGE(r);
            if (over.thread == begun.thread ? key_of_end(over) > 2 * begun.start : over.thread > begun.thread) break;
            ended++;
            at = --top;
            AT(stops, r) = (int32_t)k;
            while (height && AT(stops, AT(above, height - 1)) != NONE) height--;
            AT(time, k) = over.end;
            AT(inner, k++) = height ? AT(above, height - 1) : NONE;
        }
        if (next < 0) return k;
        for (; at && !ends_size && key_of_end(RANGE(AT(open, at - 1))) < key_of_end(begun); at--) {
            if (++moves > MOST_MOVES * (hosts + calls)) return NONE;
            AT(open, at) = AT(open, at - 1);
        }
        AT(open, at) = (int32_t)next;
        top++;
        AT(stops, next) = NONE; /* it is open */
        AT(above, height++) = (int32_t)next;
        AT(begins, next) = (int32_t)k;
        AT(time, k) = begun.start;
        AT(inner, k++) = (int32_t)next;
        if (next < hosts)
            i++;
        else
            j++;
    }
}

/* Edges come in lists: from `predecessor` + `from_node` to `successor` + `to_node`, unless one of them is NONE or the
   predecessor doesn't come first. They are sorted by successor with a counting sort: first all lists are counted, then
   all are placed. `first`: 0 at first, then the number of edges to each node, two places behind it. */
static bool is_edge(int64_t predecessor, int64_t successor, int64_t from_node, int64_t to_node, IN(int32_t, place)) {
    return predecessor >= 0 && successor >= 0 &&
           AT(place, predecessor + from_node) < AT(place, successor + to_node);
}

EXPORT int64_t count_edges(IN(int32_t, predecessor), IN(int32_t, successor), int64_t from_node, int64_t to_node,
                           IN(int32_t, place), OUT(int32_t, first)) {
    for (int64_t i = 0; i < successor_size; i++)
        if (is_edge(AT(predecessor, i), AT(successor, i), from_node, to_node, place, place_size))
            AT(first, AT(successor, i) + to_node + 2)++;
    return 0;
}

/* `first`: the end of the edges before each node, one place behind it; then, after all lists, the ends of its edges.
   `kind`: of each edge of the list, or one for all. */
EXPORT int64_t place_edges(IN(int32_t, predecessor), IN(int32_t, successor), int64_t from_node, int64_t to_node,
                           IN(int8_t, kind), IN(int32_t, place), OUT(int32_t, first), OUT(int32_t, from),
                           OUT(int8_t, kinds)) {
    for (int64_t i = 0; i < successor_size; i++)
        if (is_edge(AT(predecessor, i), AT(successor, i), from_node, to_node, place, place_size)) {
            int64_t e = AT(first, AT(successor, i) + to_node + 1)++;
            AT(from, e) = (int32_t)(AT(predecessor, i) + from_node);
            AT(kinds, e) = kind_size == 1 ? AT(kind, 0) : AT(kind, i);
        }
    return 0;
}

/* The same of the boundaries of threads, each of which continues what the one before it began. `of_thread`: where the
   boundaries of each thread begin, and the last ones end. */
EXPORT int64_t count_chains(IN(int64_t, of_thread), IN(int32_t, place), OUT(int32_t, first)) {
    for (int64_t thread = 0; thread + 1 < of_thread_size; thread++)
        for (int64_t v = AT(of_thread, thread) + 1; v < AT(of_thread, thread + 1); v++)
            if (AT(place, v - 1) < AT(place, v)) AT(first, v + 2)++;
    return 0;
}

EXPORT int64_t place_chains(IN(int64_t, of_thread), int64_t kind, IN(int32_t, place), OUT(int32_t, first),
                            OUT(int32_t, from), OUT(int8_t, kinds)) {
    for (int64_t thread = 0; thread + 1 < of_thread_size; thread++)
        for (int64_t v = AT(of_thread, thread) + 1; v < AT(of_thread, thread + 1); v++)
            if (AT(place, v - 1) < AT(place, v)) {
                int64_t e = AT(first, v + 1)++;
                AT(from, e) = (int32_t)(v - 1);
                AT(kinds, e) = (int8_t)kind;
            }
    return 0;
}

/* When the last predecessor of a node by edges of some kinds (bits) was over; NEVER if there are none. */
static int64_t last_arrival(int64_t v, int64_t kinds, IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind),
                            IN(int64_t, time)) {
    int64_t reached = NEVER;
    for (int64_t e = AT(first, v); e < AT(first, v + 1); e++)
        if (kinds >> AT(kind, e) & 1) reached = larger(reached, AT(time, AT(predecessor, e)));
    return reached;
}

#define EDGES first, first_size, predecessor, predecessor_size, kind, kind_size, time, time_size

/* How long the edges of one kind took to `rows` nodes from `low` on that wait for no edge of the kinds `excluded`, where
   the edges of the kinds `others` were over `margin` or more before. Returns how many there are. */
EXPORT int64_t lone_delays(IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind), IN(int64_t, time),
                           int64_t low, int64_t rows, int64_t which, int64_t others, int64_t margin, int64_t excluded,
                           OUT(int64_t, took)) {
    int64_t count = 0;
    for (int64_t v = low; v < low + rows; v++) {
        if (last_arrival(v, excluded, EDGES) > NEVER) continue;
        int64_t reached = last_arrival(v, others, EDGES);
        for (int64_t e = AT(first, v); e < AT(first, v + 1); e++) {
            int64_t since = AT(time, AT(predecessor, e));
            if (AT(kind, e) == which && reached + margin <= since) AT(took, count++) = AT(time, v) - since;
        }
    }
    return count;
}

/* The lags of the edges to nodes from `low` on, which are the starts of rows, and when all of each node's predecessors
   were over: its own time if it has none.

   `most`: by kind, the longest lag. An `overlap` lasts as long as recorded if nothing else was over in the last `margin`,
   and no time otherwise; a row that overlaps the previous one on its `stream` does not wait for the row before both. */
EXPORT int64_t edge_lags(IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind), IN(int64_t, time), int64_t low,
                         IN(int64_t, most), int64_t stream, int64_t overlap, int64_t margin, OUT(int64_t, lag),
                         OUT(int64_t, since)) {
    for (int64_t v = low; v < low + since_size; v++) {
        int64_t begin = AT(first, v), end = AT(first, v + 1), reached = begin < end ? NEVER : AT(time, v);
        bool is_held = last_arrival(v, (int64_t)1 << overlap, EDGES) > NEVER;
        bool was_ready = last_arrival(v, ~((int64_t)1 << stream | (int64_t)1 << overlap), EDGES) + margin <= AT(time, v);
        for (int64_t e = begin; e < end; e++) {
            int64_t at = AT(time, AT(predecessor, e)), longest = AT(most, AT(kind, e));
            if (AT(kind, e) == overlap) longest = was_ready ? INT64_MAX : 0;
            if (AT(kind, e) == stream && is_held) longest = 0;
            AT(lag, e - AT(first, low)) = smaller(AT(time, v) - at, longest);
            reached = larger(reached, at + AT(lag, e - AT(first, low)));
        }
        AT(since, v - low) = reached;
    }
    return 0;
}

/* Only edges to the starts of rows, whose edges are those from `low` on, have a lag. */
#define LAG(e) ((e) >= low && (e) < low + lag_size ? AT(lag, (e) - low) : 0)

/* Moves the edge that each node waited for longest to the front of its edges; of equals the one whose predecessor is
   later. */
EXPORT int64_t drive_first(IN(int32_t, first), IN(int64_t, time), int64_t low, OUT(int32_t, predecessor),
                           OUT(int8_t, kind), OUT(int64_t, lag)) {
    for (int64_t v = 0; v < time_size; v++) {
        int64_t begin = AT(first, v), end = AT(first, v + 1), best = begin;
        for (int64_t e = begin + 1; e < end; e++) {
            int64_t at = AT(time, AT(predecessor, e)), best_at = AT(time, AT(predecessor, best));
            int64_t ahead = at + LAG(e) - best_at - LAG(best);
            if (ahead > 0 || (ahead == 0 && at > best_at)) best = e;
        }
        if (best == begin || begin == end) continue;
        int32_t from = AT(predecessor, best);
        int8_t why = AT(kind, best);
        int64_t length = LAG(best);
        for (int64_t e = best; e > begin; e--) {
            AT(predecessor, e) = AT(predecessor, e - 1);
            AT(kind, e) = AT(kind, e - 1);
            if (e >= low && e < low + lag_size) AT(lag, e - low) = AT(lag, e - 1 - low);
        }
        AT(predecessor, begin) = from;
        AT(kind, begin) = why;
        if (begin >= low && begin < low + lag_size) AT(lag, begin - low) = length;
    }
    return 0;
}

/* Adds an edge of one kind and without a lag to some starts of rows, which begin at `from`: behind the edges that each
   has. `low`: the first edge with a lag. There is room for the new edges behind the others, which move from the last on. */
EXPORT int64_t insert_edges(IN(int32_t, row), IN(int32_t, before), int64_t from, int64_t low, int64_t code,
                            OUT(int32_t, first), OUT(int32_t, predecessor), OUT(int8_t, kind), OUT(int64_t, lag)) {
    int64_t left = row_size, end = AT(first, first_size - 1), over = low + lag_size - row_size;
    for (int64_t v = first_size - 2; v >= 0 && left; v--) {
        int64_t begin = AT(first, v);
        AT(first, v + 1) = (int32_t)(end + left);
        if (AT(row, left - 1) + from == v) {
            int64_t e = end + --left;
            AT(predecessor, e) = AT(before, left);
            AT(kind, e) = (int8_t)code;
            AT(lag, e - low) = 0;
        }
        for (int64_t e = end - 1; e >= begin; e--) {
            AT(predecessor, e + left) = AT(predecessor, e);
            AT(kind, e + left) = AT(kind, e);
            if (e >= low && e < over) AT(lag, e + left - low) = AT(lag, e - low);
        }
        end = begin;
    }
    return 0;
}

static int64_t share_of(int64_t length, int64_t percent) { /* of any length without overflow */
    if ((uint64_t)length < (uint64_t)1 << 56) return (int64_t)((uint64_t)length * (uint64_t)percent / 100);
    return length / 100 * percent + length % 100 * percent / 100;
}

/* Where the values of a node are: in the ring of the last `reach` places, or behind it; 0 before its run of steps. */
static const int64_t *values_of(int64_t at, int64_t now, int64_t since, int64_t reach, int64_t variants, IN(int64_t, far),
                                IN(int64_t, earlier)) {
    if (at < since) return 0;
    if (now - at < reach) return &AT(earlier, (at & (reach - 1)) * variants);
    return &AT(earlier, (reach + count_until(far, far_size, at, 0) - 1) * variants);
}

#define EARLIER(e)                                                                                                    \
    values_of(AT(place, AT(predecessor, e)), k, since, reach, variants, far, far_size, earlier, earlier_size)

/* By how much the ends of steps come earlier in some variants, in each of which the delays of its own nodes are shorter
   by their percents. A node comes earlier by the least that its predecessors do plus the slack of that edge.

   A percent above WAITS also makes the node wait less for what edges with the lag WAIT_OF_HOST come from: as if so much of
   the time that these hold it up beyond its other edges were gone. A node with an edge with the lag WAIT_OF_WORKERS comes
   no earlier, unless its own delay is shorter.

   `always`: by which percents the own delays of the first nodes are shorter in each variant, before its own percents.
   `place`: of each node in `order`; `window`: where in `order` each run of steps that follow each other begins, and the
   end; `far`: the places that mark_far_places marks, in order; `part_of_kind`: the part of the lag of each kind, or SAME
   for that of the node; `variant`: of each node; or empty, then `percent` has those of all nodes for each variant.
   `earlier`: room for `variants` values of `reach` places, a power of two, and behind them of each of `far`. */
EXPORT int64_t simulate_steps(IN(int32_t, order), IN(int32_t, place), IN(int32_t, first), IN(int32_t, predecessor),
                              IN(int8_t, kind), IN(int64_t, time), int64_t low, IN(int64_t, lag), IN(int8_t, part),
                              IN(int8_t, part_of_kind), IN(int8_t, variant), IN(uint8_t, percent), IN(uint8_t, always),
                              IN(int64_t, window), IN(int64_t, far), int64_t reach, int64_t first_variant,
                              int64_t variants, int64_t first_end, OUT(int64_t, earlier), OUT(int64_t, saved)) {
    CHECK((reach + far_size) * variants <= earlier_size);
    int64_t next_far = 0, stride = variant_size ? 0 : part_size;
    for (int64_t s = 0; s + 1 < window_size; s++) {
        int64_t since = AT(window, s), until = AT(window, s + 1);
        for (int64_t k = since; k < until; k++) {
            int64_t v = AT(order, k), begin = AT(first, v), end = AT(first, v + 1);
            int64_t chosen = variant_size ? AT(variant, v) - first_variant : 0;
            int64_t after = variant_size ? chosen + 1 : variants;
            int64_t *now = earlier + (k & (reach - 1)) * variants;
            int64_t ready = begin < end ? AT(time, AT(predecessor, begin)) + LAG(begin) : AT(time, v);
            int64_t own = AT(time, v) - ready, shorter_always = v < always_size ? share_of(own, AT(always, v)) : 0;
            bool is_lone = end - begin == 1 && AT(part_of_kind, AT(kind, begin)) != WAIT_OF_WORKERS, is_batch = false;
            for (int64_t j = 0; j < variants; j++) now[j] = 0;
            if (is_lone) { /* as most nodes; what follows comes to this for them */
                const int64_t *before = EARLIER(begin);
                int64_t of_lag = AT(part_of_kind, AT(kind, begin));
                int64_t lag_of_own = of_lag == SAME || of_lag == AT(part, v) ? LAG(begin) : 0;
                for (int64_t j = 0; j < variants; j++) now[j] = (before ? before[j] : 0) + shorter_always;
                for (int64_t j = larger(chosen, 0); j < smaller(after, variants); j++) {
                    int64_t share = AT(percent, (variant_size ? 0 : first_variant + j) * stride + v) % WAITS;
                    if (share) now[j] += share_of(lag_of_own, share) + share_of(own - shorter_always, share);
                }
            }
            for (int64_t e = begin; e < end && !is_lone; e++) {
                const int64_t *before = EARLIER(e);
                int64_t slack = ready - AT(time, AT(predecessor, e)) - LAG(e);
                is_batch |= AT(part_of_kind, AT(kind, e)) == WAIT_OF_WORKERS;
                for (int64_t j = 0; j < variants; j++) {
                    int64_t reached = before ? slack + before[j] : slack;
                    now[j] = e == begin ? reached : smaller(now[j], reached);
                }
            }
            if (is_batch) shorter_always = 0;
            for (int64_t j = 0; j < variants && !is_lone; j++) now[j] = is_batch ? 0 : now[j] + shorter_always;
            for (int64_t j = larger(chosen, 0); j < smaller(after, variants) && begin < end && !is_lone; j++) {
                int64_t more = AT(percent, (variant_size ? 0 : first_variant + j) * stride + v), share = more % WAITS;
                int64_t least = INT64_MAX, without_waits = INT64_MAX;
                if (!share) continue;
                for (int64_t e = begin; e < end; e++) {
                    const int64_t *before = EARLIER(e);
                    int64_t of_lag = AT(part_of_kind, AT(kind, e));
                    int64_t shorter = of_lag == SAME || of_lag == AT(part, v) ? share_of(LAG(e), share) : 0;
                    int64_t slack = ready - AT(time, AT(predecessor, e)) - LAG(e);
                    int64_t reached = slack + shorter + (before ? before[j] : 0);
                    least = smaller(least, reached);
                    if (of_lag != WAIT_OF_HOST) without_waits = smaller(without_waits, reached);
                }
                if (more >= WAITS && without_waits != INT64_MAX) least += share_of(without_waits - least, share);
                now[j] = least + shorter_always + share_of(own - shorter_always, share);
            }
            if (next_far < far_size && AT(far, next_far) == k) {
                for (int64_t j = 0; j < variants; j++) AT(earlier, (reach + next_far) * variants + j) = now[j];
                next_far++;
            }
            int64_t step = v - first_end;
            if (step >= 0 && (step + 1) * variants <= saved_size)
                for (int64_t j = 0; j < variants; j++) AT(saved, step * variants + j) = now[j];
        }
    }
    return 0;
}

/* Marks the places of nodes that others, `reach` places or more behind them in the same run of steps, wait for. */
EXPORT int64_t mark_far_places(IN(int32_t, order), IN(int32_t, place), IN(int32_t, first), IN(int32_t, predecessor),
                               IN(int64_t, window), int64_t reach, OUT(uint8_t, is_far)) {
    for (int64_t s = 0; s + 1 < window_size; s++) {
        int64_t since = AT(window, s);
        for (int64_t k = since; k < AT(window, s + 1); k++) {
            int64_t v = AT(order, k);
            for (int64_t e = AT(first, v); e < AT(first, v + 1); e++) {
                int64_t at = AT(place, AT(predecessor, e));
                if (at >= since && k - at >= reach) AT(is_far, at) = true;
            }
        }
    }
    return 0;
}

/* By how many percent each node is shorter, by its part alone. */
EXPORT int64_t percents_of_parts(IN(int8_t, part), IN(uint8_t, of_part), OUT(uint8_t, percent)) {
    for (int64_t v = 0; v < percent_size; v++) AT(percent, v) = AT(of_part, AT(part, v));
    return 0;
}

static void raise_to(uint8_t *percent, int64_t to) {
    if (to > *percent) *percent = (uint8_t)to;
}

/* Raises the percents of the nodes of rows, whose starts begin at `low`, to those of the rows: at the parts that are a
   row's own time or, if it is the row before that a start waits for, at its start; and at the parts before a start. */
EXPORT int64_t raise_percents_of_rows(IN(int8_t, part), IN(uint8_t, of_row), IN(int32_t, holding_row), IN(uint8_t, is_own),
                                      IN(uint8_t, is_before), int64_t low, OUT(uint8_t, percent)) {
    int64_t rows = holding_row_size;
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = low + row, end = start + rows, holding = AT(holding_row, row);
        if (holding >= 0 && AT(is_own, AT(part, start))) raise_to(&AT(percent, start), AT(of_row, holding));
        if (AT(is_before, AT(part, start))) raise_to(&AT(percent, start), AT(of_row, row));
        if (AT(is_own, AT(part, end))) raise_to(&AT(percent, end), AT(of_row, row));
    }
    return 0;
}

/* How much of a union lies between what a node waited for last and the node. */
static int64_t own_time(int64_t v, IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time), IN(int64_t, start),
                        IN(int64_t, end), IN(int64_t, before), int64_t *begun, int64_t *over) {
    if (AT(first, v) == AT(first, v + 1)) return 0;
    int64_t since = AT(time, AT(predecessor, AT(first, v)));
    int64_t least = union_before(start, start_size, end, end_size, before, before_size, since, begun);
    return union_before(start, start_size, end, end_size, before, before_size, AT(time, v), over) - least;
}

#define OWN_TIME(v)                                                                                                   \
    own_time(v, first, first_size, predecessor, predecessor_size, time, time_size, start, start_size, end, end_size,  \
             before, before_size, &begun, &over)

/* Raises the percents of the boundaries of some threads to the share of their own time, since their driving edge's
   predecessor, that lies in a union, times `less`, rounded to the nearest, to the even one of two. `of_thread`: where the
   boundaries of each thread begin, and the last ones end. */
EXPORT int64_t raise_percents_of_boundaries(IN(int64_t, of_thread), IN(int32_t, first), IN(int32_t, predecessor),
                                            IN(int64_t, time), IN(uint8_t, is_meant), IN(int64_t, start),
                                            IN(int64_t, end), IN(int64_t, before), IN(float64_t, less),
                                            OUT(uint8_t, percent)) {
    int64_t begun = 0, over = 0, thread = 0;
    for (int64_t v = 0; v < AT(of_thread, of_thread_size - 1); v++) {
        while (AT(of_thread, thread + 1) <= v) thread++;
        if (!AT(is_meant, thread) || AT(first, v) == AT(first, v + 1)) continue;
        int64_t at = AT(time, v), since = AT(time, AT(predecessor, AT(first, v)));
        if (since >= at) continue;
        double share = 100 * (AT(less, 0) * (double)OWN_TIME(v) / (double)(at - since));
        int64_t whole = (int64_t)share;
        double rest = share - (double)whole;
        raise_to(&AT(percent, v), whole + (rest > 0.5 || (rest == 0.5 && whole % 2)));
    }
    return 0;
}

/* Returns how often a value is above the one before it by `least` or more, and where, if there is room for all. */
EXPORT int64_t rises(IN(int64_t, value), int64_t least, OUT(int64_t, at)) {
    int64_t count = 0;
    for (int64_t i = 1; i < value_size; i++)
        if (AT(value, i) - AT(value, i - 1) >= least) {
            if (count < at_size) AT(at, count) = i;
            count++;
        }
    return count;
}

/* Where in `order` the nodes after each instant begin. */
EXPORT int64_t places_after(IN(int32_t, order), IN(int64_t, time), IN(int64_t, at), OUT(int64_t, place)) {
    for (int64_t i = 0; i < at_size; i++) {
        int64_t low = 0, high = order_size;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (AT(time, AT(order, middle)) <= AT(at, i))
                low = middle + 1;
            else
                high = middle;
        }
        AT(place, i) = low;
    }
    return 0;
}

/* `of_thread`: where the boundaries of each thread begin, and the last ones end; `near`: a thread to begin with. */
static int64_t thread_of(int64_t v, IN(int64_t, of_thread), int64_t near) {
    return count_until(of_thread, of_thread_size, v, near + 1) - 1;
}

/* What a thread did before a boundary: the innermost open range, or NONE, and the thread. At a boundary that begins work
   that another thread handed over (its driving edge is a `fork`), both are that thread's. `on`: a thread to begin with. */
static int64_t range_before(int64_t v, int64_t fork, IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind),
                            IN(int64_t, of_thread), IN(int32_t, inner), int64_t *on) {
    int64_t e = AT(first, v);
    bool is_forked = e < AT(first, v + 1) && AT(kind, e) == fork;
    *on = thread_of(is_forked ? AT(predecessor, e) : v, of_thread, of_thread_size, *on);
    if (is_forked) return AT(inner, AT(predecessor, e));
    return AT(of_thread, *on) < v ? AT(inner, v - 1) : NONE;
}

/* The part of each boundary's own time: that of what its thread did before it, or `none`. */
EXPORT int64_t parts_before(IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind), IN(int64_t, of_thread),
                            IN(int32_t, inner), int64_t fork, IN(int8_t, of_range), int64_t none, OUT(int8_t, part)) {
    int64_t on = 0;
    for (int64_t v = 0; v < inner_size; v++) {
        int64_t range = range_before(v, fork, first, first_size, predecessor, predecessor_size, kind, kind_size, of_thread,
                                     of_thread_size, inner, inner_size, &on);
        AT(part, v) = range >= 0 ? AT(of_range, range) : (int8_t)none;
    }
    return 0;
}

/* Where the delay of a node is: a host event, a call, a row of device_events and a host thread, or NONE. */
typedef struct {
    int64_t host_event, call, row, thread;
} Where;

/* Ranges up to `hosts` are host events, the others calls. `fork`: the kind of edges between threads; `in_call` and
   `of_launch`: the kinds (bits) of waits in calls, and of rows that wait for their launch. */
static Where where_of(int64_t v, IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind), IN(int64_t, of_thread),
                      IN(int32_t, inner), IN(int32_t, holding_row), IN(int32_t, row_launch), IN(int32_t, call_host),
                      IN(int32_t, call_thread), int64_t hosts, int64_t fork, int64_t in_call, int64_t of_launch) {
    int64_t rows = row_launch_size, boundaries = inner_size;
    int64_t row = v - boundaries, e = AT(first, v), at = 0, call = NONE;
    bool is_start = row >= 0 && row < rows, is_row = row >= 0 && row < 2 * rows;
    int64_t why = e < AT(first, v + 1) ? (int64_t)1 << AT(kind, e) : 0;
    int64_t range = v < boundaries ? range_before(v, fork, first, first_size, predecessor, predecessor_size, kind,
                                                  kind_size, of_thread, of_thread_size, inner, inner_size, &at)
                                   : NONE;
    if (v >= boundaries) at = NONE;
    if (is_row && !is_start) row -= rows;
    if (is_row && of_launch & why) call = AT(row_launch, row);
    if (range >= hosts) call = range - hosts;
    if (in_call & why) at = call >= 0 ? AT(call_thread, call) : NONE;
    if (is_start && AT(holding_row, row) >= 0) row = AT(holding_row, row);
    int64_t host_event = range >= 0 && range < hosts ? range : call >= 0 ? AT(call_host, call) : NONE;
    return (Where){host_event, call, is_row && !(in_call & why) ? row : NONE, at};
}

EXPORT int64_t node_events(IN(int32_t, node), IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind),
                           IN(int64_t, of_thread), IN(int32_t, inner), IN(int32_t, holding_row), IN(int32_t, row_launch),
                           IN(int32_t, call_host), IN(int32_t, call_thread), int64_t hosts, int64_t fork, int64_t in_call,
                           int64_t of_launch, OUT(int32_t, host_event), OUT(int32_t, launch), OUT(int32_t, device_event),
                           OUT(int32_t, on)) {
    for (int64_t i = 0; i < node_size; i++) {
        Where where = where_of(AT(node, i), first, first_size, predecessor, predecessor_size, kind, kind_size, of_thread,
                               of_thread_size, inner, inner_size, holding_row, holding_row_size, row_launch, row_launch_size,
                               call_host, call_host_size, call_thread, call_thread_size, hosts, fork, in_call, of_launch);
        AT(host_event, i) = (int32_t)where.host_event;
        AT(launch, i) = (int32_t)where.call;
        AT(device_event, i) = (int32_t)where.row;
        AT(on, i) = (int32_t)where.thread;
    }
    return 0;
}

/* How long after the predecessor of its driving edge each node happened; or 0. */
EXPORT int64_t driving_delays(IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time), OUT(int64_t, delays)) {
    for (int64_t v = 0; v < delays_size; v++)
        AT(delays, v) = AT(first, v) < AT(first, v + 1) ? AT(time, v) - AT(time, AT(predecessor, AT(first, v))) : 0;
    return 0;
}

/* The own times of consecutive nodes from `low` on. */
EXPORT int64_t own_times(IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time), IN(int64_t, start),
                         IN(int64_t, end), IN(int64_t, before), int64_t low, OUT(int64_t, own)) {
    int64_t begun = 0, over = 0;
    for (int64_t i = 0; i < own_size; i++) AT(own, i) = OWN_TIME(low + i);
    return 0;
}

/* How many boundaries of some threads have each own time; the last of `counts`, 0 at first, is how many have that or more.
   Returns the sum of the own times of one part, on all threads. `of_thread`: where the boundaries of each thread begin, and
   the last ones end. */
EXPORT int64_t count_own_times(IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time), IN(int64_t, start),
                               IN(int64_t, end), IN(int64_t, before), IN(int64_t, of_thread), IN(uint8_t, is_meant),
                               IN(int8_t, part), int64_t which, OUT(int64_t, counts)) {
    int64_t begun = 0, over = 0, sum = 0;
    for (int64_t thread = 0; thread + 1 < of_thread_size; thread++)
        for (int64_t v = AT(of_thread, thread); v < AT(of_thread, thread + 1); v++) {
            if (!AT(is_meant, thread) && AT(part, v) != which) continue;
            int64_t own = OWN_TIME(v);
            if (AT(part, v) == which) sum += own;
            if (AT(is_meant, thread)) AT(counts, smaller(own, counts_size - 1))++;
        }
    return sum;
}

/* Which part `event` ns are of the time since each boundary's driving edge's predecessor, in percent, at most `most`: on
   some threads, and 0 on the others. Halves are rounded to even percents. */
EXPORT int64_t percents_of_delays(IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time), IN(int64_t, of_thread),
                                  IN(uint8_t, is_meant), int64_t event, int64_t most, OUT(uint8_t, percent)) {
    for (int64_t thread = 0; thread + 1 < of_thread_size; thread++)
        for (int64_t v = AT(of_thread, thread); v < AT(of_thread, thread + 1); v++) {
            int64_t e = AT(first, v), is_waiting = e < AT(first, v + 1);
            int64_t delay = is_waiting && AT(is_meant, thread) ? AT(time, v) - AT(time, AT(predecessor, e)) : 0;
            int64_t twice = 200 * event + delay, rounded = delay > 0 ? twice / (2 * delay) : most;
            if (delay > 0 && twice % (2 * delay) == 0) rounded -= rounded % 2;
            AT(percent, v) = AT(is_meant, thread) ? smaller(rounded, most) : 0;
        }
    return 0;
}

/* By how much the own times of the first `nodes` nodes are shorter in each variant, in all: `variant`, `percent` and
   `always` as in simulate_steps; `stride`: how many percents each variant has. Sums are of `run` nodes each, and of
   those: `of_run` is room for them. */
EXPORT int64_t sum_savings_of_host(IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time), IN(int64_t, start),
                                   IN(int64_t, end), IN(int64_t, before), int64_t nodes, IN(int8_t, variant),
                                   IN(uint8_t, percent), int64_t stride, IN(uint8_t, always), int64_t run,
                                   OUT(float64_t, of_run), OUT(float64_t, saved)) {
    int64_t begun = 0, over = 0, variants = saved_size;
    for (int64_t low = 0; low < nodes; low += run) {
        for (int64_t j = 0; j < variants; j++) AT(of_run, j) = 0;
        for (int64_t v = low; v < smaller(low + run, nodes); v++) {
            int64_t chosen = variant_size ? AT(variant, v) : 0, after = variant_size ? chosen + 1 : variants;
            double own = NONE;
            for (int64_t j = larger(chosen, 0); j < after; j++) {
                int64_t share = AT(percent, (variant_size ? 0 : j) * stride + v) % WAITS;
                if (!share) continue;
                float weight = (float)share / 100;
                if (always_size) weight *= 1 - (float)AT(always, v) / 100;
                if (own < 0) own = (double)OWN_TIME(v);
                AT(of_run, j) += own * (double)weight;
            }
        }
        for (int64_t j = 0; j < variants; j++) AT(saved, j) += AT(of_run, j);
    }
    return 0;
}

/* The number of the name of each place: of its row; else of the data loading around it, its call, or its host event. */
EXPORT int64_t names_of_places(IN(int32_t, event), IN(int32_t, call), IN(int32_t, row), IN(int32_t, event_name),
                               IN(int32_t, call_name), IN(int32_t, row_name), IN(int32_t, loader), OUT(int32_t, names)) {
    for (int64_t i = 0; i < names_size; i++) {
        int64_t around = AT(event, i) >= 0 ? AT(loader, AT(event, i)) : NONE;
        int64_t loading = around >= 0 ? AT(event_name, around) : NONE;
        int64_t name = AT(event, i) >= 0 ? AT(event_name, AT(event, i)) : NONE;
        if (AT(call, i) >= 0) name = AT(call_name, AT(call, i));
        if (loading >= 0) name = loading;
        if (AT(row, i) >= 0) name = AT(row_name, AT(row, i));
        AT(names, i) = (int32_t)name;
    }
    return 0;
}

/* A piece of a path, from one of its nodes back to the one before: it ends with the node, and waits by the edge, or NONE. */
typedef struct {
    int64_t path, node, edge, begin, until, next;
} Piece;

/* The piece before the last one, along the driving edges from each target back to its path's start, the last path first;
   false: there is none. The walk begins with the number of paths, and nothing to go on from. */
static bool step_back(Piece *piece, IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time), IN(int64_t, target),
                      IN(int64_t, start), IN(int64_t, end)) {
    for (;;) {
        if (piece->path == start_size || piece->begin <= AT(start, piece->path)) {
            if (--piece->path < 0) return false;
            piece->next = AT(target, piece->path);
            piece->begin = AT(end, piece->path);
            continue;
        }
        int64_t v = piece->next, e = AT(first, v) < AT(first, v + 1) ? AT(first, v) : NONE;
        int64_t u = e >= 0 ? AT(predecessor, e) : NONE, low = AT(start, piece->path);
        int64_t reached = u >= 0 ? larger(AT(time, u), low) : low;
        piece->next = u;
        if (reached >= piece->begin) continue;
        piece->node = v;
        piece->edge = e;
        piece->until = piece->begin;
        piece->begin = reached;
        return true;
    }
}

/* Walks back along paths. Returns how many segments there are, and writes them in order if there is room for all: the
   node that each ends with, its beginning and end, the number of its target, its part, and the kind of the driving edge,
   or `sequence` without one. */
EXPORT int64_t walk_back(IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind), IN(int64_t, time),
                         IN(int8_t, part), IN(int64_t, target), IN(int64_t, start), IN(int64_t, end), int64_t sequence,
                         OUT(int32_t, node), OUT(int32_t, step), OUT(int64_t, begin), OUT(int64_t, until),
                         OUT(int8_t, parts), OUT(int8_t, kinds)) {
    int64_t count = 0;
    Piece piece = {.path = start_size};
    while (step_back(&piece, first, first_size, predecessor, predecessor_size, time, time_size, target, target_size, start,
                     start_size, end, end_size)) {
        int64_t place = node_size - ++count;
        if (place < 0) continue;
        AT(node, place) = (int32_t)piece.node;
        AT(step, place) = (int32_t)piece.path;
        AT(begin, place) = piece.begin;
        AT(until, place) = piece.until;
        AT(parts, place) = AT(part, piece.node);
        AT(kinds, place) = piece.edge >= 0 ? AT(kind, piece.edge) : (int8_t)sequence;
    }
    return count;
}

/* A part of a path at one place. */
typedef struct {
    int64_t path, part, begin, until;
    Where where;
} Segment;

/* Puts the first `count` items of an array, which were found from the last one on, in order. */
#define REVERSE(type, array, count)                                                                                   \
    for (int64_t i = 0, j = smaller((count), array##_size) - 1; i < j; i++, j--) {                                    \
        type last = AT(array, j);                                                                                     \
        AT(array, j) = AT(array, i);                                                                                  \
        AT(array, i) = last;                                                                                          \
    }

static bool is_one_stretch(const Segment *after, const Segment *before) {
    return after->path == before->path && after->part == before->part && after->where.row == before->where.row &&
           after->where.thread == before->where.thread;
}

/* Walks back as walk_back does, with consecutive segments of one path, part, row and thread as one stretch. Returns how many there
   are, and writes them if there is room for all: the end, the part, and the row of each, or -2 minus its thread, or
   NONE. `stretches`: 0 at first, then how many each path has. Segments that last as long as `most`: their
   beginnings and ends, parts, rows and threads, if there is room, and in `longs` how many there are. */
EXPORT int64_t path_stretches(IN(int32_t, first), IN(int32_t, predecessor), IN(int8_t, kind), IN(int64_t, time),
                              IN(int8_t, part), IN(int64_t, target), IN(int64_t, start), IN(int64_t, end),
                              IN(int64_t, of_thread), IN(int32_t, inner), IN(int32_t, holding_row), IN(int32_t, row_launch),
                              IN(int32_t, call_host), IN(int32_t, call_thread), int64_t hosts, int64_t fork,
                              int64_t in_call, int64_t of_launch, int64_t most, OUT(int64_t, stretches),
                              OUT(int64_t, until), OUT(int8_t, parts), OUT(int32_t, rows), OUT(int64_t, longs),
                              OUT(int64_t, long_begin), OUT(int64_t, long_until), OUT(int8_t, long_parts),
                              OUT(int32_t, long_rows), OUT(int32_t, long_on)) {
    int64_t count = 0;
    Segment segment = {.path = NONE};
    Piece piece = {.path = start_size};
    AT(longs, 0) = 0;
    for (bool goes_on = true; goes_on;) {
        Segment next = {.path = NONE};
        goes_on = step_back(&piece, first, first_size, predecessor, predecessor_size, time, time_size, target, target_size,
                            start, start_size, end, end_size);
        if (goes_on) {
            Where where = where_of(piece.node, first, first_size, predecessor, predecessor_size, kind, kind_size, of_thread,
                                   of_thread_size, inner, inner_size, holding_row, holding_row_size, row_launch,
                                   row_launch_size, call_host, call_host_size, call_thread, call_thread_size, hosts, fork,
                                   in_call, of_launch);
            next = (Segment){piece.path, AT(part, piece.node), piece.begin, piece.until, where};
            bool is_more = is_one_stretch(&segment, &next);
            if (!is_more) {
                int64_t at = count++;
                AT(stretches, next.path)++;
                if (at < until_size) {
                    AT(until, at) = next.until;
                    AT(parts, at) = (int8_t)next.part;
                    AT(rows, at) = (int32_t)(where.row >= 0 ? where.row : where.thread >= 0 ? -2 - where.thread : NONE);
                }
            }
            if (is_more && where.host_event == segment.where.host_event && where.call == segment.where.call) {
                segment.begin = next.begin;
                continue;
            }
        }
        if (segment.path >= 0 && segment.until - segment.begin >= most) {
            int64_t at = AT(longs, 0)++;
            if (at < long_begin_size) {
                AT(long_begin, at) = segment.begin;
                AT(long_until, at) = segment.until;
                AT(long_parts, at) = (int8_t)segment.part;
                AT(long_rows, at) = (int32_t)segment.where.row;
                AT(long_on, at) = (int32_t)segment.where.thread;
            }
        }
        segment = next;
    }
    REVERSE(int64_t, until, count)
    REVERSE(int8_t, parts, count)
    REVERSE(int32_t, rows, count)
    REVERSE(int64_t, long_begin, AT(longs, 0))
    REVERSE(int64_t, long_until, AT(longs, 0))
    REVERSE(int8_t, long_parts, AT(longs, 0))
    REVERSE(int32_t, long_rows, AT(longs, 0))
    REVERSE(int32_t, long_on, AT(longs, 0))
    return count;
}

/* Merges consecutive segments of the same step, part and events; returns how many are left. */
EXPORT int64_t merge_segments(OUT(int32_t, step), OUT(int64_t, begin), OUT(int64_t, until), OUT(int8_t, part),
                              OUT(int8_t, kind), OUT(int32_t, host_event), OUT(int32_t, launch),
                              OUT(int32_t, device_event), OUT(int32_t, thread)) {
    int64_t n = 0;
    for (int64_t i = 0; i < step_size; i++) {
        if (n && AT(step, n - 1) == AT(step, i) && AT(part, n - 1) == AT(part, i) &&
            AT(host_event, n - 1) == AT(host_event, i) && AT(launch, n - 1) == AT(launch, i) &&
            AT(device_event, n - 1) == AT(device_event, i) && AT(thread, n - 1) == AT(thread, i)) {
            AT(until, n - 1) = AT(until, i);
            continue;
        }
        AT(step, n) = AT(step, i);
        AT(begin, n) = AT(begin, i);
        AT(until, n) = AT(until, i);
        AT(part, n) = AT(part, i);
        AT(kind, n) = AT(kind, i);
        AT(host_event, n) = AT(host_event, i);
        AT(launch, n) = AT(launch, i);
        AT(device_event, n) = AT(device_event, i);
        AT(thread, n) = AT(thread, i);
        n++;
    }
    return n;
}

/* Sorts order[low:high] by time, stably: bottom-up merge sort. */
static void merge_sort(int64_t low, int64_t high, IN(int64_t, time), OUT(int32_t, order), OUT(int32_t, other)) {
    for (int64_t width = 1; width < high - low; width *= 2) {
        for (int64_t begin = low; begin < high; begin += 2 * width) {
            int64_t middle = smaller(begin + width, high), end = smaller(begin + 2 * width, high), i = begin, j = middle;
            for (int64_t k = begin; k < end; k++) {
                bool is_left = j == end || (i < middle && AT(time, AT(order, i)) <= AT(time, AT(order, j)));
                AT(other, k) = is_left ? AT(order, i++) : AT(order, j++);
            }
        }
        for (int64_t k = low; k < high; k++) AT(order, k) = AT(other, k);
    }
}

static int64_t bucket_of(int64_t time, int64_t least, int64_t shift) { return ((uint64_t)time - (uint64_t)least) >> shift; }

/* Bucket sort, stable; `place`: of each node in `order`. The nodes are the boundaries of threads, the starts of `rows` rows,
   which begin at `low`, their ends, and others; at one time they come in this order, but the ends of rows that take time
   come first. `bucket`: 0 at first; some more buckets than a power of two, so that most have few nodes. */
EXPORT int64_t sort_by_time(IN(int64_t, time), int64_t low, int64_t rows, OUT(int32_t, bucket), OUT(int32_t, other),
                            OUT(int32_t, order), OUT(int32_t, place)) {
    int64_t least = INT64_MAX, most = INT64_MIN, shift = 0;
    for (int64_t i = 0; i < time_size; i++) {
        least = smaller(least, AT(time, i));
        most = larger(most, AT(time, i));
    }
    if (!time_size) return 0;
    while (((uint64_t)most - (uint64_t)least) >> shift >= (uint64_t)bucket_size - 1) shift++;
    for (int64_t v = 0; v < time_size; v++) AT(bucket, bucket_of(AT(time, v), least, shift) + 1)++;
    for (int64_t k = 1; k < bucket_size; k++) AT(bucket, k) += AT(bucket, k - 1);
    for (int64_t v = low + rows; v < low + 2 * rows; v++)
        if (AT(time, v) != AT(time, v - rows)) AT(order, AT(bucket, bucket_of(AT(time, v), least, shift))++) = (int32_t)v;
    for (int64_t v = 0; v < time_size; v++) {
        bool is_end = v >= low + rows && v < low + 2 * rows;
        if (is_end && AT(time, v) != AT(time, v - rows)) continue;
        AT(order, AT(bucket, bucket_of(AT(time, v), least, shift))++) = (int32_t)v;
    }
    for (int64_t k = 0, begin = 0; k < bucket_size; k++) { /* each bucket now ends where the next one began */
        int64_t end = AT(bucket, k);
        bool is_sorted = true;
        for (int64_t i = begin + 1; i < end; i++) is_sorted &= AT(time, AT(order, i - 1)) <= AT(time, AT(order, i));
        if (!is_sorted) merge_sort(begin, end, time, time_size, order, order_size, other, other_size);
        begin = end;
    }
    for (int64_t i = 0; i < order_size; i++) AT(place, AT(order, i)) = (int32_t)i;
    return 0;
}

/* The node at each position. */
EXPORT int64_t invert(IN(int32_t, position), OUT(int32_t, node)) {
    for (int64_t v = 0; v < position_size; v++) AT(node, AT(position, v)) = (int32_t)v;
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

EXPORT int64_t longest_paths(IN(int32_t, order), IN(int32_t, first), IN(int32_t, predecessor), IN(int64_t, time),
                             int64_t low, IN(int64_t, lag), IN(int32_t, window), IN(int64_t, begin),
                             IN(int32_t, ended_by), int64_t most, OUT(int32_t, since), OUT(int64_t, over),
                             OUT(int32_t, parent)) {
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
        int64_t driving = AT(first, v), end = AT(first, v + 1);
        if (driving == end) arrivals[0] = AT(time, v);
        int64_t own = driving < end ? AT(time, v) - AT(time, AT(predecessor, driving)) - LAG(driving) : 0;
        for (int64_t e = driving; e < end; e++) { /* the driving edge comes first, so it wins a tie */
            int64_t u = AT(predecessor, e), took = LAG(e) + own;
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

/* `elsewhere`: room for the last of `at` before each on another thread, or NONE. */
EXPORT int64_t last_elsewhere(IN(int64_t, at), IN(int64_t, thread), IN(int64_t, when), IN(int64_t, own),
                              OUT(int32_t, elsewhere), OUT(int32_t, threads)) {
    int64_t begun = 0;
    for (int64_t k = 0; k < at_size; k++)
        AT(elsewhere, k) = !k ? NONE : AT(thread, k - 1) == AT(thread, k) ? AT(elsewhere, k - 1) : (int32_t)(k - 1);
    for (int64_t q = 0; q < when_size; q++) {
        begun = count_until(at, at_size, AT(when, q), begun);
        int64_t k = begun - 1;
        if (k >= 0 && AT(thread, k) == AT(own, q)) k = AT(elsewhere, k);
        AT(threads, q) = k >= 0 ? (int32_t)AT(thread, k) : NONE;
    }
    return 0;
}

/* `of_thread`: where the boundaries of each thread begin, and the last ones end; `is_backward`: whether each thread runs
   the backward pass. */
EXPORT int64_t last_end_before(IN(int64_t, time), IN(int64_t, of_thread), IN(int64_t, resumes), IN(int64_t, over),
                               IN(uint8_t, is_backward), int64_t main_thread, int64_t wake_ns, OUT(int32_t, ends)) {
    for (int64_t q = 0, on = 0; q < resumes_size; q++) {
        int64_t p = AT(resumes, q), low = 0, high = over_size;
        AT(ends, q) = NONE;
        on = thread_of(p, of_thread, of_thread_size, on);
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (AT(time, AT(over, middle)) <= AT(time, p))
                low = middle + 1;
            else
                high = middle;
        }
        for (int64_t k = low - 1; k >= 0 && AT(time, AT(over, k)) > AT(time, p - 1); k--) {
            int64_t e = AT(over, k), of_end = thread_of(e, of_thread, of_thread_size, 0);
            bool backward = on == main_thread && AT(is_backward, of_end);
            if (of_end != on && (backward || AT(time, p) - AT(time, e) <= wake_ns)) {
                AT(ends, q) = (int32_t)e;
                break;
            }
        }
    }
    return 0;
}
