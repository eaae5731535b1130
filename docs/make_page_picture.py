"""The picture of the page in the README: `python docs/make_page_picture.py OUT docs/page.png` shows OUT/report.html with two sliders moved.

Needs the extra `browser` and Debian's chromium.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SETTINGS = "#GFS-META=50&LFS-READ=120"
SIZE = {"width": 1180, "height": 1330}


def main(out: str, picture: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(Path(out, "report.html").resolve().as_uri() + SETTINGS)
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
