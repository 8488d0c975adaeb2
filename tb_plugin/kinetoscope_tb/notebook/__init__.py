"""What a notebook shows: static HTML without scripts, and the page in a frame of its own.

first_screen  the first screen as HTML      style      light and dark, from the browser's preference
view_frame    a view's answer as a frame that shows itself with headings and units
report        the report in a sandboxed frame
widget        the page, which asks the kernel; it needs anywidget
"""
