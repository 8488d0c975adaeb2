"""Which device work of one recording is which of another, whatever code, compiler or device ran it.

units       the rows of a step as a sequence, with signatures that don't name kernels
families    how likely work of one family is that of another, or a piece of it
likeness    the odds that units are the same work, by their signatures
guess       about where two long sequences run side by side
pair_hmm    the posterior of each pair of units, by the order of all
anchors     units that are surely the same work
alignment   the matches
"""
