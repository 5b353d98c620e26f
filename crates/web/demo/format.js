// Numbers for people.

export function bytes(n) {
  if (n < 1000) return `${n} bytes`;
  const units = ["kB", "MB", "GB", "TB"];
  let i = 0;
  for (n /= 1000; n >= 999.5 && i < units.length - 1; n /= 1000) i++;
  return `${Number(n.toPrecision(3))} ${units[i]}`;
}

const STAGES = { resolve: "Finding the files", wait: "Waiting for another tab that uses the file", download: "Downloading", verify: "Checking what is there", compile: "Compiling kernels", upload: "Loading the weights" };

export function progressText({ stage, file, loaded, total, bytesPerSecond, etaSeconds, fromCache }) {
  if (["resolve", "wait", "compile"].includes(stage)) return `${STAGES[stage]} …`;
  const parts = [`${fromCache ? "Stored already" : STAGES[stage]}: ${file}`];
  parts.push(total ? `${bytes(loaded)} of ${bytes(total)}` : bytes(loaded));
  if (bytesPerSecond) parts.push(`${bytes(bytesPerSecond)}/s`);
  if (etaSeconds) parts.push(`${Math.ceil(etaSeconds)} s left`);
  return parts.join(", ");
}

export function describe(found) {
  const lines = [
    `${found.description}, ${bytes(found.fileBytes)}${found.downloadBytes ? `, of which ${bytes(found.downloadBytes)} are to be downloaded` : ", stored already"}`,
    `${found.device === "cpu" ? "Memory" : "GPU memory"}: ${bytes(found.memory.total)} (${Object.entries(found.memory.items).map(([k, v]) => `${k} ${bytes(v)}`).join(", ")})`,
    `Trained for ${found.trainedContext} tokens; ${found.chatTemplate ? "it has" : "it has no"} chat template.`,
  ];
  return lines.join("\n");
}
