/* Calls by their path; measures/calls says what each function returns. */
#include "arrays.h"

/* `table`: a hash table with open addressing, of nodes by (parent, code); -1 at first, a power of two long. Returns how
many nodes there are; `above` and `named` have room for a node of each call and each root. */
EXPORT int64_t call_paths(IN(int32_t, parent), IN(int64_t, code), IN(int64_t, root), int64_t roots, int64_t seed,
                          OUT(int32_t, table), OUT(int32_t, node), OUT(int32_t, above), OUT(int32_t, named)) {
    int64_t count = roots, mask = table_size - 1;
    for (int64_t i = 0; i < roots; i++) {
        AT(above, i) = NONE;
        AT(named, i) = (int32_t)i;
    }
    for (int64_t i = 0; i < parent_size; i++) {
        int64_t around = AT(parent, i) >= 0 ? AT(node, AT(parent, i)) : AT(root, i), of = AT(code, i);
        if (of < 0) {
            AT(node, i) = (int32_t)around;
            continue;
        }
        int64_t slot = (int64_t)mix(mix(0, (uint64_t)around, seed), (uint64_t)of, seed) & mask;
        while (AT(table, slot) >= 0 && (AT(above, AT(table, slot)) != around || AT(named, AT(table, slot)) != of))
            slot = (slot + 1) & mask;
        if (AT(table, slot) < 0) {
            AT(table, slot) = (int32_t)count;
            AT(above, count) = (int32_t)around;
            AT(named, count) = (int32_t)of;
            count++;
        }
        AT(node, i) = AT(table, slot);
    }
    return count;
}

/* `size`: 1 at first; `next`: the place of the next child of each node. */
EXPORT int64_t preorder(IN(int32_t, parent), IN(int64_t, order), OUT(int32_t, size), OUT(int32_t, next),
                        OUT(int32_t, result)) {
    int64_t next_root = 0;
    for (int64_t i = parent_size - 1; i >= 0; i--)
        if (AT(parent, i) >= 0) AT(size, AT(parent, i)) += AT(size, i);
    for (int64_t i = 0; i < parent_size; i++) {
        int64_t node = AT(order, i), above = AT(parent, node), place;
        if (above < 0) {
            place = next_root;
            next_root += AT(size, node);
        } else {
            place = AT(next, above);
            AT(next, above) += AT(size, node);
        }
        AT(next, node) = (int32_t)place + 1;
        AT(result, place) = (int32_t)node;
    }
    return 0;
}

/* `around`: the nodes that are open, outermost first; `open_ones`: how many of each group are, 0 at first. */
EXPORT int64_t outermost(IN(int32_t, parent), IN(int64_t, order), IN(int64_t, group), OUT(int32_t, around),
                         OUT(int32_t, open_ones), OUT(uint8_t, result)) {
    int64_t top = 0;
    for (int64_t i = 0; i < parent_size; i++) {
        int64_t node = AT(order, i);
        while (top && AT(around, top - 1) != AT(parent, node)) {
            top--;
            AT(open_ones, AT(group, AT(around, top)))--;
        }
        AT(result, node) = AT(open_ones, AT(group, node)) == 0;
        AT(around, top++) = (int32_t)node;
        AT(open_ones, AT(group, node))++;
    }
    return 0;
}

EXPORT int64_t interleave(IN(int32_t, thread), IN(int64_t, start), IN(int64_t, end), IN(int32_t, other_thread),
                          IN(int64_t, other_start), IN(int64_t, other_end), OUT(int32_t, order)) {
    int64_t n = start_size, m = other_start_size, i = 0, j = 0;
    for (int64_t k = 0; k < n + m; k++) {
        bool is_other;
        if (i == n || j == m)
            is_other = i == n;
        else if (AT(thread, i) != AT(other_thread, j))
            is_other = AT(other_thread, j) < AT(thread, i);
        else if (AT(start, i) != AT(other_start, j))
            is_other = AT(other_start, j) < AT(start, i);
        else
            is_other = AT(other_end, j) > AT(end, i);
        AT(order, k) = (int32_t)(is_other ? n + j++ : i++);
    }
    return 0;
}

EXPORT int64_t inherit(OUT(uint8_t, is_inside), IN(int64_t, rows), IN(int64_t, outer)) {
    for (int64_t i = 0; i < rows_size; i++) AT(is_inside, AT(rows, i)) = AT(is_inside, AT(outer, i));
    return 0;
}
