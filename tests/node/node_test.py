"""A whole node, as a user runs it: the released program, real pods, the command line."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "harness"))
from gantry_node import Node, is_ready, read_text, restarts  # noqa: E402

BUILD = os.environ.get("GANTRY_BUILD", os.path.join(ROOT, "build", "release"))


def pod(name, command, extra="", container_extra=""):
    return f"""apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 2
{extra}
  containers:
    - name: c
      image: busybox:demo
      command: {json.dumps(command)}
{container_extra}
"""


def container(of):
    """Status of the first container; an empty one before the node has given it."""
    return (of["status"].get("containerStatuses") or [{"state": {}}])[0]


def condition(of, kind):
    return next((c for c in of["status"]["conditions"] if c["type"] == kind), {})


class NodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([os.path.join(ROOT, "tests", "tools", "make-image.sh"), os.path.join(ROOT, "build", "images")], check=True)

    def setUp(self):
        self.node = self.new_node()

    def new_node(self, image=True):
        node = Node(ROOT, build=BUILD)
        self.addCleanup(self.close, node)
        node.start()
        if image:
            node.load_image("busybox.docker.tar")
        return node

    def close(self, node):
        if node.process.poll() is not None:
            node.start()
        node.close()

    def ready(self, name, node=None, timeout=30):
        node = node or self.node
        return node.wait(lambda: is_ready(node.pod(name)) and node.pod(name), f"ready pod {name}", timeout)

    def gone(self, name, node=None, timeout=30):
        node = node or self.node
        node.wait(lambda: node.pod(name) is None, f"removal of {name}", timeout)

    # -- running
    def test_runs_a_pod_with_an_address_logs_and_exec(self):
        self.node.put("a", pod("a", ["sh", "-c", "echo out; echo err >&2; sleep 1000"]))
        seen = self.ready("a")
        self.assertRegex(seen["status"]["podIP"], r"^10\.88\.")
        self.assertEqual(seen["status"]["phase"], "Running")
        self.assertEqual(sorted(self.node.run("logs", "default/a-n1").stdout.split()), ["err", "out"])
        self.assertEqual(self.node.run("exec", "default/a-n1", "--", "hostname").stdout, "a-n1\n")
        done = self.node.run("exec", "default/a-n1", "--", "sh", "-c", "echo e >&2; exit 7", check=False)
        self.assertEqual((done.returncode, done.stderr), (7, "e\n"))

    def test_passes_stdin_and_large_output_through_exec_whole(self):
        self.node.put("a", pod("a", ["sleep", "1000"]))
        self.ready("a")
        text = "x" * 4_000_000
        done = self.node.run("exec", "-i", "default/a-n1", "--", "cat", input=text)
        self.assertEqual(len(done.stdout), len(text))

    def test_a_job_succeeds_and_a_failing_one_fails(self):
        never = "  restartPolicy: Never"
        self.node.put("good", pod("good", ["true"], never))
        self.node.put("bad", pod("bad", ["sh", "-c", "exit 3"], never))
        for name, phase in (("good", "Succeeded"), ("bad", "Failed")):
            self.node.wait(lambda: self.node.pod(name) and self.node.pod(name)["status"]["phase"] == phase, f"{name} {phase}")
        self.assertEqual(container(self.node.pod("good"))["state"]["terminated"]["reason"], "Completed")
        ended = container(self.node.pod("bad"))["state"]["terminated"]
        self.assertEqual((ended["reason"], ended["exitCode"]), ("Error", 3))

    def test_backs_off_from_a_crash_loop(self):
        self.node.put("crash", pod("crash", ["sh", "-c", "exit 1"]))

        def backing_off():
            seen = self.node.pod("crash")
            return seen and container(seen)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff" and seen
        seen = self.node.wait(backing_off, "CrashLoopBackOff")
        self.assertEqual(seen["status"]["phase"], "Running")
        self.assertGreaterEqual(restarts(seen), 1)
        self.assertRegex(container(seen)["state"]["waiting"]["message"], r"^back-off 10s restarting failed container=c pod=crash-n1_default")
        self.assertIn("BackOff", {e["reason"] for e in self.node.events()})
        self.assertIn("CrashLoopBackOff", self.node.run("explain", "default/crash-n1").stdout.splitlines()[0])

    def test_ends_a_pod_gracefully_then_by_force(self):
        obedient = pod("polite", ["sh", "-c", "trap 'echo bye; exit 0' TERM; while true; do sleep 0.05; done"])
        self.node.put("polite", obedient.replace("GracePeriodSeconds: 2", "GracePeriodSeconds: 600"))
        self.node.put("deaf", pod("deaf", ["sh", "-c", "trap '' TERM; while true; do sleep 1; done"]))
        self.ready("polite")
        self.ready("deaf")
        self.node.drop("polite")
        self.gone("polite")
        begin = time.time()
        self.node.drop("deaf")
        self.gone("deaf")
        self.assertGreater(time.time() - begin, 1.5)
        self.assertEqual(self.node.leftovers(), [])

    def test_applies_limits_and_security_context(self):
        self.node.put("a", pod("a", ["sleep", "1000"], container_extra="""      resources: {limits: {memory: 32Mi, cpu: 250m}}
      securityContext: {runAsUser: 1000, runAsGroup: 2000, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false,
                        capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}"""))
        self.ready("a")
        status = self.node.run("exec", "default/a-n1", "--", "cat", "/proc/self/status").stdout
        self.assertRegex(status, r"(?m)^Uid:\s+1000\s+1000")
        self.assertRegex(status, r"(?m)^Gid:\s+2000\s+2000")
        self.assertRegex(status, r"(?m)^NoNewPrivs:\s+1")
        self.assertRegex(status, r"(?m)^CapBnd:\s+0000000000000400")
        self.assertRegex(status, r"(?m)^CapInh:\s+0000000000000000")
        self.assertRegex(status, r"(?m)^Seccomp:\s+0", "Kubernetes' default without seccompDefault is Unconfined")
        done = self.node.run("exec", "default/a-n1", "--", "touch", "/x", check=False)
        self.assertIn("Read-only file system", done.stderr)
        values = subprocess.run(f"find /sys/fs/cgroup -path '*gantry-{self.node.instance}/*pod*' -name memory.limit_in_bytes | xargs cat",
                                shell=True, capture_output=True, text=True).stdout.split()
        self.assertIn(str(32 << 20), values)

    def test_runs_init_containers_in_order_before_the_rest(self):
        init = """  initContainers:
    - {name: one, image: "busybox:demo", command: [sh, -c, "sleep 0.2; echo one"]}
    - {name: two, image: "busybox:demo", command: [sh, -c, "echo two"]}"""
        self.node.put("a", pod("a", ["sh", "-c", "echo main; sleep 1000"], init))
        seen = self.ready("a")
        ended = [s["state"]["terminated"] for s in seen["status"]["initContainerStatuses"]]
        self.assertEqual([e["exitCode"] for e in ended], [0, 0])
        self.assertEqual(self.node.run("logs", "default/a-n1", "-c", "two").stdout, "two\n")

    # -- what it must withstand
    def identity(self, name):
        seen = self.node.pod(name)
        return container(seen)["containerID"], restarts(seen), container(seen)["state"], seen["status"]["startTime"]

    def test_kill_9_of_the_core_touches_no_container(self):
        self.node.put("a", pod("a", ["sh", "-c", "while true; do date; sleep 0.1; done"]))
        self.node.put("once", pod("once", ["true"], "  restartPolicy: Never"))
        self.ready("a")
        self.node.wait(lambda: self.node.pod("once") and self.node.pod("once")["status"]["phase"] == "Succeeded", "once")
        before = self.identity("a")
        self.node.kill()
        time.sleep(0.5)
        self.node.start()
        self.ready("a")
        self.assertEqual(self.identity("a"), before)
        self.assertEqual(self.node.pod("once")["status"]["phase"], "Succeeded", "a finished job must not run again")
        lines = self.node.run("logs", "default/a-n1").stdout.splitlines()
        self.assertGreater(len(lines), 5)
        self.assertEqual(self.node.run("exec", "default/a-n1", "--", "echo", "hi").stdout, "hi\n")
        self.node.drop("a")
        self.gone("a")
        self.node.drop("once")
        self.gone("once")
        self.assertEqual(self.node.leftovers(), [])

    def test_a_pod_deleted_while_the_core_was_dead_is_removed(self):
        self.node.put("a", pod("a", ["sleep", "1000"]))
        self.ready("a")
        self.node.kill()
        self.node.drop("a")
        self.node.start()
        self.gone("a")
        self.node.wait(lambda: self.node.leftovers() == [], "clean machine")

    def test_an_exit_while_the_core_was_dead_is_noticed(self):
        self.node.put("a", pod("a", ["sh", "-c", "sleep 1; exit 4"], "  restartPolicy: Never"))
        self.ready("a")
        self.node.kill()
        time.sleep(1.2)
        self.node.start()
        self.node.wait(lambda: self.node.pod("a") and self.node.pod("a")["status"]["phase"] == "Failed", "phase Failed")
        self.assertEqual(container(self.node.pod("a"))["state"]["terminated"]["exitCode"], 4)

    def test_a_killed_supervisor_costs_its_pod_only(self):
        self.node.put("a", pod("a", ["sleep", "1000"]))
        self.node.put("b", pod("b", ["sleep", "1000"]))
        first = self.ready("a")
        self.ready("b")
        b_before = self.identity("b")
        sandbox_ip = first["status"]["podIP"]
        victim = next(p for p in self.node.supervisors() if self.supervises(p, "a"))
        os.kill(victim, signal.SIGKILL)
        rebuilt = self.node.wait(lambda: is_ready(self.node.pod("a")) and restarts(self.node.pod("a")) == 1 and self.node.pod("a"), "rebuilt pod a")
        last = container(rebuilt)["lastState"]["terminated"]
        self.assertEqual((last["exitCode"], last["reason"]), (255, "SupervisorLost"))
        self.assertEqual(self.identity("b"), b_before)
        self.assertEqual(self.node.run("exec", "default/a-n1", "--", "echo", "hi").stdout, "hi\n")
        self.assertTrue(sandbox_ip)
        for name in ("a", "b"):
            self.node.drop(name)
            self.gone(name)
        self.assertEqual(self.node.leftovers(), [])

    def supervises(self, pid, name):
        """True if the supervisor's UTS namespace carries the pod's host name."""
        done = subprocess.run(["nsenter", "-u", "-t", str(pid), "hostname"], capture_output=True, text=True)
        return done.stdout.strip() == f"{name}-n1"

    def test_bad_manifests_are_named_and_hurt_nobody(self):
        self.node.put("broken", "apiVersion: v1\nkind: Pod\nmetadata: {name: x\n")
        self.node.put("quantity", pod("quantity", ["true"], container_extra="      resources: {limits: {memory: 12parsecs}}"))
        self.node.put("name", pod("Bad_Name", ["true"]))
        self.node.put("good", pod("good", ["sleep", "1000"]))
        self.ready("good")
        log = self.node.wait(lambda: all(w in self.node.log() for w in ("broken.yaml", "12parsecs", "Bad_Name")) and self.node.log(), "faults in the log")
        self.assertRegex(log, r"broken\.yaml:\d+")
        self.assertRegex(log, r"spec\.containers\[0\]\.resources\.limits")

    def test_impossible_containers_say_what_is_wrong(self):
        cases = {
            "user": (["true"], "      securityContext: {runAsNonRoot: true, runAsUser: 0}", "CreateContainerConfigError"),
            "command": (["/no/such/program"], "", "RunContainerError"),
            "image": (["true"], "", "ErrImageNeverPull"),
        }
        for name, (command, extra, _) in cases.items():
            text = pod(name, command, container_extra=extra)
            if name == "image":
                text = text.replace("busybox:demo", "nothing:here").replace("      command", "      imagePullPolicy: Never\n      command")
            self.node.put(name, text)
        for name, (_, _, reason) in cases.items():
            def told():
                seen = self.node.pod(name)
                state = container(seen) if seen and seen["status"].get("containerStatuses") else {}
                reasons = {state.get("state", {}).get("waiting", {}).get("reason"), state.get("lastState", {}).get("terminated", {}).get("reason"),
                           state.get("state", {}).get("terminated", {}).get("reason")}
                return reason in reasons or (name == "command" and {"StartError", "ContainerCannotRun"} & reasons)
            self.node.wait(told, f"{reason} of {name}")
        self.assertIn("/no/such/program", self.node.run("explain", "default/command-n1").stdout)

    def test_two_nodes_live_side_by_side(self):
        other = self.new_node()
        other_config = read_text(other.config).replace("10.88.0.0/16", "10.87.0.0/16")
        other.stop()
        with open(other.config, "w") as out:
            out.write(other_config)
        other.start()
        self.node.put("a", pod("a", ["sleep", "1000"]))
        other.put("a", pod("a", ["sleep", "1000"]))
        self.ready("a")
        kept = container(self.ready("a", other))["containerID"]
        self.node.drop("a")
        self.gone("a")
        self.assertEqual(self.node.leftovers(), [])
        self.assertTrue(is_ready(other.pod("a")))
        self.assertEqual(container(other.pod("a"))["containerID"], kept)

    def test_a_second_process_of_the_same_instance_is_refused(self):
        done = subprocess.run([self.node.gantry, "run", "--config", self.node.config], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("runs already", done.stderr)

    def test_config_check_tells_every_fault_at_once(self):
        path = os.path.join(self.node.work, "bad.yaml")
        with open(path, "w") as out:
            out.write("apiVersion: gantry.dev/v1\nkind: NodeConfig\nnode: {name: x, instanse: y}\nplugins:\n"
                      "  - {name: a, use: no-such-plugin}\n  - {name: b, use: cri-native, isolation: process}\n")
        done = subprocess.run([self.node.gantry, "config", "check", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        for fault in (r"bad\.yaml:3: node\.instanse", r"bad\.yaml:5: plugins\[0\]\.use.*no-such-plugin", r"bad\.yaml:6: plugins\[1\]\.isolation.*process"):
            self.assertRegex(done.stderr, fault)

    def test_serves_health_and_metrics(self):
        self.assertEqual(self.node.get("/healthz"), b"ok\n")
        self.node.put("a", pod("a", ["sleep", "1000"]))
        self.ready("a")
        text = self.node.get("/metrics").decode()
        self.assertIn('gantry_pods{phase="Running"} 1', text)
        self.assertRegex(text, r'run_pod_sandbox')

    # -- the command line
    def test_follows_a_log_and_shows_the_run_before(self):
        self.node.put("a", pod("a", ["sh", "-c", "echo first; while test ! -e /dev/shm/go; do sleep 0.05; done; echo second; exit 1"]))
        self.ready("a")
        with subprocess.Popen([self.node.gantry, "logs", "-f", "default/a-n1", "--socket", self.node.socket], stdout=subprocess.PIPE, text=True) as follower:
            try:
                self.assertEqual(follower.stdout.readline(), "first\n")
                self.node.run("exec", "default/a-n1", "--", "touch", "/dev/shm/go")
                self.assertEqual(follower.stdout.readline(), "second\n")
            finally:
                follower.kill()
        self.node.wait(lambda: restarts(self.node.pod("a")) >= 1, "restart")
        self.assertEqual(self.node.run("logs", "--previous", "default/a-n1").stdout, "first\nsecond\n")
        self.assertEqual(self.node.run("logs", "--previous", "--tail", "1", "default/a-n1").stdout, "second\n")
        self.assertEqual(self.node.run("logs", "--since", "2100-01-01T00:00:00Z", "default/a-n1").stdout, "")
        self.assertEqual(self.node.run("logs", "default/nobody", check=False).returncode, 1)

    def test_gives_a_command_a_terminal(self):
        self.node.put("a", pod("a", ["sleep", "1000"]))
        self.ready("a")
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        command = [self.node.gantry, "exec", "-it", "default/a-n1", "--socket", self.node.socket, "--", "sh", "-c", "tty; stty size; echo $TERM; read x; echo got $x; exit 3"]
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as running:
            os.close(theirs)
            seen = self.read_until(ours, b"xterm")
            os.write(ours, b"word\r")
            seen += self.read_until(ours, b"got word")
        os.close(ours)
        self.assertRegex(seen.decode(), r"/dev/pts/\d+\r\n33 77\r\nxterm")
        self.assertEqual(running.returncode, 3)

    def read_until(self, fd, mark):
        seen = b""
        while mark not in seen:
            self.assertTrue(select.select([fd], [], [], 30)[0], f"only {seen} came")
            seen += os.read(fd, 4096)
        return seen

    def test_removes_an_image_that_nobody_uses(self):
        self.node.put("a", pod("a", ["sleep", "1000"]))
        self.ready("a")
        refused = self.node.run("image", "rm", "busybox:demo", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("is used by container", refused.stderr)
        self.node.drop("a")
        self.gone("a")
        self.node.run("image", "rm", "busybox:demo")
        self.assertEqual(json.loads(self.node.run("images", "-o", "json").stdout)["items"], [])
        self.assertEqual(self.node.run("image", "rm", "busybox:demo", check=False).returncode, 1)

    def test_takes_the_socket_before_the_verb_too(self):
        done = subprocess.run([self.node.gantry, "--socket", self.node.socket, "plugins"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cri-native", done.stdout)

    def test_changes_a_plugins_log_level_at_run_time(self):
        self.node.run("log-level", "net", "debug")
        level = next(p["logLevel"] for p in json.loads(self.node.get("/v1/plugins"))["items"] if p["name"] == "net")
        self.assertEqual(level, "debug")
        self.assertEqual(self.node.run("log-level", "nobody", "debug", check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
