"""Many clients of the page at once, on this machine: some look, some upload, some send garbage, some are intruders."""

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

GARBAGE = [b"", b"{", b"\x00" * 999, b"[" * 5000, b'{"path": 3}', b'{"path": "/etc/shadow\\u0000"}', b'{"kind": "rm"}']


class Served:
    """The page as a program of its own, with what its system says about it."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = Path(folder or tempfile.mkdtemp(prefix="crowd-"))
        command = [sys.executable, "-m", "bica", "serve", "--json", "--folder", str(self.folder), "--largest", "1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        told = json.loads("".join(self.process.stdout.readline() for _ in range(4)))
        self.origin, _, self.token = told["address"].partition("/?token=")
        self.port = int(self.origin.rpartition(":")[2])

    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1000

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def close(self) -> str:
        """End it, and return what it wrote on standard error."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[1]


class Client:
    """One of the crowd; ``fit`` is a small fit to ask about, ``counts`` what was answered to all."""

    def __init__(self, served: Served, number: int, fit: str, counts: Counter) -> None:
        self.served, self.rng, self.fit, self.counts = served, random.Random(number), fit, counts
        self.own, self.cookie = f"127.0.0.1:{served.port}", ""
        self.deeds = [(self.look, 6), (self.explain, 2), (self.upload, 1), (self.intrude, 3), (self.garbage, 2)]
        self.deeds.append((self.half, 1))

    async def run(self, until: float) -> None:
        while time.monotonic() < until:
            deed = self.rng.choices([deed for deed, _ in self.deeds], [weight for _, weight in self.deeds])[0]
            try:
                self.counts[deed.__name__, await deed()] += 1
            except (OSError, IndexError):  # the server may hang up on what it refuses
                self.counts[deed.__name__, "hung up"] += 1

    async def ask(self, method: str, path: str, body: bytes = b"", announced: int | None = None, **headers: str) -> int:
        """The status of the answer; a body that was announced longer is never finished, and has none."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.served.port)
        try:
            given = {"host": self.own, "origin": f"http://{self.own}", "connection": "close", "cookie": self.cookie}
            given |= {"content-length": str(announced or len(body))} | headers
            head = "".join(f"{key}: {value}\r\n" for key, value in given.items())
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            await writer.drain()
            if announced is not None:
                await asyncio.sleep(self.rng.random())
                return 0
            return self._status(await reader.read())
        finally:
            writer.close()

    def _status(self, answer: bytes) -> int:
        assert b"Traceback" not in answer
        status = int(answer.split()[1])
        cookie = re.search(rb"set-cookie: ([^;]+)", answer)
        if cookie and not self.cookie:
            self.cookie = cookie.group(1).decode()
        return status

    async def look(self) -> int:
        if not self.cookie:
            return await self.ask("GET", f"/?token={self.served.token}")
        return await self.ask(
            "GET", self.rng.choice(["/", "/api/state", "/api/job", f"/fit/{self.fit}", "/static/report.js"])
        )

    async def explain(self) -> int:
        on = json.dumps({"on": self.rng.sample(range(5), 2)}).encode()
        return await self.ask("POST", f"/api/fits/{self.fit}/explain", on)

    async def upload(self) -> int:
        return await self.ask("POST", "/api/tables?name=../x.csv", self.rng.randbytes(self.rng.randrange(1, 1_200_000)))

    async def garbage(self) -> int:
        paths = [
            "/api/paths",
            "/api/job",
            "/api/fits/../names",
            f"/fit/{self.fit}/..%2f..%2fabout.json",
            "/../../etc/passwd",
        ]
        return await self.ask(self.rng.choice(["POST", "GET", "PUT"]), self.rng.choice(paths), self.rng.choice(GARBAGE))

    async def half(self) -> int:
        return await self.ask("POST", "/api/tables?name=x.csv", b"a,b\n", announced=500_000)

    async def intrude(self) -> int:
        wrong = [
            {"host": "evil.example"},
            {"origin": "http://evil.example"},
            {"cookie": f"bica-{self.served.port}=a.b"},
        ]
        return await self.ask("GET", f"/fit/{self.fit}", **self.rng.choice(wrong))


def crowd(served: Served, fit: str, n_clients: int, seconds: float) -> tuple[Counter, float]:
    """What was answered, by deed and status, and how many megabytes the server took at most."""
    counts: Counter = Counter()
    peak = served.megabytes()

    async def everyone() -> None:
        nonlocal peak
        until = time.monotonic() + seconds
        running = [asyncio.create_task(Client(served, number, fit, counts).run(until)) for number in range(n_clients)]
        while not all(task.done() for task in running):
            await asyncio.sleep(0.25)
            peak = max(peak, served.megabytes())
        await asyncio.gather(*running)

    asyncio.run(everyone())
    return counts, peak
