"""The end of a training."""

from attlas.runs import AVERAGED, BEST, load_weights, numbered
from attlas.training.events import Outcome
from attlas.training.judge import Judge
from attlas.training.saver import Saver
from attlas.training.state import TrainingState


def finish(
    state: TrainingState, reason: str, saver: Saver, judge: Judge, planned: int | None
) -> Outcome:
    """Measure what was not yet measured, the average too; point `best` at the best of all.

    `state` is saved. None of this is entered in it: a training that goes on knows nothing of it.
    """
    learner, shelf, teller = saver.learner, saver.shelf, judge.teller
    best: tuple[float, float] | None = None
    name: str | None = None
    if state.best_update is not None:  # or nothing was measured, or its weights are gone
        best, name = state.best, numbered(state.best_update)
    if name is None or state.validated != state.update:
        value, better = judge.judged(
            learner.as_whole(judge.task.build), numbered(state.update), state, best
        )
        if better:
            best, name = value, numbered(state.update)
    average = saver.averaged(state)
    if average is not None:
        shelf.write(AVERAGED, average)
        model = judge.task.build().to(learner.device)
        load_weights(model, average.model, saver.folder)
        value, better = judge.judged(model, AVERAGED, state, best)
        if better:
            best, name = value, AVERAGED
    if name is not None:
        shelf.point(BEST, name)
    note = saver.too_few(state)
    outcome = Outcome(
        **teller.clock.moment(state),
        reason=reason,
        planned=planned,
        criterion=judge.criterion.criterion,
        best=None if best is None else best[0],
        checkpoint=name,
        folder=str(saver.folder),
        notes=(note,) if note else (),
    )
    teller.tell(outcome)
    teller.journal.sync()
    return outcome
