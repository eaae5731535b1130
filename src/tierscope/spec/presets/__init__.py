"""Studies to start from, one YAML file each beside this module."""

from tierscope.spec.shipped_yaml import Shelf

SHELF = Shelf(__name__)
names, text, preamble, summary = SHELF.names, SHELF.text, SHELF.preamble, SHELF.summary
