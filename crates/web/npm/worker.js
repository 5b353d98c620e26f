// The engine's worker: each port that a page sends has an engine behind it. Other messages are not for us.

import { Host } from "./src/host.js";
import { canPromise } from "./src/pipelines.js";
import { lookForReadbacks } from "./src/readbacks.js";
import { serve } from "./src/serve.js";

canPromise();
lookForReadbacks();

addEventListener("message", ({ data }) => {
  if (data?.chaski instanceof MessagePort) serve(data.chaski, new Host());
});
