#!/usr/bin/env bash
# ./dev bench SUITE [--json]: measures, and prints each figure beside its goal. Needs root; nothing else should be running.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../.." && pwd)
suite=${1:-}; shift || true
case $suite in
    pods) "$root/tests/tools/make-image.sh" "$root/build/images" >&2; exec python3 "$here/pods.py" --root "$root" "$@" ;;
    abi) exec "$root/build/release/tests/bench/abi_op" "$@" ;;
    image) "$root/tests/tools/make-image.sh" "$root/build/images" >&2; exec "$root/build/release/tests/bench/unpack" "$@" ;;
    network) exec "$root/build/release/tests/bench/cni_add" "$@" ;;
    *) echo "usage: ./dev bench pods|abi|image|network [--json]" >&2; exit 2 ;;
esac
