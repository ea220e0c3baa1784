#!/usr/bin/env python3
"""Tests that the recipes in packaging/ install the libraries that CMake looks for. The recipes do not run."""

import os
import re
import types
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
SPACK = "packaging/spack/spack_repo/hvdlite/packages/hvdlite/package.py"
# Spack's virtual packages, which several packages provide.
VIRTUAL = {"zlib": "zlib-api", "libjpeg-turbo": "jpeg"}
# The names that a recipe imports from Spack's modules. A build system's directive is in its module only.
SPACK_MODULES = {
    "spack.package": ["conflicts", "depends_on", "license", "variant", "version"],
    "spack_repo.builtin.build_systems.cmake": ["CMakePackage", "generator"],
}
# Packages of tools/setup that an image does not need for the build.
NOT_TO_BUILD = {"ccache", "mold", "git", "libgtest-dev", "libgmock-dev", "python3", "iproute2",
                "openmpi-bin", "libopenblas0-openmp"}


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def libraries():
    """Returns the packages of each library: ([Debian's], Spack's)."""
    rows = re.findall(r'PACKAGES ("[^"]+"|\S+) ("[^"]+"|\S+)', read("cmake/HvdliteLibraries.cmake"))
    return [(debian.strip('"').split(), re.match(r"[\w-]+", spack.strip('"')).group())
            for debian, spack in rows if "Debian's" not in debian]


class RecipesTest(unittest.TestCase):
    def test_spacks_recipe_loads_and_has_the_version_of_the_project(self):
        modules = {}
        for name, contents in SPACK_MODULES.items():
            modules[name] = types.ModuleType(name)
            for directive in contents:
                setattr(modules[name], directive, mock.Mock())
        modules["spack_repo.builtin.build_systems.cmake"].CMakePackage = object
        with mock.patch.dict("sys.modules", modules):
            exec(compile(read(SPACK), SPACK, "exec"), {"__name__": "hvdlite"})
        version = re.search(r"project\(hvdlite VERSION (\S+)", read("CMakeLists.txt")).group(1)
        self.assertIn(f'version("{version}")', read(SPACK))

    def test_spacks_recipe_depends_on_every_library_except_those_for_tests(self):
        asked = set(re.findall(r'depends_on\("([\w-]+)', read(SPACK)))
        needed = {VIRTUAL.get(spack, spack) for _, spack in libraries()} - {"googletest"}
        self.assertGreater(len(needed), 8)
        self.assertEqual(needed - asked, set())

    def test_setup_and_the_images_install_every_library(self):
        setup = re.search(r"^packages=\((.*?)\)", read("tools/setup"), re.S | re.M).group(1).split()
        for debian, _ in libraries():
            for package in debian:
                self.assertIn(package, setup)
        for path in ("packaging/Containerfile", "packaging/hvdlite.def"):
            words = set(read(path).split())
            self.assertEqual(set(setup) - NOT_TO_BUILD - words, set(), path)


if __name__ == "__main__":
    unittest.main()
