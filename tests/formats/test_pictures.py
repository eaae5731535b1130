"""JPEG and PNG: what their checks and their decoding find."""

import io
import warnings
from typing import Any

import pytest

from tests.formats.any_file import encoded, payloads_of
from tierscope.formats import FORMATS, Format, Shape
from tierscope.formats.images import Jpeg, Png

image_module = pytest.importorskip("PIL.Image")
pictures = pytest.mark.parametrize("name", ["png", "jpeg"])


def picture(name: str, mode: str = "L", **keywords: Any) -> bytes:
    """Somebody else's."""
    out = io.BytesIO()
    image_module.new(mode, (40, 30), 100 if mode == "L" else (1, 2, 3)).save(out, name, **keywords)
    return out.getvalue()


def refused(format_: Format, content: bytes) -> str:
    """What is wrong with it; empty: nothing."""
    try:
        format_.check(memoryview(content))
        format_.decode(memoryview(content))
    except ValueError as error:
        return str(error)
    return ""


def test_any_changed_byte_of_a_png_is_detected() -> None:
    format_, shape = Png(Shape(1, 300)), Shape(1, 300)
    good = encoded(format_, payloads_of(shape))
    for position in range(len(good)):
        for bit in (1, 128):
            spoilt = bytearray(good)
            spoilt[position] ^= bit
            with pytest.raises(ValueError, match="PNG"):
                format_.check(memoryview(spoilt))


def test_a_png_of_many_chunks_is_checked_to_its_end() -> None:
    format_, shape = Png(Shape(1, 200_000)), Shape(1, 200_000)
    good = encoded(format_, payloads_of(shape))
    assert good.count(b"IDAT") > 1
    format_.check(memoryview(good))
    with pytest.raises(ValueError, match=r"wrong PNG checksum of b'IDAT' \(stored 0x"):
        format_.check(memoryview(good[:190_000] + bytes([good[190_000] ^ 1]) + good[190_001:]))


@pictures
def test_another_s_picture_is_not_taken_for_ours(name: str) -> None:
    format_ = FORMATS.load(name)(Shape(1, 1200))
    assert "not greyscale" in refused(format_, picture(name, "RGB"))
    if name == "jpeg":
        assert "has no sample number" in refused(format_, picture(name))
        assert refused(format_, picture(name, comment=b"made with love"))
    assert refused(format_, picture("jpeg" if name == "png" else "png"))


@pictures
def test_many_samples_do_not_fit_a_picture(name: str) -> None:
    with pytest.raises(ValueError, match=r"a picture holds one sample; set .*num_samples_per_file: 1"):
        FORMATS.load(name)(Shape(2, 100))
    with pytest.raises(ValueError, match="a picture has at most 65500² bytes"):
        FORMATS.load(name)(Shape(1, 65_501**2))


def test_what_pillow_takes_for_an_attack_is_a_large_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_module, "MAX_IMAGE_PIXELS", 1000)
    shape = Shape(1, 10_000)
    format_ = Png(shape)
    (payload,) = payloads_of(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bytes(format_.decode(memoryview(encoded(format_, [payload])))) == payload


@pytest.mark.parametrize("nbytes", [1, 5, 8, 64, 3000])
def test_the_number_rides_in_a_jpeg_s_comment(nbytes: int) -> None:
    format_, shape = Jpeg(Shape(1, nbytes)), Shape(1, nbytes)
    (payload,) = payloads_of(shape)
    decoded = bytes(format_.decode(memoryview(encoded(format_, [payload]))))
    assert decoded[: min(8, nbytes)] == payload[:8]
    assert len(decoded) >= nbytes


@pictures
@pytest.mark.parametrize("nbytes", [1, 7, 64, 1000, 65_536, 300_000])
def test_memory_is_enough_for_whatever_content_makes_of_it(name: str, nbytes: int) -> None:
    format_ = FORMATS.load(name)(Shape(1, nbytes))
    for payload in (*payloads_of(Shape(1, nbytes)), bytes(nbytes), (b"\0\xff" * nbytes)[:nbytes]):
        assert len(encoded(format_, [payload])) < format_.slot_bytes
