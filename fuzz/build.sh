#!/usr/bin/env bash
# build.sh FOLDER: builds all targets for coverage-guided fuzzing with the stable compiler, and puts them into FOLDER with
# their seeds and run.sh, which takes them to a machine without a compiler. `cargo fuzz` needs a nightly one, and is
# better for debugging a target: it adds the address sanitizer.
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "$0")"
# Comparisons are not traced: that is most of the time of a grammar.
coverage=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table --cfg fuzzing)
# The target keeps the flags from build scripts and macros.
target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="${coverage[*]}" cargo build --release --bins --target "$target"
mkdir -p "$folder/targets"
for source in fuzz_targets/*.rs; do
  name=$(basename "$source" .rs)
  [ "$name" = hook ] || gzip -c "target/$target/release/$name" >"$folder/targets/$name.gz"
done
tar -czf "$folder/seeds.tar.gz" seeds
cp run.sh "$folder/"
