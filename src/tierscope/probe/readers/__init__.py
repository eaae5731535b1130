"""Files that other storage benchmarks left, one module per tool: `registry.py` lists them.

A reader says whether a text is its tool's, and turns it into phases: rates of all processes together, with how many there were. What a phase can
tell of a system is decided in one place, `probe/from_files.py`.
"""
