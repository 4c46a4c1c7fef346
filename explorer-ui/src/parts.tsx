import { h } from "preact";

/** What went wrong; nothing where that is empty. */
export function Trouble({ said }: { said: string }) {
  return (
    <p class="problem" role="alert" hidden={said === ""}>
      {said}
    </p>
  );
}

/** What stands in a panel while there is no answer: what is done meanwhile, or what is wrong. */
export function Meanwhile({ problem, doing }: { problem: string; doing: string }) {
  return (
    <p class={problem ? "problem" : "hint empty"} role={problem ? "alert" : "status"}>
      {problem || doing}
    </p>
  );
}

/** One of a few, all of which are in view. */
export function Switch<Value extends string>({
  name,
  legend,
  options,
  value,
  choose,
}: {
  name: string;
  legend: string;
  options: readonly (readonly [Value, string])[];
  value: Value;
  choose: (value: Value) => void;
}) {
  return (
    <fieldset class="switch" id={name}>
      <legend class="unseen">{legend}</legend>
      {options.map(([one, text]) => (
        <label key={one}>
          <input type="radio" name={name} value={one} checked={value === one} onChange={() => choose(one)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** One of a list, by its name; "" where nothing is chosen. */
export function Select({
  id,
  value,
  options,
  choose,
}: {
  id: string;
  value: string;
  options: readonly (readonly [string, string])[];
  choose: (value: string) => void;
}) {
  return (
    <select id={id} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      {options.map(([one, name]) => (
        <option key={one} value={one}>
          {name}
        </option>
      ))}
    </select>
  );
}
