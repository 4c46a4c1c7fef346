import { h } from "preact";
import { useEffect } from "preact/hooks";
import { useAsked } from "./hooks.ts";
import { useExplorer } from "./panel.ts";
import { Meanwhile, Trouble } from "./parts.tsx";
import { percent } from "./share.ts";
import { headName } from "./wording.ts";

/** The links of annotators over the map, and how well the head finds them. */
export function AlignmentPanel() {
  const explorer = useExplorer();
  const { now, door } = explorer;
  const layer = explorer.layer.value;
  const [map, index] = [now.answer.value?.map ?? null, now.layer.value];
  const head = now.sheet.value?.head ?? now.head.value;
  const name = JSON.stringify([map, index, head]);
  const across = layer?.within === false;
  const { came, problem } = useAsked(across && map !== null ? name : null, name, (_, signal) =>
    door.alignment?.(map ?? "", index, head, signal),
  );
  const found = came.value?.asked === name ? came.value.found : null;
  useEffect(() => {
    explorer.gold.value = found?.links ?? [];
    return () => (explorer.gold.value = []);
  }, [found]);
  if (!layer || !across) {
    return <p class="hint empty">Choose a layer that looks from the target to the source.</p>;
  }
  if (!found) return <Meanwhile problem={problem.value} doing="Comparing the links…" />;
  return (
    <div class="doubt">
      <div class="aside" id="alignment">
        <h3>{headName(layer, head)}</h3>
        <table>
          <tbody>
            {(
              [
                ["Precision", found.precision === null ? "–" : percent(found.precision)],
                ["Recall", percent(found.recall)],
                ["Alignment error rate", percent(found.error)],
              ] as const
            ).map(([what, value]) => (
              <tr key={what}>
                <th scope="row">{what}</th>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <Trouble said={problem.value} />
      </div>
      <p class="note">{found.notes[0]}</p>
    </div>
  );
}
