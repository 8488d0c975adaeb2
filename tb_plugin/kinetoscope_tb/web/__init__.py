"""HTTP requests to answers. `routes` names the module of each route.

app, queries, responses  applications; query parameters; answers and errors as HTTP
encode                   answers as JSON values, for the page and the command line; encode_state for the page
timeline, slices, paths  the timeline's routes          export, perfetto   for other viewers
capture, access          requests to running jobs, and who may send them
report, inline_page      the page and its answers in one file
frame                    the page in a notebook's frame, which asks by messages
assets                   the built page
"""
