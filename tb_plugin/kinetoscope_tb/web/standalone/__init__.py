"""The page without TensorBoard, for the user who started it alone: `kinetoscope open`.

access      who may see the page: those who have its token, from the page itself
application requests → the page, and the routes of `web.app`
presence    whether the page is still open
uploads     files that were dropped onto the page, and standard input
server      the server, until the page is left

It imports nothing that is slow: the page is there while what answers its questions is imported.
"""
