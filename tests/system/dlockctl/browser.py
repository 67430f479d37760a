#!/usr/bin/python3
"""browser.py PAGE FOLDER: the page of dlockctl serve in a browser, by WebDriver (W3C); what test-serve-browser.sh has set up is known here.

Writes the pictures page.png and page-narrow.png to the folder, and prints how long the browser took. Fails at what is wrong.
"""
import base64
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

LIMIT = 60 # seconds for what must happen
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
TAB, ENTER, SPACE = "\ue004", "\ue007", " "


class Driver:
    """The program chromedriver, and one session of a browser at a time."""

    def __init__(self):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        line = ""
        while "successfully on port " not in line:
            line = self.process.stdout.readline()
            assert line, "chromedriver has ended"
        self.address = "http://127.0.0.1:" + line.rpartition("on port ")[2].strip(" .\n")
        self.session = ""

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.address + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read()[:300]}") from error

    def begin(self, page, size, mobile=False):
        options = {"args": OPTIONS + [f"--window-size={size[0]},{size[1]}"]}
        if mobile:
            options["mobileEmulation"] = {"deviceMetrics": {"width": size[0], "height": size[1], "pixelRatio": 1.0}}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        self.call("POST", self.session + "/url", {"url": page})

    def end(self):
        said = self.call("POST", self.session + "/se/log", {"type": "browser"})
        self.call("DELETE", self.session)
        assert not said, f"the browser has something against the page: {said}"

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        end = time.monotonic() + LIMIT
        while not self.run("return Boolean(" + script + ")", *arguments):
            assert time.monotonic() < end, f"not within {LIMIT} s: {script}: {self.run('return document.body.innerText')}"
            time.sleep(0.05)

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def element(self, selector):
        return self.call("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def named(self, selector):
        """The role and the name that it has for a screen reader."""
        path = f"{self.session}/element/{self.element(selector)}/"
        return self.call("GET", path + "computedrole"), self.call("GET", path + "computedlabel")

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", self.session + "/screenshot")))


FOCUS = """const it = document.activeElement;
    return it.id || it.parentNode.dataset.sort || it.closest("tbody") && it.textContent || it.tagName"""


def check_texts(driver, names):
    """Names are texts: nothing of them has become an element, or was run."""
    shown = driver.run("return [...document.querySelectorAll('#locks tbody th button')].map(one => one.textContent)")
    assert sorted(shown) == sorted(names), f"shown: {shown}"
    made = driver.run("return [...document.querySelectorAll('*')].map(one => one.localName)")
    assert not set(made) & {"img", "i", "b1", "iframe", "object", "a"}, f"names have become elements: {set(made)}"
    assert made.count("script") == 1 and driver.run("return document.title") == "dlockfs"
    assert "<i>x" in driver.run("return document.body.innerText"), "the command is not shown"


def check_keyboard(driver, first):
    driver.run("document.body.focus()")
    seen = []
    while first not in seen:
        driver.press(TAB)
        seen.append(driver.run(FOCUS))
        assert len(seen) < 30, f"the row is not reached: {seen}"
    assert seen == ["filter", "only-red", "name", "state", "host", "user", "age", "waiters", first], f"order of focus: {seen}"
    driver.press(ENTER)
    driver.wait("document.querySelectorAll('tr.details li').length === 3")
    assert driver.run("return document.activeElement.getAttribute('aria-expanded')") == "true"
    driver.press(SPACE)
    driver.wait("document.querySelectorAll('tr.details').length === 0")
    assert driver.run(FOCUS) == first, "the row has lost the focus"
    driver.run("document.querySelector('[data-sort=name] button').focus()")
    driver.press(ENTER)
    driver.wait("document.querySelector('[data-sort=name]').ariaSort === 'ascending'")
    driver.run("document.querySelector('#filter').focus()")
    driver.press(*"nightly")
    driver.wait("document.querySelectorAll('#locks tbody tr').length === 1")
    assert driver.run("return document.querySelector('#shown').textContent").startswith("1 of ")
    driver.run("const it = document.querySelector('#filter'); it.value = ''; it.dispatchEvent(new Event('input'))")


def check_names(driver):
    wanted = {"#filter": ("searchbox", "Filter"), "#only-red": ("checkbox", "only what is red"), "#locks": ("table", None),
              "section": ("region", "Locks"), "#graph svg": ("image", None), "[data-sort=age] button": ("button", "For")}
    for selector, (role, name) in wanted.items():
        found = driver.named(selector)
        assert found[0] in (role, "img" if role == "image" else role) and name in (None, found[1]), f"{selector}: {found}"


def main():
    page, folder = sys.argv[1:]
    with open(os.path.join(folder, "names.json"), encoding="utf-8") as file:
        names = json.load(file)
    driver = Driver()
    try:
        driver.begin(page, (1000, 1060))
        driver.wait("document.querySelectorAll('#locks tbody tr').length === arguments[0]", len(names))
        driver.wait("document.querySelectorAll('#graph rect').length === 5")
        driver.wait("document.querySelectorAll('#hosts tbody tr').length === 2")
        check_texts(driver, names)
        check_names(driver)
        driver.picture(os.path.join(folder, "page.png"))
        check_keyboard(driver, "cron/nightly")
        # What comes is there without anybody asking.
        print("ready", flush=True)
        driver.wait("document.querySelectorAll('#locks tbody tr').length === arguments[0]", len(names) + 1)
        driver.end()
        driver.begin(page, (360, 740), mobile=True)
        driver.wait("document.querySelectorAll('#locks tbody tr').length > 0")
        driver.wait("document.querySelectorAll('#graph rect').length === 5")
        width = driver.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= 360, f"wider than the screen: {width}"
        lines = driver.run("return Math.max(...[...document.querySelectorAll('#locks td')].map(one => one.getClientRects()[0]?.height || 0))")
        assert lines < 60, f"a cell of {lines} pixels, cut into letters"
        driver.picture(os.path.join(folder, "page-narrow.png"))
        driver.end()
    finally:
        driver.process.terminate()
        driver.process.wait()
    print("done")


if __name__ == "__main__":
    main()
