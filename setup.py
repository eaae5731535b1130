"""Builds the C library of tierscope/native; all else is in pyproject.toml.

The library is plain C for any Python, loaded with ctypes and LD_PRELOAD: so its file and the wheel carry no Python version.
Where there is no compiler the installation goes on without it.
"""

from glob import glob

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

FOLDER = "src/tierscope/native/c"


class BuildLibrary(build_ext):
    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"


class TagLibrary(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": TagLibrary},
    ext_modules=[
        Extension(
            "tierscope.native.libtierscope",
            sources=sorted(glob(f"{FOLDER}/*.c")),
            depends=sorted(glob(f"{FOLDER}/*.h")),
            # Programs may pass NULL where headers forbid it: our checks for that must stay. A thread that is cancelled must unwind through us.
            extra_compile_args=[
                *("-std=gnu11", "-O2", "-g0", "-fexceptions", "-fno-delete-null-pointer-checks", "-fvisibility=hidden"),
                "-ftls-model=initial-exec",
            ],
            extra_link_args=["-ldl", "-pthread"],
            optional=True,
        )
    ],
)
