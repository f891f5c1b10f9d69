# SPDX-License-Identifier: BSD-2-Clause
"""Drives a headless Chromium by WebDriver's HTTP, with Python's own library alone."""
import base64
import contextlib
import json
import re
import subprocess
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
KEYS = {"down": "\ue015", "up": "\ue013", "escape": "\ue00c", "enter": "\ue007", "end": "\ue010"}


class Browser:
    def __init__(self, folder, dark=False, size=(1500, 900)):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
        port = None
        for line in self.driver.stdout:
            if found := re.search(r"successfully on port (\d+)", line):
                port = found[1]
                break
        if not port:
            raise RuntimeError("chromedriver did not start")
        self.root = f"http://127.0.0.1:{port}/session"
        more = [f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}"]
        if dark:
            more.append("--blink-settings=preferredColorScheme=0")
        options = {"args": ARGUMENTS + more, "binary": "/usr/bin/chromium"}
        session = self._call("POST", "", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options,
                                                                          "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.root += "/" + session["sessionId"]

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def text(self, selector):
        return self._call("GET", f"/element/{self.find(selector)}/text")

    def click(self, selector):
        self._call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self._call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, key):
        """A key, as if the reader pressed it."""
        value = KEYS.get(key, key)
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]}]})

    def messages(self):
        """What the page wrote to the console, which is where errors of scripts are."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def close(self):
        with contextlib.suppress(Exception):
            self._call("DELETE", "")
        self.driver.terminate()
        self.driver.stdout.close()
        self.driver.wait(10)
