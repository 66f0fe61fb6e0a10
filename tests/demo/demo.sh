#!/usr/bin/env bash
# ./dev demo: a walk through a standalone node with real pods, from an empty machine to an empty machine.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
gantry=${GANTRY:-$root/build/release/bin/gantry}
work=$(mktemp -d /tmp/gantry-demo.XXXXXX)
instance=demo$$
socket=$work/gantry.sock
node_pid=

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
fail() { echo "demo: $*" >&2; exit 1; }
g() {
    local verbs=("$1"); shift
    [ "${verbs[0]}" != image ] || { verbs+=("$1"); shift; }
    "$gantry" "${verbs[@]}" --socket "$socket" "$@"
}
show() { echo "\$ gantry $*"; g "$@"; }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds
wait_for() {
    local limit=$1 what=$2; shift 2
    local end=$((SECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { g pods || true; tail -n 30 "$work/node.log" >&2; fail "no $what within ${limit}s"; }
        sleep 0.05
    done
}

start_node() {
    "$gantry" run --config "$work/node.yaml" >>"$work/node.log" 2>&1 &
    node_pid=$!
    wait_for 20 "admin socket" g plugins
}

stop_node() {
    [ -z "$node_pid" ] || { kill -TERM "$node_pid" 2>/dev/null && wait "$node_pid" 2>/dev/null || true; }
    node_pid=
}

pod_field() { g pods "default/$1-$node_name" -o json | jq -r "$2"; }
is_ready() { [ "$(pod_field "$1" '[.status.conditions[]|select(.type=="Ready")][0].status')" = True ]; }
has_phase() { [ "$(pod_field "$1" .status.phase)" = "$2" ]; }
no_pods() { [ "$(g pods -o json | jq '.items|length')" = 0 ]; }

# What this node instance may have left on the machine; empty when clean.
leftovers() {
    grep -F "$work" /proc/self/mounts || true
    grep -F "gantry-$instance" /proc/self/mounts || true
    local dir
    for dir in $(find /sys/fs/cgroup -maxdepth 3 -type d -path "*gantry-$instance*/kubepods/*pod*" 2>/dev/null); do echo "$dir"; done
    for dir in /proc/[0-9]*; do
        [ "$dir" != "/proc/$$" ] && [ "$(awk '/^State/{print $2}' "$dir/status" 2>/dev/null)" != Z ] &&
            grep -aqF "$instance" "$dir/cmdline" 2>/dev/null && echo "$dir $(tr '\0' ' ' <"$dir/cmdline")"
    done
    ip -o link show type veth 2>/dev/null | grep -F "gantry:$instance" || true
    return 0
}

# What only `gantry reset` would remove: the empty cgroup tree, the bridge and the table of the instance.
clean_up() {
    local status=$?
    if [ -n "$node_pid" ]; then rm -f "$work"/manifests/*; sleep 1; stop_node; fi
    local bridge
    bridge=$(ip -o link show type bridge 2>/dev/null | awk -F': ' -v i="gt-$instance" '$2 ~ i {print $2}')
    [ -z "$bridge" ] || ip link del "$bridge" 2>/dev/null || true
    nft delete table inet "gantry-$instance" 2>/dev/null || true
    find /sys/fs/cgroup -depth -type d -path "*/gantry-$instance*" -exec rmdir {} \; 2>/dev/null || true
    if [ $status -ne 0 ]; then echo "demo: failed; the node's log is $work/node.log" >&2; else rm -rf "$work"; fi
    exit $status
}
trap clean_up EXIT

[ "$(id -u)" -eq 0 ] || fail "needs root: it makes namespaces, mounts and cgroups"
say "images, made from this machine's Debian packages"
"$root/tests/tools/make-image.sh" "$root/build/images"

say "a node from examples/standalone/node.yaml, with directories of its own"
node_name=demo-1
mkdir -p "$work/manifests"
sed -e "s|instance: demo .*|instance: $instance|" \
    -e "s|stateDir: /var/lib/gantry|stateDir: $work/state\n  runDir: $work/run\n  socket: $socket\n  podLogsDir: $work/logs|" \
    -e "s|/etc/gantry/manifests|$work/manifests|" "$root/examples/standalone/node.yaml" >"$work/node.yaml"
"$gantry" config check "$work/node.yaml"
start_node
show plugins
g image load "$root/build/images/busybox.docker.tar"
g image load "$root/build/images/web.oci.tar"
show images

say "three pods, from manifests dropped into the directory"
cp "$root"/examples/standalone/manifests/*.yaml "$work/manifests/"
wait_for 20 "ready web pod" is_ready web
wait_for 20 "ready pair pod" is_ready pair
wait_for 20 "finished job" has_phase job Succeeded
show pods

say "the web server answers on its pod address and on the node's port 18080"
ip=$(pod_field web .status.podIP)
curl -fsS --max-time 5 "http://$ip/" | head -n 3
curl -fsS --max-time 5 "http://127.0.0.1:18080/" >/dev/null && echo "127.0.0.1:18080 answers"

say "two containers share localhost; a job's output"
server_said() { g logs "default/pair-$node_name" -c client | grep -q 'hello from the server'; }
wait_for 10 "answer over localhost" server_said
show logs "default/pair-$node_name" -c client --tail 2
show logs "default/job-$node_name"
g logs "default/job-$node_name" | grep -q 'the sum is 500500' || fail "the job's log is wrong"

say "a command inside a container, and its cgroup limit"
show exec "default/web-$node_name" -- sh -c 'echo "I am $(hostname), $(id -u):$(id -g)"; cat /proc/self/cgroup | head -n 3'
g exec "default/web-$node_name" -- sh -c 'exit 7' && fail "exec lost the exit code" || [ $? -eq 7 ] || fail "exec gave exit code $?"
limit=$(find /sys/fs/cgroup -path "*gantry-$instance*" \( -name memory.limit_in_bytes -o -name memory.max \) -path '*kubepods*' 2>/dev/null |
    xargs cat 2>/dev/null | grep -cx 67108864 || true)
[ "$limit" -ge 1 ] || fail "no cgroup carries web's memory limit of 64Mi"
echo "memory limit of 64Mi is set in the kernel"

say "what happened to a pod"
show explain "default/web-$node_name"

say "kill -9 of the core; containers go on, the restarted core adopts them"
before=$(g pods -o json | jq -c '[.items[]|{n:.metadata.name,s:[.status.containerStatuses[]|{c:.containerID,r:.restartCount,t:.state}]}]|sort_by(.n)')
kill -KILL "$node_pid"
wait "$node_pid" 2>/dev/null || true
curl -fsS --max-time 5 "http://$ip/" >/dev/null && echo "web answers while no core runs"
start_node
wait_for 20 "ready web pod after the restart" is_ready web
wait_for 20 "ready pair pod after the restart" is_ready pair
after=$(g pods -o json | jq -c '[.items[]|{n:.metadata.name,s:[.status.containerStatuses[]|{c:.containerID,r:.restartCount,t:.state}]}]|sort_by(.n)')
[ "$before" = "$after" ] || { printf 'before %s\nafter  %s\n' "$before" "$after" >&2; fail "the restart changed a container"; }
show pods
echo "same containers, same restart counts, same start times"

say "the manifests go, and so does everything they made"
rm "$work"/manifests/*.yaml
wait_for 45 "empty node" no_pods
stop_node
left=$(leftovers)
[ -z "$left" ] || { echo "$left" >&2; fail "something is left"; }
echo "no process, mount, cgroup or link is left"
echo
echo "demo: ok"
