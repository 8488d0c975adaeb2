/* Gaps between device rows and their causes; measures/time/idle.py and idle_causes.py say what each function returns. */
#include "arrays.h"

enum { HOST_LATE, LAUNCH_LATENCY, DEPENDENCY, BLOCKED_COPY, GRAPH_LAUNCH, NOT_SHOWN, UNEXPLAINED }; /* as in CAUSES */

/* `first`: where each group begins in `rows`. Writes as many gaps as there is room for; returns how many there are. */
EXPORT int64_t find_gaps(IN(int64_t, start), IN(int64_t, dur), IN(int32_t, rows), IN(int64_t, first), int64_t from,
                         int64_t until, int64_t with_empty, OUT(int32_t, group), OUT(int64_t, begin), OUT(int64_t, end),
                         OUT(int32_t, before), OUT(int32_t, after)) {
    int64_t count = 0;
    for (int64_t g = 0; g < first_size; g++) {
        int64_t last = g + 1 < first_size ? AT(first, g + 1) : rows_size, reach = from, latest = NONE;
        for (int64_t i = AT(first, g); i <= last; i++) {
            int64_t row = i < last ? AT(rows, i) : NONE, stop = row < 0 ? until : AT(start, row);
            if (row >= 0 && AT(dur, row) <= 0 && !with_empty) continue;
            if (stop > reach) {
                if (count < group_size) {
                    AT(group, count) = (int32_t)g;
                    AT(begin, count) = reach;
                    AT(end, count) = stop;
                    AT(before, count) = (int32_t)latest;
                    AT(after, count) = (int32_t)row;
                }
                count++;
            }
            if (row >= 0 && (latest < 0 || AT(start, row) + AT(dur, row) >= reach)) {
                reach = AT(start, row) + AT(dur, row);
                latest = row;
            }
        }
    }
    return count;
}

/* `parents`: -1 at first. */
EXPORT int64_t gap_of_piece(IN(int32_t, group), IN(int64_t, begin), IN(int32_t, parent_group), IN(int64_t, parent_end),
                            int64_t until, OUT(int32_t, parents)) {
    int64_t at = 0;
    for (int64_t i = 0; i < begin_size; i++) {
        if (AT(begin, i) >= until) continue;
        while (at < parent_end_size && (AT(parent_group, at) < AT(group, i) || AT(parent_end, at) <= AT(begin, i))) at++;
        if (at < parent_end_size) AT(parents, i) = (int32_t)at;
    }
    return 0;
}

/* A sweep from the last gap to the first one. */
EXPORT int64_t first_launched(IN(int64_t, start), IN(int32_t, launch), IN(int64_t, call_start), IN(int32_t, rows),
                              IN(int64_t, first), IN(int32_t, group), IN(int64_t, begin), OUT(int32_t, row)) {
    int64_t i = NONE, earliest = NONE;
    for (int64_t gap = begin_size - 1; gap >= 0; gap--) {
        int64_t g = AT(group, gap);
        if (gap == begin_size - 1 || g != AT(group, gap + 1)) {
            i = (g + 1 < first_size ? AT(first, g + 1) : rows_size) - 1;
            earliest = NONE;
        }
        for (; i >= AT(first, g) && AT(start, AT(rows, i)) > AT(begin, gap); i--) {
            int64_t other = AT(rows, i), call = AT(launch, other);
            if (call >= 0 && (earliest < 0 || AT(call_start, call) < AT(call_start, AT(launch, earliest))))
                earliest = other;
        }
        AT(row, gap) = (int32_t)earliest;
    }
    return 0;
}

/* `end`, `queue`: of device rows, by their ends; `other`, for each of them: the last one before it of another queue.
   `is_behind`: whether one of another queue than that of a gap ended less than `within` before the gap did. */
EXPORT int64_t behind_another(IN(int64_t, end), IN(int32_t, queue), IN(int64_t, gap_end), IN(int32_t, gap_queue),
                              int64_t within, OUT(int32_t, other), OUT(uint8_t, is_behind)) {
    for (int64_t i = 0; i < end_size; i++) {
        bool is_alike = i && AT(queue, i) == AT(queue, i - 1);
        AT(other, i) = is_alike ? AT(other, i - 1) : (int32_t)(i - 1);
    }
    int64_t ended = 0;
    for (int64_t gap = 0; gap < gap_end_size; gap++) {
        ended = count_until(end, end_size, AT(gap_end, gap), ended);
        int64_t last = ended - 1;
        if (last >= 0 && AT(queue, last) == AT(gap_queue, gap)) last = AT(other, last);
        AT(is_behind, gap) = last >= 0 && AT(end, last) > AT(gap_end, gap) - within;
    }
    return 0;
}

/* A union, and how many of its spans begin no later than the last instant that was asked for. */
typedef struct {
    const int64_t *start, *end;
    int64_t start_size, end_size, begun;
} Spans;

/* Whether a span holds the instant; `stop`: up to when that is so, but `until` at the latest. */
static bool is_within(Spans *spans, int64_t at, int64_t until, int64_t *stop) {
    int64_t begun = spans->begun = count_until(spans->start, spans->start_size, at, spans->begun);
    bool is_inside = begun && at < AT(spans->end, begun - 1);
    *stop = is_inside ? smaller(until, AT(spans->end, begun - 1)) : until;
    if (begun < spans->start_size) *stop = smaller(*stop, AT(spans->start, begun));
    return is_inside;
}

typedef struct {
    int32_t *gap;
    int64_t *start, *end;
    uint8_t *cause;
    int64_t gap_size, start_size, end_size, cause_size, count, last_gap;
    uint8_t last_cause;
} Parts;

/* Adds a part, or extends the last one if that has the same gap and cause; counts what there is no room for. */
static void add_part(Parts *parts, int64_t gap, int64_t start, int64_t end, uint8_t cause) {
    if (end <= start) return;
    bool is_new = !parts->count || gap != parts->last_gap || cause != parts->last_cause;
    parts->count += is_new;
    parts->last_gap = gap;
    parts->last_cause = cause;
    int64_t at = parts->count - 1;
    if (at >= parts->gap_size) return;
    AT(parts->end, at) = end;
    if (!is_new) return;
    AT(parts->gap, at) = (int32_t)gap;
    AT(parts->start, at) = start;
    AT(parts->cause, at) = cause;
}

/* Nothing is queued: the first `grace` ns count as late, since a call returns a moment after what it waited for. */
static void add_empty(Parts *parts, int64_t gap, int64_t start, int64_t end, int64_t grace, Spans *all_wait) {
    int64_t at = smaller(end, start + grace), stop;
    add_part(parts, gap, start, at, HOST_LATE);
    for (; at < end; at = stop) {
        bool is_unknown = is_within(all_wait, at, end, &stop);
        add_part(parts, gap, at, stop, is_unknown ? NOT_SHOWN : HOST_LATE);
    }
}

/* Something is queued that waits for no other row; `returned`: when the call returned that launched its graph. */
static void add_queued(Parts *parts, int64_t gap, int64_t start, int64_t end, int64_t returned, Spans *callbacks,
                       Spans *blocking) {
    for (int64_t at = start, stop; at < end; at = stop) {
        if (is_within(callbacks, at, end, &stop)) {
            add_part(parts, gap, at, stop, DEPENDENCY);
        } else if (is_within(blocking, at, stop, &stop)) {
            add_part(parts, gap, at, stop, BLOCKED_COPY);
        } else {
            int64_t launched = smaller(larger(returned, at), stop);
            add_part(parts, gap, at, launched, GRAPH_LAUNCH);
            add_part(parts, gap, launched, stop, UNEXPLAINED);
        }
    }
}

/* `row`: as first_launched finds it; `depends`: whether the row after the gap waited for another one. Callbacks come
   group by group. Writes as many parts as there is room for; returns how many there are. */
EXPORT int64_t gap_causes(IN(int64_t, begin), IN(int64_t, end), IN(int32_t, group), IN(int32_t, before),
                          IN(int32_t, after), IN(int32_t, row), IN(uint8_t, depends), IN(int32_t, launch),
                          IN(int64_t, call_start), IN(int64_t, call_dur), IN(uint8_t, is_graph), IN(uint8_t, may_block),
                          IN(int64_t, wait_start), IN(int64_t, wait_end), IN(int64_t, block_start),
                          IN(int64_t, block_end), IN(int64_t, callback_start), IN(int64_t, callback_end),
                          IN(int64_t, callback_first), int64_t queued_ns, OUT(int32_t, part_gap),
                          OUT(int64_t, part_start), OUT(int64_t, part_end), OUT(uint8_t, cause)) {
    Parts parts = {part_gap, part_start, part_end, cause, part_gap_size, part_start_size, part_end_size, cause_size,
                   0,        NONE,       0};
    Spans all_wait = {wait_start, wait_end, wait_start_size, wait_end_size, 0};
    Spans blocking = {block_start, block_end, block_start_size, block_end_size, 0};
    Spans callbacks = {callback_start, callback_end, 0, 0, 0};
    for (int64_t gap = 0; gap < begin_size; gap++) {
        int64_t from = AT(begin, gap), until = AT(end, gap), ended_by = AT(after, gap), g = AT(group, gap);
        if (!gap || g != AT(group, gap - 1)) {
            int64_t offset = AT(callback_first, g), size = AT(callback_first, g + 1) - offset;
            callbacks = (Spans){callback_start + offset, callback_end + offset, size, size, 0};
        }
        bool is_open = AT(before, gap) < 0 || AT(launch, AT(before, gap)) < 0;
        int64_t call = ended_by < 0 ? NONE : AT(launch, ended_by);
        int64_t returned = call < 0 ? NONE : AT(call_start, call) + AT(call_dur, call);
        bool is_behind = is_open && until > larger(returned, from) + queued_ns;
        if (ended_by < 0 ? is_open : call < 0 || is_behind) {
            add_part(&parts, gap, from, until, NOT_SHOWN);
            continue;
        }
        int64_t first = AT(row, gap) < 0 ? NONE : AT(launch, AT(row, gap)), queued = until, submitted = NONE;
        if (first >= 0) {
            queued = submitted = AT(call_start, first);
            if (!AT(is_graph, first) && !AT(may_block, first)) submitted += AT(call_dur, first);
        }
        int64_t answered = smaller(larger(larger(queued, submitted) + queued_ns, from), until);
        queued = smaller(larger(queued, from), until);
        if (until - queued <= queued_ns) answered = until;
        add_empty(&parts, gap, from, queued, queued_ns, &all_wait);
        add_part(&parts, gap, queued, answered, LAUNCH_LATENCY);
        if (AT(depends, gap))
            add_part(&parts, gap, answered, until, DEPENDENCY);
        else
            add_queued(&parts, gap, answered, until, call >= 0 && AT(is_graph, call) ? returned : answered, &callbacks,
                       &blocking);
    }
    return parts.count;
}
