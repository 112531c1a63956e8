"""Programs of a lab as processes: started, watched, and ended in the right order.

Here: pid files, ports, children that must not stay behind, steps that need each other,
and the progress that a user is shown. Knows no program by name.
"""
