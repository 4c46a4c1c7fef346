import { arrange } from "./dom.ts";
import { type Label, alike } from "./label.ts";
import { type Ramp, colour, css, ink } from "./ramp.ts";
import { short } from "./share.ts";

/** What a reader can do with a word, by its index. */
export interface Handlers {
  point(index: number): void;
  /** `beside`: together with those that are kept. */
  pin(index: number, beside: boolean): void;
}

/** How a row looks at one moment: a weight and its shade per token, or none where it is asked. */
export interface Shades {
  readonly weights: readonly number[] | null;
  /** How dark each of them is, from 0 to 1. */
  readonly dark: (weight: number, index: number) => number;
  readonly active: number | null;
  readonly pinned: readonly number[];
  readonly partner: number | null;
}

const MOST = 120; // words that are there at a time; the others are counted beside them
const COLOURS = 64; // of words: nobody tells more of them apart, and fewer change with each weight

/** A word that is there, and how it looks. */
interface Word {
  readonly button: HTMLButtonElement;
  readonly share: HTMLElement;
  look: string;
  ink: string;
}

/** One sentence as a row of buttons: one stop for Tab, arrow keys inside. */
export class TokenRow {
  private labels: readonly Label[] = [];
  private first = 0;
  private given = 0;
  private spoken: (index: number) => string = () => "";
  private words = new Map<number, Word>(); // by their indices, in order
  private reached: HTMLButtonElement | null = null; // where Tab comes to
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
   * what a screen reader says of one. Those before `given` are a prompt.
   */
  fill(
    labels: readonly Label[],
    first: number,
    direction: "ltr" | "rtl",
    given: number,
    spoken: (index: number) => string,
  ): void {
    const same =
      first === this.first &&
      given === this.given &&
      labels.length === this.labels.length &&
      labels.every((label, at) => alike(label, this.labels[at]));
    [this.labels, this.first, this.given, this.spoken] = [labels, first, given, spoken];
    if (this.row.dir !== direction) this.row.dir = direction;
    if (same) {
      // The same words, as of another head: only what is said of them is new.
      for (const [index, { button }] of this.words) button.ariaLabel = spoken(index);
      return;
    }
    this.words.clear();
    this.build(0);
    this.paint(); // what is known of the weights may have come before the words
  }

  shade(shades: Shades, ramp: Ramp): void {
    const anew = ramp !== this.ramp;
    [this.shades, this.ramp] = [shades, ramp];
    if (shades.active !== null && !this.row.matches(":focus-within")) {
      this.bring(shades.active);
      this.reach(shades.active);
    }
    this.paint(anew);
  }

  private paint(anew = false): void {
    const { shades, ramp } = this;
    if (!shades || !ramp) return;
    for (const [index, word] of this.words) {
      const weight = shades.weights?.[index] ?? null;
      const number = weight === null ? "" : short(weight);
      const dark = weight === null ? 0 : Math.round(shades.dark(weight, index) * COLOURS) / COLOURS;
      const marks = [index === shades.active, index === shades.partner, shades.pinned.includes(index)] as const;
      const look = `${weight === null ? "" : dark} ${number} ${marks.join()}`;
      if (look === word.look && !anew) continue;
      word.look = look;
      const paint = weight === null ? null : colour(ramp, dark);
      const { button, share } = word;
      if (share.dataset["share"] !== number) share.dataset["share"] = number;
      // No custom properties: those make the browser style all that is inside anew.
      button.style.setProperty("background-color", paint ? css(paint) : "");
      const tone = paint ? ink(paint) : "";
      if (tone !== word.ink) button.style.setProperty("color", (word.ink = tone));
      button.classList.toggle("active", marks[0]);
      button.classList.toggle("partner", marks[1]);
      const pressed = String(marks[2]);
      if (button.ariaPressed !== pressed) button.ariaPressed = pressed;
    }
  }

  /** The words from this one on, as many as there may be, and how many there are on either side. */
  private build(from: number): void {
    const most = Math.max(this.labels.length - MOST, 0);
    this.from = Math.min(Math.max(from, 0), most);
    const shown = this.labels.slice(this.from, this.from + MOST);
    const there = this.words;
    this.words = new Map(
      shown.map((label, at) => {
        const index = this.first + this.from + at;
        return [index, there.get(index) ?? this.word(label, index)];
      }),
    );
    const [before, after] = [this.from, this.labels.length - this.from - shown.length];
    const count = (number: number) => {
      const said = document.createElement("span");
      said.className = "more";
      said.textContent = `${number.toLocaleString("en")} more`;
      return number > 0 ? [said] : [];
    };
    const buttons = [...this.words.values()].map(({ button }) => button);
    arrange(this.row, [...count(before), ...buttons, ...count(after)]);
    this.reach(this.first + this.from);
  }

  /** Have this word among those that are there. */
  private bring(index: number): void {
    const at = index - this.first;
    if (at < 0 || at >= this.labels.length) return;
    if (this.words.has(index)) return;
    this.build(at - Math.floor(MOST / 2));
  }

  private word(label: Label, index: number): Word {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "token";
    button.classList.toggle("begins", label.begins);
    button.classList.toggle("special", label.special);
    button.classList.toggle("given", index < this.given);
    button.classList.toggle("continues", this.labels[index - this.first + 1]?.begins === false);
    button.tabIndex = -1;
    button.ariaLabel = this.spoken(index);
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
    button.addEventListener("click", (event) => this.handlers.pin(index, event.shiftKey || event.ctrlKey || event.metaKey));
    return { button, share, look: "", ink: "" };
  }

  /** Make this token the one that Tab comes to. */
  private reach(index: number): void {
    const next = this.words.get(index)?.button ?? null;
    if (next === this.reached) return;
    if (this.reached) this.reached.tabIndex = -1;
    if (next) next.tabIndex = 0;
    this.reached = next;
  }

  private moved(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const here = [...this.words].find(([, { button }]) => button.matches(":focus"))?.[0];
    if (here === undefined) return;
    const onward = getComputedStyle(this.row).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const [at, last] = [here - this.first, this.labels.length - 1];
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
    this.words.get(this.first + chosen)?.button.focus();
  }
}
