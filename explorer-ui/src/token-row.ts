import { type Label, direction } from "./label.ts";
import { type Ramp, colour, css, ink } from "./ramp.ts";
import { short } from "./share.ts";
import type { Place, Side } from "./state.ts";

/** What a reader can do with a word. */
export interface Handling {
  point(place: Place): void;
  pin(place: Place): void;
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

/** One sentence as a row of buttons: one stop for Tab, arrow keys inside. */
export class TokenRow {
  private buttons: HTMLButtonElement[] = [];

  constructor(
    private readonly row: HTMLElement,
    private readonly side: Side,
    private readonly handling: Handling,
  ) {
    row.addEventListener("keydown", (event) => this.moved(event));
  }

  /** A new sentence. `spoken` is what a screen reader says of each token. */
  fill(labels: readonly Label[], spoken: readonly string[]): void {
    this.buttons = labels.map((label, index) => this.button(label, index, spoken[index] ?? ""));
    this.row.replaceChildren(...this.buttons);
    this.row.dir = direction(labels);
    this.reach(0);
  }

  shade(shades: Shades, ramp: Ramp): void {
    this.buttons.forEach((button, index) => {
      const weight = shades.weights?.[index] ?? null;
      const share = button.querySelector(".share");
      if (share) share.textContent = weight === null ? "" : short(weight);
      const paint = weight === null ? null : colour(ramp, shades.dark(weight, index));
      button.style.setProperty("--paint", paint ? css(paint) : "transparent");
      button.style.setProperty("--on-paint", paint ? ink(paint) : "inherit");
      button.classList.toggle("active", index === shades.active);
      button.classList.toggle("partner", index === shades.partner);
      button.setAttribute("aria-pressed", String(index === shades.pinned));
    });
    if (shades.active !== null && !this.row.contains(document.activeElement)) {
      this.reach(shades.active);
    }
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
    button.append(word, share);
    const place: Place = { side: this.side, index };
    button.addEventListener("pointerenter", () => this.handling.point(place));
    button.addEventListener("focus", () => {
      this.reach(index);
      this.handling.point(place);
    });
    button.addEventListener("click", () => this.handling.pin(place));
    return button;
  }

  /** Make this token the one that Tab comes to. */
  private reach(index: number): void {
    this.buttons.forEach((button, i) => (button.tabIndex = i === index ? 0 : -1));
  }

  private moved(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const here = this.buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (here < 0) return;
    const onward = getComputedStyle(this.row).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const last = this.buttons.length - 1;
    const next = {
      ArrowLeft: onward === "ArrowLeft" ? here + 1 : here - 1,
      ArrowRight: onward === "ArrowRight" ? here + 1 : here - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.buttons[Math.min(Math.max(next, 0), last)]?.focus();
  }
}
