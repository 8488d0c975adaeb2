/* The longest common subsequence by Myers' algorithm; measures/graphs/alignment.py cites it and says what it returns. */
#include "arrays.h"

/* The furthest place in the first sequence by differences `d` and diagonal `k`, from -limit - 1 to limit + 1. */
#define REACH(d, k) AT(reach, (d) * (2 * limit + 3) + limit + 1 + (k))

/* Whether the path to a diagonal skips an element of the second sequence, not of the first. */
#define IS_DOWN(d, k) ((k) == -(d) || ((k) != (d) && REACH((d) - 1, (k) - 1) < REACH((d) - 1, (k) + 1)))

static int64_t furthest(OUT(int32_t, reach), int64_t limit, int64_t d, int64_t k) {
    if (d == 0) return 0;
    return IS_DOWN(d, k) ? REACH(d - 1, k + 1) : REACH(d - 1, k - 1) + 1;
}

/* `reach`: room for limit + 2 rows of 2 * limit + 3 places; `places`: -1 at first. Returns the differences of both
sequences, or -1 if there are more than `limit`. */
EXPORT int64_t common_subsequence(IN(int64_t, first), IN(int64_t, second), int64_t limit, OUT(int32_t, reach),
                                  OUT(int64_t, places)) {
    int64_t differences = -1;
    for (int64_t d = 0; d <= limit && differences < 0; d++) {
        for (int64_t k = -d; k <= d; k += 2) {
            int64_t x = furthest(reach, reach_size, limit, d, k);
            while (x < first_size && x - k < second_size && AT(first, x) == AT(second, x - k)) x++;
            REACH(d, k) = (int32_t)x;
            if (x >= first_size && x - k >= second_size) {
                differences = d;
                break;
            }
        }
    }
    int64_t x = first_size, y = second_size;
    for (int64_t d = differences; d >= 0; d--) { /* back from the end, along the path that reached it */
        int64_t k = x - y, start = furthest(reach, reach_size, limit, d, k);
        bool is_down = d > 0 && IS_DOWN(d, k);
        while (x > start) {
            x--;
            y--;
            AT(places, x) = y;
        }
        if (is_down)
            y--;
        else if (d > 0)
            x--;
    }
    return differences;
}
