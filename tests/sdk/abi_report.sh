#!/bin/bash
# abi_report.sh SOURCE_DIR [--update]: what changed in the ABI since its baseline, by libabigail.
#
# Function tables are only data, which abidw does not see unless an exported function reaches it. So a library
# libgantry_abi_probe.so is made from the headers, with one function per struct, once for abi/*.h and once for abi/draft/*.h.
# A difference in released headers fails, unless plugin-api/abi/.abi-history has an entry for exactly this report; one in
# draft headers is only reported. --update writes the baselines: at a release, or when a draft has settled.
set -euo pipefail

source=$1 update=${2:-}
abi=$source/plugin-api/abi include=$source/plugin-api/include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# dump NAME HEADER...: $work/NAME.abi from the headers (paths below include/).
dump() {
  local name=$1 header structs=0
  shift
  mkdir -p "$work/$name"
  {
    for header in "$@"; do printf '#include "%s"\n' "$header"; done
    for header in "$@"; do
      for type in $(sed -nE 's/^typedef struct (gantry_[a-z0-9_]+)( \{|;| gantry_).*/\1/p' "$include/$header" | sort -u); do
        printf 'const %s *probe_%s(const %s *given);\n' "$type" "$type" "$type"
        printf 'const %s *probe_%s(const %s *given) { return given; }\n' "$type" "$type" "$type"
      done
    done
  } > "$work/$name/probe.c"
  structs=$(grep -c '{ return given; }' "$work/$name/probe.c")
  [[ $structs -ge $# ]] || { echo "only $structs structs found in $# headers of $name"; exit 1; }
  gcc -std=gnu11 -g -O0 -fno-eliminate-unused-debug-types -shared -fPIC -fdebug-prefix-map="$work"=/ \
    -I"$include" "$work/$name/probe.c" -o "$work/$name/libgantry_abi_probe.so"
  # Where a declaration stands is not part of the ABI: without locations a baseline changes only with the types.
  abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-architecture --out-file "$work/$name.abi" \
    "$work/$name/libgantry_abi_probe.so"
  echo "$name: $structs structs of $# headers"
}

# compare NAME: the report in $work/NAME.report; abidiff's exit status (0: no difference).
compare() {
  local status=0
  abidiff --no-show-locs "$abi/$1.abi" "$work/$1.abi" > "$work/$1.report" 2>&1 || status=$?
  if ((status & 3)); then # 1: abidiff failed, 2: it was called wrongly
    cat "$work/$1.report"
    exit 1
  fi
  return $status
}

cd "$include"
mapfile -t released < <(find gantry/abi -maxdepth 1 -name '*.h' | sort)
mapfile -t draft < <(find gantry/abi/draft -name '*.h' | sort)
dump gantry-1 "${released[@]}"
dump gantry-1-draft "${draft[@]}"

if [[ $update == --update ]]; then
  cp "$work/gantry-1.abi" "$work/gantry-1-draft.abi" "$abi"
  echo "baselines written to $abi"
  exit
fi

if compare gantry-1-draft; then
  echo "draft headers: no difference"
else
  echo "draft headers differ from the baseline (allowed):"
  cat "$work/gantry-1-draft.report"
fi

if compare gantry-1; then
  echo "released headers: no difference"
  exit
fi
cat "$work/gantry-1.report"
sum=$(sha256sum < "$work/gantry-1.report" | cut -c1-16)
if grep -q "^$sum " "$abi/.abi-history"; then
  echo "released headers differ from the baseline; .abi-history accepts this: $(grep "^$sum " "$abi/.abi-history")"
  exit
fi
echo "released headers differ from the baseline, and plugin-api/abi/.abi-history does not say that this is compatible."
echo "If it is (a struct grew at its end, a new id): add a line  $sum DATE WHAT AND WHY  to that file."
exit 1
