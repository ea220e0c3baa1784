"""A headless Chromium, driven through chromedriver's WebDriver protocol."""

import base64
import ctypes
import json
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's name of references
# Keys that have no character (WebDriver, 17.4.2).
HOME, ENTER, ESCAPE, TAB = "\ue011", "\ue007", "\ue00c", "\ue004"
LEFT, UP, RIGHT, DOWN, SHIFT = "\ue012", "\ue013", "\ue014", "\ue015", "\ue008"


def is_installed():
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


def end_with_parent():
    """Lets a browser end with its test, even if the test is killed (prctl(2))."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Browser:
    """A context manager; its exit ends both programs and removes their files."""

    def __init__(self, width=1280, height=800):
        self.size = (width, height)

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, preexec_fn=end_with_parent)
        try:
            for line in self.driver.stdout:
                if found := re.search(r"started successfully on port (\d+)", line):
                    self.address = f"http://127.0.0.1:{found.group(1)}"
                    break
            else:
                raise RuntimeError("chromedriver ended")
            self.session = None
            self.start_session()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_session(self):
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--force-device-scale-factor=1",
                     f"--window-size={self.size[0]},{self.size[1]}",
                     f"--user-data-dir={self.profile.name}"]
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = answer["sessionId"]

    def __exit__(self, *_):
        if getattr(self, "session", None):
            self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.profile.cleanup()

    def call(self, method, path, body=None):
        session = getattr(self, "session", None)
        url = self.address + (f"/session/{session}{path}" if session else path)
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def open(self, path):
        self.call("POST", "/url", {"url": f"file://{path}"})

    def run(self, script, *arguments):
        """Runs `script`, the body of a JavaScript function, and returns its result."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """The same, with the result that the script passes to its last argument."""
        return self.call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def emulate_dark(self, dark):
        """Sets the colour scheme that the page sees as the system's."""
        self.call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setEmulatedMedia", "params": {"features": [
                {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}})

    def element(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.element(selector)}/click")

    def text(self, selector):
        return self.call("GET", f"/element/{self.element(selector)}/text")

    def keys(self, text, held=None):
        """Types `text` into the focused element while the key `held` is down."""
        actions = [{"type": "keyDown", "value": held}] if held else []
        for key in text:
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        if held:
            actions.append({"type": "keyUp", "value": held})
        self.act({"type": "key", "id": "keyboard", "actions": actions})

    def move(self, x, y):
        self.act(self.pointer([{"type": "pointerMove", "x": round(x), "y": round(y)}]))

    def click_at(self, x, y):
        self.drag((x, y))

    def drag(self, *points):
        """Drags from the first point over the others to the last."""
        moves = [{"type": "pointerMove", "duration": 20, "x": round(x), "y": round(y)}
                 for x, y in points]
        self.act(self.pointer([moves[0], {"type": "pointerDown", "button": 0}, *moves[1:],
                               {"type": "pointerUp", "button": 0}]))

    def wheel(self, x, y, delta_y, delta_x=0):
        self.act({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": delta_x,
             "deltaY": delta_y}]})

    @staticmethod
    def pointer(actions):
        return {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                "actions": actions}

    def act(self, source):
        self.call("POST", "/actions", {"actions": [source]})

    def console(self):
        """Returns warnings and errors of the console since the last call."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, box=None):
        """Returns the page as PNG, or only `box` of it: (x, y, width, height)."""
        if box is None:
            return base64.b64decode(self.call("GET", "/screenshot"))
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        return base64.b64decode(self.call("POST", "/goog/cdp/execute", {
            "cmd": "Page.captureScreenshot", "params": {"format": "png", "clip": clip}})["data"])
