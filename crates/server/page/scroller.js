// The place of the conversation: it follows what is written at its end, until the reader goes elsewhere.

/** So near to the end counts as the end, in pixels. */
const NEAR = 48;

export class Scroller {
  #view;
  #jump;
  #last = 0;
  /** True while the end is followed. */
  follows = true;
  /** False where there is no conversation to go to the end of. */
  isLog = () => true;

  /** @param view the element that scrolls @param content what grows in it @param jump the button that leads to the end */
  constructor(view, content, jump) {
    this.#view = view;
    this.#jump = jump;
    view.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // A wheel or a key that goes up stops it at once, before the next piece pulls the place back.
    view.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.#leave(), { passive: true });
    view.addEventListener("keydown", ({ key }) => ["ArrowUp", "PageUp", "Home"].includes(key) && this.#leave());
    jump.addEventListener("click", () => this.toEnd());
    const watch = new ResizeObserver(() => this.grown());
    watch.observe(content);
    watch.observe(view);
  }

  get #rest() {
    const { scrollHeight, scrollTop, clientHeight } = this.#view;
    return scrollHeight - scrollTop - clientHeight;
  }

  #leave() {
    if (this.#view.scrollHeight <= this.#view.clientHeight) return;
    this.follows = false;
    this.#show();
  }

  #scrolled() {
    const { scrollTop } = this.#view;
    if (scrollTop < this.#last - 1 && this.#rest > NEAR) this.follows = false;
    else if (this.#rest <= 2 || (this.#rest <= NEAR && scrollTop > this.#last)) this.follows = true;
    this.#last = scrollTop;
    this.#show();
  }

  #show() {
    this.#jump.hidden = this.follows || this.#rest <= NEAR || !this.isLog();
  }

  /** The content has another height. */
  grown() {
    if (this.follows) this.#view.scrollTop = this.#view.scrollHeight;
    this.#last = this.#view.scrollTop;
    this.#show();
  }

  /** Goes to the beginning, and stays there. */
  toBegin() {
    this.follows = false;
    this.#view.scrollTop = 0;
    this.grown();
  }

  /** Goes to the end, and follows it. */
  toEnd() {
    this.follows = true;
    this.grown();
  }
}
