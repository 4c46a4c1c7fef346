import type { Label } from "./label.ts";
import { descending } from "./matrix.ts";
import { type Ramp, colour, css } from "./ramp.ts";
import { exact } from "./share.ts";
import type { Order } from "./state.ts";

/** One line per token: its text, a bar from 0 to 100 %, and the number. */
export class Bars {
  constructor(private readonly list: HTMLElement) {}

  draw(
    labels: readonly Label[],
    weights: readonly number[],
    order: Order,
    shade: { ramp: Ramp; dark: (weight: number, index: number) => number; partner: number | null },
  ): void {
    const sorted = descending(weights);
    const indices = order === "weight" ? sorted : weights.map((_, index) => index);
    const lines = indices.map((index) => {
      const weight = weights[index] ?? 0;
      const line = document.createElement("li");
      line.dataset["index"] = String(index);
      line.classList.toggle("top", index === sorted[0] && weight > 0);
      line.classList.toggle("partner", index === shade.partner);
      line.classList.toggle("special", labels[index]?.special ?? false);
      const word = document.createElement("bdi");
      word.className = "word";
      word.textContent = labels[index]?.text ?? "";
      const track = document.createElement("span");
      track.className = "track";
      const bar = document.createElement("span");
      bar.className = "bar";
      bar.style.setProperty("--share", `${(weight * 100).toFixed(2)}%`);
      const paint = colour(shade.ramp, shade.dark(weight, index));
      bar.style.setProperty("--paint", css(paint));
      track.append(bar);
      const number = document.createElement("span");
      number.className = "number";
      number.textContent = exact(weight);
      line.append(word, track, number);
      return line;
    });
    this.list.replaceChildren(...lines);
    // In a long list the largest is brought into view, without moving the page.
    const first = this.list.querySelector<HTMLElement>(".partner") ?? this.top();
    const middle = (first?.offsetTop ?? 0) - this.list.offsetTop - this.list.clientHeight / 2;
    this.list.scrollTop = Math.max(0, middle);
  }

  private top(): HTMLElement | null {
    return this.list.querySelector<HTMLElement>(".top");
  }
}
