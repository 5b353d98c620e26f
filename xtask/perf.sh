#!/bin/sh
# Takes the measurements that docs/performance.md shows, with nothing but the command: for machines without a compiler.
#
#   [PARTS="peaks models"] [LLAMA=FOLDER] xtask/perf.sh CHASKI OUT [PRESET:MIX ...]
#
# CHASKI is the command, OUT the folder for one JSON file a measurement; `cargo xtask perf-doc OUT` adds them to the document.
# PARTS are run one after the other in one call or in several, on one machine or on several. Estimated seconds on an H200 with
# 16 cores (1 GB of model takes 1 to 2 s to make), in brackets with llama.cpp:
#
#   peaks      60         rates of the device, and of each format side by side
#   formats   120         products of each format in a model
#   variants   25         features, bounds checks and ablations of the first model
#   models     90 [140]   prompts and answers of Llama 1B and 8B; PRESET:MIX ... replaces them
#   families  140 [220]   the same of other families
#   large     110 [180]   the same of a model of 70 B parameters, which needs 43 GB of disk and 46 GB of device memory
#   batches    20 [40]    several sequences at once
#   depths     30 [60]    prompts and answers after long contexts
#   loading    60 [100]   from the program's start to the first token
#   cpu       110 [220]   prompts and answers on the CPU
#   browser   120         the built-in model in Chromium, beside wllama: only if WLLAMA names the folder of the package
#   page       60         the bench page in Chromium, if it is asked for: PAGE has options of bench/measure.js and files, PAGE_NAME
#                         is the measurement's name (cpu); `cargo xtask web` makes the page
#
# A model that several parts need is made once a call. LLAMA is the folder of llama.cpp's llama-bench and llama-batched-bench,
# which then measure the same files in the same call; LLAMA_CPU holds those for the CPU (default LLAMA), LLAMA_NAME says in
# the document which they are. LIMIT (seconds) is the time after which nothing more is begun.
#
# Models are written to WORK (by default a temporary folder) and removed. REPETITIONS (5), PROMPT (512), ANSWER (128) and
# DEPTH (2048) make it shorter; FORMATS (all) are the mixes whose products are measured, in the shapes of DEEP (llama3.1-8b).
# FIRST, MODELS, FAMILIES, LARGE, BATCHES, DEPTHS, LOADING and CPU are the models of a part.
# The browser needs node, crates/web/npm with its module built and its packages installed, and CHASKI_CHROMIUM.
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
npm=$(dirname "$(readlink -f "$0")")/../crates/web/npm
chaski=$(readlink -f "$1")
mkdir -p "$2"
out=$(readlink -f "$2")
shift 2

all="peaks formats variants models families large batches depths loading cpu${WLLAMA:+ browser}"
parts=${PARTS:-$all}
for part in $parts; do
    case " $all browser page " in *" $part "*) ;; *) echo "unknown part $part (known: $all browser page)"; exit 2 ;; esac
done
[ $# -eq 0 ] || MODELS=$*
models_models=${MODELS-llama3.2-1b:q4_k_m llama3.2-1b:q8_0 llama3.2-1b:f16 llama3.1-8b:q4_k_m llama3.1-8b:f16}
models_variants=${FIRST-${models_models%% *}}
models_families=${FAMILIES-lfm2-1.2b:q4_k_m gemma3-4b:q4_k_m phi3-mini:q4_k_m qwen3-8b:q4_k_m gpt-oss-20b:mxfp4_moe \
    qwen3-30b-a3b:q4_k_m}
models_large=${LARGE-llama3.3-70b:q4_k_m}
models_batches=${BATCHES-llama3.2-1b:q4_k_m llama3.1-8b:q4_k_m}
models_depths=${DEPTHS-llama3.1-8b:q4_k_m}
models_loading=${LOADING-llama3.1-8b:q4_k_m llama3.1-8b:f16 qwen3-30b-a3b:q4_k_m}
models_cpu=${CPU-llama3.2-1b:q4_k_m llama3.2-1b:q4_0 llama3.2-1b:q6_k llama3.2-1b:f16 qwen3-0.6b:q8_0}
n=${REPETITIONS:-5} p=${PROMPT:-512} t=${ANSWER:-128} d=${DEPTH:-2048}
# Sizes that samples for tests make smaller.
depths=${DEPTH_LIST:-0,2048,8192,32768} sequences=${PARALLEL:-1,2,4,8,16,32,64} prompt=${BATCH_PROMPT:-128} answer=${BATCH_ANSWER:-32}
page="--device cpu --prompt 64 --answer 64 --depth 0,256 --ablations"
threads=${THREADS:-2,8,16} cpu_prompt=${CPU_PROMPT:-128} cpu_answer=${CPU_ANSWER:-24}
llama=${LLAMA:+$(readlink -f "$LLAMA")} llama_cpu=${LLAMA_CPU:-${LLAMA:-}}
llama_cpu=${llama_cpu:+$(readlink -f "$llama_cpu")}
for program in ${llama:+"$llama/llama-bench" "$llama/llama-batched-bench"} ${llama_cpu:+"$llama_cpu/llama-bench"}; do
    [ -x "$program" ] || { echo "$program is no program"; exit 2; }
done
WLLAMA=${WLLAMA:+$(readlink -f "$WLLAMA")}
end=$(($(date +%s) + ${LIMIT:-86400}))
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
work=$(readlink -f "$work")
cd "$work"
version=$("$chaski" --version)

late() {
    [ "$(date +%s)" -ge "$end" ]
}

quoted() {
    printf '"%s"' "$(printf %s "$1" | sed 's/["\\]/\\&/g')"
}

# store NAME PROGRAM TITLE COMMAND...: what the command prints, which is JSON, with the program's version, the command line to
# show, the time and the milliseconds of the whole process, in one file. A failure is said and leaves no file.
store() {
    to=$out/$1 program=$2 title=$3
    shift 3
    if late; then
        echo "${to##*/}: SKIPPED, no time is left of LIMIT"
        return
    fi
    time=$(date -u +%Y-%m-%dT%H:%M:%SZ) start=$(date +%s%3N)
    if "$@" >"$to.tmp" 2>"$to.err"; then
        ms=$(($(date +%s%3N) - start))
        {
            printf '{"command": %s, "program": %s, ' "$(quoted "$title")" "$(quoted "$program")"
            printf '"time": "%s", "wall_ms": %s, "results": ' "$time" $ms
            cat "$to.tmp"
            printf '}\n'
        } >"$to.json"
        echo "${to##*/}: $((ms / 1000)) s"
    else
        echo "${to##*/}: FAILED"
        tail -5 "$to.err"
    fi
    rm -f "$to.tmp" "$to.err"
}

# keep NAME ARGUMENTS...: a measurement of chaski.
keep() {
    name=$1
    shift
    store "$name" "$version" "chaski $*" "$chaski" "$@" -q -o json
}

# The driver's own cache would make every start a warm one.
cold() {
    (
        export XDG_CACHE_HOME="$work/cold" __GL_SHADER_DISK_CACHE=0 MESA_SHADER_CACHE_DISABLE=true
        keep "$@"
    )
}

# A program of llama.cpp with its libraries beside it.
llama_program() {
    folder=$1 tool=$2
    shift 2
    LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$folder/$tool" "$@"
}

# llama-batched-bench prints other lines, too.
llama_batched() {
    llama_program "$llama" llama-batched-bench "$@" >batched.tmp || return
    printf '[%s]' "$(grep '^{' batched.tmp | paste -sd, -)"
    rm batched.tmp
}

without_gpu() {
    (
        export CUDA_VISIBLE_DEVICES= GGML_VK_VISIBLE_DEVICES=
        llama_program "$llama_cpu" "$@"
    )
}

# peer NAME ARGUMENTS...: the same by llama-bench, if it is there.
peer() {
    [ "$llama" ] || return 0
    name=$1
    shift
    store "$name" "${LLAMA_NAME:-llama.cpp}" "llama-bench -ngl 99 -fa 1 $*" \
        llama_program "$llama" llama-bench -ngl 99 -fa 1 "$@" -o json
}

of_peaks() {
    keep peaks devices --measure
    keep formats devices --formats
}

# How fast each format is multiplied in a model, in the shapes of a large model: enough layers that no cache holds them.
of_formats() {
    deep=${DEEP:-llama3.1-8b} layers=8
    for mix in ${FORMATS-f16 bf16 q8_0 q6_k q5_k_s q5_1 q5_0 q4_k_s q4_1 q4_0 iq4_nl iq4_xs mxfp4 nvfp4 q3_k_s iq3_s iq3_xxs \
        q2_k_s iq2_s iq2_xs iq2_xxs q2_0 tq2_0 tq1_0 iq1_m iq1_s q1_0}; do
        late && break
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
}

# The parts below are of the model NAME in NAME.gguf.
of_models() {
    rm -rf "$work/cold"
    cold "start-cold.$1" bench -m "$1.gguf" -p 0 -n 1 -r 1 --no-warmup
    cold "start-warm.$1" bench -m "$1.gguf" -p 0 -n 1 -r 1 --no-warmup
    of_large "$1"
}

of_families() {
    of_large "$1"
}

of_large() {
    keep "speed.$1" bench -m "$1.gguf" -p "$p" -n "$t" -d "0,$d" -r "$n" --profile
    peer "llama-speed.$1" -m "$1.gguf" -p "$p" -n "$t" -d "0,$d" -r "$n"
}

of_variants() {
    for set in base sg coop; do
        keep "features-$set.$1" bench -m "$1.gguf" -p "$p" -n "$t" -r "$n" --features $set
        [ $set = coop ] || keep "bytes-$set.$1" bench -m "$1.gguf" -p "$p" -n "$t" -r "$n" --features $set --inputs i8
    done
    keep "plain.$1" bench -m "$1.gguf" -p "$p" -n "$t" -r "$n"
    keep "checked.$1" bench -m "$1.gguf" -p "$p" -n "$t" -r "$n" --checked
    keep "ablate-bind-groups.$1" bench -m "$1.gguf" -p 0 -n "$t" -r "$n" --ablate bind-groups
    keep "ablate-all.$1" bench -m "$1.gguf" -p 0 -n "$t" -r "$n" --ablate bind-groups,parameters
    for k in 1 2 4 8 16 32; do
        keep "interval-$k.$1" bench -m "$1.gguf" -p 0 -n "$t" -r "$n" --interval $k
    done
}

# Each number of sequences three times: neither program repeats by itself.
of_batches() {
    npl=$sequences,$sequences,$sequences
    keep "batches.$1" bench -m "$1.gguf" -npp "$prompt" -ntg "$answer" -npl "$npl"
    [ "$llama" ] || return 0
    # llama.cpp gives each sequence its share of the context, rounded up to 256 tokens.
    most=${sequences##*,}
    context=$((most * ((prompt + answer + 255) / 256) * 256))
    set -- "llama-batches.$1" -m "$1.gguf" -ngl 99 -fa 1 -c "$context" -npp "$prompt" -ntg "$answer" -npl "$npl"
    name=$1
    shift
    store "$name" "${LLAMA_NAME:-llama.cpp}" "llama-batched-bench $*" llama_batched "$@" --output-format jsonl
}

of_depths() {
    keep "depths.$1" bench -m "$1.gguf" -p "$p" -n "$t" -d "$depths" -r "$n"
    peer "llama-depths.$1" -m "$1.gguf" -p "$p" -n "$t" -d "$depths" -r "$n"
}

# The file was just written, so the system holds it in memory.
of_loading() {
    for i in 1 2 3; do
        keep "load-$i.$1" bench -m "$1.gguf" -p 0 -n 1 -r 1 --no-warmup
        peer "llama-load-$i.$1" -m "$1.gguf" -p 0 -n 1 -r 1 --no-warmup
    done
}

of_cpu() {
    set -- "$1" -m "$1.gguf" -p "$cpu_prompt" -n "$cpu_answer" -t "$threads" -r 2
    model_name=$1
    shift
    keep "cpu.$model_name" bench --device cpu "$@"
    [ "$llama_cpu" ] || return 0
    store "llama-cpu.$model_name" "${LLAMA_NAME:-llama.cpp}" "llama-bench -ngl 0 -fa 1 $*" \
        without_gpu llama-bench -ngl 0 -fa 1 "$@" -o json
}

of_browser() {
    [ "${WLLAMA:-}" ] || { echo "browser: WLLAMA names no folder"; exit 2; }
    store browser "$version" "node bench/against.js WLLAMA" node "$npm/bench/against.js" "$WLLAMA" --json
}

# The bench page, with the options of PAGE, whose last words may be files; the measurement is called PAGE_NAME.
of_page() {
    # shellcheck disable=SC2086
    store "page.${PAGE_NAME:-cpu}" "$version" "node bench/measure.js ${PAGE:-$page}" node "$npm/bench/measure.js" ${PAGE:-$page}
}

# has PART MODEL
has() {
    eval "case \" \$models_$1 \" in *\" $2 \"*) ;; *) return 1 ;; esac"
}

wanted=""
for part in $parts; do
    case $part in
    peaks | formats | browser | page) "of_$part" ;;
    *)
        for model in $(eval "echo \$models_$part"); do
            case " $wanted " in *" $model "*) ;; *) wanted="$wanted $model" ;; esac
        done
        ;;
    esac
done
for model in $wanted; do
    late && { echo "$model: SKIPPED, no time is left of LIMIT"; continue; }
    name=$(echo "$model" | tr : -) start=$(date +%s)
    file=$name
    "$chaski" synth --preset "${model%:*}" --mix "${model#*:}" --out "$file.gguf" -q
    echo "$file.gguf: $(($(date +%s) - start)) s"
    for part in $parts; do
        case $part in peaks | formats | browser | page) continue ;; esac
        if has "$part" "$model"; then "of_$part" "$file"; fi
    done
    rm "$file.gguf"
done
