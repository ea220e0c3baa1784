"""Data sets of studies: the user's real files, or generated files instead of them."""

import dataclasses
import hashlib
import json
import pathlib
import shlex
import shutil

from studies.runner.study import Wrong


@dataclasses.dataclass
class Data:
    name: str
    directory: str      # relative to the output directory, as in commands
    real: bool
    command: str     # the command that generated it; "" for real files
    checksums: dict  # SHA-256 by file
    remark: str = ""  # a study's finding about real files

    def note(self):
        """Returns the sentence about the data for a page."""
        if self.real:
            return (f"{self.name}: files of --data, taken as the real ones by their names"
                    + (self.remark and f"; {self.remark}"))
        return f"{self.name}: not the real data, but generated files in their format (`{self.command}`)"


def checksum(path):
    """Returns the SHA-256 of a file, or of the names and checksums of all files below a directory."""
    path = pathlib.Path(path)
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            digest.update(f"{file.relative_to(path)} {checksum(file)}\n".encode())
    else:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _real_directory(name, files, directory):
    """Returns the directory that has all the files, or None. Having only some of them is an error."""
    for place in [directory / name, directory]:
        present = [file for file in files if (place / file).exists()]
        if len(present) == len(files):
            return place
        if present:
            raise Wrong(f"{place} has {', '.join(present)} of {name}, but not "
                        + ", ".join(file for file in files if file not in present))
    return None


def provide(name, files, generate, real, bench):
    """See Bench.data()."""
    directory = bench.directory / "data" / name
    real = real and bench.data_directory and _real_directory(name, files, bench.data_directory)
    if directory.is_symlink():
        directory.unlink()
    if real:
        directory.parent.mkdir(exist_ok=True)
        if directory.exists():
            shutil.rmtree(directory)
        directory.symlink_to(real)
        found = Data(name, f"data/{name}", True, "", {})
    else:
        words = [str(word).replace("{directory}", f"data/{name}") for word in generate]
        command = shlex.join(words)
        made = directory / "generated.json"  # the command that generated the data
        if not made.exists() or json.loads(made.read_text()) != command:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            bench.run(f"data of {name}", words)
            made.write_text(json.dumps(command))
        found = Data(name, f"data/{name}", False, command, {})
        missing = [file for file in files if not (directory / file).exists()]
        if missing:
            raise Wrong(f"'{command}' did not make {', '.join(missing)}")
    found.checksums = {file: checksum(directory / file) for file in files}
    bench.say("  " + ("files of --data, taken as the real ones:" if found.real
                      else "not the real data: generated files stand in:"))
    for file, digest in found.checksums.items():
        bench.say(f"    {digest}  {found.directory}/{file}")
    return found
