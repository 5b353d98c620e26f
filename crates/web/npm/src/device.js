// Which device an engine runs on, and how a page lives beside one that is the CPU.

/** The CPU lets messages in so often, in milliseconds: an abort, or a request to wait. */
const TURN = 30;

export const hasWebGPU = () => Boolean(globalThis.navigator?.gpu);

/**
 * The device for what the page asks for. Browsers without a GPU have an adapter that computes on the CPU
 * (`isFallbackAdapter`), several times slower than WebAssembly does.
 */
export async function choose(asked = "auto") {
  if (asked !== "auto") return { device: asked, fallback: null };
  const cpu = (fallback) => ({ device: "cpu", fallback });
  if (!hasWebGPU()) return cpu("this browser offers no WebGPU here");
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) return cpu("there is no WebGPU adapter");
  if (isFallback(adapter)) return cpu("the WebGPU adapter is software");
  return { device: "auto", fallback: null };
}

export const isFallback = (adapter) => adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;

/** Turns of the event loop, now and then. */
export class Turns {
  #last = performance.now();
  #channel = new MessageChannel();

  /** Programs end only without open ports. */
  close() {
    this.#channel.port1.close();
  }

  due() {
    return performance.now() - this.#last > TURN;
  }

  /** Everything that waits gets its turn. */
  take() {
    return new Promise((done) => {
      this.#channel.port1.onmessage = () => {
        this.#last = performance.now();
        done();
      };
      this.#channel.port2.postMessage(null);
    });
  }
}
