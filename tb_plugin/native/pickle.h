/* Words of a pickle's values: a kind in the low four bits, and what it says of the value above them.

reader/pickles/machine.py has the same numbers. */
#pragma once

#include "text.h"

enum { MISSING, NOTHING, BOOLEAN, INTEGER, SIGNED, UNSIGNED, REAL, TEXT, LIST, DICT, TUPLE, FUNCTION, RECORD, STACK, RUN,
       ELSEWHERE };
/* MISSING    no value
   NOTHING    None
   INTEGER    of at most 60 bits; SIGNED, UNSIGNED, REAL: a row of `wide`, which has all 64
   TEXT       a row of `text_ends`
   LIST, DICT, TUPLE   a row of `heads`
   FUNCTION   one of torch's that return their first argument; only REDUCE takes it
   RECORD     a dict of known keys: its kind in the next four bits, above them its number among those
   STACK      a list of frames: a row of `stack_ends`
   RUN        in `words`: how many records follow the one before, each with the next number
   ELSEWHERE  in `memo`: a row of `wide`, which has the word */

enum { KIND_BITS = 4, RECORD_KINDS = 8, FRAME_KIND = 0, NEXT_RECORD = 1 << 2 * KIND_BITS };

static inline int64_t word_of(int64_t kind, int64_t value) { return (int64_t)((uint64_t)value << KIND_BITS) | kind; }
static inline int64_t kind_of(int64_t word) { return word & ((1 << KIND_BITS) - 1); }
static inline int64_t value_of(int64_t word) { return word >> KIND_BITS; }
