// The data of server-sent events.

/** Texts of a stream of bytes. Whoever stops asking closes the stream. */
async function* texts(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // A stream that broke off is closed already.
    await reader.cancel().catch(() => {});
  }
}

/** The data of each event, as it comes. An event without its end does not count. */
export async function* events(stream) {
  let [rest, data] = ["", []];
  for await (const text of texts(stream)) {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      if (line !== "" || data.length === 0) continue;
      yield data.join("\n");
      data = [];
    }
  }
}
