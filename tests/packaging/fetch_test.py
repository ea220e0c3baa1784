#!/usr/bin/env python3
"""Tests what HVDLITE_FETCH downloads and builds, with a tiny library made here."""

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(around LANGUAGES {languages})
include({root}/cmake/HvdliteLibraries.cmake)
include({root}/cmake/HvdliteFetch.cmake)
hvdlite_library(Tiny TARGET tiny::tiny PACKAGES libtiny-dev tiny-spack VERSION 1.5
  URL {url} SHA256 {checksum} OPTIONS -DTINY_OPTION=chosen)
hvdlite_find_libraries({names})
message(STATUS "found Tiny: ${{Tiny_DIR}} ${{TINY_OPTION}}")
"""

TINY = """
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES NONE)
file(WRITE ${CMAKE_BINARY_DIR}/TinyConfig.cmake "set(TINY_OPTION ${TINY_OPTION})\\n")
install(FILES ${CMAKE_BINARY_DIR}/TinyConfig.cmake DESTINATION lib/cmake/Tiny)
"""


class FetchTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        os.makedirs(self.path("mirror"))
        self.checksum = self.pack(TINY)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def pack(self, lists):
        """Writes the library's archive to the mirror and returns its checksum."""
        archive = self.path("mirror", "any-name.tar.gz")
        with tarfile.open(archive, "w:gz") as tar:
            member = tarfile.TarInfo("tiny-1.5/CMakeLists.txt")
            member.size = len(lists)
            tar.addfile(member, io.BytesIO(lists.encode()))
        with open(archive, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def configure(self, *options, names="Tiny", url="file:///no/such/file", languages="NONE"):
        """Returns the exit status of CMake and its output as one line."""
        with open(self.path("CMakeLists.txt"), "w") as file:
            file.write(PROJECT.format(root=ROOT, names=names, url=url, checksum=self.checksum, languages=languages))
        result = subprocess.run(["cmake", "-G", "Ninja", "-S", self.directory, "-B", self.path("build"), *options],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return result.returncode, re.sub(r"\s+", " ", result.stdout)

    def mirror(self):
        return "-DHVDLITE_FETCH_MIRROR=" + self.path("mirror")

    def test_all_missing_libraries_are_reported_with_their_packages(self):
        status, output = self.configure("-DCMAKE_DISABLE_FIND_PACKAGE_absl=ON", names="absl Tiny")
        self.assertNotEqual(status, 0)
        for text in ("Missing libraries: absl, Tiny.", "apt-get install libabsl-dev libtiny-dev",
                     "spack install abseil-cpp cxxstd=20 tiny-spack", "-DHVDLITE_FETCH=ON"):
            self.assertIn(text, output)

    def test_a_missing_library_is_built_from_an_archive_of_any_name_in_the_mirror(self):
        status, output = self.configure("-DHVDLITE_FETCH=ON", self.mirror())
        self.assertEqual(status, 0, output)
        self.assertIn("found Tiny: " + self.path("build/libraries/prefix/lib/cmake/Tiny") + " chosen", output)

    def test_a_library_is_built_only_once(self):
        self.configure("-DHVDLITE_FETCH=ALL", self.mirror())
        os.remove(self.path("mirror", "any-name.tar.gz"))
        status, output = self.configure()
        self.assertEqual(status, 0, output)
        self.assertNotIn("Building Tiny", output)

    def test_a_library_is_built_again_for_another_configuration(self):
        self.configure("-DHVDLITE_FETCH=ON", self.mirror())
        for change in ("-DCMAKE_CXX_FLAGS=-march=native", "-DCMAKE_CXX_COMPILER=/opt/bin/g++",
                       "-DCMAKE_CXX_FLAGS="):
            with self.subTest(change=change):
                status, output = self.configure(change)
                self.assertEqual(status, 0, output)
                self.assertIn("Building Tiny", output)
                self.assertNotIn("Building Tiny", self.configure()[1])

    def test_a_library_is_built_again_after_a_failed_build(self):
        self.checksum = self.pack(TINY + 'if(CMAKE_CXX_FLAGS)\nmessage(FATAL_ERROR "no")\nendif()\n')
        self.assertEqual(self.configure("-DHVDLITE_FETCH=ON", self.mirror())[0], 0)
        self.assertNotEqual(self.configure("-DCMAKE_CXX_FLAGS=-O3")[0], 0)
        status, output = self.configure("-DCMAKE_CXX_FLAGS=")
        self.assertEqual(status, 0, output)
        self.assertIn("Building Tiny", output)

    def test_the_end_of_a_failing_builds_output_is_shown(self):
        for before in ("", "x" * 4000 + " "):
            self.checksum = self.pack('message(STATUS "%s")\nmessage(FATAL_ERROR "the last words")\n' % before)
            status, output = self.configure("-DHVDLITE_FETCH=ON", self.mirror())
            self.assertNotEqual(status, 0)
            self.assertIn("Tiny 1.5 could not be built", output)
            self.assertIn("the last words", output)
            self.assertNotIn("math cannot parse", output)

    def test_an_installed_library_is_built_only_if_named(self):
        there = self.path("there")
        os.makedirs(there)
        with open(os.path.join(there, "TinyConfig.cmake"), "w") as file:
            file.write("set(TINY_OPTION system)\n")
        tiny = "-DCMAKE_PREFIX_PATH=" + there
        self.assertIn("system", self.configure(tiny, "-DHVDLITE_FETCH=ON", self.mirror())[1])
        os.remove(self.path("build", "CMakeCache.txt"))
        self.assertIn("chosen", self.configure(tiny, "-DHVDLITE_FETCH=Tiny", self.mirror())[1])

    def test_headers_of_protobuf_without_its_library_are_ignored(self):
        torch, whole = self.path("libtorch"), self.path("whole")
        for directory in (torch, whole):
            os.makedirs(os.path.join(directory, "include/google/protobuf/stubs"))
            for name in ("service.h", "stubs/common.h"):
                with open(os.path.join(directory, "include/google/protobuf", name), "w") as file:
                    file.write("#define GOOGLE_PROTOBUF_VERSION 3013000\n")
        os.makedirs(os.path.join(whole, "lib"))
        with open(os.path.join(whole, "lib", "libprotobuf.a"), "w"):
            pass

        def include_directory(prefix):
            self.configure("-DCMAKE_PREFIX_PATH=" + prefix, names="Protobuf", languages="C")
            with open(self.path("build", "CMakeCache.txt")) as file:
                text = file.read()
            os.remove(self.path("build", "CMakeCache.txt"))
            return re.search("^Protobuf_INCLUDE_DIR:PATH=(.*)", text, re.MULTILINE).group(1)
        self.assertNotIn(torch, include_directory(torch))
        self.assertEqual(include_directory(torch + ";" + whole), os.path.join(whole, "include"))

    def test_an_archive_missing_in_the_mirror_is_reported_with_address_and_checksum(self):
        self.checksum = "0" * 64
        status, output = self.configure("-DHVDLITE_FETCH=ON", self.mirror())
        self.assertNotEqual(status, 0)
        self.assertIn("(HVDLITE_FETCH_MIRROR) is the archive of Tiny 1.5 (file:///no/such/file, "
                      "SHA256 " + self.checksum, output)

    def test_a_download_is_built(self):
        url = "file://" + self.path("mirror", "any-name.tar.gz")
        status, output = self.configure("-DHVDLITE_FETCH=ON", url=url)
        self.assertEqual(status, 0, output)

    def test_a_download_with_another_checksum_is_refused(self):
        self.checksum = "0" * 64
        url = "file://" + self.path("mirror", "any-name.tar.gz")
        status, output = self.configure("-DHVDLITE_FETCH=ON", url=url)
        self.assertNotEqual(status, 0)
        self.assertIn("it is not that release", output)

    def test_without_internet_the_mirror_is_recommended(self):
        status, output = self.configure("-DHVDLITE_FETCH=ON")
        self.assertNotEqual(status, 0)
        self.assertIn("could not be downloaded", output)
        self.assertIn("-DHVDLITE_FETCH_MIRROR=DIRECTORY", output)

    def test_unpacked_sources_of_the_user_need_no_archive(self):
        with tarfile.open(self.path("mirror", "any-name.tar.gz")) as tar:
            tar.extractall(self.directory)
        status, output = self.configure(
            "-DHVDLITE_FETCH=ON", "-DFETCHCONTENT_SOURCE_DIR_TINY=" + self.path("tiny-1.5"))
        self.assertEqual(status, 0, output)

    def test_every_archive_has_a_secure_address_and_a_checksum(self):
        lines = subprocess.run([os.path.join(ROOT, "tools", "install"), "--archives"], check=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.splitlines()
        self.assertGreaterEqual(len(lines), 10)
        for line in lines:
            self.assertRegex(line, r"^https://\S+\.tar\.(gz|bz2) [0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
