#!/usr/bin/env python3
"""Checks what each file of the source tree includes; see CONTRIBUTING.md.

usage: include_rules.py ROOT [COMPILE_COMMANDS]
Prints one line per violation; the exit status is 1 if there are any. COMPILE_COMMANDS is
the compile_commands.json of a build; it shows which files are compiled with LibTorch.
"""

import json
import os
import re
import sys

# A layer may include itself and the layers before it. The same holds for its parts.
LAYERS = ["base", "timeline", "collective", "negotiation", "torch_plugin", "trainers"]
PARTS = {"timeline": ["record", "read", "diagnose", "report"],
         "negotiation": ["protocol", "channel", "engine", "explain", "world"]}
PUBLIC_HEADERS = "torch_plugin/include/"
# The public header in a lower layer; it needs neither LibTorch nor another header.
CONFIG_HEADERS = "base/config/include/"
CONFIG = "hvdlite/config.h"
# The public header for programs that use MPI themselves. Only one file includes it.
MPI_PUBLIC = "hvdlite/mpi.h"
MPI_PUBLIC_FILE = "torch_plugin/state/mpi.cc"
# The code that programs share, and the directories of programs. A program may include itself and the
# layers; NARROW lists programs that may include less.
SUPPORT = "support"
PROGRAMS = ["tools", "bench", "studies"]
NARROW = {"tools/timeline_viewer": ["base", "timeline", SUPPORT]}
# A part of a layer that only programs use.
OF_PROGRAMS = "timeline/report/"
# The trainers that users read as examples.
TRAINER = re.compile(r"trainers/train_\w+\.cc$")
# Directories that are one component: they may share headers that include confined ones.
TOGETHER = [("negotiation/protocol", "negotiation/engine")]
# A header that another component includes must not include these.
CONFINED = re.compile(r"^(mpi\.h|ucp/.*|uct/.*|hwloc\.h|hwloc/.*|hwy/.*|nlohmann/.*)$|\.pb\.h$")
TORCH = re.compile(r"^(torch|ATen|c10)/")
PROTOBUF = re.compile(r"\.pb\.h$|^google/protobuf/")
# Matches a compiler command that has LibTorch's headers in its include path.
TORCH_PATH = re.compile(r"/torch/csrc/api/include[\"']?(\s|$)")
STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>, <cstdint>
GETENV_FILE = "base/environment.cc"
# The names of launchers' variables are in one table only, so that all code uses the same.
LAUNCHER_VARIABLE = re.compile(
    r'"(OMPI_COMM_WORLD_[A-Z_]+|PMI_(?:LOCAL_)?(?:RANK|SIZE)|PALS_[A-Z_]+|MPI_LOCAL(?:RANKID|NRANKS)'
    r'|PMIX_RANK|PLE_RANK_ON_NODE|SLURM_(?:PROCID|LOCALID|STEP_NUM_TASKS))"'
)
LAUNCHER_FILE = "base/launcher_environment.cc"

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
GETENV = re.compile(r"\b(secure_)?getenv\b")


def without_comments(text):
    """Returns the text without comments; string literals stay."""
    return COMMENT.sub(lambda m: m.group(0) if m.group(0)[0] == '"' else " ", text)


def source_files(root):
    """Yields the paths, relative to root, of the project's C++ files."""
    for top in LAYERS + [SUPPORT] + PROGRAMS + ["tests"]:
        for directory, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".h", ".cc")):
                    yield os.path.relpath(os.path.join(directory, name), root)


def resolve(included, includer, files):
    """Returns the project's file that an include line names, or None."""
    beside = os.path.join(os.path.dirname(includer), included)
    for path in (included, PUBLIC_HEADERS + included, CONFIG_HEADERS + included, beside):
        if os.path.normpath(path) in files:
            return os.path.normpath(path)
    return None


def part_of(path):
    """Returns the layer or program of a path or an include line, or None."""
    parts = path.split("/")
    if parts[0] == "hvdlite":
        return "base" if path == CONFIG else "torch_plugin"
    if parts[0] in PROGRAMS and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if parts[0] in LAYERS + [SUPPORT] + PROGRAMS else None


def allowed_parts(part):
    """Returns the layers and programs that `part` may include."""
    if part == SUPPORT:
        return ["base", SUPPORT]
    if part not in LAYERS:
        return NARROW.get(part, LAYERS + [SUPPORT]) + [part]
    below = LAYERS[: LAYERS.index(part) + 1]
    return below + [SUPPORT] if part == "trainers" else below


def check_layers(path, included):
    part, other = part_of(path), part_of(included)
    if part is None:
        return
    allowed = allowed_parts(part) + ([SUPPORT] if path.startswith(OF_PROGRAMS) else [])
    if other and other not in allowed:
        yield f"{path}: includes {included}; may include only {', '.join(allowed)}"
    order = PARTS.get(part, []) if other == part else []
    own, theirs = (name.split("/")[1] for name in (path, included)) if order else ("", "")
    if own in order and theirs in order and order.index(own) < order.index(theirs):
        yield f"{path}: includes {included}; {theirs} comes after {own}"
    if (TRAINER.match(path) and other not in (None, "trainers", SUPPORT)
            and not included.startswith(("hvdlite/", PUBLIC_HEADERS))):
        yield f"{path}: includes {included}; a trainer may include only public headers, as users' trainers do"
    if TORCH.match(included) and "torch_plugin" not in allowed:
        yield f"{path}: includes {included}; only torch_plugin and trainers may include LibTorch"


def component_of(path):
    """Returns the component of a file: its program, its group of TOGETHER, or its directory."""
    directory = os.path.dirname(path)
    if directory.split("/")[0] in PROGRAMS:
        return "/".join(directory.split("/")[:2])
    return next((directories[0] for directories in TOGETHER if directory in directories), directory)


def check_public_header(path, included):
    if not path.startswith((PUBLIC_HEADERS, CONFIG_HEADERS)):
        if included == MPI_PUBLIC and path != MPI_PUBLIC_FILE and not path.startswith("tests/"):
            yield f"{path}: includes {MPI_PUBLIC}, which includes mpi.h; only {MPI_PUBLIC_FILE} does"
        return
    if path == PUBLIC_HEADERS + MPI_PUBLIC and included == "mpi.h":
        return
    if included == MPI_PUBLIC:
        yield f"{path}: includes {MPI_PUBLIC}; a program that does not include it needs no MPI"
    if not (TORCH.match(included) or STANDARD.match(included) or included.startswith("hvdlite/")):
        yield f"{path}: is installed and includes {included}; it may include only LibTorch, std and hvdlite/"


def shared_headers(includes, files):
    """Returns the headers that files of other components include, directly or indirectly.

    Maps each header to one such file. Tests and the scale simulator are left out, because
    they may use internal headers.
    """
    seen = {}
    for includer in includes:
        if includer.startswith(("tests/", "tools/scale_sim/")):
            continue
        stack = [
            header
            for header in (resolve(i, includer, files) for i in includes[includer])
            if header and component_of(header) != component_of(includer)
        ]
        while stack:
            header = stack.pop()
            if header not in seen:
                seen[header] = includer
                stack += filter(None, (resolve(i, header, files) for i in includes.get(header, [])))
    return seen


def protobuf_of(path, includes, files):
    """Returns the first Protobuf header that a file includes, directly or indirectly, or None."""
    seen = {path}
    stack = [path]
    while stack:
        includer = stack.pop()
        for included in includes.get(includer, []):
            if PROTOBUF.search(included):
                return included
            header = resolve(included, includer, files)
            if header and header not in seen:
                seen.add(header)
                stack.append(header)
    return None


def check_compilation(path, command, includes, files):
    """PyTorch's packages contain the headers of a Protobuf of another version than protoc."""
    if not TORCH_PATH.search(command):
        return
    header = path if path.endswith(".pb.cc") else protobuf_of(path, includes, files)
    if header:
        yield (f"{path}: includes {header} and is compiled with LibTorch's headers, which may contain another "
               "Protobuf; move the code that needs Protobuf to a library without LibTorch")


def sources_of(source):
    """Returns the source, or the sources that a unity build combines in it."""
    if "/Unity/unity_" not in source:
        return [source]
    with open(source, encoding="utf-8") as file:
        return re.findall(r'^#include "(.*)"$', file.read(), re.MULTILINE)


def violations(root, commands=()):
    """Returns all violations in the tree below root, as sorted lines of text.

    commands: the entries of a compile_commands.json.
    """
    texts = {}
    for path in source_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts[path] = without_comments(file.read())
    files = set(texts)
    includes = {path: INCLUDE.findall(text) for path, text in texts.items()}
    found = []
    for path, lines in includes.items():
        for included in lines:
            found += check_layers(path, included)
            found += check_public_header(path, included)
    for header, includer in shared_headers(includes, files).items():
        for included in includes[header]:
            if header == PUBLIC_HEADERS + MPI_PUBLIC:
                continue
            if CONFINED.search(included):
                found.append(
                    f"{header}: includes {included}, and another component includes {header} ({includer}); "
                    "move this include into a .cc file or an internal header"
                )
    for path, text in texts.items():
        if path != GETENV_FILE and GETENV.search(text):
            found.append(f"{path}: calls getenv; only {GETENV_FILE} may (use base::ProcessEnvironment)")
        name = LAUNCHER_VARIABLE.search(text)
        if name and path != LAUNCHER_FILE and not path.startswith("tests/"):
            found.append(f"{path}: contains the launcher variable {name.group(1)}; only {LAUNCHER_FILE} may")
    for entry in commands:
        for source in sources_of(os.path.join(entry["directory"], entry["file"])):
            found += check_compilation(os.path.relpath(source, root), entry["command"], includes, files)
    return sorted(set(found))


def main(arguments):
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    commands = []
    if len(arguments) == 3:
        with open(arguments[2], encoding="utf-8") as file:
            commands = json.load(file)
    found = violations(arguments[1], commands)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
