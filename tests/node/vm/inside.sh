# Runs in the test machine (busybox sh): one node, pods with limits, a killed core, an empty machine at the end.
set -u
export PATH=/opt/gantry/bin:$PATH
mkdir -p /etc/gantry/manifests
explain() { # what there is to say when something goes wrong
    tail -n 40 /run/node.log
    timeout 10 gantry pods
    timeout 10 gantry explain default/a-demo-1
    for process in /proc/[0-9]*; do
        [ -s "$process/cmdline" ] || continue
        echo "$process $(tr '\0' ' ' <"$process/cmdline") in $(cat "$process/wchan" 2>/dev/null)"
    done
}
fail() { echo "FAILED: $*"; explain; exit 1; }
step() { echo "$(cut -d ' ' -f 1 /proc/uptime)s: $*"; }
# No step of it takes a minute; one that hangs is shown before the machine's time is up.
(sleep 150; echo "FAILED: still not done"; explain) &
wait_for() { # SECONDS WHAT COMMAND...
    limit=$1; what=$2; shift 2
    tries=$((limit * 5))
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1)); [ $tries -gt 0 ] || fail "no $what within ${limit}s"
        sleep 0.2
    done
}
start() { step "start the node"; gantry run --config /etc/gantry/node.yaml >>/run/node.log 2>&1 & node=$!; wait_for 60 "admin socket" gantry plugins --socket "$socket"; }
socket=/run/gantry/gantry.sock
sed -i 's/instance: demo .*/instance: main/' /etc/gantry/node.yaml
is_ready() { gantry pods default/$1-demo-1 -o json | tr -d ' \n' | grep -q '"type":"Ready","status":"True"\|"status":"True","type":"Ready"\|"type":"Ready"[^}]*"status":"True"'; }
no_pods() { [ "$(gantry pods | wc -l)" = 1 ]; }

[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || fail "this is not cgroup v2"
start
step "load the image"
gantry image load /opt/busybox.tar || fail "image load"
cat >/etc/gantry/manifests/a.yaml <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: c
      image: busybox:demo
      command: [sh, -c, "echo started; exec sleep 1000"]
      resources: {requests: {cpu: 100m}, limits: {memory: 32Mi, cpu: 250m}}
Y
cat >/etc/gantry/manifests/hog.yaml <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: hog}
spec:
  restartPolicy: Never
  containers:
    - name: c
      image: busybox:demo
      command: [sh, -c, "exec tail -c 200m /dev/zero"]
      resources: {limits: {memory: 16Mi}}
Y
step "wait for the pod"
wait_for 60 "ready pod" is_ready a
pod=$(find /sys/fs/cgroup/gantry-main/kubepods -type d -path '*pod*' -name '*pod*' | head -n 1)
[ -n "$pod" ] || fail "no pod cgroup"
limits=$(cat /sys/fs/cgroup/gantry-main/kubepods/*/*/*/memory.max /sys/fs/cgroup/gantry-main/kubepods/*/*/memory.max 2>/dev/null | tr '\n' ' ')
case "$limits" in *33554432*) ;; *) fail "memory.max of 32Mi is nowhere: $limits" ;; esac
quota=$(cat /sys/fs/cgroup/gantry-main/kubepods/*/*/*/cpu.max 2>/dev/null | tr '\n' ';')
case "$quota" in *"25000 100000"*) ;; *) fail "cpu.max of 250m is nowhere: $quota" ;; esac
step "wait for the OOM kill"
oom_killed() { gantry pods default/hog-demo-1 -o json | grep -q OOMKilled; }
wait_for 60 "OOMKilled" oom_killed
step "exec and logs"
[ "$(gantry exec default/a-demo-1 -- hostname)" = a-demo-1 ] || fail "exec"
gantry logs default/a-demo-1 | grep -q started || fail "logs"
before=$(gantry pods default/a-demo-1 -o json | grep -o '"containerID": *"[^"]*"')
step "kill the node"
kill -9 $node; wait $node 2>/dev/null
start
wait_for 60 "ready pod after the restart" is_ready a
after=$(gantry pods default/a-demo-1 -o json | grep -o '"containerID": *"[^"]*"')
[ "$before" = "$after" ] || fail "the restart changed the container"
step "delete the pods"
rm /etc/gantry/manifests/*.yaml
wait_for 60 "empty node" no_pods
left=$(find /sys/fs/cgroup/gantry-main/kubepods -type d -name '*pod*-*')
[ -z "$left" ] || fail "cgroups are left: $left"
step "stop the node"
kill $node; wait $node
echo "node on cgroup v2: ok"
