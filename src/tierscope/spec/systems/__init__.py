"""Systems that studies may name, one YAML file each beside this module; `spec/known.py` reads them.

Every number in a file is a figure with a source, or assumed or fitted within an interval. `nodes` are those of the job that the
cited study ran, or all of a small machine; a study sets its own.
"""

from tierscope.spec.shipped_yaml import Shelf

SHELF = Shelf(__name__)
names, text, preamble, summary = SHELF.names, SHELF.text, SHELF.preamble, SHELF.summary
