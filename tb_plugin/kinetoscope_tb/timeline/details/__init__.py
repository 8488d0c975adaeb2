"""Details of one slice, or of all slices of a row.

details         the whole answer
slice_summary   what the page needs to draw, name and find a slice
links           what launched what, what ran inside what      arrows      the arrows to draw
provenance      the call, operator, module and stack          row_links   rows of views that count it
duration_stats  how long slices of its name last
row_facts       the same for all calls behind a row of a view
"""
