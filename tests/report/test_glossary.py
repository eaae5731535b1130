"""One explanation of every term, in one sentence each."""

from tierscope.report.glossary import GLOSSARY


def test_terms_are_in_order_and_one_sentence_each() -> None:
    names = [term.name.lower() for term in GLOSSARY]
    assert names == sorted(names)
    assert len({term.key for term in GLOSSARY}) == len(GLOSSARY)
    for term in GLOSSARY:
        assert term.text.endswith(".")
        assert ". " not in term.text, term.name


def test_what_a_reader_meets_first_is_there() -> None:
    keys = {term.key for term in GLOSSARY}
    assert keys >= {"busy", "wall", "cache-rate", "slowest", "class", "bottleneck", "hidden", "interval", "epoch"}
    assert "copy of that share on every node" in next(term.text for term in GLOSSARY if term.key == "cache-rate")
