"""The documents: running the commands that they show, and the reference pages that are made from the code."""
