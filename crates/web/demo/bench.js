// The bench page: a form, and tables of what `measure.js` measures.

import { bytes } from "./format.js";
import { bench, labelOf } from "./measure.js";

const $ = (id) => document.getElementById(id);

/** Values between commas or spaces; nothing if there are none. */
function values(id, read = (text) => text) {
  const found = $(id).value.split(/[\s,]+/).filter(Boolean).map(read);
  return found.length > 0 ? found : undefined;
}

/** A list of numbers; the field says what is wrong with others. */
function numbers(id) {
  const found = values(id, Number);
  const isWrong = found?.some((n) => !Number.isInteger(n) || n < 0) ?? false;
  $(id).setCustomValidity(isWrong ? "Whole numbers, with commas between them" : "");
  return found;
}
const NUMBERS = ["prompt", "answer", "depth", "chunk"];

function options() {
  const [prompt, answer, depth, chunk] = NUMBERS.map(numbers);
  return { model: values("source"), prompt, answer, depth, chunk, runs: Number($("runs").value), kvType: values("kv"), inputs: values("inputs"), device: $("device").value, ablations: $("ablations").checked };
}

/** The cells of a row: its test, and its share of the same test without an ablation. */
function cells(row, rows) {
  const base = rows.find((r) => !r.ablation && ["model_filename", "n_gen", "n_prompt", "n_depth", "n_ubatch", "type_k", "type_v", "inputs"].every((key) => r[key] === row[key]));
  const share = row.ablation && base ? `${((100 * row.avg_ts) / base.avg_ts).toFixed(1)} %` : "";
  const settings = [row.n_ubatch === 512 ? "" : `chunk ${row.n_ubatch}`, row.type_k === "auto" ? "" : `KV ${row.type_k}/${row.type_v}`, row.inputs === "auto" ? "" : row.inputs].filter(Boolean).join(", ");
  return [row.model_type, settings, labelOf(row), row.avg_ts.toFixed(2), row.stddev_ts.toFixed(2), share];
}

/** Memory of each engine. */
function memories(rows) {
  const seen = new Map(rows.map((r) => [[r.model_filename, r.n_ubatch, r.type_k, r.type_v, r.inputs].join(), r]));
  return [...seen.values()].map(({ model_type, n_ctx, memory, heap_bytes, load_ms, compile_ms }) => {
    const items = Object.entries(memory).map(([name, n]) => `${name} ${bytes(n)}`).join(", ");
    return [model_type, String(n_ctx), items, bytes(heap_bytes), `${(load_ms / 1000).toFixed(2)} s${compile_ms === null ? "" : `, kernels ${(compile_ms / 1000).toFixed(2)} s`}`];
  });
}

function fill(id, lines) {
  $(id).hidden = lines.length === 0;
  $(id).tBodies[0].replaceChildren();
  for (const line of lines) {
    const row = $(id).tBodies[0].insertRow();
    for (const text of line) row.insertCell().append(text);
  }
}

function show(rows) {
  fill("table", rows.map((row) => cells(row, rows)));
  fill("memory", memories(rows));
}

function said([{ floor_ms, dispatches_per_token }]) {
  if (!floor_ms) return "On the CPU, on one thread.";
  return `A readback costs ${floor_ms.empty.toFixed(2)} ms, one behind a token's ${dispatches_per_token} empty dispatches ${floor_ms.token.toFixed(2)} ms.`;
}

for (const id of NUMBERS) $(id).addEventListener("input", () => numbers(id));

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const pressed = document.activeElement === $("run");
  $("run").disabled = true;
  $("save").hidden = true;
  show([]);
  $("json").textContent = "";
  try {
    const rows = await bench({ ...options(), onState: (text) => ($("state").textContent = text), onRows: show });
    $("state").textContent = rows.length > 0 ? said(rows) : "There is nothing to measure: name tokens of prompts or of answers.";
    $("json").textContent = rows.length > 0 ? JSON.stringify(rows, null, 2) : "";
    $("save").hidden = rows.length === 0;
  } catch (error) {
    $("state").textContent = `${error.message} ${error.hint ?? ""}`;
  } finally {
    $("run").disabled = false;
    // A disabled button loses the focus; who went elsewhere meanwhile stays there.
    if (pressed && document.activeElement === document.body) $("run").focus();
  }
});

$("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([$("json").textContent], { type: "application/json" }));
  link.download = "bench.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
});
