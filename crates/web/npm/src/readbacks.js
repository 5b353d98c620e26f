// Readbacks that come when they are there.
//
// Firefox looks for what a GPU has finished when something is submitted, and else every 100 ms: a token that waits for its
// readback alone would take that long. So something is submitted while one waits: nothing.

/** How often, in milliseconds; browsers make more of it. */
const OFTEN = 1;

/** The queue that was used last, how many wait, and whether somebody looks. */
let [queue, waiting, looking] = [null, 0, false];

function look() {
  looking = waiting > 0;
  if (!looking) return;
  queue?.submit([]);
  setTimeout(look, OFTEN);
}

/** Has this thread look, in Firefox; for a worker that has no other use for the device. */
export function lookForReadbacks({ GPUBuffer, GPUQueue, navigator } = globalThis) {
  if (!GPUQueue || !navigator.userAgent.includes("Firefox/")) return;
  const { submit } = GPUQueue.prototype;
  const { mapAsync } = GPUBuffer.prototype;
  GPUQueue.prototype.submit = function (commands) {
    queue = this;
    return submit.call(this, commands);
  };
  GPUBuffer.prototype.mapAsync = function (...args) {
    const mapped = mapAsync.apply(this, args);
    const ended = () => waiting--;
    mapped.then(ended, ended);
    waiting++;
    if (!looking) setTimeout(look, OFTEN);
    looking = true;
    return mapped;
  };
}
