import { type Ramp, onDark, onLight, rooted } from "./ramp.ts";

const faint = { onDark: rooted(onDark), onLight: rooted(onLight) };
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The ramp that suits the page as it is now, and a map as coarse as this. */
export function ramp(coarse: boolean): Ramp {
  const ramps = coarse ? faint : { onDark, onLight };
  return dark.matches ? ramps.onDark : ramps.onLight;
}

/** A colour of the page's own, as its style sheet names it. */
export function tone(name: "ink" | "quiet" | "paper" | "accent"): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function whenChanged(redraw: () => void): void {
  dark.addEventListener("change", redraw);
}
