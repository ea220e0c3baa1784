#!/usr/bin/env python3
"""Tests that cmake/OneLibTorch.cmake takes all of LibTorch from one place.

usage: one_libtorch_test.py CMAKE

The LibTorchs are fakes: one in the system's directory, like Debian's libtorch-dev, and one
in a virtual environment, like a wheel. They contain the lines of PyTorch's CMake package
that look for its parts.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CMAKE = "cmake"

TORCH_CONFIG = """
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../../" ABSOLUTE)
set(TORCH_INCLUDE_DIRS ${TORCH_INSTALL_PREFIX}/include)
find_package(Caffe2 REQUIRED PATHS ${CMAKE_CURRENT_LIST_DIR}/../Caffe2)
set(TORCH_LIBRARIES torch)
find_library(c10_LIBRARY c10 PATHS "${TORCH_INSTALL_PREFIX}/lib")
list(APPEND TORCH_LIBRARIES ${c10_LIBRARY})
find_library(TORCH_LIBRARY torch PATHS "${TORCH_INSTALL_PREFIX}/lib")
"""
CAFFE2_CONFIG = """
get_filename_component(prefix "${CMAKE_CURRENT_LIST_DIR}/../../../" ABSOLUTE)
foreach(name IN ITEMS c10 torch_cpu torch)
  if(NOT TARGET ${name})
    add_library(${name} SHARED IMPORTED)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${prefix}/lib/lib${name}.so)
  endif()
endforeach()
"""
VERSION = """
set(PACKAGE_VERSION @)
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""


def write(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_libtorch(prefix, version):
    for name in ("c10", "torch_cpu", "torch"):
        write(f"{prefix}/lib/lib{name}.so")
    for package, config in (("Torch", TORCH_CONFIG), ("Caffe2", CAFFE2_CONFIG)):
        write(f"{prefix}/share/cmake/{package}/{package}Config.cmake", config)
        write(f"{prefix}/share/cmake/{package}/{package}ConfigVersion.cmake", VERSION.replace("@", version))


class OneLibTorchTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = os.path.realpath(scratch.name)
        self.system = self.root + "/system"
        make_libtorch(self.system, "1.13.0")
        self.venv = self.root + "/venv"
        self.packages = self.venv + "/lib/python3.11/site-packages"
        self.wheel = self.packages + "/torch"
        make_libtorch(self.wheel, "2.13.0")
        write(self.wheel + "/__init__.py")

    def configure(self, *arguments, **environment):
        inherited = {name: value for name, value in os.environ.items()
                     if name not in ("CMAKE_PREFIX_PATH", "VIRTUAL_ENV", "PYTHONPATH", "Torch_DIR", "Torch_ROOT")}
        return subprocess.run(
            [CMAKE, "-G", "Ninja", "-S", HERE + "/one_libtorch", "-B", self.root + "/build", "-DSYSTEM=" + self.system,
             *arguments], env=inherited | environment, capture_output=True, text=True, check=False)

    def assert_found(self, prefix, *arguments, **environment):
        done = self.configure(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        files = ";".join(f"{prefix}/lib/lib{name}.so" for name in ("torch_cpu", "torch", "c10", "c10"))
        self.assertIn(f"files: {files}\n", done.stdout)
        self.assertIn(f"headers: {prefix}/include\n", done.stdout)

    def assert_mixed(self, *arguments):
        done = self.configure(*arguments)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        message = " ".join(done.stderr.split())
        for part in ("Two LibTorchs are mixed", f"{self.wheel}/lib/libtorch_cpu.so", f"{self.system}/lib/libc10.so",
                     f"Remedy: configure a clean build directory with -DCMAKE_PREFIX_PATH={self.wheel} "):
            self.assertIn(part, message)

    def install_hvdlite(self, torch):
        """Installs hvdlite's CMake package as built with that LibTorch; returns its path."""
        directory = self.root + "/hvdlite"
        with open(ROOT + "/cmake/hvdliteConfig.cmake.in", encoding="utf-8") as file:
            config = file.read()
        write(directory + "/hvdliteConfig.cmake", config
              .replace("@PACKAGE_INIT@", "macro(check_required_components name)\nendmacro()")
              .replace("@Torch_DIR@", torch + "/share/cmake/Torch").replace("@Torch_VERSION@", "2.13.0"))
        write(directory + "/hvdliteTargets.cmake")
        with open(ROOT + "/cmake/OneLibTorch.cmake", encoding="utf-8") as file:
            write(directory + "/OneLibTorch.cmake", file.read())
        return directory

    def test_the_libtorch_that_the_user_names_is_found(self):
        torch_dir = f"-DTorch_DIR={self.wheel}/share/cmake/Torch"
        prefix = "-DCMAKE_PREFIX_PATH="
        for whose, arguments, environment in (
                (self.system, [], {}),
                # The root of the package; the path that PyTorch prints; a virtual environment.
                (self.wheel, [prefix + self.wheel], {}),
                (self.wheel, [], {"CMAKE_PREFIX_PATH": self.wheel}),
                (self.wheel, [f"{prefix}{self.wheel}/share/cmake"], {}),
                (self.wheel, [prefix + "/nowhere;" + self.venv], {}),
                (self.wheel, [], {"CMAKE_PREFIX_PATH": "/nowhere:" + self.venv}),
                (self.wheel, [], {"VIRTUAL_ENV": self.venv}),
                (self.wheel, ["-DPython3_EXECUTABLE=" + sys.executable], {"PYTHONPATH": self.packages}),
                (self.system, ["-DPython3_EXECUTABLE=/bin/false"], {}),
                # Torch_DIR has priority over prefixes.
                (self.wheel, [torch_dir], {}),
                (self.system, [f"-DTorch_DIR={self.system}/share/cmake/Torch", prefix + self.wheel],
                 {"VIRTUAL_ENV": self.venv})):
            with self.subTest(arguments=arguments, environment=environment):
                shutil.rmtree(self.root + "/build", ignore_errors=True)
                self.assert_found(whose, *arguments, **environment)

    def test_another_torch_dir_in_an_old_build_directory_changes_all_parts(self):
        self.assert_found(self.system)
        self.assert_found(self.wheel, f"-DTorch_DIR={self.wheel}/share/cmake/Torch")

    def test_a_mixture_that_the_project_found_before_is_reported(self):
        self.assert_mixed("-DTORCH_FIRST=ON", f"-DCMAKE_PREFIX_PATH={self.wheel}/share/cmake")

    def test_parts_of_two_cmake_packages_are_reported(self):
        done = self.configure("-DTORCH_FIRST=ON", f"-DTorch_DIR={self.wheel}/share/cmake/Torch",
                              f"-DCaffe2_DIR={self.system}/share/cmake/Caffe2")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("Two LibTorchs are mixed", done.stderr)
        done = self.configure("-DTORCH_FIRST=ON", f"-Dc10_LIBRARY={self.system}/lib/libc10.so")
        self.assertIn(self.wheel + "/share/cmake/Torch belongs to one", " ".join(done.stderr.split()))

    def test_the_installed_package_finds_the_libtorch_that_it_was_built_with(self):
        package = "-DHVDLITE=" + self.install_hvdlite(self.wheel)
        prefix = f"-DCMAKE_PREFIX_PATH={self.wheel}/share/cmake"
        for arguments in ([], [prefix], ["-DOLD_POLICIES=ON", prefix]):
            with self.subTest(arguments):
                shutil.rmtree(self.root + "/build", ignore_errors=True)
                self.assert_found(self.wheel, package, *arguments)

    def test_the_installed_package_refuses_a_mixture_that_was_found_before(self):
        self.assert_mixed("-DTORCH_FIRST=ON", f"-DCMAKE_PREFIX_PATH={self.wheel}/share/cmake",
                          "-DHVDLITE=" + self.install_hvdlite(self.wheel))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        CMAKE = sys.argv.pop(1)
    unittest.main()
