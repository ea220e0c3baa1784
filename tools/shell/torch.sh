# Sourced by tools/quickstart, tools/check and tools/install, after stages.sh: which
# LibTorch to build with.
# shellcheck shell=bash

# torch_of_python PYTHON: prints the folder of its package torch; nothing where it has none
# with LibTorch's CMake files, or one for GPUs, which cannot be built with here.
torch_of_python() {
  "$1" - 2>/dev/null <<'END' || true
import importlib.util, os, runpy
spec = importlib.util.find_spec("torch")
folder = spec.submodule_search_locations[0]
version = runpy.run_path(os.path.join(folder, "version.py"))
if os.path.exists(os.path.join(folder, "share/cmake/Torch/TorchConfig.cmake")) and not (
        version.get("cuda") or version.get("hip")):
    print(folder)
END
}

# torch_prefix PATH: prints the CMake prefix of the LibTorch that PATH names: a virtual
# environment, a Python, its package torch, an unpacked LibTorch, a prefix like /usr, or
# the folder of its CMake files. Ends the script where that is none.
torch_prefix() {
  local path place
  path=$(realpath -s "$1")
  [[ -e $path ]] || die "--torch $1: there is no such file or folder"
  if [[ -f $path && -x $path ]]; then
    place=$(torch_of_python "$path")
    [[ -n $place ]] || die "--torch $1: this Python has no PyTorch for CPUs." \
      "Remedy: $1 -m pip install torch --index-url https://download.pytorch.org/whl/cpu"
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
  die "--torch $1: no LibTorch is there (no TorchConfig.cmake). Name a virtual environment" \
    "with PyTorch, its python, the package torch, an unpacked LibTorch, or /usr for Debian's"
}

# choose_torch PATH BUILD: sets TORCH to the prefix of the LibTorch to build with: that of
# PATH if it is given, else the one that the build folder BUILD has, else that of python3's
# PyTorch. Empty: Debian's. Says which.
choose_torch() {
  local path=$1 build=$2 version=
  if [[ -n $path ]]; then
    TORCH=$(torch_prefix "$path")
  else
    TORCH=$(sed -n 's/^CMAKE_PREFIX_PATH:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null) || TORCH=
    [[ -n $TORCH && -d $TORCH ]] || TORCH=$(torch_of_python python3)
  fi
  if [[ $TORCH == /usr ]]; then TORCH=; fi
  # Another one of a virtual environment would come first.
  unset VIRTUAL_ENV
  if [[ -n $TORCH ]]; then
    version=$(cat "$TORCH/build-version" 2>/dev/null) ||
      version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$TORCH/version.py" 2>/dev/null) || true
    stage "LibTorch ${version:+$version }of $TORCH (--torch /usr: Debian's)"
  fi
}
