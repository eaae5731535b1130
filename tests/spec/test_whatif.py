"""What users ask for on the command line: read as they mean it, or refused with a line that helps."""

import pytest

from tierscope.errors import UserError
from tierscope.spec.whatif import read_goal, read_improvements, read_variations

CLASSES = ("GFS-READ", "GFS-META", "LFS-READ", "LFS-META")


@pytest.mark.parametrize(
    ("text", "percent"), [("50", 50.0), ("+50", 50.0), ("50%", 50.0), ("-25", -25.0), ("12.5", 12.5), ("0", 0.0)]
)
def test_an_improvement_is_a_class_and_percent(text: str, percent: float) -> None:
    assert read_improvements([f"GFS-META={text}"], CLASSES) == {"GFS-META": percent}


def test_names_of_classes_need_no_capitals_and_no_tidiness() -> None:
    assert read_improvements(["gfs-meta = 50", "lfs-READ=7"], CLASSES) == {"GFS-META": 50.0, "LFS-READ": 7.0}


def test_a_name_with_an_equals_sign_in_it_is_still_a_name() -> None:
    assert read_improvements(["A=B-READ=5"], ["A=B-READ"]) == {"A=B-READ": 5.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("GFS-META", "has no value; write it like GFS-META=50"),
        ("=50", "has no value"),
        ("GFS-META=", "has no value; write it like GFS-META=50"),
        ("GFS-META=fast", "fast is not a number"),
        ("GFS-META=nan", "is not a finite number"),
        ("GFS-META=1e999", "is not a finite number"),
        ("GFS-META=-100", "must be within -99.9"),
        ("GFS-META=1e9", "must be within -99.9"),
        ("GFS-MTEA=50", "did you mean GFS-META? choose from GFS-READ, GFS-META, LFS-READ, LFS-META"),
        ("NVME=50", " no such class; choose from GFS-READ"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        read_improvements([text], CLASSES)
    assert str(refused.value).startswith("--improve ")
    assert said in str(refused.value)


def test_a_class_cannot_be_improved_twice() -> None:
    with pytest.raises(UserError, match="GFS-META is given twice; remove one"):
        read_improvements(["GFS-META=50", "gfs-meta=60"], CLASSES)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0:200:50", (0.0, 50.0, 100.0, 150.0, 200.0)),
        ("0..30 step 10", (0.0, 10.0, 20.0, 30.0)),
        ("0%:100%:40%", (0.0, 40.0, 80.0, 100.0)),
        ("100,0,50", (0.0, 50.0, 100.0)),
        ("-50:0:25", (-50.0, -25.0, 0.0)),
        ("70", (70.0,)),
    ],
)
def test_a_variation_is_a_range_with_its_end_or_a_list(text: str, values: tuple[float, ...]) -> None:
    assert read_variations([f"LFS-READ={text}"], CLASSES) == {"LFS-READ": values}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0:200", "is not a number"),
        ("200:0:10", "a range needs first ≤ last and a step above 0"),
        ("0:200:0", "a range needs first ≤ last"),
        ("0:1e6:0.001", "more than 10000 values"),
        ("10,10", "has a value twice"),
        ("1,,2", "is not a number"),
    ],
)
def test_a_variation_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match="--vary LFS-READ") as refused:
        read_variations([f"LFS-READ={text}"], CLASSES)
    assert said in str(refused.value)


@pytest.mark.parametrize(("text", "seconds"), [("4s", 4.0), ("4 s", 4.0), ("400ms", 0.4), ("2 min", 120.0), ("3", 3.0)])
def test_a_goal_is_a_time(text: str, seconds: float) -> None:
    assert read_goal(text).value == pytest.approx(seconds)
    assert read_goal(text).kind == "io"


@pytest.mark.parametrize("text", ["0", "-1s", "4 sec", "soon", ""])
def test_a_goal_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--goal"):
        read_goal(text)
