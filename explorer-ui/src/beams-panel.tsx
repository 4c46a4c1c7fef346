import { Fragment, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Branch, logarithm, prefix, reading, tree } from "./beams.ts";
import type { Beams, Output } from "./door.ts";
import { useAsked } from "./hooks.ts";
import { isolated } from "./label.ts";
import { useExplorer } from "./panel.ts";
import { Meanwhile, Trouble } from "./parts.tsx";
import { exact, percent } from "./share.ts";
import { useSignal } from "./signals.ts";

const MOST_LINES = 20; // outputs whose alternatives are listed at a time

/** What else the model could have written: the hypotheses of its search, and other tokens. */
export function BeamsPanel() {
  const explorer = useExplorer();
  const { now, door } = explorer;
  const room = useRef<HTMLDivElement>(null);
  const answer = now.answer.value;
  const map = answer?.map ?? null;
  const { came, problem } = useAsked(map, map ?? "", (map, signal) => door.beams?.(map, signal));
  const known = came.value;
  if (!known || !answer) {
    return <Meanwhile problem={problem.value} doing="Searching…" />;
  }
  const beams = known.found;
  const forced = now.forced.value;
  const stale = known.asked !== map || now.translating.value !== null;
  const choose = (ids: readonly number[]) => {
    // The button goes when the answer comes; by then the reader may be elsewhere.
    room.current?.focus();
    explorer.choose(ids);
  };
  const written = beams.outputs.map(({ token }) => token);
  const [best] = beams.hypotheses;
  return (
    <div class="doubt beams">
      <div class="aside">
        <h3>What else could it have written?</h3>
        <p>
          {beams.notes[0]}
          {best !== undefined && best.tokens.join(" ") !== written.join(" ") && " What stands above was written without such a search."}
        </p>
        {forced.length > 0 && (
          <p>
            You chose how this one begins: “<bdi>{reading(written, 0, forced.length)}</bdi>”.{" "}
            <button id="free" type="button" onClick={() => choose([])}>
              Let the model choose
            </button>
          </p>
        )}
        <Growth />
        <p class="note">{beams.notes[1]}</p>
        <Trouble said={problem.value} />
      </div>
      <div class={stale ? "tree stale" : "tree"} tabIndex={0} role="region" aria-label="Hypotheses" aria-busy={stale}>
        <Branches branches={tree(beams.hypotheses)} beams={beams} />
      </div>
      <div class={stale ? "table-room stale" : "table-room"} ref={room} tabIndex={0} role="region" aria-label="Alternatives" aria-busy={stale}>
        <Alternatives beams={beams} forced={forced.length} choose={choose} />
      </div>
    </div>
  );
}

/** A slider by which the map grows, word by word. */
function Growth() {
  const explorer = useExplorer();
  const words = explorer.written.value;
  const most = words.length;
  const rows = explorer.now.answer.value?.doubt?.outputs ?? [];
  if (most === 0) return <p class="note">Choose a layer whose rows are the translation.</p>;
  const shown = Math.min(explorer.now.grown.value ?? most, most);
  const { from = 0, to = 0 } = words[shown - 1] ?? {};
  const said = `${shown} of ${most}: ${isolated(reading(rows, from, to))}`;
  return (
    <label class="slider">
      Words on the map <output>{said}</output>
      <input
        id="grown"
        type="range"
        min={1}
        max={most}
        value={shown}
        aria-valuetext={said}
        onInput={({ currentTarget: { valueAsNumber: grown } }) => explorer.set({ grown: grown < most ? grown : null })}
      />
    </label>
  );
}

function Branches({ branches, beams }: { branches: readonly Branch[]; beams: Beams }) {
  return (
    <ul>
      {branches.map(({ text, next, leaf }, index) => {
        const ended = leaf === null ? undefined : beams.hypotheses[leaf];
        return (
          <li key={index}>
            <span class={leaf === 0 ? "words own" : "words"}>
              <bdi>{text}</bdi>
              {ended !== undefined && (
                <span class="number" data-hypothesis={leaf}>
                  score {logarithm(ended.score)} · log p {logarithm(ended.log_probability)}
                  {!ended.finished && " · not ended"}
                </span>
              )}
            </span>
            {next.length > 0 && <Branches branches={next} beams={beams} />}
          </li>
        );
      })}
    </ul>
  );
}

function name(token: string): string {
  return reading([token], 0, 1);
}

interface Shown {
  readonly beams: Beams;
  readonly forced: number;
  readonly choose: (ids: readonly number[]) => void;
}

/** For each token that was written the most probable ones in its place. */
function Alternatives({ beams, forced, choose }: Shown) {
  const explorer = useExplorer();
  const { now } = explorer;
  const turned = useSignal<number | null>(null);
  const { outputs } = beams;
  const layer = now.layer.value;
  const pinned = now.answer.value?.doubt?.rows[layer] === true ? now.pinned.value : null;
  const index = pinned?.side === "target" ? pinned.index : pinned?.partner;
  const row = index === undefined ? null : index + (now.sheet.value?.excerpt.rows.from ?? 0);
  useEffect(() => void (turned.value = null), [beams, row]);
  const pages = Math.ceil(outputs.length / MOST_LINES);
  const page = Math.min(turned.value ?? Math.floor((row ?? 0) / MOST_LINES), pages - 1);
  const from = Math.max(page, 0) * MOST_LINES;
  const shown = outputs.slice(from, from + MOST_LINES);
  return (
    <>
      <table id="alternatives">
        <caption>{beams.notes[2]}</caption>
        <thead>
          <tr>
            <th scope="col">written</th>
            <th scope="col">p</th>
            <th scope="col">most probable</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((output, index) => (
            <tr key={from + index} class={from + index === row ? "partner" : undefined} data-output={from + index}>
              <th scope="row">
                <bdi>{name(output.token)}</bdi>
                {from + index < forced && <small> (chosen)</small>}
              </th>
              <td>{exact(Math.exp(output.log_probability ?? -Infinity))}</td>
              <td class="five">
                {output.top.map((one) => (
                  <Token key={one.id} output={output} one={one} choose={() => choose(prefix(beams, from + index, one.id))} />
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {pages > 1 && (
        <p class="buttons">
          <button type="button" disabled={page === 0} onClick={() => (turned.value = page - 1)}>
            Earlier
          </button>
          <button type="button" disabled={page === pages - 1} onClick={() => (turned.value = page + 1)}>
            Later
          </button>
          <span class="note">
            {from}–{from + shown.length - 1} of {outputs.length}
          </span>
        </p>
      )}
    </>
  );
}

function Token({ output, one, choose }: { output: Output; one: Output["top"][number]; choose: () => void }) {
  const own = one.id === output.id;
  const said = (
    <>
      <bdi>{name(one.token)}</bdi> {percent(one.probability)}
    </>
  );
  if (own || !one.open) return <span class={own ? "own" : undefined}>{said}</span>;
  return (
    <button type="button" class="link" onClick={choose}>
      {said}
    </button>
  );
}
