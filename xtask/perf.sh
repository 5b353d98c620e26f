#!/bin/sh
# Measures what docs/performance.md shows, with nothing but the command itself: for machines without a compiler.
#
#   xtask/perf.sh CHASKI OUT [PRESET:MIX ...]
#
# CHASKI is the command, OUT the folder for one JSON file a measurement; `cargo xtask perf-doc OUT` makes the document.
# Models are written to WORK (by default a temporary folder) and removed. REPETITIONS (5), PROMPT (512), ANSWER (128)
# and DEPTH (2048) make it shorter; FORMATS (all) are the mixes whose products are measured, in the shapes of DEEP
# (llama3.1-8b). The first model is the one whose variations are measured.
set -eu
[ $# -ge 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
chaski=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")
shift 2
[ $# -gt 0 ] || set -- llama3.2-1b:q4_k_m llama3.2-1b:q8_0 llama3.2-1b:f16 llama3.1-8b:q4_k_m llama3.1-8b:f16
n=${REPETITIONS:-5} p=${PROMPT:-512} t=${ANSWER:-128} d=${DEPTH:-2048}
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"

# keep NAME COMMAND...: the command's JSON and the command itself, in one file. A failure is said and leaves no file.
keep() {
    to=$out/$1
    shift
    start=$(date +%s)
    if "$chaski" "$@" -q -o json >"$to.tmp"; then
        { printf '{"command": "chaski %s", "results": ' "$*"; cat "$to.tmp"; printf '}\n'; } >"$to.json"
        echo "${to##*/}: $(($(date +%s) - start)) s"
    else
        echo "${to##*/}: FAILED"
    fi
    rm -f "$to.tmp"
}

# The driver's own cache would make every start a warm one.
cold() {
    XDG_CACHE_HOME=$work/cold __GL_SHADER_DISK_CACHE=0 MESA_SHADER_CACHE_DISABLE=true keep "$@"
}

keep peaks devices --measure
keep formats devices --formats
# How fast each format is multiplied in a model, in the shapes of a large model: enough layers that no cache holds them.
deep=${DEEP:-llama3.1-8b} layers=8
for mix in ${FORMATS-f16 bf16 q8_0 q6_k q5_k_s q5_1 q5_0 q4_k_s q4_1 q4_0 iq4_nl iq4_xs mxfp4 nvfp4 q3_k_s iq3_s iq3_xxs \
    q2_k_s iq2_s iq2_xs iq2_xxs q2_0 tq2_0 tq1_0 iq1_m iq1_s q1_0}; do
    if [ "$mix" = mxfp4 ]; then
        # No dense mix has it.
        "$chaski" synth --preset $deep --layers $layers --mix f16 --out plain.gguf -q
        "$chaski" quantize plain.gguf format.gguf q8_0 --tensor-type ffn_=mxfp4 -q
        rm plain.gguf
    else
        "$chaski" synth --preset $deep --layers $layers --mix "$mix" --out format.gguf -q
    fi
    for inputs in i16 i8; do
        keep "format-$inputs.$mix" bench -m format.gguf -p 0 -n 16 -r 2 --profile --inputs $inputs
    done
    rm format.gguf
done

first=$1
for model in "$@"; do
    name=$(echo "$model" | tr : -)
    "$chaski" synth --preset "${model%:*}" --mix "${model#*:}" --out "$name.gguf" -q
    rm -rf "$work/cold"
    cold "start-cold.$name" bench -m "$name.gguf" -p 0 -n 1 -r 1 --no-warmup
    cold "start-warm.$name" bench -m "$name.gguf" -p 0 -n 1 -r 1 --no-warmup
    keep "speed.$name" bench -m "$name.gguf" -p "$p" -n "$t" -d "0,$d" -r "$n" --profile
    if [ "$model" = "$first" ]; then
        for set in base sg coop; do
            keep "features-$set.$name" bench -m "$name.gguf" -p "$p" -n "$t" -r "$n" --features $set
            [ $set = coop ] || keep "bytes-$set.$name" bench -m "$name.gguf" -p "$p" -n "$t" -r "$n" --features $set --inputs i8
        done
        keep "checked.$name" bench -m "$name.gguf" -p "$p" -n "$t" -r "$n" --checked
        keep "ablate-bind-groups.$name" bench -m "$name.gguf" -p 0 -n "$t" -r "$n" --ablate bind-groups
        keep "ablate-all.$name" bench -m "$name.gguf" -p 0 -n "$t" -r "$n" --ablate bind-groups,parameters
        for k in 1 2 4 8 16 32; do
            keep "interval-$k.$name" bench -m "$name.gguf" -p 0 -n "$t" -r "$n" --interval $k
        done
    fi
    rm "$name.gguf"
done
