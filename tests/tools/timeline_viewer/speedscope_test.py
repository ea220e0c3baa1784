#!/usr/bin/env python3
"""speedscope, in Chromium, loads a trace that hvdlite recorded, and what it is converted to.

usage: speedscope_test.py RECORD_TRACE TIMELINE_VIEWER [--speedscope FOLDER]

FOLDER is where npm has installed speedscope. Exit status 77: it is not there, or Chromium with
its driver is not.
"""
import argparse
import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import browser

SKIPPED = 77
# Notes all that the page warns of, from its beginning on.
NOTE_WARNINGS = """
window.notedWarnings = [];
for (const kind of ['warn', 'error']) {
  const original = console[kind].bind(console);
  console[kind] = (...values) => {
    window.notedWarnings.push(kind + ': ' + values.map(String).join(' '));
    original(...values);
  };
}
window.alert = text => {
  window.notedWarnings.push('alert: ' + text);
  document.documentElement.dataset.alerted = 'yes';  // for who waits
};
window.addEventListener('error', event => window.notedWarnings.push('thrown: ' + event.message));
window.addEventListener('unhandledrejection',
                        event => window.notedWarnings.push('thrown: ' + event.reason));
"""

# Answers once the page has a profile, or says that it has none.
WAIT_FOR_PROFILE = """
const done = arguments[arguments.length - 1];
const look = () => {
  const failed = document.body.innerText.includes('omething went wrong') ||
                 document.documentElement.dataset.alerted === 'yes';
  if (!failed && !document.title.includes(' - speedscope')) return;
  observer.disconnect();
  done({failed, title: document.title, text: document.body.innerText,
        warnings: window.notedWarnings});
};
const observer = new MutationObserver(look);
observer.observe(document,
                 {attributes: true, childList: true, subtree: true, characterData: true});
look();
"""

args = argparse.Namespace()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class SpeedscopeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        site = os.path.join(cls.folder.name, "site")
        shutil.copytree(args.site, site)
        cls.site = site
        cls.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(QuietHandler, directory=site))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.browser = browser.Browser().__enter__()
        cls.browser.call("POST", "/goog/cdp/execute", {
            "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": {"source": NOTE_WARNINGS}})

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.server.shutdown()
        cls.server.server_close()
        cls.folder.cleanup()

    def load(self, name):
        root = "http://127.0.0.1:%d/" % self.server.server_address[1]
        self.browser.call("POST", "/url", {"url": "about:blank"})  # a new hash alone loads nothing
        self.browser.call("POST", "/url",
                          {"url": "%sindex.html#profileURL=%s%s" % (root, root, name)})
        return self.browser.run_async(WAIT_FOR_PROFILE)

    def record(self):
        trace = os.path.join(self.site, "trace.json")
        subprocess.run([args.record_trace, trace], check=True)
        return trace

    def test_loads_a_converted_trace_without_a_warning(self):
        subprocess.run([args.timeline_viewer, "convert", self.record(), "--format", "speedscope",
                        "-o", os.path.join(self.site, "converted.json")],
                       check=True, stdout=subprocess.DEVNULL)
        page = self.load("converted.json")
        self.assertFalse(page["failed"], page)
        self.assertEqual(page["warnings"], [])
        self.assertIn("rank 0 (node0), batch", page["title"] + page["text"])

    def test_loads_a_recorded_trace(self):
        self.record()
        page = self.load("trace.json")
        self.assertFalse(page["failed"], page)
        self.assertIn("rank 0 (node0)", page["title"] + page["text"])
        # It adds starts and durations as doubles: what is no ns long is warned of.
        for warning in page["warnings"]:
            self.assertRegex(warning, "^warn: .*(Tried to end|still open at end)")

    def test_notices_what_cannot_be_loaded(self):
        with open(os.path.join(self.site, "broken.json"), "w", encoding="utf-8") as file:
            file.write('[{"ph":"X","name":"no time","pid":1,"tid":1}]')
        page = self.load("broken.json")
        self.assertTrue(page["failed"], page)
        self.assertNotEqual(page["warnings"], [])

    def test_notices_slices_that_do_not_nest(self):
        with open(os.path.join(self.site, "crossed.json"), "w", encoding="utf-8") as file:
            file.write('[{"ph":"X","name":"a","ts":0,"dur":5,"pid":1,"tid":1},'
                       '{"ph":"X","name":"b","ts":3,"dur":5,"pid":1,"tid":1}]')
        page = self.load("crossed.json")
        self.assertFalse(page["failed"], page)
        self.assertNotEqual(page["warnings"], [])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record_trace")
    parser.add_argument("timeline_viewer")
    parser.add_argument("--speedscope", default="")
    parser.parse_args(namespace=args)
    args.site = os.path.join(args.speedscope, "node_modules", "speedscope", "dist", "release")
    if not browser.is_installed():
        print("skipped: there is no chromium with its driver (tools/setup --browser)")
        return SKIPPED
    if not os.path.isfile(os.path.join(args.site, "index.html")):
        print("skipped: there is no speedscope (npm install --prefix %s speedscope)" %
              args.speedscope)
        return SKIPPED
    program = unittest.main(argv=sys.argv[:1], exit=False)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
