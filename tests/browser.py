# SPDX-License-Identifier: MIT
"""Chromium in a test: opened at a width and in a colour scheme, asked about what it shows; Debian's chromium,
chromium-driver and python3-selenium. What every page must be is checked by `sound`."""
import base64
import contextlib
import json
import time

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.remote_connection import RemoteConnection

LIMIT = 60  # seconds that anything may take
OPEN = []

# Texts whose contrast with what is behind them is too low (WCAG 2.1, AA), and controls that are too small to be hit.
CONTRAST = r"""
const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length === 3 ? [...m, 1] : m; };
const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
const linear = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
function ground(e) {
    const layers = [];
    for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, c) => over(c, under), [255, 255, 255, 1]);
}
const bad = [];
for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || (e.matches("textarea, input") && e.value);
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    const seen = e.checkVisibility({ visibilityProperty: true }) && !e.closest(".unseen, #mirror, :disabled, .stale");
    if (!own || !seen || box.width < 2 || e.closest("svg")) continue;
    const behind = ground(e), front = over(parse(style.color), behind);
    const [high, low] = [light(front), light(behind)].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (large ? 3 : 4.5)) bad.push(`${e.tagName} "${e.textContent.trim().slice(0, 30)}": ${contrast.toFixed(2)}`);
}
for (const e of document.querySelectorAll("button, select, summary, input, textarea, a.button")) {
    const box = e.getBoundingClientRect();
    if (e.checkVisibility() && e.type !== "file" && (box.width < 24 || box.height < 24))
        bad.push(`${e.tagName}#${e.id} is ${box.width.toFixed(0)} x ${box.height.toFixed(0)}`);
}
return bad;
"""


class Browser:
    def __init__(self, width=1280, height=860, dark=False, scripts=True, phone=False, downloads=None):
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run",
                     f"--window-size={width},{height}"):
            options.add_argument(word)
        options.binary_location = "/usr/bin/chromium"
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        if not scripts:
            options.page_load_strategy = "none"  # pages that come again by themselves are never quite there for the driver
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        RemoteConnection.set_timeout(2 * LIMIT)  # a driver that hangs must not hang the test
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        OPEN.append(self)
        self.driver.set_script_timeout(LIMIT)
        self.driver.set_page_load_timeout(LIMIT)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        if phone:  # not by the driver's own option, which never comes back where scripts are off
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height,
                                                                               "deviceScaleFactor": 2, "mobile": True})
        if downloads:
            self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})

    def close(self):
        OPEN.remove(self)
        self.driver.quit()

    def open(self, url):
        self.driver.get(url)
        return self

    # -- what is there --

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """As the document has it, line breaks included, whether it is seen or not."""
        return self.find(selector).get_attribute("textContent")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, what, seconds=LIMIT):
        """The first value of what() that is true, or the last one."""
        end = time.monotonic() + seconds
        while True:
            value = None
            # Between two pages nothing is there.
            with contextlib.suppress(NoSuchElementException, StaleElementReferenceException, JavascriptException):
                value = what()
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)

    def shows(self, selector, text):
        """Waits until the element's text is this; returns what it is."""
        self.until(lambda: self.text(selector) == text)
        return self.text(selector)

    # -- what people do --

    def put(self, selector, text):
        """As if it were pasted: all of it at once, in place of what was there."""
        self.run("""const e = arguments[0];
                    e.value = arguments[1];
                    e.dispatchEvent(new InputEvent("input", {bubbles: true, inputType: "insertFromPaste"}));""",
                 self.find(selector), text)

    def choose(self, selector, value):
        self.run("""arguments[0].value = arguments[1];
                    arguments[0].dispatchEvent(new Event("change", {bubbles: true}));""", self.find(selector), value)

    def press(self, *keys, held=()):
        chain = ActionChains(self.driver)
        for key in held:
            chain.key_down(key)
        for key in keys:
            chain.send_keys(key)
        for key in held:
            chain.key_up(key)
        chain.perform()

    def point(self, element, x=0, y=0):
        ActionChains(self.driver).move_to_element_with_offset(element, x, y).perform()

    def active(self):
        return self.run("return document.activeElement.id || document.activeElement.className || document.activeElement.tagName")

    # -- what is kept, and what must never be --

    def shoot(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    def shoot_whole(self, path):
        """The page down to its end."""
        path.parent.mkdir(parents=True, exist_ok=True)
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(shot["data"]))

    def requests(self):
        """Addresses that were asked for since the last call."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def complaints(self):
        return [e["message"] for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]

    def nameless(self):
        """What can have the focus and says nothing to a screen reader, as the browser computes it."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        bad = []
        for node in nodes:
            role = node.get("role", {}).get("value")
            can = any(p["name"] == "focusable" and p["value"].get("value") for p in node.get("properties", []))
            if can and role not in ("RootWebArea", "generic") and not node.get("ignored") and not node.get("name", {}).get("value"):
                bad.append(f"{role} {node.get('backendDOMNodeId')}")
        return bad

    def sound(self, c, what, origin):
        """Contrast, sizes, names, width, console and requests."""
        c.equal(f"{what}: contrast and sizes", self.run(CONTRAST), [])
        c.equal(f"{what}: names for screen readers", self.nameless(), [])
        wide = self.run("return [document.documentElement.scrollWidth, innerWidth]")
        c.is_true(f"{what}: fits the width", wide[0] <= wide[1], wide)
        c.equal(f"{what}: console", self.complaints(), [])
        c.equal(f"{what}: requests to others",
                [u for u in self.requests() if not u.startswith((origin, "data:", "blob:", "chrome", "about:"))], [])


def close_all():
    for browser in list(OPEN):
        with contextlib.suppress(Exception):
            browser.close()


__all__ = ["Browser", "Keys", "close_all"]
