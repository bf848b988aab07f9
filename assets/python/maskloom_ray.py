# SPDX-License-Identifier: MIT
"""Runs the points of a sweep as tasks of Ray.

The first line on stdin describes the work, each further one is a point. A line on stdout is a result. The program travels through
Ray's object store and is kept, by its hash, in the cache folder of each node's user.
"""
import json
import sys


def done(text, packed, digest):
    """One point on a node: the node's name, and the line that the program printed or the reason why there is none."""
    import hashlib
    import os
    import platform
    import subprocess
    import tempfile

    node = platform.node()
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(cache, "maskloom", "remote", "worker-" + digest[:16])
    program = os.path.join(folder, "maskloom")
    if not os.path.exists(program):
        if hashlib.sha256(packed).hexdigest() != digest:
            return {"node": node, "failed": "the program did not arrive whole"}
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(packed)
        os.chmod(beside, 0o700)
        os.replace(beside, program)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as point:
        point.write(text)
        point.flush()
        ran = subprocess.run([program, "point", point.name], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode == 0 and lines:
        return {"node": node, "done": lines[-1]}
    return {"node": node, "failed": ran.stderr[-2000:] or f"exit status {ran.returncode}"}


def reach(address):
    """Ray itself tries for minutes where nothing listens."""
    import socket

    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as why:
            raise ConnectionError(f"nothing answers at {address}: {why}") from None


def main():
    import ray

    work = json.loads(sys.stdin.readline())
    points = [json.loads(line) for line in sys.stdin if line.strip()]
    address = work["address"]
    if address == "local":
        ray.init(log_to_driver=False, include_dashboard=False)
    else:
        reach(address)
        ray.init(address=address, log_to_driver=False)
    gpu = work["gpu"]
    if gpu is None:
        gpu = ray.cluster_resources().get("GPU", 0) >= 1
    with open(work["program"], "rb") as file:
        packed = ray.put(file.read())
    task = ray.remote(num_cpus=1, num_gpus=1 if gpu else 0, max_retries=1)(done)
    waiting = {task.remote(point["text"], packed, work["hash"]): point["point"] for point in points}
    while waiting:
        for ready in ray.wait(list(waiting), num_returns=1)[0]:
            point = waiting.pop(ready)
            try:
                reported = ray.get(ready)
            except Exception as why:  # the node is lost, twice
                reported = {"node": "a lost node", "failed": str(why).strip().splitlines()[-1]}
            print(json.dumps({"point": point, **reported}), flush=True)


main()
