//! The options of llama.cpp's llama-cli and llama-completion, and their places here.

use Takes::{Nothing, One, Switch, Two};

/// An option of llama.cpp.
#[derive(Debug)]
pub(crate) struct Row {
    /// All its spellings.
    pub(crate) names: &'static [&'static str],
    pub(super) takes: Takes,
    pub(super) here: Here,
}

/// The words after an option.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    One,
    Two,
    /// A word such as `on` or `auto`, if one follows.
    Switch,
}

/// The meaning of an option here.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Here {
    /// This long option, with the same value.
    Option(&'static str),
    /// This argument, with the value appended.
    Joined(&'static str),
    /// This argument, in place of a flag.
    Argument(&'static str),
    /// For each word an argument; an empty one changes nothing.
    Words(&'static [(&'static str, &'static str)]),
    /// This long option with the words of each pair `FILE:SCALE`, separated by commas.
    Pairs(&'static str),
    /// No effect, for this reason.
    Ignored(&'static str),
    /// An error that tells the way to the same end.
    Refused(&'static str),
}

const fn own(names: &'static [&'static str], option: &'static str) -> Row {
    Row { names, takes: Takes::One, here: Here::Option(option) }
}

const fn joined(names: &'static [&'static str], argument: &'static str) -> Row {
    Row { names, takes: Takes::One, here: Here::Joined(argument) }
}

const fn flag(names: &'static [&'static str], argument: &'static str) -> Row {
    Row { names, takes: Takes::Nothing, here: Here::Argument(argument) }
}

const fn words(names: &'static [&'static str], words: &'static [(&'static str, &'static str)]) -> Row {
    Row { names, takes: Takes::One, here: Here::Words(words) }
}

const fn ignored(names: &'static [&'static str], takes: Takes, why: &'static str) -> Row {
    Row { names, takes, here: Here::Ignored(why) }
}

const fn refused(names: &'static [&'static str], takes: Takes, why: &'static str) -> Row {
    Row { names, takes, here: Here::Refused(why) }
}

const DOWNLOAD: &str = "name the model: `chaski run hf:ORG/REPO` fetches one of Hugging Face";
const PLACEMENT: &str = "`--device` selects the GPUs, and `--experts-on-cpu N` keeps experts in host memory";
const FILES: &str =
    "files are mapped for the CPU (`--no-mmap` reads them), and read piece by piece for a GPU";
const AFFINITY: &str = "threads are not bound to cores; `-t N` sets their number";
const DRAFT_DEVICE: &str = "the draft model runs where the model does";
const LOOKUP: &str = "`--draft-max N` without a draft model looks drafts up in the text";
const IMAGES: &str = "images and sounds are not supported yet";
const CACHE: &str =
    "the state of a prompt is not stored in files; in a chat, /save and /load keep the conversation";
const VECTORS: &str = "control vectors are not supported; `--lora FILE` applies a LoRA";
const LOG: &str = "notes go to stderr, more with `-v`, and RUST_LOG=debug adds the log";
const YARN: &str = "the file determines the parameters of YaRN: `--override-kv` replaces its keys";
const GROUPS: &str = "self-extension is not supported; `--rope-scale N` extends the context";

const BATCHES: &str = "all requests share the steps and the KV cache, whose prefixes serve later prompts";

/// All rows: first those with an effect.
pub(crate) static TABLE: &[Row] = &[
    // The model, and the device.
    own(&["-m", "--model"], "--model"),
    joined(&["-hf", "-hfr", "--hf-repo"], "--model=hf:"),
    own(&["-hff", "--hf-file"], "--hf-file"),
    own(&["-hft", "--hf-token"], "--hf-token"),
    joined(&["-mu", "--model-url"], "--model="),
    own(&["-c", "--ctx-size"], "--ctx-size"),
    own(&["-t", "--threads"], "--threads"),
    own(&["-tb", "--threads-batch"], "--threads-batch"),
    own(&["-ub", "--ubatch-size"], "--ubatch-size"),
    own(&["-ctk", "--cache-type-k"], "--cache-type-k"),
    own(&["-ctv", "--cache-type-v"], "--cache-type-v"),
    own(&["-dev", "--device"], "--device"),
    flag(&["-nr", "--no-repack"], "--no-repack"),
    own(&["-sm", "--split-mode"], "--split"),
    own(&["-ts", "--tensor-split"], "--tensor-split"),
    own(&["-ngl", "--gpu-layers", "--n-gpu-layers"], "--gpu-layers"),
    own(&["-ncmoe", "--n-cpu-moe"], "--experts-on-cpu"),
    flag(&["-cmoe", "--cpu-moe"], "--experts-on-cpu=65535"),
    own(&["--lora"], "--lora"),
    Row { names: &["--lora-scaled"], takes: One, here: Here::Pairs("--lora-scaled") },
    own(&["--override-kv"], "--override-kv"),
    own(&["--rope-scaling"], "--rope-scaling"),
    own(&["--rope-scale"], "--rope-scale"),
    own(&["--rope-freq-base"], "--rope-freq-base"),
    own(&["--rope-freq-scale"], "--rope-freq-scale"),
    own(&["--yarn-orig-ctx"], "--yarn-orig-ctx"),
    // Drafts.
    own(&["-md", "--model-draft", "--spec-draft-model"], "--model-draft"),
    joined(&["-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf"], "--model-draft=hf:"),
    own(&["--draft", "--draft-n", "--draft-max", "--spec-draft-n-max"], "--draft-max"),
    own(&["--draft-min", "--draft-n-min", "--spec-draft-n-min"], "--draft-min"),
    own(&["--draft-p-min", "--spec-draft-p-min"], "--draft-p-min"),
    // The prompt.
    own(&["-p", "--prompt"], "--prompt"),
    own(&["-f", "--file", "-bf", "--binary-file"], "--file"),
    own(&["-sys", "--system-prompt"], "--system"),
    own(&["-sysf", "--system-prompt-file"], "--system-file"),
    flag(&["-e", "--escape"], "--escape"),
    flag(&["--no-escape"], "--escape=false"),
    flag(&["-cnv", "--conversation"], "--chat"),
    flag(&["-no-cnv", "--no-conversation"], "--raw"),
    flag(&["-st", "--single-turn"], "--single-turn"),
    flag(&["-i", "--interactive", "-if", "--interactive-first"], "--interactive"),
    own(&["--in-prefix"], "--in-prefix"),
    own(&["--in-suffix"], "--in-suffix"),
    flag(&["--in-prefix-bos"], "--in-prefix-bos"),
    own(&["--chat-template"], "--chat-template"),
    own(&["--chat-template-file"], "--chat-template-file"),
    own(&["--chat-template-kwargs"], "--chat-template-kwargs"),
    own(&["--reasoning-effort"], "--reasoning-effort"),
    words(&["-rea", "--reasoning"], &[("on", "--no-think=false"), ("off", "--no-think"), ("auto", "")]),
    own(&["--reasoning-budget"], "--reasoning-budget"),
    // The answer.
    own(&["-n", "--predict", "--n-predict"], "--n-predict"),
    own(&["-r", "--reverse-prompt"], "--stop"),
    flag(&["-sp", "--special"], "--special"),
    flag(&["--context-shift"], "--context-shift"),
    flag(&["--no-context-shift"], "--context-shift=false"),
    own(&["--keep"], "--keep"),
    own(&["--grammar"], "--grammar"),
    own(&["--grammar-file"], "--grammar-file"),
    own(&["-j", "--json-schema"], "--json-schema"),
    own(&["-jf", "--json-schema-file"], "--json-schema-file"),
    // Sampling.
    own(&["-s", "--seed"], "--seed"),
    own(&["--samplers"], "--samplers"),
    own(&["--sampler-seq", "--sampling-seq"], "--sampling-seq"),
    flag(&["--ignore-eos"], "--ignore-eos"),
    own(&["--temp", "--temperature"], "--temp"),
    own(&["--top-k"], "--top-k"),
    own(&["--top-p"], "--top-p"),
    own(&["--min-p"], "--min-p"),
    own(&["--top-nsigma", "--top-n-sigma"], "--top-n-sigma"),
    own(&["--xtc-probability"], "--xtc-probability"),
    own(&["--xtc-threshold"], "--xtc-threshold"),
    own(&["--typical", "--typical-p"], "--typical-p"),
    own(&["--repeat-last-n"], "--repeat-last-n"),
    own(&["--repeat-penalty"], "--repeat-penalty"),
    own(&["--presence-penalty"], "--presence-penalty"),
    own(&["--frequency-penalty"], "--frequency-penalty"),
    own(&["--dry-multiplier"], "--dry-multiplier"),
    own(&["--dry-base"], "--dry-base"),
    own(&["--dry-allowed-length"], "--dry-allowed-length"),
    own(&["--dry-penalty-last-n"], "--dry-penalty-last-n"),
    own(&["--dry-sequence-breaker"], "--dry-sequence-breaker"),
    own(&["--adaptive-target"], "--adaptive-target"),
    own(&["--adaptive-decay"], "--adaptive-decay"),
    own(&["--dynatemp-range"], "--dynatemp-range"),
    own(&["--dynatemp-exp"], "--dynatemp-exp"),
    own(&["--mirostat"], "--mirostat"),
    own(&["--mirostat-lr"], "--mirostat-eta"),
    own(&["--mirostat-ent"], "--mirostat-tau"),
    own(&["-l", "--logit-bias"], "--logit-bias"),
    // Of llama-server.
    own(&["-np", "--parallel"], "--parallel"),
    flag(&["-embd", "--embedding", "--embeddings"], "--embeddings"),
    flag(&["--spm-infill"], "--spm-infill"),
    flag(&["--lora-init-without-apply"], "--lora-init-without-apply"),
    own(&["-a", "--alias"], "--alias"),
    own(&["--tags"], "--tags"),
    flag(&["--ui", "--webui"], "--ui"),
    flag(&["--no-ui", "--no-webui"], "--no-ui"),
    own(&["--sleep-idle-seconds"], "--keep-alive"),
    own(&["--ssl-key-file"], "--tls-key"),
    own(&["--ssl-cert-file"], "--tls-cert"),
    own(&["--pooling"], "--pooling"),
    // Output.
    flag(&["-v", "--verbose", "--log-verbose"], "--verbose"),
    Row {
        names: &["-co", "--color"],
        takes: Switch,
        here: Here::Words(&[
            ("", "--color=always"),
            ("on", "--color=always"),
            ("off", "--color=never"),
            ("auto", "--color=auto"),
        ]),
    },
    // Of llama-bench and llama-batched-bench.
    own(&["-npp"], "--n-prompt"),
    own(&["-ntg"], "--n-gen"),
    own(&["-npl"], "--n-parallel"),
    own(&["-pg"], "--prompt-gen"),
    own(&["-oe"], "--output-err"),
    Row {
        names: &["--progress"],
        takes: Switch,
        // llama-bench's option has no word.
        here: Here::Words(&[
            ("", "--progress"),
            ("auto", "--progress=auto"),
            ("text", "--progress=text"),
            ("json", "--progress=json"),
            ("none", "--progress=none"),
        ]),
    },
    // No effect.
    ignored(
        &["-ngl", "--gpu-layers", "--n-gpu-layers"],
        One,
        "all layers run on the device selected by `--device`",
    ),
    ignored(&["-dev", "--device"], One, "this command runs on the CPU"),
    ignored(&["-mg", "--main-gpu"], One, "`--device` selects the GPU"),
    ignored(&["-fa", "--flash-attn"], Switch, "flash attention is always on"),
    ignored(&["-b", "--batch-size"], One, "`-ub N` sets the tokens of a prompt that run at once"),
    ignored(&["-np", "--parallel"], One, "the command runs one sequence"),
    ignored(&["-fit", "--fit"], Switch, "the model is placed as `--device` says"),
    ignored(&["-fitt", "--fit-target"], One, "the model is placed as `--device` says"),
    ignored(&["-fitc", "--fit-ctx"], One, "`-c N` sets the context"),
    ignored(&["-mmp", "--mmap"], Switch, FILES),
    ignored(&["--mlock"], Nothing, FILES),
    ignored(&["-dio", "--direct-io", "-ndio", "--no-direct-io"], Switch, FILES),
    ignored(&["-lm", "--load-mode"], One, FILES),
    ignored(&["-C", "--cpu-mask", "-Cr", "--cpu-range"], One, AFFINITY),
    ignored(&["-Cb", "--cpu-mask-batch", "-Crb", "--cpu-range-batch"], One, AFFINITY),
    ignored(&["--cpu-strict", "--cpu-strict-batch", "--prio", "--prio-batch"], One, AFFINITY),
    ignored(&["--poll", "--poll-batch", "--numa"], One, AFFINITY),
    ignored(&["-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"], Switch, "the KV cache is on the device"),
    ignored(&["--swa-full"], Nothing, "sliding windows keep the tokens that they need"),
    ignored(&["--repack", "--no-host"], Switch, "weights have one layout on each device"),
    ignored(&["-nopo", "--op-offload", "--no-op-offload"], Switch, "all operations run on the device"),
    ignored(&["-dt", "--defrag-thold"], One, "the KV cache has pages and needs no defragmentation"),
    ignored(
        &["-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"],
        One,
        "checkpoints are made as memory allows",
    ),
    ignored(&["-cram", "--cache-ram"], One, "prompts are kept in the KV cache itself"),
    ignored(&["-embd", "--embeddings"], Switch, "tests compute logits; `chaski embed` computes embeddings"),
    ignored(
        &["--check-tensors"],
        Nothing,
        "weights are not searched for NaN; the shapes and types of tensors always are",
    ),
    ignored(&["--warmup", "--no-warmup"], Nothing, "there is no warm-up before an answer"),
    ignored(&["-bs", "--backend-sampling"], Nothing, "tokens are sampled on the device where it can"),
    ignored(&["--perf", "--no-perf"], Nothing, "`-v` prints times and speeds"),
    ignored(&["--show-timings", "--no-show-timings"], Nothing, "`-v` prints times and speeds"),
    ignored(&["-ptc", "--print-token-count"], One, "`-v` prints the numbers of tokens"),
    ignored(&["--verbose-prompt"], Nothing, "`chaski tokenize MODEL TEXT` prints the tokens of a text"),
    ignored(&["--display-prompt", "--no-display-prompt"], Nothing, "the prompt is not repeated"),
    ignored(&["--simple-io"], Nothing, "answers are plain text unless stdout is a terminal"),
    ignored(&["-mli", "--multiline-input"], Nothing, "in a chat, \"\"\" begins and ends several lines"),
    ignored(&["--jinja", "--no-jinja"], Nothing, "chat templates are always interpreted as Jinja"),
    ignored(&["--reasoning-format"], One, "`--json` and `--jsonl` separate the reasoning from the answer"),
    ignored(&["--reasoning-preserve", "--no-reasoning-preserve"], Nothing, "the chat template decides"),
    ignored(
        &["--skip-chat-parsing", "--no-skip-chat-parsing"],
        Nothing,
        "text is printed as the model writes it",
    ),
    ignored(&["--log-disable", "--log-prefix", "--no-log-prefix"], Nothing, LOG),
    ignored(&["--log-timestamps", "--no-log-timestamps"], Nothing, LOG),
    ignored(&["--log-colors"], Switch, "`--color WHEN` decides"),
    ignored(&["-lv", "--verbosity", "--log-verbosity"], One, LOG),
    ignored(
        &[
            "-ctkd",
            "--cache-type-k-draft",
            "--spec-draft-type-k",
            "-ctvd",
            "--cache-type-v-draft",
            "--spec-draft-type-v",
        ],
        One,
        "the draft model has the KV cache type of the model",
    ),
    ignored(
        &[
            "-td",
            "--threads-draft",
            "--spec-draft-threads",
            "-tbd",
            "--threads-batch-draft",
            "--spec-draft-threads-batch",
        ],
        One,
        DRAFT_DEVICE,
    ),
    ignored(
        &[
            "-Cd",
            "--cpu-mask-draft",
            "--spec-draft-cpu-mask",
            "-Crd",
            "--cpu-range-draft",
            "--spec-draft-cpu-range",
        ],
        One,
        DRAFT_DEVICE,
    ),
    ignored(
        &[
            "-Cbd",
            "--cpu-mask-batch-draft",
            "--spec-draft-cpu-mask-batch",
            "--cpu-strict-draft",
            "--spec-draft-cpu-strict",
        ],
        One,
        DRAFT_DEVICE,
    ),
    ignored(
        &["--cpu-strict-batch-draft", "--spec-draft-cpu-strict-batch", "--prio-draft", "--spec-draft-prio"],
        One,
        DRAFT_DEVICE,
    ),
    ignored(
        &["--prio-batch-draft", "--spec-draft-prio-batch", "--poll-draft", "--spec-draft-poll"],
        One,
        DRAFT_DEVICE,
    ),
    ignored(&["--poll-batch-draft", "--spec-draft-poll-batch"], One, DRAFT_DEVICE),
    ignored(&["-devd", "--device-draft", "--spec-draft-device"], One, DRAFT_DEVICE),
    ignored(&["-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft", "--spec-draft-ngl"], One, DRAFT_DEVICE),
    ignored(&["-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe"], Nothing, DRAFT_DEVICE),
    ignored(
        &["-ncmoed", "--n-cpu-moe-draft", "--spec-draft-n-cpu-moe", "--spec-draft-ncmoe"],
        One,
        DRAFT_DEVICE,
    ),
    ignored(&["--draft-p-split", "--spec-draft-p-split"], One, "a draft is a single sequence of tokens"),
    ignored(&["--spec-draft-backend-sampling", "--no-spec-draft-backend-sampling"], Nothing, DRAFT_DEVICE),
    ignored(&["-cb", "--cont-batching", "-nocb", "--no-cont-batching"], Nothing, BATCHES),
    ignored(&["-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified"], Nothing, BATCHES),
    ignored(&["--cache-idle-slots", "--no-cache-idle-slots"], Nothing, BATCHES),
    ignored(&["-sps", "--slot-prompt-similarity", "--cache-reuse"], One, BATCHES),
    ignored(&["--cache-prompt", "--no-cache-prompt"], Nothing, "prompts are always cached"),
    ignored(&["--threads-http"], One, "requests need few threads besides those of the model"),
    ignored(&["--props"], Nothing, "/props only tells"),
    ignored(
        &["--reranking", "--rerank"],
        Nothing,
        "/rerank is there for every model whose file says that it ranks",
    ),
    // Refused.
    refused(&["--media-path"], One, IMAGES),
    refused(
        &["-dr", "--docker-repo"],
        One,
        "models of Docker are not fetched; `hf:ORG/REPO` names one of Hugging Face",
    ),
    refused(&["--gpt-oss-20b-default", "--gpt-oss-120b-default"], Nothing, DOWNLOAD),
    refused(&["--vision-gemma-4b-default", "--vision-gemma-12b-default"], Nothing, DOWNLOAD),
    refused(&["-cl", "--cache-list"], Nothing, "`chaski list` lists the models that are here"),
    refused(&["--completion-bash"], Nothing, "`chaski completions bash` prints the script"),
    refused(&["--list-devices"], Nothing, "`chaski devices` lists the GPUs"),
    refused(&["--server-base"], One, "there is no server to connect to yet: give the model's file"),
    refused(
        &["--rpc"],
        One,
        "servers of llama.cpp are not supported; `chaski worker` computes experts for another machine, and `--device \
         A,B` uses several GPUs of this one",
    ),
    refused(&["-ot", "--override-tensor"], One, PLACEMENT),
    refused(&["-otd", "--override-tensor-draft", "--spec-draft-override-tensor"], One, PLACEMENT),
    refused(&["--control-vector", "--control-vector-scaled"], One, VECTORS),
    refused(&["--control-vector-layer-range"], Two, VECTORS),
    refused(&["--yarn-ext-factor", "--yarn-attn-factor", "--yarn-beta-slow", "--yarn-beta-fast"], One, YARN),
    refused(&["-gan", "--grp-attn-n", "-gaw", "--grp-attn-w"], One, GROUPS),
    refused(&["--prompt-cache"], One, CACHE),
    refused(&["--prompt-cache-all", "--prompt-cache-ro"], Nothing, CACHE),
    refused(&["-mm", "--mmproj", "-mmu", "--mmproj-url", "-mmdev", "--mmproj-device"], One, IMAGES),
    refused(&["--mmproj-auto", "--mmproj-offload"], Nothing, IMAGES),
    ignored(&["--no-mmproj", "--no-mmproj-auto", "--no-mmproj-offload"], Nothing, IMAGES),
    refused(&["--image", "--audio", "--video", "--image-min-tokens", "--image-max-tokens"], One, IMAGES),
    refused(
        &["-o", "--output", "--output-file"],
        One,
        "the answer goes to stdout: `> FILE` writes it to a file",
    ),
    refused(&["--log-file"], One, "notes go to stderr: `2> FILE` writes them to a file"),
    refused(&["--log-prompts-dir"], One, "prompts are not logged"),
    refused(
        &["--reasoning-budget-message"],
        One,
        "behind `--reasoning-budget` comes the model's own marker, without a message",
    ),
    refused(
        &["--spec-type"],
        One,
        "`--model-draft FILE` drafts with a model; `--draft-max N` alone by lookup",
    ),
    refused(&["--spec-default"], Nothing, LOOKUP),
    refused(&["--spec-ngram-mod-n-min", "--spec-ngram-mod-n-max", "--spec-ngram-mod-n-match"], One, LOOKUP),
    refused(
        &["--spec-ngram-simple-size-n", "--spec-ngram-simple-size-m", "--spec-ngram-simple-min-hits"],
        One,
        LOOKUP,
    ),
    refused(
        &["--spec-ngram-map-k-size-n", "--spec-ngram-map-k-size-m", "--spec-ngram-map-k-min-hits"],
        One,
        LOOKUP,
    ),
    refused(
        &["--spec-ngram-map-k4v-size-n", "--spec-ngram-map-k4v-size-m", "--spec-ngram-map-k4v-min-hits"],
        One,
        LOOKUP,
    ),
];
