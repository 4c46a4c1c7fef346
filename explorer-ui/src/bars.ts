import type { Label } from "./label.ts";
import { descending } from "./matrix.ts";
import { type Ramp, colour, css } from "./ramp.ts";
import { exact } from "./share.ts";
import type { Order } from "./state.ts";

const LINE = 28; // px of a line
const MORE = 10; // lines that are there beyond those in view

/** How the lines of a list look at one moment. */
interface Shade {
  readonly ramp: Ramp;
  readonly dark: (weight: number, index: number) => number;
  readonly partner: number | null;
}

/** One line per token: its text, a bar from 0 to 100 %, and the number. Only those in view are there. */
export class Bars {
  private labels: readonly Label[] = [];
  private weights: readonly number[] = [];
  private indices: readonly number[] = [];
  private top = -1;
  private shade: Shade | null = null;

  constructor(private readonly list: HTMLElement) {
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
    this.list.scrollTop = Math.max(0, (first + 0.5) * LINE - this.list.clientHeight / 2);
    this.render();
  }

  /** The lines in view, with room above and below for the others. */
  private render(): void {
    const { list, indices } = this;
    const height = Math.max(list.clientHeight, 8 * LINE);
    const from = Math.max(Math.floor(list.scrollTop / LINE) - MORE, 0);
    const to = Math.min(from + Math.ceil(height / LINE) + 2 * MORE, indices.length);
    const first = Math.min(from, Math.max(indices.length - 1, 0));
    list.style.setProperty("--before", `${first * LINE}px`);
    list.style.setProperty("--after", `${(indices.length - to) * LINE}px`);
    list.replaceChildren(...indices.slice(first, to).map((index, at) => this.line(index, first + at)));
  }

  private line(index: number, at: number): HTMLLIElement {
    const { shade, weights, labels } = this;
    const weight = weights[index] ?? 0;
    const line = document.createElement("li");
    line.dataset["index"] = String(index);
    line.setAttribute("aria-posinset", String(at + 1));
    line.setAttribute("aria-setsize", String(weights.length));
    line.classList.toggle("top", index === this.top && weight > 0);
    line.classList.toggle("partner", index === shade?.partner);
    line.classList.toggle("special", labels[index]?.special ?? false);
    const word = document.createElement("bdi");
    word.className = "word";
    word.textContent = labels[index]?.text ?? "";
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
