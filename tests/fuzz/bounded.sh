#!/usr/bin/env bash
# bounded.sh SECONDS NAME...: builds these fuzz targets with the preset `fuzz` (clang, sanitizers) and gives
# each so many seconds. Inputs that break one stay in build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
shift

log=build/fuzz.log
build() {
  [ -e build/fuzz/build.ninja ] || cmake --preset fuzz
  cmake --build --preset fuzz --target "${@/#/fuzz_}"
}
mkdir -p build
build "$@" >"$log" 2>&1 || { tail -n 30 "$log"; exit 1; }

for name in "$@"; do
  mkdir -p "build/fuzz/found/$name"
  echo "fuzz_$name: $seconds s"
  "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/found/$name" \
    "tests/fuzz/corpus/$name" 2>"build/fuzz/found/$name.log" || { tail -n 40 "build/fuzz/found/$name.log"; exit 1; }
  grep number_of_executed_units "build/fuzz/found/$name.log"
done
