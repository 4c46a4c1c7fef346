import { h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useExplorer } from "./panel.ts";
import { Select } from "./parts.tsx";
import * as wording from "./wording.ts";

/** The field for a text, where a model answers; the list of texts, where a trace is shown. */
export function AskPanel() {
  const explorer = useExplorer();
  const model = explorer.now.model.value;
  if (!model) return <div class="ask" />;
  return !model.texts ? <AskForm /> : <TextList texts={model.texts} />;
}

function AskForm() {
  const explorer = useExplorer();
  const field = useRef<HTMLTextAreaElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const facts = explorer.now.model.value?.facts;
  const text = explorer.draft.value;
  const words = wording.taskWords(facts?.task);
  const busy = explorer.now.translating.value !== null;
  useEffect(() => {
    const area = field.current;
    if (!area) return;
    const fit = () => {
      area.style.setProperty("height", "auto");
      area.style.setProperty("height", `${area.scrollHeight}px`);
    };
    fit();
    const observer = new ResizeObserver(fit);
    if (form.current) observer.observe(form.current);
    return () => observer.disconnect();
  }, [text]);
  return (
    <form
      id="ask"
      ref={form}
      class={busy ? "ask busy" : "ask"}
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        void explorer.translate(field.current?.value ?? "");
      }}
    >
      <label for="sentence" id="sentence-label" class="unseen">
        {words.field}
      </label>
      <div class="field">
        <textarea
          id="sentence"
          ref={field}
          rows={1}
          dir="auto"
          spellcheck={false}
          placeholder={words.field}
          lang={facts?.source_language ?? undefined}
          aria-describedby="problem"
          aria-invalid={explorer.now.problem.value !== null}
          value={text}
          onInput={(event) => (explorer.draft.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            // Enter that ends the composition of a character (Japanese, Chinese) is not ours.
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            form.current?.requestSubmit();
          }}
        />
        <button id="translate" type="submit" class="main">
          {words.button}
        </button>
      </div>
    </form>
  );
}

function TextList({ texts }: { texts: readonly string[] }) {
  const explorer = useExplorer();
  const row = explorer.now.row.value;
  return (
    <div class="ask" id="texts" hidden={texts.length < 2}>
      <label>
        Text{" "}
        <Select
          id="text"
          value={String(row ?? 0)}
          options={texts.slice(0, 500).map((text, index) => [String(index), wording.listed(index, text)] as const)}
          choose={(row) => explorer.openText(Number(row))}
        />
      </label>
      {texts.length > 500 && (
        <label>
          or number{" "}
          <input
            type="number"
            min={0}
            max={texts.length - 1}
            value={row ?? 0}
            onChange={(event) => explorer.openText(Number(event.currentTarget.value))}
          />
        </label>
      )}
    </div>
  );
}

/** What is under way, what went wrong, and what the model wrote. */
export function Messages() {
  const explorer = useExplorer();
  const { now } = explorer;
  const problem = now.problem.value;
  const progress = wording.progress({
    ...explorer.state,
    translating: now.translating.value,
    reading: now.reading.value,
    slow: now.slow.value,
    share: now.share.value,
  });
  const answer = now.answer.value;
  const facts = now.model.value?.facts;
  const remarks = !answer ? [] : [...answer.remarks, wording.absence(answer)].filter((one) => one !== "");
  return (
    <div class="messages">
      <p id="problem" class="problem" role="alert" hidden={!problem}>
        <span>{problem?.message ?? ""}</span>
        {problem?.gone === true && (
          <button type="button" onClick={() => explorer.retry()}>
            Try again
          </button>
        )}
      </p>
      <section
        id="result"
        class={now.translating.value !== null && answer ? "result stale" : "result"}
        aria-labelledby="result-title"
        hidden={!answer || (answer.text == null && remarks.length === 0)}
      >
        <h2 id="result-title" hidden={answer?.text == null}>
          {wording.taskWords(facts?.task).result}
        </h2>
        <p
          id="translation"
          class="translation"
          tabIndex={0}
          dir="auto"
          role="status"
          lang={facts?.target_language ?? undefined}
          hidden={answer?.text == null}
        >
          {answer?.text === "" ? "(The model wrote nothing.)" : (answer?.text ?? "")}
        </p>
        <p id="remark" class="remark" hidden={remarks.length === 0}>
          {remarks.join(" ")}
        </p>
      </section>
      <p id="progress" class="progress" role="status" hidden={progress === ""}>
        {progress}
        {now.reading.value && now.share.value !== null && (
          <button id="stop" type="button" onClick={() => explorer.halt()}>
            Stop
          </button>
        )}
      </p>
    </div>
  );
}
