import type { Answer, Facts } from "./door.ts";
import { isolated } from "./label.ts";
import { top } from "./matrix.ts";
import { percent } from "./share.ts";
import type { Place } from "./state.ts";

/** The facts about a model as short phrases; what is not known is not said. */
export function phrases(facts: Facts): string[] {
  const said: string[] = [];
  if (facts.name) said.push(facts.name);
  if (facts.source_language && facts.target_language) {
    said.push(`${language(facts.source_language)} → ${language(facts.target_language)}`);
  }
  if (facts.attention === "none") said.push("no attention");
  else if (facts.attention) said.push(`${facts.attention} attention`);
  if (typeof facts.parameters === "number") said.push(`${amount(facts.parameters)} parameters`);
  if (typeof facts.bleu === "number") said.push(`validation BLEU ${facts.bleu.toFixed(1)}`);
  return said;
}

/** How the BLEU was measured: a score does not travel alone. */
export function signature(facts: Facts): string {
  if (typeof facts.bleu !== "number") return "";
  const sentences = facts.bleu_sentences ? ` on ${facts.bleu_sentences} sentences` : "";
  return `BLEU${sentences}: ${facts.bleu_signature ?? "signature unknown"}`;
}

/** What is said in place of a map. */
export function absence(answer: Answer): string {
  return answer.map === null && answer.blank !== ""
    ? `There is no looking to show: ${answer.blank}.`
    : "";
}

/** "de" → "German"; what is no language code stays as it is. */
export function language(code: string): string {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** 3,141,592 → "3.1 million". */
export function amount(count: number): string {
  if (count >= 999.5e6) return `${(count / 1e9).toFixed(1)} billion`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} million`;
  return count.toLocaleString("en");
}

/** What a screen reader says of a word: what it looked at most, or what looked at it most. */
export function summary(place: Place, word: string, weights: readonly number[], across: string[]) {
  const most = top(weights, 3)
    .filter((index) => (weights[index] ?? 0) >= 0.005)
    .map((index) => `${isolated(across[index] ?? "")} ${percent(weights[index] ?? 0)}`);
  const verb = place.side === "target" ? "looked at" : "was looked at by";
  return `${isolated(word)}: ${verb} ${most.length > 0 ? most.join(", ") : "nothing in particular"}`;
}

/** The heading over the numbers. */
export function title(place: Place, word: string): string {
  return place.side === "target"
    ? `Where “${isolated(word)}” looked`
    : `Which words looked at “${isolated(word)}”`;
}

/** What the numbers add up to, which is not the same in both directions. */
export function note(place: Place): string {
  return place.side === "target"
    ? "Of each source token, the share of this word’s attention; together 100 %."
    : "Of each word of the translation, the share of its own attention that went here.";
}
