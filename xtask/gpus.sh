#!/bin/sh
# Measures one model over several GPUs of a host against one of them, and compares texts first: for machines without a
# compiler, in nine minutes with two H100.
#
#   xtask/gpus.sh CHASKI OUT [PRESET:MIX]
#
# CHASKI is the command, OUT the folder for one JSON file a measurement and the files `summary.txt` and `failed`, which is
# there if texts differ or a command failed. The model is written to WORK (by default a temporary folder) and removed.
# SEVERAL (0/1) are the devices, as `chaski bench` names them, SMALL (llama3.2-1b:q4_k_m) the first model. REPETITIONS (3),
# PROMPTS (512,2048) and ANSWER (64) make it shorter. With LLAMA_BENCH, the path of llama.cpp's llama-bench, that runs on
# the same file, too. SECONDS_LEFT (520) is the time after which nothing new starts.
set -eu
[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
chaski=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")
model=${3:-llama3.3-70b:q4_k_m}
small=${SMALL:-llama3.2-1b:q4_k_m}
n=${REPETITIONS:-3} p=${PROMPTS:-512,2048} t=${ANSWER:-64} several=${SEVERAL:-0/1}
first=${several%%/*} list=$(printf %s "$several" | tr / ,)
limit=${SECONDS_LEFT:-520}
. "$(dirname "$0")/keep.sh"
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"
trap 'rm -f "$work"/small.gguf "$work"/large.gguf' EXIT

# rates NAME: the tests of a benchmark with their tokens per second.
rates() {
    [ -s "$out/$1.json" ] || return 0
    python3 - "$out/$1.json" <<'PYTHON' | tee -a "$out/summary.txt"
import json, sys
rows = json.load(open(sys.argv[1]))
for r in rows if isinstance(rows, list) else rows.get("results", []):
    name = f"pp{r.get('n_prompt')}" if r.get("n_prompt") else f"tg{r.get('n_gen')}"
    print(f"  {sys.argv[1].rsplit('/', 1)[-1][:-5]:24} {name:8} ub {r.get('n_ubatch')}: {r.get('avg_ts', 0):10.2f} t/s")
PYTHON
}

# texts NAME ARGS...: answers on one device and over all, which must be equal to the byte.
texts() {
    name=$1
    shift
    for way in "--temp 0" "--seed 7 --temp 1.2" "--seed 7 --repeat-penalty 1.3"; do
        one=$("$chaski" run -q "$@" $way --device "$first") || { failed "run $name $way"; return; }
        for split in "--device $list" "--device $list -ts 3,1" "--device $list -ts 1,3 --chunk 64"; do
            found=$("$chaski" run -q "$@" $way $split) || { failed "run $name $way $split"; continue; }
            [ "$found" = "$one" ] || failed "$name: other text with $way $split"
        done
    done
    say "$name: texts compared, $(($(date +%s) - begin)) s"
}

"$chaski" devices -o json >"$out/devices.json"
prompt="Once upon a time there was a girl who lived in a small house at the edge of a large forest. One day she"
texts storyteller -n 48 -p "$prompt"
"$chaski" synth --preset "${small%:*}" --mix "${small#*:}" --out small.gguf -q
texts "$small" small.gguf -n 24 -p "$prompt $prompt $prompt $prompt $prompt $prompt $prompt $prompt $prompt"
keep small-one "$chaski" bench -m small.gguf --device "$first" -p "$p" -n "$t" -r "$n" -q -o json
keep small-several "$chaski" bench -m small.gguf --device "$several" -p "$p" -n "$t" -r "$n" -q -o json
rates small-one
rates small-several
rm -f small.gguf

start=$(date +%s)
"$chaski" synth --preset "${model%:*}" --mix "${model#*:}" --out large.gguf -q
say "${model}: made in $(($(date +%s) - start)) s"
keep show "$chaski" show large.gguf --json --device "$list" -c 4096
keep large-one "$chaski" bench -m large.gguf --device "$first" -p "$p" -n "$t" -r "$n" -q -o json
rates large-one
keep large-several "$chaski" bench -m large.gguf --device "$several" -p "$p" -n "$t" -r "$n" -q -o json
rates large-several
# Chunks of other sizes: more of them keep the devices busier, larger ones are faster by themselves.
keep large-several-256 "$chaski" bench -m large.gguf --device "$several" -ub 256 -p "$p" -n 0 -r "$n" -q -o json
rates large-several-256
if [ -n "${LLAMA_BENCH:-}" ]; then
    keep llama-several "$LLAMA_BENCH" -m large.gguf -ngl 99 -sm layer -p "$p" -n "$t" -r "$n" -o json
    rates llama-several
    keep llama-one "$LLAMA_BENCH" -m large.gguf -ngl 99 -sm none -p "$p" -n "$t" -r "$n" -o json
    rates llama-one
fi
keep large-several-1024 "$chaski" bench -m large.gguf --device "$several" -ub 1024 -p "$p" -n 0 -r "$n" -q -o json
rates large-several-1024
[ ! -e "$out/failed" ]
