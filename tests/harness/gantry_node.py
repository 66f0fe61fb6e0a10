"""One gantry node with directories and an instance of its own, for tests and benches: start, watch, kill, clean."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time


def read_text(path):
    with open(path) as file:
        return file.read()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=None):
        super().__init__("gantry", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def tmpfs():
    """Where a node's run directory belongs: /run, or what stands in for it on a machine whose /run is on its disk."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", "/run"], capture_output=True, text=True).stdout.strip()
    return "/run" if kind == "tmpfs" else "/dev/shm"


class Node:
    count = 0

    def __init__(self, root, config="examples/standalone/node.yaml", build=None):
        self.build = build or os.path.join(root, "build/release")
        self.gantry = os.path.join(self.build, "bin/gantry")
        self.images = os.path.join(root, "build/images")
        self.work = tempfile.mkdtemp(prefix="gantry-node.")
        self.run_dir = tempfile.mkdtemp(prefix="gantry-node.", dir=tmpfs())
        Node.count += 1
        self.instance = f"t{os.getpid()}-{Node.count}"
        self.socket = os.path.join(self.work, "sock")
        self.manifests = os.path.join(self.work, "manifests")
        os.mkdir(self.manifests)
        self.process = None
        self.config = os.path.join(self.work, "node.yaml")
        self._write_config(os.path.join(root, config))

    def _write_config(self, example):
        """The example with its name, directories and instance replaced."""
        lines, skip = [], ("  instance:", "  stateDir:", "  name:")
        for line in read_text(example).splitlines(keepends=True):
            if line.startswith("node:"):
                lines.append(f"node:\n  name: n1\n  instance: {self.instance}\n  stateDir: {self.work}/state\n"
                             f"  runDir: {self.run_dir}\n  socket: {self.socket}\n  podLogsDir: {self.work}/logs\n")
            elif not line.startswith(skip):
                lines.append(line.replace("/etc/gantry/manifests", self.manifests))
        with open(self.config, "w") as out:
            out.writelines(lines)

    # -- the process
    def start(self, wait=True):
        with open(os.path.join(self.work, "node.log"), "ab") as log:
            self.process = subprocess.Popen([self.gantry, "run", "--config", self.config], stdout=log, stderr=log)
        while wait:
            try:
                self.get("/healthz")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(open(os.path.join(self.work, "node.log")).read())
                time.sleep(0.002)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def close(self):
        """Removes the pods, the process and what only belongs to the instance."""
        for name in os.listdir(self.manifests):
            os.unlink(os.path.join(self.manifests, name))
        deadline = time.time() + 60
        while self.process.poll() is None and self.pods() and time.time() < deadline:
            time.sleep(0.05)
        self.stop()
        links = subprocess.run(["ip", "-o", "link", "show", "type", "bridge"], capture_output=True, text=True).stdout
        for line in links.splitlines():
            name = line.split(": ")[1]
            if name.startswith("gt-" + self.instance):
                subprocess.run(["ip", "link", "del", name], stderr=subprocess.DEVNULL)
        subprocess.run(["nft", "delete", "table", "inet", f"gantry-{self.instance}"], stderr=subprocess.DEVNULL)
        subprocess.run(f"find /sys/fs/cgroup -depth -type d -path '*/gantry-{self.instance}*' -exec rmdir {{}} \\; 2>/dev/null",
                       shell=True)
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.run_dir, ignore_errors=True)

    # -- the admin socket
    def get(self, path):
        connection = UnixConnection(self.socket, timeout=30)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status != 200:
            raise OSError(f"{path}: {response.status} {body[:200]}")
        return body

    def pods(self):
        return json.loads(self.get("/v1/pods"))["items"]

    def pod(self, name, namespace="default"):
        """The pod's object, or None. A static pod's name ends in the node's."""
        found = [p for p in self.pods() if p["metadata"]["name"] == f"{name}-n1" and p["metadata"]["namespace"] == namespace]
        return found[0] if found else None

    def events(self):
        return json.loads(self.get("/v1/events"))["items"]

    def run(self, *args, check=True, **kwargs):
        """`gantry ARGS` against this node: exit code, stdout, stderr."""
        verb, rest = args[:1], args[1:]
        if args[0] in ("image", "plugin"):
            verb, rest = args[:2], args[2:]
        done = subprocess.run([self.gantry, *verb, "--socket", self.socket, *rest], capture_output=True, text=True, timeout=60, **kwargs)
        if check and done.returncode != 0:
            raise AssertionError(f"gantry {' '.join(args)}: exit {done.returncode}: {done.stderr}")
        return done

    def log(self):
        with open(os.path.join(self.work, "node.log")) as log:
            return log.read()

    def wait(self, condition, what, timeout=30):
        """Polls until condition() is true and returns its value."""
        deadline = time.time() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.time() > deadline:
                raise AssertionError(f"no {what} within {timeout}s; pods: {json.dumps(self.pods())[:3000]}\nlog:\n{self.log()[-3000:]}")
            time.sleep(0.02)

    def leftovers(self):
        """What this instance still has on the machine apart from its empty cgroup tree, bridge and nftables table."""
        left = [line for line in read_text("/proc/self/mounts").splitlines() if self.work in line]
        for directory, _, _ in os.walk("/sys/fs/cgroup"):
            if f"/gantry-{self.instance}/" in directory and ("/pod" in directory or "/supervisors/" in directory):
                left.append(directory)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) == self.process.pid:
                continue
            try:
                if f"gantry-{self.instance}/" in read_text(f"/proc/{pid}/cgroup") and " Z " not in read_text(f"/proc/{pid}/stat"):
                    left.append(f"process {pid}: " + read_text(f"/proc/{pid}/cmdline").replace("\0", " "))
            except OSError:
                pass
        links = subprocess.run(["ip", "-o", "link", "show", "type", "veth"], capture_output=True, text=True).stdout
        left += [line for line in links.splitlines() if f"gantry:{self.instance}" in line or f"master gt-{self.instance}" in line]
        return left

    def load_image(self, archive):
        subprocess.run([self.gantry, "image", "load", "--socket", self.socket, os.path.join(self.images, archive)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    # -- manifests: written beside the directory and moved in, as tools that care do it
    def put(self, name, text):
        path = os.path.join(self.work, name + ".tmp")
        with open(path, "w") as out:
            out.write(text)
        os.rename(path, os.path.join(self.manifests, name + ".yaml"))

    def drop(self, name):
        os.unlink(os.path.join(self.manifests, name + ".yaml"))

    # -- memory and processor time of the core and of the supervisors
    def supervisors(self):
        mine = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                cgroups = read_text(f"/proc/{pid}/cgroup")
                exe = os.readlink(f"/proc/{pid}/exe")
            except OSError:
                continue
            if f"gantry-{self.instance}/supervisors" in cgroups or ("memfd:" in exe and self.instance in read_text(f"/proc/{pid}/cmdline")):
                mine.append(int(pid))
        return mine

    def pss_mib(self, pids):
        total = 0
        for pid in pids:
            for line in read_text(f"/proc/{pid}/smaps_rollup").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        return total / 1024


class PodWatch:
    """Follows /v1/pods?watch=1 on a thread; keeps the time at which each pod first satisfied a condition."""

    def __init__(self, node):
        self.connection = UnixConnection(node.socket)
        self.connection.request("GET", "/v1/pods?watch=1")
        self.response = self.connection.getresponse()
        self.changed = threading.Condition()
        self.state = {}
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            for line in iter(self.response.readline, b""):
                now = time.perf_counter()
                event = json.loads(line)
                with self.changed:
                    name = event["object"]["metadata"]["name"]
                    if event["type"] == "DELETED":
                        self.state.pop(name, None)
                    else:
                        self.state[name] = (now, event["object"])
                    self.changed.notify_all()
        except (OSError, ValueError, AttributeError):
            pass

    def wait(self, condition, timeout=60):
        """Until condition(state) is true; the time at which the last change came."""
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self.state), timeout):
                raise SystemExit(f"bench: the pods did not get there within {timeout}s: " +
                                 str({n: s[1].get('status', {}) for n, s in list(self.state.items())[:2]}))
            return max((s[0] for s in self.state.values()), default=time.perf_counter())

    def close(self):
        try:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def is_ready(pod):
    return pod is not None and any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


def restarts(pod):
    return sum(s["restartCount"] for s in pod.get("status", {}).get("containerStatuses", []))
