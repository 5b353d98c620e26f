// Browsers that Playwright cannot drive, by WebDriver: Firefox over Marionette, which it has within, and what a driver
// stands before (WebKitWebDriver). A page has the few functions of Playwright's that the tests call.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const KEYS = { Enter: "\uE007", Escape: "\uE00C", ArrowUp: "\uE013" };
const POLL = 20;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Tries until it works. */
async function patiently(f, ms = 60_000) {
  for (const end = Date.now() + ms; ; await sleep(100)) {
    try {
      return await f();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** `call(name, parameters)` over Marionette: `length:[0, id, name, parameters]`, then `length:[1, id, error, result]`. */
async function marionette(profile) {
  const port = Number(await patiently(() => readFile(join(profile, "MarionetteActivePort"), "utf8")));
  const socket = await patiently(() => new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket)).once("error", reject);
  }));
  const calls = new Map();
  let [buffer, next] = [Buffer.alloc(0), 1];
  socket.on("data", (data) => {
    buffer = Buffer.concat([buffer, data]);
    for (;;) {
      const colon = buffer.indexOf(":");
      const end = colon + 1 + Number(buffer.subarray(0, Math.max(colon, 0)));
      if (colon < 0 || buffer.length < end) return;
      const [, id, error, result] = [JSON.parse(buffer.subarray(colon + 1, end))].flat();
      buffer = buffer.subarray(end);
      const call = calls.get(id);
      calls.delete(id);
      if (error) call?.reject(new Error(`${error.error}: ${error.message}`));
      else call?.resolve(result?.value !== undefined ? result.value : result);
    }
  });
  socket.on("close", () => calls.forEach(({ reject }) => reject(new Error("Firefox is gone"))));
  return (name, parameters = {}) =>
    new Promise((resolve, reject) => {
      calls.set(next, { resolve, reject });
      const text = JSON.stringify([0, next++, `WebDriver:${name}`, parameters]);
      socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
}

/** The same over HTTP. */
const PATHS = {
  Navigate: "url",
  Refresh: "refresh",
  ExecuteScript: "execute/sync",
  NewWindow: "window/new",
  SwitchToWindow: "window",
  CloseWindow: "-window",
  GetWindowHandle: "-window",
  SetWindowRect: "window/rect",
  TakeScreenshot: "-screenshot",
  PerformActions: "actions",
  DeleteSession: "-",
};

function overHttp(address) {
  let session = null;
  return async (name, parameters) => {
    const path = name === "NewSession" ? "" : PATHS[name];
    const method = !path.startsWith("-") ? "POST" : /^(Take|Get)/.test(name) ? "GET" : "DELETE";
    const url = [address, "session", session, path.replace("-", "")].filter(Boolean).join("/");
    const body = method === "POST" ? JSON.stringify(parameters) : undefined;
    const { value } = await (await fetch(url, { method, body })).json();
    if (value?.error) throw new Error(`${value.error}: ${value.message}`);
    session ??= value.sessionId;
    return value;
  };
}

class Page {
  #tab;
  #handle;
  #timeout = 30_000;
  keyboard = {
    press: (key) => this.#keys([KEYS[key]]),
    type: (text) => this.#keys([...text]),
  };

  constructor(tab, handle) {
    this.#tab = tab;
    this.#handle = handle;
  }

  on() {}

  setDefaultTimeout(ms) {
    this.#timeout = ms;
  }

  /** One command in this tab. */
  call(name, parameters) {
    return this.#tab(this.#handle, (call) => call(name, parameters));
  }

  run(script, ...args) {
    return this.call("ExecuteScript", { script, args });
  }

  goto(url) {
    return this.#load("Navigate", { url });
  }

  reload() {
    return this.#load("Refresh", {});
  }

  /** WebKitWebDriver does not wait for scripts. */
  async #load(name, parameters) {
    await this.call(name, parameters);
    await this.waitForFunction(() => document.readyState === "complete");
  }

  close() {
    return this.call("CloseWindow", {});
  }

  /** Calls a function in the page. It is asked for its result now and then, so that other tabs can be used meanwhile. */
  async evaluate(f, arg = null) {
    const source = `window.eval(${JSON.stringify(`((f, arg) => {
      const call = {};
      (globalThis.calls ??= []).push(call);
      (async () => f(...JSON.parse(arg)))().then(
        (value) => {
          try {
            call.end = JSON.stringify({ value });
          } catch {
            // A page itself, or what else is no JSON.
            call.end = "{}";
          }
        },
        (error) => (call.error = String(error) + "\\n" + error?.stack),
      );
      return calls.length - 1;
    })`)})`;
    const id = await this.run(`return ${source}(window.eval("(" + arguments[0] + ")"), arguments[1])`, String(f), JSON.stringify([arg]));
    for (const end = Date.now() + this.#timeout; ; await sleep(POLL)) {
      const found = await this.run(`return JSON.stringify(window.eval("calls")[arguments[0]])`, id);
      const { end: value, error } = JSON.parse(found);
      if (error) throw new Error(error);
      if (value) return JSON.parse(value).value;
      if (Date.now() > end) throw new Error(`no result after ${this.#timeout} ms`);
    }
  }

  async waitForFunction(f, arg) {
    for (const end = Date.now() + this.#timeout; !(await this.evaluate(f, arg)); await sleep(POLL)) {
      if (Date.now() > end) throw new Error(`not true after ${this.#timeout} ms: ${f}`);
    }
  }

  #keys(keys) {
    const actions = keys.flatMap((value) => ["keyDown", "keyUp"].map((type) => ({ type, value })));
    return this.call("PerformActions", { actions: [{ type: "key", id: "keys", actions }] });
  }

  waitForTimeout(ms) {
    return sleep(ms);
  }

  /** Waits until an element is shown, is there at all (`attached`), or is not shown (`hidden`). */
  async waitForSelector(selector, { state = "visible" } = {}) {
    const isSo = ([selector, state]) => {
      const element = document.querySelector(selector);
      if (state === "attached") return element !== null;
      return (element?.getClientRects().length > 0) === (state === "visible");
    };
    await this.waitForFunction(isSo, [selector, state]);
  }

  /** The middle of an element, brought into view: one of those of a selector, or the one whose text is named (`text=`). */
  async #middle(selector, { nth = 0, hasText = "" } = {}) {
    const find = ([selector, nth, hasText]) => {
      const [, words] = /^text=(.*)$/.exec(selector) ?? [];
      const all = [...document.querySelectorAll(words ? "button, a, summary, label" : selector)];
      const element = all.filter((e) => (words ? e.textContent.trim() === words : e.textContent.includes(hasText))).at(nth);
      if (!element) return null;
      element.scrollIntoView({ block: "center" });
      const { left, top, width, height } = element.getBoundingClientRect();
      return width > 0 && [Math.round(left + width / 2), Math.round(top + height / 2)];
    };
    for (const end = Date.now() + this.#timeout; ; await sleep(POLL)) {
      const found = await this.evaluate(find, [selector, nth, hasText]);
      if (found) return found;
      if (Date.now() > end) throw new Error(`no ${selector} is shown after ${this.#timeout} ms`);
    }
  }

  /** Moves the mouse to an element, and does what is named there. */
  async #point(selector, which, actions) {
    const [x, y] = await this.#middle(selector, which);
    const move = { type: "pointerMove", x, y, origin: "viewport" };
    await this.call("PerformActions", { actions: [{ type: "pointer", id: "mouse", actions: [move, ...actions] }] });
  }

  /** A click where the element is, so that what lies above it gets it, as with a mouse. */
  click(selector, which) {
    return this.#point(selector, which, ["pointerDown", "pointerUp"].map((type) => ({ type, button: 0 })));
  }

  hover(selector) {
    return this.#point(selector, {}, []);
  }

  /** A function of the element, which is there. */
  #of(selector, f) {
    return this.evaluate(`([selector]) => (${f})(document.querySelector(selector))`, [selector]);
  }

  focus = (selector) => this.#of(selector, (e) => e.focus());
  inputValue = (selector) => this.#of(selector, (e) => e.value);
  isDisabled = (selector) => this.#of(selector, (e) => e.disabled);
  isVisible = (selector) => this.#of(selector, (e) => e !== null && e.getClientRects().length > 0);
  isHidden = async (selector) => !(await this.isVisible(selector));

  /** Files for a field, as Playwright takes them. */
  setInputFiles(selector, files) {
    const give = ([selector, files]) => {
      const data = new DataTransfer();
      for (const { name, mimeType, bytes } of files) data.items.add(new File([Uint8Array.from(bytes)], name, { type: mimeType }));
      const field = document.querySelector(selector);
      field.files = data.files;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    };
    return this.evaluate(give, [selector, [files].flat().map(({ name, mimeType, buffer }) => ({ name, mimeType, bytes: [...buffer] }))]);
  }

  fill(selector, text) {
    const set = ([selector, text]) => {
      const element = document.querySelector(selector);
      element.focus();
      element.value = text;
      element.dispatchEvent(new Event("input", { bubbles: true }));
    };
    return this.evaluate(set, [selector, text]);
  }

  textContent(selector) {
    return this.evaluate((selector) => document.querySelector(selector).textContent, selector);
  }

  locator(selector, { hasText } = {}) {
    const one = (nth) => ({ click: () => this.click(selector, { nth, hasText }) });
    const all = (f) => this.evaluate(`([selector]) => (${f})([...document.querySelectorAll(selector)])`, [selector]);
    return {
      count: () => all((found) => found.length),
      allTextContents: () => all((found) => found.map((e) => e.textContent)),
      evaluateAll: all,
      click: one(0).click,
      first: () => one(0),
      last: () => one(-1),
      nth: one,
    };
  }

  setViewportSize({ width, height }) {
    return this.call("SetWindowRect", { width, height });
  }

  async screenshot({ path, fullPage = false }) {
    await writeFile(path, Buffer.from(await this.call("TakeScreenshot", { full: fullPage, hash: false }), "base64"));
  }
}

/** Pages of a session. */
function contextOf(call) {
  let [last, current] = [Promise.resolve(), null];
  const tab = (handle, f) => {
    const result = last.then(async () => {
      if (handle !== current) await call("SwitchToWindow", { handle });
      current = handle;
      return f(call);
    });
    last = result.catch(() => {});
    return result;
  };
  return {
    async newPage() {
      // The first one is there, and in view.
      const name = current === null ? "GetWindowHandle" : "NewWindow";
      const found = await tab(current, () => call(name, name === "NewWindow" ? { type: "tab" } : {}));
      current ??= found;
      return new Page(tab, found.handle ?? found);
    },
  };
}

/** `name` is firefox (`CHASKI_FIREFOX`, `CHASKI_FIREFOX_PREFS`) or webkit (`CHASKI_WEBKIT`, `CHASKI_WEBKIT_ARGS`). */
export async function launchOther(name) {
  const profile = await mkdtemp(join(tmpdir(), "chaski-web-"));
  const children = [];
  const start = (program, args, env = {}) => {
    const child = spawn(program, args, { stdio: "ignore", env: { ...process.env, ...env } });
    child.on("error", (error) => console.log(`${program}: ${error.message}`));
    children.push(child);
  };
  let [call, capabilities] = [];
  if (name === "firefox") {
    const prefs = { "marionette.port": 0, ...JSON.parse(process.env.CHASKI_FIREFOX_PREFS ?? "{}") };
    const lines = Object.entries(prefs).map(([key, value]) => `user_pref(${JSON.stringify(key)}, ${JSON.stringify(value)});`);
    await writeFile(join(profile, "user.js"), lines.join("\n"));
    start(process.env.CHASKI_FIREFOX ?? "firefox-esr", ["--headless", "--marionette", "--no-remote", "--profile", profile]);
    call = await marionette(profile);
    capabilities = {};
  } else {
    const port = 20_000 + (process.pid % 20_000);
    start("WebKitWebDriver", [`--port=${port}`], { HOME: profile });
    call = overHttp(`http://127.0.0.1:${port}`);
    const binary = process.env.CHASKI_WEBKIT ?? "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser";
    const args = (process.env.CHASKI_WEBKIT_ARGS ?? "--automation").split(" ");
    capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary, args } } };
  }
  await patiently(() => call("NewSession", { capabilities }));
  return {
    context: contextOf(call),
    async close() {
      await call("DeleteSession").catch(() => {});
      children.forEach((child) => child.kill());
      await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? new Promise((resolve) => child.once("exit", resolve))));
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
