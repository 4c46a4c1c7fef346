import type { Label } from "./label.ts";
import { descending } from "./matrix.ts";
import { type Ramp, colour, css } from "./ramp.ts";
import { exact } from "./share.ts";
import type { Order } from "./state.ts";

const LINE = 26; // px of a line
const COLUMN = 260; // px of a column, where several fit beside each other
const MORE = 8; // lines that are there beyond those in view

/** How the lines of a list look at one moment. */
interface Shade {
  readonly ramp: Ramp;
  readonly dark: (weight: number, index: number) => number;
  readonly partner: number | null;
}

/**
 * One line per token: its text, a bar from 0 to 100 %, and the number. Where there is room, lines
 * go on in the next column. Only those in view are there.
 */
export class Bars {
  private labels: readonly Label[] = [];
  private weights: readonly number[] = [];
  private indices: readonly number[] = [];
  private top = -1;
  private shade: Shade | null = null;
  private readonly before = document.createElement("li");
  private readonly after = document.createElement("li");

  constructor(private readonly list: HTMLElement) {
    for (const room of [this.before, this.after]) {
      room.className = "room";
      room.ariaHidden = "true";
    }
    list.addEventListener("scroll", () => this.render());
    new ResizeObserver(() => this.render()).observe(list);
  }

  draw(labels: readonly Label[], weights: readonly number[], order: Order, shade: Shade): void {
    const sorted = descending(weights);
    [this.labels, this.weights, this.shade] = [labels, weights, shade];
    this.indices = order === "weight" ? sorted : weights.map((_, index) => index);
    this.top = sorted[0] ?? -1;
    this.render();
    // In a long list the largest is brought into view, without moving the page.
    const first = this.indices.indexOf(shade.partner ?? this.top);
    const { list, each } = this;
    if (each === null) list.scrollTop = Math.max(0, (first + 0.5) * LINE - list.clientHeight / 2);
    else list.scrollLeft = Math.max(0, (Math.floor(first / each) + 0.5) * COLUMN - list.clientWidth / 2);
    this.render();
  }

  /** How many lines a column has; null where there is one column for all. */
  private get each(): number | null {
    const { clientWidth, clientHeight } = this.list;
    return clientWidth >= 2 * COLUMN ? Math.max(Math.floor(clientHeight / LINE), 1) : null;
  }

  /** The lines in view, with room before and after for the others. */
  private render(): void {
    const { list, indices, each } = this;
    const [size, step, offset, shown] =
      each === null
        ? [1, LINE, list.scrollTop, Math.max(list.clientHeight, 8 * LINE)]
        : [each, COLUMN, list.scrollLeft, list.clientWidth];
    const [steps, more] = [Math.ceil(indices.length / size), each === null ? MORE : 1];
    const from = Math.min(Math.max(Math.floor(offset / step) - more, 0), Math.max(steps - 1, 0));
    const to = Math.min(from + Math.ceil(shown / step) + 2 * more, steps);
    list.classList.toggle("columns", each !== null);
    list.style.setProperty("--lines", String(size));
    this.before.style.setProperty("--room", `${from * step}px`);
    this.after.style.setProperty("--room", `${(steps - to) * step}px`);
    const lines = indices.slice(from * size, to * size).map((index, at) => this.line(index, from * size + at));
    const before = from > 0 ? [this.before] : [];
    const after = to < steps ? [this.after] : [];
    list.replaceChildren(...before, ...lines, ...after);
  }

  private line(index: number, at: number): HTMLLIElement {
    const { shade, weights, labels } = this;
    const weight = weights[index] ?? 0;
    const line = document.createElement("li");
    line.className = "line";
    line.dataset["index"] = String(index);
    line.setAttribute("aria-posinset", String(at + 1));
    line.setAttribute("aria-setsize", String(weights.length));
    line.classList.toggle("top", index === this.top && weight > 0);
    line.classList.toggle("partner", index === shade?.partner);
    line.classList.toggle("special", labels[index]?.special ?? false);
    const word = document.createElement("bdi");
    word.className = "word";
    word.textContent = labels[index]?.text ?? "";
    const whole = labels[index]?.whole;
    if (whole !== undefined) word.title = whole.slice(0, 20_000);
    const track = document.createElement("span");
    track.className = "track";
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.style.setProperty("--share", `${(weight * 100).toFixed(2)}%`);
    if (shade) bar.style.setProperty("--paint", css(colour(shade.ramp, shade.dark(weight, index))));
    track.append(bar);
    const number = document.createElement("span");
    number.className = "number";
    number.textContent = exact(weight);
    line.append(word, track, number);
    return line;
  }
}
