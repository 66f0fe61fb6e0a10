#!/usr/bin/env bash
# The whole node on cgroup v2 and Debian's own kernel, under QEMU: takes the built tree along and runs inside.sh there.
# usage: node_in_vm.sh BUILD_DIR
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../../..")
build=$(readlink -f "$1")
"$root/tests/tools/make-image.sh" "$root/build/images"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/gantry/bin" "$work/gantry/lib/gantry/plugins" "$work/gantry/lib/gantry/libexec"
strip -o "$work/gantry/bin/gantry" "$build/bin/gantry"
for plugin in source-file cri-native cni-bridge node-linux; do
    strip -o "$work/gantry/lib/gantry/plugins/$plugin.so" "$build/lib/gantry/plugins/$plugin.so"
done
for helper in "$build"/lib/gantry/libexec/*; do strip -o "$work/gantry/lib/gantry/libexec/$(basename "$helper")" "$helper"; done
"$root/tests/vm/vm-run" -t 240 -m 1536 -l "$work/console" -f "$work/gantry:/opt/gantry" -f "$root/build/images/busybox.docker.tar:/opt/busybox.tar" \
    -f "$root/examples/standalone/node.yaml:/etc/gantry/node.yaml" -f "$here/inside.sh:/opt/inside.sh" -f /usr/lib/locale/C.utf8 -- sh /opt/inside.sh
