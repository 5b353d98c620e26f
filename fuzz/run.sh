#!/usr/bin/env bash
# OUT=FOLDER run.sh [SECONDS [GOAL]]: runs the targets beside this script (build.sh puts them there) on all cores until
# each has GOAL executions or the time is over, and goes on after a finding. In OUT: summary.json and summary.txt,
# findings/TARGET-crash-*, logs/, and corpus.tar.gz, from which another run continues if it lies beside this script.
# TARGETS="template grammar" chooses some, CORES limits the processes. BEFORE="template=6081956 grammar=425336" are executions
# of earlier runs, which count.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${OUT:?the folder for the results}")
seconds=${1:-540} goal=${2:-10000000}
cores=${CORES:-$(nproc)}
# Longest input, in bytes.
declare -A max_len=([folder_tokenizer]=4096 [gguf]=4096 [grammar]=512 [hub]=2048 [imatrix]=2048 [lora]=4096 [mlc]=8192 [safetensors]=4096 [schema]=1024 [swarm]=4096 [template]=1024 [tokenizer]=1024
  [wgsl_pre]=2048 [wire]=2048)
read -r -a targets <<<"${TARGETS:-$(echo "${!max_len[@]}" | tr ' ' '\n' | sort | tr '\n' ' ')}"
# One process runs for so long at most, so that cores pass to the targets that need them.
slice=$((seconds / 9 + 1))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out/findings" "$out/logs" "$work/corpus"
tar -xzf "$here/seeds.tar.gz" -C "$work"
[ ! -e "$here/corpus.tar.gz" ] || tar -xzf "$here/corpus.tar.gz" -C "$work"
for name in "${targets[@]}"; do
  gzip -dc "$here/targets/$name.gz" >"$work/$name" && chmod +x "$work/$name"
  mkdir -p "$work/corpus/$name"
  for counter in "done" running rounds; do echo 0 >"$work/$name.$counter"; done
done
for count in ${BEFORE:-}; do echo "${count#*=}" >"$work/${count%%=*}.done"; done

number() { cat "$work/$1"; }
# The number behind the last WORD of a log.
stat_of() { sed -n "s/.*$2:* *\([0-9][0-9]*\).*/\1/p" "$1" | tail -1; }

# Chooses the target with executions left that has the fewest processes, then the fewest so far, for a slot; prints its
# name, or nothing.
choose() {
  local best="" fewest=1000000000 name rank
  for name in "${targets[@]}"; do
    rank=$(($(number "$name.running") * 100000 + $(number "$name.rounds")))
    if [ "$(number "$name.done")" -lt "$goal" ] && [ "$rank" -lt "$fewest" ]; then
      best=$name fewest=$rank
    fi
  done
  [ -n "$best" ] || return 0
  echo $(($(number "$best.running") + 1)) >"$work/$best.running"
  echo $(($(number "$best.rounds") + 1)) >"$work/$best.rounds"
  echo "$best"
}

# Adds the executions of a process.
record() {
  echo $(($(number "$1.done") + $2)) >"$work/$1.done"
  echo $(($(number "$1.running") - 1)) >"$work/$1.running"
}

locked() { (flock 9 && "$@") 9>"$work/lock"; }

# Runs targets one after another until the time is over.
slot() {
  local round=0 name left log n
  while left=$((seconds - SECONDS)) && [ "$left" -gt 0 ]; do
    name=$(locked choose)
    [ -n "$name" ] || return 0
    round=$((round + 1))
    log="$out/logs/$name-$1-$round.log"
    [ "$left" -lt "$slice" ] || left=$slice
    timeout $((left + 30)) "$work/$name" "$work/corpus/$name" "$work/seeds/$name" -max_len="${max_len[$name]}" \
      -timeout=10 -rss_limit_mb=2048 -max_total_time="$left" -runs=$((goal - $(locked number "$name.done"))) \
      -seed=$(($1 * 1000 + round + 1)) -report_slow_units=5 -print_final_stats=1 -reload=10 -verbosity=1 \
      -artifact_prefix="$out/findings/$name-" >"$log" 2>&1
    echo "exit $?" >>"$log"
    n=$(stat_of "$log" stat::number_of_executed_units)
    locked record "$name" "${n:-0}"
    # The lines of progress are most of a log.
    { grep -v '^#\|# Uses' "$log"; grep '^#[0-9]' "$log" | tail -2; } | head -c 200000 >"$log.short" && mv "$log.short" "$log"
  done
}

for ((i = 0; i < cores; i++)); do slot "$i" & done
wait

count() { find "$out/findings" -name "$1" | wc -l; }
{
  echo "{"
  separator=""
  for name in "${targets[@]}"; do
    cat "$out/logs/$name"-*.log >"$work/all.log" 2>/dev/null
    slowest=$(sed -n 's/^stat::slowest_unit_time_sec: *//p' "$work/all.log" | sort -n | tail -1)
    coverage=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$work/all.log" | sort -n | tail -1)
    printf '%s  "%s": {"executions": %d, "crashes": %d, "timeouts": %d, "out_of_memory": %d, "slowest_s": %d, "coverage": %d, "corpus": %d}' \
      "$separator" "$name" "$(number "$name.done")" "$(count "$name-crash-*")" "$(count "$name-timeout-*")" \
      "$(count "$name-oom-*")" "${slowest:-0}" "${coverage:-0}" "$(find "$work/corpus/$name" -type f | wc -l)"
    separator=$',\n'
  done
  printf '\n}\n'
} >"$out/summary.json"
tr -d '{}",' <"$out/summary.json" | grep -v '^ *$' | tee "$out/summary.txt"
tar -czf "$out/corpus.tar.gz" -C "$work" corpus
