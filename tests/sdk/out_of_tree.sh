#!/bin/bash
# out_of_tree.sh BUILD_DIR SOURCE_DIR: a vendor's view. Installs plugin-api, hides the source tree (an empty tmpfs over it in
# a mount namespace), and builds the template and the examples from the installed files alone, with GCC and clang.
set -euo pipefail

if [[ ${1:-} != --hidden ]]; then
  build=$1 source=$2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cmake --install "$build" --component plugin-api --prefix "$work/stage" > "$work/install.log" || { cat "$work/install.log"; exit 1; }
  mv "$work/stage" "$work/prefix" # an installed tree may be moved
  cp -r "$work"/prefix/share/gantry/plugin-api/{template,examples} "$work"
  namespace=(unshare --mount)
  [[ $EUID == 0 ]] || namespace=(unshare --map-root-user --mount)
  cp "$0" "$work/script" # the one here is about to be hidden
  cd "$work"
  "${namespace[@]}" bash script --hidden "$work" "$source"
  exit
fi

work=$2 source=$3
mount -t tmpfs none "$source"
[[ -z $(ls -A "$source") ]] || { echo "the source tree is still visible"; exit 1; }

if grep -rlF "$source" prefix; then
  echo "these installed files name the source tree"
  exit 1
fi

# check FILE: one exported symbol, and the note.
check() {
  local symbols
  symbols=$(nm -D --defined-only "$1" | awk '{print $3}')
  [[ $symbols == gantry_plugin_main ]] || { echo "$1 exports: $symbols"; exit 1; }
  readelf -nW "$1" | grep -q '^ *gantry ' || { echo "$1 has no gantry note"; exit 1; }
}

run() { "$@" > log 2>&1 || { cat log; exit 1; }; }

for compiler in gcc clang; do
  command -v $compiler > /dev/null || { echo "$compiler is not installed"; exit 1; }
  cxx=${compiler/gcc/g++}
  cxx=${cxx/clang/clang++}
  for project in template/cpp template/c examples; do
    out=$work/build-$compiler/$project
    run cmake -S "$project" -B "$out" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER=$compiler \
      -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror -O0"
    run cmake --build "$out"
    [[ $project == template/c ]] || run ctest --test-dir "$out" --output-on-failure --no-tests=error
    plugins=$(find "$out" -name '*.so')
    [[ -n $plugins ]] || { echo "$project built no plugin"; exit 1; }
    for plugin in $plugins; do
      check "$plugin"
      echo "$compiler: $project: $(basename "$plugin")"
    done
  done

  pc=$(dirname "$(find prefix -name gantry-plugin.pc)")
  flags=$(PKG_CONFIG_PATH="$work/$pc" pkg-config --cflags --libs gantry-plugin)
  # shellcheck disable=SC2086  # the flags are words
  run $compiler -std=gnu11 -Wall -Wextra -Werror template/c/acme_gc.c $flags -o pkgconfig.so
  check pkgconfig.so
  echo "$compiler: template/c by pkg-config"
done

# gantry_add_plugin must notice what it says it notices.
mkdir leaky
printf 'int leaked(void) { return 0; }\n' > leaky/leaky.c
cat > leaky/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(leaky LANGUAGES C)
find_package(GantryPlugin 1.0 REQUIRED)
gantry_add_plugin(leaky SOURCES leaky.c)
CMAKE
run cmake -S leaky -B leaky/build -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix"
if cmake --build leaky/build > log 2>&1; then
  echo "a library without gantry_plugin_main passed the check"
  exit 1
fi
# CMake wraps its messages at a width that the path decides.
tr -s ' \n' ' ' <log | grep -q "must export gantry_plugin_main and nothing else" || { cat log; exit 1; }
echo "gantry_add_plugin refuses a library without gantry_plugin_main"
