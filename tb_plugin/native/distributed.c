/* Calls of many ranks that wait for each other; distributed/path says what each function returns. */
#include "arrays.h"

static const int64_t NEVER = INT64_MIN / 2;
enum { SEGMENT, CALL, BEFORE, N_FIELDS = 8 };

/* For each unit how many it waits for, and where its successors begin; both are 0 at first. */
EXPORT int64_t count_successors(IN(int64_t, unit), IN(int64_t, since), IN(int64_t, of_call), OUT(int64_t, waits),
                                OUT(int64_t, first)) {
    for (int64_t c = 0; c < unit_size; c++)
        for (int64_t segment = AT(of_call, c); segment < AT(of_call, c + 1); segment++)
            if (AT(since, segment) >= 0) {
                AT(waits, AT(unit, c))++;
                AT(first, AT(unit, AT(since, segment)) + 1)++;
            }
    for (int64_t u = 1; u < first_size; u++) AT(first, u) += AT(first, u - 1);
    return AT(first, first_size - 1);
}

/* Kahn's topological sort; `fill` is a copy of `first`, `place` -1 at first, `waits` is used up. */
EXPORT int64_t order_units(IN(int64_t, unit), IN(int64_t, since), IN(int64_t, of_call), IN(int64_t, first),
                           OUT(int64_t, waits), OUT(int64_t, fill), OUT(int64_t, after), OUT(int64_t, queue),
                           OUT(int64_t, place)) {
    int64_t count = 0;
    for (int64_t c = 0; c < unit_size; c++)
        for (int64_t segment = AT(of_call, c); segment < AT(of_call, c + 1); segment++)
            if (AT(since, segment) >= 0) AT(after, AT(fill, AT(unit, AT(since, segment)))++) = AT(unit, c);
    for (int64_t u = 0; u < waits_size; u++)
        if (AT(waits, u) == 0) AT(queue, count++) = u;
    for (int64_t k = 0; k < count; k++) {
        int64_t u = AT(queue, k);
        AT(place, u) = k;
        for (int64_t i = AT(first, u); i < AT(first, u + 1); i++)
            if (--AT(waits, AT(after, i)) == 0) AT(queue, count++) = AT(after, i);
    }
    return count;
}

/* How much later the segment's call ends. */
#define DELAY(segment) ((AT(since, segment) >= 0 ? AT(ends, AT(since, segment)) : 0) - AT(slack, segment))

EXPORT int64_t shift_calls(IN(int64_t, order), IN(int64_t, unit), IN(int64_t, of_call), IN(int64_t, since),
                           IN(int64_t, slack), IN(int64_t, wait), IN(int64_t, cut), OUT(int64_t, ends)) {
    for (int64_t i = 0, stop; i < order_size; i = stop) {
        int64_t begins = NEVER;
        for (stop = i; stop < order_size && AT(unit, AT(order, stop)) == AT(unit, AT(order, i)); stop++) {
            int64_t c = AT(order, stop), start = AT(of_call, c) == AT(of_call, c + 1) ? 0 : NEVER;
            for (int64_t segment = AT(of_call, c); segment < AT(of_call, c + 1); segment++)
                start = larger(start, DELAY(segment));
            begins = larger(begins, start - AT(wait, c));
        }
        for (int64_t k = i; k < stop; k++) AT(ends, AT(order, k)) = begins - AT(cut, AT(order, k));
    }
    return 0;
}

EXPORT int64_t shift_steps(IN(int64_t, of_step), IN(int64_t, since), IN(int64_t, slack), IN(int64_t, ends),
                           OUT(int64_t, shifts)) {
    for (int64_t s = 0; s < shifts_size; s++) {
        AT(shifts, s) = 0;
        for (int64_t segment = AT(of_step, s); segment < AT(of_step, s + 1); segment++)
            AT(shifts, s) = segment == AT(of_step, s) ? DELAY(segment) : larger(AT(shifts, s), DELAY(segment));
    }
    return 0;
}

typedef struct {
    int64_t *at, at_size, count;
} Pieces;

/* Writes a piece where there is room, column by column. */
static void put_piece(Pieces *pieces, int64_t step, int64_t kind, int64_t of, int64_t member, int64_t start,
                      int64_t dur, int64_t since, int64_t until) {
    const int64_t fields[N_FIELDS] = {step, kind, of, member, start, dur, since, until};
    int64_t room = pieces->at_size / N_FIELDS;
    if (pieces->count < room)
        for (int j = 0; j < N_FIELDS; j++) AT(pieces->at, j * room + pieces->count) = fields[j];
    pieces->count++;
}

/* Writes as many pieces as there is room for; returns how many there are. */
EXPORT int64_t walk_back_ranks(IN(int64_t, rows), IN(int64_t, end), IN(int64_t, total), IN(int64_t, on_step),
                               IN(int64_t, on_call), IN(int64_t, of_step), IN(int64_t, of_call), IN(int64_t, since),
                               IN(int64_t, length), IN(int64_t, start), IN(int64_t, dur), IN(int64_t, wait),
                               IN(int64_t, last), OUT(int64_t, columns)) {
    Pieces pieces = {columns, columns_size, 0};
    for (int64_t s = 0; s < rows_size; s++) {
        int64_t left = AT(total, s), at = AT(end, s), until = NONE, on = AT(on_step, s), hops = 0;
        int64_t first = AT(of_step, AT(rows, s)), stop = AT(of_step, AT(rows, s) + 1);
        while (left > 0) {
            if (first == stop || ++hops > dur_size + 1) { /* more hops than calls: an invalid summary */
                put_piece(&pieces, s, BEFORE, NONE, on, at - left, left, NONE, until);
                break;
            }
            int64_t c = AT(since, first), took = smaller(AT(length, first), left);
            if (took > 0) put_piece(&pieces, s, SEGMENT, first, on, at - took, took, c, until);
            left -= took;
            at -= took;
            if (left == 0) break;
            if (c < 0) {
                put_piece(&pieces, s, BEFORE, NONE, on, at - left, left, NONE, until);
                break;
            }
            took = smaller(AT(dur, c) - AT(wait, c), left);
            if (took > 0) put_piece(&pieces, s, CALL, c, on, at - took, took, c, c);
            left -= took;
            until = AT(wait, c) > 0 ? AT(last, c) : c;
            at = AT(start, until);
            on = AT(on_call, until);
            first = AT(of_call, until);
            stop = AT(of_call, until + 1);
        }
    }
    return pieces.count;
}
