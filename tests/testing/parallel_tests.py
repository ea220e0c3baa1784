"""unittest.main() for tests that mostly wait for their processes: several run at the same time."""

import io
import multiprocessing
import sys
import time
import unittest


def run_one(name):
    """Whether a test has passed or was skipped, and its report."""
    text, start = io.StringIO(), time.monotonic()
    result = unittest.TextTestRunner(text, verbosity=0).run(unittest.defaultTestLoader.loadTestsFromName(
        name, sys.modules["__main__"]))
    told = "" if result.wasSuccessful() and not result.skipped else text.getvalue()
    for _, reason in result.skipped:
        told += "skipped: " + reason + "\n"
    return result.wasSuccessful(), "%6.1f s  %s\n%s" % (time.monotonic() - start, name, told)


def names_of(suite):
    """The names of a suite's tests, without their module."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from names_of(test)
        else:
            yield test.id().partition(".")[2]


def main(at_once):
    """Runs the tests of the calling script, `at_once` at a time, each in its own process.
    With arguments, calls unittest.main()."""
    if len(sys.argv) > 1:
        unittest.main()
    names = list(names_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    passed = 0
    with multiprocessing.get_context("fork").Pool(at_once) as pool:
        for ok, text in pool.imap_unordered(run_one, names):
            passed += ok
            print(text, end="", flush=True)
    print("%d of %d tests passed" % (passed, len(names)))
    sys.exit(passed != len(names) or not names)
