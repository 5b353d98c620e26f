// Types of the package chaski. What answers are made of can be used where the package `openai` has its own.

declare global {
  // As TypeScript's library has it from `esnext.disposable` on; without it `close` is there.
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

/** Stable identifier of an error, for programs. */
export type ErrorCode =
  | "webgpu_unavailable"
  | "wasm_failed"
  | "worker_failed"
  | "out_of_memory"
  | "context_overflow"
  | "leader_closed"
  | "unsupported_arch"
  | "unsupported_quant"
  | "unsupported"
  | "bad_file"
  | "bad_request"
  | "no_template"
  | "template"
  | "network"
  | "cors"
  | "not_found"
  | "forbidden"
  | "download_failed"
  | "no_ranges"
  | "integrity"
  | "quota_exceeded"
  | "storage_unavailable"
  | "not_stored"
  | "in_use"
  | "read_failed"
  | "device_lost"
  | "driver"
  | "aborted"
  | "closed"
  | "internal";

/** The only error that this package throws. */
export class EngineError extends Error {
  constructor(code: ErrorCode, message: string, hint?: string, detail?: unknown);
  readonly name: "EngineError";
  readonly code: ErrorCode;
  /** A hint for the user; may be empty. */
  readonly hint: string;
  /** Numbers and names that belong to it, by code. */
  readonly detail: unknown;
}

/**
 * `owner/repo`, `hf:owner/repo:quant`, `hf:owner/repo/path/file.gguf`, an address, or files of the user's own. A repository without GGUF files, an
 * address that ends in `/`, and a list of files with `config.json` or `mlc-chat-config.json` are folders of Hugging Face or of MLC.
 */
export type ModelSource = string | URL | Blob | Blob[] | FileList;

/** How far loading is. */
export interface Progress {
  /** `wait`: another tab or engine has the file. */
  stage: "resolve" | "wait" | "download" | "verify" | "compile" | "upload";
  /** Bytes done; kernels for `compile`. */
  loaded: number;
  /** Units in all, if that is known. */
  total: number | null;
  /** The file. */
  file: string | null;
  /** The file was stored already. */
  fromCache: boolean;
  bytesPerSecond: number | null;
  etaSeconds: number | null;
}

/** Where a model comes from and how it is reached. */
export interface SourceOptions {
  /** Cancels the call. */
  signal?: AbortSignal;
  /** A token for private and gated repositories; it is sent to Hugging Face only. */
  hfToken?: string;
  /** Another hub than https://huggingface.co. */
  hub?: string;
  /** Headers for requests to the model's address. */
  headers?: Record<string, string>;
  /** Expected sha256 of files, by file name. Files are checked when they are stored; mismatches are rejected. */
  sha256?: Record<string, string>;
  /**
   * `opfs` stores files in the browser; `none` reads them from the server piece by piece. By default they are stored where
   * the browser lets the page, as it may not in a private window.
   */
  cache?: "opfs" | "none";
  /** Take stored files only. */
  offline?: boolean;
  /** The first pause before a lost connection is tried again, in milliseconds; 500 by default, doubled each time. */
  retryMs?: number;
  /** Tokens that a sequence may have; 0 or none takes the model's own, at most 4096. */
  contextLength?: number;
  /** Requests that run at once, in the same batches; each has a context of its own in the KV cache. 1 by default: one after the other. */
  sequences?: number;
  /** Type of the KV cache, such as `f16`, `q8_0` or `q8_0/q4_0` (keys/values); by default f32 while it is small, else f16. */
  kvType?: string;
  /**
   * How products with quantised weights take their inputs. `i8` rounds them to 8 bits: prompts on a GPU take half the
   * instructions, and answers may differ. All others are as exact as `f32`.
   */
  inputs?: "auto" | "f32" | "i16" | "i8";
  /** Bytes that the model may take of the device's memory, or on the CPU of the module's; more is an error before anything is loaded. */
  memoryBudget?: number;
  /** `true` (default) runs in a dedicated worker, `false` on this thread, or in a worker that imports `chaski/worker`. */
  worker?: boolean | Worker;
  /** Where `worker.js` is, if not beside the package. */
  workerUrl?: string | URL;
  /** Where `chaski_web_bg.wasm` is, if not beside the package. */
  wasmUrl?: string | URL;
  /**
   * Threads of the CPU, at most as many as there are; by default all, and no more than 8. A page has more than one if it is isolated
   * (`crossOriginIsolated`, by the headers COOP and COEP) and the engine runs in its own worker.
   */
  threads?: number;
  /** Where `chaski_threads_bg.wasm` is, if not beside the package; with `wasmUrl` alone there is one thread. */
  threadsUrl?: string | URL;
  /** Where `chaski_folder_bg.wasm` is, if not beside the package; models that are folders load it. */
  folderUrl?: string | URL;
  /** Where `chaski_grammar_bg.wasm` is, if not beside the package; requests with a grammar, schema, forced or strict tools load it. */
  grammarUrl?: string | URL;
  /**
   * WebGPU (`gpu`), the CPU by WebAssembly (`cpu`), or WebGPU unless there is no GPU behind it (`auto`, the default):
   * the software adapters of browsers are slower than WebAssembly.
   */
  device?: "auto" | "gpu" | "cpu";
  /** `false` leaves the GPU's subgroups unused. */
  subgroups?: boolean;
}

export interface CreateOptions extends SourceOptions {
  model: ModelSource;
  /** LoRA files, which change what the model says: each with the scale of requests that do not say theirs (1 by default). */
  loras?: Array<{ model: ModelSource; scale?: number }>;
  /** A small model with the same vocabulary, which drafts what the model then verifies: answers are the same, and come sooner where drafts are good. */
  draft?: ModelSource;
  /**
   * One engine for all tabs of the origin that create it with the same name (by `true`: the model's address) and options: one
   * tab has it, the others' requests run there, as many at once as it has `sequences`. When that tab is closed another one loads the model
   * and goes on: requests begin again, but answers that have begun fail with `leader_closed`.
   */
  shared?: boolean | string;
  /** Exceptions of the callback are reported like those of event listeners; loading continues. */
  onProgress?: (progress: Progress) => void;
  /** Tokens of a prompt that run at once at most; 512 by default. Smaller takes less memory and fewer kernels. */
  chunk?: number;
  /**
   * A few kernels are compared with their references first, by default once for each device, browser and version of the
   * package; `true` does so again, `false` trusts the driver unseen.
   */
  selfTest?: boolean;
}

export interface Memory {
  /** Bytes in all. */
  total: number;
  /** Bytes by what they hold. */
  items: Record<string, number>;
}

export interface ModelFacts {
  description: string;
  architecture: string;
  /** Bytes of all tensors. */
  bytes: number;
  parameters: number;
  /** Tokens that the model was trained for. */
  trainedContext: number;
  vocabulary: number;
  chatTemplate: boolean;
}

export interface Caps {
  /** Smallest and largest size; null if they are not used. */
  subgroups: [number, number] | null;
  f16: boolean;
  intDot: boolean;
  maxBindingBytes: number;
  maxThreads: number;
  maxWorkgroupBytes: number;
  software: boolean;
  /** Kernels do without barriers: the device is a CPU, where barriers are expensive. */
  alone: boolean;
}

export interface EngineInfo {
  model: ModelFacts & { file: string };
  contextLength: number;
  /** Values of an embedding. */
  embedding: number;
  memory: Memory;
  /** `distrust` says what the self-test found wrong; `tested` whether it ran now. */
  device: {
    /** WebGPU, or the CPU by WebAssembly. */
    kind: "gpu" | "cpu";
    name: string;
    driver: string;
    /** Why it is the CPU although nobody asked for it. */
    fallback: string | null;
    distrust: string | null;
    tested: boolean;
    /** Threads of the CPU; `null` on a GPU. */
    threads: number | null;
    caps: Caps | null;
  };
  /** Remarks on the model and where it runs: weights that are converted, threads that did not start. */
  notes: string[];
  loading: { compileMs: number; uploadMs: number; totalMs: number } | null;
  dispatchesPerToken: number | null;
}

/** Counts and speeds of an answer. */
export interface Stats {
  promptTokens: number;
  /** Of these, tokens that were in the cache. */
  cachedTokens: number;
  tokens: number;
  timeToFirstTokenMs: number;
  promptTokensPerSecond: number;
  tokensPerSecond: number;
  submissions: number;
  /** Tokens that were drafted, and those of them that the model would have said, too. */
  drafted: number;
  accepted: number;
  /** Why the CPU chose the tokens, which takes a readback for each; null if the GPU did. */
  onCpu: string | null;
  /** Devices that were lost meanwhile; the answer went on with others. */
  deviceLosses: number;
  /** The oldest messages of the conversation that the context had no room for; see `context_drop`. */
  droppedMessages: number;
}

export interface Inspection extends ModelFacts {
  memory: Memory;
  webgpu: boolean;
  /** The device that the memory is estimated for. */
  device: "gpu" | "cpu";
  /** Bytes of all files. */
  fileBytes: number;
  /** Bytes that are not stored yet. */
  downloadBytes: number;
  fits: boolean;
  /** Why it does not fit. */
  reasons: string[];
}

export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface ChatMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool" | (string & {});
  /** Parts of other types than `text`, such as images, are refused (`unsupported`). */
  content?: string | Array<{ type: string; text?: string }> | null;
  name?: string;
  tool_calls?: Array<ToolCall | { id: string; type: string }>;
  tool_call_id?: string;
  reasoning_content?: string;
}

export interface Tool {
  type: "function";
  /** With `strict`, arguments conform to `parameters`, whether the call is forced or the model's own choice. */
  function: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean | null };
}

/** The scale of a LoRA; `id` is its place in `loras` of the engine. */
export interface LoraScale {
  id: number;
  scale: number;
}

export interface SamplingOptions {
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number | null;
  min_p?: number | null;
  typical_p?: number | null;
  repeat_penalty?: number | null;
  repeat_last_n?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  seed?: number | null;
  max_tokens?: number | null;
  stop?: string | string[] | null;
  logit_bias?: Record<string, number> | null;
  ignore_eos?: boolean | null;
  /** When the context is full, forget its older half but for `n_keep` tokens at the beginning, and go on. */
  context_shift?: boolean | null;
  /**
   * Leave out the oldest turns of a conversation that has no room in the context, but never a system message at its start;
   * `stats().droppedMessages` counts their messages. If this is false, such a conversation is refused
   * (`context_overflow`), as is a message that is longer than the context. Default: true.
   */
  context_drop?: boolean | null;
  n_keep?: number | null;
  /** Scales of LoRAs for this request; those that it does not list are off. */
  lora?: LoraScale[] | null;
  /** Tokens for each readback from the GPU, while the next ones are computed; by default as many as suit the device. */
  interval?: number | null;
  /** A grammar that the answer must follow, in llama.cpp's notation or Lark's. */
  grammar?: string | null;
  /** As in {@link CallOptions}. */
  signal?: AbortSignal;
  /** These change nothing, and may be sent. */
  model?: string;
  user?: string;
  metadata?: unknown;
  store?: boolean | null;
  service_tier?: string | null;
  safety_identifier?: string;
  prompt_cache_key?: string;
  prompt_cache_retention?: string | null;
  prediction?: unknown;
  verbosity?: string | null;
  n?: 1 | null;
  stream_options?: { include_usage?: boolean } | null;
}

export interface TemplateRequest {
  tools?: Tool[] | null;
  /** `required` and a function force one call; `parallel_tool_calls: true` several. */
  tool_choice?: "auto" | "none" | "required" | { type: "function"; function: { name: string } } | null;
  parallel_tool_calls?: boolean | null;
  /** Lets the model reason first, if its template supports it. */
  enable_thinking?: boolean | null;
  /**
   * Reads the names of special tokens in messages and tools as these tokens, so that a message can end its turn and begin
   * another. Otherwise they are text. Default: false.
   */
  parse_special?: boolean | null;
  /** `none` turns thinking off; other words are a variable of the chat template. */
  reasoning_effort?: string | null;
  /** Further variables of the chat template. */
  chat_template_kwargs?: Record<string, unknown> | null;
  /** Begins an answer. By default it does, unless the last message is the assistant's: the answer then continues its text. */
  add_generation_prompt?: boolean | null;
  /** Its opposite. */
  continue_final_message?: boolean | null;
}

export interface ChatRequest extends SamplingOptions, TemplateRequest {
  messages: ChatMessage[];
  stream?: boolean | null;
  max_completion_tokens?: number | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  /** Streams tell how far the prompt is (`prompt_progress`), in chunks without a choice. */
  return_progress?: boolean | null;
  /** Answers conform to the schema, `strict` or not. */
  response_format?:
    | { type: "text" }
    | { type: "json_object" }
    | { type: "json_schema"; json_schema: { name?: string; schema?: Record<string, unknown>; strict?: boolean | null } }
    | null;
}

export interface TextRequest extends SamplingOptions {
  /** A text, or its tokens. */
  prompt: string | number[];
  stream?: boolean | null;
  /** The answer begins with the prompt. */
  echo?: boolean | null;
  logprobs?: number | null;
}

export type FinishReason = "stop" | "length" | "tool_calls";

export interface TopLogprob {
  token: string;
  id: number;
  /** -9999 for a probability of 0. */
  logprob: number;
  bytes: number[];
}

export interface TokenLogprob extends TopLogprob {
  top_logprobs: TopLogprob[];
}

export interface ChatLogprobs {
  content: TokenLogprob[];
  refusal: null;
}

/** OpenAI's lists, and llama-server's entries. */
export interface TextLogprobs {
  content: TokenLogprob[];
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Array<Record<string, number>>;
  /** Where each token begins, in characters of the answer. */
  text_offset: number[];
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

export interface Timings {
  prompt_n: number;
  prompt_ms: number;
  prompt_per_second: number;
  /** Tokens that were drafted, and of these accepted, if any were. */
  draft_n?: number;
  draft_n_accepted?: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_second: number;
}

export interface ChatChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: Array<{
    index: number;
    delta: {
      role?: "assistant";
      content?: string;
      reasoning_content?: string;
      /** A call comes whole, when it is known to be one. */
      tool_calls?: Array<{ index: number; id?: string; type?: "function"; function: { name?: string; arguments: string } }>;
    };
    finish_reason: FinishReason | null;
    logprobs: ChatLogprobs | null;
  }>;
  usage?: Usage;
  timings?: Timings;
  /** Tokens of the prompt, and those that were read so far; see `return_progress`. */
  prompt_progress?: { total: number; processed: number };
}

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: Array<{
    index: number;
    message: { role: "assistant"; content: string | null; refusal: null; reasoning_content?: string; tool_calls?: ToolCall[] };
    finish_reason: FinishReason;
    logprobs: ChatLogprobs | null;
  }>;
  usage: Usage;
  timings: Timings;
}

interface TextAnswer<Finish> {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: Array<{ index: number; text: string; finish_reason: Finish; logprobs: TextLogprobs | null }>;
  usage?: Usage;
  timings?: Timings;
}

export type TextCompletion = TextAnswer<"stop" | "length">;
export type TextChunk = TextAnswer<"stop" | "length" | null>;

export interface EmbeddingRequest {
  input: string | string[];
  /** Floats, or their bytes as base64. */
  encoding_format?: "float" | "base64" | null;
  /** How tokens are pooled, if the file does not say; `none` gives a vector for each token, in a list if there is but one. */
  pooling?: "none" | "mean" | "cls" | "last" | null;
  /** Scales of LoRAs; those that it does not list are off. */
  lora?: LoraScale[] | null;
  signal?: AbortSignal;
  /** These change nothing, and may be sent. */
  model?: string;
  user?: string;
}

/** `E` is `number[]`, or `string` in base64; with pooling `none` a list of them. */
export interface Embeddings<E = number[]> {
  object: "list";
  model: string;
  data: Array<{ object: "embedding"; index: number; embedding: E }>;
  usage: { prompt_tokens: number; total_tokens: number };
}

export interface RerankOptions {
  /** So many documents at most. */
  top_n?: number | null;
  /** The results have the documents, too. */
  return_documents?: boolean | null;
  /** Scales of LoRAs; those that it does not list are off. */
  lora?: LoraScale[] | null;
  signal?: AbortSignal;
}

export interface RerankRequest extends RerankOptions {
  query: string;
  /** Texts to rank; `texts` is another name. */
  documents?: Array<string | { text: string }>;
  texts?: Array<string | { text: string }>;
  /** These change nothing, and may be sent. */
  model?: string;
  user?: string;
}

export interface Ranked {
  /** Which of the documents. */
  index: number;
  /** The higher, the better it fits; for most models a probability. */
  relevance_score: number;
  document?: { text: string };
}

export interface Reranking {
  id: string;
  object: "list";
  model: string;
  /** The best first. */
  results: Ranked[];
  usage: { prompt_tokens: number; total_tokens: number };
  meta: { billed_units: { search_units: number }; tokens: { input_tokens: number } };
}

/** Can be iterated at once, or awaited first, and is read once. It begins then; leaving the loop ends the answer. */
export interface AnswerStream<T> extends AsyncIterable<T>, PromiseLike<AsyncIterable<T>> {}

export interface CallOptions {
  signal?: AbortSignal;
}

/** A loaded model. As many requests run at once as it has `sequences`; others wait. */
export class Engine {
  private constructor();
  static create(options: CreateOptions): Promise<Engine>;
  readonly chat: {
    readonly completions: {
      create(request: ChatRequest & { stream: true }, options?: CallOptions): AnswerStream<ChatChunk>;
      create(request: ChatRequest & { stream?: false | null }, options?: CallOptions): Promise<ChatCompletion>;
      create(request: ChatRequest, options?: CallOptions): AnswerStream<ChatChunk> | Promise<ChatCompletion>;
    };
  };
  readonly completions: {
    create(request: TextRequest & { stream: true }, options?: CallOptions): AnswerStream<TextChunk>;
    create(request: TextRequest & { stream?: false | null }, options?: CallOptions): Promise<TextCompletion>;
    create(request: TextRequest, options?: CallOptions): AnswerStream<TextChunk> | Promise<TextCompletion>;
  };
  readonly embeddings: {
    create(request: EmbeddingRequest & { pooling: "none"; encoding_format: "base64" }, options?: CallOptions): Promise<Embeddings<string[]>>;
    create(request: EmbeddingRequest & { encoding_format: "base64" }, options?: CallOptions): Promise<Embeddings<string>>;
    create(request: EmbeddingRequest & { pooling: "none" }, options?: CallOptions): Promise<Embeddings<number[][]>>;
    create(request: EmbeddingRequest, options?: CallOptions): Promise<Embeddings>;
  };
  /** Documents by their relevance to a query, the best first, for a model that was made to rank. */
  rerank(query: string, documents: Array<string | { text: string }>, options?: RerankOptions): Promise<Ranked[]>;
  /** The same in the form of Jina's and Cohere's requests. */
  readonly reranking: { create(request: RerankRequest, options?: CallOptions): Promise<Reranking> };
  /**
   * OpenAI's HTTP without a network, for clients that take a `fetch`: chat completions, completions, embeddings, rerank and models,
   * whatever the host. Nothing else is answered, and nothing is sent.
   */
  readonly fetch: (input: RequestInfo | URL, init?: RequestInit) => Promise<Response>;
  /** The conversation as bytes: `restore` goes on with it without running it again, on another day, too. */
  save(): Promise<Uint8Array>;
  /** Goes on with a conversation that `save` gave, of the same model and options. */
  restore(bytes: Uint8Array): Promise<void>;
  tokenize(text: string, options?: { addSpecial?: boolean; parseSpecial?: boolean }): Promise<number[]>;
  detokenize(tokens: number[], options?: { special?: boolean }): Promise<string>;
  applyTemplate(messages: ChatMessage[], options?: TemplateRequest): Promise<string>;
  /** Of the last answer; null before it. */
  stats(): Stats | null;
  memory(): Memory;
  info(): EngineInfo;
  /** Bytes of the wasm heap. */
  heap(): Promise<number>;
  /** Gives the device up as a driver reset would; for tests. */
  loseDevice(): Promise<void>;
  /** Ends the worker and gives all memory back. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Reads the head of a model file: what it is, what it takes, whether it fits. */
export function inspect(model: ModelSource, options?: SourceOptions): Promise<Inspection>;

export interface Capabilities {
  webgpu: boolean;
  /** The device that `device: "auto"` selects. */
  device: "gpu" | "cpu";
  adapter: { vendor?: string; architecture?: string; device?: string; description?: string; fallback: boolean } | null;
  f16: boolean;
  subgroups: boolean;
  limits: Record<string, number> | null;
  worker: boolean;
  opfs: boolean;
  locks: boolean;
}

/** Capabilities of this browser; never throws. */
export function capabilities(): Promise<Capabilities>;

export interface StoredModel {
  url: string;
  name: string;
  /** Bytes of the whole file. */
  size: number;
  sha256: string | null;
  complete: boolean;
  /** Bytes that are stored. */
  bytes: number;
  /** When it was complete, as ISO 8601. */
  stored: string | null;
}

/** A model that is known to work in pages. */
export interface CatalogueEntry {
  id: string;
  name: string;
  /** Its use, in a few words. */
  about: string;
  /** For `Engine.create`. */
  model: string;
  /** The file's name, as `sha256` of the options has it. */
  file: string;
  /** Bytes of the file. */
  bytes: number;
  sha256: string;
  licence: string;
  parameters: number;
  trainedContext: number;
  /** Bytes of memory, to some percent, by the tokens of the context, with an f16 cache. */
  memory: Record<number, number>;
}

/** The stored files. */
export const models: {
  /** Models to offer to people, the smallest first. Nothing is asked for. */
  catalogue(): Promise<CatalogueEntry[]>;
  list(): Promise<StoredModel[]>;
  /** Stores a model's files without loading them. */
  download(
    model: string | URL,
    options?: SourceOptions & { onProgress?: (progress: Progress) => void },
  ): Promise<Array<{ name: string; size: number }>>;
  /** Removes all files of a model, by its address or `hf:` name. False if there was none; an error while it is in use. */
  remove(model: string | URL, options?: Pick<SourceOptions, "hub">): Promise<boolean>;
  usage(): Promise<{ models: number; usage: number | null; quota: number | null; persisted: boolean }>;
  /** Hashes the files again: true if they are what came from the network. */
  verify(
    model: string | URL,
    options?: Pick<SourceOptions, "hub" | "signal" | "worker" | "workerUrl" | "wasmUrl">,
  ): Promise<boolean>;
  /** Asks the browser not to clear what is stored when space is short; Firefox asks the user. */
  persist(): Promise<boolean>;
};
