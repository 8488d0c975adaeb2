/* Slices as Chrome's JSON; export/chrome_json says what each function returns. */
#include "text.h"

static int64_t put_text(IN(uint8_t, text), int64_t first, int64_t last, OUT(uint8_t, out), int64_t size) {
    for (int64_t k = first; k < last; k++) AT(out, size + k - first) = AT(text, k);
    return size + last - first;
}

/* Write a time in microseconds with three decimals; returns where it ends. */
static int64_t put_microseconds(int64_t ns, OUT(uint8_t, out), int64_t size) {
    int64_t digits = 4;
    for (int64_t rest = ns / 10000; rest; rest /= 10) digits++;
    int64_t at = size + digits; /* of the last digit: the point takes a place too */
    for (int64_t k = 0; k < digits; k++, ns /= 10) {
        if (k == 3) AT(out, at--) = '.';
        AT(out, at--) = (uint8_t)('0' + ns % 10);
    }
    return size + digits + 1;
}

#define ARRAY(name) name, name##_size
#define PUT(texts, at, code) \
    size = put_text(ARRAY(texts), AT(at, AT(code, i)), AT(at, AT(code, i) + 1), ARRAY(out), size)

EXPORT int64_t write_events(IN(uint8_t, heads), IN(int64_t, head_at), IN(uint8_t, names), IN(int64_t, name_at),
                            IN(uint8_t, threads), IN(int64_t, thread_at), IN(uint8_t, tails), IN(int64_t, tail_at),
                            IN(int64_t, head), IN(int64_t, name), IN(int64_t, thread), IN(int64_t, tail),
                            IN(uint8_t, is_instant), IN(int64_t, start), IN(int64_t, dur), IN(uint8_t, between),
                            OUT(uint8_t, out)) {
    int64_t size = 0;
    for (int64_t i = 0; i < start_size; i++) {
        PUT(heads, head_at, head);
        PUT(names, name_at, name);
        PUT(threads, thread_at, thread);
        size = put_microseconds(AT(start, i), ARRAY(out), size);
        if (!AT(is_instant, AT(head, i))) {
            size = put_text(ARRAY(between), 0, between_size, ARRAY(out), size);
            size = put_microseconds(AT(dur, i), ARRAY(out), size);
        }
        PUT(tails, tail_at, tail);
    }
    return size;
}

/* Fills in the threads from `from` on; returns the first slice for which there was no room in `ends`, a row of which is
the ends of the slices that are open on a thread, outermost first; `is_open` says how many. */
EXPORT int64_t place_slices(IN(int64_t, start), IN(int64_t, end), IN(int64_t, lane), int64_t from, OUT(int64_t, ends),
                            OUT(int64_t, is_open), OUT(int32_t, thread)) {
    int64_t most = is_open_size, room = ends_size / most;
    for (int64_t i = from; i < start_size; i++) {
        int64_t chosen = -1;
        for (int64_t k = 0; k < most && chosen < 0; k++) {
            while (AT(is_open, k) && AT(ends, k * room + AT(is_open, k) - 1) <= AT(start, i)) AT(is_open, k)--;
            if (AT(is_open, k) == 0 || AT(ends, k * room + AT(is_open, k) - 1) >= AT(end, i)) chosen = k;
        }
        if (chosen < 0) {
            AT(thread, i) = (int32_t)(most + AT(lane, i));
            continue;
        }
        if (AT(is_open, chosen) == room) return i;
        AT(ends, chosen * room + AT(is_open, chosen)++) = AT(end, i);
        AT(thread, i) = (int32_t)chosen;
    }
    return start_size;
}

EXPORT int64_t begun_before_each(IN(int64_t, start), IN(int64_t, lo), IN(int64_t, hi), int64_t at, OUT(int64_t, places)) {
    int64_t count = 0;
    for (int64_t row = 0; row < lo_size; row++) {
        int64_t a = AT(lo, row), b = AT(hi, row);
        while (a < b) {
            int64_t middle = (a + b) / 2;
            if (AT(start, middle) < at)
                a = middle + 1;
            else
                b = middle;
        }
        AT(places, row) = a;
        count += a - AT(lo, row);
    }
    return count;
}
