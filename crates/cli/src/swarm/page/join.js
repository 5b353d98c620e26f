// The join page: asks first, then shows what the tab gives.

import { checkPlace, forget, work } from "./work.js";

const at = (id) => document.getElementById(id);
const WORDS = {
  connecting: "Connecting",
  loading: "Getting ready",
  working: "Working",
  waiting: "Waiting to try again",
  stopped: "Stopped",
  failed: "Not joined",
};
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

// The fragment stays in this browser: it is sent to nobody.
const token = location.hash.slice(1) || undefined;
let job = null;
/** The end of the job before this one. */
let ended = Promise.resolve();

function obstacle(text) {
  at("obstacle").textContent = text;
  at("obstacle").hidden = false;
}

function show(status) {
  at("state").textContent = WORDS[status.state];
  at("state").dataset.state = status.state;
  at("reason").textContent = status.reason;
  at("reason").hidden = !status.reason;
  at("device").textContent = status.device;
  at("units").textContent = `${status.units}, ${status.assigned}`;
  at("used").textContent = `${mib(status.used)} in use, ${mib(status.memory)} given for experts`;
  at("kept").textContent = mib(status.kept);
  at("tasks").textContent = `${status.tasks}`;
  at("rows").textContent = `${status.rows}, ${status.rate.toFixed(0)} a second`;
  const isOver = status.state === "stopped" || status.state === "failed";
  at("stop").hidden = isOver;
  at("ask").hidden = !isOver;
  at("given").hidden = false;
  if (isOver) job = null;
}

at("hub").textContent = location.host;
try {
  checkPlace();
} catch (error) {
  obstacle(error.message);
  at("join").disabled = true;
}

at("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("obstacle").hidden = true;
  at("ask").hidden = true;
  try {
    const memory = at("memory").valueAsNumber * 2 ** 20;
    const keep = at("keep").checked ? memory : 0;
    await ended;
    if (!keep) await forget();
    job = await work(location.origin, { token, memory, keep, onStatus: show });
    ended = job.done;
  } catch (error) {
    at("ask").hidden = false;
    obstacle(error.message);
  }
});
at("stop").addEventListener("click", () => job?.stop());
