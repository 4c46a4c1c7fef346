import { type Label } from "./label.ts";
import { type Ramp, colour, css, ink } from "./ramp.ts";
import { short } from "./share.ts";
/** What a reader can do with a word, by its index. */
export interface Handlers {
  point(index: number): void;
  pin(index: number): void;
}

/** How a row looks at one moment: a weight and its shade per token, or none where it is asked. */
export interface Shades {
  readonly weights: readonly number[] | null;
  /** How dark each of them is, from 0 to 1. */
  readonly dark: (weight: number, index: number) => number;
  readonly active: number | null;
  readonly pinned: number | null;
  readonly partner: number | null;
}

const MOST = 120; // words that are there at a time; the others are counted beside them

/** One sentence as a row of buttons: one stop for Tab, arrow keys inside. */
export class TokenRow {
  private labels: readonly Label[] = [];
  private first = 0;
  private spoken: (index: number) => string = () => "";
  private buttons: HTMLButtonElement[] = [];
  private painted: string[] = []; // the background of each button
  private from = 0; // of `labels`, the first that is there
  private shades: Shades | null = null;
  private ramp: Ramp | null = null;

  constructor(
    private readonly row: HTMLElement,
    private readonly handlers: Handlers,
  ) {
    row.addEventListener("keydown", (event) => this.moved(event));
  }

  /**
   * New words, of which the first has this index, and the direction in which they are read; `spoken` is
   * what a screen reader says of one.
   */
  fill(
    labels: readonly Label[],
    first: number,
    direction: "ltr" | "rtl",
    spoken: (index: number) => string,
  ): void {
    [this.labels, this.first, this.spoken] = [labels, first, spoken];
    this.row.dir = direction;
    this.build(0);
  }

  shade(shades: Shades, ramp: Ramp): void {
    [this.shades, this.ramp] = [shades, ramp];
    if (shades.active !== null && !this.row.matches(":focus-within")) {
      this.bring(shades.active);
      this.reach(shades.active);
    }
    this.paint();
  }

  private paint(): void {
    const { shades, ramp } = this;
    if (shades === null || ramp === null) return;
    this.buttons.forEach((button, at) => {
      const index = this.first + this.from + at;
      const weight = shades.weights?.[index] ?? null;
      const share = button.lastElementChild;
      const number = weight === null ? "" : short(weight);
      if (share !== null && share.getAttribute("data-share") !== number) share.setAttribute("data-share", number);
      const paint = weight === null ? null : colour(ramp, shades.dark(weight, index));
      const background = paint ? css(paint) : "transparent";
      if (this.painted[at] !== background) {
        this.painted[at] = background;
        // No custom properties: those make the browser style all that is inside anew.
        button.style.setProperty("background-color", background);
        button.style.setProperty("color", paint ? ink(paint) : "");
      }
      button.classList.toggle("active", index === shades.active);
      button.classList.toggle("partner", index === shades.partner);
      const pressed = String(index === shades.pinned);
      if (button.ariaPressed !== pressed) button.ariaPressed = pressed;
    });
  }

  /** The words from this one on, as many as there may be, and how many there are on either side. */
  private build(from: number): void {
    const most = Math.max(this.labels.length - MOST, 0);
    this.from = Math.min(Math.max(from, 0), most);
    this.painted = [];
    const shown = this.labels.slice(this.from, this.from + MOST);
    this.buttons = shown.map((label, at) => {
      const index = this.first + this.from + at;
      const button = this.button(label, index, this.spoken(index));
      button.classList.toggle("continues", shown[at + 1]?.begins === false);
      return button;
    });
    const [before, after] = [this.from, this.labels.length - this.from - shown.length];
    const count = (number: number) => {
      const said = document.createElement("span");
      said.className = "more";
      said.textContent = `${number.toLocaleString("en")} more`;
      return number > 0 ? [said] : [];
    };
    this.row.replaceChildren(...count(before), ...this.buttons, ...count(after));
    this.reach(this.first + this.from);
  }

  /** Have this word among those that are there. */
  private bring(index: number): void {
    const at = index - this.first;
    if (at < 0 || at >= this.labels.length) return;
    if (at >= this.from && at < this.from + this.buttons.length) return;
    this.build(at - Math.floor(MOST / 2));
  }

  private button(label: Label, index: number, spoken: string): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "token";
    button.classList.toggle("begins", label.begins);
    button.classList.toggle("special", label.special);
    button.setAttribute("aria-label", spoken);
    const word = document.createElement("bdi");
    word.textContent = label.text;
    const share = document.createElement("span");
    share.className = "share";
    share.ariaHidden = "true"; // the name of the button says more; the number is drawn, no text
    button.append(word, share);
    if (label.whole !== undefined) button.title = label.whole.slice(0, 20_000);
    button.addEventListener("pointerenter", () => this.handlers.point(index));
    button.addEventListener("focus", () => {
      this.reach(index);
      this.handlers.point(index);
    });
    button.addEventListener("click", () => this.handlers.pin(index));
    return button;
  }

  /** Make this token the one that Tab comes to. */
  private reach(index: number): void {
    const at = index - this.first - this.from;
    this.buttons.forEach((button, i) => (button.tabIndex = i === at ? 0 : -1));
  }

  private moved(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const here = this.buttons.findIndex((button) => button.matches(":focus"));
    if (here < 0) return;
    const onward = getComputedStyle(this.row).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const [at, last] = [here + this.from, this.labels.length - 1];
    const next = {
      ArrowLeft: onward === "ArrowLeft" ? at + 1 : at - 1,
      ArrowRight: onward === "ArrowRight" ? at + 1 : at - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const chosen = Math.min(Math.max(next, 0), last);
    this.bring(this.first + chosen);
    this.paint();
    this.buttons[chosen - this.from]?.focus();
  }
}
