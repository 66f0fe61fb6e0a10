#!/bin/sh
# The core's only shared libraries are the C and C++ runtimes: nothing of the core's can shadow a vendor's libraries.
# usage: core_libraries.sh GANTRY
set -eu
wanted='libc.so.6 libgcc_s.so.1 libm.so.6 libstdc++.so.6'
found=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort | tr '\n' ' ' | sed 's/ $//')
for library in $found; do
    case " $wanted " in
        *" $library "*) ;;
        *) echo "core_libraries: $1 needs $library; the core links everything but $wanted statically" >&2; exit 1 ;;
    esac
done
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[TDBRVW]/ {print $3}' | grep -vE '^(_|__|stdin|stdout|stderr|environ)' | head -5)
[ -z "$exported" ] || { echo "core_libraries: $1 exports symbols that could shadow a plugin's: $exported" >&2; exit 1; }
