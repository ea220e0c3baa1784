"""Output files of scripts, with the rules of the programs (support/output_file.h): a script replaces
existing files only with --overwrite, and a file gets its name when it is complete."""

import json
import os
import stat


def _is_stream(path):
    if str(path) in ("/dev/stdout", "/dev/stderr") or str(path).startswith(("/dev/fd/", "/proc/self/fd/")):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def add_overwrite(parser):
    parser.add_argument("--overwrite", action="store_true",
                        help="replace output files that exist; without it they are refused")


def require_new(parser, flag, path, overwrite, inputs=()):
    """Call this before the work. Ends with an error of `parser`, an argparse.ArgumentParser, if `path`,
    given by `flag`, must not be written: it exists, or it is one of `inputs` under any name."""
    if not path or _is_stream(path):
        return
    problem = ""
    directory = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        problem = "it is a directory"
    elif os.path.exists(path) and any(each and os.path.exists(each) and os.path.samefile(each, path)
                                      for each in inputs):
        problem = "it is read, too; name another file"
    elif os.path.lexists(path) and not overwrite:
        problem = "it exists; --overwrite replaces it, or name another file"
    elif not os.access(directory, os.W_OK):
        problem = f"no file can be made in '{directory}'"
    if problem:
        parser.error(f"cannot write '{path}' ({flag}): {problem}")


def write(path, text):
    if _is_stream(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    beside = f"{path}.tmp.{os.getpid()}"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        if os.path.lexists(beside):
            os.remove(beside)
        raise


def write_json(path, content, indent=None):
    """Writes `content` as JSON; does nothing without a `path`."""
    if path:
        write(path, json.dumps(content, indent=indent) + "\n")
