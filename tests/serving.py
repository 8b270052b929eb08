# SPDX-License-Identifier: MIT
"""A server in a test: started on a free port or a Unix socket, asked, stopped; and a counter of what was checked.

The tests of tests/system that talk to `dragoman serve` share it. Only Python's standard library speaks to the server.
"""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = (ROOT / "models/en-de.gguf", ROOT / "models/de-en.gguf")
# Seconds that anything may take; a sanitizer makes a book of ten seconds one of minutes.
LIMIT = 1200 if os.environ.get("SANFLAGS") else 120
MORNING = {"q": "Good morning.", "source": "en", "target": "de"}
ANSWER = {"translatedText": "Guten Morgen!"}
STARTED = []  # processes, which end with this one


class Address:
    """Where a server listens, and talking to it. tls: the context of a client; path: a Unix socket instead of the port."""

    def __init__(self, port=0, path=None, tls=None):
        self.port, self.path, self.tls = port, path, tls

    def connect(self):
        s = socket.socket(socket.AF_UNIX if self.path else socket.AF_INET)
        s.settimeout(LIMIT)
        s.connect(self.path if self.path else ("127.0.0.1", self.port))
        return self.tls.wrap_socket(s, server_hostname="localhost") if self.tls else s

    def ask(self, method, path, body=None, headers=None, raw=False):
        """Status and answer, JSON decoded where it is JSON."""
        if isinstance(body, dict):
            body, headers = json.dumps(body), {"Content-Type": "application/json", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        if self.path or self.tls:
            connection.sock = self.connect()
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        data = answer.read()
        self.headers = dict(answer.getheaders())
        connection.close()
        if not raw and "json" in answer.getheader("Content-Type", ""):
            return answer.status, json.loads(data)
        return answer.status, data if raw else data.decode()

    def send(self, data, half=False):
        """What comes back for these bytes until the server closes, or b"" after some seconds."""
        with self.connect() as s:
            with contextlib.suppress(OSError):
                s.sendall(data)
            if half:
                s.shutdown(socket.SHUT_WR)
            s.settimeout(8)
            got = b""
            with contextlib.suppress(OSError):
                while part := s.recv(65536):
                    got += part
            return got


class Server(Address):
    """A server on a free port, or on a Unix socket; tls: certificate that it shows."""

    def __init__(self, program, *options, models=MODELS, path=None, tls=None, **more):
        command = [program, "serve", "--threads", "1", *sum((["-m", str(m)] for m in models), [])]
        command += ["--socket", path] if path else [] if "--port" in options else ["--port", "0"]
        super().__init__(path=path, tls=ssl.create_default_context(cafile=str(tls)) if tls else None)
        self.said = []
        self.process = subprocess.Popen(command + list(options), stderr=subprocess.PIPE, text=True, **more)
        STARTED.append(self.process)
        ready = threading.Event()
        self.thread = threading.Thread(target=self.listen, args=(ready,), daemon=True)
        self.thread.start()
        if not ready.wait(LIMIT) or self.process.poll() is not None:
            raise RuntimeError("the server did not start: " + " ".join(self.said))

    def listen(self, ready):
        for line in self.process.stderr:
            self.said.append(line.strip())
            if "listening on " in line:
                if not self.path:
                    self.port = int(line.rsplit(":", 1)[1].split("/")[0])
                ready.set()
        ready.set()

    def said_soon(self, words):
        return soon(lambda: any(words in line for line in self.said))

    def gone(self):
        """Has it ended? One that does not listen any more is about to."""
        try:
            self.connect().close()
        except ConnectionRefusedError:
            self.process.wait(LIMIT)
        return self.process.poll() is not None

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(LIMIT)
        self.thread.join(LIMIT)
        return code


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def is_true(self, what, fine, seen=""):
        if fine:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED  {what}: {seen}")

    def equal(self, what, seen, expected):
        self.is_true(what, seen == expected, f"{seen!r}, expected {expected!r}")


def soon(happens):
    """Waits for it, however long the machine takes, and says whether it has happened."""
    end = time.monotonic() + LIMIT
    while not (seen := happens()) and time.monotonic() < end:
        time.sleep(0.02)
    return bool(seen)


def status_of(answer):
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def post(body, headers=b"Content-Type: application/json\r\n", path=b"/translate"):
    return (b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers +
            b"Content-Length: %d\r\n\r\n" % len(body) + body)


def run(tests):
    """Calls tests(checks, scratch folder), ends what was started, prints the last line and leaves."""
    c = Checks()
    folder = Path(tempfile.mkdtemp(prefix="dragoman-server-"))
    try:
        tests(c, folder)
    finally:
        for process in STARTED:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{c.passed} passed, {c.failed} failed")
    sys.exit(1 if c.failed else 0)
