import { Fragment, h } from "preact";
import type { Adversary, DoubtQuestion, Effect, Effects, Ranked } from "./door.ts";
import { type Names, adversaryKey, changeName, found, lines, plain, question, signed } from "./doubt.ts";
import { useAsked } from "./hooks.ts";
import { isolated } from "./label.ts";
import { useExplorer } from "./panel.ts";
import { Select, Trouble } from "./parts.tsx";
import { exact, percent } from "./share.ts";
import { useSignal } from "./signals.ts";
import { headName } from "./wording.ts";

const MOST_OPTIONS = 60; // of a list of tokens, those around the chosen one

/** What the output does when a head looks elsewhere; of another text, nothing is known at first. */
export function DoubtPanel() {
  return <Doubt key={useExplorer().now.answer.value?.map ?? ""} />;
}

function Doubt() {
  const explorer = useExplorer();
  const { now, door } = explorer;
  const answer = now.answer.value;
  const sought = useSignal<{ own: string } | null>(null);
  const reading = explorer.reading.value;
  const asked = question(
    {
      answer,
      sheet: now.sheet.value,
      layer: now.layer.value,
      head: now.head.value,
      pinned: now.pinned.value,
      output: now.output.value,
      weight: now.weight.value,
      erased: now.erased.value,
    },
    now.joined.value ? (reading?.keySpans ?? null) : null,
  );
  const key = !asked ? "" : JSON.stringify([answer?.map, asked]);
  const { came: effects, problem, waiting } = useAsked(answer?.map == null ? null : asked, key, (asked, signal) =>
    door.doubt?.(answer?.map ?? "", asked, signal),
  );
  const own = !asked || answer?.map == null ? "" : adversaryKey(answer.map, asked);
  const search = sought.value?.own === own && own !== "" ? sought.value : null;
  const share = useSignal(0);
  const { came: adversary, problem: lost, waiting: searching } = useAsked(search && own, search, (_, signal) => {
    if (!asked) return;
    const map = answer?.map ?? "";
    const timer = setInterval(() => door.searched?.(map, asked, signal).then((done) => (share.value = done ?? 0), () => {}), 500);
    return door.adversary?.(map, asked, signal).finally(() => clearInterval(timer));
  });
  if (answer?.doubt === null) {
    return (
      <p class="hint empty">
        This model gives vectors, no output whose probability could change.
      </p>
    );
  }
  if (!asked || !answer?.doubt) return null;
  const layer = answer.layers[asked.layer];
  const sheet = now.sheet.value;
  const tokens = (axis: "rows" | "keys") => (index: number) =>
    !sheet || sheet.coarse ? `${index}` : (sheet[axis][index - sheet.excerpt[axis].from]?.text ?? `${index}`);
  const names: Names = { row: tokens("rows"), key: tokens("keys") };
  const came = effects.value;
  // Whether what came is of the row and the key that are asked for.
  const fresh = came !== null && (asked.key ?? came.found.key) === came.found.key && adversaryKey("", came.asked) === adversaryKey("", asked);
  const present = came?.found.weights[came.found.key] ?? 0; // the weight that the model gives
  const given = now.weight.value ?? Math.round(present * 100);
  const other = adversary.value?.asked === own ? adversary.value.found : null;
  return (
    <div class="doubt">
      <div class="aside">
        <h3>Does the output need {!layer ? "this head" : headName(layer, asked.head)}?</h3>
        <Trouble said={problem.value || lost.value} />
        <label>
          Output{" "}
          <Choice
            id="doubted"
            names={answer.doubt.outputs}
            value={asked.output}
            first={answer.prompt ? 1 : 0}
            choose={(output) => explorer.set({ output })}
          />
        </label>
        <label hidden={!fresh}>
          <span>
            Weight of “<bdi>{names.key(came?.found.key ?? 0)}</bdi>”
          </span>{" "}
          <input
            id="edited"
            type="range"
            min={0}
            max={100}
            value={given}
            aria-valuetext={`${given} %`}
            onInput={({ currentTarget: { valueAsNumber: weight } }) => explorer.set({ weight })}
          />{" "}
          <span class="number">{now.weight.value === null ? exact(present) : `${given} %`}</span>
        </label>
        <label hidden={!fresh}>
          Without{" "}
          <Choice
            id="erased"
            names={answer.doubt.source}
            value={came?.found.erased?.[0] ?? null}
            choose={(erased) => explorer.set({ erased })}
          />
        </label>
        <p class="note">
          A small change does not make the head useless: other heads may stand in for it.
        </p>
      </div>
      {!came ? (
        <p class="hint empty" hidden={problem.value !== ""}>
          Reading the text again…
        </p>
      ) : (
        <>
          <div
            class={waiting.value ? "table-room stale" : "table-room"}
            tabIndex={0}
            role="region"
            aria-label="What the output becomes"
            aria-busy={waiting.value}
          >
            <EffectTable {...came} effects={came.found} names={names} other={other} />
            <p class="note">
              {[came.found.how, ...came.found.changes.map(({ does }) => does)].join(" ")}
            </p>
            <p class="seek">
              {search && searching.value ? (
                <>
                  <span role="status">Searching for other weights of the same output…</span> {percent(share.value)}{" "}
                  <button type="button" onClick={() => (sought.value = null)}>
                    Stop
                  </button>
                </>
              ) : !other ? (
                <button
                  id="adversary"
                  type="button"
                  onClick={({ currentTarget }) => {
                    currentTarget.closest<HTMLElement>(".table-room")?.focus(); // the button goes
                    sought.value = { own };
                  }}
                >
                  Search for other weights of the same output
                </button>
              ) : (
                <span role="status">{found(other)}</span>
              )}
            </p>
          </div>
          <WeightsAndGradients {...came} effects={came.found} names={names} other={other} />
        </>
      )}
    </div>
  );
}

/** A list of tokens, by their places; of many those around the chosen one. */
function Choice({
  id,
  names,
  value,
  first = 0,
  choose,
}: {
  id: string;
  names: readonly string[];
  value: number | null;
  /** The number of the first name. */
  first?: number;
  choose: (index: number) => void;
}) {
  const from = Math.min(Math.max((value ?? 0) - MOST_OPTIONS / 2, 0), Math.max(names.length - MOST_OPTIONS, 0));
  return (
    <Select
      id={id}
      value={value === null ? "" : String(value)}
      options={[
        ...(value === null ? [["", "nothing yet"] as const] : []),
        ...names.slice(from, from + MOST_OPTIONS).map(
          (name, index) => [String(from + index), `${first + from + index}: ${isolated(plain(name))}`] as const,
        ),
      ]}
      choose={(one) => {
        if (one !== "") choose(Number(one));
      }}
    />
  );
}

interface Shown {
  readonly asked: DoubtQuestion;
  readonly effects: Effects;
  readonly names: Names;
  readonly other: Adversary | null;
}

function EffectTable({ asked, effects, names, other }: Shown) {
  const explorer = useExplorer();
  const answer = explorer.now.answer.value;
  if (!answer) return null;
  const changes: readonly Effect[] = [...effects.changes, ...(other?.changes ?? [])];
  return (
    <table id="effects">
      <caption>
        What becomes of the output “<bdi>{plain(effects.output)}</bdi>”
      </caption>
      <thead>
        <tr>
          <th scope="col">change</th>
          <th scope="col" title="Change of the logarithm of the probability, in nats">
            Δ log p
          </th>
          <th scope="col">p</th>
          <th scope="col">five most probable</th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row">as it is</th>
          <td />
          <td>{exact(effects.probability)}</td>
          <TopFive top={effects.top} own={effects.output} />
        </tr>
        {changes.map((effect) => {
          return (
            <tr key={effect.name} data-change={effect.name}>
              <th scope="row" title={effect.does}>
                {changeName(effect, effects, asked, answer, names)}
              </th>
              {effect.impossible !== undefined ? (
                <td colSpan={3} class="impossible">
                  {effect.impossible}
                </td>
              ) : (
                <>
                  <td>
                    {signed(effect.delta)}
                    {effect.spread != null && <small> ± {effect.spread.toFixed(2)}</small>}
                  </td>
                  <td>{exact(effect.probability ?? 0)}</td>
                  <TopFive top={effect.top ?? []} own={effects.output} />
                </>
              )}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function TopFive({ top, own }: { top: Ranked; own: string }) {
  return (
    <td class="five">
      {top.map(([name, probability], index) => (
        <span key={index} class={name === own ? "own" : undefined}>
          <bdi>{plain(name)}</bdi> {percent(probability)}
        </span>
      ))}
    </td>
  );
}

/** The weights of the row beside the gradient of the output with respect to each of them. */
function WeightsAndGradients({ asked, effects, names, other }: Shown) {
  const { shown, left } = lines(effects);
  const most = Math.max(...shown.map(({ gradient }) => Math.abs(gradient ?? 0)), 1e-12);
  return (
    <figure class="gradients" tabIndex={0}>
      <figcaption>
        Row of “<bdi>{names.row(asked.row)}</bdi>”: each <b>weight</b>
        {other !== null && <>, the <b>other weight</b></>} and the <b>gradient</b> of log p with respect to it
      </figcaption>
      <ol id="gradients">
        {shown.map(({ key, weight, gradient }) => (
          <li key={key} class={key === effects.key ? "gradient partner" : "gradient"}>
            <bdi class="word">{names.key(key)}</bdi>
            <span class="track">
              <span class="bar" style={{ width: `${(weight * 100).toFixed(2)}%` }} />
              {other !== null && (
                <span class="bar other" style={{ width: `${((other.weights[key] ?? 0) * 100).toFixed(2)}%` }} />
              )}
            </span>
            <span class="number">{exact(weight)}</span>
            <span class="track middle">
              {gradient !== null && (
                <span
                  class={gradient < 0 ? "bar down" : "bar up"}
                  style={{ width: `${((Math.abs(gradient) / most) * 50).toFixed(2)}%` }}
                />
              )}
            </span>
            <span class="number">{gradient === null ? "–" : signed(gradient)}</span>
          </li>
        ))}
      </ol>
      <p class="note">
        {left > 0 && `${left} keys of less weight and gradient are left out. `}A gradient says what a little more weight
        would do. Pin a cell of the map to choose another row.
      </p>
    </figure>
  );
}
