"""Many readers at once, searches that nobody waits for, and the longest text, on a real run.

    python scripts/load_explorer.py runs/demo
    python scripts/load_explorer.py runs/demo --readers 20

Starts `attlas look` and asks it. Each question must be answered, or refused with a sentence. The
memory of the server must be within 200 MB of what it was after its first answer. The exit code is 1
where that is not so. Memory is read from /proc, so this runs on Linux.
"""

import argparse
import http.client
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MOST_MORE = 200  # MB
TEXT = "the cat is sleeping on the old mat while two small dogs are waiting for the rain"
Answer = tuple[int, Any]


class Server:
    """`attlas look` of a run."""

    def __init__(self, run: Path) -> None:
        command = [sys.executable, "-m", "attlas", "look", str(run), "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        url = urlsplit(self.process.stdout.readline().split()[0])
        self.address = str(url.hostname), int(url.port or 0)

    def megabytes(self) -> float:
        """The memory that the process has now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def ask(self, method: str, path: str, body: Any = None, seconds: float = 600) -> Answer:
        """The status, and the answer as JSON, or its length where it is something else."""
        connection = http.client.HTTPConnection(*self.address, timeout=seconds)
        try:
            headers = {"Content-Type": "application/json"}
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, headers)
            response = connection.getresponse()
            content = response.read()
            is_json = "json" in response.headers.get("Content-Type", "")
            return response.status, json.loads(content) if is_json else len(content)
        finally:
            connection.close()

    def abandon(self, text: str) -> None:
        """Ask for a translation, and go."""
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        body = json.dumps({"text": text})
        connection.request("POST", "/api/translate", body, {"Content-Type": "application/json"})
        connection.close()

    def end(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def text_of(number: int, words: int) -> str:
    """A text of so many words, another one for each number."""
    known, step = TEXT.split(), 1 + number % 5
    return " ".join(known[(number + place * step) % len(known)] for place in range(words))


def is_a_sentence(answer: Answer) -> bool:
    """Return True if it was answered, or refused with what was expected and what to do."""
    status, content = answer
    refused = isinstance(content, dict) and {"expected", "got", "hint"} <= content.keys()
    return status == 200 or (status in (400, 404, 503) and refused)


def visit(server: Server, number: int) -> list[Answer]:
    """What one reader asks: a text, then its statistics and the overview of its maps."""
    answers = [server.ask("POST", "/api/translate", {"text": text_of(number, 5 + number % 20)})]
    status, found = answers[0]
    if status == 200:
        maps = f"/api/maps/{found['map']}"
        answers += [server.ask("GET", f"{maps}/{what}") for what in ("statistics", "overview")]
    return answers


def longest(server: Server) -> tuple[int, Answer]:
    """The longest text of such words that is taken, by halving; and its answer."""
    low, high, best = 1, 4096, (0, (0, None))
    while low <= high:
        words = (low + high) // 2
        answer = server.ask("POST", "/api/translate", {"text": text_of(0, words)})
        if answer[0] == 200:
            best, low = (words, answer), words + 1
        else:
            assert is_a_sentence(answer), answer
            high = words - 1
    return best


def main() -> int:
    """Load the server, and print what came."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--readers", type=int, default=100)
    options = parser.parse_args()
    server = Server(options.run)
    try:
        first = server.ask("POST", "/api/translate", {"text": text_of(1, 8)})
        assert first[0] == 200, first
        before = server.megabytes()
        begun = time.perf_counter()
        with ThreadPoolExecutor(options.readers) as pool:
            answers = list(pool.map(lambda number: visit(server, number), range(options.readers)))
        seconds = time.perf_counter() - begun
        faults = [one for visits in answers for one in visits if not is_a_sentence(one)]
        counts = Counter(status for visits in answers for status, _ in visits)
        print(f"{options.readers} readers in {seconds:.1f} s: {dict(sorted(counts.items()))}")
        for number in range(options.readers // 2):
            server.abandon(text_of(number, 200))
        begun = time.perf_counter()
        after_them = server.ask("POST", "/api/translate", {"text": text_of(3, 8)})
        print(f"{options.readers // 2} abandoned; the next answer, {after_them[0]}, took "
              f"{time.perf_counter() - begun:.1f} s")  # fmt: skip
        begun = time.perf_counter()
        words, answer = longest(server)
        print(f"the longest text that is taken has {words:,} words; it was searched for and "
              f"answered in {time.perf_counter() - begun:.1f} s")  # fmt: skip
        faults += [one for one in (after_them, answer) if not is_a_sentence(one)]
        time.sleep(3)
        more = server.megabytes() - before
        print(f"memory: {before:.0f} MB after the first answer, {more:+.0f} MB at the end")
    finally:
        code = server.end()
    print("\n".join(map(str, faults)) or "every question was answered, or refused with a sentence")
    return int(bool(faults) or more > MOST_MORE or code != 0)


if __name__ == "__main__":
    sys.exit(main())
