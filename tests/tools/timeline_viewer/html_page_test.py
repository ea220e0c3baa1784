#!/usr/bin/env python3
"""Tests the HTML page of timeline_viewer in a headless Chromium.

usage: html_page_test.py TIMELINE_VIEWER [--screenshots DIRECTORY]

Ends with 77 (skipped) if Chromium or its driver is not installed (tools/setup
--browser).
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import browser  # noqa: E402: beside this file

VIEWER = SCREENSHOTS = None

# Two processes of a timeline of Horovod. The name of one looks like markup.
EVIL = "</script><img src=x onerror=\"window.evil=1\"><b>bold</b>"
HOROVOD = [
    {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": EVIL}},
    {"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "grad/conv2"}},
    {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1000, "pid": 1},
    {"ph": "E", "ts": 2000, "pid": 1},
    {"ph": "B", "name": EVIL, "ts": 2000, "pid": 1},
    {"ph": "B", "name": "MPI_ALLREDUCE", "ts": 2200, "pid": 1},
    {"ph": "E", "ts": 3300, "pid": 1},
    {"ph": "E", "ts": 3500, "pid": 1},
    {"ph": "X", "name": "ALLREDUCE", "ts": 1500, "dur": 900, "pid": 2, "tid": 0},
    {"ph": "C", "name": EVIL, "ts": 1500, "pid": 2, "args": {EVIL: 3}},
]


# JavaScript: returns the size of a PNG and the colours of its pixels.
COLOURS = """
const [png, done] = arguments;
const image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const {data} = context.getImageData(0, 0, image.width, image.height);
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) colours.add((data[i] << 16) + (data[i + 1] << 8) + data[i + 2]);
  done([image.width, image.height, [...colours]]);
};
image.src = `data:image/png;base64,${png}`;"""


class HtmlPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name
        cls.trace = os.path.join(cls.directory, "trace.json")
        subprocess.run([sys.executable, "-B", os.path.join(HERE, "make_trace.py"), cls.trace],
                       check=True)
        cls.page = cls.make_page(cls.trace)
        other = os.path.join(cls.directory, "horovod.json")
        with open(other, "w", encoding="utf-8") as file:
            json.dump(HOROVOD, file)
        cls.other_page = cls.make_page(other)
        cls.browser = browser.Browser()
        cls.browser.__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    @classmethod
    def make_page(cls, trace):
        subprocess.run([VIEWER, "html", trace], check=True, stdout=subprocess.DEVNULL)
        return trace + ".html"

    def setUp(self):
        self.browser.emulate_dark(False)
        self.open(self.page)

    def open(self, page):
        self.browser.open(page)
        self.settle()

    def tearDown(self):
        if SCREENSHOTS and not self.id().endswith("pixels"):
            self.shoot(self.id().rpartition(".")[2])
        self.assertEqual(self.state("errors"), [])
        self.assertEqual(self.browser.console(), [])

    def shoot(self, name):
        png = self.browser.screenshot()
        if SCREENSHOTS:
            with open(os.path.join(SCREENSHOTS, name + ".png"), "wb") as file:
                file.write(png)
        return png

    def settle(self):
        """Waits until the page is ready and has drawn everything."""
        if not self.browser.run("return 'hvdlite' in window"):
            self.fail(f"the page's script failed: {self.browser.console()}")
        self.browser.run_async(
            "const done = arguments[0];"
            "const look = () => window.hvdlite.readyMs !== undefined ?"
            "  requestAnimationFrame(() => requestAnimationFrame(() => done())) :"
            "  requestAnimationFrame(look);"
            "look();")

    def state(self, key):
        return self.browser.run("return window.hvdlite[arguments[0]]", key)

    def window(self):
        self.settle()
        window = self.state("window")
        return window["start"], window["end"]

    def width(self):
        start, end = self.window()
        return end - start

    def chart(self):
        """Returns the middle of the time axis on the page, and its box."""
        box = self.browser.run(
            "const box = document.getElementById('chart').getBoundingClientRect();"
            "return [box.left, box.top, box.width, box.height]")
        return (box[0] + box[2] / 2, box[1] + box[3] / 2), box

    def row_with(self, name):
        """Returns the place on the page of the first row with events called `name`."""
        return self.browser.run(
            "for (let i = 0; i < window.hvdlite.rows; ++i) {"
            "  const box = window.hvdlite.rowBox(i);"
            "  if (box !== null && box.names.includes(arguments[0])) return box;"
            "} return null;", name)

    # ---- The first views.

    def test_overview_shows_the_parts_of_a_step(self):
        self.assertEqual(self.state("view"), "overview")
        self.assertEqual(self.browser.run("return document.title"),
                         "trace.json - hvdlite timeline")
        tiles = self.browser.text(".tiles")
        self.assertIn("on 2 hosts: node0, node1", tiles)
        # One bar for all ranks and one for each; the segments fill a bar.
        sums = self.browser.run(
            "return [...document.querySelectorAll('.bar')].map(bar => "
            "[...bar.children].reduce((sum, part) => sum + parseFloat(part.style.width), 0))")
        self.assertEqual(len(sums), 5)
        for total in sums:
            self.assertAlmostEqual(total, 100, places=3)
        legend = self.browser.text("table.legend")
        for part in ("computing", "input", "waiting for ranks", "data plane", "copies"):
            self.assertIn(part, legend)

    def test_findings_have_a_remedy_and_a_link_to_the_axis(self):
        findings = self.browser.text("#findings")
        self.assertIn("Remedy:", findings)
        self.assertIn("rank 2", findings.lower())
        self.browser.click(".finding-link")
        start, end = self.window()
        mark = self.state("mark")
        self.assertEqual(self.state("view"), "axis")
        self.assertLessEqual(start, mark["start"])
        self.assertGreaterEqual(end, mark["end"])
        self.assertIn("Finding: ", self.browser.text("#banner"))
        self.browser.keys(browser.ESCAPE)
        self.assertIsNone(self.state("mark"))

    def test_cell_of_the_heat_map_leads_to_its_step(self):
        self.browser.click("#tab-stragglers")
        self.browser.run("document.querySelector('#heat-map canvas').focus()")
        self.browser.keys(browser.DOWN * 2 + browser.RIGHT)
        # Rank 2 is the straggler.
        said = self.browser.text("#heat-map p[role=status]")
        self.assertRegex(said, r"^Rank 2, step 3: late by [1-9]\d\.\d\s%")
        self.browser.keys(browser.ENTER)
        self.settle()
        self.assertEqual(self.state("view"), "axis")
        self.assertEqual(self.state("mark")["text"], "Step 3 of rank 2")
        self.browser.keys("2")
        self.assertEqual(self.state("view"), "stragglers")
        box = self.browser.run(
            "const box = document.querySelector('#heat-map canvas').getBoundingClientRect();"
            "return [box.left, box.top]")
        self.browser.click_at(box[0] + 70, box[1] + 5)
        self.settle()
        self.assertEqual(self.state("mark")["text"], "Step 2 of rank 0")

    def test_overlap_of_a_typical_step_is_shown_for_each_rank(self):
        self.browser.click("#tab-stragglers")
        rows = self.browser.run(
            "return [...document.querySelectorAll('.strip-row')].map(row => row.innerText)")
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertRegex(row, r"rank \d\s+hidden .*\s+exposed ")
        # The table of `timeline_viewer stragglers`: rank 2 is the last in most steps.
        self.assertRegex(self.browser.text("#stragglers table tbody tr:nth-child(3)"), r"^2 node1 [89]\d\.\d ")
        self.shoot("overlap")

    # ---- The time axis.

    def open_axis(self):
        self.browser.click("#tab-axis")
        self.browser.run("document.getElementById('chart').focus()")
        self.settle()

    def test_wheel_drag_and_keys_zoom_and_move(self):
        self.open_axis()
        all_of_it = self.width()
        middle, box = self.chart()
        self.browser.wheel(*middle, -400)
        zoomed = self.width()
        self.assertLess(zoomed, all_of_it / 2)
        self.browser.wheel(*middle, 200)
        self.assertGreater(self.width(), zoomed)
        self.browser.keys("www++")
        start, end = self.window()
        self.assertLess(end - start, zoomed / 2)
        self.browser.drag(middle, (middle[0] - 100, middle[1]))
        moved, _ = self.window()
        self.assertAlmostEqual((moved - start) / (end - start), 100 / box[2], places=2)
        for keys, direction in (("d", 1), ("a", -1), (browser.RIGHT, 1), (browser.LEFT, -1)):
            before, _ = self.window()
            self.browser.keys(keys)
            after, _ = self.window()
            self.assertGreater((after - before) * direction, 0, keys)
        self.browser.keys("s-")
        self.assertGreater(self.width(), end - start)
        self.browser.keys(browser.HOME)
        self.assertAlmostEqual(self.width(), all_of_it, delta=1)
        self.browser.click("#zoom-in")
        self.assertLess(self.width(), all_of_it)
        self.browser.click("#zoom-all")
        self.assertAlmostEqual(self.width(), all_of_it, delta=1)

    def test_some_of_the_trace_is_always_visible(self):
        self.open_axis()
        self.browser.keys("w" * 60 + "d" * 30)
        start, end = self.window()
        self.assertGreater(end, start)
        self.browser.keys("s" * 80 + "a" * 40)
        start, end = self.window()
        self.assertLess(start, 0.2 * (end - start))
        self.assertGreater(self.state("painted"), 0)

    def test_search_finds_tensors_and_steps_through_hits(self):
        self.browser.keys("/")
        self.browser.keys("LAYER2.1.conv2" + browser.ENTER)
        self.settle()
        search = self.state("search")
        # Negotiation and reduction of one tensor, 30 steps, 4 ranks.
        self.assertEqual((search["count"], search["place"]), (240, 1))
        self.assertEqual(self.browser.text("#hits"), "1 of 240")
        first = self.state("selected")
        self.assertEqual(first["name"], "NEGOTIATE_ALLREDUCE")
        details = self.browser.text("#details")
        self.assertIn("layer2.1.conv2.weight", details)
        self.assertRegex(details, r"picked up\s+30\.00 \S+ after submission")
        start, end = self.window()
        self.assertTrue(start <= first["start"] <= end)
        # The tracks of tensors were closed.
        self.assertIn(True, [group["tensorsOpen"] for group in self.state("groups")])
        self.browser.keys(browser.ENTER * 2)
        self.assertEqual(self.state("search")["place"], 3)
        self.assertGreaterEqual(self.state("selected")["start"], first["start"])
        self.browser.keys(browser.ENTER, held=browser.SHIFT)
        self.assertEqual(self.state("search")["place"], 2)
        self.browser.run("document.getElementById('chart').focus()")
        self.browser.keys("pp")
        self.assertEqual(self.state("search")["place"], 240)
        self.browser.keys("n")
        self.assertEqual(self.state("search")["place"], 1)
        self.settle()
        self.shoot("search")
        self.browser.keys("/no such thing")
        self.browser.keys(browser.ENTER)
        self.assertEqual(self.browser.text("#hits"), "no hits")
        self.browser.keys(browser.ESCAPE)
        self.assertEqual(self.state("search")["text"], "")

    def test_event_shows_its_details(self):
        self.open_axis()
        self.browser.keys("]")
        self.settle()
        box = self.row_with("BACKWARD")
        middle, _ = self.chart()
        self.browser.move(middle[0], box["y"] + 5)
        self.assertFalse(self.browser.run("return document.getElementById('tooltip').hidden"))
        self.assertIn("BACKWARD", self.browser.text("#tooltip"))
        self.browser.click_at(middle[0], box["y"] + 5)
        self.settle()
        self.assertEqual(self.state("selected")["name"], "BACKWARD")
        self.browser.keys("f")
        start, end = self.window()
        selected = self.state("selected")
        self.assertAlmostEqual(selected["duration"] / (end - start), 1 / 1.4, places=2)
        self.browser.keys("/_BUCKET" + browser.ENTER * 3)
        self.settle()
        details = self.browser.text("#details")
        for word in ("bucket", "tensors", "bytes", "SHM by chunks"):
            self.assertIn(word, details)
        self.browser.run("document.getElementById('chart').focus()")
        self.browser.keys(browser.ESCAPE)
        self.assertIsNone(self.state("selected"))

    def test_groups_close_and_open(self):
        self.open_axis()
        self.assertIsNotNone(self.row_with("BACKWARD"))
        self.browser.click("#gutter button.head")
        self.settle()
        self.assertFalse(self.state("groups")[0]["open"])
        self.assertEqual(self.browser.run("return document.activeElement.textContent"),
                         self.browser.run(
                             "return document.querySelector('#gutter button').textContent"))
        self.browser.keys(browser.ENTER)
        self.settle()
        self.assertTrue(self.state("groups")[0]["open"])
        self.browser.click("#gutter button.tensors")
        self.settle()
        self.assertTrue(self.state("groups")[0]["tensorsOpen"])
        self.assertIn("tensors 16", self.browser.text("#gutter"))

    # ---- The rest.

    def test_help_opens_and_closes(self):
        self.browser.keys("?")
        self.assertTrue(self.browser.run("return document.getElementById('help').open"))
        self.assertIn("the next hit", self.browser.text("#help"))
        self.shoot("help")
        self.browser.keys(browser.ESCAPE)
        self.assertFalse(self.browser.run("return document.getElementById('help').open"))

    def test_dark_colours_follow_the_system_and_the_button(self):
        # The page stores the button's choice.
        self.addCleanup(self.browser.run, "localStorage.clear()")
        back = "return getComputedStyle(document.body).backgroundColor"
        light = self.browser.run(back)
        self.assertEqual(self.state("theme"), "light")
        self.browser.emulate_dark(True)
        self.settle()
        self.assertEqual(self.state("theme"), "dark")
        dark = self.browser.run(back)
        self.assertNotEqual(dark, light)
        self.shoot("dark_overview")
        self.browser.click("#tab-axis")
        self.settle()
        self.shoot("dark_axis")
        self.browser.click("#theme")
        self.assertEqual((self.state("theme"), self.browser.run(back)), ("light", light))
        self.browser.emulate_dark(False)
        self.browser.click("#theme")
        self.assertEqual(self.state("theme"), "dark")

    def test_events_are_sorted_and_have_links_to_the_axis(self):
        self.browser.click("#tab-events")
        names = ("return [...document.querySelectorAll('table.events tbody button')]"
                 ".map(button => button.textContent)")
        by_self = self.browser.run(names)
        self.browser.click("table.events thead button")
        self.assertEqual(self.browser.run(names), sorted(by_self))
        self.shoot("events")
        self.browser.click("table.events tbody button")
        self.settle()
        self.assertEqual(self.state("view"), "axis")
        self.assertEqual(self.state("search")["text"], sorted(by_self)[0])
        self.assertGreater(self.state("search")["count"], 0)

    def test_tab_key_reaches_the_controls_and_arrow_keys_the_views(self):
        self.browser.run("document.getElementById('tab-overview').focus()")
        self.browser.keys(browser.RIGHT)
        self.assertEqual(self.state("view"), "stragglers")
        self.browser.keys(browser.TAB)
        self.assertEqual(self.browser.run("return document.activeElement.id"), "theme")

    def test_trace_without_steps_shows_the_axis(self):
        self.open(self.other_page)
        self.assertEqual(self.state("view"), "axis")
        self.assertGreater(self.state("painted"), 3)
        self.assertEqual(self.state("events"), 4)
        self.shoot("horovod")
        self.browser.click("#tab-overview")
        self.assertIn("No training steps", self.browser.text("#overview"))
        self.browser.click("#tab-stragglers")
        self.assertIn("No training steps", self.browser.text("#stragglers"))
        self.browser.click("#tab-events")
        self.assertIn(EVIL, self.browser.text("#events"))

    def test_texts_of_a_trace_do_not_become_markup(self):
        self.open(self.other_page)
        for tab in ("overview", "stragglers", "axis", "events"):
            self.browser.click(f"#tab-{tab}")
            self.settle()
        self.browser.keys("/<img" + browser.ENTER)
        self.settle()
        self.assertIn(EVIL, self.browser.text("#details"))
        self.assertEqual(self.browser.run(
            "return [document.querySelectorAll('img, b').length, typeof window.evil]"),
            [0, "undefined"])

    def test_all_views_have_pixels(self):
        for tab in ("overview", "stragglers", "axis", "events"):
            self.browser.click(f"#tab-{tab}")
            self.settle()
            self.shoot(tab)
            png = self.browser.screenshot((0, 100, 600, 300))
            width, height, colours = self.browser.run_async(COLOURS, base64.b64encode(png).decode())
            self.assertEqual((width, height), (600, 300))
            self.assertGreater(len(colours), 40, tab)
            if tab in ("overview", "axis"):
                self.assertIn(0x0072b2, colours, tab)
        # The axis is drawn again when it is shown.
        self.browser.click("#tab-axis")
        self.settle()
        self.assertGreater(self.state("painted"), 100)


if __name__ == "__main__":
    if not browser.is_installed():
        print("skipped: chromium and chromium-driver are not installed (tools/setup --browser)")
        sys.exit(77)
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        SCREENSHOTS = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    VIEWER = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
