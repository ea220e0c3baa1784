"""Recipe for Spack 1.0 or later; docs/install.md explains how to use it."""

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Hvdlite(CMakePackage):
    """Synchronous data-parallel training for LibTorch on CPU clusters."""

    license("Apache-2.0")

    # The version has no address: `spack develop` gives the location of the sources.
    version("0.1.0")

    variant("ucx", default=True, description="Control messages between hosts over UCX")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi@3.1:")
    depends_on("ucx@1.11:", when="+ucx")
    # +custom-protobuf: PyTorch hides its own Protobuf. Otherwise it needs one of 2020.
    depends_on("py-torch@1.13: ~cuda ~rocm +custom-protobuf", type=("build", "link", "run"))
    depends_on("abseil-cpp@20220623: cxxstd=20")
    # 3.21.12 is the last release without Abseil (21.12 in spack-packages of 2026).
    depends_on("protobuf@3.21,21", type=("build", "link"))
    depends_on("nlohmann-json@3.11:")
    depends_on("cli11@2.1:")
    depends_on("zlib-api")
    depends_on("highway@1.0.3:")
    depends_on("hwloc@2:")
    depends_on("jpeg")
    depends_on("libpng")

    conflicts("%gcc@:11", msg="hvdlite needs GCC 12 or later")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("HVDLITE_BUILD_TESTS", False),
            self.define("HVDLITE_FETCH", False),
            self.define("HVDLITE_PRECOMPILE_TORCH", False),
            self.define_from_variant("HVDLITE_WITH_UCX", "ucx"),
        ]

    @property
    def build_targets(self):
        return ["hvdlite_hvdlite", "programs"]
