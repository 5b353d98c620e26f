#!/bin/sh
# Measures a hub and workers that share the GPUs of one machine, over loopback: for machines without a compiler, in nine
# minutes with one H200.
#
#   xtask/swarm-gpu.sh CHASKI OUT [PRESET:MIX]
#
# CHASKI is the command, OUT the folder for the files: a JSON file a measurement, `swarm.json` with all of them in one
# table, `summary.txt`, and `failed` if a command did not end well. For each number of workers it keeps prompts and answers
# of one text, a batch of 16 texts with the most workers, where the time of a layer goes (`-v` of `chaski bench`), and the
# hub's device memory with and without experts.
# The model (qwen3-30b-a3b:q4_k_m) is written to WORK, by default a temporary folder, and removed; LAYERS makes it shorter.
# HUB (0) and WORKERS_ON (0) are devices, as `chaski bench` names them, SWARM (4 2 1) the numbers of workers, MEMORY (20G)
# what each has for experts. PROMPTS (128,512), ANSWER (64), REPETITIONS (2). EXTRA has more options of the hub, such as
# --swarm-hedge never. SECONDS_LEFT (500) is the time after which nothing new starts.
set -eu
[ $# -ge 2 ] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
chaski=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")
model=${3:-qwen3-30b-a3b:q4_k_m}
hub=${HUB:-0} on=${WORKERS_ON:-0} counts=${SWARM:-4 2 1} memory=${MEMORY:-20G}
p=${PROMPTS:-128,512} t=${ANSWER:-64} n=${REPETITIONS:-2}
limit=${SECONDS_LEFT:-500}
. "$(dirname "$0")/keep.sh"
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"
workers=
stop() {
    [ -z "$workers" ] || kill $workers 2>/dev/null || true
    for pid in $workers; do wait "$pid" 2>/dev/null || true; done
    workers=
}
trap 'stop; rm -rf "$work"/swarm.gguf "$work"/pool "$work"/store-*' EXIT

# start N: workers with identities of their own, which share what they have fetched.
start() {
    for i in $(seq "$1"); do
        mkdir -p "store-$i"
        for byte in $(seq 0 255); do
            two=$(printf %02x "$byte")
            mkdir -p "pool/$two"
            ln -sfn "$work/pool/$two" "store-$i/$two"
        done
        "$chaski" worker "ws://127.0.0.1:$port" --device "$on" --memory "$memory" --store "store-$i" \
            >"$out/worker-$1-$i.log" 2>&1 &
        workers="$workers $!"
    done
}

# swarm NAME N ARGS...: a benchmark of a hub with N workers.
port=8091
swarm() {
    name=$1 count=$2
    shift 2
    if ! has_time; then say "$name: no time left"; return; fi
    port=$((port + 1))
    start "$count"
    # shellcheck disable=SC2086
    keep "$name" "$chaski" bench -m swarm.gguf --device "$hub" --swarm "127.0.0.1:$port" --swarm-workers "$count" \
        --swarm-replicas 1 --swarm-fast --experts-away -v -o json "$@" ${EXTRA:-}
    stop
    [ ! -e "$out/$name.json.err" ] || grep '^swarm' "$out/$name.json.err" | sed 's/^/  /' | tee -a "$out/summary.txt" || true
}

"$chaski" devices -o json >"$out/devices.json"
start=$(date +%s)
"$chaski" synth --preset "${model%:*}" --mix "${model#*:}" ${LAYERS:+--layers "$LAYERS"} --out swarm.gguf -q
say "$model${LAYERS:+, $LAYERS layers}: made in $(($(date +%s) - start)) s"
keep alone "$chaski" bench -m swarm.gguf --device "$hub" -p "$p" -n "$t" -r "$n" -v -o json
for count in $counts; do
    swarm "workers-$count" "$count" -p "$p" -n "$t" -r "$n"
    # Several texts at once, with the first number of workers.
    [ "$count" != "${counts%% *}" ] || swarm "batch-$count" "$count" -npp 32 -ntg 32 -npl 1,16
done

python3 - "$out" <<'PYTHON' | tee -a "$out/summary.txt"
import glob, json, os, re, sys
out, table = sys.argv[1], []
for path in sorted(glob.glob(out + "/alone.json") + glob.glob(out + "/workers-*.json") + glob.glob(out + "/batch-*.json")):
    name = os.path.basename(path)[:-5]
    try:
        rows = json.load(open(path))
    except ValueError:
        continue
    notes = open(path + ".err").read().splitlines()
    row = {"name": name, "account": [n for n in notes if n.startswith("swarm")]}
    memory = [m.group(1) for n in notes if (m := re.search(r"([\d.]+ [KMG]iB) of device memory", n))]
    row["device_memory"] = memory[-1] if memory else None
    row["tests"] = rows if isinstance(rows, list) else rows.get("results", rows)
    table.append(row)
    for r in row["tests"] if isinstance(row["tests"], list) else []:
        if "avg_ts" in r:
            test = f"pp{r['n_prompt']}" if r.get("n_prompt") else f"tg{r.get('n_gen')}"
            print(f"  {name:12} {test:8} {r['avg_ts']:10.1f} t/s")
        elif "speed_tg" in r:
            print(f"  {name:12} {r.get('pl')} texts  {r['speed_tg']:10.1f} t/s of answers")
    print(f"  {name:12} device memory {row['device_memory']}")
json.dump(table, open(out + "/swarm.json", "w"), indent=1)
PYTHON
[ ! -e "$out/failed" ]
