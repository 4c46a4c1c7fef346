/** A weight as a person reads it: 0.873 → "87 %"; "<1 %" is something, "0 %" is nothing. */
export function percent(weight: number): string {
  if (weight === 0) return "0 %";
  return weight < 0.01 ? "<1 %" : `${Math.round(weight * 100)} %`;
}

/** For narrow places: 0.873 → "87"; what is less than one in a hundred is left to the list. */
export function short(weight: number): string {
  return Math.abs(weight) < 0.01 ? "" : String(Math.round(weight * 100)).replace("-", "−");
}

/** With one decimal, for lists. */
export function exact(weight: number): string {
  if (weight === 0) return "0 %";
  return weight < 0.001 ? "<0.1 %" : `${(weight * 100).toFixed(1)} %`;
}
