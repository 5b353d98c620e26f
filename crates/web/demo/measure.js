// Measurements of the bench page: speeds in llama-bench's words, at depths, over all combinations of what is asked for;
// ablations: answers without something that the engine does by itself; memory; and on a GPU the floor, the cost of empty dispatches and readbacks.

import { Engine, capabilities } from "./chaski/index.js";

const mean = (xs) => xs.reduce((a, b) => a + b, 0) / xs.length;
const deviation = (xs) => (xs.length < 2 ? 0 : Math.sqrt(xs.reduce((s, x) => s + (x - mean(xs)) ** 2, 0) / (xs.length - 1)));

/** Milliseconds of a submission of so many dependent dispatches that do nothing, and a readback of four bytes. */
export async function floor(nDispatch, runs = 20) {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const device = await adapter.requestDevice();
  const code = "@group(0) @binding(0) var<storage, read_write> x: array<u32>; @compute @workgroup_size(1) fn main() { x[0] += 1u; }";
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module: device.createShaderModule({ code }) } });
  const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const buffer = device.createBuffer({ size: 16, usage: STORAGE | COPY_SRC });
  const staging = device.createBuffer({ size: 16, usage: COPY_DST | MAP_READ });
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: [{ binding: 0, resource: { buffer } }] });
  const times = [];
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    for (let i = 0; i < nDispatch; i++) pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, 16);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    staging.unmap();
    times.push(performance.now() - start);
  }
  device.destroy();
  return times.sort((a, b) => a - b)[runs >> 1];
}

/** Fields of the device: a GPU has a floor; the CPU, which has neither that nor kernels, has null. */
async function deviceOf({ device, loading, dispatchesPerToken }) {
  if (device.kind === "cpu") {
    return { backends: "CPU", gpu_info: "", n_threads: 1, n_gpu_layers: 0, compile_ms: null, dispatches_per_token: null, floor_ms: null };
  }
  const { adapter } = await capabilities();
  return {
    backends: "WebGPU",
    gpu_info: [adapter.vendor, adapter.architecture, adapter.description].filter(Boolean).join(" "),
    n_threads: navigator.hardwareConcurrency,
    n_gpu_layers: 99,
    compile_ms: loading.compileMs,
    dispatches_per_token: dispatchesPerToken,
    floor_ms: { empty: await floor(1), token: await floor(dispatchesPerToken) },
  };
}

/** Ways to answer, each without something that the engine does by itself: fields of the request. */
const ABLATIONS = [
  ...[1, 2, 4, 8, 16, 32].map((interval) => [`a readback for ${interval === 1 ? "each token" : `${interval} tokens`}`, { interval }]),
  ["logits read back, tokens chosen by the CPU", { logprobs: 1 }],
];
/** Each token waits for the one before, as in engines without a pipeline. */
const NO_PIPELINE = "no pipeline: a request for each token";

/** Lists of values, each with all others. */
const combinations = (lists) => Object.entries(lists).reduce((all, [key, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [key]: value }))), [{}]);

const list = (value, otherwise) => [value ?? otherwise].flat();

/**
 * Runs the tests; the result has llama-bench's keys and some more. `model`, `prompt`, `answer`, `depth`, `chunk`, `kvType` and `inputs`
 * may be lists. Further options are the engine's.
 */
export async function bench({ model, prompt, answer, depth, runs = 3, chunk, kvType, inputs, ablations = false, onState = () => {}, onRows = () => {}, ...options }) {
  const rows = [];
  const lists = { model: list(model), chunk: list(chunk, 512), kvType: list(kvType, "auto"), inputs: list(inputs, "auto") };
  const tests = { prompts: list(prompt, []).filter(Boolean), answers: list(answer, []).filter(Boolean), depths: list(depth, 0) };
  // An answer's tokens, its first, and the one that its prompt has.
  const contextLength = Math.max(...tests.depths) + Math.max(...tests.prompts, ...tests.answers, 1) + 2;
  for (const one of combinations(lists)) {
    const run = { ...options, ...one, contextLength };
    for (const row of await measured(run, tests, { runs, ablations, onState })) {
      rows.push(row);
      onRows(rows);
    }
  }
  return rows;
}

/** The tests of one engine. */
async function measured({ model, chunk, kvType, inputs, ...options }, { prompts, answers, depths }, { runs, ablations, onState }) {
  const name = String(model.name ?? model).split("/").at(-1);
  const state = (text) => onState(`${name}: ${text}`);
  state("loading ...");
  const start = performance.now();
  const engine = await Engine.create({ device: "auto", ...options, model, chunk, kvType, inputs });
  const load_ms = performance.now() - start;
  try {
    const samples = [];
    const test = async (fields, timed) => {
      const all = [];
      // The first run warms up, as llama-bench's does.
      for (let run = 0; run <= runs; run++) {
        state(`${labelOf(fields)}: run ${run} of ${runs}`);
        const seconds = await timed(run);
        if (run > 0) all.push(seconds * 1e9);
      }
      samples.push([fields, all]);
    };
    for (const n_depth of depths) {
      for (const n_prompt of prompts) await test({ n_prompt, n_gen: 0, n_depth }, (run) => prefill(engine, n_prompt, n_depth, run));
      for (const n_gen of answers) await test({ n_prompt: 0, n_gen, n_depth }, () => decode(engine, n_gen, n_depth));
    }
    if (ablations && answers.length > 0) {
      const [n_gen, n_depth] = [answers[0], depths[0]];
      const fields = (ablation) => ({ n_prompt: 0, n_gen, n_depth, ablation });
      for (const [ablation, request] of ABLATIONS) await test(fields(ablation), () => decode(engine, n_gen, n_depth, request));
      await test(fields(NO_PIPELINE), () => singly(engine, n_gen, n_depth));
    }
    state("measuring the floor ...");
    const info = engine.info();
    const facts = await deviceOf(info);
    const memory = { ...engine.memory().items };
    const heap_bytes = await engine.heap();
    const [type_k, type_v = type_k] = kvType.split("/");
    return samples.map(([fields, ns]) => row(fields, ns, {
      cpu_info: navigator.userAgent,
      model_filename: info.model.file,
      model_type: info.model.description,
      model_size: info.model.bytes,
      model_n_params: info.model.parameters,
      n_batch: chunk,
      n_ubatch: chunk,
      n_ctx: info.contextLength,
      type_k,
      type_v,
      inputs,
      flash_attn: true,
      test_time: new Date().toISOString(),
      load_ms,
      peak_gpu_bytes: info.device.kind === "gpu" ? engine.memory().total : null,
      memory,
      heap_bytes,
      ...facts,
    }));
  } finally {
    await engine.close();
  }
}

/** The name of a test, as llama-bench writes it. */
export const labelOf = ({ n_prompt, n_gen, n_depth, ablation }) => `${n_prompt ? `pp${n_prompt}` : `tg${n_gen}`}${n_depth ? ` @ d${n_depth}` : ""}${ablation ? `, ${ablation}` : ""}`;

function row(fields, samples, facts) {
  const rates = samples.map((ns) => ((fields.n_prompt || fields.n_gen) * 1e9) / ns);
  return {
    ...facts,
    ...fields,
    avg_ns: Math.round(mean(samples)),
    stddev_ns: Math.round(deviation(samples)),
    avg_ts: mean(rates),
    stddev_ts: deviation(rates),
    samples_ns: samples.map(Math.round),
    samples_ts: rates,
  };
}

/** Tokens of no text: random ones, since the words of a vocabulary are not known. */
function tokens(engine, n, seed) {
  const { vocabulary } = engine.info().model;
  return Array.from({ length: n }, (_, i) => 3 + ((i * 7919 + seed * 104729) % (vocabulary - 3)));
}

const ask = (engine, prompt, max_tokens, request) => engine.completions.create({ prompt, max_tokens, temperature: 0, ignore_eos: true, ...request });

/** Tokens that the cache has, `n` of them: they are the same for all tests at a depth. */
async function filled(engine, n) {
  const prompt = tokens(engine, n, 0);
  if (n > 0) await ask(engine, prompt, 1);
  return prompt;
}

/** Seconds of a prompt of `n` tokens that are not in the cache, behind `depth` that are; the first token's choice included. */
async function prefill(engine, n, depth, run) {
  const prompt = [...(await filled(engine, depth)), ...tokens(engine, n, run + 1)];
  await ask(engine, prompt, 1);
  const { promptTokens, cachedTokens, timeToFirstTokenMs } = engine.stats();
  // Some models run the end of the cached tokens again, from where they have a snapshot.
  return ((timeToFirstTokenMs / 1000) * n) / (promptTokens - cachedTokens);
}

/** Seconds of `n` tokens after the first. */
async function decode(engine, n, depth, request) {
  await ask(engine, [...(await filled(engine, depth)), 3], n + 1, request);
  return n / engine.stats().tokensPerSecond;
}

/** Seconds of `n` tokens in requests of their own. */
async function singly(engine, n, depth) {
  const prompt = [...(await filled(engine, depth)), 3];
  await ask(engine, prompt, 1);
  const next = tokens(engine, n, 1);
  const start = performance.now();
  for (const token of next) {
    prompt.push(token);
    await ask(engine, prompt, 1);
  }
  return (performance.now() - start) / 1000;
}
