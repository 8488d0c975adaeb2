/* The sums over all paths of a pair hidden Markov model; compare/alignment/pair_hmm.py cites it and says what they mean.

Rows are units of the first side, columns those of the second; a row has `width` cells from its base on. Within a row,
weights span more powers of two than a double has, so each tile of a row has an exponent of its own. Functions compute rows
from `begin` to `end`; on one side of these, the arrays have REACH rows more. */
#include "arrays.h"

enum { TILE = 64, REACH = 6, ROOM = TILE + REACH };
static const int64_t NOWHERE = INT64_MIN / 4; /* the exponent of zeros */
static const int64_t LEAST = -500, MOST = 1000;
static const double LEAST_POSTERIOR = 1e-9;

#define FIELD(type, name) \
    type *name;           \
    int64_t name##_size

/* `units`, `others`: of each move, how many it matches. `rows`, `columns`: by move and its last unit, where `table` has its
   odds; a negative row has none. `leave`: the probability that after a match units of one side are left alone, `stay`: that
   after such a unit the next one is, `change`: that units of the other side are. `cells`: room for REACH + 2 tiles. */
typedef struct {
    FIELD(const int64_t, base);
    FIELD(const int64_t, units);
    FIELD(const int64_t, others);
    FIELD(const int32_t, rows);
    FIELD(const int32_t, columns);
    FIELD(const float64_t, table);
    FIELD(float64_t, cells);
    double leave, stay, change;
    int64_t width, last_row, last_column;
} Model;

/* Two weights of each cell of some rows, the first of which is `first`, and an exponent of each tile. */
typedef struct {
    FIELD(float64_t, match);
    FIELD(float64_t, alone);
    FIELD(int64_t, exponents);
    int64_t first;
} Weights;

static Model model_of(IN(int64_t, base), IN(int64_t, units), IN(int64_t, others), IN(int32_t, rows),
                      IN(int32_t, columns), IN(float64_t, table), IN(float64_t, alone), OUT(float64_t, cells),
                      int64_t width) {
    int64_t moves = units_size;
    CHECK(cells_size >= (REACH + 2) * ROOM && width % TILE == 0);
    for (int64_t m = 0; m < moves; m++)
        CHECK(AT(units, m) > 0 && AT(units, m) <= REACH && AT(others, m) > 0 && AT(others, m) <= REACH);
    return (Model){base,  base_size,    units,           units_size,     others,          others_size,
                   rows,  rows_size,    columns,         columns_size,   table,           table_size,
                   cells, cells_size,   AT(alone, 0),    AT(alone, 1),   AT(alone, 2),    width,
                   base_size - 1, columns_size / moves};
}

static double power_of_two(int64_t exponent) {
    if (exponent < LEAST) return 0;
    union {
        uint64_t bits;
        double value;
    } power = {(uint64_t)(smaller(exponent, MOST) + 1023) << 52};
    return power.value;
}

static int64_t exponent_of(double value) {
    union {
        double value;
        uint64_t bits;
    } number = {value};
    return (int64_t)(number.bits >> 52 & 2047) - 1023;
}

static int64_t cell_of(const Model *m, const Weights *w, int64_t row, int64_t column) {
    return (row - w->first) * m->width + column - AT(m->base, row);
}

static int64_t exponent_at(const Model *m, const Weights *w, int64_t row, int64_t column) {
    if (row < 0 || row > m->last_row || column > m->last_column) return NOWHERE;
    if (column < AT(m->base, row) || column >= AT(m->base, row) + m->width) return NOWHERE;
    return AT(w->exponents, cell_of(m, w, row, column) / TILE);
}

/* The exponent of what a tile is computed from: the tiles of REACH rows before it or behind it, and those next to them. */
static int64_t scale_of(const Model *m, const Weights *w, int64_t row, int64_t start, int64_t direction) {
    int64_t scale = NOWHERE;
    for (int64_t a = 1; a <= REACH; a++) {
        scale = larger(scale, exponent_at(m, w, row + direction * a, start));
        scale = larger(scale, exponent_at(m, w, row + direction * a, start + direction * TILE));
    }
    return scale;
}

/* Copy weights of a row, as multiples of a power of two, from a column on. */
static void load(const Model *m, const Weights *w, IN(float64_t, weights), int64_t row, int64_t from, int64_t count,
                 int64_t scale, OUT(float64_t, into)) {
    for (int64_t k = 0; k < count;) {
        int64_t until = smaller(count, k + TILE - ((from + k) & (TILE - 1)));
        int64_t exponent = exponent_at(m, w, row, from + k);
        double factor = exponent == NOWHERE ? 0 : power_of_two(exponent - scale);
        if (factor > 0) {
            int64_t cell = cell_of(m, w, row, from);
            for (; k < until; k++) AT(into, k) = factor * AT(weights, cell + k);
        }
        for (; k < until; k++) AT(into, k) = 0;
    }
}

static void load_rows(const Model *m, const Weights *w, int64_t row, int64_t start, int64_t direction, int64_t scale) {
    for (int64_t a = 1; a <= REACH; a++)
        load(m, w, w->match, w->match_size, row + direction * a, direction < 0 ? start - REACH : start, ROOM, scale,
             m->cells + a * ROOM, m->cells_size - a * ROOM);
    load(m, w, w->alone, w->alone_size, row + direction, start, TILE, scale, m->cells + (REACH + 1) * ROOM,
         m->cells_size - (REACH + 1) * ROOM);
}

/* Scale the weights of a tile, so that the largest is about 1; returns the factor. */
static double rescale(const Model *m, const Weights *w, int64_t row, int64_t start, int64_t count, int64_t scale) {
    int64_t cell = cell_of(m, w, row, start);
    double largest = 0;
    for (int64_t k = cell; k < cell + count; k++) {
        largest = AT(w->match, k) > largest ? AT(w->match, k) : largest;
        largest = AT(w->alone, k) > largest ? AT(w->alone, k) : largest;
    }
    int64_t exponent = exponent_of(largest);
    double factor = exponent > -MOST ? power_of_two(-exponent) : 0;
    AT(w->exponents, cell / TILE) = factor > 0 ? scale + exponent : NOWHERE;
    for (int64_t k = cell; k < cell + count; k++) {
        AT(w->match, k) *= factor;
        AT(w->alone, k) *= factor;
    }
    return factor;
}

/* Where the table has the odds of a move whose last unit of the first side is `unit`, or a negative number. */
static int64_t row_of_odds(const Model *m, int64_t move, int64_t unit) {
    return unit >= 0 && unit < m->last_row ? AT(m->rows, move * m->last_row + unit) : NONE;
}

/* Add the odds of a move times the weights of the cells that it leads to, or comes from. */
static void add_products(IN(float64_t, odds), IN(int32_t, columns), IN(float64_t, weights), OUT(float64_t, sums)) {
    for (int64_t k = 0; k < sums_size; k++) AT(sums, k) += AT(odds, AT(columns, k)) * AT(weights, k);
}

/* The weights of the cells of a tile at a match, into `cells`: one that ends there if `direction` is -1, or that begins. */
static void add_matches(const Model *m, int64_t row, int64_t start, int64_t count, int64_t direction) {
    for (int64_t k = 0; k < TILE; k++) AT(m->cells, k) = 0;
    for (int64_t move = 0; move < m->units_size; move++) {
        int64_t a = AT(m->units, move), b = AT(m->others, move), begin = direction < 0 && !start;
        int64_t odds = row_of_odds(m, move, direction < 0 ? row - 1 : row + a - 1);
        int64_t column = direction < 0 ? start + begin - 1 : start + b - 1;
        int64_t cells = smaller(count - begin, m->last_column - column);
        if (odds < 0 || cells <= 0) continue;
        int64_t last = move * m->last_column + column, from = a * ROOM + begin + (direction < 0 ? REACH - b : b);
        add_products(m->table + odds, m->table_size - odds, m->columns + last, m->columns_size - last, m->cells + from,
                     m->cells_size - from, m->cells + begin, cells);
    }
}

/* From the beginning: `match` is the weight of all paths to a cell at a match that begins there; `alone` what the cell
   below gets by a unit of the first side that is left alone. The arrays begin with REACH rows before `begin`. `total`: the
   weight of all paths; returns its exponent, once the last row is computed. */
EXPORT int64_t sum_from_begin(int64_t begin, int64_t end, int64_t width, IN(int64_t, base), IN(int64_t, units),
                              IN(int64_t, others), IN(int32_t, rows), IN(int32_t, columns), IN(float64_t, table),
                              IN(float64_t, probabilities), OUT(float64_t, cells), OUT(float64_t, match),
                              OUT(float64_t, alone), OUT(int64_t, exponents), OUT(float64_t, total)) {
    Model model = model_of(base, base_size, units, units_size, others, others_size, rows, rows_size, columns,
                           columns_size, table, table_size, probabilities, probabilities_size, cells, cells_size, width);
    Weights weights = {match, match_size, alone, alone_size, exponents, exponents_size, begin - REACH};
    const Model *m = &model;
    const Weights *w = &weights;
    int64_t of_total = NOWHERE;
    for (int64_t row = begin; row < end; row++) {
        int64_t carry_scale = NOWHERE;
        double carry = 0; /* what the next cell gets by a unit of the second side that is left alone */
        for (int64_t start = AT(base, row); start < AT(base, row) + width && start <= m->last_column; start += TILE) {
            int64_t count = smaller(TILE, m->last_column + 1 - start), cell = cell_of(m, w, row, start);
            int64_t scale = row || start ? larger(carry_scale, scale_of(m, w, row, start, -1)) : 0;
            load_rows(m, w, row, start, -1, scale);
            add_matches(m, row, start, count, -1);
            if (!row && !start) AT(cells, 0) = 1;
            carry *= power_of_two(carry_scale - scale);
            for (int64_t k = 0; k < count; k++) {
                double matched = AT(cells, k), above = AT(cells, (REACH + 1) * ROOM + k);
                if (row == m->last_row && start + k == m->last_column) {
                    AT(total, 0) = matched + above + carry;
                    of_total = scale;
                }
                AT(match, cell + k) = (1 - 2 * m->leave) * matched + (1 - m->stay - m->change) * above +
                                      (1 - m->stay) * carry;
                AT(alone, cell + k) = m->leave * matched + m->stay * above;
                carry = m->leave * matched + m->stay * carry + m->change * above;
            }
            carry *= rescale(m, w, row, start, count, scale);
            carry_scale = exponent_at(m, w, row, start);
        }
    }
    return of_total;
}

/* Posteriors, which are added up: of each pair, by row, which begin with row `begin`, and of each unit that it is matched. */
typedef struct {
    FIELD(float64_t, pairs);
    FIELD(float64_t, units);
    FIELD(float64_t, others);
    int64_t begin;
} Posteriors;

/* Add the posterior of a move that begins at a cell. */
static void add_posterior(const Model *m, const Posteriors *p, int64_t move, int64_t row, int64_t column, double value) {
    for (int64_t j = column; j < column + AT(m->others, move); j++) AT(p->others, j) += value;
    for (int64_t i = row; i < row + AT(m->units, move); i++) {
        AT(p->units, i) += value;
        for (int64_t j = column; j < column + AT(m->others, move); j++)
            if (j >= AT(m->base, i) && j < AT(m->base, i) + m->width)
                AT(p->pairs, (i - p->begin) * m->width + j - AT(m->base, i)) += value;
    }
}

/* The posteriors of the matches that begin at the cells of a tile, whose weights are in `cells`. `before`, `factor`: the
   weights of the paths to these cells, as shares of all. */
static void add_posteriors(const Model *m, const Posteriors *p, int64_t row, int64_t start, int64_t count,
                           IN(float64_t, before), double factor) {
    for (int64_t k = 0; k < count; k++) {
        double share = AT(before, k) * factor;
        if (AT(m->cells, k) * share < LEAST_POSTERIOR) continue;
        for (int64_t move = 0; move < m->units_size; move++) {
            int64_t a = AT(m->units, move), b = AT(m->others, move), odds = row_of_odds(m, move, row + a - 1);
            if (odds < 0 || start + k + b > m->last_column) continue;
            int64_t column = AT(m->columns, move * m->last_column + start + k + b - 1);
            double value = AT(m->table, odds + column) * AT(m->cells, a * ROOM + b + k) * share;
            add_posterior(m, p, move, row, start + k, value);
        }
    }
}

/* From the end: `match` is the weight of all paths from a match that ends at a cell, `alone` from a unit of the first side
   that is left alone. Their arrays, and those of posteriors of pairs, which are added up, have REACH rows behind `end`;
   `before` is `match` of sum_from_begin. */
EXPORT int64_t sum_from_end(int64_t begin, int64_t end, int64_t width, IN(int64_t, base), IN(int64_t, units),
                            IN(int64_t, others), IN(int32_t, rows), IN(int32_t, columns), IN(float64_t, table),
                            IN(float64_t, probabilities), OUT(float64_t, cells), OUT(float64_t, match),
                            OUT(float64_t, alone), OUT(int64_t, exponents), OUT(float64_t, before),
                            OUT(int64_t, exponents_before), IN(float64_t, total), int64_t of_total,
                            OUT(float64_t, of_pairs), OUT(float64_t, of_units), OUT(float64_t, of_others)) {
    Model model = model_of(base, base_size, units, units_size, others, others_size, rows, rows_size, columns,
                           columns_size, table, table_size, probabilities, probabilities_size, cells, cells_size, width);
    Weights weights = {match, match_size, alone, alone_size, exponents, exponents_size, begin};
    Posteriors posteriors = {of_pairs, of_pairs_size, of_units, of_units_size, of_others, of_others_size, begin};
    Weights begins = {before, before_size, before, before_size, exponents_before, exponents_before_size, begin - REACH};
    const Model *m = &model;
    const Weights *w = &weights;
    for (int64_t row = end - 1; row >= begin; row--) {
        int64_t carry_scale = NOWHERE, stop = smaller(AT(base, row) + width, m->last_column + 1);
        double carry = 0; /* the weight from the next cell, if its unit of the second side is left alone */
        for (int64_t start = (stop - 1) / TILE * TILE; start >= AT(base, row); start -= TILE) {
            int64_t count = smaller(TILE, stop - start), cell = cell_of(m, w, row, start);
            bool is_end = row == m->last_row && start + count > m->last_column;
            int64_t scale = is_end ? 0 : larger(carry_scale, scale_of(m, w, row, start, 1));
            int64_t from = cell_of(m, &begins, row, start), of_begin = exponent_at(m, &begins, row, start);
            bool is_reached = scale != NOWHERE && of_begin != NOWHERE;
            load_rows(m, w, row, start, 1, scale);
            add_matches(m, row, start, count, 1);
            if (is_reached)
                add_posteriors(m, &posteriors, row, start, count, before + from, before_size - from,
                               power_of_two(of_begin + scale - of_total) / AT(total, 0));
            carry *= power_of_two(carry_scale - scale);
            for (int64_t k = count - 1; k >= 0; k--) {
                double matched = AT(cells, k), below = AT(cells, (REACH + 1) * ROOM + k);
                bool is_last = is_end && start + k == m->last_column;
                AT(match, cell + k) = is_last ? 1 : (1 - 2 * m->leave) * matched + m->leave * (below + carry);
                AT(alone, cell + k) =
                    is_last ? 1 : (1 - m->stay - m->change) * matched + m->stay * below + m->change * carry;
                carry = is_last ? 1 : (1 - m->stay) * matched + m->stay * carry;
            }
            carry *= rescale(m, w, row, start, count, scale);
            carry_scale = exponent_at(m, w, row, start);
        }
    }
    return 0;
}
