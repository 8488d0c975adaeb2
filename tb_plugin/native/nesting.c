/* Ranges inside ranges; arrays/nesting.py says what each function returns. */
#include "arrays.h"

EXPORT int64_t nest(IN(int32_t, thread), IN(int64_t, start), IN(int64_t, end), OUT(int32_t, above),
                    OUT(int32_t, parent), OUT(int16_t, depth)) {
    int64_t top = 0, overlaps = 0;
    for (int64_t i = 0; i < start_size; i++) {
        if (i && AT(thread, i) != AT(thread, i - 1)) top = 0;
        bool outlasts = false;
        while (top) {
            int64_t around = AT(end, AT(above, top - 1));
            if (around > AT(start, i) && around >= AT(end, i)) break;
            outlasts |= around > AT(start, i);
            top--;
        }
        overlaps += outlasts;
        AT(parent, i) = top ? AT(above, top - 1) : NONE;
        AT(depth, i) = (int16_t)top;
        AT(above, top++) = (int32_t)i;
    }
    return overlaps;
}

EXPORT int64_t innermost(IN(int32_t, thread), IN(int64_t, start), IN(int64_t, end), IN(int32_t, at_thread),
                         IN(int64_t, at), OUT(int32_t, above), OUT(int32_t, rows)) {
    int64_t top = 0, row = 0;
    for (int64_t q = 0; q < at_size; q++) {
        if (q && AT(at_thread, q) != AT(at_thread, q - 1)) top = 0;
        while (row < start_size && AT(thread, row) < AT(at_thread, q)) row++;
        for (; row < start_size && AT(thread, row) == AT(at_thread, q) && AT(start, row) <= AT(at, q); row++) {
            while (top && AT(end, AT(above, top - 1)) <= AT(start, row)) top--;
            AT(above, top++) = (int32_t)row;
        }
        while (top && AT(end, AT(above, top - 1)) <= AT(at, q)) top--;
        AT(rows, q) = top ? AT(above, top - 1) : NONE;
    }
    return 0;
}

/* `reached`: up to where the children, then the calls, cover a range so far. */
EXPORT int64_t self_times(IN(int32_t, thread), IN(int64_t, start), IN(int64_t, end), IN(int32_t, parent),
                          IN(int32_t, call_thread), IN(int32_t, call_host), IN(int64_t, call_start),
                          IN(int64_t, call_end), OUT(int64_t, reached), OUT(int64_t, alone)) {
    for (int64_t i = 0; i < start_size; i++) {
        AT(alone, i) = AT(end, i) - AT(start, i);
        AT(reached, i) = AT(start, i);
        int64_t p = AT(parent, i);
        if (p < 0) continue;
        int64_t covered = larger(AT(start, i), AT(reached, p));
        if (AT(end, i) > covered) {
            AT(alone, p) -= AT(end, i) - covered;
            AT(reached, p) = AT(end, i);
        }
    }
    for (int64_t i = 0; i < start_size; i++) AT(reached, i) = AT(start, i);
    int64_t following = 0; /* the first range that begins after the call: the call is cut there, a child takes over */
    for (int64_t c = 0; c < call_host_size; c++) {
        while (following < start_size &&
               (AT(thread, following) < AT(call_thread, c) ||
                (AT(thread, following) == AT(call_thread, c) && AT(start, following) <= AT(call_start, c))))
            following++;
        int64_t h = AT(call_host, c);
        if (h < 0) continue;
        int64_t stop = smaller(AT(call_end, c), AT(end, h));
        if (following < start_size && AT(thread, following) == AT(thread, h)) stop = smaller(stop, AT(start, following));
        int64_t begin = larger(AT(call_start, c), AT(reached, h));
        if (stop > begin) {
            AT(alone, h) -= stop - begin;
            AT(reached, h) = stop;
        }
    }
    return 0;
}

EXPORT int64_t nearest(IN(uint8_t, is_match), IN(int32_t, parent), OUT(int32_t, rows)) {
    for (int64_t i = 0; i < parent_size; i++) {
        int32_t p = AT(parent, i);
        AT(rows, i) = AT(is_match, i) ? (int32_t)i : p >= 0 ? AT(rows, p) : NONE;
    }
    return 0;
}

EXPORT int64_t add_up(IN(int32_t, parent), OUT(int64_t, total)) {
    for (int64_t i = parent_size - 1; i >= 0; i--)
        if (AT(parent, i) >= 0) AT(total, AT(parent, i)) += AT(total, i);
    return 0;
}

/* `innermost_of`: the innermost open row of each code, -1 at first. */
EXPORT int64_t nearest_alike(IN(int32_t, parent), IN(int64_t, code), OUT(int32_t, innermost_of), OUT(int32_t, above),
                             OUT(int32_t, ancestor)) {
    int64_t top = 0;
    for (int64_t i = 0; i < parent_size; i++) {
        while (top && AT(above, top - 1) != AT(parent, i)) {
            int64_t closed = AT(above, --top), of = AT(code, closed);
            if (of >= 0) AT(innermost_of, of) = AT(ancestor, closed);
        }
        int64_t of = AT(code, i);
        AT(ancestor, i) = of >= 0 ? AT(innermost_of, of) : NONE;
        if (of >= 0) AT(innermost_of, of) = (int32_t)i;
        AT(above, top++) = (int32_t)i;
    }
    return 0;
}

/* Which rows end later than all rows of their thread and code before them. Rows of a thread are together, in order of
time. `last_thread`: of each code the thread of the row with the latest end, less than any at first. */
EXPORT int64_t outermost_alike(IN(int32_t, thread), IN(int64_t, code), IN(int64_t, end), OUT(int32_t, last_thread),
                               OUT(int64_t, latest_end), OUT(uint8_t, is_outermost)) {
    for (int64_t i = 0; i < thread_size; i++) {
        int64_t of = AT(code, i);
        AT(is_outermost, i) = AT(last_thread, of) != AT(thread, i) || AT(end, i) > AT(latest_end, of);
        if (!AT(is_outermost, i)) continue;
        AT(last_thread, of) = AT(thread, i);
        AT(latest_end, of) = AT(end, i);
    }
    return 0;
}

/* `inside`: the number of ranges and calls made directly in each row, 0 at first. */
EXPORT int64_t repeats(IN(int32_t, parent), IN(int64_t, name), IN(uint8_t, is_op), IN(int32_t, call_host),
                       OUT(int32_t, inside), OUT(uint8_t, again)) {
    for (int64_t i = 0; i < parent_size; i++)
        if (AT(parent, i) >= 0) AT(inside, AT(parent, i))++;
    for (int64_t c = 0; c < call_host_size; c++)
        if (AT(call_host, c) >= 0) AT(inside, AT(call_host, c))++;
    for (int64_t i = 0; i < parent_size; i++) {
        int64_t p = AT(parent, i);
        AT(again, i) = p >= 0 && AT(is_op, i) && AT(is_op, p) && AT(name, p) == AT(name, i) && AT(inside, p) == 1;
    }
    return 0;
}
