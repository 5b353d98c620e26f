// Short notices at the edge of the page, with something to do about them.

import { make, iconButton } from "./dom.js";

/** How long a notice stays, in milliseconds. */
const STAYS = 8000;

/** Shows a text; `action` is `[label, function]`. */
export function notify(text, action = null) {
  const close = () => element.remove();
  const act = () => {
    close();
    action[1]();
  };
  const element = make("div", { className: "notice" }, make("span", { textContent: text }));
  if (action) element.append(make("button", { type: "button", textContent: action[0], onclick: act }));
  element.append(iconButton("close", "Dismiss", close));
  document.getElementById("notices").append(element);
  while (element.parentNode.children.length > 3) element.parentNode.firstChild.remove();
  // Whoever is about to press its button is waited for.
  const later = () => setTimeout(() => (element.matches(":hover, :focus-within") ? later() : close()), STAYS);
  later();
}
