// Pipelines that compile at the same time, and while weights are uploaded.
//
// wgpu asks a browser for each pipeline at once, so that one is compiled after the other, before anything else is done.
// In the engine's own worker they are asked for as promises; wgpu holds what stands for them until they come.

/** The object that wgpu holds. */
class Promised {
  #device;
  #descriptor;
  #create;
  #made = null;

  constructor(device, descriptor, create) {
    this.#device = device;
    this.#descriptor = descriptor;
    this.#create = create;
    // On rejection, create it again synchronously like wgpu, so that the device reports the reason.
    this.done = device.createComputePipelineAsync(descriptor).then((made) => this.#set(made), () => this.#at());
  }

  #set(made) {
    this.#made ??= made;
    this.#descriptor = this.#create = null;
  }

  #at() {
    if (this.#made === null) this.#set(this.#create.call(this.#device, this.#descriptor));
    return this.#made;
  }

  /** The pipeline, compiled now if it has not come. */
  static of(pipeline) {
    return pipeline instanceof Promised ? pipeline.#at() : pipeline;
  }
}

/** Those that have not come, and whether more are promised: what is used at once, as tests of a device, is not. */
const pending = new Set();
let promising = false;

/** Lets this thread promise pipelines; for a worker that has no other use for the device. */
export function canPromise({ GPUDevice, GPUComputePassEncoder } = globalThis) {
  if (!GPUDevice?.prototype.createComputePipelineAsync) return;
  const { createComputePipeline } = GPUDevice.prototype;
  const { setPipeline } = GPUComputePassEncoder.prototype;
  GPUDevice.prototype.createComputePipeline = function (descriptor) {
    if (!promising) return createComputePipeline.call(this, descriptor);
    const promised = new Promised(this, descriptor, createComputePipeline);
    pending.add(promised.done);
    promised.done.finally(() => pending.delete(promised.done));
    return promised;
  };
  GPUComputePassEncoder.prototype.setPipeline = function (pipeline) {
    return setPipeline.call(this, Promised.of(pipeline));
  };
}

/** From now on pipelines are promised, where they can be. */
export function promiseFrom() {
  promising = true;
}

/** Runs `f`, which may call `promiseFrom`; in the end all pipelines have come. */
export async function withPromises(f) {
  try {
    const result = await f();
    promising = false;
    await Promise.allSettled([...pending]);
    return result;
  } finally {
    promising = false;
  }
}
