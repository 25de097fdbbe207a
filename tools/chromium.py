"""A browser to look at pages with: chromium without a window, told what to do through a pipe. Needs nothing but Python.

    with Chromium("/usr/bin/chromium") as browser:
        page = browser.page(scheme="dark", width=390)
        page.goto("file:///tmp/index.html")
        page.run("document.title")
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# No answer takes longer, on a busy machine either.
PATIENCE = 60.0
HEIGHT = 900


class BrowserError(Exception):
    """The browser refused something or did not answer."""


class Chromium:
    """A browser process, for as long as it is needed."""

    def __init__(self, program: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        read, self.write = os.pipe()
        self.read, write = os.pipe()
        # The browser reads from descriptor 3 and writes to 4; its wrapper hands them on.
        command = ["/bin/sh", "-c", f'exec "$0" "$@" 3<&{read} 4>&{write}', program, "--headless=new", "--no-sandbox",
                   "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
                   f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(read, write), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.rest = b""
        self.number = 0
        self.pages: dict[str, Page] = {}

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self.call("Browser.close")
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
        with contextlib.suppress(OSError):
            self.folder.cleanup()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """What the browser answers; what happens meanwhile goes to the pages."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        for said in self.messages(method):
            if said.get("id") == self.number:
                if "error" in said:
                    raise BrowserError(f"{method}: {said['error'].get('message')}")
                return said.get("result", {})
        raise BrowserError(f"{method}: no answer")

    def messages(self, why: str) -> Iterator[dict[str, Any]]:
        end = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self.rest:
                line, self.rest = self.rest.split(b"\0", 1)
                said = json.loads(line)
                page = self.pages.get(said.get("sessionId", ""))
                if page and "method" in said:
                    page.happened(said["method"], said.get("params", {}))
                yield said
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise BrowserError(f"{why}: the browser says nothing")
            more = os.read(self.read, 1 << 16)
            if not more:
                raise BrowserError(f"{why}: the browser has ended")
            self.rest += more

    def page(self, scheme: str = "light", width: int = 1440, script: bool = True, height: int = HEIGHT) -> Page:
        return Page(self, scheme, width, script, height)


class Page:
    """A window of its own that shares nothing with others."""

    def __init__(self, browser: Chromium, scheme: str, width: int, script: bool, height: int) -> None:
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        # Messages on the console and mistakes of scripts; addresses that were asked for.
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.loaded = 0
        browser.pages[self.session] = self
        for area in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{area}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def happened(self, event: str, about: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self.loaded += 1
        elif event == "Network.requestWillBeSent":
            self.asked.append(about["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(about["entry"].get("text", ""))
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(part.get("value")) for part in about.get("args", [])))
        elif event == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details.get("text", ""))

    def goto(self, url: str) -> None:
        before = self.loaded
        self.asked.clear()
        failed = self.call("Page.navigate", url=url).get("errorText")
        if failed:
            raise BrowserError(f"{url}: {failed}")
        for _ in self.browser.messages(url) if self.loaded == before else ():
            if self.loaded > before:
                return

    def run(self, script: str) -> Any:
        """The value of a script, which runs also where those of the page do not."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{script}: {found['exceptionDetails'].get('exception', {}).get('description')}")
        return found["result"].get("value")

    def wait_for(self, script: str) -> bool:
        """Whether a script comes to say yes; a page that is just being left cannot be asked."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(BrowserError):
                if self.run(script):
                    return True
            time.sleep(0.05)
        return False

    def wait_for_path(self, ending: str) -> bool:
        return self.wait_for(f"location.pathname.endsWith({json.dumps(ending)}) && document.readyState === 'complete'")

    def click(self, selector: str, text: str | None = None) -> None:
        """Clicks on the first of its kind, with this text where one is given."""
        wanted = "true" if text is None else f"it.textContent.trim() === {json.dumps(text)}"
        found = f"[...document.querySelectorAll({json.dumps(selector)})].find((it) => {wanted})"
        self.run(f"{found}.click()")

    def fill(self, selector: str, text: str) -> None:
        field = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{field}.value = {json.dumps(text)}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def visible(self, selector: str) -> int:
        rows = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.run(f"{rows}.filter((it) => it.getClientRects().length > 0).length")

    def shoot(self, path: Path, whole: bool) -> None:
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        del self.browser.pages[self.session]
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)
