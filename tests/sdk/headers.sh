#!/bin/bash
# headers.sh INCLUDE_DIR abi|sdk: every public header compiles alone: ABI headers as C11 and C++ with GCC and clang, SDK headers
# as C++20 with GCC (and all together with clang), the fake host as C++17; warnings are errors.
set -euo pipefail
include=$1 part=$2
warnings="-Wall -Wextra -Wpedantic -Werror -Wno-pragma-once-outside-header"

compile() { # COMPILER LANGUAGE STANDARD HEADER
  local quiet=$warnings
  [[ $1 == clang* ]] || quiet=${quiet/-Wno-pragma-once-outside-header/}
  # Through an include, so that the header is not the main file; twice, so that its guard is proved.
  # shellcheck disable=SC2086  # the flags are words
  printf '#include "%s"\n#include "%s"\n' "$4" "$4" |
    $1 -x "$2" -std="$3" $quiet -I"$include" -fsyntax-only - || { echo "$4 does not compile alone as $3 with $1"; return 1; }
}
export -f compile
export include warnings

all=$(mktemp --suffix=.hpp)
trap 'rm -f "$all"' EXIT
(cd "$include" && find gantry/sdk -name '*.hpp' -printf '#include "%p"\n') > "$all"

list() {
  cd "$include"
  if [[ $part == abi ]]; then
    for header in $(find gantry/abi -name '*.h'); do
      printf '%s\n' "gcc c c11 $header" "clang c c11 $header" "g++ c++ c++20 $header" "clang++ c++ c++20 $header"
    done
  else
    for header in $(find gantry/sdk -name '*.hpp'); do printf '%s\n' "g++ c++ c++20 $header"; done
    for header in $(find gantry/sdk -name '*.h'); do
      printf '%s\n' "g++ c++ c++17 $header" "clang++ c++ c++20 $header"
    done
    # What clang minds besides is in the text of the headers, not in their order: one look at all of them is enough.
    printf '%s\n' "clang++ c++ c++20 $all"
  fi
}

count=$(list | wc -l)
[[ $count -gt 20 ]] || { echo "found only $count header checks"; exit 1; }
list | xargs -P "$(nproc)" -L 1 bash -c 'compile "$@"' --
echo "$count compilations of $part headers"
