# Functions that choose the LibTorch to build with. Sourced by tools/quickstart,
# tools/check and tools/install, after stages.sh.
# shellcheck shell=bash

# path_argument DIRECTORY PATH: prints the absolute path of PATH, which a user has given in
# the directory DIRECTORY. A bare word that is not a file there may be a command, e.g. python3.
path_argument() {
  if [[ $2 != */* && ! -e $1/$2 ]] && command -v "$2" >/dev/null; then
    command -v "$2"
  else
    (cd "$1" && realpath -sm "$2")
  fi
}

# torch_of_python PYTHON: prints the directory of its package torch, if hvdlite can be built
# with it: it has CMake's files, is for CPUs, 1.13 or later, and has the C++11 ABI.
torch_of_python() {
  "$1" - 2>/dev/null <<'END' || true
import importlib.util, os, runpy
directory = importlib.util.find_spec("torch").submodule_search_locations[0]
version = runpy.run_path(os.path.join(directory, "version.py"))
config = os.path.join(directory, "share/cmake/Torch/TorchConfig.cmake")
numbers = [int(part) for part in version["__version__"].split(".")[:2]]
if (numbers >= [1, 13] and not (version.get("cuda") or version.get("hip"))
        and "GLIBCXX_USE_CXX11_ABI=0" not in open(config).read()):
    print(directory)
END
}

# torch_prefix PATH: prints the CMake prefix of the LibTorch at PATH: a virtual environment,
# a Python, its package torch, an unpacked LibTorch, a prefix like /usr, or the directory
# of its CMake files. Ends the script if no LibTorch is there.
torch_prefix() {
  local path=$1 place
  [[ -e $path ]] || die "--torch $path: there is no such file or directory"
  if [[ -f $path && -x $path ]]; then
    place=$(torch_of_python "$path")
    [[ -n $place ]] || die "--torch $path: this Python has no PyTorch to build with (for CPUs," \
      "1.13 or later). Remedy:" \
      "$path -m pip install torch --index-url https://download.pytorch.org/whl/cpu"
    path=$place
  fi
  for place in "$path" "$path"/lib/python3*/site-packages/torch "$path"/../.. "$path"/../../..; do
    if [[ -f $place/share/cmake/Torch/TorchConfig.cmake ]]; then
      realpath -s "$place"
      return
    fi
  done
  if compgen -G "$path/lib*/cmake/Torch/TorchConfig.cmake" >/dev/null ||
    compgen -G "$path/lib*/*/cmake/Torch/TorchConfig.cmake" >/dev/null; then
    printf '%s\n' "$path"
    return
  fi
  die "--torch $path: no LibTorch is there (no TorchConfig.cmake). Name a virtual environment" \
    "with PyTorch, its python, the package torch, an unpacked LibTorch, or /usr for Debian's"
}

# choose_torch PATH BUILD: chooses the LibTorch for the build directory BUILD: PATH, or if
# that is empty the LibTorch of the last build there; without one, the PyTorch of python3,
# else Debian's. Sets the array TORCH_OPTIONS to CMake's options, and OWN_TORCH to true
# unless it is Debian's.
# shellcheck disable=SC2034
choose_torch() {
  local path=$1 prefix='' last=''
  TORCH_OPTIONS=()
  OWN_TORCH=false
  # CMake would prefer the LibTorch of an active virtual environment.
  unset VIRTUAL_ENV
  last=$(sed -n 's/^Torch_DIR:[A-Z]*=//p' "$2/CMakeCache.txt" 2>/dev/null) || last=
  if [[ -z $path && -d $last ]]; then
    if [[ $last == */share/cmake/Torch ]]; then
      OWN_TORCH=true
      stage "LibTorch: the one of the last build, $last (for Debian's: --torch /usr)"
    fi
    return
  fi
  if [[ -z $path ]]; then
    prefix=$(torch_of_python python3)
  elif [[ $path != /usr ]]; then
    prefix=$(torch_prefix "$path")
  fi
  TORCH_OPTIONS=(-UTorch_DIR -DCMAKE_PREFIX_PATH="$prefix")
  if [[ -n $prefix ]]; then
    OWN_TORCH=true
    stage "LibTorch: $prefix (for Debian's: --torch /usr)"
  fi
}
