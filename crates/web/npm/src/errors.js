// The one error that callers see.

export const FULL = "free disk space, remove stored models (models.list, models.remove), or choose a smaller file";

export class EngineError extends Error {
  /** @param {string} code @param {string} message @param {string} [hint] @param {unknown} [detail] */
  constructor(code, message, hint = "", detail = null) {
    super(message);
    this.name = "EngineError";
    this.code = code;
    this.hint = hint;
    this.detail = detail;
  }

  /** A plain object that can be posted; `from` makes an error of it again. */
  toJSON() {
    return { code: this.code, message: this.message, hint: this.hint, detail: this.detail };
  }

  /** Anything thrown, as an EngineError. */
  static from(thrown) {
    if (thrown instanceof EngineError) return thrown;
    if (thrown && typeof thrown === "object" && typeof thrown.code === "string") {
      return new EngineError(thrown.code, thrown.message, thrown.hint ?? "", thrown.detail ?? null);
    }
    if (thrown?.name === "AbortError") return aborted();
    if (thrown?.name === "QuotaExceededError") {
      return new EngineError("quota_exceeded", `the browser's storage is full: ${thrown.message}`, FULL);
    }
    const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
    return new EngineError("internal", text, "this is a bug of chaski; please report it", thrown?.stack ?? null);
  }
}

export const aborted = () => new EngineError("aborted", "the request was aborted");

/** @param {string} message @param {unknown} [detail] */
export const badRequest = (message, detail) => new EngineError("bad_request", message, "", detail);

/** Throws if the signal says so, or is none. @param {AbortSignal | undefined} signal */
export function check(signal) {
  if (signal && !signal.addEventListener) throw badRequest("signal: expected an AbortSignal");
  if (signal?.aborted) throw aborted();
}
