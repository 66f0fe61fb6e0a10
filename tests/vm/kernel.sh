#!/usr/bin/env bash
# kernel.sh DIR: puts Debian's cloud kernel into DIR: vmlinuz and, under modules/, the modules of modules.txt with all that
# they need. Downloads only what is not there yet. Prints nothing when there is nothing to do.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
out=$(readlink -m "$1")
mark=$out/ready-$(sha256sum <"$here/modules.txt" | cut -c1-16)
[ ! -e "$mark" ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
# The meta package depends on the one that holds the kernel.
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
[ -n "$package" ] || { echo "kernel.sh: no package linux-image-cloud-amd64; run apt-get update" >&2; exit 1; }
deb=$(find "$out" -name "${package}_*.deb" | sort | tail -n 1)
if [ -z "$deb" ]; then
    echo "kernel.sh: downloading $package"
    (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package" >/dev/null)
    mv "$work/${package}"_*.deb "$out/"
    deb=$(find "$out" -name "${package}_*.deb" | sort | tail -n 1)
fi
dpkg-deb -x "$deb" "$work/tree"
version=$(ls "$work/tree/lib/modules")
busybox depmod -b "$work/tree" "$version"
tree=$work/tree/lib/modules/$version

# What a module needs stands in modules.dep: "path: path path".
declare -A needs=() keep=()
while IFS=: read -r path rest; do needs[$path]=$rest; done <"$tree/modules.dep"
while read -r name; do
    case $name in '' | '#'*) continue ;; esac
    path=$(grep -oE "^[^:]*/${name//_/[-_]}\.ko" "$tree/modules.dep" | head -n 1) || true
    [ -n "$path" ] || continue # built in
    for one in $path ${needs[$path]}; do keep[$one]=1; done
done <"$here/modules.txt"

rm -rf "$out/modules" "$out"/ready-*
target=$out/modules/lib/modules/$version
mkdir -p "$target"
for path in "${!keep[@]}"; do
    mkdir -p "$target/$(dirname "$path")"
    cp "$tree/$path" "$target/$path"
done
cp "$tree"/modules.{builtin,order,builtin.modinfo} "$target/" 2>/dev/null || true
busybox depmod -b "$out/modules" "$version"
cp "$work/tree/boot/vmlinuz-$version" "$out/vmlinuz"
touch "$mark"
