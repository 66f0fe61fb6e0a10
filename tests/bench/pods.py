"""./dev bench pods: how fast pods start, restart and survive the core, and what they cost. Goals: design section 7."""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
import disk
from gantry_node import Node, PodWatch, is_ready, restarts
from report import Report, percentile

POD = """apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {{name: c, image: "busybox:demo", command: [sleep, "100000"]}}
"""
SUFFIX = "-n1"  # a static pod's name ends in the node's


def say(text):
    print(text, file=sys.stderr, flush=True)


def one_by_one(node, watch, count):
    """Milliseconds from the manifest's rename to a Ready pod."""
    times = []
    for i in range(count):
        name = f"one-{i}"
        begin = time.perf_counter()
        node.put(name, POD.format(name=name))
        end = watch.wait(lambda s: name + SUFFIX in s and is_ready(s[name + SUFFIX][1]))
        times.append((end - begin) * 1000)
        node.drop(name)
        watch.wait(lambda s: name + SUFFIX not in s)
    return times


def main_pid(node, pod):
    """The container's first process, found by its cgroup."""
    container = pod["status"]["containerStatuses"][0]["containerID"].split("://")[1]
    out = subprocess.run(f"find /sys/fs/cgroup -path '*gantry-{node.instance}*{container}*' -name cgroup.procs | head -n 1 | xargs head -n 1",
                         shell=True, capture_output=True, text=True).stdout
    return int(out)


def restart_times(node, watch, names):
    """Milliseconds from killing a container's process to its successor running; the first restart has no back-off."""
    times = []
    for name in names:
        pod = watch.state[name + SUFFIX][1]
        before = restarts(pod)
        pid = main_pid(node, pod)
        begin = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        end = watch.wait(lambda s: restarts(s[name + SUFFIX][1]) > before and is_ready(s[name + SUFFIX][1]))
        times.append((end - begin) * 1000)
    return times


def identities(pods):
    return {(p["metadata"]["name"], s["containerID"], s["restartCount"], s["state"].get("running", {}).get("startedAt"))
            for p in pods for s in p["status"]["containerStatuses"]}


def core_restart(node):
    """Seconds from starting the new core to all pods Ready again; containers that changed."""
    before = identities(node.pods())
    node.kill()
    begin = time.perf_counter()
    node.start()
    while True:
        pods = node.pods()
        if len(pods) == len(before) and all(is_ready(p) for p in pods):
            break
        time.sleep(0.005)
        if time.perf_counter() - begin > 60:
            raise SystemExit("bench: the restarted core did not adopt its pods within 60s")
    return time.perf_counter() - begin, len(before - identities(node.pods()))


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def written_bytes(pids):
    return sum(int(re.search(r"^write_bytes: (\d+)", open(f"/proc/{pid}/io").read(), re.M).group(1)) for pid in pids)


def slim_size_mib(root):
    """Program, plugins of examples/edge/node.yaml, helper, and the shared libraries that a minimal Debian 12 lacks, stripped."""
    release = os.path.join(root, "build/release")
    files = [os.path.join(release, "bin/gantry"), os.path.join(release, "lib/gantry/libexec/gantry-cri-helper")]
    files += [os.path.join(release, "lib/gantry/plugins", p + ".so") for p in ("source-file", "cri-native", "cni-bridge", "node-linux")]
    minimal = set(open(os.path.join(root, "tests/bench/debian-minimal.txt")).read().split())
    libraries = set()
    for path in files:
        for line in subprocess.run(["ldd", path], capture_output=True, text=True).stdout.splitlines():
            match = re.search(r"=> (/\S+)", line)
            if match and os.path.basename(match.group(1)) not in minimal:
                libraries.add(os.path.realpath(match.group(1)))
    total = 0
    for path in files:
        stripped = os.path.join("/tmp", f"gantry-size-{os.getpid()}")
        subprocess.run(["strip", "-o", stripped, path], check=True)
        total += os.path.getsize(stripped)
        os.unlink(stripped)
    return (total + sum(os.path.getsize(p) for p in libraries)) / 2**20, sorted(os.path.basename(p) for p in libraries)


def abi_op_us(root):
    program = os.path.join(root, "build/release/tests/bench/abi_op")
    out = subprocess.run([program], capture_output=True, text=True).stdout
    match = re.search(r"p50[ =:]+([0-9.]+)", out)
    return float(match.group(1)) if match else float("nan")


def measure(args, report):
    say("slim node: idle cost with 10 pods")
    node = Node(args.root, "examples/edge/node.yaml")
    try:
        node.start()
        node.load_image("busybox.docker.tar")
        watch = PodWatch(node)
        for i in range(10):
            node.put(f"idle-{i}", POD.format(name=f"idle-{i}"))
        watch.wait(lambda s: len(s) == 10 and all(is_ready(p) for _, p in s.values()))
        watch.close()
        time.sleep(2)
        pids = [node.process.pid] + node.supervisors()
        cpu, written = cpu_seconds(pids), written_bytes(pids)
        time.sleep(args.idle)
        idle_cpu, idle_written = (cpu_seconds(pids) - cpu) / args.idle * 100, written_bytes(pids) - written
    finally:
        node.close()
    size, libraries = slim_size_mib(args.root)

    node = Node(args.root)
    try:
        node.start()
        node.load_image("busybox.docker.tar")
        time.sleep(1)
        pss_0 = node.pss_mib([node.process.pid])
        watch = PodWatch(node)
        say(f"{args.runs} pods, one at a time")
        ready = one_by_one(node, watch, args.runs)

        say("100 pods at once")
        names = [f"many-{i}" for i in range(100)]
        begin = time.perf_counter()
        for name in names:
            node.put(name, POD.format(name=name))
        end = watch.wait(lambda s: len(s) == 100 and all(is_ready(p) for _, p in s.values()))
        many = end - begin
        time.sleep(1)
        core, supervisors = node.pss_mib([node.process.pid]), node.supervisors()
        pss_supervisors = node.pss_mib(supervisors)

        say("restarts after an exit")
        restarted = restart_times(node, watch, names[:args.runs])

        say("kill -9 of the core with 100 pods")
        watch.close()
        adopted, touched = core_restart(node)

        say("100 pods deleted")
        watch = PodWatch(node)
        watch.wait(lambda s: len(s) == 100)
        begin = time.perf_counter()
        for name in names:
            node.drop(name)
        watch.wait(lambda s: not s)
        deleted = time.perf_counter() - begin
        watch.close()
    finally:
        node.close()

    kubelet = "kubelet + containerd "
    report.add("pod_ready_ms_p50", "one pod, manifest -> Ready, p50", percentile(ready, 0.5), "ms", 15, kubelet + "431 ms")
    report.add("pod_ready_ms_p99", "one pod, manifest -> Ready, p99", percentile(ready, 0.99), "ms", 50, kubelet + "479 ms")
    report.add("pods100_s", "100 pods at once", many, "s", 1.5, kubelet + "23.2 s")
    report.add("pods100_delete_s", "100 pods deleted", deleted, "s", 3, kubelet + "35 s")
    report.add("pss_mib_0", "PSS at 0 pods", pss_0, "MiB", 15)
    report.add("pss_mib_100", "PSS at 100 pods, all", core + pss_supervisors, "MiB", 55, kubelet + "525 MiB")
    report.add("pss_core_mib_100", "  core and plugins", core, "MiB", 25)
    report.add("pss_supervisor_mib", "  each supervisor", pss_supervisors / max(1, len(supervisors)), "MiB", 0.3)
    report.add("restart_ms_p50", "exit -> restarted, p50", percentile(restarted, 0.5), "ms", 10, kubelet + "983 ms")
    report.add("core_restart_s", "core restart with 100 pods", adopted, "s", 0.5)
    report.add("core_restart_touched", "  containers touched", touched, "", 0)
    report.add("abi_op_us_p50", "one op through the ABI, p50", abi_op_us(args.root), "us", 20)
    report.add("slim_mib", "slim node, every file", size, "MiB", 20)
    report.add("idle_cpu_percent", f"idle with 10 pods over {args.idle} s", idle_cpu, "% of a core", 0.1)
    report.add("idle_written_bytes", "  written", idle_written, "bytes", 0)
    return libraries


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--idle", type=int, default=60, help="seconds of idling with 10 pods")
    args = parser.parse_args()
    report = Report()

    with disk.journaled():
        libraries = measure(args, report)
    print(report.as_json() if args.json else report.as_text())
    if not args.json:
        print("libraries counted in the slim node beside its own files: " + ", ".join(libraries))


if __name__ == "__main__":
    main()
