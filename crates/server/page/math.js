// Math: its source, until KaTeX is there. KaTeX comes when the first formula does, and makes MathML, which browsers have fonts
// for; it gets no command that leads elsewhere, and a bound on what macros become.

import { make } from "./dom.js";

const OPTIONS = { output: "mathml", throwOnError: true, trust: false, strict: "ignore", maxExpand: 500, maxSize: 20 };
/** Longer formulas stay source. */
const LONGEST = 4000;
/** Formulas that were made before: an answer that grows asks for them again and again. */
const KEPT = 500;

const made = new Map();
let katex = null;
let loading = null;

/** KaTeX; it is a script for any place, and leaves its name behind. */
function load() {
  loading ??= import("./katex.js").then(
    () => {
      katex = globalThis.katex;
      for (const element of document.querySelectorAll(".math[data-pending]")) element.replaceWith(math(element.dataset.pending, element.textContent, element.classList.contains("display")));
    },
    // Without it formulas are source; the next one tries again.
    () => (loading = null),
  );
}

/** An element for a formula, whose source with its delimiters is `raw`. */
export function math(tex, raw, display) {
  const className = display ? "math display" : "math";
  const source = (more) => make("code", { className, dir: "ltr", ...more }, raw);
  if (tex.length > LONGEST) return source({});
  if (!katex) {
    load();
    return source({ data: { pending: tex } });
  }
  const key = `${display}${tex}`;
  if (!made.has(key)) {
    if (made.size >= KEPT) made.delete(made.keys().next().value);
    made.set(key, typeset(tex, className, display) ?? source({}));
  }
  return made.get(key).cloneNode(true);
}

/** Null where it is no math that KaTeX reads. */
function typeset(tex, className, display) {
  const element = make("span", { className, tabIndex: display ? 0 : undefined, dir: "ltr" });
  try {
    katex.render(tex, element, { ...OPTIONS, displayMode: display });
    return element;
  } catch {
    return null;
  }
}
