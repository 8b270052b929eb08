# SPDX-License-Identifier: MIT
"""Load on a server: keep-alive clients that send sentences one after the other, and what they saw.

The generator is one process, asyncio over plain sockets: it keeps one core busy at some thousand requests a second.
"""
import asyncio
import json
import os
import resource
import subprocess
import time
import urllib.parse
from pathlib import Path


class Tally:
    """Times to an answer, words and (where the API tells them) tokens of the answers, end symbols counted."""

    def __init__(self):
        self.times, self.words, self.tokens, self.errors, self.by_word, self.by_token = [], 0, 0, 0, [], []
        self.memory = {}  # seconds since the begin -> bytes

    def add(self, seconds, text, tokens):
        words = max(1, len(text.split()))
        self.times.append(seconds)
        self.by_word.append(seconds / words)
        self.words += words
        if tokens is not None:
            self.by_token.append(seconds / (tokens + 1))
            self.tokens += tokens


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def read_lines(path):
    return [line for line in Path(path).read_text(encoding="utf-8").split("\n") if line.strip()]


def cpu_of(pid):
    """Seconds of CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Target:
    """A server: where it is, and how it is asked (v1: our own API, which tells tokens; libre: LibreTranslate's)."""

    def __init__(self, url, source="en", target="de", api="libre"):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port or 80
        self.name = f"{self.host}:{self.port}".encode()
        self.path = b"/v1/translate" if api == "v1" else b"/translate"
        self.direction = {"source": source, "target": target}

    async def connect(self):
        return await asyncio.open_connection(self.host, self.port, limit=1 << 24)

    async def ask(self, reader, writer, text):
        """(translation, its tokens or None), or None: an error."""
        body = json.dumps({"q": text, **self.direction}).encode()
        writer.write(b"POST " + self.path + b" HTTP/1.1\r\nHost: " + self.name + b"\r\nContent-Type: application/json\r\n"
                     b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        head = await reader.readuntil(b"\r\n\r\n")
        size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        answer = await reader.readexactly(size)
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            return None
        answer = json.loads(answer)
        if "translatedText" in answer:
            return answer["translatedText"], None
        return answer["translations"][0]["text"], answer["usage"]["target_tokens"]


async def client(target, lines, number, end, tally, pause):
    reader, writer = await target.connect()
    at = number * 7919
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            answer = await target.ask(reader, writer, lines[at % len(lines)])
        except (OSError, EOFError):
            answer = None
            reader, writer = await target.connect()
        at += 1
        if answer is None:
            tally.errors += 1
        else:
            tally.add(time.monotonic() - begin, *answer)
        if pause:
            await asyncio.sleep(pause)
    writer.close()


async def document(target, lines, count, end):
    """A text of `count` sentences, again and again; returns its sentences a second."""
    reader, writer = await target.connect()
    text = "\n".join(lines[i % len(lines)] for i in range(count))
    begin, rounds = time.monotonic(), 0
    while time.monotonic() < end:
        if await target.ask(reader, writer, text) is None:
            return 0.0
        rounds += 1
    writer.close()
    return rounds * count / (time.monotonic() - begin)


async def watch_memory(pid, tally, end):
    begin = time.monotonic()
    while pid and time.monotonic() < end:
        tally.memory[time.monotonic() - begin] = memory_of(pid)
        await asyncio.sleep(min(1.0, max(0.01, end - time.monotonic())))


async def load(target, lines, clients, seconds, book=0, pid=None):
    """(tally, seconds, sentences a second of the document or None). Clients beside a document wait 100 ms after an answer."""
    tally, end = Tally(), time.monotonic() + seconds
    jobs = [client(target, lines, i, end, tally, 0.1 if book else 0.0) for i in range(clients)]
    jobs.append(watch_memory(pid, tally, end))
    if book:
        jobs.append(document(target, lines, book, end))
    begin = time.monotonic()
    results = await asyncio.gather(*jobs)
    return tally, time.monotonic() - begin, results[-1] if book else None


def corpus(program, model, lines, cores=None):
    """(sentences a second, CPU seconds a sentence) of corpus mode with one thread; loading left out by a second run."""
    command = [program, "translate", "-m", model, "--threads", "1", "-q"]
    if cores:
        command = ["taskset", "-c", cores, *command]

    def run(text):
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, input=text.encode(), check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    whole, one = run("\n".join(lines) + "\n"), run(lines[0] + "\n")
    return len(lines) / (whole[0] - one[0]), (whole[1] - one[1]) / len(lines)


def row(name, tally, seconds):
    """What a run showed, for a table: milliseconds and sentences a second."""
    ms = {share: 1000 * percentile(tally.times, share) for share in (0.5, 0.95, 0.99)}
    return {"server": name, "seconds": f"{seconds:.1f}", "answers": len(tally.times), "errors": tally.errors,
            "sentences_s": f"{len(tally.times) / seconds:.1f}", "words_s": f"{tally.words / seconds:.0f}",
            "p50_ms": f"{ms[0.5]:.1f}", "p95_ms": f"{ms[0.95]:.1f}", "p99_ms": f"{ms[0.99]:.1f}"}
