"""A headless Chromium, spoken to through a pipe by its DevTools protocol: no driver and no package is needed."""

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Network.requestWillBeSent")
PATIENCE = 60.0  # seconds


class Browser:
    """One page at a time. `complaints` are errors, console messages and requests beyond the page itself."""

    def __init__(self, profile: Path):
        assert CHROMIUM is not None
        (their_in, self.to), (self.source, their_out) = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        command = shlex.join([CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"])
        # Chromium reads its commands from file descriptor 3 and answers on 4; sh cannot name one above 9, bash can.
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command} 3<&{their_in} 4>&{their_out}"],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_in)
        os.close(their_out)
        self.buffer, self.number, self.session = b"", 0, None
        self.complaints: list[str] = []
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self.number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, page: Path) -> None:
        """Load a file, and wait until its scripts have run and it was laid out."""
        self.complaints.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while self._receive().get("method") != "Page.loadEventFired":
            pass
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def look(self, width: int, dark: bool = False, media: str = "screen") -> None:
        """Set the width of the window and the reader's choice of colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def picture(self, path: Path) -> None:
        """A screenshot of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        os.close(self.to)
        os.close(self.source)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.source], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            more = os.read(self.source, 2**16)
            assert more, "the browser ended"
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        found = json.loads(message)
        if found.get("method") in COMPLAINTS and not _harmless(found):
            self.complaints.append(json.dumps(found["params"])[:400])
        return found


def _harmless(event: dict[str, Any]) -> bool:
    """The request for the page itself, and data within it."""
    url = event["params"].get("request", {}).get("url", "")
    return event["method"] == "Network.requestWillBeSent" and url.startswith(("file:", "data:"))
