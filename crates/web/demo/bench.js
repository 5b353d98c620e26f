// Speeds in llama-bench's words and, on a GPU, the floor under them: what empty dispatches and readbacks cost in this
// browser.

import { Engine, capabilities } from "./chaski/index.js";

const $ = (id) => document.getElementById(id);
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

/** Device fields of the rows: a GPU has a dispatch floor; the CPU, which has neither that nor kernels, has null. */
async function measured({ device, memory, loading, dispatchesPerToken }) {
  if (device.kind === "cpu") {
    return { backends: "CPU", gpu_info: "", n_threads: 1, n_gpu_layers: 0, compile_ms: null, peak_gpu_bytes: null, dispatches_per_token: null, floor_ms: null };
  }
  const { adapter } = await capabilities();
  return {
    backends: "WebGPU",
    gpu_info: [adapter.vendor, adapter.architecture, adapter.description].filter(Boolean).join(" "),
    n_threads: navigator.hardwareConcurrency,
    n_gpu_layers: 99,
    compile_ms: loading.compileMs,
    peak_gpu_bytes: memory.total,
    dispatches_per_token: dispatchesPerToken,
    floor_ms: { empty: await floor(1), token: await floor(dispatchesPerToken) },
  };
}

/** Runs the tests; the result has llama-bench's keys and some more. Further options are the engine's. */
export async function bench({ model, prompt, answer, runs, chunk, kvType, device = "auto", onState = () => {}, ...options }) {
  onState("Loading ...");
  const start = performance.now();
  const engine = await Engine.create({ model, device, chunk, kvType, contextLength: 0, ...options });
  const [type_k, type_v = type_k] = (kvType ?? "auto").split("/");
  const load_ms = performance.now() - start;
  const info = engine.info();
  try {
    const tests = [];
    for (const [nPrompt, nGen] of [[prompt, 0], [0, answer]]) {
      const samples = [];
      // The first run warms up, as llama-bench's does.
      for (let run = 0; run <= runs; run++) {
        onState(`${nPrompt ? `pp${nPrompt}` : `tg${nGen}`}: run ${run} of ${runs}`);
        const seconds = await (nPrompt ? prefill(engine, nPrompt, run) : decode(engine, nGen));
        if (run > 0) samples.push(seconds * 1e9);
      }
      tests.push({ nPrompt, nGen, samples });
    }
    onState("Measuring the floor ...");
    const { backends, gpu_info, n_threads, n_gpu_layers, ...more } = await measured(info);
    return tests.map(({ nPrompt, nGen, samples }) => {
      const rates = samples.map((ns) => ((nPrompt || nGen) * 1e9) / ns);
      return {
        backends,
        cpu_info: navigator.userAgent,
        gpu_info,
        model_filename: info.model.file,
        model_type: info.model.description,
        model_size: info.model.bytes,
        model_n_params: info.model.parameters,
        n_batch: chunk ?? 512,
        n_ubatch: chunk ?? 512,
        n_threads,
        type_k,
        type_v,
        n_gpu_layers,
        flash_attn: true,
        n_prompt: nPrompt,
        n_gen: nGen,
        n_depth: 0,
        test_time: new Date().toISOString(),
        avg_ns: Math.round(mean(samples)),
        stddev_ns: Math.round(deviation(samples)),
        avg_ts: mean(rates),
        stddev_ts: deviation(rates),
        samples_ns: samples.map(Math.round),
        samples_ts: rates,
        load_ms,
        ...more,
      };
    });
  } finally {
    await engine.close();
  }
}

/** Seconds of a prompt that is not in the cache, the first token's choice included. */
async function prefill(engine, n, run) {
  const { vocabulary } = engine.info().model;
  const tokens = Array.from({ length: n }, (_, i) => 3 + ((i * 7919 + run * 104729) % (vocabulary - 3)));
  await engine.completions.create({ prompt: tokens, max_tokens: 1, temperature: 0 });
  return engine.stats().timeToFirstTokenMs / 1000;
}

/** Seconds of `n` tokens after the first. The prompt is a token, since the words of a vocabulary are not known. */
async function decode(engine, n) {
  await engine.completions.create({ prompt: [3], max_tokens: n + 1, temperature: 0, ignore_eos: true });
  return n / engine.stats().tokensPerSecond;
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const number = (id) => Number($(id).value) || undefined;
  const pressed = document.activeElement === $("run");
  const rowsShown = $("table").tBodies[0];
  $("run").disabled = $("table").hidden = true;
  rowsShown.replaceChildren();
  $("json").textContent = "";
  try {
    const options = { model: $("source").value, prompt: number("prompt"), answer: number("answer"), runs: number("runs"), chunk: number("chunk"), kvType: $("kv").value.trim() || undefined, device: $("device").value };
    const rows = await bench({ ...options, onState: (text) => ($("state").textContent = text) });
    const [{ floor_ms, dispatches_per_token }] = rows;
    $("state").textContent = floor_ms
      ? `A readback costs ${floor_ms.empty.toFixed(2)} ms, one behind a token's ${dispatches_per_token} empty dispatches ${floor_ms.token.toFixed(2)} ms.`
      : "On the CPU, on one thread.";
    $("table").hidden = false;
    const cells = (r) => [r.n_prompt ? `pp${r.n_prompt}` : `tg${r.n_gen}`, r.avg_ts.toFixed(2), r.stddev_ts.toFixed(2)];
    for (const r of rows) {
      const row = rowsShown.insertRow();
      cells(r).forEach((text) => row.insertCell().append(text));
    }
    $("json").textContent = JSON.stringify(rows, null, 2);
  } catch (error) {
    $("state").textContent = `${error.message} ${error.hint ?? ""}`;
  } finally {
    $("run").disabled = false;
    // A disabled button loses the focus; who went elsewhere meanwhile stays there.
    if (pressed && document.activeElement === document.body) $("run").focus();
  }
});
