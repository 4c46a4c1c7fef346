import { type Ramp, onDark, onLight } from "./ramp.ts";

const dark = matchMedia("(prefers-color-scheme: dark)");

/** The ramp that suits the page as it is now. */
export function ramp(): Ramp {
  return dark.matches ? onDark : onLight;
}

/** A colour of the page's own, as its style sheet names it. */
export function tone(name: "ink" | "quiet" | "paper" | "accent" | "line" | "action"): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function whenChanged(redraw: () => void): void {
  dark.addEventListener("change", redraw);
}
