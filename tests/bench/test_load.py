"""The bench's own backend and client measure each other, and what wrk prints is read right."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from bench.load import press_here, read_wrk
from bench.server import free_port


@pytest.fixture(scope="module")
def blobs() -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.blobs", str(port)])
    deadline = time.monotonic() + 20
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None
            assert time.monotonic() < deadline
        yield port
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize(("size", "callers"), [(1024, 1), (1024, 8), (3_000_000, 3)])
def test_the_client_counts_whole_answers_of_the_backend(blobs: int, size: int, callers: int) -> None:
    load = press_here(blobs, size, callers, 0.1)
    assert load.requests >= 1
    assert 0 < load.p50_us <= load.p99_us
    assert 0 < load.requests_per_second <= load.requests / 0.1


def test_an_answer_that_is_cut_is_an_error_and_no_figure() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        door.settimeout(10)
        script = f"from bench.load import press_here; press_here({door.getsockname()[1]}, 1024, 1, 0.1)"
        with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as client:
            served, _ = door.accept()
            with served:
                served.recv(1000)
                served.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\nhalf")
            assert "closed in the middle of an answer" in client.communicate()[1]


_WRK = """Running 1s test @ http://127.0.0.1:1/1024
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.20ms    0.50ms  10.00ms   90.00%
  Latency Distribution
     50%  850.00us
     75%    1.00ms
     90%    1.20ms
     99%    1.53s
  31335 requests in 1.00s, 38.00MB read
Requests/sec:  31334.50
"""


def test_the_words_of_wrk_are_read_in_microseconds() -> None:
    load = read_wrk(_WRK)
    assert (load.requests, load.requests_per_second, load.p50_us, load.p99_us) == (31335, 31334.5, 850.0, 1_530_000.0)


@pytest.mark.parametrize("line", ["  Non-2xx or 3xx responses: 7\n", "  Socket errors: connect 0, read 32\n"])
def test_failed_requests_are_no_figures(line: str) -> None:
    with pytest.raises(RuntimeError, match="failed requests"):
        read_wrk(_WRK + line)
